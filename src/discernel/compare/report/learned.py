"""Importances, weights and candidates of a comparison: means over splits, as tables with bars."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from discernel.compare.store import Record
from discernel.compare.tables import (
    ResultTable,
    mean_importances,
    named_rows,
)
from discernel.inspection.source_weights import sum_by
from discernel.show.facts import Block, ImportanceFacts, Row, importance_block
from discernel.show.words import candidate_label, join, percent

#: Column headings for candidates that were compared by leave-one-out.
_LEAVE_ONE_OUT = ("leave-one-out error + pull", "pull")


def finished(table: ResultTable, dataset: str) -> dict[str, list[Record]]:
    """Return the successful records of a data set, by method."""
    found = {method: table.records.get((dataset, method), []) for method in table.methods}
    return {
        method: [record for record in records if record.result.error is None]
        for method, records in found.items()
    }


def importance_blocks(table: ResultTable, dataset: str) -> Iterator[Block]:
    """Yield tables of column importances; methods with the same importances share a table."""
    shared: list[tuple[list[ImportanceFacts], list[str]]] = []
    for method, records in finished(table, dataset).items():
        found = mean_importances(records)
        same = next((methods for other, methods in shared if _alike(other, found)), None)
        if same is not None:
            same.append(method)
        elif found:
            shared.append((found, [method]))
    for columns, methods in shared:
        yield importance_block(f"{join(methods)} on {dataset}", columns, spread="deviation")


def _alike(first: Sequence[ImportanceFacts], second: Sequence[ImportanceFacts]) -> bool:
    """Whether two methods have the same importances, up to rounding."""
    if [each.column for each in first] != [each.column for each in second]:
        return False
    ours, theirs = ([(each.importance, each.std) for each in found] for found in (first, second))
    return np.allclose(ours, theirs, equal_nan=True)


def _weights(table: ResultTable, dataset: str, *, by_source: bool) -> Iterator[Block]:
    """Yield the weights of every method that learns weights, by kernel or summed by source."""
    for method, records in finished(table, dataset).items():
        names, weights = named_rows(record.result.weights for record in records)
        if weights.size == 0 or np.ptp(weights) <= 1e-12:
            continue  # a single kernel, or equal weights
        sources: dict[str, str] = {}
        for record in records:
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
        kind, title = "source" if by_source else "kernel", f"{method} on {dataset}"
        header = (kind, "mean weight", "quartiles")
        yield Block("", title, "", rows, header, 2, kind, "{:z.1f} %")


def _candidates(table: ResultTable, dataset: str) -> Iterator[Block]:
    """Yield the candidates of the default: mean losses over splits, and how often each was chosen.

    Learned weights use the best scaling of each split. They are one row of the table: a row per
    scaling would average over different splits.
    """
    for method, records in finished(table, dataset).items():
        stored = [found for r in records if (found := r.result.details.get("considered"))]
        if not stored:
            continue
        by_folds = any(entry[4] > 0 or entry[5] is not None for entry in stored[0])
        numbers = stored[0][0][5] is None  # numbers have no accuracy
        by_line: dict[str, list[Any]] = defaultdict(list)
        for entry in (entry for found in stored for entry in found):
            by_line[_line(entry, by_folds)].append(entry)
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
        names = names if by_folds else _LEAVE_ONE_OUT
        yield Block("", f"{method} on {dataset}", "", tuple(rows), ("candidate", *names, ""), 2)


def _line(entry: Sequence[Any], by_folds: bool) -> str:
    """Return the name of the table row of a candidate."""
    if by_folds and entry[0] == "weights":
        return "learned weights, best scaling"
    # Comparisons of earlier versions did not store whether columns were quantiles.
    return candidate_label(entry[0], entry[4] if by_folds else 0.0, by_folds, any(entry[6:]))


def _mean_numbers(entries: Sequence[Sequence[Any]], by_folds: bool) -> tuple[float, float]:
    """Return the mean loss of a candidate, and its mean accuracy, R² or pull."""
    costs = [entry[1] + entry[2] for entry in entries]
    shown = [1.0 - entry[1] if entry[5] is None else entry[5] for entry in entries]
    beside = shown if by_folds else [entry[2] for entry in entries]
    return float(np.mean(costs)), float(np.mean(beside))


_WEIGHTS_NOTE = (
    "A weight says how much of a kernel is used, not how important its columns are: with rkda, a "
    "source of pure noise can have a positive weight."
)
#: Id, title, explanation, and the function that makes the tables of one data set.
LEARNED: tuple[tuple[str, str, str, Callable[[ResultTable, str], Iterator[Block]]], ...] = (
    (
        "importances",
        "Columns that matter",
        "The share of each column in the increase of the held-out loss when columns are shuffled: "
        "means over splits ± one standard deviation. If two columns carry the same information, "
        "one may have the importance of both. Importance does not imply causation.",
        importance_blocks,
    ),
    (
        "sources",
        "Weights by source",
        f"Sums of the weights of all kernels of a source; means over splits. {_WEIGHTS_NOTE}",
        partial(_weights, by_source=True),
    ),
    (
        "weights",
        "Kernel weights",
        f"Means over splits. Kernels are normalized to the same trace. {_WEIGHTS_NOTE}",
        partial(_weights, by_source=False),
    ),
    (
        "candidates",
        "What was tried",
        "In every split, the default compares candidates by cross-validation on the training rows: "
        "equal or learned kernel weights, with columns unscaled or scaled by their importance. The "
        "simplest candidate is chosen unless another one is better by more than one standard "
        "error. If kernels were given, candidates are compared by the leave-one-out squared error "
        "of the class scores or numbers (1 for a constant prediction; not an error rate) plus a "
        "penalty for unequal weights, the pull; the smallest sum is chosen. Shorter bars are "
        "better.",
        _candidates,
    ),
)
