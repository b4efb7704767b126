"""Intervals and tests of differences between methods, over splits and over data sets.

Splits of one data set share most of their training rows, so their results are not independent,
and the ordinary t-test reports differences that do not exist. The correction of [Nadeau03]_ adds
the ratio of held-out to training rows to the variance of a mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from discernel.arrays import FloatArray
from discernel.exceptions import InvalidInputError

#: The significance level of tests; intervals have the confidence 1 − ALPHA.
ALPHA = 0.05
#: Relative spread of results below which differences are rounding errors: shares of rows and their
#: means are exact to a few units in the last place.
_ROUNDING = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Interval:
    """A mean over splits, its confidence interval, and, for a difference, its significance.

    Attributes
    ----------
    mean : float
        The mean.
    low, high : float
        Ends of the interval; NaN with fewer than two splits.
    n : int
        The number of splits.
    p_value : float
        Two-sided p-value of a test that the mean is 0; NaN without a test.
    """

    mean: float
    low: float
    high: float
    n: int
    p_value: float = math.nan


@dataclass(frozen=True)
class RankTest:
    """Mean ranks over data sets, and a test of their differences.

    Attributes
    ----------
    ranks : ndarray of shape (n_methods,)
        Mean rank of each method; 1 is best.
    statistic, p_value : float
        F statistic of Iman and Davenport, and its p-value.
    critical_difference : float
        Smallest significant difference of mean ranks, by the Nemenyi test.
    """

    ranks: FloatArray
    statistic: float
    p_value: float
    critical_difference: float


def corrected_error(values: Any, ratio: float) -> float:
    """Return the standard error of a mean over overlapping splits.

    Parameters
    ----------
    values : array-like of shape (n_splits,)
        One number per split.
    ratio : float
        Held-out rows over training rows: 1 / (k − 1) for k folds. NaN if unknown.

    Returns
    -------
    float
        √(s² (1/J + ratio)) for J splits of variance s² [Nadeau03]_; for repeated
        cross-validation J counts all folds of all repetitions [Bouckaert04]_. NaN for J < 2 or a
        ratio of NaN.

    Examples
    --------
    >>> round(corrected_error([0.90, 0.94, 0.92, 0.96], ratio=0.25), 4)
    0.0183
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
        raise InvalidInputError(
            "There must be one finite number per split, at least one. Got "
            f"{values.tolist() if values.size < 10 else values.shape}."
        )
    if ratio <= 0:
        raise InvalidInputError(
            "The ratio of held-out to training rows must be positive, for example 0.25 if 80 % of "
            f"the rows train. Got {ratio!r}."
        )
    if len(values) < 2:
        return math.nan
    values = _without_rounding(values, np.abs(values).max())
    # The mean of equal values may still differ from them by a rounding error.
    variance = 0.0 if np.ptp(values) == 0 else float(np.var(values, ddof=1))
    return math.sqrt(variance * (1.0 / len(values) + ratio))


def corrected_interval(values: Any, ratio: float) -> Interval:
    """Return the mean over overlapping splits and its 95 % confidence interval.

    Parameters
    ----------
    values : array-like of shape (n_splits,)
        One number per split.
    ratio : float
        Held-out rows over training rows.

    Returns
    -------
    Interval
        The mean ± t × `corrected_error`, t with J − 1 degrees of freedom.

    Examples
    --------
    >>> found = corrected_interval([0.90, 0.94, 0.92, 0.96], ratio=0.25)
    >>> round(found.low, 3), round(found.mean, 3), round(found.high, 3)
    (0.872, 0.93, 0.988)
    """
    error, n = corrected_error(values, ratio), len(values)
    mean = math.fsum(values) / n  # the same whatever the order of the splits
    reach = error * float(stats.t.ppf(1.0 - ALPHA / 2.0, n - 1)) if n > 1 else math.nan
    return Interval(mean, mean - reach, mean + reach, n)


def corrected_t_test(first: Any, second: Any, ratio: float) -> Interval:
    """Test whether two methods differ, from their results on the same splits [Nadeau03]_.

    Parameters
    ----------
    first, second : array-like of shape (n_splits,)
        Results of both methods, split by split.
    ratio : float
        Held-out rows over training rows.

    Returns
    -------
    Interval
        The difference, first minus second, and its p-value. If all differences are 0, the p-value
        is 1. If all have the same other value, the spread is unknown, and p-value and interval are
        NaN: accuracies are shares of few rows, so that a few splits often agree by chance. Values
        that differ only by rounding errors count as equal.

    Examples
    --------
    >>> test = corrected_t_test([0.95, 0.93, 0.96], [0.92, 0.91, 0.95], ratio=0.25)
    >>> round(test.mean, 3), round(test.p_value, 3)
    (0.02, 0.12)
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if first.shape != second.shape:
        raise InvalidInputError(
            "Both methods must have one result for each of the same splits. Got shapes "
            f"{first.shape} and {second.shape}."
        )
    size = max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0))
    differences = _without_rounding(first - second, size)
    found, error = corrected_interval(differences, ratio), corrected_error(differences, ratio)
    if math.isnan(error) or (error == 0.0 and found.mean != 0.0):
        return Interval(found.mean, math.nan, math.nan, found.n)
    statistic = found.mean / error if error > 0.0 else 0.0
    p_value = float(2.0 * stats.t.sf(abs(statistic), found.n - 1))
    return replace(found, p_value=p_value)


def holm(p_values: Any) -> FloatArray:
    """Return p-values corrected for multiple tests by the step-down method of [Holm79]_.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,)
        p-values; NaN stands for a test that could not be made, and is not counted.

    Returns
    -------
    ndarray of shape (n_tests,)
        Corrected p-values, to be compared with the level of a single test.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(p_values, dtype=float)
    adjusted = np.full(given.shape, np.nan)
    order = np.argsort(given)[: np.count_nonzero(~np.isnan(given))]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * given[order]))
    return adjusted


def rank_test(scores: Any) -> RankTest:
    """Rank methods on every data set and test whether their mean ranks differ.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        Mean results, larger is better; −inf is a failure and ranks last.

    Returns
    -------
    RankTest
        Ties share their mean rank. The Friedman test, corrected for ties, in the form of
        [Iman80]_, as recommended by [Demsar06]_.

    Examples
    --------
    >>> found = rank_test([[0.9, 0.8, 0.7], [0.95, 0.9, 0.9], [0.6, 0.5, 0.4]])
    >>> found.ranks.round(2).tolist()
    [1.0, 2.17, 2.83]
    """
    scores = np.asarray(scores, dtype=float)
    if scores.ndim != 2 or min(scores.shape) < 2 or np.isnan(scores).any():
        raise InvalidInputError(
            "The scores must have a row per data set and a column per method, at least two of "
            f"each, and no NaN. Got the shape {scores.shape}."
        )
    n_datasets, n_methods = scores.shape
    ranks = stats.rankdata(-scores, axis=1)
    means = ranks.mean(axis=0)
    middle = (n_methods + 1) / 2.0
    between = n_datasets * float(np.sum((means - middle) ** 2))
    total = float(np.sum((ranks - middle) ** 2))
    # The F statistic of a two-way analysis of variance of the ranks; all rows have the same mean.
    within = total - between
    if between <= 1e-12 * max(total, 1.0):
        statistic = 0.0
    elif within <= 1e-12 * total:
        statistic = math.inf
    else:
        statistic = (n_datasets - 1) * between / within
    freedom = (n_methods - 1, (n_methods - 1) * (n_datasets - 1))
    return RankTest(
        ranks=np.asarray(means),
        statistic=statistic,
        p_value=float(stats.f.sf(statistic, *freedom)),
        critical_difference=critical_difference(n_methods, n_datasets),
    )


def critical_difference(n_methods: int, n_datasets: int, *, alpha: float = ALPHA) -> float:
    """Return the smallest significant difference of mean ranks, by the Nemenyi test [Demsar06]_.

    Parameters
    ----------
    n_methods, n_datasets : int
        Numbers of methods and data sets.
    alpha : float, default=0.05
        The probability of reporting any difference if there is none.

    Returns
    -------
    float
        q √(k (k + 1) / 6N), where q is the quantile of the studentized range divided by √2.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    quantile = float(stats.studentized_range.ppf(1.0 - alpha, n_methods, np.inf)) / math.sqrt(2.0)
    return quantile * math.sqrt(n_methods * (n_methods + 1) / (6.0 * n_datasets))


def _without_rounding(values: FloatArray, size: float) -> FloatArray:
    """Return values; if they differ only by rounding errors, all equal to their median, or to 0.

    ``size`` is the magnitude of the numbers they were computed from: 79/80 − 78/80 and
    78/80 − 77/80 differ in the last digit of 79/80, not in their own last digit.
    """
    within = _ROUNDING * size
    if values.size == 0 or not np.ptp(values) <= within:
        return values
    middle = float(np.median(values))
    return np.full(values.shape, middle if abs(middle) > within else 0.0)
