"""Classes of one row: they are fitted, and a row that is left out of one counts as wrong."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import scale

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
    assert np.isneginf(left_out_log_likelihood(discriminant)[rows, lone]).all()
    assert clf.expected_.accuracy <= 1.0 - discriminant.row_weights[rows].sum() / (
        discriminant.row_weights.sum()
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
