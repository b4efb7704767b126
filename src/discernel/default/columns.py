"""The choice between columns as they are and their normal quantiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from discernel.arrays import Device, FloatArray
from discernel.arrays.groups import Groups
from discernel.default.cross_fit import CrossFit, Scored, clearly_better
from discernel.default.metric import Metric
from discernel.default.sample import Sample
from discernel.default.strengths import (
    STRENGTHS,
    make_fits,
    ranked_by_strength,
    try_strengths,
)
from discernel.programs.solution import Candidate
from discernel.progress.deadline import must_stop_learning


class ColumnChoice(NamedTuple):
    """Whether columns are quantiles, with equal weights."""

    #: All that was tried with the chosen columns, by the strength of metrics.
    tried: list[list[Scored]]
    #: The metrics of the chosen columns, one per fold; None if only fits without one were compared.
    metrics: list[Metric] | None
    #: Fits that are not needed any more.
    memory: CrossFit | None
    #: The best of the other columns.
    other: Candidate
    #: For each fold, the choice by the losses of the other rows.
    without: list[Candidate]

    @property
    def quantiles(self) -> bool:
        """Whether quantiles are chosen."""
        return not self.other.quantiles


def choose_columns(
    given: Sample,
    quantiles: Sample,
    learn: Callable[[Sample], list[Metric]],
    *,
    regularization: float | None = None,
    device: Device | None = None,
) -> ColumnChoice:
    """Choose between columns as they are and quantiles, which must be clearly better.

    First without a metric, which takes 3 to 6 % of the time of the default; where quantiles are
    better there, again with the best strength of metrics for each.

    Parameters
    ----------
    given, quantiles : Sample
        The same rows.
    learn : callable
        From a sample to metrics, one per fold.
    regularization, device
        As in `choose`.
    """
    shares, together = given.weights.shares, given.target.groups
    none = [Metric(np.ones(given.rows.shape[1]))] * given.n_folds

    def compare(
        sample: Sample,
        metrics: Sequence[Metric],
        strengths: Sequence[float],
        known: Sequence[list[Scored]] = (),
        memory: CrossFit | None = None,
    ) -> tuple[list[list[Scored]], list[Scored], CrossFit | None]:
        make, lambdas = make_fits(sample, regularization, device)
        return try_strengths(make, metrics, lambdas, shares, together, known, memory, strengths)

    plain, best, memory = compare(given, none, STRENGTHS[:1])
    mapped, rival, memory = compare(quantiles, none, STRENGTHS[:1], memory=memory)
    metrics: tuple[list[Metric] | None, list[Metric] | None] = None, None
    is_better = clearly_better(rival[0].losses, best[0].losses, shares, together)
    if is_better and not must_stop_learning():
        metrics = found = learn(given), learn(quantiles)
        plain, best, memory = compare(given, found[0], STRENGTHS, plain, memory)
        mapped, rival, memory = compare(quantiles, found[1], STRENGTHS, mapped, memory)
    without = [
        _columns_without(plain, mapped, np.where(given.folds == fold, 0.0, shares), together)
        for fold in range(given.n_folds)
    ]
    if clearly_better(rival[0].losses, best[0].losses, shares, together):
        return ColumnChoice(mapped, metrics[1], memory, best[0].candidate, without)
    return ColumnChoice(plain, metrics[0], memory, rival[0].candidate, without)


def _columns_without(
    plain: list[list[Scored]],
    mapped: list[list[Scored]],
    shares: FloatArray,
    together: Groups | None,
) -> Candidate:
    """Return the choice of columns by some shares of the rows.

    Columns as they are come without a metric: others than that of quantiles are not kept.
    """
    shares = shares / shares.sum()
    (best, *_), (rival, *_) = (
        ranked_by_strength(tried, shares, together)[0] for tried in (plain, mapped)
    )
    if clearly_better(rival.losses, best.losses, shares, together):
        return rival.candidate
    return ranked_by_strength(plain[:1], shares, together)[0][0].candidate
