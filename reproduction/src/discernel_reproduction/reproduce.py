"""Reproduction of published tables and figures, and comparison with the printed numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discernel.compare.plan import Plan
from discernel.compare.runner import run
from discernel.compare.store import Record, Store
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel_reproduction.methods import PAPERS
from discernel_reproduction.published import Printed, PrintedTable, papers, published

Verdict: TypeAlias = Literal["agrees", "better", "differs", "not judged", "not run"]
#: Units in which larger or smaller is better; in others only agreement counts.
_MORE_IS_BETTER = ("accuracy_percent", "auc", "alignment")
_LESS_IS_BETTER = ("error_percent",)


@dataclass(frozen=True)
class Link:
    """Link from a published number to our result.

    Attributes
    ----------
    row, column : str
        Row and column of the published cell.
    data, method : str
        Names of a data set and a method of one of the plans.
    value : callable or None
        Function from the record of one split to our number, in the unit of the published cell; NaN
        if the record has none.
    pooled : callable or None
        Instead of ``value``: function from all records of the data set to the numbers to average,
        for example a p-value, or the best of several methods.
    reason : str
        Why the numbers may differ (a short name, a colon, and details), or why they are not
        judged.
    judged : bool
        Whether agreement is judged; times on other machines are not.
    """

    row: str
    column: str
    data: str
    method: str
    value: Callable[[Record], float] | None = None
    reason: str = ""
    judged: bool = True
    pooled: Callable[[Sequence[Record]], Sequence[float]] | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.pooled is None):
            raise InvalidInputError(
                f"A link must have either value or pooled. The link of {self.row} | "
                f"{self.column} has {'none' if self.value is None else 'both'}."
            )


@dataclass(frozen=True)
class Reproduction:
    """A published table or figure, and the plans that reproduce it.

    Attributes
    ----------
    id : str
        Paper and table, as in `discernel_reproduction.published`.
    plans : tuple of Plan
        Plans; pairs of a data set and a method are unique over all plans. Empty if the data are
        private; the notes then name similar public data.
    links : tuple of Link
        One per comparable cell.
    notes : tuple of str
        Notes for the reader, for example on details that the paper does not give.
    figure : callable or None
        Function from the records to a matplotlib figure.
    caption : str
        Caption of a figure without published numbers.
    n_published : int or None
        Number of splits behind the printed means; by default that of the protocol, or 1.
    errors_of_means : bool
        Whether printed errors are standard errors of means, not standard deviations over splits.
    """

    id: str
    plans: tuple[Plan, ...] = ()
    links: tuple[Link, ...] = ()
    notes: tuple[str, ...] = ()
    figure: Callable[[Sequence[Record]], Any] | None = None
    caption: str = ""
    n_published: int | None = None
    errors_of_means: bool = False

    @property
    def table(self) -> PrintedTable | None:
        """The published numbers; None for a figure without numbers."""
        return published(self.id.partition("-")[0]).get(self.id)

    @property
    def title(self) -> str:
        """Title of the table or figure."""
        return self.caption if self.table is None else self.table.title

    @property
    def n_splits_published(self) -> int:
        """Number of splits behind the printed means."""
        protocol = {} if self.table is None else self.table.protocol
        stated = protocol.get("n_partitions") if self.n_published is None else self.n_published
        return stated if isinstance(stated, int) else 1

    def with_splits(self, n: int) -> Reproduction:
        """Return the reproduction with at most the first n splits of each plan."""
        plans = tuple(
            replace(plan, splits=replace(plan.splits, n=min(n, plan.splits.n)))
            for plan in self.plans
        )
        return replace(self, plans=plans)


@dataclass(frozen=True)
class Reproduced:
    """Our number beside a published one.

    Attributes
    ----------
    cell : Printed
        The published number.
    ours, error : float
        Mean over the splits and its standard error; NaN if nothing was run.
    n : int
        Number of splits.
    verdict : str
        ``"agrees"`` within two standard errors, else ``"better"`` or ``"differs"``. ``"not
        judged"`` if agreement is not judged, or if a single split gives no standard error.
    reason : str
        Why the numbers may differ, or are not judged.
    digits : int
        Number of printed decimals.
    """

    cell: Printed
    ours: float
    error: float
    n: int
    verdict: Verdict
    reason: str = ""
    digits: int = 1

    @property
    def short_reason(self) -> str:
        """Short name of the reason."""
        return self.reason.partition(":")[0] or "not looked into"


def names() -> list[str]:
    """Return the ids of all tables and figures, including those on private data."""
    found = [name for paper in papers() for name in _of_paper(paper)]
    return sorted(found, key=_place)


def _place(name: str) -> tuple[str, float]:
    """Return a sort key that puts table 2 before table 10."""
    kind, number = re.fullmatch(r"(.*?[a-z])([\d.]+)", name).groups()  # type: ignore[union-attr]
    return kind, float(number)


def reproduction(name: str) -> Reproduction:
    """Return the reproduction of a table or figure, or raise an error."""
    if name not in names():
        raise unknown_choice("table or figure", name, names())
    return _of_paper(name.partition("-")[0])[name]


def _of_paper(paper: str) -> Mapping[str, Reproduction]:
    module = import_module(f"discernel_reproduction.papers.{paper}")
    return {found.id: found for found in module.REPRODUCTIONS}


def reproduce(
    found: Reproduction, store: Store, *, n_jobs: int | None = None, progress: bool = False
) -> list[Reproduced]:
    """Run the cells that the store does not have, and compare with the printed numbers."""
    for plan in found.plans:
        run(plan, store, n_jobs=n_jobs, progress=progress, protocol=PAPERS)
    return compare(found, stored(found, store))


def stored(found: Reproduction, store: Store) -> list[Record]:
    """Return the stored records of a table or figure, with predictions."""
    return [
        record for plan in found.plans for record in store.records(plan.cells(), predictions=True)
    ]


def compare(found: Reproduction, records: Sequence[Record]) -> list[Reproduced]:
    """Return the comparison of every linked published number with ours."""
    there = [record for record in records if record.result.error is None]
    return [_compare(found, link, there) for link in found.links]


def _compare(found: Reproduction, link: Link, records: Sequence[Record]) -> Reproduced:
    assert found.table is not None  # links need published numbers
    cell, values = found.table.cell(link.row, link.column), _values(link, records)
    digits = _digits(found.table, cell)
    if len(values) == 0:
        return Reproduced(cell, np.nan, np.nan, 0, "not run", link.reason, digits)
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else np.nan
    mean, error = float(np.mean(values)), spread / np.sqrt(len(values))
    verdict: Verdict = "not judged"
    if link.judged and len(values) > 1:
        printed = spread if cell.error is None else cell.error
        is_mean = found.errors_of_means and cell.error is not None
        theirs = printed / np.sqrt(1 if is_mean else found.n_splits_published)
        verdict = judge(mean, error, cell, theirs, digits)
    return Reproduced(cell, mean, error, len(values), verdict, link.reason, digits)


def _digits(table: PrintedTable, cell: Printed) -> int:
    """Return the printed decimals, from all cells of the unit, because 0.90 is stored as 0.9."""
    alike = [f"{other.value:g}" for other in table.cells if other.unit == cell.unit]
    plain = [text for text in alike if "e" not in text]  # 1e-07 says nothing about decimals
    return max((len(text.partition(".")[2]) for text in plain), default=1)


def _values(link: Link, records: Sequence[Record]) -> NDArray[np.float64]:
    """Return our numbers, one per split unless they are pooled."""
    of_data = [record for record in records if record.cell.data.name == link.data]
    if link.pooled is not None:
        values = np.asarray(link.pooled(of_data), dtype=float)
    else:
        assert link.value is not None  # checked when the link was made
        ours = [record for record in of_data if record.cell.method.name == link.method]
        values = np.array([link.value(record) for record in ours], dtype=float)
    return np.asarray(values[np.isfinite(values)])


def judge(ours: float, error: float, cell: Printed, published_error: float, digits: int) -> Verdict:
    """Return the verdict on our mean and a published number.

    Parameters
    ----------
    ours, error : float
        Our mean and its standard error.
    cell : Printed
        The published number.
    published_error : float
        Standard error of the published number.
    digits : int
        Number of printed decimals.

    Returns
    -------
    str
        ``"agrees"`` within two standard errors of the difference plus half a printed digit, because
        printed numbers are rounded; otherwise ``"better"`` or ``"differs"``.
    """
    margin = 2.0 * float(np.hypot(error, published_error)) + 0.5 * 10.0**-digits
    if abs(ours - cell.value) <= margin:
        return "agrees"
    if cell.unit in _MORE_IS_BETTER and ours > cell.value:
        return "better"
    if cell.unit in _LESS_IS_BETTER and ours < cell.value:
        return "better"
    return "differs"


def markdown(found: Reproduction, comparisons: Sequence[Reproduced]) -> str:
    """Return a Markdown table with printed and our numbers, followed by reasons and notes."""
    lines = [f"### {found.id}: {found.title}", ""]
    if comparisons:
        lines += [
            "| row | column | printed | ours | splits | verdict |",
            "|---|---|--:|--:|--:|---|",
        ]
    for each in comparisons:
        ours = _escape(each.cell.row), _escape(each.cell.column), *both_numbers(each)
        lines.append(f"| {' | '.join(ours)} | {each.n} | {each.verdict} |")
    differing = Counter(each.reason for each in comparisons if each.verdict == "differs")
    if differing:
        lines += ["", "Why cells differ:", ""]
        lines += [f"- {reason or 'not looked into'} ({n})" for reason, n in differing.items()]
    unjudged = dict.fromkeys(
        each.reason for each in comparisons if each.verdict == "not judged" and each.reason
    )
    words = [f"- {line}" for line in (*unjudged, *found.notes)]
    if words and comparisons:
        lines += ["", "To be known:", ""]
    return "\n".join([*lines, *words, ""])


def both_numbers(each: Reproduced) -> tuple[str, str]:
    """Return the printed number and ours with their errors, with the printed number of decimals."""
    digits = each.digits
    printed = _shown(each.cell.value, digits)
    if each.cell.error is not None:
        printed += f" ± {each.cell.error:g}"
    if each.n == 0:
        return printed, "–"
    error = "" if np.isnan(each.error) else f" ± {_shown(each.error, digits)}"
    return printed, f"{_shown(each.ours, digits)}{error}"


def _shown(value: float, digits: int) -> str:
    """Return a number with some decimals, or with an exponent if they would all be 0."""
    is_tiny = 0.0 < abs(value) < 0.5 * 10.0**-digits
    return f"{value:.1e}" if is_tiny else f"{value:.{digits}f}"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
