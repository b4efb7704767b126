"""Least squares from sums of features over rows in chunks: the sums, the pass and the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from discernel.arrays import (
    Device,
    FieldState,
    FloatArray,
    as_host,
    free_threads,
    in_threads,
    memory_limit,
    n_rows,
    rows_for_threads,
    symmetric_eigen,
)
from discernel.arrays.groups import Groups
from discernel.exceptions import InvalidInputError
from discernel.kernels.device import STRIP_ENTRIES, DeviceSum
from discernel.kernels.features import NystromMap
from discernel.kernels.weighted import slices

#: Bytes of features computed at a time, per thread.
_THREAD_BYTES = 2**24
#: If the smallest pivot of k(Z, Z) is above this share of the largest, k(Z, x) is summed and
#: converted to features once, at the end, which halves the work. Rounding errors of 1e-16 are
#: divided by it: at most 1e-11 of the trace.
_LEAST_PIVOT = 1e-5
#: Rows whose features are squared at a time.
_BLOCK = 256
#: Parts of the features, of each pair of which a thread sums the products, and their least size.
#: Eight parts keep 4, 8 or 16 threads busy to the end.
_PARTS, _COLUMNS = 8, 128
#: Number of matrices of rank² numbers in memory during the fit, with the sums before the last rows.
_MATRICES = 6


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows for kernels, with targets and weights.

    Attributes
    ----------
    X : array or CSR of shape (n_rows, n_columns)
        The rows.
    values : ndarray of shape (n_rows, n_values)
        The columns from which targets are made: class indicators or numbers.
    weights : ndarray of shape (n_rows,)
        Weights of the rows.
    """

    X: Any
    values: FloatArray
    weights: FloatArray


def _unchanged(rows: Labelled) -> Labelled:
    return rows


def sums_are_of_kernels(features: NystromMap) -> bool:
    """Return whether k(Z, x) is summed instead of φ(x) = L⁻¹k(Z, x), and multiplied at the end.

    Parameters
    ----------
    features : NystromMap
        The map φ with landmarks Z and k(Z, Z) = LLᵀ.
    """
    pivots = features.lower.diagonal() ** 2
    return bool(pivots.min() > _LEAST_PIVOT * pivots.max())


class FeatureSums:
    """Sums over rows of products of weights ω, features φ and values u = (1, v).

    The sums of two sets of rows can be added. If `sums_are_of_kernels`, φ is replaced by k(Z, x).

    Parameters
    ----------
    rank : int
        Number of features.
    n_values : int
        Number of columns of v.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    diagonal : float
        Σωk(x, x).
    all_values : ndarray of shape (1 + n_values,)
        Σωu: Σω, then Σωv.
    all_cross : ndarray of shape (rank, 1 + n_values)
        Σωφuᵀ: Σωφ, then Σωφvᵀ.
    products : ndarray of shape (rank, rank)
        Σωφφᵀ; only the lower triangle is used.
    """

    def __init__(self, rank: int, n_values: int) -> None:
        self.n_rows, self.diagonal = 0, 0.0
        self.all_values, self.all_cross = np.zeros(1 + n_values), np.zeros((rank, 1 + n_values))
        self._products: FloatArray = np.zeros((rank, rank))
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
        """Σωφφᵀ; only the lower triangle is used."""
        if self._waiting is not None:
            self._products += as_host(self._waiting)
            self._waiting = None
        return self._products

    def add_values(self, weighted: FloatArray, diagonal: float) -> None:
        """Add the sums that need no features: ωu, one row for each row, and Σωk(x, x)."""
        self.n_rows += len(weighted)
        self.all_values += weighted.sum(axis=0)
        self.diagonal += diagonal

    def add_features(self, features: FloatArray, weighted: FloatArray) -> None:
        """Add the features of rows, which are overwritten, and their ωu."""
        rank = features.shape[1]
        parts = slices(slice(0, rank), max(_COLUMNS, -(-rank // _PARTS)))
        threads, products = [None] * free_threads(len(features)), self.products
        roots = np.sqrt(weighted[:, :1])

        def add_cross(some: slice, _: None) -> None:
            self.all_cross[some] += features[:, some].T @ weighted
            if (roots != 1.0).any():
                features[:, some] *= roots

        def add(place: tuple[slice, slice], _: None) -> None:
            first, second = place
            products[place] += features[:, first].T @ features[:, second]

        # Not in threads of BLAS, which stay busy for a while and hold up those that make features.
        in_threads(add_cross, parts, threads)
        # The squares of parts, which take half as long as the others, are last.
        pairs = [(a, b) for i, a in enumerate(parts) for b in parts[:i]]
        in_threads(add, [*pairs, *zip(parts, parts, strict=True)], threads)

    def add_products(self, cross: FloatArray, products: Any) -> None:
        """Add Σωφuᵀ, and Σωφφᵀ on a device, which is copied to the host when first used."""
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
        """Multiply the weights of all rows by a factor, and return the sums."""
        self.diagonal *= factor
        for array in (self.all_values, self.all_cross, self.products):
            array *= factor
        return self


@dataclass(frozen=True, eq=False)
class SumPass(FieldState):
    """Pass over chunks that sums features.

    Attributes
    ----------
    features : NystromMap
        The feature map.
    n_values : int
        Number of columns from which targets are made.
    device : Device or None
        The device that computes features and products; None for the host.
    prepare : callable
        From a chunk to `Labelled` rows; by default, chunks are such rows.
    """

    features: NystromMap
    n_values: int
    device: Device | None = None
    prepare: Callable[[Any], Labelled] = _unchanged

    def start(self) -> FeatureSums:
        return FeatureSums(self.features.rank, self.n_values)

    def add(self, state: FeatureSums, chunk: Any) -> FeatureSums:
        rows, kernel = self.prepare(chunk), self.features.kernel
        X, rank, write = rows.X, self.features.rank, self.features.write
        weighted = rows.weights[:, None] * np.insert(rows.values, 0, 1.0, axis=1)
        state.add_values(weighted, float(rows.weights @ kernel.diagonal(X)))
        if self.device is not None and self.device.takes(X):
            state.add_products(*self._sums_on_device(self.device, X, weighted))
            return state
        if sums_are_of_kernels(self.features):

            def write(X: Any, out: FloatArray) -> None:
                kernel.write(X, self.features.landmarks, out)

        n_parts = -(-n_rows(X) // rows_for_threads(8 * rank, _THREAD_BYTES))
        step = -(-n_rows(X) // max(1, n_parts))  # of equal size: threads wait for the last tiles
        block = np.empty((step, rank))
        for part in slices(slice(0, n_rows(X)), max(1, step)):
            found = block[: part.stop - part.start]
            write(X[part], found)
            state.add_features(found, weighted[part])
        return state

    def merge(self, state: FeatureSums, other: FeatureSums) -> FeatureSums:
        state += other
        return state

    # ---- on a device -------------------------------------------------------------------------

    @cached_property
    def _landmarks(self) -> DeviceSum:
        """The kernel with its landmarks on the device, copied once."""
        assert self.device is not None
        return DeviceSum(self.features.kernel, self.features.landmarks, self.device)

    @cached_property
    def _inverse(self) -> Any:
        """L⁻¹ on the device."""
        assert self.device is not None
        return self.device.triangular_inverse(self.device.put(self.features.lower))

    def _parts(self, device: Device, X: FloatArray, whole: bool) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows, and their φ(x) or k(Z, x) on the device."""
        for rows in slices(slice(0, len(X)), max(1, STRIP_ENTRIES // self.features.rank)):
            found = self._landmarks.matrix(X[rows])
            yield rows, device.xp.matmul(found, self._inverse.T) if whole else found

    def map(self, X: FloatArray) -> FloatArray:
        """Return φ(x) of rows, of shape (n_rows, rank), computed on the device if there is one.

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
        """Return Σωφuᵀ as a NumPy array, and Σωφφᵀ on the device."""
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
    """Minimize Σω‖t − f(x) − b‖²/λ + ‖f‖² for any λ, from the sums of all rows.

    The minimum is over functions f(x) = φ(x)·β, for a centred kernel of trace 1: it is that of
    `KernelLeastSquares` for the kernel φ(x)·φ(z) divided by the centred trace of k. Targets are
    t = v·table, with a ``table`` of shape (n_values, n_targets).

    Parameters
    ----------
    summary : FeatureSums
        The sums.
    features : NystromMap
        The feature map of the sums.

    Attributes
    ----------
    weight : float
        Σω for weights of mean 1, which is the number of rows.
    unit : float
        The centred trace of k over all rows.
    captured : float
        Share of the centred trace captured by the features.
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
        """Return β and the intercept b of the fit φ(x)·β + b for one λ."""
        turned = self._right(table) / (self._values + regularization)[:, None]
        beta = self._vectors @ turned / self.unit
        return beta, self._mean_values @ table - self.mean @ beta

    def penalty(self, table: FloatArray, regularization: float) -> FloatArray:
        """Return the inner products of f for all pairs of targets; ‖f‖² on the diagonal."""
        turned = self._right(table) / (self._values + regularization)[:, None]
        return np.asarray(turned.T @ turned / self.unit)

    def influence(
        self, features: FloatArray, weights: FloatArray, regularization: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return β of fits to the target 1 at one row and 0 elsewhere, and their errors at the row.

        Parameters
        ----------
        features : ndarray of shape (n_rows, rank)
            Features of rows that are included in the sums; overwritten.
        weights : ndarray of shape (n_rows,)
            Weights of the rows in the sums.
        regularization : float
            λ.

        Returns
        -------
        beta : ndarray of shape (rank, n_rows)
            One column for each row.
        left : ndarray of shape (n_rows,)
            1 minus the fit at the row itself.
        """
        turned, weights = self._turned(features), self._scale * weights
        shrunk = turned * weights[:, None] / (self.unit * (self._values + regularization))
        leverage = np.einsum("ij,ij->i", turned, shrunk) + weights / self.weight
        return np.asarray(self._vectors @ shrunk.T), 1.0 - leverage

    def sampled(
        self, features: FloatArray, weights: FloatArray, table: FloatArray
    ) -> Callable[[float], tuple[FloatArray, FloatArray]]:
        """Return a function of λ that returns the fitted values of rows, and 1 − leverage.

        The leave-one-out error of a row is its error divided by 1 − leverage. Parameters are those
        of `influence`.
        """
        turned, right = self._turned(features), self._right(table)
        constant, weights = self._mean_values @ table, self._scale * weights
        blocks = slices(slice(0, len(turned)), _BLOCK)

        def at(regularization: float) -> tuple[FloatArray, FloatArray]:
            shrunk = 1.0 / (self.unit * (self._values + regularization))
            fitted, squared = turned @ (shrunk[:, None] * right) + constant, np.empty(len(turned))

            def square(rows: slice, _: None) -> None:
                squared[rows] = np.square(turned[rows]) @ shrunk

            in_threads(square, blocks, [None] * free_threads(len(turned)))
            return fitted, 1.0 - weights * (squared + 1.0 / self.weight)

        return at

    def errors_without(
        self,
        features: FloatArray,
        weights: FloatArray,
        groups: Groups,
        errors: FloatArray,
        regularization: float,
    ) -> FloatArray:
        """Return the errors at rows of the fits without the group of each.

        With S the rows of a group, they are (I − H_SS diag(ω_S))⁻¹ times the errors of the fit to
        all rows, H = Φ(ΦᵀΩΦ + λI)⁻¹Φᵀ + 11ᵀ/Σω with centred features.

        Parameters
        ----------
        features : ndarray of shape (n_rows, rank)
            Features of rows that are included in the sums; overwritten.
        weights : ndarray of shape (n_rows,)
            Weights of the rows in the sums.
        groups : Groups
            The groups of the rows.
        errors : ndarray of shape (n_rows, n_targets)
            The errors of the fit to all rows.
        regularization : float
            λ.
        """
        turned, weights = self._turned(features), self._scale * weights
        turned /= np.sqrt(self.unit * (self._values + regularization))
        out = np.empty_like(errors)
        for rows in groups.batches:
            own = turned[rows]
            blocks = (own @ own.swapaxes(1, 2) + 1.0 / self.weight) * weights[rows][:, None, :]
            out[rows] = np.linalg.solve(np.eye(rows.shape[1]) - blocks, errors[rows])
        return out

    def _turned(self, features: FloatArray) -> FloatArray:
        """Return centred features in the basis of eigenvectors."""
        features -= self.mean
        return np.asarray(np.matmul(features, self._vectors))

    def _right(self, table: FloatArray) -> FloatArray:
        """Return Σω(φ − mean)tᵀ in the basis of eigenvectors."""
        return np.asarray(self._vectors.T @ (self._cross @ table))


def _solved(lower: FloatArray, right: FloatArray) -> FloatArray:
    """Return L⁻¹R."""
    return np.asarray(scipy.linalg.solve_triangular(lower, right, lower=True, check_finite=False))


def check_room(rank: int) -> None:
    """Raise an error before a pass over the rows if the sums do not fit into memory.

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
