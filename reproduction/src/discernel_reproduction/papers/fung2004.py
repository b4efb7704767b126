"""Fung, Dundar, Bi and Rao (2004): A-KFD against a discriminant with a tuned kernel."""

from __future__ import annotations

from collections.abc import Iterator

from discernel.compare.plan import Data, Method, Plan, Splits
from discernel_reproduction.papers.common import accuracy, p_value, seconds
from discernel_reproduction.reproduce import Link, Reproduction

#: The rows of both tables.
_ROWS = {
    "Ionosphere (351 × 34)": "ionosphere",
    "Housing (506 × 13)": "boston_housing_binary",
    "Heart (297 × 13)": "heart_cleveland",
    "Pima (768 × 8)": "pima",
    "BUPA (345 × 6)": "bupa",
}
_KERNELS = [["Linear", {}], *(["RBF", {"gamma": mu}] for mu in (0.001, 0.01, 0.1, 1.0))]
_AKFD, _KFD = "A-KFD", "KFD + kernel tuning"

_PLAN = Plan(
    "fung2004",
    tuple(Data(name, "symmetric") for name in _ROWS.values()),
    (Method(_AKFD, "akfd", {"kernels": _KERNELS}), Method(_KFD, "kfd_grid", {"kernels": _KERNELS})),
    Splits(10, 0.7, stratify=False),
)

# Each reason is a short name, a colon and what was found.
_REASONS = {
    "boston_housing_binary": "Classes of the housing price: The paper does not say how the price "
    "was made two classes; ours are above and up to 21. The tuned single kernel is below its own "
    "number too: 86.1 ± 0.6 over 30 further splits, and 85.4 to 87.9 over six splits with "
    "six other limits from 17 to 30, mean and median among them.",
    "bupa": "BUPA, not known: With six features the class must be the selector, as here. The tuned "
    "single kernel is below its own number too: 68.3 ± 0.7 over 30 further splits. Standardised "
    "features gave 66.0, those without the sixth 66.8.",
}
_NOTES = (
    "Features are scaled to [−1, 1] by the training rows; the paper scales whole data sets.",
    "The paper does not say where A-KFD stops, but that it took 3 to 4 iterations. Ours stops at "
    "a relative change of the objective of 1e-2: after 3 to 9 in the median, on housing after 34. "
    "At 1e-6, after 52 to 300 and more, the five accuracies are 1.5 points lower to 0.3 higher.",
    "KFD + kernel tuning is Eq. (14) with one kernel; kernel and ν by the same ten folds. "
    "Splits are not stratified, folds are.",
)


def _links(value_of: str) -> Iterator[Link]:
    for row, data in _ROWS.items():
        reason = _REASONS.get(data, "")
        for method in (_AKFD, _KFD):
            if value_of == "accuracy":
                yield Link(row, method, data, method, accuracy, reason)
            else:
                yield Link(row, method, data, method, seconds, judged=False)
        if value_of == "accuracy":
            yield Link(row, "p-value", data, _AKFD, judged=False, pooled=p_value(_AKFD, _KFD))


REPRODUCTIONS: tuple[Reproduction, ...] = (
    Reproduction("fung2004-table1", (_PLAN,), tuple(_links("accuracy")), _NOTES),
    Reproduction(
        "fung2004-table2",
        (_PLAN,),
        tuple(_links("seconds")),
        (
            "Seconds of one core today against those of a machine of 2004. Our tuned KFD takes one "
            "factorisation a kernel for all ν, which the paper's did not: the order of the two "
            "methods is therefore the other way round.",
            *_NOTES,
        ),
    ),
    Reproduction(
        "fung2004-section5.2",
        notes=(
            "The colon CAD data are private: nothing to run. Public data of the kind are wdbc and "
            "heart_cleveland, the latter in Table 1.",
        ),
    ),
)
