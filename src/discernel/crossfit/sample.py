"""The rows that kernels are chosen on, and how they are divided into folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discernel.backend import FloatArray
from discernel.targets import ClassTarget, Target

__all__ = ["Sample", "draw_sample"]

Positions = NDArray[np.intp]


@dataclass(frozen=True)
class Sample:
    """Different rows of a training set, at random, divided into folds.

    A row that stands several times in the training set stands here once, with the sum of the
    weights: copies on both sides of a fold would make every prediction look good, and a weight of
    two is the same as two copies.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        Columns in comparable units.
    scores : ndarray of shape (n_rows, n_outputs)
        What is to be predicted.
    weights : ndarray of shape (n_rows,)
        How often each row counts.
    positions : ndarray of shape (n_rows,)
        Where the first copy of each row stands in the training set.
    seen : ndarray of int
        Where all copies stand.
    folds : ndarray of shape (n_rows,)
        The fold of each row, from 0.
    """

    rows: FloatArray
    scores: FloatArray
    weights: FloatArray
    positions: Positions
    seen: Positions
    folds: Positions

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
    sample_weight: FloatArray | None,
    *,
    most: int,
    n_folds: int,
    rng: np.random.RandomState,
) -> Sample:
    """Return at most so many different rows, and folds of them, with a share of every class.

    Nothing depends on the order of the rows: different ones are sorted before any are drawn.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        The training rows, in comparable units.
    target : Target
        What is to be predicted.
    sample_weight : ndarray of shape (n_samples,) or None
        How often each row counts.
    most : int
        The most rows.
    n_folds : int
        The number of folds; fewer where there are fewer rows.
    rng : RandomState
        Draws.
    """
    labels = _labels(target)
    first, inverse = _different(np.hstack([rows, labels]))
    weights = np.bincount(inverse, sample_weight, minlength=len(first))
    strata = target.codes[first] if isinstance(target, ClassTarget) else np.zeros(len(first), int)
    chosen = _drawn(strata, most, rng)
    positions = first[chosen]
    return Sample(
        rows=rows[positions],
        scores=target.scores[positions],
        weights=weights[chosen],
        positions=positions,
        seen=np.flatnonzero(np.isin(inverse, chosen)),
        folds=_dealt(strata[chosen], min(n_folds, len(chosen))),
    )


def _labels(target: Target) -> FloatArray:
    """Return what a row is labelled with, as numbers that do not depend on the other rows."""
    for name in ("codes", "values", "has"):
        if hasattr(target, name):
            found = np.asarray(getattr(target, name), dtype=np.float64)
            return found[:, None] if found.ndim == 1 else found
    return np.asarray(target.scores)


def _different(rows: FloatArray) -> tuple[Positions, Positions]:
    """Return where different rows first stand, in an order of their own, and which each is."""
    rows = np.ascontiguousarray(rows + 0.0)  # -0.0 is 0.0
    as_one = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
    _, first, inverse = np.unique(as_one, return_index=True, return_inverse=True)
    return first, inverse


def _drawn(strata: Positions, most: int, rng: np.random.RandomState) -> Positions:
    """Return at most so many rows in a random order: a share of each stratum, two at least."""
    place = np.empty(len(strata))
    for stratum in np.unique(strata):
        members = rng.permutation(np.flatnonzero(strata == stratum))
        place[members] = (np.arange(len(members)) + rng.uniform()) / len(members)
        place[members[:2]] = 0.0
    return np.argsort(place, kind="stable")[:most]


def _dealt(strata: Positions, n_folds: int) -> Positions:
    """Return a fold per row: every stratum is dealt out in turn, where the last one ended."""
    folds = np.empty(len(strata), dtype=np.intp)
    order = np.argsort(strata, kind="stable")
    folds[order] = np.arange(len(strata)) % n_folds
    return folds
