"""What came out of a case, whether it holds, and whether it was better before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bench.cases import Case, Direction

__all__ = ["Change", "Measured", "judge", "summarize"]

Kind = Literal["same", "better", "worse", "not compared"]


@dataclass(frozen=True)
class Measured:
    """What came out of a case.

    Attributes
    ----------
    case, what : str
        Its name, and what was divided by what.
    rows : int
        How many training rows there were.
    ratios : tuple of float
        One a repeat.
    over, under : float
        Medians of what was divided, mostly in seconds; 0 where nothing was measured.
    median, lower, upper : float
        Median and quartiles of the ratios; 0 where nothing was measured.
    limit : float or None
        What the median must keep to, at this number of rows.
    direction : {"at most", "at least"}
        On which side of it.
    holds : bool or None
        Whether it does; None without a limit or without a ratio.
    problem : str
        Why nothing was measured; empty where it was.
    failed : bool
        Whether that was an error, and not just a package that is not there.
    """

    case: str
    what: str
    rows: int
    ratios: tuple[float, ...]
    over: float
    under: float
    median: float
    lower: float
    upper: float
    limit: float | None
    direction: Direction
    holds: bool | None
    problem: str = ""
    failed: bool = False


@dataclass(frozen=True)
class Change:
    """How a result stands to one recorded before.

    Attributes
    ----------
    case : str
        Its name.
    kind : {"same", "better", "worse", "not compared"}
        What it is. Within the noise it is the same.
    before : float
        The recorded median; 0 where nothing is compared.
    why : str
        Why nothing is compared; empty where it is.
    """

    case: str
    kind: Kind
    before: float = 0.0
    why: str = ""


def summarize(
    case: Case,
    n_rows: int,
    measured: Sequence[tuple[float, float, float]] = (),
    *,
    problem: str = "",
    failed: bool = False,
) -> Measured:
    """Return the statistics of some repeats.

    Parameters
    ----------
    case : Case
        What was measured.
    n_rows : int
        With how many rows. There is a limit only for those that the case names.
    measured : sequence of (over, under, ratio)
        One a repeat.
    problem, failed : str, bool
        As in `Measured`.
    """
    over, under, ratios = zip(*measured, strict=True) if measured else ((0.0,), (0.0,), ())
    lower, median, upper = np.quantile(ratios or (0.0,), (0.25, 0.5, 0.75)).tolist()
    limit = case.limit if n_rows == case.rows else None
    holds = None
    if limit is not None and ratios:
        holds = median <= limit if case.direction == "at most" else median >= limit
    return Measured(
        case=case.name,
        what=case.what,
        rows=n_rows,
        ratios=tuple(ratios),
        over=float(np.median(over)),
        under=float(np.median(under)),
        median=median,
        lower=lower,
        upper=upper,
        limit=limit,
        direction=case.direction,
        holds=holds,
        problem=problem,
        failed=failed,
    )


def judge(result: Measured, before: Mapping[str, Measured], worse_by: float) -> Change:
    """Compare a result with the recorded one.

    A median is worse, or better, if it differs by more than the factor and the quartiles of both
    do not overlap: of noise, at least one of the two is seldom true.

    Parameters
    ----------
    result : Measured
        What came out now.
    before : mapping of str to Measured
        What was recorded, by the names of the cases.
    worse_by : float
        The factor.
    """
    past = before.get(result.case)
    if past is None or not past.median > 0.0:
        return Change(result.case, "not compared", why="not in the record")
    if result.problem:
        return Change(result.case, "not compared", why=result.problem)
    if past.rows != result.rows:
        why = f"the record is of {past.rows:,} rows"
        return Change(result.case, "not compared", why=why)
    apart = result.lower > past.upper or result.upper < past.lower
    factor = result.median / past.median
    kind: Kind = "same"
    if apart and not 1.0 / worse_by <= factor <= worse_by:
        kind = "worse" if (factor > 1.0) == (result.direction == "at most") else "better"
    return Change(result.case, kind, past.median)
