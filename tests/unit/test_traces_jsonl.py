from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from funes.traces import jsonl
from funes.traces.jsonl import iter_records, open_trace, resume_point, resume_state, sanitize
from funes.traces.model import ReadReport


def read(data: bytes, **options: Any) -> tuple[list[dict[str, Any]], ReadReport]:
    report = ReadReport()
    return [record for _, record in iter_records(io.BytesIO(data), report, **options)], report


def test_only_newlines_end_a_line():
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf"
    records, report = read(json.dumps({"t": text}, ensure_ascii=False).encode() + b"\n" + b'{"t":1}\n')
    assert records == [{"t": text}, {"t": 1}]
    assert report.damaged == []


def test_carriage_returns_blank_lines_and_a_byte_order_mark():
    records, report = read(b'\xef\xbb\xbf{"a":1}\r\n\r\n   \n{"a":2}\r\n')
    assert records == [{"a": 1}, {"a": 2}]
    assert report.damaged == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16(encoding: str):
    text = '{"a":"naïve 日本語 🎉"}\n{"a":2}\n'
    data = text.encode(encoding)
    report = ReadReport()
    reader = iter_records(io.BytesIO(data), report)
    assert [record for _, record in reader] == [{"a": "naïve 日本語 🎉"}, {"a": 2}]
    assert not reader.resumable


def test_utf_16_with_a_big_endian_mark():
    assert read(b"\xfe\xff" + '{"a":1}\n'.encode("utf-16-be"))[0] == [{"a": 1}]


def test_nul_runs_are_stripped_and_noted():
    records, report = read(b'{"a":1}\n' + b"\0" * 300 + b'{"a":2}\n{"a":3}' + b"\0" * 9000 + b"\n" + b"\0" * 70 + b"\n")
    assert records == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert [fault.split(" NUL")[0] for fault in report.damaged] == ["line 2: 300", "line 3: 9000", "line 4: 70"]


def test_a_record_behind_nuls_that_replaced_the_end_of_another():
    records, report = read(b'{"type":"user","message":"torn' + b"\0" * 50 + b'{"type":"user","uuid":"b"}\n')
    assert records == [{"type": "user", "uuid": "b"}]
    assert len(report.damaged) == 2


def test_an_unfinished_last_line_is_left_for_the_next_read():
    first = b'{"a":1}\n{"a":'
    report = ReadReport()
    reader = iter_records(io.BytesIO(first), report)
    assert [record for _, record in reader] == [{"a": 1}]
    assert report.torn_tail
    assert report.damaged == []
    assert (reader.offset, reader.next_line) == (8, 2)
    whole = first + b'2}\n{"a":3}\n'
    later = iter_records(io.BytesIO(whole), ReadReport(), reader.offset, line=reader.next_line)
    assert [(later.line, record["a"]) for _, record in later] == [(2, 2), (3, 3)]


def test_a_complete_last_line_without_a_newline_is_read_once():
    report = ReadReport()
    reader = iter_records(io.BytesIO(b'{"a":1}\n{"a":2}'), report)
    assert [record["a"] for _, record in reader] == [1, 2]
    assert not report.torn_tail
    later = iter_records(io.BytesIO(b'{"a":1}\n{"a":2}\n{"a":3}\n'), ReadReport(), reader.offset, line=reader.next_line)
    assert [(later.line, record["a"]) for _, record in later] == [(3, 3)]


def test_glued_records_are_separated_without_a_loss():
    records, report = read(b'{"type":"a"}{"type":"b","x":"}{"} {"c":3}\n')
    assert records == [{"type": "a"}, {"type": "b", "x": "}{"}, {"c": 3}]
    assert report.damaged == []


def test_a_record_behind_a_torn_one():
    torn = b'{"type":"user","message":{"role":"user","content":[{"type":"text","text":"half of'
    records, report = read(torn + b'{"parentUuid":null,"type":"user","uuid":"b"}\n{"type":"user","uuid":"c"}\n')
    assert [record["uuid"] for record in records] == ["b", "c"]
    assert report.damaged == ["line 1: not JSON; 1 record on it could be read"]


def test_parts_of_a_torn_record_are_no_records():
    line = (
        b'{"type":"user","uuid":"a","message":{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text"}\n'
    )
    records, report = read(line)
    assert records == []
    assert report.damaged == ["line 1: not JSON"]


def test_the_beginning_of_a_record_then_the_whole_record_again():
    whole = b'{"timestamp":"t","type":"response_item","payload":{"type":"message"}}'
    for glue in (b"", b"\n"):
        records, report = read(whole[:40] + glue + whole + b"\n")
        assert records == [json.loads(whole)]
        assert len(report.damaged) == 1


def test_garbage_behind_a_complete_record():
    records, report = read(b'{"type":"a"} and then some\n{"type":"b"}\n')
    assert records == [{"type": "a"}, {"type": "b"}]
    assert len(report.damaged) == 1


def test_an_invalid_escape_is_kept_as_it_stands():
    records, report = read(b'{"a":"C:\\\\Local\\dev","b":"\\u00e9\\n"}\n')
    assert records == [{"a": "C:\\Local\\dev", "b": "é\n"}]
    assert report.damaged == ["line 1: an invalid escape sequence was taken literally"]


def test_bytes_that_are_not_utf_8():
    records, report = read(b'{"a":"x\xff\xfey"}\n{"a":2}\n')
    assert records == [{"a": "x\ufffd\ufffdy"}, {"a": 2}]
    assert report.damaged == ["line 1: bytes that are not UTF-8 were replaced"]


def test_lone_surrogates_become_encodable_and_pairs_stay():
    records, _ = read(rb'{"a":"\udcb2","\ud83d":["\ud83d\ude00",{"b":"x\uD800"}]}' + b"\n")
    assert records == [{"a": "\ufffd", "\ufffd": ["😀", {"b": "x\ufffd"}]}]
    json.dumps(records[0], ensure_ascii=False).encode()


def test_sanitize_copes_with_nesting_as_deep_as_the_decoder_accepts():
    value: Any = "\ud800"
    for _ in range(5000):
        value = [value]
    node = sanitize(value)
    while isinstance(node, list):
        node = node[0]
    assert node == "\ufffd"


def test_raw_control_characters_inside_strings():
    assert read(b'{"a":"tab\there \x1b[31m"}\n')[0] == [{"a": "tab\there \x1b[31m"}]


def test_values_that_strict_readers_reject():
    records, report = read(b'{"n":%s,"x":NaN,"y":-Infinity,"x":1,"e":1e999}\n' % (b"9" * 6000))
    assert records[0]["x"] == 1
    assert report.damaged == []


def test_nesting_beyond_the_decoder_costs_its_line_only():
    records, report = read(b'{"a":1}\n{"b":' + b"[" * 100_000 + b"]" * 100_000 + b'}\n{"a":2}\n')
    assert records == [{"a": 1}, {"a": 2}]
    assert report.damaged == ["line 2: nested too deeply"]


def test_lines_that_hold_no_object():
    records, report = read(b'[1]\n"x"\nnull\n{"a":1}\n')
    assert records == [{"a": 1}]
    assert report.damaged == [f"line {n}: not a JSON object" for n in (1, 2, 3)]


def test_skipped_records_are_counted_but_not_decoded():
    records, report = read(
        b'{"type":"big",broken}\n{"type":"a"}\n',
        skip=lambda line: "big one" if line.startswith(b'{"type":"big"') else None,
    )
    assert records == [{"type": "a"}]
    assert report.skipped == {"big one": 1}
    assert report.records == 2


def test_skipping_does_not_hide_a_record_glued_to_the_skipped_one():
    data = (
        b'{"type":"big","x":"torn{"parentUuid":null,"type":"user","uuid":"u"}\n{"type":"big"}{"type":"a","uuid":"v"}\n'
    )
    records, _ = read(data, skip=lambda line: "big one" if line.startswith(b'{"type":"big"') else None)
    assert [record["uuid"] for record in records if "uuid" in record] == ["u", "v"]


def test_lines_too_long_to_hold(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jsonl, "MAX_LINE", 1000)
    long = b'{"a":"' + b"x" * 5000 + b'"}\n'
    records, report = read(b'{"a":1}\n' + long + b'{"a":2}\n')
    assert records == [{"a": 1}, {"a": 2}]
    assert len(report.damaged) == 1
    assert report.damaged[0].startswith("line 2: ")
    records, report = read(long + b'{"a":2}\n', skip=lambda line: "long" if line.startswith(b'{"a":"x') else None)
    assert records == [{"a": 2}]
    assert report.damaged == []
    assert report.skipped == {"long": 1}
    records, report = read(b'{"a":1}\n' + long[:-1])
    assert records == [{"a": 1}]
    assert report.torn_tail


def test_the_report_keeps_a_bounded_number_of_sentences():
    _, report = read(b"broken\n" * 100)
    assert len(report.damaged) == ReadReport.MAX_DAMAGED
    assert sum(report.skipped.values()) == 100 - ReadReport.MAX_DAMAGED


def test_max_lines():
    assert read(b'{"a":1}\n' * 10, max_lines=3)[0] == [{"a": 1}] * 3


def test_zstd(tmp_path: Path):
    path = tmp_path / "t.jsonl.zst"
    frames = [zstandard.ZstdCompressor().compress(b'{"a":%d}\n' % n) for n in range(3)]
    path.write_bytes(b"".join(frames))
    report = ReadReport()
    with open_trace(path) as stream:
        reader = iter_records(stream, report)
        assert [record["a"] for _, record in reader] == [0, 1, 2]
        assert reader.offset == 24
        assert resume_state(path, reader) is None
    with open_trace(path) as stream:
        assert [record["a"] for _, record in iter_records(stream, report, 8)] == [1, 2]


def many_records() -> bytes:
    return b"".join(b'{"a":%d,"x":"%s"}\n' % (n, hashlib.sha256(b"%d" % n).hexdigest().encode()) for n in range(20_000))


@pytest.mark.parametrize("fault", ["the compressed data is damaged", "the compressed data ends early"])
def test_damaged_zstd_gives_what_can_be_decompressed(tmp_path: Path, fault: str):
    path = tmp_path / "t.jsonl.zst"
    data = bytearray(zstandard.ZstdCompressor().compress(many_records()))
    if "damaged" in fault:
        data[len(data) * 3 // 4 :] = b"\xff" * (len(data) // 4)
    else:
        del data[len(data) * 3 // 4 :]
    path.write_bytes(data)
    report = ReadReport()
    with open_trace(path) as stream:
        found = [record["a"] for _, record in iter_records(stream, report)]
    assert len(found) > 10_000
    assert found == list(range(len(found)))
    assert fault in report.failed


def test_resume(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a":1}\n' * 20_000)
    with open_trace(path) as stream:
        reader = iter_records(stream, ReadReport())
        assert sum(1 for _ in reader) == 20_000
    state = json.loads(json.dumps(resume_state(path, reader, mine={"x": 1})))
    assert state["mine"] == {"x": 1}
    assert resume_point(path, state) == (160_000, 20_001)
    with path.open("ab") as appended:
        appended.write(b'{"a":2}\n')
    assert resume_point(path, state) == (160_000, 20_001)
    data = path.read_bytes()
    for changed in (data[:159_999], b'{"b"' + data[4:], data[:159_990] + b"x" + data[159_991:]):
        path.write_bytes(changed)
        assert resume_point(path, state) is None
    path.unlink()
    assert resume_point(path, state) is None


@pytest.mark.parametrize("state", [None, {}, {"offset": "x"}, {"offset": 3, "line": 1}, {"offset": None, "line": 1}])
def test_resume_with_a_state_that_is_none(tmp_path: Path, state: Any):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a":1}\n')
    assert resume_point(path, state) is None


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def line_of(number: int, value: Any, escaped: bool) -> bytes:
    record = {"type": "user", "message": {"role": "user", "content": value}, "uuid": f"u{number}", "timestamp": "t"}
    return json.dumps(record, ensure_ascii=escaped).encode("utf-8", "replace")


@st.composite
def damaged_files(draw: st.DrawFn) -> tuple[bytes, list[str]]:
    """A file of records, some of them damaged, and the identifiers of those that were left alone."""
    data = bytearray()
    intact = []
    for number in range(draw(st.integers(1, 8))):
        line = line_of(number, draw(values), draw(st.booleans()))
        damage = draw(st.sampled_from(["none", "none", "torn", "glued", "torn and glued", "nuls", "hole", "garbage"]))
        if damage in ("torn", "torn and glued"):
            line = line[: draw(st.integers(0, len(line) - 1))]
        elif damage == "hole":
            start = draw(st.integers(1, len(line) - 1))
            line = line[:start] + b"\0" * draw(st.integers(1, 30)) + line[start + draw(st.integers(1, 30)) :]
        else:
            intact.append(f"u{number}")
        if damage == "nuls":
            line = b"\0" * draw(st.integers(0, 20)) + line + b"\0" * draw(st.integers(0, 20))
        if damage == "garbage":
            line += b"\n" + draw(st.binary(max_size=40)).replace(b"\n", b"")
        data += line + (b"" if damage in ("glued", "torn and glued") else b"\n")
    return bytes(data), intact


@settings(max_examples=400, deadline=None)
@given(damaged_files())
def test_records_that_were_left_alone_survive(case: tuple[bytes, list[str]]):
    data, intact = case
    records, _ = read(data + b"\n")
    found = [record.get("uuid") for record in records]
    assert [uuid for uuid in found if uuid in intact] == intact


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=300),
    st.lists(st.sampled_from([b'{"', b'"}', b"\n", b"\0", b"\\", b"\xef\xbb\xbf"]), max_size=20),
)
def test_any_bytes_can_be_read(data: bytes, more: list[bytes]):
    data += b"".join(more)
    report = ReadReport()
    reader = iter_records(io.BytesIO(data), report)
    for offset, record in reader:
        assert isinstance(record, dict)
        assert offset <= len(data) or not reader.resumable
    assert report.failed == ""


@settings(max_examples=200, deadline=None)
@given(damaged_files(), st.data())
def test_reading_in_two_steps_gives_the_same_as_reading_at_once(case: tuple[bytes, list[str]], data: st.DataObject):
    content = case[0]
    cut = data.draw(st.integers(0, len(content)))
    at_once, _ = read(content)
    first = iter_records(io.BytesIO(content[:cut]), ReadReport())
    records = [record for _, record in first]
    if first.resumable:
        second = iter_records(io.BytesIO(content), ReadReport(), first.offset, line=first.next_line)
        records += [record for _, record in second]
        assert json.dumps(records) == json.dumps(at_once)
