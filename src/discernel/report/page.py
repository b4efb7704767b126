"""One page from records: its figures, section by section, and the file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from discernel.exceptions import missing_extra
from discernel.experiments.exports import Trace
from discernel.experiments.formats import printable
from discernel.experiments.store import Record
from discernel.experiments.tables import ResultTable, summarize
from discernel.report import figures
from discernel.report.contents import contents
from discernel.report.svg import drawing, to_svg
from discernel.writing import check_place, write_file

__all__ = ["page_parts", "shown_trace", "write_report"]


@dataclass(frozen=True)
class Picture:
    """A figure on the page."""

    title: str
    svg: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Section:
    """Figures of one kind, under the name of a data set each, or all together under none."""

    id: str
    title: str
    text: str
    groups: list[tuple[str | None, list[Picture]]]


_Draw = Callable[[ResultTable, str], list[figures.Drawing]]
_NO_IMPORTANCES = (
    "A weight says how much of a kernel is used, not how important its columns are: with rkda, a "
    "source of pure noise can get weight."
)
#: Id, title, what a reader must know, and what draws the figures of one data set.
_SECTIONS: tuple[tuple[str, str, str, _Draw], ...] = (
    (
        "time",
        "Quality against time",
        "Further to the left is faster. Of accuracies and AUC, higher is better; of log-loss and "
        "Brier score, lower. Lines are the intervals of the table.",
        figures.draw_time,
    ),
    (
        "importances",
        "Which columns matter",
        "How much of what the method predicts changes with the column, as a share of all columns "
        "(measured by the squared gradient of a kernel fit). Bars are means over divisions, lines "
        "one standard deviation to each side. If two columns say the same, one may get the "
        "importance of both. Importance does not mean cause.",
        figures.draw_importances,
    ),
    (
        "sources",
        "Weights by source",
        "The weights of all kernels of a source, summed. Bars are means over divisions, lines "
        f"reach from quartile to quartile. {_NO_IMPORTANCES}",
        figures.draw_source_weights,
    ),
    (
        "weights",
        "Kernel weights",
        "Bars are means over divisions, lines reach from quartile to quartile. Weights are over "
        f"kernels normalised to the same trace. {_NO_IMPORTANCES}",
        figures.draw_weights,
    ),
    (
        "roc",
        "ROC curves",
        "True positive rates are averaged over divisions at each false positive rate; bands are "
        "one standard deviation to each side. Beside each name is the mean area under the curve.",
        figures.draw_roc,
    ),
    (
        "candidates",
        "What auto considered",
        "Before it learns from all training rows, auto tries several candidates on training rows "
        "that it leaves out, and chooses one, in every division anew: equal or learned weights of "
        "the kernels, and columns as they are or scaled by how much they matter. Shorter bars are "
        "better. Bars are means over divisions.",
        figures.draw_candidates,
    ),
    (
        "regularization",
        "Leave-one-out error against λ",
        "Leave-one-out: every training row is left out once, and its class scores are predicted "
        "from the other rows. The error is the mean squared distance of these scores from the "
        "right ones: 0 is perfect, 1 is knowing nothing. It is no share of wrong rows: an error "
        "of 0.1 can go with an accuracy of 100 %. λ is the strength of the regularization. Lines "
        "are means over divisions.",
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
        "The rows as the discriminant sees them",
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
    trace: Trace | None = None,
) -> Path:
    """Write a report of an experiment: one HTML file that needs no other and no network.

    Nothing is fitted. What the records do not hold is left out. Methods are compared pairwise with
    that of the first record.

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
        What methods are judged by: one of `discernel.experiments.metrics.METRICS`.
    trace : Trace, optional
        Where the results come from; `discernel.experiments.exports.trace` makes it.

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
    >>> from discernel.experiments.plan import Cell, Data, Method, Splits
    >>> from discernel.experiments.store import Result
    >>> cell = Cell(Data("wine"), Method("lda", "lda"), Splits(), repetition=0)
    >>> record = Record(cell, Result(metrics={"accuracy": 0.97}), machine={}, finished="")
    >>> with TemporaryDirectory() as folder:
    ...     page = write_report([record], Path(folder) / "report.html").read_text("utf-8")
    >>> "On wine only lda has results: accuracy 97.0 %." in page
    True
    """
    path = Path(path)
    check_place("report", path)
    template, shared = page_parts("report.html.j2")
    table = summarize(map(_shown, records), metric)
    with drawing():
        sections = _sections(table)
    page = template.render(
        title=printable(title),
        words=[printable(each) for each in words],
        sections=sections,
        **contents(table, None if trace is None else shown_trace(trace)),
        **shared,
    )
    return write_file(path, page.encode())


# ---- anybody's names ---------------------------------------------------------------------------


def _shown(record: Record) -> Record:
    """Return a record in which control characters of names are written out."""
    data, method, result = record.cell.data, record.cell.method, record.result
    cell = replace(
        record.cell,
        data=replace(data, name=_written(data.name), file=_written(data.file)),
        method=replace(method, name=_written(method.name)),
    )
    result = replace(
        result,
        weights=_written(result.weights),
        details=_written(result.details),
        error=_written(result.error),
    )
    return replace(record, cell=cell, result=result, machine=_written(record.machine))


def shown_trace(trace: Trace) -> Trace:
    """Return where results come from with control characters written out."""
    return Trace(**{each.name: _written(getattr(trace, each.name)) for each in fields(trace)})


def _written(value: Any) -> Any:
    """Return plain data with its control characters written out."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(key): _written(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_written(entry) for entry in value)
    return value


# ---- the parts of the page -------------------------------------------------------------------


def _sections(table: ResultTable) -> list[Section]:
    """Return the sections with figures that have any."""
    found = []
    for id_, title, text, draw in _SECTIONS:
        groups: list[tuple[str | None, list[Picture]]] = [
            (dataset, [_picture(each, f"{id_}-{i}-{j}") for j, each in enumerate(drawn)])
            for i, dataset in enumerate(table.datasets)
            if (drawn := draw(table, dataset))
        ]
        if all(len(pictures) == 1 for _, pictures in groups):
            groups = [(None, [_with_dataset(pictures[0], name) for name, pictures in groups])]
        if groups[0][1]:
            found.append(Section(id_, title, text, groups))
    return found


def _picture(drawn: figures.Drawing, prefix: str) -> Picture:
    return Picture(drawn.title, to_svg(drawn.figure, prefix), drawn.alt, drawn.caption)


def _with_dataset(picture: Picture, dataset: str | None) -> Picture:
    """Return a picture whose title names its data set."""
    if picture.title == dataset:
        return picture
    return replace(picture, title=f"{dataset}: {picture.title}")


# ---- the file --------------------------------------------------------------------------------


def page_parts(name: str) -> tuple[Any, dict[str, str]]:
    """Return a template, and what every page has: style, script, and what the page may load.

    Parameters
    ----------
    name : str
        The file of the template.
    """
    style, script = _text("report.css"), _text("report.js")
    return _template(name), {
        "style": style,
        "script": script,
        "policy": _policy(style, script),
    }


def _template(name: str) -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise missing_extra("A report needs Jinja2", "app") from error
    environment = Environment(
        loader=PackageLoader("discernel.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def _text(name: str) -> str:
    return files("discernel.report").joinpath("templates", name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy that allows our style and script, and nothing else."""
    allowed = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    return (
        f"default-src 'none'; style-src 'sha256-{allowed[0]}'; script-src 'sha256-{allowed[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
