"""The protocol of SimpleMKL: hundreds of kernels, on all and on each of the variables.

A. Rakotomamonjy, F. Bach, S. Canu, Y. Grandvalet, *SimpleMKL*, Journal of Machine Learning Research
9, 2008. The paper is not in the folder of papers: its accuracies and the details of its kernels are
recalled, not checked, so they are here and not among the printed numbers of
`discernel_reproduction.published`, and nothing is judged by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discernel.compare.plan import Data, Method, Plan, Splits
from discernel.compare.store import Record
from discernel_reproduction.papers.common import accuracy, by_place

#: σ of exp(−d²/2σ²), and degrees of (1 + ⟨x, z⟩)^q.
SIGMAS = (0.5, 1.0, 2.0, 5.0, 7.0, 10.0, 12.0, 15.0, 17.0, 20.0)
DEGREES = (1, 2, 3)
#: Data sets, and the accuracies in percent of SimpleMKL: recalled, not checked.
RECALLED = {"bupa": 65.9, "pima": 76.5, "ionosphere": 91.5, "sonar": 80.6}
#: A kernel counts as chosen if its weight is at least this share of the largest.
CHOSEN = 1e-3

_KERNELS: dict[str, Any] = {
    "all_and_each": [
        *(["RBF", {"width": float(f"{np.sqrt(2.0) * sigma:.12g}")}] for sigma in SIGMAS),
        *(["Polynomial", {"degree": degree}] for degree in DEGREES),
    ]
}
_METHODS = (
    Method("rkda", "timed", {"kernels": _KERNELS, "criterion": "rkda"}),
    *(
        Method(f"RKDA(norm={name})", "timed", {"kernels": _KERNELS, "norm": norm})
        for name, norm in (("4/3", 4 / 3), ("2", 2.0))
    ),
    Method("equal weights", "timed", {"kernels": _KERNELS, "criterion": "uniform"}),
    Method("default", "timed", {}),
)
PLAN = Plan(
    "simplemkl", tuple(map(Data, RECALLED)), _METHODS, Splits(20, train_size=0.7, stratify=False)
)
NOTES = (
    "Accuracies of SimpleMKL are recalled from the paper, not checked; so are the widths and "
    "degrees of its kernels and its C. Its splits are others.",
    "Variables have mean 0 and variance 1 on the training rows. Kernels of a constant variable are "
    "dropped: 442 of 455 remain for ionosphere.",
    "λ is chosen by leave-one-out. SimpleMKL is a support vector machine with C = 100.",
    "The default has its own twelve kernels with learned column scales, not those of the protocol.",
    "Kernels are counted if their weight is at least 0.001 of the largest. With a norm above 1 no "
    "weight is 0.",
    "Seconds of processor time of a fit, 16 fits side by side: kernels, λ, weights, and the five "
    "fits without a fold that `expected_` needs.",
)


def summarize(records: Sequence[Record]) -> dict[str, dict[str, dict[str, float]]]:
    """Return means over splits by data set and method, and standard errors of the accuracies."""
    found: dict[str, dict[str, dict[str, float]]] = {name: {} for name in RECALLED}
    for (data, method), ours in by_place(records).items():
        correct = np.array([accuracy(record) for record in ours])
        weights = [np.array(list(record.result.weights.values())) for record in ours]
        spread = correct.std(ddof=1) / np.sqrt(len(correct)) if len(correct) > 1 else np.nan
        found[data][method] = {
            "splits": len(ours),
            "accuracy": round(float(correct.mean()), 2),
            "error": round(float(spread), 2),
            "kernels": round(float(np.mean([(w >= CHOSEN * w.max()).sum() for w in weights])), 1),
            "seconds": round(
                float(np.mean([record.result.details["processor_seconds"] for record in ours])), 1
            ),
        }
    return found


def markdown(results: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return the page: a table for each measure, and notes."""
    methods = [method.name for method in _METHODS]
    number = {int(each["splits"]) for row in results.values() for each in row.values()}
    lines = [
        "# The protocol of SimpleMKL",
        "",
        f"Gaussian kernels of ten widths and polynomials of degree 1 to 3, on all variables and on "
        f"each of them; 70 % of the rows for training, {' or '.join(map(str, sorted(number)))} "
        "random splits. Written by [a script](../write_simplemkl.py).",
        "",
        "Accuracy in percent, with standard errors:",
        "",
        f"| data | SimpleMKL, recalled | {' | '.join(methods)} |",
        f"|---|--:|{'--:|' * len(methods)}",
    ]
    for data, row in results.items():
        ours = [f"{row[name]['accuracy']:.1f} ± {row[name]['error']:.1f}" for name in methods]
        lines.append(f"| {data} | {RECALLED[data]} | {' | '.join(ours)} |")
    for what, title in (("kernels", "Kernels with weight"), ("seconds", "Seconds of a fit")):
        lines += ["", f"{title}:", "", f"| data | {' | '.join(methods)} |"]
        lines.append(f"|---|{'--:|' * len(methods)}")
        for data, row in results.items():
            numbers = [f"{row[name][what]:.{1 if what == 'seconds' else 0}f}" for name in methods]
            lines.append(f"| {data} | {' | '.join(numbers)} |")
    return "\n".join([*lines, "", *(f"- {note}" for note in NOTES), ""])
