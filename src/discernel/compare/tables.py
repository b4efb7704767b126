"""Summaries of records: means, paired comparisons, ranks and failures. Nothing is fitted."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from discernel.arrays import FloatArray
from discernel.compare.metrics import ALL_METRICS, METRICS, PredictionMetric, find_metric
from discernel.compare.statistics import (
    ALPHA,
    Interval,
    RankTest,
    corrected_interval,
    corrected_t_test,
    holm,
    rank_test,
)
from discernel.compare.store import Record
from discernel.exceptions import InvalidInputError
from discernel.show.facts import ImportanceFacts

Verdict = Literal["clearly best", "best", "tied", "worse", "cannot tell", "failed"]
#: Verdicts that are not significantly worse than the best.
LEADING: tuple[Verdict, ...] = ("clearly best", "best", "tied")


@dataclass(frozen=True, eq=False)
class Entry:
    """Summary of one method on one data set, over all splits.

    Attributes
    ----------
    dataset, method : str
        Names of the data set and the method.
    records : sequence of Record
        The records of all splits, including failures.
    metric : PredictionMetric
        The metric of the table.
    interval : Interval or None
        Mean and corrected confidence interval, clipped to the range of the metric; None without
        values.
    verdict : {"clearly best", "best", "tied", "worse", "cannot tell", "failed"}
        "clearly best": significantly better than every other method. "best": the best mean.
        "tied": not significantly worse than the best. "worse": significantly worse. "cannot
        tell": no test was possible. "failed": no split finished with the metric.
    p_value : float
        p-value of the comparison with the best method, from `ResultTable.pairs`; for the best
        itself, the largest of its p-values. NaN without a test.
    """

    dataset: str
    method: str
    records: Sequence[Record]
    metric: PredictionMetric
    interval: Interval | None = None
    verdict: Verdict = "failed"
    p_value: float = math.nan

    @cached_property
    def successful(self) -> list[Record]:
        """The records of the splits that did not fail."""
        return [record for record in self.records if record.result.error is None]

    @property
    def n_failed(self) -> int:
        """Number of failed splits."""
        return len(self.records) - len(self.successful)

    @cached_property
    def values(self) -> dict[int, float]:
        """The metric of the table for each finished split that has it."""
        return self._known(self.metric.name)

    @property
    def mean(self) -> float:
        """Mean of the metric of the table; NaN without values."""
        return math.nan if self.interval is None else self.interval.mean

    @property
    def means(self) -> dict[str, float]:
        """Mean of every known metric, by name."""
        known = {name: list(self._known(name).values()) for name in ALL_METRICS}
        return {name: float(np.mean(values)) for name, values in known.items() if values}

    def mean_time(self, name: Literal["seconds_fit", "seconds_predict"]) -> float:
        """Return the mean time of a fit or of predicting; NaN if no split finished."""
        found = [getattr(record.result, name) for record in self.successful]
        return float(np.mean(found)) if found else math.nan

    @property
    def peak_memory(self) -> int | None:
        """Largest peak memory of any split, in bytes."""
        found = (record.result.peak_memory for record in self.successful)
        return max((peak for peak in found if peak is not None), default=None)

    def _known(self, name: str) -> dict[int, float]:
        """Return the finite values of a metric by split."""
        found = {r.cell.repetition: r.result.metrics.get(name, math.nan) for r in self.successful}
        return {i: value for i, value in found.items() if math.isfinite(value)}


@dataclass(frozen=True)
class ResultTable:
    """All entries, data set by data set.

    Attributes
    ----------
    datasets, methods : tuple of str
        Names in the order of the records. If different data sets or methods have the same name,
        the later ones are numbered.
    entries : dict of (str, str) to Entry
        Entries by data set and method.
    pairs : dict of (str, str, str) to PairedComparison
        Comparisons by data set, method and reference, in both orders. Every pair of methods with
        a common split is tested once; all verdicts use these tests.
    metric : PredictionMetric
        The metric by which methods are compared.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    entries: Mapping[tuple[str, str], Entry]
    pairs: Mapping[tuple[str, str, str], PairedComparison]
    metric: PredictionMetric = METRICS["accuracy"]

    def of_dataset(self, dataset: str) -> list[Entry]:
        """Return the entries of a data set, in the order of the methods."""
        found = (self.entries.get((dataset, method)) for method in self.methods)
        return [entry for entry in found if entry is not None]

    def ranked(self, dataset: str) -> list[Entry]:
        """Return the entries of a data set, best mean first, entries without a mean last."""
        return sorted(
            self.of_dataset(dataset),
            key=lambda entry: -self.metric.sign * entry.mean if entry.values else math.inf,
        )

    def against(self, reference: str) -> list[PairedComparison]:
        """Return the comparisons of all other methods with a reference, by data set."""
        return [pair for pair in self.pairs.values() if pair.reference == reference]


@dataclass(frozen=True)
class PairedComparison:
    """Comparison of a method with a reference on one data set: method minus reference.

    Attributes
    ----------
    dataset, method, reference : str
        Names.
    difference : Interval
        Difference over the splits that both finished. Its p-value is corrected for all pairs of
        methods on the data set [Holm79]_.
    sign : float
        1 if larger values of the metric are better, else −1.
    """

    dataset: str
    method: str
    reference: str
    difference: Interval
    sign: float = 1.0

    @property
    def verdict(self) -> Literal["better", "worse", "tied", "cannot tell"]:
        """The verdict of the corrected p-value; "cannot tell" without one."""
        if math.isnan(self.difference.p_value):
            return "cannot tell"
        if not self.difference.p_value < ALPHA:
            return "tied"
        return "better" if self.sign * self.difference.mean > 0 else "worse"

    @property
    def reversed(self) -> PairedComparison:
        """The same pair with method and reference exchanged."""
        old = self.difference
        difference = replace(old, mean=-old.mean, low=-old.high, high=-old.low)
        return replace(self, method=self.reference, reference=self.method, difference=difference)


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over data sets.

    Attributes
    ----------
    ranks : dict of str to float
        Mean rank of each method that was run on all data sets, best first.
    test : RankTest
        The test of their differences.
    datasets : tuple of str
        Data sets that the ranks are computed from.
    """

    ranks: dict[str, float]
    test: RankTest
    datasets: tuple[str, ...]

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Verdict on each method relative to the best mean rank: best, tied or worse."""
        best = min(self.ranks.values())
        limit = best + self.test.critical_difference if self.test.p_value < ALPHA else math.inf
        return {
            method: "best" if rank == best else "tied" if rank < limit else "worse"
            for method, rank in self.ranks.items()
        }


@dataclass(frozen=True)
class Failure:
    """An error message, and the splits of a method on a data set that failed with it."""

    dataset: str
    method: str
    message: str
    repetitions: tuple[int, ...]


def summarize(records: Iterable[Record], metric: str = "accuracy") -> ResultTable:
    """Summarize records by data set and method, and compare methods by one metric.

    Parameters
    ----------
    records : iterable of Record
        Records from `Store.records`, including failures.
    metric : str, default="accuracy"
        A name from `discernel.compare.metrics.ALL_METRICS`.

    Returns
    -------
    ResultTable
        The summary.

    Examples
    --------
    >>> from discernel.compare.plan import Cell, Data, Method, Splits
    >>> from discernel.compare.store import Result
    >>> def record(name, repetition, accuracy):
    ...     cell = Cell(Data("wine"), Method(name, name), Splits(n=2), repetition)
    ...     return Record(cell, Result(metrics={"accuracy": accuracy}), {}, "")
    >>> table = summarize([record("lda", 0, 0.9), record("lda", 1, 1.0)])
    >>> round(table.entries["wine", "lda"].mean, 2)
    0.95
    """
    judged, by_place = find_metric(metric), _by_place(records)
    datasets = tuple(dict.fromkeys(dataset for dataset, _ in by_place))
    methods = tuple(dict.fromkeys(method for _, method in by_place))
    entries = {place: Entry(*place, found, judged) for place, found in by_place.items()}
    pairs: dict[tuple[str, str, str], PairedComparison] = {}
    for dataset in datasets:
        rivals = [entry for entry in entries.values() if entry.dataset == dataset]
        # The ratio of held-out to training rows, the mean over all records.
        ratios = [ratio for e in rivals for ratio in map(heldout_ratio, e.records) if ratio > 0]
        ratio = float(np.mean(ratios)) if ratios else math.nan
        for pair in _compare_pairs(rivals, ratio):
            pairs[dataset, pair.method, pair.reference] = pair
            pairs[dataset, pair.reference, pair.method] = pair.reversed
        for entry in _judged(rivals, ratio, pairs):
            entries[dataset, entry.method] = entry
    return ResultTable(datasets, methods, entries, pairs, judged)


def rank_methods(table: ResultTable) -> Ranking | None:
    """Rank the methods that were run on all data sets.

    A method that failed in every split of a data set ranks last on it. If it failed in some
    splits, all methods are ranked by the splits that all of them finished; a data set without such
    splits does not count.

    Parameters
    ----------
    table : ResultTable
        From `summarize`.

    Returns
    -------
    Ranking or None
        None with fewer than two such methods or two such data sets.
    """
    methods = [
        method
        for method in table.methods
        if all((dataset, method) in table.entries for dataset in table.datasets)
    ]
    scores = {dataset: _scores(table, dataset, methods) for dataset in table.datasets}
    scores = {dataset: found for dataset, found in scores.items() if found}
    if len(scores) < 2 or len(methods) < 2:
        return None
    # Rounded, because sums in another order may differ in the last digit: these are ties.
    test = rank_test(np.round(list(scores.values()), 12))
    pairs = zip(methods, test.ranks.tolist(), strict=True)
    return Ranking(dict(sorted(pairs, key=lambda pair: pair[1])), test, tuple(scores))


def _scores(table: ResultTable, dataset: str, methods: Sequence[str]) -> list[float]:
    """Return means over common splits, −inf for failed methods; [] if there is no common split."""
    entries = [table.entries[dataset, method] for method in methods]
    finished = [set(entry.values) for entry in entries if entry.values]
    common = sorted(set.intersection(*finished)) if finished else []
    if not common or not all(entry.values or entry.n_failed for entry in entries):
        return []
    return [
        table.metric.sign * float(np.mean([entry.values[i] for i in common]))
        if entry.values
        else -math.inf
        for entry in entries
    ]


def failures(table: ResultTable) -> list[Failure]:
    """Return all failures, grouped by data set, method and message."""
    found: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for place, entry in table.entries.items():
        for record in entry.records:
            if record.result.error is not None:
                lines = record.result.error.strip().splitlines() or ["no message"]
                found[*place, lines[-1]].append(record.cell.repetition)
    return [Failure(*place, tuple(repetitions)) for place, repetitions in found.items()]


def heldout_ratio(record: Record) -> float:
    """Return the ratio of held-out to training rows, or NaN if the record does not determine it.

    The ratio is 1 / (k − 1) for k folds, and follows from a fraction of training rows. For a
    number of training rows the predictions are needed. A split chosen by the donor has no ratio:
    repeating it says nothing about other splits.
    """
    splits = record.cell.splits
    if splits.donor:
        return math.nan
    if splits.folds is not None:
        return 1.0 / (splits.folds - 1)
    if splits.train_size < 1:
        return (1.0 - splits.train_size) / splits.train_size
    n_heldout = len(record.result.predictions.get("y_true", ()))
    return n_heldout / int(splits.train_size) if n_heldout else math.nan


def mean_importances(records: Iterable[Record]) -> list[ImportanceFacts]:
    """Return the column importances of a method, largest first; empty if it has none.

    Importances are means over splits, with standard deviations (NaN with one split).

    Parameters
    ----------
    records : iterable of Record
        Records of one method on one data set. A column missing in a split counts as 0.
    """
    names, rows = named_rows(record.result.details.get("feature_importances") for record in records)
    spreads = rows.std(axis=0, ddof=1) if len(rows) > 1 else np.full(len(names), np.nan)
    means = rows.mean(axis=0) if len(rows) else np.empty(0)
    found = map(ImportanceFacts, names, means.tolist(), spreads.tolist())
    return sorted(found, key=attrgetter("importance"), reverse=True)


def named_rows(stored: Iterable[Mapping[str, float] | None]) -> tuple[list[str], FloatArray]:
    """Return all names, and one row of numbers per split, with 0 for absent names."""
    known = [each for each in stored if each]
    names = list(dict.fromkeys(name for each in known for name in each))
    return names, np.array([[each.get(name, 0.0) for name in names] for each in known])


# ---- parts -----------------------------------------------------------------------------------


def _by_place(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """Return records by data set and method names, in the order of splits, without duplicates."""
    names: tuple[dict[str, str], dict[str, str]] = ({}, {})
    places: dict[tuple[str, str], dict[int, Record]] = defaultdict(dict)
    for record in records:
        spec = record.cell.spec
        dataset = _name(names[0], record.cell.data.name, [spec["data"], spec["splits"]])
        method = _name(names[1], record.cell.method.name, spec["method"])
        places[dataset, method][record.cell.repetition] = record
    if not places:
        raise InvalidInputError(
            "There must be at least one record. Got none. Run the plan first, or check that the "
            "store is the one it was run with."
        )
    return {place: [found[i] for i in sorted(found)] for place, found in places.items()}


def _name(names: dict[str, str], name: str, spec: Any) -> str:
    """Return a unique name, always the same for the same specification."""
    key = json.dumps([name, spec], sort_keys=True, default=str)
    if key not in names:
        taken, number, unique = set(names.values()), 1, name
        while unique in taken:
            number += 1
            unique = f"{name} ({number})"
        names[key] = unique
    return names[key]


def _compare_pairs(rivals: Sequence[Entry], ratio: float) -> list[PairedComparison]:
    """Test all pairs of entries of one data set that have a common split.

    The best method and the reference are not known in advance. Therefore p-values are corrected
    for all pairs, and a pair has the same p-value everywhere.
    """
    found = []
    for one, two in combinations(rivals, 2):
        if common := sorted(one.values.keys() & two.values.keys()):
            ours, theirs = ([entry.values[i] for i in common] for entry in (one, two))
            test = corrected_t_test(ours, theirs, ratio)
            place = one.dataset, one.method, two.method
            found.append(PairedComparison(*place, test, one.metric.sign))
    adjusted = holm([pair.difference.p_value for pair in found]).tolist()
    return [
        replace(pair, difference=replace(pair.difference, p_value=p))
        for pair, p in zip(found, adjusted, strict=True)
    ]


def _judged(
    rivals: Sequence[Entry], ratio: float, pairs: Mapping[tuple[str, str, str], PairedComparison]
) -> Iterator[Entry]:
    """Yield the entries of one data set with their intervals and verdicts."""
    made = []
    for entry in rivals:
        if not entry.values:
            yield replace(entry, verdict="failed" if entry.n_failed else "cannot tell")
            continue
        found = corrected_interval(list(entry.values.values()), ratio)
        ends = np.clip([found.low, found.high], entry.metric.least, entry.metric.most).tolist()
        made.append(replace(entry, interval=replace(found, low=ends[0], high=ends[1])))
    if not made:
        return
    best = max(made, key=lambda entry: entry.metric.sign * entry.mean)
    for entry in made:
        others = [other for other in made if other is not best] if entry is best else [best]
        tests = (pairs.get((entry.dataset, entry.method, other.method)) for other in others)
        known = [math.nan if test is None else test.difference.p_value for test in tests]
        p_values = [p for p in known if not math.isnan(p)]
        p_value = max(p_values, default=math.nan)
        verdict: Verdict = "best" if entry.mean == best.mean else "tied"
        if not p_values:
            verdict = "cannot tell"
        elif len(p_values) == len(known) and p_value < ALPHA:
            verdict = "clearly best" if entry is best else "worse"
        yield replace(entry, verdict=verdict, p_value=p_value)
