"""The worker behind the hooks."""

from __future__ import annotations


def follow(lock: int | None) -> None:
    """Take the spool empty."""
