"""The soft margins of Lanckriet 2004: value, gradient and certificates, against CVXPY."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from discernel.bank import DenseBank
from discernel.papers.margin.criterion import SoftMargin
from discernel.papers.margin.solver import Machine, MarginPoint, maximize
from discernel.targets import ClassTarget
from tests.conftest import make_problem

KINDS = ["SM1", "SM2", "SM2_C"]


def make(grams, y, kind, C=1.0):
    bank = DenseBank(grams, normalization="trace")
    return SoftMargin(bank, ClassTarget.from_labels(y), kind, C)


def random_weights(n, seed):
    return np.random.default_rng(seed).dirichlet(np.ones(n))


def kernels_of(grams, kind):
    """Raw matrices scaled to trace m; I first where C is learned."""
    m = grams.shape[1]
    scaled = [K * m / np.trace(K) for K in grams]
    return np.array([np.eye(m), *scaled] if kind == "SM2_C" else scaled)


def dual_value(K, y, kind, C):
    """max 2αᵀ1 − αᵀdiag(y)Kdiag(y)α as printed, for one kernel, by CVXPY."""
    sign = np.where(y == y.max(), 1.0, -1.0)
    alpha = cp.Variable(len(y), nonneg=True)
    K = K + np.eye(len(y)) / C if kind == "SM2" else K
    limits = [sign @ alpha == 0] + ([alpha <= C] if kind == "SM1" else [])
    quadratic = cp.quad_form(alpha, cp.psd_wrap(np.outer(sign, sign) * K))
    problem = cp.Problem(cp.Maximize(2 * cp.sum(alpha) - quadratic), limits)
    problem.solve(solver="CLARABEL")
    return problem.value


@pytest.mark.conic
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("seed", "C"), [(0, 1.0), (1, 0.01), (2, 30.0), (3, 1e3)])
def test_value_is_the_maximum_over_alpha(kind, seed, C):
    grams, y = make_problem(40, 2, 4, seed=seed)
    kernels = kernels_of(grams, kind)
    w = random_weights(len(kernels), seed)
    point = make(grams, y, kind, C).at(w)
    expected = dual_value(np.tensordot(w, kernels, 1), y, kind, C)
    assert point.value == pytest.approx(expected, rel=1e-7)
    assert point.intercept + point.gradient @ w == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_sm1_is_the_machine_of_scikit_learn(two_classes, C):
    grams, y = two_classes
    w = random_weights(len(grams), 3)
    K = np.tensordot(w, kernels_of(grams, "SM1"), 1)
    svc = SVC(C=C, kernel="precomputed", tol=1e-10).fit(K, y)
    beta = np.zeros(len(y))
    beta[svc.support_] = svc.dual_coef_[0]
    expected = 2 * np.abs(beta).sum() - beta @ K @ beta
    criterion = make(grams, y, "SM1", C)
    assert criterion.at(w).value == pytest.approx(expected, rel=1e-8)
    machine = maximize(criterion.fixed(w))
    np.testing.assert_allclose(machine.beta, beta, atol=1e-5 * C)


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_against_finite_differences(two_classes, kind):
    grams, y = two_classes
    criterion = make(grams, y, kind, 2.0)
    w, step = random_weights(criterion.n_weights, 4), 1e-5
    gradient = criterion.at(w).gradient
    for i, unit in enumerate(np.eye(len(w))):
        above, below = criterion.at(w + step * unit), criterion.at(w - step * unit)
        difference = (above.value - below.value) / (2 * step)
        np.testing.assert_allclose(gradient[i], difference, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.floats(0.05, 0.95))
def test_convex_along_random_chords(kind, seed, share):
    grams, y = make_problem(24, 2, 4, seed=seed % 5)
    criterion = make(grams, y, kind)
    a, b = (random_weights(criterion.n_weights, seed + i) for i in range(2))
    between = criterion.at(share * a + (1 - share) * b).value
    chord = share * criterion.at(a).value + (1 - share) * criterion.at(b).value
    assert between <= chord * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), noise=st.sampled_from([0.0, 1e-3, 0.1, 1.0]))
def test_any_machine_bounds_from_both_sides(kind, seed, noise):
    """Weak duality: β need not be optimal, nor the threshold; only feasible."""
    grams, y = make_problem(24, 2, 4, seed=seed % 5)
    criterion = make(grams, y, kind, 1.5)
    rng = np.random.default_rng(seed)
    here, there = (random_weights(criterion.n_weights, seed + i) for i in range(2))
    exact = maximize(criterion.fixed(here))
    size = noise * np.abs(exact.beta).max()
    beta = criterion.feasible(exact.beta + size * rng.standard_normal(len(y)))
    machine = Machine(beta, exact.threshold + noise * rng.standard_normal())
    point = MarginPoint(criterion, here, machine, criterion.products(beta))
    assert point.value >= criterion.at(here).value * (1 - 1e-9)
    elsewhere = criterion.at(there).value * (1 + 1e-9)
    assert point.bound <= elsewhere
    assert point.intercept + point.gradient @ there <= elsewhere
    assert point.bound == pytest.approx(criterion.lower_bound(beta), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_feasible_is_feasible_and_leaves_what_is(two_classes, kind):
    grams, y = two_classes
    criterion = make(grams, y, kind, 0.5)
    wild = 3.0 * np.random.default_rng(0).standard_normal(len(y))
    beta = criterion.feasible(wild)
    alpha = criterion.signs * beta
    assert abs(beta.sum()) <= 1e-13
    assert (alpha >= 0).all()
    assert alpha.max() <= criterion.limit
    np.testing.assert_allclose(criterion.feasible(beta), beta, rtol=1e-14)
    assert not criterion.feasible(-criterion.signs).any()


def test_without_slacks_the_machine_is_scaled_to_a_margin_of_one():
    """Where the identity has no weight, the value is that of the hard margin, or infinite."""
    X = np.array([[0.0], [1.0], [3.0], [4.0]])
    criterion = make((X @ X.T)[None], np.array([0, 0, 1, 1]), "SM2_C")
    scale = 4 / np.trace(X @ X.T)
    # The widest gap is that between 1 and 3: ‖v‖² = (2/2)² in the units of X.
    assert criterion.at(np.array([0.0, 1.0])).value == pytest.approx(1.0 / scale, rel=1e-8)
    mixed = make((X @ X.T)[None], np.array([0, 1, 0, 1]), "SM2_C")
    blind = Machine(np.array([-1.0, 1.0, -1.0, 1.0]), 0.0)
    products = mixed.products(blind.beta)
    assert mixed.upper_bound(np.array([0.0, 1.0]), blind, products) == np.inf
    assert mixed.upper_bound(np.array([0.5, 0.5]), blind, products) < np.inf


def test_the_learned_cost_goes_with_weights_that_sum_to_one(two_classes):
    """w_0 I + Σ w_iK_i is a multiple of K(w') + I/C."""
    grams, y = two_classes
    criterion = make(grams, y, "SM2_C")
    weights = random_weights(criterion.n_weights, 5)
    split = criterion.split(weights)
    kernels, C = split.weights, split.parameters["C"]
    assert kernels.sum() == pytest.approx(1.0)
    fixed = make(grams, y, "SM2", C).at(kernels).value
    assert fixed / (1.0 - weights[0]) == pytest.approx(criterion.at(weights).value, rel=1e-9)
    only_identity = np.eye(criterion.n_weights)[0]
    split = criterion.split(only_identity)
    np.testing.assert_allclose(split.weights, 1.0 / len(grams))
    assert 0 < split.parameters["C"] <= 1e-8
    assert criterion.split(np.eye(criterion.n_weights)[1]).parameters == {"C": np.inf}
    assert make(grams, y, "SM2").split(weights[1:]).parameters == {}


def test_the_second_derivative_is_refused(two_classes):
    point = make(*two_classes, "SM2").at(random_weights(5, 0))
    with pytest.raises(NotImplementedError, match="differentiable once"):
        _ = point.hessian
