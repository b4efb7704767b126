"""The report of a comparison: a summary, then sections with all results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from discernel.compare.report import figures
from discernel.compare.report.learned import LEARNED
from discernel.compare.report.screen import first_screen
from discernel.compare.report.tables import Section, closing_sections, result_sections
from discernel.compare.store import Record
from discernel.compare.tables import ResultTable, summarize
from discernel.rows.writing import check_writable_path
from discernel.show.facts import Block, Origin, Row
from discernel.show.page import PageTemplate
from discernel.show.svg import drawing, to_svg
from discernel.show.words import escaped, printable

_Draw = Callable[[ResultTable, str], list[figures.Drawing]]
_PREPARED = (
    "Columns are encoded in every split, using the training rows only. A missing number is "
    "replaced by the median of its column; if two or more are missing, an indicator feature is "
    "added. A category becomes one feature per value, one for rare or new values, and one for "
    "missing cells. Features are then scaled to mean 0 and variance 1; discernel's default instead "
    "divides each column by its spread."
)
#: Id, title, explanation, and the function that draws the figures of one data set.
_SECTIONS: tuple[tuple[str, str, str, _Draw], ...] = (
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
        "difference from the truth: 0 is perfect, 1 is a constant prediction. λ is the strength of "
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


#: Further explanations of sections, for results of classes.
_FOR_CLASSES = {
    "regularization": "The error is not an error rate: an error of 0.1 is possible with an "
    "accuracy of 100 %.",
}


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
    path = Path(path)
    check_writable_path("report", path)
    page = PageTemplate("report.html.j2")
    table = summarize(map(_shown, records), metric)
    with drawing():
        drawn = _figures(table)
    learned = [
        Section(id_, heading, (text,), blocks)
        for id_, heading, text, make in LEARNED
        if (blocks := tuple(each for dataset in table.datasets for each in make(table, dataset)))
    ]
    sections = [*result_sections(table), *learned, *drawn]
    sections += [] if origin is None else _origin(origin)
    sections += closing_sections(table)
    return page.write(
        path,
        title=printable(title),
        source="stored results",
        contents=[("summary", "Summary"), *((each.id, each.title) for each in sections)],
        words=[printable(each) for each in words],
        sections=sections,
        **first_screen(table),
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


def _figures(table: ResultTable) -> list[Section]:
    """Return the sections with figures, without empty ones."""
    found = []
    for id_, title, text, draw in _SECTIONS:
        drawn = [each for dataset in table.datasets for each in draw(table, dataset)]
        pictures = [replace(d, svg=to_svg(d.figure, f"{id_}-{i}")) for i, d in enumerate(drawn)]
        if pictures:
            further = "" if table.metric.of_numbers else _FOR_CLASSES.get(id_, "")
            paragraphs = tuple(filter(None, (text, further)))
            found.append(Section(id_, title, paragraphs, figures=tuple(pictures)))
    return found


def _origin(origin: Origin) -> list[Section]:
    """Return the section on the data set: origin, classes and columns."""
    parts, counts = origin.blocks(), origin.class_counts.items()
    if origin.n_rows:
        rows = tuple(Row((c, f"{n:,}", f"{100 * n / origin.n_rows:.1f}")) for c, n in counts)
        classes = Block("classes", "rows of each class", "", rows, ("class", "rows", "%"), 2)
        parts.insert(1, classes.escaped())
    paragraphs = (*escaped(origin.notes), *([_PREPARED] if origin.columns else []))
    return [Section("data", "Data", paragraphs, tuple(parts))]
