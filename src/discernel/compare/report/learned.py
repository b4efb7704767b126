"""Importances, weights and candidates of a comparison: means over splits, as tables of bars."""

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

#: Headings for candidates that are judged by leave-one-out.
_BY_LEAVING_OUT = ("leave-one-out error + pull", "pull")


def finished(table: ResultTable, dataset: str) -> dict[str, list[Record]]:
    """Return the records of a data set that did not fail, by method."""
    found = {method: table.records.get((dataset, method), []) for method in table.methods}
    return {
        method: [record for record in records if record.result.error is None]
        for method, records in found.items()
    }


def importance_blocks(table: ResultTable, dataset: str) -> Iterator[Block]:
    """Yield how much the columns matter; methods that learned the same share a table."""
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
    """Whether two methods have the same importances, but for rounding."""
    if [each.column for each in first] != [each.column for each in second]:
        return False
    ours, theirs = ([(each.importance, each.std) for each in found] for found in (first, second))
    return np.allclose(ours, theirs, equal_nan=True)


def _weights(table: ResultTable, dataset: str, *, by_source: bool) -> Iterator[Block]:
    """Yield the weights of every method that learns them: of kernels, or of all of a source."""
    for method, records in finished(table, dataset).items():
        names, weights = named_rows(record.result.weights for record in records)
        if weights.size == 0 or np.ptp(weights) <= 1e-12:
            continue  # one kernel, or equal weights: nothing was learned
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
    """Yield what the default considered: means over splits, and how often chosen.

    Weights are learned on columns scaled as is best in a split: apart for each scaling, they
    would be means over other splits, which do not compare.
    """
    for method, records in finished(table, dataset).items():
        stored = [found for r in records if (found := r.result.details.get("considered"))]
        if not stored:
            continue
        by_folds = all(accuracy is not None for *_, accuracy in stored[0])
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
            second = percent(beside) if by_folds else f"{beside:z.3f}"
            share = f"chosen in {-times} of {len(stored)}"
            rows.append(Row((line, f"{cost:z.3f}", second, share), cost))
        names = ("log-loss", "accuracy %") if by_folds else _BY_LEAVING_OUT
        yield Block("", f"{method} on {dataset}", "", tuple(rows), ("candidate", *names, ""), 2)


def _line(entry: Sequence[Any], by_folds: bool) -> str:
    """Return the name of a candidate in the table."""
    if by_folds and entry[0] == "weights":
        return "learned weights, scaled as is best"
    return candidate_label(entry[0], entry[4] if by_folds else 0.0, by_folds)


def _mean_numbers(entries: Sequence[Sequence[Any]], by_folds: bool) -> tuple[float, float]:
    """Return the mean cost of a candidate, and beside it its accuracy or its pull."""
    costs = [entry[1] + entry[2] for entry in entries]
    beside = [entry[5] if by_folds else entry[2] for entry in entries]
    return float(np.mean(costs)), float(np.mean(beside))


_NO_IMPORTANCES = (
    "A weight says how much of a kernel is used, not how important its columns are: with rkda, a "
    "source of pure noise can get weight."
)
#: Id, title, explanation, and the function that makes the tables of one data set.
LEARNED: tuple[tuple[str, str, str, Callable[[ResultTable, str], Iterator[Block]]], ...] = (
    (
        "importances",
        "Columns that matter",
        "How much of what the method predicts changes with the column, as a share of all columns. "
        "Numbers are means over splits, with one standard deviation. If two columns say the "
        "same, one may get the importance of both. Importance does not mean cause.",
        importance_blocks,
    ),
    (
        "sources",
        "Weights by source",
        f"The weights of all kernels of a source, summed: means over splits. {_NO_IMPORTANCES}",
        partial(_weights, by_source=True),
    ),
    (
        "weights",
        "Kernel weights",
        "Means over splits. Weights are over kernels normalised to the same trace. "
        f"{_NO_IMPORTANCES}",
        partial(_weights, by_source=False),
    ),
    (
        "candidates",
        "What was tried",
        "Before it learns from all training rows, the default tries several candidates on training "
        "rows that it leaves out, and chooses one, in every split anew: equal or learned "
        "weights of the kernels, and columns as they are or scaled by how much they matter. The "
        "simplest candidate is chosen, unless another one is better by more than a standard error. "
        "Where kernels were given, candidates are judged by the mean squared error of the class "
        "scores of rows that were left out one at a time (1 is knowing nothing; it is not a share "
        "of wrong rows) and what is added for weights far from equal ones: the least sum is "
        "chosen. Shorter bars are better.",
        _candidates,
    ),
)
