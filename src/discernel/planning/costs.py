"""What each way of fitting costs, in passes over the kernels, factorisations and products.

Counts, not times: `Speed` turns them into seconds. They are rough on purpose; forecasts are meant
to be right within a factor of two, and `benchmarks/forecasts.py` says whether they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from discernel.bank import Kind
from discernel.bank.tiled import CACHE_BYTES
from discernel.crossfit import rows_to_choose_on
from discernel.planning.speed import Speed

__all__ = ["Cost", "Work", "work_of"]

#: Operations of the choice on 1,000 rows, the power of rows that they grow with, and columns that
#: make it twice as dear; and of looking for λ, on 1,500 rows at most.
_CHOICE, _CHOICE_POWER, _CHOICE_COLUMNS, _LAMBDA = 6.2e11, 1.8, 200.0, 7e10
#: Passes over all tiles that one iterative solve takes with its leave-one-out, for the λ of the
#: default and for that of a criterion; and what a criterion does on a part of the rows first.
_PASSES, _PROGRAM_PASSES, _PART = 50.0, 15.0, 6e11
#: The rank of what steers it.
_STEERING = 1000
#: What further rounds of the metric take where features are summed up: operations, on a sample.
_REFINING = 3e12
#: Operations in units of rank³ and of n_samples · rank²: for features that are kept, of one sum of
#: kernels with the search for landmarks, or of all kernels; and for sums of them.
_KEPT_SUM, _KEPT_ALL, _SUMMED = (250.0, 8.0), (100.0, 6.0), (100.0, 1.0)


@dataclass(frozen=True)
class Work:
    """How much a fit has to do.

    Attributes
    ----------
    passes : float
        Over half of all entries of all kernels: n_samples²/2 each.
    entries : float
        Entries of all kernels computed beside them.
    factored : float
        Operations of factorisations.
    multiplied : float
        Operations of products.
    numbers : float
        Numbers of double precision that are held at a time.
    """

    passes: float = 0.0
    entries: float = 0.0
    factored: float = 0.0
    multiplied: float = 0.0
    numbers: float = 0.0


@dataclass(frozen=True)
class Cost:
    """A forecast.

    Attributes
    ----------
    seconds : float
        The time.
    n_bytes : float
        The memory beside the training rows.
    """

    seconds: float
    n_bytes: float


def work_of(
    kind: Kind,
    n_rows: int,
    *,
    n_kernels: int,
    n_columns: int,
    chooses: bool,
    n_programs: float = 1.0,
    rank: int,
) -> Work:
    """Return what a fit has to do.

    Parameters
    ----------
    kind : {"dense", "tiled", "iterative", "lowrank"}
        The way.
    n_rows, n_kernels, n_columns : int
        The sizes.
    chooses : bool
        Whether the default chooses its kernels first.
    n_programs : float
        How many times weights are learned, as for a path of λ; 0: they are known.
    rank : int
        The total rank where that is low.
    """
    n, r = float(n_rows), float(min(rank, n_rows))
    if kind == "lowrank":
        own = _low_rank(n, r, n_programs)
    elif kind == "iterative":
        own = _iterative(n, n_programs)
    else:
        stored = n_kernels if kind == "dense" else 0
        # Learning takes two or three factorisations and some passes. The discriminant takes one of
        # each, and about another one for the diagonal of the inverse.
        own = Work(
            passes=2.0 if stored else 2.0 + 8.0 * n_programs,
            factored=n**3 / 3.0 * (2.0 + 3.0 * n_programs),
            numbers=(2.0 + stored) * n * n,
        )
    if not chooses:
        return own
    choice = _choice(n, n_columns)
    return replace(
        own,
        multiplied=own.multiplied + choice.multiplied,
        numbers=own.numbers + choice.numbers,
    )


def _low_rank(n: float, r: float, n_programs: float) -> Work:
    if 8.0 * n * r <= CACHE_BYTES:
        cube, square = _KEPT_ALL if n_programs else _KEPT_SUM
        return Work(
            entries=n * r * (1.0 if n_programs else 3.0),
            multiplied=(cube * r**3 + square * n * r * r) * max(1.0, n_programs),
            numbers=3.0 * n * r + 4.0 * r * r,
        )
    cube, square = _SUMMED
    refining = 0.0 if n_programs else _REFINING
    return Work(
        entries=n * r,
        multiplied=refining + cube * r**3 + square * n * r * r,
        numbers=8.0 * r * r + CACHE_BYTES / 4.0,
    )


def _iterative(n: float, n_programs: float) -> Work:
    steering = min(float(_STEERING), n)
    return Work(
        passes=_PASSES if n_programs == 0 else 5.0 + _PROGRAM_PASSES * n_programs,
        entries=n * steering,
        multiplied=2.0 * n * steering**2 + _PART * n_programs,
        numbers=2.0 * n * steering,
    )


def _choice(n: float, n_columns: int) -> Work:
    """Return what choosing metric, kernels and λ on some of the rows takes."""
    s = min(n, rows_to_choose_on(int(n)))
    size = (s / 1000.0) ** _CHOICE_POWER * (1.0 + n_columns / _CHOICE_COLUMNS)
    return Work(multiplied=_CHOICE * size + _LAMBDA, numbers=12.0 * s * s * 5)


def cost_of(work: Work, speed: Speed, n_rows: int) -> Cost:
    """Return the forecast of some work on this machine."""
    entries = work.passes * n_rows**2 / 2.0 + work.entries
    seconds = (
        entries * speed.entry / speed.threads_in_effect
        + work.factored / speed.factorisation(n_rows)
        + work.multiplied / speed.product
    )
    return Cost(seconds, 8.0 * work.numbers)
