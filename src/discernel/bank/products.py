"""Frobenius products of kernel matrices, centred without making centred copies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import tiles
from discernel.bank.tiles import Stored

__all__ = [
    "CANCELLING",
    "CONSTANT",
    "centered_twice",
    "centering_of_inner",
    "constant_by_traces",
    "grand_means",
    "inner_products",
    "is_constant",
    "rounding_errors",
    "row_means",
    "traces_of",
    "weighted_sums",
]

#: A kernel whose centred trace is below this share of its trace is constant up to rounding, and
#: what centring leaves of it is noise.
CONSTANT = 1e-12
#: Raw trace over centred trace from which on a kernel is centred before anything is done with it:
#: products with the raw matrix would lose these digits.
CANCELLING = 1e3
#: Rounding error of ⟨B, GB⟩ over ‖B‖²·tr G. As |G_ij| ≤ √(G_iiG_jj), no sum of its terms is larger
#: than tr G; errors of the terms have both signs.
_ROUNDING = 4 * np.finfo(np.float64).eps


def row_means(grams: FloatArray, weights: SampleWeights | None = None) -> FloatArray:
    """Return the means of the rows of a stack of matrices; not finite where they are not."""
    with np.errstate(invalid="ignore", over="ignore"):
        if weights is not None:
            return np.asarray(grams @ weights.shares)
        return np.asarray(grams.mean(axis=-1))


def traces_of(grams: FloatArray, weights: SampleWeights | None = None) -> FloatArray:
    """Return the traces of matrices, of rows that count as often as they weigh."""
    if weights is None:
        return np.asarray(np.trace(grams, axis1=-2, axis2=-1))
    return weighted_sums(np.diagonal(grams, axis1=-2, axis2=-1), weights)


def weighted_sums(numbers: FloatArray, weights: SampleWeights | None) -> FloatArray:
    """Return the sums over the last axis, whose entries belong to rows."""
    return np.asarray(numbers.sum(axis=-1) if weights is None else numbers @ weights.values)


def centered_twice(gram: FloatArray, weights: SampleWeights | None = None) -> FloatArray:
    """Return PGP of a matrix whose centred part is small beside it, symmetric, as a copy.

    Numbers that are close are subtracted without error. What is wrong with the computed means
    is the same in a whole row or column, and the second time it goes too.
    """
    matrix = gram - row_means(gram, weights)[:, None]
    for _ in range(2):
        if weights is None:
            matrix -= matrix.mean(axis=0)
            matrix -= matrix.mean(axis=1, keepdims=True)
        else:
            matrix -= weights.shares @ matrix
            matrix -= row_means(matrix, weights)[:, None]
    return np.ascontiguousarray(0.5 * (matrix + matrix.T))


def rounding_errors(traces: FloatArray, centered_traces: FloatArray) -> FloatArray:
    """Return how much ⟨B, PG_iPB⟩ can be wrong, over ‖B‖², for kernels of some raw traces.

    Of a kernel that was centred first only the square root of the digits is lost: those that
    taking off the means of the rows leaves in the columns.
    """
    first = traces > CANCELLING * centered_traces
    lost = np.where(first, np.sqrt(np.abs(traces * centered_traces)), traces)
    return np.asarray(_ROUNDING * np.maximum(lost, centered_traces))


def centering_of_inner(
    means: FloatArray, row_sums: FloatArray, weights: SampleWeights | None = None
) -> FloatArray:
    """Return what ⟨PG_iP, S⟩ is more than ⟨G_i, S⟩, from row means of the G_i and row sums of S.

    −2(G1)ᵀs + (1ᵀG1)·mean(s), s the row means of S: nothing is centred. With weights, the means
    of rows of G are weighted, and S is that which G meets, DSD.
    """
    if weights is not None:
        s = row_sums
        return np.asarray((means @ weights.shares) * s.sum() - 2.0 * means @ s)
    sums, s = means.shape[1] * means, row_sums / means.shape[1]
    return np.asarray(sums.sum(axis=1) * s.mean() - 2.0 * sums @ s)


def inner_products(
    grams: FloatArray,
    means: FloatArray | None = None,
    *,
    centered: bool = True,
    weights: SampleWeights | None = None,
) -> FloatArray:
    """Return ⟨K_i, K_j⟩_F of all pairs, of shape (n_kernels, n_kernels).

    Parameters
    ----------
    grams : ndarray of shape (n_kernels, n_samples, n_samples)
        The raw matrices G_i, symmetric.
    means : ndarray of shape (n_kernels, n_samples), optional
        Their row means, where they are known.
    centered : bool, default=True
        Whether K_i = PG_iP or G_i. A centred kernel that is constant up to rounding counts as 0.
    weights : SampleWeights, optional
        How much rows count, with which K_i = D C G_i Cᵀ D or D G_i D.

    Notes
    -----
    n_kernels² · n_samples² operations. Some rows of all matrices are centred at a time, so no
    centred copy is made. ⟨G, G'⟩ − (2/m)(G1)ᵀ(G'1) + (1/m²)(1ᵀG1)(1ᵀG'1) is the same number
    without any centring, but of a Gaussian kernel s times wider than the data it is a difference
    of terms that agree to 1/s⁴. At s = 3000, 60 rows, its length was off by 7 %; here by 1e-12.
    """
    if not centered:
        means = np.zeros(grams.shape[:2])
    elif means is None:
        means = row_means(grams, weights)
    out = tiles.inner_products(Stored(grams, grams.shape[1]), means, weights)
    if centered:
        constant = is_constant(grams, means, weights)
        out[constant] = out[:, constant] = 0.0
    return out


def grand_means(means: FloatArray, weights: SampleWeights | None) -> FloatArray:
    """Return the means of all entries of matrices from those of their rows."""
    return np.asarray(means.mean(axis=1) if weights is None else means @ weights.shares)


def is_constant(
    grams: FloatArray, means: FloatArray | None = None, weights: SampleWeights | None = None
) -> NDArray[np.bool_]:
    """Return which matrices of a stack are constant up to rounding, by their row means."""
    traces = traces_of(grams, weights)
    means = row_means(grams, weights) if means is None else means
    centered_traces = traces - weighted_sums(means, weights)
    return constant_by_traces(traces, centered_traces)


def constant_by_traces(traces: FloatArray, centered_traces: FloatArray) -> NDArray[np.bool_]:
    """Return which matrices are constant up to rounding, by their raw and centred traces."""
    return np.asarray(centered_traces <= CONSTANT * np.abs(traces))
