"""What to expect of new rows: Wilson's interval, weights, and where it comes from."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy.special import log_softmax
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from discernel import MultipleKernelDiscriminant
from discernel.bank import DenseBank
from discernel.cli.learning import Learner, fit_model
from discernel.cli.show_model import show_model
from discernel.criteria import KernelLeastSquares
from discernel.discriminant import (
    Decision,
    Discriminant,
    Expectation,
    HonestScores,
    left_out_log_likelihood,
)
from discernel.experiments.metrics import METRICS
from discernel.experiments.plan import Data
from discernel.kernels import RBF, Linear
from discernel.learners import Candidate
from discernel.report.model import _signed
from discernel.report.words import percent
from discernel.sample_weights import SampleWeights
from discernel.targets import ClassTarget
from tests.conftest import make_problem


def discriminant_of(right, weights=None, copies=None):
    """Return two far classes, with rows at their means where they are right and far off where not.

    Of many rows, one row more or less does not move the means.
    """
    codes = np.arange(len(right)) % 2
    scores = np.where(codes == 1, 8.0, -8.0)
    return Discriminant(
        dual_coef=np.empty((0, 1)),
        intercept=np.zeros(1),
        means=np.array([[-8.0], [8.0]]),
        scalings=np.eye(1),
        center=np.zeros(1),
        explained=np.ones(1),
        training_scores=np.where(right, scores, -scores)[:, None],
        training_codes=codes,
        training_weights=weights,
        training_copies=copies,
    )


EVEN = Decision(np.array([0.5, 0.5]), np.zeros(2))


@pytest.mark.parametrize(
    ("n_right", "n", "low", "high"),
    # As statsmodels' proportion_confint(n_right, n, method="wilson") prints.
    [
        (8, 10, 0.4902, 0.9433),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (50, 100, 0.4038, 0.5962),
    ],
)
def test_the_interval_is_wilsons(n_right, n, low, high):
    found = Expectation.of(discriminant_of(np.arange(n) < n_right), EVEN, "folds")
    assert found.accuracy == pytest.approx(n_right / n)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-4)
    assert (found.n_rows, found.where) == (n, "folds")
    # Where the bounds come from: |p − share| = 1.96 √(p(1 − p)/n).
    for bound in (found.low, found.high):
        if 0 < bound < 1:
            error = 1.96 * np.sqrt(bound * (1 - bound) / n)
            assert abs(bound - n_right / n) == pytest.approx(error, rel=1e-6)


def test_rows_that_weigh_more_count_more_and_know_less():
    right, weights = np.arange(40) < 30, np.where(np.arange(40) < 20, 3.0, 1.0)
    found = Expectation.of(discriminant_of(right, weights), EVEN, "folds")
    assert found.accuracy == pytest.approx(70 / 80)
    n = 80**2 / (20 * 9 + 20)  # 32
    middle, z2 = 70 / 80, 1.96**2
    half = 1.96 * np.sqrt(middle * (1 - middle) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    assert found.high - found.low == pytest.approx(2 * half)
    assert found.n_rows == 40


def test_counts_are_repeated_rows():
    right, counts = np.arange(40) < 30, np.where(np.arange(40) < 20, 3, 1)
    weighted = Expectation.of(
        discriminant_of(right, counts.astype(float), counts.astype(float)), EVEN, "folds"
    )
    repeated = np.repeat(np.arange(40), counts)
    plain = discriminant_of(right)
    expected = Expectation.of(
        Discriminant(
            **{
                **vars(plain),
                "training_scores": plain.training_scores[repeated],
                "training_codes": plain.training_codes[repeated],
            }
        ),
        EVEN,
        "folds",
    )
    assert weighted == expected
    assert weighted.n_rows == 80


def test_priors_and_costs_are_those_of_the_decision():
    plain = discriminant_of(np.arange(40) < 30)
    codes = plain.training_codes
    priors = np.array([0.2, 0.8])
    found = Expectation.of(plain, Decision(priors, np.zeros(2)), "folds")
    posterior = log_softmax(left_out_log_likelihood(plain) + np.log(priors), axis=1)
    assert found.log_loss == pytest.approx(-posterior[np.arange(40), codes].mean())
    always_first = Expectation.of(plain, Decision(priors, np.array([1e6, 0.0])), "folds")
    assert always_first.accuracy == 0.5
    assert always_first.log_loss == found.log_loss


def test_it_reads_well():
    found = Expectation(0.875, 0.8, 0.923, 0.3114, 160, "leave-one-out")
    assert repr(found) == (
        "accuracy 87.5% (80.0% to 92.3%), log-loss 0.311, on 160 rows: leave-one-out"
    )


# ---- where the scores come from --------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    grams, y = make_problem(60, 3, 4)
    bank, target = DenseBank(grams), ClassTarget.from_labels(y)
    ridge = np.full(60, 0.01)
    system = bank.system(np.full(4, 0.25), ridge)
    return KernelLeastSquares(system, ridge, target.scores), target


def test_honest_scores_by_default_are_all_left_out(fitted):
    fit, target = fitted
    scores, counted = HonestScores().of(fit, target)
    np.testing.assert_array_equal(scores, fit.leave_one_out)
    assert counted is target


def test_honest_scores_of_some_rows(fitted):
    fit, target = fitted
    rows = np.arange(12, 40)
    scores, counted = HonestScores(rows).of(fit, target)
    np.testing.assert_array_equal(scores, fit.leave_one_out[rows])
    np.testing.assert_array_equal(counted.codes, target.codes[rows])


def test_classes_with_fewer_than_two_rows_are_there_with_all(fitted):
    fit, target = fitted
    rows = np.flatnonzero(target.codes < 2)[:20]
    rows = np.append(rows, np.flatnonzero(target.codes == 2)[:1])
    scores, counted = HonestScores(rows).of(fit, target)
    expected = np.union1d(rows, np.flatnonzero(target.codes == 2))
    np.testing.assert_array_equal(scores, fit.leave_one_out[expected])
    np.testing.assert_array_equal(counted.counts, np.bincount(target.codes[expected]))


def test_honest_scores_that_are_given(fitted):
    fit, target = fitted
    part = target.part(np.arange(10))
    scores, counted = HonestScores(scores=np.ones((10, 2)), target=part).of(fit, target)
    assert scores.shape == (10, 2)
    assert counted is part


# ---- of estimators ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:70]
    return scale(X)[rows], y[rows]


def test_given_kernels_expect_by_leave_one_out(wine):
    X, y = wine
    clf = MultipleKernelDiscriminant([RBF(width=2.0), Linear()]).fit(X, y)
    assert clf.expected_.where == "leave-one-out"
    assert clf.expected_.n_rows == 70
    assert clf.expected_.low < clf.expected_.accuracy < clf.expected_.high
    assert MultipleKernelDiscriminant(Linear(), statistics="training").fit(X, y).expected_ is None


@pytest.mark.parametrize("kernels", [[RBF(width=2.0), Linear()], "auto"], ids=["given", "auto"])
def test_counts_are_repeated_rows_in_estimators(wine, kernels):
    X, y = wine
    counts = np.random.default_rng(1).integers(0, 4, 70)
    repeated = np.repeat(np.arange(70), counts)
    weighted = MultipleKernelDiscriminant(kernels).fit(X, y, sample_weight=counts).expected_
    plain = MultipleKernelDiscriminant(kernels).fit(X[repeated], y[repeated]).expected_
    for name in ("accuracy", "low", "high", "log_loss"):
        assert getattr(weighted, name) == pytest.approx(getattr(plain, name), abs=1e-6)
    assert (weighted.n_rows, weighted.where) == (plain.n_rows, plain.where)


def test_many_classes_of_few_rows_promise_nothing():
    """Means and covariance of 20 classes of 4 rows tell their own rows apart, and no others."""
    y = np.repeat(np.arange(20), 4)
    for kernels in ("auto", [RBF(width=2.0), Linear()]):
        found = []
        for seed in range(4):
            X = np.random.default_rng(seed).standard_normal((80, 5))
            expected = MultipleKernelDiscriminant(kernels).fit(X, y).expected_
            found.append((expected.accuracy, expected.log_loss))
        accuracy, log_loss = np.mean(found, axis=0)
        assert accuracy < 1 / 20 + 0.05
        assert log_loss > 0.95 * np.log(20)


def test_the_shares_of_weights_are_used():
    weights = SampleWeights.of(np.array([0.5, 1.5, 1.0, 1.0]))
    found = discriminant_of(np.ones(4, dtype=bool), weights.values, weights.copies)
    np.testing.assert_array_equal(found.counts[0], weights.values)
    assert Expectation.of(found, EVEN, "folds").accuracy == 1.0


def _shown_model(expectation):
    model, _, _ = fit_model(Data("iris"), Learner("uniform"))
    clf = model.pipeline[-1]
    right = Candidate("average", np.ones(1), 1e-3, -1e-9, 0.0, accuracy=1.0)
    clf.learned_kernel_ = replace(clf.learned_kernel_, considered=(right,))
    clf.expected_ = expectation
    console = Console(width=100, file=io.StringIO())
    show_model(console, model)
    return console.file.getvalue()


@pytest.mark.parametrize(
    "show",
    [
        repr,
        _shown_model,
        lambda each: METRICS["log_loss"].show(each.log_loss),
        lambda each: METRICS["accuracy"].show(each.log_loss),
        lambda each: percent(each.log_loss),
        lambda each: _signed(each.log_loss),
    ],
)
def test_numbers_that_round_to_zero_have_no_minus_sign(show):
    shown = show(Expectation(1.0, 0.9, 1.0, -1e-9, 30, "leave-one-out"))
    assert "0.0" in shown
    assert not re.search(r"[-−]0\.0+\b(?!\d)", shown)
