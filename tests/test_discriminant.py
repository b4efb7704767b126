"""The discriminant: linear discriminant analysis in the feature space, and honest statistics."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
from scipy.special import expit
from sklearn.datasets import load_iris, load_wine, make_blobs, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from sklearn.utils.class_weight import compute_class_weight

from discernel import KernelDiscriminant
from discernel.arrays.sample_weights import row_weights
from discernel.discriminant import (
    Decision,
    Discriminant,
    calibrated,
    left_out_log_likelihood,
)
from discernel.discriminant.fit import _span
from discernel.discriminant.gaussian import _best_factor
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Linear
from discernel.targets import ClassTarget
from tests import reference


def linear(**options):
    return KernelDiscriminant(Linear(), regularization=1e-9, statistics="training", **options)


def data_sets():
    X, y = make_classification(
        200, n_features=8, n_informative=5, n_classes=4, class_sep=0.7, random_state=0
    )
    return {"iris": load_iris(return_X_y=True), "wine": load_wine(return_X_y=True), "made": (X, y)}


@pytest.mark.parametrize("name", ["iris", "wine", "made"])
def test_linear_kernel_and_vanishing_lambda_is_lda(name):
    """More samples than features: the same predictions and probabilities as scikit-learn's."""
    X, y = data_sets()[name]
    X = scale(X)
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(X[::2], y[::2])
    ours = linear().fit(X[::2], y[::2])
    np.testing.assert_array_equal(ours.predict(X), lda.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), lda.predict_proba(X), atol=1e-5)


def test_transform_spans_the_directions_of_lda_in_order():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    ours = linear().fit(X, y)
    for a, b in zip(ours.transform(X).T, theirs.transform(X).T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) == pytest.approx(1.0, abs=1e-8)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, theirs.explained_variance_ratio_, atol=1e-6
    )


@pytest.mark.parametrize("statistics", ["loo", "training"])
def test_training_classes_have_covariance_one(blobs, statistics):
    """Of the scores the statistics were taken from, in the coordinates of transform."""
    X, y = blobs
    clf = KernelDiscriminant(RBF(), regularization=0.1, statistics=statistics).fit(X, y)
    Z = clf.discriminant_.coordinates(clf.discriminant_.training_scores)
    residuals = Z - np.array([Z[y == label].mean(axis=0) for label in np.unique(y)])[y]
    if statistics == "loo":
        np.testing.assert_allclose(residuals.T @ residuals / (len(y) - 3), np.eye(2), atol=1e-8)
    else:  # the penalty of Eq. (23) is part of the covariance, so what is left is smaller
        assert np.linalg.eigvalsh(residuals.T @ residuals / len(y)).max() < 1.0


def test_directions_maximise_ye_2008_eq_23(blobs):
    """tr[(Wᵀ(S+λI)W)⁻¹WᵀBW] is as large as the generalised eigenvalues of size m allow."""
    X, y = blobs
    lam = 0.01
    clf = KernelDiscriminant(RBF(), regularization=lam, statistics="training").fit(X, y)
    kernel = RBF().resolve(X)
    K = reference.trace_normalized(kernel(X)[None])[0]
    H = reference.indicator(y)
    between, total = K @ H @ H.T @ K / len(y), K @ K + lam * K
    total += 1e-12 * np.trace(total) * np.eye(len(y)) / len(y)
    best = scipy.linalg.eigh(between, total, eigvals_only=True)[-2:].sum()
    A = clf.discriminant_.dual_coef
    ratio = np.trace(np.linalg.solve(A.T @ total @ A, A.T @ between @ A))
    assert ratio == pytest.approx(best, rel=1e-6)


def test_fdr_direction_is_kim_2006_eq_5():
    """α* = (1/λ)[I − J(λI + JGJ)⁻¹JG]a, up to scale."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [15, 25])
    X = rng.standard_normal((40, 3)) + 0.8 * y[:, None]
    lam = 0.05
    G = RBF(width=2.0)(X)  # trace m already
    a, J = reference.kim_a_and_J(y)
    alpha = a - J @ np.linalg.solve(lam * np.eye(40) + J @ G @ J, J @ G @ a)
    clf = KernelDiscriminant(RBF(width=2.0), criterion="fdr", regularization=lam).fit(X, y)
    ours = clf.discriminant_.dual_coef[:, 0]
    np.testing.assert_allclose(ours / ours[0], alpha / alpha[0], rtol=1e-6)


def test_training_scores_are_the_scores_of_the_training_rows(blobs):
    X, y = blobs
    clf = KernelDiscriminant(RBF(), regularization=0.01, statistics="training").fit(X, y)
    direct = clf.discriminant_.coordinates(clf.discriminant_.training_scores)
    np.testing.assert_allclose(clf.transform(X), direct, atol=1e-8)


def test_leave_one_out_scores_are_those_of_refits(blobs):
    """The statistics of 'loo' are those of models that have not seen the rows of a group."""
    X, y = blobs
    clf = KernelDiscriminant(RBF(width=4.0), regularization=0.01).fit(X, y)
    K = reference.trace_normalized(RBF(width=4.0)(X)[None])[0]
    target = ClassTarget.from_labels(y)
    coef, _ = reference.least_squares(K, np.full(len(y), 0.01), target.scores)
    groups = target.left_out_groups(-coef).codes
    expected = reference.leave_one_out(K, np.full(len(y), 0.01), target.scores, groups)
    # Relative to the mean of the fit that each is of: that of the targets of the other rows.
    expected = reference.about_other_rows(expected, target.scores, groups)
    np.testing.assert_allclose(clf.discriminant_.training_scores, expected, atol=1e-7)


def test_loo_statistics_are_honest_where_training_ones_are_not(blobs):
    """A narrow kernel with a tiny λ fits its own rows perfectly and new ones not at all."""
    X, y = blobs
    train, test = train_test_split(np.arange(len(y)), stratify=y, random_state=0)
    losses = {}
    for statistics in ("loo", "training"):
        clf = KernelDiscriminant(RBF(width=3.0), regularization=1e-6, statistics=statistics)
        clf.fit(X[train], y[train])
        losses[statistics] = log_loss(y[test], clf.predict_proba(X[test]))
    assert losses["loo"] < np.log(3) < losses["training"]


def test_costs_move_the_boundary_and_not_the_probabilities(blobs):
    X, y = blobs
    plain = KernelDiscriminant(regularization=0.1).fit(X, y)
    costly = KernelDiscriminant(regularization=0.1, class_costs={2: 5.0}).fit(X, y)
    np.testing.assert_array_equal(plain.predict_proba(X), costly.predict_proba(X))
    expected = (plain.predict_proba(X) * [1.0, 1.0, 5.0]).argmax(axis=1)
    np.testing.assert_array_equal(costly.predict(X), expected)
    assert (costly.predict(X) == 2).sum() > (plain.predict(X) == 2).sum()
    listed = KernelDiscriminant(regularization=0.1, class_costs=[1, 1, 5]).fit(X, y)
    np.testing.assert_array_equal(listed.predict(X), expected)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_threshold_is_a_probability_of_the_second_class(blobs, threshold):
    X, y = blobs
    X, y = X[y > 0], y[y > 0]
    clf = KernelDiscriminant(regularization=0.1, threshold=threshold).fit(X, y)
    probability = clf.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(clf.predict(X) == 2, probability > threshold)
    np.testing.assert_array_equal(clf.predict(X) == 2, clf.decision_function(X) > 0)


def test_roc_threshold_has_the_largest_youden_index(blobs):
    X, y = blobs
    X, y = X[y > 0], y[y > 0]
    clf = KernelDiscriminant(regularization=0.1, threshold="roc", priors=[0.9, 0.1]).fit(X, y)
    posterior = clf.discriminant_.log_posterior(clf.discriminant_.training_scores, clf.priors_)
    probability = 1 / (1 + np.exp(posterior[:, 0] - posterior[:, 1]))

    def youden(t):
        return np.mean(probability[y == 2] > t) - np.mean(probability[y == 1] > t)

    best = max(youden(t) for t in np.append(probability - 1e-12, 1.0))
    assert youden(clf.threshold_) == pytest.approx(best)


def test_priors_shift_log_odds_by_their_ratio(blobs):
    X, y = blobs
    X, y = X[y > 0], y[y > 0]
    even = KernelDiscriminant(regularization=0.1, priors="uniform").fit(X, y)
    skew = KernelDiscriminant(regularization=0.1, priors=[0.2, 0.8]).fit(X, y)
    shift = skew.decision_function(X) - even.decision_function(X)
    np.testing.assert_allclose(shift, np.log(4.0), rtol=1e-9)
    share = KernelDiscriminant(regularization=0.1).fit(X, y)
    np.testing.assert_allclose(share.priors_, [25 / 60, 35 / 60])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_far_too_much_regularization_does_not_turn_predictions_round(n_classes):
    """Leaving a row out moves the constant away from its class; that does not turn the fit."""
    X, y = make_blobs([30, 20, 25][:n_classes], n_features=3, cluster_std=1.0, random_state=0)
    accuracies = []
    for lam in (1e-3, 1e-1, 1e1, 1e3):
        clf = KernelDiscriminant(RBF(width=3.0), regularization=lam).fit(X, y)
        accuracies.append(clf.score(X, y))
    assert accuracies[0] == 1.0
    assert min(accuracies) > 0.9


# ---- kernels of low rank ---------------------------------------------------------------------


@pytest.mark.parametrize(("n_features", "n_classes"), [(1, 4), (2, 20), (3, 10)])
@pytest.mark.parametrize("statistics", ["loo", "training"])
def test_kernel_of_a_rank_below_the_number_of_classes(n_features, n_classes, statistics):
    """Left-out scores have more dimensions than scores of rows: noise, not to be whitened."""
    lam = "loo" if statistics == "loo" else 1e-6  # with more, the penalty is in the covariance
    clf = KernelDiscriminant(Linear(), regularization=lam, statistics=statistics)
    differences = []
    for seed in (1, 2, 3):  # 200 rows tell an accuracy to a point
        X, y = make_blobs(400, n_features=n_features, centers=n_classes, random_state=seed)
        lda = LinearDiscriminantAnalysis().fit(X[::2], y[::2])
        ours = clf.fit(X[::2], y[::2]).score(X[1::2], y[1::2])
        differences.append(ours - lda.score(X[1::2], y[1::2]))
    assert np.mean(differences) >= -0.02
    Z = clf.transform(X)
    names = clf.get_feature_names_out()
    assert Z.shape[1] == len(names) == len(clf.explained_variance_ratio_) == n_features
    assert clf.explained_variance_ratio_.sum() == pytest.approx(1.0)
    assert (np.diff(clf.explained_variance_ratio_) <= 0).all()


def test_low_rank_coordinates_have_covariance_one():
    X, y = make_blobs(300, n_features=3, centers=10, random_state=1)
    found = KernelDiscriminant(Linear(), regularization=1e-3).fit(X, y).discriminant_
    Z = found.coordinates(found.training_scores)
    residuals = Z - np.array([Z[y == label].mean(axis=0) for label in range(10)])[y]
    np.testing.assert_allclose(residuals.T @ residuals / 290, np.eye(3), atol=1e-8)
    assert KernelDiscriminant(Linear(), n_components=2).fit(X, y).transform(X).shape == (300, 2)


@pytest.mark.parametrize("statistics", ["loo", "training"])
def test_weak_directions_that_carry_signal_are_kept(statistics):
    """Quadratic ones of a wide kernel are 1e-4 of the linear ones; they tell the classes apart."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 3
    X = rng.uniform(-1.0, 1.0, 200)
    X = np.where(y == 0, 0.2 * X, np.where(y == 1, -1.0 + 0.2 * X, 1.0 + 0.2 * X))[:, None]
    clf = KernelDiscriminant(RBF(width=30.0), regularization=1e-6, statistics=statistics).fit(X, y)
    assert clf.transform(X).shape[1] == 2
    assert clf.score(X, y) == 1.0


def test_coordinates_that_tell_nothing_come_last():
    """Those along which left-out rows lie reversed explain nothing."""
    target = ClassTarget.from_labels(np.arange(90) % 3)
    rng, turned = np.random.default_rng(0), np.array([1.0, -1.0])
    scores = target.scores * turned + 0.5 * rng.standard_normal((90, 2))
    found, _ = calibrated(scores, target, target.class_scores)
    reversed_ = (found.means == 0).all(axis=0)
    assert reversed_.tolist() == [False, True]
    np.testing.assert_array_equal(found.explained, [1.0, 0.0])


# ---- no variance within classes --------------------------------------------------------------


@pytest.mark.parametrize("statistics", ["loo", "training"])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_classes_of_identical_rows(statistics, scale, n_classes):
    """Perfect separation, nothing varies within: probabilities are numbers, and sure."""
    X = scale * np.repeat(np.eye(n_classes), 3, axis=0)
    y = np.repeat(np.arange(n_classes), 3)
    for kernel in ("rbf", Linear()):
        for lam in ("loo", 1e-7, 0.1):
            clf = KernelDiscriminant(kernel, regularization=lam, statistics=statistics).fit(X, y)
            probabilities = clf.predict_proba(X)
            np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
            assert np.isfinite(clf.predict_log_proba(X)).all()
            assert np.isfinite(clf.transform(X)).all()
            np.testing.assert_array_equal(clf.predict(X), y)


@pytest.mark.parametrize("threshold", [None, "roc"])
def test_two_classes_of_two_equal_rows(threshold):
    X, y = [[0.0], [0.0], [1.0], [1.0]], [0, 0, 1, 1]
    clf = KernelDiscriminant(threshold=threshold).fit(X, y)
    # Four rows without an error do not rule out that the next is one.
    assert (clf.predict_proba(X).max(axis=1) < 1.0 - 1.0 / 20.0).all()
    np.testing.assert_array_equal(clf.predict(X), y)
    assert clf.predict([[0.1], [0.9]]).tolist() == [0, 1]


# ---- priors and costs ------------------------------------------------------------------------


def test_priors_by_label_are_those_in_the_order_of_the_classes(blobs):
    X, y = blobs
    labels = np.array(["b", "c", "a"])[y]
    listed = KernelDiscriminant(regularization=0.1, priors=[0.2, 0.5, 0.3]).fit(X, labels)
    for named in ({"c": 0.3, "a": 0.2, "b": 0.5}, pd.Series([0.3, 0.2, 0.5], ["c", "a", "b"])):
        clf = KernelDiscriminant(regularization=0.1, priors=named).fit(X, labels)
        np.testing.assert_array_equal(clf.priors_, [0.2, 0.5, 0.3])
        np.testing.assert_array_equal(clf.predict_proba(X), listed.predict_proba(X))


def test_priors_and_costs_are_not_kept_by_reference(blobs):
    X, y = blobs
    priors, costs = np.array([0.2, 0.5, 0.3]), np.array([1.0, 2.0, 3.0])
    clf = KernelDiscriminant(regularization=0.1, priors=priors, class_costs=costs).fit(X, y)
    before = clf.predict_proba(X), clf.predict(X)
    priors[:], costs[:] = [0.98, 0.01, 0.01], [1e6, 1.0, 1.0]
    np.testing.assert_array_equal(clf.predict_proba(X), before[0])
    np.testing.assert_array_equal(clf.predict(X), before[1])


def test_balanced_costs_are_those_of_scikit_learn(blobs):
    X, y = blobs
    weights = compute_class_weight("balanced", classes=np.unique(y), y=y)
    clf = KernelDiscriminant(regularization=0.1, class_costs="balanced").fit(X, y)
    np.testing.assert_allclose(np.exp(clf.decision_.offsets), weights)
    even = KernelDiscriminant(regularization=0.1, priors="uniform").fit(X, y)
    np.testing.assert_array_equal(clf.predict(X), even.predict(X))


BAD_NUMBERS = [
    [0.5, 0.5],
    [[0.2, 0.3, 0.5]],
    [0.5, 0.5, 0.0],
    [0.7, 0.5, -0.2],
    [np.nan, 0.5, 0.5],
    [np.inf, 0.5, 0.5],
    ["a", "b", "c"],
    [None, 0.5, 0.5],
    [[0.5], 0.2, 0.3],
    0.5,
    object(),
    {0: "much", 1: 0.5, 2: 0.5},
    {0: np.nan, 1: 0.5, 2: 0.5},
]


@pytest.mark.parametrize("what", ["priors", "class_costs"])
@pytest.mark.parametrize("given", BAD_NUMBERS, ids=lambda given: repr(given).partition(" at ")[0])
def test_numbers_per_class_that_cannot_work(blobs, what, given):
    with pytest.raises(InvalidInputError, match=r"must be 3 positive, finite numbers.*\[0, 1, 2\]"):
        KernelDiscriminant(**{what: given}).fit(*blobs)


@pytest.mark.parametrize(
    ("what", "given", "message"),
    [
        ("priors", "balanced", "must be None, 'uniform'.*Got 'balanced'"),
        ("class_costs", "uniform", "must be None, 'balanced'.*Got 'uniform'"),
        ("priors", {0: 0.5, 1: 0.5}, r"all of them. Got nothing for \[2\]"),
        ("priors", {0: 0.5, 1: 0.2, 7: 0.3}, r"Got \[7\], which are none"),
        ("class_costs", {"0": 2.0}, r"must name classes of \[0, 1, 2\]. Got \['0'\]"),
        ("priors", [0.5, 0.5, 0.5], "must sum to 1.*which sum to 1.5"),
        ("priors", {0: 0.1, 1: 0.2, 2: 0.3}, "must sum to 1"),
    ],
)
def test_words_and_labels_that_cannot_work(blobs, what, given, message):
    with pytest.raises(InvalidInputError, match=message):
        KernelDiscriminant(**{what: given}).fit(*blobs)


@pytest.mark.parametrize("threshold", ["best", 0.0, 1.0, np.nan, [0.5], np.array([0.5, 0.5])])
def test_thresholds_that_cannot_work(blobs, threshold):
    X, y = blobs
    with pytest.raises(InvalidInputError, match="probability between 0 and 1, 'roc' or None"):
        KernelDiscriminant(threshold=threshold).fit(X[y > 0], y[y > 0])


# ---- on either side of a number --------------------------------------------------------------


def two_gaussians(scores, distance=1.0, codes=None):
    """Classes with means ±distance / 2: the log-odds of the second are distance times the score."""
    return Discriminant(
        dual_coef=np.zeros((len(scores), 1)),
        intercept=np.zeros(1),
        means=distance * np.array([[-0.5], [0.5]]),
        scalings=np.eye(1),
        center=np.zeros(1),
        explained=np.ones(1),
        training_scores=np.asarray(scores, dtype=float)[:, None],
        training_codes=np.zeros(len(scores), dtype=int) if codes is None else np.asarray(codes),
    )


@pytest.mark.parametrize(
    ("probabilities", "codes", "threshold"),
    [
        ([0.1, 0.3, 0.6, 0.9], [0, 0, 1, 1], 0.45),  # midway
        ([0.9, 0.3, 0.1, 0.6], [1, 0, 0, 1], 0.45),  # in whatever order
        ([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1], 0.25),  # none between equal ones
        ([0.1, 0.4, 0.4, 0.4, 0.8], [0, 1, 0, 0, 1], 0.6),
        ([0.3, 0.3, 0.3, 0.3], [0, 1, 0, 1], 0.3),  # nothing to split
    ],
)
def test_roc_threshold_lies_midway_between_scores_that_differ(probabilities, codes, threshold):
    scores = np.log(probabilities) - np.log1p(-np.array(probabilities))
    decision = Decision(np.array([0.5, 0.5]), np.zeros(2))
    found = decision.choose_threshold(two_gaussians(scores, codes=codes))
    assert found == pytest.approx(threshold)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_roc_threshold_is_never_0_or_1(sign):
    decision = Decision(np.array([0.5, 0.5]), np.zeros(2))
    found = decision.choose_threshold(two_gaussians([sign * 1e3] * 4, codes=[0, 1, 0, 1]))
    assert found == pytest.approx(1e-12 if sign < 0 else 1.0 - 1e-12, rel=1e-9)
    assert np.isfinite(decision.with_threshold(found).offsets).all()


def _fit_sharpness(discriminant, target):
    return _best_factor(left_out_log_likelihood(discriminant, target), target)


def test_where_many_rows_are_far_on_the_other_side_nothing_is_told():
    target = ClassTarget(np.arange(2), np.arange(20) % 2)
    right = np.where(target.codes == 1, 1.0, -1.0)
    wrong = np.where(np.arange(20) < 8, -1e6, 1e6) * right
    found = two_gaussians(wrong, codes=target.codes)
    assert _fit_sharpness(found, target) * np.ptp(left_out_log_likelihood(found, target)) < 0.01


def test_few_rows_on_the_right_side_are_no_reason_to_be_certain():
    """All rows are right, so that no factor is too large; but more rows say more.

    Of n rows without an error, one more may be wrong: the probability is 1 − 1/(n + 2).
    """
    found = []
    for n in (20, 200, 2_000):
        target = ClassTarget(np.arange(2), np.arange(n) % 2)
        right = np.where(target.codes == 1, 1.0, -1.0)
        for distance in (1.0, 30.0):
            model = two_gaussians(right * distance / 2, distance, codes=target.codes)
            factor, likelihood = (
                _fit_sharpness(model, target),
                left_out_log_likelihood(model, target),
            )
            odds = np.abs(likelihood[:, 1] - likelihood[:, 0]).mean()
            found.append(expit(-factor * odds))
            at_limit = expit(-np.exp(2.5) * odds)  # of the largest factor
            assert found[-1] == pytest.approx(max(1.0 / (n + 2), at_limit), rel=0.02)
    assert found[0] > found[2] > found[4]


def test_sharpness_between_the_limits_is_the_best():
    """Log-odds 4 with one row of five on the wrong side: they should be log 4.

    Of so many rows that the classes are the same without each of them.
    """
    target, wrong = ClassTarget(np.arange(2), np.arange(20_000) % 2), np.arange(20_000) < 4000
    scores = np.where(target.codes == 1, 1.0, -1.0) * np.where(wrong, -1.0, 1.0)
    sharpness = _fit_sharpness(two_gaussians(scores, distance=4.0), target)
    assert sharpness == pytest.approx(np.log(4.0) / 4.0, rel=1e-3)


@pytest.mark.parametrize(
    ("statistics", "lam", "weakest", "rank"),
    [
        ("loo", 1e-3, 0.2 / 50, 2),
        ("loo", 1e-3, 0.05 / 50, 1),
        ("training", 1e-3, 2e-10, 2),
        ("training", 1e-3, 0.5e-10, 1),
        ("training", 1e-9, 1e-6, 2),  # ε/λ is 2e-7
        ("training", 1e-9, 1e-7, 1),
        ("training", 1e-3, 0.0, 1),
    ],
)
def test_directions_that_the_fit_does_not_span(statistics, lam, weakest, rank):
    """Fitted scores of root mean square 1 along one direction and less along another."""
    one = np.tile([1.0, -1.0], 25)
    other = np.tile([1.0, 1.0, -1.0, -1.0], 13)[:50]
    other = other - other.mean() - one * (one @ other) / 50
    other /= np.sqrt(np.mean(other**2))
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    fit = SimpleNamespace(
        row_weights=row_weights(None, 50),
        fitted=np.column_stack([one, weakest * other]) @ turn + 3.0,
        ridge=np.full(50, lam),
    )
    basis = _span(fit, statistics, 50.0)
    if rank == 2:
        assert basis is None
    else:
        np.testing.assert_allclose(np.abs(basis[:, 0]), np.abs(turn[0]), atol=1e-6)


def test_the_smallest_variance_is_relative_to_the_spread_of_the_means():
    for scale_ in (1e-6, 1.0, 1e6):
        X, y = scale_ * np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 0, 1, 1]
        clf = KernelDiscriminant(Linear(), regularization=1e-3).fit(X, y)
        assert np.ptp(clf.discriminant_.means) == pytest.approx(2e6, rel=1e-6)
