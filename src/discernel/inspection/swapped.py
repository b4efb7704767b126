"""Kernels between rows and training rows when one column of the rows is that of other rows.

A Gaussian or Laplace kernel is an exponential of a sum of distances along columns, and a linear one
a sum of products. So with one column replaced, one term of the sum is: the cost of a kernel matrix
does not depend on the number of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Buffers, FloatArray, city_distances, squared_distances
from discernel.inspection.columns import seen_columns
from discernel.inspection.forms import ProductForm, SumForm, kernel_forms
from discernel.inspection.reference import dense, swapped_columns
from discernel.inspection.scoring import FeaturePart, KernelExpansion
from discernel.kernels import RBF, Kernel
from discernel.kernels.evaluate import KernelSet

__all__ = ["SwappedBlock", "SwappedKernel"]

#: Digits by which the weights of columns of two kernels are the same up to a factor.
_DIGITS = 10


@dataclass(frozen=True)
class _Exponentials:
    """Σ_i factors_i exp(−rates_i D), where D is one weighted sum of distances along columns.

    Attributes
    ----------
    squares, absolutes : ndarray of shape (n_columns,)
        What squared and absolute differences along each column are multiplied by in D.
    rates, factors : list of float
        One per kernel.
    """

    squares: FloatArray
    absolutes: FloatArray
    rates: list[float] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)

    def sees(self, columns: NDArray[np.intp]) -> bool:
        """Whether D depends on any of some columns."""
        return bool((self.squares[columns] + self.absolutes[columns]).any())

    def distances(self, X: FloatArray, Z: FloatArray, columns: NDArray[np.intp]) -> FloatArray:
        """Return the part of D that some columns have, of shape (n_rows_X, n_rows_Z)."""
        near = columns[self.squares[columns] > 0]
        city = columns[self.absolutes[columns] > 0]
        found = np.zeros((len(X), len(Z)))
        if len(near):
            roots = np.sqrt(self.squares[near])
            found += _squared(X[:, near] * roots, Z[:, near] * roots)
        if len(city):
            weights = self.absolutes[city]
            found += _absolute(X[:, city] * weights, Z[:, city] * weights)
        return found

    def values(self, distances: FloatArray, kernels: KernelSet, buffers: Buffers) -> FloatArray:
        """Return the sum for given D, in a buffer."""
        total, term = (buffers(name, distances.shape) for name in ("total", "term"))
        total[:] = 0.0
        for position, matrix in kernels.matrices_of(distances, buffers):
            np.multiply(matrix, self.factors[position], out=term)
            total += term
        return total


def _squared(X: FloatArray, Z: FloatArray) -> FloatArray:
    return squared_distances(X, Z) if X.shape[1] > 1 else np.square(X - Z.T)


def _absolute(X: FloatArray, Z: FloatArray) -> FloatArray:
    return city_distances(X, Z) if X.shape[1] > 1 else np.abs(X - Z.T)


class SwappedKernel:
    """A kernel of rows, taken apart for rows of which columns are replaced.

    Parameters
    ----------
    part : KernelExpansion or FeaturePart
        The kernel and its training rows, or its features.
    n_columns : int
        The columns of rows, as the kernel takes them.
    """

    def __init__(self, part: KernelExpansion | FeaturePart, n_columns: int) -> None:
        self.part, self._n_columns = part, n_columns
        self.exponentials: list[_Exponentials] = []
        self.sets: list[KernelSet] = []
        self.sums: list[SumForm] = []
        #: Kernels that are not known column by column, and what they are multiplied by.
        self.others: list[tuple[float, Kernel]] = []
        if isinstance(part, FeaturePart):
            self.others.append((1.0, part.kernel))
            self.Z = np.empty((0, n_columns))
            return
        self.Z = dense(part.rows)
        pairs = zip(part.kernel.coefficients.tolist(), part.kernel.kernels, strict=True)
        groups: dict[bytes, _Exponentials] = {}
        for factor, kernel in pairs:
            for form in kernel_forms(kernel, n_columns):
                if isinstance(form, ProductForm):
                    self._add_product(groups, form, factor)
                elif isinstance(form, SumForm):
                    weights = factor * form.factor * form.weights
                    self.sums.append(SumForm(1.0, weights, form.origin))
                else:
                    self.others.append((factor, form.kernel))
        self.exponentials = list(groups.values())
        self.sets = [KernelSet([RBF(gamma=g) for g in one.rates]) for one in self.exponentials]

    @staticmethod
    def _add_product(groups: dict[bytes, _Exponentials], form: ProductForm, factor: float) -> None:
        rate = float(max(form.squares.max(), form.absolutes.max()))
        if not rate > 0:
            return  # a constant
        squares, absolutes = form.squares / rate, form.absolutes / rate
        key = np.round(np.concatenate([squares, absolutes]), _DIGITS).tobytes()
        one = groups.setdefault(key, _Exponentials(squares, absolutes))
        one.rates.append(rate)
        one.factors.append(factor * form.factor)

    def seen(self) -> NDArray[np.bool_]:
        """Return the columns that the kernel depends on, of shape (n_columns,)."""
        found = np.zeros(self._n_columns, dtype=np.bool_)
        for one in self.exponentials:
            found |= (one.squares + one.absolutes) > 0
        for form in self.sums:
            found |= form.weights > 0
        for _, kernel in self.others:
            found |= seen_columns(kernel, self._n_columns)
        return found

    @property
    def n_threads(self) -> int:
        """How many threads may compute it."""
        known = isinstance(self.part, KernelExpansion)
        safe = all(kernel.thread_safe for _, kernel in self.others)
        return int(joblib.cpu_count()) if known and safe else 1

    def other_values(self, X: Any, columns: NDArray[np.intp]) -> FloatArray:
        """Return the sum of the kernels that see some columns and are not known column by column.

        Parameters
        ----------
        X : array or Table of shape (n_rows, n_columns)
            Rows.
        columns : ndarray of int
            The columns.
        """
        if isinstance(self.part, FeaturePart):
            return np.asarray(self.part.features(X))
        found = np.zeros((len(X), len(self.Z)))
        for factor, kernel in self.others:
            if seen_columns(kernel, self._n_columns)[columns].any():
                found += factor * kernel(X, self.part.rows)
        return found


class SwappedBlock:
    """The kernel of a `SwappedKernel` at some rows.

    Parameters
    ----------
    kernel : SwappedKernel
        The kernel.
    X : array or Table of shape (n_rows, n_columns)
        The rows.
    buffers : Buffers
        Where matrices are made.
    """

    def __init__(self, kernel: SwappedKernel, X: Any, buffers: Buffers) -> None:
        self._kernel, self._X, self._rows, self._buffers = kernel, X, dense(X), buffers
        every = np.arange(self._rows.shape[1])
        self._distances = [
            one.distances(self._rows, kernel.Z, every) for one in kernel.exponentials
        ]
        pairs = zip(kernel.exponentials, self._distances, kernel.sets, strict=True)
        self._values = [one.values(D, kernels, buffers).copy() for one, D, kernels in pairs]

    def changes(self, columns: NDArray[np.intp], others: Sequence[Any]) -> Iterator[FloatArray]:
        """Yield how the kernel changes when columns are those of other rows, in a buffer.

        Parameters
        ----------
        columns : ndarray of int
            The columns, one of which the kernel sees.
        others : sequence of arrays or Tables of shape (n_rows, n_columns)
            Rows to take them from, in turn.

        Yields
        ------
        ndarray of shape (n_rows, n_terms)
            One for each of the others.
        """
        kernel, here = self._kernel, self._rows
        seen = [i for i, one in enumerate(kernel.exponentials) if one.sees(columns)]
        rest = [
            self._distances[i] - kernel.exponentials[i].distances(here, kernel.Z, columns)
            for i in seen
        ]
        before = kernel.other_values(self._X, columns)
        for each in others:
            there = dense(each)
            change = self._buffers("change", (len(here), len(kernel.part.coef)))
            change[:] = 0.0
            for i, D in zip(seen, rest, strict=True):
                one = kernel.exponentials[i]
                moved = one.distances(there, kernel.Z, columns)
                moved += D
                np.maximum(moved, 0.0, out=moved)
                change += one.values(moved, kernel.sets[i], self._buffers)
                change -= self._values[i]
            for form in kernel.sums:
                slopes = (there - here)[:, columns] * form.weights[columns]
                change += slopes @ (kernel.Z - form.origin)[:, columns].T
            if kernel.others:
                swapped = swapped_columns(self._X, each, columns)
                change += kernel.other_values(swapped, columns) - before
            yield change
