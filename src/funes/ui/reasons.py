"""Reasons for which something is left out that are the user's own decisions; they are named before all others."""

from __future__ import annotations

from collections.abc import Mapping

FORGOTTEN = "forgotten session"
IGNORED = "session in the ignore file"
IGNORED_TURN = "turn in a folder of the ignore file"


def is_decided(reason: str) -> bool:
    """Whether the reason is the user's decision, which may change."""
    return reason.startswith((FORGOTTEN, IGNORED, IGNORED_TURN))


def decided_first(skipped: Mapping[str, int]) -> dict[str, int]:
    """Counts by reason: the user's decisions, then all else, each from the most frequent on."""
    return dict(sorted(skipped.items(), key=lambda item: (not is_decided(item[0]), -item[1])))
