"""The first screen of a comparison: ranking, expected performance, importances, advice."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from discernel.compare.metrics import PredictionMetric
from discernel.compare.report import words
from discernel.compare.report.tables import importance_blocks
from discernel.compare.report.words import BASELINES, DEFAULT, span
from discernel.compare.statistics import Interval
from discernel.compare.tables import (
    LEADING,
    Entry,
    Ranking,
    ResultTable,
    Verdict,
    failures,
    rank_methods,
)
from discernel.show.facts import Block, Row
from discernel.show.words import join, seconds

#: Largest numbers of columns, and of data sets with their own figure, on the first screen.
_MOST_COLUMNS, _MOST_DATASETS = 8, 6


@dataclass(frozen=True)
class MethodPoint:
    """A method in a figure: its interval, the value as text, and details shown on hovering."""

    method: str
    verdict: Verdict
    interval: Interval
    text: str
    details: str
    n_failed: int = 0


@dataclass(frozen=True)
class IntervalFigure:
    """All methods as points with intervals, best first.

    Attributes
    ----------
    caption, heading : str
        Caption, and axis label with its unit.
    points : sequence of MethodPoint
        The methods.
    low, high : float
        Ends of the axis.
    unit : float
        Factor for tick labels: 100 for percent.
    """

    caption: str
    heading: str
    points: Sequence[MethodPoint]
    low: float
    high: float
    unit: float = 1.0

    @property
    def ticks(self) -> list[tuple[str, float]]:
        """Up to six round tick values, as text and position."""
        from matplotlib.ticker import MaxNLocator

        low, high = self.unit * self.low, self.unit * self.high
        found = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        placed = [(f"{round(tick, 9):g}", self.place(tick / self.unit)) for tick in found]
        return [(text, at) for text, at in placed if 0.0 <= at <= 100.0]

    def place(self, value: float) -> float:
        """Return the position of a value on the axis, in percent of its length."""
        return round(100.0 * (value - self.low) / (self.high - self.low), 2)


def dataset_figure(table: ResultTable, dataset: str) -> IntervalFigure:
    """Return the figure of all methods on a data set."""
    entries, metric = table.ranked(dataset), table.metric
    caption = f"{metric.heading} on {dataset}, with 95 % intervals"
    points = [_entry_point(entry, metric) for entry in entries]
    return IntervalFigure(caption, metric.heading, points, *drawn_range(entries), metric.unit)


def _entry_point(entry: Entry, metric: PredictionMetric) -> MethodPoint:
    """Return the point of a method on a data set."""
    interval = entry.interval or Interval(math.nan, math.nan, math.nan, 0)
    number, ends = metric.show_with_unit(entry.mean), span(interval, metric)
    details = f"{metric.label} {number}{'' if ends == '–' else f', {ends}'}"
    return MethodPoint(
        method=entry.method,
        verdict=entry.verdict,
        interval=interval,
        text=number if entry.values else "–",
        details=f"{details}; fit {seconds(entry.mean_time('seconds_fit'))}",
        n_failed=entry.n_failed if entry.values else 0,
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
    reach, n = ranking.test.critical_difference / 2.0, len(ranking.datasets)
    points = [
        MethodPoint(
            method=method,
            verdict=ranking.verdicts[method],
            interval=Interval(rank, rank - reach, rank + reach, n),
            text=f"{rank:.2f}",
            details=f"mean rank {rank:.2f}",
        )
        for method, rank in ranking.ranks.items()
    ]
    caption = f"Mean rank over {n} data sets; intervals that do not overlap differ (Nemenyi)"
    return IntervalFigure(caption, "rank, 1 is best", points, 1.0, float(len(points)))


# ---- the screen --------------------------------------------------------------------------------


def first_screen(table: ResultTable) -> dict[str, Any]:
    """Return the template variables of the first screen."""
    ranking, failed = rank_methods(table), failures(table)
    n_runs = sum(len(entry.records) for entry in table.entries.values())
    several = len(table.datasets) > 1
    verdicts = [words.describe_dataset(table, dataset) for dataset in table.datasets]
    lead = words.describe_ranking(ranking) if several else verdicts[0]
    by_advice: dict[str | None, list[str]] = {}
    for dataset in table.datasets:
        by_advice.setdefault(words.describe_default(table, dataset), []).append(dataset)
    following = [
        *(
            f"{join(on)}: {advice}" if several and advice else advice
            for advice, on in by_advice.items()
        ),
        words.describe_power(table),
        words.describe_failures(failed, n_runs) if failed else None,
        "Learn from all rows: discernel fit." if DEFAULT in table.methods else None,
    ]
    n_failed = sum(len(failure.repetitions) for failure in failed)
    return {
        "lead": lead or " ".join(verdicts),
        "overall": None if ranking is None else rank_figure(ranking),
        "by_dataset": [dataset_figure(table, each) for each in table.datasets[:_MOST_DATASETS]],
        "expected_title": "Over all data sets" if several else "Expected on new rows",
        "expected": [
            Row(each)
            for each in (
                _overall_tiles(table, ranking, f"{n_failed}", f"of {n_runs} runs")
                if several
                else _expected_tiles(table)[:3]
            )
        ],
        "matters": _matters(table),
        "next": [sentence for sentence in following if sentence],
    }


def _overall_tiles(
    table: ResultTable, ranking: Ranking | None, *failed: str
) -> list[tuple[str, ...]]:
    """Return tiles on several data sets: ranks, wins and failures."""
    rows = []
    if ranking is not None:
        first, rank = next(iter(ranking.ranks.items()))
        detail = f"{first}, over {len(ranking.datasets)} data sets"
        rows.append(("best mean rank", f"{rank:.2f}", detail))
    wins = Counter(e.method for e in table.entries.values() if e.verdict in LEADING)
    for method, number in wins.most_common(1):
        detail = f"data sets where {method} is best or tied"
        rows.append(("best or tied", f"{number} of {len(table.datasets)}", detail))
    return [*rows, ("failed", *failed)]


def _expected_tiles(table: ResultTable) -> list[tuple[str, ...]]:
    """Return tiles on one data set: the expected performance of the default, or of the best."""
    entries = {e.method: e for e in table.ranked(table.datasets[0]) if e.values}
    entry = entries.get(DEFAULT) or next(iter(entries.values()), None)
    if entry is None:
        return []
    metric, means = table.metric, entry.means
    detail = f"{entry.method}, 95 % interval {span(entry.interval, metric)}"
    rows = [(metric.label, metric.show_with_unit(entry.mean), detail)]
    guess = next((entries[name] for name in BASELINES if name in entries), None)
    if guess is not None and guess is not entry:
        detail = f"{metric.label} of always predicting {BASELINES[guess.method]}"
        rows.append(("baseline", metric.show_with_unit(guess.mean), detail))
    if "log_loss" in means and metric.name != "log_loss":
        shares = None if guess is None else guess.means.get("log_loss")
        known = "" if shares is None or guess is entry else f"; class shares: {shares:z.3f}"
        detail = f"smaller is better{known}"
        rows.append(("log-loss", f"{means['log_loss']:z.3f}", detail))
    if "rmse" in means and metric.name != "rmse":
        detail = "root mean squared error, in units of the target"
        rows.append(("typical error", f"{means['rmse']:.4g}", detail))
    return [*rows, ("time of a fit", seconds(entry.mean_time("seconds_fit"), 2), entry.method)]


def _matters(table: ResultTable) -> Block | None:
    """Return the mean column importances of the first method that has any."""
    for dataset in table.datasets:
        for block in importance_blocks(table, dataset):
            aside = f"to {block.title}: share ± standard deviation over splits"
            return replace(block, aside=aside).shortened(_MOST_COLUMNS)
    return None
