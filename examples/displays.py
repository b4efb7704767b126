"""All displays, on two of scikit-learn's data sets.

Run ``pip install '.[app]'`` and ``python examples/displays.py``. Each panel is drawn by one call of
a display with a fitted estimator.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import cross_validate, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from discernel import MultipleKernelDiscriminant, regularization_path
from discernel.displays import (
    CandidatesDisplay,
    DiscriminantEmbeddingDisplay,
    ImportancesDisplay,
    KernelWeightsDisplay,
    LearningPathDisplay,
    RegularizationPathDisplay,
)
from discernel.kernels import RBF, rbf_ladder

STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
}


def learner(kernels="auto", **options) -> Pipeline:
    return make_pipeline(StandardScaler(), MultipleKernelDiscriminant(kernels, **options))


def draw_cancer(axes) -> None:
    """Two classes; one kernel per measurement, then three widths for each kind of them."""
    data = load_breast_cancer()
    X_train, X_test, y_train, y_test = train_test_split(
        data.data, data.target_names[data.target], stratify=data.target, random_state=0
    )
    kernels = {name: RBF().on([i]) for i, name in enumerate(data.feature_names)}
    clf = learner(kernels, criterion="rkda").fit(X_train, y_train)
    KernelWeightsDisplay.from_estimator(clf, ax=axes[0])
    axes[0].set_title("Weights of 30 kernels")
    DiscriminantEmbeddingDisplay.from_estimator(
        clf, X_train, y_train, X_held_out=X_test, y_held_out=y_test, ax=axes[1]
    )
    axes[1].set_title("Two classes, one coordinate")

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    ImportancesDisplay.from_estimator(learner().fit(X, y), n_columns=10, ax=axes[2])
    axes[2].set_title("Which columns matter")
    kinds = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    sources = [
        RBF(width=f"{factor}*median").on(columns, kind)
        for kind, columns in kinds.items()
        for factor in (0.5, 1, 2)
    ]
    folds = cross_validate(learner(sources, criterion="rkda"), X, y, return_estimator=True)
    KernelWeightsDisplay.from_estimators(folds["estimator"], by="source", ax=axes[3])
    axes[3].set_title("Weights by source over five folds")


def draw_wine(axes) -> None:
    """Three classes; Gaussian kernels of all widths."""
    X, y = load_wine(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    folds = cross_validate(learner(criterion="rkda"), X, y, cv=10, return_estimator=True)
    KernelWeightsDisplay.from_estimators(folds["estimator"], sort=False, ax=axes[0])
    axes[0].set_title("Weights over ten folds")

    clf = learner(criterion="rkda").fit(X_train, y_train)
    DiscriminantEmbeddingDisplay.from_estimator(
        clf, X_train, y_train, X_held_out=X_test, y_held_out=y_test, ax=axes[1]
    )
    axes[1].set_title("Three classes, two coordinates")
    CandidatesDisplay.from_estimator(learner().fit(X_train, y_train), ax=axes[2])
    axes[2].set_title('What criterion="auto" chose from')
    LearningPathDisplay.from_estimator(clf, ax=axes[3])
    axes[3].set_title("Certified gap along the path of λ")

    Z, kernels = StandardScaler().fit_transform(X_train), rbf_ladder(6, center=8.0)
    path = regularization_path([kernel(Z) for kernel in kernels], y_train)
    names = [kernel.name for kernel in kernels]
    RegularizationPathDisplay.from_path(path, kernel_names=names, ax=axes[4:6])
    axes[4].set_title("Weights against λ")
    axes[5].set_title("Leave-one-out error against λ")


def draw(target: Path) -> None:
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(5, 2, figsize=(11, 20), layout="constrained")
        figure.get_layout_engine().set(h_pad=0.12, w_pad=0.12)
        draw_cancer(axes[:2].ravel())
        draw_wine(axes[2:].ravel())
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=100)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/displays.png")
    draw(target)
    print(f"written: {target}")
