"""One entry of a JSON file goes in or out; every other byte stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.agents import json_text
from funes.errors import FunesError

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
LAYOUTS = st.sampled_from([{"indent": None}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}])


@given(value=st.dictionaries(st.text(max_size=4), VALUES, min_size=1, max_size=4), layout=LAYOUTS, data=st.data())
def test_cutting_an_entry_out_leaves_the_others(value, layout, data):
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()), **layout)
    path, holder = [], value
    while isinstance(holder, (dict, list)) and len(holder) and (not path or data.draw(st.booleans())):
        key = data.draw(st.sampled_from(list(holder) if isinstance(holder, dict) else range(len(holder))))
        path.append(key)
        holder = holder[key]
    cut = json_text.without(text, path)
    last = json.loads(text)
    for key in path[:-1]:
        last = last[key]
    wanted = json.loads(text)
    inside = wanted
    for key in path[:-1]:
        inside = inside[key]
    del inside[path[-1]]
    assert json.loads(cut) == wanted
    assert len(cut) < len(text)


@given(items=st.lists(VALUES, max_size=3), layout=LAYOUTS, item=VALUES)
def test_an_item_goes_to_the_end_and_out_again(items, layout, item):
    text = json.dumps({"a": 1, "list": items, "z": 2}, **layout)
    longer = json_text.with_item(text, ["list"], item)
    assert json.loads(longer) == {"a": 1, "list": [*items, item], "z": 2}
    assert json_text.without(longer, ["list", len(items)]) == text


def test_an_item_is_laid_out_like_the_file_around_it():
    text = '{\n  "approvals": [\n    {\n      "a": 1\n    }\n  ]\n}'
    assert json_text.with_item(text, ["approvals"], {"b": 2}) == (
        '{\n  "approvals": [\n    {\n      "a": 1\n    },\n    {\n      "b": 2\n    }\n  ]\n}'
    )


def test_what_is_not_there_changes_nothing():
    text = '{"a": {"b": 1}}'
    assert json_text.without(text, ["a", "c"]) == text
    assert json_text.without(text, ["x", "y"]) == text


def test_a_name_that_stands_twice_is_cut_out_twice():
    assert json_text.without('{"a": 1, "b": 2, "a": 3}', ["a"]) == '{"b": 2}'


def test_stripping_a_file(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text('\ufeff{\n\t"model" : "opus",\n\t"plugins": {"funes": true},\n\t"servers": {"x": 1, "funes": 2}\n}')
    json_text.strip(path, [("plugins", "funes"), ("servers", "funes")], [("plugins",), ("servers",), ()])
    assert path.read_text() == '\ufeff{\n\t"model" : "opus",\n\t"servers": {"x": 1}\n}'


def test_a_file_that_is_empty_then_goes(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text('{"plugins": {"funes": true}}')
    json_text.strip(path, [("plugins", "funes")], [("plugins",)])
    assert path.read_text() == "{}"
    json_text.strip(path, [], [()])
    assert not path.exists()
    json_text.strip(path, [("a",)], [()])


@pytest.mark.parametrize("content", [b"{bad", b'{"a": 1} x', b"\xff\xfe{}", b"[" * 100_000 + b"]" * 100_000, b"nul"])
def test_a_file_that_is_not_json_is_never_written(tmp_path, content):
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    with pytest.raises(FunesError, match=r"settings\.json is not valid JSON.*; mend it first, nothing was changed"):
        json_text.strip(path, [("a",)], [()])
    assert path.read_bytes() == content


def test_the_line_of_the_fault_is_named(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text('{\n  "model": "opus",\n}\n')
    with pytest.raises(FunesError, match=r"\(line [23]\)"):
        json_text.load(path)
