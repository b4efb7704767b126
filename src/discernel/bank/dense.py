"""A bank that holds all Gram matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.base import Normalization
from discernel.bank.checks import check_no_indefinite, check_stack, check_values
from discernel.bank.exact import ExactBank
from discernel.bank.products import CANCELLING, centered_twice, row_means, traces_of
from discernel.bank.tiles import Stored

__all__ = ["DenseBank"]


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
