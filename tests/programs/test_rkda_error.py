"""What an inexact B costs: the value is never too large, never too small by more than its error.

With N = ρI + Σ w_iK_i and B = N⁻¹T + E, the form 2⟨T, B⟩ − ⟨B, NB⟩ is ⟨T, N⁻¹T⟩ − ⟨E, NE⟩, and
what is missing is ⟨R, N⁻¹R⟩ ≤ ‖R‖²/ρ with the residual R = T − NB.
"""

import numpy as np
import pytest

from discernel.bank import DenseBank, System, TiledBank
from discernel.kernels import RBF
from discernel.programs.rkda import JointRKDAProgram, RKDAProgram, ShrunkRKDAProgram
from discernel.targets import ClassTarget
from tests import reference
from tests.conftest import make_problem

LAMBDAS = [1e-4, 1e-2, 1.0, 30.0]


class Perturbed(System):
    """A system whose solutions are off by a given share of their length, in a given direction."""

    def __init__(self, system, error, direction):
        self._system, self._error, self._direction = system, error, direction
        self.tol = error

    def solve(self, right):
        exact = self._system.solve(right)
        if self._direction is None:
            off = np.random.default_rng(0).standard_normal(exact.shape)
        else:
            off = np.broadcast_to(self._direction[:, None], exact.shape)
        return exact + self._error * np.linalg.norm(exact) * off / np.linalg.norm(off)

    def inverse_diagonal(self):
        return self._system.inverse_diagonal()


class RoughBank(DenseBank):
    """A bank whose rough systems are as rough as we like."""

    def __init__(self, grams, error, direction=None):
        super().__init__(grams)
        self._error, self._direction = error, direction

    def system(self, weights, ridge, *, rough=False):
        system = super().system(weights, ridge)
        return Perturbed(system, self._error, self._direction) if rough else system


def problem(lam, error, direction=None, seed=0, n_classes=3):
    grams, y = make_problem(30, n_classes, 4, seed=seed)
    weights = np.random.default_rng(seed).dirichlet(np.ones(4))
    bank, target = RoughBank(grams, error, direction), ClassTarget.from_labels(y)
    return RKDAProgram(bank, target, lam), weights, reference.rkda(grams, y, weights, lam)


def matrix(criterion, weights):
    """N."""
    return criterion.ridge * np.eye(criterion.bank.n_samples) + criterion.bank.combined(weights)


@pytest.mark.parametrize("error", [1e-7, 1e-3, 0.3, 10.0])
@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("seed", range(3))
def test_the_true_value_is_between_the_value_and_the_value_with_its_error(seed, lam, error):
    criterion, weights, exact = problem(lam, error, seed=seed, n_classes=2 + seed)
    point = criterion.rough_at(weights)
    assert point.value <= exact * (1 + 1e-10)
    assert point.value + point.error >= exact * (1 - 1e-10)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_the_error_is_reached_where_no_kernel_sees_the_residual(lam):
    """K_i1 = 0 for centred kernels: along the ones, ⟨R, N⁻¹R⟩ is ‖R‖²/ρ itself."""
    criterion, weights, exact = problem(lam, 0.5, np.ones(30))
    point = criterion.rough_at(weights)
    assert point.value < exact * (1 - 1e-6)
    assert point.value + point.error == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("error", [1e-4, 1e-2, 1.0])
def test_errors_of_the_dual_point_enter_the_value_squared(lam, error):
    """⟨T, N⁻¹T⟩ − value = ⟨E, NE⟩ to the digit, whatever E is."""
    criterion, weights, _ = problem(lam, error)
    point, best = criterion.rough_at(weights), criterion.at(weights)
    E, N = point.dual - best.dual, matrix(criterion, weights)
    missing = criterion.scale * np.sum(E * (N @ E))
    assert best.value - point.value == pytest.approx(missing, rel=1e-6, abs=1e-11 * best.value)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_an_exact_dual_point_has_no_error(lam):
    criterion, weights, exact = problem(lam, 1.0)
    assert criterion.at(weights).error <= 1e-10 * exact
    assert criterion.rough_at(weights).error > 1e-3 * exact


@pytest.mark.parametrize("error", [1e-3, 0.3])
@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_a_rough_dual_point_bounds_the_optimum_all_the_same(lam, error):
    criterion, weights, _ = problem(lam, error)
    others = np.random.default_rng(1).dirichlet(np.ones(4), size=50)
    least = min(criterion.at(w).value for w in (*others, *np.eye(4)))
    assert criterion.rough_at(weights).bound <= least


@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_the_pull_towards_equal_weights_has_the_same_error(lam):
    """(ρ/2)‖w − 1/p‖² is added to the value and to the truth."""
    grams, y = make_problem(30, 2, 4)
    target, weights = ClassTarget.from_labels(y), np.array([0.7, 0.1, 0.2, 0.0])
    plain = RKDAProgram(RoughBank(grams, 0.1), target, lam)
    shrunk = ShrunkRKDAProgram(RoughBank(grams, 0.1), target, lam, 0.3)
    exact, point = shrunk.at(weights), shrunk.rough_at(weights)
    assert point.error == pytest.approx(plain.rough_at(weights).error)
    assert point.value < exact.value <= point.value + point.error
    away = weights - 0.25
    pull = 0.5 * 0.3 * 4 * plain.at(np.full(4, 0.25)).value * (away @ away)
    assert exact.value - plain.at(weights).value == pytest.approx(pull)
    assert point.value - plain.rough_at(weights).value == pytest.approx(pull)


@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_estimates_of_the_shrunk_criterion_include_the_pull(lam):
    grams, y = make_problem(30, 2, 4)
    criterion = ShrunkRKDAProgram(DenseBank(grams), ClassTarget.from_labels(y), lam, 0.3)
    weights = np.array([0.7, 0.1, 0.2, 0.0])
    value, error = criterion.estimate(weights)
    assert abs(value - criterion.at(weights).value) <= error


@pytest.mark.parametrize("lam", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_an_estimate_knows_how_ill_conditioned_its_system_is(lam):
    """⟨T, B⟩ is off by more than rounding errors of the value: by those of the solution."""
    for seed in range(5):
        grams, y = make_problem(40, 2, 4, seed=seed)
        criterion = RKDAProgram(DenseBank(grams), ClassTarget.from_labels(y), lam)
        weights = np.random.default_rng(seed).dirichlet(np.ones(4))
        value, error = criterion.estimate(weights)
        assert abs(value - criterion.at(weights).value) <= error


def test_single_precision_on_tiles_is_covered_by_its_error():
    """The same theorem where B is inexact because floats of four bytes are."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
    kernels = [RBF(width=width).resolve(X) for width in (0.5, 2.0, 8.0)]
    for lam in (1e-3, 1e-1):
        criterion = RKDAProgram(TiledBank(kernels, X), ClassTarget.from_labels(y), lam)
        weights = np.array([0.2, 0.5, 0.3])
        rough, exact = criterion.rough_at(weights), criterion.at(weights)
        off = np.linalg.norm(rough.dual - exact.dual) / np.linalg.norm(exact.dual)
        assert 1e-10 < off < 1e-3, "of single precision, and good for three digits"
        assert rough.value == pytest.approx(exact.value, rel=max(1e-12, 10 * off**2 / lam))
        assert rough.value + rough.error >= exact.value * (1 - 1e-13)


# ---- λ learned with the weights --------------------------------------------------------------


def test_a_feasible_point_of_the_joint_program_has_its_value_whatever_the_floor():
    """θ = (w_0/m + floor, w_i/r_i) is scaled to θᵀr = 1, and the value with it."""
    grams, y = make_problem(30, 3, 4)
    for floor in (1e-10, 1e-4, 1e-2):
        criterion = JointRKDAProgram(DenseBank(grams), ClassTarget.from_labels(y), floor)
        weights = np.array([0.1, 0.2, 0.3, 0.3, 0.1])
        split = criterion.split(weights)
        expected = reference.rkda_joint(grams, y, split.weights, split.regularization)
        assert criterion.at(weights).value == pytest.approx(expected, rel=1e-8)


def test_the_learned_regularization_is_no_less_than_the_floor():
    grams, y = make_problem(20, 2, 3)
    criterion = JointRKDAProgram(DenseBank(grams), ClassTarget.from_labels(y), 1e-6)
    split = criterion.split(np.array([0.0, 0.5, 0.25, 0.25]))
    assert split.regularization == pytest.approx(1e-6)
    assert split.at_floor
    np.testing.assert_allclose(split.weights, [0.5, 0.25, 0.25])
    assert not criterion.split(np.array([0.4, 0.3, 0.15, 0.15])).at_floor


def test_where_the_identity_takes_all_weight_the_kernels_are_equal_and_lambda_is_large():
    grams, y = make_problem(20, 2, 4)
    criterion = JointRKDAProgram(DenseBank(grams), ClassTarget.from_labels(y))
    split = criterion.split(np.array([1.0, 0.0, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose(split.weights, np.full(4, 0.25))
    assert 1e6 < split.regularization < np.inf
