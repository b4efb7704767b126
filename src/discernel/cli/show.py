"""What the terminal shows: tables and lines, made of results and nothing else."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from rich import markup
from rich.console import Console
from rich.table import Table
from rich.text import Text
from threadpoolctl import threadpool_info

import discernel
from discernel.backend import FloatArray
from discernel.bench import Change, Measured
from discernel.cli.models import Model
from discernel.datasets import Dataset
from discernel.datasets.catalog import CATALOG, CatalogEntry
from discernel.datasets.sources import FOLDER_VARIABLE, data_folder
from discernel.displays.common import are_by_folds, candidate_name, kernel_sources, sum_by
from discernel.experiments.formats import printable
from discernel.experiments.machine import package_version
from discernel.learners import Candidate
from discernel.report.words import count, percent

__all__ = [
    "escape",
    "plain_table",
    "show_benchmark",
    "show_data",
    "show_info",
    "show_model",
    "show_streamed",
]

_MOST_COLUMNS = 10
_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "pandas", "matplotlib", "cvxpy", "skops")


def escape(text: str) -> str:
    """Return anybody's text on one line, as it is: neither markup nor control characters work."""
    return markup.escape(printable(text).replace("\n", " "))


def plain_table(*columns: str | Text) -> Table:
    """Return an empty table. Columns marked with > are of numbers, with ~ of words to be folded."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        mark = str(column)[:1]
        name = column if isinstance(column, Text) else column.lstrip(">~")
        table.add_column(name, justify="right" if mark == ">" else "left", no_wrap=mark != "~")
    return table


def show_data(console: Console, dataset: Dataset, notes: Sequence[str] = ()) -> None:
    """Say what the rows are, and what was done to them."""
    n_rows, n_features = dataset.X.shape
    views = f", {len(dataset.views)} views" if dataset.views else ""
    console.print(
        f"[bold]{escape(dataset.name)}[/]  {n_rows:,} rows, {n_features:,} features{views}, "
        f"{len(set(dataset.y.tolist()))} classes; from {escape(dataset.source)}"
    )
    for note in notes:
        console.print(f"[yellow]note[/]  {escape(note)}")


def show_streamed(console: Console, model: Model) -> None:
    """Say what the rows of many files are, and what the model is made of."""
    clf = model.pipeline[-1]
    facts = clf.streamed_
    console.print(
        f"[bold]{escape(model.dataset)}[/]  {facts.n_rows:,} rows in chunks, "
        f"{clf.n_features_in_:,} columns, {len(clf.classes_)} classes"
    )
    console.print(
        f"[dim]kernel learned on rows of a sample of {facts.n_sample:,}; {facts.rank:,} landmarks "
        f"have {facts.captured:.0%} of its variance[/]"
    )


# ---- fit ---------------------------------------------------------------------------------------


def show_model(console: Console, model: Model) -> None:
    """Show what to expect, which columns matter, what was chosen from what, and the weights."""
    clf = model.pipeline[-1]
    learned = clf.learned_kernel_
    console.print()
    if clf.expected_ is not None:
        console.print(f"[bold]expected of new rows[/]  {clf.expected_!r}", highlight=False)
        console.print()
    if hasattr(clf, "feature_importances_"):
        _show_importances(console, clf, model.preparation.feature_columns)
    if learned.considered:
        console.print(_candidates(learned.considered))
        console.print()
    _show_weights(console, clf)
    gap = "" if clf.gap_ is None else f", certified gap {clf.gap_:.0e}"
    if gap and clf.learned_kernel_.rank is not None:
        gap += f" of the problem approximated with rank {clf.learned_kernel_.rank}"
    console.print(f"λ = {clf.regularization_:.3g}{gap}", highlight=False)
    if learned.regularization_at_limit is not None:
        console.print(f"[yellow]note[/]  {learned.regularization_advice}", highlight=False)


def _show_importances(console: Console, clf: Any, columns: Sequence[str]) -> None:
    """Show the most important columns of the file, with their spread over folds."""
    names, importances = sum_by(columns, clf.feature_importances_)
    # Of the sum over several features the spread is known to be no larger than this.
    spreads, n_features = sum_by(columns, clf.feature_importances_std_)[1], Counter(columns)
    order = np.argsort(-importances, kind="stable")
    table = plain_table("~column", ">importance %", ">± over folds", "")
    for i in order[:_MOST_COLUMNS]:
        bound = "≤ " * (n_features[names[i]] > 1)
        bar = _bar(importances[i] / importances[order[0]])
        table.add_row(
            escape(names[i]), percent(importances[i]), f"{bound}{percent(spreads[i])}", bar
        )
    n_others = max(0, len(names) - _MOST_COLUMNS)
    if n_others:
        rest = importances[order[_MOST_COLUMNS:]].sum()
        table.add_row(Text(count(n_others, "other column"), style="dim"), percent(rest))
    console.print(table)
    considered = clf.learned_kernel_.considered
    if considered and considered[0].strength == 0:
        console.print("[dim]the chosen kernels do not use this: they take all columns alike[/]")
    console.print()


def _candidates(considered: Sequence[Candidate]) -> Table:
    """Return a row per candidate, the chosen one first, with what left-out rows say of it."""
    if not are_by_folds(considered):
        table = plain_table("considered", ">leave-one-out error", ">pull to equal weights", ">λ")
    else:
        table = plain_table("considered", ">accuracy %", ">log-loss", ">λ")
    for each in considered:
        name = Text(candidate_name(each), style="bold" if each is considered[0] else "")
        if each is considered[0]:
            name.append(" (chosen)")
        numbers = [f"{each.error:.3f}", f"{each.pull:.3f}"]
        if each.accuracy is not None:
            numbers = [percent(each.accuracy), f"{each.error:.3f}"]
        table.add_row(name, *numbers, f"{each.regularization:.1e}")
    return table


def _show_weights(console: Console, clf: Any) -> None:
    """Show the weights of sources, where they have several kernels each, and of kernels."""
    sources = kernel_sources(clf.kernels_)
    if 1 < len(set(sources)) < len(sources):
        names, sums = sum_by(sources, clf.kernel_weights_)
        console.print(_weights("source", names, sums))
        console.print()
    console.print(_weights("kernel", clf.kernel_names_, clf.kernel_weights_))
    console.print(
        "[dim]a weight says how much of a kernel is used, not how important its columns are[/]"
    )


def _weights(what: str, names: Sequence[str], weights: FloatArray) -> Table:
    table = plain_table(what, ">weight", "")
    for name, weight in zip(names, weights, strict=True):
        table.add_row(escape(name), f"{weight:.3f}", _bar(weight / weights.max()))
    return table


def _bar(share: float) -> Text:
    return Text("█" * round(24 * float(share)), style="cyan")


# ---- bench -------------------------------------------------------------------------------------


def show_benchmark(
    console: Console, results: Sequence[Measured], verdicts: Sequence[Change] = ()
) -> None:
    """Show ratios, their limits, and how they stand to those of a record."""
    record = [">record"] if verdicts else []
    table = plain_table("case", "~what", ">rows", ">median", ">quartiles", ">must be", *record)
    for result, verdict in zip_longest(results, verdicts):
        table.add_row(*_bench_row(result, verdict))
    console.print()
    console.print(table)
    for result in results:
        if result.problem:
            style = "red" if result.failed else "yellow"
            console.print(f"[{style}]{escape(result.case)}[/]  {escape(result.problem)}")
    for verdict in verdicts:
        if verdict.kind == "not compared":
            console.print(f"[dim]{escape(verdict.case)}  not compared: {escape(verdict.why)}[/]")
    worse = [verdict.case for verdict in verdicts if verdict.kind == "worse"]
    if verdicts:
        console.print(f"[red]worse than the record: {', '.join(worse)}[/]" if worse else "no worse")


def _bench_row(result: Measured, verdict: Change | None) -> Iterator[Text | str]:
    yield result.case
    yield result.what
    yield f"{result.rows:,}"
    yield f"{result.median:,.3g}" if result.ratios else "–"
    yield f"{result.lower:,.3g} to {result.upper:,.3g}" if result.ratios else "–"
    if result.limit is None:
        yield Text("–", style="dim")
    else:
        sign = "≤" if result.direction == "at most" else "≥"
        style = {True: "green", False: "red", None: "dim"}[result.holds]
        missed = " missed" if result.holds is False else ""
        yield Text(f"{sign} {result.limit:g}{missed}", style=style)
    if verdict is not None and verdict.kind == "not compared":
        yield Text("–", style="dim")
    elif verdict is not None:
        style = {"worse": "red", "better": "green"}.get(verdict.kind, "dim")
        yield Text(f"{verdict.before:,.3g} {verdict.kind}", style=style)


# ---- info --------------------------------------------------------------------------------------


def show_info(console: Console, store: Path, n_finished: int | None) -> None:
    """Show versions, threads, data sets and where results are."""
    table = plain_table("", "~")
    table.columns[0].style = "bold"
    table.add_row("discernel", discernel.__version__)
    table.add_row("Python", f"{platform.python_version()} on {platform.system()}")
    for package in _PACKAGES:
        table.add_row(package, package_version(package) or "not installed")
    table.add_row("cores", str(os.cpu_count()))
    for pool in threadpool_info():
        library = f"{pool['internal_api']} {pool.get('version') or ''}".strip()
        table.add_row(pool["user_api"], f"{library}, {pool['num_threads']} threads")
    folder = data_folder()
    table.add_row(FOLDER_VARIABLE, "not set" if folder is None else escape(str(folder)))
    finished = "not there yet" if n_finished is None else f"{n_finished:,} finished runs"
    table.add_row("results", f"{escape(str(store))}: {finished}")
    console.print(Text(""), table, Text(""), _catalog(folder), sep="\n")


def _catalog(folder: Path | None) -> Any:
    table = plain_table("data set", ">rows", ">features", "from")
    for name, entry in sorted(CATALOG.items()):
        table.add_row(name, f"{entry.shape[0]:,}", f"{entry.shape[1]:,}", _source(entry, folder))
    return table


def _source(entry: CatalogEntry, folder: Path | None) -> Text:
    """Return where `discernel.datasets.load` would take a data set from."""
    if entry.bundled is not None:
        return Text("bundled")
    if folder is not None and (folder / entry.file).is_file():
        return Text("folder")
    if entry.openml is not None:
        return Text("OpenML, fetched when asked for", style="dim")
    return Text("not here: needs a folder", style="dim")
