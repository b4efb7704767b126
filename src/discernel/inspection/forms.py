"""What a kernel is column by column: a product of factors, a sum of terms, or neither."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.kernels import RBF, Kernel, Laplace, Linear, Standardized
from discernel.kernels.base import Named, Offset, Power, Product, Restricted, Scaled, Sum
from discernel.kernels.distance import DistanceKernel

__all__ = ["Form", "OtherForm", "ProductForm", "SumForm", "kernel_forms"]


@dataclass(frozen=True)
class ProductForm:
    """factor · Π_l exp(−squares_l (x_l − z_l)² − absolutes_l |x_l − z_l|).

    Attributes
    ----------
    factor : float
    squares, absolutes : ndarray of shape (n_columns,)
        0 for columns that the kernel does not see.
    """

    factor: float
    squares: FloatArray
    absolutes: FloatArray

    def exponents(self, x: FloatArray, Z: FloatArray) -> FloatArray:
        """Return minus the logarithm of the factor of every column between a row and rows.

        Parameters
        ----------
        x : ndarray of shape (n_columns,)
            A row.
        Z : ndarray of shape (n_rows, n_columns)
            Rows.

        Returns
        -------
        ndarray of shape (n_columns, n_rows)
            At least 0.
        """
        apart = np.abs((Z - x).T)
        return np.asarray(apart * (self.absolutes[:, None] + self.squares[:, None] * apart))

    @property
    def columns(self) -> NDArray[np.intp]:
        """The columns that the kernel sees."""
        return np.flatnonzero((self.squares > 0) | (self.absolutes > 0))


@dataclass(frozen=True)
class SumForm:
    """factor · Σ_l weights_l (x_l − origin_l)(z_l − origin_l).

    Attributes
    ----------
    factor : float
    weights, origin : ndarray of shape (n_columns,)
        Weights are 0 for columns that the kernel does not see.
    """

    factor: float
    weights: FloatArray
    origin: FloatArray


@dataclass(frozen=True)
class OtherForm:
    """A kernel of which nothing is known column by column."""

    kernel: Kernel


Form: TypeAlias = ProductForm | SumForm | OtherForm


def kernel_forms(kernel: Kernel, n_columns: int) -> list[Form]:
    """Return forms that add up to a kernel.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    n_columns : int
        The columns of the rows that it takes.
    """
    if isinstance(kernel, Named):
        return kernel_forms(kernel.kernel, n_columns)
    if type(kernel) is Sum:
        return kernel_forms(kernel.left, n_columns) + kernel_forms(kernel.right, n_columns)
    found = _visit(kernel, np.arange(n_columns), np.ones(n_columns), n_columns)
    return [OtherForm(kernel)] if found is None else list(found)


def _visit(
    kernel: Kernel, columns: NDArray[np.intp], by: FloatArray, n: int
) -> list[ProductForm | SumForm] | None:
    """Return the forms of a kernel of some columns times some numbers; None if it has none."""
    kind = type(kernel)
    if isinstance(kernel, Named):
        return _visit(kernel.kernel, columns, by, n)
    if isinstance(kernel, Scaled):
        inner = _visit(kernel.kernel, columns, by, n)
        return inner and [replace(form, factor=kernel.factor * form.factor) for form in inner]
    if isinstance(kernel, Offset):
        inner, nothing = _visit(kernel.kernel, columns, by, n), np.zeros(n)
        return inner and [*inner, ProductForm(kernel.constant, nothing, nothing)]
    if isinstance(kernel, Power) and kernel.exponent > 1:
        return _visit(kernel.product, columns, by, n)
    if isinstance(kernel, Restricted):
        taken = np.asarray(kernel.columns, dtype=np.intp)
        return _visit(kernel.kernel, columns[taken], by[taken], n)
    if isinstance(kernel, Standardized):
        spreads = np.asarray(kernel.spreads, dtype=np.float64)
        factors = np.divide(1.0, spreads, out=np.zeros_like(spreads), where=spreads > 0)
        return _visit(kernel.kernel, columns, by * factors, n)
    if isinstance(kernel, DistanceKernel) and kind in (RBF, Laplace):
        return [_of_distance(kernel, columns, by, n)]
    if isinstance(kernel, Linear) and kind is Linear:
        return [_linear(kernel, columns, by, n)]
    if isinstance(kernel, (Sum, Product)) and kind in (Sum, Product):
        left, right = (_visit(one, columns, by, n) for one in (kernel.left, kernel.right))
        if left is None or right is None:
            return None
        return left + right if kind is Sum else _products(left, right)
    return None


def _of_distance(
    kernel: DistanceKernel, columns: NDArray[np.intp], by: FloatArray, n: int
) -> ProductForm:
    scales = by if kernel.scales is None else by * np.asarray(kernel.scales)
    found = np.zeros(n)
    found[columns] = kernel.exponent * scales**kernel.norm
    nothing = np.zeros(n)
    return ProductForm(1.0, found, nothing) if kernel.norm == 2 else ProductForm(1, nothing, found)


def _linear(kernel: Linear, columns: NDArray[np.intp], by: FloatArray, n: int) -> SumForm:
    weights, origin = np.zeros(n), np.zeros(n)
    weights[columns] = by**2
    if kernel.origin is not None:
        given = np.asarray(kernel.origin)
        origin[columns] = np.divide(given, by, out=np.zeros_like(given), where=by > 0)
    return SumForm(1.0, weights, origin)


def _products(
    left: list[ProductForm | SumForm], right: list[ProductForm | SumForm]
) -> list[ProductForm | SumForm] | None:
    """Return the products of all forms with all others, where these are products themselves."""
    found: list[ProductForm | SumForm] = []
    for one in left:
        for other in right:
            if not (isinstance(one, ProductForm) and isinstance(other, ProductForm)):
                return None
            squares, absolutes = one.squares + other.squares, one.absolutes + other.absolutes
            found.append(ProductForm(one.factor * other.factor, squares, absolutes))
    return found
