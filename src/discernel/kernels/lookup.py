"""A kernel that stands in a matrix: rows say which of its entries are theirs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.exceptions import InvalidInputError
from discernel.kernels.similarity import SimilarityKernel, one_column

__all__ = ["Lookup"]


@dataclass(frozen=True, eq=False, repr=False)
class Lookup(SimilarityKernel):
    """A kernel that was computed elsewhere, such as one of graphs or molecules, by identifiers.

    Rows hold identifiers, and ``k(x, z)`` is the entry of a matrix for the identifiers of x and z.
    So a precomputed matrix stands beside kernels of other columns, and cross-validation divides
    rows as it always does. The matrix must have all rows in it, those to be predicted too.

    Parameters
    ----------
    matrix : array-like or dataframe of shape (n_items, n_items)
        Symmetric and positive semidefinite.
    keys : sequence of hashable, optional
        The identifier of each row of the matrix. By default those of a pandas dataframe, its
        index, and else the positions 0, 1, 2 and so on.

    Examples
    --------
    >>> similar = [[1.0, 0.8, 0.1], [0.8, 1.0, 0.2], [0.1, 0.2, 1.0]]
    >>> kernel = Lookup(similar, keys=["aspirin", "ibuprofen", "caffeine"])
    >>> kernel(["caffeine"], ["aspirin", "ibuprofen"])
    array([[0.1, 0.2]])
    """

    matrix: FloatArray
    keys: tuple[Hashable, ...] | None = None
    _places: dict[Hashable, int] = field(init=False, metadata={"private": True})
    trusted = False
    takes_any_rows = True
    takes_sparse = False

    def __post_init__(self) -> None:
        keys = self.keys
        if keys is None and hasattr(self.matrix, "index") and hasattr(self.matrix, "columns"):
            keys = self.matrix.index.tolist()
            if list(self.matrix.columns) != keys:
                raise InvalidInputError(
                    "The rows and columns of the matrix of Lookup must have the same names in the "
                    f"same order. Got {keys[:3]}... and {list(self.matrix.columns)[:3]}..."
                )
        matrix = np.array(self.matrix, dtype=np.float64)  # ours: nobody else can change it
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
            raise InvalidInputError(
                "The matrix of Lookup must have one row and one column per item. Got the shape "
                f"{matrix.shape}."
            )
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "keys", None if keys is None else _distinct(keys, len(matrix)))
        names: Sequence[Hashable] = range(len(matrix)) if self.keys is None else self.keys
        object.__setattr__(self, "_places", {key: place for place, key in enumerate(names)})

    def rows(self, X: Any, like: Any | None = None) -> Any:
        column = one_column(X, repr(self), "identifiers")
        try:
            return np.array([self._places[key] for key in column.tolist()], dtype=np.intp)
        except (KeyError, TypeError):
            row, key = next((i, k) for i, k in enumerate(column.tolist()) if not self._has(k))
        known = "the positions of its rows" if self.keys is None else f"such as {self.keys[0]!r}"
        raise InvalidInputError(
            f"{self!r} has no row for {key!r}, which stands in row {row}. Its {len(self.matrix)} "
            f"identifiers are {known}. Compute the matrix with all items, those to be predicted "
            "too."
        )

    def _has(self, key: Any) -> bool:
        return isinstance(key, Hashable) and key in self._places

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        left: NDArray[np.intp] = X
        return np.asarray(self.matrix[np.ix_(left, left if Z is None else Z)])

    def diagonal(self, X: Any) -> FloatArray:
        return np.asarray(self.matrix.diagonal()[self.rows(X)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lookup):
            return NotImplemented
        return self.keys == other.keys and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((len(self.matrix), float(self.matrix.sum())))

    def __repr__(self) -> str:
        return f"Lookup({len(self.matrix)} × {len(self.matrix)})"


def _distinct(keys: Any, n_items: int) -> tuple[Hashable, ...]:
    """Return identifiers as a tuple, or raise an error where two are the same."""
    found = tuple(keys.tolist() if hasattr(keys, "tolist") else keys)
    if len(found) != n_items:
        raise InvalidInputError(
            f"There must be one key per row of the matrix, here {n_items}. Got {len(found)}."
        )
    seen: set[Hashable] = set()
    for key in found:
        if key in seen:
            raise InvalidInputError(
                f"The keys of Lookup must be different from each other. Got {key!r} twice."
            )
        seen.add(key)
    return found
