"""What is said of new rows holds for new rows, although a metric has seen the labels."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss

from discernel import MultipleKernelDiscriminant
from discernel.default import propose_kernels
from discernel.default.choose import choose
from discernel.default.comparison import FoldComparison
from discernel.default.metric import learn_metric
from discernel.kernels.columns import column_spreads
from discernel.learn import held_out, rows
from discernel.targets import ClassTarget
from tests.default.tables import few_matter


def noise(seed, n=200, n_columns=30):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, n_columns)), (rng.uniform(size=n) < 0.6).astype(int)


def propose(X, y):
    return propose_kernels(X, tuple(column_spreads(X)), ClassTarget.from_labels(y))


def with_a_metric_of_all_rows(proposal):
    """Return the candidates that a metric would have that has seen the rows of the folds."""
    sample = proposal.sample
    metric = learn_metric(sample.rows, sample.scores, sample.weights.values)
    return choose(FoldComparison(sample), [metric] * sample.n_folds, pull=5.0).candidates


def standard_error(values):
    return np.std(values, ddof=1) / np.sqrt(len(values))


def test_labels_of_noise_are_predicted_no_better_than_by_the_majority():
    inside, accuracies, losses = [], [], []
    for seed in range(8):
        X, y = noise(seed)
        expected = MultipleKernelDiscriminant().fit(X, y).expected_
        majority = max(y.mean(), 1 - y.mean())
        inside.append(expected.low <= majority <= expected.high)
        accuracies.append(expected.accuracy - majority)
        entropy = -np.log(np.where(y == 1, y.mean(), 1 - y.mean())).mean()
        losses.append(entropy - expected.log_loss)
    assert sum(inside) >= 7
    assert abs(np.mean(accuracies)) < 0.02
    assert np.mean(losses) < 0.01


def test_a_metric_of_all_rows_would_find_something_in_noise():
    """What the test above would say of the cheat: a clear gain where there is nothing."""
    found = []
    for seed in range(10):
        proposal = propose(*noise(seed, 100))
        chosen, cheat = proposal.chosen, with_a_metric_of_all_rows(proposal)[0]
        found.append((chosen.error - cheat.error, cheat.accuracy - chosen.accuracy))
    gains, accuracies = np.array(found).T
    assert gains.mean() > 3.0 * standard_error(gains)
    assert gains.mean() > 0.02
    assert accuracies.mean() > 0.02


@pytest.fixture(scope="module")
def promises():
    """The log-loss that is promised, that on fresh rows, and that a cheat would promise."""
    found = []
    for seed in range(12):
        X, y = few_matter(1100, 40, seed=seed, noise=0.6)
        clf = MultipleKernelDiscriminant().fit(X[:100], y[:100])
        fresh = log_loss(y[100:], clf.predict_proba(X[100:]))
        cheat = with_a_metric_of_all_rows(propose(X[:100], y[:100]))[0].error
        chosen = clf.learned_kernel_.considered[0].error
        found.append((chosen, clf.expected_.log_loss, fresh, cheat))
    return np.array(found).T


def test_the_promise_is_not_better_than_what_fresh_rows_show(promises):
    chosen, expected, fresh, _ = promises
    for honest in (chosen, expected):
        too_good = fresh - honest
        assert too_good.mean() < 3.0 * standard_error(too_good)
        assert abs(too_good.mean()) < 0.1


def test_a_metric_of_all_rows_would_promise_too_much(promises):
    chosen, _, fresh, cheat = promises
    for too_good in (fresh - cheat, chosen - cheat):
        assert too_good.mean() > 3.0 * standard_error(too_good)
        assert too_good.mean() > 0.05


def test_strengths_are_not_chosen_by_optimism():
    """Of noise, a metric must look better by a standard error: it does so in few samples."""
    strengths = [propose(*noise(seed, 100)).chosen.strength for seed in range(12)]
    assert np.count_nonzero(strengths) <= 5


def test_the_metric_of_a_fold_has_not_seen_its_labels():
    """Other labels of the rows in a fold change neither its metric nor its predictions."""
    X, y = few_matter(120, 8)
    first = propose(X, y)
    sample = first.sample
    inside = sample.folds == 2
    turned = y.copy()
    # Two rows of the fold exchange their labels: classes and folds stay what they are.
    a = next(i for i in sample.positions[inside] if y[i] == 0)
    b = next(i for i in sample.positions[inside] if y[i] == 1)
    turned[[a, b]] = y[[b, a]]
    other = replace(sample, scores=ClassTarget.from_labels(turned).scores[sample.positions])
    for fold, metric in enumerate(first.fold_metrics):
        again = first.learn_metric(other, np.flatnonzero(sample.folds != fold))
        assert np.array_equal(again.scales, metric.scales) is (fold == 2)


def test_kernels_without_a_metric_are_made_once(monkeypatch):
    """For all rows and for every fold; made again, they would be the same."""
    X, y = noise(0, 120, 5)
    proposal = propose(X, y)
    assert proposal.is_whole
    assert proposal.chosen.strength == 0
    assert proposal.kernels_of(proposal.chosen, proposal.fold_metrics[0], X) == proposal.kernels
    made, make = [], rows.bank_of_rows

    def counted(*given, **options):
        made.append(given)
        return make(*given, **options)

    for module in (rows, held_out):
        monkeypatch.setattr(module, "bank_of_rows", counted)
    found = MultipleKernelDiscriminant().fit(X, y)
    assert found.learned_kernel_.considered[0].strength == 0
    assert len(made) == 1
