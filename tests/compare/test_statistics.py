"""Tests and intervals against plain loops, SciPy and printed tables."""

import math

import numpy as np
import pytest
from scipy import stats

from discernel.compare.statistics import (
    corrected_error,
    corrected_interval,
    corrected_t_test,
    critical_difference,
    holm,
    rank_test,
)
from discernel.exceptions import InvalidInputError


@pytest.fixture
def rng():
    return np.random.default_rng(3)


# ---- over splits ------------------------------------------------------------------------------


def test_corrected_error_is_the_formula_of_nadeau_and_bengio(rng):
    values, ratio = rng.random(7).tolist(), 0.25
    mean = sum(values) / 7
    variance = sum((value - mean) ** 2 for value in values) / 6
    assert corrected_error(values, ratio) == pytest.approx(math.sqrt((1 / 7 + ratio) * variance))


def test_without_overlap_the_test_and_interval_are_the_ordinary_ones(rng):
    first, second = rng.random((2, 9))
    test = corrected_t_test(first, second, 1e-12)
    known = stats.ttest_rel(first, second)
    assert test.p_value == pytest.approx(known.pvalue)
    ends = known.confidence_interval(0.95)
    assert (test.low, test.high) == pytest.approx((ends.low, ends.high))


def test_the_correction_scales_t_and_keeps_its_degrees_of_freedom(rng):
    first, second = rng.random((2, 10))
    test = corrected_t_test(first, second, 0.25)
    t = stats.ttest_rel(first, second).statistic * math.sqrt(0.1 / (0.1 + 0.25))
    assert test.p_value == pytest.approx(2 * stats.t.cdf(-abs(t), 9))
    assert (test.p_value < 0.05) == (test.low * test.high > 0)


def test_correlated_differences_are_called_clear_at_the_level_asked_for(rng):
    """With the correlation that the correction supposes, t is exactly Student's."""
    ratio, n = 0.25, 10
    rho = ratio / (1 + ratio)
    shared, own = rng.normal(size=(2000, 1)), rng.normal(size=(2000, n))
    differences = math.sqrt(rho) * shared + math.sqrt(1 - rho) * own
    corrected = [corrected_t_test(row, np.zeros(n), ratio).p_value < 0.05 for row in differences]
    ordinary = stats.ttest_1samp(differences, 0.0, axis=1).pvalue < 0.05
    assert np.mean(corrected) == pytest.approx(0.05, abs=0.015)
    assert np.mean(ordinary) > 0.2


def test_equal_results_are_no_difference_and_a_constant_one_cannot_be_judged():
    assert corrected_t_test([0.9, 0.8, 0.7], [0.9, 0.8, 0.7], 0.25).p_value == 1.0
    constant = corrected_t_test([0.75, 0.75], [0.5, 0.5], 0.25)
    assert np.isnan(constant.p_value)
    assert constant.mean == 0.25
    assert corrected_error([0.1] * 3, 0.25) == 0.0


@pytest.mark.parametrize("ratio", [0.25, 1.0])
def test_a_spread_of_rounding_errors_is_no_spread(ratio):
    """79/80 − 78/80 and 78/80 − 77/80 are the same number, but for the last digit of 79/80."""
    first, second = np.array([79, 78]) / 80, np.array([78, 77]) / 80
    assert np.ptp(first - second) > 0
    for a, b in ((first, second), (second, first), (100 * first, 100 * second)):
        test = corrected_t_test(a, b, ratio)
        assert test.mean == pytest.approx(a[0] - b[0])
        unknown = [test.p_value, test.low, test.high]
        assert np.isnan(unknown).all()
    thirds = np.array([0.1 + 0.2, 0.3, 0.3])
    same = corrected_t_test(thirds, np.full(3, 0.3), ratio)
    assert (same.mean, same.p_value) == (0.0, 1.0)
    assert corrected_error(thirds, ratio) == 0.0


def test_a_small_spread_that_rounding_does_not_explain_is_one():
    """One row of a million more or less, over two splits."""
    first, second = np.array([999_001, 999_002]) / 1e6, np.array([998_000, 998_000]) / 1e6
    test = corrected_t_test(first, second, 0.25)
    assert 0.0 < test.p_value < 0.01
    assert test.low < 0.0010015 < test.high


def test_one_split_says_nothing():
    interval = corrected_interval([0.9], 0.25)
    assert interval.mean == 0.9
    assert interval.n == 1
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert math.isnan(corrected_t_test([0.9], [0.8], 0.25).p_value)


@pytest.mark.parametrize("values", [[], [0.9, np.nan], [[0.9, 0.8]]])
def test_values_that_cannot_work_are_refused(values):
    with pytest.raises(InvalidInputError, match="one finite number per split"):
        corrected_interval(values, 0.25)


def test_parameters_that_cannot_work_are_refused():
    with pytest.raises(InvalidInputError, match="ratio of held-out to training rows"):
        corrected_error([0.9, 0.8], 0.0)
    with pytest.raises(InvalidInputError, match="same splits"):
        corrected_t_test([0.9, 0.8], [0.9], 0.25)


# ---- several tests -------------------------------------------------------------------------------


def test_holm_rejects_what_its_steps_reject(rng):
    """Step by step: the smallest against α/m, the next against α/(m − 1), until one is kept."""
    for _ in range(50):
        p_values = rng.random(6) ** 3
        adjusted = holm(p_values)
        for alpha in (0.01, 0.05, 0.3):
            rejected = set()
            for step, i in enumerate(np.argsort(p_values)):
                if p_values[i] >= alpha / (6 - step):
                    break
                rejected.add(i)
            assert set(np.flatnonzero(adjusted < alpha)) == rejected


def test_holm_does_not_count_tests_that_could_not_be_made():
    adjusted = holm([0.02, np.nan, 0.01])
    assert adjusted[[0, 2]].tolist() == [0.02, 0.02]
    assert np.isnan(adjusted[1])
    assert holm([]).size == 0


# ---- over data sets ------------------------------------------------------------------------------


def plain_anova(ranks):
    """The F of methods in a two-way analysis of variance, in loops."""
    n, k = ranks.shape
    mean = ranks.mean()
    between = sum(n * (ranks[:, j].mean() - mean) ** 2 for j in range(k))
    within = sum(
        (ranks[i, j] - ranks[i].mean() - ranks[:, j].mean() + mean) ** 2
        for i in range(n)
        for j in range(k)
    )
    return (between / (k - 1)) / (within / ((k - 1) * (n - 1)))


@pytest.mark.parametrize("ties", [False, True])
def test_rank_test_is_that_of_friedman_in_the_form_of_iman_and_davenport(rng, ties):
    scores = rng.random((12, 4)) + 0.2 * np.arange(4)
    scores = scores.round(1) if ties else scores
    found = rank_test(scores)
    chi2 = stats.friedmanchisquare(*scores.T).statistic
    assert found.statistic == pytest.approx(11 * chi2 / (12 * 3 - chi2))
    assert found.p_value == pytest.approx(stats.f.sf(found.statistic, 3, 33))
    assert found.statistic == pytest.approx(plain_anova(stats.rankdata(-scores, axis=1)))


def test_the_best_score_has_rank_one_and_ties_share():
    found = rank_test([[0.9, 0.8, 0.8], [0.7, 0.9, -math.inf]])
    assert found.ranks.tolist() == [1.5, 1.75, 2.75]


def test_only_ties_are_no_difference_and_agreement_is_the_clearest():
    assert rank_test(np.ones((4, 3))).p_value == 1.0
    agreed = rank_test(np.tile([0.9, 0.8, 0.7], (5, 1)))
    assert agreed.statistic == math.inf
    assert agreed.p_value == 0.0


def test_two_methods_can_be_ranked():
    scores = np.array([[2, 1], [2, 1], [2, 1], [2, 1], [1, 2]])
    assert rank_test(scores).statistic == pytest.approx(plain_anova(3.0 - scores))


@pytest.mark.parametrize(
    ("alpha", "quantiles"),
    [
        (0.05, [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]),
        (0.10, [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ],
)
def test_critical_difference_has_the_quantiles_printed_by_demsar(alpha, quantiles):
    for k, quantile in enumerate(quantiles, start=2):
        found = critical_difference(k, 10, alpha=alpha) / math.sqrt(k * (k + 1) / 60)
        assert found == pytest.approx(quantile, abs=1e-3)


@pytest.mark.parametrize("scores", [[[0.9, 0.8]], [[0.9], [0.8]], [[0.9, np.nan], [1, 1]]])
def test_scores_that_cannot_be_ranked_are_refused(scores):
    with pytest.raises(InvalidInputError, match="a row per data set and a column per method"):
        rank_test(scores)
