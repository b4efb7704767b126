"""Columns as quantiles: when the default takes them, and that all that follows knows them."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

import discernel
from discernel import MultipleKernelDiscriminant, MultipleKernelRidge, open_rows
from discernel.arrays import Buffers
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import LowRank
from discernel.default import comparison, propose
from discernel.default.comparison import FoldComparison, choose_sample
from discernel.default.cross_fit import CrossFit, clearly_better
from discernel.default.metric import Metric, learn_metric
from discernel.default.propose import comparable_rows, propose_kernels
from discernel.default.sample import draw_sample
from discernel.export import numpy_scorer, to_onnx
from discernel.inspection import contributions
from discernel.inspection.facts import model_facts
from discernel.kernels.columns import column_spreads
from discernel.kernels.curves import Curves, divided_columns, quantile_curves
from discernel.model.swaps import SwappedKernels
from discernel.programs.simplex import uniform
from discernel.targets import ClassTarget
from tests.inspection.brute import shapley


def long_tails(n=150, seed=0, noise=0.3):
    """Return columns with long tails, and classes by their logarithms."""
    rng = np.random.default_rng(seed)
    logs = rng.standard_normal((n, 4))
    score = np.sin(1.5 * logs[:, 0]) + logs[:, 1] + noise * rng.standard_normal(n)
    return np.exp(2.0 * logs), np.digitize(score, [-0.7, 0.7])


def table(n=150, seed=0):
    """Return a table with missing cells and a category, and labels of text."""
    X, y = long_tails(n, seed)
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(X, columns=["dose", "income", "size", "age"])
    frame.loc[rng.random(n) < 0.1, "dose"] = np.nan
    frame["colour"] = np.where(rng.random(n) < 0.7, np.array(["red", "green", "blue"])[y], "red")
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    return frame, np.array(["low", "middle", "high"])[y]


@pytest.fixture
def without_quantiles(monkeypatch):
    """Leave quantiles out of the choice."""

    def none(X, spreads, row_weights=None):
        return Curves(((),) * X.shape[1], ((),) * X.shape[1])

    return lambda: monkeypatch.setattr(propose, "quantile_curves", none)


@cache
def fitted():
    return MultipleKernelDiscriminant().fit(*long_tails())


@cache
def fitted_table():
    return MultipleKernelDiscriminant().fit(*table())


def curves_of(model):
    return model.kernels_[0].curves


# ---- the choice ----------------------------------------------------------------------------------


def test_long_tails_are_taken_as_quantiles_and_the_loss_of_new_rows_falls(without_quantiles):
    X, y = long_tails(seed=1, n=600)
    model = fitted()
    assert model.learned_kernel_.considered[0].quantiles
    assert not model.learned_kernel_.considered[-1].quantiles
    assert_array_equal(curves_of(model).changed, range(4))
    without_quantiles()
    plain = MultipleKernelDiscriminant().fit(*long_tails())
    assert curves_of(plain) is None
    assert log_loss(y, model.predict_proba(X)) < 0.9 * log_loss(y, plain.predict_proba(X))


def test_where_quantiles_are_not_better_nothing_changes(without_quantiles):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    y = (X[:, 0] + 0.5 * rng.standard_normal(120) > 0).astype(int)
    model = MultipleKernelDiscriminant().fit(X, y)
    assert curves_of(model) is None
    assert any(each.quantiles for each in model.learned_kernel_.considered[1:])
    without_quantiles()
    plain = MultipleKernelDiscriminant().fit(X, y)
    assert not any(each.quantiles for each in plain.learned_kernel_.considered)
    assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def two_samples(X, y, weights=None):
    """Return a sample of rows, and with its columns as quantiles."""
    target, spreads = ClassTarget.from_labels(y, weights), tuple(column_spreads(X).tolist())
    given = draw_sample(
        divided_columns(X, spreads), target, most=len(X), n_folds=5, rng=np.random.RandomState(0)
    )
    curves = quantile_curves(X, spreads, target.row_weights.values)
    return given, given.with_quantiles(comparable_rows(X, spreads, curves))


def fold_metrics(sample):
    return [
        learn_metric(sample.rows[outside], sample.scores[outside], sample.weights.values[outside])
        for outside, _ in sample.divisions()
    ]


def best_losses(sample, metrics):
    """Return the losses of the best strength at a given λ, which must be clearly better."""
    chosen, before = None, np.inf
    for strength in (0.0, 0.5, 1.0):
        fit = CrossFit(sample, metrics, strength, dtype=np.float64)
        losses = fit.best("average", uniform(sample.menu.n_kernels), (0.01,)).losses
        if chosen is None or clearly_better(losses, chosen, sample.weights.shares):
            chosen = losses
        if sample.weights.shares @ losses >= before:
            break
        before = sample.weights.shares @ losses
    return chosen


@pytest.mark.parametrize("noise", [0.3, 1.5, 4.0])
def test_quantiles_must_be_better_without_a_metric_and_with_the_best(noise):
    X, y = long_tails(n=80, noise=noise)
    weights = SampleWeights.of(np.random.default_rng(0).uniform(0.5, 2.0, 80))
    given, other = two_samples(X, y, weights)
    assert other.menu is given.menu
    found = choose_sample(FoldComparison(given, 0.01), other, fold_metrics)
    shares, none = given.weights.shares, [Metric(np.ones(4))] * 5
    first = [
        CrossFit(sample, none, 0.0, dtype=np.float64)
        .best("average", uniform(sample.menu.n_kernels), (0.01,))
        .losses
        for sample in (given, other)
    ]
    is_better = clearly_better(first[1], first[0], shares)
    assert (found.metrics is not None) == is_better
    if is_better:
        best = [best_losses(sample, fold_metrics(sample)) for sample in (given, other)]
        is_better = clearly_better(best[1], best[0], shares)
    assert found.compared.sample.quantiles == is_better
    assert {scored.candidate.quantiles for group in found.compared.tried for scored in group} == {
        is_better
    }
    if is_better:
        for fold, candidate in enumerate(found.without):
            rest = np.where(given.folds == fold, 0.0, shares)
            is_chosen = clearly_better(best[1], best[0], rest / rest.sum())
            assert (candidate is None) == is_chosen
            assert is_chosen or (candidate.strength, candidate.quantiles) == (0, False)


@pytest.mark.parametrize(("surely", "is_close"), [(0.5, False), (1e9, True)])
def test_metrics_are_compared_unless_quantiles_are_better_by_far(surely, is_close, monkeypatch):
    monkeypatch.setattr(comparison, "_SURELY", surely)
    given, other = two_samples(*long_tails(n=300), SampleWeights.of(np.ones(300)))
    found = choose_sample(FoldComparison(given), other, fold_metrics)
    assert found.compared.sample.quantiles
    assert (found.metrics is not None) == is_close
    assert (len(found.compared.tried) > 1) == is_close
    assert found.other.strength == 0 or is_close


def test_without_a_fold_columns_as_they_are_stay_a_choice(monkeypatch):
    X, y = long_tails()
    spreads, target = tuple(column_spreads(X).tolist()), ClassTarget.from_labels(y)
    choose = propose.choose_sample

    def doubtful(*samples, **options):
        found = choose(*samples, **options)
        return found._replace(without=[found.other, None, None, None, None])

    monkeypatch.setattr(propose, "choose_sample", doubtful)
    proposal = propose_kernels(X, spreads, target)
    assert [each.quantiles for each in proposal.selection.without] == [
        False,
        True,
        True,
        True,
        True,
    ]
    own, metric = (
        proposal.selection.without[0],
        proposal.metric_without(0, X, target, np.arange(120)),
    )
    assert own.strength == 0
    kernels = proposal.kernels_of(own, metric, X)
    positions = proposal.sample.positions
    expected = proposal.sample.menu.kernels(divided_columns(X[positions], spreads))
    assert_allclose(kernels[2](X[:20]), expected[2](divided_columns(X[:20], spreads)), rtol=1e-10)
    # Scores of the fold are those of kernels without curves, and the fit goes through.
    assert MultipleKernelDiscriminant().fit(X, y).expected_.log_loss > 0


def test_numbers_are_taken_as_quantiles_too():
    rng = np.random.default_rng(0)
    logs = rng.standard_normal((120, 3))
    model = MultipleKernelRidge().fit(np.exp(2.0 * logs), np.sin(logs[:, 0]) + logs[:, 1])
    assert model.learned_kernel_.considered[0].quantiles
    new = rng.standard_normal((300, 3))
    assert model.score(np.exp(2.0 * new), np.sin(new[:, 0]) + new[:, 1]) > 0.9


def test_categories_indicators_and_constant_columns_stay_as_they_are():
    X, y = table()
    X["same"], X["flag"] = 3.0, np.arange(len(X)) % 2
    model = MultipleKernelDiscriminant().fit(X, y)
    curves, encoded = curves_of(model), model.model_.reader.read(X)
    assert curves is not None
    n_values = np.array([len(np.unique(column)) for column in encoded.T])
    assert_array_equal(curves.changed, np.flatnonzero(n_values > 2))
    assert len(curves.changed) == 4
    assert model.feature_importances_.shape == (7,)
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_without_time_there_is_no_choice():
    model = MultipleKernelDiscriminant(max_time=1e-3).fit(*long_tails(n=700))
    assert not any(each.quantiles for each in model.learned_kernel_.considered)


def test_neither_the_order_of_rows_nor_the_units_of_columns_show():
    X, y = long_tails()
    new, expected = long_tails(40, seed=1)[0], fitted()
    order = np.random.default_rng(0).permutation(len(X))
    again = MultipleKernelDiscriminant().fit(X[order], y[order])
    assert_allclose(again.predict_proba(new), expected.predict_proba(new), atol=1e-7)
    units = np.array([1000.0, 1e-3, 7.0, 1.0])
    moved = MultipleKernelDiscriminant().fit(X * units + 50.0, y)
    assert moved.learned_kernel_.considered[0].quantiles
    assert_allclose(moved.predict_proba(new * units + 50.0), expected.predict_proba(new), atol=1e-5)


def test_values_beyond_those_of_training_are_the_largest():
    X = long_tails(5, seed=1)[0]
    far, top = X.copy(), X.copy()
    far[:, 0], top[:, 0] = 1e12, long_tails()[0][:, 0].max()
    assert_array_equal(fitted().predict_proba(far), fitted().predict_proba(top))


# ---- what follows --------------------------------------------------------------------------------


def test_exports_predict_the_same():
    new = table(60, seed=1)[0]
    scorer = numpy_scorer(fitted_table())
    assert_allclose(scorer.predict_proba(new), fitted_table().predict_proba(new), atol=1e-10)
    X = long_tails(60, seed=1)[0]
    X[0] *= 1e6
    assert_allclose(numpy_scorer(fitted()).predict_proba(X), fitted().predict_proba(X), atol=1e-10)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:skl2onnx")
def test_onnx_predicts_the_same():
    pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    X = long_tails(60, seed=1)[0]
    graph = to_onnx(fitted())
    session = runtime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    name, kind = session.get_inputs()[0].name, session.get_inputs()[0].type
    rows = X.astype(np.float64 if "double" in kind else np.float32)
    _, found = session.run(None, {name: rows})
    assert_allclose(found, fitted().predict_proba(X), atol=1e-6)


def test_contributions_are_shapley_values():
    X, model = long_tails(6, seed=1)[0], fitted()
    found = contributions(model, X[:1], background=X[1:3])
    assert found.exact

    def value(subset):
        rows = np.where(np.isin(np.arange(4), subset), X[0], X[1:3])
        scores = model.decision_function(rows)
        return (scores - scores.mean(axis=1, keepdims=True)).mean(axis=0)

    expected = shapley(value, 4)
    assert_allclose(found.columns[0], expected.T, atol=1e-9)


def test_cells_of_other_rows_change_kernels_as_new_rows_do():
    """Importances take the change of a kernel by one column, which is that of its curve."""
    model, X, other = fitted(), long_tails(8, seed=1)[0], long_tails(8, seed=2)[0]
    kernel, rows = model.model_.kernel.sum, model.model_.kernel.rows
    swap = SwappedKernels(kernel, rows, 4).swap(X, Buffers())
    for column in range(4):
        mixed = X.copy()
        mixed[:, column] = other[:, column]
        (found,) = (change.copy() for change in swap(np.array([column]), [other]))
        assert_allclose(found, kernel(mixed, rows) - kernel(X, rows), atol=1e-12)
    assert model.feature_importances_[:2].sum() > 0.9


def test_saved_models_predict_the_same(tmp_path):
    new = table(40, seed=1)[0]
    discernel.save(fitted_table(), tmp_path / "model.skops")
    again = discernel.load(tmp_path / "model.skops")
    assert curves_of(again) == curves_of(fitted_table())
    assert again.learned_kernel_.considered[0].quantiles
    assert_array_equal(again.predict_proba(new), fitted_table().predict_proba(new))


def test_rows_in_chunks_are_taken_as_quantiles():
    X, y = long_tails(400)
    new, truth = long_tails(300, seed=1)
    models = [
        MultipleKernelDiscriminant().fit(open_rows(X, y, chunk_rows=size)) for size in (90, 400)
    ]
    assert curves_of(models[0]) is not None
    first, second = (model.predict_proba(new) for model in models)
    assert_allclose(first, second, atol=1e-8)
    memory = MultipleKernelDiscriminant().fit(X, y).predict_proba(new)
    assert log_loss(truth, first) < 1.15 * log_loss(truth, memory)
    more = models[0].partial_fit(*long_tails(100, seed=2))
    assert curves_of(more) is not None
    assert log_loss(truth, more.predict_proba(new)) < 1.15 * log_loss(truth, memory)


def test_a_low_rank_has_the_same_columns():
    X, y = long_tails(200)
    new, truth = long_tails(300, seed=1)
    model = MultipleKernelDiscriminant(bank=LowRank(150)).fit(X, y)
    assert curves_of(model) is not None
    memory = MultipleKernelDiscriminant().fit(X, y).predict_proba(new)
    assert log_loss(truth, model.predict_proba(new)) < 1.15 * log_loss(truth, memory)
    found = contributions(model, new[:2])
    scores = model.decision_function(new[:2])
    assert_allclose(
        found.baseline + found.columns.sum(-1), scores - scores.mean(1)[:, None], atol=1e-9
    )
    assert_allclose(numpy_scorer(model).predict_proba(new), model.predict_proba(new), atol=1e-10)


def test_the_choice_is_said_in_words():
    considered = model_facts(fitted()).candidates
    assert considered[0].name.endswith(", columns as quantiles")
    assert considered[-1].name == "equal weights, unscaled"
    assert repr(fitted().learned_kernel_.considered[0]).endswith("columns as quantiles")
