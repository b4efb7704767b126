"""The command `discernel reproduce`, available if this package is installed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from discernel.cli.shared import Jobs, StoreFile, one_line_errors, out, say_where
from discernel.cli.show import escape
from discernel.cli.show_comparing import show_failures
from discernel.compare.compare import DEFAULT_STORE
from discernel.compare.store import Record, Store
from discernel.rows.writing import make_parent_folder, write_file
from discernel.show.terminal import plain_table
from discernel_reproduction import reproduce
from discernel_reproduction.reproduce import Reproduced, Reproduction, both_numbers

#: Splits per plan with ``--quick``.
QUICK = 3
_VERDICTS = {
    "agrees": "green",
    "better": "green",
    "differs": "red",
    "not judged": "dim",
    "not run": "dim",
}


def reproduce_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...", help="Tables or figures, papers, or 'all'. (default: list them)"
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List tables and figures.")] = False,
    quick: Annotated[bool, typer.Option(help=f"At most {QUICK} splits each.")] = False,
    splits: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="At most N splits each.")
    ] = None,
    jobs: Jobs = None,
    store: StoreFile = DEFAULT_STORE,
) -> None:
    """Reproduce published tables.

    Our numbers are shown beside the printed ones, with a verdict on each.
    Results are stored: the same command continues from them.
    """
    with one_line_errors(f"Run the same command again: it continues from {store}."):
        chosen = _chosen(names or ["all"])
        if list_ or not names:
            _show_reproducible(chosen)
            return
        limit = splits if splits is not None else QUICK if quick else None
        make_parent_folder(store)
        with Store(store) as results:
            cells = [each for found in chosen for each in _run_one(found, results, limit, jobs)]
        good = sum(each.verdict in ("agrees", "better") for each in cells)
        judged = sum(each.verdict != "not judged" for each in cells)
        out.print(f"\n[bold]{good} of {judged} cells agree or are better[/]")
        if limit is not None:
            out.print(f"[dim]with at most {limit} splits: few, so errors are uncertain too[/]")


def _chosen(names: Sequence[str]) -> list[Reproduction]:
    """Return the reproductions selected by names of tables or papers, or by 'all'."""
    known = reproduce.names()
    wanted = [
        each
        for name in names
        for each in ([n for n in known if name in ("all", n.partition("-")[0])] or [name])
    ]
    return [reproduce.reproduction(name) for name in dict.fromkeys(wanted)]


def _run_one(
    found: Reproduction, store: Store, limit: int | None, jobs: int | None
) -> list[Reproduced]:
    """Run one table, show it, and save its figure."""
    found = found if limit is None else found.with_splits(limit)
    cells = reproduce.reproduce(found, store, n_jobs=jobs or -1, progress=True)
    records = reproduce.stored(found, store)
    _show_reproduction(found, cells, records)
    if found.figure is not None and records:
        page = store.path.parent / f"{found.id}.png"
        drawn = io.BytesIO()
        found.figure(records).savefig(drawn, format="png", dpi=150, bbox_inches="tight")
        write_file(page, drawn.getvalue())
        say_where("figure", page)
    return cells


# ---- terminal output -------------------------------------------------------------------


def _show_reproducible(found: Sequence[Reproduction]) -> None:
    """List the tables and figures that can be reproduced."""
    table = plain_table("name", ">cells", ">runs", "~title")
    for each in found:
        runs = sum(len(plan.cells()) for plan in each.plans)
        table.add_row(each.id, str(len(each.links)), f"{runs:,}", escape(each.title))
    out.print(table)
    out.print("\nRun some: discernel reproduce NAME ... [--quick]")


def _show_reproduction(
    found: Reproduction, cells: Sequence[Reproduced], records: Sequence[Record]
) -> None:
    """Show our numbers beside the published ones, and failures."""
    out.print()
    out.print(f"[bold]{found.id}[/]  {escape(found.title)}")
    reasons = list(dict.fromkeys(each.reason for each in cells if each.reason))
    if cells:
        out.print(_beside(cells, reasons))
        units = sorted({each.cell.unit.replace("_", " ") for each in cells})
        out.print(f"[dim]in {', '.join(units)}; ± one standard error[/]")
    show_failures(out, records)
    for number, words in enumerate(reasons, start=1):
        out.print(f"[dim]{number}[/] {escape(words)}")
    for words in found.notes:
        out.print(f"[dim]·[/] {escape(words)}")


def _beside(cells: Sequence[Reproduced], reasons: Sequence[str]) -> Table:
    """Return a table with a row per cell; numbers in the last column refer to reasons."""
    table = plain_table("~row", "~column", ">published", ">ours", "verdict")
    for each in cells:
        verdict = Text(each.verdict, style=_VERDICTS[each.verdict])
        if each.reason:
            verdict.append(f" {reasons.index(each.reason) + 1}", style="dim")
        printed, ours = both_numbers(each)
        printed += "?" * each.cell.uncertain
        table.add_row(escape(each.cell.row), escape(each.cell.column), printed, ours, verdict)
    return table
