"""Kernel logistic regression with the learned kernel, and its logits of held-out rows."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from discernel.arrays import FloatArray
from discernel.default.choose import Positions
from discernel.links import KernelLogistic
from discernel.programs.lambdas import search_lambda
from discernel.programs.logistic import LogisticFit, LogisticProblem, kernel_preconditioner
from discernel.targets import ClassTarget

#: λ to choose from, in half decades around a start: this share of that of least squares, or more.
_START, _LEAST_START = 0.1, 1e-6
_GRID = tuple(10.0 ** (step / 2) for step in range(8, -10, -1))
_MIDDLE = 8
#: Digits of scores that do not depend on the order of rows.
_SAME_DIGITS = 8
#: No λ is smaller.
_LEAST = 1e-7
#: The relative decrease of the objective that a step is taken for, in a search and in the end.
_ROUGH, _FINE = 1e-6, 1e-9


class LogitSearch:
    """Kernel logistic regressions of the folds, and the λ that predicts held-out rows best.

    λ is searched downhill in the first fold. In the other folds, the neighbours of what was found
    there are tried too, and the best in all folds is taken.

    Parameters
    ----------
    target : ClassTarget
        The classes of all rows.
    regularization : float
        λ of the least-squares fit.
    fitted : ndarray of shape (n_samples, n_classes - 1)
        The scores of that fit. Rows are sorted by them, so that rounding errors do not depend on
        the order of the rows.
    """

    def __init__(self, target: ClassTarget, regularization: float, fitted: FloatArray) -> None:
        self._order = np.lexsort(np.round(fitted, _SAME_DIGITS).T)
        start = max(_START * regularization, _LEAST_START)
        self._target, self._roots = target, target.row_weights.roots
        self._lambdas = [max(factor * start, _LEAST) for factor in _GRID]
        self._logits: dict[float, FloatArray] = {}

    def add(self, kernel: FloatArray, inside: Positions) -> None:
        """Predict the rows of a fold from all others.

        Parameters
        ----------
        kernel : ndarray of shape (n_samples, n_samples)
            The kernel, learned without the fold; times the roots of the weights of rows.
        inside : ndarray of int
            The rows of the fold.
        """
        target = self._target
        outside = self._order[~np.isin(self._order, inside)]
        square = kernel[np.ix_(outside, outside)]
        cross = kernel[np.ix_(inside, outside)] / self._roots[inside][:, None]
        part, others = target.part(inside), target.part(outside)

        def loss(regularization: float) -> float:
            fit = _fit(others, square, regularization, _ROUGH)
            logits = cross @ fit.coef + fit.intercept
            every = np.zeros((target.n_samples, target.n_classes))
            self._logits.setdefault(regularization, every)[inside] = logits
            return _log_loss(logits, part)

        if self._logits:
            for regularization in self._logits:
                loss(regularization)
            return
        position = search_lambda(self._lambdas, loss, start=_MIDDLE).position
        near = self._lambdas[max(position - 1, 0) : position + 2]
        self._logits = {lam: found for lam, found in self._logits.items() if lam in near}

    def fit(self, kernel: FloatArray) -> KernelLogistic:
        """Return the regression of all rows, with the λ that was found.

        Parameters
        ----------
        kernel : ndarray of shape (n_samples, n_samples)
            The kernel, learned from all rows; times the roots of the weights of rows.
        """
        losses = {lam: _log_loss(logits, self._target) for lam, logits in self._logits.items()}
        best = min(losses, key=lambda lam: losses[lam])
        order, held_out = self._order, self._logits[best]
        fit = _fit(self._target.part(order), kernel[np.ix_(order, order)], best, _FINE)
        coef = np.empty_like(fit.coef)
        coef[order] = self._roots[order][:, None] * fit.coef
        return KernelLogistic(
            coef[:, 1:] - coef[:, :1],
            fit.intercept[1:] - fit.intercept[0],
            held_out[:, 1:] - held_out[:, :1],
        )


def _fit(target: ClassTarget, kernel: FloatArray, regularization: float, tol: float) -> LogisticFit:
    """Return the regression for one λ.

    From the same start for every λ: what is found does not depend on the λ that were tried before.
    """
    problem = LogisticProblem(target.codes, target.n_classes, target.row_weights.values)
    preconditioner = kernel_preconditioner(kernel, problem.variance, regularization)
    return problem.minimize(preconditioner, regularization, tol=tol)


def _log_loss(logits: FloatArray, target: ClassTarget) -> float:
    """Return the log-loss of rows, none of which counts as less likely than 1e-6."""
    told = log_softmax(logits, axis=1)[np.arange(len(logits)), target.codes]
    return -float(target.row_weights.shares @ np.maximum(told, np.log(1e-6)))
