"""Passes over tiles by compiled loops are those by NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from discernel import MultipleKernelDiscriminant
from discernel.arrays import Buffers
from discernel.arrays.loops import SWITCH, SumOfKernels, compiled_loops
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.iterative import IterativeBank
from discernel.bank.tiled import TiledBank
from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    ChiSquared,
    Cosine,
    Exponential,
    Laplace,
    Linear,
    Polynomial,
    rbf_ladder,
    weighted,
)
from discernel.model.swaps import SwappedKernels

N = 700
#: Kernels of one pairwise matrix and of several, of one column, products, sums and a constant.
KINDS = {
    "ladder": rbf_ladder(5),
    "spread": [RBF(width=1.0), RBF(width=1.7), Exponential(width=2.0)],
    "columns": [RBF().on([0]), RBF(width=0.5).on([0]), RBF().on([1, 2]), Exponential().on([3])],
    "inner": [Linear(), Polynomial(degree=3), 2.0 * Polynomial(degree=2), Cosine()],
    "made": [RBF() * Cosine(), RBF() + 0.5 * Linear() + 1.0, RBF() * RBF().on([1]) * Linear()],
    "city": [Laplace(), Laplace(width=0.7), Laplace().on([0]), RBF() * Laplace(), Linear()],
    "by NumPy": [Laplace(), ChiSquared(), RBF()],
}
#: Those of which the loops make the pairwise matrices too.
WHOLE = set(KINDS) - {"by NumPy"}


@pytest.fixture(scope="module")
def rows():
    return np.abs(np.random.default_rng(0).standard_normal((N, 4)))


@pytest.fixture(autouse=True)
def _loops():
    if compiled_loops() is None:
        pytest.skip("the loops are not compiled: python hatch_build.py")


def without(monkeypatch, work):
    """Return what some work returns by NumPy alone."""
    with monkeypatch.context() as patch:
        patch.setenv(SWITCH, "0")
        compiled_loops.cache_clear()
        found = work()
    compiled_loops.cache_clear()
    return found


def counted(monkeypatch):
    """Return a list that grows with every call of compiled passes."""
    calls = []
    for name in ("add_products", "add_compressed", "write", "write_between"):
        plain = getattr(SumOfKernels, name)

        def watched(self, *args, plain=plain, name=name):
            calls.append(name)
            return plain(self, *args)

        monkeypatch.setattr(SumOfKernels, name, watched)
    return calls


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_passes_are_those_of_numpy(rows, kind, n_threads, weighted, monkeypatch):
    rng = np.random.default_rng(1)
    kernels = [kernel.resolve(rows) for kernel in KINDS[kind]]
    weights = SampleWeights.of(rng.uniform(0.5, 2.0, N)) if weighted else None
    V, w = rng.standard_normal((N, 3)), rng.uniform(0.0, 1.0, len(kernels))

    def results():
        options = {"n_threads": n_threads, "sample_weights": weights}
        bank, iterative = (
            TiledBank(kernels, rows, **options),
            IterativeBank(kernels, rows, **options),
        )
        rough = np.empty((N, N), dtype=np.float32)
        return [
            bank.traces(),
            bank.products(V),
            bank.combined(w),
            bank.combined(w, rough),
            bank.compressed(V),
            bank.inner_products(),
            iterative.combined_product(w, V),
        ]

    right, calls = without(monkeypatch, results), counted(monkeypatch)
    for found, expected in zip(results(), right, strict=True):
        tol = 1e-12 if found.dtype == np.float64 else 1e-6
        assert_allclose(found, expected, rtol=0, atol=tol * np.abs(expected).max())
    every = {"add_products", "add_compressed", "write"}
    assert every <= set(calls) if kind in WHOLE else not calls


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_tiles_between_rows_and_others_are_those_of_numpy(rows, kind, n_threads, monkeypatch):
    """Also of rows that equal others, with several blocks of rows and columns."""
    monkeypatch.setattr("joblib.cpu_count", lambda: n_threads)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(weighted, "_COMPILED_ENTRIES", 0)
    kernels = [kernel.resolve(rows) for kernel in KINDS[kind]]
    total = weighted.WeightedKernels(kernels, np.linspace(0.3, 1.1, len(kernels)))
    new = np.concatenate([np.abs(np.random.default_rng(1).standard_normal((900, 4))), rows[5:9]])
    V = np.random.default_rng(2).standard_normal((N, 3))

    def results():
        return total(new, rows), total.product(new, rows, V)

    expected, calls = without(monkeypatch, results), counted(monkeypatch)
    for found, its in zip(results(), expected, strict=True):
        assert_allclose(found, its, rtol=1e-12, atol=1e-12 * np.abs(its).max())
    # Of cosines, and of kernels without loops, NumPy computes the tiles.
    assert ("write_between" in calls) == (kind in WHOLE)


PLACES = {
    "rows of a wider matrix": lambda: np.full((N, 400), np.nan)[:, 50:350],
    "columns after columns": lambda: np.empty((N, 300), order="F"),
    "single precision": lambda: np.empty((N, 300), dtype=np.float32),
}


@pytest.mark.parametrize("kind", ["ladder", "city", "by NumPy"])
@pytest.mark.parametrize("place", PLACES)
def test_matrices_are_written_to_any_memory(rows, kind, place, monkeypatch):
    monkeypatch.setattr(weighted, "_COMPILED_ENTRIES", 0)
    kernels = weighted.WeightedKernels(
        [kernel.resolve(rows) for kernel in KINDS[kind]], np.linspace(0.5, 1.5, len(KINDS[kind]))
    )
    expected = without(monkeypatch, lambda: kernels(rows, rows[:300]))
    out = PLACES[place]()
    kernels.write(rows, rows[:300], out)
    assert_allclose(out, expected, rtol=1e-6 if out.itemsize == 4 else 1e-11)
    if out.base is not None:
        assert np.isnan(out.base[:, [49, 350]]).all()


def test_values_that_are_not_finite_are_found_where_they_are_written(rows, monkeypatch):
    monkeypatch.setattr(weighted, "_COMPILED_ENTRIES", 0)
    far = rows.copy()
    far[500, 1] = 1e150
    kernels = weighted.WeightedKernels([Polynomial(degree=3)], np.ones(1))
    with pytest.raises(InvalidInputError, match="between new row 500 and training row 0"):
        kernels(far, rows[:300])


@pytest.mark.parametrize("columns", [[1], [0, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("kind", KINDS)
def test_changes_of_columns_are_those_of_numpy_and_of_mixed_rows(rows, kind, columns, monkeypatch):
    kernels = [kernel.resolve(rows) for kernel in KINDS[kind]]
    total = weighted.WeightedKernels(kernels, np.linspace(0.3, 1.1, len(kernels)))
    new = rows[:40]
    others = [np.abs(np.random.default_rng(1).standard_normal((40, 4))), new]

    def results():
        changes = SwappedKernels(total, rows, 4).swap(new, Buffers())
        return [each.copy() for each in changes(np.array(columns), others)]

    expected, calls = without(monkeypatch, results), counted(monkeypatch)
    mixed = new.copy()
    mixed[:, columns] = others[0][:, columns]
    (found, same), scale = results(), np.abs(total(new, rows)).max()
    assert_allclose(found, expected[0], rtol=1e-12, atol=1e-13 * scale)
    assert_allclose(found, total(mixed, rows) - total(new, rows), atol=1e-12 * scale)
    assert_allclose(same, 0.0, atol=1e-14 * scale)
    assert calls == ["write_between"] * 2


def test_products_of_single_precision(rows, monkeypatch):
    kernels = [kernel.resolve(rows) for kernel in rbf_ladder(4)]
    V, w = np.random.default_rng(1).standard_normal((N, 9)), np.array([0.0, 0.2, 0.3, 0.5])
    bank = IterativeBank(kernels, rows, n_threads=2)
    single, exact = bank.single_engine(w), bank.combined_product(w, V)
    found = bank.combined_product(w, V, single)
    expected = without(monkeypatch, lambda: bank.combined_product(w, V, single))
    size = np.abs(exact).max()
    assert 1e-9 * size < np.abs(found - exact).max() < 3 * np.abs(expected - exact).max()


def test_far_rows_and_nearly_constant_kernels_keep_their_digits(rows, monkeypatch):
    far = rows.copy()
    far[::50] += 1e6
    kernels = [kernel.resolve(rows) for kernel in [RBF(width=1.0), RBF(width=1e3)]]
    V, w = np.random.default_rng(1).standard_normal((N, 2)), np.array([0.4, 0.6])

    def results():
        banks = [TiledBank(kernels, X, n_threads=2) for X in (rows, far)]
        return [found for bank in banks for found in (bank.products(V), bank.combined(w))]

    for found, expected in zip(results(), without(monkeypatch, results), strict=True):
        assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_little_room_is_kept_to(rows, monkeypatch):
    calls = counted(monkeypatch)
    kernels = [kernel.resolve(rows) for kernel in rbf_ladder(2)]
    TiledBank(kernels, rows, n_threads=2, cache_bytes=2**20).combined(np.ones(2))
    assert not calls


# The diagonal of the inverse by iteration is good to three digits, from products of single
# precision: of a fit by iteration, their rounding is seen.
@pytest.mark.parametrize(("bank", "tol"), [("tiled", 1e-8), ("iterative", 1e-5)])
def test_fits_are_those_of_numpy(bank, tol, monkeypatch):
    X = np.random.default_rng(0).standard_normal((N, 4))
    y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)

    def results():
        clf = MultipleKernelDiscriminant(
            rbf_ladder(5), criterion="rkda", regularization=1e-3, bank=bank
        )
        clf.fit(X, y)
        assert clf.gap_ <= 1e-6
        return [clf.kernel_weights_, clf.predict_proba(X[:50])]

    expected = without(monkeypatch, results)
    for found, right in zip(results(), expected, strict=True):
        assert_allclose(found, right, rtol=0, atol=tol)
