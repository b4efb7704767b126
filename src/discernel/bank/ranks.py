"""Factors of kernels of low rank, and the distribution of a total rank over kernels.

A smooth kernel of one or few features has a numerical rank of a few dozen for any number of
samples. Its factor is computed from that many columns, up to rounding errors, and operations then
cost rank · n_samples instead of n_samples².
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg

from discernel.arrays import FloatArray, draw_rows, matmul, n_rows, pivoted_cholesky
from discernel.bank.grams import gram_stack
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel
from discernel.kernels.evaluate import KernelSet

#: Trace of the remainder of a factor, relative to the trace: the size of rounding errors.
REMAINDER = 1e-14
#: Number of rows among which pivots are searched at a time.
_POOL = 64
#: Ratio of pivots in one search. A small pivot among these rows, while other rows have a large
#: remainder, would amplify rounding errors.
_FALL = 1e-4
#: Low rank as a share of the rows: a factor is then at most an eighth of a triangle of the matrix.
_LOW = 1 / 16
#: Maximum bytes of all factors for the automatic choice of bank="factored".
_FACTOR_BYTES = 2 * 2**30
#: Number of kernels whose rank is computed for this choice.
_TRIED = 16
#: Default and minimum of the total rank.
_RANK, _LEAST_RANK = 1500, 100
#: Number of rows for spectra.
_PROBED = 800
#: Eigenvalues below this share of the trace are rounding errors.
_NOTHING = 1e-12


def factor_kernel(kernel: Kernel, X: Any, *, most: int | None = None) -> FloatArray | None:
    """Return Φ with G = ΦᵀΦ up to 1e-14 of the trace, of shape (rank, n_samples).

    By pivoted Cholesky factorization. LAPACK chooses pivots among 64 rows at a time, first evenly
    spaced rows and then rows with the largest remainder, so that the kernel is called only a few
    times. The remainder G − ΦᵀΦ is positive semidefinite and its diagonal is known, so its trace is
    the exact error. Return None if the rank is larger than ``most``.
    """
    name, together, n = kernel.name, KernelSet([kernel]), n_rows(X)
    every = together.prepare(X)
    most = n if most is None else most
    left = np.array(kernel.diagonal(X), dtype=np.float64)  # the diagonal of G − ΦᵀΦ
    enough = REMAINDER * left.sum()
    factor = np.empty((0, n))
    pool = np.unique(np.linspace(0, n - 1, min(n, _POOL)).astype(np.intp))
    while left.sum() > enough:
        candidates = every[pool]
        ((_, block),) = together.matrices(candidates)
        block = _finite(block, name) - _gram(factor[:, pool], factor[:, pool])
        least = max(enough / n, _FALL * left.max())
        chosen, triangle = pivoted_cholesky(block.T, least)
        if not len(chosen):  # the remainder is rounding error
            break
        ((_, rows),) = together.matrices(candidates[chosen], every)
        rows = _finite(rows, name) - _gram(factor[:, pool[chosen]], factor)
        rows[:, pool] = block[chosen]  # computed with exact zero distances on the diagonal
        new = scipy.linalg.blas.dtrsm(1.0, triangle, rows, lower=1)
        factor = np.concatenate([factor, new])
        if len(factor) > most:
            return None
        left = np.maximum(left - np.einsum("ij,ij->j", new, new), 0.0)
        left[pool[chosen]] = 0.0
        pool = np.argpartition(-left, min(n, _POOL) - 1)[: min(n, _POOL)]
        pool = pool[left[pool] > 0]  # no row twice, so that the rank is at most n
    return factor


def _finite(matrix: FloatArray, name: str) -> FloatArray:
    """Return the matrix, or raise an error if it has NaN or infinity."""
    if not np.isfinite(matrix).all():
        raise InvalidInputError(
            f"Kernel matrices must not contain NaN or infinity, but that of {name} does. Clean or "
            "impute the data."
        )
    return matrix


def _gram(left: FloatArray, right: FloatArray) -> FloatArray | float:
    """Return leftᵀ right, or 0 for empty factors."""
    return matmul(left.T, right) if len(left) else 0.0


def have_low_rank(kernels: Sequence[Kernel], X: Any) -> bool:
    """Return whether a sample of the kernels has ranks below 1/16 of the number of rows.

    Return False unless all kernels are known to be positive semidefinite, and the estimated factors
    of all kernels need at most 2 GiB.
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


def default_rank(n_samples: int, cache_bytes: float) -> int:
    """Return the default total rank: 1,500, or what fits into memory, but at least 100."""
    return int(min(_RANK, max(_LEAST_RANK, cache_bytes // (8 * n_samples)), n_samples))


def spectra_of(kernels: Sequence[Kernel], X: Any) -> list[FloatArray]:
    """Return the decreasing eigenvalues of centred kernels of trace 1, on at most 800 rows."""
    found = []
    for gram in gram_stack(kernels, draw_rows(X, _PROBED)):
        # The second time removes rounding errors of the means of nearly constant kernels.
        for side in (gram.T, gram, gram.T, gram):
            side -= side.mean(axis=0)
        values = np.maximum(scipy.linalg.eigvalsh(gram, overwrite_a=True)[::-1], 0.0)
        total = float(values.sum())
        found.append(values / total if total > 0 else values)
    return found


def share_rank(spectra: Sequence[FloatArray], total: int, n_samples: int) -> list[int]:
    """Distribute a total rank over kernels by the largest eigenvalues of all kernels.

    The ranks sum to at most ``total``, and none is above ``n_samples``.
    """
    counts = [int(np.count_nonzero(values > _NOTHING)) for values in spectra]
    largest = np.concatenate([v[:c] for v, c in zip(spectra, counts, strict=True)])
    owner = np.repeat(np.arange(len(spectra)), counts)
    taken = owner[np.argsort(-largest, kind="stable")[:total]]
    ranks = np.maximum(np.bincount(taken, minlength=len(spectra)), 1)
    # The rest goes to kernels whose full spectrum on the sampled rows is taken.
    while (left := total - int(ranks.sum())) > 0:
        full = [len(v) == c for v, c in zip(spectra, counts, strict=True)]
        open_ = np.flatnonzero(np.array(full) & (ranks < n_samples))
        if not len(open_):
            break
        more = np.minimum(max(1, left // len(open_)), n_samples - ranks[open_])
        ranks[open_] += more if int(more.sum()) <= left else (np.arange(len(open_)) < left)
    return [int(rank) for rank in np.minimum(ranks, n_samples)]
