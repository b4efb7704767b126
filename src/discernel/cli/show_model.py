"""What the terminal shows of a model: how good, which columns matter, what was chosen and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from discernel.cli.models import SavedModel
from discernel.cli.show import escape, plain_table
from discernel.cli.summary import summarize
from discernel.experiments.formats import printable
from discernel.report.words import percent

__all__ = ["bar", "heading", "show_importances", "show_model", "show_origin"]

_MOST_COLUMNS = 10
_MOST_CLASSES = 8
_MOST_LISTED = 40
_BAR = 24


def show_model(console: Console, model: SavedModel) -> None:
    """Show rows, expectation, importances, weights, choice and certificate.

    Parameters
    ----------
    console : Console
        The terminal.
    model : SavedModel
        Fitted.
    """
    found = summarize(model)
    _show_rows(console, model, found)
    _show_expectation(console, found)
    show_importances(console, found)
    _show_choice(console, found)
    heading(console, "certificate")
    _say(console, found["certificate"])
    if found["regularization_note"]:
        _say(console, f"note  {found['regularization_note']}")


def heading(console: Console, words: str, aside: str = "") -> None:
    """Begin a part.

    Parameters
    ----------
    console : Console
        The terminal.
    words : str
        What it is about.
    aside : str
        How to read it.
    """
    console.print()
    if len(words) + 2 + len(aside) > console.width:
        console.print(f"[bold]{escape(words)}[/]")
        _say(console, aside, "dim")
    else:
        console.print(
            f"[bold]{escape(words)}[/]  [dim]{escape(aside)}[/]".removesuffix("  [dim][/]")
        )


def _say(console: Console, words: str, style: str = "") -> None:
    console.print(Padding(Text(_plain_text(words), style=style), (0, 0, 0, 2)))


def _plain_text(words: str) -> str:
    """Return anybody's text on one line, without control characters, for a `Text`."""
    return printable(words).replace("\n", " ")


def bar(share: float) -> Text:
    """Return a bar, of full length for 1."""
    return Text("█" * round(_BAR * max(0.0, min(1.0, float(share)))), style="cyan")


# ---- rows --------------------------------------------------------------------------------------


def _show_rows(console: Console, model: SavedModel, found: Mapping[str, Any]) -> None:
    columns = "column" if found["n_columns"] == 1 else "columns"
    clf = model.pipeline[-1]
    streamed = getattr(clf, "streamed_", None)
    chunks = " in chunks" if streamed is not None else ""
    console.print(
        f"[bold]{escape(found['name'])}[/]  {found['n_rows']:,} rows{chunks}, "
        f"{found['n_columns']:,} {columns}, {len(found['classes'])} classes"
    )
    for note in model.origin.notes:
        _say(console, note)
    _say(console, f"{model.target}: {_counts(found['classes'])}")
    if streamed is not None:
        _say(
            console,
            f"kernel learned on rows of a sample of {streamed.n_sample:,}; {streamed.rank:,} "
            f"landmarks have {streamed.captured:.0%} of its variance",
        )


def _counts(classes: Mapping[str, int]) -> str:
    """Return the classes with their rows, the largest first."""
    total = sum(classes.values())
    ranked = sorted(classes, key=lambda each: -classes[each])
    named = [
        f"{label} {classes[label]:,} ({100 * classes[label] / total:.0f} %)" for label in ranked
    ]
    rest = len(named) - _MOST_CLASSES
    return ", ".join(named[:_MOST_CLASSES]) + (f" and {rest} more" if rest > 0 else "")


def show_origin(console: Console, model: SavedModel) -> None:
    """Show where a model comes from, and what became of each column.

    Parameters
    ----------
    console : Console
        The terminal.
    model : SavedModel
        Fitted.
    """
    origin = model.origin
    heading(console, "where it comes from")
    table = plain_table("", "~")
    for what, words in (
        ("data", origin.source),
        ("digest", origin.digest),
        ("command", origin.command),
        ("fitted", origin.fitted),
        ("discernel", origin.version),
    ):
        if words:
            table.add_row(what, escape(words))
    console.print(Padding(_without_header(table), (0, 0, 0, 2)))
    heading(console, "columns")
    table = plain_table("~", "~")
    for column, became in islice(origin.columns.items(), _MOST_LISTED):
        table.add_row(escape(column), escape(became))
    if (n_others := len(origin.columns) - _MOST_LISTED) > 0:
        table.add_row(
            Text(f"{n_others:,} more", style="dim"), Text("--json lists all", style="dim")
        )
    console.print(Padding(_without_header(table), (0, 0, 0, 2)))


def _without_header(table: Table) -> Table:
    table.show_header = False
    return table


# ---- how good ----------------------------------------------------------------------------------


def _show_expectation(console: Console, found: Mapping[str, Any]) -> None:
    expected, majority = found["expected"], found["majority"]
    if expected is None:
        return
    heading(console, "expected of new rows", f"on {expected['n_rows']:,} rows, {expected['where']}")
    table = plain_table("", ">", "~", "~")
    table.add_row(
        "accuracy",
        f"{percent(expected['accuracy'])} %",
        f"95 % interval {percent(expected['low'])} to {percent(expected['high'])}",
        f"always {escape(majority['class'])!r}: {percent(majority['share'])} %" if majority else "",
    )
    table.add_row(
        "log-loss",
        f"{expected['log_loss']:z.3f}",
        "smaller is better",
        f"class sizes alone: {majority['log_loss']:z.3f}" if majority else "",
    )
    console.print(Padding(_without_header(table), (0, 0, 0, 2)))


def show_importances(console: Console, found: Mapping[str, Any]) -> None:
    """Show the most important columns and, where there are several, the weights of sources.

    Parameters
    ----------
    console : Console
        The terminal.
    found : dict
        What `summarize` returned.
    """
    columns: Sequence[Mapping[str, Any]] = found["importances"]
    if columns:
        heading(
            console,
            "columns that matter",
            "share of what predictions lose without them, ± standard error",
        )
        table = plain_table("~", ">", "")
        largest = columns[0]["importance"] or 1.0
        for each in columns[:_MOST_COLUMNS]:
            shown = f"{percent(each['importance'])} ± {percent(each['std'])} %"
            table.add_row(escape(each["column"]), shown, bar(each["importance"] / largest))
        rest = columns[_MOST_COLUMNS:]
        if rest:
            name = "1 other column" if len(rest) == 1 else f"{len(rest):,} other columns"
            share = percent(sum(each["importance"] for each in rest))
            table.add_row(Text(name, style="dim"), f"{share} %", "")
        console.print(Padding(_without_header(table), (0, 0, 0, 2)))
    _show_sources(console, found["sources"])


def _show_sources(console: Console, sources: Sequence[Mapping[str, Any]]) -> None:
    """Show what each source is worth, and the weight of its kernels."""
    if not sources:
        return
    if "importance" not in sources[0]:
        heading(console, "sources", "weight: how much of the kernels of each is used")
        _show_weights(console, {each["source"]: each["weight"] for each in sources})
        return
    heading(console, "sources", "what each is worth to left-out rows, ± standard error")
    largest = max(each["importance"] for each in sources) or 1.0
    table = plain_table("~source", ">worth", ">weight", "")
    for each in sources:
        worth = f"{percent(each['importance'])} ± {percent(each['std'])} %"
        drawn = bar(each["importance"] / largest)
        table.add_row(escape(each["source"]), worth, f"{each['weight']:z.3f}", drawn)
    console.print(Padding(table, (0, 0, 0, 2)))


def _show_weights(console: Console, weights: Mapping[str, float]) -> None:
    table = plain_table("~", ">", "")
    largest = max(weights.values())
    used = {name: weight for name, weight in weights.items() if weight >= 0.0005}
    for name, weight in used.items():
        table.add_row(escape(name), f"{weight:z.3f}", bar(weight / largest))
    if n_others := len(weights) - len(used):
        table.add_row(Text(f"{n_others:,} more", style="dim"), "0.000", "")
    console.print(Padding(_without_header(table), (0, 0, 0, 2)))


# ---- what was chosen ---------------------------------------------------------------------------


def _show_choice(console: Console, found: Mapping[str, Any]) -> None:
    """Show the candidates, the chosen one first, what it was chosen for, and the kernels."""
    candidates: Sequence[Mapping[str, Any]] = found["candidates"]
    if candidates:
        by_folds = "log_loss" in candidates[0]
        heading(
            console,
            "what was tried",
            "on left-out rows; scaled: important columns count more"
            if by_folds
            else "each row predicted without itself",
        )
        numbers = (">log-loss", ">accuracy %") if by_folds else (">squared error", ">pull")
        table = plain_table("~", *numbers, ">λ", "")
        for each in candidates:
            first = each is candidates[0]
            cells = (
                (f"{each['log_loss']:z.3f}", percent(each["accuracy"]))
                if by_folds
                else (f"{each['squared_error']:z.3f}", f"{each['pull']:z.3f}")
            )
            mark = Text("← chosen" if first else "", style="bold")
            name = Text(each["name"], style="bold" if first else "")
            table.add_row(name, *cells, f"{each['regularization']:.0e}", mark)
        console.print(Padding(table, (0, 0, 0, 2)))
        if found["why_chosen"]:
            _say(console, found["why_chosen"], "dim")
        if not by_folds:
            _say(console, "squared error of the class scores: 1 is that of knowing nothing", "dim")
    kernels: Mapping[str, float] = found["kernels"]
    if len(kernels) > 1 and np.ptp(list(kernels.values())) < 1e-9:
        families = Counter(name.partition("(")[0] for name in kernels)
        named = ", ".join(f"{number} {family}" for family, number in families.items())
        heading(console, "kernels", "all with the same weight")
        _say(console, named)
    else:
        heading(console, "kernels", "how much of each is used, not how much a column matters")
        _show_weights(console, kernels)
    if not candidates:
        _say(console, f"λ = {found['regularization']:.3g}")
