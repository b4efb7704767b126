"""A low-rank approximation of the combined kernel, for a preconditioner.

Cholesky factorisation with pivots that are drawn in proportion to what is left of the diagonal
([Chen25]_, as a preconditioner of kernel systems [Diaz23]_). Rank r needs r columns of the kernel
and r · n_samples numbers. What is left over is positive semidefinite, and its diagonal is known.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import FloatArray, matmul

__all__ = ["PartialFactor"]

#: Pivots that are drawn at a time.
_BLOCK = 128
#: A pivot below this share of the largest of its block multiplies rounding errors.
_FALL = 1e-3
#: What counts as nothing left, as a share of the trace.
_NOTHING = 1e-13


class PartialFactor:
    """F with K ≈ FᵀF, grown as far as it is asked for.

    Parameters
    ----------
    diagonal : ndarray of shape (n_samples,)
        That of K.
    columns : callable
        From positions to the columns of K at them, of shape (n_positions, n_samples).
    most : int
        The largest rank.

    Attributes
    ----------
    rank : int
        The present one.
    left : ndarray of shape (n_samples,)
        The diagonal of K − FᵀF.
    """

    def __init__(
        self,
        diagonal: FloatArray,
        columns: Callable[[NDArray[np.intp]], FloatArray],
        most: int,
    ) -> None:
        self.rank, self.left = 0, np.maximum(diagonal, 0.0)
        self._columns, self._trace = columns, float(self.left.sum())
        # Pages that are never written to take no memory.
        self._memory = np.empty((min(most, len(diagonal)), len(diagonal)))
        self._rng = np.random.default_rng(0)

    @property
    def factor(self) -> FloatArray:
        """F, of shape (rank, n_samples)."""
        return self._memory[: self.rank]

    def extend(self, enough: float) -> None:
        """Go on until what is left of the trace is no more than ``enough``, or there is no room.

        Parameters
        ----------
        enough : float
            A trace.
        """
        enough = max(enough, _NOTHING * self._trace)
        while self.rank < len(self._memory) and float(self.left.sum()) > enough:
            if self._add_block() == 0:
                break

    def _add_block(self) -> int:
        """Draw pivots, add the rows of the factor that they stand for, and return their number."""
        open_ = np.flatnonzero(self.left > 0)
        size = min(_BLOCK, len(open_), len(self._memory) - self.rank)
        shares = self.left[open_] / self.left[open_].sum()
        pool = self._rng.choice(open_, size, replace=False, p=shares)
        rows, known = self._columns(pool), self.factor
        if self.rank:
            rows -= matmul(known[:, pool].T, known)
        block = np.asfortranarray(rows[:, pool])
        least = _FALL * float(block.diagonal().max())
        lower, order, rank, _ = scipy.linalg.lapack.dpstrf(block, lower=1, tol=least)
        chosen = order[:rank] - 1
        if rank:
            triangle = np.asfortranarray(lower[:rank, :rank])
            new = scipy.linalg.blas.dtrsm(1.0, triangle, rows[chosen], lower=1)
            self._memory[self.rank : self.rank + rank] = new
            self.rank += rank
            self.left = np.maximum(self.left - np.einsum("ij,ij->j", new, new), 0.0)
            self.left[pool[chosen]] = 0.0
        return int(rank)
