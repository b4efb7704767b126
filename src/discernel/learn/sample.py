"""A random sample of rows that depends neither on their order nor on where they lie."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.rows.chunks import Chunk, Place, stack_rows, take_rows

Positions = NDArray[np.intp]

#: Rows of every class that are in the sample at least.
_OF_EVERY_CLASS = 20


def row_keys(place: Place, n: int, seed: int) -> FloatArray:
    """Return a random number per row that depends on the seed and on where the row stands only.

    Exponential ones: the rows with the least are a random sample, whichever order, chunks or
    machines they come in, and however often a pass is begun anew.

    Parameters
    ----------
    place : Place
        Where the first row stands.
    n : int
        The number of rows.
    seed : int
        The seed.
    """
    start = _mixed(np.array([seed % 2**63], dtype=np.uint64))
    start = _mixed(start + np.array([place.part], dtype=np.uint64))
    rows: NDArray[np.uint64] = np.arange(place.first, place.first + n).astype(np.uint64)
    with np.errstate(over="ignore"):
        bits = _mixed(start + rows)
    return np.asarray(-np.log1p(-((bits >> np.uint64(11)) * 2.0**-53)))


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return splitmix64 of numbers, of which every bit depends on every bit."""
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
    y : ndarray of shape (n_rows,)
        Their labels, or numbers.
    weights : ndarray of shape (n_rows,)
        How much each was said to count.
    decays : ndarray of shape (n_rows,)
        The share of that which is not forgotten.
    keys : ndarray of shape (n_rows,)
        The least are kept.
    involved : ndarray of bool, of shape (n_rows,)
        Which of them had a part in the metric.
    """

    X: Any
    y: NDArray[Any]
    weights: FloatArray
    decays: FloatArray
    keys: FloatArray
    involved: NDArray[np.bool_]

    @classmethod
    def of(cls, chunk: Chunk, seed: int, rows: Positions, most: int, *, classes: bool) -> RowSample:
        """Return the sample of some rows of a chunk: no more of them are copied than it has."""
        y = np.empty(0) if chunk.y is None else comparable(chunk.y)[rows]
        keys = row_keys(chunk.place, chunk.n_rows, seed)[rows]
        kept = chosen_rows(keys, y if classes else None, most)
        weights = np.ones(len(rows)) if chunk.weights is None else chunk.weights[rows]
        return cls(
            take_rows(chunk.X, rows[kept]),
            y[kept],
            weights[kept],
            np.ones(len(kept)),
            keys[kept],
            np.zeros(len(kept), dtype=bool),
        )

    def __len__(self) -> int:
        return len(self.keys)

    def merged(self, other: RowSample, most: int, *, classes: bool) -> RowSample:
        """Return the sample of the rows of both."""
        keys = np.concatenate([self.keys, other.keys])
        y = np.concatenate([self.y, other.y])
        kept = chosen_rows(keys, y if classes else None, most)
        first, second = kept[kept < len(self)], kept[kept >= len(self)] - len(self)
        if len(second) == 0 and len(first) == len(self):
            return self
        X = stack_rows([take_rows(self.X, first), take_rows(other.X, second)])
        both = np.concatenate([first, second + len(self)])
        position = np.argsort(keys[both], kind="stable")
        both = both[position]
        return RowSample(
            take_rows(X, position),
            y[both],
            np.concatenate([self.weights, other.weights])[both],
            np.concatenate([self.decays, other.decays])[both],
            keys[both],
            np.concatenate([self.involved, other.involved])[both],
        )

    def decayed(self, factor: float) -> RowSample:
        """Return the sample of rows that count less: new ones are then rather drawn."""
        return replace(self, decays=self.decays * factor, keys=self.keys / factor)

    def with_rows(self, X: Any) -> RowSample:
        """Return the sample with its rows written in another way."""
        return replace(self, X=X)

    def with_involved(self, rows: Positions) -> RowSample:
        """Return the sample with a note of the rows that had a part in the metric."""
        involved = np.zeros(len(self), dtype=bool)
        involved[rows] = True
        return replace(self, involved=involved)

    def first(self, most: int, *, classes: bool) -> Positions:
        """Return the positions of a random part, with some of every class."""
        return chosen_rows(self.keys, self.y if classes else None, most)


def chosen_rows(keys: FloatArray, labels: NDArray[Any] | None, most: int) -> Positions:
    """Return the rows with the least keys, and those with the least of every class, by key."""
    order = np.argsort(keys, kind="stable")
    kept = np.zeros(len(keys), dtype=bool)
    kept[order[:most]] = True
    if labels is not None and len(keys) > most:
        sorted_labels = labels[order]
        by_class = np.argsort(sorted_labels, kind="stable")
        grouped = sorted_labels[by_class]
        starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
        rank = np.arange(len(keys)) - np.repeat(starts, np.diff(np.r_[starts, len(keys)]))
        kept[order[by_class[rank < _OF_EVERY_CLASS]]] = True
    return np.asarray(order[kept[order]])


def comparable(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as an array of their own kind, where Python kept them as objects."""
    return np.array(labels.tolist()) if labels.dtype == object else labels
