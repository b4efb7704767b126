"""Threads of BLAS and of tiles, never multiplied, the buffers of a thread, and the memory limit."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import joblib
import numpy as np
import threadpoolctl
from threadpoolctl import ThreadpoolController

from discernel.arrays.rows import FloatArray
from discernel.progress.deadline import active_deadline, check_deadline, keep_deadline

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

Job = TypeVar("Job")
Part = TypeVar("Part")

#: Below this size a second thread gains a third at best and, on a busy machine, costs far more.
_ONE_THREAD_BELOW = 2000


@lru_cache(maxsize=1)
def _thread_pools() -> tuple[ThreadpoolController, ThreadpoolController]:
    """Return the BLAS libraries with threads per process, and those with threads per thread.

    An OpenBLAS on OpenMP has a number of threads for each thread that calls it.
    """
    blas = ThreadpoolController().select(user_api="blas")  # looks through all loaded libraries
    own = blas.select(internal_api="openblas").select(threading_layer="openmp")
    others = set(blas.lib_controllers) - set(own.lib_controllers)
    return blas.select(filepath=[library.filepath for library in others]), own


class SharedLimit:
    """The least of the numbers of BLAS threads that are asked for at the same time.

    The number of threads belongs to the process. Were every context to restore what it found, then
    of two that overlap the last would restore the limit of the first, for good. The first to enter
    saves and limits; the last to leave, be it another thread, restores. ``pools`` returns the
    `ThreadpoolController` that is limited.
    """

    def __init__(self, pools: Callable[[], Any]) -> None:
        self._pools = pools
        self._lock = threading.Lock()
        self._inside: list[int] = []
        self._first: Any = None

    @contextmanager
    def to(self, n_threads: int) -> Iterator[None]:
        """Return a context with at most so many threads."""
        with self._lock:
            self._change([*self._inside, n_threads])
        try:
            yield
        finally:
            with self._lock:
                left = self._inside.copy()
                left.remove(n_threads)
                self._change(left)

    def _change(self, inside: list[int]) -> None:
        """Limit threads to the least of the numbers that are asked for, and keep these."""
        before, least = self._inside, min(inside, default=None)
        if not before:
            self._first = self._pools().limit(limits=least)
        elif not inside:
            self._first.restore_original_limits()
        elif least != min(before):
            self._pools().limit(limits=least)
        self._inside = inside
        if least != min(before, default=None):
            _let_others_limit()


def _let_others_limit() -> None:
    """Give up the control that threadpoolctl, from 3.8 on, leaves to the thread that limits.

    It ignores all other threads, while the last to leave may be any.
    """
    give_up = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if give_up is not None:
        give_up()


_LIMIT = SharedLimit(lambda: _thread_pools()[0])


def blas_threads(n_samples: int) -> AbstractContextManager[object]:
    """Return a context in which BLAS uses as many threads as matrices of this size are worth.

    OpenBLAS starts all its threads for a matrix of 100 rows and lets them spin. On an idle
    machine that gains little; on a busy one, small fits were seen to take 100 times longer. Nor
    does it know the quota of a container: it starts a thread for every core of the machine.
    """
    if n_samples < _ONE_THREAD_BELOW:
        return one_blas_thread()
    allowed = int(joblib.cpu_count())
    started = (pool["num_threads"] for pool in _thread_pools()[0].info())
    return _LIMIT.to(allowed) if max(started, default=1) > allowed else nullcontext()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Return a context in which BLAS uses one thread, because the threads are those of others.

    Threads may be inside at the same time, and contexts within each other: see `SharedLimit`.
    """
    with _LIMIT.to(1), _thread_pools()[1].limit(limits=1):
        yield


class _Thread(threading.local):
    """What a thread is at: whether inside `in_threads`, and whether as one of several threads."""

    is_busy = is_one_of_many = False


_THREAD = _Thread()


def n_cores() -> int:
    """Return how many threads this process may keep busy.

    The cores of the machine, fewer if a container, an affinity or ``LOKY_MAX_CPU_COUNT`` says so,
    and no more than ``OMP_NUM_THREADS``, by which joblib divides the cores between its workers. One
    in a thread of `in_threads`, if there are others.
    """
    if _THREAD.is_one_of_many:
        return 1
    said = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    most = int(said) if said.isdecimal() and int(said) > 0 else None
    return min(int(joblib.cpu_count()), most or sys.maxsize)


def free_threads(n_samples: int) -> int:
    """Return how many threads work on matrices of this size is worth; one within `in_threads`."""
    return 1 if n_samples < _ONE_THREAD_BELOW or _THREAD.is_busy else n_cores()


#: Threads up to which tiles of a core's cache are right.
_FEW_THREADS = 4
#: What is made at a time, for all threads together.
_BLOCK_BYTES = 2**28


def larger_tiles(n_threads: int) -> int:
    """Return how many times larger tiles are to be for so many threads: 1, 2 or 4.

    Python runs in one thread at a time, and changes to the next some 10 µs after each operation on
    a tile: more threads need longer operations. A pass over 10,000 rows and ten kernels took 16
    threads 0.64 s with tiles of 256 × 512, 0.42 s with 512 × 512 and 0.25 s with 512 × 1024, though
    these do not fit into the cache. One thread took 1.4, 1.7 and 2.6 s.
    """
    if n_threads <= _FEW_THREADS:
        return 1
    return 2 if n_threads <= 2 * _FEW_THREADS else 4


def rows_for_threads(row_bytes: int, thread_bytes: int) -> int:
    """Return how many rows are made at a time, so that every thread has enough of them.

    A row takes ``row_bytes``, the rows of a thread ``thread_bytes``, and all at most 256 MiB.
    """
    room = min(thread_bytes * max(2, n_cores()), _BLOCK_BYTES)
    return max(1, room // max(1, row_bytes))


class Buffers:
    """Arrays that one thread uses again and again, instead of fresh ones a tile."""

    def __init__(self, single: bool = False) -> None:
        self._arrays: dict[str, FloatArray] = {}
        self._type = np.float32 if single else np.float64

    def __call__(self, name: str, shape: tuple[int, ...], dtype: Any = None) -> FloatArray:
        """Return an array of this shape, the memory of which is that of the name.

        Of the precision of the buffers, or a lower one.
        """
        size = math.prod(shape)
        if name not in self._arrays or self._arrays[name].size < size:
            self._arrays[name] = np.empty(size, self._type)
        numbers = self._arrays[name]
        return (numbers if dtype is None else numbers.view(dtype))[:size].reshape(shape)


def in_threads(
    work: Callable[[Job, Part], None], jobs: Iterable[Job], parts: Sequence[Part]
) -> None:
    """Call ``work(job, part)`` for every job, in one thread per part, each BLAS call in one.

    In one of several threads of another call, this thread does all jobs, with the first part:
    threads are never multiplied.

    Whatever ends it, be it an error in one of the threads or an interrupt, none of them is left
    behind: each ends with the job that it is at.
    """
    waiting = iter(list(jobs))  # an iterator of a list gives each job to one thread only
    stopped, deadline = threading.Event(), active_deadline()

    is_alone = len(parts) == 1 or _THREAD.is_one_of_many

    def run(part: Part) -> None:
        before = _THREAD.is_busy, _THREAD.is_one_of_many
        _THREAD.is_busy, _THREAD.is_one_of_many = True, before[1] or not is_alone
        try:
            with keep_deadline(deadline):  # a new thread knows of none
                for job in waiting:
                    if stopped.is_set():
                        break
                    check_deadline()
                    work(job, part)
        except BaseException:
            stopped.set()  # at once, not only when the thread that waits gets to know
            raise
        finally:
            _THREAD.is_busy, _THREAD.is_one_of_many = before

    with one_blas_thread():
        if is_alone:
            return run(parts[0])
        threads = ThreadPoolExecutor(len(parts))
        try:
            for done in as_completed([threads.submit(run, part) for part in parts]):
                done.result()
        finally:
            stopped.set()
            try:
                threads.shutdown(cancel_futures=True)
            except BaseException:  # an interrupt while threads end
                threads.shutdown(cancel_futures=True)
                raise


# ---- memory --------------------------------------------------------------------------------------


def memory_limit() -> int | None:
    """Return the bytes of memory that this process may use, or None if unknown.

    This is the smallest of the memory of the machine, the limit of the container, and the rest of
    the address space of the process (``ulimit -v``).
    """
    try:
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):
        found = []
    return min([*found, *_container_limits(), *_address_space_left()], default=None)


def _address_space_left(root: Path = Path("/")) -> list[int]:
    """Return the bytes of address space that are left, or an empty list without a limit."""
    if resource is None:
        return []
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return []
    try:
        pages = int((root / "proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):  # used memory is unknown
        pages = 0
    return [max(0, limit - pages * resource.getpagesize())]


def _container_limits(root: Path = Path("/")) -> list[int]:
    """Return the memory limits of the control groups (version 1 and 2) of this process."""
    groups = root / "proc/self/cgroup"
    limits = []
    for line in groups.read_text().splitlines() if groups.exists() else []:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        mount = root / "sys/fs/cgroup" / controllers
        name = "memory.max" if controllers == "" else "memory.limit_in_bytes"
        # Inside a container the mount may start at the group itself, whatever its path.
        inside = [
            mount / part.lstrip("/") for part in (path, *map(str, PurePosixPath(path).parents))
        ]
        for folder in {mount, *inside}:
            with suppress(OSError, ValueError):  # no such file, or "max"
                limits.append(int((folder / name).read_text()))
    return limits
