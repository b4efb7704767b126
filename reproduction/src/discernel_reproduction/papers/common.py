"""Parts shared by the papers: kernels as plain data, and numbers from records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from discernel.compare.store import Record

#: The ten σ of Kim 2006 and Ye 2008: evenly spaced in the logarithm from 0.1 to 100.
TEN_WIDTHS: tuple[float, ...] = tuple(
    float(f"{width:.12g}") for width in np.logspace(-1.0, 2.0, 10)
)


def gaussians(widths: Iterable[float] = TEN_WIDTHS) -> list[Any]:
    """Return kernels exp(−d²/σ²) as plain data, one per width σ."""
    return [["RBF", {"width": width}] for width in widths]


# ---- from the record of one split to a number -------------------------------------------------


def accuracy(record: Record) -> float:
    """Return the accuracy in percent."""
    return 100.0 * metric("accuracy")(record)


def error_percent(record: Record) -> float:
    """Return the share of wrong predictions in percent."""
    return 100.0 - accuracy(record)


def auc(record: Record) -> float:
    """Return the area under the ROC curve."""
    return metric("roc_auc")(record)


def seconds(record: Record) -> float:
    """Return the seconds of the fit, including the search for hyperparameters."""
    return record.result.seconds_fit


def metric(name: str) -> Callable[[Record], float]:
    """Return a function from a record to a metric; NaN if it was not measured."""
    return lambda record: float(record.result.metrics.get(name, np.nan))


def percent(name: str) -> Callable[[Record], float]:
    """Return a function from a record to a metric between 0 and 1, in percent."""
    return lambda record: 100.0 * metric(name)(record)


def by_place(records: Sequence[Record]) -> Mapping[tuple[str, str], list[Record]]:
    """Return the successful records by data set and method, in order."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.result.error is None:
            place = (record.cell.data.name, record.cell.method.name)
            found.setdefault(place, []).append(record)
    return found


def p_value(first: str, second: str) -> Callable[[Sequence[Record]], Sequence[float]]:
    """Return a function that compares the accuracies of two methods by a paired t-test.

    The papers use this test. Splits of one data set are not independent, so that the p-value is too
    small; `discernel.compare.statistics` has a corrected test.
    """

    def test(records: Sequence[Record]) -> Sequence[float]:
        found: dict[str, dict[int, float]] = {first: {}, second: {}}
        for record in records:
            if record.cell.method.name in found:
                found[record.cell.method.name][record.cell.repetition] = accuracy(record)
        both = sorted(found[first].keys() & found[second].keys())
        if len(both) < 2:
            return []
        ours, theirs = ([found[name][at] for at in both] for name in (first, second))
        return [float(stats.ttest_rel(ours, theirs).pvalue)]

    return test
