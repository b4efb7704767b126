"""The support vector machine that a soft margin program finds together with its weights."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.svm import SVC

from discernel import learn_kernel
from discernel.bank import gram_stack
from discernel.compare.store import Result
from discernel.compare.tasks import TrainTestSplit
from discernel.criteria import Margin
from discernel.kernels import kernel_names
from discernel_reproduction.kernels import make_kernels

#: Where libsvm stops, in units of the margin.
_SVM_TOL = 1e-4


def margin(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Learn weights by a `Margin`, and predict by the machine of that very program.

    Kernels are scaled to a diagonal of mean 1 and not centred, as in the program, so that C means
    the same in both; a `LearnedKernelSVC` would scale the centred kernel. Beside ``kernels``,
    options are those of `Margin`, and ``least``: rows with a smaller multiplier are not counted as
    support vectors. Metrics are ``support_vectors``, ``training_rows`` and ``C``, the learned one
    for ``"SM2_C"``.
    """
    least = float(options.get("least", 0.0))
    own = ("kernels", "least")
    program = Margin(**{key: options[key] for key in options if key not in own})
    start = time.perf_counter()
    kernels = [
        kernel.resolve(split.X_train)
        for kernel in make_kernels(options.get("kernels", "auto"), split)
    ]
    grams = gram_stack(kernels, split.X_train)
    learned = learn_kernel(grams, split.y_train, criterion=program)
    factors = learned.weights / np.einsum("ijj->i", grams) * len(split.y_train)
    matrix = np.tensordot(factors, grams, axes=1)
    bound = C = float(learned.parameters.get("C", program.C))
    if program.kind != "SM1":  # squared slacks: no slacks on K + I/C
        matrix[np.diag_indices_from(matrix)] += 1.0 / C
        bound = np.inf
    machine = SVC(kernel="precomputed", C=bound, tol=_SVM_TOL).fit(matrix, split.y_train)
    fitted = time.perf_counter()
    cross = sum(
        factor * kernel(split.X_test, split.X_train)
        for factor, kernel in zip(factors, kernels, strict=True)
        if factor > 0
    )
    y_pred = machine.predict(cross)
    return Result(
        predictions={"y_pred": y_pred, "scores": np.asarray(machine.decision_function(cross))},
        seconds_fit=fitted - start,
        seconds_predict=time.perf_counter() - fitted,
        weights=dict(zip(kernel_names(kernels), learned.weights.tolist(), strict=True)),
        gap=learned.gap,
        metrics={
            "support_vectors": float(np.count_nonzero(np.abs(machine.dual_coef_) > least)),
            "training_rows": float(len(matrix)),
            "C": C,
        },
    )
