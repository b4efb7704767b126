"""Least squares from sums over rows of features: the sums, the pass that adds up, the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from discernel.arrays import (
    Device,
    FloatArray,
    as_host,
    memory_limit,
    n_rows,
    rows_for_threads,
    symmetric_eigen,
)
from discernel.exceptions import InvalidInputError
from discernel.kernels.device import STRIP_ENTRIES, DeviceSum
from discernel.kernels.features import NystromMap
from discernel.kernels.weighted import slices

#: Bytes of the features of some rows that are made at a time, per thread.
_THREAD_BYTES = 2**24
#: Where the least pivot of k(Z, Z), as a share of the largest, is above this, k(Z, x) is summed up
#: and turned into features once, at the end, which halves the work. Rounding of the sums, 1e-16,
#: is divided by it: no more than 1e-11 of the trace.
_LEAST_PIVOT = 1e-5
#: Matrices of rank² numbers that are alive while the fit is found from the sums, and those before
#: rows were added are kept.
_MATRICES = 6


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows as the kernels take them, with targets and weights.

    Attributes
    ----------
    X : array or CSR of shape (n_rows, n_columns)
        The rows.
    values : ndarray of shape (n_rows, n_values)
        The columns that targets are made of: 1 for the class of a row, or numbers.
    weights : ndarray of shape (n_rows,)
        How much each counts.
    """

    X: Any
    values: FloatArray
    weights: FloatArray


def _as_they_are(rows: Labelled) -> Labelled:
    return rows


def sums_are_of_kernels(features: NystromMap) -> bool:
    """Return whether k(Z, x) is summed up, and multiplied by L⁻¹, φ = L⁻¹k(Z, x), at the end.

    Parameters
    ----------
    features : NystromMap
        φ, with its landmarks Z and k(Z, Z) = LLᵀ.
    """
    pivots = features.lower.diagonal() ** 2
    return bool(pivots.min() > _LEAST_PIVOT * pivots.max())


class FeatureSums:
    """Sums over rows of weights ω, features φ and values u = (1, v); those of two parts add up.

    Where `sums_are_of_kernels`, k(Z, x) stands for φ.

    Parameters
    ----------
    rank : int
        The number of features.
    n_values : int
        The columns of v.

    Attributes
    ----------
    n_rows : int
        The rows.
    diagonal : float
        Σωk(x, x).
    all_values : ndarray of shape (1 + n_values,)
        Σωu: Σω, then Σωv.
    all_cross : ndarray of shape (rank, 1 + n_values)
        Σωφuᵀ: Σωφ, then Σωφvᵀ.
    products : ndarray of shape (rank, rank)
        Σωφφᵀ; only the lower triangle is meant.
    """

    def __init__(self, rank: int, n_values: int) -> None:
        self.n_rows, self.diagonal = 0, 0.0
        self.all_values, self.all_cross = np.zeros(1 + n_values), np.zeros((rank, 1 + n_values))
        self._products: FloatArray = np.zeros((rank, rank), order="F")
        self._waiting: Any = None

    @property
    def weight(self) -> float:
        """Σω."""
        return float(self.all_values[0])

    @property
    def values(self) -> FloatArray:
        """Σωv, of shape (n_values,)."""
        return self.all_values[1:]

    @property
    def products(self) -> FloatArray:
        """Σωφφᵀ; only the lower triangle is meant."""
        if self._waiting is not None:
            self._products += as_host(self._waiting)
            self._waiting = None
        return self._products

    def add_values(self, weighted: FloatArray, diagonal: float) -> None:
        """Add the sums that need no features: of ωu, given one a row, and Σωk(x, x)."""
        self.n_rows += len(weighted)
        self.all_values += weighted.sum(axis=0)
        self.diagonal += diagonal

    def add_features(self, features: FloatArray, weighted: FloatArray) -> None:
        """Add rows' features, which are overwritten, and their ωu, one a row each."""
        self.all_cross += features.T @ weighted
        weights = weighted[:, 0]
        if (weights != 1.0).any():
            features *= np.sqrt(weights)[:, None]
        self._products = scipy.linalg.blas.dsyrk(
            1.0, features.T, beta=1.0, c=self.products, lower=1, overwrite_c=1
        )

    def add_products(self, cross: FloatArray, products: Any) -> None:
        """Add Σωφuᵀ and Σωφφᵀ of a device, where the latter stays until it is asked for."""
        self.all_cross += cross
        self._waiting = products if self._waiting is None else self._waiting + products

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_products": self.products, "_waiting": None}

    def __iadd__(self, other: FeatureSums) -> FeatureSums:
        self.n_rows += other.n_rows
        self.diagonal += other.diagonal
        self.all_values += other.all_values
        self.all_cross += other.all_cross
        self.products[:] += other.products
        return self

    def decay(self, factor: float) -> FeatureSums:
        """Multiply the weights of all rows so far by a factor, and return the sums."""
        self.diagonal *= factor
        for array in (self.all_values, self.all_cross, self.products):
            array *= factor
        return self


@dataclass(frozen=True)
class SumPass:
    """Sum up features chunk by chunk.

    Attributes
    ----------
    features : NystromMap
        From rows to features.
    n_values : int
        The columns that targets are made of.
    device : Device or None
        Where features are made and multiplied; None: here.
    prepare : callable
        From a chunk to rows as the kernels take them; by default, chunks are such rows.
    """

    features: NystromMap
    n_values: int
    device: Device | None = None
    prepare: Callable[[Any], Labelled] = _as_they_are

    def start(self) -> FeatureSums:
        return FeatureSums(self.features.rank, self.n_values)

    def add(self, state: FeatureSums, chunk: Any) -> FeatureSums:
        rows, kernel = self.prepare(chunk), self.features.kernel
        X, rank, write = rows.X, self.features.rank, self.features.write
        weighted = rows.weights[:, None] * np.insert(rows.values, 0, 1.0, axis=1)
        state.add_values(weighted, float(rows.weights @ kernel.diagonal(X)))
        if self.device is not None and isinstance(X, np.ndarray):
            state.add_products(*self._sums_on_device(self.device, X, weighted))
            return state
        if sums_are_of_kernels(self.features):

            def write(X: Any, out: FloatArray) -> None:
                kernel.write(X, self.features.landmarks, out)

        step = rows_for_threads(8 * rank, _THREAD_BYTES)
        block = np.empty((min(step, n_rows(X)), rank))
        for part in slices(slice(0, n_rows(X)), step):
            found = block[: part.stop - part.start]
            write(X[part], found)
            state.add_features(found, weighted[part])
        return state

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in self.__dataclass_fields__}

    def merge(self, state: FeatureSums, other: FeatureSums) -> FeatureSums:
        state += other
        return state

    # ---- on a device -------------------------------------------------------------------------

    @cached_property
    def _landmarks(self) -> DeviceSum:
        """The kernel with its landmarks on the device, which are sent once."""
        assert self.device is not None
        return DeviceSum(self.features.kernel, self.features.landmarks, self.device)

    @cached_property
    def _inverse(self) -> Any:
        """L⁻¹ on the device."""
        assert self.device is not None
        return self.device.triangular_inverse(self.device.put(self.features.lower))

    def _parts(self, device: Device, X: FloatArray, whole: bool) -> Iterator[tuple[slice, Any]]:
        """Yield some rows at a time, and their φ(x), or k(Z, x), on the device."""
        for rows in slices(slice(0, len(X)), max(1, STRIP_ENTRIES // self.features.rank)):
            found = self._landmarks.matrix(X[rows])
            yield rows, device.xp.matmul(found, self._inverse.T) if whole else found

    def map(self, X: FloatArray) -> FloatArray:
        """Return φ(x) of rows, of shape (n_rows, rank), made on the device where there is one.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            Rows.
        """
        if self.device is None:
            return self.features(X)
        found = np.empty((len(X), self.features.rank))
        for rows, features in self._parts(self.device, X, True):
            found[rows] = as_host(features)
        return found

    def _sums_on_device(
        self, device: Device, X: FloatArray, weighted: FloatArray
    ) -> tuple[FloatArray, Any]:
        """Return Σωφuᵀ, as an array of NumPy, and Σωφφᵀ, on the device, of rows and their ωu."""
        xp, put, rank = device.xp, device.put, self.features.rank
        products, cross = device.zeros((rank, rank)), device.zeros((rank, weighted.shape[1]))
        for rows, features in self._parts(device, X, not sums_are_of_kernels(self.features)):
            cross = cross + xp.matmul(features.T, put(weighted[rows]))
            weights = weighted[rows, :1]
            if (weights != 1.0).any():
                features = features * put(np.sqrt(weights))
            products = products + xp.matmul(features.T, features)
        return as_host(cross), products


class SummedSystem:
    """Minimise Σω‖t − f(x) − b‖²/λ + ‖f‖² for any λ, from the sums of all rows.

    Over functions f(x) = φ(x)·β, in units in which the centred kernel of all rows has trace 1: the
    same as `KernelLeastSquares` for the kernel φ(x)·φ(z) over the centred trace of k. Targets are
    made of values by a ``table`` of shape (n_values, n_targets): t = v·table.

    Parameters
    ----------
    summary : FeatureSums
        The sums.
    features : NystromMap
        What they are of.

    Attributes
    ----------
    weight : float
        Σω, of weights that are scaled to the mean 1: the number of rows.
    unit : float
        The centred trace of k over all rows: Σωk(x, x) less what the mean of all rows takes.
    captured : float
        The share of it that the features have.
    mean : ndarray of shape (rank,)
        The mean of the features.
    """

    def __init__(self, summary: FeatureSums, features: NystromMap) -> None:
        self.weight, self._scale = float(summary.n_rows), summary.n_rows / summary.weight
        self._mean_values = summary.values / summary.weight
        cross = self._scale * summary.all_cross
        cross[:, 1:] -= np.outer(cross[:, 0], self._mean_values)
        products = self._scale * np.tril(summary.products)
        products += np.tril(products, -1).T
        products -= np.outer(cross[:, 0], cross[:, 0] / self.weight)
        if sums_are_of_kernels(features):
            cross, products = (_solved(features.lower, each) for each in (cross, products))
            products = _solved(features.lower, products.T)
        self.mean, self._cross = cross[:, 0] / self.weight, cross[:, 1:]
        self.unit = self._scale * summary.diagonal - self.weight * float(self.mean @ self.mean)
        if not self.unit > 0:
            raise InvalidInputError(
                "The kernel must vary over the rows, but it is constant on all of them. Check the "
                "rows, and the kernels for far too large widths."
            )
        products /= self.unit
        values, self._vectors = symmetric_eigen(products, driver="evd")
        self._values = np.maximum(values, 0.0)
        self.captured = min(1.0, float(self._values.sum()))

    def fit(self, table: FloatArray, regularization: float) -> tuple[FloatArray, FloatArray]:
        """Return β and b with which f(x) + b = φ(x)·β + b, for one λ."""
        turned = self._right(table) / (self._values + regularization)[:, None]
        beta = self._vectors @ turned / self.unit
        return beta, self._mean_values @ table - self.mean @ beta

    def penalty(self, table: FloatArray, regularization: float) -> FloatArray:
        """Return ‖f‖², between all pairs of targets."""
        turned = self._right(table) / (self._values + regularization)[:, None]
        return np.asarray(turned.T @ turned / self.unit)

    def influence(
        self, features: FloatArray, weights: FloatArray, regularization: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return β of the fits to 1 at each of some rows and 0 elsewhere, and their errors there.

        Parameters
        ----------
        features : ndarray of shape (n_rows, rank)
            Features of rows that are among those of the sums; overwritten.
        weights : ndarray of shape (n_rows,)
            What they weigh in the sums.
        regularization : float
            λ.

        Returns
        -------
        beta : ndarray of shape (rank, n_rows)
            One column per row.
        left : ndarray of shape (n_rows,)
            1 less the fit at the row itself.
        """
        turned, weights = self._turned(features), self._scale * weights
        shrunk = turned * weights[:, None] / (self.unit * (self._values + regularization))
        leverage = np.einsum("ij,ij->i", turned, shrunk) + weights / self.weight
        return np.asarray(self._vectors @ shrunk.T), 1.0 - leverage

    def sampled(
        self, features: FloatArray, weights: FloatArray, table: FloatArray
    ) -> Callable[[float], tuple[FloatArray, FloatArray]]:
        """Return a function of λ: the fit for some of the rows, and the share left without each.

        That share is 1 − h, with h the leverage of a row: the error of the fit without the row is
        that of the fit over the share. Parameters are those of `influence`.
        """
        turned, right = self._turned(features), self._right(table)
        constant, weights = self._mean_values @ table, self._scale * weights

        def at(regularization: float) -> tuple[FloatArray, FloatArray]:
            shrunk = 1.0 / (self.unit * (self._values + regularization))
            fitted = turned @ (shrunk[:, None] * right) + constant
            squared = np.einsum("ij,j,ij->i", turned, shrunk, turned, optimize=False)
            return fitted, 1.0 - weights * (squared + 1.0 / self.weight)

        return at

    def _turned(self, features: FloatArray) -> FloatArray:
        """Return centred features along the eigenvectors."""
        features -= self.mean
        return np.asarray(np.matmul(features, self._vectors))

    def _right(self, table: FloatArray) -> FloatArray:
        """Return Σω(φ − mean)tᵀ along the eigenvectors."""
        return np.asarray(self._vectors.T @ (self._cross @ table))


def _solved(lower: FloatArray, right: FloatArray) -> FloatArray:
    """Return L⁻¹R."""
    return np.asarray(scipy.linalg.solve_triangular(lower, right, lower=True, check_finite=False))


def check_room(rank: int) -> None:
    """Raise a clear error, before a pass over the rows, where the sums would not fit into memory.

    Parameters
    ----------
    rank : int
        The number of features.
    """
    rows = 8 * rank * rows_for_threads(8 * rank, _THREAD_BYTES)
    memory, needed = memory_limit(), _MATRICES * 8 * rank**2 + 2 * rows
    if memory is not None and needed > memory:
        raise InvalidInputError(
            f"{_MATRICES} matrices of {rank:,} × {rank:,} numbers must fit into memory, about "
            f"{needed / 1e9:,.1f} GB. This machine has {memory / 1e9:,.1f} GB. Take fewer "
            "landmarks."
        )
