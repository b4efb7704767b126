"""A bank that holds all Gram matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import FloatArray, matmul
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.base import Bank, Centering, Normalization
from discernel.bank.checks import check_no_indefinite, check_stack, check_values
from discernel.bank.normalize import check_normalization, kernel_scales, varying_kernels
from discernel.bank.products import (
    CANCELLING,
    centered_twice,
    centering_of_inner,
    inner_products,
    rounding_errors,
    row_means,
    traces_of,
    weighted_sums,
)

__all__ = ["DenseBank"]


class DenseBank(Bank):
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
        self.normalization = check_normalization(normalization)
        self.sample_weights = sample_weights
        self._grams, self.names = check_stack(grams, names)
        self.n_candidates, self.n_samples, _ = self._grams.shape
        self._row_means = row_means(self._grams, sample_weights)
        check_values(self._grams, self._row_means, self.names, trusted)
        traces = traces_of(self._grams, sample_weights)
        centered_traces = traces - weighted_sums(self._row_means, sample_weights)
        self.kept = varying_kernels(traces, centered_traces, self.names, part=part)
        traces, self._centered_traces = traces[self.kept], centered_traces[self.kept]
        self._matrices = [self._grams[index] for index in self.kept]
        self._means = self._row_means[self.kept]
        self._center_cancelling(traces)
        self.scales = kernel_scales(normalization, self.total, traces, self._centered_traces)
        self.rounding = self.scales * rounding_errors(traces, self._centered_traces)

    def _center_cancelling(self, traces: FloatArray) -> None:
        """Put a centred copy in the place of matrices that are nearly constant."""
        for position in np.flatnonzero(traces > CANCELLING * self._centered_traces):
            matrix = centered_twice(self._matrices[position], self.sample_weights)
            self._matrices[position], self._means[position] = matrix, 0.0
            self._centered_traces[position] = traces_of(matrix, self.sample_weights)

    def check_definite(self) -> None:
        check_no_indefinite(self._grams, self.names)

    def traces(self) -> FloatArray:
        return np.asarray(self.scales * self._centered_traces)

    def products(self, vectors: FloatArray) -> FloatArray:
        # G̃V = P G (P V): centring vectors is m·n work where centring G would be m².
        vectors = self._centered_vectors(vectors)
        out = np.empty((self.n_kernels, *vectors.shape))
        for position, matrix in enumerate(self._matrices):
            out[position] = matmul(matrix, vectors)
        return self._centered_products(out)

    def compressed(self, basis: FloatArray) -> FloatArray:
        basis = self._centered_vectors(basis)
        out = np.empty((self.n_kernels, basis.shape[1], basis.shape[1]))
        for position, matrix in enumerate(self._matrices):
            out[position] = matmul(basis.T, matmul(matrix, basis))
        out *= self.scales[:, None, None]
        return out

    def inner(self, matrix: FloatArray) -> FloatArray:
        if self.sample_weights is not None:
            matrix = self.sample_weights.scale_both(matrix.copy())
        flat = matrix.ravel()
        products = [scipy.linalg.blas.ddot(kernel.ravel(), flat) for kernel in self._matrices]
        centering = centering_of_inner(self._means, matrix.sum(axis=1), self.sample_weights)
        return np.asarray(self.scales * (np.array(products) + centering))

    def inner_products(self) -> FloatArray:
        products = inner_products(self._grams, self._row_means, weights=self.sample_weights)
        products = products[np.ix_(self.kept, self.kept)]
        return np.asarray(products * np.outer(self.scales, self.scales))

    def subset(self, rows: NDArray[np.intp]) -> DenseBank:
        stack = np.empty((self.n_kernels, len(rows), len(rows)))
        for position, index in enumerate(self.kept):
            stack[position] = self._grams[index][np.ix_(rows, rows)]
        names = [self.names[index] for index in self.kept]
        return DenseBank(
            stack,
            names,
            normalization=self.normalization,
            trusted=[True] * self.n_kernels,
            part=True,
            sample_weights=self._weights_of(rows),
        )

    def select(self, positions: NDArray[np.intp]) -> DenseBank:
        part = self._shallow_selection(positions)
        part._matrices = [self._matrices[i] for i in positions]
        part._means = self._means[positions]
        part._centered_traces = self._centered_traces[positions]
        return part

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
        matrix = np.empty((self.n_samples, self.n_samples)) if out is None else out
        matrix.fill(0.0)
        flat = matrix.ravel()
        coefficients = weights * self.scales
        for kernel, coefficient in zip(self._matrices, coefficients, strict=True):
            if coefficient != 0.0:  # one pass in place, where NumPy would need two
                scipy.linalg.blas.daxpy(kernel.ravel(), flat, a=coefficient)
        means = coefficients @ self._means
        matrix -= means[:, None]
        if self.sample_weights is None:
            matrix -= means - means.mean()
            return matrix
        matrix -= means - means @ self.sample_weights.shares
        return self.sample_weights.scale_both(matrix)

    def centering(self, weights: FloatArray) -> Centering:
        return self._centering((weights * self.scales) @ self._row_means[self.kept])
