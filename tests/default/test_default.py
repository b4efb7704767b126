"""The default from end to end: ``kernels="auto"`` of every estimator that learns."""

import ast
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss

import discernel
from discernel import (
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
)
from discernel.default import logits
from discernel.default.menu import MENU
from discernel.kernels import RBF, Linear, as_kernels
from tests.default.tables import few_matter, three_classes

ATTRIBUTES = ("feature_importances_", "feature_importances_std_", "metric_")


@pytest.fixture(scope="module")
def few():
    return few_matter(1150, 20)


@pytest.fixture(scope="module")
def fitted(few):
    X, y = few
    return MultipleKernelDiscriminant().fit(X[:150], y[:150])


# ---- what it finds ---------------------------------------------------------------------------


def test_where_few_columns_matter_it_beats_plain_kernels(few, fitted):
    X, y = few
    plain = MultipleKernelDiscriminant(as_kernels("auto")).fit(X[:150], y[:150])
    assert fitted.score(X[150:], y[150:]) > plain.score(X[150:], y[150:]) + 0.05
    losses = [log_loss(y[150:], clf.predict_proba(X[150:])) for clf in (fitted, plain)]
    assert losses[0] < losses[1] - 0.1


def test_importances(fitted):
    assert fitted.feature_importances_.shape == (20,)
    assert fitted.feature_importances_.sum() == pytest.approx(1.0)
    assert fitted.feature_importances_[:3].sum() > 0.8
    assert fitted.feature_importances_[3:].max() < 0.05
    assert fitted.feature_importances_std_.shape == (20,)
    assert (fitted.feature_importances_std_ >= 0).all()
    assert fitted.metric_.scales.shape == (20,)


def test_what_was_considered(fitted):
    considered = fitted.learned_kernel_.considered
    names = [candidate.name for candidate in considered]
    assert sorted(names) == [*["average"] * 4, "likelihood", "weights"]
    assert [candidate.quantiles for candidate in considered] == [False] * 5 + [True]
    assert considered[0].strength > 0
    assert fitted.learned_kernel_.objective == considered[0].error
    np.testing.assert_allclose(fitted.kernel_weights_, considered[0].weights)
    assert len(fitted.kernels_) == MENU.n_kernels
    assert all(0.5 < candidate.accuracy <= 1.0 for candidate in considered)
    assert fitted.expected_.where == "held out, 5 folds"
    assert fitted.expected_.n_rows == 150


def test_categories_add_up_under_their_column():
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c", "d"], 200)
    table = pd.DataFrame(rng.standard_normal((200, 6)), columns=list("uvwxyz"))
    table.insert(2, "kind", kind)
    y = np.where(np.isin(kind, ["a", "c"]), table["u"] > 0, table["u"] <= 0).astype(int)
    clf = MultipleKernelDiscriminant().fit(table, y)
    importances = pd.Series(clf.feature_importances_, clf.feature_names_in_)
    assert importances.sum() == pytest.approx(1.0)
    assert set(importances.nlargest(2).index) == {"kind", "u"}
    assert importances[["kind", "u"]].sum() > 0.9
    parts = np.bincount(clf.encoder_.source, clf.metric_.importances)
    assert parts[2] > 0.3
    assert len(clf.encoder_.source) > 7


# ---- what changes nothing --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_exact", [True, False])
def test_the_order_of_rows_changes_nothing(seed, is_exact, monkeypatch):
    """Kernel logistic regressions of folds end early, which shows in weights of links: 1e-6."""
    if is_exact:
        monkeypatch.setattr(logits, "_FOLD_TOL", 1e-9)
        monkeypatch.setattr(logits, "_TOL", 1e-9)
    X, y = few_matter(130, 20, seed)
    rng = np.random.default_rng(seed)
    X = X * np.exp(rng.standard_normal(20)) + 10.0 * rng.standard_normal(20)
    order = rng.permutation(130)
    found, again = (
        MultipleKernelDiscriminant().fit(X[rows], y[rows]) for rows in (np.arange(130), order)
    )
    atol = 1e-8 if is_exact else 1e-5
    np.testing.assert_allclose(found.predict_proba(X), again.predict_proba(X), rtol=0, atol=atol)
    np.testing.assert_allclose(
        found.feature_importances_, again.feature_importances_, atol=0.1 * atol
    )
    np.testing.assert_array_equal(found.metric_.scales, again.metric_.scales)


def test_units_and_offsets_of_columns_change_nothing():
    X, y = few_matter(130, 8)
    moved = X * 10.0 ** np.arange(-4, 4) + 5.0
    found = MultipleKernelDiscriminant().fit(X, y).predict_proba(X)
    again = MultipleKernelDiscriminant().fit(moved, y).predict_proba(moved)
    np.testing.assert_allclose(found, again, atol=1e-3)


@pytest.mark.parametrize("random_state", [None, 0, 7])
def test_a_fit_is_what_it_was(random_state):
    X, y = few_matter(100, 6)
    clf = MultipleKernelDiscriminant(random_state=random_state)
    found, again = (clone(clf).fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(found, again)


def test_none_is_the_random_state_0_and_others_are_others():
    X, y = few_matter(100, 6)
    none, zero, seven = (
        MultipleKernelDiscriminant(random_state=state).fit(X, y).predict_proba(X)
        for state in (None, 0, 7)
    )
    np.testing.assert_array_equal(none, zero)
    assert np.abs(none - seven).max() > 1e-6


def test_rows_of_weight_0_are_absent():
    X, y = few_matter(120, 6)
    weights = np.ones(120)
    weights[100:] = 0.0
    X[100:] = 1e9
    found = MultipleKernelDiscriminant().fit(X, y, sample_weight=weights)
    expected = MultipleKernelDiscriminant().fit(X[:100], y[:100])
    np.testing.assert_array_equal(found.predict_proba(X[:100]), expected.predict_proba(X[:100]))


@pytest.mark.parametrize("largest", [1e5, 1e7, 1e12])
def test_one_row_may_have_almost_all_of_the_weight(largest):
    """Rounding errors of comparisons in single precision would then be in proportion to it."""
    X, y = load_wine(return_X_y=True)
    rows = np.random.RandomState(0).permutation(len(y))[:120]
    X, y, weights = X[rows], y[rows], np.ones(120)
    weights[5] = largest
    clf = MultipleKernelDiscriminant().fit(X, y, sample_weight=weights)
    assert np.isfinite(clf.predict_proba(X)).all()
    assert clf.predict(X[5:6]) == y[5]
    reg = MultipleKernelRidge().fit(X, y.astype(float), sample_weight=weights)
    assert reg.predict(X[5:6]) == pytest.approx(y[5], abs=1e-3)


# ---- refits and parameters -------------------------------------------------------------------


def test_a_refit_with_given_kernels_has_no_metric():
    X, y = few_matter(100, 6)
    clf = MultipleKernelDiscriminant().fit(X, y)
    assert all(hasattr(clf, name) for name in ATTRIBUTES)
    clf.set_params(kernels=[RBF(width=2.0), Linear()]).fit(X, y)
    assert not hasattr(clf, "metric_")
    assert clf.feature_importances_[:3].sum() > 0.8  # those of the fit before are gone
    assert clf.expected_.where == "held out, 5 folds"


def test_a_given_criterion_learns_on_the_kernels_of_the_metric(few, fitted):
    X, y = few
    clf = MultipleKernelDiscriminant(criterion="rkda", regularization=0.01).fit(X[:150], y[:150])
    assert clf.gap_ is not None
    assert clf.regularization_ == 0.01
    np.testing.assert_array_equal(clf.metric_.scales, fitted.metric_.scales)


@pytest.mark.parametrize("regularization", [0.3, 1e-4, 1e-9])
def test_a_given_lambda_is_kept(regularization):
    X, y = few_matter(100, 6)
    clf = MultipleKernelDiscriminant(regularization=regularization).fit(X, y)
    assert clf.regularization_ == regularization
    assert clf.score(X, y) > 0.7


def test_balanced_classes():
    X, y = few_matter(400, 10)
    keep = np.flatnonzero((y == 1) | (np.arange(400) % 6 == 0))
    X, y = X[keep], y[keep]
    fresh, truth = few_matter(600, 10, seed=1)
    plain = MultipleKernelDiscriminant().fit(X, y)
    balanced = MultipleKernelDiscriminant(class_weight="balanced").fit(X, y)
    recalls = [np.mean(clf.predict(fresh)[truth == 0] == 0) for clf in (plain, balanced)]
    assert recalls[1] > recalls[0] + 0.1
    assert balanced.feature_importances_[:3].sum() > 0.8


# ---- all sorts of rows -----------------------------------------------------------------------


def test_sparse_rows_have_no_metric():
    X, y = few_matter(100, 6)
    X[np.abs(X) < 0.5] = 0.0
    clf = MultipleKernelDiscriminant().fit(sparse.csr_matrix(X), y)
    assert not any(hasattr(clf, name) for name in ATTRIBUTES)
    assert clf.expected_.where == "held out, 5 folds"
    assert clf.predict(sparse.csr_matrix(X)).shape == (100,)


@pytest.mark.parametrize("n", [5, 8, 12])
def test_few_rows(n):
    rng = np.random.default_rng(n)
    y = np.arange(n) % 2
    X = rng.standard_normal((n, 3)) + 3.0 * y[:, None]
    clf = MultipleKernelDiscriminant().fit(X, y)
    assert clf.score(X, y) == 1.0
    assert clf.expected_.n_rows == n


def test_many_classes_of_few_rows():
    rng = np.random.default_rng(0)
    centers = 3.0 * rng.standard_normal((40, 4))
    y = np.repeat(np.arange(40), 4)

    def draw():
        rows = rng.standard_normal((160, 10))
        rows[:, :4] += centers[y]
        return rows

    clf = MultipleKernelDiscriminant().fit(draw(), y)
    fresh = draw()
    # With statistics of the same rows, 99 % and 0.01 were promised.
    accuracy = clf.score(fresh, y)
    assert accuracy > 0.5
    assert clf.expected_.accuracy < accuracy + 0.25
    loss = log_loss(y, clf.predict_proba(fresh))
    assert clf.expected_.log_loss > loss - 1.0
    assert loss < 0.5 * np.log(40)


def test_more_rows_than_the_sample():
    X, y = few_matter(1500, 6)
    clf = MultipleKernelDiscriminant().fit(X, y)
    fresh, truth = few_matter(1000, 6, seed=1)
    accuracy = clf.score(fresh, truth)
    assert accuracy > 0.85
    assert clf.expected_.low - 0.03 < accuracy < clf.expected_.high + 0.03


def test_more_rows_than_the_metric_is_of(monkeypatch):
    """Rows that had no part in the metric, left out, say what to expect."""
    for name, value in {"_FEW": 100, "_MOST": 100, "_MOST_FOR_METRIC": 150}.items():
        monkeypatch.setattr(f"discernel.default.propose.{name}", value)
    X, y = few_matter(1400, 12)
    clf = MultipleKernelDiscriminant().fit(X[:400], y[:400])
    assert clf.learned_kernel_.considered[0].strength > 0
    assert (
        clf.expected_.where
        == "held out, 20 folds, on rows that the column scales were not learned from"
    )
    assert clf.expected_.n_rows == 250
    accuracy = clf.score(X[400:], y[400:])
    assert clf.expected_.low - 0.03 < accuracy < clf.expected_.high + 0.03


def test_duplicated_rows():
    X, y = few_matter(60, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = MultipleKernelDiscriminant().fit(np.tile(X, (3, 1)), np.tile(y, 3))
    assert clf.score(X, y) > 0.9


def test_constant_and_far_columns():
    X, y = few_matter(150, 8)
    X[:, 5] = 3.0
    X[:, 6] += 1e9
    X[3, 7] = 1e12
    clf = MultipleKernelDiscriminant().fit(X, y)
    assert clf.feature_importances_[5] == 0.0
    assert clf.feature_importances_[:3].sum() > 0.8
    assert clf.expected_.accuracy > 0.75


def test_one_column():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 1))
    clf = MultipleKernelDiscriminant().fit(X, (np.abs(X[:, 0]) > 0.7).astype(int))
    np.testing.assert_array_equal(clf.feature_importances_, [1.0])
    assert clf.expected_.accuracy > 0.9


# ---- other estimators ------------------------------------------------------------------------


def test_regression():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 12))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(700)
    reg = MultipleKernelRidge().fit(X[:200], y[:200])
    plain = MultipleKernelRidge(as_kernels("auto")).fit(X[:200], y[:200])
    assert reg.score(X[200:], y[200:]) > plain.score(X[200:], y[200:]) + 0.1
    assert reg.feature_importances_[:3].sum() > 0.9
    assert reg.learned_kernel_.considered[0].accuracy is None
    # Units and offsets of y are those of its predictions.
    moved = MultipleKernelRidge().fit(X[:200], 100.0 * y[:200] + 7.0).predict(X[200:])
    np.testing.assert_allclose(moved, 100.0 * reg.predict(X[200:]) + 7.0, atol=0.5)


def test_regression_with_more_rows_than_the_sample(monkeypatch):
    """The mean and the deviation of a sample are not those of all rows: errors must not have them.

    Three far values are in all rows and perhaps not in the sample.
    """
    for name, value in {"_FEW": 60, "_MOST": 60, "_MOST_FOR_METRIC": 60}.items():
        monkeypatch.setattr(f"discernel.default.propose.{name}", value)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = X[:, 0] + 0.1 * rng.standard_normal(200)
    y[:2] += 50.0
    reg = MultipleKernelRidge().fit(X, y)
    proposal_error = reg.learned_kernel_.considered[0].error
    # In units of all rows, of mean square 1, rows without the far values are nearly constant.
    assert proposal_error < 0.2


def test_several_numbers():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 6))
    Y = np.column_stack([X[:, 0], X[:, 1] ** 2])
    reg = MultipleKernelRidge().fit(X, Y)
    assert reg.predict(X).shape == (150, 2)
    assert reg.feature_importances_[:2].sum() > 0.9


def test_several_labels():
    X, y = few_matter(500, 10)
    Y = np.column_stack([y, X[:, 3] > 0.5])
    clf = MultiLabelKernelDiscriminant().fit(X[:200], Y[:200])
    assert (clf.predict(X[200:]) == Y[200:]).mean(axis=0).min() > 0.75
    assert clf.feature_importances_[:4].sum() > 0.8


def test_a_label_that_the_sample_has_not(monkeypatch):
    for name, value in {"_FEW": 60, "_MOST": 60, "_MOST_FOR_METRIC": 60}.items():
        monkeypatch.setattr(f"discernel.default.propose.{name}", value)
    X, y = few_matter(300, 5)
    for rare in range(0, 300, 100):
        Y = np.column_stack([y, X[:, 3] > 0.5, np.arange(300) == rare]).astype(int)
        clf = MultiLabelKernelDiscriminant().fit(X, Y)
        assert clf.predict(X).shape == (300, 3)


def test_transformer():
    X, y = three_classes(120)
    transformer = LearnedKernelTransformer().fit(X, y)
    kernel = transformer.transform(X)
    assert kernel.shape == (120, 120)
    np.testing.assert_allclose(np.diagonal(kernel).mean(), 1.0)
    assert transformer.feature_importances_[:2].sum() > 0.6


def test_nothing_depends_on_asserts():
    """``python -O`` takes them out."""
    folder = Path(discernel.__file__).parent
    for path in [*folder.glob("discriminant/*.py"), *folder.glob("default/*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree)), path
