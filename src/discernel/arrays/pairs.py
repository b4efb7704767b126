"""Distances and inner products of all pairs of rows, exact far from the origin too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.utils.extmath import safe_sparse_dot

from discernel.arrays.loops import DIFFERENCES, DISTANCES, Factors, compiled_loops
from discernel.arrays.machine import free_threads, in_threads
from discernel.arrays.rows import (
    DRAWN_ROWS,
    FieldState,
    FloatArray,
    as_rows,
    draw_rows,
    is_sparse,
    typical_row,
)

#: One over the share of the rows that are near neighbours of one: more groups are not seen.
_NEAR_SHARE = 16
#: A row is far out if its squared distance from the origin is above this many times that of near
#: neighbours: rounding is then about 1e-12 of the latter.
_FAR = 1e3
#: Numbers, and squared distances by a product, that differ by less than this share of their terms
#: are the same up to rounding.
ROUNDING, SQUARED_ROUNDING = 1e-15, 1e-12
#: Entries that are computed anew at a time.
_BLOCK_ENTRIES = 2**18


def _near_distance(X: FloatArray) -> float:
    """Return the squared distance of near neighbours, of at most 64 rows; 0 if those are equal.

    Of near ones and not of any, because rows may come in groups far from each other. Too few rows
    to tell have none: 0, with which all of their distances are computed with care.
    """
    drawn = draw_rows(X, DRAWN_ROWS)
    rank = len(drawn) // _NEAR_SHARE
    if rank == 0:
        return 0.0
    distances = cdist(drawn, drawn, "sqeuclidean")
    near = np.partition(distances, rank, axis=1)[:, rank]
    near = np.sort(near[near > 0])
    return float(near[len(near) // 4]) if len(near) else 0.0


def squared_distances(X: Any, Z: Any | None = None) -> FloatArray:
    """Return ‖x − z‖² for all rows of X and Z, dense or CSR; exactly 0 on the diagonal of X, X."""
    X, Z = as_rows(X), None if Z is None or Z is X else as_rows(Z)
    if not is_sparse(X) and not is_sparse(Z):
        other = None if Z is None else ShiftedRows.of(Z)
        return ShiftedRows.of(X, other).squared_distances(other)
    return np.asarray(euclidean_distances(X, Z, squared=True), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ShiftedRows(FieldState):
    """Dense rows x − o, each followed by 1 and ‖x − o‖²: all that squared distances need of them.

    ‖x‖² − 2⟨x, z⟩ + ‖z‖² loses the digits that all rows share, so a typical row o is taken off
    first. Two rows that are both far from it still share digits. Where there are such rows, their
    distances are those of the rows as they were given.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features + 2)
        The rows.
    origin : ndarray of shape (n_features,)
        What was taken off, o; nothing from a single feature, which needs no products.
    limit : float
        The ‖x − o‖² above which a row is far out.
    given : ndarray of shape (n_rows, n_features) or None
        The rows x, where some are far out.
    """

    values: FloatArray
    origin: FloatArray
    limit: float
    given: FloatArray | None

    @classmethod
    def of(cls, X: Any, like: ShiftedRows | None = None) -> ShiftedRows:
        """Return rows less a typical one of them, or less the origin of others."""
        X = as_rows(X)
        if like is not None:
            origin, limit = like.origin, like.limit
        elif X.shape[1] == 1:
            origin, limit = np.zeros(1), np.inf
        else:
            origin, limit = typical_row(X), _FAR * _near_distance(X)
        values = np.empty((X.shape[0], X.shape[1] + 2))
        shifted = np.subtract(X, origin, out=values[:, :-2])
        values[:, -2] = 1.0
        norms = np.einsum("ij,ij->i", shifted, shifted, out=values[:, -1])
        return cls(values, origin, limit, X if (norms > limit).any() else None)

    def __getitem__(self, rows: slice) -> ShiftedRows:
        given = None if self.given is None else self.given[rows]
        return ShiftedRows(self.values[rows], self.origin, self.limit, given)

    def single(self) -> ShiftedRows:
        """Return the same rows, of single precision."""
        values: Any = self.values.astype(np.float32)
        return ShiftedRows(values, self.origin, self.limit, self.given)

    def squared_distances(
        self, other: ShiftedRows | None = None, out: FloatArray | None = None
    ) -> FloatArray:
        """Return ‖x − z‖² between these rows and others of the same origin, by one product.

        ‖x‖² − 2⟨x, z⟩ + ‖z‖² = ⟨(−2x, ‖x‖², 1), (z, 1, ‖z‖²)⟩. NumPy's product lets other threads
        run meanwhile; SciPy's does not.
        """
        right = self if other is None else other
        if len(self.origin) == 1:  # exact, and a fifth of the time
            distances = np.subtract(self.values[:, :1], right.values[:, 0], out=out)
            return np.asarray(np.square(distances, out=distances))
        distances = np.matmul(self._left(), right.values.T, out=out)
        np.maximum(distances, 0.0, out=distances)
        if self.given is not None and right.given is not None:
            _write_far(distances, self.given, self._far(), right.given, right._far())
        if other is None:
            np.fill_diagonal(distances, 0.0)
        return np.asarray(distances)

    def _left(self) -> FloatArray:
        """Return the rows (−2x, ‖x‖², 1)."""
        left = np.empty_like(self.values)
        np.multiply(self.values[:, :-2], -2.0, out=left[:, :-2])
        left[:, -2], left[:, -1] = self.values[:, -1], 1.0
        return left

    @cached_property
    def factors(self) -> Factors | None:
        """The arrays of which compiled loops make squared distances; None for far rows."""
        if self.given is not None:
            return None
        if len(self.origin) == 1:
            column = np.ascontiguousarray(self.values[:, :1])
            return Factors(DIFFERENCES, column, column)
        return Factors(DISTANCES, self._left(), np.ascontiguousarray(self.values))

    def rounding(self) -> FloatArray:
        """Return r with which ‖x − z‖² up to r(x) + r(z) may be the rounding of equal rows."""
        rounding = SQUARED_ROUNDING * self.values[:, -1]
        if self.given is not None:
            far = self._far()
            # Far rows are as given: what differs from the origin is rounded to its own size.
            varying = np.where(self.values[far, :-2] != 0, self.given[far], 0.0)
            rounding[far] = squared_norms(ROUNDING * varying)
        return np.asarray(rounding)

    def _far(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.values[:, -1] > self.limit)


def _write_far(
    distances: FloatArray,
    X: FloatArray,
    rows: NDArray[np.intp],
    Z: FloatArray,
    columns: NDArray[np.intp],
) -> None:
    """Write the squared distances between some rows of X and of Z, by differences, in blocks."""
    step = max(1, _BLOCK_ENTRIES // max(1, len(columns)))
    for start in range(0, len(rows) if len(columns) else 0, step):
        block = rows[start : start + step]
        distances[np.ix_(block, columns)] = cdist(X[block], Z[columns], "sqeuclidean")


#: Rows of X and of Z whose distances of the 1-norm are computed at a time: both stay in the cache.
_CITY_ROWS = 256


def city_distances(X: Any, Z: Any | None = None, out: FloatArray | None = None) -> FloatArray:
    """Return ‖x − z‖₁ = Σ |x_l − z_l| for all rows of X and Z, dense or CSR.

    No product gives them. By compiled loops they take as long as `squared_distances` with 20
    columns, by SciPy 5 times as long. But differences lose no digits, wherever the rows are. Those
    of dense rows are written to ``out``, C-contiguous, where it is given.
    """
    X, Z = as_rows(X), None if Z is None or Z is X else as_rows(Z)
    if is_sparse(X) or is_sparse(Z):
        return np.asarray(manhattan_distances(X, Z), dtype=np.float64)
    X = np.ascontiguousarray(X)
    other = X if Z is None else np.ascontiguousarray(Z)
    out = np.empty((len(X), len(other))) if out is None else out
    if X.shape[1] == 1:  # a third of the time
        return np.asarray(np.abs(np.subtract(X, other.T, out=out), out=out))
    loops = compiled_loops() if out.dtype == np.float64 else None

    def work(tile: tuple[slice, slice], _: object) -> None:
        rows, columns = tile
        here = out[rows, columns]
        if loops is not None:
            loops.city_distances(X[rows], other[columns], here)
        else:  # SciPy lets other threads run meanwhile; scikit-learn's DistanceMetric does not
            here[:] = cdist(X[rows], other[columns], "cityblock")
        if Z is None and rows != columns:
            out[columns, rows] = here.T

    if max(out.shape) <= _CITY_ROWS:
        work((slice(None), slice(None)), None)
        return out

    starts = [range(0, n, _CITY_ROWS) for n in out.shape]
    tiles = [
        (slice(top, top + _CITY_ROWS), slice(left, left + _CITY_ROWS))
        for top in starts[0]
        for left in starts[1]
        if Z is not None or left >= top
    ]
    in_threads(work, tiles, [None] * free_threads(max(out.shape)))
    return out


def inner_products(X: Any, Z: Any | None = None) -> FloatArray:
    """Return ⟨x, z⟩ for all rows of X and Z, dense or CSR."""
    X = as_rows(X)
    other = X if Z is None else as_rows(Z)
    return np.asarray(safe_sparse_dot(X, other.T, dense_output=True), dtype=np.float64)


def squared_norms(X: Any) -> FloatArray:
    """Return ‖x‖² for all rows of X, dense or CSR."""
    X = as_rows(X)
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X), dtype=np.float64)
