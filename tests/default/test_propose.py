"""The proposal: kernels on the chosen metric, the rows it is of, and λ for all rows."""

from dataclasses import replace

import numpy as np
import pytest

from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import DenseBank, TiledBank
from discernel.criteria import KernelLeastSquares
from discernel.default import propose_kernels
from discernel.default.menu import MENU
from discernel.default.metric import learn_metric
from discernel.default.propose import _best_regularization
from discernel.discriminant import row_losses
from discernel.kernels.columns import column_spreads
from discernel.targets import ClassTarget, RegressionTarget
from tests.default.tables import few_matter


def propose(X, y, given=None, **options):
    weights = None if given is None else SampleWeights.of(np.asarray(given, dtype=float))
    target = ClassTarget.from_labels(y, weights)
    rows = X if given is None else np.repeat(X, given, axis=0)
    return propose_kernels(X, tuple(column_spreads(rows)), target, **options)


@pytest.fixture(scope="module")
def small():
    X, y = few_matter(150, 8)
    X = X * np.arange(1.0, 9.0) + 50.0
    return X, y, propose(X, y)


def test_kernels_are_those_of_the_menu_on_scaled_columns(small):
    X, _, proposal = small
    spreads, strength = column_spreads(X), proposal.chosen.strength
    assert strength > 0
    scaled = X / spreads * proposal.metric.of_strength(strength)
    kept = proposal.metric.scales > 0
    for kernel, plain in zip(proposal.kernels, MENU.kernels(scaled), strict=True):
        expected = plain(scaled[:, kept])
        np.testing.assert_allclose(kernel(X), expected, rtol=1e-6, atol=1e-9)


def test_metrics_are_learned_outside_of_each_fold_and_on_all_rows(small):
    _, _, proposal = small
    sample = proposal.sample
    assert len(proposal.fold_metrics) == sample.n_folds == 5
    for (outside, _), metric in zip(sample.divisions(), proposal.fold_metrics, strict=True):
        expected = learn_metric(sample.rows[outside], sample.scores[outside])
        np.testing.assert_array_equal(metric.scales, expected.scales)
    expected = learn_metric(sample.rows, sample.scores)
    np.testing.assert_array_equal(proposal.metric.scales, expected.scales)


def test_columns_that_are_constant_are_left_out():
    X, y = few_matter(100, 6)
    X[:, 4] = 7.0
    proposal = propose(X, y)
    assert proposal.metric.scales[4] == 0.0
    assert all(np.isfinite(kernel(X)).all() for kernel in proposal.kernels)


def test_all_rows_of_a_small_sample_depend_on_the_metric(small):
    _, y, proposal = small
    np.testing.assert_array_equal(np.sort(proposal.dependent), np.arange(len(y)))
    assert len(proposal.independent(np.arange(len(y)))) == 0


def test_without_a_metric_no_row_depends_on_it():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 5))
    proposal = propose(X, rng.integers(0, 2, 80))
    assert proposal.chosen.strength == 0
    assert len(proposal.dependent) == 0
    np.testing.assert_array_equal(proposal.independent(np.arange(80)), np.arange(80))


def test_sizes_of_samples(monkeypatch):
    for name, value in {"_FEW": 60, "_MOST": 100, "_MOST_FOR_METRIC": 150}.items():
        monkeypatch.setattr(f"discernel.default.propose.{name}", value)
    X, y = few_matter(400, 6)
    for n, sample_size, metric_size in [
        (50, 50, 50),
        (70, 60, 70),
        (140, 60, 140),
        (320, 80, 150),
        (400, 100, 150),
    ]:
        proposal = propose(X[:n], y[:n])
        assert len(proposal.sample.rows) == sample_size
        if proposal.chosen.strength > 0:
            assert len(proposal.dependent) == metric_size
    # Weights are no rows, however large they are.
    assert len(propose(X[:320], y[:320], 1000 + np.arange(320)).sample.rows) == 80


def test_far_columns_are_as_good_as_near_ones():
    """Single precision has seven digits, of which an offset must take none."""
    X, y = few_matter(120, 6)
    near, far = propose(X, y), propose(X + 1e9, y)
    np.testing.assert_allclose(far.metric.scales, near.metric.scales, atol=1e-3)
    assert far.chosen.error == pytest.approx(near.chosen.error, abs=2e-3)


def test_random_states():
    X, y = few_matter(120, 6)
    none, zero, one = (propose(X, y, random_state=state) for state in (None, 0, 1))
    np.testing.assert_array_equal(none.sample.folds, zero.sample.folds)
    assert none.chosen.error == zero.chosen.error
    assert not np.array_equal(zero.sample.positions, one.sample.positions)


@pytest.mark.parametrize("weighted", [False, True])
def test_lambda_for_all_rows_has_the_least_left_out_loss(weighted, monkeypatch):
    X, y = few_matter(120, 6)
    X = X[:, :3]
    rng = np.random.default_rng(0)
    weights = SampleWeights.of(np.exp(2.0 * rng.standard_normal(120))) if weighted else None
    values = RegressionTarget.from_values(X[:, 0] ** 2 + 0.5 * rng.standard_normal(120), weights)
    for target in (ClassTarget.from_labels(y, weights), values):
        kernels = MENU.kernels(X)
        bank = DenseBank(np.array([kernel(X) for kernel in kernels]), sample_weights=weights)
        proposal = propose(X, y)
        counted = np.arange(40, 120)
        truth = target.scores if weights is None else target.scores / weights.roots[:, None]
        seen = []

        def spy(predicted, right, part, seen=seen):
            seen.append(right)
            return row_losses(predicted, right, part)

        monkeypatch.setattr("discernel.default.propose.row_losses", spy)
        found = _best_regularization(bank, target, proposal.chosen, counted)
        for right in seen:
            np.testing.assert_allclose(right, truth[counted])
        losses = {}
        for factor in 10.0 ** np.array([0.5, 0.0, -0.5, -1.0, -1.5, -2.0]):
            lam = max(factor * proposal.chosen.regularization, 1e-7)
            ridge = np.full(120, lam)
            system = bank.system(proposal.chosen.weights, ridge)
            fit = KernelLeastSquares(system, ridge, target.scores, weights)
            part = target.subset(counted)
            costs, _ = row_losses(fit.leave_one_out[counted], truth[counted], part)
            losses[lam] = np.average(costs, weights=weights and weights.values[counted])
        assert found == pytest.approx(min(losses, key=losses.get))


def test_more_rows_than_it_was_looked_for_on_have_a_smaller_regularization(monkeypatch):
    X, y = few_matter(1800, 4, noise=1.0)
    target, proposal = ClassTarget.from_labels(y), propose(X, y)
    proposal = replace(proposal, dependent=proposal.dependent[:0])
    bank = TiledBank(proposal.kernels, X)
    monkeypatch.setattr("discernel.default.propose._MOST_FOR_REGULARIZATION", 200)
    found = proposal.regularization_of(bank, target)
    rows = np.sort(np.random.RandomState(0).permutation(1800)[:200])
    of_part = _best_regularization(
        bank.subset(rows), target.subset(rows), proposal.chosen, np.arange(200)
    )
    assert found == pytest.approx(of_part / 3.0)

    def loss(lam):
        ridge = np.full(1800, lam)
        system = bank.system(proposal.chosen.weights, ridge)
        fit = KernelLeastSquares(system, ridge, target.scores)
        return row_losses(fit.leave_one_out, target.scores, target)[0].mean()

    assert loss(found) < loss(of_part)
