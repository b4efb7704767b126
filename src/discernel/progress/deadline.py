"""Deadlines: long work checks the active one, and stops in time.

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


#: That of work that may take any time.
NO_DEADLINE = Deadline(np.inf)
_ACTIVE: ContextVar[Deadline] = ContextVar("_ACTIVE", default=NO_DEADLINE)


@contextmanager
def keep_deadline(deadline: Deadline = NO_DEADLINE) -> Iterator[None]:
    """Limit the work within by a deadline.

    Parameters
    ----------
    deadline : Deadline, optional
        By default that of work that may take any time.
    """
    token = _ACTIVE.set(deadline)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def active_deadline() -> Deadline:
    """Return the deadline of the present work."""
    return _ACTIVE.get()


def check_deadline(operations: float = 0.0) -> None:
    """Raise `OutOfTimeError` if there is no time for so many operations of a factorisation."""
    deadline = _ACTIVE.get()
    if deadline.end < np.inf and deadline.left < operations / deadline.rate:
        raise OutOfTimeError("There is no time left for this stage of the fit.")


def seconds_left() -> float:
    """Return the seconds for learning weights; infinite without a deadline."""
    deadline = _ACTIVE.get()
    return deadline.left - deadline.reserve


def is_late() -> bool:
    """Whether the time for learning weights is over. The deadline keeps that work was told so."""
    if seconds_left() > 0:
        return False
    _ACTIVE.get().cut.set()
    return True


def must_stop_learning() -> bool:
    """Whether a solver is to stop with the weights that it has."""
    return not _ACTIVE.get().learns or is_late()
