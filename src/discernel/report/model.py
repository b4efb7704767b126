"""A page about one fitted model: what it looks at, what to expect of it, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from discernel.arrays import FloatArray
from discernel.discriminant import held_out_log_posterior
from discernel.displays.common import fitted_learner, kernel_sources, sum_by
from discernel.displays.importances import column_names
from discernel.experiments.exports import Trace
from discernel.experiments.formats import printable
from discernel.inspection.words import speaking_rows
from discernel.learn import Candidate
from discernel.report.contents import trace_contents
from discernel.report.page import page_parts, shown_trace
from discernel.report.words import candidate_label, count, percent
from discernel.writing import check_place, write_file

__all__ = ["RowExplanation", "write_model_report"]

_MOST = 20


@dataclass(frozen=True)
class RowExplanation:
    """Why a row has its score, in numbers that add up.

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
    trace: Trace | None = None,
    explanations: Sequence[RowExplanation] = (),
) -> Path:
    """Write a report of a fitted model: one HTML file that needs no other and no network.

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
    trace : Trace, optional
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
    >>> "Which columns matter" in page
    True
    """
    check_place("report", path)
    template, shared = page_parts("model.html.j2")
    learner = fitted_learner(estimator)
    page = template.render(
        title=printable(title),
        summary=_summary(learner),
        importances=_importances(estimator, learner, columns),
        confusion=_confusion(learner),
        explanations=[_explained(each) for each in explanations],
        certificate=learner.learned_kernel_.certificate,
        sources=_sources(learner),
        weights=_bars(learner.kernel_names_, learner.kernel_weights_, "{:z.3f}"),
        considered=_considered(learner.learned_kernel_.considered),
        settings=_settings(learner),
        trace=None if trace is None else trace_contents(shown_trace(trace)),
        **shared,
    )
    return write_file(path, page.encode())


# ---- sentences ---------------------------------------------------------------------------------


def _summary(learner: Any) -> list[str]:
    """Return what the model is, what to expect of it, and which columns it looks at most."""
    kind = type(learner).__name__
    found = [f"A {kind} of {count(len(learner.kernel_names_), 'kernel')}."]
    if hasattr(learner, "classes_"):
        names = ", ".join(printable(str(name)) for name in learner.classes_[:_MOST])
        more = ", ..." if len(learner.classes_) > _MOST else ""
        found[0] = f"A {kind} that tells {len(learner.classes_)} classes apart: {names}{more}."
    expected = getattr(learner, "expected_", None)
    if expected is not None:
        found.append(
            f"Of new rows like the {expected.n_rows:,} that it learned from, expect it to predict "
            f"{percent(expected.accuracy)} % right (95 % interval: {percent(expected.low)} to "
            f"{percent(expected.high)} %)."
        )
        share = percent(float(np.exp(-expected.log_loss)))
        found.append(
            f"Its log-loss is {expected.log_loss:z.3f}: it gives the right class a probability of "
            f"{share} %, as a geometric mean. Both were measured on rows whose labels it did not "
            f"use to predict them ({expected.where})."
        )
    return [*found, learner.learned_kernel_.certificate]


def _settings(learner: Any) -> list[tuple[str, str]]:
    learned = learner.learned_kernel_
    found = [
        ("criterion", learned.criterion),
        ("solver", f"{learned.solver}, {learned.n_iter} iterations: {learned.status}"),
        ("regularization λ", f"{learned.regularization:.3g}"),
    ]
    if learned.gap is not None:
        found.append(("certified relative gap", f"{learned.gap:.1e}"))
    if learned.regularization_at_limit is not None:
        found.append(("on λ", learned.regularization_advice))
    return found


# ---- numbers -----------------------------------------------------------------------------------


def _bars(names: Sequence[str], values: FloatArray, form: str) -> list[dict[str, Any]]:
    """Return bars, the largest first, and what is beyond twenty together."""
    order = np.argsort(-values, kind="stable")
    largest = float(values.max()) or 1.0
    rows = [
        {
            "name": printable(str(names[i])),
            "share": float(values[i]) / largest,
            "text": form.format(values[i]),
        }
        for i in order[:_MOST]
    ]
    rest = values[order[_MOST:]]
    if len(rest):
        share = min(1.0, float(rest.sum()) / largest)
        rows.append(
            {"name": f"{len(rest)} others", "share": share, "text": form.format(rest.sum())}
        )
    return rows


def _importances(
    estimator: Any, learner: Any, columns: Sequence[str] | None
) -> list[dict[str, Any]]:
    if not hasattr(learner, "feature_importances_"):
        return []
    given = list(columns) if columns is not None else column_names(estimator)
    names, shares = sum_by(given, learner.feature_importances_)
    # Of a sum the spread is known to be no larger than this.
    bounds, parts = sum_by(given, learner.feature_importances_std_)[1], Counter(given)
    spread = {
        printable(str(name)): f"{'≤ ' if parts[name] > 1 else ''}{percent(float(bound))}"
        for name, bound in zip(names, bounds, strict=True)
    }
    rows = _bars(names, 100.0 * shares, "{:z.1f}")
    return [row | {"spread": spread.get(row["name"], "")} for row in rows]


def _sources(learner: Any) -> list[dict[str, Any]]:
    sources = kernel_sources(learner.kernels_)
    if not 1 < len(set(sources)) < len(sources):
        return []
    return _bars(*sum_by(sources, learner.kernel_weights_), "{:z.3f}")


def _considered(candidates: Sequence[Candidate]) -> dict[str, Any] | None:
    """Return what the default chose from, and how."""
    if not candidates:
        return None
    by_folds = candidates[0].accuracy is not None
    numbers = [
        (percent(each.accuracy), f"{each.error:z.3f}")
        if each.accuracy is not None
        else (f"{each.error:z.3f}", f"{each.pull:z.3f}")
        for each in candidates
    ]
    rows = [
        {"name": candidate_label(each), "numbers": [*pair, f"{each.regularization:.1e}"]}
        for each, pair in zip(candidates, numbers, strict=True)
    ]
    if by_folds:
        return {
            "text": "Candidates were compared on training rows that they did not learn from. The "
            "simplest one is chosen, unless another one has a log-loss that is lower by more than "
            "a standard error.",
            "columns": ["accuracy %", "log-loss", "λ"],
            "rows": rows,
        }
    return {
        "text": "Leave-one-out: every training row is left out once, and its class scores are "
        "predicted from the others. The error is the mean squared error of these scores: 0 is "
        "perfect, 1 is knowing nothing. It is no share of wrong rows. The pull is added for "
        "weights far from equal ones; the least sum is chosen.",
        "columns": ["leave-one-out error", "pull to equal weights", "λ"],
        "rows": rows,
    }


def _confusion(learner: Any) -> dict[str, Any] | None:
    """Return how often each class is taken for each, of rows predicted without their labels."""
    if getattr(learner, "expected_", None) is None:
        return None
    discriminant, decision = learner.discriminant_, learner.decision_
    codes, weights = discriminant.training_codes, discriminant.row_weights
    posterior = held_out_log_posterior(discriminant, decision)
    predicted = (posterior + decision.offsets).argmax(axis=1)
    n_classes = len(learner.classes_)
    if n_classes > _MOST:
        return None
    table = np.zeros((n_classes, n_classes))
    np.add.at(table, (codes, predicted), weights)
    return {
        "text": "Training rows, each predicted without its own label "
        f"({learner.expected_.where}). Numbers on the diagonal are right.",
        "classes": [printable(str(name)) for name in learner.classes_],
        "rows": [
            {
                "name": printable(str(name)),
                "own": i,
                "counts": [f"{number:,.6g}" for number in row],
                "right": percent(float(row[i] / row.sum())) if row.sum() else "–",
            }
            for i, (name, row) in enumerate(zip(learner.classes_, table, strict=True))
        ],
    }


def _explained(each: RowExplanation) -> dict[str, Any]:
    """Return what the page shows of a row: the largest contributions first."""
    largest = max((abs(value) for value in each.contributions.values()), default=0.0) or 1.0
    order = sorted(each.contributions.items(), key=lambda item: -abs(item[1]))
    rows = [(name, value) for name, value in order[:_MOST]]
    if len(order) > _MOST:
        rest = [value for _, value in order[_MOST:]]
        rows.append((f"{len(rest)} others", sum(rest)))
    sure = "" if each.probability is None else f", probability {percent(each.probability)} %"
    return {
        "row": printable(each.row),
        "title": f"{printable(each.row)}: predicted {printable(each.predicted)}{sure}",
        "words": printable(each.words),
        "baseline": _signed(each.baseline),
        "score": _signed(each.score),
        "contributions": [
            {
                "name": printable(name),
                "text": _signed(value),
                "share": float(np.clip(value / largest, -1.0, 1.0)),
            }
            for name, value in rows
        ],
        "similar": [
            (f"T{speaking_rows(side, printable(each.predicted))[1:]}", _similar(each, sign))
            for side, sign in (("for", 1.0), ("against", -1.0))
            if any(sign * support > 0 for *_, support in each.similar)
        ],
    }


def _similar(each: RowExplanation, sign: float) -> list[tuple[str, str, str, str]]:
    """Return the training rows that speak for a prediction, or, of sign −1, against it."""
    return [
        (printable(name), printable(label), f"{similarity:.3f}", _signed(support))
        for name, label, similarity, support in each.similar
        if sign * support > 0
    ]


def _signed(value: float) -> str:
    return f"{value:+z.3f}".replace("-", "−")
