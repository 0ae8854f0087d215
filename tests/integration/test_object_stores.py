"""Recall from a memory in an object store: Lance's own client against an S3 server on this machine."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from funes.commands import opened
from funes.memory.reader import MemoryReader
from funes.memory.store import MemoryWriter
from tests.support.chunks import make_chunk
from tests.support.hub_memory import memory_files
from tests.support.small_memory import CACHE, PARSER, make_memory

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "empty"))
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path / "no models"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    for name in KEYS:
        monkeypatch.setenv(name, "testing")


@pytest.fixture
def bucket(s3):
    return s3.bucket()


def upload(s3, bucket, folder):
    for path, file in memory_files(folder).items():
        s3.client.put_object(Bucket=bucket, Key=f"team/memory/{path}", Body=file.read_bytes())
    return f"s3://{bucket}/team/memory"


def fault(result):
    code, out, err = result
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    return err.removeprefix("funes: ").rstrip("\n")


def test_every_read_command(s3, bucket, run, tmp_path):
    folder = make_memory(tmp_path / "memory")
    url = upload(s3, bucket, folder)
    code, out, _ = run("recall", "streaming parser", "--memory", url)
    assert code == 0
    assert f"--memory {url}\n" in out
    assert out == run("recall", "streaming parser", "--memory", str(folder))[1].replace(str(folder), url)
    assert "Good. Use the recursive descent parser then." in run("get", PARSER, "--memory", url)[1]
    assert "1 match" in run("scan", CACHE, "stale prices", "--memory", url)[1]
    assert json.loads(run("sessions", "--memory", url, "--json")[1])["memory"] == url
    there, here = (json.loads(run("status", place, "--json")[1]) for place in (url, str(folder)))
    for name in ("passages", "copies", "sessions", "waiting", "versions"):
        assert there[name] == here[name], name
    assert there["folder"] == url
    assert there["last_indexed"]
    for name in ("bytes_text", "bytes_indexes"):  # here are files of older versions, too
        assert 0 < there[name] <= here[name], name


def test_what_was_written_since_is_seen(s3, bucket, tmp_path, monkeypatch):
    folder = make_memory(tmp_path / "memory")
    url = upload(s3, bucket, folder)
    now = [0.0]
    monkeypatch.setattr(opened.time, "monotonic", lambda: now[0])
    memory = opened.OpenMemory(url, fresh_for=30.0)
    reader = memory.reader()
    before = reader.statistics().passages
    with MemoryWriter(folder) as writer:
        writer.append([make_chunk("A brand new quokka.", id="quokka")])
    upload(s3, bucket, folder)
    assert memory.reader().statistics().passages == before
    now[0] = 31.0
    assert memory.reader() is reader
    assert reader.statistics().passages == before + 1


def test_a_place_without_a_memory(s3, bucket, run):
    url = f"s3://{bucket}/nothing"
    assert fault(run("recall", "x", "--memory", url)) == f"There is no memory at {url}: it has no chunks.lance."


def test_a_missing_bucket(s3, bucket, run):
    said = fault(run("recall", "x", "--memory", "s3://there-is-none/memory"))
    assert said == "There is no bucket there-is-none; check the address s3://there-is-none/memory."


def test_missing_credentials(s3, bucket, run, monkeypatch):
    for name in KEYS:
        monkeypatch.delenv(name)
    said = fault(run("recall", "x", "--memory", f"s3://{bucket}/memory"))
    assert said.startswith(f"There are no credentials for s3://{bucket}/memory; set AWS_ACCESS_KEY_ID and ")


class Refusing(BaseHTTPRequestHandler):
    """A store that lets nobody in, and quotes who asked."""

    def do_GET(self) -> None:
        body = b"<Error><Code>AccessDenied</Code><AWSAccessKeyId>testing</AWSAccessKeyId></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: stderr belongs to the test."""


def test_refused_credentials(run, monkeypatch):
    server = HTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    said = fault(run("recall", "x", "--memory", "s3://bucket/memory"))
    server.shutdown()
    server.server_close()
    assert said == "The credentials that are set may not use s3://bucket/memory, or are not valid."


def test_a_store_that_cannot_be_reached(run, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    said = fault(run("recall", "x", "--memory", "s3://bucket/memory"))
    assert said == "The store of s3://bucket/memory cannot be reached; check the connection and its endpoint."


def test_plain_http_is_for_this_machine_only(run, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store.invalid")
    assert "set AWS_ALLOW_HTTP=true" in fault(run("recall", "x", "--memory", "s3://bucket/memory"))


def test_an_account_is_needed_for_azure(run, monkeypatch):
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    said = fault(run("sessions", "--memory", "az://container/memory"))
    assert said.startswith("There are no credentials for az://container/memory; set AZURE_STORAGE_ACCOUNT_NAME and ")


def test_a_reader_keeps_its_place_apart_from_folders(s3, bucket, tmp_path):
    reader = MemoryReader.open(upload(s3, bucket, make_memory(tmp_path / "memory")))
    assert not reader.folder.exists()
    assert reader.piece_counts()[1] == 0
