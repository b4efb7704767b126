"""The numbers of a comparison: the first screen of its page, and its tables."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from discernel.compare.metrics import METRICS, PredictionMetric
from discernel.compare.report import words
from discernel.compare.report.learned import importance_blocks
from discernel.compare.report.words import BASELINE, DEFAULT, span
from discernel.compare.tables import (
    Entry,
    Ranking,
    ResultTable,
    failures,
    rank_methods,
)
from discernel.show.facts import Block, Row
from discernel.show.words import join, memory, percent, probability, seconds, signed

#: Columns on the first screen, and data sets with a figure there.
_MOST_COLUMNS, _MOST_DATASETS = 8, 6


@dataclass(frozen=True)
class Section:
    """A part of the page that unfolds: paragraphs, tables, and figures by data set."""

    id: str
    title: str
    paragraphs: tuple[str, ...] = ()
    parts: tuple[Block, ...] = ()
    groups: tuple[tuple[str | None, list[Any]], ...] = ()
    meanings: tuple[tuple[str, str], ...] = ()


# ---- the first screen --------------------------------------------------------------------------


@dataclass(frozen=True)
class Race:
    """All methods on a data set as points with intervals, the best first.

    Attributes
    ----------
    dataset, caption, heading : str
        The data set, what is seen, and the metric with its unit.
    ticks : list of dict
        Text and place of each, in percent of the width.
    rows : list of dict
        The methods: name, places of the mean and of both ends, and texts.
    """

    dataset: str
    caption: str
    heading: str
    ticks: list[dict[str, Any]]
    rows: list[dict[str, Any]]

    @classmethod
    def of(cls, table: ResultTable, dataset: str) -> Race:
        """Return the methods on a data set."""
        entries, metric = table.ranked(dataset), table.metric
        low, high = drawn_range(entries)
        unit = 100.0 if metric.in_percent else 1.0

        def place(value: float) -> float:
            return round(100.0 * (value - low) / (high - low), 2)

        ticks = [
            {"at": place(tick / unit), "text": f"{tick:g}"}
            for tick in _round_numbers(unit * low, unit * high)
        ]
        rows = [_racer(entry, table.verdict(entry), metric, place) for entry in entries]
        caption = f"{metric.heading} of all methods on {dataset}, with 95 % intervals"
        return cls(dataset, caption, metric.heading, ticks, rows)


def drawn_range(entries: list[Entry]) -> tuple[float, float]:
    """Return the ends of a drawing: whole hundredths around all intervals but the guess's."""
    known = [e.interval for e in entries if e.interval is not None and e.method != BASELINE]
    ends = [i.mean if math.isnan(end) else end for i in known for end in (i.low, i.high)]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    low, high = math.floor(100 * low) / 100, math.ceil(100 * high) / 100
    return low, max(high, low + 0.01)


def _round_numbers(low: float, high: float) -> list[float]:
    """Return some three to five round numbers within a range."""
    rough = (high - low) / 5.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= rough)
    first = math.ceil(round(low / step, 9))
    return [round(step * i, 9) for i in range(first, math.floor(round(high / step, 9)) + 1)]


def _racer(entry: Entry, verdict: str, metric: PredictionMetric, place: Any) -> dict[str, Any]:
    interval = entry.interval
    known = interval is not None and not math.isnan(interval.low)
    ends = f", {span(interval, metric)}" if known else ""
    failed = f", {entry.n_failed} failed" if entry.n_failed and entry.values else ""
    return {
        "method": entry.method,
        "standing": entry.standing,
        "mean": None if interval is None else place(interval.mean),
        "low": max(0.0, place(interval.low)) if interval is not None and known else None,
        "high": min(100.0, place(interval.high)) if interval is not None and known else None,
        "text": metric.show_with_unit(entry.mean) if entry.values else "–",
        "verdict": verdict + failed,
        "title": f"{entry.method}: {metric.label} {metric.show_with_unit(entry.mean)}{ends}; "
        f"fit {seconds(entry.seconds_fit)}; {verdict}{failed}",
    }


def first_screen(table: ResultTable) -> dict[str, Any]:
    """Return who wins and whether that is sure, what to expect, what matters, what to do next."""
    ranking, failed = rank_methods(table), failures(table)
    n_runs = sum(len(found) for found in table.records.values())
    several = len(table.datasets) > 1
    verdicts = [words.describe_dataset(table, dataset) for dataset in table.datasets]
    lead = words.describe_ranking(ranking) if several else verdicts[0]
    of_default: dict[str | None, list[str]] = {}
    for dataset in table.datasets:
        of_default.setdefault(words.describe_default(table, dataset), []).append(dataset)
    following = [
        words.describe_power(table),
        *(f"{join(on)}: {said}" if several and said else said for said, on in of_default.items()),
        words.describe_failures(failed, n_runs),
    ]
    return {
        "lead": lead or " ".join(verdicts),
        "task": words.describe_task(table),
        "races": [Race.of(table, dataset) for dataset in table.datasets[:_MOST_DATASETS]],
        "expected_title": "Over all data sets" if several else "Expected of new rows",
        "expected": _tiles(table, ranking, n_runs, sum(len(f.repetitions) for f in failed)),
        "matters": _matters(table),
        "next": [sentence for sentence in following if sentence],
    }


def _tiles(table: ResultTable, ranking: Ranking | None, n_runs: int, n_failed: int) -> list[Row]:
    """Return three numbers: of one data set what to expect of new rows, of several the ranks."""
    if len(table.datasets) > 1:
        found = [e for e in table.entries.values() if e.standing in ("ahead", "level")]
        wins = Counter(entry.method for entry in found).most_common(1)
        rows = []
        if ranking is not None:
            detail = f"{ranking.methods[0]}, over {len(ranking.datasets)} data sets"
            rows.append(("best mean rank", f"{ranking.ranks[0]:.2f}", detail))
        for method, number in wins:
            detail = f"data sets where {method} is best or tied"
            rows.append(("best or tied", f"{number} of {len(table.datasets)}", detail))
        return [Row(each) for each in (*rows, ("failed", f"{n_failed}", f"of {n_runs} runs"))]
    entries = {e.method: e for e in table.ranked(table.datasets[0]) if e.values}
    entry = entries.get(DEFAULT) or next(iter(entries.values()), None)
    if entry is None:
        return []
    metric, rows = table.metric, []
    detail = f"{entry.method}, 95 % interval {span(entry.interval, metric)}"
    rows.append((metric.label, metric.show_with_unit(entry.mean), detail))
    guess = entries.get(BASELINE)
    if guess is not None and guess is not entry:
        detail = f"{metric.label} of always the most frequent class"
        rows.append(("without a model", metric.show_with_unit(guess.mean), detail))
    if "log_loss" in entry.means and metric.name != "log_loss":
        share = percent(math.exp(-entry.means["log_loss"]))
        detail = f"the right class gets {share} %, as a geometric mean"
        rows.append(("log-loss", f"{entry.means['log_loss']:z.3f}", detail))
    rows.append(("time of a fit", seconds(entry.seconds_fit, 2), entry.method))
    return [Row(each) for each in rows[:3]]


def _matters(table: ResultTable) -> Block | None:
    """Return the importances of columns to the first method that has them, as means."""
    for dataset in table.datasets:
        for block in importance_blocks(table, dataset):
            aside = f"to {block.title}: share ± standard deviation over divisions"
            return replace(block, aside=aside).shortened(_MOST_COLUMNS)
    return None


# ---- tables ------------------------------------------------------------------------------------


def result_sections(table: ResultTable) -> list[Section]:
    """Return results, paired comparisons and ranks, as far as there are any."""
    ranking = rank_methods(table)
    metric, several = table.metric, len(table.datasets) > 1
    overview = [_overview(table, ranking)] if several else []
    metrics = _metrics(table)
    better = "higher" if metric.higher_is_better else "lower"
    points = any(e.interval and e.interval.low == e.interval.high for e in table.entries.values())
    said = (
        "Methods predict rows that they did not learn from. Numbers are means over divisions, with "
        f"95 % intervals for {metric.label}, by which methods are judged; {better} is better. "
        "Best: the best mean. Tied: so near to it that the difference may be chance. Worse: the "
        "difference is not chance. Divisions share training rows; intervals and tests allow for "
        "that (Nadeau and Bengio), and tests for all pairs of methods on a data set (Holm)."
        + " An interval without length means that all divisions gave the same number, not that "
        "there is no doubt." * points,
        "p is the probability that chance alone makes a difference from the best at least as "
        "large; for the best itself, from the nearest other. Fit is the mean time to learn, "
        "memory the most that the process held. A button in a header sorts.",
        *filter(None, [words.describe_time(table)]),
    )
    meanings = tuple((each.label, each.meaning) for each in metrics)
    results = Section("results", "Results", said, (*overview, _entries(table)), meanings=meanings)
    return [results, *_comparison(table), *_ranks(ranking, metric)]


def _metrics(table: ResultTable) -> list[PredictionMetric]:
    """Return the metrics that any method has, the one that is ranked first."""
    known = {name for entry in table.entries.values() for name in entry.means}
    found = [metric for name, metric in METRICS.items() if name in known]
    return sorted(found, key=lambda metric: metric != table.metric)


def _overview(table: ResultTable, ranking: Ranking | None) -> Block:
    """Return a row per method: its mean on every data set, and its mean rank."""
    ranks = {} if ranking is None else dict(zip(ranking.methods, ranking.ranks, strict=True))
    rows = []
    for method in table.methods:
        cells = [_overview_cell(table, dataset, method) for dataset in table.datasets]
        rank = [f"{ranks[method]:.2f}" if method in ranks else "–"] if ranks else []
        rows.append(Row((method, *cells, *rank)))
    header = ("method", *table.datasets, *(["mean rank"] if ranks else []))
    title = f"{table.metric.heading} by method and data set"
    return Block("overview", title, "", tuple(rows), header, len(header) - 1)


def _overview_cell(table: ResultTable, dataset: str, method: str) -> str:
    entry = table.entries.get((dataset, method))
    if entry is None:
        return "not run"
    if entry.interval is None:
        return f"failed ({entry.n_failed})" if entry.n_failed else "–"
    mark = f" {table.verdict(entry)}" if entry.standing in ("ahead", "level") else ""
    failed = f", {entry.n_failed} failed" if entry.n_failed else ""
    return f"{table.metric.show(entry.mean)} ({span(entry.interval, table.metric)}){mark}{failed}"


def _entries(table: ResultTable) -> Block:
    several, metric = len(table.datasets) > 1, table.metric
    others = _metrics(table)[1:]
    rows = []
    for dataset in table.datasets:
        for entry in table.ranked(dataset):
            numbers = [each.show(entry.means.get(each.name, math.nan)) for each in others]
            cells = (
                entry.method,
                metric.show(entry.mean),
                span(entry.interval, metric),
                probability(entry.p_value).removeprefix("= "),
                *numbers,
                seconds(entry.seconds_fit),
                memory(entry.peak_memory),
                str(len(entry.values)),
                str(entry.n_failed),
                table.verdict(entry),
            )
            rows.append(Row((*cells, dataset) if several else cells))
    numbers = ["95 % interval", "p", *(each.heading for each in others)]
    header = ("method", metric.heading, *numbers, "fit", "memory", "divisions", "failed")
    named = (*header, "verdict", *(["data set"] if several else []))
    return Block("entries", "all numbers", "", tuple(rows), named, len(header) - 1)


def _comparison(table: ResultTable) -> list[Section]:
    """Return the paired comparison with the first method of the plan."""
    reference, metric, rows = table.methods[0], table.metric, []
    several = len(table.datasets) > 1

    def number(value: float) -> str:
        """Return a difference of a metric; shares in percentage points."""
        return signed(100.0 * value, "z.1f") if metric.in_percent else signed(value)

    for each in table.against(reference):
        found = each.difference
        p = probability(each.p_value).removeprefix("= ")
        ends = f"{number(found.low)} to {number(found.high)}"
        ends = "–" if math.isnan(found.low) else ends
        cells = (each.method, number(found.mean), ends, str(found.n), p, each.verdict)
        rows.append(Row((*cells, each.dataset) if several else cells))
    if not rows:
        return []
    points = ", in percentage points" if metric.in_percent else ""
    sign = "Positive" if metric.higher_is_better else "Negative"
    said = (
        f"The {metric.label} of each method minus that of {reference}{points}, over the divisions "
        f"that both finished. {sign} numbers: the method is better than {reference}. p is that of "
        "the pair wherever this page shows it, corrected for all pairs of methods on a data set."
    )
    header = ("method", "difference", "interval", "divisions", "p", "verdict")
    named = (*header, *(["data set"] if several else []))
    part = Block("pairs", f"differences from {reference}", "", tuple(rows), named, 4)
    return [Section("comparison", f"Against {reference}", (said,), (part,))]


def _ranks(ranking: Ranking | None, metric: PredictionMetric) -> list[Section]:
    """Return mean ranks, with a letter per group of methods that are not clearly different."""
    if ranking is None:
        return []
    rows = []
    for method, rank in zip(ranking.methods, ranking.ranks, strict=True):
        letters = [chr(97 + i) for i, group in enumerate(ranking.groups) if method in group]
        rows.append(Row((method, f"{rank:.2f}", " ".join(letters))))
    said = (
        f"Rank 1 is the best {metric.label} on a data set; a method that failed is last there, and "
        "one that was not run on all data sets has no rank. Data sets: "
        f"{join(ranking.datasets)}. Friedman test in the form of Iman and Davenport: F = "
        f"{ranking.test.statistic:.2f}, p {probability(ranking.test.p_value)}. Methods that share "
        "a letter are not clearly different; ranks must differ by "
        f"{ranking.test.critical_difference:.2f} (Nemenyi)."
    )
    header = ("method", "mean rank", "group")
    part = Block("rank-table", "mean ranks", "", tuple(rows), header, 1)
    return [Section("ranks", "Ranks over data sets", (said,), (part,))]


def closing_sections(table: ResultTable) -> list[Section]:
    """Return what failed, how rows were divided, and the machines that took part."""
    found = []
    if failed := failures(table):
        rows = [
            Row((f.method, f.dataset, join([str(i + 1) for i in f.repetitions]), f.message))
            for f in failed
        ]
        header = ("method", "data set", "divisions", "message")
        part = Block("failed", "what failed, and why", "", tuple(rows), header)
        found.append(Section("failures", "Failures", (), (part,)))
    names = ("data set", "scaling", "divisions", "held-out rows", "options")
    title = "how rows were scaled and divided"
    divided = Block("divided", title, "", tuple(_divisions(table)), names)
    return [*found, Section("environment", "Environment", (), (divided, *_machines(table)))]


def _machines(table: ResultTable) -> list[Block]:
    """Return every machine that took part, with what it was and how many runs it did."""
    everything = [record for found in table.records.values() for record in found]
    machines = Counter(
        tuple((name, str(fact)) for name, fact in sorted(r.machine.items(), key=_fact_order))
        for r in everything
    )
    finished = sorted(record.finished for record in everything if record.finished)
    period = f"{finished[0]} to {finished[-1]}" if finished else "unknown"
    parts = []
    for i, (facts, number) in enumerate(machines.most_common(), start=1):
        rows = [Row(fact) for fact in (*facts, ("runs", str(number)), ("finished", period))]
        parts.append(Block(f"machine-{i}", f"machine {i}", rows=tuple(rows)))
    return parts


def _fact_order(fact: tuple[str, Any]) -> tuple[bool, str]:
    """Put the machine before the versions of packages."""
    return fact[0] not in ("system", "cores", "threads", "python"), fact[0]


def _divisions(table: ResultTable) -> list[Row]:
    """Return how the rows of every data set were scaled and divided."""
    rows = []
    for dataset in table.datasets:
        found = [r for place, rs in table.records.items() if place[0] == dataset for r in rs]
        cell, n = found[0].cell, len({record.cell.repetition for record in found})
        stored = [r.result.predictions.get("y_true") for r in found]
        sizes = {len(truth) for truth in stored if truth is not None}
        held_out = join([str(size) for size in sorted(sizes)]) if sizes else "–"
        options = ", ".join(f"{k} = {v}" for k, v in cell.data.options.items()) or "–"
        divided = words.describe_splits(cell.splits, n)
        rows.append(Row((dataset, cell.data.scaling, divided, held_out, options)))
    return rows
