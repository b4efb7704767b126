"""The application with all commands, their short help and examples."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Annotated

import typer

import discernel
from discernel.cli import (
    comparing,
    demonstrating,
    explaining,
    exporting,
    fitting,
    reporting,
)
from discernel.cli.shared import EXIT_CODES, examples

app = typer.Typer(
    help="Classification and regression with learned kernels: fit, explain and compare models.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"discernel {discernel.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Classification and regression with learned kernels: fit, explain and compare models."""


def _add(name: str, command: Callable[..., None], short_help: str, *lines: str) -> None:
    """Add a command, with examples at the end of its help."""
    epilog = examples(*lines) if lines else None
    app.command(name, short_help=short_help, epilog=epilog)(command)


_add(
    "fit",
    fitting.fit_command,
    "Fit a model to a table and save it.",
    "discernel fit patients.csv --target ill",
    "discernel fit patients.csv -t ill --drop ward --out patients.skops",
    "discernel fit 'parts/*.parquet' -t ill --max-time 10m",
    "discernel fit patients.csv -t ill --views views.toml",
)
_add(
    "predict",
    fitting.predict_command,
    "Predict classes or numbers for new rows.",
    "discernel predict patients.skops new.csv --out predicted.csv",
    "discernel predict patients.skops new.csv --keep name --json",
    "cat new.csv | discernel predict patients.skops -",
)
_add(
    "explain",
    explaining.explain_command,
    "Show importances, and explain predictions.",
    "discernel explain patients.skops",
    "discernel explain patients.skops new.csv --row 12 --row 40",
    "discernel explain patients.skops new.csv --json",
)
_add(
    "compare",
    comparing.compare_command,
    "Compare methods on your data.",
    "discernel compare patients.csv --target ill",
    "discernel compare patients.csv -t ill --metric log_loss --json numbers.json",
    "discernel compare wine -m discernel -m forest -m boosting --splits 20",
)
_add(
    "report",
    reporting.report_command,
    "Write a report about a model, or about results.",
    "discernel report patients.skops",
    "discernel report patients.skops --explain new.csv --row 12 -o page.html",
    "discernel report discernel-results/results.sqlite --metric log_loss",
)
_add(
    "export",
    exporting.export_command,
    "Export a model to ONNX, or to Python with NumPy alone.",
    "discernel export patients.skops --to patients.onnx",
    "discernel export patients.skops --to score_patients.py",
)
_add("demo", demonstrating.demo_command, "Compare methods on five data sets.", "discernel demo")
_add(
    "info",
    reporting.info_command,
    "Show versions and data sets, or describe a model.",
    "discernel info",
    "discernel info patients.skops",
)

# Commands of other packages, such as ``reproduce`` in the folder ``reproduction``.
for _entry in entry_points(group="discernel.commands"):
    app.command(_entry.name)(_entry.load())
