"""Show comparisons on the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discernel.cli.show import escape
from discernel.compare.compare import Comparison
from discernel.compare.metrics import PredictionMetric, metrics_beside
from discernel.compare.report.screen import drawn_range
from discernel.compare.report.words import DEFAULT, conclusion, span
from discernel.compare.store import Record
from discernel.compare.tables import Entry, failures, summarize
from discernel.show.facts import importance_block
from discernel.show.terminal import plain_table, print_blocks
from discernel.show.words import plural, seconds

#: The minimum width of the terminal, in characters, for a drawing of the intervals.
_WIDE = 110
_DRAWING = 28
#: Metrics shown besides the metric of the ranking: the last three others of the same kind.
_SHOWN = ("accuracy", "balanced_accuracy", "roc_auc", "log_loss", "r2", "rmse")
#: The meanings of abbreviated metrics: of classes, and of numbers.
_MEANINGS = (
    "bal.: balanced accuracy; log-loss: lower is better",
    "R²: 1 is perfect, 0 is predicting the mean; RMSE: root mean squared error, lower is better",
)


def show_comparison(console: Console, found: Comparison) -> None:
    """Show the ranking of methods, its meaning in sentences, and importances of columns."""
    known = metrics_beside(found.table.metric)
    beside = [known[name] for name in _SHOWN if name in known and name != found.metric][-3:]
    table = _table(console, found, beside)
    unlimited = console.options.update(max_width=1000)
    if console.measure(table, options=unlimited).maximum > console.width:  # long names
        table = _table(console, found, [each for each in beside if each.name != "roc_auc"])
    console.print()
    console.print(table)
    console.print()
    _show_meaning(console, found)
    _show_importances(console, found)
    show_failures(console, found.records)


def _show_meaning(console: Console, found: Comparison) -> None:
    """Explain the table in sentences."""
    for dataset in found.table.datasets:
        for sentence in conclusion(found.table, dataset):
            console.print(escape(sentence))
    console.print()
    n, share = found.plan.splits.n, found.plan.splits.train_size
    console.print(
        f"[dim]Means over {plural(n, 'random split')}: {share:.0%} of the rows for training, the "
        f"others for testing. {_MEANINGS[found.table.metric.of_numbers]}; fit: training time. "
        "tied: the difference from the best may be chance; worse: it is significant "
        "(p < 0.05). Intervals and tests account for training rows that splits share, and tests "
        f"for all pairs of methods. The default is {DEFAULT}.[/]"
    )


def _show_importances(console: Console, found: Comparison) -> None:
    """Show the most important columns of the first method with importances."""
    if found.importances is None:
        return
    method, columns = found.importances
    console.print()
    aside = "share ± standard deviation over splits"
    block = importance_block(f"columns that matter to {method}", columns, aside)
    print_blocks(console, [block.escaped()])


def show_failures(console: Console, records: Sequence[Record]) -> None:
    """Show which methods failed, on which data, and why."""
    if not any(record.result.error is not None for record in records):
        return
    console.print()
    for failure in failures(summarize(records)):
        console.print(
            f"[red]failed[/]  {escape(failure.method)} on {escape(failure.dataset)}, "
            f"{len(failure.repetitions)} times: {escape(failure.message)}"
        )


def _table(console: Console, found: Comparison, beside: Sequence[PredictionMetric]) -> Table:
    """Return a table of methods, the best first, with the ranked metric and some others.

    A wide terminal also shows the intervals as a drawing, with the ends of its axis as heading.
    """
    metric, numbers = found.table.metric, [f">{each.short}" for each in beside]
    axis = drawn_range(found.ranking) if console.width >= _WIDE else None
    drawing = []
    if axis is not None:
        left, right = (f"{100 * end:.0f}" if metric.in_percent else f"{end:.2f}" for end in axis)
        drawing = [Text(f"{left}{right:>{_DRAWING - len(left)}}", style="dim")]
    table = plain_table(
        "method", f">{metric.short}", ">95 % interval", *drawing, *numbers, ">fit", "verdict"
    )
    for entry in found.ranking:
        is_best, means = entry.verdict.endswith("best"), entry.means
        style = "bold" if is_best else "dim" if entry.verdict in ("worse", "failed") else ""
        cells = (entry.method, metric.show(entry.mean), span(entry.interval, metric))
        others = [each.show(means.get(each.name, math.nan)) for each in beside]
        time = seconds(entry.mean_time("seconds_fit"), digits=2)
        table.add_row(
            *(Text(text, style=style) for text in cells),
            *([] if axis is None else [_drawing(entry, axis)]),
            *(Text(text, style=style) for text in (*others, time, entry.verdict)),
        )
    return table


def _drawing(entry: Entry, axis: tuple[float, float]) -> Text:
    """Return the interval and mean of an entry as a line of characters."""
    if entry.interval is None:
        return Text("")
    ends = (entry.mean, entry.interval.low, entry.interval.high)
    cells = [" "] * _DRAWING
    if not axis[0] <= entry.mean <= axis[1]:
        cells[0 if entry.mean < axis[0] else -1] = "◂" if entry.mean < axis[0] else "▸"
        return Text("".join(cells), style="dim")
    places = (_DRAWING - 1) * (np.array(ends) - axis[0]) / (axis[1] - axis[0])
    mean, low, high = np.nan_to_num(places.round(), nan=0).astype(int).tolist()
    if not math.isnan(entry.interval.low):
        cells[low : high + 1] = ["─"] * (high - low + 1)
    cells[mean] = "●"
    return Text("".join(cells), style="dim" if entry.verdict == "worse" else "cyan")
