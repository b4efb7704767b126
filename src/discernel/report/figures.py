"""The figures of a report, from what records hold; none where they hold nothing to draw."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discernel.arrays import FloatArray
from discernel.displays import (
    CandidatesDisplay,
    DiscriminantEmbeddingDisplay,
    ImportancesDisplay,
    KernelWeightsDisplay,
    LearningPathDisplay,
    RegularizationPathDisplay,
)
from discernel.displays.common import (
    LINE_STYLES,
    MARKERS,
    are_by_folds,
    class_colors,
    format_number,
    sum_by,
    wrap,
)
from discernel.experiments.roc import MeanCurve, mean_roc
from discernel.experiments.store import Record
from discernel.experiments.tables import ResultTable
from discernel.learn import Candidate, Progress
from discernel.report.svg import new_figure
from discernel.report.words import candidate_label, join, seconds

__all__ = [
    "Drawing",
    "draw_candidates",
    "draw_convergence",
    "draw_embeddings",
    "draw_errors_by_regularization",
    "draw_importances",
    "draw_roc",
    "draw_source_weights",
    "draw_time",
    "draw_weights",
]

#: As many as the default has kernels.
_MOST_BARS = 12
_MOST_COLUMNS = 10
#: Rows in a scatter plot: each is an element of the page.
_MOST_ROWS = 300


#: How candidates were judged, of the two kinds there are.
_BY_FOLDS = (
    "Bars are log-losses of training rows that the candidate did not learn from; in brackets is "
    "their accuracy. The simplest candidate is chosen, unless another one is better by more than a "
    "standard error."
)
_BY_LEAVING_OUT = (
    "Bars are the leave-one-out error, the mean squared error of the class scores of rows that "
    "were left out one at a time (1 is knowing nothing; it is not a share of wrong rows), and what "
    "is added for weights far from equal ones. The least sum is chosen."
)


@dataclass(frozen=True)
class Drawing:
    """A figure, with its title, what is seen in it, and what a reader must know about it."""

    figure: Any
    title: str
    alt: str
    caption: str = ""


# ---- what was learned ----------------------------------------------------------------------------


def draw_importances(table: ResultTable, dataset: str) -> list[Drawing]:
    """Draw how much the columns matter; methods that learned the same share a figure."""
    shared: list[tuple[list[str], FloatArray, list[str]]] = []
    for method, records in _finished(table, dataset).items():
        stored = [r.result.details.get("feature_importances") for r in records]
        names, rows = _rows([each for each in stored if each])
        if not rows.size:
            continue
        for columns, other, methods in shared:
            if columns == names and other.shape == rows.shape and np.allclose(other, rows):
                methods.append(method)
                break
        else:
            shared.append((names, rows, [method]))
    drawings = []
    for names, rows, methods in shared:
        drawings.append(_drawn_importances(dataset, names, rows, methods))
    return drawings


def _drawn_importances(
    dataset: str, names: list[str], rows: FloatArray, methods: list[str]
) -> Drawing:
    shown = np.argsort(-rows.mean(axis=0), kind="stable")[:_MOST_COLUMNS]
    n_bars = len(shown) + (len(names) > len(shown))
    ax = _figure_of_bars([names[i] for i in shown], n_bars)
    ImportancesDisplay(rows, feature_names=names).plot(ax, n_columns=_MOST_COLUMNS)
    ax.set_xlabel("importance" if len(rows) == 1 else "mean importance")
    alt = f"Bars of how much the columns of {dataset} matter to {join(methods)}; "
    return Drawing(ax.figure, join(methods), f"{alt}{_largest(names, rows, '.1%')}.", "")


def draw_weights(table: ResultTable, dataset: str) -> list[Drawing]:
    """Draw the weights of every method that learns them, with their spread over divisions."""
    drawings = []
    for method, names, rows, _ in _learned_weights(table, dataset):
        # As many lines as the display draws: kernels without weight share the last one.
        n_bars = len(names)
        if n_bars > _MOST_BARS:
            n_bars = min(_MOST_BARS, int(np.count_nonzero(rows.any(axis=0))) + 1)
        ax = _figure_of_bars(names, n_bars)
        KernelWeightsDisplay(rows, kernel_names=names).plot(ax, max_bars=_MOST_BARS)
        what = f"Bars of kernel weights learned by {method} on {dataset}"
        drawings.append(Drawing(ax.figure, method, f"{what}; {_largest(names, rows)}."))
    return drawings


def draw_source_weights(table: ResultTable, dataset: str) -> list[Drawing]:
    """Draw the weights of all kernels of a source together, with their spread over divisions."""
    drawings = []
    for method, names, rows, of_kernel in _learned_weights(table, dataset):
        if not of_kernel:
            continue
        sources = [of_kernel.get(name, "all columns") for name in names]
        every_source, sums = sum_by(sources, rows)
        ax = _figure_of_bars(every_source, min(_MOST_BARS, len(every_source)))
        display = KernelWeightsDisplay(rows, kernel_names=names, sources=sources)
        display.plot(ax, by="source", max_bars=_MOST_BARS)
        what = f"Bars of the weights that {method} gave the sources of {dataset}"
        drawings.append(Drawing(ax.figure, method, f"{what}; {_largest(every_source, sums)}."))
    return drawings


def draw_candidates(table: ResultTable, dataset: str) -> list[Drawing]:
    """Draw what ``criterion="auto"`` considered: means over divisions, and how often chosen."""
    drawings = []
    for method, records in _finished(table, dataset).items():
        for by_folds in (True, False):
            considered = [e for e in _considered(records) if are_by_folds(e) is by_folds]
            if considered:
                drawings.append(_drawn_candidates(method, dataset, considered, by_folds))
    return drawings


def draw_embeddings(table: ResultTable, dataset: str) -> list[Drawing]:
    """Draw discriminant coordinates, where the first division that has any stored them."""
    drawings = []
    for method, records in _finished(table, dataset).items():
        stored = [r for r in records if r.result.details.get("embedding")]
        if not stored:
            continue
        embedding = stored[0].result.details["embedding"]
        labels, held_out = embedding["labels"], embedding.get("held_out")
        step = -(-len(labels) // _MOST_ROWS)
        [ax] = new_figure(3.6)
        DiscriminantEmbeddingDisplay(
            embedding["coordinates"][::step],
            labels[::step],
            classes=sorted(set(labels)),
            held_out=None if held_out is None else held_out[::step],
            explained=embedding.get("explained"),
        ).plot(ax)
        alt = (
            f"Scatter plot of the rows of {dataset} in the discriminant coordinates of {method}, "
            f"by class: {join(list(map(str, sorted(set(labels)))))}."
        )
        part = "" if step == 1 else f" One row in {step} is drawn."
        caption = f"Division {stored[0].cell.repetition + 1}.{part}"
        drawings.append(Drawing(ax.figure, method, alt, caption))
    return drawings


# ---- how it was learned --------------------------------------------------------------------------


def draw_convergence(table: ResultTable, dataset: str) -> list[Drawing]:
    """Draw objective and gap of the first division of every method that iterates."""
    drawings = []
    for method, records in _finished(table, dataset).items():
        iterated = [r for r in records if len(r.result.details.get("history") or ()) > 1]
        if not iterated:
            continue
        record = iterated[0]
        history = _history(record)
        has_gap = all(progress.gap is not None for progress in history)
        axes = new_figure(3.8 if has_gap else 2.6, 2 if has_gap else 1)
        display = LearningPathDisplay(
            history,
            tol=record.cell.method.options.get("tol"),
            regularization=record.result.regularization,
        ).plot(axes)
        display.axes_[0].set_xlabel("" if has_gap else "iteration")
        gaps = [g for r in iterated if (g := r.result.gap) is not None and math.isfinite(g)]
        worst = f"; the largest gap at the end of any is {format_number(max(gaps))}" if gaps else ""
        alt = (
            f"Lines of the objective{' and the certified gap' if has_gap else ''} of {method} on "
            f"{dataset} against the iteration; {len(history)} points{worst}."
        )
        caption = f"Division {record.cell.repetition + 1} of {len(records)}{worst}."
        drawings.append(Drawing(axes[0].figure, method, alt, caption))
    return drawings


def draw_errors_by_regularization(table: ResultTable, dataset: str) -> list[Drawing]:
    """Draw the leave-one-out error against λ, a line per method.

    Lines are means over the divisions, at the λ that all of them tried.
    """
    [ax], described = new_figure(3.2), []
    for method, records in _finished(table, dataset).items():
        stored = (record.result.details.get("leave_one_out") for record in records)
        paths: list[dict[float, float]] = [dict(path) for path in stored if path]
        tried = sorted(set.intersection(*map(set, paths)), reverse=True) if paths else []
        if len(tried) < 2:
            continue
        errors = np.mean([[path[lam] for lam in tried] for path in paths], axis=0)
        display = RegularizationPathDisplay(tried, errors)
        display.plot(ax, label=wrap(method), **_style(table, method))
        described.append(
            f"{method} from {errors.min():.3f} to {errors.max():.3f}{_chosen(records)}"
        )
    if not described:
        return []
    _place_legend_below(ax)
    alt = f"Lines of the mean leave-one-out error on {dataset} against λ: {join(described)}."
    return [Drawing(ax.figure, dataset, alt)]


# ---- what came of it -----------------------------------------------------------------------------


def draw_roc(table: ResultTable, dataset: str) -> list[Drawing]:
    """Draw mean ROC curves, a line per method, with a band of one standard deviation."""
    curves = {
        method: found
        for method, records in _finished(table, dataset).items()
        if method != "majority" and (found := mean_roc(records)) is not None
    }
    if not curves:
        return []
    [ax], described = new_figure(4.0), []
    ax.plot([0, 1], [0, 1], color="#888888", linewidth=0.8, linestyle=":")
    for method, curve in curves.items():
        look = {**_style(table, method), "marker": ""}
        ax.plot(curve.false, curve.true, label=f"{wrap(method)} ({curve.area:.3f})", **look)
        band = np.clip([curve.true - curve.spread, curve.true + curve.spread], 0.0, 1.0)
        ax.fill_between(curve.false, *band, color=look["color"], alpha=0.12, linewidth=0)
        described.append(f"{method} {curve.area:.3f}")
    ax.set(xlabel="false positive rate", ylabel="true positive rate")
    ax.locator_params(axis="x", nbins=6)
    _place_legend_below(ax, 2)
    caption = _zoom(ax, list(curves.values()))
    alt = f"ROC curves on {dataset}, averaged over divisions; area under each: {join(described)}."
    return [Drawing(ax.figure, dataset, alt, caption)]


def draw_time(table: ResultTable, dataset: str) -> list[Drawing]:
    """Draw the metric against the time of a fit, a point per method."""
    entries = [e for e in table.of_dataset(dataset) if e.seconds_fit > 0 and e.interval]
    guess = [e for e in entries if e.method == "majority"]
    if len(entries) - len(guess) > 1:  # far from all others, it would leave them no room
        entries = [e for e in entries if e not in guess]
    if len(entries) < 2:
        return []
    [ax], described, metric = new_figure(3.6), [], table.metric
    unit = 100.0 if metric.in_percent else 1.0
    for entry in entries:
        assert entry.interval is not None
        look = {**_style(table, entry.method), "linestyle": "", "markersize": 7.0}
        ends = np.array([[entry.mean - entry.interval.low], [entry.interval.high - entry.mean]])
        reach = None if np.isnan(ends).any() else unit * np.maximum(ends, 0.0)
        ax.errorbar(
            entry.seconds_fit,
            unit * entry.mean,
            reach,
            label=wrap(entry.method),
            capsize=2,
            **look,
        )
        number = metric.show_with_unit(entry.mean)
        described.append(f"{entry.method} {number} in {seconds(entry.seconds_fit)}")
    ax.set(xscale="log", xlabel="seconds of a fit", ylabel=metric.heading)
    ax.margins(x=0.15)
    _place_legend_below(ax)
    alt = f"{metric.label} on {dataset} against the time of a fit: {join(described)}."
    absent = [e for e in guess if e not in entries]
    caption = f"Not drawn: majority, {metric.show_with_unit(absent[0].mean)}." if absent else ""
    return [Drawing(ax.figure, dataset, alt, caption)]


# ---- parts ---------------------------------------------------------------------------------------


def _finished(table: ResultTable, dataset: str) -> dict[str, list[Record]]:
    """Return the records of a data set that did not fail, by method."""
    found = {method: table.records.get((dataset, method), []) for method in table.methods}
    return {
        method: [record for record in records if record.result.error is None]
        for method, records in found.items()
    }


def _style(table: ResultTable, method: str) -> dict[str, Any]:
    """Return colour, marker and dash of a method: the same in all figures."""
    i = table.methods.index(method)
    return {
        "color": class_colors(i + 1)[i],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": LINE_STYLES[i % len(LINE_STYLES)],
        "markersize": 4.0,
    }


def _history(record: Record) -> list[Progress]:
    """Return what was stored of the iterations; older records have no λ, but the whole path."""
    path = [lam for lam, _ in record.result.details.get("leave_one_out") or ()]
    stored = record.result.details["history"]
    has_path = len({entry[3] for entry in stored}) == len(path)
    found = []
    for iteration, objective, gap, stage, *rest in stored:
        known = path[stage] if has_path else None
        found.append(Progress(iteration, objective, gap, 0, rest[0] if rest else known, stage))
    return found


def _zoom(ax: Any, curves: Sequence[MeanCurve]) -> str:
    """Show only the part where ROC curves differ, if it is small; say so."""
    lowest, rates = np.min([curve.true for curve in curves], axis=0), curves[0].false
    right = min(1.0, max(0.1, 2.0 * float(rates[np.argmax(lowest >= 0.99)])))
    if right > 0.5:
        return ""
    ax.set(xlim=(0.0, right), ylim=(max(0.0, float(lowest[1]) - 0.1), 1.005))
    return f"Only false positive rates up to {right:.2g} are shown: beyond, the curves are near 1."


def _place_legend_below(ax: Any, n_columns: int = 3) -> None:
    ax.figure.legend(loc="outside lower center", ncols=n_columns, frameon=False, fontsize=9.5)


def _rows(stored: Sequence[dict[str, float]]) -> tuple[list[str], FloatArray]:
    """Return all names that occur, and a row of numbers per division, 0 for names it has not."""
    names = list(dict.fromkeys(name for each in stored for name in each))
    return names, np.array([[each.get(name, 0.0) for name in names] for each in stored])


def _learned_weights(
    table: ResultTable, dataset: str
) -> Iterator[tuple[str, list[str], FloatArray, dict[str, str]]]:
    """Yield the methods that learned weights, the names, the weights and the sources of kernels."""
    for method, records in _finished(table, dataset).items():
        names, rows = _rows([record.result.weights for record in records if record.result.weights])
        if rows.size == 0 or np.ptp(rows) <= 1e-12:
            continue  # one kernel, or equal weights: nothing was learned
        sources: dict[str, str] = {}
        for record in records:
            sources |= record.result.details.get("sources") or {}
        yield method, names, rows, sources


def _figure_of_bars(names: Sequence[str], n_bars: int) -> Any:
    """Return axes as high as so many bars need, those with these names among them."""
    n_lines = max(wrap(name).count("\n") + 1 for name in names)
    [ax] = new_figure(0.8 + (0.14 + 0.17 * n_lines) * n_bars)
    return ax


def _largest(names: Sequence[str], rows: FloatArray, form: str = ".2f") -> str:
    """Say which three have the largest mean."""
    means = rows.mean(axis=0)
    order = np.argsort(-means, kind="stable")[:3]
    return f"largest: {join([f'{names[i]} {means[i]:{form}}' for i in order if means[i]])}"


def _considered(records: Sequence[Record]) -> list[list[Candidate]]:
    """Return the candidates of every division that stored any."""
    stored = [record.result.details.get("considered") for record in records]
    return [[_candidate(entry) for entry in found] for found in stored if found]


def _candidate(entry: Sequence[Any]) -> Candidate:
    """Return what was stored of a candidate; its weights were not, and older records say less."""
    name, error, pull, regularization, *rest = entry
    return Candidate(name, np.zeros(0), regularization, error, pull, *rest)


def _drawn_candidates(
    method: str, dataset: str, considered: Sequence[Sequence[Candidate]], by_folds: bool
) -> Drawing:
    """Draw the means of candidates that were judged in the same way in some divisions."""
    n, chosen = len(considered), Counter(_line(found[0]) for found in considered)
    by_line: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in (candidate for found in considered for candidate in found):
        by_line[_line(candidate)].append(candidate)
    means = {line: _mean_candidate(found) for line, found in by_line.items()}
    order = sorted(means, key=lambda line: (-chosen[line], means[line].score))
    [ax] = new_figure(1.2 + 0.5 * len(order))
    CandidatesDisplay([means[line] for line in order]).plot(ax)
    labels = [f"{wrap(line)}\nchosen in {chosen[line]} of {n}" for line in order]
    ax.set_yticks(range(len(labels)), labels)
    scores = [f"{line} {means[line].score:.3f}, chosen {chosen[line]} times" for line in order]
    what = "the log-loss of left-out rows" if by_folds else "leave-one-out error and pull"
    alt = f"Bars of {what} of what {method} considered on {dataset}: {join(scores)}."
    return Drawing(ax.figure, method, alt, _BY_FOLDS if by_folds else _BY_LEAVING_OUT)


def _line(candidate: Candidate) -> str:
    """Return the line of a candidate in a figure of several divisions.

    Weights are learned on columns scaled as is best in a division. Apart for each scaling, they
    would be means over other divisions, which do not compare.
    """
    if candidate.accuracy is not None and candidate.name == "weights":
        return "learned weights, columns scaled as is best"
    return candidate_label(candidate)


def _mean_candidate(found: Sequence[Candidate]) -> Candidate:
    """Return the mean of one candidate over divisions."""
    parts = [(each.regularization, each.error, each.pull) for each in found]
    lam, error, pull = np.mean(parts, axis=0).tolist()
    accuracies = [each.accuracy for each in found if each.accuracy is not None]
    accuracy = float(np.mean(accuracies)) if accuracies else None
    first = found[0]
    return Candidate(first.name, np.zeros(0), lam, error, pull, first.strength, accuracy)


def _chosen(records: Sequence[Record]) -> str:
    """Return the middle one of the chosen λ, in brackets."""
    found = sorted(r.result.regularization for r in records if r.result.regularization)
    return f" (chosen λ {format_number(found[len(found) // 2])})" if found else ""
