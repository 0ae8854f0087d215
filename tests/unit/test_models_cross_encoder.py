from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funes.errors import FunesError
from funes.models import cross_encoder
from funes.models.cross_encoder import CrossEncoder
from tests.support import naive_bert
from tests.support.cross_encoders import reference, write_cross_encoder

TEXTS = st.text(max_size=300)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return CrossEncoder(write_cross_encoder(tmp_path_factory.mktemp("model")))


def scores(model, pairs):
    return np.concatenate([model.scores(model.pairs(question, [passage])) for question, passage in pairs])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("variant", [0, 1])
def test_agrees_with_pytorch(tmp_path, dtype, variant):
    """Truncation, token types, the number of heads and the epsilon decide these scores; so do pooler and classifier."""
    known = reference()
    model = CrossEncoder(write_cross_encoder(tmp_path, dtype, **known["variants"][variant]))
    np.testing.assert_allclose(scores(model, known["pairs"]), known["scores"][variant], atol=2e-5)


def test_the_references_differ_from_each_other():
    """Else a head count or an epsilon that is not read would not be noticed."""
    assert np.abs(np.diff(reference()["scores"], axis=0)).max() > 0.5
    assert np.ptp(reference()["scores"], axis=1).min() > 0.5


@given(st.lists(TEXTS, min_size=1, max_size=6), TEXTS)
@settings(max_examples=25, deadline=None)
def test_agrees_with_the_plain_implementation_on_any_text(model, passages, question):
    pairs = model.pairs(question, passages)
    weights = reference()["weights"]
    pooler, bias = (weights[f"bert.pooler.dense.{part}"].astype(np.float64) for part in ("weight", "bias"))
    head, offset = (weights[f"classifier.{part}"].astype(np.float64) for part in ("weight", "bias"))
    encoder = {name: value for name, value in weights.items() if name.startswith("bert.e")}
    for (ids, types), score in zip(pairs, model.scores(pairs), strict=True):
        assert 3 <= len(ids) == len(types) <= 64
        assert sorted(types.tolist()) == types.tolist()
        first = naive_bert.hidden_states(encoder, 12, ids, types, prefix="bert.")[0]
        np.testing.assert_allclose(score, head @ np.tanh(pooler @ first + bias) + offset, atol=3e-4)


@pytest.mark.parametrize("most", [1, 50, 100_000])
def test_batches_do_not_matter(model, monkeypatch, most):
    pairs = [pair for question, passage in reference()["pairs"] for pair in model.pairs(question, [passage])]
    monkeypatch.setattr(cross_encoder, "_BATCH", most)
    np.testing.assert_allclose(model.scores(pairs), reference()["scores"][0], atol=2e-5)
    np.testing.assert_allclose(model.scores(pairs[::-1]), reference()["scores"][0][::-1], atol=2e-5)


def test_no_pairs(model):
    assert model.pairs("anything", []) == []
    assert model.scores([]).shape == (0,)


def test_text_that_utf8_cannot_carry_is_scored(model):
    assert np.isfinite(model.scores(model.pairs("\ud800", ["\udfff a", "x" * 100_000]))).all()


def test_a_model_with_more_positions_is_read_to_512_pieces(tmp_path):
    def more(weights):
        known = weights["bert.embeddings.position_embeddings.weight"]
        weights["bert.embeddings.position_embeddings.weight"] = np.tile(known, (10, 1))

    model = CrossEncoder(write_cross_encoder(tmp_path, change=more, max_position_embeddings=640))
    ((ids, types),) = model.pairs("why " * 400, ["the " * 400])
    assert len(ids) == 512
    assert abs(int((types == 0).sum()) - int((types == 1).sum())) <= 1


def test_a_checkpoint_may_hold_more_than_is_needed(tmp_path):
    def more(weights):
        weights["bert.embeddings.position_ids"] = np.arange(64)

    model = CrossEncoder(write_cross_encoder(tmp_path, change=more))
    np.testing.assert_allclose(scores(model, reference()["pairs"]), reference()["scores"][0], atol=2e-5)


def without(name):
    return lambda weights: weights.pop(name)


def shaped(name, *shape):
    return lambda weights: weights.update({name: np.ones(shape, np.float32)})


@pytest.mark.parametrize(
    ("config", "change", "reason"),
    [
        ({"model_type": "roberta"}, None, "it is a roberta model (BertForSequenceClassification), not a Bert"),
        ({"architectures": ["BertModel"]}, None, "it is a bert model (BertModel), not a BertForSequenceClassification"),
        ({"hidden_act": "gelu_new"}, None, "its hidden_act is 'gelu_new', and only 'gelu' is known"),
        ({"position_embedding_type": "relative_key"}, None, "its position_embedding_type is 'relative_key'"),
        ({"num_attention_heads": 7}, None, "gives num_attention_heads as 7, which does not divide a width of 48"),
        ({"num_attention_heads": None}, None, "gives num_attention_heads as None"),
        ({"num_hidden_layers": 1}, None, "gives num_hidden_layers as 1, and its weights have another number"),
        ({"num_hidden_layers": 3}, None, "its weights lack bert.encoder.layer.2.attention.self.query.weight"),
        ({}, without("bert.pooler.dense.bias"), "its weights lack bert.pooler.dense.bias"),
        ({}, without("bert.embeddings.word_embeddings.weight"), "its weights lack bert.embeddings.word_embeddings"),
        ({}, without("classifier.weight"), "its weights lack classifier.weight"),
        ({}, shaped("classifier.weight", 3, 48), "it sorts into 3 labels, and a cross-encoder for ranking has one"),
        ({}, shaped("classifier.bias", 2), "classifier.bias has the shape (2,)"),
        ({}, shaped("bert.embeddings.token_type_embeddings.weight", 1, 48), "it knows one token type"),
        ({}, shaped("bert.embeddings.word_embeddings.weight", 30, 48), "its weights have 30"),
    ],
)
def test_a_folder_that_does_not_fit_is_one_sentence(tmp_path, config, change, reason):
    folder = write_cross_encoder(tmp_path / "model", change=change or (lambda _: None), **config)
    with pytest.raises(FunesError) as raised:
        CrossEncoder(folder)
    message = raised.value.message
    assert message.startswith(f"{folder} cannot be used as a cross-encoder: ")
    assert reason in message
    assert message.endswith(
        "; `funes models use cross-encoder FOLDER` names another, `funes models remove cross-encoder` none."
    )


def test_quantised_weights_are_refused(tmp_path):
    with pytest.raises(FunesError, match="its weights are stored as int8, and only floating point is known"):
        CrossEncoder(write_cross_encoder(tmp_path, "int8"))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("config.json", b"{", "config.json is not JSON"),
        ("config.json", b"[1]", "config.json is not a JSON object"),
        ("tokenizer.json", b"{}", "tokenizer.json is not a tokenizer file"),
        ("model.safetensors", b"", "model.safetensors is not a complete safetensors file"),
        ("model.safetensors", b"\xff" * 40, "model.safetensors is not a complete safetensors file"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, content, reason):
    folder = write_cross_encoder(tmp_path)
    (folder / name).write_bytes(content)
    with pytest.raises(FunesError, match=reason):
        CrossEncoder(folder)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(FunesError, match="there is no such folder"):
        CrossEncoder(tmp_path / "none")
    folder = write_cross_encoder(tmp_path / "model")
    for name in ("config.json", "tokenizer.json"):
        (folder / name).unlink()
    with pytest.raises(FunesError, match=r"it has no config\.json and no tokenizer\.json"):
        CrossEncoder(folder)
