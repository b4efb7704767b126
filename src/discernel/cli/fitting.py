"""`discernel fit` and `discernel predict`."""

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
from discernel.cli.predictions import Predictions, check_format, write_predictions
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
    TaskOption,
    columns_option,
    command_line,
    data_of,
    one_line_errors,
    out,
    output_option,
    read_predictor,
    refuse_overwriting,
    say_where,
)
from discernel.compare.progress import open_display
from discernel.exceptions import InvalidInputError, LongFitWarning, listed
from discernel.persistence import SavedModel, write_model
from discernel.rows.chunks import RowProgress
from discernel.rows.formats import file_stem
from discernel.rows.writing import check_writable_path, refuse_same_file
from discernel.show.terminal import print_blocks
from discernel.show.words import one_line, printable

#: The names of the criteria in `discernel.criteria`.
Criteria = Literal[
    "auto", "rkda", "fdr", "akfd", "alignment", "margin", "separability", "loo", "uniform"
]


# ---- fit ---------------------------------------------------------------------------------------


Output = Annotated[
    Path | None,
    output_option("Where to save the model. (default: the name of the data with .skops)"),
]
Views = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="TOML file of several data sources: the columns or files of each source, and kernels.",
    ),
]


Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with groups of rows, such as patients, which are held out together. It is not "
        "a feature.",
    ),
]


def fit_command(
    data: ManyData,
    output: Output = None,
    target: Target = None,
    task: TaskOption = "auto",
    drop: Drop = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    groups: Groups = None,
    criterion: Annotated[
        Criteria, typer.Option(help="Criterion for learning the kernel weights.")
    ] = "auto",
    views: Views = None,
    max_time: MaxTime = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a table with a column of classes or numbers, and save the model.

    The delimiter, decimal sign, header and column types are detected and shown. Categories, missing
    cells and dates need no preparation. Row numbers and free text are left out.
    """
    with one_line_errors():
        output = _default_output(data[0]) if output is None else output
        refuse_overwriting("model", output, data, fusing.views_files(views))
        check_writable_path("model", output)
        learner = learning.Learner(criterion, max_time, command_line(), quiet, groups)
        in_chunks = many.are_many(data) or scheduler is not None
        if views is not None and in_chunks:
            raise InvalidInputError(
                "--views needs a single data file that fits into memory. Omit --views, or select "
                "fewer rows."
            )
        if in_chunks:
            _refuse_kinds(categorical, numeric)
            with _show_bars(["first pass", "second pass"], quiet) as report:
                model = many.fit_many(data, target, drop or (), learner, report, scheduler, task)
        else:
            with _speaking(quiet, as_json), learning.given_file(data[0]) as file:
                meant = data_of(str(file), target, drop, categorical, numeric, task=task)
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
    """Return a file in the current folder, named after the data."""
    stem = "model" if source == "-" else file_stem(Path(source.rstrip("/*?[]")))
    return Path(f"{stem or 'model'}.skops")


@contextmanager
def _speaking(quiet: bool, as_json: bool) -> Iterator[None]:
    """Silence the progress of a long fit, or send it to standard error if JSON is printed."""
    with warnings.catch_warnings(), ExitStack() as stack:
        if quiet:
            warnings.simplefilter("ignore", LongFitWarning)
        if as_json:
            stack.enter_context(redirect_stdout(sys.stderr))
        yield


def _refuse_kinds(categorical: Sequence[str] | None, numeric: Sequence[str] | None) -> None:
    """Raise an error if options for a single file are given with rows in chunks."""
    if categorical or numeric:
        raise InvalidInputError(
            "--categorical and --numeric need a single file that fits into memory; rows in chunks "
            "have the types of their files. Omit these options."
        )


@contextmanager
def _show_bars(titles: Sequence[str], quiet: bool) -> Iterator[Callable[[Any], None]]:
    """Show a bar for each pass over the rows; yield a callback for `RowProgress`."""
    if quiet:
        yield lambda progress: None
        return
    with open_display() as display:
        tasks: dict[int, Any] = {}

        def report(progress: Any) -> None:
            if not isinstance(progress, RowProgress):
                return
            stage = progress.stage
            if stage not in tasks:
                tasks[stage] = display.add_task(printable(titles[stage]), last="rows")
            # The estimated number of rows may be too small.
            total = None if progress.n_rows is None else max(progress.n_rows, progress.rows)
            display.update(tasks[stage], completed=progress.rows, total=total)

        yield report


# ---- predict -----------------------------------------------------------------------------------


def predict_command(
    model: ModelFile,
    data: ManyData,
    output: Annotated[
        Path | None,
        output_option(
            "Where to write predictions: .csv, .jsonl or .parquet. (default: standard output)"
        ),
    ] = None,
    keep: Annotated[list[str] | None, columns_option("Copy a column to the output.")] = None,
    views: fusing.ViewsOption = None,
    scheduler: Scheduler = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON lines instead of CSV.")] = (
        False
    ),
    quiet: Quiet = False,
) -> None:
    """Predict classes and their probabilities, or numbers, for new rows.

    Columns may be in any order, and other columns are ignored. Columns of identifiers are copied to
    the output. In CSV, text that a spreadsheet would run as a formula begins with an apostrophe.
    """
    with one_line_errors():
        refuse_same_file(model=model, predictions=output)
        refuse_overwriting("predictions", output, data, fusing.views_files(views))
        if output is not None:
            check_writable_path("predictions", output)
            check_format(output)
        loaded, where = read_predictor(model), _write_to_terminal if output is None else output
        if many.are_many(data) or scheduler is not None:
            with _show_bars(["predicting"], quiet) as report:
                parts = many.predict_many(loaded, data, report, scheduler, keep or ())
                known = write_predictions(parts, where, as_json=as_json)
        else:
            rows = learning.read_rows(loaded, data[0], keep or (), fusing.joiner(views))
            known = write_predictions([Predictions.of(loaded, rows)], where, as_json=as_json)
            if not quiet:
                _note_new_values(loaded, rows)
        if output is None:
            sys.stdout.flush()  # raises errors of a closed pipe or a full disk here
        elif not quiet:
            say_where("predictions", output)
        if known and not quiet:
            typer.echo(known, err=True)


def _note_new_values(model: SavedModel, rows: learning.Rows) -> None:
    """Print categories that were absent in training."""
    values = {} if model.encoder is None else model.encoder.new_values(rows.X)
    for column, found in values.items():
        note = f"note: {column!r} has values that were not in training: {listed(found, 3)}"
        typer.echo(one_line(note), err=True)


def _write_to_terminal(text: str) -> None:
    """Write text to standard output, without control characters on a terminal."""
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
