"""How fast this machine is right now: some hundredths of a second of what fits are made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from discernel.arrays import Buffers, draw_rows, n_rows, one_blas_thread
from discernel.kernels import Kernel
from discernel.kernels.evaluate import KernelSet, can_prepare
from discernel.progress.deadline import Clock

__all__ = ["Speed", "mean_seconds", "measure_speed"]

#: Rows of the matrix that is multiplied.
_ROWS = 600
#: Factorisations of large matrices have this share of the speed of products, and half of that at so
#: many rows: on one thread 35, 38 and 45 Gflop/s at 1,000, 2,000 and 4,000 where products have 48;
#: on two 21, 43, 79 and 94 at 1,000, 2,500, 6,000 and 10,000 where products have 228.
_FACTORING, _HALF_SPEED, _HALF_SPEED_ALONE = 0.8, 4600.0, 200.0
#: Rows and columns of the tile that kernels are computed on, and of that for the user's own, of
#: which an entry may take a thousand times as long.
_TILE, _SMALL_TILE = (256, 512), (32, 64)
#: What every further thread makes all of them wait, as a share: Python runs in one at a time.
_WAITING = 0.12
#: How many times as fast several threads of BLAS must be to be worth their waiting.
_FASTER = 1.2
#: Seconds that a measurement takes at least. On a busy machine a process has its turn for some
#: milliseconds at a time: shorter measurements end before the others have theirs.
_MEASURED = 0.04
#: Measurements are repeated no more often than this.
_MOST_REPEATS = 50


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
    single : float or None
        Operations per second of a product on one thread; None: an equal part of ``product``.
    blas_threads_pay : bool
        Whether products are faster on several threads. On a busy machine the threads of a
        factorisation wait for each other: 2,000 rows took 20 to 50 s, and 6 to 12 on one thread.
    """

    product: float
    entry: float
    n_threads: int
    single: float | None = None
    blas_threads_pay: bool = True

    @property
    def threads_in_effect(self) -> float:
        """How many times as fast tiles are as on one thread: 1.8, 2.9, 4.3 and 5.7 for 2 to 16."""
        return self._in_effect(self.n_threads)

    @staticmethod
    def _in_effect(n_threads: int) -> float:
        return n_threads / (1.0 + _WAITING * (n_threads - 1))

    def jobs(self, n_jobs: int) -> float:
        """Return the operations per second of some jobs that have a thread each."""
        single = self.product / self.n_threads if self.single is None else self.single
        return single * self._in_effect(min(n_jobs, self.n_threads))

    def factorisation(self, n: float) -> float:
        """Return the operations per second of a Cholesky factorisation of n rows.

        A share of those of products, which small matrices have less of.
        """
        together = self.n_threads > 1 and self.blas_threads_pay
        half_speed = _HALF_SPEED if together else _HALF_SPEED_ALONE
        return _FACTORING * self.product * n / (n + half_speed)


def measure_speed(kernels: Sequence[Kernel], X: Any, *, clock: Clock = time.perf_counter) -> Speed:
    """Return the rates that this process has at present, beside all others that are running.

    Parameters
    ----------
    kernels : sequence of Kernel
        The candidates, resolved.
    X : array-like of shape (n_samples, n_features)
        The training rows.
    clock : callable
        Returns seconds.
    """
    safe = all(kernel.thread_safe for kernel in kernels)
    n_threads = int(joblib.cpu_count()) if safe else 1
    product = _product_rate(clock)
    with one_blas_thread():
        single = product if joblib.cpu_count() == 1 else _product_rate(clock)
    pay = product >= _FASTER * single or n_threads == 1
    entry = _entry_seconds(kernels, X, clock)
    return Speed(product if pay else single, entry, n_threads, single, pay)


def _product_rate(clock: Clock) -> float:
    matrix = np.random.default_rng(0).standard_normal((_ROWS, _ROWS))
    return 2.0 * _ROWS**3 / mean_seconds(lambda: matrix @ matrix, clock)


def _entry_seconds(kernels: Sequence[Kernel], X: Any, clock: Clock) -> float:
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

    return mean_seconds(compute, clock) / ((top.stop - top.start) * (left.stop - left.start))


def mean_seconds(work: Callable[[], Any], clock: Clock = time.perf_counter) -> float:
    """Return the seconds that something takes, the mean of a few times, the first not counted.

    Parameters
    ----------
    work : callable
        What is measured.
    clock : callable
        Returns seconds.
    """
    work()  # what is set up once is not counted
    start, taken, n_done = clock(), 0.0, 0
    while taken < _MEASURED and n_done < _MOST_REPEATS:
        work()
        taken, n_done = clock() - start, n_done + 1
    return max(taken / n_done, 1e-9)
