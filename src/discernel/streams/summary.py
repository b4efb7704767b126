"""The second pass: sums over rows of features, which are all that a least-squares fit needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import Device, FloatArray, as_host, memory_limit, n_rows, rows_for_threads
from discernel.exceptions import InvalidInputError
from discernel.kernels.features import NystromMap
from discernel.rows.chunks import Chunk
from discernel.streams.on_device import LandmarksOnDevice

__all__ = [
    "FeatureSums",
    "Labelled",
    "Prepare",
    "SumPass",
    "check_room",
    "one_hot",
    "sums_are_of_kernels",
]

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
    """Rows as the kernels take them, what is to be fitted for each, and how much each counts.

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


#: From a chunk to rows as the kernels take them.
Prepare = Callable[[Chunk], Labelled]


def sums_are_of_kernels(features: NystromMap) -> bool:
    """Whether k(Z, x) is summed up, of which φ(x) = L⁻¹k(Z, x) is made at the end.

    Parameters
    ----------
    features : NystromMap
        φ, with its landmarks Z and k(Z, Z) = LLᵀ.
    """
    pivots = features.lower.diagonal() ** 2
    return bool(pivots.min() > _LEAST_PIVOT * pivots.max())


class FeatureSums:
    """Sums over rows of weights ω, features φ and values v; those of two parts add up.

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
    weight : float
        Σω.
    features : ndarray of shape (rank,)
        Σωφ.
    products : ndarray of shape (rank, rank)
        Σωφφᵀ; only the lower triangle is meant.
    values : ndarray of shape (n_values,)
        Σωv.
    squares : ndarray of shape (n_values,)
        Σωv².
    cross : ndarray of shape (rank, n_values)
        Σωφvᵀ.
    diagonal : float
        Σωk(x, x).
    """

    def __init__(self, rank: int, n_values: int) -> None:
        self.n_rows, self.weight, self.diagonal = 0, 0.0, 0.0
        self.features = np.zeros(rank)
        self._products: FloatArray = np.zeros((rank, rank), order="F")
        self._waiting: Any = None
        self.values, self.squares = np.zeros(n_values), np.zeros(n_values)
        self.cross = np.zeros((rank, n_values))

    def add(self, features: FloatArray, rows: Labelled, diagonal: FloatArray) -> None:
        """Add rows.

        Parameters
        ----------
        features : ndarray of shape (n_rows, rank)
            Their features, which are overwritten.
        rows : Labelled
            The rows.
        diagonal : ndarray of shape (n_rows,)
            k(x, x) of each.
        """
        weights, weighted = rows.weights, rows.weights[:, None] * rows.values
        self.add_values(rows, diagonal)
        self.features += weights @ features
        self.cross += features.T @ weighted
        if (weights != 1.0).any():
            features *= np.sqrt(weights)[:, None]
        self._products = scipy.linalg.blas.dsyrk(
            1.0, features.T, beta=1.0, c=self.products, lower=1, overwrite_c=1
        )

    @property
    def products(self) -> FloatArray:
        """Σωφφᵀ; only the lower triangle is meant."""
        if self._waiting is not None:
            self._products += as_host(self._waiting)
            self._waiting = None
        return self._products

    def add_products(self, features: FloatArray, cross: FloatArray, products: Any) -> None:
        """Add sums over rows that were computed on a device.

        Parameters
        ----------
        features : ndarray of shape (rank,)
            Σωφ.
        cross : ndarray of shape (rank, n_values)
            Σωφvᵀ.
        products : array of shape (rank, rank)
            Σωφφᵀ, which stays there until it is asked for.
        """
        self.features += features
        self.cross += cross
        self._waiting = products if self._waiting is None else self._waiting + products

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_products": self.products, "_waiting": None}

    def add_values(self, rows: Labelled, diagonal: FloatArray) -> None:
        """Add what needs no features of rows.

        Parameters
        ----------
        rows : Labelled
            The rows.
        diagonal : ndarray of shape (n_rows,)
            k(x, x) of each.
        """
        weights, weighted = rows.weights, rows.weights[:, None] * rows.values
        self.n_rows += len(weights)
        self.weight += float(weights.sum())
        self.values += weighted.sum(axis=0)
        self.squares += np.einsum("ij,ij->j", weighted, rows.values)
        self.diagonal += float(weights @ diagonal)

    def __iadd__(self, other: FeatureSums) -> FeatureSums:
        self.n_rows += other.n_rows
        self.weight += other.weight
        self.diagonal += other.diagonal
        for name in ("features", "products", "values", "squares", "cross"):
            array = getattr(self, name)
            array += getattr(other, name)
        return self

    def decay(self, factor: float) -> FeatureSums:
        """Let all rows so far count less, and return the summary.

        Parameters
        ----------
        factor : float
            What their weights are multiplied by.
        """
        self.weight *= factor
        self.diagonal *= factor
        for name in ("features", "products", "values", "squares", "cross"):
            array = getattr(self, name)
            array *= factor
        return self


@dataclass(frozen=True)
class SumPass:
    """Sum up features chunk by chunk.

    Attributes
    ----------
    prepare : callable
        From a chunk to rows as the kernels take them.
    features : NystromMap
        From rows to features.
    n_values : int
        The columns that targets are made of.
    device : Device or None
        Where features are made and multiplied; None: here.
    """

    prepare: Prepare
    features: NystromMap
    n_values: int
    device: Device | None = None

    def start(self) -> FeatureSums:
        return FeatureSums(self.features.rank, self.n_values)

    def add(self, state: FeatureSums, chunk: Chunk) -> FeatureSums:
        return self.add_rows(state, self.prepare(chunk))

    def add_rows(self, state: FeatureSums, rows: Labelled) -> FeatureSums:
        """Return the sums with rows that are as the kernels take them."""
        if self.device is not None and isinstance(rows.X, np.ndarray):
            state.add_values(rows, self.features.kernel.diagonal(rows.X))
            state.add_products(*self.there.sums(rows.X, rows.values, rows.weights))
            return state
        rank, write = self.features.rank, self.features.write
        if sums_are_of_kernels(self.features):

            def write(X: Any, out: FloatArray) -> None:
                self.features.kernel.write(X, self.features.landmarks, out)

        step = rows_for_threads(8 * rank, _THREAD_BYTES)
        block = np.empty((min(step, n_rows(rows.X)), rank))
        for first in range(0, n_rows(rows.X), step):
            part = slice(first, first + step)
            some = Labelled(rows.X[part], rows.values[part], rows.weights[part])
            found = block[: n_rows(some.X)]
            write(some.X, found)
            state.add(found, some, self.features.kernel.diagonal(some.X))
        return state

    @cached_property
    def there(self) -> LandmarksOnDevice:
        """The landmarks on the device."""
        assert self.device is not None
        whole = not sums_are_of_kernels(self.features)
        return LandmarksOnDevice(self.features, self.device, whole=whole)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "there"}

    def merge(self, state: FeatureSums, other: FeatureSums) -> FeatureSums:
        state += other
        return state


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


def one_hot(codes: NDArray[np.intp], n_classes: int) -> FloatArray:
    """Return 1 where a row is in a class, else 0."""
    found = np.zeros((len(codes), n_classes))
    found[np.arange(len(codes)), codes] = 1.0
    return found
