"""`discernel demo`: compare discernel with three methods on five data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from discernel.cli.shared import (
    Jobs,
    ReportFile,
    SplitCount,
    StoreFile,
    one_line_errors,
    out,
    say_where,
)
from discernel.compare.methods import find_method
from discernel.compare.plan import Data, Plan, Splits
from discernel.compare.report import write_report
from discernel.compare.runner import run
from discernel.compare.store import Record, Store
from discernel.compare.tables import Entry, ResultTable, mean_importances, summarize
from discernel.rows.writing import make_parent_folder
from discernel.show.facts import importance_block
from discernel.show.terminal import plain_table, print_blocks
from discernel.show.words import seconds

#: The data sets, with a description.
_DATA = {
    "few_columns": "synthetic: 4 of 20 columns determine the class, only together",
    "clinic": "synthetic: numbers, categories and missing cells in one table",
    "wdbc": "569 breast biopsies, 30 measurements of cells (UCI)",
    "digits": "600 handwritten digits of 64 pixels, ten classes (UCI)",
    "steps": "synthetic: classes from a decision tree, which favours trees",
}
#: Data sets of which a sample of rows is used, to save time.
_ROWS = {"digits": 600}
_METHODS = ("discernel", "forest", "boosting", "SVC grid")
_SPLITS = 5
_MOST_COLUMNS = 6
#: Verdicts on a difference, in words.
_CLEARLY = {
    "worse": "more than chance",
    "tied": "which may be chance",
    "cannot tell": "with too few splits to tell whether that is chance",
    "failed": "where some fits failed",
}


def demo_command(
    splits: SplitCount = _SPLITS,
    jobs: Jobs = None,
    store: StoreFile = Path("discernel-results") / "demo.sqlite",
    report: ReportFile = None,
) -> None:
    """Compare discernel with three other methods on five data sets, in two minutes.

    The default is compared with a random forest of 500 trees, gradient boosting
    and a support vector machine with 40 settings tried by cross-validation, on
    five data sets that need no download. Writes a report.
    """
    with one_line_errors("Run the same command again to continue."):
        plan = _plan(splits)
        _introduce(splits)
        make_parent_folder(store)
        with Store(store) as results:
            run(plan, results, n_jobs=-1 if jobs is None else jobs, progress=True)
            records = [_titled(each) for each in results.records(plan.cells(), predictions=True)]
        page = store.with_suffix(".html") if report is None else report
        page = write_report(records, page, title="discernel: a demonstration")
        _show(records)
        say_where("report", page)


def _plan(n_splits: int) -> Plan:
    data = [Data(name, options={"rows": _ROWS[name]} if name in _ROWS else {}) for name in _DATA]
    splits = Splits(n=n_splits, train_size=0.75)
    return Plan("demo", tuple(data), tuple(map(find_method, _METHODS)), splits)


def _introduce(n_splits: int) -> None:
    out.print(
        "\n[bold]discernel learns[/] which columns matter, how to combine twelve kernels, and how "
        "much to regularize, in one fit.\n"
    )
    for name, words in _DATA.items():
        out.print(f"  [bold]{_title(name):<14}[/] {words}")
    out.print(
        f"\nEach data set is split {n_splits} times: three quarters of the rows for training, a "
        "quarter for testing.\n"
    )


def _show(records: list[Record]) -> None:
    accuracy, log_loss = summarize(records, "accuracy"), summarize(records, "log_loss")
    _print_table("Accuracy in %, the higher the better", accuracy, _mean)
    _print_table("Log-loss of the probabilities, the lower the better", log_loss, _mean)
    _print_table(
        "Time of a fit", accuracy, lambda entry, _: Text(seconds(entry.mean_time("seconds_fit"), 2))
    )
    for words in _verdicts(accuracy, log_loss):
        out.print(f"\n{words}")
    # In this data set it is known which columns matter.
    found = mean_importances(accuracy.entries["few columns", "discernel"].records)
    if found:
        out.print()
        title = "columns that matter in few columns"
        aside = "four columns determine the class, 16 are noise; share ± standard deviation"
        print_blocks(out, [importance_block(title, found[:_MOST_COLUMNS], aside)])
    out.print(
        "\n[bold]Your own table:[/]  discernel compare data.csv --target COLUMN"
        "\n                 discernel fit data.csv --target COLUMN\n"
    )


def _print_table(
    title: str, table: ResultTable, show: Callable[[Entry, ResultTable], Text]
) -> None:
    """Print a row per data set and a column per method."""
    shown = plain_table("", *(f">{name}" for name in _METHODS))
    for dataset in table.datasets:
        entries = [table.entries.get((dataset, name)) for name in _METHODS]
        cells = [show(e, table) if e and e.values else Text("failed", "red") for e in entries]
        shown.add_row(dataset, *cells)
    out.print(f"\n[bold]{title}[/]")
    out.print(shown)


def _mean(entry: Entry, table: ResultTable) -> Text:
    """Return the mean of an entry, highlighted if it is the best."""
    is_best = entry is table.ranked(entry.dataset)[0]
    return Text(table.metric.show(entry.mean), style="bold green" if is_best else "")


def _verdicts(accuracy: ResultTable, log_loss: ResultTable) -> list[str]:
    """Return sentences on the wins and losses of discernel in this run."""

    def won(table: ResultTable) -> list[str]:
        return [name for name in table.datasets if table.ranked(name)[0].method == "discernel"]

    said = [
        f"discernel has the best accuracy on {len(won(accuracy))} of {len(accuracy.datasets)} data "
        f"sets, and the best log-loss on {len(won(log_loss))}."
    ]
    for name in accuracy.datasets:
        first, ours = accuracy.ranked(name)[0], accuracy.entries[name, "discernel"]
        if first is not ours:
            said.append(
                f"On {name}, {first.method} has the better accuracy: "
                f"{100 * first.mean:.1f} % against {100 * ours.mean:.1f} %, "
                f"{_CLEARLY[ours.verdict]}."
            )
    return said


def _title(name: str) -> str:
    return {"wdbc": "breast cancer"}.get(name, name.replace("_", " "))


def _titled(record: Record) -> Record:
    """Return a record under the title of its data set, which terminal and page show."""
    data = replace(record.cell.data, name=_title(record.cell.data.name))
    return replace(record, cell=replace(record.cell, data=data))
