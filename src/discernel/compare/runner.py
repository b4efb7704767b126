"""Run the cells of a plan that a store does not have, in parallel. Killed runs can be resumed."""

from __future__ import annotations

import sys
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController

from discernel.compare.machine import THREADS, PeakMemory, machine
from discernel.compare.methods import KINDS
from discernel.compare.metrics import measure, measure_numbers
from discernel.compare.plan import Cell, Plan, plain
from discernel.compare.progress import Bar, progress_bar
from discernel.compare.store import Result, Store
from discernel.compare.tasks import TrainTestSplit, load_split
from discernel.exceptions import DiscernelError, InvalidInputError, unknown_choice
from discernel.rows.labelled import holds_numbers

#: Seconds between two checks for results of other processes.
_POLL = 0.2


@dataclass(frozen=True)
class Protocol:
    """Functions that run the cells of a plan; worker processes get a copy.

    Attributes
    ----------
    methods : dict of str to callable
        By the kind of a method, the function of a split and options that runs it.
    load_split : callable
        Function that returns the split of a cell.
    """

    methods: Mapping[str, Callable[[TrainTestSplit, dict[str, Any]], Result]]
    load_split: Callable[[Cell], TrainTestSplit]


#: How `compare` runs its cells.
COMPARISON = Protocol(KINDS, load_split)


@dataclass(frozen=True)
class Summary:
    """Numbers of cells of a run.

    Attributes
    ----------
    ran : int
        Cells that this run has run.
    found : int
        Cells that were already in the store.
    elsewhere : int
        Cells that other processes ran at the same time.
    failed : int
        Cells of the plan that failed.
    """

    ran: int
    found: int
    elsewhere: int
    failed: int


def run(
    plan: Plan,
    store: Store,
    *,
    n_jobs: int | None = None,
    progress: bool = False,
    retry_failures: bool = False,
    protocol: Protocol = COMPARISON,
) -> Summary:
    """Run all cells of a plan that the store does not have.

    If the process is killed, only the running cells are lost, and the next call continues. Only
    this process writes to the store; worker processes do not open it. Several runs can share a
    plan: each waits for the cells that others have claimed, and takes over cells whose claims are
    given back or expire because their process was killed. When `run` returns, all cells of the
    plan are in the store.

    Parameters
    ----------
    plan : Plan
        The cells to run.
    store : Store
        Store for the results; each is written as soon as it is finished.
    n_jobs : int, optional
        Number of parallel processes; None is the default of the joblib backend, usually one. In a
        ``joblib.parallel_config`` context cells run on its backend, for example a Dask cluster
        (with one thread per worker).
    progress : bool, default=False
        Whether to show a progress bar on standard error.
    retry_failures : bool, default=False
        Whether cells that failed before are run again.
    protocol : Protocol, default=COMPARISON
        The kinds of methods, and how rows are split.

    Returns
    -------
    Summary
        How many cells were run, found, run by other processes, and failed.

    Raises
    ------
    InvalidInputError
        If a kind of method is unknown, or a data set cannot be split as planned. Nothing has been
        run then.
    DataUnavailableError
        If a data set is not available. Nothing has been run then.
    DiscernelError
        If a worker process died. Finished cells are in the store.
    KeyboardInterrupt
        If the user interrupts the run. Finished cells are in the store; the message counts them.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from discernel.compare.plan import Data, Method, Plan, Splits
    >>> from discernel.compare.runner import run
    >>> from discernel.compare.store import Store
    >>> plan = Plan("small", (Data("wine"),), (Method("LDA", "lda"),), Splits(n=3))
    >>> with TemporaryDirectory() as folder, Store(f"{folder}/results.sqlite") as store:
    ...     run(plan, store)
    ...     run(plan, store)
    Summary(ran=3, found=0, elsewhere=0, failed=0)
    Summary(ran=0, found=3, elsewhere=0, failed=0)
    """
    for method in plan.methods:
        if method.kind not in protocol.methods:
            raise unknown_choice("kind of method", method.kind, list(protocol.methods))
    cells = {cell.key: cell for cell in plan.cells()}  # methods may differ only in name
    finished = store.finished() - (store.failed() if retry_failures else set())
    missing = [cell for key, cell in cells.items() if key not in finished]
    _check_splits(missing, protocol)
    if retry_failures:
        store.forget_failures(missing)
    ran = 0
    try:
        with (
            _quiet(),
            store.renewing(),
            progress_bar(plan.name, len(cells), len(cells) - len(missing), progress) as bar,
        ):
            free = missing
            while free:
                with closing(_run_all(free, store, n_jobs, protocol)) as done:
                    for cell in done:
                        ran += 1
                        bar.advance(f"{cell.data.name}: {cell.method.name}")
                free = _given_up(missing, store, bar)
            for _ in range(len(missing) - ran):
                bar.advance("run by another process")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Stopped with {len(store.finished() & set(cells))} of {len(cells)} cells finished. "
            f"They are in {store.path}. Run it again to continue."
        ) from None
    return Summary(
        ran=ran,
        found=len(cells) - len(missing),
        elsewhere=len(missing) - ran,
        failed=len(store.failed() & set(cells)),
    )


def _run_all(
    missing: Sequence[Cell], store: Store, n_jobs: int | None, protocol: Protocol
) -> Generator[Cell, None, None]:
    """Run cells in parallel; yield each cell when its result is in the store."""
    workers = Parallel(
        n_jobs=n_jobs,
        return_as="generator_unordered",
        pre_dispatch="2*n_jobs",
        batch_size=1,  # with larger batches, finished cells would be stored late
    )
    try:
        claimed = (delayed(_work)(cell, protocol) for cell in filter(store.claim, missing))
        with closing(workers(claimed)) as results:
            for cell, result, facts in results:
                store.add(cell, result, facts)
                yield cell
    except BrokenProcessPool as error:
        raise DiscernelError(
            "A worker process died, possibly because memory ran out. Finished cells are in "
            f"{store.path}. Run it again with fewer parallel processes (n_jobs, --jobs)."
        ) from error
    finally:
        store.give_back()


def _given_up(cells: Iterable[Cell], store: Store, bar: Bar) -> list[Cell]:
    """Wait for cells of other processes; return cells they gave up, or [] when all are finished."""
    announced = ""
    while True:
        finished = store.finished()
        left = [cell for cell in cells if cell.key not in finished]
        held = store.held()
        free = [cell for cell in left if cell.key not in held]
        if free or not left:
            return free
        holders = " and ".join(sorted({held[cell.key] for cell in left}))
        if holders != announced:  # one line per change, not per cell
            what = "1 cell" if len(left) == 1 else f"{len(left)} cells"
            bar.say(
                f"waiting for {what} of {holders}; cells of a killed process are taken over soon"
            )
            announced = holders
        time.sleep(_POLL)


def _check_splits(missing: Iterable[Cell], protocol: Protocol) -> None:
    """Read every data set and split it once, so that errors show before anything is fitted."""
    first_of: dict[int, Cell] = {}
    for cell in missing:
        first_of.setdefault(id(cell.data), cell)
    for cell in first_of.values():
        try:
            protocol.load_split(cell)
        except DiscernelError:
            raise
        except ValueError as error:
            raise InvalidInputError(
                f"The data set {cell.data.name!r} cannot be split as the plan says. Got: {error}"
            ) from error


# ---- one cell ----------------------------------------------------------------------------------


def run_cell(cell: Cell, protocol: Protocol = COMPARISON) -> tuple[Cell, Result]:
    """Run one cell; an error is returned as a result with a traceback."""
    try:
        with _quiet(), PeakMemory() as memory:
            split = protocol.load_split(cell)
            found = protocol.methods[cell.method.kind](split, dict(cell.method.options))
        return cell, _result(found, split, memory.peak)
    except Exception:
        return cell, Result(error=traceback.format_exc(limit=-6))


def _work(cell: Cell, protocol: Protocol) -> tuple[Cell, Result, dict[str, Any]]:
    """Run one cell; also return the facts about the worker's machine."""
    return *run_cell(cell, protocol), machine()


@contextmanager
def _quiet() -> Iterator[None]:
    """Limit the threads of BLAS and OpenMP, and ignore warnings.

    BLAS threads and warning filters belong to the process, not to a thread. If a joblib backend
    runs cells in threads, these restore them in any order; `run` therefore enters this context as
    well, and restores the original settings when all cells are done.
    """
    with _thread_pools(len(sys.modules)).limit(limits=THREADS), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # records contain status and gap
        yield


@lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> ThreadpoolController:
    """Find the thread pools of all loaded libraries, which takes as long as a small cell."""
    return ThreadpoolController()


def _result(found: Result, split: TrainTestSplit, peak: int | None) -> Result:
    """Return a result as plain data, with its metrics and the predictions to be stored."""
    given = found.predictions
    scores, probabilities = given.get("scores"), given.get("probabilities")
    if holds_numbers(split.y_test):
        metrics = measure_numbers(split.y_test, given["y_pred"])
    else:
        metrics = measure(
            split.y_test,
            given["y_pred"],
            classes=np.unique(split.y_train),
            scores=scores,
            probabilities=probabilities,
        )
    predictions = {"y_true": np.asarray(split.y_test), "y_pred": np.asarray(given["y_pred"])}
    if scores is not None:
        predictions["scores"] = scores.astype(np.float32)
    return replace(
        found,
        metrics=metrics | plain(found.metrics),
        peak_memory=peak,
        weights=plain(found.weights),
        details=plain(found.details),
        # A store takes no objects, such as those of labels that are text.
        predictions={
            name: values.astype(str) if values.dtype.kind == "O" else values
            for name, values in predictions.items()
        },
    )
