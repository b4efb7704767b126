"""Gradient ascent and the exact maximum of the separability."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from discernel.criteria.conformal import ConformalSeparability, factor_design
from discernel.kernels import RBF
from discernel.learners.conformal import ascend, maximize
from discernel.targets import ClassTarget


@pytest.fixture(scope="module")
def criterion():
    X, y = load_wine(return_X_y=True)
    X, kernel = scale(X), RBF(width=4.0)
    design = factor_design(kernel(X, X[::20]))
    return ConformalSeparability(kernel(X), design, ClassTarget.from_labels(y))


def test_ascent_follows_the_rule_of_the_paper(criterion):
    """α ← α + η (1 − t/T) (M/J₂ − (J₁/J₂²) N) α, written out."""
    M, N = criterion.between, criterion.within
    alpha = np.eye(len(M))[0]
    for step in range(30):
        J1, J2 = alpha @ M @ alpha, alpha @ N @ alpha
        alpha = alpha + 0.05 * (1 - step / 30) * (M / J2 - J1 / J2**2 * N) @ alpha
        alpha /= np.linalg.norm(alpha)
    found = ascend(criterion, rate=0.05, n_steps=30)
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-9)
    assert len(found.history) == 31
    assert found.value == found.history[-1] > found.history[0]


def test_ascent_starts_from_the_plain_kernel(criterion):
    plain = criterion.value(np.eye(len(criterion.within))[0])
    assert ascend(criterion).history[0] == plain


def test_steps_far_too_long_never_make_it_worse(criterion):
    found = ascend(criterion, rate=1e4, n_steps=20)
    assert found.value == max(found.history) == criterion.value(found.alpha)
    assert min(found.history) < max(found.history)


def test_exact_maximum_is_that_of_a_general_optimizer(criterion):
    found = maximize(criterion, ridge=0.0)
    best = max(
        -minimize(
            lambda alpha: -criterion.value(alpha), start, jac=lambda a: -criterion.gradient(a)
        ).fun
        for start in np.random.default_rng(0).standard_normal((5, len(criterion.within)))
    )
    assert found.value == pytest.approx(best, rel=1e-4)
    assert found.value >= best * (1 - 1e-9)


def test_ascent_tends_to_the_exact_maximum(criterion):
    exact = maximize(criterion, ridge=0.0)
    assert ascend(criterion).value < ascend(criterion, rate=0.5, n_steps=5000).value < exact.value
    assert ascend(criterion, rate=0.5, n_steps=5000).value > 0.9 * exact.value


def test_ridge_solves_the_ratio_it_states(criterion):
    size = len(criterion.within)
    within = criterion.within + 0.1 * np.trace(criterion.within) / size * np.eye(size)

    def ratio(alpha):
        return (alpha @ criterion.between @ alpha) / (alpha @ within @ alpha)

    found = maximize(criterion, ridge=0.1)
    rng = np.random.default_rng(1)
    others = found.alpha + 0.01 * rng.standard_normal((200, size))
    assert ratio(found.alpha) >= max(ratio(alpha) for alpha in others)
    assert found.value < maximize(criterion, ridge=0.0).value


def test_classes_without_width_end_the_ascent():
    y = np.repeat([0, 1], 3)
    gram = (y[:, None] == y).astype(float)
    criterion = ConformalSeparability(gram, np.ones((6, 1)), ClassTarget.from_labels(y))
    assert ascend(criterion).history == (np.inf,)
    assert maximize(criterion).value == np.inf
