"""What a person typed in a Codex session, told apart from what Codex put into the same messages."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Elements that Codex writes into messages of the role "user". What follows the closing tag is typed.
_ELEMENTS = (
    "environment_context",
    "user_instructions",
    "permissions instructions",
    "permissions_instructions",
    "skills_instructions",
    "plugins_instructions",
    "apps_instructions",
    "collaboration_mode",
    "personality_spec",
    "model_switch",
    "turn_aborted",
    "subagent_notification",
    "agent_message_board_notification",
    "codex_internal_context",
    "goal_context",
    "extension_context",
    "guardian_retained_instructions",
    "realtime_conversation",
    "token_budget",
    "current_time_reminder",
    "hook_prompt",
    "hook_additional_context",
    "loaded_context",
    "ide_context",
)
# A person may well begin with one of these, so that only a closed element counts.
_CLOSED_ELEMENTS = ("skill", r"external_[\w.:-]+", "recommended_plugins")
_INJECTED = re.compile(
    rf"\s*<(?P<name>(?:{'|'.join(map(re.escape, _ELEMENTS))}|(?P<closed>{'|'.join(_CLOSED_ELEMENTS)})))(?:\s[^<>]*)?>",
    re.IGNORECASE,
)
_AGENTS_FILE = re.compile(r"\s*# AGENTS\.md instructions\b", re.IGNORECASE)
_AGENTS_FILE_END = "</INSTRUCTIONS>"
_NOTICES = (
    "Warning: apply_patch was requested via ",
    "Warning: The maximum number of unified exec processes",
    "Warning: Your account was flagged for potentially high-risk",
    "Here is a list of plugins that are available but not installed",
)
# An editor or the desktop application puts its state in front of the request, under headings.
_EDITOR = re.compile(r"\s*(?:# [^\n]*\n|This block is automatically supplied )")
_REQUEST = re.compile(r"^## My request for Codex:[ \t]*\n?", re.MULTILINE)
_WRAPPER = re.compile(r"\s*</?(?:local_)?(?:image|audio|video)(?:\s[^<>]*)?/?>\s*", re.IGNORECASE)
_SUMMARY = "Another language model started to solve this problem and produced a summary"
_SHELL = re.compile(
    r"\s*<user_shell_command>\s*(?:<command>\n?(?P<command>.*?)\n?</command>)?"
    r"\s*(?:<result>\n?(?P<result>.*)</result>)?(?P<rest>.*?)(?:</user_shell_command>\s*)?",
    re.DOTALL,
)
_REVIEW = re.compile(r"\s*<user_action>.*?<results>\s*(?P<results>.*?)\s*</results>", re.DOTALL)
_CWD = re.compile(r"<cwd>([^<\n]+)</cwd>|^Current working directory: ([^\n]+)", re.MULTILINE)


@dataclass(slots=True)
class Shell:
    """A command that a person ran with `!`: the command line and what Codex recorded of its result."""

    command: str
    result: str


def typed_text(text: str, *, labelled: bool = False) -> str:
    """Remove what Codex put into a user's text; empty when nothing of it was typed.

    What is left is verbatim, apart from blanks at its ends when something was removed.

    Args:
        text: one part of a message with the role `user`.
        labelled: whether the trace itself says that the part came from the user. Such a part is typed, but for the
            wrappers around attachments and the state an editor puts in front.
    """
    if _WRAPPER.fullmatch(text):
        return ""
    if labelled:
        rest = text
    elif text.lstrip().startswith(_NOTICES):
        return ""
    else:
        rest = _without_elements(text)
    if _EDITOR.match(rest) and (request := _REQUEST.search(rest)):
        rest = rest[request.end() :]
    return text if rest == text else rest.strip()


def _without_elements(text: str) -> str:
    position = 0
    while True:
        if match := _INJECTED.match(text, position):
            end = _end_of(text, f"</{match['name']}>", match.end())
            if end < 0:
                return text[position:] if match["closed"] else ""
            position = end
        elif _AGENTS_FILE.match(text, position):
            end = _end_of(text, _AGENTS_FILE_END, position)
            if end < 0:
                return ""
            position = end
        else:
            return text[position:]


def _end_of(text: str, closing: str, start: int) -> int:
    """Position behind the element that is closed by `closing`, -1 when it is not closed."""
    if text.rstrip()[-len(closing) :].lower() == closing.lower():
        # All of the text is the element, even when a file quoted in it contains the tag.
        return len(text)
    match = re.compile(re.escape(closing), re.IGNORECASE).search(text, start)
    return match.end() if match else -1


def is_summary(text: str) -> bool:
    """Whether a user's message is the summary that Codex starts a compacted conversation with."""
    return text.startswith(_SUMMARY)


def shell_command(text: str) -> Shell | None:
    """Read a `<user_shell_command>` element; None when the text is none."""
    if not text.lstrip()[:40].lower().startswith("<user_shell_command>"):
        return None
    match = _SHELL.fullmatch(text)
    if match is None:
        return None
    return Shell((match["command"] or match["rest"]).strip(), (match["result"] or "").strip("\n"))


def review_results(text: str) -> str:
    """Return the findings that a `/review` hands to the conversation in a `<user_action>` element, else nothing."""
    match = _REVIEW.match(text)
    return match["results"] if match else ""


def is_user_action(text: str) -> bool:
    """Whether the text is a `<user_action>` element, which reports something that a person did in the interface."""
    return text.lstrip()[:13].lower() == "<user_action>"


def context_directory(text: str) -> str:
    """Working directory that an `<environment_context>` states, empty without one."""
    match = _CWD.search(text, 0, 4000)
    return (match[1] or match[2]).strip() if match else ""
