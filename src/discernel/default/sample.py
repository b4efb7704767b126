"""A sample of the training rows, divided into folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discernel.arrays import Device, FloatArray, Positions, typical_row
from discernel.arrays.groups import Groups, random_places
from discernel.arrays.sample_weights import SampleWeights
from discernel.default.likelihood import learn_likelihood_metric
from discernel.default.menu import Columns, Menu, SourceMenu, menu_of
from discernel.default.metric import Metric, learn_metric
from discernel.targets import Target, by_appearance, deal

#: Rows that scales are learned on by likelihood.
MOST_BY_LIKELIHOOD = 500
#: The largest distance from a typical row, in units of columns. Of farther rows, single precision
#: sees in a linear kernel no others beside them, and from 1e19 on no number.
_FARTHEST = 1e8


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
    menu : Menu or SourceMenu
        The kernels that suit the rows.
    quantiles : bool
        Whether the values of columns are normal quantiles.
    logit_regularization : float or None
        The λ of kernel logistic regressions, if candidates are compared by these too.
    """

    rows: FloatArray
    scores: FloatArray
    target: Target
    positions: Positions
    folds: Positions
    menu: Menu | SourceMenu
    quantiles: bool = False
    logit_regularization: float | None = None

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

    def held_out(self, rows: Positions) -> tuple[FloatArray, Target]:
        """Return what is to be predicted of some rows, or of all, and their target."""
        if len(rows) == len(self.rows):
            return self.scores, self.target
        return self.scores[rows], self.target.subset(rows)

    def with_quantiles(self, rows: FloatArray) -> Sample:
        """Return the sample with other columns: quantiles, of all rows of the training set."""
        return replace(self, rows=near_typical(rows[self.positions]), quantiles=True)

    def gradient_metric(self, rows: Positions, device: Device | None = None) -> Metric:
        """Return the metric by the gradients of a fit to some rows."""
        groups = self.target.groups
        return learn_metric(
            self.rows[rows],
            self.scores[rows],
            self.weights.values[rows],
            row_groups=None if groups is None else groups.subset(rows),
            device=device,
        )

    def likelihood_metric(
        self,
        rows: Positions,
        groups: Positions | None,
        device: Device | None = None,
        *,
        most: int = MOST_BY_LIKELIHOOD,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> Metric:
        """Return the metric by likelihood of the first of some rows, which are in random order."""
        first = rows[:most]
        return learn_likelihood_metric(
            self.rows[first],
            self.scores[first],
            self.weights.values[first],
            groups=groups,
            dtype=dtype,
            device=device,
        )


def draw_sample(
    rows: FloatArray,
    target: Target,
    *,
    most: int,
    n_folds: int,
    rng: np.random.RandomState,
    sources: Columns | None = None,
) -> Sample:
    """Return at most so many rows, and folds of them, with a share of every class.

    Rows are in comparable units, and their columns may be of several sources. Nothing depends on
    the order of the rows: they are sorted before any are drawn. Folds are fewer where there are
    fewer rows. A group of rows is in one fold.
    """
    groups = target.groups
    last = [] if groups is None else [groups.codes[:, None]]  # for rows that are the same
    order = _sorted(np.hstack([rows, target.labels, *last]))
    strata = by_appearance(target.strata[order])
    if groups is None:
        chosen = np.argsort(random_places(strata, rng), kind="stable")[:most]
    else:
        chosen = Groups(by_appearance(groups.codes[order])).draw(strata, most, rng)
    positions = order[chosen]
    drawn = near_typical(rows[positions])
    return Sample(
        rows=drawn,
        scores=target.truth[positions],
        target=target.part(positions),  # with the codes of all classes
        positions=positions,
        folds=deal(strata[chosen], n_folds, None if groups is None else groups.subset(positions)),
        menu=menu_of(drawn) if sources is None else SourceMenu(menu_of(drawn), sources, True),
    )


def near_typical(rows: FloatArray) -> FloatArray:
    """Return rows in comparable units less a typical row, as single precision takes them.

    Far from 0 it would see no differences. Numbers beyond its range are replaced by large ones.
    """
    return np.clip(rows - typical_row(rows), -_FARTHEST, _FARTHEST)


def _sorted(rows: FloatArray) -> Positions:
    """Return an order of rows that depends on their values, but not on the units of columns."""
    first = np.argsort(rows[:, 0], kind="stable")
    if (np.diff(rows[first, 0]) > 0).all():  # the others would not be looked at
        return first
    return np.lexsort(rows.T[::-1])
