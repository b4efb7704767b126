"""Kernels that break only on some tiles, threads, and interruptions."""

import os
import subprocess
import sys
import threading
from dataclasses import dataclass

import numpy as np
import pytest

from discernel.bank import TiledBank, tiled
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Function, Kernel

N = 150


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(tiled, "_ROWS", 32)
    monkeypatch.setattr(tiled, "_COLUMNS", 48)


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).standard_normal((N, 5))
    X.flags.writeable = False
    return X


# ---- shapes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("thread_safe", [False, True])
@pytest.mark.parametrize(
    "wrong", [lambda K: K[:, :1], lambda K: K.T, lambda K: K[0], lambda K: K[:, :, None]]
)
def test_a_wrong_shape_on_some_tile_is_named(rows, wrong, thread_safe):
    def crooked(X, Z):
        matrix = X @ Z.T
        return matrix if len(X) == len(Z) else wrong(matrix)

    kernels = [RBF(width=1.0), Function(crooked, thread_safe=thread_safe)]
    before = threading.active_count()
    with pytest.raises(InvalidInputError, match=r"crooked must return a matrix .* Got shape"):
        TiledBank(kernels, rows, n_threads=3)
    assert threading.active_count() == before


# ---- NaN and infinity --------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_one_broken_entry_is_named_with_its_place(rows, bad, n_threads):
    """Rows 7 and 140 are in different tiles."""

    def broken(X, Z):
        matrix = X @ Z.T
        matrix[np.ix_(X[:, 0] == rows[7, 0], Z[:, 0] == rows[140, 0])] = bad
        matrix[np.ix_(X[:, 0] == rows[140, 0], Z[:, 0] == rows[7, 0])] = bad
        return matrix

    kernels = [RBF(width=1.0), Function(broken, thread_safe=True)]
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(InvalidInputError, match=rf"broken has {bad} at row 7, column 140"),
    ):
        TiledBank(kernels, rows, n_threads=n_threads)


def test_a_broken_entry_beyond_the_checked_rows_is_found(rows, monkeypatch):
    monkeypatch.setattr(tiled, "CHECKED_ROWS", 3)
    test_one_broken_entry_is_named_with_its_place(rows, np.nan, 1)


def test_what_is_broken_in_one_tile_only_is_named(rows):
    """A kernel that errs for some numbers of rows: computing a single row again shows nothing."""

    def moody(X, Z):
        return np.full((len(X), len(Z)), np.nan) if len(Z) == 48 else X @ Z.T

    with pytest.raises(InvalidInputError, match="moody has nan at row"):
        TiledBank([Function(moody)], rows, n_threads=1)


def test_what_is_broken_once_and_not_again_is_named(rows):
    broken = []

    def fickle(X, Z):
        if len(Z) == 48 and not broken:
            broken.append(True)
            return np.full((len(X), len(Z)), np.nan)
        return X @ Z.T

    with pytest.raises(InvalidInputError, match="fickle has a sum that is not finite"):
        TiledBank([Function(fickle)], rows, n_threads=1)


# ---- threads -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "compose",
    [
        lambda kernel: kernel,
        lambda kernel: 2.0 * kernel,
        lambda kernel: kernel.on([0, 1]),
        lambda kernel: kernel + RBF(width=1.0),
        lambda kernel: RBF(width=1.0) * kernel,
        lambda kernel: kernel.named("mine"),
    ],
)
def test_what_is_not_thread_safe_is_called_by_one_thread_whatever_it_is_part_of(rows, compose):
    callers = set()

    def mine(X, Z):
        callers.add(threading.get_ident())
        return X @ Z.T

    bank = TiledBank([RBF(width=2.0), compose(Function(mine))], rows, n_threads=3)
    bank.products(np.ones((N, 1)))
    bank.combined(np.array([0.5, 0.5]))
    bank.inner(np.eye(N))
    assert callers == {threading.get_ident()}


def test_what_is_thread_safe_is_called_by_several_threads_at_once(rows):
    """Two calls wait for one another: with one thread they would wait in vain."""
    both, met = threading.Barrier(2), threading.Event()

    def mine(X, Z):
        if threading.current_thread() is not threading.main_thread() and not met.is_set():
            both.wait(timeout=30)
            met.set()
        return X @ Z.T

    TiledBank([Function(mine, thread_safe=True)], rows, n_threads=2)
    assert met.is_set()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_error_of_the_users_own_comes_through_unchanged(rows, n_threads):
    def fails(X, Z):
        if len(X) != len(Z):
            raise RuntimeError("the file is gone")
        return X @ Z.T

    before = threading.active_count()
    with pytest.raises(RuntimeError, match="the file is gone"):
        TiledBank([Function(fails, thread_safe=True)], rows, n_threads=n_threads)
    assert threading.active_count() == before


# ---- interruptions -----------------------------------------------------------------------------

#: A fit whose kernel sends the interruption itself, from a worker thread, at its 30th tile.
INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
from discernel import MultipleKernelDiscriminant
from discernel.bank import tiled
from discernel.kernels import Function

tiled._ROWS, tiled._COLUMNS = 32, 48
os.cpu_count = lambda: 3
os.environ.pop("OMP_NUM_THREADS", None)
calls = []

def mine(X, Z):
    if len(X) > 1 and threading.current_thread() is not threading.main_thread():
        calls.append(1)
        if len(calls) == 30:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
    return X @ Z.T

X = np.random.default_rng(0).standard_normal((1000, 5))
clf = MultipleKernelDiscriminant([Function(mine, thread_safe=True), "rbf"], bank="tiled")
try:
    clf.fit(X, X[:, 0] > 0)
except KeyboardInterrupt:
    for thread in set(threading.enumerate()) - {threading.main_thread()}:
        thread.join(timeout=10)  # one that is about to end is not left behind
    print([thread.name for thread in threading.enumerate()], len(calls))
else:
    print("not interrupted")
"""
#: Tiles of one pass over 1,000 rows: 32 on the diagonal, and those to the right of it.
TILES = sum(1 + -(-max(1000 - (top + 32), 0) // 48) for top in range(0, 1000, 32))


@dataclass(frozen=True)
class Interruption:
    threads: str
    n_calls: int


@pytest.fixture(scope="module")
def interruption():
    found = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 0, found.stderr
    threads, _, n_calls = found.stdout.strip().rpartition(" ")
    return Interruption(threads, int(n_calls) if n_calls.isdigit() else -1)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_ctrl_c_during_a_fit_leaves_no_threads_behind(interruption):
    assert interruption.threads == "['MainThread']"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_ctrl_c_does_not_wait_for_the_end_of_the_pass(interruption):
    assert interruption.n_calls < TILES / 2


# ---- kernels of the user's own classes ---------------------------------------------------------


def test_a_kernel_class_that_returns_a_wrong_shape_is_named(rows):
    class Own(Kernel):
        def __call__(self, X, Z=None):
            other = X if Z is None else Z
            return (X @ other.T)[:, :1]

        def diagonal(self, X):
            return np.einsum("ij,ij->i", X, X)

    with pytest.raises(InvalidInputError, match="Own"):
        TiledBank([Own()], rows, n_threads=1)
