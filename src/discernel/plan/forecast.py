"""Which way of computing a fit takes, chosen from rows, kernels, memory and the user's time."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from discernel.arrays import memory_limit
from discernel.bank import Kind
from discernel.exceptions import InvalidInputError
from discernel.kernels.features import n_landmarks
from discernel.plan.costs import Cost, cost_of, held_out_factor, work_of
from discernel.plan.speed import Speed
from discernel.progress import in_words

__all__ = [
    "FEW_ROWS",
    "PATIENCE",
    "Forecast",
    "Problem",
    "parse_duration",
    "plan_fit",
    "similar_bank",
]

#: The share of the memory that a fit may take.
_SHARE = 0.8
#: Without a limit by the user, an exact fit is taken up to this forecast, in seconds.
PATIENCE = 600.0
#: Rows of the sample that is looked at here, where all rows are summed up on a device.
_SAMPLE = 10_000
#: The least rank that is worth a fit.
_LEAST_RANK = 200
#: Below this many rows nothing is worth a forecast, which takes a tenth of a second, or a choice.
FEW_ROWS = 2000
#: Up to so many, a factorisation is faster than iterations.
_FACTORED = 4000


@dataclass(frozen=True)
class Problem:
    """The sizes of what is to be fitted.

    Attributes
    ----------
    n_rows, n_columns, n_kernels : int
        The sizes.
    chooses : bool
        Whether the default chooses its kernels first.
    n_programs : float
        How many times weights are learned on all rows; 0: they are known before.
    approximable : bool
        Whether kernels can be approximated: they are of rows, and known to be kernels.
    rank : int or None
        The rank that the user asks for, where it is low; the usual one by default.
    there : Speed or None
        The rates of a device on which features of a low rank are made and summed up; None: here.
    learns : bool
        Whether weights and metric are learned; False: they are equal.
    holds_out : bool
        Whether they are learned again without each fold, to say what to expect.
    """

    n_rows: int
    n_columns: int
    n_kernels: int
    chooses: bool
    n_programs: float
    approximable: bool = True
    rank: int | None = None
    there: Speed | None = None
    learns: bool = True
    holds_out: bool = False

    def cost(self, kind: Kind, speed: Speed, rank: int | None = None) -> Cost:
        """Return the forecast of one way."""
        rank, n = rank or self.rank or n_landmarks(self.n_rows), self.n_rows
        summed = self.there if kind == "lowrank" else None
        here = n if summed is None else min(n, _SAMPLE)
        work = work_of(
            kind,
            here,
            n_kernels=self.n_kernels,
            n_columns=self.n_columns,
            chooses=self.chooses,
            n_programs=self.n_programs,
            rank=rank,
            learns=self.learns,
        )
        cost = cost_of(work, speed, here)
        if self.holds_out and self.learns:
            factor = held_out_factor(here, chooses=self.chooses)
            cost = replace(cost, seconds=factor * cost.seconds)
        if summed is None:
            return cost
        entries, products = n * rank * summed.entry, 2.0 * n * rank**2 / summed.product
        return replace(cost, seconds=cost.seconds + entries + products)


@dataclass(frozen=True)
class Forecast:
    """What a fit will do, and what that will take.

    Attributes
    ----------
    kind : str
        The bank: ``"dense"``, ``"tiled"``, ``"factored"``, ``"iterative"``, ``"lowrank"`` or
        ``"device"``.
    seconds : float
        The forecast of the time; right within a factor of two, mostly.
    n_bytes : float
        The forecast of the memory beside the training rows.
    n_rows : int
        The training rows.
    reason : str
        Why, in a few words.
    rank : int or None
        The total rank where that is low.
    learns : bool
        Whether weights are learned; False: they are equal.
    """

    kind: Kind | Literal["device"]
    seconds: float
    n_bytes: float
    n_rows: int
    reason: str
    rank: int | None = None
    learns: bool = True

    @property
    def what(self) -> str:
        """The rows, the bank and its rank, in words."""
        rank = "" if self.rank is None else f", rank {self.rank:,}"
        equal = "" if self.learns else ", equal weights"
        return f"{self.n_rows:,} rows: bank={self.kind!r}{rank}{equal}"

    def __str__(self) -> str:
        return (
            f"{self.what} ({self.reason}), about {in_words(self.seconds)} and "
            f"{self.n_bytes / 1e9:.2g} GB"
        )


def plan_fit(
    problem: Problem,
    speed: Speed,
    *,
    asked: str = "auto",
    reason: str = "asked for",
    patience: float = PATIENCE,
) -> Forecast:
    """Return the way to take, or raise a clear error where memory has room for none.

    Exact methods are preferred: of those that fit into memory, the fastest. Where that takes
    longer than the user's patience, a low rank is taken, the largest that there is memory for.

    Parameters
    ----------
    problem : Problem
        The sizes.
    speed : Speed
        The rates of this machine.
    asked : str
        ``"auto"``, or the way that is to be taken.
    reason : str
        Why it is.
    patience : float
        The seconds that an exact fit may take.
    """
    room = _SHARE * (memory_limit() or np.inf)
    iterates = problem.approximable and problem.n_rows > _FACTORED
    exact: tuple[Kind, ...] = ("tiled", "iterative") if iterates else ("tiled",)
    if asked == "lowrank":
        return _low_rank(problem, speed, room, reason)
    if asked != "auto":
        kind: Any = asked
        cost = problem.cost(similar_bank(kind), speed)
        return Forecast(
            kind, cost.seconds, cost.n_bytes, problem.n_rows, reason, learns=problem.learns
        )
    costs = {kind: problem.cost(kind, speed) for kind in exact}
    fitting = {kind: cost for kind, cost in costs.items() if cost.n_bytes <= room}
    if fitting:
        best = min(fitting, key=lambda kind: fitting[kind].seconds)
        cost = fitting[best]
        if cost.seconds <= patience or problem.n_rows <= FEW_ROWS or not problem.approximable:
            reason = "exact" if len(fitting) == 1 else "exact, the faster of two"
            return Forecast(
                best, cost.seconds, cost.n_bytes, problem.n_rows, reason, learns=problem.learns
            )
    if not problem.approximable:
        raise _too_large(problem, costs["tiled"].n_bytes)
    reason = "an exact fit would take too long or too much memory"
    return _low_rank(problem, speed, room, reason)


def similar_bank(kind: Any) -> Kind:
    """Return the bank of about the same cost that forecasts know."""
    alike: dict[Any, Kind] = {"factored": "tiled", "distributed": "iterative"}
    found: Kind = alike.get(kind, kind)
    return found


def _low_rank(problem: Problem, speed: Speed, room: float, reason: str) -> Forecast:
    """Return the largest rank that there is room for, but for no more than is usual."""
    rank = problem.rank or n_landmarks(problem.n_rows)
    cost = problem.cost("lowrank", speed, rank)
    least = _LEAST_RANK if problem.rank is None else rank
    while rank > least and cost.n_bytes > room:
        rank = max(least, int(rank / np.sqrt(2)))
        cost = problem.cost("lowrank", speed, rank)
    n_rows, learns = problem.n_rows, problem.learns
    return Forecast("lowrank", cost.seconds, cost.n_bytes, n_rows, reason, rank, learns)


def _too_large(problem: Problem, n_bytes: float) -> InvalidInputError:
    return InvalidInputError(
        f"Two matrices of {problem.n_rows:,} × {problem.n_rows:,} numbers must fit into memory, "
        f"about {n_bytes / 1e9:,.1f} GB. This process may take {(memory_limit() or 0) / 1e9:,.1f} "
        "GB. Take some of the rows, drawn at random."
    )


_UNITS: dict[str, float] = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}


def parse_duration(given: Any) -> float | None:
    """Return seconds from a number or words such as ``"10m"``, or raise a clear error.

    Parameters
    ----------
    given : float, str or None
        Seconds, or a number with ``s``, ``m``, ``min`` or ``h``; None for no limit.
    """
    if given is None:
        return None
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", str(given).lower())
    seconds = None
    if found and found[2] in _UNITS and found[1].count(".") <= 1 and found[1] != ".":
        seconds = float(found[1]) * _UNITS[found[2]]
    if seconds is None or seconds <= 0:
        raise InvalidInputError(
            "max_time must be a positive number of seconds, or a number with a unit such as '90s', "
            f"'10m' or '1.5h'. Got {given!r}."
        )
    return seconds
