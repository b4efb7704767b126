"""Ranks of kernels: factors of kernels of low rank, and shares of a total rank.

A smooth kernel of one feature, or of a few, has a numerical rank of some dozen whatever the number
of samples. Its factor is then found from that many of its columns, to the rounding error of its
entries, and whatever a criterion asks for costs rank · n_samples instead of n_samples² a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg

from discernel.arrays import FloatArray, draw_rows, matmul, n_rows, pivoted_cholesky
from discernel.bank.combined import gram_stack
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel
from discernel.kernels.evaluate import KernelSet

#: What a factor leaves of the trace: the size of the rounding errors of the kernel's own entries.
REMAINDER = 1e-14
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
#: The rank of all kernels together, where none is given and there is room.
_RANK, _LEAST_RANK = 1500, 100
#: Rows on which the decay of spectra is looked at.
_PROBED = 800
#: Eigenvalues below this share of the trace are rounding.
_NOTHING = 1e-12


def factor_kernel(kernel: Kernel, X: Any, *, most: int | None = None) -> FloatArray | None:
    """Return Φ with G = ΦᵀΦ up to 1e-14 of the trace, of shape (rank, n_samples).

    Cholesky factorisation with pivots. LAPACK looks for them among 64 rows at a time, at first
    spread over all rows and then those that the factor represents worst, so that few calls of the
    kernel are needed. What is left over, G − ΦᵀΦ, is positive semidefinite and its diagonal is
    known: its sum is the error, not an estimate of it.

    None is returned if the rank is larger than ``most``.
    """
    name, together, n = kernel.name, KernelSet([kernel]), n_rows(X)
    every = together.prepare(X)  # once, for all calls
    most = n if most is None else most
    left = np.array(kernel.diagonal(X), dtype=np.float64)  # the diagonal of G − ΦᵀΦ
    enough = REMAINDER * left.sum()
    factor = np.empty((0, n))
    pool = np.unique(np.linspace(0, n - 1, min(n, _POOL)).astype(np.intp))
    while left.sum() > enough:
        there = every[pool]
        ((_, block),) = together.matrices(there)
        block = _finite(block, name) - _gram(factor[:, pool], factor[:, pool])
        least = max(enough / n, _FALL * left.max())
        chosen, triangle = pivoted_cholesky(block.T, least)
        if not len(chosen):  # nothing but rounding errors is left
            break
        ((_, rows),) = together.matrices(there[chosen], every)
        rows = _finite(rows, name) - _gram(factor[:, pool[chosen]], factor)
        rows[:, pool] = block[chosen]  # where distances of rows to themselves are exactly 0
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
    """Return whether kernels, some of all, have a rank below a sixteenth of the rows.

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


def default_rank(n_samples: int, cache_bytes: float) -> int:
    """Return the default rank of all kernels together: 1,500, or as much as fits into memory.

    A rank of 100 is always there.
    """
    return int(min(_RANK, max(_LEAST_RANK, cache_bytes // (8 * n_samples)), n_samples))


def spectra_of(kernels: Sequence[Kernel], X: Any) -> list[FloatArray]:
    """Return the eigenvalues of centred kernels of trace 1 on at most 800 drawn rows, falling."""
    found = []
    for gram in gram_stack(kernels, draw_rows(X, _PROBED)):
        # What is wrong with the means of nearly constant kernels goes the second time.
        for side in (gram.T, gram, gram.T, gram):
            side -= side.mean(axis=0)
        values = np.maximum(scipy.linalg.eigvalsh(gram, overwrite_a=True)[::-1], 0.0)
        total = float(values.sum())
        found.append(values / total if total > 0 else values)
    return found


def share_rank(spectra: Sequence[FloatArray], total: int, n_samples: int) -> list[int]:
    """Return a rank per kernel: the largest eigenvalues of all kernels are taken first.

    The ranks sum to ``total`` at most, and none is above ``n_samples``.
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
