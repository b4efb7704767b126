"""Which candidate is chosen: what is less simple must be clearly better."""

import numpy as np
import pytest

from discernel.default import comparison
from discernel.default.choose import choose
from discernel.default.comparison import FoldComparison
from discernel.default.cross_fit import CrossFit, clearly_better
from discernel.default.menu import MENU
from discernel.default.metric import Metric, learn_metric
from discernel.default.sample import draw_sample
from discernel.discriminant import row_losses
from discernel.exceptions import NumericalError
from discernel.programs import loo
from discernel.programs.loo import pull_to_equal
from tests.default.tables import few_matter, make_sample, make_target

EQUAL = np.full(MENU.n_kernels, 1.0 / MENU.n_kernels)


@pytest.mark.parametrize(
    ("gains", "shares", "expected"),
    [
        ([1.0, 1.0, 1.0, 1.0], [0.25] * 4, True),
        ([0.0, 0.0, 0.0, 0.0], [0.25] * 4, False),
        ([-1.0, -1.0, -1.0, -1.0], [0.25] * 4, False),
        # Deviations of 2 from the mean: a standard error of √(2²/80) = 0.2236, times 1 + 20/80.
        ([2.28, -1.72] * 40, [1 / 80] * 80, True),
        ([2.27, -1.73] * 40, [1 / 80] * 80, False),
        # A mean of 1, and √(0.9² · 0.1² + 0.1² · 0.9²) = 0.13, times 1 + 20/1.22.
        ([1.1, 0.1], [0.9, 0.1], False),
        ([2.6, 1.6], [0.9, 0.1], True),
    ],
)
def test_clearly_better_is_by_more_than_a_standard_error_the_more_the_fewer_rows(
    gains, shares, expected
):
    shares = np.array(shares)
    base = np.arange(float(len(gains)))
    assert clearly_better(base, base + gains, shares) is expected


@pytest.fixture(scope="module")
def few():
    """A sample in which few columns matter, and the metrics of its folds."""
    X, y = few_matter(160, 12)
    target = make_target("classes", X, y)
    sample = draw_sample(X, target, most=1000, n_folds=4, rng=np.random.RandomState(0))
    metrics = [
        learn_metric(sample.rows[outside], sample.scores[outside])
        for outside, _ in sample.divisions()
    ]
    return sample, metrics


@pytest.fixture(scope="module")
def candidates(few):
    return choose(FoldComparison(few[0]), few[1], pull=5.0).candidates


def losses_of(few, candidate):
    """Return what each row costs with a candidate, in double precision."""
    sample, metrics = few
    fit = CrossFit(sample, metrics, candidate.strength, dtype=np.float64)
    return fit.best(candidate.name, candidate.weights, (candidate.regularization,)).losses


def test_what_is_chosen_comes_first(few, candidates):
    sample, _ = few
    assert sorted((found.name, found.strength) for found in candidates) == [
        ("average", 0.0),
        ("average", 0.5),
        ("average", 1.0),
        ("weights", next(c.strength for c in candidates if c.name == "weights")),
    ]
    averages = {found.strength: found for found in candidates if found.name == "average"}
    best = averages[0.0]
    for strength in (0.5, 1.0):
        if clearly_better(
            losses_of(few, averages[strength]), losses_of(few, best), sample.weights.shares
        ):
            best = averages[strength]
    assert best.strength > 0  # here a metric helps
    learned = next(found for found in candidates if found.name == "weights")
    assert learned.strength == best.strength
    is_better = clearly_better(losses_of(few, learned), losses_of(few, best), sample.weights.shares)
    expected = learned if is_better else best
    assert candidates[0] is expected


def test_candidates_say_what_they_cost(few, candidates):
    sample, metrics = few
    for found in candidates:
        fit = CrossFit(sample, metrics, found.strength, dtype=np.float64)
        predicted = fit.predictor([found.weights] * len(fit.folds))(found.regularization)
        losses, right = row_losses(predicted, sample.scores, sample.target)
        np.testing.assert_allclose(losses_of(few, found), losses)
        assert found.error == pytest.approx(sample.weights.shares @ losses, rel=1e-3)
        assert found.accuracy == pytest.approx(sample.weights.shares @ right, abs=0.02)
        assert found.pull == 0.0


def test_losses_and_accuracies_are_means_by_the_weights_of_rows():
    given = np.where(np.arange(80) % 4 == 0, 30.0, 1.0)
    sample = make_sample(80, given=given)
    metrics = [Metric(np.ones(6)) for _ in range(sample.n_folds)]
    fit = CrossFit(sample, metrics, 0.0)
    found, losses, *_ = fit.best("average", EQUAL, (0.1,))
    weights = given[sample.positions]
    assert found.error == pytest.approx(np.average(losses, weights=weights))
    assert abs(found.error - losses.mean()) > 1e-3
    _, right = row_losses(
        fit.predictor([EQUAL] * len(fit.folds))(0.1), sample.scores, sample.target
    )
    assert found.accuracy == pytest.approx(np.average(right, weights=weights))


def test_weights_are_pulled_by_the_effective_number_of_rows(monkeypatch):
    seen = []

    def spy(weights, pull, n_samples):
        seen.append(n_samples)
        return pull_to_equal(weights, pull, n_samples)

    monkeypatch.setattr(loo, "pull_to_equal", spy)
    given = np.where(np.arange(60) % 6 == 0, 20.0, 1.0)
    sample = make_sample(given=given)
    metrics = [Metric(np.ones(6)) for _ in range(sample.n_folds)]
    fit = CrossFit(sample, metrics, 0.0, dtype=np.float64)
    fit.learn_weights(fit.best("average", EQUAL, (0.1,)).candidate, 5.0)
    np.testing.assert_allclose(seen, given.sum() ** 2 / (given @ given))


def test_weights_lie_on_the_simplex(candidates):
    for found in candidates:
        assert (found.weights >= 0).all()
        assert found.weights.sum() == pytest.approx(1.0)
    assert all(np.array_equal(c.weights, EQUAL) for c in candidates if c.name == "average")


def test_a_given_regularization_is_kept(few):
    for regularization in (0.1, 1e-8):  # the second is too small for single precision
        for found in choose(FoldComparison(few[0], regularization), few[1], pull=5.0).candidates:
            assert found.regularization == regularization
            assert np.isfinite(found.error)


def test_a_regularization_too_small_for_any_precision_is_refused(few):
    with pytest.raises(NumericalError, match="raise the regularization"):
        choose(FoldComparison(few[0], 1e-25), few[1], pull=5.0)


def test_more_of_a_metric_that_does_no_good_is_not_tried(few, monkeypatch):
    """Strengths are tried as long as the loss falls."""
    sample, metrics = few
    tried = []

    class SeenCrossFit(CrossFit):
        def __init__(self, sample, metrics, strength, **options):
            super().__init__(sample, metrics, strength, **options)
            if metrics is wrong:
                tried.append(strength)

    monkeypatch.setattr(comparison, "CrossFit", SeenCrossFit)
    wrong = [Metric(1.0 - metric.scales) for metric in metrics]  # what matters most is left out
    found = choose(FoldComparison(sample), wrong, pull=5.0).candidates
    assert [c.strength for c in found if c.name == "average"] == [0.0, 0.5]
    assert tried[:2] == [0.0, 0.5]
    assert 1.0 not in tried
    losses = {c.strength: c.error for c in found if c.name == "average"}
    assert losses[0.5] >= losses[0.0]


@pytest.mark.parametrize("start", [None, 1.0, 10.0**-5.5])
def test_the_search_for_lambda_finds_the_least_of_all(few, start):
    sample, metrics = few
    fit, lambdas = CrossFit(sample, metrics, 1.0), comparison.LAMBDAS
    start = None if start is None else min(lambdas, key=lambda lam: abs(np.log(lam / start)))
    found = fit.best("average", EQUAL, lambdas, start)
    losses = {}
    for regularization in lambdas:
        try:
            single = fit.best("average", EQUAL, (regularization,))
            losses[regularization] = single.candidate.error
        except NumericalError:
            continue
    assert found.candidate.error == pytest.approx(min(losses.values()), rel=1e-3)


def test_lambdas_that_break_down_are_passed_over(few):
    sample, metrics = few
    fit = CrossFit(sample, metrics, 0.0)
    tiny = (0.1, 1e-12, 1e-13, 1e-14, 1e-15)
    assert fit.best("average", EQUAL, tiny).candidate.regularization == 0.1
    assert fit.best("average", EQUAL, tiny, 1e-15).candidate.regularization == 0.1


@pytest.mark.parametrize("pull", [0.0, 5.0, 1e4])
def test_learned_weights_have_a_smaller_error_and_pull(few, candidates, pull):
    sample, metrics = few
    start = next(c for c in candidates if c.name == "average" and c.strength == 1.0)
    fit = CrossFit(sample, metrics, 1.0, dtype=np.float64)
    weights = fit.learn_weights(start, pull)

    def value(w):
        errors = sum(fold.error(w, start.regularization).value for fold in fit.folds)
        return errors / sample.scores.size + pull_to_equal(w, pull, len(sample.rows))

    assert value(weights) <= value(EQUAL)
    if pull < 100:
        assert value(weights) < 0.97 * value(EQUAL)
    else:
        np.testing.assert_allclose(weights, EQUAL, atol=1e-2)


def test_the_gradient_of_the_descent_is_that_of_its_value(few, candidates, monkeypatch):
    sample, metrics = few
    fit = CrossFit(sample, metrics, 1.0, dtype=np.float64)
    seen = {}

    def spy(function, x, **_):
        seen["function"] = function
        return type("Result", (), {"x": x})()

    monkeypatch.setattr(loo, "minimize", spy)
    fit.learn_weights(candidates[-1], 5.0)
    x = np.random.default_rng(0).standard_normal(MENU.n_kernels)
    _, found = seen["function"](x)
    expected = [
        (seen["function"](x + step)[0] - seen["function"](x - step)[0]) / 2e-5
        for step in 1e-5 * np.eye(len(x))
    ]
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max() + 1e-9)


def test_folds_use_the_metric_of_their_own(few):
    """The metric of one fold changes the predictions of no other."""
    sample, metrics = few
    other = [*metrics[:-1], Metric(metrics[-1].scales[::-1].copy())]
    first, second = (
        CrossFit(sample, given, 1.0).predictor([EQUAL] * sample.n_folds)(1e-2)
        for given in (metrics, other)
    )
    last = sample.folds == sample.n_folds - 1
    np.testing.assert_array_equal(first[~last], second[~last])
    assert np.abs(first[last] - second[last]).max() > 0.01


@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_other_targets_are_chosen_by_squared_errors(kind):
    sample = make_sample(90, kind=kind)
    metrics = [
        learn_metric(sample.rows[outside], sample.scores[outside])
        for outside, _ in sample.divisions()
    ]
    for found in choose(FoldComparison(sample), metrics, pull=5.0).candidates:
        assert found.accuracy is None
        fit = CrossFit(sample, metrics, found.strength, dtype=np.float64)
        predicted = fit.predictor([found.weights] * len(fit.folds))(found.regularization)
        expected = np.mean((predicted - sample.scores) ** 2, axis=1)
        assert found.error == pytest.approx(expected.mean(), rel=1e-3)
