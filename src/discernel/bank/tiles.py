"""Reductions over the tiles of all kernels, and the engines that compute tiles.

A reduction is a function of a tile of every kernel, or of their weighted sum, that adds to an
array. An `Engine` calls it with all tiles on and above the diagonal: in threads, in strips on a
device, on the workers of a cluster, or with stored matrices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import FloatArray, matmul
from discernel.arrays.sample_weights import SampleWeights

#: Entries of the rows of all matrices in memory at a time.
_BLOCK_ENTRIES = 2**17
#: Rows and columns of a tile on or above the diagonal. Columns that are not among the rows count
#: twice, because no tile has their mirror image below the diagonal.
Tile = tuple[slice, slice]
#: Positions of kernels and their matrices, which are read-only and valid until the next one.
Found = Iterator[tuple[int, Any]]


class Centered:
    """Subtract means from tiles and multiply by the roots of sample weights: D C G Cᵀ D.

    Tiles are changed in place and returned. ``put`` converts a NumPy array to their library.

    Parameters
    ----------
    means : ndarray of shape (n_samples,)
        The means of the rows of the whole matrix.
    weights : SampleWeights
        The weights of rows.
    """

    def __init__(self, means: FloatArray, weights: SampleWeights) -> None:
        self.means, self._roots = means, None if weights.is_equal else weights.roots
        self.across = means - weights.means(means)

    def subtract(self, tile: tuple[Any, Any], values: Any, put: Callable[[FloatArray], Any]) -> Any:
        """Subtract the means of a matrix from the values of a tile."""
        rows, columns = tile
        values -= put(self.means[rows, None])
        values -= put(self.across[None, columns])
        return values

    @property
    def roots(self) -> FloatArray:
        """The roots of the weights of all rows."""
        return np.ones(len(self.means)) if self._roots is None else self._roots

    def weigh(self, tile: tuple[Any, Any], values: Any, put: Callable[[FloatArray], Any]) -> Any:
        """Multiply the values of a tile by the roots of weights."""
        rows, columns = tile
        if self._roots is not None:
            values *= put(self._roots[rows, None])
            values *= put(self._roots[None, columns])
        return values


@dataclass(frozen=True, eq=False)
class TilePass:
    """Work on all tiles.

    Attributes
    ----------
    work : callable
        Function of a tile, the positions and matrices of kernels there (or 0 and their sum, which
        it may change) and the array to add to.
    shape : tuple of int
        The shape of the array.
    active : ndarray of int or None
        Positions of the kernels to compute; all for None.
    factors : ndarray of shape (n_kernels,) or None
        The f_i of Σ f_i G_i; None for single kernels.
    n_alive : int
        Number of matrices of a tile in memory at a time.
    centered : Centered or None
        Centring of the sum.
    compiled : (str, array) or None
        Work that compiled loops do too: ``"product"`` with vectors, ``"compress"`` by a basis, or
        ``"combine"``, which writes to a matrix.
    """

    work: Callable[[Tile, Found, Any], None]
    shape: tuple[int, ...] = (0,)
    active: NDArray[np.intp] | None = None
    factors: FloatArray | None = None
    n_alive: int = 1
    centered: Centered | None = None
    compiled: tuple[str, Any] | None = None


class Engine(ABC):
    """The raw matrices G_i of some kernels on some rows, as tiles."""

    n_kernels: int
    n_samples: int
    #: The array library of the tiles; NumPy's arrays in its precision, and memory for such arrays.
    xp: Any = np
    put: Callable[[FloatArray], Any] = staticmethod(np.ascontiguousarray)
    empty: Callable[..., Any] = staticmethod(np.empty)
    #: The product of two matrices, and the sum of the products of their entries. On the host, those
    #: of NumPy, which release the global interpreter lock; `arrays.matmul` does not.
    matmul: Callable[[Any, Any], Any] = staticmethod(np.matmul)
    dot: Callable[[Any, Any], Any] = staticmethod(partial(np.einsum, "ij,ij->"))
    #: Centring of the tiles of nearly constant kernels, by their positions.
    removed_means: dict[int, Centered]

    @abstractmethod
    def run(self, task: TilePass) -> FloatArray:
        """Do the work on all tiles and return the sum."""

    @abstractmethod
    def of(self, positions: NDArray[np.intp]) -> Self:
        """Return the engine of some of the kernels."""

    def row_means(
        self, weights: SampleWeights, active: NDArray[np.intp] | None = None
    ) -> FloatArray:
        """Return the row means of every matrix; 0 for kernels that are not active."""
        return self.product(weights.values[:, None], active)[:, :, 0] / weights.total

    def without_means(self, taken: dict[int, Centered]) -> Self:
        """Return the engine with some matrices centred."""
        made = copy(self)
        made.removed_means = taken
        return made

    # ---- reductions --------------------------------------------------------------------------
    # Functions do not hold the engine, because they may be sent to other machines.

    def product(
        self,
        vectors: FloatArray,
        active: NDArray[np.intp] | None = None,
        factors: FloatArray | None = None,
    ) -> FloatArray:
        """Return every G_iV, of shape (n_kernels, n_samples, n_vectors); 0 if not active.

        With factors, return only Σ f_i G_i V, of shape (1, n_samples, n_vectors).
        """
        V, matmul = self.put(vectors), self.matmul

        def work(tile: Tile, matrices: Found, out: Any) -> None:
            (rows, columns), (own, rest) = tile, _split(tile)
            for i, matrix in matrices:
                out[i, rows, :] += matmul(matrix, V[columns, :])
                if rest.start < rest.stop:
                    out[i, rest, :] += matmul(matrix[:, own:].T, V[rows, :])

        shape = self.n_kernels if factors is None else 1, *vectors.shape
        return self.run(TilePass(work, shape, active, factors, compiled=("product", V)))

    def compress(self, basis: FloatArray) -> FloatArray:
        """Return halves of every SᵀG_iS, of shape (n_kernels, n_columns, n_columns).

        SᵀG_iS is such a half and its transpose, which is exactly symmetric.
        """
        S, matmul = self.put(basis), self.matmul

        def work(tile: Tile, matrices: Found, out: Any) -> None:
            (rows, columns), (own, _) = tile, _split(tile)
            left, right = S[rows, :].T, 1.0 * S[columns, :]
            right[:own, :] *= 0.5  # the square on the diagonal is its own mirror image
            for i, matrix in matrices:
                out[i, :, :] += matmul(left, matmul(matrix, right))

        shape = self.n_kernels, basis.shape[1], basis.shape[1]
        return self.run(TilePass(work, shape, compiled=("compress", S)))

    def inner(self, matrix: Any) -> FloatArray:
        """Return every ⟨G_i, S⟩ of a symmetric S of the library of the engine."""
        dot = self.dot

        def work(tile: Tile, matrices: Found, out: Any) -> None:
            (rows, columns), (own, rest) = tile, _split(tile)
            part = matrix[rows, columns]
            if rest.start < rest.stop:  # it counts for its mirror image too
                part = 2.0 * part
                part[:, :own] *= 0.5
            for i, values in matrices:
                out[i] += dot(values, part)

        return self.run(TilePass(work, (self.n_kernels,)))

    def inner_products(
        self, means: FloatArray, weights: SampleWeights, factors: FloatArray
    ) -> FloatArray:
        """Return ⟨K_i, K_j⟩ of all pairs of K_i = f_i D C G_i Cᵀ D, from row means of the G_i.

        Tiles are centred first: see `grams.inner_products` for why. They are multiplied by the
        factors first too, because squares of matrices of any unit may overflow.
        """
        centered = [Centered(row, weights) for row in means]
        if not centered:
            return np.zeros((0, 0))
        xp, matmul, put, empty, p = self.xp, self.matmul, self.put, self.empty, self.n_kernels

        def work(tile: Tile, matrices: Found, out: Any) -> None:
            (rows, columns), (own, rest) = tile, _split(tile)
            stack = empty((p, rows.stop - rows.start, columns.stop - columns.start))
            for i, matrix in matrices:
                values = stack[i, :, :]
                values[:, :] = matrix
                centered[i].weigh(tile, centered[i].subtract(tile, values, put), put)
                values *= float(factors[i])
                if own > 0 and rest.start < rest.stop:  # it counts for its mirror image too
                    values[:, own:] *= 2.0**0.5
            flat = xp.reshape(stack, (p, -1))
            out += (2.0 if own == 0 else 1.0) * matmul(flat, flat.T)

        return self.run(TilePass(work, (p, p), n_alive=p))

    def combine(self, factors: FloatArray, centered: Centered, out: Any) -> Any:
        """Write Σ f_i G_i, centred, to a matrix of the library of the engine, and return it."""
        put = self.put

        def work(tile: Tile, found: Found, _: Any) -> None:
            (rows, columns), (own, rest) = tile, _split(tile)
            for _, total in found:
                centered.weigh(tile, total, put)
                out[rows, columns] = total
                out[rest, rows] = total[:, own:].T

        self.run(TilePass(work, factors=factors, centered=centered, compiled=("combine", out)))
        return out


def _blas_dot(left: FloatArray, right: FloatArray) -> float:
    return float(scipy.linalg.blas.ddot(left.ravel(), right.ravel()))


class Stored(Engine):
    """Stored matrices, each as one tile or in blocks of rows."""

    # By the BLAS of the factorisations, which takes arrays of any order.
    put = staticmethod(np.asarray)
    matmul = staticmethod(matmul)
    dot = staticmethod(_blas_dot)

    def __init__(self, matrices: Any, n_samples: int) -> None:
        self.matrices = list(matrices)
        self.n_kernels, self.n_samples = len(matrices), n_samples

    def run(self, task: TilePass) -> FloatArray:
        out, n = np.zeros(task.shape), self.n_samples
        step = n if task.n_alive <= 1 else max(1, _BLOCK_ENTRIES // (task.n_alive * n))
        wanted = range(self.n_kernels) if task.active is None else task.active.tolist()
        for start in range(0, n, step):
            rows, columns = slice(start, min(start + step, n)), slice(start, n)
            found = ((i, self.matrices[i][rows, columns]) for i in wanted)
            task.work((rows, columns), found, out)
        return out

    def combine(self, factors: FloatArray, centered: Centered, out: FloatArray) -> FloatArray:
        """Write Σ f_i G_i, centred, to ``out`` by one pass over each matrix, and return it."""
        whole = slice(0, self.n_samples), slice(0, self.n_samples)
        out.fill(0.0)
        for matrix, factor in zip(self.matrices, factors, strict=True):
            if factor != 0.0:  # one pass in place, where NumPy would need two
                scipy.linalg.blas.daxpy(matrix.ravel(), out.ravel(), a=factor)
        return np.asarray(centered.weigh(whole, centered.subtract(whole, out, self.put), self.put))

    def of(self, positions: NDArray[np.intp]) -> Stored:
        return Stored([self.matrices[i] for i in positions], self.n_samples)

    def row_means(
        self, weights: SampleWeights, active: NDArray[np.intp] | None = None
    ) -> FloatArray:
        with np.errstate(invalid="ignore", over="ignore"):
            return np.array([weights.means(matrix) for matrix in self.matrices])

    def without_means(self, taken: dict[int, Centered]) -> Stored:
        """Return the engine with centred copies of some matrices."""
        matrices, whole = list(self.matrices), (slice(None), slice(None))
        for i, off in taken.items():
            copied = off.subtract(whole, 1.0 * matrices[i], self.put)
            matrices[i] = 0.5 * (copied + copied.T)
        return Stored(matrices, self.n_samples)


def _split(tile: Tile) -> tuple[int, slice]:
    """Return the number of first columns of a tile that are among its rows, and the others."""
    rows, columns = tile
    own = max(0, min(rows.stop, columns.stop) - columns.start)
    return own, slice(columns.start + own, columns.stop)


def around_one(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return columns of numbers around 1, safe in single precision, and their factors."""
    lengths = np.linalg.norm(vectors, axis=0) / np.sqrt(len(vectors))
    lengths[lengths == 0] = 1.0
    return vectors / lengths, lengths
