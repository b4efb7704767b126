"""The Laplace kernel of the 1-norm: what it is, its median, and what it shares."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import laplacian_kernel

from discernel import MultipleKernelDiscriminant
from discernel.arrays import Buffers, city_distances
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Exponential, Laplace, Linear, as_kernel
from discernel.kernels.distance import median_distance
from discernel.kernels.evaluate import KernelSet


def plain(X, Z):
    """Return ‖x − z‖₁ pair by pair."""
    return np.array([[np.abs(x - z).sum() for z in Z] for x in X])


def plain_median(X):
    pairs = plain(X, X)[np.tril_indices(len(X), -1)]
    return np.median(pairs[pairs > 0])


def rows(n=40, columns=5, seed=0):
    return np.random.default_rng(seed).standard_normal((n, columns))


# ---- the kernel ------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_sparse_rows_give_what_dense_rows_give(container):
    X, Z = rows(), rows(9, seed=1)
    X[np.abs(X) < 0.7] = Z[np.abs(Z) < 0.7] = 0.0
    kernel = Laplace().resolve(X)
    assert Laplace().resolve(container(X)).width == pytest.approx(kernel.width, rel=1e-12)
    np.testing.assert_allclose(kernel(container(X)), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(kernel(container(Z), X), kernel(Z, X), rtol=1e-12)


@pytest.mark.parametrize("offset", [1e3, 1e8, 1e12])
def test_far_from_the_origin_no_digits_are_lost(offset):
    X = np.random.default_rng(0).integers(-50, 50, (30, 4)) * 1.0
    kernel = Laplace(width=20.0)
    np.testing.assert_array_equal(kernel(X + offset), kernel(X))
    far = X.copy()
    far[3] = offset
    keep = np.arange(30) != 3
    np.testing.assert_array_equal(kernel(far)[np.ix_(keep, keep)], kernel(X)[np.ix_(keep, keep)])
    assert kernel(far)[3, 3] == 1.0


def test_it_is_what_its_formula_says():
    X, Z = rows(), rows(9, seed=1)
    np.testing.assert_allclose(Laplace(width=3.0)(X, Z), np.exp(-plain(X, Z) / 3.0), rtol=1e-12)
    np.testing.assert_allclose(Laplace(gamma=0.2)(X, Z), laplacian_kernel(X, Z, gamma=0.2))


def test_it_is_a_product_over_columns():
    X = rows()
    parts = [Laplace(width=2.0).on([column])(X) for column in range(X.shape[1])]
    np.testing.assert_allclose(Laplace(width=2.0)(X), np.prod(parts, axis=0), rtol=1e-12)


def test_of_one_column_it_is_the_exponential_kernel():
    X = rows(columns=1)
    one, other = Laplace().resolve(X), Exponential().resolve(X)
    assert one.width == pytest.approx(other.width)
    np.testing.assert_allclose(one(X), other(X), rtol=1e-7)


def test_its_words_and_its_name():
    assert Laplace() == Laplace(width="median")
    assert as_kernel("laplace") == Laplace()
    assert repr(Laplace(width=2.0)) == "Laplace(width=2)"
    assert Laplace(gamma=0.5).parameters == {"gamma": 0.5}
    assert Laplace(width=2.0).with_settings(gamma=1.0) == Laplace(gamma=1.0)
    assert pickle.loads(pickle.dumps(Laplace(width=2.0))) == Laplace(width=2.0)
    with pytest.raises(InvalidInputError, match="exactly one of"):
        Laplace(width=1.0, gamma=1.0)
    with pytest.raises(InvalidInputError, match="positive"):
        Laplace(width=-1.0)
    with pytest.raises(InvalidInputError, match="resolve"):
        Laplace()(rows())


# ---- the median ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 14, 15])
@pytest.mark.parametrize("columns", [1, 4])
def test_median_width_is_the_median_of_the_1_norm(n, columns):
    X = rows(n, columns, seed=3)
    assert Laplace().resolve(X).width == pytest.approx(plain_median(X), rel=1e-12)
    kernel = Laplace(width="0.5*median").resolve(X)
    assert kernel.width == pytest.approx(0.5 * plain_median(X), rel=1e-12)


def test_rows_that_are_all_the_same_get_width_one():
    assert Laplace().resolve(np.full((5, 3), 2.0)) == Laplace(width=1.0)


@pytest.mark.parametrize("size", [1e3, 1e8, 1e12])
def test_one_far_row_hardly_changes_the_median(size):
    X = rows(300)
    plain_width = median_distance(X, norm=1)
    X[150] = size
    assert median_distance(X, norm=1) == pytest.approx(plain_width, rel=0.02)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_median_ignores_rows_that_are_equal_up_to_rounding(offset):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((6, 3)), 30, axis=0) + offset
    rounded = X * (1.0 + 2e-16 * rng.integers(-1, 2, X.shape))
    assert median_distance(rounded, norm=1) == pytest.approx(plain_median(X), rel=1e-6)
    X[0] = 1e12
    assert median_distance(X, norm=1) == pytest.approx(plain_median(X), rel=1e-6)


def test_constant_columns_do_not_matter_for_the_median():
    X = rows(50, 3)
    wide = np.column_stack([np.full(50, 1e18), X, np.zeros(50)])
    assert median_distance(wide, norm=1) == pytest.approx(median_distance(X, norm=1), rel=1e-12)


def test_median_of_many_rows_is_that_of_some_drawn(monkeypatch):
    monkeypatch.setattr("discernel.kernels.distance.MEDIAN_ROWS", 10)
    X = rows(28)
    drawn = np.sort(np.random.default_rng(0).choice(28, 10, replace=False, shuffle=False))
    assert Laplace().resolve(X).width == pytest.approx(plain_median(X[drawn]), rel=1e-12)


def test_the_two_medians_of_the_same_rows_are_not_mixed_up():
    X, known = rows(), {}
    widths = [kernel.resolve(X, None, known).width for kernel in (RBF(), Laplace(), Exponential())]
    assert widths[0] == widths[2] != widths[1]
    assert widths[1] == pytest.approx(plain_median(X))


# ---- shared ----------------------------------------------------------------------------------


def test_laplace_kernels_share_distances_and_are_powers_of_each_other(monkeypatch):
    X = rows()
    kernels = [Laplace(width=2.0**k) for k in range(4)]
    kernels += [2.0 * Laplace(width=5.0), RBF(width=2.0), Exponential(width=1.0), Linear()]
    together = KernelSet(kernels)
    assert [len(steps) for steps in together.groups.values()] == [5, 2, 1]
    assert together.groups[together.keys[0]] == [(4, None), (3, None), (2, 1), (1, 1), (0, 1)]
    calls = []
    right = city_distances
    monkeypatch.setattr(
        "discernel.kernels.pairs.city_distances", lambda *a: calls.append(1) or right(*a)
    )
    prepared = together.prepare(X)
    for buffers in (None, Buffers()):
        for position, matrix in together.matrices(prepared, None, buffers):
            expected = kernels[position](X)
            np.testing.assert_allclose(matrix, expected, rtol=1e-11, atol=1e-13)
    assert len(calls) == 2 + 2 * 5  # one per pass, beside the calls of the kernels themselves


@pytest.mark.parametrize("bank", ["tiled", "factored"])
def test_every_bank_learns_the_same_with_it(bank):
    X = rows(120)
    y = (np.abs(X[:, 0]) + X[:, 1] > 0.7).astype(int)
    kernels, options = [Laplace(width=4.0), Laplace(), RBF()], {"criterion": "rkda"}
    options["regularization"] = 1e-2
    fits = [
        MultipleKernelDiscriminant(kernels, bank=kind, **options).fit(X, y)
        for kind in ("dense", bank)
    ]
    new = rows(20, seed=5)
    found, expected = (fit.predict_proba(new) for fit in fits[::-1])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert fits[0].score(X, y) > 0.9
