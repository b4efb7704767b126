"""The sample of rows that kernels are chosen on, and its folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, typical_row
from discernel.arrays.sample_weights import SampleWeights
from discernel.targets import Target, by_appearance, deal

Positions = NDArray[np.intp]


@dataclass(frozen=True)
class Sample:
    """Rows of a training set, at random, divided into folds.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        Columns in comparable units, less a typical row.
    scores : ndarray of shape (n_rows, n_outputs)
        What is to be predicted.
    target : Target
        The target of these rows.
    positions : ndarray of shape (n_rows,)
        Where each row stands in the training set.
    folds : ndarray of shape (n_rows,)
        The fold of each row, from 0.
    """

    rows: FloatArray
    scores: FloatArray
    target: Target
    positions: Positions
    folds: Positions

    @property
    def weights(self) -> SampleWeights:
        """The weights of the rows."""
        return self.target.row_weights

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return int(self.folds.max()) + 1

    def divisions(self) -> Iterator[tuple[Positions, Positions]]:
        """Yield the rows outside of each fold and those in it."""
        for fold in range(self.n_folds):
            yield np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold)


def draw_sample(
    rows: FloatArray,
    target: Target,
    *,
    most: int,
    n_folds: int,
    rng: np.random.RandomState,
) -> Sample:
    """Return at most so many rows, and folds of them, with a share of every class.

    Rows are in comparable units. Nothing depends on their order: they are sorted before any are
    drawn. Folds are fewer where there are fewer rows.
    """
    order = _sorted(np.hstack([rows, target.labels]))
    strata = by_appearance(target.strata[order])
    chosen = _drawn(strata, most, rng)
    positions = order[chosen]
    drawn = rows[positions]
    return Sample(
        # Far from the origin, single precision would see no differences at all.
        rows=drawn - typical_row(drawn),
        scores=target.truth[positions],
        target=target.part(positions),  # with the codes of all classes
        positions=positions,
        folds=deal(strata[chosen], min(n_folds, len(chosen))),
    )


def _sorted(rows: FloatArray) -> Positions:
    """Return an order of rows that depends on their values, but not on the units of columns."""
    first = np.argsort(rows[:, 0], kind="stable")
    if (np.diff(rows[first, 0]) > 0).all():  # the others would not be looked at
        return first
    return np.lexsort(rows.T[::-1])


def _drawn(strata: Positions, most: int, rng: np.random.RandomState) -> Positions:
    """Return at most so many rows in a random order: a share of each stratum, two at least."""
    place = np.empty(len(strata))
    for stratum in np.unique(strata):
        members = rng.permutation(np.flatnonzero(strata == stratum))
        place[members] = (np.arange(len(members)) + rng.uniform()) / len(members)
        place[members[:2]] = 0.0
    return np.argsort(place, kind="stable")[:most]
