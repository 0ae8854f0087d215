"""funes itself, through its MCP server."""

from __future__ import annotations

import shutil
from pathlib import Path

import mcp_client
import team_memory
from hits import hits
from measure import funes, run
from peers.base import Found, Peer


class Funes(Peer):
    """The tool `recall` of a server that stays; `home` is a memory that was made before, if one is given."""

    name = "funes"
    how = "the tool recall of one `funes mcp`"

    def __init__(self, work: Path, traces: Path, home: Path | None = None) -> None:
        super().__init__(work, traces)
        self.given = home
        self.server: mcp_client.Server | None = None

    @property
    def version(self) -> str:
        """Of the package."""
        from funes import __version__

        return __version__

    def prepare(self) -> None:
        """The sessions are read where they are."""
        self.home = self.given or self.work / "home"
        shutil.rmtree(self.work, ignore_errors=True)

    def build(self) -> None:
        """Index, unless there is a memory."""
        if self.given is None:
            run(funes("index", str(self.traces), "--yes"), self.home)
        self.how += f", {team_memory.waiting_prose(self.home):,} passages of prose without a vector"
        self.server = mcp_client.Server(self.home)
        self.server.handshake()
        self.server.recall("warm up")

    def search(self, question: str, count: int) -> list[Found]:
        """The hits."""
        assert self.server is not None
        found = hits(self.server.call("recall", query=question, k=count))
        return [Found(hit.session, hit.text) for hit in found]

    def close(self) -> None:
        """End the server."""
        if self.server is not None:
            self.server.__exit__(None, None, None)


class FunesWords(Funes):
    """The same without a model: what recall finds before anything is embedded."""

    name = "funes, words only"
    how = "the same without a model"

    def build(self) -> None:
        """As the other, on a machine without the model."""
        if self.given is None:
            run(funes("index", str(self.traces), "--yes", "--budget", "0"), self.home)
        nowhere = self.work / "no-models"
        nowhere.mkdir(parents=True, exist_ok=True)
        self.server = mcp_client.Server(self.home, FUNES_MODELS=str(nowhere), HF_HUB_OFFLINE="1")
        self.server.handshake()
        self.server.recall("warm up")
