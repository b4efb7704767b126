"""The commands, put together. Each parses, calls one function, and prints what it returned."""

from __future__ import annotations

from typing import Annotated

import typer

import discernel
from discernel.cli import comparing, explaining, fitting, measuring, reporting
from discernel.cli.shared import EXIT_CODES, examples

__all__ = ["app"]

app = typer.Typer(
    help="Learn the kernel that best separates your classes, and compare it with others.",
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
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say which it is."),
    ] = False,
) -> None:
    """Learn the kernel that best separates your classes, and compare it with others."""


app.command(
    "fit",
    short_help="Learn from a table and save the model.",
    epilog=examples(
        "discernel fit patients.csv --target ill",
        "discernel fit patients.csv -t ill --drop ward --out patients.skops",
        "discernel fit 'parts/*.parquet' -t ill --max-time 10m",
    ),
)(fitting.fit_command)
app.command(
    "predict",
    short_help="Predict the classes of rows.",
    epilog=examples(
        "discernel predict patients.skops new.csv --out predicted.csv",
        "discernel predict patients.skops new.csv --keep name --json",
        "cat new.csv | discernel predict patients.skops -",
    ),
)(fitting.predict_command)
app.command(
    "explain",
    short_help="Say what matters, and why a row has its class.",
    epilog=examples(
        "discernel explain patients.skops",
        "discernel explain patients.skops new.csv --row 12 --row 40",
        "discernel explain patients.skops new.csv --json",
    ),
)(explaining.explain_command)
app.command(
    "info",
    short_help="Show what is here, or in a model.",
    epilog=examples("discernel info", "discernel info patients.skops"),
)(measuring.info_command)
app.command(
    "compare",
    short_help="Compare methods on your data.",
    epilog=examples(
        "discernel compare patients.csv --target ill",
        "discernel compare patients.csv -t ill --metric log_loss --json numbers.json",
        "discernel compare wine -m auto -m forest -m boosting --divisions 20",
    ),
)(comparing.compare_command)
app.command(
    "report",
    short_help="Make a page of a model, or of all results.",
    epilog=examples(
        "discernel report patients.skops",
        "discernel report patients.skops --explain new.csv --row 12 -o page.html",
        "discernel report discernel-results/results.sqlite --metric log_loss",
    ),
)(reporting.report_command)
app.command("reproduce", short_help="Run published tables again.")(comparing.reproduce_command)
app.command("bench", short_help="Measure how fast we are.")(measuring.bench_command)
