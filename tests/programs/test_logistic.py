"""Kernel logistic regression: against scikit-learn's on features, weights, offsets, tolerances."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from discernel.programs.logistic import (
    LogisticProblem,
    feature_preconditioner,
    kernel_preconditioner,
)


def problem(load, *, binary=False, weights=None):
    X, y = load(return_X_y=True)
    X, y = (X[y > 0], y[y > 0] - 1) if binary else (X, y)
    weights = np.ones(len(y)) if weights is None else weights[: len(y)]
    return scale(X), LogisticProblem(y, len(np.unique(y)), weights)


def centered(logits):
    return logits - logits.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("regularization", [10.0, 2.0])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_it_is_the_logistic_regression_of_features(load, binary, regularization):
    """With the kernel XXᵀ; of two classes, scikit-learn has one column of coefficients for two."""
    weights = np.random.default_rng(0).uniform(0.2, 3.0, 200)
    X, given = problem(load, binary=binary, weights=weights)
    roots = np.sqrt(given.weights)[:, None]
    kernel = roots * (X @ X.T) * roots.T
    system = kernel_preconditioner(kernel, given.variance, regularization)
    fit = given.minimize(system, regularization, tol=1e-12)
    assert fit.converged
    np.testing.assert_allclose(kernel @ fit.coef, fit.mapped, atol=1e-8 * np.abs(fit.mapped).max())
    # ½λ‖w₁ − w₀‖²/2 of two columns of opposite sign is that of one column with λ/2.
    strength = regularization / 2 if binary else regularization
    other = LogisticRegression(C=1 / strength, tol=1e-12, max_iter=10000, solver="newton-cg")
    other.fit(X, given.codes, sample_weight=given.weights)
    found = softmax(fit.mapped / roots + fit.intercept, axis=1)
    np.testing.assert_allclose(found, other.predict_proba(X), atol=1e-5)


def test_features_and_their_kernel_give_the_same_fit():
    X, given = problem(load_wine)
    by_kernel = given.minimize(kernel_preconditioner(X @ X.T, given.variance, 0.5), 0.5)
    by_features = given.minimize(feature_preconditioner(X, given.variance, 0.5), 0.5)
    np.testing.assert_allclose(by_features.coef, by_kernel.coef, atol=1e-8)
    np.testing.assert_allclose(by_features.intercept, by_kernel.intercept, atol=1e-8)


def test_a_weight_is_as_many_copies():
    counts = np.random.default_rng(1).integers(1, 4, 200)
    X, given = problem(load_iris, weights=counts.astype(float))
    counts, roots = counts[: len(X)], np.sqrt(given.weights)[:, None]
    kernel = X @ X.T
    system = kernel_preconditioner(roots * kernel * roots.T, given.variance, 1.0)
    weighted = given.minimize(system, 1.0, tol=1e-14)
    rows = np.repeat(np.arange(len(X)), counts)
    copies = LogisticProblem(given.codes[rows], 3, np.ones(len(rows)))
    system = kernel_preconditioner(kernel[np.ix_(rows, rows)], copies.variance, 1.0)
    repeated = copies.minimize(system, 1.0, tol=1e-14)
    assert copies.variance == pytest.approx(given.variance)
    found = centered(weighted.mapped / roots + weighted.intercept)[rows]
    np.testing.assert_allclose(found, centered(repeated.mapped + repeated.intercept), atol=1e-5)


def test_an_offset_takes_the_place_of_the_intercept():
    """The gradient vanishes: √ω(P − Y) + λa = 0, without a constant that is not penalised."""
    X, given = problem(load_wine)
    offset = np.random.default_rng(0).standard_normal((len(X), 3))
    shifted = LogisticProblem(given.codes, 3, given.weights, offset)
    fit = shifted.minimize(feature_preconditioner(X, shifted.variance, 1.0), 1.0, tol=1e-15)
    np.testing.assert_array_equal(fit.intercept, 0.0)
    residuals = softmax(offset + X @ (X.T @ fit.coef), axis=1) - np.eye(3)[given.codes]
    np.testing.assert_allclose(fit.coef, -residuals, atol=1e-6)


def test_a_smaller_tolerance_comes_closer():
    X, given = problem(load_wine)
    kernel, losses = X @ X.T, []
    for tol in (1e-2, 1e-4, 1e-12):
        fit = given.minimize(kernel_preconditioner(kernel, given.variance, 0.1), 0.1, tol=tol)
        told = log_softmax(fit.mapped + fit.intercept, axis=1)
        fitted = -told[np.arange(len(X)), given.codes].sum()
        losses.append(fitted + 0.05 * np.sum(fit.coef * fit.mapped))
    assert losses[0] > losses[1] > losses[2]
