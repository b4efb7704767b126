"""The stages of a fit: what could be run, from the least to the whole, and what was run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from discernel.plan.forecast import Forecast, Problem
from discernel.progress import in_words

__all__ = ["FIRST_STAGE_ROWS", "FitPlan", "Stage", "plan_stages"]

#: Rows of the first stage, with equal weights: on any machine a part of a second.
FIRST_STAGE_ROWS = 500
#: Low ranks of stages between the first and the whole, and how many times as many rows make one
#: worth it: with fewer, all rows take no longer, and some of them less.
_RANKS, _ROWS_A_RANK = (500, 700, 1000, 1400, 2000), 8
#: A stage is run if it takes no more than this share of the whole.
_WORTHWHILE = 0.8


@dataclass(frozen=True)
class Stage:
    """One stage that was run.

    Attributes
    ----------
    what : str
        The rows, the bank and its rank.
    reason : str
        Why.
    forecast : float or None
        The seconds that were expected; None without a forecast.
    seconds : float
        The seconds that it took.
    finished : bool
        Whether it ended in time; if not, the model is that of the stage before.
    is_whole : bool
        Whether all was done that a fit without a time limit does.
    """

    what: str
    reason: str
    forecast: float | None
    seconds: float
    finished: bool = True
    is_whole: bool = True

    def __str__(self) -> str:
        expected = "" if self.forecast is None else f", expected {in_words(self.forecast)}"
        ended = "" if self.finished else ", stopped by the time limit"
        return f"{self.what} ({self.reason}): {in_words(self.seconds)}{expected}{ended}"


@dataclass(frozen=True)
class FitPlan:
    """How a fit was computed, and why.

    Attributes
    ----------
    stages : tuple of Stage
        What was run, in order; the model is that of the last stage that finished.
    max_time : float or None
        The time limit in seconds.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import MultipleKernelDiscriminant
    >>> clf = MultipleKernelDiscriminant(max_time="1h").fit(*load_wine(return_X_y=True))
    >>> [stage.what for stage in clf.plan_.stages]
    ["178 rows: bank='dense', equal weights", "178 rows: bank='dense'"]
    """

    stages: tuple[Stage, ...]
    max_time: float | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the model is that of a fit without a time limit."""
        return self.stages[-1].finished and self.stages[-1].is_whole

    @property
    def seconds(self) -> float:
        """The seconds that all stages took."""
        return sum(stage.seconds for stage in self.stages)

    def __str__(self) -> str:
        limit = "" if self.max_time is None else f" of {in_words(self.max_time)}"
        lines = [f"{number}. {stage}" for number, stage in enumerate(self.stages, start=1)]
        return "\n".join([f"{in_words(self.seconds)}{limit}", *lines])


def plan_stages(
    problem: Problem,
    plan: Callable[[Problem], Forecast],
    low_rank: Callable[[Problem], Forecast] | None = None,
    most_rows: int | None = None,
) -> list[Forecast]:
    """Return what could be fitted, by the time that it takes: the first is certain to be in time.

    Between equal weights on 500 rows and the whole are equal weights on more rows, as long as
    that is faster than to learn anything, and learned weights and metric on some rows, or with a
    low rank on all.

    Parameters
    ----------
    problem : Problem
        The whole.
    plan : callable
        Returns the forecast of a problem.
    low_rank : callable, optional
        Returns the forecast of a low rank of all rows; None where that does not serve. Where
        weights are learned on all rows, every kernel has a rank of its own, and fewer rows are
        better than a low rank, unless the whole is of a low rank too.
    most_rows : int, optional
        The rows that a stage of some rows may have; by default all.
    """
    whole, n = plan(problem), problem.n_rows
    if problem.n_programs > 0 and whole.kind != "lowrank":
        low_rank = None
    equal = replace(problem, learns=False)
    first = plan(replace(equal, n_rows=min(n, FIRST_STAGE_ROWS)))
    first = replace(first, reason="certain to be in time")
    sizes = _sizes(n if most_rows is None else min(n, most_rows + 1))
    pairs = [(plan(replace(problem, n_rows=m)), plan(replace(equal, n_rows=m))) for m in sizes]
    ranks = [rank for rank in _RANKS if rank <= n / _ROWS_A_RANK and rank < (whole.rank or n)]
    if low_rank is None or not (ranks or problem.rank or whole.kind == "lowrank"):
        pairs.append((whole, plan(equal)))
    elif problem.rank is not None:
        pairs.append((whole, low_rank(equal)))
    else:
        both = [(replace(problem, rank=rank), replace(equal, rank=rank)) for rank in ranks]
        pairs += [(low_rank(learned), low_rank(unlearned)) for learned, unlearned in both]
    between = [learned for learned, _ in pairs]
    cheapest = min((learned.seconds for learned in between), default=whole.seconds)
    between += [one for _, one in pairs if one.seconds < cheapest]
    most = _WORTHWHILE * whole.seconds
    between = [each for each in between if first.seconds < each.seconds <= most]
    between = [replace(each, reason="the time limit") for each in between]
    return [first, *sorted(between, key=lambda each: each.seconds), whole]


def _sizes(n_rows: int) -> list[int]:
    """Return the numbers of rows of stages of some rows: 1,000 and its doubles."""
    sizes = [2 * FIRST_STAGE_ROWS * 2**power for power in range(5)]
    return [size for size in sizes if size < n_rows]
