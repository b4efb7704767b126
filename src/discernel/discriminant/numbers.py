"""Numbers predicted without their rows: expected errors, spreads and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from discernel.arrays import ALMOST_ZERO, FloatArray
from discernel.arrays.groups import Groups
from discernel.arrays.sample_weights import SampleWeights, effective_number
from discernel.discriminant.conformal import conformal_quantile

#: Intervals of R² and of errors are this much wider than those of independent rows. Over 400 fits
#: to 40 to 300 rows with normal errors, intervals contained R² in 91 % with 1.1, in 94 % with 1.2
#: and in 96 % with 1.3, and the error in 96 % with 1.15; that of 72 fits to nine data sets in 97 %.
_WIDER, _WIDER_ERRORS = 1.25, 1.15
#: Over n rows, what the margin of log ρ has besides: see `NumberExpectation`. Over 80 data sets
#: each, of 30 to 100 rows of noise and of R² = 0.04, intervals contained R² in 35 to 80 % without,
#: and with 5 in 93 to 96 %; those of 200 rows of R² = 0.6 were the same.
_PAIRS = 5.0
#: The largest logarithm of the factor to the end of an interval, where hardly a row counts.
_MOST_LOG = 20.0
#: The transformation of less skewed means is a shift.
_LEAST_SKEWNESS = 1e-6
#: With a skewness s of the mean squared error, its upper end is 1 + this s² times as many standard
#: errors away. Over 120 fits to 60 rows with lognormal errors (σ = 1), intervals contained 94 % of
#: the errors with it, 90 % without; normal errors have nearly the same ends with and without.
_LONG_TAIL = 1.5


@dataclass(frozen=True)
class NumberExpectation:
    """The errors to expect on new rows, from rows that were predicted without their targets.

    Of several targets, R² and error are means over the targets, as in scikit-learn.

    Attributes
    ----------
    r2 : float
        The share of the variance that predictions explain; 0 for predicting the mean.
    r2_low, r2_high : float
        An interval of 95 % for it; the errors of a group of rows vary together.
    rmse : float
        The root of the mean squared error, in units of the target.
    rmse_low, rmse_high : float
        An interval of 95 % for it.
    n_rows : int
        The number of rows.
    where : str
        How they were predicted.

    Notes
    -----
    With e the errors, the relative influence of a row on M = mean(e²) is e²/M − 1. Intervals use
    the standard deviation of influences, the effective number n of rows and Student's t. They are
    wider by 25 % for R² and by 15 % for the error: held-out rows share most of the rows that they
    are predicted from.

    Squared errors are skewed: if the few largest errors happen to be missing, both the mean and its
    standard error are too small, and a symmetric interval misses a larger error. The interval of
    M therefore inverts the transformation of [Hall92]_,
    g(T) = T + γT²/(3√n) + γ²T³/(27n) + γ/(6√n), of the studentized mean T with the skewness γ of
    the influences, which is nearly symmetric. Its upper end is 1 + 1.5γ²/n times as far: where
    tails are heavy, γ of few rows is too small. Errors that no row has cannot be foreseen: of 30
    rows with lognormal errors (σ = 1), one upper end in eight is too low.

    With d the deviations from the mean, R² = 1 − ρ and ρ = M/(M + S), S = mean(d²) − M being what
    predictions explain. If M changes by a factor h, ρ changes by h/(ρh + 1 − ρ), and if S changes
    by sM, ρ by −ρ²s. Both are nearly independent, S is not skewed, and an interval from
    the influences e²/M − d²/mean(d²) on ρ would be blind to missing large errors. Both changes
    vanish where predictions are near the mean; what is left there is what labels of rows do to the
    predictions of each other, of the order of 1/n. The margin of log ρ is the root of the sum of
    the squares of the three, that of log M of the last and its own. docs/measured.md says how often
    the intervals hold.

    References
    ----------
    .. [Hall92] P. Hall, On the removal of skewness by transformation, Journal of the Royal
       Statistical Society B 54, 1992.
    """

    r2: float
    r2_low: float
    r2_high: float
    rmse: float
    rmse_low: float
    rmse_high: float
    n_rows: int
    where: str

    def __repr__(self) -> str:
        return (
            f"R² {self.r2:z.3f} ({self.r2_low:z.3f} to {self.r2_high:z.3f}), root mean squared "
            f"error {self.rmse:.4g} ({self.rmse_low:.4g} to {self.rmse_high:.4g}), on "
            f"{self.n_rows:,} rows: {self.where}"
        )


@dataclass(frozen=True, eq=False)
class Spread:
    """How large errors are at new rows, relative to each other: exp(Σ_j k(x, z_j) coef_j + b).

    Attributes
    ----------
    coef : ndarray of shape (n_kept, n_targets)
        The coefficients of the learned kernel.
    intercept : ndarray of shape (n_targets,)
        b.
    limits : ndarray of shape (2, n_targets)
        The smallest and the largest logarithm at training rows. Those of new rows are not beyond.
    """

    coef: FloatArray
    intercept: FloatArray
    limits: FloatArray

    def of(self, logarithms: FloatArray) -> FloatArray:
        """Return the spreads of rows from their logarithms, within the limits."""
        return np.asarray(np.exp(np.clip(logarithms, *self.limits)))


class _Deviation(NamedTuple):
    """The deviation of a mean from that of new rows, relative to it.

    Attributes
    ----------
    error : float
        The standard error of the mean.
    skewness : float
        The skewness of the mean, γ/√n for n rows of skewness γ.
    quantile : float
        Half of the width of the interval of 95 %, in standard errors.
    n : float
        The effective number of rows or groups.
    """

    error: float
    skewness: float
    quantile: float
    n: float

    @property
    def margin(self) -> float:
        """Half of the width of the symmetric interval."""
        return min(self.quantile * self.error, _MOST_LOG)

    @property
    def skewed_ends(self) -> FloatArray:
        """The factors from the mean to the ends of its interval, by Hall's transformation."""
        s = self.skewness
        q = self.quantile * np.array([1.0, -1.0 - _LONG_TAIL * max(s, 0.0) ** 2])
        t = q - s / 6.0
        if abs(s) > _LEAST_SKEWNESS:  # else the limit, without rounding errors
            t = 3.0 / s * (np.cbrt(1.0 + s * t) - 1.0)
        return np.clip(1.0 - t * self.error, np.exp(-_MOST_LOG), np.exp(_MOST_LOG))


def _ends(logs: FloatArray, share: float, *margins: float) -> tuple[float, float]:
    """Return the factors to the ends of an interval from parts of the margins of its logarithm.

    Parameters
    ----------
    logs : ndarray of shape (2,)
        The ends of a part that is not symmetric.
    share : float
        The share of a row in the mean, which counts as `_PAIRS`.
    *margins : float
        Margins of symmetric parts.
    """
    parts = [np.linalg.norm([log, _PAIRS * share, *margins]) for log in logs]
    low, high = np.exp(np.minimum(parts, _MOST_LOG))
    return float(1.0 / low), float(high)


@dataclass(frozen=True, eq=False)
class HeldOutNumbers:
    """Targets of training rows, and their predictions by kernels and fits without the row.

    Attributes
    ----------
    truth, predicted : ndarray of shape (n_rows, n_targets)
        The targets and their predictions.
    spreads : ndarray of shape (n_rows, n_targets)
        How large errors are at each row, relative to each other, by fits without the row.
    weights : ndarray of shape (n_rows,)
        The sample weights.
    where : str
        How they were predicted, in words.
    groups : ndarray of shape (n_rows,) or None
        The codes of their groups; None without groups.
    """

    truth: FloatArray
    predicted: FloatArray
    spreads: FloatArray
    weights: FloatArray
    where: str
    groups: NDArray[np.intp] | None = None

    @property
    def expectation(self) -> NumberExpectation:
        """The errors to expect on new rows."""
        weights = SampleWeights(self.weights)
        squares = (self.truth - self.predicted) ** 2
        deviations = (self.truth - weights.means(self.truth.T)) ** 2
        errors, variances = (
            np.maximum(weights.means(each.T), ALMOST_ZERO) for each in (squares, deviations)
        )
        shares, roots = errors / variances, np.sqrt(errors)
        share, root = float(shares.mean()), float(roots.mean())
        relative = squares / errors - 1.0
        most, least = self._share_ends(shares, relative, (deviations - squares) / variances)
        r2 = (1.0 - share, 1.0 - least, 1.0 - most)
        of_error = self._deviation((roots * relative).mean(axis=1) / root, _WIDER_ERRORS)
        low, high = (
            root * factor for factor in _ends(0.5 * np.log(of_error.skewed_ends), 0.5 / of_error.n)
        )
        return NumberExpectation(*r2, root, low, high, len(self.truth), self.where)

    def _share_ends(
        self, shares: FloatArray, errors: FloatArray, explained: FloatArray
    ) -> tuple[float, float]:
        """Return the ends of the interval of the mean over targets of the unexplained shares ρ.

        Parameters
        ----------
        shares : ndarray of shape (n_targets,)
            ρ.
        errors, explained : ndarray of shape (n_rows, n_targets)
            The squared error of each row, relative to its mean, less 1; and what the prediction of
            the row explains, relative to the variance.
        """
        share, within = float(shares.mean()), np.minimum(shares, 1.0)
        of_errors, of_rest = (
            self._deviation((shares * (part - part_mean)).mean(axis=1) / share, _WIDER)
            for part, part_mean in ((errors, 0.0), (explained, 1.0 - shares))
        )
        factors = of_errors.skewed_ends[:, None]
        changed = (shares * factors / (within * factors + 1.0 - within)).mean(axis=1) / share
        low, high = _ends(np.log(changed), 1.0 / of_rest.n, of_rest.margin)
        return share * low, share * high

    def _deviation(self, parts: FloatArray, wider: float) -> _Deviation:
        """Return how far the mean of parts of rows, which is 0, may be from that of new rows."""
        weights = SampleWeights(self.weights)
        n, shares = weights.effective, weights.shares
        variance, third = shares @ parts**2 / n, shares @ parts**3 / n**2
        if self.groups is not None:
            groups = Groups(self.groups)
            n = effective_number(groups.sums(self.weights))
            sums = groups.sums(shares * parts)
            variance, third = sums @ sums, sums**2 @ sums
        error = float(np.sqrt(variance))
        skewness = float(third) / error**3 if error**3 > 0 else 0.0
        quantile = wider * float(student.ppf(0.975, max(n - 1.0, 1.0)))
        return _Deviation(error, skewness, quantile, n)

    @property
    def scales(self) -> FloatArray:
        """The root mean square of errors divided by spreads, of each target."""
        ratios = ((self.truth - self.predicted) / self.spreads) ** 2
        return np.sqrt(SampleWeights(self.weights).means(ratios.T))

    def radii(self, coverage: float) -> FloatArray:
        """Return the conformal quantile of errors divided by spreads, of each target."""
        ratios = np.abs(self.truth - self.predicted) / self.spreads
        groups = None if self.groups is None else Groups(self.groups)
        return np.array([conformal_quantile(r, coverage, self.weights, groups) for r in ratios.T])
