"""`discernel bench` and `info`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from discernel import bench
from discernel.cli import show
from discernel.cli.models import load_model
from discernel.cli.shared import AsJson, StoreFile, one_line_errors, out, say_where
from discernel.cli.show_model import show_model, show_origin
from discernel.cli.summary import summarize
from discernel.experiments.compare import DEFAULT_STORE
from discernel.experiments.store import Store
from discernel.experiments.writing import check_place, write_file

__all__ = ["bench_command", "info_command"]


def bench_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="CASE...", help="Cases, or 'all'. (default: those not slow)"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few rows: see that all runs, in seconds.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write a record, as JSON.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Compare with a record; exit with 1 where it was better."
        ),
    ] = None,
) -> None:
    """Measure how fast we are against others, all in this run."""
    with one_line_errors():
        if output is not None:
            check_place("record", output)
        cases = bench.chosen_cases(names or ())
        past = None if against is None else bench.read_record(against)
        before = bench.environment()
        results: list[bench.Measured] = []
        for result in bench.run_cases(cases, quick=quick, progress=True):
            results.append(result)
            if output is not None:  # each time: an interruption loses only the case it falls into
                record = bench.make_record(results, before, bench.environment())
                write_file(output, f"{json.dumps(record, indent=1)}\n".encode())
        verdicts = [
            bench.judge(result, past, case.worse_by)
            for case, result in zip(cases, results, strict=True)
            if past is not None
        ]
        show.show_benchmark(out, results, verdicts)
        if output is not None:
            say_where("record", output)
        if any(v.kind == "worse" for v in verdicts) or any(r.failed for r in results):
            raise typer.Exit(1)


def info_command(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL]", help="A model, of which all is said that it holds."),
    ] = None,
    store: StoreFile = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show versions, threads, data sets and where results are; or what a model holds."""
    with one_line_errors():
        if model is not None:
            _show_file(model, as_json)
            return
        n_finished = None
        if store.is_file():
            with Store(store) as results:
                n_finished = len(results.finished())
        if as_json:
            typer.echo(json.dumps(show.versions(), indent=1))
        else:
            show.show_info(out, store, n_finished)


def _show_file(path: Path, as_json: bool) -> None:
    loaded = load_model(path)
    if as_json:
        typer.echo(json.dumps(summarize(loaded), indent=1))
        return
    show_model(out, loaded)
    show_origin(out, loaded)
