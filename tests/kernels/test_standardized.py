"""Kernels of columns divided by their spread: units do not matter."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discernel import MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Exponential, Linear, Standardized, as_kernels, columns
from discernel.kernels.columns import column_quantiles, column_spreads
from discernel.kernels.curves import divided_columns
from discernel.testing import check_kernel

UNITS = np.array([1e-6, 1.0, 1e4, 3.0])


def rows(n=60, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 4)) * UNITS + 5.0 * UNITS


@pytest.mark.parametrize("kernel", [RBF(), RBF(width=2.0), Exponential(), Linear()], ids=str)
def test_it_is_a_kernel(kernel):
    check_kernel(Standardized(kernel), rows(30), rows(9, seed=1))


@pytest.mark.parametrize("kernel", [RBF(), Linear()], ids=str)
def test_it_is_the_kernel_of_divided_columns(kernel):
    X, Z = rows(), rows(7, seed=1)
    made = Standardized(kernel).resolve(X)
    scaled = kernel.resolve(X / X.std(axis=0))
    np.testing.assert_allclose(
        made(Z, X), scaled(Z / X.std(axis=0), X / X.std(axis=0)), rtol=1e-9, atol=1e-12
    )
    assert made.name == scaled.name
    with pytest.raises(InvalidInputError, match=r"Call kernel.resolve\(X\) first"):
        Standardized(kernel)(X)
    with pytest.raises(InvalidInputError, match="one spread per column, here 3"):
        made(X[:, :3])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 101, 1000])
def test_quantiles_are_those_of_numpy(n, monkeypatch):
    monkeypatch.setattr(columns, "_CELLS", 3 * n)  # some columns at a time
    X = np.random.default_rng(n).normal(size=(n, 7)) * 10.0 ** np.arange(-3, 4) + 1e5
    X[:, 2] = 5.0
    shares = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
    np.testing.assert_array_equal(column_quantiles(X, shares), np.quantile(X, shares, axis=0))


def test_columns_in_threads_are_those_of_one(monkeypatch):
    X = np.random.default_rng(0).normal(size=(500, 7)) * 10.0 ** np.arange(-3, 4) + 1e5
    X[0, 3], X[:300, 4] = 1e9, 0.0
    known = column_spreads(X), column_quantiles(X, (0.1, 0.5))
    monkeypatch.setattr(columns, "_CELLS", 1000)  # two columns at a time, the last alone
    for n_threads in (1, 3):
        monkeypatch.setattr(columns, "free_threads", lambda _, n=n_threads: n)
        np.testing.assert_allclose(column_spreads(X), known[0], rtol=1e-15)
        np.testing.assert_array_equal(column_quantiles(X, (0.1, 0.5)), known[1])


def test_spreads_are_standard_deviations_but_for_few_far_values():
    X = rows(200)
    np.testing.assert_allclose(column_spreads(X), X.std(axis=0), rtol=1e-12)
    far = X.copy()
    far[7] = 1e8
    far[9, 2] = -1e12
    np.testing.assert_allclose(column_spreads(far), X.std(axis=0), rtol=0.05)
    many = X.copy()
    many[:40, 1] = 1e3  # a fifth of the rows is no exception
    np.testing.assert_allclose(column_spreads(many)[1], many[:, 1].std(), rtol=1e-12)


def test_rare_and_constant_columns():
    X = np.zeros((100, 4))
    X[0, 0] = 1.0  # one row in a hundred
    X[:, 1] = 7.3
    X[:, 2] = 1e9 + np.arange(100) * 1e-12  # rounding
    X[:, 3] = np.arange(100)
    np.testing.assert_allclose(column_spreads(X), [0.5, 0.0, 0.0, X[:, 3].std()])
    assert (divided_columns(X, column_spreads(X))[:, 1:3] == 0).all()


def test_a_rare_value_is_no_louder_than_a_frequent_one():
    """Half of the rows, or one in a hundred: a step from 0 to 1 is as long."""
    X = np.zeros((200, 3))
    X[:100, 0] = X[:20, 1] = X[:2, 2] = 1.0
    np.testing.assert_allclose(column_spreads(X), 0.5)


def test_sparse_rows_stay_sparse_and_mean_the_same():
    X = rows()
    X[np.random.default_rng(3).random(X.shape) < (0.1, 0.3, 0.7, 0.9)] = 0.0
    np.testing.assert_allclose(column_spreads(sp.csr_matrix(X)), column_spreads(X), rtol=1e-9)
    np.testing.assert_allclose(column_spreads(X)[:2], X[:, :2].std(axis=0), rtol=1e-9)
    np.testing.assert_allclose(column_spreads(X)[2:], 0.5 * np.ptp(X[:, 2:], axis=0))
    made = Standardized(RBF()).resolve(X)
    assert sp.issparse(divided_columns(sp.csr_matrix(X), made.spreads))
    np.testing.assert_allclose(made(sp.csr_matrix(X)), made(X), atol=1e-7)


def test_spreads_of_numbers_whose_squares_are_zero():
    X = np.random.default_rng(0).normal(size=(50, 2))
    small = X * [1e-200, 1.0]
    np.testing.assert_allclose(column_spreads(small) / [1e-200, 1.0], column_spreads(X), rtol=1e-12)


@pytest.mark.parametrize("bank", ["dense", "tiled", "factored"])
def test_units_of_columns_do_not_matter_to_the_default(bank):
    X = rows(120) / UNITS
    y = (X[:, 0] + X[:, 1] ** 2 > X[:, 2] + 20.0).astype(int)
    options = {"criterion": "rkda", "regularization": 1e-2, "bank": bank}
    plain = MultipleKernelDiscriminant(**options).fit(X, y)
    other = MultipleKernelDiscriminant(**options).fit(X * UNITS, y)
    # Logistic regressions of the folds end at a tolerance.
    np.testing.assert_allclose(
        other.predict_proba(X * UNITS), plain.predict_proba(X), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_raw_rows_score_what_scaled_rows_score(load):
    X, y = load(return_X_y=True)
    raw = cross_val_score(MultipleKernelDiscriminant(), X, y)
    scaled = cross_val_score(make_pipeline(StandardScaler(), MultipleKernelDiscriminant()), X, y)
    np.testing.assert_allclose(raw, scaled, atol=0.01)
    assert raw.mean() > 0.97


def test_regression_takes_raw_rows_too():
    X = rows(80) / UNITS
    y = X[:, 0] ** 2 + X[:, 3]
    plain, other = MultipleKernelRidge().fit(X, y), MultipleKernelRidge().fit(X * UNITS, y)
    np.testing.assert_allclose(other.predict(X * UNITS), plain.predict(X), rtol=1e-3)


def test_kernels_that_are_given_are_taken_as_they_are():
    assert all(isinstance(kernel, Standardized) for kernel in as_kernels("auto"))
    assert as_kernels([RBF(), "linear"]) == [RBF(), Linear()]
