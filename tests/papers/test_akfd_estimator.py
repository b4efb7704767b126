"""A-KFD as a scikit-learn classifier: the contract, and Fung 2004 from rows to predictions."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, minmax_scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from discernel import AKFDClassifier
from discernel.exceptions import ConvergenceWarning, InvalidGramError, InvalidInputError
from discernel.kernels import RBF, Linear
from discernel.papers.akfd.criterion import one_against_rest
from discernel.papers.akfd.solver import NUS, alternate, choose_nu
from discernel.targets import ClassTarget

#: The paper's family, Eq. (25).
PAPER = [Linear(), *(RBF(gamma=gamma) for gamma in (0.001, 0.01, 0.1, 1.0))]


COUNTED = "the targets m/l of the classes, and the folds that choose nu, count rows, not weights"
EXPECTED_FAILED_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data": COUNTED,
    "check_sample_weight_equivalence_on_sparse_data": COUNTED,
}


@pytest.mark.filterwarnings("ignore::discernel.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [AKFDClassifier([Linear(), RBF()], max_iter=3), AKFDClassifier(nu=0.1)],
    expected_failed_checks=lambda _: EXPECTED_FAILED_CHECKS,
)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return minmax_scale(X[::4], (-1, 1)), np.array(["malignant", "benign"])[y[::4]]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X[:] = minmax_scale(X, (-1, 1))
    return X, np.array(["red", "rose", "white"])[y]


@pytest.mark.parametrize("data", ["cancer", "wine"])
def test_scores_are_fung_2004_eq_21_on_raw_kernels(data, request):
    X, y = request.getfixturevalue(data)
    X = np.asarray(X)
    train, test = np.arange(0, len(y), 2), np.arange(1, len(y), 2)
    clf = AKFDClassifier(PAPER, nu=0.01, tol=1e-4).fit(X[train], y[train])
    grams = np.array([kernel(X[train]) for kernel in PAPER])
    d = one_against_rest(ClassTarget.from_labels(y[train]))
    found = alternate(grams, d, 0.01, tol=1e-4)
    cross = np.array([kernel(X[test], X[train]) for kernel in PAPER])
    expected = found.scores(cross)
    scores = clf.decision_function(X[test])
    if data == "cancer":
        assert scores.shape == (len(test),)
        np.testing.assert_allclose(scores, expected[:, 0], atol=1e-10)
        signs = np.where(scores > 0, "malignant", "benign")
        np.testing.assert_array_equal(clf.predict(X[test]), signs)
    else:
        np.testing.assert_allclose(scores, expected, atol=1e-10)
        np.testing.assert_array_equal(clf.predict(X[test]), clf.classes_[expected.argmax(axis=1)])
    assert clf.score(X[test], y[test]) > 0.9
    np.testing.assert_allclose(clf.kernel_weights_, found.weights / found.weights.sum())
    np.testing.assert_allclose(clf.objective_path_, found.objectives)
    assert clf.n_iter_ == found.n_iter


def test_what_is_learned_can_be_read(wine):
    X, y = wine
    clf = AKFDClassifier({"plain": Linear(), "round": RBF(gamma=0.1)}, nu=0.01).fit(X, y)
    assert clf.kernel_names_ == ["plain", "round"]
    assert clf.kernel_weights_.sum() == pytest.approx(1.0)
    assert (clf.kernel_weights_ >= 0).all()
    assert clf.dual_coef_.shape == (len(y), 3)
    assert clf.intercept_.shape == (3,)
    assert len(clf.objective_path_) == 2 * clf.n_iter_
    assert (np.diff(clf.objective_path_) <= 0).all()
    assert (clf.nu_, clf.nu_accuracies_) == (0.01, {})
    np.testing.assert_array_equal(clf.classes_, ["red", "rose", "white"])
    np.testing.assert_array_equal(clf.feature_names_in_, X.columns)
    assert is_classifier(clf)


def test_nu_is_chosen_by_cross_validation(cancer):
    X, y = cancer
    clf = AKFDClassifier(PAPER, random_state=0).fit(X, y)
    grams = np.array([kernel(X) for kernel in PAPER])
    nu, accuracies = choose_nu(grams, y, random_state=0, max_iter=10)
    assert (clf.nu_, clf.nu_accuracies_) == (nu, accuracies)
    assert tuple(accuracies) == NUS
    best = max(accuracies.values())
    assert clf.nu_ == min(nu for nu, accuracy in accuracies.items() if accuracy == best)
    again = AKFDClassifier(PAPER, nu=clf.nu_).fit(X, y)
    np.testing.assert_allclose(again.decision_function(X), clf.decision_function(X), atol=1e-12)


def test_renaming_labels_renames_predictions_only(wine):
    X, y = wine
    new = {"red": 7, "rose": -1, "white": 3}
    plain = AKFDClassifier(PAPER, nu=0.01).fit(X, y)
    renamed = AKFDClassifier(PAPER, nu=0.01).fit(X, [new[label] for label in y])
    np.testing.assert_array_equal(renamed.predict(X), [new[label] for label in plain.predict(X)])
    np.testing.assert_allclose(renamed.kernel_weights_, plain.kernel_weights_, atol=1e-9)


def test_permuting_kernels_permutes_weights(cancer):
    X, y = cancer
    order = [3, 0, 4, 1, 2]
    plain = AKFDClassifier(PAPER, nu=0.1, tol=1e-3).fit(X, y)
    permuted = AKFDClassifier([PAPER[i] for i in order], nu=0.1, tol=1e-3).fit(X, y)
    np.testing.assert_allclose(permuted.kernel_weights_, plain.kernel_weights_[order], atol=1e-8)
    np.testing.assert_allclose(permuted.decision_function(X), plain.decision_function(X), atol=1e-6)


def test_precomputed_sparse_and_named_columns_are_taken_as_by_the_others(wine):
    X, y = wine
    kernels = [Linear(), RBF(gamma=0.1)]
    dense = AKFDClassifier(kernels, nu=0.01)
    expected = cross_val_predict(dense, X, y, cv=3, method="decision_function")
    stack = np.stack([kernel(X.to_numpy()) for kernel in kernels], axis=-1)
    precomputed = AKFDClassifier("precomputed", nu=0.01)
    found = cross_val_predict(precomputed, stack, y, cv=3, method="decision_function")
    np.testing.assert_allclose(found, expected, atol=1e-8)
    rows = sp.csr_matrix(X.to_numpy())
    found = cross_val_predict(dense, rows, y, cv=3, method="decision_function")
    np.testing.assert_allclose(found, expected, atol=1e-6)
    by_name = AKFDClassifier([RBF(gamma=0.1).on(list(X.columns[:3]))], nu=0.01).fit(X, y)
    by_place = AKFDClassifier([RBF(gamma=0.1)], nu=0.01).fit(X.to_numpy()[:, :3], y)
    np.testing.assert_allclose(
        by_name.decision_function(X), by_place.decision_function(X.to_numpy()[:, :3]), atol=1e-9
    )


def test_pipeline_grid_search_clone_and_pickle(wine):
    X, y = wine
    pipeline = make_pipeline(MinMaxScaler((-1, 1)), AKFDClassifier(PAPER, nu=0.01))
    grid = GridSearchCV(pipeline, {"akfdclassifier__nu": [1e-9, 0.01]}, cv=3).fit(X, y)
    assert grid.best_score_ > 0.9
    assert grid.best_params_ == {"akfdclassifier__nu": 0.01}
    fitted = grid.best_estimator_
    assert clone(fitted).get_params()["akfdclassifier__kernels"] == PAPER
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_weights_that_vanish_are_reported_as_equal():
    """One sample a class on orthogonal rows and next to no ν: nothing is worth a coefficient."""
    X = pd.DataFrame(np.eye(4))
    clf = AKFDClassifier([Linear(), Linear()], nu=1e-300).fit(X, [0, 0, 1, 1])
    np.testing.assert_allclose(clf.kernel_weights_, 0.5)
    assert np.isfinite(clf.decision_function(X)).all()


def test_stopping_early_warns_and_says_what_to_do(cancer):
    X, y = cancer
    clf = AKFDClassifier(PAPER, nu=1.0, max_iter=3, tol=1e-8)
    with pytest.warns(ConvergenceWarning, match=r"in 3 iterations for nu=1: .*Raise max_iter"):
        clf.fit(X, y)
    assert clf.n_iter_ == 3
    with pytest.warns(ConvergenceWarning, match=r"in 1 iterations for nu=1: "):
        AKFDClassifier(PAPER, nu=1.0, max_iter=1).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"nu": "loo"},
            r"nu of A-KFD, if it is not 'cv', must be a positive, finite number. Got 'loo'",
        ),
        ({"nu": -1}, r"nu of A-KFD.* must be a positive, finite number. Got -1"),
        ({"tol": 0}, r"tol must be a positive, finite number. Got 0"),
        ({"max_iter": 0}, r"max_iter must be an integer of at least 1. Got 0"),
        ({"kernels": []}, r"non-empty list of kernels"),
        ({"kernels": [lambda A, B: A @ B.T * np.nan]}, r"NaN or infinity. <lambda> has nan"),
    ],
)
def test_estimator_refuses(wine, options, message):
    X, y = wine
    clf = AKFDClassifier(**{"nu": 1.0, **options})
    with pytest.raises(InvalidInputError, match=message):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_a_kernel_that_is_none_is_named(wine):
    X, y = wine
    with pytest.raises(InvalidGramError, match=r"positive semidefinite. <lambda> has the eigen"):
        AKFDClassifier([lambda A, B: -(A @ B.T)], nu=1.0).fit(X.to_numpy(), y)
