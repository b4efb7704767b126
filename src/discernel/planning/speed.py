"""How fast this machine is right now: some hundredths of a second of what fits are made of."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import joblib
import numpy as np

from discernel.backend import Buffers, draw_rows, n_rows
from discernel.kernels import Kernel
from discernel.kernels.evaluate import KernelSet, can_prepare

__all__ = ["Speed", "least_seconds", "measure_speed"]

#: Rows of the matrix that is multiplied.
_ROWS = 1000
#: Factorisations of large matrices have this share of the speed of products, and half of that at so
#: many rows: 21, 43, 79 and 94 Gflop/s at 1,000, 2,500, 6,000 and 10,000 where products have 228.
_FACTORING, _HALF_SPEED = 0.6, 4600.0
#: Rows and columns of the tile that kernels are computed on, and of that for the user's own, of
#: which an entry may take a thousand times as long.
_TILE, _SMALL_TILE = (256, 512), (32, 64)
#: What every further thread makes all of them wait, as a share: Python runs in one at a time.
_WAITING = 0.12
#: The least of so many times is taken: what else the machine does is not ours.
_REPEATS = 3


@dataclass(frozen=True)
class Speed:
    """Rates of this machine, for the kernels and rows of a fit.

    Attributes
    ----------
    product : float
        Operations per second of a product of large matrices, all threads together.
    entry : float
        Seconds per entry of the matrices of all kernels, on one thread.
    n_threads : int
        Threads that tiles go to.
    """

    product: float
    entry: float
    n_threads: int

    @property
    def threads_in_effect(self) -> float:
        """How many times as fast tiles are as on one thread: 1.8, 2.9, 4.3 and 5.7 for 2 to 16."""
        return self.n_threads / (1.0 + _WAITING * (self.n_threads - 1))

    def factorisation(self, n: float) -> float:
        """Return the operations per second of a Cholesky factorisation of n rows.

        A share of those of products, which small matrices have less of.
        """
        return _FACTORING * self.product * n / (n + _HALF_SPEED)


def measure_speed(kernels: Sequence[Kernel], X: Any) -> Speed:
    """Return the rates of this machine.

    Parameters
    ----------
    kernels : sequence of Kernel
        The candidates, resolved.
    X : array-like of shape (n_samples, n_features)
        The training rows.
    """
    safe = all(kernel.thread_safe for kernel in kernels)
    n_threads = int(joblib.cpu_count()) if safe else 1
    entry, busy = _entry_seconds(kernels, X), _slowdown()
    return Speed(_product_rate() / busy, entry * busy, n_threads)


def _slowdown() -> float:
    """Return how much longer everything takes because of what else the machine does.

    Short measurements do not see it: they end before the others have their turn.
    """
    try:
        waiting = os.getloadavg()[0]
    except (AttributeError, OSError):  # Windows
        return 1.0
    return max(1.0, waiting / int(joblib.cpu_count()))


@lru_cache(maxsize=1)
def _product_rate() -> float:
    matrix = np.random.default_rng(0).standard_normal((_ROWS, _ROWS))
    return 2 * _ROWS**3 / least_seconds(lambda: matrix @ matrix)


def _entry_seconds(kernels: Sequence[Kernel], X: Any) -> float:
    """Return the seconds per entry of all kernels together, computed as banks compute them."""
    kernel_set = KernelSet(kernels)
    height, width = _SMALL_TILE if kernel_set.direct else _TILE
    rows = draw_rows(X, height + width)
    if can_prepare(X):
        rows = kernel_set.prepare(rows)
    n = min(n_rows(X), height + width)
    top, left, buffers = slice(0, min(height, n)), slice(max(0, n - width), n), Buffers()

    def compute() -> None:
        for _, matrix in kernel_set.matrices(rows[top], rows[left], buffers):
            matrix.sum()

    return least_seconds(compute) / ((top.stop - top.start) * (left.stop - left.start))


def least_seconds(work: Callable[[], Any]) -> float:
    """Return the seconds that something takes, the least of a few, the first not counted."""
    work()  # what is set up once is not counted
    found = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)
