"""Run cases: warm up, then measure what is divided in turn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

import numpy as np

from bench.cases import Case
from bench.results import Measured, summarize
from discernel.compare.progress import progress_bar

__all__ = ["run_case", "run_cases"]

#: Repeats of a quick run, whose ratios mean nothing.
_QUICK_REPEATS = 2


def run_cases(
    cases: Sequence[Case], *, quick: bool = False, progress: bool = False
) -> Iterator[Measured]:
    """Run cases one after the other; yield what came out of each.

    Parameters
    ----------
    cases : sequence of Case
        Which.
    quick : bool, default=False
        Whether to run them with few rows, only to see that they run.
    progress : bool, default=False
        Whether to show a bar.
    """
    with progress_bar("bench", len(cases), 0, progress) as bar:
        for case in cases:
            yield run_case(case, quick=quick)
            bar.advance(case.name)


def run_case(case: Case, *, quick: bool = False) -> Measured:
    """Run one case, as `run_cases` does.

    Parameters
    ----------
    case : Case
        Which.
    quick : bool, default=False
        As there.

    Notes
    -----
    First everything is called once with few rows, so that libraries are loaded and threads
    started. Then both parts are measured in turn; a ratio divides by the mean of what was measured
    before it and after it, so that a machine that slows down slows both.
    """
    n_rows = case.quick_rows if quick else case.rows
    if any(find_spec(module) is None for module in case.needs):
        return summarize(case, n_rows, problem=f"not installed: pip install {case.install}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of others, in the middle of a table
            measured = _measure(case, n_rows, _QUICK_REPEATS if quick else case.repeats)
    except Exception as error:  # the others are measured all the same
        return summarize(case, n_rows, problem=f"{type(error).__name__}: {error}", failed=True)
    return summarize(case, n_rows, measured)


def _measure(case: Case, n_rows: int, repeats: int) -> list[tuple[float, float, float]]:
    small = case.prepare(case.quick_rows)
    small.over(), small.under()
    pair = case.prepare(n_rows)
    measured, before = [], pair.under()
    for _ in range(repeats):
        over, after = pair.over(), pair.under()
        under = float(np.mean([before, after]))
        measured.append((over, under, pair.value(over / under)))
        before = after
    return measured
