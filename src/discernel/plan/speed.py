"""Measurement of the current speed of this machine or a device, in about 0.1 s."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from discernel.arrays import Device, draw_rows, in_threads, n_cores, n_rows, one_blas_thread
from discernel.bank.device import is_refined
from discernel.bank.tiled import CACHE_BYTES, Threads
from discernel.kernels import Kernel
from discernel.kernels.evaluate import KernelSet
from discernel.progress.deadline import Clock

#: Rows of the matrices that are multiplied on the host, on a GPU, and on other devices.
_ROWS, _ROWS_ON_GPU, _FEW = 600, 4096, 512
#: Speed of factorizations of large matrices as a share of the speed of products, and the number of
#: rows, with several threads or one, at which it is half of that. Measured on one thread: 35, 38
#: and 45 Gflop/s at 1,000, 2,000 and 4,000 rows (products: 48); on two threads: 21, 43, 79 and 94
#: at 1,000, 2,500, 6,000 and 10,000 rows (products: 228); on 16 threads: 220 and 500 at 4,000 and
#: 10,000 rows (products: 420, as their threads wait for each other too).
_FACTORING, _HALF_SPEED, _HALF_SPEED_ALONE = 0.8, 4600.0, 200.0
#: Number of threads from which on that is so.
_MANY_THREADS = 8
#: Seconds for each further thread until a pass over tiles has all of them: they are started anew,
#: while those of BLAS, which spin for some time after each call, keep the cores. On 16 threads, a
#: pass over 4,000 rows took 0.02 s before and 0.11 s after a product of matrices.
_STARTING = 0.006
#: Rows of the measured tiles, and of those of kernels written by users, whose entries may take a
#: thousand times as long.
_TILED_ROWS, _FEW_TILED_ROWS = 768, 48
#: Relative waiting time for each further thread, if it is not measured: that of NumPy's operations
#: on tiles, because of Python's global lock.
_WAITING = 0.12
#: Seconds of the jobs of each thread, by which waiting is measured.
_THREADED = 0.005
#: Speedup of several BLAS threads from which they are used.
_FASTER = 1.2
#: Further measurements if they seem to be slower. On 16 idle cores, threads that still spun made
#: one measurement in eight too slow, and with it the fit: its factorizations then had one thread.
_TRIES = 2
#: Minimum seconds of a measurement. On a busy machine, processes alternate every few milliseconds,
#: so shorter measurements would ignore the other processes.
_MEASURED = 0.04
#: Maximum number of repetitions of a measurement.
_MOST_REPEATS = 50
#: Seconds to read an entry of a precomputed matrix on a device.
_READ = 4e-12


@dataclass(frozen=True)
class Speed:
    """Rates of this machine or of a device, for the kernels and rows of a fit.

    Attributes
    ----------
    product : float
        Operations per second of a product of large matrices, all threads together.
    entry : float
        Seconds per entry of the matrices of all kernels, on one thread.
    n_threads : int
        Number of threads that compute tiles.
    single : float or None
        Operations per second of a product on one thread; None for ``product / n_threads``.
    blas_threads_pay : bool
        Whether products are faster on several threads. On a busy machine the threads of a
        factorization wait for each other: 2,000 rows took 20 to 50 s, and 6 to 12 s on one thread.
    waiting : float
        Time that a thread waits for each other thread, relative to the time of its work.
    """

    product: float
    entry: float
    n_threads: int = 1
    single: float | None = None
    blas_threads_pay: bool = True
    waiting: float = _WAITING

    def threads_in_effect(self, most: float = np.inf) -> float:
        """Return the speedup by threads.

        With the default of ``waiting``, it is 1.8, 2.9, 4.3 and 5.7 for 2, 4, 8 and 16 threads.
        """
        n_threads = min(most, self.n_threads)
        return n_threads / (1.0 + self.waiting * (n_threads - 1))

    @property
    def starting(self) -> float:
        """Seconds until a pass over tiles has all of its threads."""
        return _STARTING * (self.n_threads - 1)

    def jobs(self, n_jobs: int) -> float:
        """Return the operations per second of jobs with one thread each."""
        single = self.product / self.n_threads if self.single is None else self.single
        return single * self.threads_in_effect(n_jobs)

    def factorisation(self, n: float) -> float:
        """Return the operations per second of a Cholesky factorization of n rows.

        This is a share of the speed of products that grows with n.
        """
        waits = 1 < self.n_threads < _MANY_THREADS and self.blas_threads_pay
        half_speed = _HALF_SPEED if waits else _HALF_SPEED_ALONE
        return _FACTORING * self.product * n / (n + half_speed)


def measure_speed(kernels: Sequence[Kernel], X: Any, *, clock: Clock = time.perf_counter) -> Speed:
    """Measure the current rates of this process, with all other processes running."""
    cores = n_cores()
    n_threads = cores if all(kernel.thread_safe for kernel in kernels) else 1
    # Tiles before products: after these, threads of BLAS spin for 30 ms, and tiles seem to wait.
    ours = not KernelSet(kernels).direct
    compute, entries = _tile_pass(kernels, draw_rows(X, _TILED_ROWS if ours else _FEW_TILED_ROWS))
    alone, waiting = _mean_seconds(compute, clock), _WAITING
    if n_threads > 1 and ours:
        n_jobs = n_threads * max(1, int(_THREADED / alone))
        places = [None] * n_threads

        def compute_in_threads() -> None:
            in_threads(lambda *_: compute(), range(n_jobs), places)

        together = _mean_seconds(compute_in_threads, clock) / (n_jobs / n_threads)
        waiting = float(np.clip((together / alone - 1.0) / (n_threads - 1), 0.0, 1.0))
    matrix = np.random.default_rng(0).standard_normal((_ROWS, _ROWS))
    multiply = partial(np.matmul, matrix, matrix)
    product = single = 2.0 * _ROWS**3 / _mean_seconds(multiply, clock)
    if cores > 1:
        with one_blas_thread():
            single = 2.0 * _ROWS**3 / _mean_seconds(multiply, clock)
    for _ in range(_TRIES if cores > 1 else 0):
        if product >= _FASTER * single:
            break
        product = max(product, 2.0 * _ROWS**3 / _mean_seconds(multiply, clock))
    pay = product >= _FASTER * single or n_threads == 1
    return Speed(product if pay else single, alone / entries, n_threads, single, pay, waiting)


def _tile_pass(kernels: Sequence[Kernel], X: Any) -> tuple[Callable[[], Any], int]:
    """Return a function that computes all tiles of some rows, and the number of their entries.

    As in banks, all kernels are computed together and multiplied by a vector; in one thread.
    Precomputed matrices are only read.
    """
    if kernels[0].precomputed:
        return partial(np.sum, X), max(1, X.size // len(kernels))
    engine, vector = Threads(kernels, X, 1, CACHE_BYTES), np.ones((n_rows(X), 1))
    entries = sum(
        (rows.stop - rows.start) * (columns.stop - columns.start)
        for rows, columns in engine.tiles()
    )
    return lambda: engine.product(vector), entries


def measure_device(kernels: Sequence[Kernel], X: Any, device: Device) -> Speed:
    """Measure the rates of a device, in the precision used for this many rows.

    Parameters
    ----------
    kernels : sequence of Kernel
        The candidates, resolved.
    X : ndarray of shape (n_samples, n_features)
        The training rows, or precomputed matrices.
    device : Device
        The device.
    """
    rate = device_product_rate(device, single=is_refined(n_rows(X)))
    if kernels[0].precomputed:
        return Speed(rate, _READ * len(kernels))
    kernel_set = KernelSet(kernels)
    rows = draw_rows(X, _ROWS_ON_GPU if device.is_cuda and not kernel_set.direct else _FEW)
    on_device = kernel_set.prepare(rows).on(device)

    def compute() -> None:
        for _, matrix in kernel_set.matrices(on_device, on_device, aligned=True):
            device.xp.sum(matrix, axis=0)
        float(device.zeros((1,))[0])  # waits until all operations are done

    return Speed(rate, _mean_seconds(compute) / len(rows) ** 2)


@lru_cache(maxsize=16)
def device_product_rate(device: Device, *, single: bool) -> float:
    """Measure the operations per second of a product on a device."""
    n = _ROWS_ON_GPU if device.is_cuda else _FEW
    matrix = device.put(np.random.default_rng(0).standard_normal((n, n)), single=single)

    def multiply() -> None:
        with device.coarse_products(single):
            device.xp.matmul(matrix, matrix)
        float(device.zeros((1,))[0])

    return 2.0 * n**3 / _mean_seconds(multiply)


def _mean_seconds(work: Callable[[], Any], clock: Clock = time.perf_counter) -> float:
    """Return the mean seconds of a few calls, not counting the first."""
    work()
    start, taken, n_done = clock(), 0.0, 0
    while taken < _MEASURED and n_done < _MOST_REPEATS:
        work()
        taken, n_done = clock() - start, n_done + 1
    return max(taken / n_done, 1e-9)
