"""Kim, Magnani and Boyd (2006): the kernel with the largest Fisher ratio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discernel.compare.plan import Data, Method, Plan, Splits
from discernel.compare.roc import mean_roc
from discernel.compare.store import Record
from discernel.displays.common import LINE_STYLES, class_colors, make_axes
from discernel_reproduction.papers.common import accuracy, auc, by_place, gaussians
from discernel_reproduction.reproduce import Link, Reproduction

_ROWS = {
    "Sonar (208, 60)": "sonar",
    "Ionosphere (351, 34)": "ionosphere",
    "Heart (297, 13)": "heart_cleveland",
    "Pima (768, 8)": "pima",
}
_METHODS = (
    Method(
        "K*", "discriminant", {"kernels": gaussians(), "criterion": "fdr", "regularization": 1e-8}
    ),
    Method("K_cv", "single", {"kernels": gaussians(), "regularizations": [1e-8], "cv": 5}),
)
_SPLITS = Splits(100, 0.7, stratify=False)
_NOTES = (
    "Features are standardised by the training rows; the paper does not say how it scaled them, "
    "and its widths depend on it.",
    "The folds that choose the width of K_cv are five, stratified; the paper does not say how "
    "many. λ is 1e-8 for both, for K_cv in units of a kernel of trace 1.",
    "The threshold is that of Gaussian classes with equal variances, as in linear discriminant "
    "analysis; the paper does not say how it chose its own.",
)
# Each reason is a short name, a colon and what was found.
_REASONS = {
    ("heart_cleveland", "K_cv"): "Unit of λ: Over 20 splits of heart K_cv has 77.3 to 79.0 with "
    "any λ from 1e-10 to 1e-6, 82.8 ± 0.7 with 1e-4 and 83.1 ± 0.7 with λ chosen too. The paper "
    "gives 1e-8, but not for which scale of the kernel. Four scalings of the features and two "
    "thresholds did not come nearer than 79.",
}


def _roc_figure(records: Sequence[Record]) -> Any:
    """Draw the mean ROC curves of both methods on sonar."""
    found = by_place(records)
    (ax,) = make_axes(None)
    for color, style, method in zip(class_colors(2), LINE_STYLES, _METHODS, strict=False):
        ours = found.get(("sonar", method.name), [])
        if (curve := mean_roc(ours)) is not None:
            label = f"{method.name}: area {curve.area:.3f}"
            ax.plot(curve.false, curve.true, style, color=color, label=label)
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
    ax.set(
        xlabel="false positive rate",
        ylabel="true positive rate",
        title="Sonar: ROC curves, mean over splits",
        xlim=(0, 1),
        ylim=(0, 1.01),
        aspect="equal",
    )
    ax.legend(loc="lower right", frameon=False)
    return ax.figure


REPRODUCTIONS: tuple[Reproduction, ...] = (
    Reproduction(
        "kim2006-table1",
        (Plan("kim2006", tuple(Data(name) for name in _ROWS.values()), _METHODS, _SPLITS),),
        tuple(
            Link(
                row,
                method.name,
                data,
                method.name,
                accuracy,
                _REASONS.get((data, method.name), ""),
            )
            for row, data in _ROWS.items()
            for method in _METHODS
        ),
        _NOTES,
    ),
    Reproduction(
        "kim2006-figure1",
        (Plan("kim2006, sonar", (Data("sonar"),), _METHODS, _SPLITS),),
        tuple(
            Link("Sonar (208, 60)", method.name, "sonar", method.name, auc) for method in _METHODS
        ),
        (
            "The curves are averaged over the splits at each false positive rate. The area "
            "under the mean curve is then the mean of the areas; so it is if rates are averaged at "
            "each true positive rate, as the paper may also be read.",
            *_NOTES,
        ),
        _roc_figure,
    ),
)
