"""Kernels of strings, sets, categories, histograms and identifiers."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from discernel.arrays import (
    FloatArray,
    as_dense,
    as_rows,
    city_distances,
    inner_products,
    is_sparse,
    squared_norms,
)
from discernel.exceptions import InvalidInputError, check_count, is_count
from discernel.kernels.base import Kernel
from discernel.kernels.columns import as_cells, is_missing
from discernel.kernels.pairs import non_negative
from discernel.kernels.terms import Atom, PairKind, Term, Terms, View

#: Counts with at least this share of nonzero entries, and at most this many entries, are multiplied
#: as dense matrices, for example k-mers of DNA.
_DENSE, _DENSE_ENTRIES = 0.1, 2**25


class SimilarityKernel(Kernel, PairKind):
    """A kernel that prepares rows by `rows` and computes matrices by `tile`.

    The kernel is its own pairwise matrix, because other kernels cannot share the prepared rows.
    """

    def _terms(self, view: View) -> Terms:
        return (Term(1.0, (Atom(self, view),)),)

    def __repr__(self) -> str:
        shown = []
        for one in dataclasses.fields(self):  # type: ignore[arg-type]
            value = self.settings[one.name]
            if value != one.default or one.default not in (None, False, True):
                shown.append(f"{one.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


def _one_column(X: Any, kernel: str, what: str) -> list[Any]:
    """Return the cells of a single column; raise an error if there are more, or missing cells."""
    cells = as_cells(X)
    if cells.ndim == 2 and cells.shape[1] != 1:
        raise InvalidInputError(
            f"{kernel} needs one column of {what}. Got {cells.shape[1]} columns. Name the column: "
            f"{kernel.partition('(')[0]}(...).on('column')."
        )
    column: list[Any] = (cells[:, 0] if cells.ndim == 2 else cells).tolist()
    if cells.dtype == object:
        for row, cell in enumerate(column):
            if is_missing(cell):
                raise InvalidInputError(
                    f"{kernel} needs {what}, one per row. Row {row} is missing. Impute it, or use "
                    f"WhereKnown({kernel}), which ignores this source for rows without it."
                )
    return column


# ---- kernels of counts ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Counted:
    """Counts of items in rows, one column for each item of the training rows.

    ``sizes`` are the squared norms of the counts, including items that no training row has.
    """

    counts: Any
    sizes: FloatArray
    items: dict[Hashable, int] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Iterable[Hashable]], like: _Counted | None) -> _Counted:
        """Count the items of every row; with ``like``, in the columns of these other counts."""
        items: dict[Hashable, int] = {}
        found = [[items.setdefault(item, len(items)) for item in row] for row in rows]
        ends = np.cumsum([0, *map(len, found)])
        columns = np.fromiter(chain.from_iterable(found), dtype=np.intp, count=ends[-1])
        entries = np.ones(len(columns)), columns, ends
        counts = sp.csr_array(entries, shape=(len(found), max(1, len(items))))
        counts.sum_duplicates()
        sizes = squared_norms(counts)
        if like is None:
            return cls(counts, sizes, items)
        shared = [(place, like.items[item]) for item, place in items.items() if item in like.items]
        old, new = np.array(shared, dtype=np.intp).reshape(-1, 2).T
        some = counts[:, old]
        moved = some.data, new[some.indices], some.indptr
        shape = len(found), max(1, len(like.items))
        return cls(sp.csr_array(moved, shape=shape), sizes, like.items)

    def __getitem__(self, rows: Any) -> _Counted:
        return _Counted(self.counts[rows], self.sizes[rows], self.items)

    def products(self, other: _Counted | None) -> FloatArray:
        """Return the inner products between these counts and other counts."""
        left, right = self.counts, self.counts if other is None else other.counts
        if _is_dense(left) and _is_dense(right):
            left, right = left.toarray(), right.toarray()
        return inner_products(left, right)


def _is_dense(counts: Any) -> bool:
    """Whether sparse counts are multiplied faster as dense matrices."""
    entries = counts.shape[0] * counts.shape[1]
    return is_sparse(counts) and _DENSE * entries < counts.nnz and entries < _DENSE_ENTRIES


class CountKernel(SimilarityKernel):
    """A function of the shared items of two rows, which `rows` counts, and of their own items."""

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        return self._similarity(X.products(Z), X.sizes[:, None], (X if Z is None else Z).sizes)

    def diagonal(self, X: Any) -> FloatArray:
        sizes = self.rows(X).sizes
        return self._similarity(sizes, sizes, sizes)

    def _similarity(self, shared: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the kernel of inner products and squared norms of counts."""
        return shared


class _StringKernel(CountKernel):
    """⟨φ(x), φ(z)⟩ / (‖φ(x)‖ ‖φ(z)‖), where φ counts the substrings of a string."""

    takes_any_rows = True
    takes_sparse = False
    normalize: bool

    def _lengths(self) -> range:
        """Return the lengths of the substrings."""
        raise NotImplementedError

    def _text(self, string: str) -> str:
        """Normalize a string before its substrings are counted."""
        return string

    def _pieces(self, row: int, string: Any) -> list[Hashable]:
        if not isinstance(string, str):
            raise InvalidInputError(
                f"{self!r} needs strings, one per row. Row {row} holds {string!r}. Restrict "
                "the kernel to a column of strings with kernel.on(column)."
            )
        text = self._text(string)
        return [text[i : i + k] for k in self._lengths() for i in range(len(text) - k + 1)]

    def rows(self, X: Any, like: Any | None = None) -> Any:
        strings = _one_column(X, repr(self), "strings")
        counted = _Counted.of([self._pieces(*each) for each in enumerate(strings)], like)
        if not self.normalize:
            return counted
        # New strings are normalized by all their substrings, not only by those seen in training.
        sizes = counted.sizes
        factors = np.divide(1.0, np.sqrt(sizes), out=np.zeros_like(sizes), where=sizes > 0)
        shares = sp.csr_array(counted.counts.multiply(factors[:, None]))
        return _Counted(shares, (sizes > 0).astype(np.float64), counted.items)


@dataclass(frozen=True, repr=False)
class Spectrum(_StringKernel):
    """Spectrum kernel of sequences: counts k-mers that two sequences share.

    ``φ(x)`` counts every substring of k characters of the string x [Leslie02]_. All characters are
    allowed, and case matters.

    Parameters
    ----------
    k : int, default=3
        The number of characters.
    up_to : bool, default=False
        Whether to count shorter substrings, of 1 to k characters, too.
    normalize : bool, default=True
        Whether to divide ``⟨φ(x), φ(z)⟩`` by ``‖φ(x)‖ ‖φ(z)‖``, so that k(x, x) is 1. The kernel
        values of a string shorter than k are 0.

    Examples
    --------
    >>> Spectrum(k=2)(["GATTACA", "GATTA", "CCC"]).round(2)
    array([[1.  , 0.82, 0.  ],
           [0.82, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])

    Beside columns of numbers, ``.on`` says where the sequences are:

    >>> kernels = {"sequence": Spectrum(k=4).on("promoter")}
    """

    k: int = 3
    up_to: bool = False
    normalize: bool = True

    def __post_init__(self) -> None:
        check_count("The k of Spectrum", self.k)

    def _lengths(self) -> range:
        return range(1 if self.up_to else int(self.k), int(self.k) + 1)


@dataclass(frozen=True, repr=False)
class NGram(_StringKernel):
    """Character n-gram kernel of text: counts substrings that two texts share.

    It needs neither words nor a dictionary: inflected, compound and misspelled words share most of
    their n-grams. Runs of blanks and line breaks count as one blank.

    Parameters
    ----------
    n : int or pair of int, default=(2, 4)
        Number of characters, or the smallest and the largest number.
    lowercase : bool, default=True
        Whether to convert text to lower case.
    normalize : bool, default=True
        As in `Spectrum`.

    Examples
    --------
    >>> NGram()(["heart attack", "Heart attacks", "broken leg"]).round(2)
    array([[1.  , 0.95, 0.  ],
           [0.95, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    n: int | tuple[int, int] = (2, 4)
    lowercase: bool = True
    normalize: bool = True

    def __post_init__(self) -> None:
        ends = [self.n, self.n] if np.ndim(self.n) == 0 else list(self.n)  # type: ignore[arg-type]
        if not (len(ends) == 2 and all(map(is_count, ends)) and ends[0] <= ends[1]):  # type: ignore[operator]
            raise InvalidInputError(
                "The n of NGram must be an integer of at least 1, or a minimum and a maximum such "
                f"as (2, 4). Got {self.n!r}."
            )
        if np.ndim(self.n):
            object.__setattr__(self, "n", tuple(map(int, ends)))  # type: ignore[arg-type]

    def _lengths(self) -> range:
        least, most = np.broadcast_to(self.n, 2).tolist()
        return range(least, most + 1)

    def _text(self, string: str) -> str:
        text = " ".join(string.split())
        return text.lower() if self.lowercase else text


@dataclass(frozen=True, repr=False)
class Tanimoto(CountKernel):
    """Tanimoto similarity of two rows of counts, ``⟨x, z⟩ / (‖x‖² + ‖z‖² − ⟨x, z⟩)``.

    For 0/1 rows, such as molecular fingerprints [Ralaivola05]_, it equals `Jaccard`. The similarity
    of two rows of zeros is 1.

    Examples
    --------
    >>> Tanimoto()([[2, 0, 1]], [[1, 0, 1], [0, 3, 0]])
    array([[0.75, 0.  ]])
    """

    def rows(self, X: Any, like: Any | None = None) -> Any:
        X = self._checked(as_rows(X))
        return _Counted(X, squared_norms(X))

    def _checked(self, X: Any) -> Any:
        """Return rows of numbers; raise an error for a number that is not allowed."""
        return non_negative(X, repr(self))

    def _similarity(self, shared: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        whole = left + right - shared
        # Entries are counts, so the difference is exactly 0 or far from 0.
        return np.asarray(np.divide(shared, whole, out=np.ones_like(shared), where=whole > 0))


@dataclass(frozen=True, repr=False)
class Jaccard(Tanimoto):
    """Jaccard similarity of two sets, ``|A ∩ B| / |A ∪ B|``.

    The similarity of two empty sets is 1. A set is a cell with a set, list or tuple of hashable
    items, or a row of 0/1 columns.

    Parameters
    ----------
    separator : str, optional
        Separator of the items of a set that is written as text, such as ``";"``. Blanks around
        items are ignored, and empty text is an empty set.

    Examples
    --------
    >>> Jaccard()([{"fever", "cough"}, {"cough"}, set()])
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    >>> Jaccard()([[1, 1, 0]], [[0, 1, 1]])
    array([[0.33333333]])
    >>> Jaccard(separator=";")(["fever; cough"], ["cough"])
    array([[0.5]])
    """

    separator: str | None = None
    takes_any_rows = True

    def __post_init__(self) -> None:
        if self.separator is not None and not (isinstance(self.separator, str) and self.separator):
            raise InvalidInputError(
                f"The separator of Jaccard must be text such as ';'. Got {self.separator!r}."
            )

    def rows(self, X: Any, like: Any | None = None) -> Any:
        if _is_numbers(X):
            return super().rows(X, like)
        cells = enumerate(_one_column(X, repr(self), "sets"))
        return _Counted.of([self._set(*cell) for cell in cells], like)

    def _set(self, row: int, cell: Any) -> set[Hashable]:
        is_text = isinstance(cell, (str, bytes))
        if is_text and self.separator is not None:
            return {item.strip() for item in cell.split(self.separator) if item.strip()}
        items: Any = None if is_text else cell
        try:
            return set(items)
        except TypeError as error:
            raise InvalidInputError(
                f"{self!r} needs a set, list or tuple per row, or columns of 0 and 1. Row {row} "
                f"holds {cell!r}."
                + (" Give the separator of its items: Jaccard(separator=';')." if is_text else "")
            ) from error

    def _checked(self, X: Any) -> Any:
        values = X.data if is_sparse(X) else X
        strange = values[(values != 0) & (values != 1)]
        if len(strange):
            raise InvalidInputError(
                f"{self!r} of numeric columns needs 0 and 1, for membership in a set. Got "
                f"{strange[0]:g}. Tanimoto() takes counts."
            )
        return X


def _is_numbers(X: Any) -> bool:
    """Whether rows are numeric columns, not a sequence of sets."""
    if hasattr(X, "shape"):
        return is_sparse(X) or (len(X.shape) == 2 and as_cells(X).dtype != object)
    first = next(iter(X), ())
    return np.ndim(first) == 1 and np.asarray(first).dtype.kind in "fiub"


@dataclass(frozen=True, repr=False)
class Matching(CountKernel):
    """Share of categorical columns in which two rows have the same value.

    Values may be any hashable objects. Missing cells (NaN, None, ``pd.NA``) count as one value.

    Examples
    --------
    >>> Matching()([["east", "smoker"], ["east", "never"]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    takes_any_rows = True
    takes_missing = True
    takes_sparse = False

    def check_rows(self, X: Any) -> None:
        """Accept all rows."""

    def rows(self, X: Any, like: Any | None = None) -> Any:
        cells = np.asarray(X)
        cells = cells if cells.ndim == 2 else cells[:, None]
        items = (
            [(column, None if is_missing(cell) else cell) for column, cell in enumerate(row)]
            for row in cells.tolist()
        )
        return _Counted.of(items, like)

    def _similarity(self, shared: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        return np.asarray(shared / left)


# ---- kernels of histograms and identifiers -------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Intersection(SimilarityKernel):
    """Histogram intersection kernel, Σ min(x_l, z_l).

    Parameters
    ----------
    shares : bool, default=True
        Whether to divide every row by its sum first, so that k(x, x) is 1. A row of zeros is not
        divided; its kernel values are 0.

    Examples
    --------
    >>> Intersection()([[3, 1, 0]], [[1, 1, 2], [6, 2, 0]])
    array([[0.5, 1. ]])
    >>> Intersection(shares=False)([[3, 1, 0]], [[1, 1, 2], [6, 2, 0]])
    array([[2., 4.]])
    """

    shares: bool = True

    def rows(self, X: Any, like: Any | None = None) -> Any:
        X = np.ascontiguousarray(non_negative(as_dense(as_rows(X)), repr(self)))
        if not self.shares:
            return X
        sums = X.sum(axis=1, keepdims=True)
        return np.divide(X, sums, out=np.zeros_like(X), where=sums > 0)

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        # min(a, b) = (a + b − |a − b|) / 2
        matrix = city_distances(X, Z, out)
        np.subtract(X.sum(axis=1)[:, None], matrix, out=matrix)
        matrix += (X if Z is None else Z).sum(axis=1)
        matrix *= 0.5
        return matrix

    def diagonal(self, X: Any) -> FloatArray:
        return np.asarray(self.rows(X).sum(axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class Lookup(SimilarityKernel):
    """Kernel given by a matrix of items, such as graphs or molecules, and their identifiers.

    Rows hold identifiers, and ``k(x, z)`` is the entry of the matrix for those of x and z. A
    precomputed matrix can thus be combined with kernels of other columns, and cross-validation
    splits the rows as usual. The matrix must contain all rows, including those to predict.

    Parameters
    ----------
    matrix : array-like or dataframe of shape (n_items, n_items)
        Symmetric and positive semidefinite.
    keys : sequence of hashable, optional
        Identifiers of the rows of the matrix. The default is the index of a pandas DataFrame, or
        else the positions 0, 1, 2 and so on.

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
        keys, frame = self.keys, cast(Any, self.matrix)
        if keys is None and hasattr(frame, "index"):
            keys = frame.index.tolist()
            if list(frame.columns) != keys:
                raise InvalidInputError(
                    "The rows and columns of the matrix of Lookup must have the same names in the "
                    f"same order. Got {keys[:3]}... and {list(frame.columns)[:3]}..."
                )
        matrix = np.array(self.matrix, dtype=np.float64)  # a copy that nobody else can change
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
            raise InvalidInputError(
                "The matrix of Lookup must have one row and one column per item. Got the shape "
                f"{matrix.shape}."
            )
        matrix.setflags(write=False)
        names: Sequence[Hashable] = range(len(matrix)) if keys is None else as_cells(keys).tolist()
        if len(names) != len(matrix):
            raise InvalidInputError(
                f"There must be one key per row of the matrix, here {len(matrix)}. Got "
                f"{len(names)}."
            )
        places: dict[Hashable, int] = {}
        for place, key in enumerate(names):
            if places.setdefault(key, place) != place:
                raise InvalidInputError(
                    f"The keys of Lookup must be different from each other. Got {key!r} twice."
                )
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "keys", None if keys is None else tuple(names))
        object.__setattr__(self, "_places", places)

    def rows(self, X: Any, like: Any | None = None) -> Any:
        column = _one_column(X, repr(self), "identifiers")
        for row, key in enumerate(column):
            if not isinstance(key, Hashable) or key not in self._places:
                known = f"such as {self.keys[0]!r}" if self.keys else "the positions of its rows"
                raise InvalidInputError(
                    f"{self!r} has no entry for {key!r} in row {row}. Its {len(self.matrix)} "
                    f"identifiers are {known}. Compute the matrix with all items, including those "
                    "to predict."
                )
        return np.array([self._places[key] for key in column], dtype=np.intp)

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
