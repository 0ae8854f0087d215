"""Codex's config.toml: a table goes in and out, comments and layout stay."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.agents import codex_config
from funes.errors import FunesError

SERVER = {"command": "/opt/funes/bin/funes", "args": ["mcp", 'a "b" \\ ü\x7f'], "env": {"FUNES_HOME": "/x"}}

FILES = {
    "nothing": "",
    "a comment": "# mine\n",
    "no line end": 'model = "x" # best',
    "comments": '# mine\n[mcp_servers.other]\ncommand="x"   # spaced\nargs=[ "a","b" ]\n\n[tui] # last\na = 1\n',
    "line ends of Windows": 'model = "x"\r\n[tui]\r\na = 1\r\n',
    "dotted": 'mcp_servers.other.command = "x"\n',
    "a byte order mark": '\ufeffmodel = "x"\n',
}


@pytest.fixture
def config(tmp_path):
    return tmp_path / "config.toml"


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_what_is_put_in_comes_out_again(config, text):
    config.write_bytes(text.encode())
    added = codex_config.add_server(config, SERVER)
    new, value = codex_config.load(config)
    assert value["mcp_servers"]["funes"] == SERVER
    assert new.startswith(text)
    codex_config.remove_server(config, added, None)
    assert config.read_bytes().decode() == text


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_without_the_receipt_the_rest_means_the_same(config, text):
    config.write_bytes(text.encode())
    codex_config.add_server(config, SERVER)
    codex_config.remove_server(config, "", None)
    left, value = codex_config.load(config)
    assert value == codex_config._parse(text)
    for line in text.splitlines():
        assert line in left


def test_one_inline_table_of_servers_is_extended(config):
    text = '# mine\nmcp_servers = { other = { command = "x" } } # all\n'
    config.write_text(text)
    added = codex_config.add_server(config, SERVER)
    assert added == ""
    assert codex_config.load(config)[1]["mcp_servers"] == {"other": {"command": "x"}, "funes": SERVER}
    codex_config.remove_server(config, added, None)
    assert tomllib.loads(config.read_text()) == tomllib.loads(text)
    assert "# mine" in config.read_text()
    assert "# all" in config.read_text()


def test_what_was_added_after_stays(config):
    config.write_text('model = "x"\n')
    added = codex_config.add_server(config, SERVER)
    with config.open("a") as stream:
        stream.write('\n[projects."/x"] # mine\ntrust_level = "trusted"\n')
    codex_config.remove_server(config, added, None)
    assert config.read_text() == 'model = "x"\n\n[projects."/x"] # mine\ntrust_level = "trusted"\n'


def test_an_earlier_server_comes_back(config):
    config.write_text('[mcp_servers.funes]\ncommand = "old"\n[tui]\na = 1\n')
    codex_config.remove_server(config, "", None)
    assert codex_config.load(config)[1] == {"tui": {"a": 1}}
    added = codex_config.add_server(config, SERVER)
    codex_config.remove_server(config, added, {"command": "old"})
    assert codex_config.load(config)[1] == {"tui": {"a": 1}, "mcp_servers": {"funes": {"command": "old"}}}


def test_an_edited_table_goes_all_the_same(config):
    config.write_text("# mine\n")
    added = codex_config.add_server(config, SERVER)
    config.write_text(config.read_text().replace("args =", "startup_timeout_sec = 5 # slow\nargs ="))
    codex_config.remove_server(config, added, None)
    assert codex_config.load(config)[1] == {}
    assert config.read_text().startswith("# mine\n")


def test_dropping_takes_the_empty_tables_along(config):
    config.write_text('a = 1\n\n[hooks.state."funes:x"]\nhash = "1"\n\n[hooks.state."mine:y"] # keep\nhash = "2"\n')
    codex_config.edit(config, codex_config.drop("hooks", "state", "funes:x"))
    assert codex_config.load(config)[1] == {"a": 1, "hooks": {"state": {"mine:y": {"hash": "2"}}}}
    assert '[hooks.state."mine:y"] # keep' in config.read_text()
    codex_config.edit(config, codex_config.drop("hooks", "state", "mine:y"))
    assert codex_config.load(config)[1] == {"a": 1}
    codex_config.edit(config, codex_config.drop("hooks", "state", "mine:y"))
    codex_config.edit(config, codex_config.drop("a", "b"))
    assert codex_config.load(config)[1] == {"a": 1}


def test_a_file_that_is_not_toml_is_a_fault_and_quotes_nothing(config):
    config.write_text('key = "hunter2-secret\n')
    with pytest.raises(FunesError) as fault:
        codex_config.add_server(config, SERVER)
    assert "config.toml is not valid TOML; mend it first, nothing was changed" in fault.value.message
    assert "hunter2" not in fault.value.message
    assert config.read_text() == 'key = "hunter2-secret\n'


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.integers(0, 9) | st.booleans(),
        max_size=3,
    )
)
def test_any_value_is_written_as_toml(value):
    server = {"command": "x", "args": [str(part) for part in value.values()], "env": value}
    assert tomllib.loads(codex_config._table(server))["mcp_servers"]["funes"] == server
