"""The errors a user sees: one plain sentence that says what is wrong and what to do."""

from __future__ import annotations


class FunesError(Exception):
    """A fault that ends a command with one sentence on stderr.

    Args:
        message: the sentence, complete, without a trailing newline.
        exit_code: the process exit code (1 unless a documented code applies).
    """

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


class NoMemoryError(FunesError):
    """There is no memory at the named place yet."""


class CorruptMemoryError(FunesError):
    """The place holds something that cannot be read as a memory."""


class LockedError(FunesError):
    """Another process holds the writer lock."""


class ModelMissingError(FunesError):
    """The pinned model is neither on disk nor obtainable."""
