"""Newton's method and cutting planes on convex functions of known minimum."""

from itertools import pairwise

import numpy as np
import pytest

from discernel.bank import DenseBank
from discernel.programs.base import ConvexProgram, Point
from discernel.programs.newton import Newton, newton_target
from discernel.programs.rkda import RKDAProgram
from discernel.programs.silp import SILP
from discernel.programs.simplex import minimize_quadratic, normalize
from discernel.programs.solution import Status, Task
from discernel.targets import ClassTarget
from tests.conftest import make_problem


class Given(ConvexProgram):
    """A function by its value, gradient and Hessian, with the tangent as its certificate."""

    def __init__(self, n, value, gradient, hessian):
        self._n, self._functions, self.seen = n, (value, gradient, hessian), []

    @property
    def n_weights(self):
        return self._n

    def at(self, weights):
        self.seen.append(weights)
        return GivenPoint(weights, *(function(weights) for function in self._functions))


class GivenPoint(Point):
    gradient = hessian = bound = None

    def __init__(self, weights, value, gradient, hessian):
        self.weights, self.value = weights, float(value)
        self.gradient, self.hessian = gradient, hessian
        self.bound = self.value + float(gradient.min() - weights @ gradient)


def hyperbolas(center, sharp):
    """Σ √(1 + s²(w − c)²): convex, flat far out, where full Newton steps overshoot."""

    def inside(w):
        return 1.0 + (sharp * (w - center)) ** 2

    return Given(
        len(center),
        lambda w: np.sqrt(inside(w)).sum(),
        lambda w: sharp**2 * (w - center) / np.sqrt(inside(w)),
        lambda w: np.diag(sharp**2 / inside(w) ** 1.5),
    )


def solve(solver, criterion, tol=1e-8, init=None, max_iter=None):
    values = []
    task = Task(tol, max_iter, init, lambda iteration, value, gap, weights: values.append(value))
    return solver.solve(criterion, task), values


@pytest.mark.parametrize("sharp", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_steps_that_overshoot_are_shortened(seed, sharp):
    center = np.random.default_rng(seed).dirichlet(np.ones(4))
    found, values = solve(Newton(), hyperbolas(center, sharp), init=np.eye(4)[seed])
    assert found.status is Status.CONVERGED
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(values))
    np.testing.assert_allclose(found.weights, center, atol=1e-3)
    assert found.value == pytest.approx(4.0, rel=1e-7)


def test_a_step_of_newton_on_a_quadratic_is_the_last():
    rng = np.random.default_rng(0)
    A, best = rng.standard_normal((5, 5)), rng.dirichlet(np.ones(5))
    Q = A @ A.T
    quadratic = Given(
        5, lambda w: 1.0 + 0.5 * (w - best) @ Q @ (w - best), lambda w: Q @ (w - best), lambda w: Q
    )
    found, _ = solve(Newton(), quadratic)
    assert found.n_iter == 1
    np.testing.assert_allclose(found.weights, best, atol=1e-6)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_a_linear_criterion_is_least_at_a_vertex(size):
    """No curvature at all: there is nothing to divide by, whatever the units of the criterion."""
    c = size * (1.0 + np.random.default_rng(0).random(6))
    linear = Given(6, lambda w: c @ w, lambda w: c, lambda w: np.zeros((6, 6)))
    found, _ = solve(Newton(), linear)
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.weights, np.eye(6)[c.argmin()], atol=1e-8)


@pytest.mark.parametrize("lam", [1e-1, 1e-3])
def test_duplicates_make_no_model_singular(lam):
    grams, y = make_problem(24, 2, 3)
    copies = np.concatenate([grams, grams, grams])
    target = ClassTarget.from_labels(y)
    once, _ = solve(Newton(), RKDAProgram(DenseBank(grams), target, lam))
    thrice, _ = solve(Newton(), RKDAProgram(DenseBank(copies), target, lam))
    assert thrice.status is Status.CONVERGED
    assert thrice.value == pytest.approx(once.value, rel=1e-8)
    np.testing.assert_allclose(thrice.weights.reshape(3, 3).sum(axis=0), once.weights, atol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_steps_go_on_closing_the_gap_where_the_value_has_stopped_falling(seed):
    """The gap is of first order in the distance to the optimum, the value of second order."""
    grams, y = make_problem(40, 3, 6, seed=seed)
    criterion = RKDAProgram(DenseBank(grams), ClassTarget.from_labels(y), 1e-2)
    found, _ = solve(Newton(), criterion, tol=1e-11)
    assert found.status is Status.CONVERGED
    assert found.gap <= 1e-11


@pytest.mark.parametrize("solver", [Newton(), SILP()])
def test_what_is_reported_is_the_best_seen_and_never_rises(solver):
    """Cutting planes jump; the value that is told is that of the best weights so far."""
    for seed in range(4):
        grams, y = make_problem(30, 2, 5, seed=seed)
        criterion = RKDAProgram(DenseBank(grams), ClassTarget.from_labels(y), 1e-3)
        found, values = solve(solver, criterion, tol=1e-6, init=np.eye(5)[seed])
        assert values == sorted(values, reverse=True)
        assert found.value == min(values)
        assert found.value == pytest.approx(criterion.at(found.weights).value, rel=1e-12)


def test_the_bound_of_cutting_planes_is_one_after_every_number_of_cuts():
    grams, y = make_problem(30, 3, 5)
    criterion = RKDAProgram(DenseBank(grams), ClassTarget.from_labels(y), 1e-2)
    optimum = solve(Newton(), criterion, tol=1e-12)[0].value
    bounds = [solve(SILP(), criterion, tol=1e-12, max_iter=n)[0].bound for n in range(1, 12)]
    assert max(bounds) <= optimum * (1 + 1e-12)
    assert bounds == sorted(bounds)
    assert bounds[-1] > 0.9 * optimum


@pytest.mark.parametrize("seed", [4748, 5830, 6450, 6576, 6716, 7430, *range(20)])
def test_the_quadratic_program_is_solved_where_many_weights_reach_zero(seed):
    """Against all supports in turn; with the first seeds, it matters which weight leaves first."""
    rng = np.random.default_rng(seed)
    n, rank = rng.integers(4, 9), rng.integers(1, 5)
    A = rng.standard_normal((n, rank))
    Q = A @ A.T + 1e-6 * np.eye(n)
    c = 10.0 * rng.standard_normal(n) if seed % 2 else rng.standard_normal(n)

    def value(x):
        return c @ x + 0.5 * x @ Q @ x

    x = minimize_quadratic(c, Q, rng.dirichlet(np.ones(n)))
    assert x.min() >= 0
    assert x.sum() == pytest.approx(1.0)
    least = min(value(point) for point in stationary_points(c, Q))
    assert value(x) <= least + 1e-7 * abs(least)


def stationary_points(c, Q):
    """Yield the minimisers with Σx = 1 on every support, as far as they are feasible."""
    for code in range(1, 2 ** len(c)):
        support = np.flatnonzero([code >> i & 1 for i in range(len(c))])
        k = len(support)
        system = np.ones((k + 1, k + 1))
        system[:k, :k], system[k, k] = Q[np.ix_(support, support)], 0.0
        inside = np.linalg.solve(system, np.append(-c[support], 1.0))[:k]
        if inside.min() >= 0:
            point = np.zeros(len(c))
            point[support] = inside
            yield point


@pytest.mark.parametrize("weights", [[np.inf, 1.0], [np.nan, 1.0], [0.0, 0.0], [-1.0, -2.0]])
def test_weights_of_which_nothing_is_left_become_equal(weights):
    np.testing.assert_array_equal(normalize(np.array(weights)), [0.5, 0.5])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("curvature", [-1e3, 0.0, -1e-300])
def test_a_curvature_of_rounding_errors_does_not_overflow(curvature):
    """One kernel has no gradient along the simplex, and of λ = 0 the Hessian is rounding errors."""
    point = GivenPoint(np.ones(1), 0.0, np.array([-2.0]), np.array([[curvature]]))
    assert newton_target(point) == 1.0
