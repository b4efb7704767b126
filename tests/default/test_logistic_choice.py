"""Candidates compared by kernel logistic regressions, where these predict classes much better."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from discernel import MultipleKernelDiscriminant, open_rows
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import LowRank
from discernel.default import choose as choice
from discernel.default import logits, propose
from discernel.default.choose import choose
from discernel.default.comparison import FoldComparison
from discernel.default.cross_fit import CrossFit, mixed_posteriors
from discernel.default.logits import LogitSearch
from discernel.default.metric import Metric
from discernel.default.sample import draw_sample
from discernel.discriminant import log_posteriors, posterior_losses
from discernel.programs.simplex import uniform
from discernel.targets import ClassTarget
from tests.default.tables import few_matter, make_sample, rules

EQUAL = uniform(12)


def without_metric(sample):
    return [Metric(np.ones(sample.rows.shape[1]))] * sample.n_folds


def sample_of(X, codes, given=None):
    weights = None if given is None else SampleWeights.of(given)
    target = ClassTarget(np.unique(codes), codes, weights)
    return draw_sample(X, target, most=1000, n_folds=4, rng=np.random.RandomState(0))


def log_loss(clf, X, y):
    return -np.log(clf.predict_proba(X)[np.arange(len(y)), y]).mean()


def test_rules_without_noise_are_found_by_logistic_regressions(monkeypatch):
    (X, y), (new, truth) = rules(150), rules(1000, seed=1)
    clf = MultipleKernelDiscriminant().fit(X, y)
    found = clf.learned_kernel_.considered
    assert all(candidate.logistic for candidate in found)
    assert found[0].strength > 0
    monkeypatch.setattr(choice, "_MUCH_BETTER", 0.0)
    other = MultipleKernelDiscriminant().fit(X, y)
    assert not any(candidate.logistic for candidate in other.learned_kernel_.considered)
    assert other.learned_kernel_.considered[0].strength == 0
    assert log_loss(clf, new, truth) < 0.5 * log_loss(other, new, truth)
    # Held-out rows were no part of what was chosen without them.
    assert clf.expected_.log_loss > 0.5 * log_loss(clf, new, truth)


def test_the_choice_says_so():
    clf = MultipleKernelDiscriminant().fit(*rules(150))
    assert "with logistic regression" in repr(clf.learned_kernel_.considered[0])
    described = clf.learned_kernel_.considered[0].describe(True)
    assert described.name.endswith(", with logistic regression")


def test_other_tables_are_compared_by_scores_alone():
    X, y = few_matter(150, 6)
    found = MultipleKernelDiscriminant().fit(X, y).learned_kernel_.considered
    assert not any(candidate.logistic for candidate in found)


def test_there_is_none_where_the_model_has_none(monkeypatch):
    monkeypatch.setattr(propose.LogitSearch, "most_rows", 100)
    found = MultipleKernelDiscriminant().fit(*rules(150)).learned_kernel_.considered
    assert not any(candidate.logistic for candidate in found)


@pytest.mark.parametrize("options", [{"statistics": "training"}, {"bank": LowRank(60)}])
def test_candidates_are_compared_without_what_the_model_lacks(options):
    found = MultipleKernelDiscriminant(**options).fit(*rules(150)).learned_kernel_.considered
    assert not any(candidate.logistic for candidate in found)


def test_candidates_of_chunks_are_compared_by_scores():
    found = MultipleKernelDiscriminant().fit(open_rows(*rules(150))).learned_kernel_.considered
    assert not any(candidate.logistic for candidate in found)


def test_more_rows_than_the_metric_was_learned_from(monkeypatch):
    monkeypatch.setattr(propose, "_FEW", 100)
    monkeypatch.setattr(propose, "_MOST_FOR_METRIC", 150)
    (X, y), (new, truth) = rules(320, seed=10), rules(1000, seed=1)
    clf = MultipleKernelDiscriminant().fit(X, y)
    found = clf.learned_kernel_.considered[0]
    assert found.logistic
    assert found.strength > 0
    assert "that the column scales were not learned from" in str(clf.expected_)
    assert clf.link_weights_["kernel logistic"] > 0
    monkeypatch.setattr(logits.LogitSearch, "most_rows", 300)
    other = MultipleKernelDiscriminant().fit(X, y)
    assert "kernel logistic" not in other.link_weights_
    assert log_loss(clf, new, truth) < 0.5 * log_loss(other, new, truth)
    assert clf.expected_.log_loss > 0.5 * log_loss(clf, new, truth)


@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_other_targets_have_no_logistic_regression(kind):
    sample = make_sample(kind=kind)
    found = choose(
        FoldComparison(sample), without_metric(sample), pull=5.0, logistic=True
    ).candidates
    assert not any(candidate.logistic for candidate in found)


def test_in_a_hurry_none_is_tried(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(choice, "must_stop_learning", lambda: True)
    monkeypatch.setattr(CrossFit, "add_logits", refuse)
    sample = sample_of(*rules(100))
    assert choose(
        FoldComparison(sample), without_metric(sample), pull=5.0, logistic=True
    ).candidates


@pytest.mark.parametrize(
    ("first", "others", "expected"), [(-1.0, 0.0, 1), (0.1, -0.1, 3), (1.0, 1.0, 4)]
)
def test_folds_end_where_they_are_not_much_better(first, others, expected, monkeypatch):
    """Than a candidate with so much more log-loss than it has: after one, some or all folds."""
    n_folds, add_fold = [], LogitSearch.add_fold

    def count(search, *fold):
        n_folds.append(len(fold[3]))
        add_fold(search, *fold)

    monkeypatch.setattr(LogitSearch, "add_fold", count)
    sample = sample_of(*few_matter(150, 6))
    compared = FoldComparison(sample)
    compared.try_strengths(without_metric(sample))
    n_folds.clear()
    for group in compared.tried:
        for tried in group:
            tried.losses[:] += np.where(sample.folds == 0, first, others)
    monkeypatch.setattr(FoldComparison, "try_strengths", lambda *_: None)
    found, lam = choice._with_logits(compared, without_metric(sample))
    assert len(n_folds) == expected
    assert (found is compared) == (expected < 4)
    assert lam > 0


def test_a_search_starts_from_a_known_regularization_or_takes_it():
    sample = sample_of(*rules(120))
    fit = CrossFit(sample, without_metric(sample), 0.0, dtype=np.float64)
    weights = [EQUAL] * sample.n_folds
    whole, near, same = (
        LogitSearch(sample.target, 0.1, *given, searches=searches)
        for given, searches in [((), True), ((1e-5,), True), ((1e-5,), False)]
    )
    for search in (whole, near, same):
        fit.add_logits(search, weights)
    assert list(same._logits) == [1e-5] == [same.regularization]
    assert same.loss >= near.loss
    # From 0.01 downhill, by half decades, to the same λ as from 1e-5.
    assert near.regularization == pytest.approx(whole.regularization, rel=1e-6)
    np.testing.assert_allclose(near.loss, whole.loss, rtol=1e-2)


@pytest.mark.parametrize("few", [600, 100])
def test_the_search_of_the_model_starts_from_the_regularization_of_the_candidates(few, monkeypatch):
    """Less of it, as more rows than those of the sample."""
    monkeypatch.setattr(propose, "_FEW", few)
    made, started = [], []

    def keep(*given, **options):
        made.append(propose.propose_kernels(*given, **options))
        return made[0]

    class Started(LogitSearch):
        def __init__(self, target, regularization, known=None):
            started.append(known)
            super().__init__(target, regularization, known)

    monkeypatch.setattr("discernel.learn.stages.propose_kernels", keep)
    monkeypatch.setattr("discernel.learn.held_out.LogitSearch", Started)
    MultipleKernelDiscriminant().fit(*rules(200))
    n_sample, lam = len(made[0].sample.rows), made[0].selection.logit_regularization
    assert n_sample == min(few, 200)
    assert started == [pytest.approx(lam * n_sample / 200)]


def test_logits_of_a_fold_do_not_know_its_labels():
    X, y = rules(120)
    sample = sample_of(X, y)
    inside = sample.folds == 1
    fit = CrossFit(sample, without_metric(sample), 0.0, dtype=np.float64)
    told = []
    for change in (0, 1):
        codes = np.where(inside, (sample.target.codes + change) % 3, sample.target.codes)
        target = ClassTarget(sample.target.classes, codes)
        search = LogitSearch(target, 0.1)
        search._lambdas, search._logits = [0.01], {0.01: np.zeros((120, 3))}  # leaves one λ
        search._coef = {0.01: np.zeros((120, 3))}
        for fold, division in zip(fit.folds, sample.divisions(), strict=True):
            search.add_fold(*fold.weighted_matrices(EQUAL), *division)
        told.append(search.held_out())
    np.testing.assert_array_equal(told[0][inside], told[1][inside])
    assert np.abs(told[0][~inside] - told[1][~inside]).max() > 0.01


@pytest.mark.parametrize("far", [0.0, 1e6])
def test_columns_far_from_the_origin_change_nothing(far):
    X, y = rules(100)
    given = np.where(np.arange(100) % 3 == 0, 3.0, 1.0)
    posteriors = []
    for rows in (X, X + far):
        sample = sample_of(rows, y, given)
        fit = CrossFit(sample, without_metric(sample), 0.0, dtype=np.float64)
        search = LogitSearch(sample.target, 0.1)
        fit.add_logits(search, [EQUAL] * sample.n_folds)
        posteriors.append(log_softmax(search.held_out(), axis=1))
    np.testing.assert_allclose(posteriors[1], posteriors[0], atol=1e-6)
    np.testing.assert_allclose(logsumexp(posteriors[0], axis=1), 0.0, atol=1e-12)


def test_losses_are_those_of_the_mixture():
    sample = sample_of(*rules(150))
    fit = CrossFit(sample, without_metric(sample), 0.0, dtype=np.float64)
    alone = fit.best("average", EQUAL, (0.1, 0.01))
    np.testing.assert_array_equal(alone.losses, alone.score_losses)
    both = replace(sample, logit_regularization=1e-3)
    fit = CrossFit(both, without_metric(sample), 0.0, dtype=np.float64)
    found = fit.best("average", EQUAL, (0.1, 0.01))
    lam = found.candidate.regularization
    assert lam == alone.candidate.regularization
    np.testing.assert_array_equal(found.score_losses, alone.losses)
    by_scores = log_posteriors(found.predicted, sample.target, sample.scores)
    search = LogitSearch(sample.target, lam, 1e-3, searches=False)
    fit.add_logits(search, [EQUAL] * sample.n_folds)
    by_logits = log_softmax(search.held_out(), axis=1)
    mixed = mixed_posteriors(by_scores, by_logits, sample.target)
    losses, right = posterior_losses(mixed, sample.target)
    np.testing.assert_allclose(found.losses, losses)
    assert found.candidate.error == pytest.approx(losses.mean())
    assert found.candidate.accuracy == pytest.approx(right.mean())
    assert found.candidate.logistic
    # All λ that were tried have the losses of the best, and their own by scores.
    assert all(one.losses is found.losses for one in fit.tried)
    assert len({id(one.score_losses) for one in fit.tried}) == len(fit.tried) == 2


def test_a_mixture_is_better_than_the_better_of_two_up_to_a_row():
    rng, n = np.random.default_rng(0), 400
    codes = rng.integers(0, 3, n)
    target = ClassTarget(np.arange(3), codes)
    right = log_softmax(3.0 * np.eye(3)[codes] + rng.normal(size=(n, 3)), axis=1)
    wrong = log_softmax(3.0 * rng.normal(size=(n, 3)), axis=1)
    mean = {}
    for name, pair in {"good": (right, wrong), "bad": (wrong, wrong)}.items():
        mixed = mixed_posteriors(*pair, target)
        np.testing.assert_allclose(logsumexp(mixed, axis=1), 0.0, atol=1e-12)
        mean[name] = posterior_losses(mixed, target)[0].mean()
    assert mean["good"] < posterior_losses(right, target)[0].mean() + 3.0 / n
    np.testing.assert_allclose(mean["bad"], posterior_losses(wrong, target)[0].mean())


@pytest.mark.parametrize("seed", [5, 9, 18])
def test_rounding_errors_of_ten_rows_are_smaller_than_what_is_added(seed):
    """λ falls to 1e-7, and so does the precision in which candidates are compared."""
    X, y = load_breast_cancer(return_X_y=True)
    X, _, y, _ = train_test_split(X, y, train_size=10, stratify=y, random_state=seed)
    clf = MultipleKernelDiscriminant().fit(X, y)
    assert any(candidate.logistic for candidate in clf.learned_kernel_.considered)
