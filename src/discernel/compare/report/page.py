"""One page from records: who wins, and all that the records hold, section by section."""

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
from discernel.show.facts import Block, Origin, Row
from discernel.show.page import Pages
from discernel.show.svg import drawing, to_svg
from discernel.show.words import printable, written
from discernel.show.writing import check_place

_Draw = Callable[[ResultTable, str], list[figures.Drawing]]
_PREPARED = (
    "How cells become numbers is learned in every split from its training rows alone. A missing "
    "number becomes the median of its column, and where two or more are missing, a further feature "
    "says which. A category becomes one feature per value, with one for values that are rare or "
    "new, and one for missing cells. Features are then scaled: to mean 0 and variance 1, or by "
    "discernel itself, which divides each column by its spread."
)
#: Id, title, explanation, and the function that draws the figures of one data set.
_SECTIONS: tuple[tuple[str, str, str, _Draw], ...] = (
    (
        "time",
        "Time",
        "Further to the left is faster. Of accuracies and AUC, higher is better; of log-loss and "
        "Brier score, lower. Lines are the intervals of the table.",
        figures.draw_time,
    ),
    (
        "roc",
        "ROC curves",
        "True positive rates are averaged over splits at each false positive rate; bands are "
        "one standard deviation to each side. Beside each name is the mean area under the curve.",
        figures.draw_roc,
    ),
    (
        "regularization",
        "Error against λ",
        "Leave-one-out: every training row is left out once, and its class scores are predicted "
        "from the other rows. The error is the mean squared distance of these scores from the "
        "right ones: 0 is perfect, 1 is knowing nothing. It is no share of wrong rows: an error "
        "of 0.1 can go with an accuracy of 100 %. λ is the strength of the regularization. Lines "
        "are means over splits.",
        figures.draw_errors_by_regularization,
    ),
    (
        "convergence",
        "Convergence",
        "The certified gap: the objective is at most this share of its value away from the best "
        "one possible. Where several λ were tried, each λ is a line.",
        figures.draw_convergence,
    ),
    (
        "embedding",
        "Discriminant coordinates",
        "Large markers are the means of the classes.",
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

    Nothing is fitted. Sections without data are left out. Methods are compared pairwise with that
    of the first record.

    Parameters
    ----------
    records : iterable of Record
        As `Store.records` gives them, with ``predictions=True`` for ROC curves.
    path : str or Path
        The file to write; its folder must be there.
    title : str, default="Comparison of methods"
        The title.
    words : sequence of str, default=()
        Paragraphs that stand before the summary: why it was run, what a reader must know.
    metric : str, default="accuracy"
        The metric by which methods are compared, one of `discernel.compare.metrics.METRICS`.
    origin : Origin, optional
        Where the results come from; `discernel.compare.exports.origin_of` makes it.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        If there are no records, or the path is a folder or lies in none.
    FileWriteError
        If it cannot be written; what was there is as it was.
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
    check_place("report", path)
    page = Pages("report.html.j2")
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
    """Return a record in which control characters of names are written out."""
    data, method, result = record.cell.data, record.cell.method, record.result
    cell = replace(
        record.cell,
        data=replace(data, name=printable(data.name), file=written(data.file)),
        method=replace(method, name=printable(method.name)),
    )
    names = ("weights", "details", "error")
    result = replace(result, **{name: written(getattr(result, name)) for name in names})
    return replace(record, cell=cell, result=result, machine=written(record.machine))


def _figures(table: ResultTable) -> list[Section]:
    """Return the sections with figures that have any."""
    found = []
    for id_, title, text, draw in _SECTIONS:
        drawn = [each for dataset in table.datasets for each in draw(table, dataset)]
        pictures = [replace(d, svg=to_svg(d.figure, f"{id_}-{i}")) for i, d in enumerate(drawn)]
        if pictures:
            found.append(Section(id_, title, (text,), figures=tuple(pictures)))
    return found


def _origin(origin: Origin) -> list[Section]:
    parts, counts = origin.blocks(), origin.class_counts.items()
    if origin.n_rows:
        rows = tuple(Row((c, f"{n:,}", f"{100 * n / origin.n_rows:.1f}")) for c, n in counts)
        classes = Block("classes", "rows of each class", "", rows, ("class", "rows", "%"), 2)
        parts.insert(1, classes.written())
    said = (*written(origin.notes), *([_PREPARED] if origin.columns else []))
    return [Section("data", "Data", said, tuple(parts))]
