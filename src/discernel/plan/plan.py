"""Which bank a fit is computed with, and in which stages: the only place that decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, cast

import numpy as np

from discernel.arrays import Device, memory_limit, n_rows
from discernel.bank import KINDS, Kind
from discernel.bank.choice import read_quantity
from discernel.bank.ranks import have_low_rank
from discernel.bank.tiled import CACHE_BYTES
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.kernels import Kernel
from discernel.plan.costs import Problem, Stage, exact_bytes, forecast
from discernel.progress import in_words

#: Rows of the sample that kernels, metric and weights are learned on where features are summed up.
LEARNED_ON = 3_000
#: Below this many rows nothing is worth a forecast, which takes a tenth of a second, or a choice:
#: here, and on a device.
FEW_ROWS, _FEW_ROWS_ON_DEVICE = 2000, 30_000
#: From this many kernels on it is worth trying whether their ranks are low.
_MANY = 64
#: The reasons for a bank that was not asked for by name.
_REASONS = {"dense": "all matrices fit into the cache", "factored": "kernels of low rank"}
#: The share of the memory that a fit may take.
_SHARE = 0.8
#: The least rank that is worth a fit.
_LEAST_RANK = 200
#: Up to so many rows, a factorisation is faster than iterations.
_FACTORED = 4000
#: Rows of the first stage, with equal weights: on any machine a part of a second.
FIRST_STAGE_ROWS = 500
#: Rows of stages of some rows.
_SIZES = (1000, 2000, 4000, 8000, 16_000)
#: Low ranks of stages between the first and the whole, and how many times as many rows make one
#: worth it: with fewer, all rows take no longer, and some of them less.
_RANKS, _ROWS_A_RANK = (500, 700, 1000, 1400, 2000), 8
#: A stage is run if it takes no more than this share of the whole.
_WORTHWHILE = 0.8


@dataclass(frozen=True)
class FitPlan:
    """The stages of a fit, planned or run, and why.

    Attributes
    ----------
    stages : tuple of Stage
        What could be run or, once it is done, was run, in order; the model is that of the last
        stage that finished.
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
        return bool(self.stages[-1].finished) and self.stages[-1].is_whole

    @property
    def seconds(self) -> float:
        """The seconds that all stages took."""
        return sum(stage.seconds for stage in self.stages)

    def __str__(self) -> str:
        limit = "" if self.max_time is None else f" of {in_words(self.max_time)}"
        lines = [f"{number}. {stage}" for number, stage in enumerate(self.stages, start=1)]
        return "\n".join([f"{in_words(self.seconds)}{limit}", *lines])


def plan_fit(
    problem: Problem,
    max_time: float | None = None,
    most_rows: int | None = None,
    *,
    verbose: bool = False,
) -> FitPlan:
    """Return all that is decided of a fit before it begins, or raise a clear error.

    Parameters
    ----------
    problem : Problem
        What is to be fitted.
    max_time : float, optional
        The time limit in seconds; without, the plan has one stage.
    most_rows : int, optional
        The rows that a stage of some rows may have; by default all.
    verbose : bool, default=False
        Whether the user wants a forecast of few rows too.
    """
    n, device = problem.n_rows, problem.device
    if device is not None:
        _check_device(problem, device)
    if max_time is not None:
        patient = replace(problem, patience=max(problem.patience, max_time))
        stages = plan_stages(patient, most_rows)
    else:
        is_worthwhile = verbose or n >= (FEW_ROWS if device is None else _FEW_ROWS_ON_DEVICE)
        # What a device does not take is refused by its bank.
        is_taken = device is None or isinstance(problem.X, np.ndarray)
        stages = [plan_stage(replace(problem, forecasts=is_worthwhile and is_taken))]
    return FitPlan(tuple(_with_parts(problem, stage) for stage in stages), max_time)


def _check_device(problem: Problem, device: Device) -> None:
    """Raise a clear error for a bank that does not compute on the device."""
    known = ("auto", "iterative", "lowrank") if problem.sums else ("auto", "iterative")
    known = ("auto", "dense") if problem.kernels[0].precomputed else known
    if problem.asked not in known:
        where = device.where
        raise InvalidInputError(
            f"On {where}, bank must be one of {', '.join(map(repr, known))}. Got "
            f"{problem.asked!r}; others compute on the processor. Leave `bank` out to compute "
            f"on {where}, or give NumPy arrays and leave `device` out to compute on the "
            "processor."
        )


def _with_parts(problem: Problem, stage: Stage) -> Stage:
    """Return a stage that says how its parts are computed: features of all rows, and folds."""
    n, exact = stage.n_rows, "device"
    keeps = problem.device is None and 8.0 * n * (stage.rank or 0) <= problem.memory
    sums = problem.in_chunks or (problem.sums and not problem.balanced and not keeps)
    sums = sums and stage.kind == "lowrank"
    if problem.device is None and problem.asked == "auto" and stage.kind in _REASONS:
        exact = stage.kind
    elif problem.device is None:
        rows = min(n, LEARNED_ON) if sums else n
        exact = _exact_kind(problem.kernels, problem.X, problem.cache_bytes, rows)
    return replace(stage, sums=sums, exact=exact)


def _exact_kind(kernels: Sequence[Kernel], X: Any, cache_bytes: float, n: int) -> Kind:
    """Return the exact bank for kernels on so many rows.

    A stack of matrices where there is room for it. Else 64 kernels or more are factored if a
    sample of them has a low rank, or they are computed in tiles.
    """
    if any(kernel.precomputed for kernel in kernels) or 8 * len(kernels) * n**2 <= cache_bytes:
        return "dense"
    return "factored" if len(kernels) >= _MANY and have_low_rank(kernels, X) else "tiled"


def choose_bank(
    asked: str,
    kernels: Sequence[Kernel],
    X: Any,
    cache_bytes: float = CACHE_BYTES,
    n_samples: int | None = None,
) -> Kind:
    """Return which bank is meant, ``"auto"`` the exact one, or raise a clear error.

    Whether other banks are better for many rows is for `plan_stage` to say.

    Parameters
    ----------
    asked : {"auto", "dense", "tiled", "factored", "lowrank", "iterative", "distributed"}
        As the user says.
    kernels : sequence of Kernel
        The candidates.
    X : array-like of shape (n_samples, n_features)
        The training rows.
    cache_bytes : float, default=256 MiB
        The room for kernel matrices.
    n_samples : int, optional
        The number of rows, where X has more or fewer.
    """
    n, p = n_rows(X) if n_samples is None else n_samples, len(kernels)
    if asked not in ("auto", *KINDS):
        raise unknown_choice("bank", asked, ["auto", *KINDS])
    given = any(kernel.precomputed for kernel in kernels)
    if given and asked not in ("auto", "dense"):
        raise InvalidInputError(
            f"bank='{asked}' computes kernels of rows, but these are given as matrices. Use "
            "bank='auto', or give rows and kernels."
        )
    unknown = [kernel.name for kernel in kernels if not kernel.trusted]
    if unknown and asked in ("factored", "lowrank"):
        raise InvalidInputError(
            f"bank='{asked}' needs kernels that are known to be positive semidefinite, which "
            f"{unknown} are not. Use bank='auto'."
        )
    kind = cast(Kind, asked) if asked != "auto" else _exact_kind(kernels, X, cache_bytes, n)
    # Whether tiles that nobody asked for fit into memory is for a forecast to say.
    if kind == "dense" or asked in ("tiled", "factored"):
        n_stored, limit = p if kind == "dense" and not given else 0, memory_limit()
        needed = exact_bytes(n, n_stored)
        if limit is not None and needed > limit:
            raise _too_large(n, needed, n_stored, ", or bank='iterative', which needs none of them")
    return kind


def plan_stage(problem: Problem) -> Stage:
    """Return the way to take, or raise a clear error where memory has room for none.

    Exact methods are preferred: of those that fit into memory, the fastest. Where that takes
    longer than the user's patience, a low rank is taken, the largest that there is memory for.
    """
    asked, n, device = problem.asked, problem.n_rows, problem.device
    if problem.in_chunks:
        return _plan_low_rank(problem, "rows in chunks")
    if device is not None and asked != "lowrank":
        exact = forecast(problem, "device")
        is_slow = exact.seconds > problem.patience
        if not is_slow or not problem.approximable or asked != "auto":
            return exact
        return _plan_low_rank(problem, f"an exact fit on {device.where} would take too long")
    if device is None:
        kind = choose_bank(asked, problem.kernels, problem.X, problem.cache_bytes, n)
        if asked == "auto" and kind in _REASONS:
            return forecast(problem, kind, _REASONS[kind])
    if asked == "lowrank":
        return _plan_low_rank(problem)
    if asked != "auto":
        return forecast(problem, asked)
    both = problem.approximable and n > _FACTORED
    tried = [forecast(problem, kind, "exact") for kind in ("tiled", "iterative")[: 1 + both]]
    fitting = [stage for stage in tried if stage.n_bytes <= _room()]
    if fitting:
        best = min(fitting, key=attrgetter("seconds"))
        if best.seconds <= problem.patience or n <= FEW_ROWS or not problem.approximable:
            return best if len(fitting) == 1 else replace(best, reason="exact, the faster of two")
    if not problem.approximable:
        raise _too_large(n, tried[0].n_bytes)
    return _plan_low_rank(problem, "an exact fit would take too long or too much memory")


def _plan_low_rank(problem: Problem, reason: str = "asked for") -> Stage:
    """Return the largest rank that there is room for, but for no more than is usual."""
    rank = problem.low_rank
    while True:
        found = forecast(replace(problem, rank=rank), "lowrank", reason)
        if problem.rank is not None or rank <= _LEAST_RANK or found.n_bytes <= _room():
            return found
        rank = max(_LEAST_RANK, int(rank / np.sqrt(2)))


def _room() -> float:
    return _SHARE * (memory_limit() or np.inf)


def _too_large(n: int, needed: float, n_stored: int = 0, advice: str = "") -> InvalidInputError:
    stack, other = (f" and {n_stored} kernels", ", or bank='auto'") if n_stored else ("", "")
    return InvalidInputError(
        f"Two matrices{stack} of {n:,} × {n:,} numbers must fit into memory, "
        f"about {needed / 1e9:,.1f} GB. This process may take {(memory_limit() or 0) / 1e9:,.1f} "
        f"GB. Take some of the rows, drawn at random{advice}{other}."
    )


# ---- stages ------------------------------------------------------------------------------------


def plan_stages(problem: Problem, most_rows: int | None = None) -> list[Stage]:
    """Return all stages that could be run, by their time: the first is certain to be in time.

    Between equal weights on 500 rows and the whole are equal weights on more rows, as long as
    that is faster than to learn anything, and learned weights and metric on some rows, or with a
    low rank on all. Where weights are learned on all rows, every kernel has a rank of its own, and
    fewer rows are better than a low rank, unless the whole is of a low rank too.

    Parameters
    ----------
    problem : Problem
        The whole.
    most_rows : int, optional
        The rows that a stage of some rows may have; by default all.
    """
    whole, n = plan_stage(problem), problem.n_rows
    learned = replace(problem, in_chunks=False)  # a part of them is in memory
    equal = replace(learned, learns=False)
    first = plan_stage(replace(equal, n_rows=min(n, FIRST_STAGE_ROWS)))
    most = n if most_rows is None else min(n, most_rows + 1)
    pairs = [
        [plan_stage(replace(each, n_rows=size)) for each in (learned, equal)]
        for size in _SIZES
        if size < most
    ]
    ranks = [rank for rank in _RANKS if rank <= n / _ROWS_A_RANK and rank < (whole.rank or n)]
    is_low = whole.kind == "lowrank"
    serves = problem.in_chunks or (problem.approximable and problem.asked in ("auto", "lowrank"))
    serves = serves and (is_low or (problem.n_programs == 0 and bool(ranks or problem.rank)))
    if not serves:
        pairs.append([whole, plan_stage(equal)])
    elif problem.rank is not None:
        pairs.append([whole, _plan_low_rank(equal)])
    else:
        pairs += [
            [_plan_low_rank(replace(each, rank=rank)) for each in (learned, equal)]
            for rank in ranks
        ]
    cheapest = min((pair[0].seconds for pair in pairs), default=whole.seconds)
    between = [pair[0] for pair in pairs]
    between += [pair[1] for pair in pairs if pair[1].seconds < cheapest]
    between = [
        replace(each, reason="the time limit")
        for each in between
        if first.seconds < each.seconds <= _WORTHWHILE * whole.seconds
    ]
    first = replace(first, reason="certain to be in time")
    return [first, *sorted(between, key=attrgetter("seconds")), whole]


def forecast_rest(problem: Problem, stage: Stage) -> float:
    """Return the seconds that a stage of a problem takes after its weights are learned."""
    known = replace(problem, n_rows=stage.n_rows, chooses=False, n_programs=0.0, rank=stage.rank)
    return forecast(known, stage.kind).seconds


def parse_duration(given: Any) -> float | None:
    """Return seconds from a number or words such as ``"10m"``, or raise a clear error.

    Parameters
    ----------
    given : float, str or None
        Seconds, or a number with ``s``, ``m``, ``min`` or ``h``; None for no limit.
    """
    if given is None:
        return None
    seconds = read_quantity(given, {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0})
    if seconds is None:
        raise InvalidInputError(
            "max_time must be a positive number of seconds, or a number with a unit such as '90s', "
            f"'10m' or '1.5h'. Got {given!r}."
        )
    return seconds
