from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.traces.codex_text import typed_text
from tests.support.codex import (
    Record,
    item,
    meta,
    read,
    said,
    user,
    write,
)

INJECTED = [
    "<environment_context>\n  <cwd>/home/dev/kiln</cwd>\n</environment_context>",
    "<user_instructions>\n\nBe brief.\n\n</user_instructions>",
    "# AGENTS.md instructions for /home/dev/kiln\n\n<INSTRUCTIONS>\nUse make.\n</INSTRUCTIONS>",
    "<permissions instructions>\nNo network.\n</permissions instructions>",
    "<skills_instructions>\n## Skills\n</skills_instructions>",
    "<skill>\n<name>glaze</name>\nSteps.\n</skill>",
    "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>",
    "<SUBAGENT_NOTIFICATION>{}</subagent_notification>",
    '<codex_internal_context source="goal">\nkeep going\n</codex_internal_context>',
    '<hook_prompt hook_run_id="h1">try again</hook_prompt>',
    "<external_tracker>ticket 12</external_tracker>",
    "Warning: apply_patch was requested via exec_command. Use the apply_patch tool instead of exec_command.",
    "Warning: The maximum number of unified exec processes you can keep open is 60",
    "Here is a list of plugins that are available but not installed.\n- kiln",
]


@pytest.mark.parametrize("text", INJECTED)
def test_text_that_codex_puts_into_user_messages_is_no_prompt(text: str, tmp_path: Path) -> None:
    _, turns, report = read(write(tmp_path, [meta(), user(text), user("Why did the glaze crack?", 2)]))
    assert said(turns) == [("user", "human", "text", "Why did the glaze crack?")]
    assert report.skipped["harness text"] == 1


@pytest.mark.parametrize("text", INJECTED[:9])
def test_a_prompt_behind_an_injected_element_is_kept(text: str) -> None:
    if text.startswith("Warning"):
        pytest.skip("a notice has no end")
    assert typed_text(f"{text}\n\nfire the kiln ") == "fire the kiln"


@pytest.mark.parametrize(
    "text",
    [
        "<skill> is a strange tag, why?",
        "<instructions>\nRewrite the parser.\n</instructions>",
        "<div>Why does this not render?</div>",
        "# Context\n\nThe kiln is cold.",
        "warning: unused variable `cone`",
        "  indented, with trailing blank \n",
    ],
)
def test_text_that_only_resembles_injected_text_stays_as_it_is(text: str) -> None:
    assert typed_text(text) == text


@given(st.text(alphabet=st.characters(exclude_characters="<#"), min_size=1))
def test_typed_text_without_markup_is_verbatim(text: str) -> None:
    if not text.lstrip().startswith(("Warning: ", "Here is a list of plugins", "This block is")):
        assert typed_text(text) == text
        assert typed_text(INJECTED[0] + text) == text.strip()


@given(st.text())
def test_typed_text_never_fails_and_never_invents(text: str) -> None:
    assert typed_text(text) in text
    assert typed_text(text, labelled=True) in text


def test_the_state_that_an_editor_puts_in_front_of_a_request_is_left_out() -> None:
    state = "# Context from my IDE setup:\n\n## Open tabs:\n- kiln.py: src/kiln.py\n\n"
    text = state + "## My request for Codex:\nraise the cone\n"
    assert typed_text(text) == "raise the cone"
    assert typed_text(text, labelled=True) == "raise the cone"


def test_wrappers_around_an_attached_image_are_left_out_and_the_image_is_counted(tmp_path: Path) -> None:
    content = [
        {"type": "input_text", "text": '<image name=[Image #1] path="pot.png">'},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "What is on the picture?"},
    ]
    _, turns, report = read(write(tmp_path, [meta(), item({"type": "message", "role": "user", "content": content})]))
    assert said(turns) == [("user", "human", "text", "What is on the picture?")]
    assert report.skipped["image data"] == 1


def test_labels_of_the_trace_decide_where_there_are_any(tmp_path: Path) -> None:
    def labelled(text: str, kind: str) -> Record:
        return user(text, internal_chat_message_metadata_passthrough={"content_item_kinds": [kind]})

    records = [
        meta(),
        labelled("<environment_context> is what I asked about", "user.text"),
        labelled("Plain words from the program.", "environments.environment_context"),
        labelled("Continue.", "user.heartbeat"),
    ]
    _, turns, report = read(write(tmp_path, records))
    assert [text for *_, text in said(turns)] == ["<environment_context> is what I asked about"]
    assert report.skipped["harness text"] == 2


def test_a_command_that_a_person_ran_is_a_command_of_theirs_with_its_output(tmp_path: Path) -> None:
    text = (
        "<user_shell_command>\n<command>\ngit status\n</command>\n<result>\nExit code: 0\nDuration: 0.1 seconds\n"
        "Output:\nclean\n</result>\n</user_shell_command>"
    )
    _, turns, _ = read(write(tmp_path, [meta(), user(text)]))
    assert said(turns) == [
        ("user", "human", "tool_use", "git status"),
        ("tool", "tool", "tool_result", "Exit code: 0\nDuration: 0.1 seconds\nOutput:\nclean"),
    ]
    assert {block.tool_name for turn in turns for block in turn.blocks} == {"user_shell"}
    assert len({turn.uuid for turn in turns}) == 2


def test_the_findings_of_a_review_are_kept_as_output(tmp_path: Path) -> None:
    text = (
        "<user_action>\n  <context>User initiated a review task.</context>\n  <action>review</action>\n"
        "  <results>\n  The lid leaks.\n  </results>\n</user_action>"
    )
    assert said(read(write(tmp_path, [meta(), user(text)]))[1]) == [("tool", "tool", "tool_result", "The lid leaks.")]


def test_developer_and_system_messages_are_harness_text(tmp_path: Path) -> None:
    messages = [
        item({"type": "message", "role": role, "content": "You are a potter."}) for role in ("developer", "system")
    ]
    _, turns, report = read(write(tmp_path, [meta(), *messages]))
    assert (turns, report.skipped["harness text"]) == ([], 2)
