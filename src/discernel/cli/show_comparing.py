"""What the terminal shows of comparisons and of published tables run again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from discernel.cli.show import escape, plain_table
from discernel.experiments.compare import Comparison
from discernel.experiments.reproduce import Reproduced, Reproduction, both_numbers
from discernel.experiments.store import Record
from discernel.experiments.tables import Entry, failures, summarize
from discernel.report.words import describe_dataset, percent, probability, seconds, span

__all__ = ["show_comparison", "show_reproducible", "show_reproduction"]

#: From how many columns on there is room for a drawing of the intervals.
_WIDE = 100
_DRAWING = 28
_VERDICTS = {
    "agrees": "green",
    "better": "green",
    "differs": "red",
    "not judged": "dim",
    "not run": "dim",
}


# ---- compare -----------------------------------------------------------------------------------


def show_comparison(console: Console, found: Comparison) -> None:
    """Show the ranking, with intervals, and say whether differences mean anything."""
    ranking = found.ranking
    draw, axis = console.width >= _WIDE, _axis(ranking)
    drawing = [_scale(axis)] if draw else []
    table = plain_table(
        "method", ">accuracy %", ">95 % interval", *drawing, "against the first", ">one fit"
    )
    for entry in ranking:
        table.add_row(*_row(entry, ranking[0], axis if draw else None))
    console.print()
    console.print(table)
    console.print()
    for dataset in found.table.datasets:
        console.print(escape(describe_dataset(found.table, dataset)), highlight=False)
    _show_failures(console, found.records)
    console.print(
        f"[dim]{found.plan.splits.n} stratified divisions; intervals and tests corrected for the "
        "training rows they share.[/]"
    )


def _show_failures(console: Console, records: Sequence[Record]) -> None:
    if not any(record.result.error is not None for record in records):
        return
    for failure in failures(summarize(records)):
        console.print(
            f"[red]failed[/]  {escape(failure.method)} on {escape(failure.dataset)}, "
            f"{len(failure.repetitions)} times: {escape(failure.message)}"
        )


def _row(entry: Entry, first: Entry, axis: tuple[float, float] | None) -> Iterator[Text | str]:
    style = "bold" if entry is first else "dim" if entry.standing in ("behind", "failed") else ""
    yield Text(entry.method, style=style)
    yield percent(entry.mean)
    yield "–" if entry.interval is None else span(entry.interval)
    if axis is not None:
        yield _drawing(entry, axis)
    yield Text(_standing(entry, first), style=style)
    yield seconds(entry.seconds_fit)


def _standing(entry: Entry, first: Entry) -> str:
    if entry.standing == "failed":
        return "failed"
    if entry is first:
        return "clearly first" if entry.standing == "ahead" else "first"
    if entry.mean == first.mean:
        return "the same"
    if entry.standing == "behind":
        return f"clearly worse, p {probability(entry.p_value)}"
    return "cannot tell" if entry.standing == "untested" else "≈ may be chance"


def _axis(ranking: Sequence[Entry]) -> tuple[float, float]:
    """Return the ends of the drawing: whole per cents around all intervals."""
    known = [entry.interval for entry in ranking if entry.interval is not None]
    lows = [i.mean if math.isnan(i.low) else i.low for i in known] or [0.0]
    highs = [i.mean if math.isnan(i.high) else i.high for i in known] or [1.0]
    low, high = math.floor(100 * min(lows)) / 100, math.ceil(100 * max(highs)) / 100
    return low, max(high, low + 0.01)


def _scale(axis: tuple[float, float]) -> Text:
    left, right = (f"{100 * end:.0f}" for end in axis)
    return Text(left + " " * (_DRAWING - len(left) - len(right)) + right, style="dim")


def _drawing(entry: Entry, axis: tuple[float, float]) -> Text:
    if entry.interval is None:
        return Text("")

    def place(value: float) -> int:
        return round((_DRAWING - 1) * (value - axis[0]) / (axis[1] - axis[0]))

    cells = [" "] * _DRAWING
    if not math.isnan(entry.interval.low):
        low, high = place(entry.interval.low), place(entry.interval.high)
        cells[low : high + 1] = ["─"] * (high - low + 1)
    cells[place(entry.mean)] = "●"
    return Text("".join(cells), style="dim" if entry.standing == "behind" else "cyan")


# ---- reproduce ---------------------------------------------------------------------------------


def show_reproducible(console: Console, found: Sequence[Reproduction]) -> None:
    """List the tables and figures that can be run again."""
    table = plain_table("name", ">cells", ">runs", "~what it holds")
    for each in found:
        runs = sum(len(plan.cells()) for plan in each.plans)
        table.add_row(each.id, str(len(each.links)), f"{runs:,}", escape(each.title))
    console.print(table)
    console.print("\nRun some: discernel reproduce NAME ... [--quick]")


def show_reproduction(
    console: Console, found: Reproduction, cells: Sequence[Reproduced], records: Sequence[Record]
) -> None:
    """Show our numbers beside the published ones, and what failed."""
    console.print()
    console.print(f"[bold]{found.id}[/]  {escape(found.title)}")
    reasons = list(dict.fromkeys(each.reason for each in cells if each.reason))
    if cells:
        console.print(_beside(cells, reasons))
        units = sorted({each.cell.unit.replace("_", " ") for each in cells})
        console.print(f"[dim]in {', '.join(units)}; ± one standard error[/]")
    _show_failures(console, records)
    for number, words in enumerate(reasons, start=1):
        console.print(f"[dim]{number}[/] {escape(words)}")
    for words in found.notes:
        console.print(f"[dim]·[/] {escape(words)}")


def _beside(cells: Sequence[Reproduced], reasons: Sequence[str]) -> Table:
    """Return a row per cell; numbers in the last column stand for reasons."""
    table = plain_table("~row", "~column", ">published", ">ours", "verdict")
    for each in cells:
        verdict = Text(each.verdict, style=_VERDICTS[each.verdict])
        if each.reason:
            verdict.append(f" {reasons.index(each.reason) + 1}", style="dim")
        printed, ours = both_numbers(each)
        printed += "?" * each.cell.uncertain
        table.add_row(escape(each.cell.row), escape(each.cell.column), printed, ours, verdict)
    return table
