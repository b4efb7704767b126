"""What a report says in words and tables, as plain values for the template."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from discernel.experiments.exports import Trace
from discernel.experiments.metrics import METRICS, PredictionMetric
from discernel.experiments.statistics import Interval
from discernel.experiments.tables import (
    Entry,
    Failure,
    Ranking,
    ResultTable,
    compare_with,
    failures,
    rank_methods,
)
from discernel.report import words

__all__ = ["contents", "trace_contents"]

_STANDINGS = {
    "ahead": "best",
    "level": "tied",
    "behind": "worse",
    "untested": "cannot tell",
    "failed": "failed",
}


def contents(table: ResultTable, trace: Trace | None = None) -> dict[str, Any]:
    """Return what the template shows beside figures.

    Parameters
    ----------
    table : ResultTable
        The results.
    trace : Trace or None
        Where they come from.
    """
    ranking, failed = rank_methods(table), failures(table)
    n_runs = sum(len(found) for found in table.records.values())
    summary = [
        words.describe_task(table),
        *(paragraph for dataset in table.datasets for paragraph in _of_dataset(table, dataset)),
        words.describe_ranking(ranking),
        words.describe_power(table),
        words.describe_failures(failed, n_runs),
        words.describe_time(table),
    ]
    return {
        "summary": [sentence for sentence in summary if sentence],
        "datasets": table.datasets,
        "overview": _overview(table, ranking),
        "metric": table.metric,
        "metrics": _metrics(table),
        "rows": [_row(entry, table) for name in table.datasets for entry in table.ranked(name)],
        "has_points": any(_is_point(entry) for entry in table.entries.values()),
        "comparison": _comparison(table),
        "ranking": _ranking(ranking),
        "failures": [_failure(failure) for failure in failed],
        "environment": _environment(table),
        "divisions": _divisions(table),
        "trace": None if trace is None else trace_contents(trace),
    }


def _of_dataset(table: ResultTable, dataset: str) -> list[str]:
    """Return what there is to say of a data set; of several, in one paragraph each."""
    found = (
        words.describe_dataset(table, dataset),
        words.describe_default(table, dataset),
        words.describe_expectation(table, dataset),
    )
    said = [sentence for sentence in found if sentence]
    return said if len(table.datasets) == 1 else [" ".join(said)]


def _metrics(table: ResultTable) -> list[PredictionMetric]:
    """Return the metrics that any method has, the one that is ranked first."""
    known = {name for entry in table.entries.values() for name in entry.means}
    found = [metric for name, metric in METRICS.items() if name in known]
    return sorted(found, key=lambda metric: metric != table.metric)


def trace_contents(trace: Trace) -> dict[str, Any]:
    """Return where results come from: facts, rows of each class, what columns became."""
    n_rows = sum(trace.class_counts.values())
    facts = [
        ("data", trace.source),
        ("digest of the content", trace.digest and f"{trace.digest} (first 16 digits of SHA-256)"),
        ("column with the classes", trace.target),
        ("rows", f"{n_rows:,}" if n_rows else ""),
        ("command", trace.command),
        ("written", trace.created),
        ("versions", ", ".join(f"{name} {number}" for name, number in trace.versions.items())),
    ]
    return {
        "facts": [(name, fact) for name, fact in facts if fact],
        "classes": [
            (name, f"{number:,}", f"{100.0 * number / n_rows:.1f}")
            for name, number in trace.class_counts.items()
        ],
        "columns": list(trace.columns.items()),
        "notes": trace.notes,
    }


def _overview(table: ResultTable, ranking: Ranking | None) -> list[dict[str, Any]]:
    """Return one row per method: its entry on every data set, and its mean rank."""
    ranks = {} if ranking is None else dict(zip(ranking.methods, ranking.ranks, strict=True))
    rows = []
    for method in table.methods:
        entries = [table.entries.get((dataset, method)) for dataset in table.datasets]
        cells = [None if entry is None else _row(entry, table) for entry in entries]
        rows.append({"method": method, "cells": cells, "rank": ranks.get(method)})
    return rows


def _row(entry: Entry, table: ResultTable) -> dict[str, Any]:
    """Return what a table shows of an entry: numbers to sort by, and texts."""
    interval, unknown = entry.interval, math.nan
    return {
        "dataset": entry.dataset,
        "method": entry.method,
        "mean": None if interval is None else interval.mean,
        "mean_text": table.metric.show(entry.mean),
        "numbers": [
            (entry.means.get(metric.name), metric.show(entry.means.get(metric.name, unknown)))
            for metric in _metrics(table)
        ],
        "interval": words.span(interval, table.metric),
        "low": None if interval is None or math.isnan(interval.low) else interval.low,
        "n": len(entry.values),
        "standing": entry.standing,
        "standing_text": _STANDINGS[entry.standing],
        "p": None if math.isnan(entry.p_value) else entry.p_value,
        "p_text": words.probability(entry.p_value).removeprefix("= "),
        "seconds": None if math.isnan(entry.seconds_fit) else entry.seconds_fit,
        "seconds_text": words.seconds(entry.seconds_fit),
        "memory": entry.peak_memory,
        "memory_text": words.memory(entry.peak_memory),
        "failed": entry.n_failed,
    }


def _is_point(entry: Entry) -> bool:
    return entry.interval is not None and entry.interval.low == entry.interval.high


def _comparison(table: ResultTable) -> dict[str, Any] | None:
    """Return the paired comparison with the first method of the plan."""
    reference = table.methods[0]
    found = compare_with(table, reference)
    rows = [
        {
            "dataset": each.dataset,
            "method": each.method,
            "difference": each.test.difference.mean,
            "difference_text": _signed(each.test.difference.mean, table.metric),
            "interval": _signed_span(each.test.difference, table.metric),
            "n": each.test.difference.n,
            "p": None if math.isnan(each.p_value) else each.p_value,
            "p_text": words.probability(each.p_value).removeprefix("= "),
            "verdict": each.verdict,
        }
        for each in found
    ]
    return {"reference": reference, "rows": rows} if rows else None


def _signed(value: float, metric: PredictionMetric) -> str:
    """Return a difference of a metric; shares in percentage points."""
    text = f"{100.0 * value:+z.1f}" if metric.in_percent else f"{value:+z.3f}"
    return text.replace("-", "−")


def _signed_span(interval: Interval, metric: PredictionMetric) -> str:
    if math.isnan(interval.low):
        return "–"
    return f"{_signed(interval.low, metric)} to {_signed(interval.high, metric)}"


def _ranking(ranking: Ranking | None) -> dict[str, Any] | None:
    """Return mean ranks, with a letter per group of methods that are not clearly different."""
    if ranking is None:
        return None
    letters = {
        method: " ".join(chr(97 + i) for i, group in enumerate(ranking.groups) if method in group)
        for method in ranking.methods
    }
    return {
        "rows": [
            {"method": method, "rank": rank, "groups": letters[method]}
            for method, rank in zip(ranking.methods, ranking.ranks, strict=True)
        ],
        "datasets": words.join(ranking.datasets),
        "p": words.probability(ranking.test.p_value),
        "statistic": f"{ranking.test.statistic:.2f}",
        "critical_difference": f"{ranking.test.critical_difference:.2f}",
    }


def _failure(failure: Failure) -> dict[str, Any]:
    numbers = [str(i + 1) for i in failure.repetitions]
    return {
        "dataset": failure.dataset,
        "method": failure.method,
        "n": len(numbers),
        "divisions": words.join(numbers),
        "message": failure.message,
    }


def _environment(table: ResultTable) -> list[dict[str, Any]]:
    """Return every machine that took part, with what it was and how many runs it did."""
    everything = [record for found in table.records.values() for record in found]
    machines = Counter(
        tuple((name, str(fact)) for name, fact in sorted(r.machine.items(), key=_fact_order))
        for r in everything
    )
    finished = sorted(record.finished for record in everything if record.finished)
    period = f"{finished[0]} to {finished[-1]}" if finished else "unknown"
    return [
        {"facts": [*facts, ("runs", number), ("finished", period)]}
        for facts, number in machines.most_common()
    ]


def _fact_order(fact: tuple[str, Any]) -> tuple[bool, str]:
    """Put the machine before the versions of packages."""
    return fact[0] not in ("system", "cores", "threads", "python"), fact[0]


def _divisions(table: ResultTable) -> list[dict[str, Any]]:
    """Return how the rows of every data set were scaled and divided."""
    rows = []
    for dataset in table.datasets:
        found = [r for place, rs in table.records.items() if place[0] == dataset for r in rs]
        cell, n = found[0].cell, len({record.cell.repetition for record in found})
        sizes = {
            len(truth) for r in found if (truth := r.result.predictions.get("y_true")) is not None
        }
        rows.append(
            {
                "dataset": dataset,
                "scaling": cell.data.scaling,
                "divisions": words.describe_splits(cell.splits, n),
                "heldout": words.join([str(size) for size in sorted(sizes)]) if sizes else "–",
                "options": ", ".join(f"{k} = {v}" for k, v in cell.data.options.items()),
            }
        )
    return rows
