"""Weights of samples in leave-one-out, against fits that leave samples out one by one."""

import numpy as np
import pytest

from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import DenseBank, gram_stack
from discernel.criteria import KernelLeastSquares
from discernel.kernels import RBF, Linear
from discernel.programs.loo import LeaveOneOutProgram
from discernel.targets import ClassTarget, LabelsTarget, RegressionTarget

LAM = 0.01
COUNTS = np.array([1, 3, 2, 1, 4, 1, 2, 2, 1, 5, 1, 1, 3, 2], dtype=float)
OTHERS = COUNTS * 0.37 + 0.1


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((len(COUNTS), 3))


@pytest.fixture(scope="module")
def codes():
    return np.arange(len(COUNTS)) % 3


def bank_and_target(rows, codes, given):
    weights = SampleWeights.of(given)
    grams = gram_stack([RBF(width=1.0), RBF(width=3.0), Linear()], rows)
    return DenseBank(grams, sample_weights=weights), ClassTarget(np.arange(3), codes, weights)


def fit_by_hand(G, T, omega):
    """Return α and b of min Σω‖t − Gα − b‖²/λ + ⟨α, Gα⟩, by its normal equations."""
    n = len(G)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = G + LAM * np.diag(1.0 / omega)
    system[:n, n] = system[n, :n] = 1.0
    found = np.linalg.solve(system, np.vstack([T, np.zeros((1, T.shape[1]))]))
    return found[:n], found[n]


def without(G, T, omega, i):
    """Return the prediction for row i of the fit to the others, with all of its weight left out."""
    kept = np.flatnonzero(np.arange(len(omega)) != i)
    alpha, b = fit_by_hand(G[np.ix_(kept, kept)], T[kept], omega[kept])
    return G[i, kept] @ alpha + b


@pytest.mark.parametrize("given", [COUNTS, OTHERS], ids=["whole", "others"])
def test_the_fit_and_its_left_out_rows(rows, codes, given):
    bank, target = bank_and_target(rows, codes, given)
    weights, mu = bank.row_weights, np.array([0.5, 0.3, 0.2])
    ridge = np.full(len(rows), LAM)
    fit = KernelLeastSquares(bank.system(mu, ridge), ridge, target.scores, weights)
    G = np.tensordot(
        bank.coefficients(mu), gram_stack([RBF(width=1.0), RBF(width=3.0), Linear()], rows), 1
    )
    T, omega = target.scores / weights.roots[:, None], weights.values
    alpha, b = fit_by_hand(G, T, omega)
    np.testing.assert_allclose(fit.coef, alpha, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fit.fitted, G @ alpha + b, atol=1e-9)
    left = np.array([without(G, T, omega, i) for i in range(len(rows))])
    np.testing.assert_allclose(fit.leave_one_out, left, rtol=1e-7, atol=1e-9)
    error = omega @ np.mean((T - left) ** 2, axis=1) / omega.sum()
    assert fit.leave_one_out_error() == pytest.approx(error, rel=1e-8)
    assert LeaveOneOutProgram(bank, target).error(mu, LAM).value == pytest.approx(error, rel=1e-8)


@pytest.mark.parametrize("given", [COUNTS, OTHERS], ids=["whole", "others"])
def test_the_gradient_of_the_weighted_error_by_differences(rows, codes, given):
    program = LeaveOneOutProgram(*bank_and_target(rows, codes, given))
    mu, h = np.array([0.5, 0.3, 0.2]), 1e-6
    point = program.error(mu, LAM)
    for i, unit in enumerate(np.eye(3)):
        up, down = program.error(mu + h * unit, LAM).value, program.error(mu - h * unit, LAM).value
        assert point.by_weights[i] == pytest.approx((up - down) / (2 * h), rel=1e-5)
    up, down = program.error(mu, LAM + h * LAM).value, program.error(mu, LAM - h * LAM).value
    assert point.by_regularization == pytest.approx((up - down) / (2 * h * LAM), rel=1e-5)


def test_weights_have_the_scores_of_repeated_rows(rows, codes):
    weights = SampleWeights(COUNTS)
    repeated = np.repeat(np.arange(len(COUNTS)), COUNTS.astype(int))
    has = np.column_stack([codes == 0, codes == 1])
    pairs = [
        (ClassTarget(np.arange(3), codes, weights), ClassTarget(np.arange(3), codes[repeated])),
        (RegressionTarget(rows[:, :2], weights), RegressionTarget(rows[repeated, :2])),
        (LabelsTarget(has, weights), LabelsTarget(has[repeated])),
    ]
    for weighted, plain in pairs:
        for name in ("scores", "indicator"):
            found = getattr(weighted, name) / weights.roots[:, None]
            np.testing.assert_allclose(found[repeated], getattr(plain, name), atol=1e-10)
        np.testing.assert_allclose(weights.roots @ weighted.scores, 0.0, atol=1e-10)
    weighted, plain = pairs[0]
    np.testing.assert_allclose(weighted.sizes, plain.counts)
    np.testing.assert_allclose(weighted.membership.T @ weighted.membership, np.diag(plain.counts))
    some = np.array([1, 4, 6, 9])
    part = weighted.subset(some)
    np.testing.assert_array_equal(part.row_weights.values, COUNTS[some])
    assert pairs[1][0].subset(some).row_weights.total == COUNTS[some].sum()
    assert pairs[2][0].subset(some).row_weights.total == COUNTS[some].sum()


def test_mean_difference_of_weighted_rows():
    codes = np.array([0, 0, 1, 1, 1])
    weights = SampleWeights(np.array([1.0, 2.0, 1.0, 1.0, 3.0]))
    target = ClassTarget(np.arange(2), codes, weights)
    expected = np.array([-1 / 3, -1 / 3, 1 / 5, 1 / 5, 1 / 5])
    np.testing.assert_allclose(target.mean_difference / weights.roots, expected)
