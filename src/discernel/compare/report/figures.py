"""The figures of a report, drawn from records; figures without data are omitted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discernel.compare.report.words import BASELINES
from discernel.compare.roc import MeanCurve, mean_roc
from discernel.compare.store import Record
from discernel.compare.tables import Entry, ResultTable
from discernel.displays import (
    DiscriminantEmbeddingDisplay,
    LearningPathDisplay,
    RegularizationPathDisplay,
)
from discernel.displays.common import (
    LINE_STYLES,
    MARKERS,
    class_colors,
    wrap,
)
from discernel.learn import Progress
from discernel.show.svg import new_figure
from discernel.show.words import format_number, join, seconds

#: Largest number of rows in a scatter plot; each is an element of the page.
_MOST_ROWS = 300


@dataclass(frozen=True)
class Drawing:
    """A figure with its title, a description for screen readers, and a caption."""

    figure: Any
    title: str
    alt: str
    caption: str = ""


# ---- learned kernels ----------------------------------------------------------------------------


def draw_embeddings(table: ResultTable, dataset: str) -> Iterator[Drawing]:
    """Draw the discriminant coordinates of each method, from the first split that stored them."""
    for entry, record in _with_detail(table, dataset, "embedding"):
        embedding = record.result.details["embedding"]
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
        ax.locator_params(axis="x", nbins=6)
        _place_legend_below(ax)
        alt = (
            f"Scatter plot of the rows of {dataset} in the discriminant coordinates of "
            f"{entry.method}, by class: {join(list(map(str, sorted(set(labels)))))}."
        )
        part = "" if step == 1 else f" One row in {step} is drawn."
        caption = f"Split {record.cell.repetition + 1}.{part}"
        yield Drawing(ax.figure, f"{entry.method} on {dataset}", alt, caption)


# ---- learning --------------------------------------------------------------------------


def draw_convergence(table: ResultTable, dataset: str) -> Iterator[Drawing]:
    """Draw objective and gap of every iterative method, for its first split."""
    for entry, record in _with_detail(table, dataset, "history", 2):
        history = [
            Progress(iteration, objective, gap, 0, regularization, stage)
            for iteration, objective, gap, stage, regularization in record.result.details["history"]
        ]
        has_gap = all(progress.gap is not None for progress in history)
        axes = new_figure(3.8 if has_gap else 2.6, 2 if has_gap else 1)
        tol = record.cell.method.options.get("tol")
        chosen = record.result.regularization
        LearningPathDisplay(history, tol=tol, regularization=chosen).plot(axes)
        axes[0].set_xlabel("" if has_gap else "iteration")
        _place_legend_below(axes[0])
        iterated = [r for r in entry.successful if len(r.result.details.get("history") or ()) > 1]
        gaps = [g for r in iterated if (g := r.result.gap) is not None and math.isfinite(g)]
        worst = f"; largest final gap of all splits: {format_number(max(gaps))}" if gaps else ""
        alt = (
            f"Lines of the objective{' and the certified gap' if has_gap else ''} of "
            f"{entry.method} on {dataset} against the iteration; {len(history)} points{worst}."
        )
        caption = f"Split {record.cell.repetition + 1} of {len(entry.successful)}{worst}."
        yield Drawing(axes[0].figure, f"{entry.method} on {dataset}", alt, caption)


def draw_errors_by_regularization(table: ResultTable, dataset: str) -> Iterator[Drawing]:
    """Draw the leave-one-out error against λ, one line per method.

    Lines are means over splits, at the values of λ that all splits tried.
    """
    [ax], described = new_figure(3.2), []
    for entry in table.of_dataset(dataset):
        stored = (record.result.details.get("leave_one_out") for record in entry.successful)
        paths: list[dict[float, float]] = [dict(path) for path in stored if path]
        tried = sorted(set.intersection(*map(set, paths)), reverse=True) if paths else []
        if len(tried) < 2:
            continue
        errors = np.mean([[path[lam] for lam in tried] for path in paths], axis=0)
        look = _style(table, entry.method)
        RegularizationPathDisplay(tried, errors).plot(ax, label=wrap(entry.method), **look)
        chosen = sorted(
            r.result.regularization for r in entry.successful if r.result.regularization
        )
        median = f" (chosen λ {format_number(chosen[len(chosen) // 2])})" if chosen else ""
        described.append(f"{entry.method} from {errors.min():.3f} to {errors.max():.3f}{median}")
    if described:
        _place_legend_below(ax)
        alt = f"Lines of the mean leave-one-out error on {dataset} against λ: {join(described)}."
        yield Drawing(ax.figure, dataset, alt)


def _with_detail(
    table: ResultTable, dataset: str, name: str, least: int = 1
) -> Iterator[tuple[Entry, Record]]:
    """Yield each entry whose records have a detail of some length, with the first such record."""
    for entry in table.of_dataset(dataset):
        found = (r for r in entry.successful if len(r.result.details.get(name) or ()) >= least)
        if record := next(found, None):
            yield entry, record


# ---- results -----------------------------------------------------------------------------


def draw_roc(table: ResultTable, dataset: str) -> Iterator[Drawing]:
    """Draw mean ROC curves, one line per method, with bands of one standard deviation."""
    curves = {
        entry.method: found
        for entry in table.of_dataset(dataset)
        if entry.method not in BASELINES and (found := mean_roc(entry.successful)) is not None
    }
    if not curves:
        return
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
    alt = f"ROC curves on {dataset}, averaged over splits; area under each: {join(described)}."
    yield Drawing(ax.figure, dataset, alt, caption)


def draw_time(table: ResultTable, dataset: str) -> Iterator[Drawing]:
    """Draw the metric against the time of a fit, one point per method."""
    times = [(entry, entry.mean_time("seconds_fit")) for entry in table.of_dataset(dataset)]
    drawn = [(entry, time) for entry, time in times if time > 0 and entry.interval]
    guess = [entry for entry, _ in drawn if entry.method in BASELINES]
    if len(drawn) - len(guess) <= 1:
        guess = []
    else:  # it is far from all others and would compress the axis
        drawn = [(entry, time) for entry, time in drawn if entry not in guess]
    if len(drawn) < 2:
        return
    [ax], described, metric = new_figure(3.6), [], table.metric
    for entry, time in drawn:
        assert entry.interval is not None
        look = {**_style(table, entry.method), "linestyle": "", "markersize": 7.0}
        ends = np.array([[entry.mean - entry.interval.low], [entry.interval.high - entry.mean]])
        reach = None if np.isnan(ends).any() else metric.unit * np.maximum(ends, 0.0)
        place = (time, metric.unit * entry.mean)
        ax.errorbar(*place, reach, label=wrap(entry.method), capsize=2, **look)
        described.append(f"{entry.method} {metric.show_with_unit(entry.mean)} in {seconds(time)}")
    ax.set(xscale="log", xlabel="seconds of a fit", ylabel=metric.heading)
    ax.margins(x=0.15)
    _place_legend_below(ax)
    alt = f"{metric.label} on {dataset} against the time of a fit: {join(described)}."
    listed = [f"{each.method}, {metric.show_with_unit(each.mean)}" for each in guess]
    caption = f"Not drawn: {join(listed)}." if listed else ""
    yield Drawing(ax.figure, dataset, alt, caption)


# ---- parts ---------------------------------------------------------------------------------------


def _style(table: ResultTable, method: str) -> dict[str, Any]:
    """Return colour, marker and line style of a method, the same in all figures."""
    i = table.methods.index(method)
    return {
        "color": class_colors(i + 1)[i],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": LINE_STYLES[i % len(LINE_STYLES)],
        "markersize": 4.0,
    }


def _zoom(ax: Any, curves: Sequence[MeanCurve]) -> str:
    """Restrict the axes to the part where ROC curves differ, if it is small; return a caption."""
    lowest, rates = np.min([curve.true for curve in curves], axis=0), curves[0].false
    right = min(1.0, max(0.1, 2.0 * float(rates[np.argmax(lowest >= 0.99)])))
    if right > 0.5:
        return ""
    ax.set(xlim=(0.0, right), ylim=(max(0.0, float(lowest[1]) - 0.1), 1.005))
    return f"Shown up to a false positive rate of {right:.2g}; beyond it, all curves are near 1."


def _place_legend_below(ax: Any, n_columns: int = 3) -> None:
    """Replace the legends of all axes by one below the figure, where it covers nothing."""
    unique: dict[str, Any] = {}
    for panel in ax.figure.axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            unique.setdefault(label, handle)
        if panel.get_legend() is not None:
            panel.get_legend().remove()
    if unique:
        look = {"ncols": n_columns, "frameon": False, "fontsize": 9.5}
        ax.figure.legend(list(unique.values()), list(unique), loc="outside lower center", **look)
