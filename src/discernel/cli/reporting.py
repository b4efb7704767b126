"""`discernel report` and `discernel info`: describe a model or a file of results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from discernel.cli import learning, show
from discernel.cli.explaining import FIRST_ROWS, choose_rows, explain_rows, row_explanation
from discernel.cli.shared import (
    AsJson,
    RowNumbers,
    StoreFile,
    one_line_errors,
    out,
    output_option,
    read_predictor,
    refuse_overwriting,
    say_where,
)
from discernel.compare.compare import DEFAULT_STORE
from discernel.compare.methods import method_name
from discernel.compare.metrics import (
    ALL_METRICS,
    NUMBER_METRICS,
    default_metric,
    find_metric,
    metrics_beside,
)
from discernel.compare.report import write_report
from discernel.compare.store import Store
from discernel.exceptions import InvalidInputError
from discernel.persistence import read_model
from discernel.report import write_facts_report
from discernel.rows.formats import ENDINGS, file_ending
from discernel.rows.writing import check_writable_path, refuse_same_file
from discernel.show.terminal import print_blocks


def report_command(
    what: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A model file, or a file of results of `discernel compare`."
        ),
    ] = DEFAULT_STORE,
    output: Annotated[
        Path | None,
        output_option("Where to write the report. (default: FILE with .html)"),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Title of the report. (default: the name of the data)"),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"For results: metric to rank methods by: {', '.join(ALL_METRICS)}. (default: "
            "accuracy, or r2 if all results are of numbers)",
        ),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="For a model: file with rows to explain."),
    ] = None,
    row: RowNumbers = None,
) -> None:
    """Write a report about a model, or about all results in a file.

    The report is a single HTML file that works offline. That of a model shows
    which columns matter, the expected performance on new rows, and how the
    model was chosen; with --explain, also explanations of predictions.
    """
    with one_line_errors():
        page = output or what.with_suffix(".html")
        refuse_same_file(file=what, report=page)
        refuse_overwriting("report", page, [] if explain is None else [explain])
        check_writable_path("report", page)
        if _is_model(what):
            _report_model(what, page, title, explain, row or ())
        elif explain is not None or row:
            raise InvalidInputError(
                "--explain and --row need a model file. "
                f"{what.name} is not a model. Omit these options, or name a model."
            )
        else:
            _report_store(what, page, title or "Results", metric)
        say_where("report", page)


def _is_model(path: Path) -> bool:
    """Whether a file begins like a model, which is a zip archive."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _report_model(
    path: Path, page: Path, title: str | None, explain: str | None, rows: Sequence[int]
) -> None:
    """Write the page of a model, with explanations of rows of a file."""
    if rows and explain is None:
        raise InvalidInputError("--row needs --explain DATA. Name a file with rows.")
    model, explanations = (read_model if explain is None else read_predictor)(path), []
    if explain is not None:
        given = learning.read_rows(model, explain)
        chosen = choose_rows(rows, len(given.X), FIRST_ROWS)
        explanations = [row_explanation(each) for each in explain_rows(model, given, chosen)]
    named = model.dataset + f": a model that predicts {model.target}" * bool(model.target)
    write_facts_report(model.describe(), page, title or named, explanations)


def _report_store(path: Path, page: Path, title: str, metric: str | None) -> None:
    """Write the page of all results in a file that suit a metric, and notes on the others."""
    if not path.is_file() or file_ending(path) in ENDINGS:
        raise InvalidInputError(
            f"The file must be an existing model or file of results. Got {str(path)!r}. "
            "`discernel fit` writes a model, `discernel compare` a file of results."
        )
    with Store(path) as store:
        records, held = store.records(store.cells(method_name), predictions=True), store.held()
    if held:
        holders = " and ".join(sorted(set(held.values())))
        typer.echo(
            f"note: {holders} is computing {len(held)} more results; the page has the finished "
            "results",
            err=True,
        )
    if not records:
        raise InvalidInputError(f"{path} holds no results. Run: discernel compare --store {path}")
    names = {name for record in records for name in record.result.metrics}
    # By default the metric of classes, if there are any.
    metric = metric or default_metric(numbers=bool(names) and names <= set(NUMBER_METRICS))
    found = find_metric(metric)
    kept = [
        record
        for record in records
        if record.result.error is not None
        or set(metrics_beside(found)) & set(record.result.metrics)
    ]
    if len(kept) < len(records):
        other = default_metric(numbers=not found.of_numbers)
        typer.echo(
            f"note: {len(records) - len(kept)} results have no {found.label} and are left out; see "
            f"--metric {other}",
            err=True,
        )
    write_report(kept or records, page, title=title, metric=found.name)


# ---- info --------------------------------------------------------------------------------------


def info_command(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="MODEL", help="A model file to describe."),
    ] = None,
    store: StoreFile = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show versions, threads, data sets and the file of results; or describe a model."""
    with one_line_errors():
        if model is not None:
            facts = read_model(model).describe()
            if as_json:
                typer.echo(json.dumps(facts.as_plain(), indent=1))
            else:
                print_blocks(out, facts.blocks())
        elif as_json:
            typer.echo(json.dumps(show.versions(), indent=1))
        else:
            show.show_info(out, store)
