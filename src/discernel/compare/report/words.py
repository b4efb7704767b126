"""Sentences that describe the results of a comparison."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from discernel.compare.methods import DEFAULT_METHODS, DEFAULT_NUMBER_METHODS
from discernel.compare.metrics import PredictionMetric
from discernel.compare.plan import Splits
from discernel.compare.statistics import ALPHA, Interval
from discernel.compare.tables import Failure, Ranking, ResultTable
from discernel.show.words import join, plural, probability

#: discernel's default method, and the baselines that learn nothing, by what they predict.
DEFAULT = DEFAULT_METHODS[0]
BASELINES = {
    DEFAULT_METHODS[-1]: "the most frequent class",
    DEFAULT_NUMBER_METHODS[-1]: "the mean",
}
#: With fewer splits the corrected t-test has little power.
_FEW_SPLITS = 10
#: Largest number of methods with the best mean that are named.
_FEW_NAMES = 3


def span(interval: Interval | None, metric: PredictionMetric) -> str:
    """Return the ends of an interval as text; a dash if there is none."""
    if interval is None or math.isnan(interval.low):
        return "–"
    return f"{metric.show(interval.low)} to {metric.show(interval.high)}"


def describe_splits(splits: Splits, n_splits: int) -> str:
    """Describe how rows were split."""
    if splits.donor:
        return "training rows chosen by the donor of the data"
    if splits.folds is not None:
        turns = -(-n_splits // splits.folds)
        times = "once" if turns == 1 else f"{turns} times"
        return f"{splits.folds}-fold cross-validation, {times}, seeds from {splits.seed}"
    size = splits.train_size
    part = f"{size:.0%} of the rows train" if size < 1 else f"{int(size)} rows train"
    manner = "stratified" if splits.stratify else "not stratified"
    return f"{plural(n_splits, 'split')}, {part}, {manner}, seeds from {splits.seed}"


def describe_dataset(table: ResultTable, dataset: str) -> str:
    """Say which method is best on a data set, and whether its lead is significant."""
    entries, label = [e for e in table.ranked(dataset) if e.values], table.metric.label
    if not entries:
        return f"On {dataset} no method has a result for {label}."
    best = entries[0]
    number = table.metric.show_with_unit(best.mean)
    if best.interval is not None and best.interval.low < best.interval.high:
        number += f" ({span(best.interval, table.metric)})"
    if len(entries) == 1:
        return f"On {dataset} only {best.method} has results: {label} {number}."
    if best.verdict == "clearly best":
        return (
            f"On {dataset}, {best.method} is clearly better than all others: {label} {number}, "
            f"p {probability(best.p_value)} against the nearest."
        )
    if all(entry.verdict == "cannot tell" for entry in entries):
        return (
            f"On {dataset}, {best.method} has the best {label}, {number}, but the splits cannot "
            "tell whether the differences are due to chance."
        )
    leaders = [entry.method for entry in entries if entry.mean == best.mean]
    if len(leaders) == len(entries):
        n = len(entries)
        all_of_them = "both methods" if n == 2 else f"all {plural(n, 'method')}"
        return f"On {dataset} {all_of_them} have the same mean {label}: {number}."
    few = len(leaders) <= _FEW_NAMES
    who = join(leaders) if few else f"{len(leaders)} of {len(entries)} methods"
    share = "has" if len(leaders) == 1 else "share"
    start = f"On {dataset}, {who} {share} the best {label}, {number}"
    names = {"tied": "Statistically tied", "cannot tell": "Not tested", "worse": "Clearly worse"}
    others = [entry for entry in entries if entry.mean != best.mean]
    if all(entry.verdict == "tied" for entry in others):
        return (
            f"{start}, but all others are statistically tied: the differences may be due to chance."
        )
    by_verdict = {key: [e.method for e in others if e.verdict == key] for key in names}
    sentences = [f" {names[key]}: {join(found)}." for key, found in by_verdict.items() if found]
    return f"{start}.{''.join(sentences)}"


def describe_default(table: ResultTable, dataset: str) -> str | None:
    """Compare the default with the best method; None if the default was not compared."""
    entries = [entry for entry in table.ranked(dataset) if entry.values]
    entry = next((entry for entry in entries if entry.method == DEFAULT), None)
    if entry is None or len(entries) < 2 or entry.verdict == "cannot tell":
        return None
    best, metric = entries[0], table.metric
    if entry.verdict == "worse":
        return (
            f"Prefer {best.method}: the default, {DEFAULT}, is clearly worse ({metric.label} "
            f"{metric.show(entry.mean)} against {metric.show_with_unit(best.mean)}, "
            f"p {probability(entry.p_value)})."
        )
    clearly = "" if entry.mean == best.mean else " clearly"
    return f"Use the default, {DEFAULT}: no method is{clearly} better."


def conclusion(table: ResultTable, dataset: str) -> list[str]:
    """Return sentences on a data set: the best method, the default, and the power of the tests."""
    found = (describe_dataset(table, dataset), describe_default(table, dataset))
    return [sentence for sentence in (*found, describe_power(table)) if sentence]


def describe_ranking(ranking: Ranking | None) -> str | None:
    """Describe the ranking over all data sets; None without a ranking."""
    if ranking is None:
        return None
    test, verdicts, rank = ranking.test, ranking.verdicts, min(ranking.ranks.values())
    best, tied = ([m for m, v in verdicts.items() if v == word] for word in ("best", "tied"))
    first = (
        f"Over {plural(len(ranking.datasets), 'data set')}, {join(best)} "
        f"{'has' if len(best) == 1 else 'share'} the best mean rank, {rank:.2f}"
    )
    p = probability(test.p_value)
    if not test.p_value < ALPHA:
        return f"{first}, but the differences may be due to chance (Friedman test, p {p})."
    if not tied:
        return f"{first}, clearly better than all others (Friedman test, p {p}; Nemenyi)."
    return (
        f"{first}. Methods differ (Friedman test, p {p}), but {join(tied)} "
        f"{'is' if len(tied) == 1 else 'are'} not significantly worse than {join(best)} (Nemenyi: "
        f"ranks must differ by {test.critical_difference:.2f})."
    )


def describe_power(table: ResultTable) -> str | None:
    """Say that few splits detect only large differences; None with enough splits."""
    most = max((len(entry.values) for entry in table.entries.values()), default=0)
    if len(table.methods) < 2 or not 2 <= most < _FEW_SPLITS:
        return None
    return (
        f"Run {_FEW_SPLITS} or more splits: with {plural(most, 'split')} only large "
        "differences are detected, and tied methods need not be equally good."
    )


def describe_failures(found: Sequence[Failure], n_runs: int) -> str:
    """Say how many cells failed, and which."""
    counts: Counter[str] = Counter()
    for failure in found:
        counts[f"{failure.method} on {failure.dataset}"] += len(failure.repetitions)
    places = [f"{place} ({number})" for place, number in counts.items()]
    return f"{counts.total()} of {n_runs} runs failed: {join(places)}."
