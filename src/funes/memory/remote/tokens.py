"""The user's Hub token, from where the Hub's own client keeps it. It is handed on in requests and shown nowhere."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from funes.errors import FunesError

VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN")


_VISIBLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and where it was found; `repr` leaves the value out."""

    value: str = field(default="", repr=False)
    name: str = ""


def hf_home() -> Path:
    """Folder of everything that Hugging Face programs keep."""
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache).expanduser() if cache else Path.home() / ".cache") / "huggingface"


def find_token() -> Token:
    """The token of the environment, else that of `hf auth login`; an empty one when there is none.

    Raises:
        FunesError: for something that cannot be a token; sent on, it would end up in an error message.
    """
    for name in VARIABLES:
        if value := os.environ.get(name, "").strip():
            return _checked(value, name)
    given = os.environ.get("HF_TOKEN_PATH")
    path = Path(given).expanduser() if given else hf_home() / "token"
    try:
        value = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return Token()
    return _checked(value, str(path)) if value else Token()


def _checked(value: str, name: str) -> Token:
    if not _VISIBLE.fullmatch(value):
        raise FunesError(f"What stands in {name} is no token: it has blanks or special characters; set it anew.")
    return Token(value, name)
