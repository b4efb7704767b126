"""The path of learned kernels over the regularization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discernel.arrays import FloatArray, blas_threads, device_errors, on_host
from discernel.bank import bank_of_matrices, device_of_matrices
from discernel.exceptions import InvalidInputError
from discernel.learn.learn import DEFAULT_REGULARIZATIONS, learn_path
from discernel.learn.request import make_request
from discernel.programs.lambdas import NEAR_LEAST, search_lambda
from discernel.programs.solution import Callback, LearnedKernel, Solver
from discernel.targets import ClassTarget

__all__ = ["RegularizationPath", "regularization_path"]


@dataclass(frozen=True)
class RegularizationPath:
    """Learned kernels along λ.

    Attributes
    ----------
    regularizations : ndarray of shape (n_regularizations,)
        In the order they were solved: falling.
    weights : ndarray of shape (n_regularizations, n_kernels)
    objectives, gaps, n_iters : ndarray of shape (n_regularizations,)
        NaN where the criterion has no program.
    leave_one_out_errors : ndarray of shape (n_regularizations,)
        Mean squared leave-one-out error of the class scores.
    learned : list of LearnedKernel
        Everything else.
    """

    regularizations: FloatArray
    weights: FloatArray
    objectives: FloatArray
    gaps: FloatArray
    n_iters: FloatArray
    leave_one_out_errors: FloatArray
    learned: list[LearnedKernel]

    @property
    def best(self) -> LearnedKernel:
        """The learned kernel of the largest λ whose leave-one-out error is as good as the least.

        As good is within 1 %: what ``regularization="loo"`` takes.
        """
        errors = dict(zip(self.regularizations, self.leave_one_out_errors, strict=True))
        found = search_lambda(self.regularizations.tolist(), errors.__getitem__, NEAR_LEAST)
        return replace(self.learned[found.position], regularization_at_limit=found.at_limit)


def regularization_path(
    grams: Any,
    y: Any,
    regularizations: Sequence[float] | None = None,
    *,
    criterion: Any = "rkda",
    solver: str | Solver = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    callback: Callback | None = None,
) -> RegularizationPath:
    """Learn the kernel for many λ, each started from the one before.

    λ only scales the kernels, so neighbouring optima are close and a step or two lead from one
    to the next: the warm start that [Kim06]_ announces.

    Parameters
    ----------
    grams : array-like of shape (n_kernels, n_samples, n_samples)
        Raw Gram matrices.
    y : array-like of shape (n_samples,)
        Class labels.
    regularizations : sequence of float, optional
        The values of λ; by default 13 from 1 to 1e-6.
    criterion, solver, tol, max_iter, callback
        As in `learn_kernel`.

    Returns
    -------
    RegularizationPath
        From the largest λ to the smallest.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import regularization_path
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> path = regularization_path(grams, y[::3], [0.1, 0.01, 0.001])
    >>> path.weights.shape
    (3, 4)
    >>> path.best.regularization in (0.1, 0.01, 0.001)
    True
    """
    values = _checked_values(regularizations)
    request = make_request(
        criterion=criterion,
        solver=solver,
        regularization=values[0],
        tol=tol,
        max_iter=max_iter,
        callback=callback,
    )
    if request.criterion.regularization_is == "learned":
        raise InvalidInputError(
            f"criterion='{request.criterion.name}' learns λ itself, so there is no path. Use "
            "'rkda', 'fdr' or another criterion that is given λ, or learn_kernel."
        )
    target = ClassTarget.from_labels(on_host(y))
    request.check_target(target)
    device = device_of_matrices(grams)
    with device_errors(device), blas_threads(target.n_samples):
        normalization = request.criterion.normalization
        bank = bank_of_matrices(grams, normalization=normalization, device=device)
        if bank.n_samples != target.n_samples:
            raise InvalidInputError(
                "There must be one label per row of the Gram matrices. "
                f"Got {target.n_samples} labels and {bank.n_samples} rows."
            )
        path = learn_path(bank, target, request, sorted(values, reverse=True))
    return _as_path([entry for entry, _ in path], [error for _, error in path])


def _as_path(learned: list[LearnedKernel], errors: list[float]) -> RegularizationPath:
    """Return learned kernels, one per λ, and their leave-one-out errors as a path."""
    return RegularizationPath(
        regularizations=np.array([entry.regularization for entry in learned]),
        weights=np.array([entry.weights for entry in learned]),
        objectives=np.array([entry.objective for entry in learned], dtype=np.float64),
        gaps=np.array([entry.gap for entry in learned], dtype=np.float64),
        n_iters=np.array([entry.n_iter for entry in learned], dtype=np.float64),
        leave_one_out_errors=np.array(errors),
        learned=learned,
    )


def _checked_values(regularizations: Sequence[float] | None) -> list[float]:
    """Return the λ of a path, or raise a clear error."""
    values = DEFAULT_REGULARIZATIONS if regularizations is None else tuple(regularizations)
    if not values or not all(0 < value < np.inf for value in values):
        raise InvalidInputError(
            f"The regularizations must be positive, finite numbers, at least one. Got {values!r}."
        )
    return [float(value) for value in values]
