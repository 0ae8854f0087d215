"""The encoder on the real, pinned model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from funes.errors import FunesError, ModelMissingError
from funes.models import codes, encoder, fetch, threads
from funes.models.encoder import Encoder, load_encoder
from funes.models.pinned import MINILM
from tests.support.models import pinned_model

REFERENCE = Path(__file__).parents[1] / "data" / "minilm_reference.npz"
TEXTS = ["", "Retry it", "the of and", "A file that shrank is read again. " * 30, "\ud83d!?…", "def f(x): return x + 1"]


@pytest.fixture(scope="module")
def model():
    return Encoder(pinned_model())


@pytest.fixture(scope="module")
def reference():
    with np.load(REFERENCE) as file:
        return dict(file)


def cosines(one, other):
    return (one * other).sum(axis=-1) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)


def test_sentence_vectors_are_pytorchs(model, reference):
    dense = model.encode_passages(reference["texts"].tolist()).dense
    np.testing.assert_allclose(np.linalg.norm(dense, axis=1), 1, atol=1e-5)
    assert cosines(dense, reference["dense"]).min() > 0.99999


def test_token_vectors_are_pytorchs(model, reference):
    text = str(reference["texts"][reference["detailed"]])
    ids = model.tokens.encode([text])[0]
    states = model._bert.hidden_states([ids])[0]
    assert cosines(states, reference["states"]).min() > 0.99999
    kept = model._kept(ids)
    expected = codes.quantize(reference["states"][kept])
    # A value at the edge between two levels may fall on either side.
    assert (model.encode_passages([text]).codes[0] == expected).mean() > 0.999


def test_onnxruntime_gives_the_same(model, reference):
    pytest.importorskip("onnxruntime")
    other = Encoder(pinned_model(), "onnxruntime").encode_passages(reference["texts"].tolist())
    ours = model.encode_passages(reference["texts"].tolist())
    assert cosines(ours.dense, other.dense).min() > 0.99999
    for mine, theirs in zip(ours.codes, other.codes, strict=True):
        assert len(mine) == len(theirs)
        assert not len(mine) or (mine == theirs).mean() > 0.99


def test_what_is_stored_of_passages(model):
    made = model.encode_passages(TEXTS)
    assert made.dense.shape == (len(TEXTS), 384)
    assert made.dense.dtype == np.float32
    for text, rows, pieces in zip(TEXTS, made.codes, made.pieces, strict=True):
        assert rows.shape == (len(pieces), codes.BYTES), text
        assert rows.dtype == np.uint8
        assert pieces.dtype == np.uint16
    names = [[model.tokens.name(int(piece)) for piece in pieces] for pieces in made.pieces]
    assert names[:3] == [[], ["re", "##try"], []]
    assert names[4:] == [[], ["def", "f", "x", "return", "x", "1"]]
    for pieces, alone in zip(made.pieces, model.pieces(TEXTS), strict=True):
        np.testing.assert_array_equal(pieces, alone)


def test_without_codes(model):
    made = model.encode_passages(TEXTS, with_codes=False)
    assert made.codes is None
    np.testing.assert_allclose(made.dense, model.encode_passages(TEXTS).dense, atol=1e-6)
    assert [len(pieces) for pieces in made.pieces] == [len(pieces) for pieces in model.pieces(TEXTS)]


def test_no_passages(model):
    made = model.encode_passages([])
    assert made.dense.shape == (0, 384)
    assert (made.codes, made.pieces) == ([], [])


def test_batches_and_threads_do_not_change_the_result(model, monkeypatch):
    texts = [f"{word} passage {'about tables ' * length}" for length in range(0, 60, 4) for word in ("one", "two")]
    whole = model.encode_passages(texts)
    monkeypatch.setattr(encoder, "_BATCH", 200)
    monkeypatch.setattr(encoder, "_TEXTS", 3)
    monkeypatch.setattr(threads, "cores", lambda: 3)
    parts = model.encode_passages(texts[::-1])
    assert cosines(whole.dense, parts.dense[::-1]).min() > 0.999999
    for pieces, other in zip(whole.pieces, parts.pieces[::-1], strict=True):
        np.testing.assert_array_equal(pieces, other)


def test_a_query_finds_its_passage(model):
    passages = ["We use a mutex around the cache now.", "The kettle is blue.", "Deployments wait for the migration."]
    made = model.encode_passages(passages)
    query = model.encode_query("what colour is the kettle?")
    assert (made.dense @ query.dense).argmax() == 1
    lengths = np.array([len(one) for one in made.codes])
    assert codes.best_matches(query.tokens, np.concatenate(made.codes), lengths).sum(axis=1).argmax() == 1
    static = [(query.static @ model.static_matrix(pieces).T).max(axis=1).sum() for pieces in made.pieces]
    assert int(np.argmax(static)) == 1
    pieces = made.pieces[0]
    again = model.static_matrix(pieces)
    np.testing.assert_array_equal(again, model.static_matrix(pieces[::-1])[::-1])
    np.testing.assert_allclose(again, codes.project(model.word_vectors(pieces), "pieces"), atol=1e-5)
    count = len(query.pieces)
    assert query.tokens.shape == query.static.shape == (count, codes.DIMENSIONS)
    np.testing.assert_allclose(np.linalg.norm(query.tokens, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(query.static, axis=1), 1, atol=1e-5)


def test_a_query_without_a_word(model):
    query = model.encode_query("?!")
    assert query.tokens.shape == (0, codes.DIMENSIONS)
    assert len(query.pieces) == 0
    np.testing.assert_allclose(np.linalg.norm(query.dense), 1, atol=1e-5)


def test_several_threads_share_one_encoder(model):
    expected = model.encode_passages(TEXTS).dense
    with ThreadPoolExecutor(3) as pool:
        for made in pool.map(model.encode_passages, [TEXTS] * 3):
            np.testing.assert_allclose(made.dense, expected, atol=1e-5)


def test_loading(monkeypatch, tmp_path):
    folder, find = pinned_model(), fetch.find
    monkeypatch.setattr(fetch, "find", lambda _: folder)
    monkeypatch.delenv("FUNES_BACKEND", raising=False)
    loaded = load_encoder(fetch=False)
    assert loaded.model_id.startswith(MINILM.model_id)
    monkeypatch.setenv("FUNES_BACKEND", "abacus")
    with pytest.raises(FunesError, match="FUNES_BACKEND must be numpy or onnxruntime, not 'abacus'"):
        load_encoder(fetch=False)
    monkeypatch.setattr(fetch, "find", find)
    for variable in ("FUNES_MODELS", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path))
    with pytest.raises(ModelMissingError, match="is not on this machine: run `funes models pull` once"):
        load_encoder(fetch=False)
