"""The choice between a sample and another one: of quantiles, or with more kernels of sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from discernel.default.comparison import STRENGTHS, FoldComparison
from discernel.default.cross_fit import CLEARLY
from discernel.default.metric import Metric
from discernel.default.sample import Sample
from discernel.programs.solution import Candidate
from discernel.progress.deadline import must_stop_learning

#: Where the second sample is better by so many times as much as needed, metrics of both are not
#: compared: of 34 tasks in two splits each, one that was better by 2.4 times was no better then.
_SURELY = 3.0


class SampleChoice(NamedTuple):
    """The chosen one of two samples of the same rows, with equal weights."""

    #: The strengths of metrics that were compared, with the chosen sample.
    compared: FoldComparison
    #: The metrics of the chosen sample, one per fold; None if only fits without one were compared.
    metrics: list[Metric] | None
    #: The best candidate of the other sample.
    other: Candidate
    #: For each fold, the candidate of the first sample if the losses of the other rows do not
    #: choose the second, although those of all rows do; else None.
    without: list[Candidate | None]


def choose_sample(
    first: FoldComparison,
    second: Sample,
    learn: Callable[[Sample], list[Metric]] | None = None,
    n_errors: float = CLEARLY,
) -> SampleChoice:
    """Choose between two samples of the same rows; the second must be clearly better.

    First without a metric, which takes 3 to 6 % of the time of the default for quantiles; where the
    second is better there, but not by far, again with the best strength of metrics for each.

    Parameters
    ----------
    first : FoldComparison
        Of the first sample.
    second : Sample
        The second sample.
    learn : callable, optional
        From a sample to metrics, one per fold; by default samples are compared without.
    n_errors : float
        As in `clearly_better`.
    """
    rival, n_folds = replace(first, sample=second), second.n_folds
    none = [Metric(np.ones(second.rows.shape[1]))] * n_folds
    metrics: tuple[list[Metric] | None, list[Metric] | None] = None, None

    def is_better(without: int | None = None, times: float = 1.0) -> bool:
        best, other = (each.ranking(without)[0] for each in (first, rival))
        return first.is_better(other.losses, best.losses, without, times * n_errors)

    for each in (first, rival):
        each.try_strengths(none, STRENGTHS[:1])
    is_close = is_better() and not is_better(times=_SURELY)
    if learn is not None and is_close and not must_stop_learning():
        metrics = learn(first.sample), learn(second)
        for each, found in zip((first, rival), metrics, strict=True):
            each.try_strengths(found)
    if not is_better():
        return SampleChoice(first, metrics[0], rival.ranking()[0].candidate, [None] * n_folds)
    # Without a fold, the first sample comes without a metric: only metrics of the chosen one are
    # kept.
    without = [
        None if is_better(fold) else first.ranking(fold, first.tried[:1])[0].candidate
        for fold in range(n_folds)
    ]
    return SampleChoice(rival, metrics[1], first.ranking()[0].candidate, without)
