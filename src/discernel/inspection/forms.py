"""What a kernel is column by column: a product of factors, a sum of terms, or neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.kernels import Kernel
from discernel.kernels.base import Combination
from discernel.kernels.terms import IDENTITY, Term

__all__ = ["Form", "OtherForm", "ProductForm", "SumForm", "kernel_forms"]


@dataclass(frozen=True)
class ProductForm:
    """factor · Π_l exp(−squares_l (x_l − z_l)² − absolutes_l |x_l − z_l|).

    Attributes
    ----------
    factor : float
    squares, absolutes : ndarray of shape (n_columns,)
        0 for columns that the kernel does not see.
    """

    factor: float
    squares: FloatArray
    absolutes: FloatArray

    def exponents(self, x: FloatArray, Z: FloatArray) -> FloatArray:
        """Return minus the logarithm of the factor of every column between a row and rows.

        Parameters
        ----------
        x : ndarray of shape (n_columns,)
            A row.
        Z : ndarray of shape (n_rows, n_columns)
            Rows.

        Returns
        -------
        ndarray of shape (n_columns, n_rows)
            At least 0.
        """
        apart = np.abs((Z - x).T)
        return np.asarray(apart * (self.absolutes[:, None] + self.squares[:, None] * apart))

    @property
    def columns(self) -> NDArray[np.intp]:
        """The columns that the kernel sees."""
        return np.flatnonzero((self.squares > 0) | (self.absolutes > 0))


@dataclass(frozen=True)
class SumForm:
    """factor · Σ_l weights_l (x_l − origin_l)(z_l − origin_l).

    Attributes
    ----------
    factor : float
    weights, origin : ndarray of shape (n_columns,)
        Weights are 0 for columns that the kernel does not see.
    """

    factor: float
    weights: FloatArray
    origin: FloatArray


@dataclass(frozen=True)
class OtherForm:
    """A kernel of which nothing is known column by column."""

    kernel: Kernel


Form: TypeAlias = ProductForm | SumForm | OtherForm


def kernel_forms(kernel: Kernel, n_columns: int) -> list[Form]:
    """Return forms that add up to a kernel.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    n_columns : int
        The columns of the rows that it takes.
    """
    known: list[Form] = []
    others: list[Term] = []
    for term in kernel.terms():
        form = _product_form(term, n_columns) or _sum_form(term, n_columns)
        if form is None:
            others.append(term)
        else:
            known.append(form)
    if not known:
        return [OtherForm(kernel)]
    # One form for all that is not known: it is computed once.
    return [*known, OtherForm(Combination(tuple(others)))] if others else known


def _product_form(term: Term, n: int) -> ProductForm | None:
    """Return a term that is a product of Gaussian and Laplace kernels; None for others."""
    rates = {"squared": np.zeros(n), "city": np.zeros(n)}
    for atom in term.atoms:
        if atom.function.kind != "exp" or atom.pair.kind not in rates:
            return None
        seen, (rate,) = atom.view.seen(n), atom.function.numbers
        power = 2 if atom.pair.kind == "squared" else 1
        rates[atom.pair.kind][seen.columns] += rate * seen.factors**power
    return ProductForm(term.factor, rates["squared"], rates["city"])


def _sum_form(term: Term, n: int) -> SumForm | None:
    """Return a term that is an inner product; None for others."""
    if len(term.atoms) != 1 or term.atoms[0].pair.kind != "inner":
        return None
    (atom,) = term.atoms
    if atom.function != IDENTITY:
        return None
    weights, origin, seen = np.zeros(n), np.zeros(n), atom.view.seen(n)
    weights[seen.columns] = seen.factors**2
    origin[seen.columns] = np.divide(
        seen.origin, seen.factors, out=np.zeros_like(seen.origin), where=seen.factors > 0
    )
    return SumForm(term.factor, weights, origin)
