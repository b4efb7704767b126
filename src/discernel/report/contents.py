"""What a report says in words and tables, as plain values for the template."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

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

__all__ = ["contents"]

_STANDINGS = {
    "ahead": "ahead",
    "level": "level",
    "behind": "behind",
    "untested": "cannot tell",
    "failed": "failed",
}


def contents(table: ResultTable) -> dict[str, Any]:
    """Return what the template shows beside figures."""
    ranking, failed = rank_methods(table), failures(table)
    n_runs = sum(len(found) for found in table.records.values())
    summary = [
        words.describe_task(table),
        *(words.describe_dataset(table, dataset) for dataset in table.datasets),
        words.describe_ranking(ranking),
        words.describe_power(table),
        words.describe_failures(failed, n_runs),
        words.describe_time(table),
    ]
    return {
        "summary": [sentence for sentence in summary if sentence],
        "datasets": table.datasets,
        "overview": _overview(table, ranking),
        "rows": [_row(entry) for name in table.datasets for entry in table.of_dataset(name)],
        "has_points": any(_is_point(entry) for entry in table.entries.values()),
        "comparison": _comparison(table),
        "ranking": _ranking(ranking),
        "failures": [_failure(failure) for failure in failed],
        "environment": _environment(table),
        "divisions": _divisions(table),
    }


def _overview(table: ResultTable, ranking: Ranking | None) -> list[dict[str, Any]]:
    """Return one row a method: its entry on every data set, and its mean rank."""
    ranks = {} if ranking is None else dict(zip(ranking.methods, ranking.ranks, strict=True))
    rows = []
    for method in table.methods:
        entries = [table.entries.get((dataset, method)) for dataset in table.datasets]
        cells = [None if entry is None else _row(entry) for entry in entries]
        rows.append({"method": method, "cells": cells, "rank": ranks.get(method)})
    return rows


def _row(entry: Entry) -> dict[str, Any]:
    """Return what a table shows of an entry: numbers to sort by, and texts."""
    interval = entry.interval
    return {
        "dataset": entry.dataset,
        "method": entry.method,
        "mean": None if interval is None else interval.mean,
        "accuracy": words.percent(entry.mean),
        "interval": "–" if interval is None else words.span(interval),
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
            "difference_text": f"{100.0 * each.test.difference.mean:+.1f}".replace("-", "−"),
            "interval": _signed_span(each.test.difference.low, each.test.difference.high),
            "n": each.test.difference.n,
            "p": None if math.isnan(each.p_value) else each.p_value,
            "p_text": words.probability(each.p_value).removeprefix("= "),
            "verdict": each.verdict,
        }
        for each in found
    ]
    return {"reference": reference, "rows": rows} if rows else None


def _signed_span(low: float, high: float) -> str:
    if math.isnan(low):
        return "–"
    return f"{100.0 * low:+.1f} to {100.0 * high:+.1f}".replace("-", "−")


def _ranking(ranking: Ranking | None) -> dict[str, Any] | None:
    """Return mean ranks with a letter a group: methods that share one are not clearly different."""
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
