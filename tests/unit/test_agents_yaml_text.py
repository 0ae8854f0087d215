"""One entry of a YAML file goes in or out; every other byte stays, comments included."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from funes.agents import yaml_text
from funes.errors import FunesError

SERVER = {"command": "/opt/a b/funes", "args": ["mcp", "ü: #"], "env": {"FUNES_HOME": "/x"}}
HOOK = [{"command": "/bin/sh -c '{ \"a\" || b; } >/dev/null 2>&1 || :'", "timeout": 10}]
PLACES = ((("mcp_servers", "funes"), SERVER), (("hooks", "post_llm_call"), HOOK), (("hooks", "on_session_start"), HOOK))

FILES = {
    "nothing": "",
    "a comment": "# mine\n",
    "no line end": "model: x",
    "empty flow": "model: x\nmcp_servers: {}\nhooks: {}\n",
    "empty block": "mcp_servers:   # none\nhooks:\nz: 1\n",
    "comments everywhere": (
        "# top\nhooks:   # c\n  # first\n  post_llm_call:\n  - command: a # x\n    timeout: 3\n\n"
        "  on_session_start:\n    - {command: b}\nmcp_servers:\n    other: {command: z}   # keep\n\n# end\n"
    ),
    "all flow": "{a: 1, hooks: {post_llm_call: [{command: b}]}}\n",
    "a text at the end": "prompt: |\n  hi\n  there",
    "a text that keeps its line ends": "prompt: |+\n  hi\n\n\nz: 1\n",
    "line ends of Windows": "a: 1\r\nhooks:\r\n  post_llm_call: []\r\n",
    "document marks": "---\na: 1\n...\n",
    "nothing in the list": "hooks:\n  post_llm_call: # none yet\n",
    "a byte order mark": "\ufeffa: 1\n",
    "anchors": "a: &x 1\nmcp_servers: &m\n  o: *x\nhooks: &h\n  post_llm_call: &p\n  - command: z\n",
    "quotes and tags": "'mcp_servers':\n  \"o\": !!str 1\nhooks: !!map\n  post_llm_call: !!seq\n  - command: z\n",
}


def put_in(text):
    pieces = []
    for path, value in PLACES:
        text, piece = yaml_text.add(text, path, value)
        pieces.append(piece)
    return text, pieces


def take_out(text):
    for event in ("post_llm_call", "on_session_start"):
        commands = [entry.get("command") for entry in yaml_text.parse(text)["hooks"][event]]
        text = yaml_text.remove(text, ("hooks", event, commands.index(HOOK[0]["command"])))
    return yaml_text.remove(text, ("mcp_servers", "funes"))


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_what_is_put_in_is_there_and_comes_out_again(text):
    new, pieces = put_in(text)
    value, before = yaml_text.parse(new), yaml_text.parse(text) or {}
    assert value["mcp_servers"]["funes"] == SERVER
    for event in ("post_llm_call", "on_session_start"):
        assert value["hooks"][event] == HOOK + ((before.get("hooks") or {}).get(event) or [])
    assert yaml_text.cut(new, pieces, yaml_text.parse(text)) == text
    out = take_out(new)
    assert yaml_text._plain(yaml_text.parse(out)) == yaml_text._plain(yaml_text.parse(take_out_of(value)))


def take_out_of(value):
    """The same in plain values, as JSON, which is YAML."""
    del value["mcp_servers"]["funes"]
    for event in ("post_llm_call", "on_session_start"):
        value["hooks"][event] = value["hooks"][event][1:]
    return json.dumps(value)


def test_an_entry_that_is_spelled_as_nothing_is_replaced():
    text = "# mine\nmcp_servers: null\nhooks: ~ # later\n"
    new, pieces = put_in(text)
    assert yaml_text.parse(new)["mcp_servers"] == {"funes": SERVER}
    assert new.startswith("# mine\n")
    assert pieces[0] == ""
    assert yaml_text.cut(new, pieces, yaml_text.parse(text)) is None


def test_a_file_without_a_place_is_a_fault():
    for text in ("- a\n- b\n", "mcp_servers: text\n", "just text\n"):
        with pytest.raises(ValueError, match=r"mapping|no place"):
            put_in(text)


def test_a_piece_that_was_edited_is_not_cut_out():
    new, pieces = put_in("a: 1\n")
    assert yaml_text.cut(new.replace("timeout: 10", "timeout: 11"), pieces, {"a": 1}) is None
    assert yaml_text.cut(new, pieces, {"a": 2}) is None


def test_taking_out_what_is_not_there():
    assert yaml_text.remove("a: 1\n", ("b",)) == "a: 1\n"
    assert yaml_text.remove("a: [1]\n", ("a", 3)) == "a: [1]\n"
    assert yaml_text.remove("a: 1\n", ("a", "b")) == "a: 1\n"


def test_the_last_entry_takes_only_its_own_lines():
    text = "hooks:\n  a:\n  - command: x # c\n\n# about z\nz: |\n  1\n"
    assert yaml_text.remove(text, ("hooks", "a", 0)) == "hooks:\n  a:\n\n# about z\nz: |\n  1\n"
    assert yaml_text.remove(text, ("z",)) == "hooks:\n  a:\n  - command: x # c\n\n# about z\n"
    assert yaml_text.remove("a: 1\nhooks:\n  b:\nz: 1\n", ("hooks", "b")) == "a: 1\nhooks:\nz: 1\n"


@pytest.mark.parametrize("content", [b"a: [1", b"\tx: 1\n  y", b"a: b: c\n", b"\xff\xfea"])
def test_a_file_that_is_not_yaml_is_a_fault(tmp_path, content):
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(FunesError, match=r"config\.yaml is not valid YAML.*; mend it first, nothing was changed"):
        yaml_text.load(tmp_path / "config.yaml")


NAMES = st.text("abü-_: #'", min_size=1, max_size=4)
SCALARS = st.none() | st.booleans() | st.integers() | st.text("ab \n:#-'\"{[üx", max_size=8)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=5
)
HOOKS = st.none() | st.dictionaries(
    st.sampled_from(["post_llm_call", "on_session_start", "other"]),
    st.none() | st.lists(st.fixed_dictionaries({"command": st.text("ab '\"#", min_size=1)}), max_size=2),
)


@settings(deadline=None, max_examples=20)
@given(
    value=st.dictionaries(NAMES, VALUES, max_size=3),
    hooks=HOOKS,
    servers=st.none() | st.dictionaries(NAMES, VALUES, max_size=2),
    flow=st.none() | st.booleans(),
    indent=st.sampled_from([(2, 2, 0), (2, 4, 2), (4, 4, 2)]),
)
def test_any_file_survives_both_ways(value, hooks, servers, flow, indent):
    yaml = YAML(pure=True)
    yaml.default_flow_style = flow
    yaml.indent(mapping=indent[0], sequence=indent[1], offset=indent[2])
    stream = StringIO()
    whole = {**value, "hooks": hooks, "mcp_servers": servers, "last": 1}
    yaml.dump(whole, stream)
    text = stream.getvalue()
    try:
        assume(yaml_text.parse(text) == whole)
    except YAMLError:
        assume(False)
    new, pieces = put_in(text)
    parsed = yaml_text.parse(new)
    assert parsed["mcp_servers"] == {"funes": SERVER, **(servers or {})}
    assert {name: parsed[name] for name in value} == value
    if all(pieces):
        assert yaml_text.cut(new, pieces, whole) == text
    out = yaml_text.parse(take_out(new))
    assert {name: out[name] for name in value} == value
    assert (out["mcp_servers"] or {}) == (servers or {})
