"""The mixture of links: its weights, and that it stays one linear function of the scores."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression

from discernel import KernelDiscriminant, MultipleKernelDiscriminant, load, save
from discernel.discriminant import calibrated, fit, held_out_likelihoods, mix_links
from discernel.discriminant.fit import _links, bounded_logits
from discernel.discriminant.links import LEAST_LOG, Link, logistic_link, mixture_weights
from discernel.export import numpy_scorer
from discernel.inspection import contributions
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


@pytest.mark.parametrize(("n_classes", "seed"), [(2, 2), (5, 0)])
def test_at_the_logistic_link_the_gradient_of_its_objective_is_zero(n_classes, seed):
    """To rounding, where values of the objective tell half of the digits only."""
    scores, target = noisy_scores(n_classes, 3000, seed)
    found, _ = calibrated(scores, target, target.class_scores)
    z, start = found.coordinates(scores), found.gaussian
    link, spread = logistic_link(start, z, target), np.mean(start.slopes**2)
    errors = softmax(link.log_likelihood(z) + np.log(target.shares), axis=1)
    errors[np.arange(len(z)), target.codes] -= 1.0
    errors *= (target.row_weights.shares * target.effective)[:, None]
    by_slopes = np.sqrt(spread) * z.T @ errors + (link.slopes - start.slopes) / np.sqrt(spread)
    by_constants = errors.sum(axis=0) + link.constants - start.constants
    np.testing.assert_allclose(by_slopes, 0.0, atol=1e-10)
    np.testing.assert_allclose(by_constants, 0.0, atol=1e-10)


def test_without_slopes_the_logistic_link_is_the_one_it_is_drawn_to():
    _, target = noisy_scores()
    start = Link(np.zeros((2, 3)), np.zeros(3))
    assert logistic_link(start, np.zeros((150, 2)), target) is start


def test_along_coordinates_without_slopes_the_logistic_link_has_none():
    """Classes lie reversed along them: a separation that new rows do not have."""
    scores, target = noisy_scores()
    found, _ = calibrated(scores, target, target.class_scores)
    z, start = found.coordinates(scores), found.gaussian
    start.slopes[1] = 0.0
    link = logistic_link(start, z, target)
    one = logistic_link(Link(start.slopes[:1], start.constants), z[:, :1], target)
    np.testing.assert_array_equal(link.slopes[1], 0.0)
    np.testing.assert_allclose(link.slopes[:1], one.slopes, rtol=1e-10)
    np.testing.assert_allclose(link.constants, one.constants, rtol=1e-10)


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
    """Log-loss, one row in n + 2 of the likeliest other class, and the pull to equal weights.

    As by 90 rows more, of at most 200, whose log-loss has its mean curvature, and is least at equal
    weights.
    """
    scores, target = noisy_scores(n=90)
    one = scores @ target.class_scores.T
    likelihoods, rows = np.stack([one, 0.1 * one**3]), np.arange(90)
    others = likelihoods.mean(axis=0) + np.log(target.shares)
    equal = softmax(others, axis=1)
    others[rows, target.codes] = -np.inf

    def objective(weights):
        told = np.tensordot(weights, likelihoods, 1) + np.log(target.shares)
        told = log_softmax(told, axis=1)
        right, wrong = told[rows, target.codes], told[rows, others.argmax(axis=1)]
        change = np.tensordot(weights - 0.5, likelihoods, 1)
        spread = np.sum(equal * change**2, axis=1) - np.sum(equal * change, axis=1) ** 2
        pull = 45.0 * np.mean(spread) + np.sum((weights - 0.5) ** 2)
        return -np.sum(right + (wrong - right) / 92) + pull

    best = mixture_weights(likelihoods, target, np.log(target.shares))
    for step in (*np.eye(2), *-np.eye(2)):
        assert objective(np.maximum(best + 1e-3 * step, 0.0)) > objective(best) - 1e-9


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_probabilities_are_one_linear_function_of_the_scores(load):
    X, y = load(return_X_y=True)
    clf = MultipleKernelDiscriminant().fit(X[::2], y[::2])
    model, mixture = clf.model_, clf.discriminant_.mixture
    scores = model.scores(X[1::2])
    assert scores.shape[1] == 2 * (len(clf.classes_) - 1) == model.coef.shape[1]
    logits = scores @ mixture.link.slopes + mixture.link.constants + np.log(clf.priors_)
    np.testing.assert_allclose(clf.predict_proba(X[1::2]), np.exp(log_softmax(logits, axis=1)))
    assert list(clf.link_weights_) == ["gaussian", "logistic", "kernel logistic"]
    assert min(clf.link_weights_.values()) >= 0


def mixed(seed=0):
    """Return Gaussian classes, and logits that tell the classes about as well."""
    scores, target = noisy_scores(n=300, seed=seed)
    found, _ = calibrated(scores, target, target.class_scores)
    better = 2.0 * (scores + np.random.default_rng(9).standard_normal(scores.shape))
    logits = better @ target.class_scores.T
    return found, logits[:, 1:] - logits[:, :1], target


def test_logits_are_mixed_as_log_likelihoods():
    """Less the log-shares that they have in them, so that a prior counts once."""
    found, logits, target = mixed()
    mixture, alone = mix_links(found, None, logits), mix_links(found, None)
    weight, scores = mixture.weights["kernel logistic"], found.training_scores
    assert weight > 0.05
    own = np.pad(logits, ((0, 0), (1, 0))) - np.log(target.shares)
    links = [found.from_scores(found.gaussian), _links(found, scores, target)[1]]
    expected = weight * own
    for name, link in zip(("gaussian", "logistic"), links, strict=True):
        expected += mixture.weights[name] * link.log_likelihood(scores)
    ours = mixture.link.log_likelihood(np.hstack([scores, logits]))
    np.testing.assert_allclose(ours, expected, atol=1e-10)
    # Importances are those of the links of least-squares scores, with weights of their own.
    for one, other in zip(mixture.score_link, alone.link, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_held_out_probabilities_are_of_weights_of_other_folds():
    found, logits, target = mixed()
    mixture = mix_links(found, None, logits)
    turned = mix_links(found, None, logits[:, ::-1])
    assert log_loss(mixture.held_out, target) < log_loss(turned.held_out, target)
    folds, predicted = held_out_likelihoods(found, None)
    own = np.pad(logits, ((0, 0), (1, 0))) - np.log(target.shares)
    finite, outside = np.stack([*predicted, own]), np.flatnonzero(folds != 0)
    part = target.part(outside)
    weights = mixture_weights(finite[:, outside], part, np.log(target.shares))
    expected = np.tensordot(weights, finite[:, folds == 0], 1)
    np.testing.assert_allclose(mixture.held_out[folds == 0], expected)


def test_whether_a_fold_has_logits_is_told_by_the_other_folds():
    """By all rows, labels of the fold would have a say: of noise, only the lucky ones had them."""
    found, logits, _ = mixed()
    nothing = replace(found, means=np.zeros_like(found.means))
    held_out = mix_links(found, None, logits).held_out
    np.testing.assert_array_equal(mix_links(nothing, None, logits).held_out, held_out)
    turned = replace(found, training_scores=-found.training_scores)  # no folds find anything
    target = found.training
    assert log_loss(mix_links(turned, None, logits).held_out, target) == pytest.approx(np.log(3))


def test_folds_in_threads_are_those_in_turn(monkeypatch):
    found, logits, _ = mixed()
    expected = mix_links(found, None, logits)
    monkeypatch.setattr(fit, "free_threads", lambda n: 3)
    mixture = mix_links(found, None, logits)
    np.testing.assert_array_equal(mixture.held_out, expected.held_out)
    assert mixture.weights == expected.weights


def test_where_gaussian_classes_find_nothing_the_mixture_is_the_prior():
    found, logits, _ = mixed()
    nothing = replace(found, means=np.zeros_like(found.means))
    mixture = mix_links(nothing, None, logits)
    assert mixture.weights["kernel logistic"] == 0.0
    assert len(mixture.link.slopes) == 2
    told = mixture.link.log_likelihood(found.training_scores)
    np.testing.assert_array_equal(told, np.zeros_like(told))


def test_of_noise_nothing_is_said_but_the_shares():
    rng, y = np.random.default_rng(0), np.arange(60) % 3 == 0
    told = []
    for _ in range(6):
        X = rng.standard_normal((60, 3))
        clf = MultipleKernelDiscriminant().fit(X, y)
        if not clf.discriminant_.means.any():
            told.append(clf.predict_proba(rng.standard_normal((20, 3))))
            assert clf.link_weights_["kernel logistic"] == 0.0
            assert clf.model_.coef.shape[1] == 1
    assert told
    np.testing.assert_allclose(np.concatenate(told)[:, 1], 1 / 3, rtol=0, atol=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
def test_neither_the_order_of_rows_nor_offsets_of_columns_show(weighted):
    X, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    order, weights = rng.permutation(len(y)), rng.uniform(0.5, 2.0, len(y)) if weighted else None
    clf = MultipleKernelDiscriminant().fit(X, y, sample_weight=weights)
    told, moved = clf.predict_proba(X), X + 1000.0
    assert clf.link_weights_["kernel logistic"] > 0
    for rows, given in ((X[order], order), (moved[order], order)):
        again = None if weights is None else weights[given]
        other = MultipleKernelDiscriminant().fit(rows, y[given], sample_weight=again)
        np.testing.assert_allclose(other.predict_proba(rows), told[given], atol=1e-6)


def test_saved_explained_and_exported_like_any_other_model(tmp_path):
    X, y = load_iris(return_X_y=True)
    clf = MultipleKernelDiscriminant().fit(X[::2], y[::2])
    assert clf.link_weights_["kernel logistic"] > 0
    again = load(save(clf, tmp_path / "iris.skops"))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.link_weights_ == clf.link_weights_
    found, decided = contributions(clf, X[1:20:2]), clf.decision_function(X[1:20:2])
    total = found.baseline + found.columns.sum(axis=-1)
    decided -= decided.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(total, decided, atol=1e-9)
    exported = numpy_scorer(clf).predict_proba(X)
    np.testing.assert_allclose(exported, clf.predict_proba(X), atol=1e-9)


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


def test_the_logistic_link_knows_that_classes_differ_in_size():
    rng = np.random.default_rng(0)
    target = ClassTarget(np.arange(2), np.repeat([0, 1], [2700, 300]))
    scores = target.class_scores[target.codes] + 1.5 * rng.standard_t(3, (3000, 1))
    found, _ = calibrated(scores, target, target.class_scores)
    z = found.coordinates(scores)
    link = logistic_link(found.gaussian, z, target)
    free = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10000).fit(z, target.codes)
    ours = log_softmax(link.log_likelihood(z) + np.log(target.shares), axis=1)
    np.testing.assert_allclose(np.exp(ours), free.predict_proba(z), atol=5e-3)


@pytest.mark.parametrize("size", [1.0, 30.0, 1e6])
def test_bounded_logits_keep_the_likeliest_class(size):
    """Bounds of logits relative to the first class made the two others equal."""
    logits = size * np.random.default_rng(0).standard_normal((200, 4))
    found = np.pad(bounded_logits(logits[:, 1:] - logits[:, :1]), ((0, 0), (1, 0)))
    np.testing.assert_array_equal(found.argmax(axis=1), logits.argmax(axis=1))
    below = found.max(axis=1, keepdims=True) - found
    expected = np.minimum(logits.max(axis=1, keepdims=True) - logits, -LEAST_LOG)
    np.testing.assert_allclose(below, expected, atol=1e-9 * size)
