"""`discernel demo`: five data sets, discernel beside three others, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from discernel.cli.shared import Jobs, StoreFile, one_line_errors, out, say_where
from discernel.compare.entrants import find_method
from discernel.compare.metrics import METRICS, PredictionMetric
from discernel.compare.plan import Data, Plan, Splits
from discernel.compare.report import write_report
from discernel.compare.runner import run
from discernel.compare.store import Record, Store
from discernel.compare.tables import Entry, ResultTable, summarize
from discernel.show.terminal import plain_table
from discernel.show.words import seconds
from discernel.show.writing import make_folder_of

__all__ = ["demo_command"]

#: What is shown, and one line on each.
_DATA = {
    "few_columns": "made up: 4 of 20 columns decide, only together",
    "clinic": "made up: numbers, categories and missing cells in one table",
    "wdbc": "569 biopsies of breasts, 30 measurements of cells (UCI)",
    "digits": "600 handwritten digits of 64 pixels, ten classes (UCI)",
    "steps": "made up: classes of a decision tree, which trees are made for",
}
#: Where the rows are more than the two minutes of a demonstration have time for.
_ROWS = {"digits": 600}
_METHODS = ("discernel", "forest", "boosting", "SVC grid")
_DIVISIONS = 5


def demo_command(
    divisions: Annotated[
        int, typer.Option(min=1, metavar="N", help="How often rows are divided into two parts.")
    ] = _DIVISIONS,
    jobs: Jobs = None,
    store: StoreFile = Path("discernel-results") / "demo.sqlite",
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page. (default: beside the store)")
    ] = None,
) -> None:
    """Show what discernel does, where it wins and where it loses, in two minutes.

    Five data sets that need no download. The default beside a random forest of
    500 trees, gradient boosting and a support vector machine whose 40 settings
    are tried by cross-validation. Ends with a report.
    """
    with one_line_errors("Run the same command again: it goes on from what there is."):
        plan = _plan(divisions)
        _introduce(divisions)
        make_folder_of(store)
        with Store(store) as results:
            run(plan, results, n_jobs=-1 if jobs is None else jobs, progress=True)
            records = results.records(plan.cells(), predictions=True)
        page = store.with_suffix(".html") if report is None else report
        page = write_report(records, page, title="discernel: a demonstration")
        _show(records)
        say_where("report", page)


def _plan(n_divisions: int) -> Plan:
    data = [Data(name, options={"rows": _ROWS[name]} if name in _ROWS else {}) for name in _DATA]
    splits = Splits(n=n_divisions, train_size=0.75)
    return Plan("demo", tuple(data), tuple(map(find_method, _METHODS)), splits)


def _introduce(n_divisions: int) -> None:
    out.print(
        "\n[bold]discernel learns[/] which columns matter, how to combine twelve kernels, and how "
        "much to regularise, in one fit.\n"
    )
    for name, words in _DATA.items():
        out.print(f"  [bold]{_title(name):<14}[/] {words}")
    out.print(
        f"\nEach is divided {n_divisions} times: three quarters of the rows to learn from, a "
        "quarter to predict.\n"
    )


def _show(records: list[Record]) -> None:
    for name, words in (
        ("accuracy", "Accuracy in %, the higher the better"),
        ("log_loss", "Log-loss of the probabilities, the lower the better"),
    ):
        out.print(f"\n[bold]{words}[/]")
        out.print(_numbers(summarize(records, name), METRICS[name]))
    out.print("\n[bold]Time of a fit[/]")
    out.print(_times(summarize(records, "accuracy")))
    for words in _verdicts(summarize(records, "accuracy"), summarize(records, "log_loss")):
        out.print(f"\n{words}")
    _show_importances(records)
    out.print(
        "\n[bold]Your own table:[/]  discernel compare data.csv --target COLUMN"
        "\n                 discernel fit data.csv --target COLUMN\n"
    )


def _numbers(table: ResultTable, metric: PredictionMetric) -> Table:
    shown = plain_table("", *(f">{name}" for name in _METHODS))
    for dataset in table.datasets:
        entries = {entry.method: entry for entry in table.of_dataset(dataset)}
        best = table.ranked(dataset)[0].method
        cells = [_cell(entries.get(name), metric, name == best) for name in _METHODS]
        shown.add_row(_title(dataset), *cells)
    return shown


def _cell(entry: Entry | None, metric: PredictionMetric, best: bool) -> Text:
    if entry is None or not entry.values:
        return Text("failed", style="red")
    return Text(metric.show(entry.mean), style="bold green" if best else "")


def _times(table: ResultTable) -> Table:
    shown = plain_table("", *(f">{name}" for name in _METHODS))
    for dataset in table.datasets:
        entries = {entry.method: entry for entry in table.of_dataset(dataset)}
        shown.add_row(
            _title(dataset),
            *(
                seconds(entries[name].seconds_fit, 2) if name in entries else ""
                for name in _METHODS
            ),
        )
    return shown


def _verdicts(accuracy: ResultTable, log_loss: ResultTable) -> list[str]:
    """Return what the tables say, in words; both losses and wins are those of this run."""

    def won(table: ResultTable) -> list[str]:
        return [name for name in table.datasets if table.ranked(name)[0].method == "discernel"]

    lost = [name for name in accuracy.datasets if name not in won(accuracy)]
    said = [
        f"discernel has the best accuracy on {len(won(accuracy))} of {len(accuracy.datasets)}, and "
        f"the best log-loss on {len(won(log_loss))}."
    ]
    for name in lost:
        first = accuracy.ranked(name)[0]
        ours = accuracy.entries[name, "discernel"]
        said.append(
            f"On {_title(name)}, {first.method} is better: "
            f"{100 * first.mean:.1f} % against {100 * ours.mean:.1f} %."
        )
    return said


def _show_importances(records: list[Record]) -> None:
    """Show which columns matter in the data set that we know it of."""
    stored = [
        record.result.details["feature_importances"]
        for record in records
        if record.cell.data.name == "few_columns" and record.cell.method.name == "discernel"
        if record.result.details.get("feature_importances")
    ]
    if not stored:
        return
    means = {name: sum(each[name] for each in stored) / len(stored) for name in stored[0]}
    ranked = sorted(means.items(), key=lambda item: -item[1])
    table = plain_table("column", ">importance", "")
    for name, share in ranked[:6]:
        table.add_row(
            name, f"{100 * share:.0f} %", Text("█" * round(30 * share / ranked[0][1]), "cyan")
        )
    out.print("\n[bold]What matters in few columns[/]: the four that decide, not the 16 of noise")
    out.print(table)


def _title(name: str) -> str:
    return {"wdbc": "breast cancer"}.get(name, name.replace("_", " "))
