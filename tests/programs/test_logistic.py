"""Kernel logistic regression: against slow solvers, weights as copies, order and rounding."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from discernel.exceptions import NumericalError
from discernel.kernels import RBF
from discernel.programs import logistic
from discernel.programs.logistic import LogisticProblem, _Point, _Preconditioner


def rows(load, *, binary=False, weighted=False):
    """Return rows, classes and weights."""
    X, y = load(return_X_y=True)
    X, y = (X[y > 0], y[y > 0] - 1) if binary else (X, y)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    return scale(X), y, weights if weighted else np.ones(len(y))


def problem(kernel, codes, weights):
    """Return the problem of a kernel without weights."""
    roots = np.sqrt(weights)[:, None]
    return LogisticProblem(roots * kernel * roots.T, codes, len(np.unique(codes)), weights)


def probabilities(given, found):
    return softmax(found.mapped / np.sqrt(given.weights)[:, None] + found.intercept, axis=1)


@pytest.mark.parametrize("regularization", [1e-1, 1e-3])
@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_are_those_of_a_slow_solver(weighted, regularization):
    """SciPy's minimiser on α and b, which knows nothing of the kernel but products with it."""
    X, y, weights = (values[::5] for values in rows(load_iris, weighted=weighted))
    kernel, own, n = RBF(width=2.0)(X), np.eye(3)[y], len(y)

    def loss(flat):
        coef, intercept = flat[3:].reshape(n, 3), flat[:3]
        mapped = kernel @ coef
        told = log_softmax(mapped + intercept, axis=1)
        residuals = weights[:, None] * (np.exp(told) - own)
        gradient = kernel @ (residuals + regularization * coef)
        value = 0.5 * regularization * np.sum(coef * mapped)
        value -= np.sum(weights[:, None] * own * told)
        return value, np.concatenate([residuals.sum(axis=0), gradient.ravel()])

    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-10}
    slow = minimize(loss, np.zeros(3 + 3 * n), jac=True, method="L-BFGS-B", options=options)
    given = problem(kernel, y, weights)
    found = given.minimize(regularization, tol=1e-12)
    ours = np.concatenate([found.intercept, (np.sqrt(weights)[:, None] * found.coef).ravel()])
    assert loss(ours)[0] <= slow.fun * (1 + 1e-9)
    expected = softmax(kernel @ slow.x[3:].reshape(n, 3) + slow.x[:3], axis=1)
    np.testing.assert_allclose(probabilities(given, found), expected, atol=1e-4)


@pytest.mark.parametrize("regularization", [10.0, 0.1])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_it_is_the_logistic_regression_of_features(load, binary, regularization):
    """With the kernel XXᵀ; of two classes, scikit-learn has one column of coefficients for two."""
    X, y, weights = rows(load, binary=binary, weighted=True)
    given = problem(X @ X.T, y, weights)
    found = given.minimize(regularization, tol=1e-12)
    size = np.abs(found.mapped).max()
    np.testing.assert_allclose(given.kernel @ found.coef, found.mapped, atol=1e-6 * size)
    # ½λ‖w₁ − w₀‖²/2 of two columns of opposite sign is that of one column with λ/2.
    strength = regularization / 2 if binary else regularization
    other = LogisticRegression(C=1 / strength, tol=1e-12, max_iter=10000, solver="newton-cg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on some processors its last steps are rounding errors
        other.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(probabilities(given, found), other.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("regularization", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_the_gradient_vanishes(load, regularization):
    """√ω(P − Y) + λa = 0, and residuals sum to 0 for the intercept, which is not penalised."""
    X, y, weights = rows(load, weighted=True)
    given = problem(RBF(width=3.0)(X), y, weights)
    found = given.minimize(regularization, tol=1e-10)
    residuals = probabilities(given, found) - np.eye(3)[y]
    left = np.sqrt(weights)[:, None] * residuals + regularization * found.coef
    assert np.abs(left).max() < 1e-5
    assert np.abs(weights @ residuals).max() < 1e-5


def test_the_hessian_is_the_derivative_of_the_gradient():
    X, y, weights = rows(load_wine, weighted=True)
    given, rng = problem(RBF(width=3.0)(X), y, weights), np.random.default_rng(0)
    point = _Point.of(given, 0.1, given.minimize(0.1, tol=1e-2))
    coef = rng.standard_normal((len(y), 3))
    step = given.start()._replace(
        coef=coef, mapped=given.kernel @ coef, intercept=rng.standard_normal(3)
    )
    after, before = (
        _Point.of(given, 0.1, point.fit.plus(step, length)).gradient for length in (1e-5, -1e-5)
    )
    found = point.hessian(np.vstack(step))
    change = (np.vstack(after) - np.vstack(before)) / 2e-5
    np.testing.assert_allclose(found, change, atol=1e-7)


def test_a_weight_is_as_many_copies():
    X, y, _ = rows(load_iris)
    counts, kernel = np.random.default_rng(1).integers(1, 4, len(y)), RBF(width=2.0)(X)
    weighted = problem(kernel, y, counts.astype(float))
    found = probabilities(weighted, weighted.minimize(1e-2, tol=1e-12))
    each = np.repeat(np.arange(len(y)), counts)
    copies = problem(kernel[np.ix_(each, each)], y[each], np.ones(len(each)))
    repeated = probabilities(copies, copies.minimize(1e-2, tol=1e-12))
    np.testing.assert_allclose(found[each], repeated, atol=1e-7)


@pytest.mark.parametrize("regularization", [1e-2, 1e-6])
def test_neither_order_nor_rounding_of_the_kernel_shows(regularization):
    X, y, weights = rows(load_wine)
    kernel, order = RBF(width=5.0)(X), np.random.default_rng(0).permutation(len(X))
    noise = np.random.default_rng(1).standard_normal(kernel.shape) * 1e-13
    given = problem(kernel, y, weights)
    shuffled = problem((kernel + noise + noise.T)[np.ix_(order, order)], y[order], weights)
    first, second = (
        probabilities(one, one.minimize(regularization, tol=1e-9)) for one in (given, shuffled)
    )
    np.testing.assert_allclose(second, first[order], atol=1e-8)


@pytest.mark.parametrize("regularization", [1.0, 1e-2, 1e-5])
@pytest.mark.parametrize("kernel", [lambda X: X @ X.T, RBF(width=5.0), RBF(width=0.3)])
def test_preconditioners_of_single_precision_are_enough(kernel, regularization, monkeypatch):
    """A rough tolerance ends near the optimum of a fine one; singular kernels and tiny λ too."""
    monkeypatch.setattr(logistic, "_SINGLE_ROWS", 0)
    X, y, weights = rows(load_wine, weighted=True)
    given, used = problem(kernel(X), y, weights), []
    right = _Preconditioner._factor_of

    def watched(self, matrix, nugget):
        used.append(matrix.dtype)
        return right(self, matrix, nugget)

    monkeypatch.setattr(_Preconditioner, "_factor_of", watched)
    best = given.minimize(regularization, tol=1e-11)
    assert set(used) == {np.dtype(np.float64)}
    used.clear()
    rough = given.minimize(regularization, tol=1e-5)
    assert np.dtype(np.float32) in used or regularization < 0.1
    assert used[0] == np.float64 or regularization > 1e-4
    values = [_Point.of(given, regularization, fit).value for fit in (rough, best)]
    # The last decrease was below the tolerance. On one processor 4e-6 is left with λ = 1e-5.
    assert values[0] <= values[1] * (1 + 1e-5)
    np.testing.assert_allclose(probabilities(given, rough), probabilities(given, best), atol=3e-3)


@pytest.mark.parametrize("size", [1e3, 1e7])
def test_a_bad_start_is_replaced_by_none(size):
    """From coefficients of 1e7 there was no step, and these were the result."""
    X, y, weights = rows(load_wine)
    given = problem(RBF(width=5.0)(X), y, weights)
    coef = size * np.random.default_rng(0).standard_normal((len(y), 3))
    start = given.start()._replace(coef=coef, mapped=given.times_kernel(coef))
    found, expected = (given.minimize(1e-7, tol=1e-9, start=one) for one in (start, None))
    np.testing.assert_array_equal(found.coef, expected.coef)


def test_a_preconditioner_that_fails_in_single_precision_is_one_of_double(monkeypatch):
    monkeypatch.setattr(logistic, "_SINGLE_ROWS", 0)
    X, y, weights = rows(load_wine)
    given = problem(RBF(width=5.0)(X), y, weights)
    expected = given.minimize(1e-2, tol=1e-5)
    right = _Preconditioner._factor_of

    def failing(self, matrix, nugget):
        if matrix.dtype == np.float32:
            raise NumericalError("not definite")
        return right(self, matrix, nugget)

    monkeypatch.setattr(_Preconditioner, "_factor_of", failing)
    found = given.minimize(1e-2, tol=1e-5)
    np.testing.assert_allclose(
        probabilities(given, found), probabilities(given, expected), atol=1e-4
    )


def test_the_kernel_is_kept():
    X, y, weights = rows(load_wine)
    given = problem(RBF(width=5.0)(X), y, weights)
    before = given.kernel.copy()
    given.minimize(1e-2, tol=1e-12)
    np.testing.assert_array_equal(given.kernel, before)


def test_a_smaller_tolerance_comes_closer():
    X, y, weights = rows(load_wine)
    given = problem(RBF(width=5.0)(X), y, weights)
    first, second, third = (
        _Point.of(given, 1e-3, given.minimize(1e-3, tol=tol)).value for tol in (1e-2, 1e-4, 1e-9)
    )
    assert first > second > third


def test_a_class_without_rows_is_unlikely():
    X, y, weights = rows(load_iris)
    given = LogisticProblem(RBF(width=2.0)(X), y, 4, weights)
    found = probabilities(given, given.minimize(1e-2, tol=1e-6))
    assert np.isfinite(found).all()
    assert found[:, 3].max() < 0.02
