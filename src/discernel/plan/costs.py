"""The costs of a fit by each bank, in passes over the kernels, factorisations and products.

Counts, not times: `Speed` turns them into seconds. They are rough on purpose; forecasts are meant
to be right within a factor of two, and `benchmarks/forecasts.py` says whether they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from discernel.arrays import Device
from discernel.bank.device import factor_bytes, has_room, is_refined
from discernel.bank.ranks import default_rank
from discernel.bank.tiled import CACHE_BYTES
from discernel.default import FIRST_ROWS, rows_to_choose_on
from discernel.kernels import Kernel
from discernel.kernels.features import n_landmarks
from discernel.plan.speed import Speed, device_product_rate, measure_device, measure_speed
from discernel.progress import in_words

#: Operations of the choice on 1,000 rows, the power of rows that they grow with, columns that make
#: it twice as dear, and the jobs that share the work, of which each has a thread.
_CHOICE, _CHOICE_POWER, _CHOICE_COLUMNS, _CHOICE_JOBS = 1.55e11, 1.8, 200.0, 5
#: Operations of looking for λ, on so many rows; with fewer, λ is that of the choice.
_LAMBDA, _LAMBDA_ROWS = 2.2e10, 1500
#: The share of the work of a program, and of the choice, that is left where weights stay equal.
_UNLEARNED, _UNCHOSEN = 0.6, 0.4
#: Passes over all tiles that one iterative solve takes with its leave-one-out, for the λ of the
#: default on 1,500 rows and for that of a criterion; and what a criterion does on a part of the
#: rows first. More rows have a smaller λ: 9,000 took 33 passes with the λ of 1,500 of them, 43 with
#: half of it and 58 with a fifth.
_PASSES, _PASSES_POWER, _PROGRAM_PASSES, _PART = 33.0, 0.2, 12.0, 2e11
#: The rank of what steers it.
_STEERING = 1000
#: What further rounds of the metric take where features are summed up, and the search for landmarks
#: where they are kept: operations, on a sample.
_REFINING, _SEARCHING = 2.8e11, 4.8e10
#: Operations in units of rank³, of factorisations, and of n_samples · rank², of products: for
#: features that are kept, of one sum of kernels or of all; and for sums of them.
_KEPT_SUM, _KEPT_ALL, _SUMMED = (20.0, 11.0), (8.0, 6.0), (80.0, 3.0)
#: Operations of one program on 1,000 rows, and the power of rows that they grow with, beside its
#: factorisations.
_PROGRAM, _PROGRAM_POWER = 6e9, 1.5
#: Seconds that Python takes for any fit: 500 rows with equal weights took 0.15 s where all else was
#: 0.04 s. What is chosen has its own in its operations.
_PYTHON = 0.06
#: Seconds that a fit takes however fast the device is, and a choice of kernels on top of that.
_DELAY, _DELAY_OF_CHOICE = 0.3, 0.7
#: From so many rows on an exact fit computes importances, from another factorisation and no more
#: than so many rows: entries that they take per row and column.
_DEFERRED, _IMPORTANCE_ROWS, _IMPORTANCE_ENTRIES, _IMPORTANCE = 2000, 500, 2**22, 0.65
#: Up to so many rows, how much longer a fit takes that learns again without each fold: of the
#: default, and of given kernels. Then the same of all others. Those of the default were 1.2, 1.3,
#: 1.4, 1.6 and 1.1 at 300, 600, 1,000, 1,200 and 2,000 rows.
_HELD_OUT = {600: (1.3, 5.0), 2000: (1.6, 2.7)}
_HELD_OUT_OF_MANY = (1.1, 1.3)
#: Rows of the sample that is looked at here, where all rows are summed up on a device.
_SAMPLE = 10_000


@dataclass(frozen=True, eq=False)
class Problem:
    """A fit to be planned: kernels, rows, limits and device."""

    #: The candidates, resolved, and the training rows, or some of them.
    kernels: Sequence[Kernel]
    X: Any
    #: The number of training rows.
    n_rows: int
    #: Whether the default chooses its kernels first, and how many times weights are learned on all
    #: rows; 0: they are known before.
    chooses: bool
    n_programs: float
    #: Whether kernels can be approximated: they are of rows, and known to be kernels.
    approximable: bool = True
    #: The bank that the user asks for, its rank, and the room for kernel matrices or features.
    asked: str = "auto"
    rank: int | None = None
    memory: float = CACHE_BYTES
    #: Whether weights are learned once, with a given λ.
    few_passes: bool = False
    #: Whether weights and metric are learned, or equal; and learned again without each fold.
    learns: bool = True
    holds_out: bool = False
    #: The seconds that an exact fit may take; more, where the user has a larger limit.
    patience: float = 600.0
    #: Whether rows come in chunks.
    in_chunks: bool = False
    #: Where the fit is computed, None: here; and whether features of a low rank can be summed up,
    #: on a device too, which they are not where λ differs by class.
    device: Device | None = None
    sums: bool = False
    balanced: bool = False
    #: Whether time and memory are forecast, which those of few rows need not be.
    forecasts: bool = True
    #: The rates that were measured; all parts of a problem share them.
    speeds: dict[str, Speed] = field(default_factory=dict)

    @property
    def cache_bytes(self) -> float:
        """The room for a stack of kernel matrices."""
        # One program takes some ten passes, in which a large stack does not earn its page faults.
        return self.memory / 4 if self.few_passes else self.memory

    @property
    def low_rank(self) -> int:
        """The total rank where that is low: the user's, or the usual one for so many rows."""
        sums = self.in_chunks or (self.device is not None and not self.balanced)
        if self.rank is not None or self.forecasts or sums:
            return self.rank or n_landmarks(self.n_rows)
        rank = default_rank(self.n_rows, self.memory)
        return max(rank, len(self.kernels)) if self.n_programs else rank  # one or more for each

    @property
    def n_columns(self) -> int:
        """The columns of the rows; of objects, one."""
        return int((*self.X.shape, 1)[1])

    def speed(self, where: str) -> Speed:
        """Return the rates ``"here"`` or on the ``"device"``, measured once."""
        if where not in self.speeds:
            device = None if where == "here" else self.device
            self.speeds[where] = (
                measure_speed(self.kernels, self.X)
                if device is None
                else measure_device(self.kernels, self.X, device)
            )
        return self.speeds[where]


@dataclass(frozen=True)
class Stage:
    """A fit as it is planned and, once it was run, what it took.

    Attributes
    ----------
    kind : str
        The bank: ``"dense"``, ``"tiled"``, ``"factored"``, ``"iterative"``, ``"lowrank"``,
        ``"distributed"``, ``"device"`` or ``"stream"``.
    n_rows : int
        The training rows.
    reason : str
        Why, in a few words.
    seconds : float
        The time that it took; before it is run its forecast, mostly right within a factor of two,
        or NaN.
    n_bytes : float
        The forecast of the memory beside the training rows.
    rank : int or None
        The total rank where that is low.
    learns : bool
        Whether weights are learned; False: they are equal.
    forecast : float or None
        The seconds that were expected; None without a forecast, or before it is run.
    finished : bool or None
        Whether it ended in time; if not, the model is that of the stage before. None: not yet run.
    is_whole : bool
        Whether all was done that a fit without a time limit does.
    sums : bool
        Whether features of a low rank are summed up, chunk by chunk, instead of kept.
    exact : str
        The bank of kernels that are learned on the way: without each fold, or on a sample.
    """

    kind: str
    n_rows: int
    reason: str
    seconds: float
    n_bytes: float = 0.0
    rank: int | None = None
    learns: bool = True
    forecast: float | None = None
    finished: bool | None = None
    is_whole: bool = True
    sums: bool = False
    exact: str = "dense"

    @property
    def is_forecast(self) -> bool:
        """Whether time and memory were forecast, as those of few rows are not."""
        return not math.isnan(self.seconds)

    @property
    def what(self) -> str:
        """The rows, the bank and its rank, in words."""
        rank = "" if self.rank is None else f", rank {self.rank:,}"
        equal = "" if self.learns else ", equal weights"
        return f"{self.n_rows:,} rows: bank={self.kind!r}{rank}{equal}"

    def __str__(self) -> str:
        taken, why = in_words(self.seconds), f"{self.what} ({self.reason})"
        if self.finished is None:
            return f"{why}, about {taken} and {self.n_bytes / 1e9:.2g} GB"
        expected = "" if self.forecast is None else f", expected {in_words(self.forecast)}"
        ended = "" if self.finished else ", stopped by the time limit"
        return f"{why}: {taken}{expected}{ended}"


def exact_bytes(n_rows: float, n_stored: int = 0) -> float:
    """Return the bytes of an exact fit: two matrices of all rows, and those of stored kernels."""
    return 8.0 * (2.0 + n_stored) * n_rows**2


def forecast(problem: Problem, kind: str, reason: str = "asked for") -> Stage:
    """Return the time and memory of a fit with some bank, here or on the device of the problem.

    Parameters
    ----------
    problem : Problem
        What is to be fitted.
    kind : str
        The bank.
    reason : str
        Why.
    """
    n, device = problem.n_rows, problem.device
    if not problem.forecasts:
        rank = problem.low_rank if kind == "lowrank" else None
        return Stage(kind, n, "few rows need no forecast", math.nan, rank=rank)
    if kind == "device":
        assert device is not None
        return _forecast_on_device(problem, device)
    if kind != "lowrank":
        seconds, n_bytes = _cost(problem, kind, problem.speed("here"))
        return Stage(kind, n, reason, seconds, n_bytes, learns=problem.learns)
    rank, part = problem.low_rank, problem
    if device is not None and problem.sums:
        part = replace(problem, n_rows=min(n, _SAMPLE))
    seconds, n_bytes = _cost(part, kind, problem.speed("here"), rank)
    if device is not None and problem.sums:
        product = device_product_rate(device, single=False)
        seconds += n * rank * (problem.speed("device").entry + 2.0 * rank / product)
    return Stage(kind, n, reason, seconds, n_bytes, rank, problem.learns)


def _forecast_on_device(problem: Problem, device: Device) -> Stage:
    n, refined, speed = problem.n_rows, is_refined(problem.n_rows), problem.speed("device")
    # The λ of the default is mostly too small for a coarse diagonal of the inverse.
    precise = refined and problem.chooses
    needed = factor_bytes(n, single=refined and not precise)
    fits = problem.asked != "iterative" and has_room(device, needed)
    seconds, n_bytes = _cost(problem, "tiled" if fits else "iterative", speed)
    seconds += _DELAY + (_DELAY_OF_CHOICE if problem.chooses else 0.0)
    if fits and precise:  # one more factorisation, and as much again for the inverse
        double = replace(speed, product=device_product_rate(device, single=False))
        seconds += 2.0 * n**3 / 3.0 / double.factorisation(n)
    how = "factored" if fits else "by conjugate gradients"
    reason, n_bytes = f"exact, {how} on {device.where}", needed if fits else n_bytes
    return Stage("device", n, reason, seconds, n_bytes, learns=problem.learns)


def _cost(problem: Problem, kind: str, speed: Speed, rank: int = 0) -> tuple[float, float]:
    """Return the seconds and the bytes of a fit, by the speed of what computes it."""
    n, learns = float(problem.n_rows), problem.learns
    entries, factored, size, multiplied, n_bytes = _count_work(problem, kind, rank)
    chosen = 0.0
    if problem.chooses:  # metric, kernels and λ, on some of the rows
        s = min(n, rows_to_choose_on(int(n)) if learns else FIRST_ROWS)
        chosen = (
            _CHOICE * (s / 1000.0) ** _CHOICE_POWER * (1.0 + problem.n_columns / _CHOICE_COLUMNS)
        )
        chosen *= 1.0 if learns else _UNCHOSEN
        multiplied += _LAMBDA if n > _LAMBDA_ROWS else 0.0
        n_bytes += 8.0 * 12.0 * s * s * 5
    seconds = (
        _PYTHON
        + entries * speed.entry / speed.threads_in_effect()
        + factored / speed.factorisation(size)
        + multiplied / speed.product
        + chosen / speed.jobs(_CHOICE_JOBS)
    )
    if problem.holds_out and learns:
        factors = (both for most, both in _HELD_OUT.items() if n <= most)
        seconds *= next(factors, _HELD_OUT_OF_MANY)[0 if problem.chooses else 1]
    return seconds, n_bytes


def _count_work(problem: Problem, kind: str, rank: int) -> tuple[float, float, float, float, float]:
    """Return the work of a fit with a bank, without a choice of kernels.

    Entries of all kernels, operations of factorisations, the rows of what is factored, operations
    of products, and the bytes that are held at a time.
    """
    n, r = float(problem.n_rows), float(min(rank, problem.n_rows))
    p = problem.n_programs * (1.0 if problem.learns else _UNLEARNED)
    if kind == "lowrank" and 8.0 * n * r <= CACHE_BYTES:
        cube, square = _KEPT_ALL if p else _KEPT_SUM
        searching = 0.0 if p else _SEARCHING * min(1.0, n / 1500.0)
        factored, multiplied = cube * r**3 * max(1.0, p), square * n * r * r * max(1.0, p)
        entries, n_bytes = n * r * (1.0 if p else 3.0), 8.0 * (3.0 * n * r + 4.0 * r * r)
        return entries, factored, r, multiplied + searching, n_bytes
    if kind == "lowrank":
        cube, square = _SUMMED
        multiplied = square * n * r * r + (0.0 if p else _REFINING)
        return n * r, cube * r**3, r, multiplied, 64.0 * r * r + 2.0 * CACHE_BYTES
    if kind in ("iterative", "distributed"):
        steering = min(float(_STEERING), n)
        passes = _PASSES * max(1.0, n / _LAMBDA_ROWS) ** _PASSES_POWER
        passes = passes if p == 0 else 5.0 + _PROGRAM_PASSES * p
        multiplied = 2.0 * n * steering**2 + _PART * p
        return passes * n * n / 2.0 + n * steering, 0.0, n, multiplied, 16.0 * n * steering
    # Learning takes two or three factorisations and some passes, of n_samples²/2 entries each. The
    # discriminant takes one of each, and about another one for the diagonal of the inverse.
    # Importances take one more of each.
    stored, more = len(problem.kernels) if kind == "dense" else 0, 1.0 if n > _DEFERRED else 0.0
    changed = min(_IMPORTANCE_ROWS * n, _IMPORTANCE_ENTRIES) * problem.n_columns
    passes = (2.0 if stored else 2.0 + 8.0 * p) + more
    entries = passes * n * n / 2.0 + more * _IMPORTANCE * changed
    factored = n**3 / 3.0 * (2.0 + 3.0 * p + more)
    multiplied = _PROGRAM * (n / 1000.0) ** _PROGRAM_POWER * p
    return entries, factored, n, multiplied, exact_bytes(n, stored)
