"""Maps of kernels that have few features, exactly."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, as_dense
from discernel.exceptions import InvalidInputError
from discernel.kernels.base import Kernel
from discernel.kernels.features.base import FeatureMap
from discernel.kernels.terms import IDENTITY, Atom, single_atom

__all__ = ["ExactMap", "exact_rank"]


def _exact_atom(kernel: Kernel) -> tuple[float, Atom] | None:
    """Return the factor and atom of a kernel that is a power of inner products; None: another."""
    found = single_atom(kernel.terms())
    if found is None or found[1].pair.kind not in ("inner", "cosine"):
        return None
    return found if found[1].function.kind == "power" else None


def exact_rank(kernel: Kernel, n_columns: int) -> int | None:
    """Return how many features the exact map of a kernel has; None if there is no such map.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    n_columns : int
        The columns of the rows.
    """
    found = _exact_atom(kernel)
    if found is None:
        return None
    _, constant, degree = found[1].function.numbers
    n_terms = len(found[1].view.seen(n_columns).columns) + (constant > 0)
    return comb(n_terms + int(degree) - 1, int(degree))


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
        rank, found = exact_rank(kernel, n_columns), _exact_atom(kernel)
        if rank is None or found is None:
            raise InvalidInputError(
                "Exact features are for Linear, Cosine and Polynomial kernels, on columns, "
                f"standardized, named or scaled too. Got {kernel!r}. Use NystromMap."
            )
        self.kernel, self._rank = kernel, rank
        self._monomials: tuple[NDArray[np.intp], FloatArray] | None = None
        if found[1].function != IDENTITY:
            _, constant, degree = found[1].function.numbers
            n_terms = len(found[1].view.seen(n_columns).columns) + (constant > 0)
            self._monomials = _monomials(n_terms, int(degree))

    @property
    def atom(self) -> Atom:
        """A power of the inner product of what is seen of rows."""
        return self.kernel.terms()[0].atoms[0]

    @property
    def factor(self) -> float:
        """What the atom is multiplied by."""
        return self.kernel.terms()[0].factor

    @property
    def monomials(self) -> tuple[NDArray[np.intp], FloatArray] | None:
        """The terms of every monomial, and the root of how often it is in the power.

        None where the features are the row itself.
        """
        return self._monomials

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def halved(self) -> NDArray[np.intp]:
        return np.arange(self.rank)

    def write(self, X: Any, out: FloatArray) -> None:
        atom = self.atom
        dense = as_dense(atom.pair.rows(atom.view.of(X)))
        if self.monomials is None:
            out[:] = dense
        else:
            (indices, roots), terms = self.monomials, self._terms(dense)
            out[:] = roots
            for position in indices.T:
                out *= terms[:, position]
        out *= np.sqrt(self.factor)

    def _terms(self, rows: FloatArray) -> FloatArray:
        """Return x' with c + γ⟨x, z⟩ = ⟨x', z'⟩."""
        gamma, constant, _ = self.atom.function.numbers
        scaled = np.sqrt(gamma) * rows
        if constant == 0:
            return np.asarray(scaled)
        return np.column_stack([np.full(len(rows), np.sqrt(constant)), scaled])


def _monomials(n_terms: int, degree: int) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the terms of every monomial, and the root of how often it is in the power."""
    chosen = list(combinations_with_replacement(range(n_terms), degree))
    counts = [
        factorial(degree) / np.prod([factorial(n) for n in Counter(terms).values()])
        for terms in chosen
    ]
    return np.array(chosen, dtype=np.intp), np.sqrt(np.array(counts, dtype=np.float64))
