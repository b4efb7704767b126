"""The picture of the README: which columns matter, what is separated, and the certificate.

Run ``pip install '.[app]'`` and ``python examples/overview.py``. Rows and fits are those of the
example in the README.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from discernel import MultipleKernelDiscriminant
from discernel.displays import ImportancesDisplay

INK, CLASS_COLORS = "#333344", ["#b5382a", "#e0a030", "#2f6f9f"]
FIT_COLORS = {"auto": "#4a4a5e", "rkda": "#3f9b76"}


def draw_importances(axes, clf: MultipleKernelDiscriminant) -> None:
    ImportancesDisplay.from_estimator(clf, ax=axes, n_columns=8, color=FIT_COLORS["auto"])
    axes.set(title="Which columns matter")


def draw_plane(axes, clf: MultipleKernelDiscriminant, X_test, y_test) -> None:
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


def draw_certificate(axes, learner: MultipleKernelDiscriminant) -> None:
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
    X, y = load_wine(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    fits = {
        criterion: MultipleKernelDiscriminant(criterion=criterion).fit(X_train, y_train)
        for criterion in ("auto", "rkda")
    }
    plt.rcParams.update({"font.size": 10, "text.color": INK, "axes.labelcolor": INK})
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(12, 3.9), width_ratios=[1.3, 1.0, 0.8], layout="constrained"
    )
    draw_importances(left, fits["auto"])
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
