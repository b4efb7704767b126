"""Kernel nearest neighbours: the contract, scikit-learn's neighbours, explicit distances."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from discernel.exceptions import InvalidGramError, InvalidInputError
from discernel.kernels import RBF, Linear, Polynomial
from discernel_reproduction.baselines import KernelNeighborsClassifier


@parametrize_with_checks(
    [KernelNeighborsClassifier(), KernelNeighborsClassifier(3, kernel=Linear())]
)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X[:] = scale(X)
    return X, np.array(["red", "rose", "white"])[y]


@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize("kernel", ["linear", RBF(width=3.0)], ids=["linear", "rbf"])
def test_linear_and_gaussian_neighbours_are_those_of_the_rows(wine, k, kernel):
    """A Gaussian kernel falls with the distance, so it has the same neighbours at any width."""
    X, y = wine
    ours = KernelNeighborsClassifier(k, kernel=kernel).fit(X[::2], y[::2])
    theirs = KNeighborsClassifier(k).fit(X[::2], y[::2])
    np.testing.assert_array_equal(ours.predict(X[1::2]), theirs.predict(X[1::2]))
    np.testing.assert_allclose(ours.predict_proba(X[1::2]), theirs.predict_proba(X[1::2]))


@pytest.mark.parametrize("kernel", [Polynomial(3, gamma=0.1), "cosine", lambda A, B: A @ B.T + 1.0])
def test_distances_are_those_of_the_feature_space(wine, kernel):
    X, y = wine
    X = X.to_numpy()
    train, test = X[::2], X[1::2]
    clf = KernelNeighborsClassifier(3, kernel=kernel).fit(train, y[::2])
    k = clf.kernel_
    distances = k.diagonal(test)[:, None] - 2.0 * k(test, train) + k.diagonal(train)
    metric = KNeighborsClassifier(3, metric="precomputed")
    metric.fit(np.zeros((len(train), len(train))), y[::2])
    np.testing.assert_array_equal(clf.predict(test), metric.predict(np.maximum(distances, 0.0)))


def test_precomputed_equals_rows_and_survives_cross_validation(wine):
    X, y = wine
    K = Polynomial(2, gamma=0.1)(X.to_numpy())
    on_rows = KernelNeighborsClassifier(3, kernel=Polynomial(2, gamma=0.1))
    on_matrix = KernelNeighborsClassifier(3, kernel="precomputed")
    np.testing.assert_array_equal(
        cross_val_predict(on_matrix, K, y, cv=4), cross_val_predict(on_rows, X, y, cv=4)
    )
    before = K.copy()
    assert on_matrix.fit(K, y).__sklearn_tags__().input_tags.pairwise
    np.testing.assert_array_equal(K, before)


def test_sparse_frames_strings_grid_search_clone_and_pickle(wine):
    X, y = wine
    grid = GridSearchCV(KernelNeighborsClassifier(), {"n_neighbors": [1, 5], "kernel": ["rbf"]})
    fitted = grid.fit(X, y).best_estimator_
    assert grid.best_score_ > 0.9
    np.testing.assert_array_equal(fitted.feature_names_in_, X.columns)
    again = pickle.loads(pickle.dumps(clone(fitted).fit(X, y)))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    sparse = KernelNeighborsClassifier(3).fit(sp.csr_matrix(X.to_numpy()), y)
    dense = KernelNeighborsClassifier(3).fit(X.to_numpy(), y)
    np.testing.assert_array_equal(
        sparse.predict(sp.csr_matrix(X.to_numpy())), dense.predict(X.to_numpy())
    )


def test_equal_distances_and_equal_votes_go_to_the_first():
    X, y = np.array([[0.0], [0.0], [2.0]]), ["b", "a", "a"]
    assert KernelNeighborsClassifier(1, kernel="linear").fit(X, y).predict([[0.1]]) == ["b"]
    assert KernelNeighborsClassifier(2, kernel="linear").fit(X, y).predict([[0.1]]) == ["a"]


def test_rows_in_blocks_are_as_rows_at_once(wine, monkeypatch):
    X, y = wine
    clf = KernelNeighborsClassifier(3).fit(X, y)
    expected = clf.predict_proba(X)
    monkeypatch.setattr("discernel_reproduction.baselines.neighbors._BLOCK_BYTES", 8 * len(X) * 7)
    np.testing.assert_array_equal(clf.predict_proba(X), expected)


def test_rows_that_are_not_numbers():
    def shared_letters(A, B):
        return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)

    clf = KernelNeighborsClassifier(kernel=shared_letters).fit(["ab", "ba", "xy"], [0, 0, 1])
    assert clf.predict(["abb", "yx"]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 0}, r"n_neighbors must be an integer of at least 1. Got 0"),
        ({"n_neighbors": 1.5}, r"n_neighbors must be an integer of at least 1. Got 1.5"),
        ({"n_neighbors": 179}, r"at most the number of training rows, 178. Got 179"),
        ({"kernel": "nope"}, r"kernel name must be one of .*'nope'"),
    ],
)
def test_neighbors_refuse(wine, options, message):
    X, y = wine
    clf = KernelNeighborsClassifier(**options)
    with pytest.raises(InvalidInputError, match=message):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_what_is_no_kernel_has_no_distances():
    with pytest.raises(InvalidGramError, match=r"positive semidefinite"):
        KernelNeighborsClassifier(kernel="precomputed").fit(-np.eye(4), [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"NaN"):
        KernelNeighborsClassifier().fit(pd.DataFrame([[1.0], [np.nan]]), [0, 1])
