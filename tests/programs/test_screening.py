"""The ball of the dual optimum, and what it says about the kernels."""

import numpy as np
import pytest

from discernel.bank import DenseBank
from discernel.programs.columns import DualBall
from discernel.programs.rkda import RKDAProgram
from discernel.programs.solution import Task
from discernel.solvers import Newton
from discernel.targets import ClassTarget
from tests.conftest import make_problem


def criterion_of(seed, *, n_kernels=12, n_classes=2, lam=1e-2):
    rng = np.random.default_rng(seed)
    y = np.arange(40) % n_classes
    X = rng.standard_normal((40, n_kernels)) + 0.8 * (y[:, None] == 0) * (np.arange(n_kernels) < 3)
    grams = np.exp(-np.square(X[:, None] - X[None])).transpose(2, 0, 1)
    return RKDAProgram(DenseBank(grams), ClassTarget.from_labels(y), lam)


def optimum(criterion):
    task = Task(1e-13, None, None, lambda *_: None)
    return criterion.at(Newton().solve(criterion, task).weights)


def energies(criterion, dual):
    return np.einsum("ijk,jk->i", criterion.bank.products(dual), dual)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("lam", [1e-3, 1e-1])
def test_ball_holds_the_dual_optimum(seed, lam):
    """‖C − B*‖ ≤ r from any weights: near the optimum, at a vertex, anywhere."""
    criterion = criterion_of(seed, n_classes=2 + seed % 3, lam=lam)
    best = optimum(criterion)
    rng = np.random.default_rng(seed)
    p = len(best.weights)
    for share in (1.0, 1e-1, 1e-2, 1e-4):
        for other in (rng.dirichlet(np.ones(p)), np.eye(p)[seed % p]):
            point = criterion.at((1 - share) * best.weights + share * other)
            found = criterion.dual_ball(point.value, point.dual, energies(criterion, point.dual))
            distance = np.linalg.norm(found.scale * point.dual - best.dual)
            assert distance <= found.radius * (1 + 1e-9)


def test_ball_shrinks_with_the_gap():
    criterion = criterion_of(0)
    best = optimum(criterion)
    uniform = np.full(len(best.weights), 1 / len(best.weights))
    radii = []
    for share in (1.0, 1e-1, 1e-2, 1e-3):
        point = criterion.at((1 - share) * best.weights + share * uniform)
        q = energies(criterion, point.dual)
        radii.append(criterion.dual_ball(point.value, point.dual, q).radius)
    assert radii == sorted(radii, reverse=True)
    assert radii[-1] < 0.1 * radii[0]


@pytest.mark.parametrize("seed", range(30))
def test_bounds_hold_at_every_point_of_a_ball(seed):
    """q(C) − 2r‖KC‖ ≤ q(B) ≤ q(C) + 2r‖KC‖ + r²‖K‖ for ‖B − C‖ ≤ r, by drawing such B."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 6))
    K, C, r = A @ A.T, rng.standard_normal((6, 2)), rng.exponential()
    norm, length = np.linalg.norm(K, 2), np.linalg.norm(K @ C)
    for _ in range(50):
        step = rng.standard_normal((6, 2))
        B = C + r * step / np.linalg.norm(step)
        change = np.sum(B * (K @ B)) - np.sum(C * (K @ C))
        assert -2 * r * length - 1e-9 <= change <= 2 * r * length + r**2 * norm + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_no_kernel_with_weight_at_the_optimum_is_screened(seed):
    criterion = criterion_of(seed, n_kernels=30, n_classes=2 + seed % 2, lam=10.0 ** -(seed % 4))
    best = optimum(criterion)
    rng = np.random.default_rng(seed)
    for share in (1.0, 0.1, 1e-3, 1e-5, 1e-7):
        other = rng.dirichlet(np.full(30, 0.1))
        point = criterion.at((1 - share) * best.weights + share * other)
        products = criterion.bank.products(point.dual)
        q = np.einsum("ijk,jk->i", products, point.dual)
        stay = criterion.dual_ball(point.value, point.dual, q).can_enter(
            q, np.sqrt(np.square(products).sum(axis=(1, 2))), criterion.bank.norms()
        )
        assert stay[best.weights > 1e-9].all()
    assert not stay.all()  # and close to the optimum others are


def test_ties_stay():
    stay = DualBall(1.0, 0.0).can_enter(np.array([2.0, 2.0, 1.0]), np.ones(3), np.ones(3))
    assert stay.tolist() == [True, True, False]


def test_norms_are_no_smaller_than_eigenvalues():
    grams, _ = make_problem(30, 2, 5)
    bank = DenseBank(grams)
    for i, norm in enumerate(bank.norms()):
        assert np.linalg.norm(bank.combined(np.eye(5)[i]), 2) <= norm + 1e-12
