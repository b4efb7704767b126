"""The best single kernel, against scikit-learn's grid search on the same folds."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from discernel import KernelDiscriminant, LearnedKernelTransformer
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Linear, Polynomial
from discernel_reproduction.baselines import LearnedKernelSVC, SingleKernelClassifier

KERNELS = [RBF(width=0.3), RBF(width=5.0), Linear(), Polynomial(3)]
VALUES = {"kfda": [1.0, 1e-2, 1e-5], "svm": [0.01, 1.0, 100.0]}


@parametrize_with_checks(
    [
        SingleKernelClassifier([RBF(), Linear()], regularizations=[0.1], cv=2, random_state=0),
        SingleKernelClassifier(
            [RBF()], classifier="svm", regularizations=[1.0], cv=2, random_state=0
        ),
    ]
)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module", params=["two classes", "three classes"])
def data(request):
    load = load_breast_cancer if request.param == "two classes" else load_wine
    X, y = load(return_X_y=True)
    rng = np.random.default_rng(0)
    X = scale(X)[:: max(1, len(y) // 120)]
    y = np.array(["a", "b", "c"])[y][:: max(1, len(y) // 120)]
    return X + 1.5 * rng.standard_normal(X.shape), y  # noise, so that accuracies differ


@pytest.mark.parametrize("classifier", ["kfda", "svm"])
def test_choice_is_that_of_grid_search_on_the_same_folds(data, classifier):
    X, y = data
    folds = StratifiedKFold(4, shuffle=True, random_state=7)
    ours = SingleKernelClassifier(
        KERNELS, classifier=classifier, regularizations=VALUES[classifier], cv=4, random_state=7
    ).fit(X, y)
    if classifier == "kfda":
        estimator = KernelDiscriminant(statistics="training")
        grid = {"kernel": KERNELS, "regularization": VALUES["kfda"]}
    else:
        transformer = LearnedKernelTransformer(criterion="uniform", regularization=1.0)
        estimator = make_pipeline(transformer, SVC(kernel="precomputed", tol=1e-4))
        grid = {
            "learnedkerneltransformer__kernels": [[kernel] for kernel in KERNELS],
            "svc__C": VALUES["svm"],
        }
    search = GridSearchCV(estimator, grid, cv=folds).fit(X, y)
    expected = search.cv_results_["mean_test_score"].reshape(len(KERNELS), 3)
    np.testing.assert_allclose(ours.cv_results_, expected, atol=1e-12)
    assert len(np.unique(ours.cv_results_)) > 4
    assert (ours.best_index_, ours.best_regularization_) == (
        search.best_index_ // 3,
        VALUES[classifier][search.best_index_ % 3],
    )
    assert ours.best_score_ == pytest.approx(search.best_score_)
    np.testing.assert_allclose(ours.decision_function(X), search.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(ours.predict(X), search.predict(X))


#: Rows of 60 classified right, by kernel and λ or C, as the cross-validation written by hand found
#: them that scikit-learn's took the place of; and the kernel chosen.
RECORDED = {
    (2, "kfda"): ([[28, 28, 30], [42, 44, 38], [44, 45, 45], [42, 43, 34]], 2),
    (2, "svm"): ([[28, 29, 30], [28, 45, 39], [28, 47, 47], [28, 41, 43]], 2),
    (3, "kfda"): ([[28, 25, 25], [45, 43, 28], [39, 40, 39], [34, 39, 31]], 1),
    (3, "svm"): ([[26, 28, 28], [43, 44, 31], [39, 39, 38], [24, 30, 38]], 1),
}


@pytest.mark.parametrize(("n_classes", "classifier"), RECORDED)
def test_accuracies_are_those_recorded(n_classes, classifier):
    rng = np.random.default_rng(n_classes)
    y = np.arange(60) % n_classes
    X = rng.standard_normal((60, 4))
    X[:, 0] += 1.2 * y
    X[:, 1] *= 1 + y
    single = SingleKernelClassifier(
        KERNELS, classifier=classifier, regularizations=VALUES[classifier], cv=4, random_state=7
    ).fit(X, y)
    right, best = RECORDED[n_classes, classifier]
    np.testing.assert_allclose(60 * single.cv_results_, right, atol=1e-9)
    assert single.best_index_ == best


@pytest.mark.parametrize(
    ("classifier", "estimator"),
    [
        ("kfda", KernelDiscriminant(KERNELS[1], regularization=0.01, statistics="training")),
        ("svm", LearnedKernelSVC(KERNELS[1], criterion="uniform", regularization=1.0, C=0.01)),
    ],
)
def test_chosen_pair_is_fitted_to_all_rows(data, classifier, estimator):
    X, y = data
    single = SingleKernelClassifier(
        [KERNELS[1]], classifier=classifier, regularizations=[0.01], random_state=0
    ).fit(X, y)
    assert single.best_kernel_ == KERNELS[1]
    assert single.kernel_names_ == ["RBF(width=5)"]
    np.testing.assert_array_equal(single.classes_, np.unique(y))
    np.testing.assert_allclose(
        single.decision_function(X), estimator.fit(X, y).decision_function(X), atol=1e-10
    )


def test_precomputed_stack_equals_kernels_within_an_outer_cross_validation(data):
    """Double cross-validation, on matrices that the outer one slices."""
    X, y = data
    options = {"regularizations": [0.1, 0.001], "cv": 3, "random_state": 0}
    stack = np.stack([kernel(X) for kernel in KERNELS], axis=-1)
    np.testing.assert_allclose(
        cross_val_score(SingleKernelClassifier("precomputed", **options), stack, y, cv=3),
        cross_val_score(SingleKernelClassifier(KERNELS, **options), X, y, cv=3),
    )


def test_jobs_do_not_change_the_result(data):
    X, y = data
    options = {"regularizations": [0.1], "random_state": 0}
    one = SingleKernelClassifier(KERNELS, **options).fit(X, y)
    with parallel_config(backend="threading"):
        two = SingleKernelClassifier(KERNELS, n_jobs=2, **options).fit(X, y)
    np.testing.assert_array_equal(two.cv_results_, one.cv_results_)


def test_default_grids(data):
    X, y = data[0][::4], data[1][::4]
    kfda = SingleKernelClassifier([Linear()], random_state=0).fit(X, y)
    np.testing.assert_allclose(kfda.regularizations_, np.logspace(0, -6, 13))
    svm = SingleKernelClassifier([RBF()], classifier="svm", random_state=0).fit(X, y)
    np.testing.assert_allclose(svm.regularizations_, np.logspace(-2, 3, 6))


def test_folds_of_the_user_and_folds_for_small_classes():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    rows = np.concatenate([np.flatnonzero(y == 0)[:2], np.flatnonzero(y > 0)[:60]])
    small = SingleKernelClassifier([Linear()], regularizations=[0.1], random_state=0)
    assert small.fit(X[rows], y[rows]).best_score_ > 0.8
    folds = list(GroupKFold(3).split(X, y, groups=np.arange(len(y)) % 6))
    own = SingleKernelClassifier([Linear()], regularizations=[0.1], cv=folds).fit(X, y)
    by_hand = cross_val_score(
        KernelDiscriminant(Linear(), regularization=0.1, statistics="training"), X, y, cv=folds
    )
    assert own.best_score_ == pytest.approx(by_hand.mean())


@pytest.mark.parametrize("classifier", ["kfda", "svm"])
def test_the_origin_of_the_columns_does_not_matter(data, classifier):
    X, y = data
    options = {"classifier": classifier, "regularizations": [0.1], "random_state": 0}
    near, far = (
        SingleKernelClassifier([Linear(), RBF(width=5.0)], **options).fit(rows, y)
        for rows in (X, X + 1e8)
    )
    np.testing.assert_allclose(far.cv_results_, near.cv_results_, atol=0.02)


def test_constant_kernel_is_never_chosen(data):
    X, y = data
    kernels = [RBF(width=1e9), Linear()]
    single = SingleKernelClassifier(kernels, regularizations=[0.1], random_state=0).fit(X, y)
    assert np.isnan(single.cv_results_[0, 0])
    assert single.best_index_ == 1
    with pytest.raises(InvalidInputError, match=r"must vary over the rows.*RBF\(width=1e\+09\)"):
        SingleKernelClassifier(kernels[:1], regularizations=[0.1]).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classifier": "lda"}, "classifier of Sing.* must be one of 'kfda', 'svm'. Got 'lda'"),
        ({"regularizations": []}, r"list of positive, finite numbers, or None. Got \[\]"),
        ({"regularizations": [1.0, 0.0]}, "list of positive, finite numbers, or None"),
        ({"regularizations": "loo"}, "list of positive, finite numbers, or None. Got 'loo'"),
        ({"regularizations": 0.1}, "list of positive, finite numbers, or None. Got 0.1"),
        ({"cv": 1}, "at least two folds and two samples of every class. Got cv=1"),
    ],
)
def test_what_cannot_work_is_refused(data, options, message):
    with pytest.raises(InvalidInputError, match=message):
        SingleKernelClassifier(KERNELS, **options).fit(*data)


def test_class_of_one_sample_is_refused(data):
    X, y = data[0], data[1].copy()
    y[0] = "d"
    with pytest.raises(InvalidInputError, match="Got cv=5 and 1 of class d"):
        SingleKernelClassifier(KERNELS).fit(X, y)
