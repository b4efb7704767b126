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
    say_where,
)
from discernel.compare.compare import DEFAULT_STORE, stored_records
from discernel.compare.metrics import (
    ALL_METRICS,
    NUMBER_METRICS,
    PredictionMetric,
    default_metric,
    find_metric,
    metrics_beside,
)
from discernel.compare.report import write_report
from discernel.compare.store import Record, Store
from discernel.exceptions import InvalidInputError
from discernel.persistence import SavedModel, read_model
from discernel.report.model import RowExplanation, write_facts_report
from discernel.rows.writing import check_writable_path, refuse_same_file
from discernel.show.terminal import print_blocks


def report_command(
    what: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A model that `discernel fit` wrote, or a file of results."
        ),
    ] = DEFAULT_STORE,
    output: Annotated[
        Path | None,
        output_option("Where to write the page. (default: FILE with .html)"),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Title of the page. (default: the name of the data)"),
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
    """Write a page about a model, or about all results in a file.

    The page is a single HTML file that needs no other files. The page of a
    model shows which columns matter, the expected performance on new rows, and
    how the model was chosen; with --explain, why rows have their prediction.
    """
    with one_line_errors():
        page = output or what.with_suffix(".html")
        refuse_same_file(file=what, report=page)
        check_writable_path("report", page)
        if _is_model(what):
            say_where("report", _report_model(what, page, title, explain, row or ()))
            return
        if explain is not None or row:
            raise InvalidInputError(
                "--explain and --row need a model that `discernel fit` wrote. "
                f"{what.name} is not a model. Omit these options, or name a model."
            )
        say_where("report", _report_store(what, page, title or "Results", metric))


# ---- a model -----------------------------------------------------------------------------------


def _is_model(path: Path) -> bool:
    """Whether a file begins like a model, which is a zip archive."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _report_model(
    path: Path, page: Path, title: str | None, explain: str | None, rows: Sequence[int]
) -> Path:
    if rows and explain is None:
        raise InvalidInputError("--row needs --explain DATA. Name a file with rows.")
    model = read_model(path)
    named = model.dataset + f": a model that predicts {model.target}" * bool(model.target)
    explained = [] if explain is None else _explained(read_predictor(path), explain, rows)
    return write_facts_report(model.describe(), page, title or named, explained)


def _explained(model: SavedModel, source: str, rows: Sequence[int]) -> list[RowExplanation]:
    given = learning.read_rows(model, source)
    chosen = choose_rows(rows, len(given.X), FIRST_ROWS)
    return [row_explanation(each) for each in explain_rows(model, given, chosen)]


# ---- results -----------------------------------------------------------------------------------


def _report_store(store: Path, page: Path, title: str, metric: str | None) -> Path:
    with _open_store(store) as results:
        records, held = stored_records(results), results.held()
    if held:
        holders = " and ".join(sorted(set(held.values())))
        typer.echo(
            f"note: {holders} is computing {len(held)} more results; the page has the finished "
            "results",
            err=True,
        )
    if not records:
        raise InvalidInputError(f"{store} holds no results. Run: discernel compare --store {store}")
    found = _metric_of(records) if metric is None else find_metric(metric)
    kept = [record for record in records if _suits(record, found)]
    if len(kept) < len(records):
        other = default_metric(numbers=not found.of_numbers)
        typer.echo(
            f"note: {len(records) - len(kept)} results have no {found.label} and are left out; see "
            f"--metric {other}",
            err=True,
        )
    return write_report(kept or records, page, title=title, metric=found.name)


def _metric_of(records: Sequence[Record]) -> PredictionMetric:
    """Return the default metric of results: that of classes, if there are any."""
    known = {name for record in records for name in record.result.metrics}
    return find_metric(default_metric(numbers=bool(known) and known <= set(NUMBER_METRICS)))


def _suits(record: Record, metric: PredictionMetric) -> bool:
    """Return whether a record failed, or is of classes or numbers as the metric."""
    result = record.result
    return result.error is not None or not metrics_beside(metric).keys().isdisjoint(result.metrics)


def _open_store(path: Path) -> Store:
    if not path.is_file():
        raise InvalidInputError(
            f"The file must be an existing model or file of results. Got {str(path)!r}. "
            "`discernel fit` writes a model, `discernel compare` a file of results."
        )
    return Store(path)


# ---- info --------------------------------------------------------------------------------------


def info_command(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="MODEL", help="A model to describe."),
    ] = None,
    store: StoreFile = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show versions, threads, data sets and the file of results; or describe a model."""
    with one_line_errors():
        if model is not None:
            _show_file(model, as_json)
            return
        n_finished = None
        if store.is_file():
            with Store(store) as results:
                n_finished = len(results.finished())
        if as_json:
            typer.echo(json.dumps(show.versions(), indent=1))
        else:
            show.show_info(out, store, n_finished)


def _show_file(path: Path, as_json: bool) -> None:
    facts = read_model(path).describe()
    if as_json:
        typer.echo(json.dumps(facts.as_plain(), indent=1))
    else:
        print_blocks(out, facts.blocks())
