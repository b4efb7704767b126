"""The picture of the README: learnt weights, the classes they separate, and the certificate."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discernel import MultipleKernelDiscriminant
from discernel.kernels import RBF, Linear

INK, COLORS = "#333344", ["#b5382a", "#e0a030", "#2f6f9f"]
#: Three groups of columns of the wine data, as three sources would be.
SOURCES = {
    "acids and ash": ["malic_acid", "ash", "alcalinity_of_ash", "magnesium"],
    "phenols": [
        "total_phenols",
        "flavanoids",
        "nonflavanoid_phenols",
        "proanthocyanins",
        "od280/od315_of_diluted_wines",
    ],
    "look and strength": ["alcohol", "color_intensity", "hue", "proline"],
}


def fit():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    kernels = {}
    for source, columns in SOURCES.items():
        kernels[f"{source}, Gaussian"] = RBF(width="median").on(columns)
        kernels[f"{source}, linear"] = Linear().on(columns)
    clf = make_pipeline(StandardScaler(), MultipleKernelDiscriminant(kernels, criterion="rkda"))
    clf.set_output(transform="pandas").fit(X_train, y_train)
    return clf, X_test, y_test


def draw(clf, X_test, y_test, path: Path) -> None:
    learner = clf[-1]
    plt.rcParams.update({"font.size": 10, "text.color": INK, "axes.labelcolor": INK})
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(12, 3.9), width_ratios=[1.15, 1.0, 0.8], layout="constrained"
    )
    weights = learner.kernel_weights_[::-1]
    left.barh(learner.kernel_names_[::-1], weights, color=COLORS[2], height=0.65)
    for position, weight in enumerate(weights):
        left.text(weight + 0.01, position, f"{weight:.2f}", va="center")
    left.set(
        title="Which source, which kernel", xlabel="learnt weight", xlim=(0, weights.max() * 1.18)
    )
    Z = np.asarray(clf.transform(X_test))
    for label, color, marker in zip(learner.classes_, COLORS, "osD", strict=True):
        middle.scatter(
            *Z[y_test == label].T, c=color, marker=marker, s=34, label=f"class {label}", ec="white"
        )
    middle.set(
        title=f"Held-out rows, accuracy {clf.score(X_test, y_test):.2f}",
        xlabel="first discriminant",
        ylabel="second discriminant",
    )
    middle.legend(frameon=False, loc="best")
    steps = [
        p for p in learner.learned_kernel_.history if p.regularization == learner.regularization_
    ]
    gaps = [max(step.gap, 1e-16) for step in steps]
    right.semilogy(range(len(gaps)), gaps, "o-", color=COLORS[0])
    right.axhline(learner.tol, color=INK, ls=":", lw=1)
    right.text(0.02, learner.tol * 1.6, "asked for", va="bottom")
    right.set(
        title="Certified gap",
        xlabel="Newton step",
        ylabel="relative duality gap",
        xticks=range(len(gaps)),
    )
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set_fontweight("bold")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/overview.png")
    target.parent.mkdir(parents=True, exist_ok=True)
    draw(*fit(), target)
    print(f"written: {target}")
