"""How much each row counts.

With weights ω, π = ω/Σω, D = diag(√ω) and C = I − 1πᵀ, whatever is learned from a kernel matrix G
and columns T of all rows is learned from D C G Cᵀ D and D C T. D C = (I − rrᵀ/Σω) D with r = √ω, so
that r takes the place of the ones, and Σω that of the number of samples.

Weights are relative: their scale changes nothing, whether they are whole numbers or not, and a row
that is left out is left out with all of its weight. Whatever depends on how much is known, such as
intervals and standard errors, has the effective number of rows (Σω)²/Σω² in place of their number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays.rows import FloatArray
from discernel.exceptions import InvalidInputError

#: Weights below this share of the largest count as 0: nothing in double precision would notice
#: them, and their roots are divided by.
_LEAST = 1e-30


@dataclass(frozen=True)
class SampleWeights:
    """The weights of rows, all above 0.

    Attributes
    ----------
    values : ndarray of shape (n_samples,)
        ω, how much a row counts.
    """

    values: FloatArray

    @classmethod
    def of(cls, given: FloatArray) -> SampleWeights | None:
        """Return numbers above 0, of any scale, as weights of mean 1; None where all are equal."""
        if (given == given[0]).all():
            return None
        _check_ratio(given)
        scaled = given / given.max()  # so that no sum overflows
        return cls(scaled / scaled.mean())

    @cached_property
    def roots(self) -> FloatArray:
        """The vector r = √ω."""
        return np.asarray(np.sqrt(self.values))

    @cached_property
    def total(self) -> float:
        """Σω; of all rows, their number."""
        return float(self.values.sum())

    @cached_property
    def effective(self) -> float:
        """The effective number of rows, (Σω)²/Σω²: as many of equal weight know as much."""
        return effective_number(self.values)

    @cached_property
    def shares(self) -> FloatArray:
        """π = ω/Σω."""
        return np.asarray(self.values / self.total)

    def subset(self, rows: NDArray[np.intp]) -> SampleWeights:
        """Return the weights of some of the rows."""
        return replace(self, values=self.values[rows])

    def sums(self, numbers: FloatArray) -> FloatArray:
        """Return the sums over the last axis, whose entries belong to rows."""
        return np.asarray(numbers @ self.values)

    def means(self, numbers: FloatArray) -> FloatArray:
        """Return the means over the last axis, whose entries belong to rows."""
        return np.asarray(numbers @ self.shares)

    def center(self, columns: FloatArray) -> FloatArray:
        """Take their means off columns, or off those of every matrix of a stack, in place."""
        columns -= self.means(columns.swapaxes(-1, -2))[..., None, :]
        return columns

    def project(self, columns: FloatArray) -> FloatArray:
        """Return columns V, which have the weights of rows, less their part along r: DCD⁻¹V."""
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
    """Rows that all count 1: what weights do, without the operations."""

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
    """Return weights, equal ones where None are given."""
    return EqualWeights(np.ones(n_samples)) if weights is None else weights


def effective_number(weights: FloatArray) -> float:
    """Return how many rows of equal weight know as much as these, (Σω)²/Σω²."""
    return float(weights.sum() ** 2 / (weights @ weights))


def check_sample_weight(sample_weight: Any, n_samples: int) -> FloatArray:
    """Return weights as an array of numbers, or raise a clear error.

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
            f"{type(sample_weight).__name__} of which NumPy says: {error}"
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
            f"{weights[bad[0]]} for row {bad[0]}. Leave such rows out, or give them the weight 0."
        )
    if not weights.any():
        raise InvalidInputError(
            "Sample weights must contain at least one non-zero number. Got 0 for all "
            f"{n_samples} rows. Leave sample_weight out to have all rows count the same."
        )
    _check_ratio(weights[weights > 0])
    return np.where(weights < _LEAST * weights.max(), 0.0, weights)


def _check_ratio(weights: FloatArray) -> None:
    """Raise a clear error if the ratio of some weights above 0 is no double."""
    largest, smallest = weights.max(), weights.min()
    if smallest / largest == 0:
        raise InvalidInputError(
            "Weights above 0, of rows and of classes together, must have a ratio of at most 1e300 "
            f"or so, which is a double. Got {largest:.3g} and {smallest:.3g}. Give the rows with "
            "the smallest ones the weight 0."
        )
