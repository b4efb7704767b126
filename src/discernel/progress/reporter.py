"""Progress of a long fit: elapsed time relative to the forecast, and the current phase.

A thread writes progress, so that it is shown during a single large factorization too. The fit calls
`phase` to name its current step.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

#: Seconds between updates on a terminal, and between lines in a file.
_TERMINAL, _FILE = 0.5, 30.0
_WIDTH = 20


class _Reporter:
    """Writes the progress of a fit from a thread, until stopped."""

    def __init__(self, seconds: float, stream: TextIO) -> None:
        self.seconds, self._stream = seconds, stream
        self.phase = "starting"
        self._start, self._done = time.perf_counter(), threading.Event()
        self._overwrites = stream.isatty()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def enter(self, phase: str) -> None:
        """Set the current phase."""
        self.phase = phase

    def line(self) -> str:
        """Return a line with a bar, the elapsed and forecast time, and the phase."""
        elapsed = time.perf_counter() - self._start
        share = min(0.99, elapsed / self.seconds) if self.seconds > 0 else 0.99
        bar = "#" * int(_WIDTH * share)
        late = ", longer than forecast" if elapsed > self.seconds else ""
        return (
            f"[{bar:.<{_WIDTH}}] {share:4.0%}  {in_words(elapsed)} of about "
            f"{in_words(self.seconds)}{late}: {self.phase}"
        )

    def stop(self, *, finished: bool) -> None:
        """Stop the thread, and write the last line."""
        self._done.set()
        self._thread.join()
        elapsed = in_words(time.perf_counter() - self._start)
        line = f"[{'#' * _WIDTH}] 100%  done in" if finished else "Stopped after"
        self._write(f"{line} {elapsed}", "\n")

    def _run(self) -> None:
        while not self._done.wait(_TERMINAL if self._overwrites else _FILE):
            self._write(self.line(), "" if self._overwrites else "\n")

    def _write(self, line: str, end: str) -> None:
        start = "\r\x1b[K" if self._overwrites else ""
        self._stream.write(f"{start}{line}{end}")
        self._stream.flush()


_ACTIVE: ContextVar[_Reporter | None] = ContextVar("_ACTIVE", default=None)


def phase(what: str) -> None:
    """Name the current step of the fit, if progress is shown."""
    reporter = _ACTIVE.get()
    if reporter is not None:
        reporter.enter(what)


@contextmanager
def reporting(seconds: float, *, verbose: bool, stream: TextIO | None = None) -> Iterator[None]:
    """Show progress within a ``with`` block.

    Parameters
    ----------
    seconds : float
        The forecast of the time.
    verbose : bool
        Whether progress is shown.
    stream : file, optional
        The output; by default standard error.
    """
    if not verbose:
        yield
        return
    reporter = _Reporter(seconds, sys.stderr if stream is None else stream)
    token, finished = _ACTIVE.set(reporter), False
    try:
        yield
        finished = True
    finally:
        _ACTIVE.reset(token)
        reporter.stop(finished=finished)


def in_words(seconds: float) -> str:
    """Return a duration with a suitable unit: seconds, minutes or hours."""
    if seconds < 1.5:
        return f"{seconds:.1g} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
