"""Checks that matrices are Gram matrices, before any heavy work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg

from discernel.arrays import Cholesky, FloatArray, draw_rows
from discernel.bank.products import row_means
from discernel.exceptions import (
    InvalidGramError,
    InvalidInputError,
    NumericalError,
)

#: Largest |G_ij − G_ji| that rounding explains, as a share of the largest |G_ij|.
_ASYMMETRY = 1e-8
#: A matrix is clearly indefinite if an eigenvalue is below minus this share of its 1-norm, which
#: bounds the largest eigenvalue.
_INDEFINITE = 1e-6
#: Definiteness is checked on at most this many rows. A principal submatrix of a Gram matrix is a
#: Gram matrix, so what fails on some rows is proven to fail; what hides is found by
#: `check_no_indefinite` when a factorisation breaks down.
_CHECKED_ROWS = 400
#: Rows and columns of the tiles that are compared with their mirror images: both fit the cache.
_TILE = 128


def check_grams(
    grams: Any, names: Sequence[str] | None, trusted: Sequence[bool] | None
) -> tuple[FloatArray, list[str]]:
    """Return the stack as a float64 array and the names, or raise a clear error."""
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
        hint = "A stack with the kernels last is turned by np.moveaxis(stack, -1, 0)."
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
    """Raise a clear error if a matrix is not finite or, where not trusted, no Gram matrix.

    The row means are computed anyway, and tell without another pass whether all is finite.
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
            _check_definite(gram, name, _CHECKED_ROWS)


def check_no_indefinite(stack: FloatArray, names: Sequence[str]) -> None:
    """Raise `InvalidGramError` if a matrix of the stack is clearly indefinite, on all its rows."""
    for gram, name in zip(stack, names, strict=True):
        _check_definite(gram, name, len(gram))


def check_symmetric(gram: Any, name: str, xp: Any = np, size: int = _TILE) -> None:
    """Raise a clear error if a matrix of a library ``xp`` differs from its transpose.

    It is compared tile by tile, each pair once.
    """
    largest, worst, at = 0.0, 0.0, (0, 0)
    for top in range(0, gram.shape[0], size):
        for left in range(top, gram.shape[0], size):
            tile, mirror = _tile_and_mirror(gram, top, left, size)
            largest = max(largest, float(xp.max(xp.abs(tile))))
            difference = float(xp.max(xp.abs(tile - mirror)))
            if difference > worst:
                worst, at = difference, (top, left)
    # NaN is in no comparison; the bank finds it, and says where.
    if worst > _ASYMMETRY * largest:
        tile, mirror = _tile_and_mirror(gram, *at, size)
        first = int(xp.argmax(xp.reshape(xp.abs(tile - mirror), (-1,))))
        row, column = divmod(first, tile.shape[1])
        raise InvalidGramError(
            f"Kernel matrices must be symmetric. {name} has {float(tile[row, column]):.6g} at row "
            f"{at[0] + row}, column {at[1] + column} and {float(mirror[row, column]):.6g} at its "
            "mirror image. If the matrix is right but for rounding, pass (K + K.T) / 2."
        )


def _tile_and_mirror(gram: Any, top: int, left: int, size: int) -> tuple[Any, Any]:
    rows, columns = (slice(at, min(at + size, gram.shape[0])) for at in (top, left))
    return gram[rows, columns], gram[columns, rows].T


def _check_definite(gram: FloatArray, name: str, max_rows: int) -> None:
    rows = draw_rows(np.arange(len(gram)), max_rows)
    gram = gram if len(rows) == len(gram) else gram[np.ix_(rows, rows)]
    # G + tI is positive definite exactly if no eigenvalue is below −t: one Cholesky factorisation
    # where eigenvalues would cost thirty.
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
