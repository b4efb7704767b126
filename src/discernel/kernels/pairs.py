"""Distances and inner products of what kernels see of rows, and kernels that are only called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import additive_chi2_kernel
from sklearn.preprocessing import normalize

from discernel.arrays import (
    Device,
    FloatArray,
    ShiftedRows,
    as_dense,
    as_rows,
    city_distances,
    free_threads,
    in_threads,
    inner_products,
    is_sparse,
    n_rows,
    squared_distances,
    squared_norms,
    typical_row,
)
from discernel.arrays.device import absolute_difference, squared_difference
from discernel.arrays.loops import ABSOLUTE, DIFFERENCES, PRODUCT, Factors
from discernel.exceptions import InvalidInputError
from discernel.kernels.expansion import Expansion
from discernel.kernels.terms import Array, OnDevice, PairKind, View

#: Signs that are made at a time, and the rows that a thread takes at a time: signs, and the ranks
#: they are made of, stay in the cache.
_SIGNS, _SIGN_ROWS = 2**17, 64


#: Of functions of squared distances, their steepness times the largest squared length of a row from
#: which on distances by products are too coarse for exports: their rounding is 1e-16 of this.
_COARSE = 1e4


def non_negative(X: Any, who: str) -> Any:
    """Return rows, dense or CSR, or raise an error that names the first negative number."""
    values = X.data if is_sparse(X) else X
    if values.size and values.min() < 0:
        where = np.argwhere(values < 0)[0]
        row = f" in row {where[0]}" if values.ndim == 2 else ""
        raise InvalidInputError(
            f"{who} needs counts or shares of at least 0. Got {values.min():g}{row}. Columns "
            "that were centred or standardised are none: give the raw ones."
        )
    return X


def check_shape(kernel: Any, matrix: FloatArray, expected: tuple[int, int]) -> FloatArray:
    """Return the matrix of a kernel, or raise an error if it has another shape than expected."""
    if matrix.shape != expected:
        raise InvalidInputError(
            f"{kernel.name} must return a matrix with one row per row of X and one column per row "
            f"of Z, here {expected}. Got shape {matrix.shape}."
        )
    return matrix


class _Constant(PairKind):
    """A pair without numbers of its own: one object, also after pickling, known by its identity."""

    #: The name of the object in this module.
    constant: ClassVar[str]

    def factors(self, rows: Any) -> Factors | None:
        if self.operation is None or is_sparse(rows) or not rows.flags.c_contiguous:
            return None
        return Factors(self.operation, rows, rows)

    def __reduce__(self) -> str:
        return self.constant

    def __repr__(self) -> str:
        return self.constant


class _Distance(_Constant):
    is_distance = True

    def diagonal(self, X: Any) -> FloatArray:
        return np.zeros(n_rows(X))


class _Squared(_Distance):
    """‖x − z‖²."""

    constant = "SQUARED"
    kind = "squared"
    is_sum = True
    operation = DIFFERENCES
    homogeneity = 2

    def rows(self, X: Any, like: Any | None = None) -> Any:
        X = as_rows(X)
        if is_sparse(X if like is None else like):
            return X
        return ShiftedRows.of(as_dense(X), like)

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        if is_sparse(X if Z is None else Z):
            return squared_distances(X, Z)
        rows: ShiftedRows = X
        return rows.squared_distances(Z, out)

    def single(self, rows: Any) -> ShiftedRows | None:
        return None if is_sparse(rows) or len(rows.origin) == 1 else rows.single()

    def factors(self, rows: Any) -> Factors | None:
        return None if is_sparse(rows) else rows.factors

    def put(self, rows: ShiftedRows, device: Device, single: bool) -> Any:
        values, given = rows.values, None
        left = np.column_stack([-2.0 * values[:, :-2], values[:, -1], values[:, -2]])
        # Of two far rows, and of single numbers, a product would lose what they share.
        if rows.given is not None or len(rows.origin) == 1:
            given = values[:, :1] if rows.given is None else rows.given - rows.origin
            given = device.put_columns(given, single=single)
        return OnDevice(device.put(left, single=single), device.put(values, single=single), given)

    def tile_on(self, device: Device, X: Any, Z: Any, single: bool) -> Any:
        (factors, _, left), (_, values, right) = X.arrays, Z.arrays
        if left is not None and right is not None:
            return device.column_sums(squared_difference, left, right)
        return device.xp.matmul(factors, values.T)

    def slope_sums(self, view: View, expansion: Expansion) -> Callable[[slice, Any], Any]:
        xp, coef, right = expansion.xp, expansion.put(expansion.coef), view.of(expansion.other)
        origin = typical_row(as_rows(right))  # sums of differences lose the digits that all share
        right = left = expansion.put(as_rows(right) - origin)
        if expansion.Z is not None:
            left = expansion.put(as_rows(view.of(expansion.X)) - origin)

        def sums(rows: slice, slope: Any) -> Any:
            # 2Σ_j s_ij c_j (x_il − z_jl) = 2(SC)∘X − 2S(C∘Z), by two products per output: no array
            # has three axes of rows and columns.
            totals, here = xp.matmul(slope, coef), left[rows, :]
            each = [slice(c, c + 1) for c in range(coef.shape[1])]
            parts = [totals[:, c] * here - xp.matmul(slope, coef[:, c] * right) for c in each]
            return 2.0 * xp.stack(parts)

        return sums

    def formula(self, X: Any, Z: FloatArray, xp: Any, steepness: float) -> Any | None:
        # Products of rows far from the origin lose the digits that all of them share.
        origin = typical_row(Z)
        X, Z = X - origin, np.ascontiguousarray(Z - origin)
        lengths = np.sum(Z**2, axis=1)
        if Z.shape[1] == 1 or not steepness * lengths.max() <= _COARSE:
            return xp.column_sums(squared_difference, X, Z)
        own = xp.sum(X**2, axis=1, keepdims=True)
        return xp.clip(own + lengths - xp.matmul(X, 2.0 * Z.T), min=0.0)


class _City(_Distance):
    """‖x − z‖₁."""

    constant = "CITY"
    operation = ABSOLUTE
    kind = "city"
    is_sum = True
    homogeneity = 1

    def rows(self, X: Any, like: Any | None = None) -> Any:
        X = as_rows(X)
        return X if is_sparse(X) else np.ascontiguousarray(X)

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        return city_distances(X, Z, out)

    def put(self, rows: FloatArray, device: Device, single: bool) -> Any:
        return OnDevice(device.put_columns(rows, single=single))

    def slope_sums(self, view: View, expansion: Expansion) -> Callable[[slice, Any], Any]:
        columns, xp = view.seen(expansion.X.shape[1]).columns, expansion.xp
        Z = None if expansion.Z is None else expansion.Z[:, columns]
        if expansion.device is None:
            left, right = _common_ranks(expansion.X[:, columns], Z)
            return lambda rows, slope: _sign_sums(slope, expansion.coef, left[:, rows], right)
        X, coef = expansion.put(expansion.X[:, columns]), expansion.put(expansion.coef)
        other = X if Z is None else expansion.put(Z)

        def sums(rows: slice, slope: Any) -> Any:
            each = [slice(c, c + 1) for c in range(len(columns))]
            signs = (xp.sign(X[rows, c] - other[:, c].T) for c in each)
            return xp.stack([xp.matmul(slope * sign, coef).T for sign in signs], axis=-1)

        return sums

    def formula(self, X: Any, Z: FloatArray, xp: Any, steepness: float) -> Any | None:
        return xp.column_sums(absolute_difference, X, Z)


def _common_ranks(X: Array, Z: Array | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the ranks of the values of every column, among those of X and Z; equal ones share one.

    Small integers of shape (n_columns, n_rows), the signs of whose differences are several times
    faster than those of floats.
    """
    values = X if Z is None else np.concatenate([X, Z])
    ranks = np.empty(values.shape[::-1], dtype=np.int16 if len(values) < 2**15 else np.int32)
    for column in range(values.shape[1]):
        ranks[column] = np.unique(values[:, column], return_inverse=True)[1]
    return ranks[:, : len(X)], ranks if Z is None else ranks[:, len(X) :]


def _sign_sums(slope: Array, coef: Array, left: NDArray[Any], right: NDArray[Any]) -> Array:
    """Return Σ_j slope_ij coef_jc sign(x_il − z_jl) of ranks of rows."""
    n_columns, (n, m) = len(left), slope.shape
    out = np.empty((coef.shape[1], n, n_columns), dtype=slope.dtype)
    step, across = max(1, _SIGNS // m), np.ascontiguousarray(coef.T)

    def work(job: tuple[slice, slice], _: object) -> None:
        columns, rows = job
        there = right[columns]
        signs, floats = np.empty_like(there), np.empty(there.shape, dtype=slope.dtype)
        weights = np.empty_like(across)
        for row in range(rows.start, min(rows.stop, n)):
            np.subtract(left[columns, row, None], there, out=signs)
            np.sign(signs, out=signs)
            np.copyto(floats, signs)
            np.multiply(slope[row], across, out=weights)
            out[:, row, columns] = np.matmul(weights, floats.T)

    jobs = [
        (slice(first, first + step), slice(top, top + _SIGN_ROWS))
        for first in range(0, n_columns, step)
        for top in range(0, n, _SIGN_ROWS)
    ]
    in_threads(work, jobs, [None] * free_threads(max(n, m)))
    return out


class _ChiSquared(_Distance):
    """Σ (x_l − z_l)² / (x_l + z_l)."""

    constant = "CHI_SQUARED"
    homogeneity = 1

    def rows(self, X: Any, like: Any | None = None) -> Any:
        return np.ascontiguousarray(non_negative(as_dense(as_rows(X)), "ChiSquared"))

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        return np.asarray(-additive_chi2_kernel(X, Z), dtype=np.float64)


class _Inner(_Constant):
    """⟨x, z⟩."""

    constant = "INNER"
    operation = PRODUCT
    kind = "inner"
    is_sum = True

    def diagonal(self, X: Any) -> FloatArray:
        return squared_norms(X)

    def rows(self, X: Any, like: Any | None = None) -> Any:
        return as_rows(X)

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        if is_sparse(X) or is_sparse(Z):
            return inner_products(X, Z)
        multiply = np.matmul if X.shape[1] > 1 else np.multiply  # a third of the time
        return np.asarray(multiply(X, (X if Z is None else Z).T, out=out))

    def slope_sums(self, view: View, expansion: Expansion) -> Callable[[slice, Any], Any]:
        xp, coef = expansion.xp, expansion.put(expansion.coef)
        right = expansion.put(as_rows(view.of(expansion.other)))
        weighted = [coef[:, c : c + 1] * right for c in range(coef.shape[1])]
        return lambda rows, slope: xp.stack([xp.matmul(slope, each) for each in weighted])

    def formula(self, X: Any, Z: FloatArray, xp: Any, steepness: float) -> Any | None:
        return xp.matmul(X, Z.T)


class _Cosine(_Inner):
    """⟨x, z⟩ / (‖x‖ ‖z‖), and 0 with a row of zeros."""

    constant = "COSINE"
    kind = "cosine"
    is_sum = False

    def rows(self, X: Any, like: Any | None = None) -> Any:
        return normalize(as_rows(X))

    def diagonal(self, X: Any) -> FloatArray:
        return (squared_norms(X) > 0).astype(np.float64)

    def formula_rows(self, X: Any, xp: Any) -> Any:
        length = xp.sqrt(xp.sum(X**2, axis=1, keepdims=True))
        return X / xp.where(length > 0, length, 1.0)


SQUARED, CITY, CHI_SQUARED, INNER, COSINE = _Squared(), _City(), _ChiSquared(), _Inner(), _Cosine()


@dataclass(frozen=True)
class Called(PairKind):
    """The values of a kernel of which nothing more is known than that it can be called."""

    is_prepared = False

    kernel: Any

    def entries(self, X: Any, Z: Any | None = None) -> FloatArray:
        matrix: FloatArray = self.kernel(X, Z)
        if self.kernel.precomputed:
            return matrix
        return check_shape(self.kernel, matrix, (n_rows(X), n_rows(X if Z is None else Z)))

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        return self.entries(X, Z)

    def diagonal(self, X: Any) -> FloatArray:
        return np.asarray(self.kernel.diagonal(X))
