"""Texts on contributions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from discernel.arrays import FloatArray
from discernel.exceptions import InvalidInputError
from discernel.inspection.contributions import Contributions
from discernel.kernels.columns import is_missing

#: Largest number of characters of a cell.
_LONGEST_CELL = 24


def explain_in_words(contributions: Contributions, row: int = 0, n: int = 3) -> str:
    """Explain the score of a row in two to four lines of text.

    Parameters
    ----------
    contributions : Contributions
        Result of `contributions`.
    row : int, default=0
        Position of the row.
    n : int, default=3
        Number of columns named for and against the prediction; sources if rows have no columns.

    Returns
    -------
    str
        Lines on the predicted class or number.

    Examples
    --------
    >>> import numpy as np
    >>> found = Contributions(
    ...     scores=np.array([[2.1]]),
    ...     baseline=np.array([-0.4]),
    ...     columns=np.array([[[2.25, 0.5, -0.25]]]),
    ...     sources=np.array([[[2.5]]]),
    ...     column_names=["age", "dose", "colour"],
    ...     source_names=["all columns"],
    ...     classes=np.array(["well", "ill"]),
    ...     cells=np.array([[71, 2.5, "red"]], dtype=object),
    ... )
    >>> print(explain_in_words(found))
    log-odds 2.1 for 'ill'; typical row: -0.4
    for it: +2.25 from age=71, +0.5 from dose=2.5
    against it: -0.25 from colour=red
    """
    score = RowScore.of(contributions, row)
    names, values = score.terms()
    value, start = score_text(score.value), score_text(score.baseline)
    lines = [f"{score.kind} {value}{score.suffix}; {contributions.compared_with}: {start}"]
    order = np.argsort(-np.abs(values), kind="stable")
    named = [order[values[order] > 0][:n], order[values[order] < 0][:n]]
    sides = ("for it", "against it") if contributions.classes is not None else ("up", "down")
    for side, chosen in zip(sides, named, strict=True):
        if len(chosen):
            listed = (f"{score_text(values[i], '+')} from {names[i]}" for i in chosen)
            lines.append(f"{side}: {', '.join(listed)}")
    shown = np.concatenate(named)
    kind = "column" if contributions.columns is not None else "source"
    if not len(shown):
        lines.append(f"no {kind} changes it")
    elif np.count_nonzero(values) > len(shown):
        left = values.sum() - values[shown].sum()
        lines.append(f"all other {kind}s: {score_text(left, '+')}")
    return "\n".join(lines)


class RowScore(NamedTuple):
    """The explained score of a row, for one class or one numeric target.

    Attributes
    ----------
    contributions : Contributions
        Contributions of the row and of others.
    row, output : int
        Positions of the row and of the output.
    sign : float
        −1 for the log-odds of the first of two classes, else 1.
    kind, suffix : str
        Kind of the score and its class, such as "log-odds" and " for 'ill'".
    """

    contributions: Contributions
    row: int
    output: int
    sign: float
    kind: str
    suffix: str

    @classmethod
    def of(cls, contributions: Contributions, row: int, label: Any = None) -> RowScore:
        """Return the score for a class, by default the predicted class, or raise an error.

        For a regression, ``label`` is the position of the target.
        """
        scores, classes = contributions.scores, contributions.classes
        if not -len(scores) <= row < len(scores):
            raise InvalidInputError(f"row must be one of 0 to {len(scores) - 1}. Got {row!r}.")
        if classes is None:
            which = f" of target {int(label or 0)}" if scores.shape[1] > 1 else ""
            return cls(contributions, row, int(label or 0), 1.0, "prediction", which)
        known = classes.tolist()
        if label is not None and label not in known:
            raise InvalidInputError(f"The class must be one of {known}. Got {label!r}.")
        if len(known) > 2:
            place = int(scores[row].argmax()) if label is None else known.index(label)
            output, sign, kind = place, 1.0, "score"
        else:
            place = int(scores[row, 0] > 0) if label is None else known.index(label)
            output, sign, kind = 0, 1.0 if place else -1.0, "log-odds"
        return cls(contributions, row, output, sign, kind, f" for {_label(classes[place])}")

    @property
    def value(self) -> float:
        """The score."""
        return self.sign * float(self.contributions.scores[self.row, self.output])

    @property
    def baseline(self) -> float:
        """The score of the typical row or background."""
        return self.sign * float(self.contributions.baseline[self.output])

    def added(self, values: FloatArray) -> FloatArray:
        """Return contributions to the score, from an array like ``contributions.columns``."""
        return np.asarray(self.sign * values[self.row, self.output])

    def terms(self, by: str | None = None) -> tuple[list[str], FloatArray]:
        """Return the names of columns with their cells, or of sources, and their contributions.

        ``by`` is "columns" or "sources"; by default columns, or sources if rows have none.
        """
        found = self.contributions
        if by == "sources" or found.columns is None:
            return list(found.source_names), self.added(found.sources)
        names = list(found.column_names)
        if found.cells is not None:
            pairs = zip(names, found.cells[self.row], strict=True)
            names = [f"{name}={cell_text(cell)}" for name, cell in pairs]
        return names, self.added(found.columns)


def cell_text(cell: Any) -> str:
    """Return a cell as a short text."""
    if is_missing(cell):
        return "missing"
    if isinstance(cell, (bool, np.bool_)):
        return str(bool(cell))
    if isinstance(cell, (float, int, np.number)):
        return f"{cell:.4g}"
    text = str(cell)
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"


def _label(label: Any) -> str:
    return repr(str(label)) if isinstance(label, str) else f"class {label}"


def score_text(value: float, sign: str = "") -> str:
    """Return a score or a contribution with three significant digits."""
    return f"{value:{sign}.3g}" if abs(value) < 999.5 else f"{value:{sign}.0f}"
