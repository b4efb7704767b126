"""`discernel fit` and `predict`."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from discernel.cli import fusing, learning, many
from discernel.cli.predictions import Predictions, write_predictions
from discernel.cli.shared import (
    AsJson,
    Categorical,
    Drop,
    ManyData,
    MaxTime,
    ModelFile,
    Numeric,
    Quiet,
    Scheduler,
    Target,
    command_line,
    data_of,
    file_of,
    one_line_errors,
    out,
    read_classifier,
    say_where,
)
from discernel.compare.progress import open_display
from discernel.exceptions import InvalidInputError, LongFitWarning
from discernel.persistence import SavedModel, write_model
from discernel.rows.chunks import RowProgress
from discernel.rows.encoder import TableEncoder
from discernel.rows.formats import file_stem, listed
from discernel.show.terminal import print_blocks
from discernel.show.words import one_line, printable
from discernel.show.writing import check_writable_path, refuse_same_file

#: The criteria, as `discernel.criteria` has them.
Criteria = Literal[
    "auto", "rkda", "fdr", "akfd", "alignment", "margin", "separability", "loo", "uniform"
]


# ---- fit ---------------------------------------------------------------------------------------


Output = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "--output",
        "-o",
        metavar="FILE",
        help="Where to save the model. (default: the name of the data, with .skops)",
    ),
]
Views = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="TOML file of data sources: the columns, or other files, of each, and its kernels.",
    ),
]


def fit_command(
    data: ManyData,
    output: Output = None,
    target: Target = None,
    drop: Drop = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    criterion: Annotated[
        Criteria, typer.Option(help="Criterion that kernel weights are learned by.")
    ] = "auto",
    views: Views = None,
    max_time: MaxTime = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn from a table with a column of classes, and save the model.

    Delimiter, decimal sign, names and types are detected and shown. Categories, missing cells and
    dates need no preparation; columns that number the rows are left out.
    """
    with one_line_errors():
        output = _default_output(data[0]) if output is None else output
        refuse_same_file(data=file_of(data[0]), model=output)
        check_writable_path("model", output)
        learner = learning.Learner(criterion, max_time, command_line(), quiet)
        if many.are_many(data) or scheduler is not None:
            if views is not None:
                raise InvalidInputError("--views takes one file that fits into memory.")
            model = _fit_chunks(data, target, drop, categorical, numeric, learner, scheduler)
        else:
            with _speaking(quiet, as_json), learning.given_file(data[0]) as file:
                meant = data_of(str(file), target, drop, categorical, numeric)
                model = (
                    learning.fit_model(meant, learner)
                    if views is None
                    else fusing.fit_views(meant, views, learner)
                )
        path = write_model(model, output)
        if as_json:
            plain = model.describe().as_plain()
            typer.echo(json.dumps(plain | {"model": str(path.resolve())}, indent=1))
        elif not quiet:
            print_blocks(out, model.describe().blocks(), without=("confusion", "origin", "columns"))
            typer.echo()
            say_where("model", path)


def _default_output(source: str) -> Path:
    """Return a file in the present folder, called as the data are."""
    stem = "model" if source == "-" else file_stem(Path(source.rstrip("/*?[]")))
    return Path(f"{stem or 'model'}.skops")


@contextmanager
def _speaking(quiet: bool, as_json: bool) -> Iterator[None]:
    """Silence a long fit, or send its lines to standard error, beside the JSON."""
    with warnings.catch_warnings(), ExitStack() as stack:
        if quiet:
            warnings.simplefilter("ignore", LongFitWarning)
        if as_json:
            stack.enter_context(redirect_stdout(sys.stderr))
        yield


def _fit_chunks(
    data: Sequence[str],
    target: str | None,
    drop: Sequence[str] | None,
    categorical: Sequence[str] | None,
    numeric: Sequence[str] | None,
    learner: learning.Learner,
    scheduler: str | None,
) -> SavedModel:
    """Return a model fitted to rows that are read twice, in chunks."""
    if categorical or numeric:
        raise InvalidInputError(
            "--categorical and --numeric are for a file that fits into memory. Rows in chunks have "
            "the types of their files. Leave them out."
        )
    with _bars(["first pass", "second pass"], learner.quiet) as told:
        return many.fit_many(data, target, drop or (), learner, told, scheduler)


@contextmanager
def _bars(titles: Sequence[str], quiet: bool) -> Iterator[Callable[[Any], None]]:
    """Show a bar per pass over rows; yield what is to be called with every `RowProgress`."""
    if quiet:
        yield lambda progress: None
        return
    with open_display() as display:
        tasks: dict[int, Any] = {}

        def told(progress: Any) -> None:
            if not isinstance(progress, RowProgress):
                return
            stage = progress.stage
            if stage not in tasks:
                tasks[stage] = display.add_task(printable(titles[stage]), last="rows")
            # About as many rows as a file's size says may be fewer than there are.
            total = None if progress.n_rows is None else max(progress.n_rows, progress.rows)
            display.update(tasks[stage], completed=progress.rows, total=total)

        yield told


# ---- predict -----------------------------------------------------------------------------------


def predict_command(
    model: ModelFile,
    data: ManyData,
    output: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write predictions: .csv, .jsonl or .parquet. (default: standard output)",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Copy a column to the output. May be repeated."),
    ] = None,
    views: fusing.WhereFiles = None,
    scheduler: Scheduler = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON lines instead of CSV.")] = (
        False
    ),
    quiet: Quiet = False,
) -> None:
    """Predict the classes of rows, with their probabilities.

    Columns may be in any order, and other columns are ignored. Identifiers are copied to the
    output. In CSV, a text that a spreadsheet would run as a formula begins with an apostrophe.
    """
    with one_line_errors():
        refuse_same_file(model=model, data=file_of(data[0]), predictions=output)
        if output is not None:
            check_writable_path("predictions", output)
        loaded, where = read_classifier(model), _to_the_terminal if output is None else output
        if many.are_many(data) or scheduler is not None:
            with _bars(["predicting"], quiet) as told:
                parts = many.predict_many(loaded, data, told, scheduler, keep or ())
                known = write_predictions(parts, where, as_json=as_json)
        else:
            rows = learning.read_rows(loaded, data[0], keep or (), fusing.joiner(views))
            known = write_predictions([Predictions.of(loaded, rows)], where, as_json=as_json)
            if not quiet:
                _note_others(loaded, rows)
        if output is None:
            sys.stdout.flush()  # a pipe that is closed, or a full disk, is said here
        elif not quiet:
            say_where("predictions", output)
        n_known, n_right = known
        if n_known and not quiet:
            typer.echo(f"accuracy {n_right / n_known:.3f} on {n_known:,} rows", err=True)


def _note_others(model: SavedModel, rows: learning.Rows) -> None:
    """Print categories that no training row had."""
    steps = [*model.pipeline, getattr(model.pipeline[-1], "encoder_", None)]
    encoders = [step for step in steps if isinstance(step, TableEncoder)]
    for encoder in encoders[:1]:
        for column, values in encoder.new_values(rows.X).items():
            note = f"note: {column!r} has values not known from training: {listed(values, 3)}"
            typer.echo(one_line(note), err=True)


def _to_the_terminal(text: str) -> None:
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
