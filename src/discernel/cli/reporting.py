"""`discernel report` and `discernel info`: describe a model or a file of results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from discernel.cli import learning, show
from discernel.cli.explaining import FIRST_ROWS, choose_rows, explain_rows, training_row
from discernel.cli.shared import (
    AsJson,
    RowNumbers,
    StoreFile,
    one_line_errors,
    out,
    output_option,
    read_classifier,
    say_where,
)
from discernel.compare.compare import DEFAULT_STORE, stored_records
from discernel.compare.metrics import METRICS
from discernel.compare.report import write_report
from discernel.compare.store import Store
from discernel.exceptions import InvalidInputError
from discernel.inspection.words import cell_text
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
        str,
        typer.Option(
            metavar="NAME", help=f"For results: metric to rank methods by: {', '.join(METRICS)}."
        ),
    ] = "accuracy",
    explain: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="For a model: file with rows to explain."),
    ] = None,
    row: RowNumbers = None,
) -> None:
    """Write a page about a model, or about all results in a file.

    The page is a single HTML file that needs no other files. The page of a
    model shows which columns matter, the expected performance on new rows, and
    how the model was chosen; with --explain, why rows have their predicted
    class.
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
    explained = [] if explain is None else _explained(read_classifier(path), explain, rows)
    return write_facts_report(model.describe(), page, title or named, explained)


def _explained(model: SavedModel, source: str, rows: Sequence[int]) -> list[RowExplanation]:
    given = learning.read_rows(model, source)
    chosen = choose_rows(rows, len(given.X), FIRST_ROWS)
    return [_explanation(each) for each in explain_rows(model, given, chosen)]


def _explanation(found: Mapping[str, Any]) -> RowExplanation:
    """Return the explanation of a row for the page, from the result of `explain_rows`."""
    cells = found["cells"]
    terms = found["columns"] or found["sources"]
    predicted = str(found["predicted"])
    return RowExplanation(
        row=f"row {found['row']:,}",
        predicted=predicted,
        baseline=found["baseline"],
        contributions={
            f"{name} = {cell_text(cells[name])}" if name in cells else name: value
            for name, value in terms.items()
        },
        probability=found["probabilities"].get(predicted),
        similar=[
            (
                training_row(each),
                "" if each["class"] is None else str(each["class"]),
                each["similarity"],
                each["support"],
            )
            for each in found["similar"]
        ],
        words=_score_words(found["score_is"]),
    )


def _score_words(score_is: str) -> str:
    """Return a sentence that defines the score, for two or for more classes."""
    name, _, label = score_is.partition(" for ")
    if name == "log-odds":
        return f"The score is the log-odds of {label}."
    return f"The score is the score of {label} minus the mean over the classes."


# ---- results -----------------------------------------------------------------------------------


def _report_store(store: Path, page: Path, title: str, metric: str) -> Path:
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
    return write_report(records, page, title=title, metric=metric)


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
