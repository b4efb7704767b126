"""What predictions cost: posteriors by statistics of the other rows, against refits."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from discernel.arrays.sample_weights import SampleWeights
from discernel.discriminant import log_posteriors, row_losses
from discernel.targets import ClassTarget, LabelsTarget, RegressionTarget


def scores_of(y, seed=0, distance=2.0, n_classes=3):
    """Return scores of classes in one dimension less, none so far out that it would be cut."""
    rng = np.random.default_rng(seed)
    means = distance * np.eye(n_classes)[:, 1:]
    scores = means[y] + rng.standard_normal((len(y), n_classes - 1))
    return scores / np.linalg.norm(scores, axis=1).max()


def refitted_likelihood(scores, y, values):
    """Return log-likelihoods of each row by Gaussian classes without it, one after another."""
    found = np.empty((len(y), y.max() + 1))
    for i in range(len(y)):
        left = np.where(np.arange(len(y)) == i, 0.0, values)
        means = np.array([np.average(scores[y == c], axis=0, weights=left[y == c]) for c in set(y)])
        residuals = scores - means[y]
        # What makes the covariance of weighted rows right on average, class by class.
        lost = sum((left[y == c] ** 2).sum() / left[y == c].sum() for c in set(y))
        covariance = (left[:, None] * residuals).T @ residuals / (left.sum() - lost)
        for c, mean in enumerate(means):
            away = scores[i] - mean
            found[i, c] = -0.5 * away @ np.linalg.solve(covariance, away)
    return found


GIVEN = {
    "equal": None,
    "whole": np.arange(40) % 3 + 1.0,
    "weights": np.random.default_rng(1).uniform(0.2, 3.0, 40),
}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_posteriors_are_those_of_refits_without_each_row(given, n_classes):
    y = np.arange(40) % n_classes
    weights = None if GIVEN[given] is None else SampleWeights.of(GIVEN[given])
    target = ClassTarget.from_labels(y, weights)
    scores = scores_of(y, n_classes=n_classes)
    ones = np.ones(40)
    values = ones if weights is None else weights.values
    likelihood = refitted_likelihood(scores, y, values)
    priors = np.bincount(y, values) / values.sum()

    def posterior(log_factor):
        return log_softmax(np.exp(log_factor) * likelihood + np.log(priors), axis=1)

    # One row more than there are is of the likeliest other class.
    doubt = 1.0 / (values.sum() ** 2 / (values @ values) + 2.0)
    others = likelihood + np.log(priors)
    others[np.arange(40), y] = -np.inf
    others = others.argmax(axis=1)

    def loss(log_factor):
        table = posterior(log_factor)
        own, other = table[np.arange(40), y], table[np.arange(40), others]
        return -values @ ((1.0 - doubt) * own + doubt * other) / values.sum()

    factor = minimize_scalar(loss, bounds=(-12.0, 2.5), method="bounded").x
    # What should be told has the same order along the scores: nothing lies reversed.
    found = log_posteriors(scores, target, scores)
    np.testing.assert_allclose(found, posterior(factor), atol=1e-3)


def test_of_many_rows_posteriors_are_those_of_linear_discriminant_analysis():
    y = np.arange(3000) % 3
    scores = scores_of(y)
    found = log_posteriors(scores, ClassTarget.from_labels(y), scores)
    expected = LinearDiscriminantAnalysis(priors=np.full(3, 1 / 3)).fit(scores, y)
    # The classes are Gaussian: the sharpness is 1 up to chance.
    np.testing.assert_allclose(np.exp(found), expected.predict_proba(scores), atol=0.02)


def test_losses_are_minus_logarithms_of_the_right_class():
    y = np.arange(60) % 3
    target, scores = ClassTarget.from_labels(y), scores_of(y)
    losses, right = row_losses(scores, scores, target)
    posterior = log_posteriors(scores, target, scores)
    np.testing.assert_allclose(losses, -posterior[np.arange(60), y])
    np.testing.assert_array_equal(right, posterior.argmax(axis=1) == y)
    assert 0.6 < right.mean() < 1.0


def test_a_far_score_is_no_farther_than_twice_the_farthest_class():
    y = np.arange(60) % 3
    target = ClassTarget.from_labels(y)
    scores = target.scores + 0.5 * np.random.default_rng(0).standard_normal((60, 2))
    far, cut = scores.copy(), scores.copy()
    far[4] *= 1e8
    cut[4] *= 2.0 * np.sqrt(2.0) / np.linalg.norm(cut[4])  # classes are at the square root of 2
    np.testing.assert_allclose(
        log_posteriors(far, target, target.scores), log_posteriors(cut, target, target.scores)
    )


def test_no_row_costs_more_than_a_limit():
    y = np.arange(200) % 2
    scores, weights = scores_of(y, n_classes=2, distance=40.0), np.ones(200)
    scores[2], weights[2] = scores.max(), 1e-9  # of the other class for certain, and of no weight
    target = ClassTarget.from_labels(y, SampleWeights.of(weights))
    losses, right = row_losses(scores, scores, target)
    assert losses.argmax() == 2
    assert not right[2]
    limited = row_losses(1e3 * scores, scores, target)[0]
    assert limited.max() <= -np.log(1e-6) + 1e-9


@pytest.mark.parametrize("n_classes", [2, 10, 40])
def test_noise_costs_as_much_as_knowing_nothing(n_classes):
    """Statistics of 40 classes of 4 rows each tell their own rows apart, whatever the scores."""
    y = np.arange(160) % n_classes
    target = ClassTarget.from_labels(y)
    found = []
    for seed in range(8):
        scores = np.random.default_rng(seed).standard_normal((160, n_classes - 1))
        losses, right = row_losses(scores, target.scores, target)
        found.append((losses.mean(), right.mean()))
    loss, accuracy = np.mean(found, axis=0)
    assert loss > 0.97 * np.log(n_classes)
    assert accuracy < 1.0 / n_classes + 0.04


def test_reversed_scores_tell_nothing():
    y = np.arange(100) % 2
    target = ClassTarget.from_labels(y)
    scores = target.scores + np.random.default_rng(0).standard_normal((100, 1))
    assert row_losses(scores, target.scores, target)[0].mean() < 0.6
    losses, _ = row_losses(-scores, target.scores, target)
    np.testing.assert_allclose(losses, np.log(2.0), atol=1e-9)


def test_of_numbers_the_mean_squared_error_in_the_units_of_the_scores():
    rng = np.random.default_rng(0)
    target = RegressionTarget.from_values(rng.standard_normal((30, 2)))
    rows = np.arange(12)
    truth = target.scores[rows]
    predicted = truth + rng.standard_normal(truth.shape)
    losses, right = row_losses(predicted, truth, target.subset(rows))
    assert right is None
    np.testing.assert_allclose(losses, np.mean((predicted - truth) ** 2, axis=1))
    # Right is right, though the mean of these rows is another than that of all.
    np.testing.assert_array_equal(row_losses(truth, truth, target.subset(rows))[0], 0.0)


def test_labels_that_vanish_cost_too():
    has = np.column_stack([np.arange(30) % 2 == 0, np.arange(30) == 29])
    target, rows = LabelsTarget(has), np.arange(20)
    truth = target.scores[rows]
    losses, _ = row_losses(truth + np.array([0.0, 1.0]), truth, target.subset(rows))
    np.testing.assert_allclose(losses, 0.5)
