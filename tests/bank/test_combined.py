"""Prediction in tiles and threads says what the plain formula says, in memory that stays flat."""

import os
import signal
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process.kernels import RationalQuadratic

from discernel import MultipleKernelDiscriminant
from discernel.arrays import in_threads
from discernel.bank import Centering, CombinedKernel
from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    Cosine,
    Exponential,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    rbf_ladder,
)
from discernel.kernels import weighted as module
from discernel.kernels.adapters import Function, GaussianProcess, Pairwise
from discernel.kernels.terms import Atom, Decay, PairKind, Term

M = 70  # training rows
COLUMNS = [0, 2]


def cubic(X, Z):
    return (0.5 + X @ Z.T) ** 3


def squared(x, z):
    return float(np.sum((x - z) ** 2))


def rational(x, z):
    return 1.0 / (1.0 + squared(x, z) / 2.0)


#: Each kernel beside what it is between two rows.
MIXED = [
    (RBF(gamma=0.04), lambda x, z: np.exp(-0.04 * squared(x, z))),
    (RBF(gamma=0.16).named("n"), lambda x, z: np.exp(-0.16 * squared(x, z))),
    (RBF(gamma=0.64), lambda x, z: np.exp(-0.64 * squared(x, z))),
    (RBF(width=1.3), lambda x, z: np.exp(-squared(x, z) / 1.69)),
    (3.0 * RBF(gamma=0.2), lambda x, z: 3.0 * np.exp(-0.2 * squared(x, z))),
    (Exponential(gamma=0.3), lambda x, z: np.exp(-0.3 * np.sqrt(squared(x, z)))),
    (Exponential(gamma=0.6), lambda x, z: np.exp(-0.6 * np.sqrt(squared(x, z)))),
    (Linear(), lambda x, z: x @ z),
    (Polynomial(degree=3, gamma=0.2), lambda x, z: (1.0 + 0.2 * x @ z) ** 3),
    (
        RBF(gamma=0.5).on(COLUMNS),
        lambda x, z: np.exp(-0.5 * squared(x[COLUMNS], z[COLUMNS])),
    ),
    (Linear().on([1]), lambda x, z: x[1] * z[1]),
    (Cosine(), lambda x, z: x @ z / np.sqrt((x @ x) * (z @ z))),
    (RBF(gamma=0.1) + Linear(), lambda x, z: np.exp(-0.1 * squared(x, z)) + x @ z),
    (RBF(gamma=0.1) * Linear(), lambda x, z: np.exp(-0.1 * squared(x, z)) * (x @ z)),
    (Pairwise("laplacian", (("gamma", 0.1),)), lambda x, z: np.exp(-0.1 * np.abs(x - z).sum())),
    (GaussianProcess(RationalQuadratic()), rational),
    (Function(cubic), lambda x, z: (0.5 + x @ z) ** 3),
]


@pytest.fixture(scope="module")
def rows():
    return 5.0 + np.random.default_rng(0).standard_normal((M, 4))


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of 8 × 16, cut at the ends, and blocks of 20 rows."""
    monkeypatch.setattr(module, "_TILE_ROWS", 8)
    monkeypatch.setattr(module, "_TILE_ENTRIES", 8 * 16)
    monkeypatch.setattr(module, "_BLOCK_BYTES", 8 * M * 20)


@pytest.fixture
def three_threads(monkeypatch):
    monkeypatch.setattr(module, "_THREADED_ENTRIES", 0)
    monkeypatch.setattr("joblib.cpu_count", lambda: 3)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def new_rows(n):
    return 5.0 + np.random.default_rng(1).standard_normal((n, 4))


def combined_kernel(kernels, rows, seed=2):
    """Return the kernels with some factors, and some statistics of a training set."""
    rng = np.random.default_rng(seed)
    factors = rng.uniform(0.5, 1.5, len(kernels))
    means = rng.uniform(0.0, 2.0, M)
    return CombinedKernel(list(kernels), factors, rows, Centering(means, float(means.mean())))


def plain_kernel(combined, functions, new, rows):
    """Return the centred kernel entry by entry."""
    cross = np.zeros((len(new), len(rows)))
    for factor, function in zip(combined.coefficients, functions, strict=True):
        cross += factor * np.array([[function(x, z) for z in rows] for x in new])
    means, grand = combined.centering.row_means, combined.centering.grand_mean
    return cross - cross.mean(axis=1)[:, None] - means[None] + grand


def assert_equal_up_to_rounding(found, expected, scale):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * scale)


# --- against the plain formula --------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 19, 20, 21, 41])
@pytest.mark.parametrize("shared_only", [True, False])
def test_rows_around_the_edges_of_tiles(rows, small_tiles, three_threads, n, shared_only):
    chosen = MIXED[:11] if shared_only else MIXED
    kernels, functions = zip(*chosen, strict=True)
    new, combined = new_rows(n), combined_kernel(kernels, rows)
    V = np.random.default_rng(3).standard_normal((M, 3))
    K = plain_kernel(combined, functions, new, rows)
    assert_equal_up_to_rounding(combined(new), K, np.abs(K).max())
    assert_equal_up_to_rounding(combined.product(new, V), K @ V, (np.abs(K) @ np.abs(V)).max())


@pytest.mark.parametrize(("kernel", "function"), MIXED, ids=[str(i) for i in range(len(MIXED))])
def test_every_kernel_by_itself(rows, small_tiles, kernel, function):
    new, combined = new_rows(11), combined_kernel([kernel], rows)
    K = plain_kernel(combined, [function], new, rows)
    assert_equal_up_to_rounding(combined(new), K, np.abs(K).max())


def test_tiles_of_the_usual_size(rows):
    """More rows than one tile has, and one row, for which a tile is as wide as the training set."""
    kernels = [kernel.resolve(rows) for kernel in rbf_ladder(5)]
    combined = combined_kernel(kernels, rows)
    new, V = new_rows(600), np.random.default_rng(3).standard_normal((M, 2))
    whole = sum(c * k(new, rows) for c, k in zip(combined.coefficients, kernels, strict=True))
    whole = combined.centering.apply(whole) @ V
    np.testing.assert_allclose(combined.product(new, V), whole, rtol=1e-11, atol=1e-11)
    for row in (0, 255, 256, 599):
        one = combined.product(new[row : row + 1], V)
        np.testing.assert_allclose(one, whole[row : row + 1], rtol=1e-11, atol=1e-11)


def test_threads_change_no_bit(rows, small_tiles, monkeypatch):
    kernels = [kernel for kernel, _ in MIXED[:-1]]
    new, combined = new_rows(100), combined_kernel(kernels, rows)
    V = np.random.default_rng(3).standard_normal((M, 3))
    alone = combined.product(new, V), combined(new)
    monkeypatch.setattr(module, "_THREADED_ENTRIES", 0)
    monkeypatch.setattr("joblib.cpu_count", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    np.testing.assert_array_equal(combined.product(new, V), alone[0])
    np.testing.assert_array_equal(combined(new), alone[1])


@pytest.mark.parametrize("new_as", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("training_as", [np.asarray, sp.csr_matrix])
def test_sparse_rows_on_either_side(rows, small_tiles, three_threads, new_as, training_as):
    chosen = MIXED[:12]
    kernels, functions = zip(*chosen, strict=True)
    new = new_rows(45)
    combined = combined_kernel(kernels, training_as(rows))
    K = plain_kernel(combined, functions, new, rows)
    V = np.random.default_rng(3).standard_normal((M, 3))
    np.testing.assert_allclose(combined.product(new_as(new), V), K @ V, rtol=1e-9, atol=1e-8)


def test_precomputed_matrices(rows, small_tiles, three_threads):
    new = new_rows(45)
    from_rows = combined_kernel([RBF(gamma=0.1), Linear()], rows)
    stack = np.stack([kernel(new, rows) for kernel in from_rows.kernels], axis=-1)
    from_stack = combined_kernel([Precomputed(0), Precomputed(1)], None)
    V = np.random.default_rng(3).standard_normal((M, 3))
    np.testing.assert_allclose(from_stack.product(stack, V), from_rows(new) @ V, atol=1e-9)


def test_rows_that_are_not_numbers(small_tiles):
    words = np.array(["a" * (i % 7) + "b" * (i % 5) for i in range(M)], dtype=object)

    def common(X, Z):
        return np.array([[x.count("a") * z.count("a") + x.count("b") for z in Z] for x in X])

    combined = combined_kernel([Function(common)], words)
    V = np.random.default_rng(3).standard_normal((M, 2))
    expected = combined.centering.apply(combined.coefficients[0] * common(words, words)) @ V
    np.testing.assert_allclose(combined.product(words, V), expected, atol=1e-10)


class Largest(PairKind):
    """A pairwise matrix of a user's, with nothing prepared."""

    def tile(self, X, Z, out):
        return np.abs(X[:, None] - (X if Z is None else Z)[None]).max(axis=2)

    def diagonal(self, X):
        return np.zeros(len(X))


class LargestDifference(Kernel):
    """A kernel of a pairwise matrix of its own."""

    pair = Largest()

    def _terms(self, view):
        return (Term(1.0, (Atom(self.pair, view, Decay(1.0)),)),)


def test_a_kernel_with_a_pairwise_matrix_of_its_own(rows, small_tiles, three_threads):
    kernel, new = LargestDifference(), new_rows(30)
    combined = combined_kernel([kernel, kernel.on(COLUMNS), RBF(gamma=0.1)], rows)
    terms = [kernel(new, rows), kernel(new[:, COLUMNS], rows[:, COLUMNS])]
    terms += [np.exp(-0.1 * np.array([[squared(x, z) for z in rows] for x in new]))]
    expected = combined.centering.apply(np.tensordot(combined.coefficients, terms, axes=1))
    np.testing.assert_allclose(combined(new), expected, atol=1e-12)


def test_integers_and_read_only_rows(rows, small_tiles):
    training = np.round(4 * rows).astype(np.int64)
    new = np.round(4 * new_rows(20)).astype(np.int64)
    combined = combined_kernel([RBF(gamma=0.01), Linear()], training)
    expected = combined_kernel([RBF(gamma=0.01), Linear()], training.astype(float))(
        new.astype(float)
    )
    new.flags.writeable = training.flags.writeable = False
    np.testing.assert_array_equal(combined(new), expected)


# --- what it costs ------------------------------------------------------------------------------


def test_a_ladder_costs_one_exponential_a_tile(rows, small_tiles, monkeypatch):
    combined = combined_kernel([kernel.resolve(rows) for kernel in rbf_ladder(5)], rows)
    exponentials = []
    plain = Decay.write

    def counted(self, base, out):
        exponentials.append(base.shape)
        plain(self, base, out)

    monkeypatch.setattr(Decay, "write", counted)
    combined.product(new_rows(20), np.ones((M, 1)))
    assert exponentials == [(n, m) for n in (8, 8, 4) for m in (16, 16, 16, 16, 6)]


@pytest.mark.parametrize("direct", [False, True])
def test_memory_does_not_grow_with_the_number_of_rows(monkeypatch, direct):
    rng = np.random.default_rng(0)
    rows, V = rng.standard_normal((M, 4)), rng.standard_normal((M, 2))
    monkeypatch.setattr("joblib.cpu_count", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(module, "_BLOCK_BYTES", 2**18)
    kernels = [RBF(gamma=0.1), RBF(gamma=0.3), Exponential(gamma=0.5), Linear().on([0])]
    combined = combined_kernel([*kernels, Cosine()] if direct else kernels, rows)
    above = []
    for n in (20_000, 80_000):
        X = rng.standard_normal((n, 4))
        tracemalloc.start()
        out = combined.product(X, V)
        above.append(tracemalloc.get_traced_memory()[1] - out.nbytes)
        tracemalloc.stop()
    # Each of two threads: four tiles of 256 rows and all training rows, and their rows; a few
    # blocks for the cosine.
    tiles = 2 * 4 * 8 * 256 * M
    assert max(above) <= 1.5 * tiles + (2 * 4 * 2**18 if direct else 0)
    if not direct:  # half an entry a further row would be too much already
        assert above[1] <= above[0] + 4 * 60_000


def test_a_kernel_that_is_not_thread_safe_is_called_by_one_thread(rows, small_tiles, three_threads):
    callers = set()

    def own(X, Z):
        callers.add(threading.get_ident())
        return X @ Z.T

    combined_kernel([Function(own), RBF(gamma=0.1)], rows).product(new_rows(100), np.ones((M, 1)))
    assert callers == {threading.get_ident()}


def test_thread_safe_kernels_run_at_the_same_time(rows, small_tiles, three_threads):
    meeting = threading.Barrier(3, timeout=30)

    def own(X, Z):
        meeting.wait()  # goes on only if three threads are here at once
        return X @ Z.T

    combined = combined_kernel([Function(own, thread_safe=True)], rows)
    combined.product(new_rows(60), np.ones((M, 1)))


def test_few_rows_start_no_thread(rows, monkeypatch):
    callers = set()

    def own(X, Z):
        callers.add(threading.get_ident())
        return X @ Z.T

    monkeypatch.setattr("joblib.cpu_count", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(module, "_BLOCK_BYTES", 8 * M)
    combined = combined_kernel([Function(own, thread_safe=True)], rows)
    combined.product(new_rows(10), np.ones((M, 1)))
    assert callers == {threading.get_ident()}


# --- interrupts and errors ----------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_error_in_a_thread_ends_all_of_them(rows, small_tiles, three_threads, error):
    calls = []

    def own(X, Z):
        calls.append(len(X))
        if len(calls) == 5:
            raise error
        threading.Event().wait(0.01)
        return X @ Z.T

    before = threading.active_count()
    combined = combined_kernel([Function(own, thread_safe=True)], rows)
    with pytest.raises(error):
        combined.product(new_rows(2000), np.ones((M, 1)))
    assert threading.active_count() == before
    assert len(calls) < 50


INTERRUPTED = """
import os
import threading
import joblib
import numpy as np
from discernel.bank import Centering, CombinedKernel
from discernel.kernels import RBF

os.environ.pop("OMP_NUM_THREADS", None)
joblib.cpu_count = lambda: 2
rows = np.zeros((1000, 3))
combined = CombinedKernel(
    [RBF(gamma=1.0)], np.ones(1), rows, Centering(np.ones(1000), 1.0)
)
print("ready", flush=True)
try:
    while True:
        combined.product(np.zeros((200_000, 3)), np.ones((1000, 2)))
except KeyboardInterrupt:
    print("threads", threading.active_count(), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_from_the_keyboard_leaves_no_thread_behind():
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        assert child.stdout.readline() == "ready\n"
        threading.Event().wait(0.3)
        child.send_signal(signal.SIGINT)
        rest, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert rest == "threads 1\n"
    assert child.returncode == 0


def test_jobs_are_done_once_each():
    parts = [[], [], []]
    in_threads(lambda job, part: part.append(job), range(100), parts)
    assert sorted(job for part in parts for job in part) == list(range(100))


@pytest.mark.parametrize("columns", [M - 1, M + 1])
def test_a_kernel_of_the_wrong_shape_is_named(rows, columns):
    combined = combined_kernel([Precomputed(0), Precomputed(1)], None)
    with pytest.raises(InvalidInputError, match=rf"^matrix 0 must .*\(5, {M}\).*\(5, {columns}\)"):
        combined.product(np.ones((5, columns, 2)), np.ones((M, 1)))


class NarrowPair(Largest):
    def tile(self, X, Z, out):
        return super().tile(X, Z, out)[:, :-1]


class Narrow(LargestDifference):
    pair = NarrowPair()


def test_a_pairwise_matrix_of_the_wrong_shape_is_named(rows):
    combined = combined_kernel([RBF(gamma=0.1), Narrow().named("narrow")], rows)
    with pytest.raises(InvalidInputError, match=r"^narrow must return .* Got shape \(3, 69\)"):
        combined(new_rows(3))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("how", ["call", "product"])
def test_a_kernel_that_is_not_finite_is_named(rows, small_tiles, three_threads, value, how):
    new = new_rows(50)
    new[33] = 100.0

    def broken(X, Z):
        return np.where((X[:, :1] == 100.0) & (np.arange(len(Z)) == 9), value, X @ Z.T)

    combined = combined_kernel([RBF(gamma=0.1), Function(broken), Linear()], rows)
    with pytest.raises(
        InvalidInputError, match=rf"broken is {value} between new row 33 and training row 9\."
    ):
        combined(new) if how == "call" else combined.product(new, np.ones((M, 2)))


def test_results_that_only_the_vectors_make_infinite_are_returned(rows):
    combined = combined_kernel([Linear()], rows)
    V = np.zeros((M, 1))
    V[0] = np.inf
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(combined.product(new_rows(3), V)).any()


def test_an_estimator_predicts_each_row_as_it_does_all(rows, small_tiles):
    y = (rows[:, 0] > 5.0).astype(int)
    clf = MultipleKernelDiscriminant(criterion="rkda", regularization=1e-2).fit(rows, y)
    new = new_rows(30)
    one_by_one = np.vstack([clf.predict_proba(new[i : i + 1]) for i in range(30)])
    np.testing.assert_allclose(clf.predict_proba(new), one_by_one, rtol=1e-10)
