"""convo-recall, from PyPI: `pip install convo-recall`."""

from __future__ import annotations

import json
import re

from peers.base import Found, Peer


class ConvoRecall(Peer):
    """Full text search of messages; vectors need an extra and a download, and are off without them."""

    name = "convo-recall"
    how = "`recall search --all-projects --json -c 0 -n N QUESTION`, a process for each question"
    command = "recall"

    def build(self) -> None:
        """Build its index."""
        self.run(self.command, "ingest")

    def search(self, question: str, count: int) -> list[Found]:
        """The best messages, of each a snippet whose marks around found words are taken out."""
        answer = json.loads(
            self.run(self.command, "search", "--all-projects", "--json", "-c", "0", "-n", str(count), "--", question)
        )
        return [Found(hit["session_id"], re.sub(r"[\[\]]", "", hit.get("snippet", ""))) for hit in answer["results"]]
