"""What each way of fitting costs, in passes over the kernels, factorisations and products.

Counts, not times: `Speed` turns them into seconds. They are rough on purpose; forecasts are meant
to be right within a factor of two, and `benchmarks/forecasts.py` says whether they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from discernel.bank import Kind
from discernel.planning.speed import Speed

__all__ = ["Cost", "Work", "work_of"]

#: Rows that the default learns its metric on, at most, and those that it chooses on.
_METRIC_ROWS, _CHOICE_ROWS, _FEW_ROWS = 1500, 1000, 600
#: The choice of kernels on s thousand rows, in operations: folds, strengths, λ and a descent. What
#: goes with s² are passes over matrices in memory.
_CHOICE_SQUARE, _CHOICE_CUBE = 9e10, 2e10
#: The metric on m rows: three rounds of gradients, some factorisations.
_METRIC_CUBE = 6.0
#: Leave-one-out takes the diagonal of an inverse, about one factorisation more.
_LEAVE_ONE_OUT = 1.0
#: Passes of an iterative solve, beside those of its certificate, and the rank of what steers it.
ITERATIVE_PASSES, PRECONDITIONER_RANK = 30, 1000
#: The numbers that are kept of features at most.
_KEPT = 1e8


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
    n_outputs: int,
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
    n_rows, n_kernels, n_outputs, n_columns : int
        The sizes.
    chooses : bool
        Whether the default chooses its kernels first.
    n_programs : float
        How many times weights are learned, as for a path of λ; 0: they are known.
    rank : int
        The total rank where that is low.
    """
    n, r = float(n_rows), float(min(rank, n_rows))
    choice = _choice(n, n_outputs, n_columns) if chooses else Work()
    # Learning takes two or three factorisations and some passes; the discriminant one of each.
    factorisations = 1.0 + _LEAVE_ONE_OUT + 3.0 * n_programs
    passes = 2.0 + 8.0 * n_programs
    if kind == "lowrank":
        own = Work(
            entries=n * r * (1.0 if n_programs == 0 else n_kernels),
            factored=10.0 * r**3 * factorisations,
            multiplied=2.0 * n * r * r * factorisations,
            # Where features of all rows are too many to be kept, their sums are enough.
            numbers=min(3.0 * n * r, _KEPT) + 4.0 * r * r,
        )
    elif kind == "iterative":
        steering = float(min(PRECONDITIONER_RANK, n_rows))
        own = Work(
            passes=passes + ITERATIVE_PASSES * (1.0 + 3.0 * n_programs),
            entries=n * steering,
            multiplied=2.0 * n * steering**2,
            numbers=2.0 * n * steering,
        )
    else:
        stored = n_kernels if kind == "dense" else 0
        own = Work(
            passes=passes,
            factored=n**3 / 3.0 * factorisations,
            numbers=(2.0 + stored) * n * n,
        )
    return Work(
        own.passes + choice.passes,
        own.entries + choice.entries,
        own.factored + choice.factored,
        own.multiplied + choice.multiplied,
        own.numbers + choice.numbers,
    )


def _choice(n: float, n_outputs: int, n_columns: int) -> Work:
    """Return what choosing metric, kernels and λ on some of the rows takes."""
    s = min(n, max(_FEW_ROWS, min(n / 4, _CHOICE_ROWS)))
    m = min(n, _METRIC_ROWS)
    share = s / 1000.0
    gradients = 3.0 * m * m * n_columns * n_outputs
    return Work(
        factored=_CHOICE_SQUARE / 3 * share**2 + _CHOICE_CUBE / 3 * share**3 + _METRIC_CUBE * m**3,
        multiplied=gradients,
        numbers=12.0 * s * s * 5,
    )


def cost_of(work: Work, speed: Speed, n_rows: int) -> Cost:
    """Return the forecast of some work on this machine."""
    entries = work.passes * n_rows**2 / 2.0 + work.entries
    seconds = (
        entries * speed.entry / speed.n_threads
        + work.factored / speed.factorisation
        + work.multiplied / speed.product
    )
    return Cost(seconds, 8.0 * work.numbers)
