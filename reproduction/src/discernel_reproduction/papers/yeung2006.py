"""Yeung, Chang and Dai (2006): a kernel matrix of large class separability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from discernel.compare.plan import Data, Method, Plan, Splits
from discernel.compare.store import Record
from discernel.displays.common import MARKERS, class_colors, pyplot
from discernel_reproduction.papers.common import by_place, percent
from discernel_reproduction.reproduce import Link, Reproduction

_FINALS: dict[str, Any] = {
    "k-NN k=1": {"n_neighbors": 1},
    "k-NN k=3": {"n_neighbors": 3},
    "SVM C=100": {"C": 100.0},
    "SVM C=1000": {"C": 1000.0},
}
#: The rows of the tables: kind and options.
_KERNELS: dict[str, tuple[str, dict[str, Any]]] = {
    "RBF": ("plain", {}),
    "Alignment": ("separability", {"method": "alignment"}),
    "Xiong's": ("conformal", {"rate": 1.0}),
    "Ours": ("separability", {"method": "closed_form", "alpha": 1e4}),
}
_SHARES = {"20%": 0.2, "40%": 0.4}

_NOTES = (
    "All rows are standardised together: all are given. A share of each class, at random, has "
    "labels; accuracy is that on the others. The paper does not say how it scaled its data.",
    "σ² is chosen on the labelled rows: by leave-one-out, as in the paper, but for learned kernels "
    "with machines and for Xiong's by tenfold cross-validation, within which the kernel is learned "
    "anew. For machines this was settled after a look at the first split: with what one nearest "
    "neighbour chose, those of Ours were right on 63 to 97 % of its rows.",
    "The paper says that small eigenvalues may be discarded, not how many. The share of the trace "
    "that is kept is chosen with σ², for Ours and for Alignment, which is then far above its "
    "printed numbers.",
    "The rate of Xiong's ascent is given as 0.01, not in which units. With 0.01 in ours the factor "
    "hardly moves: neighbours on Monks-3 were right as often as with the plain kernel. Ours is 1, "
    "in all tables: over ten splits of the first four, cells of Xiong's are 1.9 points from the "
    "printed numbers in the mean, nearer in each table, and 3.2 with 0.01. The choice was made by "
    "these cells, so they are not judged.",
    "Printed errors are called standard deviations of the mean. Many are far below what ten "
    "splits of so few rows can have; verdicts take them as they are.",
)
#: On top of these, for housing.
_HOUSING = (
    "The paper does not say which three classes it made of the price. Ours are below 15, from 15 "
    "to 25 and above: of nine pairs of limits (thirds, quartiles, equal widths, mean and standard "
    "deviation, round figures) the plain kernel comes nearest to its printed numbers with these, "
    "1.0 points from them in the mean over ten splits; quartiles are 1.4, thirds 6.5. One "
    "neighbour is printed to be better than three by up to 3.6 points, which no classes of the "
    "price have; thirds of the tax rate, the price a feature, have it, and come as near (1.3)."
)
# Each reason is a short name, a colon and what was found.
_OURS = (
    "Yeung's own kernel, not known: Cells that differ are 0.7 to 9 points below print, most of "
    "them on Monks-3, breast cancer and housing, where the plain kernel is not, but for one "
    "neighbour on housing. The paper leaves open how much of the spectrum is kept. Tried with "
    "neighbours over five splits: σ² by tenfold cross-validation instead of leave-one-out "
    "(within 1.8 points of ours on Monks-3 and breast cancer); on Monks-3 with 20 % labelled, "
    "where 88 and 90 % are printed, α of 1, 100 and 10⁶ (80 to 85 %)."
)
_REASONS = {
    "monks3": "Monks-3, not known: Scaling is not printed.",
    "ionosphere": "Ionosphere, not known: Scaling is not printed.",
    "wdbc": "Breast cancer, not known: The paper counts 31 features, the public data have 30. A "
    "feature of noise more, as the identifier would be, costs neighbours 0.1 to 0.3 points.",
    "wine": "Wine, printed errors: That of the cell is 0.27, ours of as many splits 0.42; with "
    "ours for both, the cell would be 0.1 points beyond its margin.",
    "boston_housing": "Classes of the housing price: The paper does not say which these are.",
}
_RATE = "Xiong's is not judged: the rate, whose units are not printed, was chosen by these cells."
_CALIBRATED = (
    "RBF is not judged: the limits of the price were chosen by this row, the only one without a "
    "learned kernel."
)


def _method(row: str, **options: Any) -> Method:
    kind, own = _KERNELS[row]
    return Method(row, kind, {**own, **options})


def _table(number: int, data: Data, rows: Sequence[str]) -> Reproduction:
    plans = tuple(
        Plan(
            f"yeung2006, {data.name}, {labelled}",
            (data,),
            tuple(
                Method(f"{row}, {labelled}", _KERNELS[row][0], _method(row, finals=_FINALS).options)
                for row in rows
            ),
            Splits(10, share),
        )
        for labelled, share in _SHARES.items()
    )
    return Reproduction(
        f"yeung2006-table{number}",
        plans,
        tuple(_links(data.name, rows)),
        (*_NOTES, _HOUSING) if data.name == "boston_housing" else _NOTES,
        errors_of_means=True,
    )


def _links(data: str, rows: Sequence[str]) -> Iterator[Link]:
    for row in rows:
        for labelled in _SHARES:
            for final in _FINALS:
                column, method = f"{labelled}, {final}", f"{row}, {labelled}"
                reason = _OURS if row == "Ours" else _REASONS[data]
                calibrated = (data, row) == ("boston_housing", "RBF")
                judged = not calibrated and row != "Xiong's"
                if not judged:
                    reason = _CALIBRATED if calibrated else _RATE
                yield Link(row, column, data, method, percent(final), reason, judged=judged)


# ---- Figure 1 ------------------------------------------------------------------------------------

_TOY = "five_groups"
_EMBEDDED = ("RBF", "Xiong's", "Ours")


def _toy_figure(records: Sequence[Record]) -> Any:
    """Draw the points, and two kernel principal components by each kernel."""
    found = by_place(records)
    figure, axes = pyplot().subplots(2, 2, figsize=(7.2, 6.6), layout="constrained")
    letters = iter("abcd")
    panels = [("RBF", "rows", "the data")]
    panels += [(row, "embedding", f"kernel PCA, {row}") for row in _EMBEDDED]
    for ax, (row, what, title) in zip(axes.flat, panels, strict=True):
        ax.set_title(f"({next(letters)}) {title}", loc="left", fontsize="medium")
        ax.set(xticks=[], yticks=[])
        for record in found.get((_TOY, row), [])[:1]:
            _scatter(ax, record, what)
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    return figure


def _scatter(ax: Any, record: Record, what: str) -> None:
    details = record.result.details
    points, labels = np.array(details[what]), np.array(details["labels"])
    names = ("above and below", "left and right", "middle")
    known = np.arange(len(labels)) < details["n_labelled"]
    for label, (name, color, marker) in enumerate(
        zip(names, class_colors(3), MARKERS, strict=False)
    ):
        of_class = labels == label
        look = {"color": color, "marker": marker, "linewidth": 0}
        ax.scatter(*points[of_class & ~known].T, s=9, alpha=0.5, label=name, **look)
        look |= {"edgecolor": "black", "linewidth": 0.7}
        ax.scatter(*points[of_class & known].T, s=22, **look)


REPRODUCTIONS: tuple[Reproduction, ...] = (
    _table(1, Data("monks3", "none"), tuple(_KERNELS)),
    _table(2, Data("ionosphere", "none"), tuple(_KERNELS)),
    _table(3, Data("wdbc", "none"), tuple(_KERNELS)),
    _table(4, Data("wine", "none"), _EMBEDDED),
    _table(5, Data("boston_housing", "none", options={"cuts": [15.0, 25.0]}), _EMBEDDED),
    Reproduction(
        "yeung2006-figure1",
        (
            Plan(
                "yeung2006, toy",
                (Data(_TOY, "none"),),
                tuple(
                    _method(row, embed=True, finals={"k-NN k=1": {"n_neighbors": 1}})
                    for row in _EMBEDDED
                ),
                Splits(1, 0.1),
            ),
        ),
        notes=(
            "The paper prints no numbers and describes the points in words: 200 above and below, "
            "200 left and right, 100 in the middle; a tenth of each class has labels, here "
            "outlined. Distances and widths of the groups are ours.",
        ),
        figure=_toy_figure,
        caption="Three classes in five groups, embedded by three kernels",
    ),
    Reproduction(
        "yeung2006-figure3",
        notes=(
            "The FERET faces are not public: nothing to run. Public data of the kind are olivetti "
            "and usps; the classifier is KDDA.",
        ),
        caption="Recognition rates on faces of the FERET database",
    ),
)
