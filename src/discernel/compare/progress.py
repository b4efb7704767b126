"""Progress bars on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from discernel.exceptions import needs_extra
from discernel.show.words import printable


class Bar:
    """A progress bar with an estimate of the time left; without a display it does nothing.

    Parameters
    ----------
    display : rich.progress.Progress, optional
        The display, from `open_display`.
    title : str
        Text to the left of the bar.
    total, done : int
        Number of steps, and number of steps already done.
    """

    def __init__(self, display: Any = None, title: str = "", total: int = 0, done: int = 0) -> None:
        self._display = display
        if display is not None:
            self._task = display.add_task(printable(title), total=total, completed=done, last="")

    def advance(self, name: str) -> None:
        """Count one finished step, and show its name."""
        if self._display is not None:
            self._display.update(self._task, advance=1, last=printable(name))

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        if self._display is not None:
            look = {"markup": False, "highlight": False, "soft_wrap": True}
            self._display.console.print(printable(line), **look)


@contextmanager
def progress_bar(title: str, total: int, done: int, show: bool) -> Iterator[Bar]:
    """Yield a `Bar`, displayed if ``show`` is true."""
    if not show:
        yield Bar()
        return
    with open_display() as display:
        yield Bar(display, title, total, done)


def open_display() -> Any:
    """Return a rich display for progress bars, on standard error."""
    with needs_extra("A progress display needs rich", "app", "pass progress=False"):
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}", style="dim", markup=False),
    )
    # Estimate the time from all steps so far: one step may take longer than rich's default window.
    always = float("inf")
    return Progress(*columns, console=Console(stderr=True), speed_estimate_period=always)
