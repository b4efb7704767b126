"""Before heavy work: which way, how much memory, how long; and while it runs, how far it is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from discernel.backend import n_rows as count_rows
from discernel.bank import choose_bank
from discernel.criteria import RKDA, Auto, FisherRatio, LeaveOneOut, Uniform
from discernel.crossfit import menu_kernels
from discernel.devices import Device
from discernel.exceptions import InvalidInputError, LongFitWarning, levels_to_the_caller
from discernel.kernels import Kernel
from discernel.learners import Request
from discernel.planning import (
    FEW_ROWS,
    FEW_ROWS_THERE,
    PATIENCE,
    Forecast,
    Problem,
    measure_device,
    measure_speed,
    parse_duration,
    plan_fit,
    plan_there,
)
from discernel.progress import in_words, reporting

__all__ = ["forecast_fit", "showing"]

#: Seconds from which on silence would be rude.
_LONG = 120.0
#: How many times weights are learned where λ is given, learned with them, or looked for on a path;
#: and by a search among criteria.
_PROGRAMS = {"given": 1.0, "joint": 2.0, "loo": 3.0}
_SEARCH = 4.0


def forecast_fit(
    X: Any,
    kernels: Sequence[Kernel],
    request: Request,
    *,
    asked: str,
    n_rows: int | None = None,
    rank: int | None = None,
    chooses: bool,
    cache_bytes: float,
    max_time: Any = None,
    approximable: bool = True,
    always: bool = False,
    device: Device | None = None,
    sums_there: bool = True,
) -> Forecast | None:
    """Return which way a fit will take and what that costs; None where few rows are no work.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The training rows.
    kernels : sequence of Kernel
        The candidates, resolved.
    request : Request
        What is to be learned.
    asked : str
        The bank that the user asks for, or ``"auto"``.
    n_rows : int, optional
        The number of rows where X is only a sample of them.
    rank : int, optional
        The rank that the user asks for.
    chooses : bool
        Whether the default chooses its kernels first.
    cache_bytes : float
        The room for kernel matrices.
    max_time : float, str or None
        The user's time.
    approximable : bool
        Whether kernels of low rank serve as well.
    always : bool
        Whether few rows are forecast as well.
    device : Device, optional
        Where the fit is computed; by default here.
    sums_there : bool
        Whether features of a low rank are summed up there too.
    """
    limit = parse_duration(max_time)
    n = count_rows(X) if n_rows is None else n_rows
    few = FEW_ROWS if device is None else FEW_ROWS_THERE
    if n < few and limit is None and not always:
        return None
    if device is not None and not isinstance(X, np.ndarray):
        return None  # which a device does not take; what computes there says so
    given = kernels[0].precomputed
    measured = kernels
    if chooses and isinstance(X, np.ndarray):
        measured = menu_kernels(X, kernels[0].spreads)  # type: ignore[attr-defined]
    programs = 0.0 if chooses and isinstance(request.criterion, Auto) else _programs(request)
    shape = getattr(X, "shape", (n, 1))
    problem = Problem(
        n_rows=n,
        n_columns=int(shape[1]) if len(shape) > 1 else 1,
        n_kernels=len(measured),
        chooses=chooses,
        n_programs=programs,
        approximable=approximable
        and not given
        and _needs_products_only(request, chooses)
        and all(kernel.trusted for kernel in kernels),
        rank=rank,
    )
    if device is not None:
        found = _forecast_there(problem, measured, X, device, asked, limit, sums_there)
        return found if n_rows is None else replace(found, reason="rows in chunks")
    kind = choose_bank(asked, measured, X, cache_bytes)
    speed = measure_speed(kernels if given else measured, X)
    if asked == "auto" and kind != "tiled":
        asked = kind  # small enough to be kept, or known to have a low rank
    found = plan_fit(problem, speed, asked=asked, max_time=limit)
    return found if n_rows is None else replace(found, reason="rows in chunks")


def _forecast_there(
    problem: Problem,
    kernels: Sequence[Kernel],
    X: Any,
    device: Device,
    asked: str,
    limit: float | None,
    sums_there: bool,
) -> Forecast:
    """Return what a fit on a device will take; of a low rank, where an exact one is too long."""
    if asked == "lowrank":
        return _low_rank(problem, kernels, X, device, limit)
    speed = measure_device(kernels, X, device)
    found = plan_there(problem, speed, device, factors=asked != "iterative")
    if found.seconds <= (PATIENCE if limit is None else limit):
        return found
    if problem.approximable and asked == "auto":
        low = _low_rank(problem, kernels, X, device if sums_there else None, limit)
        return replace(low, reason=f"an exact fit on {device.where} would take too long")
    if limit is None:
        return found
    raise InvalidInputError(
        f"max_time must leave time for a fit on {device.where}, here about "
        f"{in_words(found.seconds)}. Got {in_words(limit)}. Allow more, or take some of the "
        f"{problem.n_rows:,} rows, drawn at random."
    )


def _low_rank(
    problem: Problem, kernels: Sequence[Kernel], X: Any, device: Device | None, limit: float | None
) -> Forecast:
    """Return what features of a low rank take, summed up on a device where there is one."""
    if device is not None:
        problem = replace(problem, there=measure_device(kernels, X, device, refined=False))
    return plan_fit(problem, measure_speed(kernels, X), asked="lowrank", max_time=limit)


def _programs(request: Request) -> float:
    if isinstance(request.criterion, LeaveOneOut):
        return _SEARCH
    path = request.regularization if isinstance(request.regularization, str) else "given"
    return _PROGRAMS.get(path, _PROGRAMS["loo"])


def _needs_products_only(request: Request, chooses: bool) -> bool:
    """Whether products, traces and systems are all that is asked of kernels."""
    criterion = request.criterion
    if isinstance(criterion, Auto):
        return chooses
    return isinstance(criterion, (RKDA, FisherRatio, Uniform))


@contextmanager
def showing(forecast: Forecast | None, verbose: Any, *, limited: bool) -> Iterator[None]:
    """Say what was chosen, and show how far the fit within is.

    Parameters
    ----------
    forecast : Forecast or None
        None where there is nothing to say.
    verbose : bool
        Whether to show anything; without it, long fits still warn.
    limited : bool
        Whether the user has said how long it may take; no warning then.
    """
    if not isinstance(verbose, (bool, int, np.bool_)):
        raise InvalidInputError(f"verbose must be True or False. Got {verbose!r}.")
    if forecast is None:
        yield
        return
    if verbose:
        print(forecast)
    elif forecast.seconds > _LONG and not limited:
        warnings.warn(
            f"This fit is expected to take {in_words(forecast.seconds)}: {forecast}. "
            "verbose=True shows how far it is, and max_time limits it.",
            LongFitWarning,
            stacklevel=levels_to_the_caller(),
        )
    with reporting(forecast.seconds, verbose=bool(verbose)):
        yield
