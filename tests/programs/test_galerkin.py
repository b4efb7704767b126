"""Restrictions to a subspace: bounds that agree to the third derivative, and what they find."""

import itertools

import numpy as np
import pytest
import scipy.linalg

from discernel import Status, learn_kernel
from discernel.bank import DenseBank
from discernel.criteria import RKDA
from discernel.programs.galerkin import Galerkin, _extended
from discernel.programs.newton import Newton
from discernel.programs.rkda import JointRKDAProgram, RKDAProgram, ShrunkRKDAProgram
from discernel.programs.silp import SILP
from discernel.programs.solution import Task
from discernel.targets import ClassTarget
from tests.conftest import make_problem


def criteria(seed=0, n_samples=40, n_classes=3, n_kernels=5):
    grams, y = make_problem(n_samples, n_classes, n_kernels, seed=seed)
    bank, target = DenseBank(grams), ClassTarget.from_labels(y)
    return [
        RKDAProgram(bank, target, 1e-2),
        RKDAProgram(bank, target, 1e-5),
        JointRKDAProgram(bank, target),
        ShrunkRKDAProgram(bank, target, 1e-2, 0.1),
    ]


def solve(solver, criterion, tol=1e-6, init=None, max_iter=None):
    gaps = []
    task = Task(tol, max_iter, init, lambda iteration, value, gap, weights: gaps.append(gap))
    return solver.solve(criterion, task), gaps


@pytest.mark.parametrize("which", range(4))
def test_a_restriction_is_a_bound_and_exact_on_all_of_space(which):
    criterion = criteria()[which]
    rng, n = np.random.default_rng(0), criterion.bank.n_samples
    some = criterion.restricted(criterion.subspace(scipy.linalg.orth(rng.standard_normal((n, 6)))))
    whole = criterion.restricted(criterion.subspace(scipy.linalg.orth(rng.standard_normal((n, n)))))
    for weights in rng.dirichlet(np.ones(criterion.bank.n_kernels), size=5):
        value = criterion.at(weights).value
        assert some.at(weights).value <= value * (1 + 1e-12)
        assert whole.at(weights).value == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("which", range(4))
def test_a_subspace_of_another_lambda_bounds_and_starts_and_changes_no_result(which):
    """Any subspace gives a bound, also one that has nothing to do with the kernels."""
    criterion, rng = criteria()[which], np.random.default_rng(0)
    n = criterion.bank.n_samples
    optimum, _ = solve(Newton(), criterion, 1e-11)
    others = [solve(Galerkin(), other)[0].subspace for other in criteria()[:2]]
    if which == 2:  # λ is a weight of its own kernel
        others = [solve(Galerkin(), criterion, 0.1)[0].subspace]
    for basis in (np.eye(n)[:, :2], scipy.linalg.orth(rng.standard_normal((n, 6)))):
        others.append(criterion.subspace(basis))
    for subspace, tol in itertools.product(others, (1e-1, 1e-3, 1e-4, 1e-7)):
        found = Galerkin().solve(criterion, Task(tol, subspace=subspace))
        assert found.status is Status.CONVERGED
        assert found.gap <= tol
        assert found.bound <= optimum.value * (1 + 1e-10)
        assert criterion.at(found.weights).value <= optimum.value * (1 + tol * (1 + 1e-6))


def test_the_subspace_of_a_neighbouring_lambda_saves_rounds():
    grams, y = make_problem(80, 3, 5, seed=1)
    bank, target = DenseBank(grams), ClassTarget.from_labels(y)
    known = Galerkin().solve(RKDAProgram(bank, target, 1e-2), Task(1e-6)).subspace
    for lam in (3e-2, 3e-3):
        program = RKDAProgram(bank, target, lam)
        alone = Galerkin().solve(program, Task(1e-4))
        found = Galerkin().solve(program, Task(1e-4, subspace=known))
        assert found.n_iter < alone.n_iter


def test_a_restriction_agrees_in_the_value_and_three_derivatives():
    """Along every line: the error is of fourth order where that of Newton's model is of third."""
    criterion = criteria()[0]
    p = criterion.bank.n_kernels
    start = np.full(p, 1.0 / p)
    point = criterion.at(start)
    basis = scipy.linalg.orth(np.hstack([point.dual, *point.directions]))
    model = criterion.restricted(criterion.subspace(basis))
    assert model.at(start).value == pytest.approx(point.value, rel=1e-12)
    np.testing.assert_allclose(model.at(start).gradient, point.gradient, rtol=1e-9)
    np.testing.assert_allclose(model.at(start).hessian, point.hessian, rtol=1e-8)
    end = np.random.default_rng(1).dirichlet(np.ones(p))
    errors, steps = [], (0.4, 0.2, 0.1)
    for step in steps:
        weights = start + step * (end - start)
        errors.append(criterion.at(weights).value - model.at(weights).value)
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (orders > 3.5).all(), orders


@pytest.mark.parametrize("which", range(4))
def test_an_estimate_is_the_value_within_its_error(which):
    criterion = criteria(seed=3)[which]
    rng = np.random.default_rng(0)
    for weights in rng.dirichlet(np.ones(criterion.bank.n_kernels), size=5):
        value, error = criterion.estimate(weights)
        assert abs(value - criterion.at(weights).value) <= error


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("which", range(4))
def test_the_optimum_is_that_of_newton(which, seed):
    criterion = criteria(seed=seed)[which]
    found, gaps = solve(Galerkin(), criterion, tol=1e-9)
    exact, _ = solve(Newton(), criterion, tol=1e-9)
    assert found.status is Status.CONVERGED
    assert found.value == pytest.approx(exact.value, rel=2e-9)
    assert found.bound <= exact.value * (1 + 1e-12), "a bound above the optimum certifies nothing"
    assert gaps[-1] <= 1e-9


def test_rounds_are_fewer_than_steps_of_newton_and_far_fewer_than_cuts():
    rounds, steps, cuts = [], [], []
    for seed in range(6):
        criterion = criteria(seed=seed, n_samples=60)[0]
        rounds.append(solve(Galerkin(), criterion)[0].n_iter)
        steps.append(solve(Newton(), criterion)[0].n_iter)
        cuts.append(solve(SILP(), criterion)[0].n_iter)
    assert np.mean(rounds) < np.mean(steps) < np.mean(cuts)
    assert max(rounds) <= 3


def test_the_subspace_holds_the_duals_so_far_and_is_orthonormal():
    criterion = criteria()[0]
    p = criterion.bank.n_kernels
    first, second = criterion.at(np.full(p, 1.0 / p)), criterion.at(np.eye(p)[1])
    basis = np.empty((criterion.bank.n_samples, 0))
    for point in (first, second):
        basis = _extended(basis, criterion, point)
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    for dual in (first.dual, second.dual):
        inside = basis @ (basis.T @ dual)
        np.testing.assert_allclose(inside, dual, atol=1e-8 * np.abs(dual).max())


def test_limits_and_starts():
    criterion = criteria()[1]
    cut, gaps = solve(Galerkin(), criterion, tol=1e-12, max_iter=1)
    assert cut.status in (Status.MAX_ITERATIONS, Status.CONVERGED)
    assert len(gaps) == 2
    optimum = solve(Galerkin(), criterion)[0].weights
    again, _ = solve(Galerkin(), criterion, init=optimum)
    assert again.n_iter <= 1
    hopeless, _ = solve(Galerkin(), criterion, tol=1e-18)
    assert hopeless.status in (Status.STALLED, Status.CONVERGED)
    assert hopeless.gap < 1e-9


def test_duplicates_of_kernels_share_the_weight():
    grams, y = make_problem(40, 2, 3, seed=1)
    doubled = np.concatenate([grams, grams])
    options = {"criterion": "rkda", "regularization": 1e-3, "solver": "galerkin", "tol": 1e-8}
    once, twice = learn_kernel(grams, y, **options), learn_kernel(doubled, y, **options)
    assert twice.objective == pytest.approx(once.objective, rel=1e-8)


def test_many_samples_choose_it_and_a_named_solver_is_kept():
    grams, y = make_problem(600, 2, 3, seed=0)
    options = {"regularization": 1e-3, "criterion": "rkda"}
    automatic = learn_kernel(grams, y, **options)
    named = learn_kernel(grams, y, **options, solver="newton")
    assert (automatic.solver, named.solver) == ("galerkin", "newton")
    assert automatic.objective == pytest.approx(named.objective, rel=1e-6)
    few = learn_kernel(grams[:, :100, :100], y[:100], **options)
    assert few.solver == "newton"
    shrunk = learn_kernel(grams, y, criterion=RKDA(0.1), regularization=1e-3)
    assert shrunk.solver == "galerkin"


def test_the_last_system_is_kept_and_no_other():
    grams, _ = make_problem(30, 2, 3)
    bank = DenseBank(grams)
    weights = np.array([0.2, 0.3, 0.5])
    system = bank.system(weights, 0.1)
    assert bank.system(weights.copy(), np.full(30, 0.1)) is system
    for other in (bank.system(weights, 0.2), bank.system(weights[::-1].copy(), 0.1)):
        assert other is not system
    weights[0] = 0.9  # what the caller does with its array later does not matter
    assert bank.system(np.array([0.5, 0.3, 0.2]), 0.1) is other
