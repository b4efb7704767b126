"""Banks of features: kernels that are approximated by K̃_i = Φ_iᵀΦ_i of low rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import FloatArray, draw_rows, matmul, n_rows, symmetric_eigen
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.base import Normalization
from discernel.bank.combined import CombinedFeatures, gram_stack
from discernel.bank.factored import FactoredBank
from discernel.bank.products import centered_twice, weighted_sums
from discernel.bank.system import Inverse, System
from discernel.bank.woodbury import (
    SpectralSystem,
    WoodburyInverse,
    WoodburySystem,
    feature_gram,
)
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.features import (
    ExactMap,
    FeatureMap,
    How,
    NystromMap,
    draw_landmarks,
    exact_rank,
)
from discernel.kernels.weighted import WeightedKernels, slices

__all__ = ["LANDMARKS", "LowRankBank", "default_rank", "share_rank", "spectra_of"]

#: The rank of all kernels together, where none is given and there is room.
_RANK, _LEAST_RANK = 1500, 100
#: How landmarks are drawn; benchmarks/low_rank.py compares.
LANDMARKS: How = "kmeans++"
#: Rows on which the decay of spectra is looked at.
_PROBED = 800
#: Eigenvalues below this share of the trace are rounding.
_NOTHING = 1e-12
#: An exact map is taken where its rank is within so much of what the spectrum asks for.
_NEARLY, _SPARE = 1.25, 8
#: Rows whose features are made at a time.
_ROWS = 4096


def default_rank(n_samples: int, cache_bytes: float) -> int:
    """Return the total rank for which nobody asked: 1,500, or as much as there is room for.

    Parameters
    ----------
    n_samples : int
        The number of rows.
    cache_bytes : float
        The room for all features; a rank of 100 is always there.
    """
    return int(min(_RANK, max(_LEAST_RANK, cache_bytes // (8 * n_samples)), n_samples))


def spectra_of(kernels: Sequence[Kernel], X: Any) -> list[FloatArray]:
    """Return the eigenvalues of centred kernels of trace 1 on at most 800 rows, falling.

    Parameters
    ----------
    kernels : sequence of Kernel
        Resolved.
    X : array or CSR of shape (n_samples, n_features)
        Rows, of which some are drawn.
    """
    found = []
    for gram in gram_stack(kernels, draw_rows(X, _PROBED)):
        centered = centered_twice(gram)
        values = np.maximum(scipy.linalg.eigvalsh(centered, overwrite_a=True)[::-1], 0.0)
        total = float(values.sum())
        found.append(values / total if total > 0 else values)
    return found


def share_rank(spectra: Sequence[FloatArray], total: int, n_samples: int) -> list[int]:
    """Return a rank per kernel: the largest eigenvalues of all kernels are taken first.

    Parameters
    ----------
    spectra : sequence of ndarray
        The eigenvalues of every kernel on some rows, falling, of kernels of one trace.
    total : int
        The sum of the ranks, at most.
    n_samples : int
        No rank is above this.
    """
    counts = [int(np.count_nonzero(values > _NOTHING)) for values in spectra]
    largest = np.concatenate([v[:c] for v, c in zip(spectra, counts, strict=True)])
    owner = np.repeat(np.arange(len(spectra)), counts)
    taken = owner[np.argsort(-largest, kind="stable")[:total]]
    ranks = np.maximum(np.bincount(taken, minlength=len(spectra)), 1)
    # Kernels of which all that the rows show is taken share what is left.
    while (left := total - int(ranks.sum())) > 0:
        full = [len(v) == c for v, c in zip(spectra, counts, strict=True)]
        open_ = np.flatnonzero(np.array(full) & (ranks < n_samples))
        if not len(open_):
            break
        more = np.minimum(max(1, left // len(open_)), n_samples - ranks[open_])
        ranks[open_] += more if int(more.sum()) <= left else (np.arange(len(open_)) < left)
    return [int(rank) for rank in np.minimum(ranks, n_samples)]


class LowRankBank(FactoredBank):
    """Kernels as features: what is learned is exact for K̃_i = Φ_iᵀΦ_i, which is below K_i.

    Parameters
    ----------
    features : ndarray of shape (total_rank, n_samples)
        All Φ_i, one below the other. Taken over: centred and normalised in place.
    ranks : sequence of int
        The rank of every kernel.
    names : sequence of str
        The names of the kernels.
    diagonals : ndarray of shape (n_kernels, n_samples)
        k_i(x, x) of the raw kernels, by which they are normalised as if they were whole.
    maps : sequence of FeatureMap, optional
        What the features were made by; without, nothing can be predicted.
    normalization : {"centered_trace", "trace"}, default="centered_trace"
        What is made equal for all kernels.
    part : bool, default=False
        Whether the rows are a part of the training set, on which a kernel may be constant.
    sample_weights : SampleWeights, optional
        How much rows count; by default all the same.

    Notes
    -----
    Memory is that of the features, and of some matrices of the size of the rank. A system costs
    one factorisation of that size, once ΦΦᵀ is known; leave-one-out errors cost
    n_samples · total_rank². Where the total rank is above the number of samples, systems are those
    of `FactoredBank`.
    """

    cheap_path: ClassVar[bool] = True

    def __init__(
        self,
        features: FloatArray,
        ranks: Sequence[int],
        names: Sequence[str],
        diagonals: FloatArray,
        *,
        maps: Sequence[FeatureMap] | None = None,
        normalization: Normalization = "centered_trace",
        part: bool = False,
        sample_weights: SampleWeights | None = None,
    ) -> None:
        ends = np.cumsum([0, *ranks])
        factors = [features[a:b] for a, b in pairwise(ends)]
        left = diagonals - [np.einsum("ij,ij->j", factor, factor) for factor in factors]
        super().__init__(
            factors,
            names,
            normalization=normalization,
            part=part,
            sample_weights=sample_weights,
            raw_traces=weighted_sums(diagonals, sample_weights),
        )
        self._left = self.scales[:, None] * np.maximum(left[self.kept], 0.0)
        self._diagonals = diagonals[self.kept]
        self._maps = None if maps is None else [maps[i] for i in self.kept]
        whole = len(self.kept) == len(factors)
        self._adopt(features if whole else np.concatenate([*self._factors, features[:0]]))

    def _adopt(self, features: FloatArray) -> None:
        """Take features as those of all kernels; nothing is known of them yet."""
        self._features, self._gram = features, None
        ends = np.cumsum([0, *(len(factor) for factor in self._factors)])
        self._factors = [features[a:b] for a, b in pairwise(ends)]

    _gram: FloatArray | None

    @classmethod
    def from_maps(
        cls, maps: Sequence[FeatureMap], kernels: Sequence[Kernel], X: Any, **options: Any
    ) -> LowRankBank:
        """Return the bank of some maps, one per kernel, on some rows.

        Parameters
        ----------
        maps : sequence of FeatureMap
            Of any kind.
        kernels : sequence of Kernel
            What they approximate, resolved.
        X : array or CSR of shape (n_samples, n_features)
            The training rows.
        **options : dict
            ``normalization`` and ``sample_weights``, as of this class.
        """
        ranks = [one.rank for one in maps]
        features, ends = np.empty((sum(ranks), n_rows(X))), np.cumsum([0, *ranks])
        for first, one in zip(ends[:-1], maps, strict=True):
            for rows in slices(slice(0, n_rows(X)), _ROWS):
                features[first : first + one.rank, rows] = one(X[rows]).T
        diagonals = np.array([kernel.diagonal(X) for kernel in kernels])
        return cls(features, ranks, kernel_names(kernels), diagonals, maps=maps, **options)

    @classmethod
    def of_rank(
        cls, kernels: Sequence[Kernel], X: Any, rank: int, how: How = LANDMARKS, **options: Any
    ) -> LowRankBank:
        """Return the bank of kernels whose ranks sum to about ``rank``, by their spectra.

        Parameters
        ----------
        kernels : sequence of Kernel
            Resolved and positive semidefinite.
        X : array or CSR of shape (n_samples, n_features)
            The training rows.
        rank : int
            The total rank; n_kernels · n_samples or more makes all rows landmarks.
        how : {"uniform", "kmeans++", "leverage"}
            How landmarks are drawn.
        **options : dict
            ``normalization`` and ``sample_weights``, as of this class.
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
        landmarks = draw_landmarks(X, max(ranks), how, kernel=mean)
        landmarks = np.random.default_rng(0).permutation(landmarks)
        maps: list[FeatureMap] = []
        for kernel, own in zip(kernels, ranks, strict=True):
            exact = None if own == n else exact_rank(kernel, X.shape[1])
            if exact is not None and exact <= _NEARLY * own + _SPARE:
                maps.append(ExactMap(kernel, X.shape[1]))
            else:
                maps.append(NystromMap([kernel], [1.0], X[np.sort(landmarks[:own])]))
        return cls.from_maps(maps, kernels, X, **options)

    # ---- what is approximated ----------------------------------------------------------------

    @property
    def rank(self) -> int:
        """The number of features of all kernels together."""
        return len(self._features)

    def remainder(self, weights: FloatArray) -> FloatArray:
        """Return the diagonal of Σ w_i (K_i − K̃_i), not centred, with the weights of rows."""
        left = np.asarray(self._factor_weights(weights) @ self._left)
        return left if self.sample_weights is None else left * self.sample_weights.values

    def captured(self) -> FloatArray:
        """Return the share of the trace of every centred kernel that its features hold."""
        left = weighted_sums(self._left, self.sample_weights)
        return np.asarray(self._traces / (self._traces + left))

    def halved(self) -> LowRankBank:
        """Return the bank of half of the landmarks, normalised as this one is."""
        if self._maps is None:
            raise InvalidInputError("A part of a bank has no maps to halve. Halve the whole.")
        few = [one.halved for one in self._maps]
        part = self._without_workspace()
        part._factors = [f[rows] for f, rows in zip(self._factors, few, strict=True)]
        part._means = [mean[rows] for mean, rows in zip(self._means, few, strict=True)]
        part._traces = np.array([np.vdot(factor, factor) for factor in part._factors])
        part._maps = None
        part._adopt(np.concatenate(part._factors))
        return part

    # ---- prediction --------------------------------------------------------------------------

    def combined_features(self, weights: FloatArray) -> CombinedFeatures:
        """Return the features of new rows, for kernels that carry weight."""
        if self._maps is None:
            raise InvalidInputError("A part of a bank has no maps. Predict with the whole.")
        active = np.flatnonzero(weights)
        center = [np.sqrt(weights[i]) * self._means[i] for i in active]
        return CombinedFeatures(
            [self._maps[i] for i in active],
            np.sqrt(weights[active] * self.scales[active]),
            np.concatenate(center),
        )

    def feature_coef(self, weights: FloatArray, dual: FloatArray) -> FloatArray:
        """Return β with which Σ_j dual_j K̃(x_j, x) is the centred features of x times β."""
        if self.sample_weights is not None:
            dual = dual / self.sample_weights.roots[:, None]
        dual, roots = np.ascontiguousarray(dual), np.sqrt(self._factor_weights(weights))
        return np.concatenate(
            [roots[i] * matmul(self._factors[i], dual) for i in np.flatnonzero(roots)]
        )

    # ---- systems -----------------------------------------------------------------------------

    @property
    def _is_low(self) -> bool:
        return self.rank < self.n_samples

    def _feature_weights(self, weights: FloatArray) -> FloatArray:
        return np.repeat(weights, [len(factor) for factor in self._factors])

    def _known_gram(self) -> FloatArray:
        if self._gram is None:
            self._gram = feature_gram(self._features)
        return self._gram

    def _new_system(self, weights: FloatArray, diagonal: FloatArray, tol: float) -> System:
        if not self._is_low:
            return super()._new_system(weights, diagonal, tol)
        return self._woodbury(weights, diagonal)

    def _woodbury(self, weights: FloatArray, diagonal: FloatArray) -> WoodburySystem:
        uniform = bool((diagonal == diagonal[0]).all())
        gram = self._known_gram() if uniform else None
        return WoodburySystem(self._features, diagonal, self._feature_weights(weights), gram)

    def systems(self, weights: FloatArray) -> Callable[[float | FloatArray], System]:
        """Return the function from a ridge to its system, by one eigendecomposition."""
        if not self._is_low:
            return super().systems(weights)
        roots = np.sqrt(self._feature_weights(weights))
        values, vectors = symmetric_eigen(self._known_gram() * (roots * roots[:, None]))
        rows = matmul(self._features.T, np.ascontiguousarray(roots[:, None] * vectors))

        def system(ridge: float | FloatArray) -> System:
            diagonal = np.full(self.n_samples, ridge)
            if (diagonal == diagonal[0]).all():
                return SpectralSystem(rows, np.maximum(values, 0.0), diagonal[0])
            return self._woodbury(weights, diagonal)

        return system

    def inverse(self, weights: FloatArray, ridge: float | FloatArray) -> Inverse:
        if not self._is_low:
            return super().inverse(weights, ridge)
        diagonal = np.full(self.n_samples, ridge)
        return WoodburyInverse(self._woodbury(weights, diagonal), diagonal, self._factors)

    # ---- parts -------------------------------------------------------------------------------

    def subset(self, rows: NDArray[np.intp]) -> LowRankBank:
        return LowRankBank(
            np.concatenate(self._raw_factors(rows)),
            [len(factor) for factor in self._factors],
            [self.names[index] for index in self.kept],
            self._diagonals[:, rows],
            normalization=self.normalization,
            part=True,
            sample_weights=self._weights_of(rows),
        )

    def select(self, positions: NDArray[np.intp]) -> Self:
        part = super().select(positions)
        part._left, part._diagonals = self._left[positions], self._diagonals[positions]
        part._maps = None if self._maps is None else [self._maps[i] for i in positions]
        part._adopt(np.concatenate([*part._factors, self._features[:0]]))
        return part
