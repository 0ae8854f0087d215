"""Spreading the forward pass over the cores: one Python thread a core, one BLAS thread each.

numpy releases the interpreter lock inside BLAS and element-wise loops, so threads that each run their own batch use
every core for both kinds of work; a BLAS that threads by itself speeds up the multiplications only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TypeVar

import numpy as np

T = TypeVar("T")
R = TypeVar("R")

_SETTERS = (
    ("scipy_openblas_set_num_threads64_", "scipy_openblas_get_num_threads64_"),  # numpy's own wheels, 2.x
    ("openblas_set_num_threads64_", "openblas_get_num_threads64_"),  # numpy's own wheels, 1.26
    ("scipy_openblas_set_num_threads", "scipy_openblas_get_num_threads"),
    ("openblas_set_num_threads", "openblas_get_num_threads"),  # distributions, conda-forge
    ("MKL_Set_Num_Threads", "MKL_Get_Max_Threads"),
    ("bli_thread_set_num_threads", "bli_thread_get_num_threads"),
)

_lock = threading.Lock()
_users = 0
_before = 0


def cores() -> int:
    """Cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


@cache
def _blas() -> tuple[Callable[[int], object], Callable[[], int]] | None:
    """The functions that set and get the thread count of the BLAS numpy is linked to, None when it has none we know.

    A symbol looked up through numpy's extension module is searched in the libraries that module is linked to, which
    finds the right BLAS wherever it lies, without naming a file.
    """
    core = getattr(np, "_core", None) or np.core
    try:
        library = ctypes.CDLL(core._multiarray_umath.__file__)
    except OSError:
        return None
    for set_name, get_name in _SETTERS:
        try:
            setter, getter = getattr(library, set_name), getattr(library, get_name)
        except AttributeError:
            continue
        setter.argtypes, setter.restype = [ctypes.c_int], None
        getter.argtypes, getter.restype = [], ctypes.c_int
        return setter, getter
    return None


def workers() -> int:
    """How many threads may call BLAS at once: every core if its own threads can be turned off, otherwise one.

    Apple's Accelerate has no such switch before macOS 15 and does not need it: it schedules calls from several threads
    on one pool.
    """
    if _blas() is None and "accelerate" not in _blas_name():
        return 1
    return cores()


def _blas_name() -> str:
    try:
        config = np.show_config(mode="dicts")
        return str(config["Build Dependencies"]["blas"]["name"]).lower()
    except (KeyError, TypeError):
        return ""


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within it, a BLAS call runs in the thread that makes it. May be nested and entered from several threads."""
    global _users, _before
    blas = _blas()
    if blas is None:
        yield
        return
    setter, getter = blas
    with _lock:
        if _users == 0:
            _before = getter()
            setter(1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                setter(_before)


def spread(work: Callable[[T], R], parts: Sequence[T]) -> list[R]:
    """What `work` returns for each part, made on every core."""
    count = min(workers(), len(parts))
    with one_blas_thread():
        if count <= 1:
            return [work(part) for part in parts]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(work, parts))
