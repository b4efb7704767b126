"""How fast a fit is, in units of what others take for the same in the same run.

python benchmarks/ratios.py --quick                                     # see that all runs
python benchmarks/ratios.py --against benchmarks/records/speed.json     # what has become slower
python benchmarks/ratios.py svc easymkl --output mine.json              # a record of some cases
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import bench
import typer
from bench import Change, Measured
from rich.console import Console
from rich.text import Text

from discernel.cli.shared import one_line_errors, out, say_where
from discernel.cli.show import escape, plain_table
from discernel.rows.writing import check_writable_path, write_file


def measure(
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
            check_writable_path("record", output)
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
        show(out, results, verdicts)
        if output is not None:
            say_where("record", output)
        if any(v.kind == "worse" for v in verdicts) or any(r.failed for r in results):
            raise typer.Exit(1)


def show(console: Console, results: Sequence[Measured], verdicts: Sequence[Change] = ()) -> None:
    """Show ratios, their limits, and how they stand to those of a record."""
    record = [">record"] if verdicts else []
    table = plain_table("case", "~what", ">rows", ">median", ">quartiles", ">must be", *record)
    for result, verdict in zip_longest(results, verdicts):
        table.add_row(*row(result, verdict))
    console.print()
    console.print(table)
    for result in results:
        if result.problem:
            style = "red" if result.failed else "yellow"
            console.print(f"[{style}]{escape(result.case)}[/]  {escape(result.problem)}")
    for verdict in verdicts:
        if verdict.kind == "not compared":
            console.print(f"[dim]{escape(verdict.case)}  not compared: {escape(verdict.why)}[/]")
    worse = [verdict.case for verdict in verdicts if verdict.kind == "worse"]
    if verdicts:
        console.print(f"[red]worse than the record: {', '.join(worse)}[/]" if worse else "no worse")


def row(result: Measured, verdict: Change | None) -> Iterator[Text | str]:
    yield result.case
    yield result.what
    yield f"{result.rows:,}"
    yield f"{result.median:,.3g}" if result.ratios else "–"
    yield f"{result.lower:,.3g} to {result.upper:,.3g}" if result.ratios else "–"
    if result.limit is None:
        yield Text("–", style="dim")
    else:
        sign = "≤" if result.direction == "at most" else "≥"
        style = {True: "green", False: "red", None: "dim"}[result.holds]
        missed = " missed" if result.holds is False else ""
        yield Text(f"{sign} {result.limit:g}{missed}", style=style)
    if verdict is not None and verdict.kind == "not compared":
        yield Text("–", style="dim")
    elif verdict is not None:
        style = {"worse": "red", "better": "green"}.get(verdict.kind, "dim")
        yield Text(f"{verdict.before:,.3g} {verdict.kind}", style=style)


if __name__ == "__main__":
    typer.run(measure)
