"""The current deadline, which long computations check.

Solvers and searches call `must_stop_learning` between steps, and return their current result when
it is True. Computations without intermediate results call `check_deadline`, which raises
`OutOfTimeError`; the fit then keeps the model of the previous stage.
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
    """A computation cannot finish before its deadline. The fit catches this error."""


@dataclass(frozen=True)
class Deadline:
    """The time at which a computation must end.

    Attributes
    ----------
    end : float
        The deadline, in seconds of the clock.
    clock : callable
        Returns the current time in seconds.
    reserve : float
        Seconds reserved for the steps after learning weights.
    rate : float
        Operations per second of a factorization.
    learns : bool
        Whether weights are learned; if False, solvers return their initial, equal weights.
    cut : threading.Event
        Set when learning was stopped early.
    """

    end: float
    clock: Clock = time.perf_counter
    reserve: float = 0.0
    rate: float = np.inf
    learns: bool = True
    cut: threading.Event = field(default_factory=threading.Event, init=False, compare=False)

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.perf_counter) -> Deadline:
        """Return the deadline some seconds from now."""
        return cls(clock() + seconds, clock)

    @property
    def left(self) -> float:
        """The seconds until the deadline; negative after it."""
        return self.end - self.clock()

    @property
    def to_learn(self) -> float:
        """The seconds left for learning weights."""
        return self.end - self.clock() - self.reserve


#: The deadline without a time limit.
NO_DEADLINE = Deadline(np.inf)
_ACTIVE: ContextVar[Deadline] = ContextVar("_ACTIVE", default=NO_DEADLINE)


@contextmanager
def keep_deadline(deadline: Deadline = NO_DEADLINE) -> Iterator[None]:
    """Set the current deadline within a ``with`` block.

    Parameters
    ----------
    deadline : Deadline, optional
        The deadline; by default no time limit.
    """
    token = _ACTIVE.set(deadline)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def active_deadline() -> Deadline:
    """Return the current deadline."""
    return _ACTIVE.get()


def check_deadline(operations: float = 0.0) -> None:
    """Raise `OutOfTimeError` if there is no time for a number of factorization operations."""
    deadline = _ACTIVE.get()
    if deadline.end < np.inf and deadline.left < operations / deadline.rate:
        raise OutOfTimeError("There is no time left for this stage of the fit.")


def is_late() -> bool:
    """Whether the time for learning weights is over; if so, record it in the deadline."""
    deadline = _ACTIVE.get()
    if deadline.to_learn > 0:
        return False
    deadline.cut.set()
    return True


def must_stop_learning() -> bool:
    """Whether a solver must return its current weights."""
    return not _ACTIVE.get().learns or is_late()
