"""Banks of exact kernels, whose tiles an engine computes; the bank of stored matrices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, as_host
from discernel.arrays.sample_weights import SampleWeights, row_weights
from discernel.bank.base import Bank, Centering
from discernel.bank.grams import (
    CANCELLING,
    Normalization,
    check_no_indefinite,
    check_stack,
    check_values,
    kernel_scales,
    rounding_errors,
    varying_kernels,
)
from discernel.bank.tiles import Centered, Engine, Stored


class ExactBank(Bank):
    """Exact kernels, whose tiles an engine computes.

    Parameters
    ----------
    engine : Engine
        The engine of all candidates.
    names : sequence of str
        Names of the candidates.
    diagonals : ndarray of shape (n_candidates, n_samples)
        Diagonals of the raw matrices.
    normalization : {"centered_trace", "trace"}, default="centered_trace"
        The trace that is made equal for all kernels.
    part : bool, default=False
        Whether the rows are a subset of the training set, on which a kernel may be constant.
    sample_weights : SampleWeights, optional
        Weights of rows; equal by default.

    Warns
    -----
    DroppedKernelWarning
        If a kernel is constant on the training set; it is left out.
    """

    def __init__(
        self,
        engine: Engine,
        names: Sequence[str],
        diagonals: FloatArray,
        *,
        normalization: Normalization = "centered_trace",
        part: bool = False,
        sample_weights: SampleWeights | None = None,
    ) -> None:
        self.normalization = normalization
        self.row_weights = row_weights(sample_weights, engine.n_samples)
        self.names, self.n_candidates = list(names), engine.n_kernels
        self.n_samples = engine.n_samples
        means, sums = engine.row_means(self.row_weights), self.row_weights.sums
        self._check_values(means)
        traces = sums(diagonals)
        centered_traces = traces - sums(means)
        self.kept = varying_kernels(traces, centered_traces, self.names, part=part)
        self._engine, self._row_means = engine.of(self.kept), means[self.kept]
        self._centered_traces, traces = centered_traces[self.kept], traces[self.kept]
        self._center_cancelling(traces, diagonals[self.kept])
        self.scales = kernel_scales(normalization, self.total, traces, self._centered_traces)
        self.rounding = self.scales * rounding_errors(traces, self._centered_traces)

    @abstractmethod
    def _check_values(self, means: FloatArray) -> None:
        """Raise an error if row means show that a matrix is not finite or not a Gram matrix."""

    def _center_cancelling(self, traces: FloatArray, diagonals: FloatArray) -> None:
        """Subtract the means of rows and columns from the tiles of nearly constant kernels.

        Rounding errors of these means are the means of the centred tiles, from another pass.
        """
        self._means = self._row_means.copy()  # row means of tiles, which may be centred
        cancelling = np.flatnonzero(traces > CANCELLING * self._centered_traces)
        if not len(cancelling):
            return
        rows = self.row_weights
        taken = {int(i): self._row_means[i].copy() for i in cancelling}
        self._engine = self._engine.without_means({i: Centered(m, rows) for i, m in taken.items()})
        self._means[cancelling] = self._engine.row_means(rows, cancelling)[cancelling]
        for i, means in taken.items():
            left = diagonals[i] - means - (means - rows.means(means))
            self._centered_traces[i] = rows.sums(left) - rows.sums(self._means[i])
            self._row_means[i] = means + self._means[i]

    def _centered(self, factors: FloatArray) -> Centered:
        """Return the centring of tiles of Σ f_i G_i."""
        return Centered(factors @ self._means, self.row_weights)

    def _centered_vectors(self, vectors: FloatArray) -> FloatArray:
        """Return CᵀDV, to be multiplied by raw matrices; without weights, V minus its means."""
        return self.row_weights.scale(self.row_weights.project(vectors))

    def _centered_products(self, products: FloatArray) -> FloatArray:
        """Return D C times products with raw matrices, in place."""
        return self.row_weights.scale(self.row_weights.center(products))

    # ---- what criteria ask for ---------------------------------------------------------------

    def traces(self) -> FloatArray:
        return np.asarray(self.scales * self._centered_traces)

    def products(self, vectors: FloatArray) -> FloatArray:
        # G̃V = P G (P V): centring vectors is m·n work where centring G would be m².
        found = self._engine.product(self._centered_vectors(vectors))
        found = self._centered_products(found)
        found *= self.scales[:, None, None]
        return found

    def compressed(self, basis: FloatArray) -> FloatArray:
        basis = self._centered_vectors(basis)
        half = self._engine.compress(basis) * self.scales[:, None, None]
        return np.asarray(half + half.transpose(0, 2, 1))

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
        out = np.empty((self.n_samples, self.n_samples)) if out is None else out
        factors = weights * self.scales
        return np.asarray(self._engine.combine(factors, self._centered(factors), out))

    def inner(self, matrix: FloatArray) -> FloatArray:
        return self._inner(self._engine.put(matrix))

    def _inner(self, matrix: Any) -> FloatArray:
        """Return every ⟨K_i, S⟩ of a symmetric S of the library of the engine.

        ⟨PG_iP, S⟩ = ⟨G_i, S⟩ − 2(G_i1)ᵀs + (1ᵀG_i1)·mean(s), s the row means of S: nothing is
        centred. With weights, the means of rows of G are weighted, and S is that which G meets,
        DSD.
        """
        engine = self._engine
        if not self.row_weights.is_equal:
            roots = self.row_weights.roots
            matrix = matrix * engine.put(roots[:, None])
            matrix *= engine.put(roots[None, :])
        sums = as_host(engine.xp.sum(matrix, axis=1))
        more = self.row_weights.means(self._means) * sums.sum() - 2.0 * self._means @ sums
        return np.asarray(self.scales * (engine.inner(matrix) + more))

    def inner_products(self) -> FloatArray:
        return self._engine.inner_products(self._means, self.row_weights, self.scales)

    def select(self, positions: NDArray[np.intp]) -> Self:
        part = self._select(positions, "_centered_traces", "_row_means", "_means")
        part._engine = self._engine.of(positions)
        return part

    def centering(self, weights: FloatArray) -> Centering:
        means = (weights * self.scales) @ self._row_means
        return self._centering(means, float(self.row_weights.means(means)))


class DenseBank(ExactBank):
    """The candidates as one stack of raw Gram matrices, which is not changed.

    Only nearly constant matrices are copied, because they are centred first.

    Parameters
    ----------
    grams : array-like of shape (n_candidates, n_samples, n_samples)
        The raw matrices.
    names : sequence of str, optional
        Names of the matrices, for messages.
    trusted : sequence of bool, optional
        Whether each matrix is symmetric and positive semidefinite without a check.
    **options
        ``normalization``, ``part`` and ``sample_weights``, as in `ExactBank`.
    """

    def __init__(
        self,
        grams: Any,
        names: Sequence[str] | None = None,
        *,
        trusted: Sequence[bool] | None = None,
        **options: Any,
    ) -> None:
        self._grams, names = check_stack(grams, names)
        self._trusted = trusted
        engine = Stored(self._grams, self._grams.shape[1])
        super().__init__(engine, names, np.diagonal(self._grams, axis1=1, axis2=2), **options)

    def _check_values(self, means: FloatArray) -> None:
        check_values(self._grams, means, self.names, self._trusted)

    def check_definite(self) -> None:
        check_no_indefinite(self._grams, self.names)

    def subset(self, rows: NDArray[np.intp]) -> DenseBank:
        stack = np.empty((self.n_kernels, len(rows), len(rows)))
        for position, index in enumerate(self.kept):
            stack[position] = self._grams[index][np.ix_(rows, rows)]
        trusted, options = [True] * self.n_kernels, self._part_options(rows)
        return DenseBank(stack, self._kept_names, trusted=trusted, **options)
