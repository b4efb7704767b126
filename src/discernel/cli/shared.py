"""What several commands share: parameters, errors on one line, the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from discernel.exceptions import DiscernelError, InvalidInputError
from discernel.experiments.compare import file_data
from discernel.experiments.formats import ENDINGS, printable
from discernel.experiments.plan import Data

__all__ = [
    "Categorical",
    "DataName",
    "Drop",
    "Jobs",
    "ManyData",
    "MaxTime",
    "Missing",
    "Scheduler",
    "StoreFile",
    "Target",
    "data_of",
    "file_of",
    "on_one_line",
    "one_line_errors",
    "out",
    "say_where",
]

out = Console(highlight=False)


@contextmanager
def one_line_errors(resume: str = "") -> Iterator[None]:
    """Turn what a user can mend into one line, and an interruption into how to go on."""
    try:
        yield
    except (DiscernelError, OSError) as error:
        typer.echo(f"error: {on_one_line(error)}", err=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        typer.echo(f"\nInterrupted. {resume}".rstrip(), err=True)
        raise typer.Exit(130) from None


def on_one_line(what: object) -> str:
    """Return the words for something, with nothing in them that a terminal obeys."""
    return " ".join(printable(str(what)).split("\n"))


# ---- parameters that several commands have -----------------------------------------------------

DataName = Annotated[
    str,
    typer.Argument(metavar="DATA", help="A CSV, Parquet or NPZ file, or the name of a data set."),
]
ManyData = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="A CSV, Parquet or NPZ file, or the name of a data set. Several files, a folder, a "
        "pattern in quotes, or a large file are read in chunks.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="A Dask scheduler, such as tcp://host:8786, whose workers read Parquet files.",
    ),
]
MaxTime = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="The time there is, such as 90s, 10m or 1.5h: what is exact and takes longer is "
        "approximated.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="Column with the classes. (default: found by its name)",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Leave a column out. May be repeated."),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Turn it into one feature a value. May be repeated."),
]
Missing = Annotated[
    Literal["error", "drop", "median"],
    typer.Option(help="Missing values: refuse them, leave their rows out, or put medians in."),
]
StoreFile = Annotated[
    Path, typer.Option(metavar="FILE", help="File of results; a second run goes on from it.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", min=1, metavar="N", help="Processes side by side. (default: one a core)"
    ),
]


def data_of(
    source: str,
    target: str | None,
    drop: Sequence[str] | None,
    categorical: Sequence[str] | None,
    missing: Literal["error", "drop", "median"],
    rows: int | None = None,
) -> Data:
    """Return what the words of the command line mean."""
    path = Path(source)
    if path.suffix.lower() in ENDINGS or path.is_file():
        return file_data(
            path,
            target,
            drop=drop or (),
            categorical=categorical or (),
            missing=missing,
            rows=rows,
        )
    if path.suffix or len(path.parts) > 1:
        raise InvalidInputError(
            f"The data must be a file that is there, or the name of a data set. Got {source!r}, "
            f"which is neither. Files end with {', '.join(ENDINGS)}; for names see: discernel info"
        )
    if target or drop or categorical or missing != "error":
        raise InvalidInputError(
            "--target, --drop, --categorical and --missing are for files. "
            f"{source!r} is the name of a data set. Leave them out."
        )
    return Data(source, options={} if rows is None else {"rows": rows})


def file_of(source: str) -> Path | None:
    """Return the file that a source is; None for the name of a data set."""
    return Path(source) if Path(source).is_file() else None


def say_where(what: str, path: Path) -> None:
    """Print a path on a line of its own, whole, so that it can be copied and clicked."""
    typer.echo(f"{what}: {on_one_line(path.resolve())}")
