"""What a model says about itself holds on new rows: given kernels, few rows, any λ."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discernel import KernelDiscriminant, MultiLabelKernelDiscriminant, MultipleKernelDiscriminant
from discernel.bank import DenseBank
from discernel.criteria import KernelLeastSquares
from discernel.kernels import RBF
from discernel.learn import learn, make_request
from discernel.learn.held_out import cross_fitted_scores
from discernel.learn.rows import Learning
from discernel.model import Facts
from discernel.programs.base import draw_part
from discernel.targets import ClassTarget
from tests import reference


def noise(seed, n=80, n_columns=25, n_classes=2):
    return np.random.default_rng(seed).standard_normal((n, n_columns)), np.arange(n) % n_classes


def per_column(n_columns):
    return [RBF(width=1.5).on([column]) for column in range(n_columns)]


@pytest.mark.parametrize("criterion", ["rkda", "fdr", "alignment", "akfd", "loo", "uniform"])
def test_a_kernel_per_column_of_noise_promises_nothing(criterion):
    """The weights have seen every label: leave-one-out of the fit alone claims 61 to 90 %."""
    found = []
    for seed in range(6):
        clf = MultipleKernelDiscriminant(per_column(25), criterion=criterion).fit(*noise(seed))
        found.append((clf.expected_.accuracy, clf.expected_.log_loss))
        probabilities = clf.predict_proba(noise(seed + 100)[0])
        assert np.abs(probabilities - 0.5).mean() < 0.2
    accuracy, loss = np.mean(found, axis=0)
    assert abs(accuracy - 0.5) < 0.07
    assert abs(loss - np.log(2)) < 0.05


def test_the_search_among_criteria_promises_nothing_of_noise():
    found = [
        MultipleKernelDiscriminant(per_column(25)).fit(*noise(seed)).expected_.accuracy
        for seed in range(4)
    ]
    assert abs(np.mean(found) - 0.5) < 0.08


@pytest.mark.parametrize("n_classes", [2, 3])
def test_held_out_scores_are_those_of_refits(n_classes):
    """Weights and λ of the other folds, then fits to almost all rows, in the units of the model.

    Against weights learned on part of the matrices, and refits without each group of rows.
    """
    X, y = noise(7, 45, 6, n_classes)
    X[:, 0] += y
    grams = np.array([kernel(X) for kernel in per_column(6)])
    request, target = make_request(criterion="rkda"), ClassTarget.from_labels(y)
    bank = DenseBank(grams, normalization="centered_trace")
    model = learn(bank, target, request)
    ridge = np.full(45, model.regularization)
    fit = KernelLeastSquares(bank.system(model.weights, ridge), ridge, target.scores)
    rows, facts = SimpleNamespace(X=X), Facts(model, [], "dense")
    learning = Learning(None, rows, target, request, bank, model.weights, None, None, facts)
    scores, folds = cross_fitted_scores(learning, fit)
    assert sorted(np.bincount(folds)) == [9] * 5

    def left_out(weights, lam):
        kernel = np.tensordot(weights, reference.trace_normalized(grams), 1)
        groups = fit.left_out_groups(target).codes
        found = reference.leave_one_out(kernel, np.full(45, lam), target.scores, groups)
        return reference.about_other_rows(found, target.scores, groups)

    lambdas = set()
    for fold in range(5):
        outside, inside = np.flatnonzero(folds != fold), folds == fold
        part = DenseBank(grams[:, outside][:, :, outside], normalization="centered_trace")
        learned = learn(part, target.subset(outside), request)
        expected = left_out(learned.weights, learned.regularization)[inside]
        like_model = left_out(learned.weights, model.regularization)[inside]
        expected *= np.linalg.norm(like_model) / np.linalg.norm(expected)
        np.testing.assert_allclose(scores[inside], expected, atol=1e-6)
        lambdas.add(learned.regularization)
    assert lambdas - {model.regularization}, "the units of scores are not tested"


@pytest.mark.parametrize("kernels", ["auto", "given"])
def test_classes_with_the_same_distribution_are_not_told_apart(kernels):
    """Two of six classes are the same: half of their rows are wrong, and `expected_` knows.

    With leave-one-out scores, 5 points too many were claimed.
    """
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        centers, y = rng.normal(size=(6, 3)) * 6.0, rng.integers(0, 6, 2200)
        centers[5] = centers[4]
        X = centers[y] + rng.normal(size=(2200, 3))
        given = "auto" if kernels == "auto" else [RBF(width=w) for w in (0.5, 2.0, 8.0)]
        clf = MultipleKernelDiscriminant(given).fit(X[:200], y[:200])
        found.append([clf.expected_.accuracy - clf.score(X[200:], y[200:]), log_loss_of(clf, X, y)])
    accuracy, loss = np.mean(found, axis=0)
    assert accuracy < 0.025
    assert loss < 0.1


def log_loss_of(clf, X, y):
    """Return the log-loss of rows after the first 200, less that which is expected."""
    told = clf.predict_proba(X[200:])[np.arange(len(y) - 200), y[200:]]
    return -np.log(told).mean() - clf.expected_.log_loss


@pytest.mark.parametrize("criterion", ["auto", "rkda"])
def test_folds_are_searched_on_no_more_rows_than_the_whole(criterion, monkeypatch):
    """A third of 600 rows, but no fewer than 300; and so of each 480 of them."""
    searched, draw = [], draw_part

    def spy(bank, target, share, rng):
        searched.append(round(share * target.n_samples))
        return draw(bank, target, share, rng)

    monkeypatch.setattr("discernel.programs.base.draw_part", spy)
    X, y = noise(0, 600, 2)
    MultipleKernelDiscriminant(per_column(2), criterion=criterion).fit(X, y)
    assert searched == [300] * 6


def test_folds_do_not_depend_on_the_order_of_rows():
    X, y = noise(3, 60, 5)
    X[:, 0] += y
    order = np.random.default_rng(0).permutation(60)
    first = MultipleKernelDiscriminant(per_column(5), criterion="rkda").fit(X, y)
    second = MultipleKernelDiscriminant(per_column(5), criterion="rkda").fit(X[order], y[order])
    assert first.expected_.accuracy == pytest.approx(second.expected_.accuracy)
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("lam", [10.0, 0.1])
def test_expected_accuracy_is_leave_one_out_by_refits(lam):
    """Also where λ is so large that leaving a row out moves the constant more than the fit."""
    X, y = (part[::2] for part in load_iris(return_X_y=True))
    model = KernelDiscriminant(RBF(width=2.0), regularization=lam)
    right = []
    for row in range(len(y)):
        others = np.arange(len(y)) != row
        right.append(model.fit(X[others], y[others]).predict(X[row : row + 1])[0] == y[row])
    expected = model.fit(X, y).expected_.accuracy
    assert abs(expected - np.mean(right)) < 1.5 / len(y)
    assert expected > 0.9


def test_few_separable_rows_are_not_near_certain():
    """Twenty rows of two Gaussians: probabilities are as good as those of logistic regression."""
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        y = np.arange(1020) % 2
        X = rng.standard_normal((1020, 2)) + 2.5 * y[:, None]
        clf = MultipleKernelDiscriminant().fit(X[:20], y[:20])
        peer = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:20], y[:20])
        losses = [log_loss(y[20:], model.predict_proba(X[20:])) for model in (clf, peer)]
        found.append((*losses, clf.expected_.log_loss))
    ours, theirs, claimed = np.mean(found, axis=0)
    assert ours < 1.3 * theirs
    assert abs(claimed - ours) < 0.08


def test_six_rows_know_little():
    X, y = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]), np.repeat([0, 1], 3)
    log_odds = np.abs(MultipleKernelDiscriminant().fit(X, y).decision_function(X))
    assert log_odds.max() < 5.0


def test_labels_of_noise_are_not_told_apart_either():
    X, _ = noise(0, 80, 25)
    labels = np.random.default_rng(1).uniform(size=(80, 3)) < 0.5
    clf = MultiLabelKernelDiscriminant(per_column(25), criterion="rkda").fit(X, labels)
    fresh = clf.predict_proba(noise(1, 80, 25)[0])
    assert np.abs(np.asarray(fresh) - 0.5).max() < 0.35
