"""Importances of columns: what left-out rows lose when a column is that of another row."""

import gc
import pickle
import weakref

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.inspection import permutation_importance

import discernel
from discernel import (
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
)
from discernel.bank import LowRank
from discernel.exceptions import NumericalError
from discernel.inspection.facts import model_facts
from discernel.kernels import RBF, Function, Laplace, Linear, Polynomial
from discernel.model import importances
from discernel.model.importances import _even_blocks, _score_changes, importances_of, worth
from tests.inspection.test_contributions import VIEWS, make_rows, make_table
from tests.inspection.test_importances import many_noise_columns, three_of_five


@pytest.fixture
def left_out(monkeypatch):
    """Collect what importances are made of, in the fits of a test."""
    calls = []
    found = importances.column_importances

    def collect(*given):
        calls.append(given)
        return found(*given)

    monkeypatch.setattr("discernel.model.importances.column_importances", collect)
    monkeypatch.setattr("discernel.learn.chunks.column_importances", collect)
    return calls


# ---- the closed form, against fits without each row ----------------------------------------------

KERNELS = {
    "products": [RBF(gamma=0.1), RBF(gamma=0.4), 2.0 * Laplace(gamma=0.2)],
    "both in one": [RBF(gamma=0.1) * Laplace(gamma=0.3), RBF(gamma=0.2).on([0, 3])],
    "sums": [Linear(), RBF(gamma=0.1).on([1, 2])],
    "neither": [Polynomial(degree=2), Linear().on([0, 1])],
}


def refit_scores(clf, fit, X, i, row):
    """Return the scores of a row by a fit to all others than i, with the same kernel and λ."""
    combined, n = clf.combined_kernel_, len(X)
    pairs = list(zip(combined.coefficients, combined.kernels, strict=True))
    gram, new = (sum(c * kernel(rows, X) for c, kernel in pairs) for rows in (X, row[None]))
    others = np.delete(np.arange(n), i)
    system = np.zeros((n, n))
    system[:-1, :-1] = gram[np.ix_(others, others)] + np.diag(fit.ridge[others])
    system[:-1, -1] = system[-1, :-1] = 1.0
    right = np.vstack([fit.truth[others], np.zeros((1, fit.truth.shape[1]))])
    solved = np.linalg.solve(system, right)
    return new[0, others] @ solved[:-1] + solved[-1]


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("refitted", [False, True])
def test_changed_scores_are_those_of_refits(kernels, weighted, refitted, left_out, monkeypatch):
    monkeypatch.setattr("discernel.model.importances._BLOCK_ENTRIES", 200)  # several blocks
    monkeypatch.setattr("discernel.model.importances._MOST_REFITTED", 1000 * refitted)
    fits = []

    def collect(*given):
        fits.append(given[5])
        return importances_of(*given)

    monkeypatch.setattr("discernel.learn.rows.importances_of", collect)
    X, y = make_rows(30, n_classes=3)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 30) if weighted else None
    clf = MultipleKernelDiscriminant(KERNELS[kernels], criterion="uniform", regularization=0.02)
    clf.fit(X, y, sample_weight=weights)
    assert not left_out
    assert clf.feature_importances_.shape == (5,)
    [(combined, reader, _, rows, coef, left, _)], [fit] = left_out, fits
    changes = _score_changes(combined, coef, left, rows, reader.given_columns, 5, 2)
    order = np.random.default_rng(0).permutation(30)
    for turn in range(2):
        partner = np.empty(30, dtype=int)
        partner[order] = np.roll(order, turn + 1)
        for place in (0, 7, 20):
            i = left.rows[place]
            expected = refit_scores(clf, fit, X, i, X[i])
            np.testing.assert_allclose(left.scores[place], expected, atol=1e-8)
            for column in range(X.shape[1]):
                swapped = X[i].copy()
                swapped[column] = rows[partner[place], column]
                moved = refit_scores(clf, fit, X, i, swapped)
                found = changes[column, turn, place]
                np.testing.assert_allclose(found, moved - expected, atol=1e-8)


def test_importances_are_computed_once_and_kept(left_out):
    X, y = make_rows(60)
    clf = MultipleKernelDiscriminant(VIEWS, criterion="uniform").fit(X, y)
    copied = pickle.loads(pickle.dumps(clf))
    found = clf.feature_importances_
    assert clf.feature_importances_ is found
    assert clf.feature_importances_std_.shape == found.shape
    assert len(left_out) == 1
    np.testing.assert_array_equal(copied.feature_importances_, found)
    assert not hasattr(clone(clf), "feature_importances_")


@pytest.mark.parametrize("most_refitted", [0, 60])
def test_left_out_rows_are_not_kept_once_importances_are_known(most_refitted, monkeypatch):
    monkeypatch.setattr(importances, "_MOST_REFITTED", most_refitted)
    X, y = make_rows(60)
    clf = MultipleKernelDiscriminant(VIEWS, criterion="uniform").fit(X, y)
    rows = weakref.ref(clf.model_.facts.importances._known.args[3])
    assert clf.feature_importances_.sum() == pytest.approx(1.0)
    gc.collect()
    assert rows() is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kernels", [VIEWS, [Linear(), RBF(gamma=0.1)], [Linear()]])
def test_all_ranks_give_the_importances_of_an_exact_fit(kernels):
    X, y = make_rows(120)
    exact = MultipleKernelDiscriminant(kernels, criterion="uniform", regularization=0.02)
    expected = exact.fit(X, y).feature_importances_
    for rank, close in ((120, 1e-5), (30, 0.03)):  # of few, a linear kernel has exact features
        low = clone(exact).set_params(bank=LowRank(rank * len(kernels))).fit(X, y)
        np.testing.assert_allclose(low.feature_importances_, expected, atol=close)
    for bank in ("tiled", "factored"):
        other = clone(exact).set_params(bank=bank).fit(X, y)
        np.testing.assert_allclose(other.feature_importances_, expected, atol=1e-6)


def test_rows_in_chunks_are_left_out_as_rows_in_memory(left_out):
    X, y = make_rows(90, n_classes=3)
    clf = MultipleKernelDiscriminant([RBF(gamma=0.2)], criterion="uniform", regularization=0.02)
    memory = clone(clf).fit(X, y)
    order = np.argsort(-memory.feature_importances_)
    stream = clone(clf).set_params(bank=LowRank(90)).partial_fit(X, y)
    assert stream.feature_importances_.shape == (X.shape[1],)
    here, there = (call[5] for call in left_out)
    np.testing.assert_allclose(
        np.sort(here.scores, axis=0), np.sort(there.scores, axis=0), atol=1e-6
    )
    assert np.argmax(stream.feature_importances_) == order[0]
    assert stream.feature_importances_.sum() == pytest.approx(1.0)


# ---- what the numbers are ------------------------------------------------------------------------


@pytest.mark.parametrize("kernels", ["auto", [RBF(), Laplace(gamma=0.05)]])
def test_importances_are_those_that_new_rows_have(kernels):
    X, y, _ = three_of_five(0)
    clf = MultipleKernelDiscriminant(kernels).fit(X, y)
    parts = [three_of_five(seed)[:2] for seed in (1, 2, 3)]
    new, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
    found = permutation_importance(
        clf, new, labels, scoring="neg_log_loss", n_repeats=5, random_state=0
    )
    matters = [0, 2, 4, 8, 9]
    assert spearmanr(clf.feature_importances_, found.importances_mean).statistic > 0.6
    assert set(np.argsort(-clf.feature_importances_)[:5]) == set(matters)
    shares = np.maximum(found.importances_mean, 0.0) / np.maximum(found.importances_mean, 0).sum()
    np.testing.assert_allclose(clf.feature_importances_[matters], shares[matters], atol=0.12)


@pytest.mark.parametrize("kernels", ["auto", "views"])
def test_noise_gets_less_than_five_percent(kernels):
    X, y, groups = many_noise_columns(0)
    if kernels == "views":
        kernels = [RBF(width="median").on(columns, name) for name, columns in groups.items()]
    clf = MultipleKernelDiscriminant(kernels).fit(X, y)
    assert clf.feature_importances_.shape == (60,)
    assert (clf.feature_importances_ >= 0).all()
    assert clf.feature_importances_.sum() == pytest.approx(1.0)
    assert clf.feature_importances_[5:].sum() < 0.05
    assert clf.feature_importances_std_.shape == (60,)


def test_noise_alone_has_shares_of_what_moves_predictions():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
    clf = MultipleKernelDiscriminant([RBF(width=3.0)], criterion="uniform", regularization=0.01)
    clf.fit(X, y)
    assert clf.feature_importances_.sum() == pytest.approx(1.0)
    assert clf.feature_importances_.min() > 0.1  # no column stands out


def test_columns_that_no_prediction_depends_on_have_none():
    X, y = make_rows(60)
    clf = MultipleKernelDiscriminant([RBF(gamma=0.2).on([0, 1])]).fit(X, y)
    np.testing.assert_array_equal(clf.feature_importances_[2:], 0.0)
    assert clf.feature_importances_[:2].sum() == pytest.approx(1.0)
    X[:, 0] = np.arange(60) % 2  # the classes are alike there: no prediction differs
    clf = MultipleKernelDiscriminant([RBF(gamma=0.2).on([0])], regularization=0.1)
    clf.fit(X, np.arange(60) // 2 % 2)
    np.testing.assert_allclose(clf.feature_importances_[1:], 0.0)


def test_what_is_worth_few_standard_errors_is_shrunk():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(5, 400))
    noise = (noise - noise.mean(axis=1, keepdims=True)) / noise.std(axis=1, keepdims=True)
    z = np.array([-3.0, 0.0, 1.0, 3.0, 12.0])
    values, errors, is_clear = worth(noise + (z / 20.0)[:, None], np.ones(400))
    np.testing.assert_allclose(errors, 1 / 20.0)
    trust = np.array([0.0, 0.0, 1 / 82, 0.5, 256 / 257])
    np.testing.assert_allclose(values, np.maximum(z, 0.0) / 20.0 * trust, atol=1e-15)
    assert is_clear
    assert not worth(noise + 2.2 / 20.0, np.ones(400))[2]  # the largest of five: 2.33
    assert worth(noise[:1] + 2.2 / 20.0, np.ones(400))[2]
    _, errors, _ = worth(np.repeat(noise, 2, axis=1) + 0.1, np.tile([1.0, 0.0], 400))
    np.testing.assert_allclose(errors, 1 / 20.0)


def test_a_gain_without_spread_counts_whole():
    values, _, _ = worth(np.array([[0.5, 0.5], [0.0, 0.0]]), np.ones(2))
    assert values.tolist() == [0.5, 0.0]


# ---- every kind of model -------------------------------------------------------------------------


def test_columns_of_a_table_count_as_they_were_given():
    X, y = make_table(200)
    X["age"] = X["age"].mask(np.arange(200) % 9 == 0)
    X["noise"] = np.random.default_rng(1).normal(size=200)
    clf = MultipleKernelDiscriminant().fit(X, y)
    shares = pd.Series(clf.feature_importances_, X.columns)
    assert len(shares) == clf.n_features_in_ == X.shape[1]
    assert shares.sum() == pytest.approx(1.0)
    assert shares["colour"] > 0.2
    assert shares["noise"] < 0.02
    again = MultipleKernelDiscriminant().fit(X, y)
    np.testing.assert_array_equal(again.feature_importances_, clf.feature_importances_)


def test_other_estimators_have_importances_of_their_loss():
    X, _ = make_rows(150)
    reg = MultipleKernelRidge(VIEWS).fit(X, X[:, 0] + 0.5 * X[:, 2])
    assert set(np.argsort(-reg.feature_importances_)[:2]) == {0, 2}
    assert reg.feature_importances_[[0, 2]].sum() > 0.95
    two = MultipleKernelRidge(VIEWS).fit(X, np.column_stack([X[:, 0], 1e6 * X[:, 2]]))
    np.testing.assert_allclose(two.feature_importances_[[0, 2]], 0.5, atol=0.2)
    labels = np.column_stack([X[:, 0] > 0, X[:, 2] > 0.3]).astype(int)
    many = MultiLabelKernelDiscriminant(VIEWS).fit(X, labels)
    assert set(np.argsort(-many.feature_importances_)[:2]) == {0, 2}
    for other in (KernelDiscriminant(), LearnedKernelTransformer(VIEWS)):
        assert np.argmax(other.fit(X, X[:, 0] > 0).feature_importances_) == 0
    absent = LearnedKernelTransformer(VIEWS).fit(X, X[:, 0] > 0, sample_weight=np.arange(150) > 9)
    assert np.argmax(absent.feature_importances_) == 0


def test_rows_without_columns_have_none():
    X, y = make_rows(60)
    sparse = MultipleKernelDiscriminant([RBF()]).fit(scipy.sparse.csr_matrix(X), y)
    given = MultipleKernelDiscriminant("precomputed").fit(RBF(gamma=0.1)(X), y)
    texts = MultipleKernelDiscriminant([_same_letters]).fit([str(row) for row in y], y)
    for clf in (sparse, given, texts):
        assert not hasattr(clf, "feature_importances_")
    clf = MultipleKernelDiscriminant([RBF()]).fit(X, y)
    assert hasattr(clf, "feature_importances_")
    assert not hasattr(clf.fit(scipy.sparse.csr_matrix(X), y), "feature_importances_")


def _same_letters(first, second):
    return np.array([[float(a == b) + 0.1 for b in second] for a in first])


class _Tenfold:
    """A head whose losses are in another unit."""

    def __init__(self, head):
        self._head = head

    def row_losses(self, labels):
        loss = self._head.row_losses(labels)
        return lambda scores: 10.0 * loss(scores)


def test_shares_and_their_errors_do_not_depend_on_the_unit_of_the_loss():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = (X[:, 0] + 0.5 * rng.standard_normal(80) > 0).astype(int)
    clf = MultipleKernelDiscriminant([RBF()], criterion="uniform").fit(X, y)
    later = clf.model_.facts.importances._known
    kernel, reader, head, *known = later.args
    shares, errors = later.func(kernel, reader, _Tenfold(head), *known)
    np.testing.assert_allclose(shares, clf.feature_importances_, rtol=1e-9)
    np.testing.assert_allclose(errors, clf.feature_importances_std_, rtol=1e-9)
    assert (clf.feature_importances_std_ > 0).all()


@pytest.mark.parametrize("n_threads", [1, 3, 16])
@pytest.mark.parametrize(("n", "width"), [(1, 10), (240, 10_000), (500, 50), (7, 10**7)])
def test_blocks_of_rows_are_even_and_hold_every_row_once(n, width, n_threads):
    blocks = _even_blocks(n, width, n_threads)
    assert np.concatenate([np.arange(n)[block] for block in blocks]).tolist() == list(range(n))
    sizes = [len(range(*block.indices(n))) for block in blocks]
    assert len(set(sizes[:-1])) <= 1
    assert max(sizes) <= max(1, 4 * 2**17 // width)
    if n >= 10 * n_threads:
        assert -(-len(blocks) // n_threads) == -(-n // (n_threads * max(sizes)))


# ---- importances that cannot be computed -------------------------------------------------------


class Once:
    """A kernel function that fails after the fit."""

    fails = False

    def __call__(self, A, B):
        if self.fails:
            raise KeyError("no such row")
        return A @ B.T


def without_importances(kind):
    """Return a fitted model whose importances cannot be computed, and its rows."""
    X, y = make_classification(60, 3, n_informative=2, n_redundant=0, random_state=0)
    X = np.repeat(X[:20], 3, axis=0)
    if kind == "tiny ridge":  # conjugate gradients solve what has no Cholesky factor
        kernels = {"a": RBF().on([0]), "b": RBF().on([1, 2])}  # sources have importances, too
        clf = MultipleKernelDiscriminant(
            kernels, criterion="uniform", regularization=1e-20, bank="iterative"
        )
        return clf.fit(X, np.repeat(y[:20], 3)), X
    function = Once()
    clf = KernelDiscriminant(Function(function)).fit(X, np.repeat(y[:20], 3))
    function.fails = True
    return clf, X


@pytest.mark.parametrize("kind", ["tiny ridge", "function"])
def test_a_model_whose_importances_cannot_be_computed_is_pickled(kind):
    clf, X = without_importances(kind)
    said = "importances of the columns cannot be computed; predictions do not need them"
    copied = pickle.loads(pickle.dumps(clf))
    for model in (clf, copied):
        with pytest.raises(NumericalError, match=said):
            _ = model.feature_importances_
        assert model_facts(model).importances == ()
    if kind == "tiny ridge":
        np.testing.assert_array_equal(copied.predict_proba(X), clf.predict_proba(X))


def test_a_model_whose_importances_cannot_be_computed_is_saved(tmp_path):
    pytest.importorskip("skops")
    clf, X = without_importances("tiny ridge")
    loaded = discernel.load(discernel.save(clf, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    with pytest.raises(NumericalError, match="Cholesky"):
        _ = loaded.feature_importances_
