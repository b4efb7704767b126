"""A kernel taken apart: sums of products of functions of distances and inner products."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    Cosine,
    Exponential,
    Kernel,
    Laplace,
    Linear,
    Polynomial,
    Standardized,
    WhereKnown,
)
from discernel.kernels.base import Named, Offset, Power, Product, Restricted, Scaled, Sum
from discernel.kernels.distance import DistanceKernel

__all__ = ["Piece", "Term", "View", "known_part", "terms_of"]


@dataclass(frozen=True)
class View:
    """What a kernel sees of a row: some columns, each times a factor.

    Attributes
    ----------
    columns : ndarray of shape (n_columns,)
        Which columns.
    factors : ndarray of shape (n_columns,)
        Their factors.
    """

    columns: NDArray[np.int64]
    factors: FloatArray

    @classmethod
    def whole(cls, n_columns: int) -> View:
        """Return the view of all columns as they are."""
        return cls(np.arange(n_columns, dtype=np.int64), np.ones(n_columns))

    def take(self, columns: Any) -> View:
        """Return the view of some of these columns."""
        chosen = np.asarray(columns)
        return View(self.columns[chosen], self.factors[chosen])

    def times(self, factors: Any) -> View:
        """Return the view with other factors on top of these."""
        by = np.asarray(factors, dtype=np.float64)
        return View(self.columns, self.factors * by)

    def of(self, X: FloatArray) -> FloatArray:
        """Return what is seen of rows."""
        return np.asarray(X[:, self.columns] * self.factors)


@dataclass(frozen=True)
class Piece:
    """A function of the distances or inner products of what is seen of rows.

    Attributes
    ----------
    pairs : str
        ``"squared"``, ``"squared by column"``, ``"city"``, ``"inner"`` or ``"cosine"``.
    view : View
        What is seen.
    origin : ndarray of shape (n_columns,) or None
        What is taken off before inner products.
    kind : str
        ``"exp"``, ``"exp of root"`` or ``"power"``.
    numbers : tuple of float
        As of `discernel.export._scorer.Factor`.
    """

    pairs: str
    view: View
    origin: FloatArray | None
    kind: str
    numbers: tuple[float, ...]


#: A number and the pieces whose product it multiplies.
Term: TypeAlias = tuple[float, tuple[Piece, ...]]


def terms_of(kernel: Kernel, view: View) -> list[Term]:
    """Return a kernel as a sum of products, or raise where it cannot be written as one.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    view : View
        The columns that it is given.
    """
    # Not isinstance: a subclass may compute anything.
    if type(kernel) is Named:
        return terms_of(kernel.kernel, view)
    if type(kernel) is Scaled:
        return [
            (kernel.factor * number, pieces) for number, pieces in terms_of(kernel.kernel, view)
        ]
    if type(kernel) is Offset:
        one = Piece("inner", view, None, "power", (0.0, 1.0, 1.0))  # (0 ⟨x, z⟩ + 1)¹
        return [*terms_of(kernel.kernel, view), (kernel.constant, (one,))]
    if type(kernel) is Power:
        return terms_of(kernel.product if kernel.exponent > 1 else kernel.kernel, view)
    if type(kernel) is Restricted:
        return terms_of(kernel.kernel, view.take(kernel.columns))
    if type(kernel) is Standardized and kernel.spreads is not None:
        spreads = np.asarray(kernel.spreads)
        factors = np.divide(1.0, spreads, out=np.zeros_like(spreads), where=spreads > 0)
        return terms_of(kernel.kernel, view.times(factors))
    if type(kernel) is Sum:
        return terms_of(kernel.left, view) + terms_of(kernel.right, view)
    if type(kernel) is Product:
        sides = terms_of(kernel.left, view), terms_of(kernel.right, view)
        return [(a * b, left + right) for (a, left), (b, right) in product(*sides)]
    return [(1.0, (_piece(kernel, view),))]


def known_part(kernel: Kernel, view: View) -> tuple[float, WhereKnown, View] | None:
    """Return a factor, the kernel of a source that rows may lack, and the columns that it sees.

    None for other kernels.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    view : View
        The columns that it is given.
    """
    if type(kernel) is WhereKnown:
        return 1.0, kernel, view
    if type(kernel) is Restricted:
        return known_part(kernel.kernel, view.take(kernel.columns))
    if type(kernel) in (Named, Scaled):
        found = known_part(kernel.kernel, view)  # type: ignore[attr-defined]
        factor = kernel.factor if type(kernel) is Scaled else 1.0
        return None if found is None else (factor * found[0], *found[1:])
    return None


def _piece(kernel: Kernel, view: View) -> Piece:
    """Return a kernel that is not made of others."""
    kind = type(kernel)
    if isinstance(kernel, DistanceKernel) and kind in (RBF, Exponential, Laplace):
        if kernel.scales is not None:
            kept = np.flatnonzero(kernel.scales)
            view = view.take(kept).times(np.asarray(kernel.scales)[kept])
        if kind is Exponential:
            return Piece("squared by column", view, None, "exp of root", (kernel.exponent,))
        pairs = "squared" if kind is RBF else "city"
        return Piece(pairs, view, None, "exp", (kernel.exponent,))
    if type(kernel) is Linear:
        origin = None if kernel.origin is None else np.asarray(kernel.origin)
        return Piece("inner", view, origin, "power", (1.0, 0.0, 1.0))
    if type(kernel) is Polynomial and kernel.gamma is not None:
        numbers = float(kernel.gamma), float(kernel.coef0), float(kernel.degree)
        return Piece("inner", view, None, "power", numbers)
    if kind is Cosine:
        return Piece("cosine", view, None, "power", (1.0, 0.0, 1.0))
    raise InvalidInputError(
        "A model can be exported if its kernels are RBF, Laplace, Exponential, Linear, Polynomial "
        "or Cosine, on columns, standardized, named, scaled, added, multiplied or to a power too, "
        f"or WhereKnown of these, not added or multiplied. Got {kernel.name}, of type "
        f"{kind.__name__}. Fit again without it: others predict with discernel only."
    )
