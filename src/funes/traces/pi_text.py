"""What a person typed in a pi session, told apart from what pi put in front of it."""

from __future__ import annotations

import re
from pathlib import Path

_FILE_NAME = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z?_(?P<id>.+)")
_FILE = re.compile(r'<file name="[^"\n]*">(?P<content>.*?)</file>\n?', re.DOTALL)
_SKILL = re.compile(r'<skill name="[^"\n]*" location="[^"\n]*">\n.*?\n</skill>(?:\n\n|$)', re.DOTALL)
_SUMMARIES = (
    "The conversation history before this point was compacted into the following summary:",
    "The following is a summary of a branch that this conversation came back from:",
)


def split_prompt(text: str) -> tuple[list[str], str]:
    """Split a user's text into files that pi attached and the prompt.

    `pi @notes.md "summarise"` puts the file, as `<file name="…">…</file>`, in front of the prompt, and `/skill:name …`
    puts the skill's text, as `<skill …>…</skill>`, in front of its arguments. A skill is instructions and dropped.

    Returns:
        The attached files with content, as they stand in the text, and the rest. An image leaves an empty element,
        which is dropped.
    """
    files: list[str] = []
    position = 0
    while True:
        if match := _FILE.match(text, position):
            if match["content"].startswith("\n"):
                files.append(match[0].rstrip("\n"))
        else:
            match = _SKILL.match(text, position)
        if match is None or match.end() == position:
            return files, text[position:]
        position = match.end()


def is_summary(text: str) -> bool:
    """Whether a user's message is the summary that a compacted conversation, or one back from a branch, starts with."""
    return text.startswith(_SUMMARIES)


def session_of_file(name: str) -> str:
    """Return the id of the session in a file, from its name: `<time>_<id>.jsonl`, or `<id>.jsonl`."""
    stem = Path(name.replace("\\", "/")).name.removesuffix(".zst").removesuffix(".jsonl")
    match = _FILE_NAME.fullmatch(stem)
    return match["id"] if match else stem
