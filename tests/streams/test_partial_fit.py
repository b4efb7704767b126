"""Rows that come one after another: the model is that of one fit to all of them."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from discernel import KernelDiscriminant, MultipleKernelDiscriminant, open_rows
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import DenseBank
from discernel.bank.sums import SummedSystem, sums_are_of_kernels
from discernel.criteria import KernelLeastSquares
from discernel.discriminant import within_reach
from discernel.exceptions import InvalidInputError
from discernel.export import numpy_scorer
from discernel.inspection import contributions
from discernel.kernels import RBF, Laplace
from discernel.learn.labels import ClassTotals
from discernel.learn.survey import RowSample
from discernel.streams import Chunk, Place
from discernel.targets import ClassTarget
from tests.streams.test_fit import explicit, rings

FIRST = 300


def summed(features, X):
    """Return what is summed up over rows."""
    assert sums_are_of_kernels(features)
    return features.kernel(X, features.landmarks)


def in_calls(model, X, y, ends, **options):
    """Return a model fitted to parts of rows that end where it says."""
    for a, b in zip([0, *ends[:-1]], ends, strict=True):
        later = {} if a == 0 else options
        model.partial_fit(X[a:b], y[a:b], np.unique(y), **later)
    return model


def same(one, other, X, tol=1e-8):
    assert one.regularization_ == other.regularization_
    assert np.array_equal(one.classes_, other.classes_)
    for name in ("predict_proba", "transform", "decision_function"):
        assert np.allclose(getattr(one, name)(X), getattr(other, name)(X), rtol=tol, atol=tol), name


@pytest.mark.parametrize("kernels", ["auto", "given"])
def test_any_number_of_calls_gives_one_model(kernels):
    X, y = rings()
    make = MultipleKernelDiscriminant if kernels == "auto" else explicit
    one = in_calls(make(), X, y, [FIRST, 900])
    other = in_calls(make(), X, y, [FIRST, 310, 550, 551, 900])
    same(one, other, X)
    assert one.streamed_.n_rows == other.streamed_.n_rows == 900
    assert np.isclose(one.expected_.log_loss, other.expected_.log_loss)
    assert one.expected_.accuracy == other.expected_.accuracy


def test_calls_give_the_fit_of_all_rows_with_these_landmarks():
    """Against sums of all rows in one product, by the same features."""
    X, y = rings()
    clf = in_calls(explicit(regularization=1e-3), X, y, [FIRST, 500, 900])
    state = clf.model_.stream.state
    F, V = summed(state.features, X), np.eye(3)[np.searchsorted(clf.classes_, y)]
    assert np.allclose(np.tril(state.sums.products), np.tril(F.T @ F), rtol=0, atol=1e-8)
    assert np.allclose(state.sums.all_cross[:, 1:], F.T @ V, rtol=0, atol=1e-8)
    F = state.features(X)
    unit = SummedSystem(state.sums, state.features).unit
    shares = V.mean(axis=0)
    centered = F - F.mean(axis=0)
    inverse = np.linalg.inv(centered.T @ centered / unit + 1e-3 * np.eye(F.shape[1]))
    indicator = (V / np.sqrt(shares) - np.sqrt(shares)) / 1.0
    hat = centered @ inverse @ centered.T / unit
    ours = clf.model_.scores(X)
    # scores are the indicator in some basis: products of both do not depend on it
    assert np.allclose(ours @ ours.T, hat @ indicator @ indicator.T @ hat.T, rtol=0, atol=1e-7)


def test_new_rows_are_learned_from():
    X, y = rings(3000)
    new, truth = rings(2000, seed=1)
    clf = explicit().partial_fit(X[:200], y[:200])
    before = clf.score(new, truth)
    clf.partial_fit(X[200:], y[200:])
    assert clf.score(new, truth) > before + 0.005
    assert clf.streamed_.n_rows == 3000


def test_weights_that_decay_are_weights():
    X, y = rings()
    weights = np.ones(900)
    weights[:FIRST] = 0.25
    weights[FIRST:600] = 0.5
    forgetting = in_calls(explicit(regularization=1e-3), X, y, [FIRST, 600, 900], forget=0.5)
    weighted = explicit(regularization=1e-3).partial_fit(X[:FIRST], y[:FIRST])
    state = weighted.model_.stream.state
    F = summed(state.features, X)
    products = F.T @ (weights[:, None] * F)
    assert np.allclose(
        np.tril(forgetting.model_.stream.state.sums.products), np.tril(products), atol=1e-8
    )
    sizes = [weights[y == label].sum() for label in forgetting.classes_]
    assert np.allclose(forgetting.priors_, np.array(sizes) / weights.sum())


def test_forgetting_follows_what_changes():
    X, y = rings(1200)
    turned = X[:, [2, 3, 0, 1]]  # the labels depend on other columns from now on
    kept = explicit().partial_fit(X, y)
    gone = deepcopy(kept)
    for a in range(0, 1200, 300):
        kept.partial_fit(turned[a : a + 300], y[a : a + 300])
        gone.partial_fit(turned[a : a + 300], y[a : a + 300], forget=0.2)
    new, truth = rings(2000, seed=1)
    new = new[:, [2, 3, 0, 1]]
    assert gone.score(new, truth) > kept.score(new, truth) + 0.05
    ages = gone.model_.stream.state.survey.sample.decays
    assert np.unique(ages).tolist() == pytest.approx([0.2**4, 0.2**3, 0.2**2, 0.2, 1.0])


def test_a_class_that_comes_later_is_known_from_the_first_call():
    X, y = rings()
    two = y != "out"
    clf = explicit().partial_fit(X[two][:FIRST], y[two][:FIRST], classes=["in", "mid", "out"])
    assert clf.classes_.tolist() == ["in", "mid", "out"]
    assert clf.priors_[2] == 0.0
    assert not clf.predict_proba(X)[:, 2].any()
    assert clf.transform(X).shape == (900, 1)
    assert set(clf.predict(X)) == {"in", "mid"}
    assert clf.expected_.accuracy > 0.7
    assert np.allclose(numpy_scorer(clf).predict_proba(X), clf.predict_proba(X))
    assert np.isfinite(contributions(clf, X[:2]).scores).all()
    clf.partial_fit(X[FIRST:], y[FIRST:])
    assert clf.classes_.tolist() == ["in", "mid", "out"]
    assert clf.predict_proba(X).shape == (900, 3)
    assert clf.score(X, y) > 0.7


@pytest.mark.parametrize("kernels", ["auto", "given"])
def test_a_first_chunk_of_one_class_waits_for_another(kernels):
    X, y = rings()
    y = (y == "out").astype(int)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    make = MultipleKernelDiscriminant if kernels == "auto" else explicit
    clf = make().partial_fit(X[:FIRST], y[:FIRST], classes=[0, 1])
    assert clf.classes_.tolist() == [0, 1]
    assert clf.priors_.tolist() == [1.0, 0.0]
    assert np.array_equal(clf.predict_proba(X), np.tile([1.0, 0.0], (900, 1)))
    assert not clf.predict(X).any()
    assert clf.transform(X).shape == (900, 0)
    assert clf.expected_ is None
    clf.partial_fit(X[FIRST:], y[FIRST:])
    whole = make().partial_fit(X, y, classes=[0, 1])
    same(clf, whole, X)
    assert clf.streamed_.n_rows == 900
    assert clf.model_.stream.waiting is None


def test_one_row_of_a_class_waits_for_another():
    X, y = rings()
    first = np.r_[np.flatnonzero(y != "out")[:FIRST], np.flatnonzero(y == "out")[0]]
    clf = explicit().partial_fit(X[first], y[first], classes=["in", "mid", "out"])
    assert clf.priors_[2] == 0.0
    assert clf.streamed_.n_rows == FIRST
    other = np.flatnonzero(y == "out")[1]
    clf.partial_fit(X[[other]], y[[other]])
    assert clf.streamed_.n_rows == FIRST + 2
    assert clf.priors_[2] == pytest.approx(2 / (FIRST + 2))


def test_single_rows_weights_and_class_weights_wait_too():
    X, y = rings(20)
    weight = {"out": 2.0}
    clf = MultipleKernelDiscriminant([RBF(width=1.0)], class_weight=weight, priors="uniform")
    for row in range(20):
        clf.partial_fit(X[[row]], y[[row]], np.unique(y), sample_weight=[2.0])
        assert clf.predict_proba(X).shape == (20, 3)
    assert clf.streamed_.n_rows == 20
    assert np.allclose(clf.priors_, 1 / 3)
    assert clf.model_.stream.waiting is None


@pytest.mark.parametrize("started", [False, True])
def test_a_chunk_without_rows_is_refused_and_changes_nothing(started):
    X, y = rings()
    clf = explicit()
    if started:
        clf.partial_fit(X, y)
    before = dict(vars(clf))
    for rows in (X[:0], pd.DataFrame(X[:0]), sparse.csr_matrix(X[:0])):
        with pytest.raises(ValueError, match=r"0 sample\(s\) .* minimum of 1 is required"):
            clf.partial_fit(rows, y[:0])
    with pytest.raises(ValueError, match="weight above 0"):
        explicit().partial_fit(X, y, sample_weight=np.zeros(900))
    with pytest.raises(ValueError, match="weight above 0"):
        explicit().partial_fit(X, y, np.unique(y), sample_weight=np.zeros(900))
    assert vars(clf) == before
    with pytest.raises(InvalidInputError, match=r"two classes, or all .* Got rows of class 0\. "):
        explicit().partial_fit(X[:2], [0, 0])
    with pytest.raises(InvalidInputError, match="a target per row"):
        explicit().partial_fit(X, None, np.unique(y))
    chunks = [(X[:500], y[:500]), (X[:0], y[:0]), (X[500:], y[500:])]
    assert explicit().fit(open_rows(chunks)).streamed_.n_rows == 900


def test_rows_that_wait_are_our_own():
    X, y = rings()
    one = y == "out"
    rows = X[one].copy()
    clf = explicit().partial_fit(rows, y[one], np.unique(y))
    rows[:] = 0.0
    clf.partial_fit(X[~one], y[~one])
    assert clf.score(X, y) > 0.7


def test_rows_of_a_call_may_be_more_than_a_chunk_would_have(monkeypatch):
    X, y = rings()
    clf = explicit().partial_fit(X[:FIRST], y[:FIRST])
    monkeypatch.setattr("discernel.rows.sources.memory_limit", lambda: 2**17)
    assert clf.partial_fit(X[FIRST:], y[FIRST:]).streamed_.n_rows == 900


def test_a_call_that_fails_late_changes_nothing(monkeypatch):
    X, y = rings()
    clf = explicit().partial_fit(X[:FIRST], y[:FIRST])
    before, sums = clf.predict_proba(X), clf.model_.stream.state.sums.products.copy()

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(clf), "_make_head", interrupted)
        with pytest.raises(KeyboardInterrupt):
            clf.partial_fit(X[FIRST:], y[FIRST:], forget=0.5)
    assert np.array_equal(clf.model_.stream.state.sums.products, sums)
    assert np.array_equal(clf.predict_proba(X), before)


def test_rows_can_be_added_to_a_fit_of_a_source_but_not_to_one_in_memory():
    X, y = rings()
    clf = explicit().fit(open_rows(X[:600], y[:600], chunk_rows=100))
    kernels = clf.kernels_
    clf.partial_fit(X[600:], y[600:])
    assert clf.streamed_.n_rows == 900
    assert clf.kernels_ is kernels
    clf.fit(X, y)
    assert clf.model_.stream is None
    clf.partial_fit(X[:FIRST], y[:FIRST])  # the first call of a new stream
    assert clf.streamed_.n_rows == FIRST


@pytest.mark.parametrize("kind", ["frame", "sparse"])
def test_tables_and_sparse_rows(kind):
    X, y = rings(600)
    if kind == "sparse":
        rows = sparse.csr_matrix(np.where(np.abs(X) > 0.3, X, 0.0))
        clf = KernelDiscriminant(RBF(width=1.0))
        parts = [(rows[:300], y[:300]), (rows[300:], y[300:])]
    else:
        rows = pd.DataFrame(X, columns=list("abcd")).assign(
            town=np.where(y == "in", "York", "Bath")
        )
        rows.loc[::5, "b"] = np.nan
        clf = MultipleKernelDiscriminant()
        parts = [(rows[:300], y[:300]), (rows[300:].assign(town="Ely"), y[300:])]
    for part in parts:
        clf.partial_fit(*part)
    assert clf.streamed_.n_rows == 600
    assert clf.score(rows, y) > 0.6


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda clf, X, y: clf.partial_fit(X, y, forget=0), "forget must be"),
        (lambda clf, X, y: clf.partial_fit(X, y, forget=1.5), "forget must be"),
        (lambda clf, X, y: clf.partial_fit(X, np.full(900, "new")), "Got 'new' in X"),
        (
            lambda clf, X, y: clf.partial_fit(X * np.nan, y),
            "nan in column .x0., row 0 of X, counted from 0",
        ),
        (lambda clf, X, y: clf.partial_fit(X[:, :3], y), "3 features"),
        (lambda clf, X, y: clf.partial_fit(X, y[:5]), "900 rows and 5 labels"),
        (
            lambda clf, X, y: clf.set_params(class_weight="balanced").partial_fit(X, y),
            "depends on all rows",
        ),
    ],
)
def test_bad_calls_are_refused_and_change_nothing(call, words):
    X, y = rings()
    clf = explicit().partial_fit(X, y)
    before, sums = clf.predict_proba(X), clf.model_.stream.state.sums.products.copy()
    with pytest.raises(InvalidInputError, match=words):
        call(clf, X, y)
    assert np.array_equal(clf.predict_proba(X), before)
    assert np.array_equal(clf.model_.stream.state.sums.products, sums)


def test_class_weights_by_name_count_in_every_call():
    X, y = rings()
    weight = {"out": 3.0}
    one = in_calls(
        MultipleKernelDiscriminant([Laplace(width=2.0)], class_weight=weight), X, y, [FIRST, 900]
    )
    factors = np.where(y == "out", 3.0, 1.0)
    F = summed(one.model_.stream.state.features, X)
    assert np.allclose(
        np.tril(one.model_.stream.state.sums.products),
        np.tril(F.T @ (factors[:, None] * F)),
        atol=1e-8,
    )
    sizes = [factors[y == label].sum() for label in one.classes_]
    assert np.allclose(one.priors_, np.array(sizes) / factors.sum())


def test_rows_that_decay_are_left_out_with_what_they_weigh():
    """Against a factorisation of the weighted low-rank matrix of all rows."""
    X, y = rings()
    clf = explicit(criterion="uniform", regularization=1e-3)
    clf = in_calls(clf, X, y, [FIRST, 900], forget=0.25)
    weights = np.where(np.arange(900) < FIRST, 0.25, 1.0)
    counted = SampleWeights(weights)
    target, F = ClassTarget.from_labels(y, counted), clf.model_.stream.state.features(X)
    bank = DenseBank((F @ F.T)[None], normalization="centered_trace", sample_weights=counted)
    ridge = np.full(900, 1e-3 / clf.streamed_.captured)
    fit = KernelLeastSquares(bank.system(np.ones(1), ridge), ridge, target.scores, counted)
    order = [
        np.flatnonzero((row == X).all(axis=1))[0] for row in clf.model_.stream.state.survey.sample.X
    ]
    expected = within_reach(fit.left_out_scores(fit.left_out_groups(target)), target)[order]
    assert np.allclose(clf.discriminant_.training_scores, expected, rtol=0, atol=1e-7)


def test_new_rows_are_rather_drawn_than_those_that_decay():
    chunk = Chunk(np.arange(1000.0)[:, None], np.zeros(1000), None, Place("X"))
    later = replace(chunk, place=Place("X", 1))
    options = {"rows": np.arange(1000), "most": 200, "totals": ClassTotals()}
    old, new = (RowSample.of(each, 0, **options) for each in (chunk, later))
    drawn = old.decayed(0.1).merged(new, 200, ClassTotals())
    assert len(drawn) == 200
    assert 0.85 < np.mean(drawn.decays == 1.0) < 0.96  # ten elevenths
