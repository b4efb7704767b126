"""The commands. Each parses, calls one function, and prints what it returned."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

import discernel
from discernel import bench
from discernel.cli import many, models, show
from discernel.exceptions import DiscernelError, InvalidInputError
from discernel.experiments import reproduce as reproductions
from discernel.experiments.compare import DEFAULT_STORE, compare, file_data, stored_records
from discernel.experiments.formats import ENDINGS, printable
from discernel.experiments.plan import Data
from discernel.experiments.progress import row_bars
from discernel.experiments.store import Store
from discernel.experiments.writing import (
    check_place,
    make_folder_of,
    refuse_same_file,
    write_file,
)
from discernel.report import write_report

__all__ = ["app"]

#: Divisions a plan with ``reproduce --quick``.
QUICK = 3

app = typer.Typer(
    help="Learn the kernel that best separates your classes, and compare it with others.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_out = Console(highlight=False)


@contextmanager
def _one_line_errors(resume: str = "") -> Iterator[None]:
    """Turn what a user can mend into one line, and an interruption into how to go on."""
    try:
        yield
    except (DiscernelError, OSError) as error:
        typer.echo(f"error: {_on_one_line(error)}", err=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        typer.echo(f"\nInterrupted. {resume}".rstrip(), err=True)
        raise typer.Exit(130) from None


def _on_one_line(what: object) -> str:
    """Return the words for something, with nothing in them that a terminal obeys."""
    return " ".join(printable(str(what)).split("\n"))


# ---- parameters that several commands have -----------------------------------------------------

_DataName = Annotated[
    str,
    typer.Argument(metavar="DATA", help="A CSV, Parquet or NPZ file, or the name of a data set."),
]
_ManyData = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="A CSV, Parquet or NPZ file, or the name of a data set. Several files, a folder, a "
        "pattern in quotes, or a large file are read in chunks.",
    ),
]
_Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="A Dask scheduler, such as tcp://host:8786, whose workers read Parquet files.",
    ),
]
_MaxTime = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="The time there is, such as 90s, 10m or 1.5h: what is exact and takes longer is "
        "approximated.",
    ),
]
_Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="Column with the classes. (default: found by its name)",
    ),
]
_Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Leave a column out. May be repeated."),
]
_Categorical = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Turn it into one feature a value. May be repeated."),
]
_Missing = Annotated[
    Literal["error", "drop", "median"],
    typer.Option(help="Missing values: refuse them, leave their rows out, or put medians in."),
]
_Store = Annotated[
    Path, typer.Option(metavar="FILE", help="File of results; a second run goes on from it.")
]
_Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", min=1, metavar="N", help="Processes side by side. (default: one a core)"
    ),
]


def _data(
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


def _file(source: str) -> Path | None:
    """Return the file that a source is; None for the name of a data set."""
    return Path(source) if Path(source).is_file() else None


# ---- the commands ------------------------------------------------------------------------------


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


@app.command("compare")
def _compare(
    data: _DataName = "wine",
    target: _Target = None,
    drop: _Drop = None,
    categorical: _Categorical = None,
    missing: _Missing = "error",
    rows: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only so many rows, drawn at random.")
    ] = None,
    divisions: Annotated[
        int, typer.Option(min=1, metavar="N", help="Divisions into two parts.")
    ] = 10,
    train_size: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of the rows that train.")
    ] = 0.8,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", metavar="NAME", help="Only this one. May be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the first division.")] = 0,
    jobs: _Jobs = None,
    store: _Store = DEFAULT_STORE,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page. (default: beside the store)")
    ] = None,
) -> None:
    """Compare learned kernels with plain baselines on your data, and write a report."""
    with _one_line_errors(f"Run the same command again: it goes on from {store}."):
        refuse_same_file(
            data=_file(data),
            store=store,
            log_of_the_store=f"{store}-wal",
            index_of_the_store=f"{store}-shm",
            report=report,
        )
        if report is not None:
            check_place("report", report)
        found = compare(
            _data(data, target, drop, categorical, missing, rows),
            n_divisions=divisions,
            train_size=train_size,
            seed=seed,
            methods=method,
            store=store,
            n_jobs=jobs,
            progress=True,
            started=lambda dataset, notes: show.show_data(_out, dataset, notes),
        )
        name = found.dataset.name
        page = store.parent / f"{name}.html" if report is None else report
        page = write_report(found.records, page, title=f"{name}: learned kernels and baselines")
        show.show_comparison(_out, found)
        _say_where("report", page)


@app.command("reproduce")
def _reproduce(
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
    jobs: _Jobs = None,
    store: _Store = DEFAULT_STORE,
) -> None:
    """Run published tables again and show our numbers beside the printed ones."""
    with _one_line_errors(f"Run the same command again: it goes on from {store}."):
        chosen = _chosen(names or ["all"])
        if list_ or not names:
            show.show_reproducible(_out, chosen)
            return
        limit = divisions if divisions is not None else QUICK if quick else None
        make_folder_of(store)
        with Store(store) as results:
            cells = [each for found in chosen for each in _run_one(found, results, limit, jobs)]
        good = sum(each.verdict in ("agrees", "better") for each in cells)
        judged = sum(each.verdict != "not judged" for each in cells)
        _out.print(f"\n[bold]{good} of {judged} cells agree or are better[/]")
        if limit is not None:
            _out.print(f"[dim]with at most {limit} divisions: few, so errors are uncertain too[/]")


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
    show.show_reproduction(_out, found, cells, records)
    if found.figure is not None and records:
        page = store.path.parent / f"{found.id}.png"
        drawn = io.BytesIO()
        found.figure(records).savefig(drawn, format="png", dpi=150, bbox_inches="tight")
        write_file(page, drawn.getvalue())
        _say_where("figure", page)
    return cells


@app.command("report")
def _report(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="A file of results.")
    ] = DEFAULT_STORE,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The page. (default: beside the store)"
        ),
    ] = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Its title.")] = "Results",
) -> None:
    """Make a page of all that a file of results holds."""
    with _one_line_errors():
        page = output or store.with_suffix(".html")
        refuse_same_file(store=store, report=page)
        check_place("report", page)
        with _open_store(store) as results:
            records, held = stored_records(results), results.held()
        if held:
            holders = " and ".join(sorted(set(held.values())))
            typer.echo(
                f"note: {holders} runs {len(held)} more cells now; the page holds what is finished "
                "so far",
                err=True,
            )
        if not records:
            raise InvalidInputError(
                f"{store} holds no results. Run: discernel compare --store {store}"
            )
        _say_where("report", write_report(records, page, title=title))


def _open_store(path: Path) -> Store:
    if not path.is_file():
        raise InvalidInputError(
            f"The store must be a file that is there. Got {str(path)!r}. `discernel compare` and "
            "`discernel reproduce` make one."
        )
    return Store(path)


@app.command("fit")
def _fit(
    data: _ManyData,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model goes.")
    ],
    target: _Target = None,
    drop: _Drop = None,
    categorical: _Categorical = None,
    missing: _Missing = "error",
    criterion: Annotated[
        str, typer.Option(metavar="NAME", help="What makes a combination good.")
    ] = "auto",
    max_time: _MaxTime = None,
    scheduler: _Scheduler = None,
) -> None:
    """Learn the kernel and its discriminant on all rows, and save the model.

    Rows of several files, or of a large one, are read twice, in chunks, and need not fit into
    memory. Categories and missing cells are then taken as they are.
    """
    with _one_line_errors():
        refuse_same_file(data=_file(data[0]), model=output)
        check_place("model", output)
        learner = models.Learner(criterion, max_time)
        if many.are_many(data) or scheduler is not None:
            if categorical or missing != "error":
                raise InvalidInputError(
                    "--categorical and --missing are for a file that fits into memory. Rows in "
                    "chunks have categories and missing cells taken as they are. Leave them out."
                )
            with row_bars(["first pass", "second pass"]) as told:
                model = many.fit_many(data, target, drop or (), learner, told, scheduler)
            show.show_streamed(_out, model)
        else:
            meant = _data(data[0], target, drop, categorical, missing)
            model, dataset, notes = models.fit_model(meant, learner)
            show.show_data(_out, dataset, notes)
        path = models.save_model(model, output)
        show.show_model(_out, model)
        _say_where("model", path)


@app.command("predict")
def _predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `discernel fit` wrote.")],
    data: _ManyData,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "--out",
            "-o",
            metavar="FILE",
            help="A CSV or Parquet file. (default: CSV to the terminal)",
        ),
    ] = None,
    scheduler: _Scheduler = None,
) -> None:
    """Predict the classes of rows, with their probabilities, as CSV or Parquet.

    A class whose name a spreadsheet would take for a formula, one that begins with =, +, -, @, a
    tab or the end of a line and is no number, has an apostrophe in front in CSV. Rows of several
    files, or of a large one, are predicted in chunks.
    """
    with _one_line_errors():
        refuse_same_file(model=model, data=_file(data[0]), predictions=output)
        if output is not None:
            check_place("predictions", output)
        loaded, where = models.load_model(model), _to_the_terminal if output is None else output
        if many.are_many(data) or scheduler is not None:
            with row_bars(["predicting"]) as told:
                parts = many.predict_many(loaded, data, told, scheduler)
                known = many.write_predictions(parts, where)
        else:
            known = many.write_predictions([models.predict_rows(loaded, data[0])], where)
        if output is None:
            sys.stdout.flush()  # a pipe that is closed, or a full disk, is said here
        else:
            _say_where("predictions", output)
        n_known, n_right = known
        if n_known:
            typer.echo(f"accuracy {n_right / n_known:.3f} on {n_known:,} rows", err=True)


def _to_the_terminal(text: str) -> None:
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


@app.command("bench")
def _bench(
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
    with _one_line_errors():
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
        show.show_benchmark(_out, results, verdicts)
        if output is not None:
            _say_where("record", output)
        if any(v.kind == "worse" for v in verdicts) or any(r.failed for r in results):
            raise typer.Exit(1)


@app.command("info")
def _info(store: _Store = DEFAULT_STORE) -> None:
    """Show versions, threads, data sets and where results are."""
    with _one_line_errors():
        n_finished = None
        if store.is_file():
            with Store(store) as results:
                n_finished = len(results.finished())
        show.show_info(_out, store, n_finished)


def _say_where(what: str, path: Path) -> None:
    """Print a path on a line of its own, whole, so that it can be copied and clicked."""
    typer.echo(f"{what}: {_on_one_line(path.resolve())}")
