"""Scales of columns from the gradients of a fit, against refits and differences in double."""

import numpy as np
import pytest

from discernel.default.metric import (
    _LAMBDAS,
    _RULE,
    Metric,
    _fit,
    learn_metric,
)
from discernel.default.ridge import Ridge
from discernel.kernels import RBF


def table(n=40, n_columns=6, seed=0):
    """Return rows of which the first three columns matter, and one or two scores of each."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_columns))
    scores = np.column_stack([np.sin(2.0 * X[:, 0]) + X[:, 1], X[:, 1] * X[:, 2]])
    return X, scores + 0.1 * rng.standard_normal((n, 2))


# ---- the slow, obvious version ---------------------------------------------------------------


def gaussian(X, Z, width):
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2) / width**2)


def median_of_pairs(rows):
    pairs = [np.linalg.norm(a - b) for i, a in enumerate(rows) for b in rows[:i]]
    return np.median([distance for distance in pairs if distance > 1e-9])


def centered_trace(gram, weights):
    share = weights / weights.sum()
    return weights @ (np.diagonal(gram) - 2.0 * gram @ share + share @ gram @ share)


def fit(gram, scores, weights, regularization):
    """Return c and b of least Σ ω_i(t_i − (Kc)_i − b)² + λcᵀKc."""
    n = len(gram)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = gram + np.diag(regularization / weights)
    system[:n, n] = system[n, :n] = 1.0
    found = np.linalg.solve(system, np.vstack([scores, np.zeros(scores.shape[1])]))
    return found[:n], found[n]


def refitted_error(gram, scores, weights, regularization):
    """Return the weighted sum of squared errors of fits without each row, by such fits."""
    total = 0.0
    for i in range(len(gram)):
        rest = np.delete(np.arange(len(gram)), i)
        coef, intercept = fit(gram[np.ix_(rest, rest)], scores[rest], weights[rest], regularization)
        total += weights[i] * np.sum((gram[i, rest] @ coef + intercept - scores[i]) ** 2)
    return total


def slow_metric(X, scores, weights=None, rounds=3):
    weights = np.ones(len(X)) if weights is None else weights
    scales, regularization = np.ones(X.shape[1]), None
    for _ in range(rounds):
        width = median_of_pairs(X * scales)
        gram = gaussian(X * scales, X * scales, width)
        unit = centered_trace(gram, weights)
        if regularization is None:
            least = np.inf
            for candidate in _LAMBDAS:
                error = refitted_error(gram / unit, scores, weights, candidate)
                if error > (1.0 - _RULE.worthwhile) * least:
                    break
                regularization, least = candidate, error
        coef, _ = fit(gram / unit, scores, weights, regularization)
        squares = np.empty(X.shape[1])
        for column in range(X.shape[1]):
            step = 1e-5 * (np.arange(X.shape[1]) == column)
            above, below = (
                gaussian((X + move) * scales, X * scales, width) @ coef for move in (step, -step)
            )
            squares[column] = weights @ np.sum(((above - below) / 2e-5) ** 2, axis=1)
        scales = np.sqrt(squares / squares.max())
    return scales


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("seed", [0, 2])  # no two λ as good as each other
def test_scales_are_those_of_refits_and_differences(seed, n_outputs, weighted):
    X, scores = table(seed=seed)
    weights = np.random.default_rng(seed).uniform(0.3, 2.0, len(X)) if weighted else None
    found = learn_metric(X, scores[:, :n_outputs], weights)
    expected = slow_metric(X, scores[:, :n_outputs], weights)
    np.testing.assert_allclose(found.scales, expected, atol=2e-3)


def test_rounds_are_counted(monkeypatch):
    X, scores = table()
    for rounds in (0, 1, 2):
        monkeypatch.setattr("discernel.default.metric._ROUNDS", rounds)
        found = learn_metric(X, scores).scales
        np.testing.assert_allclose(found, slow_metric(X, scores, rounds=rounds), atol=2e-3)


@pytest.mark.parametrize("regularization", _LAMBDAS)
def test_the_leave_one_out_error_is_that_of_refits(regularization):
    X, scores = table()
    weights = np.random.default_rng(0).uniform(0.3, 2.0, len(X))
    gram = gaussian(X, X, 3.0)
    ridge = Ridge(gram.astype(np.float32)[None], scores, weights)
    unit = centered_trace(gram, weights)
    expected = refitted_error(gram / unit, scores, weights, regularization) / scores.size
    combined = ridge.combined(np.ones(1))
    found, coef = ridge.leave_one_out(combined, regularization)
    assert found == pytest.approx(expected, rel=1e-2)
    np.testing.assert_array_equal(coef, ridge.coef(combined, regularization))


def test_best_regularization_stops_where_the_error_grows():
    X, scores = table()
    noise = np.random.default_rng(0).standard_normal(scores.shape)
    gram = RBF(width=3.0)(X).astype(np.float32)
    assert _fit(Ridge(gram[None], scores, np.ones(len(X))), None)[1] < _LAMBDAS[0]
    assert _fit(Ridge(gram[None], noise, np.ones(len(X))), None)[1] == _LAMBDAS[0]


@pytest.mark.parametrize(("gain", "position"), [(0.02, 3), (0.005, 0)])
def test_a_smaller_regularization_must_be_worth_it(gain, position):
    """A leave-one-out error that is smaller by less than 1 % is not."""

    class FallingRidge:
        def combined(self, weights):
            return None

        def leave_one_out(self, combined, regularization, groups):
            return (1.0 - gain) ** _LAMBDAS.index(regularization), regularization

    assert _fit(FallingRidge(), None) == (_LAMBDAS[position],) * 2


# ---- weights ---------------------------------------------------------------------------------


def test_a_weight_is_as_many_rows():
    """Of a fit; leave-one-out leaves out the whole of a row, and medians count rows once."""
    X, scores = table()
    counts = np.random.default_rng(0).integers(1, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), counts)
    gram = RBF(width=3.0)(X).astype(np.float32)
    found, _ = _fit(Ridge(gram[None], scores, counts.astype(float)), 1e-3)
    every = gram[np.ix_(repeated, repeated)][None]
    again, _ = _fit(Ridge(every, scores[repeated], np.ones(len(repeated))), 1e-3)
    expected = np.zeros_like(found)
    np.add.at(expected, repeated, again)
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_the_scale_of_weights_changes_nothing():
    X, scores = table()
    weights = np.random.default_rng(0).uniform(0.3, 2.0, len(X))
    found = [learn_metric(X, scores, factor * weights).scales for factor in (1.0, 100.0)]
    np.testing.assert_allclose(*found, atol=1e-3)
    equal = [learn_metric(X, scores, given).scales for given in (None, np.full(len(X), 2.0))]
    np.testing.assert_allclose(*equal, atol=1e-3)


def test_rows_of_little_weight_have_little_say():
    X, scores = table(60)
    wrong, weights = scores.copy(), np.ones(60)
    wrong[40:] = np.random.default_rng(1).standard_normal((20, 2))
    weights[40:] = 1e-6
    found = learn_metric(X, wrong, weights).scales
    np.testing.assert_allclose(found, slow_metric(X, wrong, weights), atol=5e-3)
    assert np.abs(found - learn_metric(X[:40], scores[:40]).scales).max() < 0.1
    assert np.abs(found - learn_metric(X, wrong).scales).max() > 0.2


# ---- what it finds ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_columns_of_noise_fade(seed):
    X, scores = table(250, 20, seed)
    found = learn_metric(X, scores)
    assert found.scales.max() == 1.0
    assert found.scales[:3].min() > 0.3
    assert found.scales[3:].max() < 0.15
    assert found.importances.sum() == pytest.approx(1.0)
    assert found.importances[:3].sum() > 0.9


def test_the_order_of_rows_and_columns_changes_nothing():
    X, scores = table(80)
    found = learn_metric(X, scores).scales
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(80), rng.permutation(6)
    again = learn_metric(X[rows][:, columns], scores[rows]).scales
    np.testing.assert_allclose(again, found[columns], atol=1e-3)


def test_one_far_row_hides_no_column():
    X, scores = table(80)
    expected = learn_metric(X, scores).scales
    far = X.copy()
    far[5] += 1e8
    np.testing.assert_allclose(learn_metric(far, scores).scales, expected, atol=0.1)


@pytest.mark.filterwarnings("error")
def test_where_there_is_nothing_to_go_by_all_scales_are_1():
    X, scores = table()
    ones = np.ones(6)
    for rows, columns in [
        (np.full_like(X, 7.3), scores),
        (np.zeros_like(X), scores),
        (X, np.ones_like(scores)),
        (X[:1], scores[:1]),
    ]:
        np.testing.assert_array_equal(learn_metric(rows, columns).scales, ones)


def test_one_column_and_constant_columns():
    X, scores = table()
    np.testing.assert_array_equal(learn_metric(X[:, :1], scores).scales, [1.0])
    X[:, 4] = 3.0
    found = learn_metric(X, scores).scales
    assert found[4] == 0.0
    kept = np.delete(np.arange(6), 4)
    np.testing.assert_allclose(learn_metric(X[:, kept], scores).scales, found[kept], atol=1e-3)


def test_what_is_given_stays_as_it_is():
    X, scores = table()
    weights = np.full(len(X), 0.5)
    before = X.copy(), scores.copy(), weights.copy()
    learn_metric(X, scores, weights)
    for now, then in zip((X, scores, weights), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_strengths_are_powers():
    metric = Metric(np.array([1.0, 0.25, 0.0]))
    np.testing.assert_array_equal(metric.of_strength(0.0), [1.0, 1.0, 1.0])
    np.testing.assert_allclose(metric.of_strength(0.5), [1.0, 0.5, 0.0])
    np.testing.assert_allclose(metric.of_strength(1.0), metric.scales)
    np.testing.assert_allclose(metric.importances, [16 / 17, 1 / 17, 0.0])
