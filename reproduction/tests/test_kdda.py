"""Kernel direct discriminant analysis."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Linear
from discernel_reproduction.baselines import KDDA


@parametrize_with_checks([KDDA(), KDDA(Linear(), n_neighbors=None, regularization=1.0)])
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:120], y[:120], X[120:200], y[120:200]


def direct_lda(X, y, regularization):
    """Return the directions of direct LDA from d×d scatter matrices made by loops."""
    mean, n_features = X.mean(axis=0), X.shape[1]
    between, within = np.zeros((n_features, n_features)), np.zeros((n_features, n_features))
    for label in np.unique(y):
        rows = X[y == label]
        center = rows.mean(axis=0)
        between += len(rows) / len(y) * np.outer(center - mean, center - mean)
        for row in rows:
            within += np.outer(row - center, row - center) / len(y)
    values, vectors = scipy.linalg.eigh(between)
    kept = values > 1e-9 * values[-1]
    range_of_between = vectors[:, kept] / np.sqrt(values[kept])
    widths, rotation = scipy.linalg.eigh(range_of_between.T @ within @ range_of_between)
    return range_of_between @ rotation / np.sqrt(regularization + widths), widths, between


@pytest.mark.parametrize("regularization", [1e-6, 0.1, 1.0])
def test_linear_kernel_is_direct_lda_in_feature_space(digits, regularization):
    X, y, X_new, _ = digits
    directions, widths, _ = direct_lda(X, y, regularization)
    clf = KDDA(Linear(), regularization=regularization).fit(X, y)
    np.testing.assert_allclose(clf.within_scatter_, widths, rtol=1e-7)
    ours, expected = clf.transform(X_new), (X_new - X.mean(axis=0)) @ directions
    signs = np.sign(np.sum(ours * expected, axis=0))
    np.testing.assert_allclose(ours, expected * signs, atol=1e-7)


def test_both_scatters_are_diagonal_in_the_new_coordinates(digits):
    X, y, _, _ = digits
    clf = KDDA(RBF(width=30.0), regularization=0.05).fit(X, y)
    Z = clf.transform(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-10)
    means = np.array([Z[y == label].mean(axis=0) for label in clf.classes_])
    shares = np.bincount(y) / len(y)
    scaling = 1.0 / (0.05 + clf.within_scatter_)
    np.testing.assert_allclose((means.T * shares) @ means, np.diag(scaling), atol=1e-8)
    residuals = Z - means[y]
    np.testing.assert_allclose(
        residuals.T @ residuals / len(y), np.diag(clf.within_scatter_ * scaling), atol=1e-8
    )
    assert np.all(np.diff(clf.within_scatter_) > 0)


def test_two_classes_leave_the_difference_of_means(digits):
    """The range of S_b is one direction."""
    X, y, X_new, _ = digits
    X, y = X[y < 2], y[y < 2]
    difference = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    projection = (X_new - X.mean(axis=0)) @ difference
    ours = KDDA(Linear()).fit(X, y).transform(X_new)[:, 0]
    np.testing.assert_allclose(ours / np.abs(ours).max(), projection / np.abs(projection).max())


def test_means_on_a_line_leave_one_direction():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 10)
    noise = rng.standard_normal((30, 5))
    X = noise - np.repeat([noise[y == label].mean(axis=0) for label in "abc"], 10, axis=0)
    X[:, 0] += np.repeat([0.0, 4.0, 8.0], 10)
    clf = KDDA(Linear()).fit(X, y)
    assert clf.transform(X).shape == (30, 1)
    assert clf.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("n_neighbors", "classifier"),
    [(1, KNeighborsClassifier(1)), (5, KNeighborsClassifier(5)), (None, NearestCentroid())],
)
def test_prediction_is_that_of_neighbours_or_means_in_the_space(digits, n_neighbors, classifier):
    X, y, X_new, y_new = digits
    clf = KDDA(RBF(), n_neighbors=n_neighbors, n_components=4).fit(X, y)
    assert clf.transform(X).shape == (120, 4)
    classifier.fit(clf.transform(X), y)
    np.testing.assert_array_equal(clf.predict(X_new), classifier.predict(clf.transform(X_new)))
    assert clf.score(X_new, y_new) > 0.6


def test_components_are_those_with_the_least_scatter(digits):
    X, y, X_new, _ = digits
    every, few = KDDA().fit(X, y), KDDA(n_components=3).fit(X, y)
    np.testing.assert_allclose(few.transform(X_new), every.transform(X_new)[:, :3], atol=1e-10)


def test_scale_of_the_kernel_does_not_matter(digits):
    X, y, X_new, _ = digits
    plain = KDDA(RBF(width=30.0)).fit(X, y).transform(X_new)
    scaled = KDDA(50.0 * RBF(width=30.0)).fit(X, y).transform(X_new)
    np.testing.assert_allclose(scaled, plain, atol=1e-8)


def test_precomputed_matrix_survives_cross_validation():
    X, y = load_wine(return_X_y=True)
    X, kernel = scale(X), RBF(width=3.0)
    on_rows = cross_val_predict(KDDA(kernel), X, y, cv=4)
    on_matrix = cross_val_predict(KDDA("precomputed"), kernel(X), y, cv=4)
    np.testing.assert_array_equal(on_matrix, on_rows)
    assert np.mean(on_rows == y) > 0.95


def test_output_as_dataframe_and_labels_as_words(digits):
    X, y, X_new, _ = digits
    words = np.array(list("abcdefghij"))[y]
    clf = KDDA().set_output(transform="pandas").fit(X, words)
    assert list(clf.transform(X_new).columns[:2]) == ["kdda0", "kdda1"]
    np.testing.assert_array_equal(
        clf.predict(X_new), np.array(list("abcdefghij"))[KDDA().fit(X, y).predict(X_new)]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regularization": 0.0}, "regularization of KDDA must be a positive"),
        ({"regularization": "loo"}, "regularization of KDDA must be a positive"),
        ({"n_components": 10}, "n_components of KDDA must be an integer from 1 to 9.*Got 10"),
        ({"n_neighbors": 0}, "n_neighbors of KDDA must be an integer from 1 to 120.*Got 0"),
    ],
)
def test_what_cannot_work_is_refused(digits, options, message):
    X, y, _, _ = digits
    with pytest.raises(InvalidInputError, match=message):
        KDDA(**options).fit(X, y)
