"""Sample weights.

With weights ω, π = ω/Σω, D = diag(√ω) and C = I − 1πᵀ, a fit to a kernel matrix G and targets T
uses D C G Cᵀ D and D C T. Since D C = (I − rrᵀ/Σω) D with r = √ω, r replaces the vector of ones,
and Σω the number of samples.

Weights are relative: their scale has no effect, also for integers, and leaving out a row removes
all of its weight. Intervals and standard errors use the effective number of rows, (Σω)²/Σω².
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discernel.arrays.rows import FloatArray
from discernel.exceptions import InvalidInputError

#: Weights below this share of the largest are set to 0: they have no effect in double precision,
#: and results are divided by their square roots.
_LEAST = 1e-30
#: The least weight of all rows but one, relative to that of the one.
_LEAST_OTHERS = 1e-11


@dataclass(frozen=True, eq=False)
class SampleWeights:
    """Positive weights of rows.

    Attributes
    ----------
    values : ndarray of shape (n_samples,)
        The weights ω.
    """

    values: FloatArray
    #: Whether all weights are 1, so that nothing is computed with them.
    is_equal: ClassVar[bool] = False

    @staticmethod
    def of(given: FloatArray) -> SampleWeights:
        """Return positive numbers, scaled to weights of mean 1."""
        if (given == given[0]).all():
            return row_weights(None, len(given))
        _check_range(given)
        scaled = given / given.max()  # so that no sum overflows
        return SampleWeights(scaled / scaled.mean())

    @cached_property
    def roots(self) -> FloatArray:
        """The vector r = √ω."""
        return np.asarray(np.sqrt(self.values))

    @cached_property
    def total(self) -> float:
        """Σω, the number of rows if these are all rows."""
        return float(self.values.sum())

    @cached_property
    def effective(self) -> float:
        """The effective number of rows, (Σω)²/Σω²."""
        return effective_number(self.values)

    @cached_property
    def shares(self) -> FloatArray:
        """π = ω/Σω."""
        return np.asarray(self.values / self.total)

    def subset(self, rows: NDArray[np.intp]) -> SampleWeights:
        """Return the weights of some of the rows."""
        return replace(self, values=self.values[rows])

    def sums(self, numbers: FloatArray) -> FloatArray:
        """Return weighted sums over the last axis, the axis of rows."""
        return np.asarray(numbers @ self.values)

    def means(self, numbers: FloatArray) -> FloatArray:
        """Return weighted means over the last axis, the axis of rows."""
        return np.asarray(numbers @ self.shares)

    def center(self, columns: FloatArray) -> FloatArray:
        """Subtract the means of columns, also of the matrices of a stack, in place."""
        columns -= self.means(columns.swapaxes(-1, -2))[..., None, :]
        return columns

    def project(self, columns: FloatArray) -> FloatArray:
        """Return DCD⁻¹V: weighted columns V minus their projection on r."""
        return columns - self.roots[:, None] * (self.roots @ columns / self.total)

    def scale(self, columns: FloatArray) -> FloatArray:
        """Return DV, in the memory of V."""
        columns *= self.roots[:, None]
        return columns

    def unscale(self, columns: FloatArray) -> FloatArray:
        """Return D⁻¹V."""
        return columns / self.roots[:, None]

    def scale_both(self, columns: FloatArray) -> FloatArray:
        """Return DMD, in the memory of M."""
        columns *= self.roots
        return self.scale(columns)


class EqualWeights(SampleWeights):
    """Weights of 1, without the operations."""

    is_equal = True

    def sums(self, numbers: FloatArray) -> FloatArray:
        return np.asarray(numbers.sum(axis=-1))

    def means(self, numbers: FloatArray) -> FloatArray:
        return np.asarray(numbers.mean(axis=-1))

    def project(self, columns: FloatArray) -> FloatArray:
        return np.asarray(columns - columns.mean(axis=0))

    def scale(self, columns: FloatArray) -> FloatArray:
        return columns

    unscale = scale_both = scale


def row_weights(weights: SampleWeights | None, n_samples: int) -> SampleWeights:
    """Return the weights, or equal weights for None."""
    return EqualWeights(np.ones(n_samples)) if weights is None else weights


def effective_number(weights: FloatArray) -> float:
    """Return the effective number of rows, (Σω)²/Σω²; 0 for no rows."""
    return float(weights.sum() ** 2 / (weights @ weights)) if len(weights) else 0.0


def check_sample_weight(sample_weight: Any, n_samples: int) -> FloatArray:
    """Convert sample weights to an array, or raise an error.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,) or number
        At least 0, not all 0. A number is the weight of every row.
    n_samples : int
        The number of rows.
    """
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            "sample_weight must be numbers, one per row, or None. Got a "
            f"{type(sample_weight).__name__}; NumPy says: {error}"
        ) from error
    weights = np.full(n_samples, float(weights)) if weights.ndim == 0 else weights
    if weights.shape != (n_samples,):
        raise InvalidInputError(
            f"sample_weight must have one number per row, here shape ({n_samples},). Got shape "
            f"{weights.shape}."
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise InvalidInputError(
            "sample_weight must be finite and at least 0. Got "
            f"{weights[bad[0]]} for row {bad[0]}. Remove such rows, or set their weight to 0."
        )
    if not weights.any():
        raise InvalidInputError(
            "Sample weights must contain at least one non-zero number. Got 0 for all "
            f"{n_samples} rows. Leave sample_weight out for equal weights."
        )
    _check_range(weights[weights > 0])
    return np.where(weights < _LEAST * weights.max(), 0.0, weights)


def _check_range(weights: FloatArray) -> None:
    """Raise an error if the ratio of positive weights underflows, or one row has all weight."""
    largest, smallest = weights.max(), weights.min()
    if smallest / largest == 0:
        raise InvalidInputError(
            "Positive weights, of rows and classes together, must have a ratio of at most about "
            f"1e300. Got {largest:.3g} and {smallest:.3g}. Set the smallest weights to 0."
        )
    others = np.delete(weights, weights.argmax()) / largest
    share = others[others >= _LEAST].sum()
    if 0 < share < _LEAST_OTHERS:
        raise InvalidInputError(
            "The weights of all rows but one must be at least "
            f"{_LEAST_OTHERS:g} of the largest weight together: a kernel centred with them would "
            f"be rounding errors. Got {largest:.3g} for one row and {share * largest:.3g} "
            "for all others. Reduce the largest weight."
        )
