"""The transductive classifier of Yeung 2006: the contract, and from rows to predictions."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from discernel import SeparabilityClassifier
from discernel.exceptions import InvalidGramError, InvalidInputError
from discernel.kernels import RBF, Linear
from discernel.learn import reweigh_spectrum

METHODS = ["closed_form", "dinkelbach", "alignment"]


@parametrize_with_checks(
    # The checks label every row, and -1 is a class in some: both have to be allowed.
    [
        SeparabilityClassifier(unlabelled=None, require_unlabelled=False),
        SeparabilityClassifier(
            [Linear()], share=0.9, alpha=1e4, unlabelled=None, require_unlabelled=False
        ),
    ],
    expected_failed_checks=lambda _: {
        "check_class_weight_classifiers": "the nearest row decides alone, whatever it weighs"
    },
)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    """Rows, labels of every fourth of them, and all labels."""
    X, y = load_wine(return_X_y=True)
    X, y = scale(X), y
    return X, np.where(np.arange(len(y)) % 4 == 0, y, -1), y


def test_it_classifies_the_rows_without_label(wine):
    X, partial, y = wine
    clf = SeparabilityClassifier().fit(X, partial)
    hidden = partial < 0
    assert clf.transduction_.shape == y.shape
    assert np.mean(clf.transduction_[hidden] == y[hidden]) > 0.9
    np.testing.assert_array_equal(clf.transduction_[~hidden], y[~hidden])
    np.testing.assert_array_equal(clf.classes_, [0, 1, 2])


@pytest.mark.parametrize("method", METHODS)
def test_one_kernel_is_that_of_the_matrix_function(wine, method):
    X, partial, _ = wine
    kernel = RBF(width=4.0)
    clf = SeparabilityClassifier([kernel], method=method, alpha=100.0, share=0.8).fit(X, partial)
    found = reweigh_spectrum(kernel(X), partial, method=method, alpha=100.0, share=0.8)
    np.testing.assert_allclose(clf.mu_, found.mu, rtol=1e-10)
    known = np.flatnonzero(partial >= 0)
    squares = found.matrix.diagonal()
    distances = squares[:, None] - 2.0 * found.matrix[:, known] + squares[known]
    expected = partial[known][distances.argmin(axis=1)]
    np.testing.assert_array_equal(clf.transduction_, expected)
    assert (clf.share_, clf.trials_) == (0.8, ())
    assert clf.alpha_ == (100.0 if method == "closed_form" else None)
    assert clf.is_maximum_ is {"closed_form": True, "dinkelbach": True, "alignment": None}[method]
    assert clf.kernel_name_ == "RBF(width=4)"


@pytest.mark.parametrize("options", [{}, {"include_plain": False}, {"method": "dinkelbach"}])
@pytest.mark.parametrize("k", [1, 3])
def test_prediction_of_the_training_rows_is_the_transduction(wine, options, k):
    X, partial, _ = wine
    clf = SeparabilityClassifier(n_neighbors=k, **options).fit(X, partial)
    np.testing.assert_array_equal(clf.predict(X), clf.transduction_)


def test_new_rows_are_classified_by_extended_eigenvectors(wine):
    X, _, y = wine
    rows, new = np.arange(0, len(y), 2), np.arange(1, len(y), 2)
    kernel = RBF(width=4.0)
    labels = np.where(np.arange(len(rows)) % 2 == 0, y[rows], -1)
    clf = SeparabilityClassifier([kernel], share=0.9, alpha=1e4).fit(X[rows], labels)
    found = clf.spectrum_
    extended = kernel(X[new], X[rows]) @ found.vectors / found.eigenvalues
    known = np.flatnonzero(labels >= 0)
    neighbors = KNeighborsClassifier(1).fit(found.vectors[known] * found.mu, labels[known])
    np.testing.assert_array_equal(clf.predict(X[new]), neighbors.predict(extended * found.mu))
    assert clf.score(X[new], y[new]) > 0.9


def test_what_was_chosen_can_be_read(wine):
    X, partial, _ = wine
    kernels = {"narrow": RBF(width=2.0), "wide": RBF(width=6.0)}
    clf = SeparabilityClassifier(kernels, include_plain=False).fit(X, partial)
    assert clf.kernel_name_ in kernels
    chosen = clf.trials_[0]
    assert chosen.accuracy == max(trial.accuracy for trial in clf.trials_)
    assert chosen.share == clf.share_
    assert clf.spectrum_.method == chosen.method == "closed_form"
    assert clf.alpha_ > 0
    assert clf.spectrum_.matrix.shape == (len(X), len(X))
    plain = SeparabilityClassifier(kernels).fit(X, partial)
    assert {trial.method for trial in plain.trials_} == {"closed_form", "plain"}


def test_default_widths_surround_the_mean_squared_distance(wine):
    X, partial, _ = wine
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2).mean()
    clf = SeparabilityClassifier(include_plain=False).fit(X, partial)
    ratio = clf.kernel_.width**2 / squared
    assert min(abs(ratio - factor) for factor in (0.125, 0.25, 0.5, 1.0, 2.0)) < 1e-10


def test_any_classifier_of_kernel_matrices(wine):
    X, partial, y = wine
    svm = SVC(C=100.0, kernel="precomputed")
    clf = SeparabilityClassifier(estimator=svm, include_plain=False).fit(X, partial)
    known = np.flatnonzero(partial >= 0)
    matrix = clf.spectrum_.matrix
    expected = SVC(C=100.0, kernel="precomputed").fit(matrix[np.ix_(known, known)], y[known])
    np.testing.assert_array_equal(clf.transduction_, expected.predict(matrix[:, known]))
    assert not hasattr(clf, "predict_proba")
    assert not hasattr(svm, "classes_")
    shares = SeparabilityClassifier(n_neighbors=4).fit(X, partial).predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_precomputed_sparse_and_frames_are_taken_as_by_the_others(wine):
    X, partial, _ = wine
    kernels = [RBF(width=3.0), Linear()]
    clf = SeparabilityClassifier(kernels, include_plain=False).fit(X, partial)
    stack = np.stack([kernel(X) for kernel in kernels], axis=-1)
    given = SeparabilityClassifier("precomputed", include_plain=False).fit(stack, partial)
    np.testing.assert_array_equal(given.transduction_, clf.transduction_)
    np.testing.assert_array_equal(given.predict(stack[:9]), clf.transduction_[:9])
    sparse = SeparabilityClassifier(share=0.7, include_plain=False)
    dense = clone(sparse).fit(X, partial).transduction_
    np.testing.assert_array_equal(sparse.fit(sp.csr_matrix(X), partial).transduction_, dense)
    frame = pd.DataFrame(X).rename(columns=str)
    named = SeparabilityClassifier([RBF(width=3.0).on(["0", "3", "6"])]).fit(frame, partial)
    placed = SeparabilityClassifier([RBF(width=3.0)]).fit(X[:, [0, 3, 6]], partial)
    np.testing.assert_array_equal(named.transduction_, placed.transduction_)


@pytest.mark.parametrize("mark", [-1, None, np.nan], ids=["-1", "None", "NaN"])
def test_string_labels(wine, mark):
    X, partial, _ = wine
    names = np.array(["red", "rose", "white"])
    y = names[partial].astype(object)
    y[partial < 0] = mark
    clf = SeparabilityClassifier().fit(X, y)
    expected = SeparabilityClassifier().fit(X, partial).transduction_
    np.testing.assert_array_equal(clf.transduction_, names[expected])
    np.testing.assert_array_equal(clf.fit(X, pd.Series(y)).transduction_, names[expected])


def test_sample_order_and_feature_offset_do_not_matter(wine):
    X, partial, _ = wine
    order = np.random.default_rng(0).permutation(len(X))
    plain = SeparabilityClassifier(include_plain=False).fit(X, partial)
    other = clone(plain).fit(X[order] + 5.0, partial[order])
    np.testing.assert_array_equal(other.transduction_, plain.transduction_[order])


def test_grid_search_clone_and_pickle(wine):
    X, _, y = wine
    clf = SeparabilityClassifier(require_unlabelled=False, share=0.8, alpha=1e4)
    kernels = [[RBF(width=0.05)], [RBF(width=4.0)]]
    grid = GridSearchCV(clf, {"kernels": kernels}, cv=3).fit(X, y)
    assert grid.best_params_ == {"kernels": [RBF(width=4.0)]}
    again = pickle.loads(pickle.dumps(grid.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), grid.predict(X))
    assert clone(clf).get_params()["share"] == 0.8


def test_identical_rows_are_told_from_none():
    X, y = np.ones((8, 2)), [0, 0, 1, 1, -1, -1, -1, -1]
    with pytest.raises(InvalidInputError, match=r"kernel must vary over the labelled rows"):
        SeparabilityClassifier().fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "sdp"}, r"'closed_form', 'dinkelbach', 'alignment'. Got 'sdp'"),
        ({"alpha": 0.0}, r"alpha of class separability .*Got 0.0"),
        ({"alpha": "loo"}, r"alpha of class separability .*Got 'loo'"),
        ({"share": 2}, r"share of the trace .*Got 2"),
        ({"cap": 0.9}, r"cap of class separability .*Got 0.9"),
        ({"n_neighbors": 0}, r"n_neighbors must be an integer of at least 1. Got 0"),
        ({"n_neighbors": 46}, r"at most the number of labelled rows, 45. Got 46"),
        ({"kernels": []}, r"non-empty list of kernels"),
        ({"estimator": SVC()}, r"must take kernel matrices. Got one with kernel='rbf'"),
    ],
)
def test_estimator_refuses(wine, options, message):
    X, partial, _ = wine
    clf = SeparabilityClassifier(**options)
    with pytest.raises(InvalidInputError, match=message):
        clf.fit(X, partial)
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_labels_that_leave_nothing_to_do_or_to_learn_are_refused(wine):
    X, partial, y = wine
    with pytest.raises(InvalidInputError, match=r"must be unlabelled rows.*All 178 rows"):
        SeparabilityClassifier().fit(X, y)
    with pytest.raises(InvalidInputError, match=r"at least two classes.*Got none"):
        SeparabilityClassifier().fit(X, np.full(len(y), -1))
    with pytest.raises(InvalidInputError, match=r"at least two classes.*Got 1 class: \[0\]"):
        SeparabilityClassifier().fit(X, np.where(partial == 0, 0, -1))
    declared = pd.Series(pd.Categorical.from_codes(np.where(partial == 2, -1, partial), [*"abc"]))
    with pytest.raises(InvalidInputError, match=r"Got none of \['c'\]"):
        SeparabilityClassifier().fit(X, declared)
    with pytest.raises(InvalidInputError, match=r"dtype object. Got an array of text.*'-1'"):
        SeparabilityClassifier().fit(X, partial.astype(str))
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples"):
        SeparabilityClassifier().fit(X[:-1], partial)
    with pytest.raises(ValueError, match=r"contains NaN"):
        SeparabilityClassifier().fit(np.where(np.arange(len(X))[:, None] == 3, np.nan, X), partial)
    with pytest.raises(InvalidGramError, match=r"positive semidefinite. matrix 0"):
        SeparabilityClassifier("precomputed").fit(-np.eye(len(y)), partial)


@pytest.mark.data
def test_it_beats_plain_neighbours_on_ionosphere(paper_data):
    """The paper's table 2, in small; more is in benchmarks/separability_default.py."""
    X, y = paper_data("ionosphere")
    X, gains = scale(X), []
    for known, hidden in StratifiedShuffleSplit(4, train_size=0.2, random_state=0).split(X, y):
        partial = np.full(len(y), None)
        partial[known] = y[known]
        learned = SeparabilityClassifier().fit(X, partial).transduction_[hidden]
        plain = KNeighborsClassifier(1).fit(X[known], y[known]).predict(X[hidden])
        gains.append(np.mean(learned == y[hidden]) - np.mean(plain == y[hidden]))
    assert np.mean(gains) > 0.05
