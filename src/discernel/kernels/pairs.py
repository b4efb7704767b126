"""Distances and inner products of what kernels see of rows, and kernels that are only called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import additive_chi2_kernel
from sklearn.preprocessing import normalize

from discernel.arrays import (
    FloatArray,
    ShiftedRows,
    as_dense,
    as_rows,
    city_distances,
    inner_products,
    is_sparse,
    n_rows,
    squared_distances,
    squared_norms,
    typical_row,
)
from discernel.exceptions import InvalidInputError
from discernel.kernels.expansion import (
    Array,
    Expansion,
    common_ranks,
    difference_sums,
    product_sums,
    sign_sums,
)
from discernel.kernels.terms import PairKind, View

__all__ = ["CHI_SQUARED", "CITY", "COSINE", "INNER", "SQUARED", "Called", "non_negative"]


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


class _Distance(PairKind):
    is_distance = True

    def diagonal(self, X: Any) -> FloatArray:
        return np.zeros(n_rows(X))


@dataclass(frozen=True)
class _Squared(_Distance):
    """‖x − z‖²."""

    kind = "squared"
    is_sum = True
    has_slopes = True

    def entries(self, X: Any, Z: Any | None = None) -> FloatArray:
        return squared_distances(X, Z)

    def rows(self, X: Any, like: Any | None = None) -> Any:
        return ShiftedRows.of(X, like)

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        rows: ShiftedRows = X
        return rows.squared_distances(Z, out)

    def slope_sums(self, view: View, expansion: Expansion) -> Callable[[slice, Array], Array]:
        coef, right = expansion.coef, as_rows(view.of(expansion.other))
        origin = typical_row(right)  # sums of differences lose the digits that all rows share
        right = (right - origin).astype(coef.dtype)
        left = right
        if expansion.Z is not None:
            left = (as_rows(view.of(expansion.X)) - origin).astype(coef.dtype)
        return lambda rows, slope: 2.0 * difference_sums(slope, coef, left[rows], right)

    def scale_slope(self, left: FloatArray, right: FloatArray, scale: float) -> FloatArray | None:
        return np.asarray(2.0 * scale * np.square(np.subtract.outer(left, right)))


@dataclass(frozen=True)
class _City(_Distance):
    """‖x − z‖₁."""

    kind = "city"
    is_sum = True
    has_slopes = True

    def entries(self, X: Any, Z: Any | None = None) -> FloatArray:
        return city_distances(X, Z)

    def rows(self, X: Any, like: Any | None = None) -> Any:
        return np.ascontiguousarray(as_rows(X))

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        return city_distances(X, Z, out)

    def slope_sums(self, view: View, expansion: Expansion) -> Callable[[slice, Array], Array]:
        columns = view.seen(expansion.X.shape[1]).columns
        Z = None if expansion.Z is None else expansion.Z[:, columns]
        left, right = common_ranks(expansion.X[:, columns], Z)
        return lambda rows, slope: sign_sums(slope, expansion.coef, left[:, rows], right)

    def scale_slope(self, left: FloatArray, right: FloatArray, scale: float) -> FloatArray | None:
        return np.asarray(np.abs(np.subtract.outer(left, right)))


@dataclass(frozen=True)
class _ChiSquared(_Distance):
    """Σ (x_l − z_l)² / (x_l + z_l)."""

    def rows(self, X: Any, like: Any | None = None) -> Any:
        return np.ascontiguousarray(non_negative(as_dense(as_rows(X)), "ChiSquared"))

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        return np.asarray(-additive_chi2_kernel(X, Z), dtype=np.float64)

    def scale_slope(self, left: FloatArray, right: FloatArray, scale: float) -> FloatArray | None:
        return self.tile(left[:, None], right[:, None], None)


@dataclass(frozen=True)
class _Inner(PairKind):
    """⟨x, z⟩."""

    kind = "inner"
    is_sum = True
    has_slopes = True

    def entries(self, X: Any, Z: Any | None = None) -> FloatArray:
        return inner_products(X, Z)

    def diagonal(self, X: Any) -> FloatArray:
        return squared_norms(X)

    def rows(self, X: Any, like: Any | None = None) -> Any:
        return as_rows(X)

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        return np.asarray(np.matmul(X, (X if Z is None else Z).T, out=out))

    def slope_sums(self, view: View, expansion: Expansion) -> Callable[[slice, Array], Array]:
        coef, right = expansion.coef, as_rows(view.of(expansion.other))
        right = right.astype(coef.dtype, copy=False)
        return lambda rows, slope: product_sums(slope, coef, right)


@dataclass(frozen=True)
class _Cosine(_Inner):
    """⟨x, z⟩ / (‖x‖ ‖z‖), and 0 with a row of zeros."""

    kind = "cosine"
    is_sum = False
    has_slopes = False

    def rows(self, X: Any, like: Any | None = None) -> Any:
        return normalize(as_rows(X))

    def entries(self, X: Any, Z: Any | None = None) -> FloatArray:
        return inner_products(self.rows(X), None if Z is None else self.rows(Z))

    def diagonal(self, X: Any) -> FloatArray:
        return (squared_norms(X) > 0).astype(np.float64)


SQUARED, CITY, CHI_SQUARED, INNER, COSINE = _Squared(), _City(), _ChiSquared(), _Inner(), _Cosine()


@dataclass(frozen=True)
class Called(PairKind):
    """The values of a kernel of which nothing more is known than that it can be called."""

    is_prepared = False

    kernel: Any

    def entries(self, X: Any, Z: Any | None = None) -> FloatArray:
        matrix: FloatArray = self.kernel(X, Z)
        expected = n_rows(X), n_rows(X if Z is None else Z)
        if matrix.shape != expected and not self.kernel.precomputed:
            raise InvalidInputError(
                f"{self.kernel.name} must return a matrix with one row per row of X and one column "
                f"per row of Z, here {expected}. Got shape {matrix.shape}."
            )
        return matrix

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        return self.entries(X, Z)

    def diagonal(self, X: Any) -> FloatArray:
        return np.asarray(self.kernel.diagonal(X))
