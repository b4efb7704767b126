"""Exports of a comparison: its origin, and its numbers as JSON and CSV."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from discernel.compare.compare import Comparison
from discernel.compare.metrics import metrics_beside
from discernel.compare.tables import Entry
from discernel.rows.labelled import holds_numbers
from discernel.rows.writing import csv_text
from discernel.show.facts import Origin


def count_classes(y: Any) -> dict[str, int]:
    """Return the number of rows of each class; empty for numbers to predict."""
    y = np.asarray(y)
    classes, counts = np.unique(y[:0] if holds_numbers(y) else y, return_counts=True)
    return dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True))


def origin_of(found: Comparison, command: str = "") -> Origin:
    """Return the origin of a comparison: data, command and versions.

    Parameters
    ----------
    found : Comparison
        The result of `compare`.
    command : str, default=""
        The command line that ran the comparison.
    """
    file = found.plan.datasets[0].file
    return Origin(
        source=found.dataset.source if file else f"{found.dataset.name}, {found.dataset.source}",
        digest=str(file.get("digest", "")),
        target=str(file.get("target", "")),
        command=command,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        class_counts=count_classes(found.dataset.y),
        columns=dict(found.columns),
        notes=found.notes,
    )


# ---- numbers -----------------------------------------------------------------------------------


def comparison_json(found: Comparison, origin: Origin, conclusion: tuple[str, ...] = ()) -> str:
    """Return a comparison as JSON; unknown numbers are null.

    Parameters
    ----------
    found : Comparison
        The result of `compare`.
    origin : Origin
        From `origin_of`.
    conclusion : tuple of str
        Sentences that summarize the comparison.
    """
    method, columns = found.importances or ("", [])
    splits = found.plan.splits
    content = {
        "dataset": found.dataset.name,
        "metric": found.metric,
        "higher_is_better": found.table.metric.higher_is_better,
        "splits": {"n": splits.n, "train_size": splits.train_size, "seed": splits.seed},
        "methods": [
            _numbers(entry) | {"values": [entry.values[i] for i in sorted(entry.values)]}
            for entry in found.ranking
        ],
        "importances": [
            {"method": method, "column": each.column, "mean": each.importance, "spread": each.std}
            for each in columns
        ],
        "conclusion": list(conclusion),
        "origin": asdict(origin),
    }
    return json.dumps(_known(content), indent=1, ensure_ascii=False) + "\n"


def comparison_csv(found: Comparison) -> str:
    """Return a comparison as CSV: one row per method, the best first.

    Parameters
    ----------
    found : Comparison
        The result of `compare`.
    """
    rows = [_known(_numbers(entry)) for entry in found.ranking]
    return csv_text(list(rows[0]), [list(row.values()) for row in rows])


def _numbers(entry: Entry) -> dict[str, Any]:
    """Return the numbers of an entry by name; low and high bound the metric of the ranking."""
    interval, means = entry.interval, entry.means
    return {
        "method": entry.method,
        **{name: means.get(name, math.nan) for name in metrics_beside(entry.metric)},
        "n_splits": len(entry.values),
        "n_failed": entry.n_failed,
        "low": math.nan if interval is None else interval.low,
        "high": math.nan if interval is None else interval.high,
        "verdict": entry.verdict,
        "p_value": entry.p_value,
        "seconds_fit": entry.mean_time("seconds_fit"),
        "seconds_predict": entry.mean_time("seconds_predict"),
    }


def _known(value: Any) -> Any:
    """Return plain data with None for numbers that are not finite, which JSON does not have."""
    return json.loads(json.dumps(value), parse_constant=lambda name: None)
