"""The commands, put together. Each parses, calls one function, and prints what it returned."""

from __future__ import annotations

from typing import Annotated

import typer

import discernel
from discernel.cli import comparing, exporting, fitting, measuring

__all__ = ["app"]

app = typer.Typer(
    help="Learn the kernel that best separates your classes, and compare it with others.",
    no_args_is_help=True,
    add_completion=False,
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


app.command("compare")(comparing.compare_command)
app.command("reproduce")(comparing.reproduce_command)
app.command("report")(comparing.report_command)
app.command("fit")(fitting.fit_command)
app.command("predict")(fitting.predict_command)
app.command("export")(exporting.export_command)
app.command("bench")(measuring.bench_command)
app.command("info")(measuring.info_command)
