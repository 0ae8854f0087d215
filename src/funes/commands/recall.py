"""`funes recall`: the passages that answer a question."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from funes.commands.opened import NO_MODEL, OpenMemory
from funes.errors import FunesError, ModelMissingError
from funes.search.model import RecallOptions, RecallResult

if TYPE_CHECKING:
    from funes.memory.filters import Filter
    from funes.models.cross_encoder import CrossEncoder
    from funes.models.encoder import Encoder

MAX_K = 200
MAX_NEIGHBORS = 20
MAX_QUESTION = 10_000
"""Characters of a question that are used; the beginning of a pasted log says what it is about."""


def recall(memory: OpenMemory, query: str, options: RecallOptions) -> RecallResult:
    """Run one recall.

    Args:
        memory: where to search.
        query: a question, words, an identifier or an error message.
        options: how; `options.where.session` may be the beginning of an id.

    Returns:
        The hits, and notes that say what kept the search from being complete.

    Raises:
        FunesError: for a blank query, options out of range, a memory that cannot be read, or a cross-encoder that was
            asked for and is not there.
    """
    query = _checked(query, options)
    notes = []
    if len(query) > MAX_QUESTION:
        query = query[:MAX_QUESTION]
        notes.append(f"only the first {MAX_QUESTION:,} characters of the question were used")
    reader = memory.reader()
    where = with_full_session(memory, options.where)
    options = replace(options, where=where, candidates=max(options.candidates, options.k))
    from funes.search.pipeline import recall as search

    encoder, note = _usable_encoder(memory)
    cross_encoder, fault = _usable_cross_encoder(memory, options)
    result = search(reader, encoder, query, options, cross_encoder)
    result.notes += [*memory.notes, *notes, *(one for one in (note, fault) if one)]
    if not result.hits and where.sql() and not reader.sessions(where, limit=1):
        result.notes.append("no passage meets the filters; leave some out")
    return result


def _usable_encoder(memory: OpenMemory) -> tuple[Encoder | None, str]:
    """The model, None when it is missing, and what the user should know about that or about the memory's vectors.

    Vectors of another model say nothing about a question in this one's terms. They are left out then: candidates come
    from words, and late interaction compares the model's word pieces, which the text alone gives.
    """
    encoder = memory.encoder()
    if encoder is None:
        return None, NO_MODEL
    made_with = memory.reader().model
    if made_with and made_with != encoder.model_id:
        memory.reader().leave_vectors_out()
        return encoder, (
            f"the vectors of this memory were made with another model ({made_with}) and are not used: passages are "
            "found by their words and compared word by word"
        )
    return encoder, ""


def _usable_cross_encoder(memory: OpenMemory, options: RecallOptions) -> tuple[CrossEncoder | None, str]:
    """The last stage; None when it is not wanted or, with the reason, when it cannot be run and nobody insists."""
    if options.rerank not in (None, "cross-encoder"):
        return None, ""
    try:
        return memory.cross_encoder(), ""
    except FunesError as error:
        if options.rerank == "cross-encoder":
            raise
        return None, "" if isinstance(error, ModelMissingError) else error.message


def with_full_session(memory: OpenMemory, where: Filter) -> Filter:
    """The conditions with the session's full id in the place of its beginning."""
    return replace(where, session=memory.session(where.session)) if where.session else where


def _checked(query: str, options: RecallOptions) -> str:
    """The query as text that can be encoded."""
    query = query.encode("utf-8", "replace").decode().replace("\0", " ").strip()
    if not query:
        raise FunesError(
            'The question is empty; say what to look for, as in `funes recall "why did we drop the cache"`.'
        )
    if not 1 <= options.k <= MAX_K:
        raise FunesError(f"The number of hits (k) is {options.k}; it has to be between 1 and {MAX_K}.")
    if not 0 <= options.neighbors <= MAX_NEIGHBORS:
        raise FunesError(
            f"The number of neighbours is {options.neighbors}; it has to be between 0 and {MAX_NEIGHBORS}."
        )
    if options.candidates < 1:
        raise FunesError(f"The number of candidates is {options.candidates}; it has to be at least 1.")
    if options.half_life_days is not None and not options.half_life_days >= 0:
        raise FunesError(f"The half-life is {options.half_life_days} days; it has to be 0 (no recency) or more.")
    return query
