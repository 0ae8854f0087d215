"""Word queries: what a caller asks the full text index for, made safe for any input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MAX_TERMS = 256
MAX_CHARACTERS = 8000
TEXT = "text"


@dataclass(frozen=True, slots=True)
class WordQuery:
    """Parts of a word query, combined by OR: a passage matches when any word or phrase of it does.

    Attributes:
        parts: `(text, weight)` pairs; the words of each text count with the weight.
        phrases: `(phrase, weight)` pairs; a phrase counts where its words stand next to each other in order.
    """

    parts: tuple[tuple[str, float], ...] = ()
    phrases: tuple[tuple[str, float], ...] = ()


def bounded(text: str) -> str:
    """At most `MAX_TERMS` different words and `MAX_CHARACTERS` characters of a text; short texts stay as they are."""
    text = text.replace("\x00", " ")
    if len(text) <= MAX_CHARACTERS and text.count(" ") < MAX_TERMS:
        return text.encode("utf-8", "replace").decode()
    words = list(dict.fromkeys(text[: 64 * MAX_CHARACTERS].split()))[:MAX_TERMS]
    return " ".join(words)[:MAX_CHARACTERS].encode("utf-8", "replace").decode()


def has_words(text: str) -> bool:
    """Whether there is anything in a text that an index could contain."""
    return any(character.isalnum() for character in text)


def lance_query(query: WordQuery | str) -> Any:
    """Make the Lance query for a word query, or None when it contains no word at all."""
    from lance.query import BooleanQuery, MatchQuery, Occur, PhraseQuery

    if isinstance(query, str):
        query = WordQuery(parts=((query, 1.0),))
    clauses: list[Any] = []
    for text, weight in query.parts:
        if has_words(safe := bounded(text)):
            clauses.append(MatchQuery(safe, TEXT, boost=weight))
    for phrase, weight in query.phrases:
        if has_words(safe := bounded(phrase)):
            clauses.append(_weighted(PhraseQuery(safe, TEXT), weight))
    if not clauses:
        return None
    if len(clauses) == 1:
        return clauses[0]
    return BooleanQuery([(Occur.SHOULD, clause) for clause in clauses])


def _weighted(clause: Any, weight: float) -> Any:
    """Repeat a phrase, which cannot carry a weight of its own in Lance."""
    from lance.query import BooleanQuery, Occur

    times = max(1, min(8, round(weight)))
    return clause if times == 1 else BooleanQuery([(Occur.SHOULD, clause)] * times)
