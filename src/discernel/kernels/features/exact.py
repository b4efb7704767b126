"""Maps of kernels that have few features, exactly."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, squared_norms
from discernel.exceptions import InvalidInputError
from discernel.kernels import Cosine, Kernel, Linear, Polynomial
from discernel.kernels.features.base import FeatureMap, plain_kernel

__all__ = ["ExactMap", "exact_rank"]


def exact_rank(kernel: Kernel, n_columns: int) -> int | None:
    """Return how many features the exact map of a kernel has; None if there is no such map.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    n_columns : int
        The columns of the rows.
    """
    _, plain, rows = plain_kernel(kernel, np.zeros((1, n_columns)))
    if type(plain) in (Linear, Cosine):
        return int(rows.shape[1])
    if type(plain) is Polynomial:
        return comb(_n_terms(plain, rows.shape[1]) + plain.degree - 1, plain.degree)
    return None


def _n_terms(kernel: Polynomial, n_columns: int) -> int:
    return n_columns + (kernel.coef0 > 0)


class ExactMap(FeatureMap):
    """φ(x) with φ(x)·φ(z) = k(x, z): the row, its direction, or all of its monomials.

    Parameters
    ----------
    kernel : Kernel
        `Linear`, `Cosine` or `Polynomial`, resolved; on columns, standardized, named or scaled
        too.
    n_columns : int
        The columns of the rows.
    """

    def __init__(self, kernel: Kernel, n_columns: int) -> None:
        rank = exact_rank(kernel, n_columns)
        if rank is None:
            raise InvalidInputError(
                "Exact features are for Linear, Cosine and Polynomial kernels, on columns, "
                f"standardized, named or scaled too. Got {kernel!r}. Use NystromMap."
            )
        self.kernel, self._rank = kernel, rank
        _, plain, rows = plain_kernel(kernel, np.zeros((1, n_columns)))
        self._monomials: tuple[NDArray[np.intp], FloatArray] | None = None
        if isinstance(plain, Polynomial):
            self._monomials = _monomials(_n_terms(plain, rows.shape[1]), plain.degree)

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def halved(self) -> NDArray[np.intp]:
        return np.arange(self.rank)

    def write(self, X: Any, out: FloatArray) -> None:
        factor, plain, rows = plain_kernel(self.kernel, X)
        if isinstance(plain, Linear):
            rows = plain._moved(rows)
        dense = rows.toarray() if hasattr(rows, "tocsr") else rows
        if isinstance(plain, Cosine):
            norms = np.sqrt(squared_norms(rows))
            dense = dense / np.where(norms > 0, norms, 1.0)[:, None]
        if isinstance(plain, Polynomial) and self._monomials is not None:
            terms, (indices, roots) = _terms(plain, dense), self._monomials
            out[:] = roots
            for position in indices.T:
                out *= terms[:, position]
        else:
            out[:] = dense
        out *= np.sqrt(factor)


def _terms(kernel: Polynomial, rows: FloatArray) -> FloatArray:
    """Return x' with c + γ⟨x, z⟩ = ⟨x', z'⟩."""
    scaled = np.sqrt(kernel._number()) * rows
    if kernel.coef0 == 0:
        return np.asarray(scaled)
    return np.column_stack([np.full(len(rows), np.sqrt(kernel.coef0)), scaled])


def _monomials(n_terms: int, degree: int) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the terms of every monomial, and the root of how often it is in the power."""
    chosen = list(combinations_with_replacement(range(n_terms), degree))
    counts = [
        factorial(degree) / np.prod([factorial(n) for n in Counter(terms).values()])
        for terms in chosen
    ]
    return np.array(chosen, dtype=np.intp), np.sqrt(np.array(counts, dtype=np.float64))
