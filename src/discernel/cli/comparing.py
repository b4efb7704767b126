"""`discernel compare` and `reproduce`."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from discernel.cli import show, show_comparing
from discernel.cli.shared import (
    Categorical,
    DataName,
    Drop,
    Jobs,
    Numeric,
    Quiet,
    StoreFile,
    Target,
    data_of,
    err,
    file_of,
    one_line_errors,
    out,
    say_where,
)
from discernel.experiments import reproduce as reproductions
from discernel.experiments.compare import DEFAULT_STORE, Comparison, compare
from discernel.experiments.entrants import DEFAULT_METHODS, DESCRIPTIONS
from discernel.experiments.exports import Trace, comparison_csv, comparison_json, trace
from discernel.experiments.metrics import METRICS
from discernel.experiments.store import Store
from discernel.experiments.writing import (
    check_place,
    make_folder_of,
    refuse_same_file,
    write_file,
)
from discernel.report import write_report
from discernel.report.words import conclusion

__all__ = ["compare_command", "reproduce_command"]

#: Divisions a plan with ``reproduce --quick``.
QUICK = 3


def _quoted(names: Iterable[str]) -> str:
    """Return names as one types them."""
    return ", ".join(f'"{name}"' if " " in name else name for name in names)


Rows = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Only so many rows, drawn at random.")
]
Divisions = Annotated[
    int, typer.Option(min=1, metavar="N", help="How often rows are divided into two parts.")
]
TrainSize = Annotated[float, typer.Option(metavar="SHARE", help="Share of the rows to learn from.")]
MetricName = Annotated[
    str, typer.Option(metavar="NAME", help=f"What methods are ranked by: {', '.join(METRICS)}.")
]
MethodNames = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help=f"Only this one; may be repeated. By default {_quoted(DEFAULT_METHODS)}; there "
        f"are also {_quoted(name for name in DESCRIPTIONS if name not in DEFAULT_METHODS)}.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the first division.")]
ReportFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The page. (default: beside the store)")
]
JsonFile = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write all numbers as JSON; - is standard output."),
]
CsvFile = Annotated[
    str | None,
    typer.Option(
        "--csv", metavar="FILE", help="Write a row per method as CSV; - is standard output."
    ),
]


def compare_command(
    data: DataName = "wine",
    target: Target = None,
    drop: Drop = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    rows: Rows = None,
    divisions: Divisions = 10,
    train_size: TrainSize = 0.8,
    metric: MetricName = "accuracy",
    method: MethodNames = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    store: StoreFile = DEFAULT_STORE,
    report: ReportFile = None,
    json: JsonFile = None,
    csv: CsvFile = None,
    quiet: Quiet = False,
) -> None:
    """Compare discernel with forest, boosting, SVC and others on your data; write a report.

    Rows are divided into two parts at random, several times. Every method
    learns from the first part and predicts the second. Results are kept: the
    same command, interrupted or not, goes on from what there is.
    """
    with one_line_errors(f"Run the same command again: it goes on from {store}."):
        _check_places(data, store, {"report": report, "json": _path(json), "csv": _path(csv)})
        # What other programs read has the output for itself.
        console = err if "-" in (json, csv) else out
        found = compare(
            data_of(data, target, drop, categorical, numeric, rows),
            n_divisions=divisions,
            train_size=train_size,
            seed=seed,
            methods=method,
            metric=metric,
            store=store,
            n_jobs=jobs,
            progress=not quiet,
            started=lambda rows, notes: None if quiet else show.show_data(console, rows, notes),
        )
        origin = trace(found, shlex.join(["discernel", *sys.argv[1:]]))
        page = _write_page(found, origin, report, store)
        if not quiet:
            show_comparing.show_comparison(console, found)
        if json is not None:
            sentences = tuple(conclusion(found.table, found.dataset.name))
            _write(json, comparison_json(found, origin, sentences))
        if csv is not None:
            _write(csv, comparison_csv(found))
        if not quiet:
            say_where("report", page, err=console is err)


def _check_places(data: str, store: Path, written: dict[str, Path | None]) -> None:
    """Raise an error if two files are the same, or if one cannot be written."""
    refuse_same_file(
        data=file_of(data),
        store=store,
        log_of_the_store=f"{store}-wal",
        index_of_the_store=f"{store}-shm",
        **written,
    )
    for what, path in written.items():
        if path is not None:
            check_place(what, path)


def _write_page(found: Comparison, origin: Trace, report: Path | None, store: Path) -> Path:
    """Write the report of a comparison, beside the store by default; return its place."""
    return write_report(
        found.records,
        store.parent / f"{found.dataset.name}.html" if report is None else report,
        title=f"{found.dataset.name}: learned kernels and baselines",
        metric=found.metric,
        trace=origin,
    )


def _path(where: str | None) -> Path | None:
    """Return the file that is meant, if one is."""
    return None if where in (None, "-") else Path(str(where))


def _write(where: str, text: str) -> None:
    if where == "-":
        sys.stdout.write(text)
    else:
        write_file(where, text.encode())


def reproduce_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...", help="Tables or figures, papers, or 'all'. (default: list them)"
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List what can be run.")] = False,
    quick: Annotated[bool, typer.Option(help=f"At most {QUICK} divisions each.")] = False,
    divisions: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="At most so many divisions each.")
    ] = None,
    jobs: Jobs = None,
    store: StoreFile = DEFAULT_STORE,
) -> None:
    """Run published tables again and show our numbers beside the printed ones."""
    with one_line_errors(f"Run the same command again: it goes on from {store}."):
        chosen = _chosen(names or ["all"])
        if list_ or not names:
            show_comparing.show_reproducible(out, chosen)
            return
        limit = divisions if divisions is not None else QUICK if quick else None
        make_folder_of(store)
        with Store(store) as results:
            cells = [each for found in chosen for each in _run_one(found, results, limit, jobs)]
        good = sum(each.verdict in ("agrees", "better") for each in cells)
        judged = sum(each.verdict != "not judged" for each in cells)
        out.print(f"\n[bold]{good} of {judged} cells agree or are better[/]")
        if limit is not None:
            out.print(f"[dim]with at most {limit} divisions: few, so errors are uncertain too[/]")


def _chosen(names: Sequence[str]) -> list[reproductions.Reproduction]:
    """Return what names of tables, names of papers, or 'all' stand for."""
    known = reproductions.names()
    wanted = [
        each
        for name in names
        for each in ([n for n in known if name in ("all", n.partition("-")[0])] or [name])
    ]
    return [reproductions.reproduction(name) for name in dict.fromkeys(wanted)]


def _run_one(
    found: reproductions.Reproduction, store: Store, limit: int | None, jobs: int | None
) -> list[reproductions.Reproduced]:
    """Run one table, show it, and save its figure."""
    found = found if limit is None else found.with_divisions(limit)
    cells = reproductions.reproduce(found, store, n_jobs=jobs or -1, progress=True)
    records = reproductions.stored(found, store)
    show_comparing.show_reproduction(out, found, cells, records)
    if found.figure is not None and records:
        page = store.path.parent / f"{found.id}.png"
        drawn = io.BytesIO()
        found.figure(records).savefig(drawn, format="png", dpi=150, bbox_inches="tight")
        write_file(page, drawn.getvalue())
        say_where("figure", page)
    return cells
