from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from funes.models import threads


@pytest.fixture
def blas(monkeypatch):
    """A BLAS that records what its thread count is set to."""
    calls = [8]
    monkeypatch.setattr(threads, "_blas", lambda: (calls.append, lambda: calls[-1]))
    return calls


def test_one_thread_inside_and_as_before_outside(blas):
    with threads.one_blas_thread():
        assert blas[-1] == 1
        with threads.one_blas_thread():
            assert blas[-1] == 1
        assert blas[-1] == 1
    assert blas[-1] == 8


def test_an_exception_puts_the_count_back(blas):
    with pytest.raises(ValueError, match="inside"), threads.one_blas_thread():
        raise ValueError("inside")
    assert blas[-1] == 8


def test_many_threads_enter_and_leave(blas):
    def work(_):
        for _ in range(50):
            with threads.one_blas_thread():
                assert blas[-1] == 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert blas[-1] == 8


def test_numpys_own_blas_is_found_and_set():
    if threads._blas() is None:
        pytest.skip("numpy is linked to a BLAS whose threads cannot be set")
    _, getter = threads._blas()
    before = getter()
    with threads.one_blas_thread():
        assert getter() == 1
    assert getter() == before
    assert threads.workers() == threads.cores() >= 1


def test_an_unknown_blas_is_left_alone_and_called_from_one_thread(monkeypatch):
    monkeypatch.setattr(threads, "_blas", lambda: None)
    monkeypatch.setattr(threads, "_blas_name", lambda: "reference")
    with threads.one_blas_thread():
        pass
    assert threads.workers() == 1
    monkeypatch.setattr(threads, "_blas_name", lambda: "accelerate")
    assert threads.workers() == threads.cores()
