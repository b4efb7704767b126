"""Show data sets, versions and the machine on the terminal."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import markup
from rich.console import Console
from rich.text import Text
from threadpoolctl import threadpool_info

import discernel
from discernel.compare.machine import package_version
from discernel.rows.catalog import CATALOG, CatalogEntry
from discernel.rows.datasets import FOLDER_VARIABLE, Dataset, data_folder
from discernel.rows.labelled import describe_target
from discernel.show.terminal import plain_table
from discernel.show.words import one_line, plural

_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "pandas", "matplotlib", "cvxpy", "skops")


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
    """Return the versions of discernel, Python and the main dependencies."""
    found = {package: package_version(package) for package in _PACKAGES}
    return {"discernel": discernel.__version__, "python": platform.python_version(), **found}


def show_info(console: Console, store: Path, n_finished: int | None) -> None:
    """Show versions, threads, data sets and the file of results."""
    table = plain_table("", "~")
    table.columns[0].style = "bold"
    table.add_row("discernel", discernel.__version__)
    table.add_row("Python", f"{platform.python_version()} on {platform.system()}")
    for package in _PACKAGES:
        table.add_row(package, package_version(package) or "not installed")
    table.add_row("cores", str(os.cpu_count()))
    for pool in threadpool_info():
        library = f"{pool['internal_api']} {pool.get('version') or ''}".strip()
        table.add_row(pool["user_api"], f"{library}, {pool['num_threads']} threads")
    folder = data_folder()
    table.add_row(FOLDER_VARIABLE, "not set" if folder is None else escape(str(folder)))
    finished = "none yet" if n_finished is None else f"{n_finished:,} finished runs"
    table.add_row("results", f"{escape(str(store))}: {finished}")
    console.print(Text(""), table, Text(""), _catalog(folder), sep="\n")


def _catalog(folder: Path | None) -> Any:
    """Return a table of the data sets, with their sizes and sources."""
    table = plain_table("data set", ">rows", ">features", "from")
    for name, entry in sorted(CATALOG.items()):
        table.add_row(name, f"{entry.shape[0]:,}", f"{entry.shape[1]:,}", _source(entry, folder))
    return table


def _source(entry: CatalogEntry, folder: Path | None) -> Text:
    """Return the source from which `discernel.datasets.load` would load a data set."""
    if not entry.file:
        return Text("bundled")
    if folder is not None and (folder / entry.file).is_file():
        return Text("folder")
    if entry.openml:
        return Text("OpenML, downloaded on first use", style="dim")
    return Text(f"not available: needs {FOLDER_VARIABLE}", style="dim")
