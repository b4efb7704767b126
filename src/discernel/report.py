"""Reports on fitted models and comparisons, as self-contained HTML files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from discernel.compare.report import write_report
from discernel.inspection.facts import model_facts
from discernel.rows.writing import check_writable_path
from discernel.show.facts import Block, ModelFacts, Origin, Row
from discernel.show.page import write_page
from discernel.show.words import percent, printable, signed, signed_form

__all__ = ["RowExplanation", "write_model_report", "write_report"]

#: Largest numbers of columns on the first screen, and of contributions; others are summed.
_MOST_FIRST, _MOST_TERMS = 8, 20


@dataclass(frozen=True)
class RowExplanation:
    """Explanation of the score of a row, as a sum of contributions.

    Attributes
    ----------
    row : str
        Name of the row.
    predicted : str
        Predicted class or number.
    baseline : float
        Score of a typical row for the predicted class, or its predicted number; see `baseline_is`.
    contributions : dict of str to float
        Contributions of columns or sources; baseline plus all contributions is the score.
    probability : float or None
        Probability of the predicted class; None for a number.
    similar : sequence of (str, str, float, float)
        Similar training rows: name, class or number, similarity, and support for the prediction
        (negative if the row opposes it).
    words : str
        Explanation, a line per sentence.
    sources : dict of str to float
        Contributions of sources, if columns contribute and there are several sources.
    baseline_is : str
        Name of the baseline.
    """

    row: str
    predicted: str
    baseline: float
    contributions: Mapping[str, float] = field(default_factory=dict)
    probability: float | None = None
    similar: Sequence[tuple[str, str, float, float]] = ()
    words: str = ""
    sources: Mapping[str, float] = field(default_factory=dict)
    baseline_is: str = "typical row"

    @property
    def score(self) -> float:
        """The score of the row."""
        return self.baseline + sum(self.contributions.values())

    def blocks(self, most: int = _MOST_TERMS) -> list[Block]:
        """Return the prediction, contributions and similar rows as blocks, for any output.

        Parameters
        ----------
        most : int, default=20
            Number of contributions with rows of their own; the others are summed.
        """
        sure = "" if self.probability is None else f", probability {percent(self.probability)} %"
        title = f"{self.row}: predicted {self.predicted}{sure}"
        sentences = tuple(self.words.splitlines())
        found = [
            Block("row", title, sentences=sentences),
            self._terms("", self.contributions, most),
        ]
        if self.sources:
            found.append(self._terms(", by source", self.sources, most))
        named, what = self.predicted, "class"
        if self.probability is None:
            named, what = "the prediction", "target"
        form = signed_form([support for *_, support in self.similar])
        for side, sign in (("support", 1.0), ("oppose", -1.0)):
            rows = tuple(
                Row((name, f"{similarity:.3f}", signed(support, form), label))
                for name, label, similarity, support in self.similar
                if sign * support > 0
            )
            if rows:
                title = f"similar training rows that {side} {named}"
                header = ("row", "similarity", "contribution", what)
                found.append(Block("similar", title, "", rows, header, 2))
        return [block.escaped() for block in found]

    def _terms(self, by: str, terms: Mapping[str, float], most: int) -> Block:
        """Return a table of contributions, largest first, between the scores that they connect."""
        form = signed_form([self.baseline, self.score, *terms.values()])
        ranked = sorted(terms.items(), key=lambda item: -abs(item[1]))
        rows = tuple(Row((name, signed(value, form)), value) for name, value in ranked)
        title, header = f"contributions to the score of {self.row}{by}", ("term", "contribution")
        part = Block("contributions", title, "", rows, header, 1, "contribution", f"{{:+{form}}}")
        part = part.shortened(most)
        first = Row((self.baseline_is, signed(self.baseline, form)))
        last = Row(("score of the row", signed(self.score, form)), is_highlighted=True)
        return replace(part, rows=(first, *part.rows, last), noun="")


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
        The file to write; its folder must exist.
    title : str, default="A fitted model"
        The title.
    columns : sequence of str, optional
        Column name of each importance; importances with the same name are summed. By default the
        column names of the training rows.
    origin : Origin, optional
        Origin of the model.
    explanations : sequence of RowExplanation
        Explanations of some rows.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        If the path is a folder, its folder does not exist, or the estimator is not supported.
    FileWriteError
        If the file cannot be written; an existing file is unchanged.
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
    check_writable_path("report", path)
    facts = model_facts(estimator, columns=columns, origin=origin)
    return write_facts_report(facts, path, title, explanations)


def write_facts_report(
    facts: ModelFacts, path: str | Path, title: str, explanations: Sequence[RowExplanation] = ()
) -> Path:
    """Write a report on a model from its facts; see `write_model_report`."""
    parts = {part.id: part for part in facts.blocks()}
    lead, following = parts.pop("data"), parts.pop("next")
    expected = parts.pop("expected", None)
    matters = _first_screen(parts)
    named = [(part.id, part.heading) for part in parts.values()]
    rows = [("rows", "Some rows explained")] if explanations else []
    return write_page(
        "model.html.j2",
        path,
        title=printable(title),
        source="a fitted model",
        contents=[("summary", "Summary"), *rows, *named],
        lead=f"{facts.estimator}: {lead.aside}.",
        notes=lead,
        expected=expected,
        matters=matters,
        next=following,
        parts=list(parts.values()),
        explanations=[each.blocks() for each in explanations],
    )


def _first_screen(parts: dict[str, Block]) -> list[Block]:
    """Return the importances of sources and columns; take those from the parts that are whole."""
    matters = []
    for name in ("sources", "importances"):
        part = parts.get(name)
        if part is None:
            continue
        if len(part.rows) <= _MOST_FIRST and len(part.header) == 2:
            del parts[name]
        elif part.noun:  # the first rows are on the first screen
            parts[name] = replace(part, title=f"all {part.noun}s")
        ranked = sorted(part.rows, key=lambda row: -(row.value or 0.0))
        rows = tuple(replace(row, cells=row.cells[:2]) for row in ranked)
        part = replace(part, id=f"matter-{name}", rows=rows, header=part.header[:2])
        matters.append(part.shortened(_MOST_FIRST))
    return matters
