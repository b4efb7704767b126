"""A bank whose systems are solved by iteration: no matrix of n_samples² numbers is ever made.

A product of the combined kernel with some columns is one pass over the tiles, whatever the number
of kernels. Some ten to thirty passes solve a system, with a preconditioner of low rank. Memory is
that of its factor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NoReturn

import numpy as np

from discernel.arrays import FloatArray, memory_limit
from discernel.bank import tiles
from discernel.bank.iterative_system import IterativeSystem, Operator
from discernel.bank.preconditioner import PartialFactor
from discernel.bank.system import Inverse, System
from discernel.bank.tiled import Threads, TiledBank
from discernel.bank.tiles import Passes
from discernel.exceptions import InvalidInputError

__all__ = ["IterativeBank"]

#: The rank of the preconditioner: rows over this number, at least and at most so many. Making it
#: then costs about one pass.
_ROWS_A_RANK, _LEAST_RANK, _MOST_RANK = 16, 512, 2000
#: Bytes of its factor at most, and their share of the machine's memory.
_FACTOR_BYTES, _MEMORY_SHARE = 640 * 2**20, 1 / 16
#: Rows of a part up to which its systems are factored, which is then as fast.
_FACTORED_ROWS = 4000


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

    @property
    def passes(self) -> Passes:
        """How often all tiles were computed so far, in double and in single precision."""
        return self._engine.passes

    @property
    def n_passes(self) -> int:
        """How often all tiles were computed so far."""
        return self.passes.double + self.passes.single

    # ---- the combined kernel -----------------------------------------------------------------

    def combined_product(
        self, weights: FloatArray, vectors: FloatArray, single: Threads | None = None
    ) -> FloatArray:
        """Return Σ w_i K_i V: one pass, and one product a tile.

        Parameters
        ----------
        weights : ndarray of shape (n_kernels,)
            The w_i.
        vectors : ndarray of shape (n_samples, n)
            V.
        single : Threads, optional
            The engine of single precision, from `single_engine`, where the product may be.
        """
        engine = self._engine if single is None else single
        columns = self._centered_vectors(vectors)
        out = tiles.combined_product(engine, weights * self.scales, columns)
        self._center_rows(out[None])
        return out

    def single_engine(self, weights: FloatArray) -> Threads | None:
        """Return who computes tiles in single precision; None where that is not faster or good."""
        return self._engine.single(np.flatnonzero(weights).tolist())

    def _combined_diagonal(self, weights: FloatArray) -> FloatArray:
        factors, diagonal = weights * self.scales, np.zeros(self.n_samples)
        for i in np.flatnonzero(weights):
            values = self._engine.kernels.kernels[i].diagonal(self._X)
            taken = self._engine.taken_off.get(int(i))
            for means in [self._means[i]] if taken is None else [taken.means, self._means[i]]:
                values = values - 2.0 * means + self._mean(means)
            diagonal += factors[i] * values
        if self.sample_weights is not None:
            diagonal *= self.sample_weights.values
        return diagonal

    # ---- systems -----------------------------------------------------------------------------

    def rough_system(self, weights: FloatArray, ridge: float) -> System:
        return self._last_or_new(weights, ridge, self.tols[1])

    def systems(self, weights: FloatArray) -> Callable[[float | FloatArray], System]:
        weights = weights.copy()
        return lambda ridge: self._new_system(weights, np.full(self.n_samples, ridge), self.tols[0])

    def _new_system(self, weights: FloatArray, diagonal: FloatArray, tol: float) -> System:
        factor, subspace = self._factor(weights), self.workspace.subspace
        plain, single = self._without_workspace(), self.single_engine(weights)
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
        engine, factors = self._engine, weights * self.scales
        centered = self._centered(factors)
        factor = PartialFactor(
            self._combined_diagonal(weights),
            lambda at: engine.columns(at, factors, centered),
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

    def _kind_of_part(self, n_rows: int) -> Callable[..., TiledBank]:
        return IterativeBank if n_rows > _FACTORED_ROWS else TiledBank


def _largest_rank(n: int) -> int:
    """Return the rank of the preconditioner that time and memory allow."""
    memory = memory_limit()
    room = _FACTOR_BYTES if memory is None else min(_FACTOR_BYTES, _MEMORY_SHARE * memory)
    wanted = min(max(n // _ROWS_A_RANK, _LEAST_RANK), _MOST_RANK)
    return max(1, min(n, wanted, int(room / (8 * n))))
