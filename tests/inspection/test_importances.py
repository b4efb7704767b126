"""Importances of sources: those of left-out rows, which noise does not earn."""

import numpy as np
import pandas as pd
import pytest

from discernel import AKFDClassifier, MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.bank import LowRank
from discernel.exceptions import InvalidInputError
from discernel.inspection import source_importances
from discernel.inspection.explained import Explained
from discernel.inspection.sources import _Sources, _targets
from discernel.kernels import RBF, Laplace, Linear, Polynomial
from discernel.targets import ClassTarget
from tests.inspection.brute import shapley
from tests.inspection.test_contributions import VIEWS, make_rows, make_table

GROUPS = {"first": [0, 1], "rest": [2, 3, 4]}


# ---- the closed form, against fits without each row ----------------------------------------------


def coef_without(gram, targets, ridge, i):
    """Return the coefficients of the fit to all rows but one, by a fit to them."""
    others = np.delete(np.arange(len(gram)), i)
    n = len(others)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = gram[np.ix_(others, others)] + np.diag(ridge[others])
    system[:n, n] = system[n, :n] = 1.0
    right = np.vstack([targets[others], np.zeros((1, targets.shape[1]))])
    return others, np.linalg.solve(system, right)[:n]


def brute_contributions(pieces, targets, ridge, n_groups):
    """Return what groups add to each row without it, by refitting.

    ``pieces`` are products: lists of (group, matrix).
    """
    n = len(targets)
    gram = sum(np.prod([matrix for _, matrix in piece], axis=0) for piece in pieces)
    out = np.zeros((n_groups, *targets.shape))
    for i in range(n):
        others, coef = coef_without(gram, targets, ridge, i)
        for piece in pieces:
            for place, j in enumerate(others):
                rest = np.setdiff1d(np.arange(n), [i, j])
                here = [matrix[i, j] for _, matrix in piece]
                mean = [matrix[rest, j].mean() for _, matrix in piece]

                def value(subset, here=here, mean=mean):
                    return np.prod(np.where(np.isin(np.arange(len(here)), subset), here, mean))

                found = shapley(value, len(piece))
                for (group, _), part in zip(piece, found, strict=True):
                    out[group, i] += part * coef[place]
    return out


def all_of(clf, X, y, groups):
    sources = _Sources.of(Explained.of(clf), X, groups)
    targets, ridge = _targets(Explained.of(clf), y, clf.regularization_)
    return sources.contributions(X, targets, ridge), targets, ridge


@pytest.mark.parametrize(("criterion", "n_classes"), [("rkda", 2), ("rkda", 3), ("fdr", 2)])
def test_sources_of_kernels_are_those_of_fits_without_each_row(criterion, n_classes):
    X, y = make_rows(30, n_classes=n_classes)
    clf = MultipleKernelDiscriminant(VIEWS, criterion=criterion, regularization=0.01).fit(X, y)
    found, targets, ridge = all_of(clf, X, y, None)
    pieces = [
        [(0 if "first" in kernel.name else 1, factor * kernel(X))]
        for kernel, factor in zip(clf.kernels_, clf.learned_kernel_.coefficients, strict=True)
    ]
    expected = brute_contributions(pieces, targets, ridge, 2)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_groups_of_columns_are_shapley_values_of_fits_without_each_row(monkeypatch):
    monkeypatch.setattr("discernel.inspection.sources._SPLIT_ENTRIES", 400)  # several blocks
    X, y = make_rows(24)
    kernels = [RBF(gamma=0.1), 2.0 * Laplace(gamma=0.2), Linear()]
    clf = MultipleKernelDiscriminant(kernels, criterion="uniform", regularization=0.02).fit(X, y)
    found, targets, ridge = all_of(clf, X, y, GROUPS)
    c = clf.learned_kernel_.coefficients
    a, b = X[:, :2], X[:, 2:]
    near = X - np.array(Linear().shifted(X).origin)
    left, right = near[:, :2], near[:, 2:]
    pieces = [
        [(0, c[0] * RBF(gamma=0.1)(a)), (1, RBF(gamma=0.1)(b))],
        [(0, 2 * c[1] * Laplace(gamma=0.2)(a)), (1, Laplace(gamma=0.2)(b))],
        [(0, c[2] * left @ left.T)],
        [(1, c[2] * right @ right.T)],
    ]
    expected = brute_contributions(pieces, targets, ridge, 2)
    np.testing.assert_allclose(found, expected, atol=1e-8)


# ---- what noise gets -----------------------------------------------------------------------------


def three_of_five(seed):
    """Two classes; a shift, a shift and a spread tell them apart, two sources are noise."""
    rng = np.random.default_rng(seed)
    y, X = rng.integers(0, 2, 300), rng.normal(size=(300, 20))
    X[:, [0, 2]] += 0.8 * y[:, None]
    X[:, 4] = 0.9 * (2 * y - 1) + rng.normal(size=300)
    X[:, 8:10] *= np.where(y == 1, 2.2, 1.0)[:, None]
    names = ["shift", "more shift", "spread", "noise", "more noise"]
    return X, y, {name: list(range(4 * i, 4 * i + 4)) for i, name in enumerate(names)}


def many_noise_columns(seed):
    """Three classes; five columns tell them apart, 55 are noise."""
    rng = np.random.default_rng(seed)
    y, X = rng.integers(0, 3, 300), rng.normal(size=(300, 60))
    X[:, :5] += 1.3 * rng.normal(size=(3, 5))[y]
    return X, y, {"signal": slice(0, 5), "noise": slice(5, 30), "more noise": slice(30, 60)}


def a_rare_class(seed):
    """One row in eight is of the second class."""
    rng = np.random.default_rng(seed)
    y, X = (rng.random(400) < 0.12).astype(int), rng.normal(size=(400, 15))
    X[:, 0:2] += 1.5 * y[:, None]
    X[:, 5] += 1.2 * y
    return X, y, {"shift": slice(0, 5), "more shift": slice(5, 10), "noise": slice(10, 15)}


WAYS = {
    "default": None,
    "auto": ("auto", ["0.5*median", "median", "2*median"]),
    "rkda": ("rkda", ["0.5*median", "median", "2*median"]),
    "narrow": ("rkda", ["0.3*median"]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [three_of_five, many_noise_columns, a_rare_class])
@pytest.mark.parametrize("seed", [0, 3])
def test_noise_gets_less_than_two_percent(make, way, seed):
    X, y, groups = make(seed)
    kernels, criterion = "auto", "auto"
    if way != "default":
        criterion, widths = WAYS[way]
        kernels = [
            RBF(width=w).on(columns, name) for name, columns in groups.items() for w in widths
        ]
    clf = MultipleKernelDiscriminant(kernels, criterion=criterion).fit(X, y)
    found = source_importances(clf, groups=groups if way == "default" else None)
    is_noise = np.array(["noise" in name for name in found.names])
    assert found.shares.sum() == pytest.approx(1.0)
    assert found.shares[is_noise].sum() < 0.02
    assert (found.shares[~is_noise] > 0.02).all()
    assert (found.spread > 0).any()
    assert found.n_rows == len(X)


def test_a_source_is_found_that_weights_and_gradients_may_miss():
    X, y, groups = three_of_five(0)
    clf = MultipleKernelDiscriminant().fit(X, y)
    found = source_importances(clf, groups=groups)
    assert clf.metric_.importances[groups["spread"]].sum() < 0.01
    assert found.shares[2] > 0.1
    assert clf.feature_importances_[groups["spread"]].sum() > 0.1


def test_noise_alone_is_worth_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
    clf = MultipleKernelDiscriminant(VIEWS, criterion="rkda", regularization=0.01).fit(X, y)
    assert source_importances(clf).shares.tolist() == [0.0, 0.0]


# ---- every kind of model -------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_rows_that_a_model_does_not_keep_are_given():
    X, y = make_rows(200)
    kept = MultipleKernelDiscriminant(VIEWS, criterion="rkda").fit(X, y)
    expected = source_importances(kept)
    again = source_importances(kept, X, y)
    np.testing.assert_allclose(again.shares, expected.shares)
    low = MultipleKernelDiscriminant(VIEWS, criterion="rkda", bank=LowRank(100)).fit(X, y)
    np.testing.assert_allclose(source_importances(low, X, y).shares, expected.shares, atol=0.05)
    stream = MultipleKernelDiscriminant(bank=LowRank(50)).partial_fit(X, y)
    assert source_importances(stream, X, y, groups=GROUPS).shares[0] > 0.9
    grams = np.stack([kernel(X) for kernel in kept.kernels_], axis=-1)
    matrices = MultipleKernelDiscriminant("precomputed", criterion="rkda").fit(grams, y)
    found = source_importances(matrices, grams, y)
    assert found.names == ["matrix 0", "matrix 1", "matrix 2"]
    np.testing.assert_allclose(found.shares[2], expected.shares[1], atol=1e-6)
    for model in (low, stream, matrices):
        with pytest.raises(InvalidInputError, match=r"source_importances\(clf, X, y\)"):
            source_importances(model)


def test_many_rows_are_drawn(monkeypatch):
    monkeypatch.setattr("discernel.inspection.sources._MOST_ROWS", 250)
    X, y = make_rows(400)
    clf = MultipleKernelDiscriminant(VIEWS, criterion="rkda").fit(X, y)
    assert source_importances(clf).n_rows == 250


def test_tables_and_regressions_have_importances():
    X, y = make_table(200)
    X["noise"] = np.random.default_rng(1).normal(size=200)
    groups = {"numbers": ["age", "dose", "size"], "colour": ["colour"], "noise": ["noise"]}
    found = source_importances(MultipleKernelDiscriminant().fit(X, y), groups=groups)
    assert found.shares[1] > 0.2
    assert found.shares[2] < 0.02
    X, _ = make_rows(150)
    reg = MultipleKernelRidge(VIEWS).fit(X, X[:, 0] + 0.1 * X[:, 1] ** 2)
    assert source_importances(reg).shares[0] > 0.95
    frame = pd.DataFrame(X, columns=list("abcde"))
    reg = MultipleKernelRidge(VIEWS).fit(frame, X[:, 0])
    assert (
        source_importances(reg, groups={"a": ["a"], "cd": ["c", "d"]}).names[2] == "other columns"
    )


@pytest.mark.filterwarnings("ignore")
def test_what_has_no_importances_says_so():
    X, y = make_rows()
    clf = MultipleKernelDiscriminant([Polynomial(), RBF()], criterion="uniform").fit(X, y)
    with pytest.raises(InvalidInputError, match="neither a product nor a sum"):
        source_importances(clf, groups=GROUPS)
    with pytest.raises(InvalidInputError, match="Got AKFDClassifier"):
        source_importances(AKFDClassifier([RBF()], nu=1.0).fit(X, y))
    gram = RBF(gamma=0.1)(X)
    clf = MultipleKernelDiscriminant("precomputed", criterion="uniform").fit(gram, y)
    with pytest.raises(InvalidInputError, match="Omit groups"):
        source_importances(clf, gram, y, groups=GROUPS)


def test_classes_are_scored_as_in_the_fit():
    _, y = make_rows(60, n_classes=3)
    clf = MultipleKernelDiscriminant(VIEWS, criterion="rkda", regularization=0.1).fit(
        *make_rows(60)
    )
    targets, ridge = _targets(Explained.of(clf), y, clf.regularization_)
    np.testing.assert_array_equal(targets, ClassTarget.from_labels(y).scores)
    np.testing.assert_allclose(ridge, 0.1)
