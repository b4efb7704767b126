"""The report of a comparison: a summary, then sections with all results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from discernel.compare.report import figures, tables
from discernel.compare.report.screen import first_screen
from discernel.compare.store import Record
from discernel.compare.tables import Ranking, ResultTable, rank_methods, summarize
from discernel.rows.writing import check_writable_path
from discernel.show.facts import Block, Origin, Row
from discernel.show.page import write_page
from discernel.show.svg import drawing, to_svg
from discernel.show.words import escaped, join, printable, probability

_PREPARED = (
    "Columns are encoded in every split, using the training rows only. A missing number is "
    "replaced by the median of its column; if two or more are missing, an indicator feature is "
    "added. A category becomes one feature per value, one for rare or new values, and one for "
    "missing cells. Features are then scaled to mean 0 and variance 1; discernel's default instead "
    "divides each column by its spread."
)
_WEIGHTS_NOTE = (
    "A weight says how much of a kernel is used, not how important its columns are: with rkda, a "
    "source of pure noise can have a positive weight."
)


class Section(NamedTuple):
    """A section of the page that can be folded: paragraphs, tables, and figures with their SVG."""

    id: str
    title: str
    paragraphs: Sequence[str] = ()
    parts: Sequence[Block] = ()
    figures: Sequence[tuple[figures.Drawing, str]] = ()


#: Id, title, explanation, and the function that makes the tables of one data set.
LEARNED: tuple[tuple[str, str, str, Callable[[ResultTable, str], Iterator[Block]]], ...] = (
    (
        "importances",
        "Column importances",
        "The share of each column in the increase of the held-out loss when columns are shuffled: "
        "means over splits ± one standard deviation. If two columns carry the same information, "
        "one may have the importance of both. Importance does not imply causation.",
        tables.importance_blocks,
    ),
    (
        "sources",
        "Weights by source",
        f"Sums of the weights of all kernels of a source; means over splits. {_WEIGHTS_NOTE}",
        partial(tables.weight_blocks, by_source=True),
    ),
    (
        "weights",
        "Kernel weights",
        f"Means over splits. Kernels are normalized to the same trace. {_WEIGHTS_NOTE}",
        partial(tables.weight_blocks, by_source=False),
    ),
    (
        "candidates",
        "What was tried",
        "In every split, the default compares candidates by cross-validation on the training rows: "
        "equal or learned kernel weights, with columns unscaled or scaled by their importance. The "
        "simplest candidate is chosen unless another one is better by more than one standard "
        "error. If kernels were given, candidates are compared by the leave-one-out squared error "
        "of the class scores or numbers (1 for a constant prediction; not an error rate) plus a "
        "penalty for unequal weights, the pull; the smallest sum is chosen. Shorter bars are "
        "better.",
        tables.candidate_blocks,
    ),
)
#: Id, title, explanation, and the function that draws the figures of one data set.
_DRAWN: tuple[tuple[str, str, str, Callable[[ResultTable, str], Iterator[figures.Drawing]]], ...]
_DRAWN = (
    (
        "time",
        "Time",
        "Further to the left is faster. Higher accuracies, AUC and R² are better, lower log-loss, "
        "Brier scores and errors. Vertical lines are 95 % intervals.",
        figures.draw_time,
    ),
    (
        "roc",
        "ROC curves",
        "True positive rates are averaged over splits at each false positive rate; bands show "
        "± one standard deviation. The mean area under the curve follows each name.",
        figures.draw_roc,
    ),
    (
        "regularization",
        "Error against λ",
        "Leave-one-out: the class scores of every training row are predicted from the other rows, "
        "or its numbers in units of their standard deviation. The error is the mean squared "
        "difference from the truth: 0 is perfect, 1 is a constant prediction. For classes it is no "
        "error rate: an error of 0.1 is possible with an accuracy of 100 %. λ is the strength of "
        "the regularization. Lines are means over splits.",
        figures.draw_errors_by_regularization,
    ),
    (
        "convergence",
        "Convergence",
        "The certified gap bounds the relative distance of the objective from its optimum. If "
        "several λ were tried, there is one line per λ.",
        figures.draw_convergence,
    ),
    (
        "embedding",
        "Discriminant coordinates",
        "Large markers are class means.",
        figures.draw_embeddings,
    ),
)


def write_report(
    records: Iterable[Record],
    path: str | Path,
    *,
    title: str = "Comparison of methods",
    words: Sequence[str] = (),
    metric: str = "accuracy",
    origin: Origin | None = None,
) -> Path:
    """Write a report of an experiment as one HTML file that works offline.

    Nothing is fitted. Sections without data are omitted. The paired comparison uses the method of
    the first record as reference.

    Parameters
    ----------
    records : iterable of Record
        Records from `Store.records`, with ``predictions=True`` for ROC curves.
    path : str or Path
        The file to write; its folder must exist.
    title : str, default="Comparison of methods"
        The title.
    words : sequence of str, default=()
        Paragraphs before the summary, for example the purpose of the experiment.
    metric : str, default="accuracy"
        The metric by which methods are compared, one of `discernel.compare.metrics.ALL_METRICS`.
    origin : Origin, optional
        Origin of the results, from `discernel.compare.exports.origin_of`.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        If there are no records, the path is a folder, or its folder does not exist.
    FileWriteError
        If the file cannot be written; an existing file is unchanged.
    MissingExtraError
        If Jinja2 or matplotlib is not installed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from discernel.compare.plan import Cell, Data, Method, Splits
    >>> from discernel.compare.store import Result
    >>> cell = Cell(Data("wine"), Method("lda", "lda"), Splits(), repetition=0)
    >>> record = Record(cell, Result(metrics={"accuracy": 0.97}), machine={}, finished="")
    >>> with TemporaryDirectory() as folder:
    ...     page = write_report([record], Path(folder) / "report.html").read_text("utf-8")
    >>> "On wine only lda has results: accuracy 97.0 %." in page
    True
    """
    check_writable_path("report", path)
    table = summarize(map(_shown, records), metric)
    with drawing():
        sections = [
            section for section in _sections(table, origin) if section.parts or section.figures
        ]
        screen = first_screen(table)
    return write_page(
        "report.html.j2",
        path,
        title=printable(title),
        source="stored results",
        contents=[("summary", "Summary"), *(section[:2] for section in sections)],
        words=[printable(each) for each in words],
        sections=sections,
        **screen,
    )


def _shown(record: Record) -> Record:
    """Return a record with control characters in its texts escaped."""
    data, method, result = record.cell.data, record.cell.method, record.result
    cell = replace(
        record.cell,
        data=replace(data, name=printable(data.name), file=escaped(data.file)),
        method=replace(method, name=printable(method.name)),
    )
    names = ("weights", "details", "error")
    result = replace(result, **{name: escaped(getattr(result, name)) for name in names})
    return replace(record, cell=cell, result=result, machine=escaped(record.machine))


# ---- sections ----------------------------------------------------------------------------------


def _sections(table: ResultTable, origin: Origin | None) -> Iterator[Section]:
    """Yield all sections in order; some may be empty."""
    yield results_section(table)
    yield comparison_section(table)
    for id_, title, text, make in LEARNED:
        parts = [each for dataset in table.datasets for each in make(table, dataset)]
        yield Section(id_, title, [text], parts)
    for id_, title, text, draw in _DRAWN:
        drawn = [each for dataset in table.datasets for each in draw(table, dataset)]
        made = [(each, to_svg(each.figure, f"{id_}-{i}")) for i, each in enumerate(drawn)]
        yield Section(id_, title, [text], figures=made)
    if origin is not None:
        yield _data_section(origin)
    failed = tables.failure_block(table)
    yield Section("failures", "Failures", parts=[failed] if failed.rows else [])
    environment = [tables.splits_block(table), *tables.machine_blocks(table)]
    yield Section("environment", "Environment", parts=environment)


def results_section(table: ResultTable) -> Section:
    """Return the section with all numbers, and with an overview of several data sets."""
    ranking, metric = rank_methods(table), table.metric
    better = "higher" if metric.higher_is_better else "lower"
    points = any(e.interval and e.interval.low == e.interval.high for e in table.entries.values())
    paragraphs = [
        f"Means over splits of held-out rows, with 95 % intervals for {metric.label}, the metric "
        f"of the verdicts; {better} is better. Best: the best mean; clearly best: significantly "
        "better than all others. Tied: not significantly worse than the best. Worse: significantly "
        "worse. Cannot tell: too few splits, or the same difference in all of them. Intervals and "
        "tests are corrected for training rows that splits share (Nadeau and Bengio), tests also "
        "for all pairs of methods on a data set (Holm)."
        + " An interval of length 0 means that all splits gave the same value, not that the value "
        "is certain." * points,
        "p: p-value of the difference from the best method; for the best itself, from the closest "
        "other. Fit: mean time of a fit. Memory: peak memory of the process. Splits: finished "
        "splits. Click on a header to sort.",
        *([] if ranking is None else [_describe_ranks(ranking, metric.label)]),
    ]
    rows = tuple(Row((each.label, each.meaning)) for each in tables.known_metrics(table))
    parts = [tables.overview(table, ranking)] if len(table.datasets) > 1 else []
    meanings = Block("meanings", "definitions of the metrics", "", rows)
    return Section("results", "Results", paragraphs, [*parts, tables.all_numbers(table), meanings])


def _describe_ranks(ranking: Ranking, label: str) -> str:
    """Return a sentence on how methods are ranked over data sets, and on the test."""
    test = ranking.test
    return (
        f"Rank 1 is the best {label} on a data set; a method that failed ranks last, and a "
        f"method that was not run on all data sets has no rank. Data sets: "
        f"{join(ranking.datasets)}. Friedman test in the form of Iman and Davenport: "
        f"F = {test.statistic:.2f}, p {probability(test.p_value)}. Mean ranks that differ by less "
        f"than {test.critical_difference:.2f} are not significantly different (Nemenyi)."
    )


def comparison_section(table: ResultTable) -> Section:
    """Return the section with the paired comparison with the first method of the plan."""
    reference, metric = table.methods[0], table.metric
    points = ", in percentage points" if metric.in_percent else ""
    sign = "Positive" if metric.higher_is_better else "Negative"
    paragraph = (
        f"The {metric.label} of each method minus that of {reference}{points}, over the splits "
        f"that both finished. {sign} differences mean that the method is better than {reference}. "
        "p-values are corrected for all pairs of methods on a data set."
    )
    block = tables.differences(table)
    parts = [block] if block.rows else []
    return Section("comparison", f"Against {reference}", [paragraph], parts)


def _data_section(origin: Origin) -> Section:
    """Return the section on the data set: origin, classes and columns."""
    parts, counts = origin.blocks(), origin.class_counts.items()
    if origin.n_rows:
        rows = tuple(Row((c, f"{n:,}", f"{100 * n / origin.n_rows:.1f}")) for c, n in counts)
        classes = Block("classes", "rows of each class", "", rows, ("class", "rows", "%"), 2)
        parts.insert(1, classes.escaped())
    paragraphs: list[Any] = [*escaped(origin.notes), *([_PREPARED] if origin.columns else [])]
    return Section("data", "Data", paragraphs, parts)
