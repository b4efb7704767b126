"""What low rank costs: every number against the slow obvious one."""

import numpy as np
import pytest

from discernel import MultipleKernelDiscriminant
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import CholeskySystem, FeatureBank, LowRank
from discernel.criteria import RKDA, FisherRatio, KernelLeastSquares
from discernel.exceptions import LowRankWarning
from discernel.kernels import RBF, Laplace, Linear
from discernel.kernels.weighted import WeightedKernels
from discernel.learn import low_rank
from discernel.learn.low_rank import LowRankFit, objective_change
from discernel.targets import ClassTarget
from tests.bank._blend import blend_of_rank

N, LAM = 140, 1e-2
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
Y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 1)
KERNELS = [RBF(width=1.0), Laplace(width=2.0), Linear()]
WEIGHTS = np.array([0.5, 0.3, 0.2])
COUNTS = SampleWeights.of(RNG.integers(1, 4, N).astype(float))


def bank_of(how, rank, sample_weights):
    if how == "blend":
        return blend_of_rank(KERNELS, WEIGHTS, X, rank, sample_weights=sample_weights)
    return FeatureBank.of_rank(KERNELS, X, rank, sample_weights=sample_weights)


def exact_matrix(bank, sample_weights):
    """Return Σ w_iK_i, centred, normalised as the bank says, with the weights of rows."""
    raw = sum(w * s * k(X) for w, s, k in zip(WEIGHTS, bank.scales, KERNELS, strict=True))
    shares = np.full(N, 1.0 / N) if sample_weights is None else sample_weights.shares
    center = np.eye(N) - np.outer(np.ones(N), shares)
    matrix = center @ raw @ center.T
    return matrix if sample_weights is None else sample_weights.scale_both(matrix)


@pytest.mark.parametrize("sample_weights", [None, COUNTS], ids=["no", "counts"])
@pytest.mark.parametrize("how", ["blend", "low rank"])
@pytest.mark.parametrize("rank", [10, 40])
def test_the_objective_is_too_large_by_no_more_than_the_bound(how, rank, sample_weights):
    bank, target = bank_of(how, rank, sample_weights), ClassTarget.from_labels(Y, sample_weights)
    kernel = WeightedKernels(KERNELS, WEIGHTS * bank.scales)
    loss = LowRankFit(bank, WEIGHTS, LAM, RKDA(), target, kernel, X).loss()
    T, K = target.scores, exact_matrix(bank, sample_weights)
    exact = LAM * np.sum(T * np.linalg.solve(LAM * np.eye(N) + K, T))
    N_low = LAM * np.eye(N) + bank.combined(WEIGHTS)
    B = np.linalg.solve(N_low, T)
    assert loss.objective == pytest.approx(LAM * np.sum(T * B))
    assert loss.objective - loss.objective_bound <= exact <= loss.objective + 1e-9
    E = K - bank.combined(WEIGHTS)
    change = min(LAM * np.sum(B * (E @ B)), loss.objective)
    assert loss.objective_estimate == pytest.approx(change, rel=1e-6)
    assert np.sum(B * (E @ B)) <= objective_change(B, bank.remainder(WEIGHTS)) + 1e-9
    assert loss.rank == bank.rank
    assert str(bank.rank) in repr(loss)


def test_the_estimate_from_some_rows_is_near(monkeypatch):
    bank, target = bank_of("blend", 20, None), ClassTarget.from_labels(Y)
    kernel = WeightedKernels(KERNELS, WEIGHTS * bank.scales)
    exact = LowRankFit(bank, WEIGHTS, LAM, RKDA(), target, kernel, X).loss()
    monkeypatch.setattr(low_rank, "_SAMPLE", 100)
    some = LowRankFit(bank, WEIGHTS, LAM, RKDA(), target, kernel, X).loss()
    assert some.objective_estimate == pytest.approx(exact.objective_estimate, rel=0.3)
    assert some.objective_bound >= exact.objective_bound


@pytest.mark.parametrize("how", ["blend", "low rank"])
def test_errors_of_left_out_rows_are_those_of_whole_matrices(how):
    bank, target = bank_of(how, 40, None), ClassTarget.from_labels(Y)
    kernel = WeightedKernels(KERNELS, WEIGHTS * bank.scales)
    loss = LowRankFit(bank, WEIGHTS, LAM, RKDA(), target, kernel, X).loss()
    ridge = np.full(N, LAM)

    def error(matrix):
        fit = KernelLeastSquares(CholeskySystem(matrix.copy, ridge), ridge, target.scores)
        return fit.leave_one_out_error()

    assert loss.exact_sample_error == pytest.approx(error(exact_matrix(bank, None)))
    assert loss.sample_error == pytest.approx(error(bank.combined(WEIGHTS)))  # all rows
    assert loss.leave_one_out == pytest.approx(loss.sample_error)
    half = error(bank.halved().combined(WEIGHTS))
    assert loss.leave_one_out_of_half == pytest.approx(half)
    assert loss.gain_of_doubling == pytest.approx(1.0 - loss.leave_one_out / half)


def test_with_all_landmarks_nothing_is_lost_and_nothing_advised():
    bank, target = bank_of("blend", N, None), ClassTarget.from_labels(Y)
    kernel = WeightedKernels(KERNELS, WEIGHTS * bank.scales)
    loss = LowRankFit(bank, WEIGHTS, LAM, RKDA(), target, kernel, X).loss()
    assert loss.captured == pytest.approx(1.0)
    assert loss.objective_estimate <= 1e-8 * loss.objective
    assert loss.sample_error == pytest.approx(loss.exact_sample_error, rel=1e-6)
    assert loss.leave_one_out_of_half is None
    assert loss.advice == ""


def test_the_criterion_says_what_rows_are_fitted_with():
    y = (Y > 0).astype(int)
    bank = FeatureBank.of_rank(KERNELS, X, 40, normalization="trace")
    kernel = WeightedKernels(KERNELS, WEIGHTS * bank.scales)
    target = ClassTarget.from_labels(y)
    loss = LowRankFit(bank, WEIGHTS, 1e-3, FisherRatio(), target, kernel, X).loss()
    ridge = 1e-3 * np.bincount(y)[y]
    matrix = exact_matrix(bank, None)
    fit = KernelLeastSquares(CholeskySystem(matrix.copy, ridge), ridge, target.scores)
    assert loss.exact_sample_error == pytest.approx(fit.leave_one_out_error())


def test_a_rank_that_is_far_too_small_is_said_aloud():
    rng = np.random.default_rng(0)
    rows = rng.random((900, 2))
    y = (np.floor(4 * rows).sum(axis=1) % 2).astype(int)  # a chessboard
    with pytest.warns(
        LowRankWarning, match=r"larger rank would reduce the error.*Try LowRank\(80\)"
    ):
        clf = MultipleKernelDiscriminant([RBF(width=0.15)], bank=LowRank(40)).fit(rows, y)
    assert clf.low_rank_loss_.advice
    assert clf.learned_kernel_.rank == 40
    exact = MultipleKernelDiscriminant([RBF(width=0.15)], bank="tiled").fit(rows, y)
    assert exact.low_rank_loss_ is None
    assert exact.learned_kernel_.rank is None
