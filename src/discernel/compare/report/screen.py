"""The first screen of a comparison: ranking, expected performance, importances, advice."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from discernel.compare.metrics import PredictionMetric
from discernel.compare.report import words
from discernel.compare.report.learned import importance_blocks
from discernel.compare.report.words import BASELINES, DEFAULT, span
from discernel.compare.tables import Entry, Ranking, ResultTable, failures, rank_methods
from discernel.show.facts import Block, Row
from discernel.show.words import join, percent, seconds

#: Largest numbers of columns, and of data sets with their own figure, on the first screen.
_MOST_COLUMNS, _MOST_DATASETS = 8, 6


@dataclass(frozen=True)
class MethodPoint:
    """A method in a figure: its value and interval; NaN if unknown.

    Attributes
    ----------
    method, standing, verdict : str
        Name, standing as in `Entry`, and verdict in one word.
    mean, low, high : float
        The value and the ends of its interval.
    text, hover : str
        The value as text, and the text shown on hovering.
    """

    method: str
    standing: str
    verdict: str
    mean: float
    low: float
    high: float
    text: str
    hover: str


@dataclass(frozen=True)
class IntervalFigure:
    """All methods as points with intervals, best first.

    Attributes
    ----------
    title, caption, heading : str
        Title, caption, and axis label with its unit.
    points : tuple of MethodPoint
        The methods.
    low, high : float
        Ends of the axis.
    unit : float
        Factor for tick labels: 100 for percent.
    """

    title: str
    caption: str
    heading: str
    points: tuple[MethodPoint, ...]
    low: float
    high: float
    unit: float = 1.0

    @property
    def ticks(self) -> list[tuple[str, float]]:
        """Three to five round tick values, as text and position."""
        low, high = self.unit * self.low, self.unit * self.high
        rough = (high - low) / 5.0
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(f * power for f in (1.0, 2.0, 2.5, 5.0, 10.0) if f * power >= rough)
        first, last = math.ceil(round(low / step, 9)), math.floor(round(high / step, 9))
        found = [round(step * i, 9) for i in range(first, last + 1)]
        return [(f"{tick:g}", self.place(tick / self.unit)) for tick in found]

    def place(self, value: float) -> float:
        """Return the position of a value on the axis, in percent of its length."""
        return round(100.0 * (value - self.low) / (self.high - self.low), 2)


def dataset_figure(table: ResultTable, dataset: str) -> IntervalFigure:
    """Return the figure of all methods on a data set."""
    entries, metric = table.ranked(dataset), table.metric
    caption = f"{metric.heading} on {dataset}, with 95 % intervals"
    points = tuple(_entry_point(entry, table.verdict(entry), metric) for entry in entries)
    unit = 100.0 if metric.in_percent else 1.0
    return IntervalFigure(dataset, caption, metric.heading, points, *drawn_range(entries), unit)


def _entry_point(entry: Entry, verdict: str, metric: PredictionMetric) -> MethodPoint:
    """Return the point of a method on a data set."""
    interval, number = entry.interval, metric.show_with_unit(entry.mean)
    low, high = (math.nan, math.nan) if interval is None else (interval.low, interval.high)
    ends = "" if math.isnan(low) else f", {span(interval, metric)}"
    failed = f", {entry.n_failed} failed" if entry.n_failed and entry.values else ""
    hover = f"{entry.method}: {metric.label} {number}{ends}; fit {seconds(entry.seconds_fit)}"
    return MethodPoint(
        method=entry.method,
        standing=entry.standing,
        verdict=verdict + failed,
        mean=entry.mean,
        low=low,
        high=high,
        text=number if entry.values else "–",
        hover=f"{hover}; {verdict}{failed}",
    )


def drawn_range(entries: Sequence[Entry]) -> tuple[float, float]:
    """Return the ends of an axis: hundredths that enclose all intervals except the baseline's."""
    known = [e.interval for e in entries if e.interval is not None and e.method not in BASELINES]
    ends = [i.mean if math.isnan(end) else end for i in known for end in (i.low, i.high)]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    step = 0.01 if not 0.0 < high < 0.1 else high / 100  # errors of small numbers
    low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    return low, max(high, low + step)


def rank_figure(ranking: Ranking) -> IntervalFigure:
    """Return the figure of mean ranks, with intervals of half the critical difference.

    Intervals of two methods overlap unless they differ significantly in the Nemenyi test.
    """
    reach = ranking.test.critical_difference / 2.0
    points = []
    for method, rank in ranking.ranks.items():
        verdict = ranking.verdicts[method]
        points.append(
            MethodPoint(
                method=method,
                standing="behind" if verdict == "worse" else "level",
                verdict=verdict,
                mean=rank,
                low=rank - reach,
                high=rank + reach,
                text=f"{rank:.2f}",
                hover=f"{method}: mean rank {rank:.2f}; {verdict}",
            )
        )
    title = f"Mean rank over {len(ranking.datasets)} data sets"
    caption = f"{title}; intervals that do not overlap differ (Nemenyi)"
    heading, last = "rank, 1 is best", float(len(ranking.methods))
    return IntervalFigure(title, caption, heading, tuple(points), 1.0, last)


# ---- the screen --------------------------------------------------------------------------------


def first_screen(table: ResultTable) -> dict[str, Any]:
    """Return the template variables of the first screen."""
    ranking, failed = rank_methods(table), failures(table)
    n_runs = sum(len(found) for found in table.records.values())
    several = len(table.datasets) > 1
    verdicts = [words.describe_dataset(table, dataset) for dataset in table.datasets]
    lead = words.describe_ranking(ranking) if several else verdicts[0]
    by_advice: dict[str | None, list[str]] = {}
    for dataset in table.datasets:
        by_advice.setdefault(words.describe_default(table, dataset), []).append(dataset)
    following = [
        words.describe_power(table),
        *(
            f"{join(on)}: {advice}" if several and advice else advice
            for advice, on in by_advice.items()
        ),
        words.describe_failures(failed, n_runs) if failed else None,
        "Learn from all rows: discernel fit." if DEFAULT in table.methods else None,
    ]
    return {
        "lead": lead or " ".join(verdicts),
        "overall": None if ranking is None else rank_figure(ranking),
        "by_dataset": [dataset_figure(table, each) for each in table.datasets[:_MOST_DATASETS]],
        "expected_title": "Over all data sets" if several else "Expected on new rows",
        "expected": _tiles(table, ranking, n_runs, sum(len(f.repetitions) for f in failed)),
        "matters": _matters(table),
        "next": [sentence for sentence in following if sentence],
    }


def _tiles(table: ResultTable, ranking: Ranking | None, n_runs: int, n_failed: int) -> list[Row]:
    """Return up to three tiles: expected performance, or ranks if there are several data sets."""
    if len(table.datasets) > 1:
        found = [e for e in table.entries.values() if e.standing in ("ahead", "level")]
        wins = Counter(entry.method for entry in found).most_common(1)
        rows = []
        if ranking is not None:
            detail = f"{ranking.methods[0]}, over {len(ranking.datasets)} data sets"
            rows.append(("best mean rank", f"{ranking.test.ranks[0]:.2f}", detail))
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
    guess = next((entries[name] for name in BASELINES if name in entries), None)
    if guess is not None and guess is not entry:
        detail = f"{metric.label} of always predicting {BASELINES[guess.method]}"
        rows.append(("baseline", metric.show_with_unit(guess.mean), detail))
    if "log_loss" in entry.means and metric.name != "log_loss":
        share = percent(math.exp(-entry.means["log_loss"]))
        detail = f"the true class has a probability of {share} %, as a geometric mean"
        rows.append(("log-loss", f"{entry.means['log_loss']:z.3f}", detail))
    if "rmse" in entry.means and metric.name != "rmse":
        detail = "root mean squared error, in units of the target"
        rows.append(("typical error", f"{entry.means['rmse']:.4g}", detail))
    rows.append(("time of a fit", seconds(entry.seconds_fit, 2), entry.method))
    return [Row(each) for each in rows[:3]]


def _matters(table: ResultTable) -> Block | None:
    """Return the mean column importances of the first method that has any."""
    for dataset in table.datasets:
        for block in importance_blocks(table, dataset):
            aside = f"to {block.title}: share ± standard deviation over splits"
            return replace(block, aside=aside).shortened(_MOST_COLUMNS)
    return None
