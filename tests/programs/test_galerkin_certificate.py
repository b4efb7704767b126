"""What `galerkin` reports holds for the exact criterion, however rough its first system is."""

import numpy as np
import pytest

from discernel.bank import DenseBank, TiledBank
from discernel.kernels import RBF
from discernel.programs.galerkin import Galerkin
from discernel.programs.newton import Newton
from discernel.programs.rkda import RKDAProgram, ShrunkRKDAProgram
from discernel.programs.solution import Status, Task
from discernel.targets import ClassTarget
from tests.conftest import make_problem
from tests.programs.test_rkda_error import RoughBank


def solve(criterion, tol, init=None, max_iter=None, solver=None):
    task = Task(tol, max_iter, init, lambda *_: None)
    return (solver or Galerkin()).solve(criterion, task)


def assert_certified(found, criterion, optimum):
    """The gap is what the exact value at the weights can be above the bound, which is one."""
    exact = criterion.at(found.weights).value
    assert found.bound <= optimum * (1 + 1e-11)
    assert exact <= found.bound + found.gap * abs(found.value) + 1e-11 * exact


@pytest.mark.parametrize("error", [0.01, 0.1, 0.3])
@pytest.mark.parametrize("shrinkage", [0.0, 0.1])
@pytest.mark.parametrize("tol", [0.9, 0.3, 1e-2, 1e-6])
def test_the_certificate_holds_for_the_exact_criterion(tol, shrinkage, error):
    """B of the first round is rough and its value too small: by no more than the error added."""
    for seed in range(3):
        grams, y = make_problem(30, 2, 4, seed=seed)
        target, bank = ClassTarget.from_labels(y), RoughBank(grams, error)
        criterion = ShrunkRKDAProgram(bank, target, 1e-2, shrinkage)
        optimum = solve(criterion, 1e-12, solver=Newton()).value
        found = solve(criterion, tol)
        assert_certified(found, criterion, optimum)
        if found.status is Status.CONVERGED:
            assert criterion.at(found.weights).value - optimum <= tol * found.value * (1 + 1e-9)


def test_a_rough_start_is_not_taken_for_the_optimum():
    """Far off, its value is below the bound: a gap without the error would be 0."""
    grams, y = make_problem(30, 2, 4)
    criterion = RKDAProgram(RoughBank(grams, 0.8), ClassTarget.from_labels(y), 1e-2)
    rough = criterion.rough_at(np.full(4, 0.25))
    found = solve(criterion, 1e-6)
    optimum = solve(criterion, 1e-12, solver=Newton()).value
    assert rough.value < optimum
    assert found.value == pytest.approx(optimum, rel=1e-6)
    assert_certified(found, criterion, optimum)


@pytest.mark.parametrize("tol", [0.5, 0.1, 1e-2, 1e-4])
def test_the_bound_of_few_rounds_is_below_the_optimum(tol):
    """What the subspace's own program has not settled is no part of a bound."""
    for seed in range(6):
        grams, y = make_problem(40, 3, 6, seed=seed)
        criterion = RKDAProgram(
            DenseBank(grams), ClassTarget.from_labels(y), 10.0 ** -(1 + seed % 3)
        )
        optimum = solve(criterion, 1e-12, solver=Newton()).value
        for start in np.eye(6):
            found = solve(criterion, tol, init=start)
            assert_certified(found, criterion, optimum)


def test_a_restriction_that_was_not_minimised_bounds_nothing_by_its_value():
    """Curvature a million times too large: Newton's steps are too short to arrive anywhere."""

    class Stiff(RKDAProgram):
        def restricted(self, subspace):
            model = super().restricted(subspace)
            plain = model.at

            def at(weights):
                point = plain(weights)
                point.hessian = 1e6 * np.trace(point.hessian) * np.eye(len(weights))
                return point

            model.at = at
            return model

    grams, y = make_problem(30, 2, 4)
    criterion = Stiff(DenseBank(grams), ClassTarget.from_labels(y), 1e-2)
    optimum = solve(criterion, 1e-12, solver=Newton()).value
    for start in np.eye(4):
        found = solve(criterion, 1e-6, init=start, max_iter=2)
        assert_certified(found, criterion, optimum)


def test_an_estimate_with_a_large_error_is_settled_by_the_criterion_itself():
    class Doubtful(RKDAProgram):
        n_settled = 0

        def estimate(self, weights, **options):
            value, _ = super().estimate(weights, **options)
            return value, value

        def at(self, weights):
            self.n_settled += 1
            return super().at(weights)

    grams, y = make_problem(30, 2, 4)
    criterion = Doubtful(DenseBank(grams), ClassTarget.from_labels(y), 1e-3)
    found = solve(criterion, 1e-6)
    assert found.status is Status.CONVERGED
    assert found.gap <= 1e-6
    assert criterion.n_settled >= found.n_iter
    assert found.value == pytest.approx(criterion.at(found.weights).value, rel=1e-9)


def test_a_certain_estimate_saves_the_last_pass_over_the_kernels():
    class Counting(RKDAProgram):
        n_passes = 0

        def at(self, weights):
            self.n_passes += 1
            return super().at(weights)

    grams, y = make_problem(60, 2, 4)
    criterion = Counting(DenseBank(grams), ClassTarget.from_labels(y), 1e-2)
    found = solve(criterion, 1e-6)
    assert found.n_iter >= 1
    assert criterion.n_passes < found.n_iter, "the first round is rough, the last one an estimate"


def test_the_first_system_of_tiles_is_of_single_precision_and_the_answer_is_not():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
    kernels = [RBF(width=width).resolve(X) for width in (0.5, 1.0, 2.0, 4.0)]
    taken = []

    class Watched(TiledBank):
        def system(self, weights, ridge, *, rough=False):
            taken.extend([weights] if rough else [])
            return super().system(weights, ridge, rough=rough)

    tiles = RKDAProgram(Watched(kernels, X), ClassTarget.from_labels(y), 1e-3)
    exact = RKDAProgram(DenseBank([k(X) for k in kernels]), ClassTarget.from_labels(y), 1e-3)
    found = solve(tiles, 1e-8)
    optimum = solve(exact, 1e-12, solver=Newton()).value
    assert len(taken) == 1
    assert found.value == pytest.approx(optimum, rel=1e-8)
    assert_certified(found, exact, optimum)


def test_it_ends_where_no_smaller_gap_can_be_had():
    """Values that are never known better than to 1e-3: after some rounds it stops trying."""

    class Blurred(RKDAProgram):
        def estimate(self, weights, **options):
            value, _ = super().estimate(weights, **options)
            return value, 1e-3 * value

        def at(self, weights):
            point = super().at(weights)
            point.error = 1e-3 * point.value
            return point

    grams, y = make_problem(30, 2, 4)
    criterion = Blurred(DenseBank(grams), ClassTarget.from_labels(y), 1e-3)
    found = solve(criterion, 1e-6)
    assert found.status is Status.STALLED
    assert found.n_iter < 20
    assert 5e-4 < found.gap < 5e-3
