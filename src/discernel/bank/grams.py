"""Raw Gram matrices: checks, means, traces, inner products and normalization."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import Buffers, Cholesky, FloatArray, draw_rows, n_rows
from discernel.arrays.sample_weights import row_weights
from discernel.bank.tiles import Stored
from discernel.exceptions import (
    DroppedKernelWarning,
    InvalidGramError,
    InvalidInputError,
    NumericalError,
    listed,
    unknown_choice,
)
from discernel.kernels import Kernel
from discernel.kernels.evaluate import KernelSet

#: ``"centered_trace"``: the centred matrix has trace 1 [Ye08]_. ``"trace"``: the raw matrix has
#: trace n_samples [Kim06]_.
Normalization = Literal["centered_trace", "trace"]

#: A kernel whose centred trace is below this share of its trace is constant up to rounding, and its
#: centred matrix is noise.
CONSTANT = 1e-12
#: Ratio of raw and centred trace from which a kernel is centred before any product: products with
#: the raw matrix would lose as many digits.
CANCELLING = 1e3
#: Rounding error of ⟨B, GB⟩, relative to ‖B‖²·tr G. As |G_ij| ≤ √(G_iiG_jj), no sum of its terms is
#: larger than tr G, and errors of the terms have both signs.
_ROUNDING = 4 * np.finfo(np.float64).eps


def gram_stack(kernels: Sequence[Kernel], X: Any) -> FloatArray:
    """Return the raw Gram matrices, of shape (n_kernels, n_samples, n_samples)."""
    stack, evaluated = np.empty((len(kernels), n_rows(X), n_rows(X))), KernelSet(kernels)
    for position, matrix in evaluated.matrices(evaluated.prepare(X), buffers=Buffers()):
        stack[position] = matrix
    return stack


def row_means(grams: FloatArray) -> FloatArray:
    """Return the row means of a stack of matrices, without warnings for NaN and infinity."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(grams.mean(axis=-1))


def rounding_errors(traces: FloatArray, centered_traces: FloatArray) -> FloatArray:
    """Return bounds of the rounding errors of ⟨B, PG_iPB⟩, relative to ‖B‖².

    A kernel that is centred first loses only half of the digits: errors that the subtraction of row
    means leaves in the columns.
    """
    first = traces > CANCELLING * centered_traces
    lost = np.where(first, np.sqrt(np.abs(traces)) * np.sqrt(np.abs(centered_traces)), traces)
    return np.asarray(_ROUNDING * np.maximum(lost, centered_traces))


def inner_products(grams: FloatArray, *, centered: bool = True) -> FloatArray:
    """Return ⟨K_i, K_j⟩_F for all pairs of K_i = PG_iP, or of the raw G_i.

    A centred kernel that is constant up to rounding counts as 0. The cost is n_kernels² ·
    n_samples² operations. Blocks of rows are centred, without a centred copy of all matrices.
    ⟨G, G'⟩ − (2/m)(G1)ᵀ(G'1) + (1/m²)(1ᵀG1)(1ᵀG'1) is the same number without centring, but for a
    Gaussian kernel s times wider than the data it is a difference of terms that agree to 1/s⁴: for
    s = 3000 and 60 rows, the norm was wrong by 7 % (here 1e-12).
    """
    means = row_means(grams) if centered else np.zeros(grams.shape[:2])
    rows, factors = row_weights(None, grams.shape[1]), np.ones(len(grams))
    out = Stored(grams, grams.shape[1]).inner_products(means, rows, factors)
    if centered:
        constant = is_constant(grams)
        out[constant] = out[:, constant] = 0.0
    return out


def is_constant(grams: FloatArray) -> NDArray[np.bool_]:
    """Return which matrices of a stack are constant up to rounding."""
    traces = np.trace(grams, axis1=-2, axis2=-1)
    return np.asarray(traces - row_means(grams).sum(axis=-1) <= CONSTANT * np.abs(traces))


def varying_kernels(
    traces: FloatArray, centered_traces: FloatArray, names: Sequence[str], *, part: bool = False
) -> NDArray[np.intp]:
    """Return the positions of kernels that are not constant, and warn of the others.

    On a part of the training set, constant kernels are dropped without a warning, even if all are
    constant, because they vary on the other rows.
    """
    constant = centered_traces <= CONSTANT * np.abs(traces)
    if constant.all() and not part:
        raise InvalidInputError(
            "At least one kernel must vary over the training set, but all "
            f"{len(names)} are constant: {listed(names, form=str)}. Check the data for "
            "identical rows and the kernels for far too large widths."
        )
    if constant.any() and not part:
        dropped = [name for name, is_one in zip(names, constant, strict=True) if is_one]
        warnings.warn(
            f"Dropped because constant on the training set: {listed(dropped, form=str)}. Such a "
            "kernel cannot distinguish samples; use a smaller width or other columns.",
            DroppedKernelWarning,
            stacklevel=3,
        )
    return np.flatnonzero(~constant)


def kernel_scales(
    normalization: Normalization, n_samples: float, traces: FloatArray, centered_traces: FloatArray
) -> FloatArray:
    """Return the factors that normalize raw matrices with these traces."""
    if normalization not in get_args(Normalization):
        raise unknown_choice("normalization", normalization, list(get_args(Normalization)))
    centered = normalization == "centered_trace"
    return 1.0 / centered_traces if centered else n_samples / traces


# ---- checks ------------------------------------------------------------------------------------

#: Largest |G_ij − G_ji| that rounding explains, as a share of the largest |G_ij|.
_ASYMMETRY = 1e-8
#: A matrix is indefinite if an eigenvalue is below minus this share of its 1-norm, which bounds the
#: largest eigenvalue.
_INDEFINITE = 1e-6
#: Definiteness is checked on at most this many rows. A principal submatrix of a Gram matrix is a
#: Gram matrix, so a failure on some rows is proof. Other indefinite matrices are found by
#: `check_no_indefinite` after a factorization has failed.
CHECKED_ROWS = 400
#: Rows and columns of the tiles in the check of symmetry; two tiles fit into the cache.
_TILE = 128


def check_grams(
    grams: Any, names: Sequence[str] | None, trusted: Sequence[bool] | None
) -> tuple[FloatArray, list[str]]:
    """Return the stack as a float64 array and the names, or raise an error."""
    stack, names = check_stack(grams, names)
    check_values(stack, row_means(stack), names, trusted)
    return stack, names


def check_stack(grams: Any, names: Sequence[str] | None) -> tuple[FloatArray, list[str]]:
    """Return the stack as a float64 array and the names, or raise an error about their shape."""
    try:
        given = np.asarray(grams)
        if given.dtype.kind not in "biuf":
            raise ValueError(f"They hold values of type {given.dtype}.")
        stack = np.ascontiguousarray(given, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            "The Gram matrices must be one array of numbers of shape (n_kernels, n_samples, "
            f"n_samples), or a list of matrices of one shape. {error}"
        ) from error
    if stack.size == 0:
        raise InvalidInputError(
            f"There must be at least one kernel matrix. Got shape {stack.shape}."
        )
    if stack.ndim != 3 or stack.shape[1] != stack.shape[2]:
        hint = "Convert a stack with the kernels last by np.moveaxis(stack, -1, 0)."
        raise InvalidInputError(
            "The Gram matrices must have shape (n_kernels, n_samples, n_samples). Got "
            f"{stack.shape}. {'For one matrix K, pass K[None].' if stack.ndim == 2 else hint}"
        )
    if names is None:
        names = [f"kernel {i}" for i in range(len(stack))]
    elif len(names) != len(stack):
        raise InvalidInputError(
            f"There must be one name per kernel, that is {len(stack)}. Got {len(names)}."
        )
    return stack, list(names)


def check_values(
    stack: FloatArray,
    means: FloatArray,
    names: Sequence[str],
    trusted: Sequence[bool] | None,
) -> None:
    """Raise an error if a matrix is not finite or, unless trusted, not a Gram matrix.

    The row means, which are needed anyway, show whether all entries are finite.
    """
    for index, (gram, name) in enumerate(zip(stack, names, strict=True)):
        # The mean of a row with NaN or inf is not finite.
        if not np.isfinite(means[index]).all() and not np.isfinite(gram).all():
            row, column = np.argwhere(~np.isfinite(gram))[0]
            raise InvalidInputError(
                f"Kernel matrices must not contain NaN or infinity. {name} has "
                f"{gram[row, column]} at row {row}, column {column}. Clean or impute the data."
            )
        if trusted is None or not trusted[index]:
            check_symmetric(gram, name)
            _check_definite(gram, name, CHECKED_ROWS)


def check_no_indefinite(stack: FloatArray, names: Sequence[str]) -> None:
    """Raise `InvalidGramError` if a matrix of the stack is indefinite."""
    for gram, name in zip(stack, names, strict=True):
        _check_definite(gram, name, len(gram))


def check_symmetric(gram: Any, name: str, xp: Any = np, size: int = _TILE) -> None:
    """Raise an error if a matrix of the namespace ``xp`` is not symmetric, in tiles."""
    largest, worst, at = 0.0, 0.0, (0, 0)
    for top in range(0, gram.shape[0], size):
        for left in range(top, gram.shape[0], size):
            tile, mirror = _tile_and_mirror(gram, top, left, size)
            largest = max(largest, float(xp.max(xp.abs(tile))))
            difference = float(xp.max(xp.abs(tile - mirror)))
            if difference > worst:
                worst, at = difference, (top, left)
    # Comparisons with NaN are False; the bank reports NaN.
    if worst > _ASYMMETRY * largest:
        tile, mirror = _tile_and_mirror(gram, *at, size)
        first = int(xp.argmax(xp.reshape(xp.abs(tile - mirror), (-1,))))
        row, column = divmod(first, tile.shape[1])
        raise InvalidGramError(
            f"Kernel matrices must be symmetric. {name} has {float(tile[row, column]):.6g} at row "
            f"{at[0] + row}, column {at[1] + column} and {float(mirror[row, column]):.6g} at its "
            "mirror image. If the difference is only rounding, pass (K + K.T) / 2."
        )


def _tile_and_mirror(gram: Any, top: int, left: int, size: int) -> tuple[Any, Any]:
    rows, columns = (slice(at, min(at + size, gram.shape[0])) for at in (top, left))
    return gram[rows, columns], gram[columns, rows].T


def _check_definite(gram: FloatArray, name: str, max_rows: int) -> None:
    rows = draw_rows(np.arange(len(gram)), max_rows)
    gram = gram if len(rows) == len(gram) else gram[np.ix_(rows, rows)]
    # G + tI is positive definite exactly if no eigenvalue is below −t. A Cholesky factorization
    # is thirty times faster than the eigenvalues.
    tolerance = _INDEFINITE * float(np.abs(gram).sum(axis=0).max())
    shifted = gram.copy()
    shifted[np.diag_indices_from(shifted)] += tolerance
    try:
        Cholesky(shifted)
    except NumericalError:
        smallest, largest = scipy.linalg.eigvalsh(gram)[[0, -1]]
        if smallest >= -tolerance:
            return
        raise InvalidGramError(
            f"Kernel matrices must be positive semidefinite. {name} has the eigenvalue "
            f"{smallest:.6g} (its largest is {largest:.6g}). Clip the negative eigenvalues to 0, "
            "or use another kernel."
        ) from None
