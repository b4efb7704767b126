"""`discernel export`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from discernel.cli.shared import ModelFile, one_line_errors, read_predictor, say_where
from discernel.exceptions import InvalidInputError, listed
from discernel.export import numpy_scorer, to_onnx, write_scorer
from discernel.export._scorer import Scorer
from discernel.rows.writing import check_writable_path, refuse_same_file, write_file
from discernel.show.words import one_line

#: The maximum number of names printed.
_MOST = 100


def export_command(
    model: ModelFile,
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            metavar="FILE",
            help="Where to write the model: .onnx; or .py for Python with NumPy only, with an .npz "
            "file of numbers in the same folder.",
        ),
    ],
    float32: Annotated[
        bool,
        typer.Option(
            "--float32",
            help="ONNX in single precision: half as large, probabilities differ by up to 1e-4, "
            "numbers by more.",
        ),
    ] = False,
) -> None:
    """Export a model to ONNX or to a Python file, for machines without discernel.

    The exported model predicts the same labels; probabilities, and numbers relative to their range,
    agree to 1e-6.
    """
    with one_line_errors():
        refuse_same_file(model=model, export=to)
        if to.suffix not in (".onnx", ".py"):
            raise InvalidInputError(
                f"The file must end with .onnx or .py. Got {str(to)!r}. Name another file."
            )
        if float32 and to.suffix == ".py":
            raise InvalidInputError("--float32 works with .onnx only. Omit it for a .py file.")
        check_writable_path("export", to)
        loaded = read_predictor(model)
        pipeline, names = loaded.pipeline, loaded.schema.columns
        scorer = numpy_scorer(pipeline, names=names)
        if to.suffix == ".onnx":
            graph = to_onnx(pipeline, names=names, dtype="float32" if float32 else "float64")
            say_where("ONNX", write_file(to, graph.SerializeToString()))
        else:
            refuse_same_file(model=model, file_of_numbers=to.with_suffix(".npz"))
            code, numbers = write_scorer(pipeline, to, names=names)
            say_where("scorer", code)
            say_where("numbers", numbers)
        _say_columns(scorer, loaded.schema.columns)


def _say_columns(scorer: Scorer, in_file: Sequence[str]) -> None:
    """Print the input columns and classes of an exported model, and a note on computed columns."""
    names = [scorer.names[column.position] for column in scorer.columns]
    typer.echo(f"columns: {one_line(listed(names, _MOST))}")
    if scorer.classes is not None:
        typer.echo(f"classes: {one_line(listed(scorer.classes.tolist(), _MOST))}")
    made = [name for name in names if name not in in_file]
    if made:
        typer.echo(
            f"note: compute {one_line(listed(made, _MOST))} from the columns of the file first, as "
            "`discernel predict` does",
            err=True,
        )
