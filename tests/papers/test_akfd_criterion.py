"""A-KFD: both half-steps of Fung 2004 against plainly written ones."""

import cvxpy as cp
import mpmath
import numpy as np
import pytest

from discernel.bank import CholeskySystem
from discernel.papers.akfd import criterion as akfd
from discernel.targets import ClassTarget
from tests.conftest import make_problem

NUS = 10.0 ** np.arange(-3, 13)


def factored(K, nu):
    return CholeskySystem(K.copy, akfd.ridge(nu))


def targets(y):
    return akfd.one_against_rest(ClassTarget.from_labels(y))


def objective(grams, d, nu, a, v, gamma):
    """Eq. (20) as printed, one column after the other."""
    K = sum(weight * gram for weight, gram in zip(a, grams, strict=True))
    e = np.ones(len(K))
    value = a @ a / 2
    for d_j, v_j, gamma_j in zip(d.T, v.T, gamma, strict=True):
        misfit = d_j - (K @ v_j - e * gamma_j)
        value += nu / 2 * (misfit @ misfit) + (v_j @ v_j + gamma_j**2) / 2
    return value


def half_solved(n_classes, nu, seed=0):
    """Kernels, targets and the discriminant of equal weights: where Eq. (24) starts from."""
    grams, y = make_problem(24, n_classes, 5, seed=seed)
    d = targets(y)
    v, gamma = akfd.minimize_discriminant(factored(grams.mean(axis=0), nu), d, nu)
    gamma = gamma + 0.5  # so that the sign of eγ matters
    return grams, d, v, gamma


def test_targets_are_fung_2004_eq_6():
    y = np.repeat(["a", "b"], [3, 5])
    np.testing.assert_allclose(targets(y), np.repeat([-8 / 3, 8 / 5], [3, 5])[:, None])
    y = np.repeat([0, 1, 2], [2, 3, 5])
    d = targets(y)
    for label, count in enumerate([2, 3, 5]):
        expected = [10 / count if code == label else -10 / (10 - count) for code in y]
        np.testing.assert_allclose(d[:, label], expected)
    np.testing.assert_allclose(d.sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("nu", NUS)
def test_discriminant_solves_the_normal_equations_of_eq_14(nu):
    """(H'H + I/ν)[v; γ] = H'd, solved with 60 digits: the paper's ν leave none to spare."""
    grams, y = make_problem(14, 2, 4, seed=2)
    K, d = grams[1] + grams[-1], targets(y)
    mpmath.mp.dps = 60
    H = mpmath.matrix(np.hstack([K, -np.ones((14, 1))]).tolist())
    left = H.T * H + mpmath.eye(15) / mpmath.mpf(nu)
    exact = mpmath.lu_solve(left, H.T * mpmath.matrix(d.tolist()))
    exact = np.array([float(value) for value in exact])
    v, gamma = akfd.minimize_discriminant(factored(K, nu), d, nu)
    found = np.append(v[:, 0], gamma)
    # Rounding K alone moves the solution by its condition, √ν times the largest eigenvalue.
    rtol = 1e-9 + 1e-15 * np.sqrt(nu) * np.linalg.norm(K, 2)
    assert np.linalg.norm(found - exact) <= rtol * np.linalg.norm(exact)


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_discriminant_is_not_beaten_by_a_dense_solve(n_classes, nu):
    """Eq. (23) as a stacked least-squares problem, by singular values."""
    grams, y = make_problem(45, n_classes, 6, seed=3)
    d, m = targets(y), len(y)
    for K in (grams[0] + grams[-1], grams.sum(axis=0), grams[3]):
        H = np.hstack([K, -np.ones((m, 1))])
        stacked = np.vstack([np.sqrt(nu) * H, np.eye(m + 1)])
        right = np.vstack([np.sqrt(nu) * d, np.zeros((m + 1, d.shape[1]))])
        dense = np.linalg.lstsq(stacked, right, rcond=None)[0]
        v, gamma = akfd.minimize_discriminant(factored(K, nu), d, nu)
        ours = objective(K[None], d, nu, np.ones(1), v, gamma)
        best = objective(K[None], d, nu, np.ones(1), dense[:-1], dense[-1])
        assert ours <= best * (1 + 1e-8)


@pytest.mark.parametrize("nu", [1e-3, 1.0, 1e6, 1e12])
def test_squared_system_is_solved_over_all_eigenvalues(nu):
    """(κ² + 1/ν)⁻¹ for κ from far below to far above 1/√ν, each to nine digits."""
    kappa = np.concatenate([[0.0], np.geomspace(1e-9, 1e9, 37)])
    right = np.random.default_rng(0).standard_normal((38, 2))
    s = akfd.ridge(nu)
    solved, images = akfd._solve_squared(factored(np.diag(kappa), nu), right, s)
    expected = right / (kappa**2 + s**2)[:, None]
    # The series errs by a share of M⁻¹B, not of what is left of it after another M⁻¹.
    scale = np.abs(right) / (kappa + s)[:, None] ** 2
    assert (np.abs(solved - expected) <= 1e-9 * scale).all()
    scale = np.abs(right) / (kappa + s)[:, None]
    assert (np.abs(images - kappa[:, None] * expected) <= 1e-9 * scale).all()


def test_centred_kernels_need_no_threshold():
    """Ke = 0 and e'd = 0, so γ = 0: for any ν, although e is where K² + I/ν is singular."""
    grams, y = make_problem(30, 2, 4, seed=4)
    P = np.eye(30) - 1 / 30
    for nu in NUS:
        _, gamma = akfd.minimize_discriminant(factored(P @ grams[1] @ P, nu), targets(y), nu)
        np.testing.assert_allclose(gamma, 0.0, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("nu", [1e-2, 1.0, 1e5])
def test_objective_is_fung_2004_eq_20(n_classes, nu):
    grams, d, v, gamma = half_solved(n_classes, nu)
    a = np.random.default_rng(5).random(len(grams))
    value = akfd.objective(grams @ v, d, nu, a, v, gamma)
    assert value == pytest.approx(objective(grams, d, nu, a, v, gamma), rel=1e-9)


@pytest.mark.conic
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("nu", [1e-3, 1e-1, 10.0, 1e3])
def test_weights_solve_the_program_of_eq_24(n_classes, nu):
    """With the sign that print lost: ‖d − (Λa − eγ)‖², a shared by all columns."""
    grams, d, v, gamma = half_solved(n_classes, nu, seed=6)
    products = grams @ v
    a = cp.Variable(len(grams), nonneg=True)
    misfit = 0
    for j in range(d.shape[1]):
        images = sum(a[i] * products[i, :, j] for i in range(len(grams)))
        misfit += cp.sum_squares(d[:, j] - (images - gamma[j]))
    problem = cp.Problem(cp.Minimize(nu / 2 * misfit + cp.sum_squares(a) / 2))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    ours = akfd.minimize_weights(products, d, gamma, nu)
    np.testing.assert_allclose(ours, a.value, atol=1e-5 * np.abs(a.value).max())
    value = objective(grams, d, nu, ours, v, gamma) - objective(grams, d, 0, 0 * ours, v, gamma)
    assert value <= problem.value * (1 + 1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("nu", NUS)
def test_weights_fulfil_the_optimality_conditions_of_eq_24(n_classes, nu):
    """a ≥ 0, gradient ≥ 0, one of them 0; where a program in floating point no longer says."""
    grams, d, v, gamma = half_solved(n_classes, nu, seed=7)
    columns = (grams @ v).reshape(len(grams), -1).T
    a = akfd.minimize_weights(grams @ v, d, gamma, nu)
    misfit = (d + gamma).ravel() - columns @ a
    gradient = a / nu - columns.T @ misfit
    scale = np.linalg.norm(columns, axis=0) * np.linalg.norm(d + gamma)
    assert (a >= 0).all()
    assert a.any()
    assert (gradient >= -1e-10 * scale).all()
    assert (np.abs(gradient[a > 0]) <= 1e-10 * scale[a > 0]).all()


def test_weights_of_useless_kernels_are_exactly_0():
    """A kernel whose product points away from the fit, and one that has none."""
    grams, d, v, gamma = half_solved(2, 1.0)
    products = grams @ v
    expected = akfd.minimize_weights(products, d, gamma, 1.0)
    away = -np.tensordot(expected, products, 1)
    products = np.stack([*products, away, np.zeros_like(away)])
    a = akfd.minimize_weights(products, d, gamma, 1.0)
    assert a[-2:].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(a[:-2], expected, atol=1e-10)


def test_decisions_are_fung_2004_eq_21():
    assert akfd.decide(np.array([[-0.1], [0.2], [0.0]])).tolist() == [0, 1, 0]
    scores = np.array([[-3.0, -1.0, -2.0], [0.5, 0.1, 0.4]])
    assert akfd.decide(scores).tolist() == [1, 0]
