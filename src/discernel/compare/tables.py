"""From records to plain summaries: means, comparisons, ranks, failures. Nothing is fitted."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from discernel.arrays import FloatArray
from discernel.compare.metrics import METRICS, PredictionMetric, find_metric
from discernel.compare.statistics import (
    ALPHA,
    Difference,
    Interval,
    RankTest,
    corrected_interval,
    corrected_t_test,
    holm,
    rank_test,
)
from discernel.compare.store import Record, Result
from discernel.exceptions import InvalidInputError
from discernel.show.facts import ImportanceFacts

Standing = Literal["ahead", "level", "behind", "untested", "failed"]
#: The verdict of each standing.
_VERDICTS = {
    "ahead": "best",
    "level": "tied",
    "behind": "worse",
    "untested": "cannot tell",
    "failed": "failed",
}


@dataclass(frozen=True)
class Entry:
    """One method on one data set, over all splits.

    Attributes
    ----------
    dataset, method : str
        Their names.
    values : dict of int to float
        The metric of the table by split, where the method finished and has it.
    interval : Interval or None
        Mean and corrected confidence interval, cut off where the metric ends; None where there
        are no values.
    means : dict of str to float
        The mean of every metric that is known, by its name.
    seconds_fit, seconds_predict : float
        The mean time of a fit, and of predicting the held-out rows; NaN where nothing finished.
    peak_memory : int or None
        Most bytes in any split.
    n_failed : int
        The number of splits that failed.
    standing : {"ahead", "level", "behind", "untested", "failed"}
        Clearly better than every other method; the best mean, or not clearly worse than it;
        clearly worse; nothing to tell by, or too little; nothing finished, or without the metric.
    p_value : float
        That of the pair with the best method of the data set, from `ResultTable.pairs`; of the
        best itself, the largest of its pairs. NaN where there is no test.
    """

    dataset: str
    method: str
    values: dict[int, float] = field(default_factory=dict)
    interval: Interval | None = None
    means: dict[str, float] = field(default_factory=dict)
    seconds_fit: float = math.nan
    seconds_predict: float = math.nan
    peak_memory: int | None = None
    n_failed: int = 0
    standing: Standing = "failed"
    p_value: float = math.nan

    @property
    def mean(self) -> float:
        """The mean of the metric of the table; NaN where there are no values."""
        return math.nan if self.interval is None else self.interval.mean


@dataclass(frozen=True)
class ResultTable:
    """All entries, data set by data set.

    Attributes
    ----------
    datasets, methods : tuple of str
        Names in the order of the records. Where two data sets, or two methods, that are not the
        same have one name, the later ones are numbered.
    entries : dict of (str, str) to Entry
        By data set and method; there is none where nothing was run.
    records : dict of (str, str) to list of Record
        The records of each entry, failures included.
    pairs : dict of (str, str, str) to PairedComparison
        By data set, method and reference, in both orders: the one test of every pair of methods
        with a common split, which all verdicts are read from.
    metric : PredictionMetric
        The metric by which methods are compared.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    entries: Mapping[tuple[str, str], Entry]
    records: Mapping[tuple[str, str], list[Record]]
    pairs: Mapping[tuple[str, str, str], PairedComparison]
    metric: PredictionMetric = METRICS["accuracy"]

    def of_dataset(self, dataset: str) -> list[Entry]:
        """Return the entries of a data set, in the order of the methods."""
        found = (self.entries.get((dataset, method)) for method in self.methods)
        return [entry for entry in found if entry is not None]

    def ranked(self, dataset: str) -> list[Entry]:
        """Return the entries of a data set, the best mean first, those without one last."""
        return sorted(
            self.of_dataset(dataset),
            key=lambda entry: -self.metric.sign * entry.mean if entry.values else math.inf,
        )

    def against(self, reference: str) -> list[PairedComparison]:
        """Return the pairs of every other method with a reference, data set by data set."""
        return [pair for pair in self.pairs.values() if pair.reference == reference]

    def verdict(self, entry: Entry) -> str:
        """Return how a method stands, in a word: the best mean is best, clearly so or not."""
        is_best = entry.standing == "level" and entry.mean == self.ranked(entry.dataset)[0].mean
        return "best" if is_best else _VERDICTS[entry.standing]


@dataclass(frozen=True)
class PairedComparison:
    """A method against a reference on one data set: the metric of the one minus the other's.

    Attributes
    ----------
    dataset, method, reference : str
        Their names.
    difference : Difference
        Over the splits that both finished.
    p_value : float
        Its probability, corrected for all pairs of methods on the data set [Holm79]_.
    sign : float
        1 where a larger metric is better, else −1.
    """

    dataset: str
    method: str
    reference: str
    difference: Difference
    p_value: float
    sign: float = 1.0

    @property
    def verdict(self) -> Literal["better", "worse", "tied", "cannot tell"]:
        """The verdict of the corrected p-value; "cannot tell" without one."""
        if math.isnan(self.p_value):
            return "cannot tell"
        if not self.p_value < ALPHA:
            return "tied"
        return "better" if self.sign * self.difference.mean > 0 else "worse"

    @property
    def turned(self) -> PairedComparison:
        """The same pair with method and reference exchanged."""
        old = self.difference
        difference = replace(old, mean=-old.mean, low=-old.high, high=-old.low)
        return replace(self, method=self.reference, reference=self.method, difference=difference)


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over data sets.

    Attributes
    ----------
    methods : tuple of str
        The methods that were run on all data sets, the best mean rank first.
    test : RankTest
        Their mean ranks in this order, and whether they differ.
    datasets : tuple of str
        The data sets that count.
    """

    methods: tuple[str, ...]
    test: RankTest
    datasets: tuple[str, ...]

    @property
    def ranks(self) -> dict[str, float]:
        """The mean rank of each method, the best first."""
        return dict(zip(self.methods, self.test.ranks.tolist(), strict=True))

    @property
    def verdicts(self) -> dict[str, str]:
        """How each method stands to the best mean rank: best, tied or worse."""
        ranks, best = self.ranks, self.test.ranks[0]
        limit = best + self.test.critical_difference if self.test.p_value < ALPHA else math.inf
        return {
            method: "best" if rank == best else "tied" if rank < limit else "worse"
            for method, rank in ranks.items()
        }


@dataclass(frozen=True)
class Failure:
    """One message, and the splits of one method on one data set that ended with it."""

    dataset: str
    method: str
    message: str
    repetitions: tuple[int, ...]


def summarize(records: Iterable[Record], metric: str = "accuracy") -> ResultTable:
    """Sum up records by data set and method, and judge them by one metric.

    Parameters
    ----------
    records : iterable of Record
        As `Store.records` gives them, failures included.
    metric : str, default="accuracy"
        The name of one of `discernel.compare.metrics.METRICS`.

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
    ratios = {
        dataset: _common_ratio(
            [r for place in by_place if place[0] == dataset for r in by_place[place]]
        )
        for dataset in datasets
    }
    entries = {
        place: _entry(place, found, ratios[place[0]], judged) for place, found in by_place.items()
    }
    pairs: dict[tuple[str, str, str], PairedComparison] = {}
    for dataset in datasets:
        rivals = [entry for entry in entries.values() if entry.dataset == dataset]
        for pair in _compare_pairs(rivals, ratios[dataset], judged):
            pairs[dataset, pair.method, pair.reference] = pair
            pairs[dataset, pair.reference, pair.method] = pair.turned
        for entry in _with_standings(rivals, pairs, judged):
            entries[entry.dataset, entry.method] = entry
    return ResultTable(datasets, methods, entries, by_place, pairs, judged)


def rank_methods(table: ResultTable) -> Ranking | None:
    """Rank the methods that were run on all data sets.

    A method that failed in every split of a data set comes last there. Where it failed in some,
    all methods are ranked by the splits that all of them finished; a data set without such
    splits does not count.

    Parameters
    ----------
    table : ResultTable
        From `summarize`.

    Returns
    -------
    Ranking or None
        None for fewer than two such methods, or fewer than two data sets that count.
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
    # Means of the same numbers in another order may differ in their last digit: a tie all the same.
    test = rank_test(np.round(list(scores.values()), 12))
    order = np.argsort(test.ranks, kind="stable")
    ranked = tuple(methods[i] for i in order)
    return Ranking(ranked, replace(test, ranks=test.ranks[order]), tuple(scores))


def _scores(table: ResultTable, dataset: str, methods: Sequence[str]) -> list[float]:
    """Return means over common splits, −inf for failures; nothing where they do not compare."""
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
    """Return all failures, those of one method on one data set with one message together."""
    found: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for (dataset, method), records in table.records.items():
        for record in records:
            if record.result.error is not None:
                lines = record.result.error.strip().splitlines() or ["no message"]
                found[dataset, method, lines[-1]].append(record)
    return [
        Failure(
            *place,
            repetitions=tuple(sorted(record.cell.repetition for record in records)),
        )
        for place, records in found.items()
    ]


def heldout_ratio(record: Record) -> float:
    """Return held-out rows over training rows, or NaN where the record does not tell.

    It is 1 / (k − 1) for k folds, follows from a share of training rows, and needs the predictions
    for a number of them. A split that the donor made is the only one there is: repeated, it
    says nothing about others.
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
    """Return how much columns matter, the most important first; empty where nobody learned it.

    Importances are means over splits, with their standard deviation, NaN of one split.

    Parameters
    ----------
    records : iterable of Record
        Those of one method on one data set. A column that a split has not counts as 0 there.
    """
    names, rows = named_rows(record.result.details.get("feature_importances") for record in records)
    spreads = rows.std(axis=0, ddof=1) if len(rows) > 1 else np.full(len(names), np.nan)
    means = rows.mean(axis=0) if len(rows) else np.empty(0)
    found = map(ImportanceFacts, names, means.tolist(), spreads.tolist())
    return sorted(found, key=attrgetter("importance"), reverse=True)


def named_rows(stored: Iterable[Mapping[str, float] | None]) -> tuple[list[str], FloatArray]:
    """Return all names that occur, and a row of numbers per split, 0 for names it has not."""
    known = [each for each in stored if each]
    names = list(dict.fromkeys(name for each in known for name in each))
    return names, np.array([[each.get(name, 0.0) for name in names] for each in known])


# ---- parts -----------------------------------------------------------------------------------


def _by_place(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """Return the records by the names of data set and method, the same split once."""
    names: tuple[dict[str, str], dict[str, str]] = ({}, {})
    places: dict[tuple[str, str], dict[int, Record]] = defaultdict(dict)
    for record in records:
        spec = record.cell.spec
        dataset = _name(names[0], record.cell.data.name, [spec["data"], spec["splits"]])
        method = _name(names[1], record.cell.method.name, spec["method"])
        places[dataset, method][record.cell.repetition] = record
    if not places:
        raise InvalidInputError(
            "There must be at least one record. Got none. Run the plan first, or look whether the "
            "store is the one it was run with."
        )
    return {place: [found[i] for i in sorted(found)] for place, found in places.items()}


def _name(names: dict[str, str], name: str, spec: Any) -> str:
    """Return a name that nothing else has: the same one for the same specification."""
    key = json.dumps([name, spec], sort_keys=True, default=str)
    if key not in names:
        taken, number, unique = set(names.values()), 1, name
        while unique in taken:
            number += 1
            unique = f"{name} ({number})"
        names[key] = unique
    return names[key]


def _common_ratio(records: Sequence[Record]) -> float:
    """Return the ratio of a data set: the same in all records that tell, but for rounding."""
    known = [ratio for ratio in map(heldout_ratio, records) if ratio > 0]
    return float(np.mean(known)) if known else math.nan


def _entry(
    place: tuple[str, str], records: Sequence[Record], ratio: float, metric: PredictionMetric
) -> Entry:
    """Return the summary of one method on one data set, not yet compared with others."""
    results = {r.cell.repetition: r.result for r in records if r.result.error is None}
    known = {name: _values(results, each) for name, each in METRICS.items()}
    values, done = known[metric.name], results.values()
    return Entry(
        *place,
        values=values,
        interval=_interval(values, ratio, metric) if values else None,
        means={name: _mean(v.values()) for name, v in known.items() if v},
        seconds_fit=_mean(result.seconds_fit for result in done),
        seconds_predict=_mean(result.seconds_predict for result in done),
        peak_memory=max((r.peak_memory for r in done if r.peak_memory is not None), default=None),
        n_failed=len(records) - len(results),
        standing="failed" if len(results) < len(records) else "untested",
    )


def _mean(values: Iterable[float]) -> float:
    """Return the mean; NaN without values."""
    found = list(values)
    return float(np.mean(found)) if found else math.nan


def _values(results: Mapping[int, Result], metric: PredictionMetric) -> dict[int, float]:
    """Return a metric by split, where it is known."""
    found = {i: result.metrics.get(metric.name, math.nan) for i, result in results.items()}
    return {i: value for i, value in found.items() if math.isfinite(value)}


def _interval(values: Mapping[int, float], ratio: float, metric: PredictionMetric) -> Interval:
    """Return the corrected interval, clipped to the range of the metric."""
    found = corrected_interval(list(values.values()), ratio)
    low, high = np.clip([found.low, found.high], 0.0, metric.most).tolist()
    return replace(found, low=low, high=high)


def _compare_pairs(
    rivals: Sequence[Entry], ratio: float, metric: PredictionMetric
) -> list[PairedComparison]:
    """Test all pairs of entries of one data set that have a common split.

    Whichever method is the best, or the reference, is not known beforehand. So probabilities are
    corrected for all pairs, and a pair has the same one wherever it is shown.
    """
    found = []
    for first, second in combinations(rivals, 2):
        if common := sorted(first.values.keys() & second.values.keys()):
            ours, theirs = ([entry.values[i] for i in common] for entry in (first, second))
            test = corrected_t_test(ours, theirs, ratio)
            found.append((first.dataset, first.method, second.method, test))
    adjusted = holm([test.p_value for *_, test in found]).tolist()
    return [
        PairedComparison(*each, p, metric.sign) for each, p in zip(found, adjusted, strict=True)
    ]


def _with_standings(
    rivals: Sequence[Entry],
    pairs: Mapping[tuple[str, str, str], PairedComparison],
    metric: PredictionMetric,
) -> Iterator[Entry]:
    """Yield the entries of one data set that have values, with their standing against the best."""
    finished = [entry for entry in rivals if entry.values]
    if not finished:
        return
    best = max(finished, key=lambda entry: metric.sign * entry.mean)
    for entry in finished:
        others = [other for other in finished if other is not best] if entry is best else [best]
        tests = (pairs.get((entry.dataset, entry.method, other.method)) for other in others)
        found = [math.nan if test is None else test.p_value for test in tests]
        made = [p for p in found if not math.isnan(p)]
        standing: Standing = "level" if made else "untested"
        if made and len(made) == len(found) and max(made) < ALPHA:
            standing = "ahead" if entry is best else "behind"
        yield replace(entry, standing=standing, p_value=max(made, default=math.nan))
