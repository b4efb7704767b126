"""What to expect of new rows: the interval, weights, and where it comes from."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import scale

from discernel import KernelDiscriminant, MultipleKernelDiscriminant
from discernel.bank import DenseBank
from discernel.cli.learning import Learner, fit_model
from discernel.compare.metrics import METRICS
from discernel.compare.plan import Data
from discernel.criteria import KernelLeastSquares
from discernel.discriminant import (
    Decision,
    Discriminant,
    Expectation,
    HeldOutScores,
    calibrated,
    held_out_likelihoods,
    held_out_log_posterior,
    mix_links,
)
from discernel.discriminant.expectation import _interval
from discernel.kernels import RBF, Linear
from discernel.learn import Candidate
from discernel.show.terminal import print_blocks
from discernel.show.words import percent, signed
from discernel.targets import ClassTarget, deal_folds
from tests.conftest import make_problem


def discriminant_of(right, weights=None):
    """Return two far classes, with rows at their means where they are right and far off where not.

    Of many rows, one row more or less does not move the means.
    """
    codes = np.arange(len(right)) % 2
    scores = np.where(codes == 1, 8.0, -8.0)
    found = Discriminant(
        dual_coef=np.empty((0, 1)),
        intercept=np.zeros(1),
        means=np.array([[-8.0], [8.0]]),
        scalings=np.eye(1),
        center=np.zeros(1),
        explained=np.ones(1),
        training_scores=np.where(right, scores, -scores)[:, None],
        training_codes=codes,
        training_weights=weights,
        class_scores=np.array([[-1.0], [1.0]]),
    )
    return with_mixture(found)


def with_mixture(found):
    """Return a discriminant whose probabilities are those of a mixture of its links."""
    return replace(found, mixture=mix_links(found, None))


EVEN = Decision(np.array([0.5, 0.5]), np.zeros(2))


@pytest.mark.parametrize(("n_right", "n"), [(8, 10), (0, 10), (10, 10), (50, 100), (97, 140)])
def test_the_interval_is_wilsons_a_tenth_wider(n_right, n):
    """|p − share| = z √(p(1 − p)/n) at both ends, z = 1.1 · 1.96."""
    share = n_right / n
    low, high = _interval(share, n)
    assert low - 1e-12 <= share <= high + 1e-12
    for bound in (low, high):
        if 1e-12 < bound < 1 - 1e-12:
            error = 1.1 * 1.96 * np.sqrt(bound * (1 - bound) / n)
            assert abs(bound - share) == pytest.approx(error, rel=1e-6)
    assert (low < 1e-12) is (n_right == 0)
    assert (high > 1 - 1e-12) is (n_right == n)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_are_predicted_by_the_classes_of_other_folds(n_classes):
    """Gaussian classes: as linear discriminant analysis of the scores of the other folds does."""
    rng = np.random.default_rng(n_classes)
    target = ClassTarget.from_labels(np.arange(120) % n_classes)
    scores = target.scores + 0.8 * rng.standard_normal((120, n_classes - 1))
    found, _ = calibrated(scores, target, target.class_scores)
    even = Decision(np.full(n_classes, 1.0 / n_classes), np.zeros(n_classes))
    folds, (gaussian, _) = held_out_likelihoods(found, None)
    np.testing.assert_array_equal(folds, deal_folds(scores, target.codes, 5))
    for fold in range(5):
        outside, inside = folds != fold, folds == fold
        lda = LinearDiscriminantAnalysis(priors=even.priors)
        lda.fit(scores[outside], target.codes[outside])
        np.testing.assert_array_equal(gaussian[inside].argmax(axis=1), lda.predict(scores[inside]))
    expected = Expectation.of(with_mixture(found), even, "folds")
    assert expected.accuracy == pytest.approx(
        np.mean(gaussian.argmax(axis=1) == target.codes), abs=0.03
    )
    assert 0.6 < expected.accuracy < 1.0
    assert (expected.n_rows, expected.where) == (120, "folds")


def test_a_row_that_is_alone_in_its_class_counts_as_wrong():
    codes = np.append(np.arange(60) % 2, 2)
    target = ClassTarget(np.arange(3), codes)
    rng = np.random.default_rng(0)
    scores = target.class_scores[codes] + 0.1 * rng.standard_normal((61, 2))
    found = with_mixture(calibrated(scores, target, target.class_scores)[0])
    posterior = held_out_log_posterior(found, Decision(np.full(3, 1 / 3), np.zeros(3)))
    assert posterior[-1].argmax() != 2
    expected = Expectation.of(found, Decision(np.full(3, 1 / 3), np.zeros(3)), "folds")
    assert expected.accuracy == pytest.approx(60 / 61)
    assert np.isfinite(expected.log_loss)


def test_rows_that_weigh_more_count_more_and_know_less():
    right, weights = np.arange(40) < 30, np.where(np.arange(40) < 20, 3.0, 1.0)
    found = Expectation.of(discriminant_of(right, weights), EVEN, "folds")
    assert found.accuracy == pytest.approx(70 / 80)
    n = 80**2 / (20 * 9 + 20)  # 32
    z = 1.1 * 1.96
    middle, z2 = 70 / 80, z**2
    half = z * np.sqrt(middle * (1 - middle) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    assert found.high - found.low == pytest.approx(2 * half)
    assert found.n_rows == 40


def test_priors_and_costs_are_those_of_the_decision():
    plain = discriminant_of(np.arange(40) < 30)
    codes = plain.training_codes
    priors = np.array([0.2, 0.8])
    found = Expectation.of(plain, Decision(priors, np.zeros(2)), "folds")
    posterior = held_out_log_posterior(plain, Decision(priors, np.zeros(2)))
    assert found.log_loss == pytest.approx(-posterior[np.arange(40), codes].mean())
    even = held_out_log_posterior(plain, EVEN)
    odds, even_odds = (table[:, 1] - table[:, 0] for table in (posterior, even))
    np.testing.assert_allclose(odds - even_odds, np.log(4.0))
    always_first = Expectation.of(plain, Decision(priors, np.array([1e6, 0.0])), "folds")
    assert always_first.accuracy == 0.5
    assert always_first.log_loss == found.log_loss


def test_it_reads_well():
    found = Expectation(0.875, 0.8, 0.923, 0.3114, 1600, "leave-one-out")
    assert repr(found) == (
        "accuracy 87.5% (80.0% to 92.3%), log-loss 0.311, on 1,600 rows: leave-one-out"
    )


# ---- where the scores come from --------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    grams, y = make_problem(60, 3, 4)
    bank, target = DenseBank(grams), ClassTarget.from_labels(y)
    ridge = np.full(60, 0.01)
    system = bank.system(np.full(4, 0.25), ridge)
    return KernelLeastSquares(system, ridge, target.scores), target


def test_held_out_scores_by_default_are_all_left_out(fitted):
    fit, target = fitted
    scores, counted = HeldOutScores().of(fit, target)
    np.testing.assert_array_equal(scores, fit.left_out_scores(fit.left_out_groups(target)))
    assert counted is target


def test_held_out_scores_of_some_rows(fitted):
    fit, target = fitted
    rows = np.arange(12, 40)
    scores, counted = HeldOutScores(rows).of(fit, target)
    np.testing.assert_array_equal(scores, fit.left_out_scores(fit.left_out_groups(target))[rows])
    np.testing.assert_array_equal(counted.codes, target.codes[rows])


def test_classes_with_fewer_than_two_rows_are_there_with_all(fitted):
    fit, target = fitted
    rows = np.flatnonzero(target.codes < 2)[:20]
    rows = np.append(rows, np.flatnonzero(target.codes == 2)[:1])
    scores, counted = HeldOutScores(rows).of(fit, target)
    expected = np.union1d(rows, np.flatnonzero(target.codes == 2))
    np.testing.assert_array_equal(
        scores, fit.left_out_scores(fit.left_out_groups(target))[expected]
    )
    np.testing.assert_array_equal(counted.counts, np.bincount(target.codes[expected]))


def test_held_out_scores_that_are_given(fitted):
    fit, target = fitted
    part = target.part(np.arange(10))
    scores, counted = HeldOutScores(scores=np.ones((10, 2)), target=part).of(fit, target)
    assert scores.shape == (10, 2)
    assert counted is part


# ---- of estimators ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:70]
    return scale(X)[rows], y[rows]


def test_given_kernels_are_learned_without_the_rows_that_say_what_to_expect(wine):
    X, y = wine
    clf = MultipleKernelDiscriminant([RBF(width=2.0), Linear()]).fit(X, y)
    assert clf.expected_.where == "held out, 5 folds"
    given = MultipleKernelDiscriminant(Linear(), regularization=0.1).fit(X, y)
    assert given.expected_.where == "held out, 15 folds"
    assert clf.expected_.n_rows == 70
    assert clf.expected_.low < clf.expected_.accuracy < clf.expected_.high
    assert MultipleKernelDiscriminant(Linear(), statistics="training").fit(X, y).expected_ is None


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
        assert accuracy < 1 / 20 + 0.06
        assert log_loss > 0.95 * np.log(20)


def _shown_model(expectation):
    model = fit_model(Data("iris"), Learner("uniform"))
    clf = model.pipeline[-1]
    right = Candidate("average", np.ones(1), 1e-3, -1e-9, 0.0, accuracy=1.0)
    learned = replace(clf.learned_kernel_, considered=(right,))
    head = replace(clf.model_.head, expected=expectation)
    facts = replace(clf.model_.facts, learned=learned)
    clf.model_ = replace(clf.model_, head=head, facts=facts)
    console = Console(width=100, file=io.StringIO())
    print_blocks(console, model.describe().blocks())
    return console.file.getvalue()


@pytest.mark.parametrize(
    "show",
    [
        repr,
        _shown_model,
        lambda each: METRICS["log_loss"].show(each.log_loss),
        lambda each: METRICS["accuracy"].show(each.log_loss),
        lambda each: percent(each.log_loss),
        lambda each: signed(each.log_loss),
    ],
)
def test_numbers_that_round_to_zero_have_no_minus_sign(show):
    shown = show(Expectation(1.0, 0.9, 1.0, -1e-9, 30, "leave-one-out"))
    assert "0.0" in shown
    assert not re.search(r"[-−]0\.0+\b(?!\d)", shown)


@pytest.mark.parametrize("options", [{"class_costs": [1.0, 1e9]}, {"threshold": 1e-9}])
def test_the_expected_accuracy_is_that_of_decisions_with_costs_and_thresholds(options):
    rng = np.random.default_rng(0)
    y = (np.arange(80) % 4 == 0).astype(int)
    X = rng.standard_normal((80, 2)) + y[:, None]
    plain = KernelDiscriminant().fit(X, y).expected_
    eager = KernelDiscriminant(**options).fit(X, y).expected_
    assert plain.accuracy > 0.7
    assert eager.accuracy == pytest.approx(0.25)  # every row is taken for the second class
    assert eager.log_loss == pytest.approx(plain.log_loss)
