"""The commands, put together. Each parses, calls one function, and prints what it returned."""

from __future__ import annotations

from typing import Annotated

import typer

import discernel
from discernel.cli import comparing, exporting, fitting, measuring
from discernel.cli.helping import PlainCommand, PlainGroup
from discernel.cli.shared import EXIT_CODES, examples

__all__ = ["app"]

app = typer.Typer(
    cls=PlainGroup,
    help="Learn the kernel that best separates your classes, and compare it with others.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
    pretty_exceptions_enable=False,
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
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say which it is."),
    ] = False,
) -> None:
    """Learn the kernel that best separates your classes, and compare it with others."""


app.command(
    "compare",
    cls=PlainCommand,
    epilog=examples(
        "discernel compare patients.csv --target ill",
        "discernel compare patients.csv -t ill --metric log_loss --json numbers.json",
        "discernel compare wine -m auto -m forest -m boosting --divisions 20",
    ),
)(comparing.compare_command)
app.command("reproduce", cls=PlainCommand)(comparing.reproduce_command)
app.command(
    "report", cls=PlainCommand, epilog=examples("discernel report", "discernel report -o all.html")
)(comparing.report_command)
app.command(
    "fit",
    cls=PlainCommand,
    epilog=examples(
        "discernel fit patients.csv --target ill",
        "discernel fit patients.csv -t ill --drop ward --out patients.skops",
        "discernel fit 'parts/*.parquet' -t ill --max-time 10m",
    ),
)(fitting.fit_command)
app.command(
    "predict",
    cls=PlainCommand,
    epilog=examples(
        "discernel predict patients.skops new.csv --out predicted.csv",
        "discernel predict patients.skops new.csv --keep name --json",
        "cat new.csv | discernel predict patients.skops -",
    ),
)(fitting.predict_command)
app.command(
    "export",
    cls=PlainCommand,
    epilog=examples(
        "discernel export patients.skops --to patients.onnx",
        "discernel export patients.skops --to score_patients.py",
    ),
)(exporting.export_command)
app.command("bench", cls=PlainCommand)(measuring.bench_command)
app.command(
    "info", cls=PlainCommand, epilog=examples("discernel info", "discernel info patients.skops")
)(measuring.info_command)
