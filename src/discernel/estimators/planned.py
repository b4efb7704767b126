"""Before heavy work: which way, how much memory, how long; and while it runs, how far it is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from discernel.arrays import Device
from discernel.arrays import n_rows as count_rows
from discernel.bank import choose_bank
from discernel.criteria import RKDA, Auto, FisherRatio, LeaveOneOut, Uniform
from discernel.default import menu_kernels
from discernel.exceptions import InvalidInputError, LongFitWarning, caller_stacklevel
from discernel.kernels import Kernel
from discernel.learn import Request
from discernel.plan import (
    FEW_ROWS,
    FEW_ROWS_ON_DEVICE,
    PATIENCE,
    Forecast,
    Problem,
    Speed,
    measure_device,
    measure_speed,
    plan_fit,
    plan_on_device,
    plan_stages,
    similar_bank,
)
from discernel.progress import in_words, reporting

__all__ = ["FitPlanner", "showing"]

#: Seconds from which on silence would be rude.
_LONG = 120.0
#: How many times weights are learned where λ is given, learned with them, or looked for on a path;
#: and by a search among criteria.
_PROGRAMS = {"given": 1.0, "joint": 2.0, "loo": 3.0}
_SEARCH = 4.0
#: Why a bank is taken that nobody asked for.
_REASONS = {"dense": "all matrices fit into the cache", "factored": "kernels of low rank"}


@dataclass(frozen=True)
class FitPlanner:
    """Forecasts of a fit and of its stages.

    Attributes
    ----------
    X : array-like of shape (n_samples, n_features)
        The training rows, or some of them.
    kernels : sequence of Kernel
        What is to be computed, resolved.
    problem : Problem
        The sizes.
    asked : str
        The bank that the user asks for, or ``"auto"``.
    cache_bytes : float
        The room for kernel matrices.
    patience : float
        The seconds that an exact fit may take.
    device : Device or None
        Where the fit is computed; None: here.
    sums_on_device : bool
        Whether features of a low rank are summed up there too.
    in_chunks : bool
        Whether rows come in chunks.
    """

    X: Any
    kernels: Sequence[Kernel]
    problem: Problem
    asked: str
    cache_bytes: float
    patience: float = PATIENCE
    device: Device | None = None
    sums_on_device: bool = True
    in_chunks: bool = False

    @classmethod
    def of(
        cls,
        X: Any,
        kernels: Sequence[Kernel],
        request: Request,
        *,
        n_rows: int | None,
        rank: int | None,
        chooses: bool,
        approximable: bool,
        holds_out: bool = False,
        **options: Any,
    ) -> FitPlanner:
        """Return the planner of a fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training rows, or some of them.
        kernels : sequence of Kernel
            The candidates, resolved.
        request : Request
            What is to be learned.
        n_rows : int or None
            The number of rows where X has only some of them.
        rank : int or None
            The rank that the user asks for.
        chooses : bool
            Whether the default chooses its kernels first.
        approximable : bool
            Whether kernels of low rank serve as well.
        holds_out : bool
            Whether kernels are learned again without each fold.
        **options
            Other attributes.
        """
        n = count_rows(X) if n_rows is None else n_rows
        given, measured = kernels[0].precomputed, kernels
        if chooses and isinstance(X, np.ndarray):
            measured = menu_kernels(X, kernels[0].spreads)  # type: ignore[attr-defined]
        shape = getattr(X, "shape", (n, 1))
        problem = Problem(
            n_rows=n,
            n_columns=int(shape[1]) if len(shape) > 1 else 1,
            n_kernels=len(measured),
            chooses=chooses,
            n_programs=0.0
            if chooses and isinstance(request.criterion, Auto)
            else _programs(request),
            approximable=approximable
            and not given
            and _needs_products_only(request, chooses)
            and all(kernel.trusted for kernel in kernels),
            rank=rank,
            holds_out=holds_out,
        )
        return cls(X, measured, problem, **options)

    def forecast(self, *, always: bool) -> Forecast | None:
        """Return which way the fit takes and what that costs; None where few rows are no work.

        Parameters
        ----------
        always : bool
            Whether few rows are forecast as well.
        """
        few = FEW_ROWS if self.device is None else FEW_ROWS_ON_DEVICE
        if self.problem.n_rows < few and not always:
            return None
        if self.device is not None and not isinstance(self.X, np.ndarray):
            return None  # which a device does not take; what computes there says so
        return self._whole(self.problem)

    def stages(self, most_rows: int | None = None) -> list[Forecast]:
        """Return what could be fitted, from equal weights on some rows to the whole.

        Parameters
        ----------
        most_rows : int, optional
            The rows that a stage of some rows may have; by default all.
        """
        serves = self.problem.approximable and self.asked in ("auto", "lowrank")
        low_rank = self._low_rank if serves or self.in_chunks else None

        def plan(problem: Problem) -> Forecast:
            is_whole = problem == self.problem
            return self._whole(problem) if is_whole else self._plan(problem)

        return plan_stages(self.problem, plan, low_rank, most_rows)

    def reserve(self, stage: Forecast) -> float:
        """Return the seconds that a stage takes after its weights are learned."""
        known = replace(
            self.problem, n_rows=stage.n_rows, rank=stage.rank, chooses=False, n_programs=0.0
        )
        if stage.kind == "device":
            return self._plan(known).seconds
        return known.cost(similar_bank(stage.kind), self._speed).seconds

    def factoring_rate(self, stage: Forecast) -> float:
        """Return the operations per second of the factorisations of a stage."""
        if self.device is not None:
            return np.inf
        return self._speed.factorisation(stage.rank or stage.n_rows)

    @property
    def blas_threads_pay(self) -> bool:
        """Whether BLAS is faster on several threads; assumed where nothing is measured."""
        return "_speed" not in vars(self) or self._speed.blas_threads_pay

    @cached_property
    def _speed(self) -> Speed:
        return measure_speed(self.kernels, self.X)

    @cached_property
    def _device_speed(self) -> Speed:
        assert self.device is not None
        return measure_device(self.kernels, self.X, self.device)

    @cached_property
    def _speed_of_sums(self) -> Speed | None:
        """The rates of the device that features are summed up on; None: here."""
        if self.device is None or not (self.sums_on_device or self.asked == "lowrank"):
            return None
        return measure_device(self.kernels, self.X, self.device, refined=False)

    def _whole(self, problem: Problem) -> Forecast:
        if self.in_chunks:
            return replace(self._low_rank(problem), reason="rows in chunks")
        return self._plan(problem)

    def _plan(self, problem: Problem) -> Forecast:
        """Return which way a fit of rows in memory takes."""
        if self.device is not None:
            return self._plan_on_device(problem, self.device)
        n_rows, asked, reason = problem.n_rows, self.asked, "asked for"
        kind = choose_bank(asked, self.kernels, self.X, self.cache_bytes, n_rows)
        if asked == "auto" and kind in _REASONS:
            asked, reason = kind, _REASONS[kind]
        return plan_fit(problem, self._speed, asked=asked, reason=reason, patience=self.patience)

    def _plan_on_device(self, problem: Problem, device: Device) -> Forecast:
        """Return what a fit on a device takes; of a low rank, where an exact one is too long."""
        if self.asked == "lowrank":
            return self._low_rank(problem)
        factors = self.asked != "iterative"
        found = plan_on_device(problem, self._device_speed, device, factors=factors)
        found = replace(found, learns=problem.learns)
        if found.seconds <= self.patience or not problem.approximable or self.asked != "auto":
            return found
        reason = f"an exact fit on {device.where} would take too long"
        return replace(self._low_rank(problem), reason=reason)

    def _low_rank(self, problem: Problem) -> Forecast:
        """Return what features of a low rank take, summed up on a device where there is one."""
        problem = replace(problem, there=self._speed_of_sums)
        return plan_fit(problem, self._speed, asked="lowrank")


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
            stacklevel=caller_stacklevel(),
        )
    with reporting(forecast.seconds, verbose=bool(verbose)):
        yield
