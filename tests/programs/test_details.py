"""Smaller promises of the criteria, each by its definition."""

import numpy as np
import pytest

from discernel.bank import DenseBank
from discernel.criteria import KernelLeastSquares
from discernel.papers.akfd.criterion import (
    critical_nu,
    minimize_discriminant,
    objective,
    one_against_rest,
)
from discernel.papers.separability.criterion import Scatter, critical_alpha
from discernel.targets import ClassTarget
from tests import reference
from tests.conftest import make_problem


@pytest.mark.parametrize("seed", range(3))
def test_least_squares_with_a_ridge_for_every_sample(seed):
    """Fitted values are G̃·coef + b, and left-out ones those of refits, whatever the ridges are."""
    grams, _ = make_problem(20, 2, 3, seed=seed)
    rng = np.random.default_rng(seed)
    ridge, targets = rng.uniform(0.01, 2.0, size=20), rng.standard_normal((20, 2))
    bank, weights = DenseBank(grams), rng.dirichlet(np.ones(3))
    K = bank.combined(weights)
    fit = KernelLeastSquares(bank.system(weights, ridge), ridge, targets)
    coef, intercept = reference.least_squares(K, ridge, targets)
    np.testing.assert_allclose(fit.coef, coef, atol=1e-8)
    np.testing.assert_allclose(fit.intercept, intercept, atol=1e-8)
    np.testing.assert_allclose(fit.fitted, K @ coef + intercept, atol=1e-8)
    left_out = reference.leave_one_out(K, ridge, targets)
    np.testing.assert_allclose(fit.leave_one_out, left_out, atol=1e-7)
    error = np.mean((targets - left_out) ** 2)
    assert fit.leave_one_out_error() == pytest.approx(error, rel=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_critical_nu_is_one_over_the_largest_length_of_a_combination(n_classes):
    """‖Σ a_jK_jD‖ over ‖a‖ = 1: no draw is longer; the best right singular vector is as long."""
    grams, y = make_problem(24, n_classes, 4)
    D = one_against_rest(ClassTarget.from_labels(y))
    products = DenseBank(grams).products(D)
    largest = 1.0 / critical_nu(products)
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((200, 4))
    draws /= np.linalg.norm(draws, axis=1, keepdims=True)
    lengths = [np.linalg.norm(np.tensordot(a, products, 1)) for a in draws]
    assert max(lengths) <= largest * (1 + 1e-12)
    best = np.linalg.svd(products.reshape(4, -1))[0][:, 0]
    assert np.linalg.norm(np.tensordot(best, products, 1)) == pytest.approx(largest)


def test_up_to_the_critical_nu_weights_of_zero_are_best():
    """Whatever the weights: with the best discriminant, Eq. (20) is no less than at 0."""
    grams, y = make_problem(24, 2, 4)
    bank, D = DenseBank(grams), one_against_rest(ClassTarget.from_labels(y))
    nu = critical_nu(bank.products(D))
    nothing = 0.5 * nu * np.sum(D**2)
    rng = np.random.default_rng(1)
    for size in (1e-3, 0.1, 1.0, 10.0):
        for weights in size * rng.dirichlet(np.ones(4), size=5):
            v, gamma = minimize_discriminant(bank.system(weights, 1 / np.sqrt(nu)), D, nu)
            value = objective(bank.products(v), D, nu, weights, v, gamma)
            assert value >= nothing * (1 - 1e-9)


def test_what_labelled_rows_do_not_see_has_no_ratio_but_that_of_rounding():
    scatter = Scatter(np.array([1.0, 3e-17, 0.2]), np.array([2.0, 1e-20, 0.5]))
    assert critical_alpha(scatter) == pytest.approx(0.5)
