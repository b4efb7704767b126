"""Show data sets, versions and the machine on the terminal."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich import markup
from rich.console import Console
from rich.text import Text
from threadpoolctl import threadpool_info

from discernel.compare.machine import package_version
from discernel.compare.store import Store
from discernel.rows.catalog import CATALOG, CatalogEntry
from discernel.rows.datasets import FOLDER_VARIABLE, Dataset, data_folder
from discernel.rows.labelled import describe_target
from discernel.show.facts import versions_here
from discernel.show.terminal import plain_table
from discernel.show.words import one_line, plural

_PACKAGES = ("joblib", "pandas", "matplotlib", "cvxpy", "skops")


def escape(text: str) -> str:
    """Return text on one line, with rich's markup and control characters made harmless."""
    return markup.escape(one_line(text))


def show_data(console: Console, dataset: Dataset, notes: Sequence[str] = ()) -> None:
    """Show the size of a data set, and notes for users."""
    n_rows, n_features = dataset.X.shape
    views = f", {len(dataset.views)} views" if dataset.views else ""
    console.print(
        f"[bold]{escape(dataset.name)}[/]  {n_rows:,} rows, {plural(n_features, 'feature')}"
        f"{views}, {describe_target(np.asarray(dataset.y))}; from {escape(dataset.source)}"
    )
    for note in notes:
        console.print(f"[yellow]note[/]  {escape(note)}")


# ---- info --------------------------------------------------------------------------------------


def versions() -> dict[str, str | None]:
    """Return the versions of discernel, Python and the main dependencies; None if missing."""
    return versions_here() | {package: package_version(package) for package in _PACKAGES}


def show_info(console: Console, store: Path) -> None:
    """Show versions, threads, data sets and the file of results."""
    table = plain_table("", "~")
    table.columns[0].style = "bold"
    facts = {name: number or "not installed" for name, number in versions().items()}
    facts |= {"system": platform.system(), "cores": str(os.cpu_count())}
    for pool in threadpool_info():
        library = f"{pool['internal_api']} {pool.get('version') or ''}".strip()
        facts[pool["user_api"]] = f"{library}, {pool['num_threads']} threads"
    folder, finished = data_folder(), "none yet"
    if store.is_file():
        with Store(store) as results:
            finished = f"{len(results.finished()):,} finished runs"
    facts[FOLDER_VARIABLE] = "not set" if folder is None else escape(str(folder))
    facts["results"] = f"{escape(str(store))}: {finished}"
    for fact in facts.items():
        table.add_row(*fact)
    known = plain_table("data set", ">rows", ">features", "from")
    for name, entry in sorted(CATALOG.items()):
        known.add_row(name, f"{entry.shape[0]:,}", f"{entry.shape[1]:,}", _source(entry, folder))
    console.print(Text(""), table, Text(""), known, sep="\n")


def _source(entry: CatalogEntry, folder: Path | None) -> Text:
    """Return the source from which `discernel.datasets.load` would load a data set."""
    if not entry.file:
        return Text("bundled")
    if folder is not None and (folder / entry.file).is_file():
        return Text("folder")
    if entry.openml:
        return Text("OpenML, downloaded on first use", style="dim")
    return Text(f"not available: needs {FOLDER_VARIABLE}", style="dim")
