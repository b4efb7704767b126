"""A bank of kernels of low rank: each is held as a factor, G_i = Φ_iᵀΦ_i.

A smooth kernel of one feature, or of a few, has a numerical rank of some dozen whatever the number
of samples. Its factor is then found from that many of its columns, to the rounding error of its
entries, and whatever a criterion asks for costs rank · n_samples instead of n_samples² a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import FloatArray, matmul, n_rows, self_product
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.base import Bank, Centering, Normalization
from discernel.bank.normalize import check_normalization, kernel_scales, varying_kernels
from discernel.bank.products import rounding_errors, row_means
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel, kernel_names

__all__ = ["FactoredBank", "factor_kernel", "have_low_rank"]

#: What a factor leaves of the trace: the size of the rounding errors of the kernel's own entries.
_REMAINDER = 1e-14
#: Rows that pivots are looked for among, at a time.
_POOL = 64
#: How far pivots fall before others are looked for. A pivot that is small among these rows, where
#: other rows are represented badly yet, would multiply rounding errors.
_FALL = 1e-4
#: The rank that is low: a factor is then an eighth of a triangle of the matrix, or less.
_LOW = 1 / 16
#: Bytes of all factors together up to which they are made without being asked for.
_FACTOR_BYTES = 2 * 2**30
#: Kernels that are tried to find out.
_TRIED = 16


def factor_kernel(kernel: Kernel, X: Any, *, most: int | None = None) -> FloatArray | None:
    """Return Φ with G = ΦᵀΦ up to 1e-14 of the trace, of shape (rank, n_samples).

    Cholesky factorisation with pivots. LAPACK looks for them among 64 rows at a time, at first
    spread over all rows and then those that the factor represents worst, so that few calls of the
    kernel are needed. What is left over, G − ΦᵀΦ, is positive semidefinite and its diagonal is
    known: its sum is the error, not an estimate of it.

    Parameters
    ----------
    kernel : Kernel
        Positive semidefinite.
    X : array-like of shape (n_samples, n_features)
        Rows.
    most : int, optional
        The largest rank to go on with.

    Returns
    -------
    ndarray of shape (rank, n_samples) or None
        None if the rank is larger than ``most``.

    Raises
    ------
    InvalidInputError
        If an entry that is looked at is NaN or infinite.
    """
    name = kernel.name
    kernel, X = kernel.without_columns(X)
    n = n_rows(X)
    most = n if most is None else most
    left = np.array(kernel.diagonal(X), dtype=np.float64)  # the diagonal of G − ΦᵀΦ
    enough = _REMAINDER * left.sum()
    factor = np.empty((0, n))
    pool = np.unique(np.linspace(0, n - 1, min(n, _POOL)).astype(np.intp))
    while left.sum() > enough:
        there = X[pool]
        block = _finite(kernel(there), name) - _gram(factor[:, pool], factor[:, pool])
        least = max(enough / n, _FALL * left.max())
        lower, order, rank, _ = scipy.linalg.lapack.dpstrf(block.T, lower=1, tol=least)
        if rank == 0:  # nothing but rounding errors is left
            break
        chosen = order[:rank] - 1
        rows = _finite(kernel(there[chosen], X), name) - _gram(factor[:, pool[chosen]], factor)
        rows[:, pool] = block[chosen]  # where distances of rows to themselves are exactly 0
        triangle = np.asfortranarray(lower[:rank, :rank])
        new = scipy.linalg.blas.dtrsm(1.0, triangle, rows, lower=1)
        factor = np.concatenate([factor, new])
        if len(factor) > most:
            return None
        left = np.maximum(left - np.einsum("ij,ij->j", new, new), 0.0)
        left[pool[chosen]] = 0.0
        pool = np.argpartition(-left, min(n, _POOL) - 1)[: min(n, _POOL)]
        pool = pool[left[pool] > 0]  # no row twice: the rank is at most n
    return factor


def _finite(matrix: FloatArray, name: str) -> FloatArray:
    """Return the matrix, or raise a clear error if it has NaN or infinity."""
    if not np.isfinite(matrix).all():
        raise InvalidInputError(
            f"Kernel matrices must not contain NaN or infinity, but that of {name} does. Clean or "
            "impute the data."
        )
    return matrix


def _gram(left: FloatArray, right: FloatArray) -> FloatArray | float:
    """Return leftᵀ right, also where nothing has been factored yet."""
    return matmul(left.T, right) if len(left) else 0.0


def have_low_rank(kernels: Sequence[Kernel], X: Any) -> bool:
    """Whether some of the kernels, evenly spread over all, have a rank below a sixteenth of rows.

    Only of kernels that are known to be positive semidefinite, and if by the same kernels the
    factors of all need no more than 2 GiB.
    """
    if not all(kernel.trusted for kernel in kernels):
        return False
    n, ranks = n_rows(X), []
    for i in np.unique(np.linspace(0, len(kernels) - 1, _TRIED).astype(int)):
        factor = factor_kernel(kernels[i], X, most=int(_LOW * n))
        if factor is None:
            return False
        ranks.append(len(factor))
    return bool(8 * n * len(kernels) * np.mean(ranks) <= _FACTOR_BYTES)


class FactoredBank(Bank):
    """Kernels as factors.

    Parameters
    ----------
    factors : sequence of ndarray of shape (rank, n_samples)
        Φ_i with G_i = Φ_iᵀΦ_i; the ranks may differ. Taken over: centred and normalised in place.
    names : sequence of str
        The names of the kernels.
    normalization : {"centered_trace", "trace"}, default="centered_trace"
        What is made equal for all kernels.
    part : bool, default=False
        Whether the rows are a part of the training set, on which a kernel may be constant.
    sample_weights : SampleWeights, optional
        How much rows count; by default all the same.
    raw_traces : ndarray of shape (n_kernels,), optional
        The traces of the raw kernels, where the factors leave a part of them: kernels are then
        normalised as if they were whole, but for their means.

    Warns
    -----
    DroppedKernelWarning
        If a kernel is constant on the training set; it is left out.

    Notes
    -----
    Memory is that of the factors. They are centred and normalised once, as vectors:
    PGP = (ΦP)ᵀ(ΦP).
    """

    def __init__(
        self,
        factors: Sequence[FloatArray],
        names: Sequence[str],
        *,
        normalization: Normalization = "centered_trace",
        part: bool = False,
        sample_weights: SampleWeights | None = None,
        raw_traces: FloatArray | None = None,
    ) -> None:
        self.sample_weights = sample_weights
        self.normalization, self.names = check_normalization(normalization), list(names)
        self.n_candidates, self.n_samples = len(factors), factors[0].shape[1]
        whole = None if raw_traces is None else raw_traces.copy()
        raw_traces = self._raw_traces(factors) if whole is None else whole
        means = [row_means(factor, sample_weights) for factor in factors]  # Φ1/m
        for factor, mean in zip(factors, means, strict=True):
            factor -= mean[:, None]
            if sample_weights is not None:
                factor *= sample_weights.roots
        held = np.array([np.vdot(factor, factor) for factor in factors])
        traces = held
        if whole is not None:  # tr PGP = tr G − m‖Φ1/m‖², of which the second is of the factor
            traces = np.maximum(
                held, whole - self.total * np.array([mean @ mean for mean in means])
            )
        self.kept = varying_kernels(raw_traces, traces, self.names, part=part)
        traces, raw_traces = traces[self.kept], raw_traces[self.kept]
        self.scales = kernel_scales(normalization, self.total, raw_traces, traces)
        self._traces: FloatArray = self.scales * held[self.kept]
        # What the factor leaves of the raw kernel is a part of the error, and far the larger.
        self.rounding = self.scales * (rounding_errors(traces, traces) + _REMAINDER * raw_traces)
        self._factors = [factors[i] for i in self.kept]
        self._means = [means[i] for i in self.kept]
        for factor, mean, scale in zip(self._factors, self._means, self.scales, strict=True):
            factor *= np.sqrt(scale)
            mean *= np.sqrt(scale)

    def _raw_traces(self, factors: Sequence[FloatArray]) -> FloatArray:
        weights = self.sample_weights
        if weights is None:
            return np.array([np.vdot(factor, factor) for factor in factors])
        return np.array([np.vdot(factor, factor * weights.values) for factor in factors])

    def _unweighted(self, factor: FloatArray) -> FloatArray:
        """Return a centred factor as it is without weights."""
        return factor if self.sample_weights is None else factor / self.sample_weights.roots

    @classmethod
    def from_kernels(
        cls,
        kernels: Sequence[Kernel],
        X: Any,
        *,
        normalization: Normalization = "centered_trace",
        sample_weights: SampleWeights | None = None,
    ) -> FactoredBank:
        """Return the bank of some kernels on some rows.

        Parameters
        ----------
        kernels : sequence of Kernel
            The candidates, resolved and positive semidefinite.
        X : array-like of shape (n_samples, n_features)
            The training rows.
        normalization : {"centered_trace", "trace"}, default="centered_trace"
            What is made equal for all kernels.
        sample_weights : SampleWeights, optional
            How much rows count; by default all the same.
        """
        # No rank is above the number of rows.
        factors = [cast(FloatArray, factor_kernel(kernel, X)) for kernel in kernels]
        return cls(
            factors,
            kernel_names(kernels),
            normalization=normalization,
            sample_weights=sample_weights,
        )

    def check_definite(self) -> None:
        """Do nothing: ΦᵀΦ is positive semidefinite."""

    def traces(self) -> FloatArray:
        return self._traces

    def norms(self) -> FloatArray:
        small = [f if f.shape[0] <= f.shape[1] else f.T for f in self._factors]
        return np.array([np.linalg.norm(matmul(f, f.T), 2) for f in small])

    def products(self, vectors: FloatArray) -> FloatArray:
        vectors = np.ascontiguousarray(vectors)
        out = np.empty((self.n_kernels, *vectors.shape))
        for position, factor in enumerate(self._factors):
            out[position] = matmul(factor.T, matmul(factor, vectors))
        return out

    def inner(self, matrix: FloatArray) -> FloatArray:
        matrix = np.ascontiguousarray(matrix)
        return np.array([np.sum(matmul(f, matrix) * f) for f in self._factors])

    def inner_products(self) -> FloatArray:
        out = np.empty((self.n_kernels, self.n_kernels))
        for i, left in enumerate(self._factors):
            for j, right in enumerate(self._factors[: i + 1]):
                out[i, j] = out[j, i] = np.square(matmul(left, right.T)).sum()
        return out

    def _raw_factors(self, rows: NDArray[np.intp]) -> list[FloatArray]:
        """Return the factors of some samples, neither centred nor normalised."""
        return [
            (self._unweighted(factor)[:, rows] + mean[:, None]) / np.sqrt(scale)
            for factor, mean, scale in zip(self._factors, self._means, self.scales, strict=True)
        ]

    def _factor_weights(self, weights: FloatArray) -> FloatArray:
        """Return what factors are weighted with, where kernels are weighted."""
        return weights

    def subset(self, rows: NDArray[np.intp]) -> FactoredBank:
        return FactoredBank(
            self._raw_factors(rows),
            [self.names[index] for index in self.kept],
            normalization=self.normalization,
            part=True,
            sample_weights=self._weights_of(rows),
        )

    def select(self, positions: NDArray[np.intp]) -> Self:
        part = self._shallow_selection(positions)
        part._traces = self._traces[positions]
        part._factors = [self._factors[i] for i in positions]
        part._means = [self._means[i] for i in positions]
        return part

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
        roots = np.sqrt(self._factor_weights(weights))
        active = np.flatnonzero(roots)
        if not len(active):
            return np.zeros((self.n_samples, self.n_samples))
        return self_product(np.concatenate([roots[i] * self._factors[i] for i in active]).T)

    def compressed(self, basis: FloatArray) -> FloatArray:
        basis = np.ascontiguousarray(basis)
        out = np.empty((self.n_kernels, basis.shape[1], basis.shape[1]))
        for position, factor in enumerate(self._factors):
            seen = matmul(factor, basis)
            out[position] = matmul(seen.T, seen)
        return out

    def centering(self, weights: FloatArray) -> Centering:
        # The row means of ΦᵀΦ are Φᵀ(Φ1/m).
        means, grand_mean, weights = np.zeros(self.n_samples), 0.0, self._factor_weights(weights)
        for i in np.flatnonzero(weights):
            mean = self._means[i]
            means += weights[i] * (mean @ self._unweighted(self._factors[i]))
            grand_mean += weights[i] * float(mean @ mean)
        shares = None if self.sample_weights is None else self.sample_weights.shares
        return Centering(means + grand_mean, grand_mean, shares)
