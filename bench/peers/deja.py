"""deja-vu, a lexical search in Go: https://github.com/vshulcz/deja-vu (`go install …/cmd/deja@latest`)."""

from __future__ import annotations

import json

from peers.base import Found, Peer


class Deja(Peer):
    """Its documented JSON output, one process for each question; the best sessions with snippets."""

    name = "deja-vu"
    how = "`deja search --json --limit N QUESTION`, a process for each question"
    command = "deja"

    def build(self) -> None:
        """Build its index."""
        self.run(self.command, "warmup")

    def search(self, question: str, count: int) -> list[Found]:
        """The best sessions, of whatever tier answered."""
        answer = json.loads(self.run(self.command, "search", "--json", "--limit", str(count), question))
        found = answer["hits"] if isinstance(answer, dict) else answer
        return [Found(hit["session"]["id"], "\n".join(hit.get("snippets", []))) for hit in found[:count]]
