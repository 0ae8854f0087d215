"""code-recall, from PyPI: `pip install code-recall`."""

from __future__ import annotations

import json

from peers.base import Found, Peer


class CodeRecall(Peer):
    """Full text search of sessions; its semantic search needs an extra and a download, and is off without them."""

    name = "code-recall"
    how = "`code-recall QUESTION --no-tui --json -n N`, a process for each question"
    command = "code-recall"

    def build(self) -> None:
        """Build its index."""
        self.run(self.command, "index", "--quiet")

    def search(self, question: str, count: int) -> list[Found]:
        """The best sessions with snippets."""
        answer = json.loads(self.run(self.command, "--no-tui", "--json", "-n", str(count), "--", question) or "[]")
        return [
            Found(hit["session_id"], "\n".join(snippet.replace("**", "") for snippet in hit.get("snippets", [])))
            for hit in answer
        ]
