"""Candidates and samples, compared on held-out folds by the strength of learned scales."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from discernel.arrays import Buffers, Device, FloatArray
from discernel.default.cross_fit import CLEARLY, CrossFit, Scored, clearly_better
from discernel.default.metric import Metric
from discernel.default.ridge import enough_precision
from discernel.default.sample import Sample
from discernel.programs.lambdas import lambda_grid
from discernel.programs.simplex import uniform
from discernel.programs.solution import Candidate
from discernel.progress.deadline import must_stop_learning

#: Powers of the learned scales: no metric, half of it, all of it.
STRENGTHS = (0.0, 0.5, 1.0)
#: λ to choose from; smaller ones are too small for single precision.
LAMBDAS = lambda_grid(0.0, -5.5)
#: Where the second sample is better by so many times as much as needed, metrics of both are not
#: compared: of 34 tasks in two splits each, one that was better by 2.4 times was no better then.
_SURELY = 3.0


@dataclass(eq=False)
class FoldComparison:
    """Candidates with equal weights, compared on the held-out folds of a sample.

    Attributes
    ----------
    sample : Sample
        The rows.
    regularization : float or None
        λ; None if it is chosen.
    device : Device or None
        Where to compute; None is here.
    buffers : list of Buffers
        The memory of each fold: large arrays take as long to get as to compute.
    tried : list of list of Scored
        All that was tried with each strength, in the order of `STRENGTHS`.
    """

    sample: Sample
    regularization: float | None = None
    device: Device | None = None
    buffers: list[Buffers] = field(default_factory=list)
    tried: list[list[Scored]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not self.buffers:
            self.buffers = [Buffers() for _ in range(self.sample.n_folds)]

    @property
    def lambdas(self) -> Sequence[float]:
        """The λ to choose from."""
        return LAMBDAS if self.regularization is None else (self.regularization,)

    def fit(
        self, metrics: Sequence[Metric], strength: float, *, is_final: bool = False
    ) -> CrossFit:
        """Return fits to the folds with metrics of a strength; fits before lose their memory.

        In single precision if that is enough, unless final: some λ that users give are too small
        for it.
        """
        is_double = is_final or self.regularization is not None
        return CrossFit(
            self.sample,
            metrics,
            strength,
            dtype=np.float64 if is_double else enough_precision(self.sample.weights.values),
            buffers=self.buffers,
            device=self.device,
        )

    def try_strengths(
        self, metrics: Sequence[Metric], strengths: Sequence[float] = STRENGTHS
    ) -> None:
        """Try strengths that were not tried, as long as the loss falls and there is time."""
        shares = self.shares()
        for strength in strengths[len(self.tried) :]:
            losses = [float(shares @ self.best_of(group).losses) for group in self.tried]
            falls = all(after < before for before, after in pairwise(losses))
            if not falls or (self.tried and must_stop_learning()):
                break  # more of a metric that does no good does none either
            start = self.ranking()[0].candidate.regularization if self.tried else None
            fit = self.fit(metrics, strength)
            fit.best("average", uniform(self.sample.menu.n_kernels), self.lambdas, start)
            self.tried.append(fit.tried)

    def best_of(self, tried: Sequence[Scored], without: int | None = None) -> Scored:
        """Return the best of some candidates, by the losses of their scores."""
        shares = self.shares(without)
        return min(tried, key=lambda one: float(shares @ one.score_losses))

    def ranking(
        self, without: int | None = None, tried: Sequence[list[Scored]] | None = None
    ) -> list[Scored]:
        """Return the best of each strength, the chosen one first.

        The chosen one is the first that no other is clearly better than. Strengths after one with
        which the loss does not fall are left out.

        Parameters
        ----------
        without : int, optional
            The rows of this fold do not count.
        tried : sequence of list of Scored, optional
            What was tried with some of the strengths; by default with all.
        """
        found, before, shares = list[Scored](), np.inf, self.shares(without)
        for group in self.tried if tried is None else tried:
            best = self.best_of(group, without)
            loss = float(shares @ best.losses)
            found = self.with_rival(found, best, without) if found else [best]
            if loss >= before:
                break
            before = loss
        return found

    def with_rival(
        self, ranking: list[Scored], rival: Scored, without: int | None = None
    ) -> list[Scored]:
        """Return a ranking with one more: first if it is clearly better, else last."""
        is_better = self.is_better(rival.losses, ranking[0].losses, without)
        return [rival, *ranking] if is_better else [*ranking, rival]

    def shares(self, without: int | None = None) -> FloatArray:
        """Return how much each row counts, with sum 1; rows of the fold ``without`` do not."""
        shares = self.sample.weights.shares
        if without is not None:
            shares = np.where(self.sample.folds == without, 0.0, shares)
        return np.asarray(shares / shares.sum())

    def is_better(
        self,
        first: FloatArray,
        second: FloatArray,
        without: int | None = None,
        n_errors: float = CLEARLY,
    ) -> bool:
        """Whether the first losses of the rows are clearly less, see `clearly_better`."""
        return clearly_better(
            first, second, self.shares(without), self.sample.target.groups, n_errors
        )


# ---- two samples -------------------------------------------------------------------------------


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
