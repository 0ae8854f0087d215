"""What Hermes writes into its messages besides the conversation: summaries, notices, notes, skills, wrappers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from funes.traces.text import tool_input_text

JSON_PREFIX = "\x00json:"
"""Marks a `content` column that holds a JSON list of parts instead of text."""

_MEMORY = re.compile(r"(?:^|(?<=\n))[ \t]*<memory-context>.*?</memory-context>\s*", re.DOTALL | re.IGNORECASE)
_SUMMARY = re.compile(r"\s*\[CONTEXT (?:COMPACTION|SUMMARY)\b")
# The handoff instructions of every known version, from the marker to the end of their last sentence.
_HANDOFF = re.compile(r"\s*\[CONTEXT COMPACTION[^\]]{0,80}\](?:(?!\n\n).){0,3000}?avoid repeating it:\s*", re.DOTALL)
_SUMMARY_END = re.compile(r"\s*^--- END OF CONTEXT SUMMARY[^\n]*$\s*", re.MULTILINE)
_PRIOR = re.compile(r"\s*\[PRIOR CONTEXT\b[^\]\n]*\]\n?")
_PRIOR_END = re.compile(r"\s*\[END OF PRIOR CONTEXT\b[^\]\n]*\]\s*")
_NOTICE = re.compile(r"\s*\[(?:IMPORTANT: )?(Background process|ASYNC DELEGATION)\b")
_SCAFFOLD = re.compile(
    r"\s*\[(?:Your active task list was preserved|Continuing toward (?:your standing goal|this kanban))"
)
_NOTE = re.compile(
    r"\s*\[(?:System note|System|Note: model was just switched|IMPORTANT: You are running as a scheduled"
    r"|IMPORTANT: MCP servers have been reloaded)\b.*?\](?:\s*\Z|\s*\n\s*\n)",
    re.DOTALL,
)
_SKILL = re.compile(r"\s*\[IMPORTANT: The user has invoked the ")
_SKILL_REQUEST = "The user has provided the following instruction alongside the skill invocation: "
_BUNDLE_REQUEST = "\nUser instruction: "
_REVIEW = re.compile(
    r"\s*Review the conversation above and (?:update the skill library|update two things|consider saving|consider two)"
)
_UNTRUSTED = re.compile(
    r"""<untrusted_tool_result(?:\s+source=["']?(?P<source>[^"'>]*)["']?)?[^>]*>\n?"""
    r"(?:(?:The following content was retrieved|External content follows)[^\n]*\n\n?)?"
)
_UNTRUSTED_END = re.compile(r"\n?</untrusted_tool_result>")
_THINK = re.compile(r"\s*<(think|thinking|reasoning)>(.*?)(?:</\1>\s*|\Z)", re.DOTALL | re.IGNORECASE)
_PRUNED = ("[Old tool output cleared", "[Duplicate tool output")
_MEDIA_NOTE = "[screenshot removed to save context]"
_OUTPUT_KEYS = ("output", "content", "result", "text", "stdout")


@dataclass(slots=True)
class Message:
    """A user's, assistant's or system message, taken apart.

    Attributes:
        text: what was said.
        thinking: reasoning that stood inside the text.
        summary: summary of a compaction, without the instructions around it.
        prior: an earlier message that a summary was merged into.
        notice: outcome of a background task, which Hermes delivers as a user message.
        notice_tool: the tool that ran it.
    """

    text: str = ""
    thinking: str = ""
    summary: str = ""
    prior: str = ""
    notice: str = ""
    notice_tool: str = ""


def read_user(text: str, *, is_summary: bool = False) -> Message:
    """Take a user message apart and drop what Hermes put into it.

    Args:
        text: the message's text.
        is_summary: whether the trace marks the message as a compaction's summary.
    """
    text = _MEMORY.sub("", text)
    if found := _summary(text, is_summary):
        if found.text:
            found.text = read_user(found.text).text
        return found
    if notice := _NOTICE.match(text):
        tool = "delegate_task" if notice[1].startswith("ASYNC") else "process"
        return Message(notice=text.strip(), notice_tool=tool)
    if _SCAFFOLD.match(text):
        return Message()
    while note := _NOTE.match(text):
        text = text[note.end() :]
    if _SKILL.match(text):
        text = _skill_request(text)
    return Message(text=without_media_notes(text))


def read_assistant(text: str, *, is_summary: bool = False) -> Message:
    """Take an assistant message apart; see `read_user`."""
    if found := _summary(text, is_summary):
        return found
    thoughts: list[str] = []
    while thought := _THINK.match(text):
        thoughts.append(thought[2].strip())
        text = text[thought.end() :]
    if text.strip() == "(empty)":  # stands for a reply without any text
        text = ""
    return Message(text=text, thinking="\n".join(thoughts))


def read_result(text: str) -> tuple[str, str]:
    """Take a tool's output out of its envelope.

    Returns:
        The output and the tool's name where the envelope tells it; the output is empty where Hermes has cleared it.
    """
    source = ""
    if text.lstrip().startswith("<untrusted_tool_result"):
        match = _UNTRUSTED.match(text.lstrip())
        source = (match["source"] or "").strip() if match else ""
        text = _UNTRUSTED_END.sub("", _UNTRUSTED.sub("", text.lstrip())).strip("\n")
    text = without_media_notes(text)
    if text.startswith(_PRUNED):
        return "", source
    return _unwrapped(text), source


def is_review(text: str) -> bool:
    """Whether a message is the prompt of a background review, which older versions wrote into the user's session."""
    return _REVIEW.match(text) is not None


def without_media_notes(text: str) -> str:
    """Drop the notes that stand where an image was, so that copies with and without the image are the same text."""
    if _MEDIA_NOTE not in text:
        return text
    return "\n".join(line for line in text.split("\n") if line.strip() != _MEDIA_NOTE)


def _summary(text: str, is_summary: bool) -> Message | None:
    """Take a compaction's message apart: `[prior message] summary [end marker] [next message]`."""
    prior = ""
    end = _PRIOR_END.search(text) if "[END OF PRIOR CONTEXT" in text else None
    if end and (is_summary or _SUMMARY.match(text, end.end())):
        prior = _PRIOR.sub("", text[: end.start()], count=1)
        text = text[end.end() :]
    elif not is_summary and not _SUMMARY.match(text):
        return None
    body, said = text, ""
    if end := _SUMMARY_END.search(text):
        body, said = text[: end.start()], text[end.end() :]
    body = _HANDOFF.sub("", body, count=1).strip()
    return Message(text=said.strip(), summary=body, prior=without_media_notes(prior))


def _skill_request(text: str) -> str:
    """Return what the user typed behind `/skill`; the skill's own text is left out."""
    if _SKILL_REQUEST in text:
        return text.rpartition(_SKILL_REQUEST)[2].partition("\n\n[Runtime note:")[0].strip()
    if " skill bundle," in text:
        return text.partition(_BUNDLE_REQUEST)[2].partition("\n\n[Loaded as part of the ")[0].strip()
    return ""


def _unwrapped(text: str) -> str:
    r"""Return the text of a JSON result (`{"output": "…\n…", "exit_code": 0}`) with its line ends raw.

    Escaped, `\ndef` is a word that no search for `def` finds.
    """
    if not text.startswith("{") or "\\" not in text:
        return text
    try:
        value: Any = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    if not isinstance(value, dict):
        return text
    main = next((key for key in _OUTPUT_KEYS if isinstance(value.get(key), str)), None)
    if main is None:
        return tool_input_text(value)
    rest = {key: item for key, item in value.items() if key != main and item is not None}
    output: str = value[main]
    if not rest:
        return output
    return f"{output.rstrip()}\n{tool_input_text(rest)}".lstrip("\n")
