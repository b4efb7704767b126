"""The picture of the README: the combination learned, what it separates, and the certificate.

Run ``pip install '.[app]'`` and ``python examples/overview.py``. Rows and fits are those of the
example in the README.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from discernel import MultipleKernelDiscriminant

INK, CLASS_COLORS = "#333344", ["#b5382a", "#e0a030", "#2f6f9f"]
FIT_COLORS = {"auto": "#4a4a5e", "rkda": "#3f9b76"}
#: The candidates that are made where none are given: widths in median distances.
WIDTHS = ["1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8", "16", "linear"]


def draw_weights(axes, fits: dict[str, Pipeline]) -> None:
    places = np.arange(len(WIDTHS))
    for shift, (criterion, clf) in zip((-0.2, 0.2), fits.items(), strict=True):
        weights, color = clf[-1].kernel_weights_, FIT_COLORS[criterion]
        axes.bar(places + shift, weights, 0.4, color=color, label=f'criterion="{criterion}"')
    axes.set_xticks(places, WIDTHS)
    axes.set(
        title="Learned weights of ten candidates",
        xlabel="Gaussian width, in median distances",
        ylabel="weight",
    )
    axes.legend(frameon=False, loc="upper right")


def draw_plane(axes, clf: Pipeline, X_test, y_test) -> None:
    Z = clf.transform(X_test)
    for label, color, marker in zip(clf.classes_, CLASS_COLORS, "osD", strict=True):
        axes.scatter(
            *Z[y_test == label].T, c=color, marker=marker, s=34, label=f"class {label}", ec="white"
        )
    axes.set(
        title=f"{len(y_test)} held-out rows, accuracy {clf.score(X_test, y_test):.2f}",
        xlabel="first discriminant",
        ylabel="second discriminant",
    )
    axes.legend(frameon=False, loc="best")


def draw_certificate(axes, clf: Pipeline) -> None:
    learner = clf[-1]
    gaps = [
        max(step.gap, 1e-16)
        for step in learner.learned_kernel_.history
        if step.regularization == learner.regularization_
    ]
    axes.semilogy(range(len(gaps)), gaps, "o-", color=FIT_COLORS["rkda"])
    axes.axhline(learner.tol, color=INK, ls=":", lw=1)
    axes.text(0.02, learner.tol * 0.6, "asked for", va="top")
    axes.set(
        title='Certified gap of "rkda"',
        xlabel="Newton step",
        ylabel="relative duality gap",
        xticks=range(len(gaps)),
    )


def draw(target: Path) -> None:
    X, y = load_wine(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    fits = {
        criterion: make_pipeline(
            StandardScaler(), MultipleKernelDiscriminant(criterion=criterion)
        ).fit(X_train, y_train)
        for criterion in ("auto", "rkda")
    }
    plt.rcParams.update({"font.size": 10, "text.color": INK, "axes.labelcolor": INK})
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(12, 3.9), width_ratios=[1.3, 1.0, 0.8], layout="constrained"
    )
    draw_weights(left, fits)
    draw_plane(middle, fits["auto"], X_test, y_test)
    draw_certificate(right, fits["rkda"])
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set_fontweight("bold")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=150)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/overview.png")
    draw(target)
    print(f"written: {target}")
