"""Kernels whose rows are first turned into something else, such as counts: once per row."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.exceptions import InvalidInputError
from discernel.kernels.base import Kernel
from discernel.kernels.columns import Table, is_missing
from discernel.kernels.terms import Atom, PairKind, Term, Terms, View

__all__ = ["SimilarityKernel", "one_column"]


class SimilarityKernel(Kernel, PairKind):
    """A kernel of prepared rows; a subclass says by `rows` and `tile` which.

    It is its own pairwise matrix: what is prepared suits no other kernel.
    """

    @abstractmethod
    def rows(self, X: Any, like: Any | None = None) -> Any:
        """Return rows as `tile` takes them."""

    @abstractmethod
    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        """Return the kernel matrix of prepared rows, a new one."""

    def _terms(self, view: View) -> Terms:
        return (Term(1.0, (Atom(self, view),)),)

    def __repr__(self) -> str:
        shown = []
        for one in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            is_number = isinstance(value, (int, tuple)) and not isinstance(value, bool)
            if is_number or value != one.default:
                shown.append(f"{one.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


def one_column(X: Any, who: str, what: str) -> NDArray[Any]:
    """Return the cells of rows that are one thing each, or raise a clear error.

    Parameters
    ----------
    X : Table, ndarray or sequence
        Rows of one column, or a sequence of cells.
    who : str
        The kernel, for messages.
    what : str
        What the cells are, in plural.
    """
    if isinstance(X, Table):
        X = X.values
    elif not isinstance(X, np.ndarray):
        X = np.fromiter(X, dtype=object, count=len(X))
    if X.ndim == 2 and X.shape[1] != 1:
        raise InvalidInputError(
            f"{who} needs one column of {what}. Got {X.shape[1]} columns. Name the column, as in "
            f"{who.partition('(')[0]}(...).on('column')."
        )
    column: NDArray[Any] = X[:, 0] if X.ndim == 2 else X
    if column.dtype == object:
        for row, cell in enumerate(column):
            if is_missing(cell):
                raise InvalidInputError(
                    f"{who} needs {what}, one per row. Row {row} is missing. Fill it, or let the "
                    f"row say nothing through this source: WhereKnown({who})."
                )
    return column
