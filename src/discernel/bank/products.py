"""Statistics of raw Gram matrices: means, traces, Frobenius products, and their normalisation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.bank.tiles import Stored
from discernel.exceptions import DroppedKernelWarning, InvalidInputError, unknown_choice

#: ``"centered_trace"``: the centred matrix has trace 1 [Ye08]_. ``"trace"``: the raw matrix has
#: trace n_samples [Kim06]_.
Normalization = Literal["centered_trace", "trace"]

#: A kernel whose centred trace is below this share of its trace is constant up to rounding, and
#: what centring leaves of it is noise.
CONSTANT = 1e-12
#: Raw trace over centred trace from which on a kernel is centred before anything is done with it:
#: products with the raw matrix would lose these digits.
CANCELLING = 1e3
#: Rounding error of ⟨B, GB⟩ over ‖B‖²·tr G. As |G_ij| ≤ √(G_iiG_jj), no sum of its terms is larger
#: than tr G; errors of the terms have both signs.
_ROUNDING = 4 * np.finfo(np.float64).eps


def row_means(grams: FloatArray) -> FloatArray:
    """Return the means of the rows of a stack of matrices; not finite where they are not."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(grams.mean(axis=-1))


def rounding_errors(traces: FloatArray, centered_traces: FloatArray) -> FloatArray:
    """Return how much ⟨B, PG_iPB⟩ can be wrong, over ‖B‖², for kernels of some raw traces.

    Of a kernel that was centred first only the square root of the digits is lost: those that
    taking off the means of the rows leaves in the columns.
    """
    first = traces > CANCELLING * centered_traces
    lost = np.where(first, np.sqrt(np.abs(traces * centered_traces)), traces)
    return np.asarray(_ROUNDING * np.maximum(lost, centered_traces))


def inner_products(grams: FloatArray, *, centered: bool = True) -> FloatArray:
    """Return ⟨K_i, K_j⟩_F of all pairs, of K_i = PG_iP or of the raw G_i.

    A centred kernel that is constant up to rounding counts as 0. n_kernels² · n_samples²
    operations. Some rows of all matrices are centred at a time, so no centred copy is made.
    ⟨G, G'⟩ − (2/m)(G1)ᵀ(G'1) + (1/m²)(1ᵀG1)(1ᵀG'1) is the same number without any centring, but of
    a Gaussian kernel s times wider than the data it is a difference of terms that agree to 1/s⁴.
    At s = 3000, 60 rows, its length was off by 7 %; here by 1e-12.
    """
    means = row_means(grams) if centered else np.zeros(grams.shape[:2])
    out = Stored(grams, grams.shape[1]).inner_products(means, None)
    if centered:
        constant = is_constant(grams)
        out[constant] = out[:, constant] = 0.0
    return out


def is_constant(grams: FloatArray) -> NDArray[np.bool_]:
    """Return which matrices of a stack are constant up to rounding, by their row means."""
    traces = np.trace(grams, axis1=-2, axis2=-1)
    return np.asarray(traces - row_means(grams).sum(axis=-1) <= CONSTANT * np.abs(traces))


def varying_kernels(
    traces: FloatArray, centered_traces: FloatArray, names: Sequence[str], *, part: bool = False
) -> NDArray[np.intp]:
    """Return the positions of kernels that are not constant; warn of those that are left out.

    On a part of the training set they are left out in silence, be it all of them: they vary on the
    rest.
    """
    constant = centered_traces <= CONSTANT * np.abs(traces)
    if constant.all() and not part:
        raise InvalidInputError(
            "At least one kernel must vary over the training set, but all "
            f"{len(names)} are constant: {', '.join(names)}. Check the data for "
            "identical rows and the kernels for far too large widths."
        )
    if constant.any() and not part:
        dropped = [name for name, is_one in zip(names, constant, strict=True) if is_one]
        warnings.warn(
            f"Left out because constant on the training set: {', '.join(dropped)}. Such a "
            "kernel tells no sample from another; use a smaller width or other columns.",
            DroppedKernelWarning,
            stacklevel=3,
        )
    return np.flatnonzero(~constant)


def kernel_scales(
    normalization: Normalization, n_samples: float, traces: FloatArray, centered_traces: FloatArray
) -> FloatArray:
    """Return the factors that normalise raw matrices of some traces."""
    if normalization not in get_args(Normalization):
        raise unknown_choice("normalization", normalization, list(get_args(Normalization)))
    centered = normalization == "centered_trace"
    return 1.0 / centered_traces if centered else n_samples / traces
