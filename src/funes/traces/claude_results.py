"""Tool results of Claude Code: their text, and the full text where the transcript only keeps a preview."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from funes.traces.jsonl import MAX_LINE
from funes.traces.model import ReadReport

_SPILLED = re.compile(r"\s*<persisted-output>.{0,400}?Full output saved to: (.+?)\s*(?:\n|$)", re.DOTALL)
_CUT = re.compile(r"\.\.\. \[[\d,]+ (?:lines|characters|chars) truncated\] \.\.\.")
_MAX_FOLDERS_UP = 5


def content_text(content: object, report: ReadReport) -> str:
    """Flatten the `content` of a tool result: strings and text blocks, joined by line ends.

    Args:
        content: a string, a block, or a list of both.
        report: images and documents that are left out are counted here.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        kind = content.get("type")
        if kind in ("image", "document"):
            report.skipped[f"{kind} data"] += 1
            return ""
        found = [content.get(key) for key in ("text", "title", "url", "content")]
        return "\n".join(text for item in found if item and (text := content_text(item, report)))
    if isinstance(content, list):
        return "\n".join(text for item in content if (text := content_text(item, report)))
    return ""


def full_text(preview: str, twin: object, call_id: str, transcript: Path, report: ReadReport) -> str:
    """Return the whole output of a tool whose result was cut short, or the text as it is.

    Args:
        preview: text of the result in the transcript.
        twin: the record's `toolUseResult`, which may hold more.
        call_id: id of the call, which names the file in some versions.
        transcript: the file being read; spilled outputs are looked for beside it, never at the recorded absolute path.
        report: a result of which only the preview is left is counted here.
    """
    spilled = _SPILLED.match(preview[:2000])
    if not spilled and not _CUT.search(preview[-500:]):
        return preview
    if spilled:
        recorded = spilled[1]
        names = [re.split(r"[/\\]", recorded)[-1], f"{call_id}.txt"]
        if isinstance(twin, dict) and isinstance(path := twin.get("persistedOutputPath"), str):
            names.insert(0, re.split(r"[/\\]", path)[-1])
        for name in names:
            text = _spilled_text(transcript, name, report)
            if text is not None:
                return text
    longer = twin_text(twin, report)
    if len(longer) > len(preview):
        return longer
    report.skipped["tool output of which only a preview is left"] += 1
    return preview


def _spilled_text(transcript: Path, name: str, report: ReadReport) -> str | None:
    """Read `tool-results/<name>` of the transcript's session; None when it is not there."""
    if not name or name in (".", ".."):
        return None
    # Beside a session's file stands its folder; a sub-agent's file lies somewhere below that folder.
    folders = (
        [transcript.with_suffix("")] if transcript.suffix != ".zst" else [transcript.with_suffix("").with_suffix("")]
    )
    folders += list(transcript.parents)[:_MAX_FOLDERS_UP]
    for folder in folders:
        path = folder / "tool-results" / name
        try:
            with path.open("rb") as stream:
                data = stream.read(MAX_LINE + 1)
        except OSError:
            continue
        if len(data) > MAX_LINE:
            report.damage(f"{name}: only its first {MAX_LINE // 2**20} MB were read")
            data = data[:MAX_LINE]
        text = data.decode("utf-8", "replace")
        return _blocks_text(text, report) if name.endswith(".json") else text
    return None


def _blocks_text(text: str, report: ReadReport) -> str:
    """Read a spilled list of content blocks; any other JSON stays as it is."""
    try:
        blocks = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    if isinstance(blocks, list) and blocks and all(isinstance(block, dict) and "type" in block for block in blocks):
        return content_text(blocks, report) or text
    return text


def twin_text(twin: object, report: ReadReport) -> str:
    """Return the output inside a `toolUseResult`, the structured twin of a result; empty when it has none.

    Args:
        twin: the decoded value.
        report: images and documents that are left out are counted here.
    """
    if isinstance(twin, str):
        return twin
    if isinstance(twin, list):
        return content_text(twin, report)
    if not isinstance(twin, dict):
        return ""
    parts: list[Any] = [twin.get("stdout"), twin.get("stderr")]
    output = "\n".join(part for part in parts if isinstance(part, str) and part)
    if output:
        return output
    for key in ("content", "output", "result"):
        if twin.get(key):
            return content_text(twin[key], report)
    return ""
