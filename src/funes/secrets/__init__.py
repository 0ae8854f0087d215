"""Finding and redacting credentials.

Two engines look at each block before it is cut into chunks: Kingfisher, which knows the formats of hundreds of vendors,
and our own rules, which know the places where credentials stand. What they find is replaced by `[REDACTED:<rule>]`,
the value only.
"""

from __future__ import annotations

from funes.secrets.canaries import self_test
from funes.secrets.findings import EngineError, Finding
from funes.secrets.redactor import Redaction, Redactor
from funes.secrets.ruleset import ruleset_id

__all__ = ["EngineError", "Finding", "Redaction", "Redactor", "engines", "ruleset_id", "self_test"]


def engines() -> list[str]:
    """Names of the engines that work here; loads them."""
    return Redactor().engines
