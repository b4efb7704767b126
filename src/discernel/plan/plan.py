"""All decisions on the bank and the stages of a fit."""

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

#: Rows of the sample for learning kernels, column scales and weights if features are summed.
LEARNED_ON = 3_000
#: Number of rows, on the host and on a device, below which a forecast (0.1 s) and a choice of bank
#: are not worth their time.
FEW_ROWS, _FEW_ROWS_ON_DEVICE = 2000, 30_000
#: Number of kernels from which their ranks are estimated.
_MANY = 64
#: With more rows, one weighted sum of kernels is faster to make from tiles than from stored
#: matrices.
_FEW_STORED = 400
#: Reasons for banks chosen by bank="auto".
_REASONS = {"dense": "all matrices fit into the cache", "factored": "kernels of low rank"}
#: Share of the memory limit that a fit may use.
_SHARE = 0.8
#: Smallest rank of a fit.
_LEAST_RANK = 200
#: Number of rows up to which a factorization is faster than conjugate gradients.
_FACTORED = 4000
#: Rows of the first stage, with equal weights: less than a second on any machine.
FIRST_STAGE_ROWS = 500
#: Rows of intermediate stages.
_SIZES = (1000, 2000, 4000, 8000, 16_000)
#: Ranks of intermediate stages of low rank, and the least number of rows in multiples of the rank:
#: with fewer rows, an exact stage is as fast.
_RANKS, _ROWS_A_RANK = (500, 700, 1000, 1400, 2000), 8
#: An intermediate stage takes at most this share of the time of the full fit.
_WORTHWHILE = 0.8


@dataclass(frozen=True)
class FitPlan:
    """The stages of a fit, planned or run, with reasons.

    Attributes
    ----------
    stages : tuple of Stage
        The possible stages or, after the fit, the stages that were run, in order. The model is
        that of the last stage that finished.
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
        """Whether the model is the same as without a time limit."""
        return bool(self.stages[-1].finished) and self.stages[-1].is_whole

    @property
    def seconds(self) -> float:
        """The time of all stages in seconds."""
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
    """Return the plan of a fit, or raise an error.

    Parameters
    ----------
    problem : Problem
        The fit.
    max_time : float, optional
        Time limit in seconds. Without a limit, the plan has one stage.
    most_rows : int, optional
        Maximum number of rows of an intermediate stage; by default all rows.
    verbose : bool, default=False
        Whether to forecast also fits of few rows.
    """
    n, device = problem.n_rows, problem.device
    if device is not None:
        _check_device(problem, device)
    if max_time is not None:
        patient = replace(problem, patience=max(problem.patience, max_time))
        stages = plan_stages(patient, most_rows)
    else:
        is_worthwhile = verbose or n >= (FEW_ROWS if device is None else _FEW_ROWS_ON_DEVICE)
        # The bank of a device refuses other rows.
        is_taken = device is None or device.takes(problem.X)
        stages = [plan_stage(replace(problem, forecasts=is_worthwhile and is_taken))]
    return FitPlan(tuple(_with_parts(problem, stage) for stage in stages), max_time)


def _check_device(problem: Problem, device: Device) -> None:
    """Raise an error for a bank that does not compute on the device."""
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
    """Return the stage with decisions on summed features and on the bank of folds and samples."""
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


def bank_of_folds(stage: Stage, n: int, *, one_sum: bool) -> str:
    """Return the exact bank from which kernels are learned again without each fold.

    Parameters
    ----------
    stage : Stage
        The stage of the fit.
    n : int
        The number of rows.
    one_sum : bool
        Whether one weighted sum of the kernels is all that is wanted.
    """
    return "tiled" if one_sum and stage.exact == "dense" and n > _FEW_STORED else stage.exact


def _exact_kind(kernels: Sequence[Kernel], X: Any, cache_bytes: float, n: int) -> Kind:
    """Return the exact bank for kernels on n rows.

    All matrices are stored if they fit. Otherwise, 64 or more kernels are factored if a sample of
    them has low rank, and other kernels are computed in tiles.
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
    """Return the bank for a value of ``bank``, an exact one for ``"auto"``, or raise an error.

    `plan_stage` decides whether another bank is better for many rows.

    Parameters
    ----------
    asked : {"auto", "dense", "tiled", "factored", "lowrank", "iterative", "distributed"}
        The value given by the user.
    kernels : sequence of Kernel
        The candidates.
    X : array-like of shape (n_samples, n_features)
        The training rows.
    cache_bytes : float, default=256 MiB
        Memory for kernel matrices.
    n_samples : int, optional
        Number of rows, if X has more or fewer.
    """
    n, p = n_rows(X) if n_samples is None else n_samples, len(kernels)
    if asked not in ("auto", *KINDS):
        raise unknown_choice("bank", asked, ["auto", *KINDS])
    given = any(kernel.precomputed for kernel in kernels)
    if given and asked not in ("auto", "dense"):
        raise InvalidInputError(
            f"bank='{asked}' computes kernels from rows, but these kernels are precomputed. Use "
            "bank='auto', or give rows and kernels."
        )
    unknown = [kernel.name for kernel in kernels if not kernel.trusted]
    if unknown and asked in ("factored", "lowrank"):
        raise InvalidInputError(
            f"bank='{asked}' needs kernels that are known to be positive semidefinite, which "
            f"{unknown} are not. Use bank='auto'."
        )
    kind = cast(Kind, asked) if asked != "auto" else _exact_kind(kernels, X, cache_bytes, n)
    # For tiles chosen by "auto", the forecast checks the memory.
    if kind == "dense" or asked in ("tiled", "factored"):
        n_stored, limit = p if kind == "dense" and not given else 0, memory_limit()
        needed = exact_bytes(n, n_stored)
        if limit is not None and needed > limit:
            raise _too_large(n, needed, n_stored, ", or bank='iterative', which needs none of them")
    return kind


def plan_stage(problem: Problem) -> Stage:
    """Return the stage of the full fit, or raise an error if no bank fits into memory.

    Exact methods are preferred: of those that fit into memory, the fastest. If it takes longer than
    ``problem.patience``, the largest low rank that fits into memory is used.
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
    """Return a stage of low rank: the usual rank, or the largest that fits into memory."""
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
        f"about {needed / 1e9:,.1f} GB. This process may use {(memory_limit() or 0) / 1e9:,.1f} "
        f"GB. Use a random subset of the rows{advice}{other}."
    )


# ---- stages ------------------------------------------------------------------------------------


def plan_stages(problem: Problem, most_rows: int | None = None) -> list[Stage]:
    """Return all possible stages, sorted by time.

    The first stage has equal weights on 500 rows; the last is the full fit. Between them are equal
    weights on more rows, if that is faster than learning anything, and learned weights and column
    scales on some rows, or with low rank on all rows. If weights are learned on all rows, every
    kernel has its own rank, and fewer rows are better than a low rank, unless the full fit has low
    rank too.

    Parameters
    ----------
    problem : Problem
        The full fit.
    most_rows : int, optional
        Maximum number of rows of an intermediate stage; by default all rows.
    """
    whole, n = plan_stage(problem), problem.n_rows
    learned = replace(problem, in_chunks=False)  # a sample is in memory
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
    """Return the forecast of the seconds of a stage after its weights are learned."""
    known = replace(problem, n_rows=stage.n_rows, chooses=False, n_programs=0.0, rank=stage.rank)
    return forecast(known, stage.kind).seconds


def parse_duration(given: Any) -> float | None:
    """Convert a number or a text such as ``"10m"`` to seconds, or raise an error.

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
