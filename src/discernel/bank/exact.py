"""Banks of whole kernels, that differ in who computes the tiles and how systems are solved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import tiles
from discernel.bank.base import Bank, Centering, Normalization
from discernel.bank.normalize import check_normalization, kernel_scales, varying_kernels
from discernel.bank.products import (
    CANCELLING,
    centering_of_inner,
    rounding_errors,
    weighted_sums,
)
from discernel.bank.tiles import Centered, Engine

__all__ = ["ExactBank"]


class ExactBank(Bank):
    """Kernels of which an engine gives the tiles.

    Parameters
    ----------
    engine : Engine
        Of all candidates.
    names : sequence of str
        Their names.
    diagonals : ndarray of shape (n_candidates, n_samples)
        Those of the raw matrices.
    means : ndarray of shape (n_candidates, n_samples), optional
        The means of their rows, where they are known.
    normalization : {"centered_trace", "trace"}, default="centered_trace"
        What is made equal for all kernels.
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
        engine: Engine,
        names: Sequence[str],
        diagonals: FloatArray,
        means: FloatArray | None = None,
        *,
        normalization: Normalization = "centered_trace",
        part: bool = False,
        sample_weights: SampleWeights | None = None,
    ) -> None:
        self.normalization = check_normalization(normalization)
        self.sample_weights, self.names = sample_weights, list(names)
        self.n_candidates, self.n_samples = engine.n_kernels, engine.n_samples
        means = self._means_of_rows(engine) if means is None else means
        self._check_values(means)
        traces = weighted_sums(diagonals, sample_weights)
        centered_traces = traces - weighted_sums(means, sample_weights)
        self.kept = varying_kernels(traces, centered_traces, self.names, part=part)
        self._engine, self._row_means = engine.of(self.kept), means[self.kept]
        self._centered_traces, traces = centered_traces[self.kept], traces[self.kept]
        self._center_cancelling(traces, diagonals[self.kept])
        self.scales = kernel_scales(normalization, self.total, traces, self._centered_traces)
        self.rounding = self.scales * rounding_errors(traces, self._centered_traces)

    @abstractmethod
    def _check_values(self, means: FloatArray) -> None:
        """Raise a clear error if means of rows show that a matrix is not finite, or it is bad."""

    def _center_cancelling(self, traces: FloatArray, diagonals: FloatArray) -> None:
        """Have the means of rows and columns taken off the tiles of nearly constant kernels.

        What is wrong with the computed means is found by another pass, and goes with the rest.
        """
        self._means = self._row_means.copy()  # of what tiles are then, not of the kernels
        cancelling = np.flatnonzero(traces > CANCELLING * self._centered_traces)
        if not len(cancelling):
            return
        taken = {int(i): self._row_means[i].copy() for i in cancelling}
        self._engine = self._engine.less(taken, self.sample_weights)
        self._means[cancelling] = self._means_of_rows(self._engine, cancelling)[cancelling]
        for i, means in taken.items():
            left = diagonals[i] - means - (means - self._mean(means))
            sums = weighted_sums(np.array([left, self._means[i]]), self.sample_weights)
            self._centered_traces[i] = float(sums[0] - sums[1])
            self._row_means[i] = means + self._means[i]

    def _means_of_rows(self, engine: Engine, active: NDArray[np.intp] | None = None) -> FloatArray:
        if self.sample_weights is not None:
            return tiles.product(engine, self.sample_weights.shares[:, None], active)[:, :, 0]
        ones = np.ones((self.n_samples, 1))
        return tiles.product(engine, ones, active)[:, :, 0] / self.n_samples

    def _mean(self, row_means: FloatArray) -> float:
        """Return the mean of numbers that belong to rows."""
        weights = self.sample_weights
        return float(row_means.mean() if weights is None else row_means @ weights.shares)

    def _centered(self, factors: FloatArray) -> Centered:
        """Return what centres tiles of Σ f_i G_i."""
        return Centered.weighted(factors @ self._means, self.sample_weights)

    # ---- what criteria ask for ---------------------------------------------------------------

    def traces(self) -> FloatArray:
        return np.asarray(self.scales * self._centered_traces)

    def products(self, vectors: FloatArray) -> FloatArray:
        # G̃V = P G (P V): centring vectors is m·n work where centring G would be m².
        vectors = self._centered_vectors(vectors)
        return self._centered_products(tiles.product(self._engine, vectors))

    def compressed(self, basis: FloatArray) -> FloatArray:
        basis = self._centered_vectors(basis)
        half = tiles.compress(self._engine, basis) * self.scales[:, None, None]
        return np.asarray(half + half.transpose(0, 2, 1))

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
        out = np.empty((self.n_samples, self.n_samples)) if out is None else out
        factors = weights * self.scales
        return np.asarray(tiles.combine(self._engine, factors, self._centered(factors), out))

    def inner(self, matrix: FloatArray) -> FloatArray:
        return self._inner(self._engine.put(matrix))

    def _inner(self, matrix: Any) -> FloatArray:
        """Return every ⟨K_i, S⟩ of a symmetric S of the library of the engine."""
        engine, weights = self._engine, self.sample_weights
        if weights is not None:
            matrix = matrix * engine.put(weights.roots[:, None])
            matrix *= engine.put(weights.roots[None, :])
        row_sums = engine.host(engine.xp.sum(matrix, axis=1))
        centering = centering_of_inner(self._means, row_sums, weights)
        return np.asarray(self.scales * (tiles.inner(engine, matrix) + centering))

    def inner_products(self) -> FloatArray:
        products = tiles.inner_products(self._engine, self._means, self.sample_weights)
        return np.asarray(products * np.outer(self.scales, self.scales))

    def select(self, positions: NDArray[np.intp]) -> Self:
        part = self._shallow_selection(positions)
        part._engine = self._engine.of(positions)
        part._centered_traces = self._centered_traces[positions]
        part._row_means, part._means = self._row_means[positions], self._means[positions]
        return part

    def centering(self, weights: FloatArray) -> Centering:
        return self._centering((weights * self.scales) @ self._row_means)
