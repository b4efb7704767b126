"""Run the cells of a plan that a store does not have, in parallel; killed runs can continue."""

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
from discernel.compare.metrics import measure
from discernel.compare.plan import Cell, Plan, plain
from discernel.compare.progress import Bar, progress_bar
from discernel.compare.store import Result, Store
from discernel.compare.tasks import TrainTestSplit, load_split
from discernel.exceptions import DiscernelError, InvalidInputError, unknown_choice

#: Seconds between two looks at the results of other processes.
_POLL = 0.2


@dataclass(frozen=True)
class Protocol:
    """How the cells of a plan are run; processes that run them get a copy.

    Attributes
    ----------
    methods : dict of str to callable
        From the kind of a method to the function of a split and of options that runs it.
    load_split : callable
        From a cell to its split.
    """

    methods: Mapping[str, Callable[[TrainTestSplit, dict[str, Any]], Result]]
    load_split: Callable[[Cell], TrainTestSplit]


#: How `compare` runs its cells.
COMPARISON = Protocol(KINDS, load_split)


@dataclass(frozen=True)
class Summary:
    """Numbers of different cells of a run.

    Attributes
    ----------
    ran : int
        Cells that were run now.
    found : int
        Cells that were in the store.
    elsewhere : int
        Cells that other processes ran meanwhile.
    failed : int
        Cells that failed, among all of the plan.
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

    Killed at any moment, it loses only the cells that were running: run it again and it goes on.
    Only this process writes to the store; those that run cells never see it. Several runs may
    share the work: each waits for what others have claimed, and takes over what they give up or,
    killed, no longer renew. So all cells are in the store when it ends.

    Parameters
    ----------
    plan : Plan
        The cells to run.
    store : Store
        Where results go, each as soon as it is there.
    n_jobs : int, optional
        Processes side by side; None is what the joblib backend in use says, one by default. In a
        ``joblib.parallel_config`` context cells run on that backend, a Dask cluster for example;
        its workers should have one thread each.
    progress : bool, default=False
        Whether to show a bar with an estimate of the time left, on the standard error.
    retry_failures : bool, default=False
        Whether cells that failed before are run again.
    protocol : Protocol, default=COMPARISON
        The kinds of methods that there are, and how rows are split.

    Returns
    -------
    Summary
        How many cells were run, found, run by other processes, and failed.

    Raises
    ------
    InvalidInputError
        If there is no such kind of method, or a data set cannot be split as the plan says;
        nothing has been run then.
    DataUnavailableError
        If a data set cannot be had here; nothing has been run then.
    DiscernelError
        If a process that ran cells died. What was finished before is in the store.
    KeyboardInterrupt
        If the user stops it; likewise. The message says how far it came.

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
    cells = {cell.key: cell for cell in plan.cells()}  # two methods may be the same but for a name
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
            f"They are in {store.path}: run it again to go on."
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
    """Run cells side by side; yield each when it is in the store."""
    workers = Parallel(
        n_jobs=n_jobs,
        return_as="generator_unordered",
        pre_dispatch="2*n_jobs",
        batch_size=1,  # a batch would keep finished cells from the store
    )
    try:
        claimed = (delayed(_work)(cell, protocol) for cell in filter(store.claim, missing))
        with closing(workers(claimed)) as results:
            for cell, result, facts in results:
                store.add(cell, result, facts)
                yield cell
    except BrokenProcessPool as error:
        raise DiscernelError(
            "A process that ran cells died, for want of memory perhaps. What was finished is in "
            f"{store.path}: run it again with fewer processes side by side (n_jobs, --jobs)."
        ) from error
    finally:
        store.give_back()


def _given_up(cells: Iterable[Cell], store: Store, bar: Bar) -> list[Cell]:
    """Wait for cells of other processes; return those they gave up, or none when all are done."""
    said = ""
    while True:
        finished = store.finished()
        left = [cell for cell in cells if cell.key not in finished]
        held = store.held()
        free = [cell for cell in left if cell.key not in held]
        if free or not left:
            return free
        holders = " and ".join(sorted({held[cell.key] for cell in left}))
        if holders != said:  # a line for each of many cells would say no more
            what = "1 cell" if len(left) == 1 else f"{len(left)} cells"
            bar.say(f"waits for {what} of {holders}; a killed one's are taken over in a minute")
            said = holders
        time.sleep(_POLL)


def _check_splits(missing: Iterable[Cell], protocol: Protocol) -> None:
    """Read every data set that is needed, and split it once, before anything is fitted."""
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
                f"The data set {cell.data.name!r} must be one that can be split as the plan "
                f"says. Got: {error}"
            ) from error


# ---- one cell ----------------------------------------------------------------------------------


def run_cell(cell: Cell, protocol: Protocol = COMPARISON) -> tuple[Cell, Result]:
    """Run one cell; a failure is a result too."""
    try:
        with _quiet(), PeakMemory() as memory:
            split = protocol.load_split(cell)
            found = protocol.methods[cell.method.kind](split, dict(cell.method.options))
        return cell, _result(found, split, memory.peak)
    except Exception:
        return cell, Result(error=traceback.format_exc(limit=-6))


def _work(cell: Cell, protocol: Protocol) -> tuple[Cell, Result, dict[str, Any]]:
    """Run one cell, and return the facts about its machine, which may not be that of the store."""
    return *run_cell(cell, protocol), machine()


@contextmanager
def _quiet() -> Iterator[None]:
    """Limit the threads of BLAS and OpenMP, and ignore warnings.

    Threads of BLAS and filters of warnings are the process's, not the thread's. Where a joblib
    backend runs cells in threads, they are put back in any order; so `run` holds both as well,
    and puts back what it found when all cells are done.
    """
    with _thread_pools(len(sys.modules)).limit(limits=THREADS), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they say is in the record: status and gap
        yield


@lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> ThreadpoolController:
    """Look through all loaded libraries, which takes as long as a small cell; again if more are."""
    return ThreadpoolController()


def _result(found: Result, split: TrainTestSplit, peak: int | None) -> Result:
    """Return a result as plain data, with its metrics and the predictions to store."""
    said = found.predictions
    scores, probabilities = said.get("scores"), said.get("probabilities")
    metrics = measure(
        split.y_test,
        said["y_pred"],
        classes=np.unique(split.y_train),
        scores=scores,
        probabilities=probabilities,
    )
    predictions = {"y_true": split.y_test, "y_pred": said["y_pred"]}
    if scores is not None:
        predictions["scores"] = scores.astype(np.float32)
    return replace(
        found,
        metrics=metrics | plain(found.metrics),
        peak_memory=peak,
        weights=plain(found.weights),
        details=plain(found.details),
        predictions={name: _storable(values) for name, values in predictions.items()},
    )


def _storable(values: Any) -> Any:
    """Return an array without objects, which a store does not take."""
    values = np.asarray(values)
    return values.astype(str) if values.dtype.kind == "O" else values
