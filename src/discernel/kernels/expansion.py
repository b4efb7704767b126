"""Gradients of kernel expansions f(x) = Σ_j c_j k(x, z_j), and derivatives by column scales."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from discernel.arrays import Device, FloatArray, as_dense, as_host, as_rows, is_sparse
from discernel.exceptions import InvalidInputError
from discernel.kernels.terms import Array, Atom, Bases, Key, PreparedRows, Terms, View, keys_of

#: Number of entries of the largest temporary array.
_BLOCK_ENTRIES = 2**21


@dataclass(frozen=True, eq=False)
class Expansion:
    """Kernel expansion f_c(x) = Σ_j coef_jc k(x, z_j) at rows x, in blocks of rows.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows x.
    Z : ndarray of shape (n_rows_Z, n_features) or None
        The rows z; None if they are the rows of X.
    coef : ndarray of shape (n_rows_Z, n_outputs)
        The coefficients. Gradients have the same precision.
    blocks : tuple of slice
        Blocks of rows of X.
    device : Device or None
        The device to compute on; None for NumPy.
    """

    X: Array
    Z: Array | None
    coef: Array
    blocks: tuple[slice, ...]
    device: Device | None = None

    @classmethod
    def of(cls, X: Any, coef: Any, Z: Any, device: Device | None = None) -> Expansion:
        """Check the arguments of a user, and keep single precision if all of them have it."""
        if is_sparse(X) or is_sparse(Z):
            raise InvalidInputError(
                "Gradients of kernels need dense rows. Got sparse rows; use X.toarray()."
            )
        X, coef, Z = _floats(X), _floats(coef), None if Z is None or Z is X else _floats(Z)
        coef = coef[:, None] if coef.ndim == 1 else coef
        n, m = len(X), len(X if Z is None else Z)
        if coef.ndim != 2 or len(coef) != m:
            raise InvalidInputError(
                f"There must be one row of coefficients per row of Z (of X without Z), here {m}. "
                f"Got shape {coef.shape}."
            )
        dtype = np.result_type(X, coef, X if Z is None else Z)
        step = max(1, _BLOCK_ENTRIES // max(1, m, X.shape[1] * coef.shape[1]))
        blocks = tuple(slice(a, min(a + step, n)) for a in range(0, n, step))
        return cls(X, Z, coef.astype(dtype, copy=False), blocks, device)

    @property
    def other(self) -> Array:
        """The rows z."""
        return self.X if self.Z is None else self.Z

    @property
    def xp(self) -> Any:
        """The array namespace of the computation."""
        return np if self.device is None else self.device.xp

    @property
    def is_single(self) -> bool:
        """Whether gradients have single precision."""
        return bool(self.coef.dtype == np.float32)

    def put(self, array: Array) -> Any:
        """Copy a NumPy array to the device, in the precision of the gradients."""
        if self.device is None:
            return self.cast(array)
        return self.device.put(array, single=self.is_single)

    def cast(self, array: Any) -> Any:
        """Convert an array of NumPy to the precision of the gradients; keep arrays of a device."""
        return array if self.device is not None else array.astype(self.coef.dtype, copy=False)


def _floats(values: Any) -> Array:
    """Convert to an array of double precision; keep arrays of single precision."""
    found = np.asarray(values)
    return found if found.dtype == np.float32 else found.astype(np.float64, copy=False)


def gradients(kernel: Any, expansion: Expansion) -> Iterator[tuple[slice, Array]]:
    """Yield the blocks of rows and their gradients.

    By the chain rule, a gradient is the derivative of the kernel by each pairwise matrix, times
    the derivative of the matrix by each column. Terms with the same pairwise matrix share the
    second factor. The gradients of a block have shape (n_outputs, n_rows_of_block, n_features).
    """
    terms = kernel.terms()
    keys = keys_of(terms)
    if not all(pair.is_sum for pair, _ in keys):
        raise NotImplementedError(
            f"{kernel!r} has no gradient by its rows. Supported are RBF, Exponential, Laplace, "
            "Linear and Polynomial, also on columns, standardized, named, scaled, added or "
            "multiplied."
        )
    n_columns = expansion.X.shape[1]
    seen = {(pair, view): view.seen(n_columns) for pair, view in keys}
    sums = {(pair, view): pair.slope_sums(view, expansion) for pair, view in keys}
    left = right = PreparedRows.of(keys, expansion.other)
    if expansion.Z is not None:
        left = PreparedRows.of(keys, expansion.X, right)
    if expansion.device is not None:
        left, right = (x.on(expansion.device, single=expansion.is_single) for x in (left, right))
    for rows in expansion.blocks:
        total: Any = 0.0
        bases = left[rows].pairwise(keys, right)
        for (pair, _), base in bases.items():
            if expansion.Z is None and pair.is_distance:
                np.fill_diagonal(base[:, rows], 0.0)
        for key, (slope, factor) in pair_slopes(terms, bases, expansion.xp).items():
            part = as_host(sums[key](rows, expansion.cast(slope)))
            part *= (factor * seen[key].slopes(expansion.X[rows])).astype(part.dtype)
            if not np.array_equal(seen[key].columns, np.arange(n_columns)):
                some, part = part, np.zeros((*part.shape[:2], n_columns), dtype=part.dtype)
                part[:, :, seen[key].columns] = some
            total = part if len(keys) == 1 else total + part
        yield rows, total


def squared_gradient(kernel: Any, expansion: Expansion, row_weights: Any = None) -> FloatArray:
    """Return the mean over the rows x of Σ_c (∂f_c/∂x_l)², of shape (n_features,)."""
    n, total = len(expansion.X), np.zeros(expansion.X.shape[1])
    counts = np.ones(n) if row_weights is None else np.asarray(row_weights, dtype=np.float64)
    for rows, block in gradients(kernel, expansion):
        total += counts[rows] @ np.einsum("cil,cil->il", block, block)
    return total / float(counts.sum())


def pair_slopes(terms: Terms, bases: Bases, xp: Any = np) -> dict[Key, tuple[Any, float]]:
    """Return the derivatives by the pairwise matrices, each as a matrix and a factor."""

    @cache
    def value(atom: Atom) -> Any:
        return atom.function(bases[atom.key], xp)

    found: dict[Key, tuple[Any, float]] = {}
    for factor, atoms in terms:
        for place, atom in enumerate(atoms):
            slope, by = atom.function.slope(bases[atom.key], xp)
            for other in (*atoms[:place], *atoms[place + 1 :]):
                slope = slope * value(other)
            if atom.key in found:
                before, times = found[atom.key]
                slope, by = times * before + factor * by * slope, 1.0 / factor
            found[atom.key] = slope, factor * by
    return found


def scale_derivative(kernel: Any, column: int, X: Any, Z: Any | None) -> FloatArray:
    """Return the derivative of a kernel matrix by the scale of one column."""
    terms = kernel.terms()
    (pair, view), *others = keys_of(terms)
    *before, (step, by) = view.steps or [("", ())]
    is_scaled = step == "scales"
    plain, columns = View(tuple(before)) if is_scaled else view, []
    for rows in (X, X if Z is None else Z):
        rows = as_rows(plain.of(rows))
        if not 0 <= column < rows.shape[1]:
            raise InvalidInputError(
                f"The column must be one of 0 to {rows.shape[1] - 1}, as the rows have "
                f"{rows.shape[1]}. Got {column!r}."
            )
        columns.append(as_dense(rows[:, [column]]))
    if pair.homogeneity is None or others:
        raise NotImplementedError(
            f"{kernel!r} has no column scales. Supported are RBF, Exponential and Laplace, also on "
            "columns, standardized, named or scaled."
        )
    bases = {(pair, view): pair.entries(*view.of_both(X, Z))}
    slope, factor = pair_slopes(terms, bases)[pair, view]
    power, scale = pair.homogeneity, by[column] if is_scaled else 1.0
    change = power * scale ** (power - 1) * pair.entries(*columns)
    return np.asarray(factor * slope * change)
