"""Forecasts of the time and memory of a fit with each bank.

The work of a fit is counted in kernel entries and operations; `Speed` converts them to seconds.
Forecasts are meant to be right within a factor of two; `benchmarks/forecasts.py` measures that.
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

#: Operations of the selection of kernels on 1,000 rows, their growth as a power of the rows, the
#: number of columns that doubles them, and the number of parallel jobs, with one thread each.
_CHOICE, _CHOICE_POWER, _CHOICE_COLUMNS, _CHOICE_JOBS = 1.55e11, 1.8, 200.0, 5
#: Operations of the search for λ on 1,500 rows; with fewer rows, the selection has found λ.
_LAMBDA, _LAMBDA_ROWS = 2.2e10, 1500
#: Share of the work of a program, and of the selection, that remains with equal weights.
_UNLEARNED, _UNCHOSEN = 0.6, 0.4
#: Passes over all tiles of one iterative solve with its leave-one-out errors, for the default's λ
#: on 1,500 rows and their growth as a power of the rows; passes for a criterion; and operations of
#: a criterion on a subset of the rows. λ decreases with the number of rows: 9,000 rows took 33
#: passes with the λ of 1,500 rows, 43 with half of it and 58 with a fifth.
_PASSES, _PASSES_POWER, _PROGRAM_PASSES, _PART = 33.0, 0.2, 12.0, 2e11
#: Passes that conjugate gradients start for each pass that counts there, because most are of few
#: kernels in single precision; and the seconds for a row of what NumPy does between two of them, in
#: one thread. 10,000 rows with λ given took 57 passes with 40 vectors on average, and 3.5 s between
#: them. On 16 cores, where that was not counted, 3.5 s were expected and 14.5 s taken.
_STARTED, _BETWEEN = 3.3, 4e-6
#: Rank of the preconditioner.
_PRECONDITIONER_RANK = 1000
#: Operations, on a sample, of further rounds of learning column scales if features are summed, and
#: of the search for landmarks if they are stored.
_REFINING, _SEARCHING = 2.8e11, 4.8e10
#: Operations in units of rank³ (factorizations) and of n_samples · rank² (products): for stored
#: features of one sum of kernels or of all kernels, and for summed features.
_KEPT_SUM, _KEPT_ALL, _SUMMED = (20.0, 11.0), (8.0, 6.0), (80.0, 3.0)
#: Operations of one program on 1,000 rows, without its factorizations, and their growth as a power
#: of the rows.
_PROGRAM, _PROGRAM_POWER = 6e9, 1.5
#: Seconds of Python code in any fit: 500 rows with equal weights took 0.15 s, of which the counted
#: work was 0.04 s. For the selection of kernels, Python code is included in its operations.
_PYTHON = 0.06
#: Seconds of a fit on a device that do not depend on its speed, and those of a selection.
_DELAY, _DELAY_OF_CHOICE = 0.3, 0.7
#: Rows up to which an exact fit leaves out no rows for importances; above, the rows that it leaves
#: out at most, and the coefficients without them.
_REFITTED, _LEFT_OUT, _INFLUENCE = 5000, 500, 2**22
#: Factors of the time of a fit that learns again without each fold, up to 600 and 2,000 rows, for
#: the default and for given kernels; then the factors for more rows. Those of the default, which
#: fits kernel logistic regressions too, were measured as 1.3, 1.2, 1.6 to 1.7 and 1.1 to 2.5 at
#: 300, 600, 1,000 and 2,000 rows of some tables.
_HELD_OUT = {600: (1.3, 5.0), 2000: (1.8, 2.7)}
_HELD_OUT_OF_MANY = (1.1, 1.3)
#: Rows of the sample on the host if features of all rows are summed on a device.
_SAMPLE = 10_000


@dataclass(frozen=True, eq=False)
class Problem:
    """The fit to be planned: kernels, rows, limits and device."""

    #: The candidates, resolved, and the training rows or a sample of them.
    kernels: Sequence[Kernel]
    X: Any
    #: The number of training rows.
    n_rows: int
    #: Whether the default selects its kernels first, and how many times weights are learned on all
    #: rows (0 if they are known).
    chooses: bool
    n_programs: float
    #: Whether kernels can be approximated: not precomputed, and positive semidefinite.
    approximable: bool = True
    #: The bank that the user asks for, its rank, and the memory for kernel matrices or features.
    asked: str = "auto"
    rank: int | None = None
    memory: float = CACHE_BYTES
    #: Whether weights are learned only once, with a given λ.
    few_passes: bool = False
    #: Whether weights and column scales are learned, and whether again without each fold.
    learns: bool = True
    holds_out: bool = False
    #: Seconds that an exact fit may take, or the time limit of the user if larger.
    patience: float = 600.0
    #: Whether rows come in chunks.
    in_chunks: bool = False
    #: The device, or None for the host; whether features of low rank can be summed; and whether λ
    #: differs between classes, in which case they are not summed.
    device: Device | None = None
    sums: bool = False
    balanced: bool = False
    #: Whether time and memory are forecast, which is not needed for few rows.
    forecasts: bool = True
    #: Measured rates, shared by copies of the problem.
    speeds: dict[str, Speed] = field(default_factory=dict)

    @property
    def cache_bytes(self) -> float:
        """The memory for stored kernel matrices."""
        # One program takes about ten passes, too few to pay for the page faults of a large stack.
        return self.memory / 4 if self.few_passes else self.memory

    @property
    def low_rank(self) -> int:
        """The total rank of a fit of low rank: that of the user, or the default."""
        sums = self.in_chunks or (self.device is not None and not self.balanced)
        if self.rank is not None or self.forecasts or sums:
            return self.rank or n_landmarks(self.n_rows)
        rank = default_rank(self.n_rows, self.memory)
        return max(rank, len(self.kernels)) if self.n_programs else rank  # at least 1 per kernel

    @property
    def n_columns(self) -> int:
        """The number of columns; 1 for rows of objects."""
        return int((*self.X.shape, 1)[1])

    def speed(self, where: str) -> Speed:
        """Return the rates of the host (``"here"``) or the ``"device"``, measured once."""
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
    """A stage of a fit: the plan and, after it was run, the time.

    Attributes
    ----------
    kind : str
        The bank: ``"dense"``, ``"tiled"``, ``"factored"``, ``"iterative"``, ``"lowrank"``,
        ``"distributed"``, ``"device"`` or ``"stream"``.
    n_rows : int
        The number of training rows.
    reason : str
        Why this bank was chosen.
    seconds : float
        The time of the stage; before it is run the forecast, usually right within a factor of
        two, or NaN.
    n_bytes : float
        The forecast of the memory, without the training rows.
    rank : int or None
        The total rank of a bank of low rank.
    learns : bool
        Whether weights are learned, or equal.
    forecast : float or None
        The forecast of the seconds; None without a forecast, or before the stage is run.
    finished : bool or None
        Whether the stage ended in time; if not, the model is that of the stage before. None before
        the stage is run.
    is_whole : bool
        Whether this is the full fit, as without a time limit.
    sums : bool
        Whether features of low rank are summed in chunks instead of stored.
    exact : str
        The bank for folds and samples.
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
        """Whether time and memory were forecast."""
        return not math.isnan(self.seconds)

    @property
    def what(self) -> str:
        """The rows, the bank and its rank as text."""
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
    """Return the bytes of an exact fit: two matrices and the stored kernel matrices."""
    return 8.0 * (2.0 + n_stored) * n_rows**2


def forecast(problem: Problem, kind: str, reason: str = "asked for") -> Stage:
    """Forecast the time and memory of a fit with a bank, on the host or the device.

    Parameters
    ----------
    problem : Problem
        The fit.
    kind : str
        The bank.
    reason : str
        The reason for the bank.
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
    # The default's λ is usually too small for a single-precision diagonal of the inverse.
    precise = refined and problem.chooses
    needed = factor_bytes(n, single=refined and not precise)
    fits = problem.asked != "iterative" and has_room(device, needed)
    seconds, n_bytes = _cost(problem, "tiled" if fits else "iterative", speed)
    seconds += _DELAY + (_DELAY_OF_CHOICE if problem.chooses else 0.0)
    if fits and precise:  # one more factorization, and the same work for the inverse
        double = replace(speed, product=device_product_rate(device, single=False))
        seconds += 2.0 * n**3 / 3.0 / double.factorisation(n)
    how = "factored" if fits else "by conjugate gradients"
    reason, n_bytes = f"exact, {how} on {device.where}", needed if fits else n_bytes
    return Stage("device", n, reason, seconds, n_bytes, learns=problem.learns)


def _cost(problem: Problem, kind: str, speed: Speed, rank: int = 0) -> tuple[float, float]:
    """Return the seconds and the bytes of a fit at a speed."""
    n, learns = float(problem.n_rows), problem.learns
    entries, factored, size, multiplied, n_bytes = _count_work(problem, kind, rank)
    chosen = 0.0
    if problem.chooses:  # column scales, kernels and λ, on a subset of the rows
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
        + _waiting(problem, kind, speed)
    )
    if problem.holds_out and learns:
        factors = (both for most, both in _HELD_OUT.items() if n <= most)
        seconds *= next(factors, _HELD_OUT_OF_MANY)[0 if problem.chooses else 1]
    return seconds, n_bytes


def _waiting(problem: Problem, kind: str, speed: Speed) -> float:
    """Return the seconds of a fit that do not become fewer with the number of threads."""
    if speed.n_threads == 1 or kind not in ("tiled", "iterative"):
        return 0.0
    passes = _passes(problem, kind)
    if kind == "tiled":
        return passes * speed.starting
    return _STARTED * passes * (speed.starting + problem.n_rows * _BETWEEN)


def _passes(problem: Problem, kind: str) -> float:
    """Return the number of passes over the tiles of all kernels."""
    p = problem.n_programs * (1.0 if problem.learns else _UNLEARNED)
    if kind in ("iterative", "distributed"):
        passes = _PASSES * max(1.0, problem.n_rows / _LAMBDA_ROWS) ** _PASSES_POWER
        return passes if p == 0 else 5.0 + _PROGRAM_PASSES * p
    return 2.0 if kind == "dense" else 2.0 + 8.0 * p


def _count_work(problem: Problem, kind: str, rank: int) -> tuple[float, float, float, float, float]:
    """Return the work of a fit with a bank, without the selection of kernels.

    Returns the entries of all kernels, the operations of factorizations, the rows of the factored
    matrix, the operations of products, and the peak memory in bytes.
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
        rank_of_preconditioner = min(float(_PRECONDITIONER_RANK), n)
        multiplied = 2.0 * n * rank_of_preconditioner**2 + _PART * p
        entries = _passes(problem, kind) * n * n / 2.0 + n * rank_of_preconditioner
        return entries, 0.0, n, multiplied, 16.0 * n * rank_of_preconditioner
    # Learning takes two or three factorizations, and some passes of n_samples²/2 entries each. The
    # discriminant takes one of each, and about another factorization for the diagonal of the
    # inverse. Importances of many rows take products with the inverse.
    stored = len(problem.kernels) if kind == "dense" else 0
    influence = min(_LEFT_OUT * n, _INFLUENCE) if n > _REFITTED else 0.0
    entries = _passes(problem, kind) * n * n / 2.0
    factored = n**3 / 3.0 * (2.0 + 3.0 * p)
    multiplied = _PROGRAM * (n / 1000.0) ** _PROGRAM_POWER * p + 2.0 * n * influence
    return entries, factored, n, multiplied, exact_bytes(n, stored)
