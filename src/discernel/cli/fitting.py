"""`discernel fit` and `predict`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from discernel.cli import many, models, show
from discernel.cli.shared import (
    Categorical,
    Drop,
    ManyData,
    MaxTime,
    Missing,
    Scheduler,
    Target,
    data_of,
    file_of,
    one_line_errors,
    out,
    say_where,
)
from discernel.exceptions import InvalidInputError
from discernel.experiments.formats import printable
from discernel.experiments.progress import row_bars
from discernel.experiments.writing import check_place, refuse_same_file

__all__ = ["fit_command", "predict_command"]


def fit_command(
    data: ManyData,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model goes.")
    ],
    target: Target = None,
    drop: Drop = None,
    categorical: Categorical = None,
    missing: Missing = "error",
    criterion: Annotated[
        str, typer.Option(metavar="NAME", help="What makes a combination good.")
    ] = "auto",
    max_time: MaxTime = None,
    scheduler: Scheduler = None,
) -> None:
    """Learn the kernel and its discriminant on all rows, and save the model.

    Rows of several files, or of a large one, are read twice, in chunks, and need not fit into
    memory. Categories and missing cells are then taken as they are.
    """
    with one_line_errors():
        refuse_same_file(data=file_of(data[0]), model=output)
        check_place("model", output)
        learner = models.Learner(criterion, max_time)
        if many.are_many(data) or scheduler is not None:
            if categorical or missing != "error":
                raise InvalidInputError(
                    "--categorical and --missing are for a file that fits into memory. Rows in "
                    "chunks have categories and missing cells taken as they are. Leave them out."
                )
            with row_bars(["first pass", "second pass"]) as told:
                model = many.fit_many(data, target, drop or (), learner, told, scheduler)
            show.show_streamed(out, model)
        else:
            meant = data_of(data[0], target, drop, categorical, missing)
            model, dataset, notes = models.fit_model(meant, learner)
            show.show_data(out, dataset, notes)
        path = models.save_model(model, output)
        show.show_model(out, model)
        say_where("model", path)


def predict_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `discernel fit` wrote.")],
    data: ManyData,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "--out",
            "-o",
            metavar="FILE",
            help="A CSV or Parquet file. (default: CSV to the terminal)",
        ),
    ] = None,
    scheduler: Scheduler = None,
) -> None:
    """Predict the classes of rows, with their probabilities, as CSV or Parquet.

    A class whose name a spreadsheet would take for a formula, one that begins with =, +, -, @, a
    tab or the end of a line and is no number, has an apostrophe in front in CSV. Rows of several
    files, or of a large one, are predicted in chunks.
    """
    with one_line_errors():
        refuse_same_file(model=model, data=file_of(data[0]), predictions=output)
        if output is not None:
            check_place("predictions", output)
        loaded, where = models.load_model(model), _to_the_terminal if output is None else output
        if many.are_many(data) or scheduler is not None:
            with row_bars(["predicting"]) as told:
                parts = many.predict_many(loaded, data, told, scheduler)
                known = many.write_predictions(parts, where)
        else:
            known = many.write_predictions([models.predict_rows(loaded, data[0])], where)
        if output is None:
            sys.stdout.flush()  # a pipe that is closed, or a full disk, is said here
        else:
            say_where("predictions", output)
        n_known, n_right = known
        if n_known:
            typer.echo(f"accuracy {n_right / n_known:.3f} on {n_known:,} rows", err=True)


def _to_the_terminal(text: str) -> None:
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
