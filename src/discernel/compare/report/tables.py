"""The tables of a comparison report, as blocks."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discernel.compare.metrics import PredictionMetric, metrics_beside
from discernel.compare.report.words import describe_splits, span
from discernel.compare.tables import (
    LEADING,
    Entry,
    Ranking,
    ResultTable,
    failures,
    mean_importances,
    named_rows,
)
from discernel.inspection.source_weights import sum_by
from discernel.learn import Candidate
from discernel.programs.solution import compared_by_folds
from discernel.show.facts import Block, ImportanceFacts, Row, importance_block
from discernel.show.words import join, memory, percent, probability, seconds, signed

#: Column headings for candidates that were compared by leave-one-out.
_LEAVE_ONE_OUT = ("leave-one-out error + pull", "pull")


# ---- results -----------------------------------------------------------------------------------


def known_metrics(table: ResultTable) -> list[PredictionMetric]:
    """Return the metrics that at least one method has, the metric of the ranking first."""
    known = {name for entry in table.entries.values() for name in entry.means}
    found = [each for name, each in metrics_beside(table.metric).items() if name in known]
    return sorted(found, key=lambda metric: metric != table.metric)


def overview(table: ResultTable, ranking: Ranking | None) -> Block:
    """Return a table with a row per method: its mean on every data set, and its mean rank."""
    ranks = {} if ranking is None else ranking.ranks
    rows = []
    for method in table.methods:
        cells = [_overview_cell(table.entries.get((name, method))) for name in table.datasets]
        rank = [f"{ranks[method]:.2f}" if method in ranks else "–"] if ranks else []
        rows.append(Row((method, *cells, *rank)))
    header = ("method", *table.datasets, *(["mean rank"] if ranks else []))
    title = f"{table.metric.heading} by method and data set"
    return Block("overview", title, "", tuple(rows), header, len(header) - 1)


def _overview_cell(entry: Entry | None) -> str:
    """Return mean, interval and verdict of a method on a data set, as text."""
    if entry is None:
        return "not run"
    if entry.interval is None:
        return f"failed ({entry.n_failed})" if entry.n_failed else "–"
    mark = f" {entry.verdict}" if entry.verdict in LEADING else ""
    failed = f", {entry.n_failed} failed" if entry.n_failed else ""
    return f"{entry.metric.show(entry.mean)} ({span(entry.interval, entry.metric)}){mark}{failed}"


def all_numbers(table: ResultTable) -> Block:
    """Return a table with a row per method and data set, and all metrics."""
    metric, others, rows = table.metric, known_metrics(table)[1:], []
    for entry in (entry for dataset in table.datasets for entry in table.ranked(dataset)):
        means = entry.means
        cells = (
            entry.method,
            metric.show(entry.mean),
            span(entry.interval, metric),
            probability(entry.p_value).removeprefix("= "),
            *(each.show(means.get(each.name, math.nan)) for each in others),
            seconds(entry.mean_time("seconds_fit")),
            memory(entry.peak_memory),
            f"{len(entry.values)} of {len(entry.records)}",
            entry.verdict,
        )
        rows.append((*cells, entry.dataset))
    numbers = (metric.heading, "95 % interval", "p", *(each.short for each in others))
    header = ("method", *numbers, "fit", "memory", "splits", "verdict")
    block = Block("entries", "all numbers", n_numbers=len(header) - 2)
    return _of_datasets(table, block, header, rows)


def differences(table: ResultTable) -> Block:
    """Return the paired comparison with the first method of the plan."""
    reference, metric, rows = table.methods[0], table.metric, []

    def number(value: float) -> str:
        """Return a difference of a metric as text, in percentage points if it is in percent."""
        return signed(metric.unit * value, "z.1f" if metric.in_percent else metric.form)

    for pair in table.against(reference):
        found = pair.difference
        p = probability(found.p_value).removeprefix("= ")
        ends = "–" if math.isnan(found.low) else f"{number(found.low)} to {number(found.high)}"
        cells = (pair.method, number(found.mean), ends, str(found.n), p, pair.verdict)
        rows.append((*cells, pair.dataset))
    header = ("method", "difference", "interval", "splits", "p", "verdict")
    block = Block("pairs", f"differences from {reference}", n_numbers=4)
    return _of_datasets(table, block, header, rows)


def _of_datasets(
    table: ResultTable, block: Block, header: Sequence[str], rows: Sequence[tuple[str, ...]]
) -> Block:
    """Return a block with rows that end with a data set, which is shown if there are several."""
    end = None if len(table.datasets) > 1 else -1
    made = tuple(Row(cells[:end]) for cells in rows)
    return replace(block, rows=made, header=(*header, "data set")[:end])


# ---- learned kernels ---------------------------------------------------------------------------


def importance_blocks(table: ResultTable, dataset: str) -> Iterator[Block]:
    """Yield tables of column importances; methods with the same importances share a table."""
    shared: list[tuple[list[ImportanceFacts], list[str]]] = []
    for entry in table.of_dataset(dataset):
        found = mean_importances(entry.successful)
        same = next((methods for other, methods in shared if _alike(other, found)), None)
        if same is not None:
            same.append(entry.method)
        elif found:
            shared.append((found, [entry.method]))
    for columns, methods in shared:
        yield importance_block(f"{join(methods)} on {dataset}", columns, spread="deviation")


def _alike(first: Sequence[ImportanceFacts], second: Sequence[ImportanceFacts]) -> bool:
    """Whether two methods have the same importances, up to rounding."""
    if [each.column for each in first] != [each.column for each in second]:
        return False
    ours, theirs = ([(each.importance, each.std) for each in found] for found in (first, second))
    return np.allclose(ours, theirs, equal_nan=True)


def weight_blocks(table: ResultTable, dataset: str, *, by_source: bool) -> Iterator[Block]:
    """Yield the weights of every method that learns weights, by kernel or summed by source."""
    for entry in table.of_dataset(dataset):
        names, weights = named_rows(record.result.weights for record in entry.successful)
        if weights.size == 0 or np.ptp(weights) <= 1e-12:
            continue  # a single kernel, or equal weights
        sources: dict[str, str] = {}
        for record in entry.successful:
            sources |= record.result.details.get("sources") or {}
        if by_source and not sources:
            continue
        if by_source:
            names, weights = sum_by([sources.get(name, "all columns") for name in names], weights)
        means, (low, high) = weights.mean(axis=0), np.quantile(weights, [0.25, 0.75], axis=0)
        rows = tuple(
            Row((names[i], f"{means[i]:z.3f}", f"{low[i]:z.3f} to {high[i]:z.3f}"), float(means[i]))
            for i in np.argsort(-means, kind="stable")
        )
        kind, title = "source" if by_source else "kernel", f"{entry.method} on {dataset}"
        yield Block("", title, "", rows, (kind, "mean weight", "quartiles"), 2)


def candidate_blocks(table: ResultTable, dataset: str) -> Iterator[Block]:
    """Yield the candidates of the default: mean losses over splits, and how often each was chosen.

    Learned weights use the best scaling of each split. They are one row of the table: a row per
    scaling would average over different splits.
    """
    for entry in table.of_dataset(dataset):
        known = (r.result.details.get("considered") for r in entry.successful)
        stored = [list(map(_candidate, found)) for found in known if found]
        if not stored:
            continue
        by_folds = compared_by_folds(stored[0])
        numbers = stored[0][0].accuracy is None
        by_line: dict[str, list[Candidate]] = defaultdict(list)
        for each in (each for found in stored for each in found):
            by_line[_line(each, by_folds)].append(each)
        chosen = Counter(_line(found[0], by_folds) for found in stored)
        lines = sorted(
            (-chosen[line], *_mean_numbers(entries, by_folds), line)
            for line, entries in by_line.items()
        )
        rows = []
        for times, cost, beside, line in lines:
            second = percent(beside) if by_folds and not numbers else f"{beside:z.3f}"
            share = f"chosen in {-times} of {len(stored)}"
            rows.append(Row((line, f"{cost:z.3f}", second, share), cost))
        names = ("squared error", "R²") if numbers else ("log-loss", "accuracy %")
        header = ("candidate", *(names if by_folds else _LEAVE_ONE_OUT), "")
        yield Block("", f"{entry.method} on {dataset}", "", tuple(rows), header, 2)


def _candidate(stored: Sequence[Any]) -> Candidate:
    """Return a stored candidate; earlier versions did not store whether columns were quantiles."""
    name, error, pull, lam, strength, accuracy, *quantiles = stored
    return Candidate(name, np.empty(0), lam, error, pull, strength, accuracy, any(quantiles))


def _line(candidate: Candidate, by_folds: bool) -> str:
    """Return the name of the table row of a candidate."""
    if by_folds and candidate.name == "weights":
        return "learned weights, best scaling"
    return candidate.label(by_folds)


def _mean_numbers(candidates: Sequence[Candidate], by_folds: bool) -> tuple[float, float]:
    """Return the mean loss of a candidate, and its mean accuracy, R² or pull."""
    shown = [1.0 - each.error if each.accuracy is None else each.accuracy for each in candidates]
    beside = shown if by_folds else [each.pull for each in candidates]
    return float(np.mean([each.score for each in candidates])), float(np.mean(beside))


# ---- failures and environment ------------------------------------------------------------------


def failure_block(table: ResultTable) -> Block:
    """Return a table of all failures."""
    rows = tuple(
        Row((f.method, f.dataset, join([str(i + 1) for i in f.repetitions]), f.message))
        for f in failures(table)
    )
    return Block("failed", "failed splits", "", rows, ("method", "data set", "splits", "message"))


def splits_block(table: ResultTable) -> Block:
    """Return a table with a row per data set: how its rows were scaled and split."""
    rows = []
    for dataset in table.datasets:
        found = [record for entry in table.of_dataset(dataset) for record in entry.records]
        cell, n = found[0].cell, len({record.cell.repetition for record in found})
        stored = [record.result.predictions.get("y_true") for record in found]
        sizes = {len(truth) for truth in stored if truth is not None}
        held_out = join([str(size) for size in sorted(sizes)]) if sizes else "–"
        options = ", ".join(f"{k} = {v}" for k, v in cell.data.options.items()) or "–"
        how = describe_splits(cell.splits, n)
        rows.append(Row((dataset, cell.data.scaling, how, held_out, options)))
    header = ("data set", "scaling", "splits", "held-out rows", "options")
    return Block("splits", "how rows were scaled and split", "", tuple(rows), header)


def machine_blocks(table: ResultTable) -> Iterator[Block]:
    """Yield a table of facts for every machine that ran cells, the most used first."""
    records = [record for entry in table.entries.values() for record in entry.records]
    machines = Counter(
        tuple((name, str(fact)) for name, fact in sorted(r.machine.items(), key=_fact_order))
        for r in records
    )
    finished = sorted(record.finished for record in records if record.finished)
    period = f"{finished[0]} to {finished[-1]}" if finished else "unknown"
    for i, (facts, number) in enumerate(machines.most_common(), start=1):
        rows = tuple(Row(fact) for fact in (*facts, ("runs", str(number)), ("finished", period)))
        yield Block(f"machine-{i}", f"machine {i}", rows=rows)


def _fact_order(fact: tuple[str, Any]) -> tuple[bool, str]:
    """Return a sort key that puts facts about the machine before package versions."""
    return fact[0] not in ("system", "cores", "threads", "python"), fact[0]
