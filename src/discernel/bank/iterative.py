"""A bank whose systems are solved by iteration: no matrix of n_samples² numbers is ever made.

A product of the combined kernel with some columns is one pass over the tiles, whatever the number
of kernels. Some ten to thirty passes solve a system, with a preconditioner of low rank. Memory is
that of its factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Buffers, FloatArray, in_threads
from discernel.arrays.memory import memory_limit
from discernel.bank.iterative_system import IterativeSystem, Operator
from discernel.bank.preconditioner import PartialFactor
from discernel.bank.system import Inverse, System, Workspace
from discernel.bank.tiled import Found, Tile, TiledBank, _added
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel
from discernel.kernels.evaluate import PreparedRows

__all__ = ["IterativeBank", "Passes"]

#: The rank of the preconditioner: rows over this number, at least and at most so many. Making it
#: then costs about one pass.
_ROWS_A_RANK, _LEAST_RANK, _MOST_RANK = 16, 512, 2000
#: Bytes of its factor at most, and their share of the machine's memory.
_FACTOR_BYTES, _MEMORY_SHARE = 640 * 2**20, 1 / 16
#: Rows of a part up to which its systems are factored, which is then as fast.
_FACTORED_ROWS = 4000
#: Rows of the columns that are made at a time.
_STRIP = 512


@dataclass
class Passes:
    """How often all tiles were computed."""

    double: int = 0
    single: int = 0


class _Memory(Workspace):
    """What one system leaves for the next: its factor, and the subspace of a criterion."""

    def __init__(self) -> None:
        super().__init__()
        self.factor: tuple[FloatArray, PartialFactor] | None = None
        self.subspace: tuple[FloatArray, FloatArray] | None = None


class IterativeBank(TiledBank):
    """Kernels on rows, never stored, and systems that are never factored.

    Parameters
    ----------
    kernels : sequence of Kernel
        The candidates, resolved.
    X : array-like of shape (n_samples, n_features)
        The training rows.
    **options
        As in `TiledBank`.

    Attributes
    ----------
    passes : Passes
        How often all tiles were computed so far, in double and in single precision.

    Notes
    -----
    Kernels have trace 1, so no more than 1/ρ eigenvalues of their combination are above the ridge
    ρ: a preconditioner of that rank leaves a system that is solved in a few steps, whatever the
    number of samples. With a smaller one the number of steps grows with the root of what is left
    over ρ.

    Most products are of single precision where all kernels with weight are those of squared
    distances; residuals are always of double precision (see `conjugate.solve_refined`).
    """

    tols: ClassVar[tuple[float, float]] = 1e-8, 1e-4

    def __init__(self, kernels: Sequence[Kernel], X: Any, **options: Any) -> None:
        self.passes = Passes()
        super().__init__(kernels, X, **options)

    @property
    def n_passes(self) -> int:
        """How often all tiles were computed so far."""
        return self.passes.double + self.passes.single

    @property
    def workspace(self) -> _Memory:
        """What systems of these kernels share."""
        return cast(_Memory, self.__dict__.setdefault("workspace", _Memory()))

    def _pass(self, work: Any, make: Any, active: Any = None, single: Any = None) -> Any:
        self._count(single)
        return super()._pass(work, make, active, single)

    def _count(self, single: Any) -> None:
        if single is None:
            self.passes.double += 1
        else:
            self.passes.single += 1

    # ---- the combined kernel -----------------------------------------------------------------

    def combined_product(
        self, weights: FloatArray, vectors: FloatArray, single: PreparedRows | None = None
    ) -> FloatArray:
        """Return Σ w_i K_i V: one pass, and one product a tile.

        Parameters
        ----------
        weights : ndarray of shape (n_kernels,)
            The w_i.
        vectors : ndarray of shape (n_samples, n)
            V.
        single : PreparedRows, optional
            Rows of single precision, from `single_rows`, where the product may be.
        """
        factors, columns_of = weights * self.scales, self._centered_vectors(vectors)
        lengths = np.linalg.norm(columns_of, axis=0) / np.sqrt(len(columns_of))
        lengths[lengths == 0] = 1.0
        given = np.ascontiguousarray(columns_of)
        if single is not None:  # of numbers around 1, which have neither over- nor underflow
            given = (given / lengths).astype(np.float32)

        def work(tile: Tile, matrices: Found, place: tuple[FloatArray, Buffers]) -> None:
            (rows, columns), (out, buffers) = tile, place
            total = _sum_of_tile(matrices, factors, buffers, _shape(tile))
            out[rows] += np.matmul(total, given[columns])
            if rows != columns:
                out[columns] += np.matmul(total.T, given[rows])

        def part() -> tuple[FloatArray, Buffers]:
            return np.zeros(given.shape), Buffers(single is not None)

        parts = self._pass(work, part, np.flatnonzero(weights), single=single)
        out = _added([found for found, _ in parts])
        if single is not None:
            out *= lengths
        self._center_rows(out[None])
        return out

    def single_rows(self, weights: FloatArray) -> PreparedRows | None:
        """Return rows for products of single precision; None where they would not be faster.

        Nor good: nearly constant kernels need all digits of double precision.
        """
        active = np.flatnonzero(weights).tolist()
        if not isinstance(self._rows, PreparedRows) or any(i in self._taken_off for i in active):
            return None
        return self._rows.single({self._kernels.keys[i] for i in active})

    def _combined_diagonal(self, weights: FloatArray) -> FloatArray:
        factors, diagonal = weights * self.scales, np.zeros(self.n_samples)
        for i in np.flatnonzero(weights):
            values = self._kernels.kernels[i].diagonal(self._X)
            for means in (self._taken_off.get(int(i)), self._means[i]):
                if means is not None:
                    values = values - 2.0 * means + self._mean(means)
            diagonal += factors[i] * values
        if self.sample_weights is not None:
            diagonal *= self.sample_weights.values
        return diagonal

    def _combined_columns(self, weights: FloatArray, at: NDArray[np.intp]) -> FloatArray:
        """Return some columns of Σ w_i K_i, of shape (n_columns, n_samples)."""
        factors, out = weights * self.scales, np.empty((len(at), self.n_samples))
        means, active = factors @ self._means, np.flatnonzero(weights)
        kernels, across = self._kernels.of(active), means - self._mean(means)
        there: Any = self._rows[cast(Any, at)]

        def work(rows: slice, buffers: Buffers) -> None:
            tile: Any = rows, at
            found = kernels.matrices(self._rows[rows], there, buffers)
            found = ((int(active[i]), matrix) for i, matrix in found)
            found = self._less_means(tile, found, buffers)
            shape = rows.stop - rows.start, len(at)
            total = _sum_of_tile(found, factors, buffers, shape)
            total -= means[rows, None]
            total -= across[at]
            self._weigh(tile, total)
            out[:, rows] = total.T

        n = self.n_samples
        strips = [slice(start, min(start + _STRIP, n)) for start in range(0, n, _STRIP)]
        in_threads(work, strips, [Buffers() for _ in range(self._n_threads)])
        return out

    # ---- systems -----------------------------------------------------------------------------

    def rough_system(self, weights: FloatArray, ridge: float) -> System:
        return self._last_or_new(weights, ridge, self.tols[1])

    def systems(self, weights: FloatArray) -> Callable[[float | FloatArray], System]:
        weights = weights.copy()
        return lambda ridge: self._new_system(weights, np.full(self.n_samples, ridge), self.tols[0])

    def _new_system(self, weights: FloatArray, diagonal: FloatArray, tol: float) -> System:
        factor, subspace = self._factor(weights), self.workspace.subspace
        plain, single = self._without_workspace(), self.single_rows(weights)
        roots = np.ones(self.n_samples)
        if self.sample_weights is not None:
            roots = self.sample_weights.roots
        operator = Operator(
            double=lambda V: plain.combined_product(weights, V),
            single=None if single is None else lambda V: plain.combined_product(weights, V, single),
            diagonal=self._combined_diagonal(weights),
            kernel=roots / np.linalg.norm(roots),
            subspace=None
            if subspace is None
            else (subspace[0], np.tensordot(weights, subspace[1], axes=1)),
        )
        return IterativeSystem(operator, diagonal, factor, tol)

    def _factor(self, weights: FloatArray) -> PartialFactor:
        """Return the factor of the preconditioner, which systems of the same weights share."""
        workspace = self.workspace
        if workspace.factor is not None and np.array_equal(workspace.factor[0], weights):
            return workspace.factor[1]
        workspace.factor = None  # its memory goes first
        plain = self._without_workspace()
        factor = PartialFactor(
            self._combined_diagonal(weights),
            lambda at: plain._combined_columns(weights, at),
            _largest_rank(self.n_samples),
        )
        workspace.factor = weights.copy(), factor
        return factor

    def compressed(self, basis: FloatArray) -> FloatArray:
        # Where a criterion looks for its optimum, solutions are: a first guess for free.
        found = super().compressed(basis)
        self.workspace.subspace = basis, found
        return found

    # ---- what would need a matrix of n_samples² numbers ---------------------------------------

    has_matrices: ClassVar[bool] = False

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> NoReturn:
        self._refuse("whole matrix of the combined kernel", "criterion='margin'")

    def inverse(self, weights: FloatArray, ridge: float | FloatArray) -> Inverse:
        self._refuse("whole inverse", "learning weights by criterion='loo'")

    def _refuse(self, what: str, who: str) -> NoReturn:
        n = self.n_samples
        raise InvalidInputError(
            f"bank='iterative' never makes a matrix of n_samples², here {n:,} × {n:,} numbers, but "
            f"{who} needs the {what}. Use bank='tiled', which needs {16e-9 * n**2:.3g} GB, or "
            "criterion='rkda'."
        )

    def _kind_of_part(self, n_rows: int) -> type[TiledBank]:
        return IterativeBank if n_rows > _FACTORED_ROWS else TiledBank


def _largest_rank(n: int) -> int:
    """Return the rank of the preconditioner that time and memory allow."""
    memory = memory_limit()
    room = _FACTOR_BYTES if memory is None else min(_FACTOR_BYTES, _MEMORY_SHARE * memory)
    wanted = min(max(n // _ROWS_A_RANK, _LEAST_RANK), _MOST_RANK)
    return max(1, min(n, wanted, int(room / (8 * n))))


def _shape(tile: Tile) -> tuple[int, int]:
    rows, columns = tile
    return rows.stop - rows.start, columns.stop - columns.start


def _sum_of_tile(
    matrices: Found, factors: FloatArray, buffers: Buffers, shape: tuple[int, int]
) -> FloatArray:
    """Return Σ f_i G_i of a tile, in one of the buffers."""
    total, term = buffers("total", shape), buffers("term", shape)
    total[:] = 0.0
    for position, matrix in matrices:
        np.multiply(matrix, factors[position], out=term, casting="same_kind")
        total += term
    return total
