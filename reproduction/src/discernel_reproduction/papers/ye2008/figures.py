"""Figures 1, 3 and 4 of Ye, Ji and Chen (2008), and the times of its Table 16 as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discernel.compare.plan import Plan
from discernel.compare.store import Record
from discernel_reproduction.papers.common import accuracy, by_place, seconds
from discernel_reproduction.papers.ye2008 import setup as ye
from discernel_reproduction.papers.ye2008.setup import TableData
from discernel_reproduction.published import published
from discernel_reproduction.reproduce import Reproduction

_LAMBDAS = tuple(float(f"{value:.6g}") for value in np.logspace(-10.0, 2.0, 30))
_INK, _GREY, _BLUE, _ORANGE = "#1f2933", "#8a94a0", "#2f6db3", "#d9822b"


# ---- Figure 1 ------------------------------------------------------------------------------------

_TIMED = (
    ye.QCQP,
    ye.QCQP_JOINT,
    ye.SILP,
    ye.SILP_JOINT,
    ye.RKDA_CV,
    ye.SVM_CV,
    ye.EXACT,
    ye.EXACT_JOINT,
)


def _label(name: str) -> str:
    return name.replace("exact, λ given", "Newton_θ").replace("exact, λ learnt", "Newton_θ,λ")


def _times(records: Sequence[Record]) -> Any:
    """Draw the seconds of each method on the four data sets of two classes."""
    from matplotlib.figure import Figure

    found = by_place(records)
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots(1, len(ye.BINARY), sharex=True, sharey=True)
    places = np.arange(len(_TIMED))[::-1]
    for ax, task in zip(axes, ye.BINARY, strict=True):
        for place, method in zip(places, _TIMED, strict=True):
            spent = [seconds(record) for record in found.get((task.data.name, method.name), [])]
            if spent:
                ours = method in (ye.EXACT, ye.EXACT_JOINT)
                middle = float(np.median(spent))
                ax.plot([0.001, middle], [place, place], color=_GREY, linewidth=0.8)
                ax.plot(middle, place, "o", color=_ORANGE if ours else _BLUE)
                ax.annotate(f"{middle:.2g}", (middle, place), (6, -3), textcoords="offset points")
        ax.set(title=f"{task.label}, {task.n_train} rows", xscale="log", xlim=(0.001, 2000))
        _plain(ax)
    axes[0].set_yticks(places, [_label(method.name) for method in _TIMED])
    figure.supxlabel("seconds per fit, median; Newton, in orange, is not in the paper", fontsize=9)
    return figure


def _plain(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(colors=_INK, labelsize=9)
    ax.title.set_fontsize(10)


# ---- Figures 3 and 4 -----------------------------------------------------------------------------


def _at_lambda(value: float) -> Any:
    return ye.rkda(f"λ = {value:.2e}", "newton", value)


def _lambda_plan(task: TableData) -> Plan:
    methods = tuple(_at_lambda(value) for value in _LAMBDAS)
    return Plan(f"Ye 2008, λ on {task.label}", (task.data,), methods, task.splits())


def _over_lambda(tasks: Sequence[TableData]) -> Any:
    """Return a function that draws accuracy against λ, one panel per data set."""

    def draw(records: Sequence[Record]) -> Any:
        from matplotlib.figure import Figure

        found = by_place(records)
        figure = Figure(figsize=(9, 3.4), layout="constrained")
        for ax, task in zip(figure.subplots(1, len(tasks)), tasks, strict=True):
            runs = [found.get((task.data.name, _at_lambda(v).name), []) for v in _LAMBDAS]
            _lambda_panel(ax, task, runs)
        return figure

    return draw


def _lambda_panel(ax: Any, task: TableData, runs: Sequence[Sequence[Record]]) -> None:
    there = [i for i, run in enumerate(runs) if run]
    lambdas = np.array(_LAMBDAS)[there]
    values = [[accuracy(record) for record in runs[i]] for i in there]
    means = np.array([np.mean(run) for run in values])
    errors = np.array([np.std(run) / np.sqrt(max(1, len(run) - 1)) for run in values])
    ax.fill_between(lambdas, means - errors, means + errors, color=_BLUE, alpha=0.2, linewidth=0)
    ax.plot(lambdas, means, "o-", color=_BLUE, markersize=3, linewidth=1.2, label="ours ± s.e.")
    table = published("ye2008")[f"ye2008-table{task.table}"]
    for row, mark, size in (("SDP_θ", "s", 9), ("QCQP_θ", "x", 6)):
        printed, style = table.cell(row, "TSA").value, {"markersize": size, "fillstyle": "none"}
        ax.plot(5e-4, printed, mark, color=_ORANGE, label=f"{row}, printed", **style)
    ax.set(title=task.label, xscale="log", xlabel="λ", ylabel="test accuracy, %")
    ax.legend(frameon=False, fontsize=8, loc="lower left")
    _plain(ax)


# ---- Table 16 ------------------------------------------------------------------------------------


def time_ratios(records: Sequence[Record]) -> Any:
    """Draw printed seconds over ours, one row per method, one mark per data set."""
    from matplotlib.figure import Figure

    table, found = published("ye2008")["ye2008-table16"], by_place(records)
    rows = list(dict.fromkeys(cell.row for cell in table.cells))
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    ax = figure.subplots()
    for place, row in enumerate(reversed(rows)):
        for task in ye.MULTI:
            ours = found.get((task.data.name, f"{task.label}: {row}"), [])
            if ours:
                ratio = table.cell(row, task.label).value / np.median([seconds(r) for r in ours])
                ax.plot(ratio, place, "o", color=_BLUE, alpha=0.6, markeredgewidth=0)
    ax.axvline(1.0, color=_GREY, linewidth=0.8)
    ax.set_yticks(range(len(rows)), list(reversed(rows)))
    ax.margins(y=0.08)
    ax.set(xscale="log", xlabel="printed seconds / our median seconds; one dot a data set")
    _plain(ax)
    return figure


# ---- reproductions -------------------------------------------------------------------------------

_TIMES_NOTE = (
    "Only the caption of the figure is text: its bars were not read off. The paper leaves SDP out; "
    f"QCQP is run on {ye.FEW} splits, the others on those of Tables 2 to 5."
)
_LAMBDA_NOTES = (
    "The figure plots SDP_θ and QCQP_θ, whose accuracies jump where its solvers failed. They have "
    "one optimum; ours is found by Newton's method and certified, so there is one curve. Printed "
    "accuracies at λ = 5e-4 are those of the tables.",
    "Ours are means of 30 splits; of how many the paper's are is not said.",
)


def _figure1() -> Reproduction:
    plans = []
    for task in ye.BINARY:
        quick = tuple(method for method in _TIMED if method.options.get("solver") != "qcqp")
        slow = tuple(method for method in _TIMED if method not in quick)
        name = f"Ye 2008, {task.label}"
        plans.append(Plan(name, (task.data,), quick, task.splits()))
        plans.append(Plan(f"{name}, QCQP", (task.data,), slow, task.splits(n=ye.FEW)))
    caption = "Computation time of six methods on four data sets of two classes"
    notes = (*ye.OPEN, _TIMES_NOTE)
    return Reproduction("ye2008-figure1", tuple(plans), (), notes, _times, caption)


def _lambda_figure(number: int, tasks: Sequence[TableData], *notes: str) -> Reproduction:
    labels = " and ".join(task.label for task in tasks)
    return Reproduction(
        f"ye2008-figure{number}",
        tuple(_lambda_plan(task) for task in tasks),
        notes=(*ye.OPEN, *_LAMBDA_NOTES, *notes),
        figure=_over_lambda(tasks),
        caption=f"Accuracy for λ from 1e-10 to 100, {labels}",
    )


FIGURES = (
    _figure1(),
    _lambda_figure(3, ye.BINARY[:2]),
    _lambda_figure(
        4,
        (ye.MULTI[3], ye.MULTI[4]),
        "Which two data sets of several classes the figure shows is not in the text; wine(3) and "
        "satimage(3) are ours.",
    ),
)
