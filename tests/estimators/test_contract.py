"""scikit-learn's contract, and what its users expect beyond it."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.gaussian_process.kernels import Matern
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from discernel import (
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
)
from discernel.kernels import RBF, Linear, Polynomial, Precomputed, rbf_ladder

#: A check that has to fail goes here with its reason: {name: reason}.
#: Estimators with ``"precomputed"`` kernels are not among those checked: the checks pass arbitrary
#: square matrices for kernels, which ours refuse as they must. Their contract is tested below.
COLUMNS = "transform has a column per training row: repeated rows have as many as they are repeated"
#: As in scikit-learn's RidgeCV.
LEFT_OUT = (
    "leave-one-out leaves out a row with all of its weight, but only one of several repeated rows"
)
EQUIVALENCE = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)


def expected_to_fail(estimator):
    if isinstance(estimator, LearnedKernelTransformer):
        return dict.fromkeys(EQUIVALENCE, COLUMNS)
    leaves_none_out = getattr(estimator, "statistics", None) == "training"
    return {} if leaves_none_out else dict.fromkeys(EQUIVALENCE, LEFT_OUT)


@parametrize_with_checks(
    [
        KernelDiscriminant(),
        KernelDiscriminant(Linear(), regularization=0.1, statistics="training"),
        MultipleKernelDiscriminant(),
        MultipleKernelDiscriminant(criterion="rkda"),
        MultipleKernelDiscriminant(regularization="joint"),
        MultipleKernelDiscriminant(criterion="uniform", regularization=0.1),
        LearnedKernelTransformer(regularization=0.1),
        MultipleKernelRidge(),
    ],
    expected_failed_checks=expected_to_fail,
)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X, np.array(["red", "rose", "white"])[y]


@pytest.fixture
def views():
    """Two sources side by side: three informative columns, five of noise."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    good = rng.standard_normal((90, 3)) + 1.5 * np.eye(3)[y]
    noise = rng.standard_normal((90, 5))
    names = [f"gene{i}" for i in range(3)] + [f"noise{i}" for i in range(5)]
    return pd.DataFrame(np.hstack([good, noise]), columns=names), y


def test_weights_are_readable(wine):
    X, y = wine
    kernels = [RBF(width=3.0), RBF(width=10.0), Linear()]
    clf = MultipleKernelDiscriminant(kernels, criterion="rkda").fit(scale(X), y)
    assert clf.kernel_names_ == ["RBF(width=3)", "RBF(width=10)", "Linear()"]
    assert clf.kernel_weights_.sum() == pytest.approx(1.0)
    assert clf.gap_ <= 1e-6
    assert clf.learned_kernel_.regularization == clf.regularization_
    np.testing.assert_array_equal(clf.classes_, ["red", "rose", "white"])
    assert set(clf.predict(scale(X))) <= {"red", "rose", "white"}


def test_one_kernel_equals_the_single_kernel_estimator(wine):
    X, y = wine
    X = scale(X)
    several = MultipleKernelDiscriminant([RBF(width=4.0)], regularization=0.01).fit(X, y)
    one = KernelDiscriminant(RBF(width=4.0), regularization=0.01).fit(X, y)
    np.testing.assert_allclose(several.predict_proba(X), one.predict_proba(X), atol=1e-12)


def test_informative_source_gets_the_weight(views):
    X, y = views
    kernels = {
        "genes": RBF().on(make_column_selector(pattern="gene")),
        "noise": RBF().on(slice("noise0", "noise4")),
    }
    clf = MultipleKernelDiscriminant(kernels).fit(X, y)
    assert clf.kernel_names_ == ["genes", "noise"]
    assert clf.kernel_weights_[0] > 0.8


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_dataframes_by_name_and_arrays_by_position_agree(views, frame):
    X, y = views
    table = frame({name: X[name].to_numpy() for name in X.columns})
    named = [RBF().on(["gene0", "gene2"]), RBF().on("noise1"), Linear().on(slice("gene0", "gene2"))]
    placed = [RBF().on([0, 2]), RBF().on(4), Linear().on(slice(0, 3))]
    by_name = MultipleKernelDiscriminant(named, regularization=0.1).fit(table, y)
    by_place = MultipleKernelDiscriminant(placed, regularization=0.1).fit(X.to_numpy(), y)
    np.testing.assert_allclose(by_name.kernel_weights_, by_place.kernel_weights_)
    np.testing.assert_allclose(
        by_name.decision_function(table), by_place.decision_function(X.to_numpy())
    )
    np.testing.assert_array_equal(by_name.feature_names_in_, X.columns)


def test_new_data_with_other_columns_is_refused(views):
    X, y = views
    clf = MultipleKernelDiscriminant(regularization=0.1).fit(X, y)
    with pytest.raises(ValueError, match=r"feature names should match.*\n.*\n.*- other"):
        clf.predict(X.rename(columns={"gene0": "other"}))
    with pytest.raises(ValueError, match=r"feature names should match.*\n.*\n.*- noise4"):
        clf.predict(X.iloc[:, :7])


def test_set_output_gives_named_columns(wine):
    X, y = wine
    clf = make_pipeline(StandardScaler(), MultipleKernelDiscriminant(n_components=1))
    frame = clf.set_output(transform="pandas").fit(X, y).transform(X)
    assert list(frame.columns) == ["multiplekerneldiscriminant0"]
    assert frame.shape == (178, 1)
    assert list(frame.index) == list(X.index)


@pytest.mark.parametrize(("criterion", "tolerance"), [("rkda", 1e-6), ("auto", 1e-2)])
def test_sample_order_does_not_matter(wine, criterion, tolerance):
    """To the accuracy of the solver: a certified optimum, or where a descent found it flat."""
    X, y = wine
    X = scale(X)
    order = np.random.default_rng(0).permutation(len(y))
    plain = MultipleKernelDiscriminant(criterion=criterion).fit(X, y)
    other = MultipleKernelDiscriminant(criterion=criterion).fit(X[order], y[order])
    np.testing.assert_allclose(other.kernel_weights_, plain.kernel_weights_, atol=tolerance)
    np.testing.assert_allclose(other.predict_proba(X), plain.predict_proba(X), atol=tolerance)


@pytest.mark.parametrize("options", [{}, {"kernels": rbf_ladder(3)}, {"criterion": "rkda"}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_renaming_labels_renames_predictions_only(options, n_classes):
    """Folds and groups are dealt by distances that other names of the classes do not change."""
    X, y = make_classification(
        300, 6, n_informative=4, n_classes=n_classes, flip_y=0.2, random_state=0
    )
    assert len(set(np.bincount(y))) == n_classes
    new = np.roll(np.arange(n_classes), 1)
    plain = MultipleKernelDiscriminant(**options).fit(X, y)
    renamed = MultipleKernelDiscriminant(**options).fit(X, new[y])
    expected = plain.predict_proba(X)
    np.testing.assert_allclose(renamed.predict_proba(X)[:, new], expected, atol=1e-8)
    assert renamed.expected_.accuracy == pytest.approx(plain.expected_.accuracy, abs=1e-12)


def test_pipeline_grid_search_and_clone(wine):
    X, y = wine
    pipeline = make_pipeline(StandardScaler(), KernelDiscriminant(regularization=0.01))
    grid = GridSearchCV(
        pipeline,
        {"kerneldiscriminant__kernel": [RBF(width=0.1), RBF(width=5.0), Polynomial(2, gamma=0.1)]},
        cv=3,
    ).fit(X, y)
    assert grid.best_score_ > 0.95
    assert grid.best_params_["kerneldiscriminant__kernel"] != RBF(width=0.1)
    copy = clone(MultipleKernelDiscriminant(rbf_ladder(3), criterion="uniform"))
    assert copy.kernels == rbf_ladder(3)
    assert copy.get_params()["criterion"] == "uniform"


def test_pickle_round_trip(wine):
    X, y = wine
    X = scale(X)
    clf = MultipleKernelDiscriminant().fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X), rtol=1e-9)


def test_fitted_model_keeps_no_gram_stack():
    X, y = load_breast_cancer(return_X_y=True)
    clf = MultipleKernelDiscriminant(regularization=0.01).fit(scale(X), y)
    assert len(pickle.dumps(clf)) < 10 * X.nbytes


def test_precomputed_stack_equals_kernels_and_survives_cross_validation(wine):
    X, y = wine
    X = scale(X)
    kernels = [RBF(width=2.0), RBF(width=6.0), Linear()]
    stack = np.stack([kernel(X) for kernel in kernels], axis=-1)
    on_rows = MultipleKernelDiscriminant(kernels, regularization=0.01)
    on_stack = MultipleKernelDiscriminant("precomputed", regularization=0.01)
    np.testing.assert_allclose(
        cross_val_predict(on_stack, stack, y, cv=4, method="predict_proba"),
        cross_val_predict(on_rows, X, y, cv=4, method="predict_proba"),
        atol=1e-7,  # that of a kernel logistic regression
    )
    grid = GridSearchCV(on_stack, {"regularization": [1e-3, 1e-1]}, cv=3).fit(stack, y)
    assert grid.best_score_ > 0.9
    chosen = MultipleKernelDiscriminant([Precomputed(2), Precomputed(0)], regularization=0.01)
    weights = chosen.fit(stack, y).kernel_weights_
    both = MultipleKernelDiscriminant([Linear(), RBF(width=2.0)], regularization=0.01).fit(X, y)
    np.testing.assert_allclose(weights, both.kernel_weights_, atol=1e-9)
    single = cross_val_score(KernelDiscriminant("precomputed"), stack[:, :, 1], y, cv=4)
    np.testing.assert_allclose(single, cross_val_score(KernelDiscriminant(kernels[1]), X, y, cv=4))


def test_sparse_rows_equal_dense_rows(wine):
    X, y = wine
    X = np.maximum(scale(X), 0.0)
    kernels = [RBF(), Linear().on([0, 3, 5]), Polynomial(2), "cosine"]
    dense = MultipleKernelDiscriminant(kernels, regularization=0.01).fit(X, y)
    sparse = MultipleKernelDiscriminant(kernels, regularization=0.01).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.kernel_weights_, dense.kernel_weights_, atol=1e-7)
    np.testing.assert_array_equal(sparse.predict(sp.csc_matrix(X)), dense.predict(X))


def test_kernels_of_every_kind_in_one_list(wine):
    X, y = wine
    X = scale(X)

    def minimum(A, B):
        return np.minimum(A[:, None] - A.min(), B[None] - A.min()).clip(0).sum(axis=2)

    kernels = ["rbf", "laplacian", Matern(length_scale=3.0), lambda A, B: A @ B.T, RBF() + Linear()]
    clf = MultipleKernelDiscriminant(kernels, regularization=0.01).fit(X, y)
    assert clf.score(X, y) > 0.95
    assert len(clf.kernel_names_) == 5
    assert KernelDiscriminant(minimum, regularization=0.1).fit(abs(X), y).score(abs(X), y) > 0.88


def test_rows_that_are_not_numbers_for_callable_kernels():
    """Words, compared by the letters they share."""

    def shared_letters(A, B):
        return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)

    words = ["abba", "bab", "cab", "baa", "xyz", "zyx", "xxy", "yzz"]
    y = ["early"] * 4 + ["late"] * 4
    clf = MultipleKernelDiscriminant([shared_letters], regularization=0.1).fit(words, y)
    assert clf.predict(["abc", "zzz"]).tolist() == ["early", "late"]


def test_repr_is_short():
    assert repr(MultipleKernelDiscriminant(rbf_ladder(2))).count("RBF") == 2
