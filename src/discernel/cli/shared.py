"""Parameters and helpers that several commands share: consoles, error messages, data."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from discernel import KernelDiscriminant, MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.compare.compare import file_data
from discernel.compare.plan import Data
from discernel.exceptions import DiscernelError, InvalidInputError
from discernel.persistence import SavedModel, is_model, read_model
from discernel.rows.formats import ENDINGS, ENDINGS_IN_WORDS, file_ending
from discernel.rows.labelled import Task
from discernel.rows.open import find_files
from discernel.rows.writing import refuse_same_file
from discernel.show.words import one_line as on_one_line

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

#: The exit codes, for the end of help pages.
EXIT_CODES = (
    "Exit codes: 0 success; 1 error, explained in one line; 2 unknown or invalid options; "
    "130 interrupted."
)


def examples(*commands: str) -> str:
    r"""Return example commands and the exit codes, for the end of a help page.

    The marker ``\b`` keeps the line breaks below it.

    Parameters
    ----------
    *commands : str
        The commands.
    """
    return "\n".join(["\b", "Examples:", *(f"  {each}" for each in commands), "", EXIT_CODES])


def command_line() -> str:
    """Return the current command line, quoted for a shell."""
    return shlex.join(["discernel", *sys.argv[1:]])


@contextmanager
def one_line_errors(resume: str = "") -> Iterator[None]:
    """Print errors of the user's input on one line, and exit with the code of the error.

    Parameters
    ----------
    resume : str
        Printed after an interruption: how to continue.
    """
    try:
        yield
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except (DiscernelError, OSError) as error:
        typer.echo(f"error: {on_one_line(error)}", err=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        typer.echo(f"\nInterrupted. {resume}".rstrip(), err=True)
        raise typer.Exit(130) from None


# ---- parameters that several commands have -----------------------------------------------------


def output_option(help: str) -> Any:
    """Return the option of the file that a command writes."""
    return typer.Option("--out", "--output", "-o", metavar="FILE", help=help)


def columns_option(help: str) -> Any:
    """Return an option that names columns and may be repeated."""
    return typer.Option(metavar="COLUMN", help=f"{help} May be repeated.")


DataName = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="A CSV, TSV, Parquet, Arrow or NPZ file, or the name of a data set."
    ),
]
ManyData = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="A CSV, TSV, Parquet, Arrow or NPZ file, - for standard input, or the name of a data "
        "set. Several files, a folder, a pattern in quotes, or a large file are read in chunks.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Address of a Dask scheduler, such as tcp://host:8786, whose workers read Parquet "
        "files.",
    ),
]
MaxTime = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Time limit, such as 90s, 10m or 1.5h. If an exact fit would take longer, it is "
        "approximated.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="Column with the classes or numbers to predict. (default: the column called target, "
        "class, label or y)",
    ),
]
TaskOption = Annotated[
    Task,
    typer.Option(
        "--task",
        help="What the target holds. By default numbers, if it has more than 10 distinct decimal "
        "numbers or many distinct integers, and otherwise classes.",
    ),
]
Drop = Annotated[list[str] | None, columns_option("Leave out a column.")]
Categorical = Annotated[
    list[str] | None, columns_option("Treat a column of numbers as categories.")
]
Numeric = Annotated[
    list[str] | None, columns_option("Treat a column as numbers, and other text as missing.")
]
StoreFile = Annotated[
    Path, typer.Option(metavar="FILE", help="File of results, from which later runs continue.")
]
SplitCount = Annotated[
    int, typer.Option(min=1, metavar="N", help="Number of random splits of the rows.")
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Where to write the report. (default: in the folder of the store)"
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        metavar="N",
        help="Number of parallel processes. (default: 1 per core)",
    ),
]


ModelFile = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A file that `discernel fit` or discernel.save wrote."),
]
RowNumbers = Annotated[
    list[int] | None,
    typer.Option(
        "--row", "-r", min=1, metavar="N", help="Explain this row of DATA. May be repeated."
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but errors and requested output.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON to standard output.")]


def data_of(
    source: str,
    target: str | None,
    drop: Sequence[str] | None,
    categorical: Sequence[str] | None,
    numeric: Sequence[str] | None,
    rows: int | None = None,
    task: Task = "auto",
) -> Data:
    """Return the data that an argument names, a file or a data set, with the options of files."""
    path = Path(source)
    if file_ending(path) in ENDINGS or path.is_file():
        kinds = {"drop": drop or (), "categorical": categorical or (), "numeric": numeric or ()}
        return file_data(path, target, rows=rows, task=task, **kinds)
    if path.suffix or len(path.parts) > 1:
        raise InvalidInputError(
            f"The data must be an existing file or the name of a data set. Got {source!r}. Files "
            f"end with {ENDINGS_IN_WORDS}; for names see: discernel info"
        )
    if target or drop or categorical or numeric or task != "auto":
        raise InvalidInputError(
            "--target, --task, --drop, --categorical and --numeric need a file. "
            f"There is no file {source!r}; omit these options for the data set of this name."
        )
    return Data(source, options={} if rows is None else {"rows": rows})


def read_predictor(path: Path) -> SavedModel:
    """Load a model, or raise an error unless it predicts one class or number per row."""
    model = read_model(path)
    learner = model.pipeline[-1]
    known = (KernelDiscriminant, MultipleKernelDiscriminant, MultipleKernelRidge)
    contained = type(learner).__name__
    if isinstance(learner, known):
        if learner.model_.classes is not None or len(learner.model_.intercept) == 1:
            return model
        contained += f" with {len(learner.model_.intercept)} targets"
    raise InvalidInputError(
        f"The model must predict one class or one number per row. {path.name} contains "
        f"{contained}; use it in Python: discernel.load({path.name!r})."
    )


def data_files(*data: str) -> list[Path]:
    """Return the files that arguments name; none for standard input and names of data sets.

    Raises an error if a file is a model.
    """
    paths = [
        path
        for each in data
        if Path(each).exists() or any(sign in each for sign in "*?[")
        for path in find_files([each])
    ]
    for path in paths:
        if is_model(path):
            raise InvalidInputError(
                "The data must be a file of rows, or the name of a data set. "
                f"{path.name} is a model: discernel predict MODEL DATA."
            )
    return paths


def refuse_overwriting(
    what: str, output: Path | None, data: Iterable[str], further: Iterable[Path] = ()
) -> None:
    """Raise an error if an output would replace a file of the data, or one of some further files.

    Parameters
    ----------
    what : str
        A description of the output.
    output : Path or None
        The file that is written; None for standard output.
    data : iterable of str
        As in `data_files`.
    further : iterable of Path
        Other files that are read.
    """
    for path in [*data_files(*data), *further]:
        refuse_same_file(data=path, **{what: output})


def say_where(what: str, path: Path, *, err: bool = False) -> None:
    """Print an absolute path on one line, so that it can be copied and clicked."""
    typer.echo(f"{what}: {on_one_line(path.resolve())}", err=err)
