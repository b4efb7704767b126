"""A deadline for the work within: long work looks at it, and stops in time.

Solvers and searches ask `must_stop_learning` between their steps, and end with what they have.
Work that cannot end early calls `check_deadline`, which raises `OutOfTimeError`; the fit then
keeps the stage before. Without a deadline both do nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np

__all__ = [
    "Clock",
    "Deadline",
    "OutOfTimeError",
    "active_deadline",
    "check_deadline",
    "is_late",
    "keep_deadline",
    "must_stop_learning",
    "seconds_left",
]

#: A clock, in seconds.
Clock = Callable[[], float]


class OutOfTimeError(Exception):
    """Work that cannot end before its deadline; never seen by users."""


@dataclass(frozen=True)
class Deadline:
    """When work must have ended.

    Attributes
    ----------
    end : float
        By the clock.
    clock : callable
        Returns seconds.
    reserve : float
        Seconds that are kept for what follows the learning of weights.
    rate : float
        Operations per second of a factorisation.
    learns : bool
        Whether weights are learned at all; False: solvers stop at their start, equal weights.
    cut : threading.Event
        Set once work has been told to stop learning before its end.
    """

    end: float
    clock: Clock = time.perf_counter
    reserve: float = 0.0
    rate: float = np.inf
    learns: bool = True
    cut: threading.Event = field(default_factory=threading.Event, init=False, compare=False)

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.perf_counter) -> Deadline:
        """Return the deadline that is some seconds away."""
        return cls(clock() + seconds, clock)

    @property
    def left(self) -> float:
        """The seconds that are left; negative when it is over."""
        return self.end - self.clock()

    def check(self, operations: float = 0.0) -> None:
        """Raise an error if there is no time for so many operations."""
        if self.end < np.inf and self.left < operations / self.rate:
            raise OutOfTimeError("There is no time left for this stage of the fit.")


_ACTIVE: ContextVar[Deadline | None] = ContextVar("_ACTIVE", default=None)


@contextmanager
def keep_deadline(deadline: Deadline | None) -> Iterator[None]:
    """Have the work within end by a deadline.

    Parameters
    ----------
    deadline : Deadline or None
        None for work that may take any time.
    """
    token = _ACTIVE.set(deadline)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def active_deadline() -> Deadline | None:
    """Return the deadline of the present work; None where there is none."""
    return _ACTIVE.get()


def check_deadline(operations: float = 0.0) -> None:
    """Raise `OutOfTimeError` if there is no time for so many operations of a factorisation."""
    deadline = _ACTIVE.get()
    if deadline is not None:
        deadline.check(operations)


def seconds_left() -> float:
    """Return the seconds for learning weights; infinite without a deadline."""
    deadline = _ACTIVE.get()
    return np.inf if deadline is None else deadline.left - deadline.reserve


def is_late() -> bool:
    """Whether the time for learning weights is over. The deadline keeps that work was told so."""
    deadline = _ACTIVE.get()
    if deadline is None or deadline.left > deadline.reserve:
        return False
    deadline.cut.set()
    return True


def must_stop_learning() -> bool:
    """Whether a solver is to stop with the weights that it has."""
    deadline = _ACTIVE.get()
    return deadline is not None and (not deadline.learns or is_late())
