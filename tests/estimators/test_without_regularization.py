"""λ = 0: served where the kernel matrix has full rank, a clear error where it has not."""

import numpy as np
import pytest

from discernel import (
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
    learn_kernel,
    open_rows,
)
from discernel.criteria import GivenWeights
from discernel.exceptions import InvalidInputError, NumericalError
from discernel.kernels import RBF, Laplace, Linear

KERNEL = RBF(width=1.0)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    return X, np.sin(X[:, 0]) + X[:, 1], rng.random(60) + 0.5


def test_the_ridge_interpolates_and_is_the_limit(rows):
    X, y, _ = rows
    exact = MultipleKernelRidge([KERNEL], regularization=0.0).fit(X, y)
    near = MultipleKernelRidge([KERNEL], regularization=1e-11).fit(X, y)
    assert exact.regularization_ == 0.0
    np.testing.assert_allclose(exact.predict(X), y, atol=1e-10)
    np.testing.assert_allclose(exact.predict(X + 0.1), near.predict(X + 0.1), atol=1e-5)


def test_it_is_the_interpolation_with_an_intercept(rows):
    """f = Σ c_i k(x_i, ·) + b with Σ c_i = 0 and f(x_i) = y_i: the least ‖f‖ of centred kernels."""
    X, y, _ = rows
    n = len(y)
    saddle = np.zeros((n + 1, n + 1))
    saddle[:n, :n], saddle[:n, n], saddle[n, :n] = KERNEL(X), 1.0, 1.0
    solved = np.linalg.solve(saddle, np.append(y, 0.0))
    expected = KERNEL(X + 0.3, X) @ solved[:n] + solved[n]
    found = MultipleKernelRidge([KERNEL], regularization=0).fit(X, y).predict(X + 0.3)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("bank", ["dense", "tiled", "factored"])
def test_leave_one_out_is_that_of_refitting(rows, bank):
    X, y, _ = rows
    ridge = MultipleKernelRidge([KERNEL], regularization=0.0, bank=bank)
    found = ridge.fit(X, y).leave_one_out_
    for i in range(5):
        rest = np.arange(len(y)) != i
        refitted = ridge.fit(X[rest], y[rest]).predict(X[[i]])[0]
        assert found[i] == pytest.approx(refitted, rel=1e-8)


def test_weights_of_rows(rows):
    X, y, weights = rows
    ridge = MultipleKernelRidge([KERNEL], regularization=0.0).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ridge.predict(X), y, atol=1e-10)
    assert np.isfinite(ridge.leave_one_out_).all()


def test_more_columns_than_rows(rows):
    X, y, _ = rows
    ridge = MultipleKernelRidge([Linear()], regularization=0.0).fit(X[:4], y[:4])
    np.testing.assert_allclose(ridge.predict(X[:4]), y[:4], atol=1e-10)


@pytest.mark.parametrize("criterion", ["rkda", "fdr"])
def test_discriminants_are_the_limit(rows, criterion):
    X, y = rows[0], rows[1] > 0
    exact, near = (
        KernelDiscriminant(KERNEL, criterion=criterion, regularization=lam).fit(X, y)
        for lam in (0.0, 1e-11)
    )
    # Without λ, a row that is left out of 'fdr' has its share among all rows, not in its class.
    atol = 1e-5 if criterion == "rkda" else 5e-4
    np.testing.assert_allclose(exact.predict_proba(X + 0.1), near.predict_proba(X + 0.1), atol=atol)


@pytest.mark.parametrize("criterion", ["uniform", "alignment", GivenWeights([1.0, 2.0])])
def test_several_kernels_whose_weights_do_not_depend_on_it(rows, criterion):
    X, y, _ = rows
    kernels = [KERNEL, Laplace(width=2.0)]
    ridge = MultipleKernelRidge(kernels, criterion=criterion, regularization=0.0).fit(X, y)
    np.testing.assert_allclose(ridge.predict(X), y, atol=1e-8)


def test_the_default_kernels(rows):
    X, y, _ = rows
    ridge = MultipleKernelRidge(regularization=0.0).fit(X, y)
    np.testing.assert_allclose(ridge.predict(X), y, atol=1e-8)


def test_other_ways_in(rows):
    X, y = rows[0], (rows[1] > 0).astype(int)
    learned = learn_kernel([KERNEL(X)], y, criterion="rkda", regularization=0)
    assert (learned.regularization, learned.weights.tolist()) == (0.0, [1.0])
    assert learned.criterion == "rkda"
    labels = np.column_stack([y, 1 - y])
    MultiLabelKernelDiscriminant([KERNEL], regularization=0).fit(X, labels)
    LearnedKernelTransformer([KERNEL], regularization=0).fit(X, y)


# ---- what cannot be served -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "repeated"), [(Linear(), 1), (RBF(width=100.0), 1), (KERNEL, 2)], ids=repr
)
def test_matrices_without_full_rank(rows, kernel, repeated):
    X, y, _ = rows
    X, y = np.tile(X, (repeated, 1)), np.tile(y, repeated)
    with pytest.raises(NumericalError, match="regularization=0 the kernel matrix must have full"):
        MultipleKernelRidge([kernel], regularization=0.0).fit(X, y)


@pytest.mark.parametrize("criterion", ["auto", "rkda", "loo"])
def test_weights_that_depend_on_it(rows, criterion):
    X, y, _ = rows
    ridge = MultipleKernelRidge([KERNEL, Linear()], criterion=criterion, regularization=0.0)
    with pytest.raises(InvalidInputError, match=r"depend on λ, which must then be positive"):
        ridge.fit(X, y)


@pytest.mark.parametrize("bank", ["lowrank", "iterative"])
def test_banks_that_do_not_factor(rows, bank):
    X, y, _ = rows
    with pytest.raises(InvalidInputError, match="needs kernel matrices that are factored"):
        MultipleKernelRidge([KERNEL], regularization=0.0, bank=bank).fit(X, y)


def test_statistics_of_training_rows_have_no_scatter(rows):
    X, y = rows[0], rows[1] > 0
    clf = KernelDiscriminant(KERNEL, regularization=0.0, statistics="training")
    with pytest.raises(InvalidInputError, match="statistics must be 'loo'"):
        clf.fit(X, y)


def test_rows_in_chunks(rows):
    X, y = rows[0], rows[1] > 0
    clf = MultipleKernelDiscriminant([KERNEL], regularization=0.0)
    with pytest.raises(InvalidInputError, match="need a positive λ"):
        clf.fit(open_rows(X, y))


@pytest.mark.parametrize("regularization", [-0.1, np.nan, np.inf])
def test_lambda_must_be_at_least_0(rows, regularization):
    X, y, _ = rows
    with pytest.raises(InvalidInputError, match="a finite number of at least 0"):
        MultipleKernelRidge([KERNEL], regularization=regularization).fit(X, y)
