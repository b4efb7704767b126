"""Compare learned kernels with baselines on one data set, for example a user's file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discernel.compare.methods import (
    DEFAULT_METHODS,
    DEFAULT_NUMBER_METHODS,
    find_method,
    fitting_jobs,
    smallest_class,
    without_unsuitable,
)
from discernel.compare.metrics import (
    METRICS,
    NUMBER_METRICS,
    default_metric,
    find_metric,
)
from discernel.compare.plan import Data, Plan, Splits
from discernel.compare.runner import Summary, run
from discernel.compare.store import Record, Store
from discernel.compare.tables import (
    Entry,
    ResultTable,
    mean_importances,
    summarize,
)
from discernel.compare.tasks import read
from discernel.exceptions import InvalidInputError
from discernel.rows.datasets import Dataset
from discernel.rows.labelled import digest, holds_numbers, open_file
from discernel.rows.writing import make_parent_folder
from discernel.show.facts import ImportanceFacts

#: Fewer rows with numbers to predict are not compared: test rows would be too few for R².
_FEWEST_ROWS = 20
#: The default file of results, in the working directory.
DEFAULT_STORE = Path("discernel-results") / "results.sqlite"


# ---- the plan ----------------------------------------------------------------------------------


def file_data(
    path: str | Path, target: str | None = None, *, rows: int | None = None, **options: Any
) -> Data:
    """Check a file and return it as a data set of a plan, with a digest of its content.

    Parameters
    ----------
    path : str or Path
        The file.
    target : str, optional
        Column with the labels.
    rows : int, optional
        Number of rows to draw at random; all by default.
    **options
        ``drop``, ``categorical``, ``numeric`` and ``task`` of `discernel.rows.labelled.open_file`.
    """
    opened = open_file(path, target, **options)
    file: dict[str, Any] = {
        "path": str(Path(path).resolve()),
        "target": opened.target,
        **{name: list(options.get(name, ())) for name in ("drop", "categorical", "numeric")},
        "digest": digest(path),
    }
    if (task := options.get("task", "auto")) != "auto":  # else absent: older results are found
        file["task"] = task
    return Data(opened.dataset.name, file=file, options={} if rows is None else {"rows": rows})


def comparison_plan(
    data: Data,
    *,
    n_splits: int = 10,
    train_size: float = 0.8,
    seed: int = 0,
    methods: Sequence[str] | None = None,
    numbers: bool = False,
) -> Plan:
    """Return the plan that compares learned kernels with baselines on a data set.

    Parameters
    ----------
    data : Data
        The data set. If it has several views, each view has its own kernels.
    n_splits : int, default=10
        Number of stratified random splits.
    train_size : float, default=0.8
        Fraction of the rows to train on.
    seed : int, default=0
        Seed of the first split; it increases by 1 with each split.
    methods : sequence of str, optional
        Names from `discernel.compare.methods.METHODS`, in upper or lower case, with hyphens or
        spaces; by default `discernel.compare.methods.DEFAULT_METHODS`. For numbers,
        ``NUMBER_METHODS`` and ``DEFAULT_NUMBER_METHODS``.
    numbers : bool, default=False
        Whether the target holds numbers; splits are then not stratified.

    Examples
    --------
    >>> from discernel.compare.compare import comparison_plan
    >>> from discernel.compare.plan import Data
    >>> plan = comparison_plan(Data("wine"), methods=["discernel", "LDA"])
    >>> len(plan.cells())
    20
    """
    default = DEFAULT_NUMBER_METHODS if numbers else DEFAULT_METHODS
    found = [find_method(each, numbers=numbers) for each in methods or default]
    chosen = {method.name: method for method in found}  # without duplicates
    if not 0.0 < train_size < 1.0:
        raise InvalidInputError(
            f"train_size must be between 0 and 1, such as 0.8. Got {train_size!r}."
        )
    splits = Splits(n=n_splits, train_size=train_size, seed=seed, stratify=not numbers)
    return Plan(f"compare {data.name}", (data,), tuple(chosen.values()), splits)


def check_splittable(dataset: Dataset, n_rows: int) -> None:
    """Raise an error if ``n_rows`` rows of a data set cannot be split for a comparison."""
    name, y = dataset.name, np.asarray(dataset.y)
    if holds_numbers(y):
        if n_rows < _FEWEST_ROWS:
            raise InvalidInputError(
                f"There must be at least {_FEWEST_ROWS} rows to compare predictions of numbers. "
                f"{name!r} has {n_rows}. Use more rows."
            )
        return
    label, least = smallest_class(y, n_rows)
    if least < 2:
        raise InvalidInputError(
            "Every class must have at least two rows: one to train on and one to hold out. Class "
            f"{label!r} of {name!r} has {least}. Drop its rows, or merge it with another class"
            + (", or use more rows." if n_rows < len(y) else ".")
        )


# ---- the result --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`.

    Attributes
    ----------
    plan : Plan
        The data set, methods and splits.
    dataset : Dataset
        The rows.
    notes : tuple of str
        Notes on how the file was read, and on omitted columns or methods.
    summary : Summary
        Numbers of cells that were run and that were already in the store.
    records : tuple of Record
        The results, with predictions, for `discernel.report.write_report`.
    metric : str
        Name of the metric that methods are ranked by.
    columns : dict of str to str
        How each column of a file was used.
    """

    plan: Plan
    dataset: Dataset
    notes: tuple[str, ...]
    summary: Summary
    records: tuple[Record, ...]
    metric: str = "accuracy"
    columns: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def table(self) -> ResultTable:
        """Summary of the records."""
        return summarize(self.records, self.metric)

    @property
    def ranking(self) -> list[Entry]:
        """The entries of all methods, best mean first; methods without a result come last.

        The verdict of an entry says whether its difference from the best is significant.
        """
        return [entry for name in self.table.datasets for entry in self.table.ranked(name)]

    @property
    def importances(self) -> tuple[str, list[ImportanceFacts]] | None:
        """The first method with column importances, and its importances, largest first.

        None if no method has any.
        """
        for entry in self.table.entries.values():
            if found := mean_importances(entry.records):
                return entry.method, found
        return None


# ---- the run -----------------------------------------------------------------------------------


def compare(
    data: Data | str = "wine",
    *,
    metric: str | None = None,
    store: str | Path = DEFAULT_STORE,
    n_jobs: int | None = None,
    progress: bool = False,
    started: Callable[[Dataset, Sequence[str]], None] | None = None,
    **planned: Any,
) -> Comparison:
    """Compare learned kernels with baselines on a data set.

    Each result is stored at once, so that the same call continues after an interruption. Fits that
    failed before are run again. `discernel.report.write_report` writes a report page.

    Parameters
    ----------
    data : Data or str, default="wine"
        A file, from `file_data`, or the name of a data set.
    metric : str, optional
        Metric to rank and test methods by, one of `discernel.compare.metrics.METRICS`, or of
        `discernel.compare.metrics.NUMBER_METRICS` for numbers; by default accuracy or R². All of
        them are recorded.
    store : str or Path, default="discernel-results/results.sqlite"
        File of results; its folder is created.
    n_jobs : int, optional
        Number of parallel processes, fewer if memory is short; by default one per core.
    progress : bool, default=False
        Whether to show a progress bar.
    started : callable, optional
        Called with the data set and notes on it after all checks have passed.
    **planned
        ``n_splits``, ``train_size``, ``seed`` and ``methods`` of `comparison_plan`.

    Returns
    -------
    Comparison
        The ranking with significance tests, and the records.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from discernel.compare.compare import compare
    >>> with TemporaryDirectory() as folder:
    ...     place = Path(folder) / "results.sqlite"
    ...     found = compare(
    ...         "wine", n_splits=3, methods=["rkda", "LDA"], store=place, n_jobs=1
    ...     )
    >>> [(entry.method, entry.verdict) for entry in found.ranking]
    [('rkda', 'best'), ('LDA', 'best')]
    """
    data = Data(data) if isinstance(data, str) else data
    asked = None if metric is None else find_metric(metric)
    dataset, notes, columns = _rows(data)
    y = np.asarray(dataset.y)
    numbers = holds_numbers(y)
    if asked is not None and asked.of_numbers != numbers:
        holds, known = ("numbers", NUMBER_METRICS) if numbers else ("classes", METRICS)
        raise InvalidInputError(
            f"The target of {dataset.name!r} holds {holds}, for which the metric must be one of "
            f"{', '.join(known)}. Got {asked.name!r}."
        )
    plan = comparison_plan(data, numbers=numbers, **planned)
    n_rows = min(int(data.options.get("rows", len(y))), len(y))
    drawn = [f"uses {n_rows:,} rows, drawn at random"] if n_rows < len(y) else []
    check_splittable(dataset, n_rows)
    plan, left_out = without_unsuitable(plan, y, n_rows, named=planned.get("methods") is not None)
    notes = (*notes, *drawn, *left_out)
    n_jobs = fitting_jobs(round(plan.splits.train_size * n_rows), n_jobs)
    if started is not None:
        started(dataset, notes)
    make_parent_folder(store)
    with Store(store) as results:
        summary = run(plan, results, n_jobs=n_jobs, progress=progress, retry_failures=True)
        # A run that started meanwhile may have removed failures, to run them again.
        while len(records := results.records(plan.cells(), predictions=True)) < len(plan.cells()):
            run(plan, results, n_jobs=n_jobs, progress=progress)
    named = default_metric(numbers=numbers) if asked is None else asked.name
    return Comparison(plan, dataset, notes, summary, tuple(records), named, columns)


def _rows(data: Data) -> tuple[Dataset, tuple[str, ...], Mapping[str, str]]:
    """Return the rows, notes on them, and how each column of a file was used."""
    if not data.file:
        return read(data), (), {}
    opened = open_file(name=data.name, **data.file)
    return opened.dataset, opened.notes, opened.columns
