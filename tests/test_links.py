"""The mixture of links: what it promises, and that it stays one linear function of the scores."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression

from discernel import KernelDiscriminant, MultipleKernelDiscriminant
from discernel.discriminant import calibrated
from discernel.discriminant.links import Link, logistic_link, mixture_weights
from discernel.targets import ClassTarget


def noisy_scores(n_classes=3, n=150, seed=0):
    """Return held-out scores with heavy tails, for which Gaussian classes are too simple."""
    rng = np.random.default_rng(seed)
    target = ClassTarget(np.arange(n_classes), np.arange(n) % n_classes)
    noise = rng.standard_t(2, (n, n_classes - 1))
    return target.class_scores[target.codes] + 0.6 * noise, target


def log_loss(likelihood, target):
    told = log_softmax(likelihood + np.log(target.shares), axis=1)
    return -float(np.mean(told[np.arange(len(told)), target.codes]))


def test_the_logistic_link_is_a_penalised_logistic_regression():
    """Far from the penalty, that of scikit-learn on the same coordinates."""
    scores, target = noisy_scores(n=3000)
    found, _ = calibrated(scores, target, target.class_scores)
    z = found.coordinates(scores)
    link = logistic_link(found.gaussian, z, target)
    free = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10000).fit(z, target.codes)
    ours = log_softmax(link.log_likelihood(z) + np.log(target.shares), axis=1)
    np.testing.assert_allclose(np.exp(ours), free.predict_proba(z), atol=5e-3)
    assert log_loss(link.log_likelihood(z), target) < log_loss(
        found.gaussian.log_likelihood(z), target
    )


def test_without_slopes_the_logistic_link_is_the_one_it_is_drawn_to():
    _, target = noisy_scores()
    start = Link(np.zeros((2, 3)), np.zeros(3))
    assert logistic_link(start, np.zeros((150, 2)), target) is start


def test_the_mixture_is_as_good_as_its_best_link_and_its_weights_are_not_negative():
    scores, target = noisy_scores(n=600)
    good = 2.0 * scores @ target.class_scores.T
    bad = np.random.default_rng(1).standard_normal(good.shape)
    weights = mixture_weights(np.stack([bad, good]), target, np.log(target.shares))
    assert (weights >= 0).all()
    assert weights[1] > 3 * weights[0]
    mixed = log_loss(np.tensordot(weights, np.stack([bad, good]), 1), target)
    assert mixed <= log_loss(good, target) + 1e-6


def test_mixture_weights_minimise_their_objective():
    """Log-loss, one row in n + 2 of the likeliest other class, and the pull to equal weights."""
    scores, target = noisy_scores(n=90)
    one = scores @ target.class_scores.T
    likelihoods, rows = np.stack([one, 0.1 * one**3]), np.arange(90)
    others = likelihoods.mean(axis=0) + np.log(target.shares)
    others[rows, target.codes] = -np.inf

    def objective(weights):
        told = np.tensordot(weights, likelihoods, 1) + np.log(target.shares)
        told = log_softmax(told, axis=1)
        right, wrong = told[rows, target.codes], told[rows, others.argmax(axis=1)]
        return -np.sum(right + (wrong - right) / 92) + 10.0 * np.sum((weights - 0.5) ** 2)

    best = mixture_weights(likelihoods, target, np.log(target.shares))
    for step in (*np.eye(2), *-np.eye(2)):
        assert objective(np.maximum(best + 1e-3 * step, 0.0)) > objective(best) - 1e-9


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_probabilities_are_one_linear_function_of_the_scores(load):
    X, y = load(return_X_y=True)
    clf = MultipleKernelDiscriminant().fit(X[::2], y[::2])
    model, mixture = clf.model_, clf.discriminant_.mixture
    scores = model.scores(X[1::2])
    assert scores.shape[1] == len(clf.classes_) - 1 == model.coef.shape[1]
    logits = scores @ mixture.link.slopes + mixture.link.constants + np.log(clf.priors_)
    np.testing.assert_allclose(clf.predict_proba(X[1::2]), np.exp(log_softmax(logits, axis=1)))
    assert list(clf.link_weights_) == ["gaussian", "logistic"]
    assert min(clf.link_weights_.values()) >= 0


def test_statistics_of_training_rows_have_gaussian_classes_alone():
    X, y = load_wine(return_X_y=True)
    clf = KernelDiscriminant("linear", statistics="training").fit(X, y)
    assert clf.link_weights_ == {"gaussian": 1.0}
    assert clf.model_.coef.shape[1] == 2


def test_whatever_the_priors_the_mixture_stays():
    """Priors are added to log-likelihoods: Bayes' rule with others is that with the shares."""
    X, y = load_breast_cancer(return_X_y=True)
    given, even = (
        MultipleKernelDiscriminant(priors=priors).fit(X[::3], y[::3])
        for priors in (None, "uniform")
    )
    assert given.link_weights_ == even.link_weights_
    odds = np.log(given.predict_proba(X[1::3])) - np.log(given.priors_)
    np.testing.assert_allclose(
        np.exp(log_softmax(odds, axis=1)), even.predict_proba(X[1::3]), atol=1e-12
    )
