"""`discernel compare`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from discernel.cli import show, show_comparing
from discernel.cli.shared import (
    Categorical,
    DataName,
    Drop,
    Jobs,
    Numeric,
    Quiet,
    ReportFile,
    SplitCount,
    StoreFile,
    Target,
    TaskOption,
    command_line,
    data_files,
    data_of,
    err,
    one_line_errors,
    out,
    say_where,
)
from discernel.compare.compare import DEFAULT_STORE, compare
from discernel.compare.exports import comparison_csv, comparison_json, origin_of
from discernel.compare.methods import DEFAULT_METHODS, METHODS, NUMBER_METHODS
from discernel.compare.metrics import METRICS, NUMBER_METRICS
from discernel.compare.report import write_report
from discernel.compare.report.words import conclusion
from discernel.rows.writing import check_writable_path, refuse_same_file, write_file


def _quoted(names: Iterable[str]) -> str:
    """Return names for the command line, in quotes if they contain spaces."""
    return ", ".join(f'"{name}"' if " " in name else name for name in names)


Rows = Annotated[int | None, typer.Option(min=1, metavar="N", help="Use N rows, drawn at random.")]
TrainSize = Annotated[
    float, typer.Option(metavar="FRACTION", help="Fraction of the rows to train on.")
]
MetricName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Metric to rank methods by: {', '.join(METRICS)}; for numbers "
        f"{', '.join(NUMBER_METRICS)}. (default: accuracy, or r2)",
    ),
]
MethodNames = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help=f"Only this method. May be repeated. By default {_quoted(DEFAULT_METHODS)}. Also: "
        f"{_quoted(each.name for each in METHODS if each.name not in DEFAULT_METHODS)}. Methods of "
        "other packages are compared by default if their package is installed. For numbers: "
        f"{_quoted(each.name for each in NUMBER_METHODS)}.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the first split.")]
JsonFile = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write all numbers as JSON; - is standard output."),
]
CsvFile = Annotated[
    str | None,
    typer.Option(
        "--csv", metavar="FILE", help="Write a row per method as CSV; - is standard output."
    ),
]


def compare_command(
    data: DataName = "wine",
    target: Target = None,
    task: TaskOption = "auto",
    drop: Drop = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    rows: Rows = None,
    splits: SplitCount = 10,
    train_size: TrainSize = 0.8,
    metric: MetricName = None,
    method: MethodNames = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    store: StoreFile = DEFAULT_STORE,
    report: ReportFile = None,
    json: JsonFile = None,
    csv: CsvFile = None,
    quiet: Quiet = False,
) -> None:
    """Compare discernel with forest, boosting, SVC and others on your data; write a report.

    Rows are split into training and test rows at random, several times. Every
    method learns from the training rows and predicts the test rows. Results
    are stored: run the same command again to continue after an interruption.
    """
    with one_line_errors(f"Run the same command again to continue from {store}."):
        _check_files(data, store, report=report, json=json, csv=csv)
        # With JSON or CSV on standard output, all other text goes to standard error.
        console = err if "-" in (json, csv) else out
        planned = {"n_splits": splits, "train_size": train_size, "seed": seed, "methods": method}
        found = compare(
            data_of(data, target, drop, categorical, numeric, rows, task),
            metric=metric,
            store=store,
            n_jobs=jobs,
            progress=not quiet,
            started=lambda rows, notes: None if quiet else show.show_data(console, rows, notes),
            **planned,
        )
        name, origin = found.dataset.name, origin_of(found, command_line())
        page = write_report(
            found.records,
            report or store.parent / f"{name}.html",
            title=f"{name}: learned kernels and baselines",
            metric=found.metric,
            origin=origin,
        )
        if not quiet:
            show_comparing.show_comparison(console, found)
        sentences = tuple(conclusion(found.table, name))
        _write(json, lambda: comparison_json(found, origin, sentences))
        _write(csv, lambda: comparison_csv(found))
        if not quiet:
            say_where("report", page, err=console is err)


def _check_files(data: str, store: Path, **written: str | Path | None) -> None:
    """Raise an error if two paths are the same file, or if a file cannot be written."""
    files = {name: Path(file) for name, file in written.items() if file not in (None, "-")}
    log, index = f"{store}-wal", f"{store}-shm"
    is_file = Path(data).is_file()  # a folder may have the name of a data set
    refuse_same_file(
        data=data_files(data)[0] if is_file else None,
        store=store,
        log_of_the_store=log,
        index_of_the_store=index,
        **files,
    )
    for what, path in files.items():
        check_writable_path(what, path)


def _write(where: str | None, text: Callable[[], str]) -> None:
    """Write text to a file, or to standard output for ``-``; None for nothing."""
    if where == "-":
        sys.stdout.write(text())
    elif where is not None:
        write_file(where, text().encode())
