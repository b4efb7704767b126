"""What each way of fitting costs, in passes over the kernels, factorisations and products.

Counts, not times: `Speed` turns them into seconds. They are rough on purpose; forecasts are meant
to be right within a factor of two, and `benchmarks/forecasts.py` says whether they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from discernel.bank import Kind
from discernel.bank.tiled import CACHE_BYTES
from discernel.default import FIRST_ROWS, rows_to_choose_on
from discernel.plan.speed import Speed

__all__ = ["Cost", "Work", "held_out_factor", "work_of"]

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
#: From so many rows on an exact fit computes importances, from another factorisation and no more
#: than so many rows: entries that they take per row and column.
_DEFERRED, _IMPORTANCE_ROWS, _IMPORTANCE_ENTRIES, _IMPORTANCE = 2000, 500, 2**22, 0.65


#: Up to so many rows, how much longer a fit takes that learns again without each fold: of the
#: default, and of given kernels. Then the same of all others. Those of the default were 1.2, 1.3,
#: 1.4, 1.6 and 1.1 at 300, 600, 1,000, 1,200 and 2,000 rows.
_HELD_OUT = {600: (1.3, 5.0), 2000: (1.6, 2.7)}
_HELD_OUT_OF_MANY = (1.1, 1.3)


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
    size : float or None
        The rows of the matrices that are factored; None: all.
    multiplied : float
        Operations of products.
    chosen : float
        Operations of the choice, whose jobs have a thread each.
    numbers : float
        Numbers of double precision that are held at a time.
    """

    passes: float = 0.0
    entries: float = 0.0
    factored: float = 0.0
    size: float | None = None
    multiplied: float = 0.0
    chosen: float = 0.0
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
    learns: bool = True,
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
    learns : bool, default=True
        Whether weights and metric are learned; False: equal weights, of which only λ is chosen.
    """
    n_programs = n_programs if learns else _UNLEARNED * n_programs
    n, r = float(n_rows), float(min(rank, n_rows))
    if kind == "lowrank":
        own = _low_rank(n, r, n_programs)
    elif kind == "iterative":
        own = _iterative(n, n_programs)
    else:
        stored = n_kernels if kind == "dense" else 0
        # Learning takes two or three factorisations and some passes. The discriminant takes one of
        # each, and about another one for the diagonal of the inverse.
        # Importances take one more of each.
        more = 1.0 if n > _DEFERRED else 0.0
        changed = min(_IMPORTANCE_ROWS * n, _IMPORTANCE_ENTRIES) * n_columns
        own = Work(
            passes=(2.0 if stored else 2.0 + 8.0 * n_programs) + more,
            entries=more * _IMPORTANCE * changed,
            factored=n**3 / 3.0 * (2.0 + 3.0 * n_programs + more),
            multiplied=_PROGRAM * (n / 1000.0) ** _PROGRAM_POWER * n_programs,
            numbers=(2.0 + stored) * n * n,
        )
    if not chooses:
        return own
    choice = _choice(n, n_columns, learns)
    return replace(
        own,
        multiplied=own.multiplied + choice.multiplied,
        chosen=choice.chosen,
        numbers=own.numbers + choice.numbers,
    )


def held_out_factor(n_rows: int, *, chooses: bool) -> float:
    """Return how much longer a fit takes that says what to expect of new rows.

    Parameters
    ----------
    n_rows : int
        The training rows.
    chooses : bool
        Whether the default chooses its kernels first.
    """
    found = next((both for most, both in _HELD_OUT.items() if n_rows <= most), _HELD_OUT_OF_MANY)
    return found[0] if chooses else found[1]


def _low_rank(n: float, r: float, n_programs: float) -> Work:
    if 8.0 * n * r <= CACHE_BYTES:
        cube, square = _KEPT_ALL if n_programs else _KEPT_SUM
        return Work(
            entries=n * r * (1.0 if n_programs else 3.0),
            factored=cube * r**3 * max(1.0, n_programs),
            size=r,
            multiplied=square * n * r * r * max(1.0, n_programs)
            + (0.0 if n_programs else _SEARCHING * min(1.0, n / 1500.0)),
            numbers=3.0 * n * r + 4.0 * r * r,
        )
    cube, square = _SUMMED
    refining = 0.0 if n_programs else _REFINING
    return Work(
        entries=n * r,
        factored=cube * r**3,
        size=r,
        multiplied=refining + square * n * r * r,
        numbers=8.0 * r * r + CACHE_BYTES / 4.0,
    )


def _iterative(n: float, n_programs: float) -> Work:
    steering = min(float(_STEERING), n)
    passes = _PASSES * max(1.0, n / _LAMBDA_ROWS) ** _PASSES_POWER
    return Work(
        passes=passes if n_programs == 0 else 5.0 + _PROGRAM_PASSES * n_programs,
        entries=n * steering,
        multiplied=2.0 * n * steering**2 + _PART * n_programs,
        numbers=2.0 * n * steering,
    )


def _choice(n: float, n_columns: int, learns: bool) -> Work:
    """Return what choosing metric, kernels and λ on some of the rows takes."""
    s = min(n, rows_to_choose_on(int(n)) if learns else FIRST_ROWS)
    size = (s / 1000.0) ** _CHOICE_POWER * (1.0 + n_columns / _CHOICE_COLUMNS)
    size *= 1.0 if learns else _UNCHOSEN
    searched = _LAMBDA if n > _LAMBDA_ROWS else 0.0
    return Work(multiplied=searched, chosen=_CHOICE * size, numbers=12.0 * s * s * 5)


def cost_of(work: Work, speed: Speed, n_rows: int) -> Cost:
    """Return the forecast of some work on this machine."""
    entries = work.passes * n_rows**2 / 2.0 + work.entries
    seconds = (
        _PYTHON
        + entries * speed.entry / speed.threads_in_effect
        + work.factored / speed.factorisation(n_rows if work.size is None else work.size)
        + work.multiplied / speed.product
        + work.chosen / speed.jobs(_CHOICE_JOBS)
    )
    return Cost(seconds, 8.0 * work.numbers)
