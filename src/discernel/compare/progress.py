"""A bar on the terminal for whatever takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from discernel.exceptions import missing_extra
from discernel.show.words import printable


@dataclass(frozen=True)
class Bar:
    """What can be done with a bar; nothing is shown where there is none.

    Attributes
    ----------
    advance : callable
        To be called when a step is done, with its name.
    say : callable
        To be called with a line that stays.
    """

    advance: Callable[[str], None] = lambda name: None
    say: Callable[[str], None] = lambda line: None


@contextmanager
def progress_bar(title: str, total: int, done: int, show: bool) -> Iterator[Bar]:
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
    Bar
        To be told when a step is done.
    """
    if not show:
        yield Bar()
        return
    with open_display() as display:
        console = display.console
        task = display.add_task(printable(title), total=total, completed=done, last="")
        yield Bar(
            lambda name: display.update(task, advance=1, last=printable(name)),
            lambda line: console.print(
                printable(line), markup=False, highlight=False, soft_wrap=True
            ),
        )


def open_display() -> Any:
    """Return a display of bars on the terminal."""
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
    return Progress(*columns, console=Console(stderr=True), speed_estimate_period=always)
