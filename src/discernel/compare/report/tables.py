"""The tables of a comparison report."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from discernel.compare.metrics import PredictionMetric, metrics_beside
from discernel.compare.report import words
from discernel.compare.report.words import span
from discernel.compare.tables import Ranking, ResultTable, failures, rank_methods
from discernel.show.facts import Block, Row
from discernel.show.words import join, memory, probability, seconds, signed


@dataclass(frozen=True)
class Section:
    """A section of the page that can be folded: paragraphs, tables and figures."""

    id: str
    title: str
    paragraphs: tuple[str, ...] = ()
    parts: tuple[Block, ...] = ()
    figures: tuple[Any, ...] = ()


# ---- tables ------------------------------------------------------------------------------------


def result_sections(table: ResultTable) -> list[Section]:
    """Return the sections with the results and, if there is one, the paired comparison."""
    ranking = rank_methods(table)
    metric, several = table.metric, len(table.datasets) > 1
    overview = [_overview(table, ranking)] if several else []
    metrics = _metrics(table)
    better = "higher" if metric.higher_is_better else "lower"
    points = any(e.interval and e.interval.low == e.interval.high for e in table.entries.values())
    paragraphs = (
        f"Means over splits of held-out rows, with 95 % intervals for {metric.label}, the metric "
        f"of the verdicts; {better} is better. Best: the best mean. Tied: not significantly worse "
        "than the best. Worse: significantly worse. Cannot tell: too few splits, or the same "
        "difference in all of them. Intervals and tests are corrected for training rows that "
        "splits share (Nadeau and Bengio), tests also for all pairs of methods on a data set "
        "(Holm)."
        + " An interval of length 0 means that all splits gave the same value, not that the value "
        "is certain." * points,
        "p: p-value of the difference from the best method; for the best itself, from the closest "
        "other. Fit: mean time of a fit. Memory: peak memory of the process. Splits: finished "
        "splits. Click on a header to sort.",
        *([] if ranking is None else [_describe_ranks(ranking, metric)]),
    )
    rows = tuple(Row((each.label, each.meaning)) for each in metrics)
    meanings = Block("meanings", "definitions of the metrics", "", rows)
    results = Section("results", "Results", paragraphs, (*overview, _entries(table), meanings))
    return [results, *_comparison(table)]


def _describe_ranks(ranking: Ranking, metric: PredictionMetric) -> str:
    """Return a sentence on how methods are ranked over data sets, and on the test."""
    test = ranking.test
    return (
        f"Rank 1 is the best {metric.label} on a data set; a method that failed ranks last, and a "
        f"method that was not run on all data sets has no rank. Data sets: "
        f"{join(ranking.datasets)}. Friedman test in the form of Iman and Davenport: "
        f"F = {test.statistic:.2f}, p {probability(test.p_value)}. Mean ranks that differ by less "
        f"than {test.critical_difference:.2f} are not significantly different (Nemenyi)."
    )


def _metrics(table: ResultTable) -> list[PredictionMetric]:
    """Return the metrics that at least one method has, the metric of the ranking first."""
    known = {name for entry in table.entries.values() for name in entry.means}
    found = [each for name, each in metrics_beside(table.metric).items() if name in known]
    return sorted(found, key=lambda metric: metric != table.metric)


def _overview(table: ResultTable, ranking: Ranking | None) -> Block:
    """Return a table with a row per method: its mean on every data set, and its mean rank."""
    ranks = {} if ranking is None else ranking.ranks
    rows = []
    for method in table.methods:
        cells = [_overview_cell(table, dataset, method) for dataset in table.datasets]
        rank = [f"{ranks[method]:.2f}" if method in ranks else "–"] if ranks else []
        rows.append(Row((method, *cells, *rank)))
    header = ("method", *table.datasets, *(["mean rank"] if ranks else []))
    title = f"{table.metric.heading} by method and data set"
    return Block("overview", title, "", tuple(rows), header, len(header) - 1)


def _overview_cell(table: ResultTable, dataset: str, method: str) -> str:
    """Return mean, interval and verdict of a method on a data set, as text."""
    entry = table.entries.get((dataset, method))
    if entry is None:
        return "not run"
    if entry.interval is None:
        return f"failed ({entry.n_failed})" if entry.n_failed else "–"
    mark = f" {table.verdict(entry)}" if entry.standing in ("ahead", "level") else ""
    failed = f", {entry.n_failed} failed" if entry.n_failed else ""
    return f"{table.metric.show(entry.mean)} ({span(entry.interval, table.metric)}){mark}{failed}"


def _entries(table: ResultTable) -> Block:
    """Return a table with a row per method and data set, and all metrics."""
    several, metric = len(table.datasets) > 1, table.metric
    others = _metrics(table)[1:]
    rows = []
    for dataset in table.datasets:
        for entry in table.ranked(dataset):
            numbers = [each.show(entry.means.get(each.name, math.nan)) for each in others]
            cells = (
                entry.method,
                metric.show(entry.mean),
                span(entry.interval, metric),
                probability(entry.p_value).removeprefix("= "),
                *numbers,
                seconds(entry.seconds_fit),
                memory(entry.peak_memory),
                f"{len(entry.values)} of {len(table.records[dataset, entry.method])}",
                table.verdict(entry),
            )
            rows.append(Row((*cells, dataset) if several else cells))
    numbers = ["95 % interval", "p", *(each.short for each in others)]
    header = ("method", metric.heading, *numbers, "fit", "memory", "splits")
    named = (*header, "verdict", *(["data set"] if several else []))
    return Block("entries", "all numbers", "", tuple(rows), named, len(header) - 1)


def _comparison(table: ResultTable) -> list[Section]:
    """Return the paired comparison with the first method of the plan."""
    reference, metric, rows = table.methods[0], table.metric, []
    several = len(table.datasets) > 1

    def number(value: float) -> str:
        """Return a difference of a metric as text, in percentage points if it is in percent."""
        return signed(100.0 * value, "z.1f") if metric.in_percent else signed(value, metric.form)

    for each in table.against(reference):
        found = each.difference
        p = probability(each.p_value).removeprefix("= ")
        ends = f"{number(found.low)} to {number(found.high)}"
        ends = "–" if math.isnan(found.low) else ends
        cells = (each.method, number(found.mean), ends, str(found.n), p, each.verdict)
        rows.append(Row((*cells, each.dataset) if several else cells))
    if not rows:
        return []
    points = ", in percentage points" if metric.in_percent else ""
    sign = "Positive" if metric.higher_is_better else "Negative"
    paragraph = (
        f"The {metric.label} of each method minus that of {reference}{points}, over the splits "
        f"that both finished. {sign} differences mean that the method is better than {reference}. "
        "p-values are corrected for all pairs of methods on a data set."
    )
    header = ("method", "difference", "interval", "splits", "p", "verdict")
    named = (*header, *(["data set"] if several else []))
    part = Block("pairs", f"differences from {reference}", "", tuple(rows), named, 4)
    return [Section("comparison", f"Against {reference}", (paragraph,), (part,))]


def closing_sections(table: ResultTable) -> list[Section]:
    """Return the sections on failures, and on splits and machines."""
    found = []
    if failed := failures(table):
        rows = [
            Row((f.method, f.dataset, join([str(i + 1) for i in f.repetitions]), f.message))
            for f in failed
        ]
        header = ("method", "data set", "splits", "message")
        part = Block("failed", "failed splits", "", tuple(rows), header)
        found.append(Section("failures", "Failures", (), (part,)))
    names = ("data set", "scaling", "splits", "held-out rows", "options")
    title = "how rows were scaled and split"
    prepared = Block("splits", title, "", tuple(_splits(table)), names)
    return [*found, Section("environment", "Environment", (), (prepared, *_machines(table)))]


def _machines(table: ResultTable) -> list[Block]:
    """Return a table of facts for every machine that ran cells."""
    everything = [record for found in table.records.values() for record in found]
    machines = Counter(
        tuple((name, str(fact)) for name, fact in sorted(r.machine.items(), key=_fact_order))
        for r in everything
    )
    finished = sorted(record.finished for record in everything if record.finished)
    period = f"{finished[0]} to {finished[-1]}" if finished else "unknown"
    parts = []
    for i, (facts, number) in enumerate(machines.most_common(), start=1):
        rows = [Row(fact) for fact in (*facts, ("runs", str(number)), ("finished", period))]
        parts.append(Block(f"machine-{i}", f"machine {i}", rows=tuple(rows)))
    return parts


def _fact_order(fact: tuple[str, Any]) -> tuple[bool, str]:
    """Return a sort key that puts facts about the machine before package versions."""
    return fact[0] not in ("system", "cores", "threads", "python"), fact[0]


def _splits(table: ResultTable) -> list[Row]:
    """Return a row per data set: how its rows were scaled and split."""
    rows = []
    for dataset in table.datasets:
        found = [r for place, rs in table.records.items() if place[0] == dataset for r in rs]
        cell, n = found[0].cell, len({record.cell.repetition for record in found})
        stored = [r.result.predictions.get("y_true") for r in found]
        sizes = {len(truth) for truth in stored if truth is not None}
        held_out = join([str(size) for size in sorted(sizes)]) if sizes else "–"
        options = ", ".join(f"{k} = {v}" for k, v in cell.data.options.items()) or "–"
        how = words.describe_splits(cell.splits, n)
        rows.append(Row((dataset, cell.data.scaling, how, held_out, options)))
    return rows
