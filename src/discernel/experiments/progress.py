"""A bar on the terminal for whatever takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from discernel.exceptions import missing_extra

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(title: str, total: int, done: int, show: bool) -> Iterator[Callable[[str], None]]:
    """Show a bar with an estimate of the time left.

    Parameters
    ----------
    title : str
        What runs.
    total, done : int
        How many steps there are, and how many of them were done before.
    show : bool
        Whether there is a bar at all.

    Yields
    ------
    callable
        To be called when a step is done, with its name.
    """
    if not show:
        yield lambda name: None
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
    except ImportError as error:
        raise missing_extra(
            "A progress display needs rich", "app", "pass progress=False"
        ) from error
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}", style="dim", markup=False),
    )
    # The estimate is made from all steps so far: they may take longer than rich looks back.
    always = float("inf")
    console = Console(stderr=True)
    with Progress(*columns, console=console, speed_estimate_period=always) as display:
        task = display.add_task(title, total=total, completed=done, last="")
        yield lambda name: display.update(task, advance=1, last=name)
