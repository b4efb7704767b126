"""The first pass over rows in chunks: counts, totals of y, column facts and a random sample.

The sample depends neither on the order in which chunks are read nor on where they are stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from discernel.arrays import FloatArray, Positions, is_frame, is_sparse
from discernel.arrays.groups import Groups, make_groups
from discernel.exceptions import InvalidInputError
from discernel.kernels.columns import AUTO_TAKES_TABLES
from discernel.learn.labels import ClassTotals, Totals
from discernel.rows.cells import (
    KINDS,
    LARGEST,
    ColumnFacts,
    column_names,
    find_number,
    is_plain,
    out_of_range,
    read_column,
)
from discernel.rows.chunks import Chunk, Place, stack_rows
from discernel.rows.sources import Source

#: Limits of the sample: rows, bytes, and the smallest number of rows whatever their size. 20,000
#: rows determine medians and spreads to one percent.
_MOST, _MOST_BYTES, _LEAST = 20_000, 2**26, 2_000
#: The smallest number of rows of each stratum in the sample, if it has as many.
_OF_EVERY_STRATUM = 20


# ---- the survey --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Survey:
    """Counts, totals of y, column facts and a sample of all rows, from one pass over them.

    Attributes
    ----------
    n_rows : int
        The number of rows with positive weight.
    totals : Totals
        The totals of y: the weights of the classes, or the mean and range of numbers.
    facts : tuple of ColumnFacts, or None
        Facts about each column; None for sparse rows.
    sample : RowSample or None
        A random sample; None before the first row.
    """

    n_rows: int = 0
    totals: Any = field(default_factory=ClassTotals)
    facts: tuple[ColumnFacts, ...] | None = None
    sample: RowSample | None = None

    def decayed(self, factor: float) -> Survey:
        """Return the survey with all weights multiplied by a factor."""
        if factor == 1.0:
            return self
        sample = None if self.sample is None else self.sample.decayed(factor)
        return replace(self, totals=self.totals.decayed(factor), sample=sample)

    def target(self, rows: Positions) -> Any:
        """Return the target of rows of the sample.

        Parameters
        ----------
        rows : ndarray of int
            Positions in the sample.
        """
        found, groups = self.totals.target(self.drawn.y[rows], self.drawn.weights[rows]), None
        if self.drawn.groups is not None:
            groups = make_groups(self.drawn.groups[rows])
        return replace(found, groups=groups)

    def check_kinds(self) -> None:
        """Raise an error if a column mixes numbers, text and dates, naming the parts."""
        if self.facts is None:
            return
        for name, column in zip(column_names(self.drawn.X), self.facts, strict=True):
            found = [kind for kind in KINDS if kind in column.kinds]
            if len(found) > 1:
                one, two = (f"{KINDS[kind]} in {column.kinds[kind]}" for kind in found[:2])
                raise InvalidInputError(
                    f"The column {name!r} must hold {' or '.join(KINDS[kind] for kind in found)}, "
                    f"not both. Got {one} and {two}."
                )

    @property
    def drawn(self) -> RowSample:
        """The sample; raises an error if all rows have weight 0."""
        if self.sample is None:
            raise InvalidInputError(
                "Some rows must have a weight above 0. Got 0 for all of them. Leave the weights "
                "out to give all rows the same weight."
            )
        return self.sample


@dataclass(frozen=True)
class SurveyPass:
    """A reduction over chunks that makes a `Survey`.

    Attributes
    ----------
    seed : int
        The seed of the sample.
    most : int
        The number of rows of the sample.
    takes_tables : bool
        Whether cells may be missing or text.
    totals : Totals
        The totals of no rows: of classes or of numbers.
    """

    seed: int = 0
    most: int = _MOST
    takes_tables: bool = True
    totals: Totals = field(default_factory=ClassTotals)

    @classmethod
    def of(cls, source: Source, **options: Any) -> SurveyPass:
        """Return a pass over a source, with as many sampled rows as the memory limit allows."""
        first = source.first()
        most = int(_MOST_BYTES // max(1, _bytes(first.X) // first.n_rows))
        return cls(most=min(_MOST, max(_LEAST, most)), **options)

    def start(self) -> Survey:
        return Survey(totals=self.totals)

    def add(self, state: Survey, chunk: Chunk) -> Survey:
        return self.merge(state, self._of_chunk(chunk))

    def merge(self, state: Survey, other: Survey) -> Survey:
        totals = state.totals.merged(other.totals)
        if state.sample is None or other.sample is None:
            return replace(other if state.sample is None else state, totals=totals)
        facts = None
        if state.facts is not None and other.facts is not None:
            if len(state.facts) != len(other.facts):
                raise InvalidInputError(
                    f"All parts must have the same columns. Got {len(state.facts)} and "
                    f"{len(other.facts)}."
                )
            facts = tuple(a + b for a, b in zip(state.facts, other.facts, strict=True))
        return Survey(
            state.n_rows + other.n_rows,
            totals,
            facts,
            state.sample.merged(other.sample, self.most, totals),
        )

    def can_end(self, state: Survey) -> bool:
        """Return whether the pass may end early: y varies over the rows so far."""
        return bool(state.totals.varies)

    def _of_chunk(self, chunk: Chunk) -> Survey:
        """Return the survey of one chunk."""
        if chunk.y is None:
            raise InvalidInputError(
                "Training rows must have labels. Got none; give the name of a column, or y, "
                "as the target of open_rows."
            )
        present = np.flatnonzero(chunk.row_weights)
        check_cells(chunk, takes_tables=self.takes_tables)
        chunk = replace(chunk, y=self.totals.read(chunk.y))
        assert chunk.y is not None
        totals = self.totals.of(chunk.y, chunk.row_weights)
        if len(present) == 0:
            return Survey(totals=totals)
        facts = None
        if not is_sparse(chunk.X):
            facts = tuple(
                ColumnFacts.of(read_column(chunk.X, i, name), chunk.place.name)
                for i, name in enumerate(column_names(chunk.X))
            )
        sample = RowSample.of(chunk, self.seed, present, self.most, totals)
        return Survey(len(present), totals, facts, sample)


def _bytes(X: Any) -> int:
    """Return the memory of rows, in bytes."""
    if is_sparse(X):
        return int(X.data.nbytes + X.indices.nbytes)
    if hasattr(X, "memory_usage"):
        return int(X.memory_usage(deep=True).sum())
    return int(X.estimated_size()) if is_frame(X) else int(X.nbytes)


# ---- the sample --------------------------------------------------------------------------------


def row_keys(place: Place, n: int, seed: int) -> FloatArray:
    """Return a random number for each row, which depends only on the seed and its position.

    The numbers have an exponential distribution. The rows with the smallest numbers are a random
    sample that does not depend on order, chunks, machines or repeated passes.

    Parameters
    ----------
    place : Place
        The position of the first row.
    n : int
        The number of rows.
    seed : int
        The seed.
    """
    start = mixed(np.array([seed % 2**63], dtype=np.uint64))
    start = mixed(start + np.array([place.part], dtype=np.uint64))
    rows: NDArray[np.uint64] = np.arange(place.first, place.first + n).astype(np.uint64)
    with np.errstate(over="ignore"):
        bits = mixed(start + rows)
    return np.asarray(-np.log1p(-((bits >> np.uint64(11)) * 2.0**-53)))


def mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the splitmix64 hash of numbers."""
    with np.errstate(over="ignore"):
        bits = bits + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))


@dataclass(frozen=True, eq=False)
class RowSample:
    """Rows drawn at random, in the order of their keys.

    Attributes
    ----------
    X : array, sparse matrix or dataframe of shape (n_rows, n_features)
        The rows.
    y : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Their labels or numbers.
    weights : ndarray of shape (n_rows,)
        Their sample weights, as given.
    decays : ndarray of shape (n_rows,)
        Factors of the weights, from ``forget`` of `partial_fit`.
    keys : ndarray of shape (n_rows,)
        Random numbers; rows with the smallest ones are kept.
    involved : ndarray of bool, of shape (n_rows,)
        Whether the kernel was learned on each row, or on other rows of its group.
    groups : ndarray of int of shape (n_rows,) or None
        The numbers of their groups.
    """

    X: Any
    y: NDArray[Any]
    weights: FloatArray
    decays: FloatArray
    keys: FloatArray
    involved: NDArray[np.bool_]
    groups: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, chunk: Chunk, seed: int, rows: Positions, most: int, totals: Totals) -> RowSample:
        """Return the sample of some rows of a chunk, copying only the sampled rows."""
        y = np.asarray(chunk.y)[rows]
        keys = row_keys(chunk.place, chunk.n_rows, seed)[rows]
        kept = chosen_rows(keys, totals.strata(y), most)
        drawn = rows[kept]
        return cls(
            _safe_indexing(chunk.X, drawn),
            y[kept],
            chunk.row_weights[drawn],
            np.ones(len(kept)),
            keys[kept],
            np.zeros(len(kept), dtype=bool),
            None if chunk.groups is None else chunk.groups[drawn],
        )

    def __len__(self) -> int:
        return len(self.keys)

    def merged(self, other: RowSample, most: int, totals: Totals) -> RowSample:
        """Return the sample of the rows of two samples."""
        if (self.groups is None) != (other.groups is None):
            raise InvalidInputError(
                "Either all rows have groups, or none. Got some without. Pass groups in every "
                "chunk and in every call of partial_fit, or in none."
            )
        whole: dict[str, Any] = {
            name: None if value is None else np.concatenate([value, vars(other)[name]])
            for name, value in vars(self).items()
            if name != "X"
        }
        kept = chosen_rows(whole["keys"], totals.strata(whole["y"]), most)
        first, second = kept[kept < len(self)], kept[kept >= len(self)] - len(self)
        if len(second) == 0 and len(first) == len(self):
            return self
        X = stack_rows([_safe_indexing(self.X, first), _safe_indexing(other.X, second)])
        both = np.concatenate([first, second + len(self)])
        position = np.argsort(whole["keys"][both], kind="stable")
        rows = both[position]
        taken: dict[str, Any] = {n: None if v is None else v[rows] for n, v in whole.items()}
        return RowSample(_safe_indexing(X, position), **taken)

    def decayed(self, factor: float) -> RowSample:
        """Return the sample with smaller weights, so that new rows are drawn more often."""
        return replace(self, decays=self.decays * factor, keys=self.keys / factor)

    def with_involved(self, rows: Positions) -> RowSample:
        """Return the sample with a mask of the rows that the kernel was learned on."""
        involved = np.zeros(len(self), dtype=bool)
        involved[rows if self.groups is None else Groups(self.groups).fellows(rows)] = True
        return replace(self, involved=involved)


def chosen_rows(keys: FloatArray, strata: NDArray[Any], most: int) -> Positions:
    """Return the rows with the smallest keys overall and in each stratum, sorted by key."""
    order = np.argsort(keys, kind="stable")
    kept = np.zeros(len(keys), dtype=bool)
    kept[order[:most]] = True
    if len(keys) > most:
        ordered = strata[order]
        by_stratum = np.argsort(ordered, kind="stable")
        grouped = ordered[by_stratum]
        starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
        rank = np.arange(len(keys)) - np.repeat(starts, np.diff(np.r_[starts, len(keys)]))
        kept[order[by_stratum[rank < _OF_EVERY_STRATUM]]] = True
    return np.asarray(order[kept[order]])


# ---- invalid cells -----------------------------------------------------------------------------


def check_cells(chunk: Chunk, *, takes_tables: bool) -> None:
    """Raise an error that names row and column of an invalid cell.

    Parameters
    ----------
    chunk : Chunk
        Rows.
    takes_tables : bool
        Whether cells may be missing or text.
    """
    sparse = is_sparse(chunk.X)
    if is_plain(chunk.X) and not sparse:
        return
    takes_missing = takes_tables and not sparse
    advice = "" if takes_tables or sparse else AUTO_TAKES_TABLES
    if found := find_number(chunk.X, out_of_range if takes_missing else _is_bad):
        raise _bad_cell(str(found[0]), chunk.place.of_row(found[2]), found[1], advice)
    for position, name in enumerate(column_names(chunk.X) if advice else []):
        column = read_column(chunk.X, position, name)
        if column.kinds != {"number"} and (column.missing.any() or not column.declared):
            row = int(column.missing.argmax())  # the first row if no cell is missing
            cell = column.cells[row]
            what = repr(cell.item() if isinstance(cell, np.generic) else cell)
            raise _bad_cell(what, chunk.place.of_row(row), name, advice)


def _is_bad(numbers: FloatArray) -> NDArray[np.bool_]:
    """Return which numbers are missing, infinite or too large."""
    return ~(np.abs(numbers) <= LARGEST)


def _bad_cell(what: str, where: str, column: str, advice: str) -> InvalidInputError:
    return InvalidInputError(
        f"Numbers must be finite, at most {LARGEST:g} in size. Got {what} in column {column!r}, "
        f"{where}. Correct the cell, or leave the row out. {advice}".rstrip()
    )
