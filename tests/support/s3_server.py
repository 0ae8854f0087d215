"""An S3 server on 127.0.0.1 for Lance's own client: moto, made safe for several clients at once.

Moto looks whether an object is there and then stores it, without a lock around the two, so that of two writers who ask
for a name that is still free (`If-None-Match: *`) both may be told that they got it. S3 gives it to one, and Lance's
commits rest on that. Here each request is answered as a whole before the next one.

By hand, and in stress runs, it is a program that prints its address and serves until it is ended:

    python -m tests.support.s3_server [--delay SECONDS] BUCKET…
"""

from __future__ import annotations

import argparse
import io
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any


class S3Server:
    """The server, listening while the context is open.

    Args:
        delay: longest random wait before a request is answered, in seconds.

    Attributes:
        url: address for `AWS_ENDPOINT_URL`.
        client: a client of boto3.
        before: called with method and path before a request is answered, so that a test can act in between.
    """

    def __init__(self, delay: float = 0.0) -> None:
        import moto.server
        import werkzeug.serving
        from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app

        class Handler(MotoRequestHandler):  # type: ignore[misc]
            def log_request(self, *_: object) -> None:
                """Nothing: a push makes hundreds of requests."""

        self.before: Callable[[str, str], None] | None = None
        self._delay = delay
        self._turn = threading.Lock()
        self._app = moto.server.DomainDispatcherApplication(create_backend_app)
        self._server = werkzeug.serving.make_server(
            "127.0.0.1", 0, self._answer, threaded=True, request_handler=Handler
        )
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> S3Server:
        import boto3

        self._thread.start()
        self.client: Any = boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which Lance finds it."""
        keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
        return {"AWS_ENDPOINT_URL": self.url, "AWS_REGION": "us-east-1", **keys}

    def bucket(self) -> str:
        """Make a bucket; its name is new, since the servers of one process share what they store."""
        name = f"team-{uuid.uuid4().hex}"
        self.client.create_bucket(Bucket=name)
        return name

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        if self._delay:
            time.sleep(random.uniform(0, self._delay))
        if self.before is not None:
            self.before(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        with self._turn:
            return list(self._app(environ, start_response))


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Serve S3 from memory.")
    parser.add_argument("buckets", nargs="*")
    parser.add_argument("--delay", type=float, default=0.0)
    given = parser.parse_args()
    with S3Server(given.delay) as server:
        for name in given.buckets:
            server.client.create_bucket(Bucket=name)
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
