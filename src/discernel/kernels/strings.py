"""Kernels of strings: how often they have the same short pieces."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from discernel.arrays import FloatArray, inner_products, squared_norms
from discernel.exceptions import InvalidInputError
from discernel.kernels.similarity import SimilarityKernel, one_column

__all__ = ["NGram", "Spectrum"]

#: Counts of which at least this share is not 0 are multiplied as dense matrices, up to this many
#: numbers: of few different pieces, such as those of DNA.
_DENSE, _DENSE_ENTRIES = 0.1, 2**25


@dataclass(frozen=True, eq=False)
class _CountedStrings:
    """How often each string has each piece of the training strings, one row per string."""

    counts: Any
    vocabulary: dict[str, int]

    def __getitem__(self, rows: Any) -> _CountedStrings:
        return _CountedStrings(self.counts[rows], self.vocabulary)


def _count(
    strings: list[str], lengths: range, vocabulary: dict[str, int] | None = None
) -> tuple[Any, dict[str, int]]:
    """Return how often strings have each piece of some lengths, and the pieces.

    Of all pieces, or only of those in a vocabulary.
    """

    def pieces(string: str) -> list[str]:
        return [string[i : i + k] for k in lengths for i in range(len(string) - k + 1)]

    if vocabulary == {} or max(map(len, strings), default=0) < lengths[0]:
        return sp.csr_array((len(strings), max(1, len(vocabulary or {})))), vocabulary or {}
    counter = CountVectorizer(analyzer=pieces, vocabulary=vocabulary, lowercase=False)
    counts = sp.csr_array(counter.fit_transform(strings), dtype=np.float64)
    return counts, counter.vocabulary_


def _is_dense(counts: Any) -> bool:
    """Whether counts are multiplied faster, zeros and all."""
    entries = counts.shape[0] * counts.shape[1]
    return bool(_DENSE * entries < counts.nnz and entries < _DENSE_ENTRIES)


class _StringKernel(SimilarityKernel):
    """⟨φ(x), φ(z)⟩ / (‖φ(x)‖ ‖φ(z)‖), where φ counts the pieces of a string."""

    takes_any_rows = True
    takes_sparse = False
    normalize: bool

    def _lengths(self) -> tuple[int, int]:
        """Return the lengths of the shortest and of the longest pieces."""
        raise NotImplementedError

    def _strings(self, X: Any) -> list[str]:
        column = one_column(X, repr(self), "strings")
        strings: list[Any] = column.tolist()
        for row, string in enumerate(strings):
            if not isinstance(string, str):
                raise InvalidInputError(
                    f"{self!r} needs strings, one per row. Row {row} holds {string!r}. Restrict "
                    "the kernel to a column of strings with kernel.on(column)."
                )
        return strings

    def rows(self, X: Any, like: Any | None = None) -> Any:
        strings, lengths = self._strings(X), range(self._lengths()[0], self._lengths()[1] + 1)
        counts, vocabulary = _count(strings, lengths)
        # Also of new strings by all their pieces, not only by those seen in training.
        norms = np.sqrt(squared_norms(counts)) if self.normalize else np.ones(len(strings))
        if like is not None:
            counts, vocabulary = _count(strings, lengths, like.vocabulary)
        factors = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
        return _CountedStrings(sp.csr_array(counts.multiply(factors[:, None])), vocabulary)

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        left, right = X.counts, X.counts if Z is None else Z.counts
        if _is_dense(left) and _is_dense(right):
            left = left.toarray()
            right = left if Z is None else right.toarray()
        return inner_products(left, right)

    def diagonal(self, X: Any) -> FloatArray:
        if not self.normalize:
            return squared_norms(self.rows(X).counts)
        shortest = self._lengths()[0]
        return np.array([float(len(string) >= shortest) for string in self._strings(X)])


@dataclass(frozen=True, repr=False)
class Spectrum(_StringKernel):
    """The k-mer kernel of sequences: how often two of them have the same k characters in a row.

    ``φ(x)`` counts every piece of k characters of the string x [Leslie02]_. Characters may be any,
    and a small letter is not the same as its capital.

    Parameters
    ----------
    k : int, default=3
        The number of characters.
    up_to : bool, default=False
        Whether shorter pieces, of 1 to k characters, count too.
    normalize : bool, default=True
        Whether ``⟨φ(x), φ(z)⟩`` is divided by ``‖φ(x)‖ ‖φ(z)‖``, so that k(x, x) is 1. A string
        of fewer characters has no pieces: it is 0 with all.

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
        if not (isinstance(self.k, Integral) and self.k >= 1):
            raise InvalidInputError(
                f"The k of Spectrum must be an integer of at least 1. Got {self.k!r}."
            )

    def _lengths(self) -> tuple[int, int]:
        return 1 if self.up_to else int(self.k), int(self.k)


@dataclass(frozen=True, repr=False)
class NGram(_StringKernel):
    """The kernel of character n-grams: how often two texts have the same few characters in a row.

    It needs neither words nor a dictionary: endings, compounds and misspellings share most of
    their pieces. Blanks in a row, and ends of lines, count as one blank.

    Parameters
    ----------
    n : int or pair of int, default=(2, 4)
        The number of characters, or the least and the most.
    lowercase : bool, default=True
        Whether capitals are made small.
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
        given = (self.n, self.n) if isinstance(self.n, Integral) else self.n
        ends = tuple(given) if isinstance(given, (tuple, list)) else ()
        whole = len(ends) == 2 and all(isinstance(end, Integral) for end in ends)
        if not (whole and 1 <= ends[0] <= ends[1]):
            raise InvalidInputError(
                "The n of NGram must be an integer of at least 1, or the least and the most, such "
                f"as (2, 4). Got {self.n!r}."
            )
        if not isinstance(self.n, Integral):
            object.__setattr__(self, "n", (int(ends[0]), int(ends[1])))  # comparable, unchangeable

    def _lengths(self) -> tuple[int, int]:
        return self.n if isinstance(self.n, tuple) else (int(self.n), int(self.n))

    def _strings(self, X: Any) -> list[str]:
        texts = (" ".join(text.split()) for text in super()._strings(X))
        return [text.lower() if self.lowercase else text for text in texts]
