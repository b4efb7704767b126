"""The figure of the README: importances, ranks and calibration; and its form for narrow screens.

Run ``pip install '.[app]'`` and ``python examples/overview.py``, from a clone. Importances and
calibration are those of the simulated patients of ``discernel demo``, with cross-validated
predictions. The ranks are read from the record of the benchmark.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from discernel import MultipleKernelDiscriminant
from discernel.compare.toys import clinic
from discernel.displays import ImportancesDisplay
from discernel.tables import TableEncoder

RECORD = Path(__file__).parent.parent / "benchmarks/records/default_against_baselines.json"
INK, OURS, THEIRS = "#333344", "#b5382a", "#7a7a8c"
NAMES = {
    "auto": "discernel",
    "average": "average of kernels",
    "single": "best single kernel",
    "svc grid": "SVC grid",
    "easymkl": "EasyMKL",
    "forest": "random forest",
    "boosting": "gradient boosting",
    "logistic": "logistic regression",
    "xrfm": "xRFM",
}


def draw_importances(axes) -> None:
    patients = clinic()
    clf = MultipleKernelDiscriminant().fit(patients.X, patients.y)
    ImportancesDisplay.from_estimator(clf, ax=axes, color=OURS)
    axes.set(title="Which columns matter\n(clinic)", xlabel="importance ± standard error")


def draw_ranks(axes) -> None:
    results = json.loads(RECORD.read_text())["results"]
    ranks = results["mean_rank_log_loss"]
    order = sorted(ranks, key=lambda name: -ranks[name])
    for place, name in enumerate(order):
        color = OURS if name == "auto" else THEIRS
        axes.plot([results["mean_rank"][name]], [place], "o", ms=8, color=color)
        axes.plot([ranks[name]], [place], "D", ms=8, color=color, mfc="white", mew=1.8)
    axes.set(
        title="How it compares\n(mean rank of 9 methods, 26 tasks)",
        yticks=range(len(order)),
        yticklabels=[NAMES[name] for name in order],
        xlim=(1, 9),
        xlabel="better  ←  mean rank  →  worse",
    )
    for label in axes.get_yticklabels():
        if label.get_text() == "discernel":
            label.set(color=OURS, fontweight="bold")
    for marker, face, words in (("o", THEIRS, "accuracy"), ("D", "white", "log-loss")):
        axes.plot([], [], marker, color=THEIRS, mfc=face, mew=1.8, label=words)
    axes.legend(frameon=False, loc="upper right")
    axes.grid(axis="x", alpha=0.3)


def draw_calibration(axes) -> None:
    patients, folds = clinic(), StratifiedKFold(5, shuffle=True, random_state=0)
    fits = {
        "discernel": (MultipleKernelDiscriminant(), OURS, "o-"),
        "random forest": (
            make_pipeline(TableEncoder(), RandomForestClassifier(500, random_state=0)),
            THEIRS,
            "s--",
        ),
    }
    limits = np.linspace(0.0, 1.0, 8)
    for name, (clf, color, style) in fits.items():
        predicted = cross_val_predict(clf, patients.X, patients.y, cv=folds, method="predict_proba")
        predicted, ill = predicted[:, 0], patients.y == "ill"
        bins = np.digitize(predicted, limits[1:-1])
        shown = [b for b in range(len(limits) - 1) if np.sum(bins == b) >= 15]
        axes.plot(
            [predicted[bins == b].mean() for b in shown],
            [ill[bins == b].mean() for b in shown],
            style,
            color=color,
            label=name,
        )
    axes.plot([0.0, 1.0], [0.0, 1.0], ":", color=INK, lw=1)
    axes.set(
        title="Calibration\n(clinic, held-out rows)",
        xlabel='predicted probability of "ill"',
        ylabel='observed frequency of "ill"',
        xlim=(0.0, 1.02),
        ylim=(0.0, 1.02),
    )
    axes.legend(frameon=False, loc="upper left")


def draw(target: Path, *, narrow: bool = False) -> None:
    plt.rcParams.update({"font.size": 10, "text.color": INK, "axes.labelcolor": INK})
    if narrow:
        figure, panels = plt.subplots(3, 1, figsize=(5.2, 11.4), layout="constrained")
    else:
        figure, panels = plt.subplots(
            1, 3, figsize=(12, 4.1), width_ratios=[1.15, 1.0, 0.95], layout="constrained"
        )
    for axes, draw_panel in zip(
        panels, (draw_importances, draw_ranks, draw_calibration), strict=True
    ):
        draw_panel(axes)
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set_fontweight("bold")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=150)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/overview.png")
    draw(target)
    narrow = target.with_stem(f"{target.stem}_narrow")
    draw(narrow, narrow=True)
    print(f"written: {target} and {narrow}")
