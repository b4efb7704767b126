"""Kernels whose weights are known: one set of features for their sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, draw_rows, matmul, n_rows, symmetric_eigen
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.base import Normalization
from discernel.bank.combined import CombinedFeatures
from discernel.bank.lowrank import LowRankBank
from discernel.bank.normalize import check_normalization, kernel_scales, varying_kernels
from discernel.bank.system import Inverse, System
from discernel.bank.woodbury import SpectralSystem, WoodburySystem, feature_gram
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.features import FeatureMap, NystromMap
from discernel.kernels.weighted import WeightedKernels, slices

__all__ = ["BlendBank", "FeatureBank", "true_traces"]

#: Rows on which the mean of a kernel between different rows is taken, at least.
_ROWS_OF_MEANS = 2000
#: Weights that differ by less are the same.
_SAME = 1e-9
#: Rows that are rotated at a time.
_ROWS = 1024


def true_traces(
    kernels: Sequence[Kernel], X: Any, weights: SampleWeights | None, most: int = _ROWS_OF_MEANS
) -> tuple[FloatArray, FloatArray]:
    """Return the traces of raw and of centred kernels, without their matrices.

    The diagonal is that of all rows. The mean of the rest is that of at most ``most`` rows: of no
    fewer than there are, all is exact.

    Parameters
    ----------
    kernels : sequence of Kernel
        Resolved.
    X : array or CSR of shape (n_samples, n_features)
        The training rows.
    weights : SampleWeights or None
        How much rows count.
    most : int
        How many rows are looked at in pairs.
    """
    counts = np.ones(n_rows(X)) if weights is None else weights.values
    drawn = draw_rows(np.arange(n_rows(X)), most)
    few, rows = counts[drawn], X[drawn]
    pairs = float(few.sum() ** 2 - few @ few)
    all_pairs, total = float(counts.sum() ** 2 - counts @ counts), float(counts.sum())
    raw, centered = np.empty(len(kernels)), np.empty(len(kernels))
    for position, gram in KernelSet(kernels).matrices(rows):
        diagonal = kernels[position].diagonal(X)
        between = float(few @ gram @ few) - float((few**2) @ np.diagonal(gram))
        between *= all_pairs / pairs if len(drawn) < len(counts) else 1.0
        raw[position] = counts @ diagonal
        centered[position] = raw[position] - (between + (counts**2) @ diagonal) / total
    return raw, centered


class BlendBank(LowRankBank):
    """Σ w_iK_i of weights that are known, as the features of one map, in order of their spread.

    A rank is worth far more for one sum than for each of its terms. What this bank knows of single
    kernels is how they are normalised, and no more: it cannot learn weights.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, rank)
        The features of Σ c_ik_i, raw. Taken over: centred and rotated in place.
    names : sequence of str
        The names of the candidates.
    kept : ndarray of shape (n_kernels,)
        Those that vary.
    scales : ndarray of shape (n_kernels,)
        What the kept kernels are multiplied by to normalise them.
    weights : ndarray of shape (n_kernels,)
        w, at least 0, summing to 1.
    diagonal : ndarray of shape (n_samples,)
        Σ c_ik_i(x, x).
    feature_map : FeatureMap, optional
        What the features were made by; without, nothing can be predicted.
    sample_weights : SampleWeights, optional
        How much rows count; by default all the same.

    Notes
    -----
    Memory is n_samples · rank numbers and some matrices of the size of the rank. After one
    eigendecomposition of that size, any λ costs n_samples · rank operations, its leave-one-out
    errors included.
    """

    #: Which training rows the landmarks of the map are; None where that is not known.
    landmark_rows: NDArray[np.intp] | None = None

    def __init__(
        self,
        rows: FloatArray,
        names: Sequence[str],
        kept: NDArray[np.intp],
        scales: FloatArray,
        weights: FloatArray,
        diagonal: FloatArray,
        *,
        feature_map: FeatureMap | None = None,
        sample_weights: SampleWeights | None = None,
    ) -> None:
        self.sample_weights, self.n_samples = sample_weights, len(rows)
        self.names, self.n_candidates = list(names), len(names)
        self.kept, self.scales, self.weights = kept, scales, weights
        self._maps = None if feature_map is None else [feature_map]
        self._diagonals = diagonal[None]
        self._left = np.maximum(diagonal - np.einsum("ij,ij->i", rows, rows), 0.0)[None]
        shares = None if sample_weights is None else sample_weights.shares
        self._mean = rows.mean(axis=0) if shares is None else shares @ rows
        rows -= self._mean
        if sample_weights is not None:
            rows *= sample_weights.roots[:, None]
        values, self._rotation = symmetric_eigen(feature_gram(rows.T))
        self._values = np.maximum(values, 0.0)
        for part in slices(slice(0, len(rows)), _ROWS):
            rows[part] = matmul(rows[part], self._rotation)
        self._factors, self._means = [rows.T], [self._mean @ self._rotation]
        self._adopt(rows.T)
        self._traces = np.array([self._values.sum()])
        # ⟨B, K̃B⟩ is a sum of squares: its rounding is that of one number of the size of the trace.
        self.rounding = np.full(len(kept), 4 * np.finfo(np.float64).eps)

    @classmethod
    def of_landmarks(
        cls,
        kernels: Sequence[Kernel],
        weights: FloatArray,
        X: Any,
        draw: Callable[[WeightedKernels], NDArray[np.intp]],
        *,
        rank: int = 0,
        normalization: Normalization = "centered_trace",
        sample_weights: SampleWeights | None = None,
    ) -> BlendBank:
        """Return the bank of kernels of some weights, by Nyström features of their sum.

        Parameters
        ----------
        kernels : sequence of Kernel
            Resolved and positive semidefinite.
        weights : ndarray of shape (n_kernels,)
            At least 0. Those of kernels that are constant on the rows go to the others.
        X : array or CSR of shape (n_samples, n_features)
            The training rows.
        draw : callable
            From the sum of kernels, normalised, to the positions of landmarks.
        rank : int
            How many rows the means of kernels are taken from, if more than 2,000.
        normalization : {"centered_trace", "trace"}, default="centered_trace"
            What is made equal for all kernels.
        sample_weights : SampleWeights, optional
            How much rows count; by default all the same.
        """
        names = kernel_names(kernels)
        raw, centered = true_traces(kernels, X, sample_weights, max(rank, _ROWS_OF_MEANS))
        kept = varying_kernels(raw, centered, names)
        total = float(n_rows(X)) if sample_weights is None else sample_weights.total
        scales = kernel_scales(check_normalization(normalization), total, raw[kept], centered[kept])
        known = weights[kept] / weights[kept].sum() if weights[kept].any() else None
        known = np.full(len(kept), 1.0 / len(kept)) if known is None else known
        active = np.flatnonzero(known)
        own = WeightedKernels([kernels[kept[i]] for i in active], (known * scales)[active])
        drawn = draw(own)
        feature_map = NystromMap(own.kernels, own.coefficients, X[drawn])
        bank = cls(
            feature_map(X),
            names,
            kept,
            scales,
            known,
            own.diagonal(X),
            feature_map=feature_map,
            sample_weights=sample_weights,
        )
        bank.landmark_rows = drawn[feature_map.pivots]
        return bank

    def _factor_weights(self, weights: FloatArray) -> FloatArray:
        if len(weights) != self.n_kernels or np.abs(weights - self.weights).max() > _SAME:
            self._refuse("other weights than those it was made with")
        return np.ones(1)

    def halved(self) -> BlendBank:
        """Return the bank of half of the landmarks, normalised as this one is."""
        if self._maps is None:
            raise InvalidInputError("A part of a bank has no map to halve. Halve the whole.")
        few = self._maps[0].halved
        rows = matmul(self._features.T, np.ascontiguousarray(self._rotation[few].T))
        if self.sample_weights is not None:
            rows /= self.sample_weights.roots[:, None]
        rows += self._mean[few]
        return self._like(rows, self._diagonals[0], self.sample_weights)

    def subset(self, rows: NDArray[np.intp]) -> BlendBank:
        """Return the same sum on some of the samples, centred anew and of the same trace a row."""
        raw = np.ascontiguousarray(self._features[:, rows].T)
        if self.sample_weights is not None:
            raw /= self.sample_weights.roots[rows, None]
        raw += self._means[0]
        return self._like(raw, self._diagonals[0, rows], self._weights_of(rows))

    def _like(
        self, rows: FloatArray, diagonal: FloatArray, sample_weights: SampleWeights | None
    ) -> BlendBank:
        """Return a bank of other features of the same kernels, of the trace of this one."""
        total = len(rows) if sample_weights is None else sample_weights.total
        factor = self.total / total
        return BlendBank(
            rows * np.sqrt(factor) if factor != 1.0 else rows,
            self.names,
            self.kept,
            self.scales * factor,
            self.weights,
            diagonal * factor,
            sample_weights=sample_weights,
        )

    def combined_features(self, weights: FloatArray) -> CombinedFeatures:
        """Return the features of new rows."""
        if self._maps is None:
            raise InvalidInputError("A part of a bank has no map. Predict with the whole.")
        return CombinedFeatures(self._maps, self._factor_weights(weights), self._mean)

    def feature_coef(self, weights: FloatArray, dual: FloatArray) -> FloatArray:
        """Return β with which Σ_j dual_j K̃(x_j, x) is the centred features of x times β."""
        return matmul(self._rotation, super().feature_coef(weights, dual))

    def _new_system(self, weights: FloatArray, diagonal: FloatArray, tol: float) -> System:
        self._factor_weights(weights)
        if (diagonal == diagonal[0]).all():
            return SpectralSystem(self._features.T, self._values, diagonal[0])
        return WoodburySystem(self._features, diagonal)

    def systems(self, weights: FloatArray) -> Callable[[float | FloatArray], System]:
        return lambda ridge: self.system(weights, ridge)

    def traces(self) -> FloatArray:
        return np.ones(self.n_kernels)

    # ---- what is not known -------------------------------------------------------------------

    def _refuse(self, what: str) -> NoReturn:
        raise InvalidInputError(
            f"A bank of one sum of kernels knows nothing of {what}. Use a LowRankBank, or "
            "another bank, to learn weights."
        )

    def products(self, vectors: FloatArray) -> FloatArray:
        self._refuse("products with single kernels")

    def inverse(self, weights: FloatArray, ridge: float | FloatArray) -> Inverse:
        self._refuse("inner products with single kernels")

    def inner(self, matrix: FloatArray) -> FloatArray:
        self._refuse("inner products with single kernels")

    def inner_products(self) -> FloatArray:
        self._refuse("inner products of single kernels")

    def compressed(self, basis: FloatArray) -> FloatArray:
        self._refuse("products with single kernels")

    def select(self, positions: NDArray[np.intp]) -> NoReturn:
        self._refuse("single kernels")


#: Banks that keep features, and predict with them.
FeatureBank: TypeAlias = LowRankBank
