"""Banks of features: kernels K̃_i = Φ_iᵀΦ_i, exact or of low rank, or one sum of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NoReturn, Self, cast

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, draw_rows, matmul, n_rows, self_product, symmetric_eigen
from discernel.arrays.sample_weights import SampleWeights, row_weights
from discernel.bank.base import Bank, Centering
from discernel.bank.combined import CombinedFeatures
from discernel.bank.grams import Normalization, kernel_scales, rounding_errors, varying_kernels
from discernel.bank.ranks import REMAINDER, factor_kernel, share_rank, spectra_of
from discernel.bank.system import System, WoodburySystem, feature_gram
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.features import (
    ExactMap,
    FeatureMap,
    NystromMap,
    draw_landmarks,
    exact_rank,
)
from discernel.kernels.weighted import WeightedKernels, slices

#: An exact map is used if its rank is at most 1.25 · r + 8, with r the rank by the spectrum.
_NEARLY, _SPARE = 1.25, 8
#: Number of rows whose features are computed, and rotated, at a time.
_ROWS, _ROTATED = 4096, 1024
#: Minimum number of rows for the mean of a kernel over pairs of different rows.
_ROWS_OF_MEANS = 2000
#: Weights that differ by less are equal.
_SAME = 1e-9


class FeatureBank(Bank):
    """Kernels K̃_i = Φ_iᵀΦ_i given by features. Results are exact for K̃_i ≤ K_i.

    Parameters
    ----------
    features : ndarray of shape (total_rank, n_samples)
        All Φ_i, stacked. They are centred and normalized in place.
    ranks : sequence of int
        Rank of each kernel.
    names : sequence of str
        Names of the kernels.
    diagonals : ndarray of shape (n_kernels, n_samples), optional
        k_i(x, x) of the raw kernels, if features approximate them. Kernels are then normalized by
        their own traces, with the means of the features.
    maps : sequence of FeatureMap, optional
        The feature maps. Without maps, kernels predict new rows.
    normalization, part, sample_weights
        As in `ExactBank`.

    Notes
    -----
    Memory is that of the features and of some matrices of size rank². Features are centred and
    normalized once: PGP = (ΦP)ᵀ(ΦP). If the total rank is below the number of samples, a system
    costs one factorization of a rank × rank matrix, after ΦΦᵀ is known, and leave-one-out errors
    cost n_samples · total_rank².
    """

    def __init__(
        self,
        features: FloatArray,
        ranks: Sequence[int],
        names: Sequence[str],
        *,
        diagonals: FloatArray | None = None,
        maps: Sequence[FeatureMap] | None = None,
        normalization: Normalization = "centered_trace",
        part: bool = False,
        sample_weights: SampleWeights | None = None,
    ) -> None:
        self.normalization, self.n_samples = normalization, features.shape[1]
        self.names, self.n_candidates = list(names), len(ranks)
        self.needs_ridge = self.cheap_path = diagonals is not None
        rows = self.row_weights = row_weights(sample_weights, self.n_samples)
        factors = _split(features, ranks)
        lengths = np.array([np.einsum("ij,ij->j", factor, factor) for factor in factors])
        diagonals = lengths if diagonals is None else diagonals
        raw_traces, mean = rows.sums(diagonals), rows.means(features)  # Φ1/m
        features -= mean[:, None]
        rows.scale(features.T)
        held = np.array([np.vdot(factor, factor) for factor in factors])
        traces = held
        if self.needs_ridge:  # tr PGP = tr G − m‖Φ1/m‖², where the mean is that of the features
            squares = np.array([part @ part for part in _split(mean, ranks)])
            traces = np.maximum(held, raw_traces - self.total * squares)
        self.kept = varying_kernels(raw_traces, traces, self.names, part=part)
        traces, raw_traces = traces[self.kept], raw_traces[self.kept]
        self.scales = kernel_scales(normalization, self.total, raw_traces, traces)
        self._traces = self.scales * held[self.kept]
        # The error includes the remainder of the factor, which is far larger than rounding.
        self.rounding = self.scales * (rounding_errors(traces, traces) + REMAINDER * raw_traces)
        self._left = self.scales[:, None] * np.maximum(diagonals - lengths, 0.0)[self.kept]
        self._diagonals = diagonals[self.kept]
        self._maps = None if maps is None else [maps[i] for i in self.kept]
        self._features, self._mean, self._ranks = features, mean, np.array(ranks, dtype=np.intp)
        if len(self.kept) < len(ranks):
            self._take([self._blocks[i] for i in self.kept])
        roots = np.sqrt(np.repeat(self.scales, self._ranks))
        self._features *= roots[:, None]
        self._mean *= roots

    @property
    def _blocks(self) -> list[NDArray[np.intp]]:
        """Positions of the features of each kernel."""
        return _split(np.arange(self.rank), self._ranks)

    def _take(self, blocks: list[NDArray[np.intp]]) -> None:
        """Keep only the features at these positions, given for each kernel, in new memory."""
        features = np.concatenate([np.arange(0), *blocks])
        self._features, self._mean = self._features[features], self._mean[features]
        self._ranks = np.array([len(block) for block in blocks], dtype=np.intp)
        self.__dict__.pop("_gram", None)

    @property
    def _factors(self) -> list[FloatArray]:
        """The features Φ_i of each kernel."""
        return _split(self._features, self._ranks)

    # ---- constructors ------------------------------------------------------------------------

    @classmethod
    def from_kernels(cls, kernels: Sequence[Kernel], X: Any, **options: Any) -> FeatureBank:
        """Return the bank of positive semidefinite kernels on rows, exact up to rounding."""
        # Never None, because no rank is above the number of rows.
        factors = [cast(FloatArray, factor_kernel(kernel, X)) for kernel in kernels]
        ranks = [len(factor) for factor in factors]
        features = np.empty((sum(ranks), n_rows(X)))
        for block in _split(features, ranks):  # frees the memory of each factor after its copy
            block[:] = factors.pop(0)
        return cls(features, ranks, kernel_names(kernels), **options)

    @classmethod
    def from_maps(
        cls, maps: Sequence[FeatureMap], kernels: Sequence[Kernel], X: Any, **options: Any
    ) -> FeatureBank:
        """Return the bank of feature maps, one for each of the resolved kernels."""
        ranks = [one.rank for one in maps]
        features = np.empty((sum(ranks), n_rows(X)))
        for block, one in zip(_split(features, ranks), maps, strict=True):
            for rows in slices(slice(0, n_rows(X)), _ROWS):
                block[:, rows] = one(X[rows]).T
        diagonals = np.array([kernel.diagonal(X) for kernel in kernels])
        names = kernel_names(kernels)
        return cls(features, ranks, names, diagonals=diagonals, maps=maps, **options)

    @classmethod
    def of_rank(cls, kernels: Sequence[Kernel], X: Any, rank: int, **options: Any) -> FeatureBank:
        """Return the bank of features whose ranks, chosen by spectra, sum to about ``rank``.

        With a rank of n_kernels · n_samples or more, all rows are landmarks.
        """
        n = n_rows(X)
        if rank < len(kernels):
            raise InvalidInputError(
                f"The rank must be at least the number of kernels, {len(kernels)}. Got {rank!r}."
            )
        if rank >= n * len(kernels):
            ranks = [n] * len(kernels)
        else:
            ranks = share_rank(spectra_of(kernels, X), rank, n)
        mean = WeightedKernels(list(kernels), np.full(len(kernels), 1.0 / len(kernels)))
        landmarks = draw_landmarks(X, max(ranks), mean)
        landmarks = np.random.default_rng(0).permutation(landmarks)
        maps: list[FeatureMap] = []
        for kernel, own in zip(kernels, ranks, strict=True):
            exact = None if own == n else exact_rank(kernel, X.shape[1])
            if exact is not None and exact <= _NEARLY * own + _SPARE:
                maps.append(ExactMap(kernel, X.shape[1]))
            else:
                maps.append(NystromMap([kernel], [1.0], X[np.sort(landmarks[:own])]))
        return cls.from_maps(maps, kernels, X, **options)

    # ---- approximation error -----------------------------------------------------------------

    def predicting(self) -> FeatureBank | None:
        return None if self._maps is None else self

    @property
    def rank(self) -> int:
        """The number of features of all kernels together."""
        return len(self._features)

    def remainder(self, weights: FloatArray) -> FloatArray:
        """Return the diagonal of Σ w_i (K_i − K̃_i), not centred, times the weights of rows."""
        return np.asarray(self._factor_weights(weights) @ self._left * self.row_weights.values)

    def captured(self) -> FloatArray:
        """Return the share of the trace of each centred kernel captured by its features."""
        return np.asarray(self._traces / (self._traces + self.row_weights.sums(self._left)))

    def halved(self) -> FeatureBank:
        """Return the bank of half of the landmarks, with the normalization of this bank."""
        maps = self._known_maps
        part = self._without_workspace()
        part._take([block[one.halved] for block, one in zip(self._blocks, maps, strict=True)])
        part._traces = np.array([np.vdot(factor, factor) for factor in part._factors])
        part._maps = None
        return part

    # ---- products and traces -----------------------------------------------------------------

    def check_definite(self) -> None:
        """Do nothing: ΦᵀΦ is positive semidefinite."""

    def traces(self) -> FloatArray:
        return np.asarray(self._traces)

    def norms(self) -> FloatArray:
        small = [f if f.shape[0] <= f.shape[1] else f.T for f in self._factors]
        return np.array([np.linalg.norm(matmul(f, f.T), 2) for f in small])

    def products(self, vectors: FloatArray) -> FloatArray:
        vectors, factors = np.ascontiguousarray(vectors), self._factors
        out = np.empty((self.n_kernels, *vectors.shape))
        for position, factor in enumerate(factors):
            out[position] = matmul(factor.T, matmul(factor, vectors))
        return out

    def inner(self, matrix: FloatArray) -> FloatArray:
        matrix = np.ascontiguousarray(matrix)
        return np.array([np.sum(matmul(f, matrix) * f) for f in self._factors])

    def inner_products(self) -> FloatArray:
        out, factors = np.empty((self.n_kernels, self.n_kernels)), self._factors
        for i, left in enumerate(factors):
            for j, right in enumerate(factors[: i + 1]):
                out[i, j] = out[j, i] = np.square(matmul(left, right.T)).sum()
        return out

    def compressed(self, basis: FloatArray) -> FloatArray:
        seen = [matmul(factor, np.ascontiguousarray(basis)) for factor in self._factors]
        shape = len(seen), basis.shape[1], basis.shape[1]
        return np.array([matmul(part.T, part) for part in seen]).reshape(shape)

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
        by = np.sqrt(self._feature_weights(weights))
        active = np.flatnonzero(by)
        if not len(active):
            return np.zeros((self.n_samples, self.n_samples))
        return self_product((self._features[active] * by[active, None]).T)

    def centering(self, weights: FloatArray) -> Centering:
        # The row means of ΦᵀΦ are Φᵀ(Φ1/m).
        by = self._feature_weights(weights) * self._mean
        grand_mean = float(by @ self._mean)
        means = by @ self._features / self.row_weights.roots
        return self._centering(means + grand_mean, grand_mean)

    def _factor_weights(self, weights: FloatArray) -> FloatArray:
        """Convert weights of kernels to weights of the Φ_i."""
        return weights

    def _feature_weights(self, weights: FloatArray) -> FloatArray:
        return np.repeat(self._factor_weights(weights), self._ranks)

    # ---- prediction --------------------------------------------------------------------------

    @property
    def _known_maps(self) -> list[FeatureMap]:
        if self._maps is None:
            raise InvalidInputError(
                "The bank of a subset has no feature maps. Predict with the whole bank."
            )
        return self._maps

    def combined_features(self, weights: FloatArray) -> CombinedFeatures:
        """Return the feature maps of kernels with nonzero weight, for new rows."""
        maps, active = self._known_maps, np.flatnonzero(weights)
        by = self._feature_weights(weights)
        return CombinedFeatures(
            [maps[i] for i in active],
            np.sqrt(weights[active] * self.scales[active]),
            (np.sqrt(by) * self._mean)[by > 0],
        )

    def feature_coef(self, weights: FloatArray, dual: FloatArray) -> FloatArray:
        """Return β such that Σ_j dual_j K̃(x_j, x) is the product of centred features of x and β."""
        by = np.sqrt(self._feature_weights(weights))
        dual = np.ascontiguousarray(self.row_weights.unscale(dual))
        return np.asarray((by[:, None] * matmul(self._features, dual))[by > 0])

    # ---- systems -----------------------------------------------------------------------------

    @cached_property
    def _gram(self) -> FloatArray:
        return feature_gram(self._features)

    def _is_low(self, ridge: float | FloatArray) -> bool:
        """Whether systems are solved in feature space."""
        return self.rank < self.n_samples and bool(np.all(ridge))

    def _new_system(self, weights: FloatArray, diagonal: FloatArray, tol: float) -> System:
        if not self._is_low(diagonal):
            return super()._new_system(weights, diagonal, tol)
        return self._woodbury(weights, diagonal)

    def _woodbury(
        self, weights: FloatArray, diagonal: FloatArray, kernels: Sequence[FloatArray] = ()
    ) -> WoodburySystem:
        gram, by = None, self._feature_weights(weights)
        if (diagonal == diagonal[0]).all():
            gram = self._gram
        return WoodburySystem(self._features, diagonal, by, gram, kernels)

    def systems(self, weights: FloatArray) -> Callable[[float | FloatArray], System]:
        """Return a function from a ridge to its system, by one eigendecomposition."""
        if not self._is_low(1.0):
            return super().systems(weights)
        roots = np.sqrt(self._feature_weights(weights))
        values, vectors = symmetric_eigen(self._gram * (roots * roots[:, None]))
        rows = matmul(self._features.T, np.ascontiguousarray(roots[:, None] * vectors))
        return lambda ridge: WoodburySystem(rows.T, ridge, gram=np.maximum(values, 0.0))

    def inverse(self, weights: FloatArray, ridge: float | FloatArray) -> System:
        factors, diagonal = self._factors, np.full(self.n_samples, ridge)
        if not self._is_low(diagonal):
            return super().inverse(weights, ridge)
        return self._woodbury(weights, diagonal, factors)

    # ---- parts -------------------------------------------------------------------------------

    def _raw_rows(self, rows: Any) -> FloatArray:
        """Return the features of some samples, one row each, neither weighted nor centred."""
        return self.row_weights.subset(rows).unscale(self._features[:, rows].T) + self._mean

    def subset(self, rows: NDArray[np.intp]) -> FeatureBank:
        features = self._raw_rows(rows) / np.sqrt(np.repeat(self.scales, self._ranks))
        return FeatureBank(
            np.ascontiguousarray(features.T),
            self._ranks.tolist(),
            self._kept_names,
            diagonals=self._diagonals[:, rows] if self.needs_ridge else None,
            **self._part_options(rows),
        )

    def select(self, positions: NDArray[np.intp]) -> Self:
        part = self._select(positions, "_traces", "_left", "_diagonals")
        part._take([self._blocks[i] for i in positions])
        part._maps = None if self._maps is None else [self._maps[i] for i in positions]
        return part


def _split(array: NDArray[Any], ranks: Sequence[int] | NDArray[np.intp]) -> list[NDArray[Any]]:
    """Split an array by the ranks of kernels, without a copy."""
    return [array[first:last] for first, last in pairwise(np.cumsum([0, *ranks]))]


# ---- one sum of kernels --------------------------------------------------------------------------


def true_traces(
    kernels: Sequence[Kernel], X: Any, weights: SampleWeights, most: int = _ROWS_OF_MEANS
) -> tuple[FloatArray, FloatArray]:
    """Return the traces of raw and centred kernels, without their full matrices.

    Diagonals are those of all rows. The mean over pairs of different rows is estimated from at most
    ``most`` rows, and exact if there are no more.
    """
    counts = weights.values
    drawn = draw_rows(np.arange(n_rows(X)), most)
    few, rows = counts[drawn], X[drawn]
    pairs = float(few.sum() ** 2 - few @ few)
    all_pairs, total = float(counts.sum() ** 2 - counts @ counts), float(counts.sum())
    raw, centered = np.empty(len(kernels)), np.empty(len(kernels))
    together = KernelSet(kernels)
    for position, gram in together.matrices(together.prepare(rows)):
        diagonal = kernels[position].diagonal(X)
        between = float(few @ gram @ few) - float((few**2) @ np.diagonal(gram))
        between *= all_pairs / pairs if len(drawn) < len(counts) else 1.0
        raw[position] = counts @ diagonal
        centered[position] = raw[position] - (between + (counts**2) @ diagonal) / total
    return raw, centered


class BlendBank(FeatureBank):
    """One sum of kernels Σ w_iK_i with known weights, as features sorted by variance.

    A given rank approximates one sum much better than each of its terms. The bank has no single
    kernels, only their normalization, so it cannot learn weights.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, rank)
        The raw features of Σ c_ik_i. They are centred and rotated in place.
    names : sequence of str
        Names of the candidates.
    kept : ndarray of shape (n_kernels,)
        Positions of the candidates that are not constant.
    scales : ndarray of shape (n_kernels,)
        Factors that normalize the kept kernels.
    weights : ndarray of shape (n_kernels,)
        The weights w, at least 0, with sum 1.
    diagonal : ndarray of shape (n_samples,)
        Σ c_ik_i(x, x).
    feature_map : FeatureMap, optional
        The feature map. Without it, the bank cannot predict.
    sample_weights : SampleWeights, optional
        Weights of rows; equal by default.

    Notes
    -----
    Memory is n_samples · rank numbers and some matrices of size rank². After one eigendecomposition
    of that size, each λ with its leave-one-out errors costs n_samples · rank operations.
    """

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
        self.n_samples, self.row_weights = len(rows), row_weights(sample_weights, len(rows))
        self.names, self.n_candidates = list(names), len(names)
        self.kept, self.scales, self.weights = kept, scales, weights
        self.needs_ridge = self.cheap_path = True
        self._ranks = np.array([rows.shape[1]])
        self._maps = None if feature_map is None else [feature_map]
        self._diagonals = diagonal[None]
        self._left = np.maximum(diagonal - np.einsum("ij,ij->i", rows, rows), 0.0)[None]
        self._center = self.row_weights.means(rows.T)
        rows -= self._center
        self.row_weights.scale(rows)
        values, self._rotation = symmetric_eigen(feature_gram(rows.T))
        self._values = np.maximum(values, 0.0)
        for part in slices(slice(0, len(rows)), _ROTATED):
            rows[part] = matmul(rows[part], self._rotation)
        self._features, self._mean = rows.T, self._center @ self._rotation
        self._traces = np.array([self._values.sum()])
        # ⟨B, K̃B⟩ is a sum of squares, with the rounding error of one number as large as the trace.
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
        """Return the bank of a weighted sum of kernels, by its Nyström features.

        Parameters
        ----------
        kernels : sequence of Kernel
            Positive semidefinite kernels, resolved.
        weights : ndarray of shape (n_kernels,)
            At least 0. Weights of kernels that are constant on the rows go to the others.
        X : array or CSR of shape (n_samples, n_features)
            The training rows.
        draw : callable
            From the normalized sum of kernels to positions of landmarks.
        rank : int
            Number of rows for the means of kernels, if more than 2,000.
        normalization, sample_weights
            As in `ExactBank`.
        """
        names = kernel_names(kernels)
        counts = row_weights(sample_weights, n_rows(X))
        raw, centered = true_traces(kernels, X, counts, max(rank, _ROWS_OF_MEANS))
        kept = varying_kernels(raw, centered, names)
        scales = kernel_scales(normalization, counts.total, raw[kept], centered[kept])
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
            sample_weights=counts,
        )
        bank.landmark_rows = drawn[feature_map.pivots]
        return bank

    def _factor_weights(self, weights: FloatArray) -> FloatArray:
        if len(weights) != self.n_kernels or np.abs(weights - self.weights).max() > _SAME:
            self._refuse("weights other than its own")
        return np.ones(1)

    @property
    def _factors(self) -> NoReturn:
        self._refuse("single kernels")

    def select(self, positions: NDArray[np.intp]) -> NoReturn:
        self._refuse("single kernels")

    def _refuse(self, what: str) -> NoReturn:
        raise InvalidInputError(
            f"A bank of one sum of kernels does not support {what}. Use FeatureBank.of_rank, or "
            "another bank, to learn weights."
        )

    def traces(self) -> FloatArray:
        return np.ones(self.n_kernels)

    def halved(self) -> BlendBank:
        """Return the bank of half of the landmarks, with the normalization of this bank."""
        few = self._known_maps[0].halved
        rows = matmul(self._features.T, np.ascontiguousarray(self._rotation[few].T))
        rows = self.row_weights.unscale(rows) + self._center[few]
        return self._like(rows, self._diagonals[0], self.row_weights)

    def subset(self, rows: NDArray[np.intp]) -> BlendBank:
        """Return the bank of a subset of the samples, centred, with the same trace per row."""
        raw = np.ascontiguousarray(self._raw_rows(rows))
        return self._like(raw, self._diagonals[0, rows], self.row_weights.subset(rows))

    def _like(self, rows: FloatArray, diagonal: FloatArray, weights: SampleWeights) -> BlendBank:
        """Return a bank of other features of the same kernels, with the trace of this bank."""
        factor = self.total / weights.total
        return BlendBank(
            rows * np.sqrt(factor) if factor != 1.0 else rows,
            self.names,
            self.kept,
            self.scales * factor,
            self.weights,
            diagonal * factor,
            sample_weights=weights,
        )

    def combined_features(self, weights: FloatArray) -> CombinedFeatures:
        return CombinedFeatures(self._known_maps, self._factor_weights(weights), self._center)

    def feature_coef(self, weights: FloatArray, dual: FloatArray) -> FloatArray:
        return matmul(self._rotation, super().feature_coef(weights, dual))

    def _new_system(self, weights: FloatArray, diagonal: FloatArray, tol: float) -> System:
        self._factor_weights(weights)
        return WoodburySystem(self._features, diagonal, gram=self._values)

    def systems(self, weights: FloatArray) -> Callable[[float | FloatArray], System]:
        return lambda ridge: self.system(weights, ridge)
