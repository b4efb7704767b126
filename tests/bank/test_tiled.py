"""The bank that stores nothing says what the one that stores everything says."""

import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from discernel import MultipleKernelDiscriminant
from discernel.bank import (
    AutoBank,
    DenseBank,
    Tiled,
    TiledBank,
    gram_stack,
    tiled,
)
from discernel.exceptions import DroppedKernelWarning, InvalidGramError, InvalidInputError
from discernel.kernels import RBF, Exponential, Linear, Polynomial, Precomputed, rbf_ladder
from discernel.kernels.adapters import Function
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.terms import Decay
from discernel.plan import choose_bank
from discernel.programs.rkda import RKDAProgram
from discernel.targets import ClassTarget

N = 150


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Tiles of which some are cut, on and off the diagonal."""
    monkeypatch.setattr(tiled, "_ROWS", 32)
    monkeypatch.setattr(tiled, "_COLUMNS", 48)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((N, 5))


def candidates(X):
    own = Function(lambda X, Z: (1.0 + X @ Z.T) ** 2)
    kernels = [*rbf_ladder(5), RBF(width=1.3), Linear(), Polynomial(degree=2), own]
    kernels += [Exponential(), RBF().on([0, 2]), RBF(width=2.0) + Linear(), 2.0 * RBF(width=0.7)]
    return [kernel.resolve(X) for kernel in kernels]


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("normalization", ["centered_trace", "trace"])
def test_everything_equals_the_dense_bank(rows, n_threads, normalization):
    kernels = candidates(rows)
    dense = DenseBank(gram_stack(kernels, rows), normalization=normalization)
    tiles = TiledBank(kernels, rows, normalization=normalization, n_threads=n_threads)
    rng = np.random.default_rng(1)
    V, S = rng.standard_normal((N, 3)), rng.standard_normal((N, N))
    S = S + S.T
    w = rng.dirichlet(np.ones(len(kernels)))
    w[::3] = 0.0

    def close(first, second):
        np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-10 * np.abs(second).max())

    close(tiles.scales, dense.scales)
    close(tiles.traces(), dense.traces())
    close(tiles.combined(w), dense.combined(w))
    close(tiles.products(V), dense.products(V))
    close(tiles.compressed(V), dense.compressed(V))
    close(tiles.compressed(V)[1], V.T @ dense.combined(np.eye(len(kernels))[1]) @ V)
    close(tiles.inner(S), dense.inner(S))
    close(tiles.inner_products(), dense.inner_products())
    close(tiles.centering(w).row_means, dense.centering(w).row_means)
    some = np.arange(0, N, 2)
    close(tiles.subset(some).combined(w), dense.subset(some).combined(w))
    np.testing.assert_allclose(tiles.combined(w), tiles.combined(w).T, atol=1e-15 * N)


def test_a_ladder_is_one_exponential_and_its_powers(rows, monkeypatch, numpy_alone):
    """σ² in steps of 4: every kernel is the fourth power of the next; error below 1e-10."""
    kernels = [kernel.resolve(rows) for kernel in rbf_ladder(9)]
    exponentials = []
    plain = Decay.write
    monkeypatch.setattr(
        Decay, "write", lambda self, base, out: exponentials.append(1) or plain(self, base, out)
    )
    found = dict(KernelSet(kernels).matrices(KernelSet(kernels).prepare(rows)))
    assert len(exponentials) == 1
    for position, kernel in enumerate(kernels):
        np.testing.assert_allclose(found[position], kernel(rows), rtol=1e-10, atol=1e-299)
        assert found[position].min() >= 1e-300, "denormal numbers are slow"


def test_widths_off_the_ladder_are_exponentials_of_their_own(rows):
    kernels = [RBF(width=1.0), RBF(width=1.7), RBF(width=2.0), Exponential(width=1.0)]
    for position, matrix in KernelSet(kernels).matrices(KernelSet(kernels).prepare(rows)):
        np.testing.assert_allclose(matrix, kernels[position](rows), rtol=1e-13)


def test_sparse_rows(rows):
    X = sp.csr_array(np.where(np.abs(rows) > 1, rows, 0.0))
    kernels = [RBF(width=2.0), Linear()]
    w = np.array([0.3, 0.7])
    dense = DenseBank(gram_stack(kernels, X))
    np.testing.assert_allclose(TiledBank(kernels, X).combined(w), dense.combined(w), atol=1e-12)


@pytest.mark.parametrize("criterion", ["rkda", "fdr", "auto", "alignment"])
def test_estimators_learn_the_same_from_both(rows, criterion):
    y = (rows[:, 0] + rows[:, 1] ** 2 > 0.8).astype(int)
    lam = 1e-2 if criterion in ("rkda", "fdr") else "auto"
    fits = {
        bank: MultipleKernelDiscriminant(criterion=criterion, regularization=lam, bank=bank).fit(
            rows, y
        )
        for bank in ("dense", "tiled")
    }
    assert [fit.bank_ for fit in fits.values()] == ["dense", "tiled"]
    first, second = (fit.learned_kernel_ for fit in fits.values())
    assert first.objective == pytest.approx(second.objective, rel=1e-8)
    np.testing.assert_allclose(
        fits["dense"].predict_proba(rows), fits["tiled"].predict_proba(rows), atol=1e-4
    )


def test_memory_does_not_grow_with_the_number_of_kernels(rows):
    X = np.random.default_rng(0).standard_normal((500, 4))
    target = ClassTarget.from_labels(np.arange(500) % 2)
    peaks = []
    for n_kernels in (2, 40):
        kernels = [RBF(width=width) for width in np.geomspace(0.5, 20, n_kernels)]
        tracemalloc.start()
        point = RKDAProgram(TiledBank(kernels, X), target, 1e-2).at(
            np.full(n_kernels, 1 / n_kernels)
        )
        assert point.hessian.shape == (n_kernels, n_kernels)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) <= 2.0 * 8 * 500**2


def test_a_part_of_the_samples_is_a_stack_only_where_that_is_small(rows, monkeypatch):
    kernels, half, w = candidates(rows), np.arange(0, N, 3), np.full(13, 1 / 13)
    bank = TiledBank(kernels, rows)
    stack = bank.subset(half)
    monkeypatch.setattr(bank, "_cache_bytes", 8 * len(kernels) * len(half) ** 2 - 1)
    tiles = bank.subset(half)
    assert (type(stack), type(tiles)) == (DenseBank, TiledBank)
    np.testing.assert_allclose(tiles.combined(w), stack.combined(w), atol=1e-10)


def test_a_kernel_that_is_not_thread_safe_is_called_by_one_thread_only(rows):
    callers = set()

    def mine(X, Z):
        callers.add(threading.get_ident())
        return X @ Z.T

    TiledBank([RBF(width=1.0), Function(mine)], rows, n_threads=4)
    assert callers == {threading.get_ident()}


def test_what_breaks_on_some_tile_is_named(rows):
    X = rows.copy()

    def broken(X, Z):
        matrix = X @ Z.T
        matrix[np.ix_(X[:, 0] == rows[140, 0], Z[:, 0] == rows[3, 0])] = np.nan
        return matrix

    with pytest.raises(InvalidInputError, match=r"broken has nan at row (3|140), column (3|140)"):
        TiledBank([Function(broken)], X)
    with pytest.raises(InvalidInputError, match="must return a matrix with one row"):
        TiledBank([Function(lambda X, Z: np.ones((len(X), 2)))], X)
    with pytest.raises(InvalidGramError, match="must be positive semidefinite"):
        TiledBank([Function(lambda X, Z: -X @ Z.T)], X)


def test_constant_kernels_are_left_out(rows):
    ones = Function(lambda X, Z: np.ones((len(X), len(Z))))
    with pytest.warns(DroppedKernelWarning):
        bank = TiledBank([RBF(width=1.0), ones], rows)
    assert bank.kept.tolist() == [0]
    assert bank.expand(np.ones(1)).tolist() == [1.0, 0.0]
    with pytest.raises(InvalidInputError, match="At least one kernel must vary"):
        TiledBank([ones], rows)


def test_which_bank(rows):
    many = [RBF(width=1.0)] * 2000
    assert choose_bank("auto", many[:10], rows) == "dense"
    assert choose_bank("auto", many, rows) == "tiled"
    assert choose_bank("dense", many, rows) == "dense"
    assert choose_bank("auto", [Precomputed()], np.eye(20_000, 2)) == "dense"
    with pytest.raises(InvalidInputError, match="kernels are precomputed"):
        choose_bank("tiled", [Precomputed()], np.eye(3))
    with pytest.raises(InvalidInputError, match="bank must be one of"):
        choose_bank("disk", many, rows)


def test_an_interrupted_pass_leaves_no_threads_behind(rows):
    def interrupt(X, Z):
        if len(X) != len(Z):
            raise KeyboardInterrupt
        return X @ Z.T

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        TiledBank([Function(interrupt, thread_safe=True)], rows, n_threads=3)
    assert threading.active_count() == before


# ---- room ------------------------------------------------------------------------------------


def test_more_threads_get_larger_tiles(monkeypatch):
    """Python runs in one thread at a time: many threads with little to do each wait for it."""
    monkeypatch.undo()
    room = 256 * 2**20
    assert [tiled._tile_shape(room, n) for n in (1, 4, 8, 16)] == [
        (256, 512),
        (256, 512),
        (512, 512),
        (512, 768),
    ]
    assert all(
        8 * 5 * n * h * w <= room for n in (64, 200) for h, w in [tiled._tile_shape(room, n)]
    )


def test_tiles_get_smaller_where_there_is_little_room_and_say_the_same(rows):
    kernels = [kernel.resolve(rows) for kernel in rbf_ladder(3)]
    V = np.random.default_rng(0).standard_normal((N, 2))
    large = TiledBank(kernels, rows, n_threads=2)
    small = TiledBank(kernels, rows, n_threads=2, cache_bytes=2 * 8 * 5 * 16**2)
    assert (large._engine._tile_shape, small._engine._tile_shape) == ((32, 48), (16, 16))
    np.testing.assert_allclose(small.products(V), large.products(V), rtol=1e-12, atol=1e-15)
    tracemalloc.start()
    small.products(V)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 1024 + 8 * 3 * 2 * V.size * 4


@pytest.mark.parametrize("bank", [AutoBank, Tiled])
def test_a_cache_without_room_for_one_tile_is_refused(rows, bank):
    y = np.arange(N) % 2
    clf = MultipleKernelDiscriminant(bank=bank(memory="1kB"))
    with pytest.raises(
        InvalidInputError, match=r"memory of a bank .* at least 0\.\d+ MiB. Got 0.00095 MiB"
    ):
        clf.fit(rows, y)


@pytest.mark.parametrize("memory", [0, -1, np.nan, np.inf, "1 great GB", None])
def test_the_memory_of_a_bank_must_be_a_positive_number(rows, memory):
    with pytest.raises(InvalidInputError, match="memory of a bank must be a positive number"):
        MultipleKernelDiscriminant(bank=Tiled(memory=memory)).fit(rows, np.arange(N) % 2)


def test_the_cache_decides_which_bank(rows):
    kernels = [RBF(width=1.0), RBF(width=2.0)]
    stack = 8 * 2 * N**2
    assert choose_bank("auto", kernels, rows, stack) == "dense"
    assert choose_bank("auto", kernels, rows, stack - 1) == "tiled"
    clf = MultipleKernelDiscriminant(kernels, bank=AutoBank(memory="0.3MiB"), regularization=0.1)
    assert clf.fit(rows, np.arange(N) % 2).bank_ == "tiled"


@pytest.mark.parametrize(("kind", "needed"), [("tiled", 2), ("dense", 4)])
def test_too_many_rows_for_the_machine_are_refused(rows, monkeypatch, kind, needed):
    kernels = [RBF(width=1.0), RBF(width=2.0)]
    monkeypatch.setattr("discernel.plan.plan.memory_limit", lambda: needed * 8 * N**2 - 1)
    with pytest.raises(
        InvalidInputError, match=r"must fit into memory.*Use a random subset of the rows"
    ):
        choose_bank(kind, kernels, rows)
    monkeypatch.setattr("discernel.plan.plan.memory_limit", lambda: needed * 8 * N**2)
    assert choose_bank(kind, kernels, rows) == kind
