"""The markers that redaction leaves in a text."""

from __future__ import annotations

import re

_MARKER = re.compile(r"\[REDACTED:[a-z0-9][a-z0-9._/-]{0,80}\]")


def has_markers(text: str) -> bool:
    """Whether a text has such a marker."""
    return "[REDACTED:" in text and _MARKER.search(text) is not None


def same_but_markers(text: str) -> str:
    """A text for comparison with another one: other rules may have another name for the same credential."""
    return _MARKER.sub("[REDACTED]", text) if "[REDACTED:" in text else text
