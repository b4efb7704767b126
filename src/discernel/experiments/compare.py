"""Learned kernels against plain baselines on one data set, a user's own among others."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from discernel.datasets import Dataset
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.experiments.files import digest, open_file
from discernel.experiments.plan import Data, Method, Plan, Splits
from discernel.experiments.runner import Summary, run
from discernel.experiments.store import Record, Store
from discernel.experiments.tables import Entry, ResultTable, summarize
from discernel.experiments.tasks import read
from discernel.experiments.writing import make_folder_of
from discernel.machine import memory_limit

__all__ = [
    "DEFAULT_STORE",
    "METHODS",
    "Comparison",
    "check_divisible",
    "compare",
    "comparison_plan",
    "file_data",
    "fitting_jobs",
    "method_name",
    "stored_records",
]

#: Where results go unless another place is named: a folder where the user works.
DEFAULT_STORE = Path("discernel-results") / "results.sqlite"
#: The grid of the support vector machine is searched with so many folds.
FOLDS = 5
#: Bytes an entry of a kernel matrix, times the copies held while kernels are learned.
_BYTES_AN_ENTRY = 8 * 3
#: The candidates by default; a few more for several views.
_KERNELS = 10


def _learner(criterion: str) -> Method:
    return Method(criterion, "discriminant", {"criterion": criterion})


#: What is compared: five learners, then four baselines.
METHODS: tuple[Method, ...] = (
    _learner("auto"),
    _learner("rkda"),
    _learner("loo"),
    _learner("alignment"),
    _learner("akfd"),
    Method("plain average", "discriminant", {"criterion": "uniform"}),
    Method("single kernel", "single"),
    Method("SVC grid", "svc_grid"),
    Method("LDA", "lda"),
)


# ---- the plan ----------------------------------------------------------------------------------


def file_data(
    path: str | Path,
    target: str | None = None,
    *,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    rows: int | None = None,
) -> Data:
    """Return a file as part of a plan, checked, with the digest of its content.

    Parameters
    ----------
    path : str or Path
        See `discernel.experiments.files.open_file`, here and for the next four.
    target : str, optional
        The column with the labels.
    drop : sequence of str
        Columns to leave out.
    categorical : sequence of str
        Columns of numbers that are categories.
    numeric : sequence of str
        Columns to take as numbers; cells that are none are missing.
    rows : int, optional
        Only so many rows, drawn at random; all by default.
    """
    opened = open_file(path, target, drop=drop, categorical=categorical, numeric=numeric)
    file = {
        "path": str(Path(path).resolve()),
        "target": opened.target,
        "drop": list(drop),
        "categorical": list(categorical),
        "numeric": list(numeric),
        "digest": digest(path),
    }
    return Data(opened.dataset.name, file=file, options={} if rows is None else {"rows": rows})


def comparison_plan(
    data: Data,
    *,
    n_divisions: int = 10,
    train_size: float = 0.8,
    seed: int = 0,
    methods: Sequence[str] | None = None,
) -> Plan:
    """Return the plan that compares learned kernels with baselines on a data set.

    Parameters
    ----------
    data : Data
        The data set. With several views, every view has kernels of its own.
    n_divisions : int, default=10
        The number of divisions, stratified.
    train_size : float, default=0.8
        The share of the rows that train.
    seed : int, default=0
        The seed of the first division.
    methods : sequence of str, optional
        The names of some of `METHODS`; all by default.

    Examples
    --------
    >>> from discernel.experiments.compare import comparison_plan
    >>> from discernel.experiments.plan import Data
    >>> plan = comparison_plan(Data("wine"), methods=["auto", "LDA"])
    >>> len(plan.cells())
    20
    """
    by_name = {method.name: method for method in METHODS}
    chosen = list(by_name) if methods is None else list(methods)
    for name in chosen:
        if name not in by_name:
            raise unknown_choice("method", name, list(by_name))
    if not 0.0 < train_size < 1.0:
        raise InvalidInputError(
            f"The share of rows that train must lie between 0 and 1. Got {train_size!r}."
        )
    splits = Splits(n=n_divisions, train_size=train_size, seed=seed)
    return Plan(f"compare {data.name}", (data,), tuple(by_name[name] for name in chosen), splits)


def check_divisible(dataset: Dataset, n_rows: int, splits: Splits) -> None:
    """Raise a clear error where a comparison on so many rows of a data set would fail."""
    name, y = dataset.name, np.asarray(dataset.y)
    if y.dtype.kind == "f":
        raise InvalidInputError(
            f"The target must hold classes. That of {name!r} is a quantity; predict it with "
            "discernel.MultipleKernelRidge, or take a data set with classes."
        )
    classes, counts = np.unique(y, return_counts=True)
    counts = counts * n_rows // len(y)
    smallest = int(np.argmin(counts))
    # Every fold of the training rows needs a row of every class, and so do the held-out rows.
    share = splits.train_size
    needed = math.ceil(round(max(FOLDS / share, 1.0 / (1.0 - share)), 6))
    if counts[smallest] < needed:
        raise InvalidInputError(
            f"Every class must have at least {needed} rows, so that {FOLDS} folds of the training "
            f"rows and the held-out rows all have one. Class {classes[smallest].item()!r} of "
            f"{name!r} has {counts[smallest]}. Leave its rows out, merge it with another class"
            + (", or take more of the rows." if n_rows < len(y) else ".")
        )


def fitting_jobs(n_train: int, n_jobs: int | None = None) -> int:
    """Return how many cells to run side by side, or raise where not even one fits into memory.

    Parameters
    ----------
    n_train : int
        The training rows of a cell.
    n_jobs : int, optional
        The most; by default the cores of this machine.
    """
    wanted = effective_n_jobs(-1 if n_jobs is None else n_jobs)
    memory = memory_limit()
    if memory is None:
        return int(wanted)
    each = _BYTES_AN_ENTRY * _KERNELS * n_train**2
    if each > memory:
        rows = max(1000, int(n_train * math.sqrt(memory / each) / 1000) * 1000)
        raise InvalidInputError(
            f"The kernels of {n_train:,} rows must fit into memory: about {each / 1e9:,.0f} GB. "
            f"This machine has {memory / 1e9:,.0f} GB. Take some of the rows, drawn at random: "
            f"options={{'rows': {rows}}} of Data (--rows {rows})."
        )
    return int(min(wanted, max(1, memory // each)))


# ---- the result --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    plan : Plan
        What was run.
    dataset : Dataset
        The rows.
    notes : tuple of str
        What was done to a file, or looks odd in it.
    summary : Summary
        What was run now, and what was there already.
    records : tuple of Record
        The results, with predictions, as a report takes them.
    """

    plan: Plan
    dataset: Dataset
    notes: tuple[str, ...]
    summary: Summary
    records: tuple[Record, ...]

    @cached_property
    def table(self) -> ResultTable:
        """The records summed up."""
        return summarize(self.records)

    @property
    def ranking(self) -> list[Entry]:
        """The methods, the best mean accuracy first, those without a result last.

        The standing of each says whether its distance from the first means anything.
        """
        return sorted(
            self.table.entries.values(),
            key=lambda entry: -entry.mean if entry.values else math.inf,
        )


# ---- the run -----------------------------------------------------------------------------------


def compare(
    data: Data | str = "wine",
    *,
    n_divisions: int = 10,
    train_size: float = 0.8,
    seed: int = 0,
    methods: Sequence[str] | None = None,
    store: str | Path = DEFAULT_STORE,
    n_jobs: int | None = None,
    progress: bool = False,
    started: Callable[[Dataset, Sequence[str]], None] | None = None,
) -> Comparison:
    """Compare learned kernels with baselines on a data set.

    Results go to a store as they come: after an interruption the same call goes on. What failed
    before is tried again. `discernel.report.write_report` makes a page of the records.

    Parameters
    ----------
    data : Data or str, default="wine"
        What `file_data` returns, or the name of a data set.
    n_divisions : int, default=10
        See `comparison_plan`, here and for the next three.
    train_size : float, default=0.8
        The share of the rows that train.
    seed : int, default=0
        The seed of the first division.
    methods : sequence of str, optional
        The names of some of `METHODS`.
    store : str or Path
        The file of results; its folder is made.
    n_jobs : int, optional
        Processes side by side, fewer where memory asks for it; by default one a core.
    progress : bool, default=False
        Whether to show a bar with an estimate of the time left.
    started : callable, optional
        Called with the data set and the notes on it when all checks are passed.

    Returns
    -------
    Comparison
        The ranking, whether it means anything, and the records.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from discernel.experiments.compare import compare
    >>> with TemporaryDirectory() as folder:
    ...     place = Path(folder) / "results.sqlite"
    ...     found = compare(
    ...         "wine", n_divisions=3, methods=["rkda", "LDA"], store=place, n_jobs=1
    ...     )
    >>> [(entry.method, entry.standing) for entry in found.ranking]
    [('rkda', 'level'), ('LDA', 'level')]
    """
    data = Data(data) if isinstance(data, str) else data
    plan = comparison_plan(
        data, n_divisions=n_divisions, train_size=train_size, seed=seed, methods=methods
    )
    dataset, notes = _rows(data)
    n_rows = min(int(data.options.get("rows", len(dataset.y))), len(dataset.y))
    if n_rows < len(dataset.y):
        notes = (*notes, f"takes {n_rows:,} of the rows, drawn at random")
    check_divisible(dataset, n_rows, plan.splits)
    n_jobs = fitting_jobs(round(train_size * n_rows), n_jobs)
    if started is not None:
        started(dataset, notes)
    make_folder_of(store)
    with Store(store) as results:
        summary = run(plan, results, n_jobs=n_jobs, progress=progress, retry_failures=True)
        # Another run that starts just now may have taken failures away, to try them again.
        while len(records := results.records(plan.cells(), predictions=True)) < len(plan.cells()):
            run(plan, results, n_jobs=n_jobs, progress=progress)
    return Comparison(plan, dataset, tuple(notes), summary, tuple(records))


def _rows(data: Data) -> tuple[Dataset, Sequence[str]]:
    if not data.file:
        return read(data), ()
    opened = open_file(name=data.name, **data.file)
    return opened.dataset, opened.notes


# ---- a store without its plan ------------------------------------------------------------------


def method_name(kind: str, options: Mapping[str, Any]) -> str:
    """Return a readable name for a method of which only kind and options are known.

    Parameters
    ----------
    kind : str
        Which function of `discernel.experiments.methods` it is.
    options : dict
        Its options.

    Examples
    --------
    >>> from discernel.experiments.compare import method_name
    >>> method_name("discriminant", {"criterion": "uniform"})
    'plain average'
    >>> method_name("discriminant", {"criterion": "rkda", "regularization": 0.01})
    'discriminant, criterion rkda, regularization 0.01'
    """
    for method in METHODS:
        if method.kind == kind and dict(method.options) == dict(options):
            return method.name
    return ", ".join([kind, *(f"{key} {_short(value)}" for key, value in options.items())])


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value).replace('"', "")


def stored_records(store: Store) -> list[Record]:
    """Return all that a store holds, predictions too, without the plans that asked for it.

    Parameters
    ----------
    store : Store
        The store. Its methods are called by `method_name`.
    """
    return store.records(store.cells(method_name), predictions=True)
