"""Symmetric products and factors, against plain NumPy; threads of BLAS."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module

import numpy as np
import pytest

from discernel import MultipleKernelDiscriminant
from discernel.arrays import (
    Cholesky,
    dense,
    in_threads,
    larger_tiles,
    matmul,
    n_cores,
    rows_for_threads,
    self_product_less,
)
from discernel.arrays import machine as threads_module
from discernel.arrays.machine import SharedLimit, blas_threads
from discernel.bank import TiledBank
from discernel.default.cross_fit import each
from discernel.kernels import RBF, Kernel


@pytest.mark.parametrize("n", [1, 5, 127, 128, 129, 300])
def test_symmetric_products_are_those_of_numpy(n):
    rng = np.random.default_rng(n)
    A, L, R = rng.standard_normal((n, 7)), rng.standard_normal((n, 2)), rng.standard_normal((n, 2))
    found = self_product_less(A, L, R, 0.25)
    np.testing.assert_allclose(found, 0.25 * (A @ A.T - (L @ R.T + R @ L.T) / 2), atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    assert found.flags.c_contiguous


@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize(
    "shape", [(7, 5, 3), (7, 5, 1), (1, 5, 1), (7, 1, 1), (0, 5, 1), (7, 0, 1)]
)
def test_products_are_those_of_numpy(shape, order):
    """Also with a single column, which has a way of its own."""
    m, n, k = shape
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2 * m, 2 * n)), rng.standard_normal((n, k + 1))
    left, right = left[:m, ::2], right[:, 1:]
    if order != "strided":
        left, right = np.array(left, order=order), np.array(right, order=order)
    found = matmul(left, right)
    assert found.shape == (m, k)
    np.testing.assert_allclose(found, left @ right, atol=1e-14)


@pytest.mark.parametrize("n", [1, 5, 127, 128, 129, 300])
def test_inverse_is_whole_and_symmetric(n):
    A = np.random.default_rng(n).standard_normal((n, n))
    matrix = A @ A.T + n * np.eye(n)
    found = Cholesky(matrix.copy()).inverse()
    np.testing.assert_allclose(found, np.linalg.inv(matrix), atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    factor = Cholesky(matrix.copy())
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1])
    np.testing.assert_allclose(factor.inverse_diagonal(), found.diagonal(), rtol=1e-10)
    single = Cholesky(matrix.astype(np.float32)).inverse()
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, found, atol=1e-5)


@pytest.mark.parametrize(("n", "n_threads"), [(5, 1), (128, 3), (300, 1), (1600, 1), (2100, 3)])
def test_blocks_of_the_inverse(n, n_threads, monkeypatch):
    """In one thread and in three, by slices of the rows of large groups."""
    monkeypatch.setattr(dense, "free_threads", lambda n: n_threads)
    rng = np.random.default_rng(n)
    half = rng.standard_normal((n, 40))
    matrix = half @ half.T + np.diag(rng.uniform(1.0, 2.0, n))
    factor, rows = Cholesky(matrix.copy()), rng.permutation(n)[: n // 5 * 5].reshape(5, -1)
    found = factor.inverse_blocks(rows)
    diagonal, expected = factor.inverse_diagonal(), np.linalg.inv(matrix)
    np.testing.assert_allclose(found, expected[rows[:, :, None], rows[:, None]], atol=1e-12)
    np.testing.assert_allclose(diagonal, expected.diagonal(), atol=1e-12)


# ---- threads ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-11), (np.float32, 1e-3)])
@pytest.mark.parametrize("n", [60, 300, 1600])
def test_a_factor_solves_after_the_diagonal_of_its_inverse(n, dtype, tol):
    """Whether L⁻¹ has taken the memory of L, as for few and for many rows, or not."""
    rng = np.random.default_rng(n)
    half, right = rng.standard_normal((n, 40)), rng.standard_normal((n, 3)).astype(dtype)
    matrix = (half @ half.T + np.diag(rng.uniform(1.0, 2.0, n))).astype(dtype)
    factor = Cholesky(matrix.copy())
    expected = factor.solve(right)
    factor.inverse_diagonal()
    for columns in (right, right[:, 0]):
        given = columns.copy()
        found = factor.solve(given)
        assert found.dtype == dtype
        np.testing.assert_array_equal(given, columns)
        np.testing.assert_allclose(
            found, expected if columns.ndim > 1 else expected[:, 0], atol=tol
        )


class Pools:
    """A library with one number of threads for the whole process, as threadpoolctl shows it."""

    def __init__(self):
        self.n_threads, self.n_limits = 8, 0

    def info(self):
        return [{"num_threads": self.n_threads}]

    def limit(self, limits):
        before, self.n_threads = self.n_threads, limits
        self.n_limits += 1
        return Limit(self, before)


@dataclass
class Limit(AbstractContextManager):
    """A limit, which knows what was before it."""

    pools: Pools
    before: int

    def restore_original_limits(self):
        self.pools.n_threads = self.before

    def __exit__(self, *_):
        self.restore_original_limits()


@pytest.mark.parametrize("order", ["ABab", "ABba", "AaBb", "AABaBbba", "ABCacb"])
@pytest.mark.parametrize("limits", [{"A": 1, "B": 1, "C": 1}, {"A": 2, "B": 1, "C": 4}])
def test_the_last_thread_to_leave_gives_the_threads_back(order, limits):
    """In whatever order they enter (A) and leave (a), each in a thread of its own."""
    pools = Pools()
    limit = SharedLimit(lambda: pools)
    threads = {name: ThreadPoolExecutor(1) for name in "ABC"}
    contexts = {name: [] for name in limits}
    inside = []
    for step in order:
        name = step.upper()
        if step == name:
            contexts[name].append(limit.to(limits[name]))
            threads[name].submit(contexts[name][-1].__enter__).result()
        else:
            threads[name].submit(contexts[name].pop().__exit__, None, None, None).result()
        (inside.append if step == name else inside.remove)(limits[name])
        assert pools.n_threads == min(inside, default=8)
    if set(limits.values()) == {1}:
        assert pools.n_limits == (2 if order == "AaBb" else 1)
    for thread in threads.values():
        thread.shutdown()


def test_an_error_inside_or_on_entering_leaves_nothing_behind():
    pools = Pools()
    limit = SharedLimit(lambda: pools)
    with pytest.raises(ZeroDivisionError, match="division"), limit.to(1), limit.to(2):
        1 / 0  # noqa: B018
    assert pools.n_threads == 8
    broken = SharedLimit(lambda: None)
    for _ in range(2):
        with pytest.raises(AttributeError, match="limit"), broken.to(1):
            pass


@pytest.mark.parametrize(("cores", "found"), [(1, 1), (2, 2), (8, 8), (64, 8)])
def test_blas_has_no_more_threads_than_a_container_has_cores(monkeypatch, cores, found):
    pools = Pools()
    monkeypatch.setattr(threads_module, "_thread_pools", lambda: (pools, Pools()))
    monkeypatch.setattr(threads_module, "_LIMIT", SharedLimit(lambda: pools))
    monkeypatch.setattr("joblib.cpu_count", lambda: cores)
    with blas_threads(10_000):
        assert pools.n_threads == found
        with blas_threads(100):
            assert pools.n_threads == 1
        assert pools.n_threads == found
    assert pools.n_threads == 8


CONCURRENT = """
import threading
import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits
from discernel import KernelDiscriminant
from discernel.arrays.machine import _let_others_limit, blas_threads

def threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

X = np.random.default_rng(0).standard_normal((60, 3))
y = np.arange(60) % 2
KernelDiscriminant().fit(X, y)
threadpool_limits(2, "blas")  # also where there is one core, or the environment asks for one
_let_others_limit()
before = threads()
assert set(before) == {2}, before

# The interleaving that a plain limit does not survive; the thread that came first stays alive.
steps = [threading.Event() for _ in range(4)]
seen = []

def first():
    with blas_threads(60):
        steps[0].set(); steps[1].wait()
    steps[2].set(); steps[3].wait()

def second():
    steps[0].wait()
    with blas_threads(60), blas_threads(60):
        steps[1].set(); steps[2].wait()
        seen.append(threads())

one, two = (threading.Thread(target=each, daemon=True) for each in (first, second))
one.start(); two.start(); two.join()
assert seen == [[1] * len(before)], seen
assert threads() == before, (threads(), before)
steps[3].set(); one.join()

# Fits at the same time, every second of which fails when all are inside.
barrier = threading.Barrier(4)

def kernel(left, right):
    barrier.wait(20)
    if threading.current_thread().name.endswith("fails"):
        raise RuntimeError("a kernel of the user's")
    return left @ right.T

def fit():
    try:
        KernelDiscriminant(kernel, regularization=0.1).fit(X, y)
    except RuntimeError:
        pass

names = ["1", "2 fails", "3", "4 fails"]
fits = [threading.Thread(target=fit, name=name) for name in names]
for each in fits: each.start()
for each in fits: each.join()
assert threads() == before, (threads(), before)

Parallel(n_jobs=4, backend="threading")(
    delayed(clone(KernelDiscriminant()).fit)(X, y) for _ in range(16)
)
assert threads() == before, (threads(), before)
print("as before")
"""


def test_concurrent_fits_leave_the_threads_of_blas_as_they_were():
    """In a process of its own, where BLAS has more than one thread."""
    done = subprocess.run(
        [sys.executable, "-c", CONCURRENT],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.endswith("as before\n"), done.stderr


@pytest.mark.parametrize(("cores", "rows"), [(1, 2), (2, 2), (16, 16), (200, 16)])
def test_every_thread_has_rows_and_all_together_are_limited(monkeypatch, cores, rows):
    monkeypatch.setattr("joblib.cpu_count", lambda: cores)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert rows_for_threads(2**24, 2**24) == rows
    assert rows_for_threads(2**40, 2**24) == 1


@pytest.mark.parametrize(
    ("said", "found"), [(None, 8), ("3", 3), ("4,2", 4), ("64", 8), ("0", 8), ("many", 8)]
)
def test_threads_are_no_more_than_the_environment_allows(monkeypatch, said, found):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if said is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert n_cores() == found


class Names(set):
    """Names of threads, and how many of them are waited for, but no longer than five seconds."""

    awaited = 1

    def wait(self):
        end = time.monotonic() + 5.0
        while len(self) < self.awaited and time.monotonic() < end:
            time.sleep(1e-3)


@dataclass(frozen=True)
class Watched(Kernel):
    """x·z, which keeps the names of the threads that compute it."""

    names: Names = field(hash=False, compare=False)

    def __call__(self, X, Z=None):
        self.names.add(threading.current_thread().name)
        self.names.wait()
        return X @ (X if Z is None else Z).T


@pytest.fixture
def four_cores(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_threads_are_not_multiplied(four_cores):
    """Banks made outside, or inside, of threads start no others there."""
    X, V, names = np.random.default_rng(0).standard_normal((80, 2)), np.ones((80, 1)), Names()
    outside = TiledBank([Watched(names)], X, cache_bytes=2**16)
    names.clear()
    names.awaited = 4
    expected, parts = outside.products(V), [[], []]
    assert len(names) == 4
    names.clear()
    names.awaited = 2

    def work(_, found):
        assert n_cores() == 1
        found.append(threading.current_thread().name)
        for bank in (outside, TiledBank([Watched(names)], X, cache_bytes=2**16)):
            np.testing.assert_allclose(bank.products(V), expected, rtol=1e-12)

    in_threads(work, range(6), parts)
    assert n_cores() == 4
    assert names == {name for part in parts for name in part}
    in_threads(lambda *_: parts.append(n_cores()), range(1), [None])
    assert parts[-1] == 4  # one thread leaves the other cores to its own work


def test_default_and_importances_start_no_more_threads_than_the_environment_allows(
    four_cores, monkeypatch
):
    def run(job):
        return threading.current_thread().name

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert set(each(run, range(8))) == {threading.current_thread().name}
    seen = []
    importances = import_module("discernel.model.importances")

    def watched(work, jobs, parts):
        seen.append(len(parts))
        return in_threads(work, jobs, parts)

    monkeypatch.setattr(importances, "in_threads", watched)
    monkeypatch.setattr(importances, "_BLOCK_ENTRIES", 64)
    X = np.random.default_rng(0).standard_normal((60, 3))
    options = {"criterion": "uniform", "regularization": 0.1}
    fitted = MultipleKernelDiscriminant([RBF(), RBF(width=3.0)], **options)
    assert len(fitted.fit(X, X[:, 0] > 0).feature_importances_) == 3
    assert set(seen) == {1}
    seen.clear()
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    fitted.fit(X, X[:, 0] > 0).feature_importances_  # noqa: B018
    assert set(seen) == {3}


def test_workers_of_joblib_share_the_cores():
    """Two workers have half of the cores each, and not all of them."""
    code = (
        "import joblib; from discernel.arrays import n_cores;"
        "found = joblib.Parallel(n_jobs=2)(joblib.delayed(n_cores)() for _ in range(2));"
        "print(found == [max(1, joblib.cpu_count() // 2)] * 2)"
    )
    there = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    out = subprocess.run([sys.executable, "-c", code], env=there, capture_output=True, text=True)
    assert out.stdout == "True\n", out.stderr


def test_more_threads_get_larger_tiles():
    assert [larger_tiles(n) for n in (1, 4, 5, 8, 9, 64)] == [1, 1, 2, 2, 4, 4]
