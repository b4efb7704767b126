"""Weights of rows and classes in the estimators: a count is a repetition of the row."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_sample_weight

from discernel import (
    AKFDClassifier,
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
    SeparabilityClassifier,
    learn_kernel,
)
from discernel.criteria import AKFD, RKDA, Criterion, Margin
from discernel.kernels import RBF, Linear

KERNELS = [RBF(width=2.0), RBF(width=6.0), Linear()]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:70]
    return scale(X)[rows], np.array(["red", "rose", "white"])[y[rows]]


@pytest.fixture(scope="module")
def two(wine):
    X, y = wine
    return X[y != "white"], y[y != "white"]


@pytest.fixture(scope="module")
def counts():
    return np.random.default_rng(1).integers(0, 4, 70)


def assert_same(weighted, repeated, X, atol=1e-8):
    np.testing.assert_allclose(weighted.kernel_weights_, repeated.kernel_weights_, atol=atol)
    np.testing.assert_allclose(weighted.regularization_, repeated.regularization_, rtol=1e-6)
    objectives = weighted.learned_kernel_.objective, repeated.learned_kernel_.objective
    if objectives[0] is not None:
        np.testing.assert_allclose(*objectives, rtol=1e-8)
    for name in ("predict_proba", "predict_log_proba", "decision_function", "transform"):
        if hasattr(weighted, name):
            found, expected = getattr(weighted, name)(X), getattr(repeated, name)(X)
            close = atol * max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(found, expected, atol=close, err_msg=name)
    found, expected = weighted.predict(X), repeated.predict(X)
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=atol * np.abs(expected).max())
    else:
        np.testing.assert_array_equal(found, expected)


def both(make, X, y, given):
    repeated = np.repeat(np.arange(len(y)), given)
    return make().fit(X, y, sample_weight=given), make().fit(X[repeated], y[repeated])


ANY = [
    {"criterion": "rkda", "regularization": 1e-3},
    {"criterion": "rkda", "regularization": 1e-3, "solver": "galerkin"},
    {"criterion": "rkda", "regularization": 1e-3, "solver": "columns"},
    {"criterion": "rkda", "regularization": 1e-3, "solver": "silp"},
    {"criterion": "rkda", "regularization": "loo"},
    {"criterion": "rkda", "regularization": "joint"},
    {"criterion": RKDA(shrinkage=0.1), "regularization": 1e-3},
    {"criterion": "loo"},
    {"criterion": "loo", "regularization": 1e-2},
    {"criterion": "auto"},
    {"criterion": "auto", "regularization": 1e-2},
    {"criterion": "uniform"},
    {"criterion": "alignment", "solver": "greedy"},
    {"criterion": "alignment", "solver": "qp"},
    {"criterion": "separability", "solver": "closed_form"},
    {"criterion": "separability", "solver": "dinkelbach"},
    {"criterion": "akfd"},
    {"criterion": AKFD(nu=1.0), "regularization": 0.1},
]
TWO = [
    {"criterion": "fdr", "regularization": 1e-3},
    {"criterion": "fdr"},
    {"criterion": "margin"},
    {"criterion": "margin", "solver": "silp"},
    {"criterion": Margin("SM1", C=10.0)},
    {"criterion": Margin("SM1", C=0.05)},
    {"criterion": Margin("SM2", C=0.1)},
    {"criterion": Margin("SM2_C")},
]
#: The papers' programs, by a conic solver: as exact as that is.
CONIC = [
    {"criterion": "rkda", "regularization": 0.1, "solver": "sdp"},
    {"criterion": "rkda", "regularization": 0.1, "solver": "sdp_approximate"},
    {"criterion": "rkda", "regularization": 0.1, "solver": "qcqp"},
    {"criterion": "rkda", "regularization": "joint", "solver": "qcqp"},
    {"criterion": "fdr", "regularization": 0.1, "solver": "sdp"},
    {"criterion": Margin("SM1"), "solver": "qcqp"},
    {"criterion": Margin("SM2"), "solver": "qcqp"},
    {"criterion": Margin("SM2_C"), "solver": "qcqp"},
]


@pytest.mark.parametrize("options", ANY, ids=str)
def test_counts_are_repeated_rows(wine, counts, options):
    X, y = wine
    assert_same(*both(lambda: MultipleKernelDiscriminant(KERNELS, **options), X, y, counts), X)


@pytest.mark.parametrize("options", ANY + TWO, ids=str)
def test_counts_are_repeated_rows_of_two_classes(two, counts, options):
    X, y = two
    given = counts[: len(y)]
    assert_same(*both(lambda: MultipleKernelDiscriminant(KERNELS, **options), X, y, given), X)


@pytest.mark.filterwarnings("ignore::discernel.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", CONIC, ids=str)
def test_counts_are_repeated_rows_in_conic_programs(two, counts, options):
    pytest.importorskip("cvxpy")
    X, y = two[0][:16], two[1][:16]
    clf = [MultipleKernelDiscriminant(KERNELS, **options) for _ in range(2)]
    repeated = np.repeat(np.arange(16), counts[:16])
    weighted, plain = clf[0].fit(X, y, counts[:16]), clf[1].fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.kernel_weights_, plain.kernel_weights_, atol=1e-3)
    objectives = [each.learned_kernel_.objective for each in (weighted, plain)]
    np.testing.assert_allclose(*objectives, rtol=1e-5)


@pytest.mark.parametrize("bank", ["dense", "tiled", "factored"])
@pytest.mark.parametrize("criterion", ["rkda", "auto"])
def test_counts_are_repeated_rows_in_every_bank(wine, counts, bank, criterion):
    X, y = wine

    def make():
        return MultipleKernelDiscriminant(KERNELS, criterion=criterion, bank=bank)

    assert_same(*both(make, X, y, counts), X)


@pytest.mark.parametrize(
    "options",
    [
        {"statistics": "training"},
        {"priors": "uniform"},
        {"class_costs": "balanced"},
        {"class_weight": "balanced"},
        {"class_weight": {"red": 3.0, "rose": 0.5}},
        {"n_components": 1},
    ],
    ids=str,
)
def test_counts_are_repeated_rows_whatever_the_decision(wine, counts, options):
    X, y = wine

    def make():
        return MultipleKernelDiscriminant(KERNELS, regularization=1e-2, **options)

    assert_same(*both(make, X, y, counts), X)


def test_counts_are_repeated_rows_for_a_threshold(two, counts):
    X, y = two
    X = X + 2.0 * np.random.default_rng(0).standard_normal(X.shape)  # classes that overlap

    def make():
        return KernelDiscriminant(RBF(width=6.0), regularization=0.1, threshold="roc")

    weighted, repeated = both(make, X, y, counts[: len(y)])
    assert_same(weighted, repeated, X)
    assert weighted.threshold_ == pytest.approx(repeated.threshold_, rel=1e-8)


@pytest.mark.parametrize("estimator", [KernelDiscriminant, MultipleKernelDiscriminant])
def test_widths_and_spreads_of_counts_are_those_of_repeated_rows(wine, counts, estimator):
    X, y = wine
    weighted, repeated = both(estimator, X, y, counts)
    for one, other in zip(weighted.kernels_, repeated.kernels_, strict=True):
        assert one == other
    assert_same(weighted, repeated, X)


@pytest.mark.parametrize("form", [sparse.csr_array, pd.DataFrame], ids=["sparse", "frame"])
def test_counts_are_repeated_rows_in_other_forms(wine, counts, form):
    X, y = wine
    repeated = np.repeat(np.arange(len(y)), counts)
    weighted = MultipleKernelDiscriminant(regularization=0.01).fit(form(X), y, sample_weight=counts)
    plain = MultipleKernelDiscriminant(regularization=0.01).fit(form(X[repeated]), y[repeated])
    np.testing.assert_allclose(
        weighted.predict_proba(form(X)), plain.predict_proba(form(X)), atol=1e-8
    )


def test_precomputed_matrices_with_absent_rows(wine, counts):
    X, y = wine
    stack = np.stack([kernel(X) for kernel in KERNELS], axis=-1)
    repeated = np.repeat(np.arange(len(y)), counts)
    weighted = MultipleKernelDiscriminant("precomputed", regularization=0.01)
    weighted.fit(stack, y, sample_weight=counts)
    plain = MultipleKernelDiscriminant("precomputed", regularization=0.01)
    plain.fit(stack[np.ix_(repeated, repeated)], y[repeated])
    expected = plain.predict_proba(stack[:, repeated])
    np.testing.assert_allclose(weighted.predict_proba(stack), expected, atol=1e-8)
    with pytest.raises(ValueError, match="all training rows, here 70, also those of weight 0"):
        weighted.predict(stack[:, :69])


@pytest.mark.parametrize("options", [{}, {"criterion": "rkda"}, {"regularization": "joint"}])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_counts_are_repeated_rows_in_regression(wine, counts, options, n_targets):
    X, _ = wine
    y = X[:, 0] if n_targets == 1 else X[:, :2]
    weighted, repeated = both(lambda: MultipleKernelRidge(KERNELS, **options), X[:, 2:], y, counts)
    assert_same(weighted, repeated, X[:, 2:])
    assert weighted.leave_one_out_.shape == y[counts > 0].shape


@pytest.mark.parametrize("options", [{}, {"criterion": "rkda"}, {"criterion": "alignment"}])
def test_counts_are_repeated_rows_with_several_labels(wine, counts, options):
    X, y = wine
    noise = np.random.default_rng(0).standard_normal(len(y))
    Y = np.column_stack([y == "red", y == "rose", X[:, 0] + noise > 0]).astype(int)
    assert_same(*both(lambda: MultiLabelKernelDiscriminant(KERNELS, **options), X, Y, counts), X)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_counts_are_repeated_rows_with_one_class_against_the_rest(wine, counts, class_weight):
    X, y = wine

    def make():
        return MultiLabelKernelDiscriminant(KERNELS, class_weight=class_weight)

    assert_same(*both(make, X, y, counts), X)


def test_a_learned_kernel_has_a_column_per_row(wine, counts):
    """On repeated rows it has as many as they are repeated; the values are the same."""
    X, y = wine
    weighted, repeated = both(lambda: LearnedKernelTransformer(KERNELS), X, y, counts)
    rows = np.repeat(np.arange(len(y)), counts)
    matrix = weighted.transform(X)
    assert matrix.shape == (70, 70)
    np.testing.assert_allclose(matrix[:, rows], repeated.transform(X), atol=1e-8)
    assert counts @ matrix.diagonal() / counts.sum() == pytest.approx(1.0)
    # Columns of rows without weight: the centred kernel is symmetric.
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-9)
    assert len(weighted.get_feature_names_out()) == 70
    stack = np.stack([kernel(X) for kernel in KERNELS], axis=-1)
    given = LearnedKernelTransformer("precomputed").fit(stack, y, sample_weight=counts)
    np.testing.assert_allclose(given.transform(stack), matrix, atol=1e-7)


def test_a_pipeline_with_a_machine_takes_weights(wine, counts):
    X, y = wine
    with sklearn.config_context(enable_metadata_routing=True):
        learned = LearnedKernelTransformer(KERNELS, regularization=0.1)
        svm = SVC(kernel="precomputed")
        pipe = make_pipeline(
            learned.set_fit_request(sample_weight=True), svm.set_fit_request(sample_weight=True)
        )
        # libsvm itself goes wrong on weights of 0 with precomputed kernels.
        pipe.fit(X, y, sample_weight=counts + 0.5)
    assert pipe.score(X, y) > 0.9


@pytest.mark.parametrize("nu", [0.01, 1.0])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_counts_are_repeated_rows_in_akfd(wine, two, counts, nu, class_weight, n_classes):
    X, y = wine if n_classes == 3 else two
    given = counts[: len(y)]

    def make():
        return AKFDClassifier(KERNELS, nu=nu, class_weight=class_weight)

    weighted, repeated = both(make, X, y, given)
    np.testing.assert_allclose(weighted.kernel_weights_, repeated.kernel_weights_, atol=1e-8)
    np.testing.assert_allclose(weighted.objective_path_, repeated.objective_path_, rtol=1e-8)
    found, expected = weighted.decision_function(X), repeated.decision_function(X)
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def test_the_folds_of_akfd_have_weights(wine, counts):
    X, y = wine
    clf = AKFDClassifier([RBF(width=6.0)], random_state=0)
    clf.fit(X, y, sample_weight=np.where(counts > 1, 1.0, 1e-6))
    assert 0.9 < max(clf.nu_accuracies_.values()) <= 1.0
    assert clf.score(X, y) > 0.9


SEPARABILITY = [
    {"alpha": 1e4, "share": 0.8},
    {"alpha": "2*critical", "share": 0.8},
    {"method": "dinkelbach", "share": 0.8},
    {"method": "alignment", "share": 0.8},
    {"alpha": "auto", "share": "auto"},
    {"alpha": "auto", "share": "auto", "n_neighbors": 3},
    {"method": "alignment", "share": "auto", "include_plain": False, "n_neighbors": 2},
    {"method": "dinkelbach", "estimator": SVC(kernel="precomputed"), "share": 0.8},
]


@pytest.mark.parametrize("options", SEPARABILITY, ids=str)
@pytest.mark.parametrize("kernels", ["auto", RBF(width=6.0)], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_counts_are_repeated_rows_in_separability(wine, two, counts, options, kernels, n_classes):
    X, y = wine if n_classes == 3 else two
    given, labelled = counts[: len(y)], np.arange(len(y)) % 3 == 0
    y = np.where(labelled, y, None)
    weighted, repeated = both(lambda: SeparabilityClassifier(kernels, **options), X, y, given)
    assert weighted.share_ == repeated.share_
    assert weighted.kernel_ == repeated.kernel_ or isinstance(kernels, str)
    np.testing.assert_allclose(weighted.mu_, repeated.mu_, rtol=1e-6, atol=1e-8)
    found = [(t.kernel, t.method, t.share, t.alpha) for t in weighted.trials_]
    assert found == [(t.kernel, t.method, t.share, t.alpha) for t in repeated.trials_]
    for one, other in zip(weighted.trials_, repeated.trials_, strict=True):
        assert one.accuracy == pytest.approx(other.accuracy)
        assert one.margin == pytest.approx(other.margin, rel=1e-6)
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    assert len(weighted.transduction_) == len(y)
    rows = np.repeat(np.arange(len(y)), given)
    np.testing.assert_array_equal(weighted.transduction_[rows], repeated.transduction_)


def test_a_classifier_that_takes_no_weights_is_refused(wine, counts):
    X, y = wine
    y = np.where(np.arange(len(y)) % 2 == 0, y, None)
    clf = SeparabilityClassifier(RBF(width=6.0), estimator=KNeighborsClassifier())
    with pytest.raises(ValueError, match="KNeighborsClassifier does not"):
        clf.fit(X, y, sample_weight=counts + 1)


def test_balanced_classes_in_separability(wine):
    X, y = wine
    y = np.where(np.arange(len(y)) % 3 == 0, y, None)
    plain = SeparabilityClassifier(RBF(width=6.0), share=0.8, alpha="2*critical").fit(X, y)
    clf = SeparabilityClassifier(
        RBF(width=6.0), share=0.8, alpha="2*critical", class_weight="balanced"
    )
    clf.fit(X, y)
    np.testing.assert_array_equal(clf.spectrum_.eigenvalues, plain.spectrum_.eigenvalues)
    assert np.abs(clf.mu_ - plain.mu_).max() > 1e-6


@pytest.mark.parametrize("criterion", ["rkda", "auto", "uniform"])
def test_counts_are_repeated_samples_for_learn_kernel(wine, counts, criterion):
    X, y = wine
    grams = np.array([kernel(X) for kernel in KERNELS])
    rows = np.repeat(np.arange(len(y)), counts)
    weighted = learn_kernel(grams, y, criterion=criterion, sample_weight=counts)
    repeated = learn_kernel(grams[:, rows][:, :, rows], y[rows], criterion=criterion)
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-8)
    np.testing.assert_allclose(weighted.coefficients, repeated.coefficients, rtol=1e-7)
    with pytest.raises(ValueError, match="one label per row"):
        learn_kernel(grams[:, :5, :5], y, sample_weight=counts)
    with pytest.raises(ValueError, match=r"Got 0 for all rows of \['red'\]"):
        learn_kernel(grams, y, sample_weight=(y != "red").astype(float))


# ---- other weights -----------------------------------------------------------------------------


def test_the_scale_of_weights_that_are_no_counts_does_not_matter(wine):
    X, y = wine
    given = np.random.default_rng(2).uniform(0.1, 2.0, len(y))
    one = MultipleKernelDiscriminant(KERNELS).fit(X, y, sample_weight=given)
    other = MultipleKernelDiscriminant(KERNELS).fit(X, y, sample_weight=1e-4 * given)
    assert_same(one, other, X)


@pytest.mark.parametrize("estimator", [MultipleKernelDiscriminant, KernelDiscriminant])
def test_equal_weights_are_none(wine, estimator):
    X, y = wine
    plain = estimator(regularization=0.01).fit(X, y).predict_proba(X)
    for given in (np.ones(len(y)), np.full(len(y), 0.3), 1.0):
        found = estimator(regularization=0.01).fit(X, y, sample_weight=given)
        np.testing.assert_array_equal(found.predict_proba(X), plain)


def test_copies_of_all_rows_change_nothing_that_is_normalised(wine):
    """Weights and λ of rkda do not depend on how often all rows are repeated."""
    X, y = wine
    options = {"criterion": "rkda", "regularization": 1e-3}
    one = MultipleKernelDiscriminant(KERNELS, **options).fit(X, y)
    two = MultipleKernelDiscriminant(KERNELS, **options).fit(X, y, sample_weight=np.full(70, 2))
    np.testing.assert_allclose(one.kernel_weights_, two.kernel_weights_, atol=1e-8)
    assert two.learned_kernel_.objective == pytest.approx(2.0 * one.learned_kernel_.objective)


def test_balanced_classes_are_the_weights_they_stand_for(wine):
    X, y = wine
    X, y = X[:50], y[:50]
    given = compute_sample_weight("balanced", y)
    balanced = MultipleKernelDiscriminant(KERNELS, class_weight="balanced").fit(X, y)
    weighted = MultipleKernelDiscriminant(KERNELS).fit(X, y, sample_weight=given)
    assert_same(balanced, weighted, X)
    np.testing.assert_allclose(balanced.priors_, 1 / 3)
    named = dict(zip(y.tolist(), (7.0 * given).tolist(), strict=True))
    assert_same(MultipleKernelDiscriminant(KERNELS, class_weight=named).fit(X, y), weighted, X)


def test_class_weights_find_more_of_a_rare_class():
    rng = np.random.default_rng(0)
    y = (np.arange(300) % 15 == 0).astype(int)
    X = rng.standard_normal((300, 2)) + 1.5 * y[:, None]
    plain = MultipleKernelDiscriminant().fit(X[::2], y[::2])
    balanced = MultipleKernelDiscriminant(class_weight="balanced").fit(X[::2], y[::2])
    rare = y[1::2] == 1
    recall = [np.mean(clf.predict(X[1::2])[rare]) for clf in (plain, balanced)]
    assert recall[1] > recall[0] + 0.2


def test_weights_go_with_the_rows_that_the_default_searches_on():
    """Above 500 rows the search is on a part of them, with their weights."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    X = rng.standard_normal((600, 4)) + y[:, None]
    given = np.where(X[:, 0] > 0.5, 0.01, 1.5)
    clf = MultipleKernelDiscriminant().fit(X, y, sample_weight=given)
    assert clf.predict_proba(X).shape == (600, 2)
    again = MultipleKernelDiscriminant().fit(X, y, sample_weight=2.5 * given)
    np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X), atol=1e-6)


# ---- metadata routing --------------------------------------------------------------------------


def test_routing_through_pipelines_and_searches(wine, counts):
    X, y = wine
    given = counts + 0.5
    with sklearn.config_context(enable_metadata_routing=True):
        clf = MultipleKernelDiscriminant(KERNELS, criterion="uniform", regularization=0.1)
        clf.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), clf)
        pipe.fit(X, y, sample_weight=given)
        found, Z = pipe.predict_proba(X), StandardScaler().fit_transform(X)
        expected = clone(clf).fit(Z, y, sample_weight=given).predict_proba(Z)
        np.testing.assert_allclose(found, expected)
        plain = clone(clf).fit(Z, y).predict_log_proba(Z)
        assert np.abs(pipe.predict_log_proba(X) - plain).max() > 1e-3
        if sklearn.__version__.startswith(("1.6.", "1.7.")):
            return  # these route no weights to the score of a pipeline
        scores = cross_validate(pipe, X, y, params={"sample_weight": given}, error_score="raise")
        assert len(scores["test_score"]) == 5
        grid = {"multiplekerneldiscriminant__regularization": [0.01, 0.1]}
        search = GridSearchCV(pipe, grid, cv=3, error_score="raise")
        search.fit(X, y, sample_weight=given)
        assert search.best_score_ > 0.9


# ---- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (-np.ones(70), "at least 0"),
        (np.full(70, np.nan), "finite"),
        (np.r_[np.ones(69), np.inf], "Got inf for row 69"),
        (np.ones(69), r"here shape \(70,\). Got shape \(69,\)"),
        (np.zeros(70), "at least one non-zero"),
    ],
    ids=["negative", "nan", "inf", "short", "zero"],
)
@pytest.mark.parametrize(
    "estimator",
    [
        MultipleKernelDiscriminant,
        KernelDiscriminant,
        MultiLabelKernelDiscriminant,
        LearnedKernelTransformer,
        AKFDClassifier,
        SeparabilityClassifier,
    ],
)
def test_bad_weights_are_refused_before_any_work(wine, estimator, given, words):
    X, y = wine
    with pytest.raises(ValueError, match=words):
        estimator().fit(X, y, sample_weight=given)
    with pytest.raises(ValueError, match=words):
        MultipleKernelRidge().fit(X, X[:, 0], sample_weight=given)


@pytest.mark.parametrize(
    "estimator",
    [
        MultipleKernelDiscriminant(),
        MultiLabelKernelDiscriminant(),
        LearnedKernelTransformer(),
        AKFDClassifier(),
        SeparabilityClassifier(require_unlabelled=False),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_class_without_weight_is_named(wine, estimator):
    X, y = wine
    with pytest.raises(ValueError, match=r"Got 0 for all rows of \['rose'\]"):
        estimator.fit(X, y, sample_weight=(y != "rose").astype(float))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"green": 2.0}, r"\['green'\], which are none"),
        ({"red": 0.0}, "positive, finite"),
        ({"red": -1.0}, "positive, finite"),
        ({"red": np.inf}, "positive, finite"),
        ({"red": "much"}, "positive, finite"),
        ("equal", "None, 'balanced' or a dictionary"),
        ([1.0, 2.0, 3.0], "None, 'balanced' or a dictionary"),
    ],
    ids=str,
)
def test_bad_class_weights_are_refused(wine, given, words):
    X, y = wine
    with pytest.raises(ValueError, match=words):
        MultipleKernelDiscriminant(class_weight=given).fit(X, y)


def test_class_weights_are_not_for_several_labels(wine):
    X, y = wine
    Y = np.column_stack([y == "red", y == "rose"]).astype(int)
    with pytest.raises(ValueError, match="rows of one class each"):
        MultiLabelKernelDiscriminant(class_weight="balanced").fit(X, Y)


def test_one_class_is_not_balanced(wine):
    X, y = wine
    with pytest.raises(ValueError, match="at least two classes"):
        MultipleKernelDiscriminant(class_weight="balanced").fit(X, np.full(len(y), "red"))


def test_a_constant_target_of_the_rows_with_weight_is_refused(wine):
    X, _ = wine
    y = np.r_[np.zeros(60), np.ones(10)]
    with pytest.raises(ValueError, match="constant in column 0"):
        MultipleKernelRidge().fit(X, y, sample_weight=1.0 - y)


class Own(Criterion):
    """A criterion that knows nothing of weights."""

    def program(self, bank, target, regularization):
        raise AssertionError("there must be no work")


def test_a_criterion_that_does_not_know_weights_refuses_them(wine, counts):
    X, y = wine
    with pytest.raises(ValueError, match="'Own' does not say that it takes weights"):
        MultipleKernelDiscriminant(KERNELS, criterion=Own()).fit(X, y, sample_weight=counts)


def test_nothing_of_absent_rows_is_looked_at(wine, counts):
    X, y = wine
    given, broken = np.maximum(counts, 1), X.copy()
    given[:3], broken[:3] = 0, np.nan
    one = MultipleKernelDiscriminant(KERNELS, regularization=0.01)
    one.fit(broken, y, sample_weight=given)
    other = MultipleKernelDiscriminant(KERNELS, regularization=0.01)
    other.fit(X[3:], y[3:], sample_weight=given[3:])
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
