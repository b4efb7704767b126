"""A bank that holds all Gram matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import FloatArray, matmul
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.base import Normalization
from discernel.bank.checks import check_no_indefinite, check_stack, check_values
from discernel.bank.exact import ExactBank
from discernel.bank.products import CANCELLING, centered_twice, row_means, traces_of
from discernel.bank.tiles import Engine, Passes, TilePass

__all__ = ["DenseBank"]

#: Entries of the rows of all matrices that are taken at a time where work keeps them.
_BLOCK_ENTRIES = 2**17


def _dot(left: FloatArray, right: FloatArray) -> float:
    return float(scipy.linalg.blas.ddot(left.ravel(), right.ravel()))


class Stored(Engine):
    """Matrices that are there, each as one tile, or some of its rows.

    Parameters
    ----------
    matrices : sequence of ndarray of shape (n_samples, n_samples)
        The G_i.
    n_samples : int
        Their rows.
    """

    # By the BLAS of the factorisations.
    matmul = staticmethod(matmul)
    dot = staticmethod(_dot)

    def __init__(self, matrices: Any, n_samples: int) -> None:
        self.matrices = list(matrices)
        self.n_kernels, self.n_samples = len(matrices), n_samples
        self.passes = Passes()

    def run(self, task: TilePass) -> FloatArray:
        out, n, factors = np.zeros(task.shape), self.n_samples, task.factors
        step = n if task.n_alive <= 1 else max(1, _BLOCK_ENTRIES // (task.n_alive * n))
        wanted = range(self.n_kernels) if task.active is None else task.active.tolist()
        for start in range(0, n, step):
            rows, columns = slice(start, min(start + step, n)), slice(start, n)
            found: Any = ((i, self.matrices[i][rows, columns]) for i in wanted)
            task.work((rows, columns), found if factors is None else self._sum(task), out)
        return out

    def _sum(self, task: TilePass) -> FloatArray:
        total, whole = task.memory, slice(0, self.n_samples)
        total.fill(0.0)
        for matrix, factor in zip(self.matrices, task.factors, strict=True):  # type: ignore[arg-type]
            if factor != 0.0:  # one pass in place, where NumPy would need two
                scipy.linalg.blas.daxpy(matrix.ravel(), total.ravel(), a=factor)
        if task.centered is not None:
            task.centered.subtract((whole, whole), total, self.put)
        return np.asarray(total)

    def of(self, positions: NDArray[np.intp]) -> Stored:
        return Stored([self.matrices[i] for i in positions], self.n_samples)

    def replaced(self, copies: dict[int, FloatArray]) -> Stored:
        """Return the engine with copies in the place of some matrices."""
        return Stored([copies.get(i, one) for i, one in enumerate(self.matrices)], self.n_samples)


class DenseBank(ExactBank):
    """The candidates as one stack of raw Gram matrices, which is not changed.

    Nor copied, but for matrices that are nearly constant: these are centred first.

    Parameters
    ----------
    grams : array-like of shape (n_candidates, n_samples, n_samples)
        The raw matrices.
    names : sequence of str, optional
        Their names, for messages.
    normalization : {"centered_trace", "trace"}, default="centered_trace"
        What is made equal for all kernels.
    trusted : sequence of bool, optional
        Which matrices need not be checked for symmetry and definiteness.
    part : bool, default=False
        Whether the rows are a part of the training set, on which a kernel may be constant.
    sample_weights : SampleWeights, optional
        How much rows count; by default all the same.

    Warns
    -----
    DroppedKernelWarning
        If a kernel is constant on the training set; it is left out.
    """

    _engine: Stored

    def __init__(
        self,
        grams: Any,
        names: Sequence[str] | None = None,
        *,
        normalization: Normalization = "centered_trace",
        trusted: Sequence[bool] | None = None,
        part: bool = False,
        sample_weights: SampleWeights | None = None,
    ) -> None:
        self._grams, names = check_stack(grams, names)
        self._trusted = trusted
        super().__init__(
            Stored(self._grams, self._grams.shape[1]),
            names,
            np.diagonal(self._grams, axis1=1, axis2=2),
            row_means(self._grams, sample_weights),
            normalization=normalization,
            part=part,
            sample_weights=sample_weights,
        )

    def _check_values(self, means: FloatArray) -> None:
        check_values(self._grams, means, self.names, self._trusted)

    def _center_cancelling(self, traces: FloatArray, diagonals: FloatArray) -> None:
        """Put a centred copy in the place of matrices that are nearly constant."""
        self._means, weights, copies = self._row_means.copy(), self.sample_weights, {}
        for i in np.flatnonzero(traces > CANCELLING * self._centered_traces):
            copies[int(i)] = centered_twice(self._engine.matrices[i], weights)
            self._means[i], self._centered_traces[i] = 0.0, traces_of(copies[int(i)], weights)
        self._engine = self._engine.replaced(copies)

    def check_definite(self) -> None:
        check_no_indefinite(self._grams, self.names)

    def subset(self, rows: NDArray[np.intp]) -> DenseBank:
        stack = np.empty((self.n_kernels, len(rows), len(rows)))
        for position, index in enumerate(self.kept):
            stack[position] = self._grams[index][np.ix_(rows, rows)]
        return DenseBank(
            stack,
            [self.names[index] for index in self.kept],
            normalization=self.normalization,
            trusted=[True] * self.n_kernels,
            part=True,
            sample_weights=self._weights_of(rows),
        )
