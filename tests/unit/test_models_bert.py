from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funes.models import bert
from funes.models.bert import Bert, BertConfig
from tests.support import naive_bert

LENGTHS = st.lists(st.integers(1, 32), min_size=1, max_size=9)


def sequences(lengths, seed=0, vocabulary=40):
    random = np.random.default_rng(seed)
    return [random.integers(0, vocabulary, length).astype(np.uint16) for length in lengths]


@given(LENGTHS, st.integers(0, 2**32), st.sampled_from([(1, 3), (2, 4), (3, 8), (12, 2)]), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_agrees_with_the_plain_implementation(lengths, seed, shape, layers):
    heads, head_width = shape
    tensors = naive_bert.random_checkpoint(seed, layers, heads, head_width)
    ids = sequences(lengths, seed)
    states = Bert(tensors, BertConfig(heads)).hidden_states(ids)
    assert [len(state) for state in states] == lengths
    for state, one in zip(states, ids, strict=True):
        assert state.dtype == np.float32
        np.testing.assert_allclose(state, naive_bert.hidden_states(tensors, heads, one), atol=3e-4, rtol=3e-4)


@given(LENGTHS, st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_a_sequence_does_not_see_its_neighbours(lengths, order):
    model = Bert(naive_bert.random_checkpoint(1), BertConfig(2))
    ids = sequences(lengths)
    together = model.hidden_states(ids)
    shuffled = list(range(len(ids)))
    order.shuffle(shuffled)
    elsewhere = model.hidden_states([ids[i] for i in shuffled])
    for place, index in enumerate(shuffled):
        np.testing.assert_allclose(elsewhere[place], together[index], atol=2e-5, rtol=2e-5)
        np.testing.assert_allclose(model.hidden_states([ids[index]])[0], together[index], atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("limit", [1, 64, 1000])
def test_the_working_sizes_do_not_matter(limit, monkeypatch):
    model = Bert(naive_bert.random_checkpoint(2), BertConfig(2))
    ids = sequences([5, 5, 5, 1, 30, 30])
    expected = model.hidden_states(ids)
    monkeypatch.setattr(bert, "_SCORES", limit)
    monkeypatch.setattr(bert, "_GELU_VALUES", limit)
    for state, wanted in zip(model.hidden_states(ids), expected, strict=True):
        np.testing.assert_allclose(state, wanted, atol=2e-5)


def test_token_types_and_a_prefix():
    tensors = naive_bert.random_checkpoint(3, prefix="bert.")
    ids = sequences([7, 4])
    types = [np.array([0, 0, 0, 1, 1, 1, 1]), np.array([0, 1, 1, 1])]
    states = Bert(tensors, BertConfig(2), prefix="bert.").hidden_states(ids, types)
    for state, one, kinds in zip(states, ids, types, strict=True):
        expected = naive_bert.hidden_states(tensors, 2, one, kinds, prefix="bert.")
        np.testing.assert_allclose(state, expected, atol=3e-4)


@given(LENGTHS, st.integers(0, 2**32), st.sampled_from([(1, 3), (3, 8), (12, 2)]), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_first_states_are_those_of_the_first_tokens(lengths, seed, shape, layers):
    heads, head_width = shape
    model = Bert(naive_bert.random_checkpoint(seed, layers, heads, head_width), BertConfig(heads))
    ids = sequences(lengths, seed)
    types = [np.arange(len(one)) % 2 for one in ids]
    expected = np.stack([state[0] for state in model.hidden_states(ids, types)])
    np.testing.assert_allclose(model.first_states(ids, types), expected, atol=1e-4, rtol=1e-4)


def test_the_epsilon_of_the_configuration_is_used():
    tensors = naive_bert.random_checkpoint(4)
    ids = sequences([6])
    state = Bert(tensors, BertConfig(2, epsilon=0.5)).hidden_states(ids)[0]
    np.testing.assert_allclose(state, naive_bert.hidden_states(tensors, 2, ids[0], epsilon=0.5), atol=3e-4)


@pytest.mark.parametrize("factor", [30.0, -30.0])
def test_scores_out_of_range_are_repaired(factor):
    """exp() of these scores over- or underflows float32 unless the largest is subtracted first."""
    tensors = naive_bert.random_checkpoint(5, layers=1)
    for part, sign in (("query", 1.0), ("key", factor)):
        tensors[f"encoder.layer.0.attention.self.{part}.weight"] *= np.float32(abs(factor))
        tensors[f"encoder.layer.0.attention.self.{part}.bias"] = np.full(8, sign * 10, np.float32)
    ids = sequences([9, 3])
    for state, one in zip(Bert(tensors, BertConfig(2)).hidden_states(ids), ids, strict=True):
        np.testing.assert_allclose(state, naive_bert.hidden_states(tensors, 2, one), atol=2e-2)


def test_half_precision_checkpoints_are_read():
    tensors = naive_bert.random_checkpoint(6)
    halves = {name: value.astype(np.float16) for name, value in tensors.items()}
    rounded = {name: value.astype(np.float32) for name, value in halves.items()}
    ids = sequences([5])
    ours, expected = (Bert(t, BertConfig(2)).hidden_states(ids)[0] for t in (halves, rounded))
    np.testing.assert_array_equal(ours, expected)


def test_no_sequences():
    model = Bert(naive_bert.random_checkpoint(7), BertConfig(2))
    assert model.hidden_states([]) == []
    assert model.first_states([]).shape == (0, 8)


def test_gelu_is_exact_to_single_precision():
    x = np.concatenate([np.linspace(-30, 30, 200_001), [-1e30, -100, 0, 100, 1e30]]).astype(np.float32)
    doubled = x.copy()
    with np.errstate(over="ignore"):
        bert.gelu_twice(doubled, np.empty_like(x), np.empty_like(x))
    expected = naive_bert.gelu(x.astype(np.float64))
    error = np.abs(doubled / 2.0 - expected) / np.maximum(1, np.abs(expected))
    assert error.max() < 6e-7


@given(LENGTHS, st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_onnxruntime_agrees(lengths, seed):
    pytest.importorskip("onnxruntime")
    from funes.models.onnx import OnnxBert

    tensors = naive_bert.random_checkpoint(seed, heads=4, head_width=8)
    ids = sequences(lengths, seed)
    theirs = OnnxBert(tensors, BertConfig(4), threads=1).hidden_states(ids)
    for ours, other in zip(Bert(tensors, BertConfig(4)).hidden_states(ids), theirs, strict=True):
        np.testing.assert_allclose(ours, other, atol=3e-4, rtol=3e-4)
