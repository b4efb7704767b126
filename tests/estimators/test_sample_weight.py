"""Weights of rows and classes in the estimators."""

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
from discernel.arrays.sample_weights import SampleWeights
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


@pytest.fixture
def own_scale(monkeypatch):
    """Leave weights in the scale they are given in: that of repeated rows, for comparing sums."""
    monkeypatch.setattr(SampleWeights, "of", classmethod(lambda cls, given: cls(given * 1.0)))


def trained(**options):
    """Return an estimator that leaves no row out, which is not the same for repeated rows."""
    return MultipleKernelDiscriminant(
        **{"kernels": KERNELS, "statistics": "training", "regularization": 1e-2, **options}
    )


def both(make, X, y, given):
    repeated = np.repeat(np.arange(len(y)), given.astype(int))
    return make().fit(X, y, sample_weight=given), make().fit(X[repeated], y[repeated])


ANY = [
    {"criterion": "rkda", "regularization": 1e-3},
    {"criterion": "rkda", "regularization": 1e-3, "solver": "galerkin"},
    {"criterion": "rkda", "regularization": 1e-3, "solver": "columns"},
    {"criterion": "rkda", "regularization": 1e-3, "solver": "silp"},
    {"criterion": "rkda", "regularization": "joint"},
    {"criterion": RKDA(shrinkage=0.1), "regularization": 1e-3},
    {"criterion": RKDA(norm=1.5), "regularization": 1e-3},
    {"criterion": "uniform"},
    {"criterion": "alignment", "solver": "greedy"},
    {"criterion": "alignment", "solver": "qp"},
    {"criterion": "separability", "solver": "closed_form"},
    {"criterion": "separability", "solver": "dinkelbach"},
]
TWO = [
    {"criterion": "fdr", "regularization": 1e-3},
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


# ---- where no row is left out, a weight of 2 is a row that is there twice -----------------------


@pytest.mark.usefixtures("own_scale")
@pytest.mark.parametrize("options", ANY, ids=str)
def test_weights_are_repeated_rows(wine, counts, options):
    X, y = wine
    assert_same(*both(lambda: trained(**options), X, y, counts), X)


@pytest.mark.usefixtures("own_scale")
@pytest.mark.parametrize("options", ANY + TWO, ids=str)
def test_weights_are_repeated_rows_of_two_classes(two, counts, options):
    X, y = two
    assert_same(*both(lambda: trained(**options), X, y, counts[: len(y)]), X)


@pytest.mark.usefixtures("own_scale")
@pytest.mark.filterwarnings("ignore::discernel.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", CONIC, ids=str)
def test_weights_are_repeated_rows_in_conic_programs(two, counts, options):
    pytest.importorskip("cvxpy")
    X, y = two[0][:16], two[1][:16]
    clf = [trained(**options) for _ in range(2)]
    repeated = np.repeat(np.arange(16), counts[:16])
    weighted, plain = clf[0].fit(X, y, counts[:16]), clf[1].fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.kernel_weights_, plain.kernel_weights_, atol=1e-3)
    objectives = [each.learned_kernel_.objective for each in (weighted, plain)]
    np.testing.assert_allclose(*objectives, rtol=1e-5)


@pytest.mark.parametrize("bank", ["dense", "tiled", "factored"])
def test_weights_are_repeated_rows_in_every_bank(wine, counts, bank):
    X, y = wine
    weighted, repeated = both(lambda: trained(criterion="rkda", bank=bank), X, y, counts)
    np.testing.assert_allclose(weighted.kernel_weights_, repeated.kernel_weights_, atol=1e-8)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        {"priors": "uniform"},
        {"class_costs": "balanced"},
        {"class_weight": "balanced"},
        {"class_weight": {"red": 3.0, "rose": 0.5}},
        {"n_components": 1},
    ],
    ids=str,
)
def test_weights_are_repeated_rows_whatever_the_decision(wine, counts, options):
    X, y = wine
    weighted, repeated = both(lambda: trained(criterion="uniform", **options), X, y, counts)
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-8)


def test_weights_are_repeated_rows_for_a_threshold(two, counts):
    X, y = two
    X = X + 2.0 * np.random.default_rng(0).standard_normal(X.shape)  # classes that overlap

    def make():
        options = {"regularization": 0.1, "threshold": "roc", "statistics": "training"}
        return KernelDiscriminant(RBF(width=6.0), **options)

    weighted, repeated = both(make, X, y, counts[: len(y)])
    assert weighted.threshold_ == pytest.approx(repeated.threshold_, rel=1e-8)


def test_widths_and_spreads_are_those_of_the_rows_with_weight(wine, counts):
    X, y = wine
    weighted = KernelDiscriminant(regularization=0.1).fit(X, y, sample_weight=counts)
    present = counts > 0
    plain = KernelDiscriminant(regularization=0.1).fit(X[present], y[present])
    assert weighted.kernels_ == plain.kernels_


@pytest.mark.parametrize("form", [sparse.csr_array, pd.DataFrame], ids=["sparse", "frame"])
def test_weights_are_repeated_rows_in_other_forms(wine, counts, form):
    X, y = wine
    repeated = np.repeat(np.arange(len(y)), counts)
    weighted = trained(criterion="rkda").fit(form(X), y, sample_weight=counts)
    plain = trained(criterion="rkda").fit(form(X[repeated]), y[repeated])
    np.testing.assert_allclose(
        weighted.predict_proba(form(X)), plain.predict_proba(form(X)), atol=1e-8
    )


def test_precomputed_matrices_with_absent_rows(wine, counts):
    X, y = wine
    stack = np.stack([kernel(X) for kernel in KERNELS], axis=-1)
    repeated = np.repeat(np.arange(len(y)), counts)
    weighted = trained(kernels="precomputed", criterion="rkda")
    weighted.fit(stack, y, sample_weight=counts)
    plain = trained(kernels="precomputed", criterion="rkda")
    plain.fit(stack[np.ix_(repeated, repeated)], y[repeated])
    expected = plain.predict_proba(stack[:, repeated])
    np.testing.assert_allclose(weighted.predict_proba(stack), expected, atol=1e-8)
    with pytest.raises(ValueError, match="all 70 training rows, including rows of weight 0"):
        weighted.predict(stack[:, :69])


@pytest.mark.usefixtures("own_scale")
@pytest.mark.parametrize(
    "options", [{"criterion": "rkda", "regularization": 1e-2}, {"regularization": "joint"}], ids=str
)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_weights_are_repeated_rows_in_regression(wine, counts, options, n_targets):
    X, _ = wine
    y = X[:, 0] if n_targets == 1 else X[:, :2]
    weighted, repeated = both(lambda: MultipleKernelRidge(KERNELS, **options), X[:, 2:], y, counts)
    assert_same(weighted, repeated, X[:, 2:])
    assert weighted.leave_one_out_.shape == y[counts > 0].shape


@pytest.mark.parametrize("criterion", ["rkda", "alignment"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_kernels_of_several_labels_are_those_of_repeated_rows(
    wine, counts, criterion, class_weight
):
    X, y = wine
    noise = np.random.default_rng(0).standard_normal(len(y))
    Y = np.column_stack([y == "red", y == "rose", X[:, 0] + noise > 0]).astype(int)

    def make():
        return MultiLabelKernelDiscriminant(
            KERNELS, criterion=criterion, regularization=0.1, class_weight=class_weight
        )

    weighted, repeated = both(make, X, Y if class_weight is None else y, counts)
    np.testing.assert_allclose(weighted.kernel_weights_, repeated.kernel_weights_, atol=1e-8)


def test_a_learned_kernel_has_a_column_per_row(wine, counts):
    """On repeated rows it has as many as they are repeated; the values are the same."""
    X, y = wine
    options = {"criterion": "rkda", "regularization": 0.1}
    weighted, repeated = both(lambda: LearnedKernelTransformer(KERNELS, **options), X, y, counts)
    rows = np.repeat(np.arange(len(y)), counts)
    matrix = weighted.transform(X)
    assert matrix.shape == (70, 70)
    np.testing.assert_allclose(matrix[:, rows], repeated.transform(X), atol=1e-8)
    assert counts @ matrix.diagonal() / counts.sum() == pytest.approx(1.0)
    # Columns of rows without weight: the centred kernel is symmetric.
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-9)
    assert len(weighted.get_feature_names_out()) == 70
    stack = np.stack([kernel(X) for kernel in KERNELS], axis=-1)
    given = LearnedKernelTransformer("precomputed", **options).fit(stack, y, sample_weight=counts)
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


@pytest.mark.usefixtures("own_scale")
@pytest.mark.parametrize("nu", [0.01, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_repeated_rows_in_akfd(wine, two, nu, n_classes):
    """Where the classes have the shares of their rows, by which its targets go."""
    X, y = wine if n_classes == 3 else two
    given = np.empty(len(y), dtype=int)
    for label in set(y):
        n = np.count_nonzero(y == label)
        given[y == label] = np.r_[np.arange(n // 2 * 2) % 2 * 2 + 1, np.zeros(n % 2)]  # 1, 3, …

    def make():
        return AKFDClassifier(KERNELS, nu=nu)

    criterion = {"criterion": AKFD(nu=nu), "regularization": 0.1}
    assert_same(*both(lambda: trained(**criterion), X, y, given), X)
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
    {"method": "dinkelbach", "estimator": SVC(kernel="precomputed"), "share": 0.8},
]


@pytest.mark.usefixtures("own_scale")
@pytest.mark.parametrize("options", SEPARABILITY, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_repeated_rows_in_separability(wine, two, counts, options, n_classes):
    X, y = wine if n_classes == 3 else two
    given, labelled = counts[: len(y)], np.arange(len(y)) % 3 == 0
    y = np.where(labelled, y, None)
    kernel, given = RBF(width=6.0), given.astype(float)
    weighted, repeated = both(lambda: SeparabilityClassifier(kernel, **options), X, y, given)
    np.testing.assert_allclose(weighted.mu_, repeated.mu_, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    assert len(weighted.transduction_) == len(y)
    rows = np.repeat(np.arange(len(y)), given.astype(int))
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


@pytest.mark.parametrize("criterion", ["rkda", "uniform"])
def test_weights_are_repeated_samples_for_learn_kernel(wine, counts, criterion):
    X, y = wine
    grams = np.array([kernel(X) for kernel in KERNELS])
    rows = np.repeat(np.arange(len(y)), counts)
    options = {"criterion": criterion, "regularization": 0.01}
    weighted = learn_kernel(grams, y, sample_weight=counts, **options)
    repeated = learn_kernel(grams[:, rows][:, :, rows], y[rows], **options)
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-8)
    sizes = counts.sum() / np.count_nonzero(counts)  # the trace of repeated rows is larger
    np.testing.assert_allclose(weighted.coefficients, sizes * repeated.coefficients, rtol=1e-7)
    with pytest.raises(ValueError, match="one label per row"):
        learn_kernel(grams[:, :5, :5], y, sample_weight=counts)


# ---- weights are relative, whole numbers too ----------------------------------------------------


@pytest.mark.parametrize("factor", [1e-4, 3.0, 1e17, 1e200, 1e-300])
@pytest.mark.parametrize("kernels", [KERNELS, "auto"], ids=["given", "auto"])
def test_the_scale_of_weights_does_not_matter(wine, kernels, factor):
    """Every double from 1e17 on is a whole number; the squares of 1e200 and 1e-300 are none."""
    X, y = wine
    given = np.random.default_rng(2).integers(0, 9, len(y)) / 4.0
    one = MultipleKernelDiscriminant(kernels).fit(X, y, sample_weight=given)
    other = MultipleKernelDiscriminant(kernels).fit(X, y, sample_weight=factor * given)
    assert_same(one, other, X)
    for name in ("accuracy", "low", "high", "log_loss", "n_rows"):
        expected = getattr(one.expected_, name)
        assert getattr(other.expected_, name) == pytest.approx(expected, abs=1e-8)


@pytest.fixture(scope="module")
def rare():
    """Return rows of which one in fifteen is of the second class, and as many new ones."""
    rng = np.random.default_rng(0)
    y = (np.arange(600) % 15 == 0).astype(int)
    X = rng.standard_normal((600, 4)) + 1.2 * y[:, None]
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.mark.parametrize("kernels", [KERNELS, "auto"], ids=["given", "auto"])
def test_a_weight_of_20_is_one_of_20_and_a_billionth(rare, kernels):
    X, y, new, truth = rare
    found = [
        MultipleKernelDiscriminant(kernels).fit(X, y, np.where(y == 1, weight, 1.0))
        for weight in (20.0, 20.0 * (1.0 + 1e-9))
    ]
    probabilities = [clf.predict_proba(new) for clf in found]
    np.testing.assert_allclose(*probabilities, rtol=0, atol=1e-6)
    assert np.mean(found[0].predict(new)[truth == 1]) > 0.6  # recall
    assert found[0].expected_.low < found[0].score(new, truth, np.where(truth == 1, 20.0, 1.0))
    assert found[0].expected_.high < 0.99


def test_a_weight_of_20_is_hardly_another_than_one_of_20_and_a_half(rare):
    X, y, new, _ = rare
    found = [
        MultipleKernelDiscriminant(KERNELS, criterion="uniform", regularization=0.01)
        .fit(X, y, np.where(y == 1, weight, 1.0))
        .predict_proba(new)
        for weight in (20.0, 20.5)
    ]
    assert np.abs(found[0] - found[1]).max() < 0.015


def test_large_whole_weights_of_a_survey_promise_no_more_than_they_keep():
    rng = np.random.default_rng(0)
    y = np.arange(240) % 2
    X = rng.standard_normal((240, 5)) + 0.6 * y[:, None]
    weights = rng.integers(200, 3000, 240)
    clf = MultipleKernelDiscriminant().fit(X[:120], y[:120], sample_weight=weights[:120])
    found = clf.score(X[120:], y[120:], sample_weight=weights[120:])
    assert clf.expected_.low < found < clf.expected_.high
    assert clf.expected_.n_rows == 120


def test_the_interval_is_that_of_the_effective_number_of_rows(wine):
    X, y = wine
    X = X + 3.0 * np.random.default_rng(0).standard_normal(X.shape)
    weights = np.where(np.arange(len(y)) % 7 == 0, 40.0, 1.0)
    clf = MultipleKernelDiscriminant(KERNELS).fit(X, y, sample_weight=weights)
    n, p = weights.sum() ** 2 / (weights @ weights), clf.expected_.accuracy
    for bound in (clf.expected_.low, clf.expected_.high):
        assert abs(bound - p) == pytest.approx(1.1 * 1.96 * np.sqrt(bound * (1 - bound) / n))


def test_weights_that_no_double_compares_are_refused(wine):
    X, y = wine
    given = np.where(np.arange(len(y)) == 3, 1e-300, 1e200)
    with pytest.raises(ValueError, match=r"Got 1e\+200 and 1e-300"):
        MultipleKernelDiscriminant(KERNELS).fit(X, y, sample_weight=given)
    clf = MultipleKernelDiscriminant(KERNELS, class_weight={"red": 1e200, "rose": 1e-300})
    with pytest.raises(ValueError, match=r"Got 1e\+200 and 1e-300"):
        clf.fit(X, y)


@pytest.mark.parametrize("estimator", [MultipleKernelDiscriminant, KernelDiscriminant])
def test_equal_weights_are_none(wine, estimator):
    X, y = wine
    plain = estimator(regularization=0.01).fit(X, y).predict_proba(X)
    for given in (np.ones(len(y)), np.full(len(y), 0.3), 1.0, np.full(len(y), 7), 1e200):
        found = estimator(regularization=0.01).fit(X, y, sample_weight=given)
        np.testing.assert_array_equal(found.predict_proba(X), plain)


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
    with pytest.raises(ValueError, match="one class for each row"):
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
    with pytest.raises(ValueError, match="'Own' does not declare that it takes sample weights"):
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
