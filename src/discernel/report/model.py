"""A page about one fitted model: what to expect of it, what it looks at, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from discernel.inspection.facts import model_facts
from discernel.inspection.words import speaking_rows
from discernel.show.facts import Block, ModelFacts, Origin, Row
from discernel.show.page import Pages
from discernel.show.words import percent, printable, signed
from discernel.show.writing import check_place

#: Columns on the first screen, and contributions of a row; the others are summed.
_MOST_FIRST, _MOST_TERMS = 8, 20


@dataclass(frozen=True)
class RowExplanation:
    """Explanation of the score of a row, in contributions that add up.

    Attributes
    ----------
    row : str
        What the row is called.
    predicted : str
        The class it is predicted to have.
    baseline : float
        The score of a typical row for that class.
    contributions : dict of str to float
        What columns or sources add to it; the sum of all and the baseline is the score.
    probability : float or None
        That of the predicted class.
    similar : sequence of (str, str, float, float)
        Training rows like it: name, class, similarity, and how much each speaks for the
        prediction; below 0, against it.
    words : str
        The same in a sentence or two.
    """

    row: str
    predicted: str
    baseline: float
    contributions: Mapping[str, float] = field(default_factory=dict)
    probability: float | None = None
    similar: Sequence[tuple[str, str, float, float]] = ()
    words: str = ""

    @property
    def score(self) -> float:
        """The score of the row."""
        return self.baseline + sum(self.contributions.values())


def write_model_report(
    estimator: Any,
    path: str | Path,
    *,
    title: str = "A fitted model",
    columns: Sequence[str] | None = None,
    origin: Origin | None = None,
    explanations: Sequence[RowExplanation] = (),
) -> Path:
    """Write a report of a fitted model as one HTML file that works offline.

    Parameters
    ----------
    estimator : MultipleKernelDiscriminant, other estimator of discernel, or Pipeline with one
        Fitted.
    path : str or Path
        The file to write; its folder must be there.
    title : str, default="A fitted model"
        The title.
    columns : sequence of str, optional
        What each importance belongs to; those of one name are summed. By default the names of the
        columns.
    origin : Origin, optional
        Where the model comes from.
    explanations : sequence of RowExplanation
        Some rows, explained.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        If the path is a folder or lies in none, or there is no estimator of discernel.
    FileWriteError
        If it cannot be written; what was there is as it was.
    MissingExtraError
        If Jinja2 is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_wine
    >>> from discernel import MultipleKernelDiscriminant
    >>> from discernel.report import write_model_report
    >>> clf = MultipleKernelDiscriminant().fit(*load_wine(return_X_y=True))
    >>> with TemporaryDirectory() as folder:
    ...     page = write_model_report(clf, Path(folder) / "model.html").read_text("utf-8")
    >>> "Columns that matter" in page
    True
    """
    check_place("report", path)
    facts = model_facts(estimator, columns=columns, origin=origin)
    return write_facts_report(facts, path, title, explanations)


def write_facts_report(
    facts: ModelFacts, path: str | Path, title: str, explanations: Sequence[RowExplanation] = ()
) -> Path:
    """Write the facts about a model as a page; see `write_model_report`."""
    page = Pages("model.html.j2")
    parts = {part.id: part for part in facts.blocks()}
    lead, following = parts.pop("data"), parts.pop("next")
    expected = parts.pop("expected", None)
    matters = parts.get("importances") or parts.get("sources")
    if matters is not None and len(matters.rows) <= _MOST_FIRST:
        del parts[matters.id]  # the first screen has all of it
    named = [(part.id, part.heading) for part in parts.values()]
    rows = [("rows", "Some rows explained")] if explanations else []
    return page.write(
        path,
        title=printable(title),
        source="a fitted model",
        contents=[("summary", "Summary"), *named, *rows],
        lead=f"{facts.estimator}: {lead.aside}.",
        notes=lead.sentences,
        expected=expected,
        matters=None if matters is None else matters.shortened(_MOST_FIRST),
        next=following,
        parts=list(parts.values()),
        explanations=[
            {
                "title": _explained_title(each),
                "words": printable(each.words),
                "parts": [part.written() for part in _explained(each)],
            }
            for each in explanations
        ],
    )


def _explained_title(each: RowExplanation) -> str:
    sure = "" if each.probability is None else f", probability {percent(each.probability)} %"
    return printable(f"{each.row}: predicted {each.predicted}{sure}")


def _explained(each: RowExplanation) -> Iterator[Block]:
    """Yield what adds to the score, the largest first, and the training rows behind it."""
    order = sorted(each.contributions.items(), key=lambda item: -abs(item[1]))
    terms = tuple(Row((name, signed(value)), value) for name, value in order)
    part = Block(
        "contributions", f"contributions to the score of {each.row}", "", terms, ("what", "adds"), 1
    )
    part = replace(part, noun="contribution", form="{:+z.3f}").shortened(_MOST_TERMS)
    first = Row(("a typical row", signed(each.baseline)))
    last = Row(("score of the row", signed(each.score)), stands_out=True)
    yield replace(part, rows=(first, *part.rows, last))
    for side, sign in (("for", 1.0), ("against", -1.0)):
        found = [
            Row((name, f"{similarity:.3f}", signed(support), label))
            for name, label, similarity, support in each.similar
            if sign * support > 0
        ]
        if found:
            header = ("row", "similarity", "adds to the score", "class")
            yield Block("similar", speaking_rows(side, each.predicted), "", tuple(found), header, 2)
