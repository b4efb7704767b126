"""Methods of Pothin 2006: a kernel aligned with the labels, and SVMs trained on it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from discernel import align_kernels
from discernel.arrays import FloatArray
from discernel.compare.store import Result
from discernel.compare.tasks import TrainTestSplit
from discernel.exceptions import ConvergenceWarning, unknown_choice
from discernel.kernels import RBF, Exponential, Kernel, Polynomial, kernel_names
from discernel.papers.alignment.criterion import alignment, stack_products
from discernel.papers.alignment.solvers import greedy, qp
from discernel.targets import ClassTarget
from discernel_reproduction.baselines import LearnedKernelSVC
from discernel_reproduction.kernels import make_kernels


class _Learned(NamedTuple):
    """A learned combination of kernels: kernels with learned parameters, weights, and the path.

    ``path`` contains pairs of an iteration and the kernel at that iteration.
    """

    kernels: Sequence[Kernel]
    weights: FloatArray
    path: Sequence[tuple[int, Kernel]] = ()


def aligned(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Align a kernel with the labels, uncentred as in the paper, and train SVMs on it.

    Options: ``kernels``; ``method``, one of ``"first"``, the kernel with the largest alignment,
    ``"qp"``, ``"greedy"`` and ``"gradient"``, which moves the kernels' parameters too;
    ``losses`` and ``C``, lists of the SVMs to train. The error of each SVM in percent is a metric,
    such as ``"l1, C=10"``; predictions are those of the first.
    """
    kernels = make_kernels(options.pop("kernels"), split)
    start = time.perf_counter()
    found = _learn(str(options.pop("method")), kernels, split)
    combined = _combination(found.kernels, found.weights)
    seconds = time.perf_counter() - start
    losses, Cs = options.pop("losses", ["l1"]), options.pop("C", [1.0])
    machines = {
        f"{loss}, C={C:g}": LearnedKernelSVC(
            [combined], criterion="uniform", regularization=1.0, loss=loss, C=C
        ).fit(split.X_train, split.y_train)
        for loss, C in product(losses, Cs)
    }
    predicted = {name: svm.predict(split.X_test) for name, svm in machines.items()}
    wrong = {
        name: 100.0 * float(np.mean(guess != split.y_test)) for name, guess in predicted.items()
    }
    names = kernel_names(kernels)
    return Result(
        predictions={
            "y_pred": next(iter(predicted.values())),
            "scores": next(iter(machines.values())).decision_function(split.X_test),
        },
        seconds_fit=seconds,
        weights=dict(zip(names, found.weights.tolist(), strict=True)),
        metrics=wrong
        | {
            "alignment, training": _align(combined, split.X_train, split.y_train),
            "alignment, test": _align(combined, split.X_test, split.y_test),
            "kernels": float(np.count_nonzero(found.weights)),
        },
        details={"path": _path(found, split)},
    )


def _learn(method: str, kernels: list[Kernel], split: TrainTestSplit) -> _Learned:
    if method == "gradient":
        return _follow_gradient(kernels, split)
    M, f, norm = _products(kernels, split)
    if method == "qp":
        return _Learned(kernels, qp(M, f))
    if method == "greedy":
        return _Learned(kernels, greedy(M, f, 1e-3, norm=norm).weights)
    if method == "first":
        return _Learned(kernels, np.eye(len(kernels))[np.argmax(f / np.sqrt(np.diagonal(M)))])
    raise unknown_choice("method of aligned", method, ["first", "qp", "greedy", "gradient"])


def _products(
    kernels: Sequence[Kernel], split: TrainTestSplit
) -> tuple[FloatArray, FloatArray, float]:
    signs = ClassTarget.from_labels(split.y_train).signs[:, None]
    grams = np.array([kernel(split.X_train) for kernel in kernels])
    return stack_products(grams, signs, centered=False)


def _follow_gradient(kernels: list[Kernel], split: TrainTestSplit) -> _Learned:
    """Optimize the kernel parameters; also record the kernels at iterations 1, 2, 4, ...

    The search is deterministic, so that stopping it early gives its intermediate states.
    """
    options: dict[str, Any] = {"centered": False, "step": 0.5, "epsilon": 1e-3, "tol": 1e-5}
    X, y = split.X_train, split.y_train
    M, f, norm = _products(kernels, split)
    path = [(0, _combination(kernels, greedy(M, f, 1e-3, norm=norm).weights))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = align_kernels(kernels, X, y, **options)
        n_iter = len(found.history) - 1
        for stop in 2 ** np.arange(int(np.log2(max(n_iter - 1, 1))) + 1):
            if stop < n_iter:
                early = align_kernels(kernels, X, y, max_iter=int(stop), **options)
                path.append((int(stop), _combination(early.kernels, early.coefficients)))
    path.append((n_iter, _combination(found.kernels, found.coefficients)))
    return _Learned(found.kernels, found.coefficients, path)


def _path(found: _Learned, split: TrainTestSplit) -> list[list[float]]:
    """Return iteration, alignment on the training rows and on the others, as plain data."""
    return [
        [
            iteration,
            _align(kernel, split.X_train, split.y_train),
            _align(kernel, split.X_test, split.y_test),
        ]
        for iteration, kernel in found.path
    ]


def _combination(kernels: Sequence[Kernel], weights: FloatArray) -> Kernel:
    """Return Σ μ_i k_i over the kernels with weight, scaled so that the largest μ_i is 1."""
    parts: list[Kernel] = [
        float(weight) * kernel
        for weight, kernel in zip(weights / weights.max(), kernels, strict=True)
        if weight > 0
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _align(kernel: Kernel, X: Any, y: Any) -> float:
    signs = ClassTarget.from_labels(y).signs[:, None]
    M, f, norm = stack_products(kernel(X)[None], signs, centered=False)
    return float(alignment(M, f, np.ones(1), norm))


# ---- time against the number of candidates -------------------------------------------------------


def alignment_seconds(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Measure the time of both methods for the weights, for several numbers of candidates.

    Options: ``counts``, the numbers of kernels; ``repeats``, 5 by default, of which the fastest
    counts. The kernels are of the paper's families, with scales from 1/4 to 4. The time of kernel
    matrices and inner products, which both methods need, is not included. Metrics are seconds,
    such as ``"greedy, 20"``.
    """
    counts, repeats = options.pop("counts"), int(options.pop("repeats", 5))
    M, f, norm = _products(_family(max(counts)), split)
    metrics = {}
    for count in counts:
        part, ends = M[:count, :count], f[:count]
        metrics[f"QP, {count}"] = _fastest(lambda: qp(part, ends), repeats)  # noqa: B023
        metrics[f"greedy, {count}"] = _fastest(
            lambda: greedy(part, ends, 1e-3, norm=norm),  # noqa: B023
            repeats,
        )
    majority, sizes = np.unique(split.y_train, return_counts=True)
    nothing = np.full(len(split.y_test), majority[sizes.argmax()])
    return Result(
        predictions={"y_pred": nothing}, metrics=metrics, details={"counts": list(counts)}
    )


def _family(count: int) -> list[Kernel]:
    """Return kernels of the six families in turn, each with the next scale."""
    scales = np.geomspace(0.25, 4.0, -(-count // 6))
    return [
        kernel
        for s in scales.tolist()
        for kernel in (
            *(Polynomial(q, gamma=s) for q in (1, 2, 3, 4)),
            RBF(length_scale=s),
            Exponential(width=2.0 * s**2),
        )
    ][:count]


def _fastest(work: Any, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
