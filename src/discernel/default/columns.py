"""The choice between columns as they are and their normal quantiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from discernel.default.comparison import STRENGTHS, FoldComparison
from discernel.default.metric import Metric
from discernel.default.sample import Sample
from discernel.programs.solution import Candidate
from discernel.progress.deadline import must_stop_learning


class ColumnChoice(NamedTuple):
    """Whether columns are quantiles, with equal weights."""

    #: The strengths of metrics that were compared, with the chosen columns.
    compared: FoldComparison
    #: The metrics of the chosen columns, one per fold; None if only fits without one were compared.
    metrics: list[Metric] | None
    #: The best of the other columns.
    other: Candidate
    #: For each fold, the choice by the losses of the other rows.
    without: list[Candidate]

    @property
    def quantiles(self) -> bool:
        """Whether quantiles are chosen."""
        return self.compared.sample.quantiles


def choose_columns(
    plain: FoldComparison, sample: Sample, learn: Callable[[Sample], list[Metric]]
) -> ColumnChoice:
    """Choose between columns as they are and quantiles, which must be clearly better.

    First without a metric, which takes 3 to 6 % of the time of the default; where quantiles are
    better there, again with the best strength of metrics for each.

    Parameters
    ----------
    plain : FoldComparison
        Of the columns as they are.
    sample : Sample
        The same rows with quantiles.
    learn : callable
        From a sample to metrics, one per fold.
    """
    mapped, n_folds = replace(plain, sample=sample), sample.n_folds
    none = [Metric(np.ones(sample.rows.shape[1]))] * n_folds
    metrics: tuple[list[Metric] | None, list[Metric] | None] = None, None

    def is_better(without: int | None = None) -> bool:
        best, rival = (each.ranking(without)[0] for each in (plain, mapped))
        return plain.is_better(rival.losses, best.losses, without)

    for each in (plain, mapped):
        each.try_strengths(none, STRENGTHS[:1])
    if is_better() and not must_stop_learning():
        metrics = learn(plain.sample), learn(sample)
        for each, found in zip((plain, mapped), metrics, strict=True):
            each.try_strengths(found)
    # Without a fold, columns as they are come without a metric: others than that of quantiles are
    # not kept.
    without = [
        mapped.ranking(fold)[0].candidate
        if is_better(fold)
        else plain.ranking(fold, plain.tried[:1])[0].candidate
        for fold in range(n_folds)
    ]
    chosen, other = (mapped, plain) if is_better() else (plain, mapped)
    return ColumnChoice(
        chosen, metrics[int(chosen is mapped)], other.ranking()[0].candidate, without
    )
