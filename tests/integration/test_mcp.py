"""The server as agents meet it: the official client library, and lines that no library sends."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import sys

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from funes.mcp.tools import INSTRUCTIONS, TOOLS
from tests.support.rpc import RpcProcess, environment
from tests.support.small_memory import CACHE, PARSER, make_memory


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    make_memory(home / "memory")
    return home


@pytest.fixture
def server(home):
    with RpcProcess(home) as process:
        yield process


def parameters(home):
    return StdioServerParameters(command=sys.executable, args=["-m", "funes", "mcp"], env=environment(home))


@pytest.mark.parametrize(
    ("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]
)
def test_the_official_client(home, mode, version):
    async def session():
        async with Client(parameters(home), mode=mode) as client:
            assert client.protocol_version == version
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["recall", "get", "sessions", "scan", "status"]
            assert all(tool.annotations.read_only_hint and tool.title and tool.description for tool in tools)
            assert all(tool.meta == {"anthropic/alwaysLoad": True} for tool in tools)
            listed = await client.call_tool("sessions", {})
            assert not listed.is_error
            assert "Parser rewrite" in listed.content[0].text
            read = await client.call_tool("get", {"session": "1a2b3c", "turn": "cafe0002"})
            assert "[2026-05-02T10:13:12Z] tool seq2 turn=" in read.content[0].text
            recalled = await client.call_tool("recall", {"query": "why did we leave the streaming parser?"})
            assert not recalled.is_error
            assert f"→ get {PARSER} " in recalled.content[0].text
            wrong = await client.call_tool("get", {"session": "ffff"})
            assert wrong.is_error
            assert wrong.content[0].text == "No session begins with 'ffff'; `funes sessions` lists them."
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("forget", {})

    asyncio.run(session())


def test_the_official_client_gets_the_instructions(home):
    async def session():
        async with stdio_client(parameters(home)) as (read, write), ClientSession(read, write) as client:
            result = await client.initialize()
            assert result.server_info.name == "funes"
            assert result.instructions == INSTRUCTIONS
            await client.send_ping()

    asyncio.run(session())


@pytest.mark.parametrize(
    ("asked", "given"),
    [(v, v) for v in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")]
    + [("2026-07-28", "2025-11-25"), ("1999-01-01", "2025-11-25"), (None, "2025-11-25")],
)
def test_versions(server, asked, given):
    result = server.request("initialize", protocolVersion=asked, capabilities={}, clientInfo={})["result"]
    assert result["protocolVersion"] == given
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert "resultType" not in server.request("tools/list")["result"]


def test_an_unknown_version_in_the_envelope(server):
    error = server.request("tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "2031-01-01"})["error"]
    assert error["code"] == -32022
    assert error["data"]["requested"] == "2031-01-01"
    assert "2026-07-28" in error["data"]["supported"]


@pytest.mark.parametrize(
    ("line", "code", "identifier"),
    [
        (b"not json", -32700, None),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', -32700, None),
        (b"\xff\xfe\x00", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"7", -32600, None),
        (b"{}", -32600, None),
        (b'{"id": 5, "method": "ping"}', -32600, 5),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 6, "method": 7}', -32600, 6),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}', -32602, 7),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "resources/list"}', -32601, "a"),
        (b'{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {}}', -32602, 8),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "__init__"}}', -32602, 9),
        (b"[]", -32600, None),
    ],
)
def test_faulty_messages_are_answered_and_survived(server, line, code, identifier):
    server.send_line(line)
    answer = server.receive()
    assert (answer["error"]["code"], answer["id"]) == (code, identifier)
    assert server.request("ping", "still there") == {"jsonrpc": "2.0", "id": "still there", "result": {}}


def test_notifications_answers_and_blank_lines_get_no_answer(server):
    server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    server.send({"jsonrpc": "2.0", "method": "notifications/from/the/future", "params": [1]})
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}})
    server.send({"jsonrpc": "2.0", "id": 3, "result": {}})
    server.send_line(b"  \r")
    assert server.request("ping", 4)["id"] == 4


def test_a_batch_is_answered_together_where_the_version_has_batches(server):
    server.request("initialize", protocolVersion="2025-03-26")
    server.send(
        [
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "sessions"}},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "ping"},
            7,
        ]
    )
    answers = server.receive()
    assert {answer["id"] for answer in answers} == {1, 2, None}
    server.send([{"jsonrpc": "2.0", "method": "notifications/initialized"}])
    server.request("initialize", protocolVersion="2025-06-18")
    server.send([{"jsonrpc": "2.0", "id": 3, "method": "ping"}])
    assert server.receive()["error"]["code"] == -32600


def test_calls_are_answered_in_order_and_a_ping_at_once(server):
    for number in range(5):
        server.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "sessions"}})
    server.send({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
    received = [server.receive()["id"] for _ in range(6)]
    assert [identifier for identifier in received if identifier != "ping"] == [0, 1, 2, 3, 4]


def test_a_cancelled_call_is_not_answered(server):
    for number in range(3):
        server.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "sessions"}})
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
    server.send({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "status"}})
    assert [server.receive()["id"] for _ in range(3)] == [0, 1, 3]


def test_what_was_asked_before_the_end_of_input_is_answered(server):
    server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "sessions"}})
    code, left, _ = server.close()
    assert code == 0
    assert json.loads(left)["id"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(server, number):
    server.call("sessions")
    server.process.send_signal(number)
    assert server.process.wait(600) == 0
    assert server.close() == (0, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_although_the_main_thread_goes_on_waiting(home, number):
    """As when it comes just before the wait for input; here another thread gets it."""
    code = (
        "import signal, sys, threading\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})\n"
        "from funes.__main__ import main\n"
        "sys.exit(main(['mcp']))\n"
    )
    with RpcProcess(home, code=code) as server:
        assert server.request("ping")["result"] == {}
        server.process.send_signal(number)
        assert server.process.wait(600) == 0


def test_a_client_that_is_gone_ends_it(server):
    server.process.stdout.close()
    server.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert server.process.wait(600) == 0


def test_stdout_carries_only_the_protocol(home):
    """A library that prints, or a child process that does, must not end up between the messages."""
    code = (
        "import os, sys, subprocess\n"
        "import funes.mcp.tools as tools\n"
        "def noisy(self, arguments):\n"
        "    print('printed'); os.write(1, b'written\\n'); sys.stdout.flush()\n"
        "    subprocess.run(['sh', '-c', 'echo from a child; cat'])\n"
        "    return 'done'\n"
        "tools.Tools._status = noisy\n"
        "from funes.__main__ import main\n"
        "main(['mcp'])\n"
    )
    with RpcProcess(home, code=code) as server:
        assert server.call("status") == ("done", False)
        assert server.request("ping")["result"] == {}
        _, left, errors = server.close()
    assert left == b""
    assert {b"printed", b"written", b"from a child"} <= set(errors.splitlines())


def test_a_fault_in_a_tool_is_a_sentence_and_not_the_end(home):
    code = (
        "import funes.mcp.tools as tools\n"
        "class Panic(BaseException): pass\n"
        "def broken(self, arguments): raise Panic('at the disco')\n"
        "tools.Tools._status = broken\n"
        "from funes.__main__ import main\n"
        "main(['mcp'])\n"
    )
    with RpcProcess(home, code=code) as server:
        assert server.call("status") == ("Unexpected Panic in status: at the disco.", True)
        assert server.request("ping")["result"] == {}


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("recall", {}, "recall needs the argument 'query', a string."),
        ("recall", {"query": " "}, "The question is empty"),
        ("recall", {"query": "x", "k": "many"}, "recall: k has to be an integer, not 'many'."),
        ("recall", {"query": "x", "k": 0}, "between 1 and"),
        ("recall", {"query": "x", "since": "whenever"}, "Cannot read 'whenever' as a time"),
        ("recall", {"query": "x", "type": "prose"}, "There is no block type 'prose'"),
        ("recall", {"query": {"deep": 1}}, "recall: query has to be a string"),
        ("recall", {"query": "x", "limit": 3}, "recall has no argument 'limit'; it takes query, k"),
        ("get", {"session": "ffff"}, "No session begins with 'ffff'"),
        ("get", {"session": "1a2b"}, "several session ids"),
        ("get", {"session": PARSER, "from": -1}, "it has to be 0 or more"),
        ("get", {"session": PARSER, "memory": "acme/kb"}, "reads the memory local only"),
        ("scan", {"session": PARSER}, "scan needs the argument 'literal'"),
        ("scan", {"session": PARSER, "literal": "x", "ignore_case": "maybe"}, "has to be true or false"),
    ],
)
def test_wrong_arguments_are_sentences(server, tool, arguments, said):
    text, is_error = server.call(tool, **arguments)
    assert is_error
    assert said in text
    assert "\n" not in text


def test_arguments_as_models_write_them(server):
    text, is_error = server.call(
        "get", session_id=PARSER, turn_uuid="cafe0000", window="1", memory="local", offset=None
    )
    assert not is_error
    assert text.count("\n---\n") == 2
    assert server.call("sessions", harness="claude_code", limit=1.0)[0].count("---") == 1
    assert server.call("sessions", harness=["codex"])[0].startswith("[2026-05-02T10:12:12Z] codex ")
    assert server.call("scan", session=PARSER, text="streaming", ignore_case="true")[0].count("---") == 2


def test_a_memory_that_comes_and_grows_is_seen(home, tmp_path):
    with RpcProcess(tmp_path) as server:
        text, is_error = server.call("sessions")
        assert is_error
        assert "run `funes index`" in text
        shutil.copytree(home / "memory", tmp_path / "memory")
        assert server.call("sessions")[0].count("→ get") == 3

        from funes.memory.store import MemoryWriter
        from tests.support.small_memory import blocks

        with MemoryWriter(tmp_path / "memory") as writer:
            writer.append(blocks("ffff0000-new", 0, [("text", "", "A turn that came later about zeppelins.")], "user"))
        assert server.call("sessions")[0].count("→ get") == 4
        assert "zeppelins" in server.call("recall", query="zeppelins")[0]
        shutil.rmtree(tmp_path / "memory")
        assert server.call("sessions")[1]
        shutil.copytree(home / "memory", tmp_path / "memory")
        assert server.call("sessions")[0].count("→ get") == 3


def test_a_memory_by_path(home, tmp_path):
    with RpcProcess(tmp_path, str(home)) as server:
        assert f"--memory {home}" in server.call("sessions")[0]
        assert not server.call("get", session=PARSER, memory=str(home))[1]


def test_recall_without_a_model_says_so_first(server):
    text, is_error = server.call("recall", query="stale prices after a deploy")
    assert not is_error
    assert text.startswith("note: no embedding model on this machine, so this searches by words only")
    assert re.search(rf"^  → get {CACHE} \S+ --memory local$", text, re.MULTILINE)


def test_definitions_fit_their_budget():
    """1,200 tokens for all tools, in characters, in words and signs, and by the pinned tokenizer if it is here."""
    text = json.dumps(TOOLS)
    assert len(text) / 4 < 1200
    assert len(re.findall(r"\w+|[^\w\s]", text)) < 1200
    from funes.models.fetch import find
    from funes.models.pinned import MINILM

    if folder := find(MINILM):
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_truncation()
        assert len(tokenizer.encode(text).ids) < 1200


def test_the_handshake_loads_nothing_heavy(home):
    code = (
        "import sys\n"
        "import funes.__main__, funes.mcp.server\n"
        "heavy = {'numpy', 'pyarrow', 'lance', 'tokenizers', 'click', 'rich', 'huggingface_hub', 'asyncio'}\n"
        "print(heavy & set(sys.modules))\n"
    )
    with RpcProcess(home, code=code) as process:
        assert process.close()[1] == b"set()\n"


def test_a_closed_stdin_is_one_sentence(home):
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", "import os, sys; os.close(0); from funes.__main__ import main; sys.exit(main(['mcp']))"],
        env=environment(home),
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 1
    assert re.fullmatch(rb"funes: [^\n]+\.\n", done.stderr)
