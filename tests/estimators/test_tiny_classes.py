"""Classes of one row, and classes of which all rows have the weight 0."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from discernel import (
    AKFDClassifier,
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    SeparabilityClassifier,
    learn_kernel,
    open_rows,
    regularization_path,
)
from discernel.discriminant import left_out_log_likelihood
from discernel.export import numpy_scorer, to_onnx
from discernel.inspection import contributions, source_importances
from discernel.kernels import RBF, Linear

KERNELS = [RBF(width=2.0), RBF(width=6.0), Linear()]
LONE = 11


@pytest.fixture(scope="module")
def wine():
    """Rows of three classes, and one far row that is a class of its own."""
    X, y = load_wine(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:60]
    X, y = scale(X)[rows], np.array(["red", "rose", "white"])[y[rows]].astype(object)
    y[LONE], X[LONE] = "blue", X[LONE] + 6.0
    return X, y.astype(str)


@pytest.fixture(scope="module")
def two(wine):
    X, y = wine
    kept = np.isin(y, ["blue", "red"])
    return X[kept], y[kept]


CRITERIA = ["auto", "rkda", "loo", "uniform", "alignment", "separability", "akfd"]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("regularization", ["auto", 0.01])
def test_a_class_of_one_row_is_fitted(wine, criterion, regularization):
    X, y = wine
    clf = MultipleKernelDiscriminant(
        KERNELS, criterion=criterion, regularization=regularization
    ).fit(X, y)
    check(clf, X, y)


@pytest.mark.parametrize("criterion", [*CRITERIA, "fdr", "margin"])
def test_a_class_of_one_row_against_one_other_is_fitted(two, criterion):
    X, y = two
    check(MultipleKernelDiscriminant(KERNELS, criterion=criterion).fit(X, y), X, y)


@pytest.mark.parametrize(
    "clf",
    [
        KernelDiscriminant(),
        MultipleKernelDiscriminant(),
        MultipleKernelDiscriminant(class_weight="balanced"),
        MultipleKernelDiscriminant(KERNELS, bank="factored"),
        MultipleKernelDiscriminant(KERNELS, regularization="joint"),
    ],
    ids=str,
)
def test_every_way_of_fitting_takes_a_class_of_one_row(wine, clf):
    X, y = wine
    check(clf.fit(X, y), X, y)


def check(clf, X, y):
    found = clf.predict_proba(X)
    assert list(clf.classes_) == sorted(set(y))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    lone = list(clf.classes_).index("blue")
    discriminant = clf.discriminant_
    rows = discriminant.training_codes == lone
    assert np.isneginf(
        left_out_log_likelihood(discriminant, discriminant.training)[rows, lone]
    ).all()
    assert clf.expected_.accuracy <= 1.0 - discriminant.training.row_weights.values[rows].sum() / (
        discriminant.training.row_weights.total
    )
    assert np.isfinite(clf.expected_.log_loss)
    assert np.isfinite([clf.expected_.low, clf.expected_.high]).all()


def test_a_far_row_is_found_again_though_it_is_the_only_one_of_its_class(wine):
    X, y = wine
    clf = MultipleKernelDiscriminant(KERNELS).fit(X, y)
    assert clf.predict(X[LONE : LONE + 1] + 0.1).item() == "blue"
    assert np.mean(clf.predict(X) == y) > 0.95


@pytest.mark.parametrize(
    "clf", [MultipleKernelDiscriminant(), AKFDClassifier(), KernelDiscriminant()], ids=str
)
@pytest.mark.filterwarnings("ignore:The least populated class")
def test_cross_validation_with_a_class_of_two_rows_scores(wine, clf):
    X, y = wine
    y = np.where(np.arange(len(y)) == LONE + 1, "blue", y)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    found = cross_val_score(clf, X, y, cv=folds)
    assert found.mean() > 0.8  # and not NaN


def test_paths_and_learned_kernels_take_a_class_of_one_row(wine):
    X, y = wine
    grams = np.array([kernel(X) for kernel in KERNELS])
    for criterion in ("auto", "rkda"):
        assert learn_kernel(grams, y, criterion=criterion).weights.sum() == pytest.approx(1.0)
    assert len(regularization_path(grams, y, regularizations=[0.1, 0.01]).regularizations) == 2
    assert LearnedKernelTransformer(KERNELS).fit(X, y).transform(X).shape == (60, 60)


def test_akfd_chooses_nu_with_a_class_of_one_row(wine, two):
    for X, y in (wine, two):
        clf = AKFDClassifier(KERNELS, random_state=0).fit(X, y)
        assert "blue" in clf.classes_
        assert max(clf.nu_accuracies_.values()) <= 1.0 - 1.0 / len(y)  # that row is wrong
        assert clf.score(X, y) > 0.9


def test_separability_takes_a_class_of_one_row(wine):
    X, y = wine
    given = np.where((np.arange(len(y)) % 3 == 0) | (y == "blue"), y, None)
    assert "blue" in SeparabilityClassifier(RBF(width=6.0)).fit(X, given).classes_


@pytest.mark.parametrize("kernels", [KERNELS, "auto"], ids=["given", "auto"])
def test_a_label_of_one_row_is_fitted(wine, kernels):
    X, y = wine
    Y = np.column_stack([y == "blue", y == "red", y != "rose"]).astype(int)
    clf = MultiLabelKernelDiscriminant(kernels).fit(X, Y)
    found = clf.predict_proba(X)
    assert found.shape == Y.shape
    assert np.isfinite(found).all()
    assert np.mean(clf.predict(X) == Y) > 0.9


def test_rows_in_chunks_may_have_a_class_of_one_row(wine):
    X, y = wine
    clf = MultipleKernelDiscriminant(KERNELS).fit(open_rows(X, y, chunk_rows=20))
    check(clf, X, y)


# ---- classes without weight --------------------------------------------------------------------


@pytest.fixture(scope="module")
def absent(wine):
    """Rows, labels and weights: no row of "rose" has weight."""
    X, y = wine
    y = np.where(y == "blue", "white", y)
    weights = np.where(y == "rose", 0.0, np.random.default_rng(0).uniform(0.5, 2.0, len(y)))
    return X, y, weights


CLASSES = ["red", "rose", "white"]


@pytest.mark.parametrize(
    "clf",
    [
        MultipleKernelDiscriminant(),
        MultipleKernelDiscriminant(KERNELS, priors=[0.5, 0.2, 0.3]),
        MultipleKernelDiscriminant(KERNELS, priors="uniform", class_costs="balanced"),
        MultipleKernelDiscriminant(KERNELS, statistics="training", n_components=2),
        MultipleKernelDiscriminant(KERNELS, class_weight={"rose": 3.0, "red": 2.0}),
        KernelDiscriminant(class_weight="balanced"),
        MultiLabelKernelDiscriminant(KERNELS, class_weight="balanced"),
        SeparabilityClassifier(RBF(width=6.0), require_unlabelled=False),
        SeparabilityClassifier(
            RBF(width=6.0),
            require_unlabelled=False,
            estimator=SVC(kernel="precomputed", probability=True),
        ),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The `probability` parameter")
def test_a_class_without_weight_has_probability_0(absent, clf):
    X, y, weights = absent
    clf.fit(X, y, sample_weight=weights)
    assert list(clf.classes_) == CLASSES
    found = clf.predict_proba(X)
    assert found.shape == (len(y), 3)
    np.testing.assert_array_equal(found[:, 1], 0.0)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert set(clf.predict(X)) == {"red", "white"}
    assert np.mean(clf.predict(X)[y != "rose"] == y[y != "rose"]) > 0.9


@pytest.mark.parametrize("kernels", [KERNELS, "auto"], ids=["given", "auto"])
def test_a_class_without_weight_changes_nothing_else(absent, kernels):
    X, y, weights = absent
    kept = y != "rose"
    clf = MultipleKernelDiscriminant(kernels).fit(X, y, sample_weight=weights)
    plain = MultipleKernelDiscriminant(kernels).fit(X[kept], y[kept], weights[kept])
    np.testing.assert_array_equal(clf.predict_proba(X)[:, [0, 2]], plain.predict_proba(X))
    np.testing.assert_array_equal(clf.priors_[[0, 2]], plain.priors_)
    assert clf.priors_[1] == 0
    assert np.isneginf(clf.decision_function(X)[:, 1]).all()
    assert clf.expected_ == plain.expected_
    np.testing.assert_array_equal(clf.transform(X), plain.transform(X))


def test_rows_in_chunks_may_have_a_class_without_weight(absent):
    X, y, weights = absent
    order = np.argsort(y == "rose", kind="stable")[::-1]  # a chunk of rows without weight first
    X, y, weights = X[order], y[order], weights[order]
    n_rose = np.count_nonzero(y == "rose")
    options = {"criterion": "uniform", "regularization": 1e-3}
    clf = MultipleKernelDiscriminant(KERNELS, **options)
    clf.fit(open_rows(X, y, weights=weights, chunk_rows=n_rose))
    memory = MultipleKernelDiscriminant(KERNELS, **options).fit(X, y, sample_weight=weights)
    assert list(clf.classes_) == CLASSES
    np.testing.assert_allclose(clf.predict_proba(X), memory.predict_proba(X), atol=1e-5)


def test_akfd_never_predicts_a_class_without_weight(absent):
    X, y, weights = absent
    clf = AKFDClassifier(KERNELS, nu=1.0).fit(X, y, sample_weight=weights)
    plain = AKFDClassifier(KERNELS, nu=1.0).fit(
        X[y != "rose"], y[y != "rose"], weights[y != "rose"]
    )
    assert list(clf.classes_) == CLASSES
    np.testing.assert_array_equal(clf.decision_function(X)[:, 2], plain.decision_function(X))
    assert np.isneginf(clf.decision_function(X)[:, 1]).all()
    np.testing.assert_array_equal(clf.predict(X), plain.predict(X))


def test_kernels_are_learned_without_the_class_that_has_no_weight(absent):
    X, y, weights = absent
    grams, kept = np.array([kernel(X) for kernel in KERNELS]), np.flatnonzero(y != "rose")
    found = learn_kernel(grams, y, criterion="rkda", sample_weight=weights)
    some = learn_kernel(
        grams[:, kept][:, :, kept], y[kept], criterion="rkda", sample_weight=weights[kept]
    )
    np.testing.assert_array_equal(found.weights, some.weights)
    transformer = LearnedKernelTransformer(KERNELS, regularization=0.1)
    assert transformer.fit(X, y, sample_weight=weights).transform(X).shape == (60, 60)


def test_bagging_with_a_rare_class_fits(absent):
    X, y, _ = absent
    y = np.where(np.arange(len(y)) < 2, "zinfandel", y)  # some bags have none of the two
    clf = MultipleKernelDiscriminant(KERNELS, criterion="uniform", regularization=0.1)
    bags = BaggingClassifier(clf, 8, random_state=0).fit(X, y)
    without = [0.0 in bag.priors_ for bag in bags.estimators_]
    assert any(without)
    assert not all(without)
    assert bags.score(X, y) > 0.9


@pytest.mark.parametrize(
    "clf",
    [
        KernelDiscriminant(),
        MultipleKernelDiscriminant(),
        MultipleKernelDiscriminant(KERNELS, statistics="training"),
        MultipleKernelDiscriminant(KERNELS, criterion="fdr", regularization=0.1),
        MultipleKernelDiscriminant(KERNELS, threshold="roc"),
    ],
    ids=str,
)
def test_one_class_with_weight_is_predicted_for_all_rows(two, clf):
    X, y = two
    clf.fit(X, y, sample_weight=(y == "red").astype(float))
    assert list(clf.classes_) == ["blue", "red"]
    np.testing.assert_array_equal(clf.predict_proba(X), [[0.0, 1.0]] * len(y))
    assert set(clf.predict(X)) == {"red"}
    assert clf.transform(X).shape == (len(y), 0)
    if clf.expected_ is not None:
        assert clf.expected_.accuracy == 1.0
        assert clf.expected_.low < 0.9


def test_bagging_with_two_classes_one_of_them_rare_fits(wine):
    X, y = wine
    y = np.where(np.arange(len(y)) < 2, "rare", "usual")
    clf = MultipleKernelDiscriminant(KERNELS)
    bags = BaggingClassifier(clf, 8, random_state=0).fit(X, y)
    assert any((bag.priors_ == 0.0).any() for bag in bags.estimators_)
    np.testing.assert_allclose(bags.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "clf", [AKFDClassifier(KERNELS), MultiLabelKernelDiscriminant(KERNELS)], ids=str
)
def test_one_class_with_weight_is_not_enough_elsewhere(wine, clf):
    X, y = wine
    with pytest.raises(ValueError, match=r"at least two classes.*\['red'\].*sample_weight be 0"):
        clf.fit(X, y, sample_weight=(y == "red").astype(float))


def test_a_model_with_a_class_without_weight_is_exported(absent):
    X, y, weights = absent
    clf = MultipleKernelDiscriminant(KERNELS).fit(X, y, sample_weight=weights)
    scorer = numpy_scorer(clf)
    np.testing.assert_allclose(scorer.predict_proba(X), clf.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(scorer.predict(X), clf.predict(X))
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    session = runtime.InferenceSession(to_onnx(clf).SerializeToString())
    _, found = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(found, clf.predict_proba(X), atol=1e-9)


def test_classes_without_weight_are_not_explained(absent):
    X, y, weights = absent
    clf = MultipleKernelDiscriminant(KERNELS).fit(X, y, sample_weight=weights)
    assert source_importances(clf).n_rows == np.count_nonzero(weights)
    akfd = AKFDClassifier(KERNELS, nu=1.0).fit(X, y, sample_weight=weights)
    for model in (clf, akfd):
        explained, scores = contributions(model, X[:3]), model.decision_function(X[:3])
        assert list(explained.classes) == ["red", "white"]
        total = explained.baseline + explained.columns.sum(axis=-1)
        expected = scores[:, 2] - scores[:, 0] if model is clf else scores[:, 2]
        np.testing.assert_allclose(total[:, 0], expected, atol=1e-9)
