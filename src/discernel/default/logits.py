"""Kernel logistic regression with the chosen kernel, and its logits of held-out rows."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from scipy.special import log_softmax

from discernel.arrays import FloatArray, Positions
from discernel.discriminant import KernelLogistic
from discernel.discriminant.links import LEAST_LOG
from discernel.exceptions import ConvergenceWarning, caller_stacklevel
from discernel.programs.lambdas import search_lambda
from discernel.programs.logistic import LogisticFit, LogisticProblem
from discernel.targets import ClassTarget

#: λ to choose from, in half decades around a start: this share of that of least squares, or more.
_START, _LEAST_START = 0.1, 1e-6
_GRID = tuple(10.0 ** (step / 2) for step in range(8, -10, -1))
_MIDDLE = 8
#: No λ is smaller.
_LEAST = 1e-7
#: From so many rows in the first fold on, their λ is that of all folds: it was in 13 of 13 tasks
#: with 160 rows or more there, and in 7 of 21 with 110 or fewer.
_ENOUGH = 150
#: The relative decrease of the objective with which Newton's method ends: of the folds, and of all
#: rows. What is left is then about 1e-5 of the objective, and 1e-9. With 1e-4 for the folds, their
#: log-loss on six tables changed by 0.06 % at most, and the time was half as long again.
_FOLD_TOL, _TOL = 1e-3, 1e-5
#: A regression fits its own rows better than others fit those that they hold out. With a log-loss
#: of its own rows of more than so many times that of held-out rows, it did not converge.
_UNFIT = 1.5


class LogitSearch:
    """Kernel logistic regressions of the folds, and the λ that predicts held-out rows best.

    A fold is predicted by a regression of all other rows, also of those in no fold. λ is searched
    downhill in the first fold. In the other folds, the λ found there is tried, and if the first
    fold has few rows, its neighbours too. Of these, the regression of all rows has the λ with the
    least log-loss in all folds. The logits of the rows of a fold are those of the λ with the least
    log-loss in the other folds, because the λ that is best for the rows themselves would look too
    good.

    Parameters
    ----------
    target : ClassTarget
        The classes of all rows.
    regularization : float
        λ of the least-squares fit.
    known : float, optional
        λ of a regression with a similar kernel, from which λ is searched; by default from a share
        of that of the least-squares fit.
    searches : bool
        Whether λ is searched; else it is the known one.
    """

    #: Of more rows there is no kernel logistic regression.
    most_rows: ClassVar[int] = 2000

    def __init__(
        self,
        target: ClassTarget,
        regularization: float,
        known: float | None = None,
        *,
        searches: bool = True,
    ) -> None:
        start = max(_START * regularization, _LEAST_START) if known is None else known
        self.target, self._roots = target, target.row_weights.roots
        larger = [factor * start for factor in _GRID if factor * start > 2.0 * _LEAST]
        self._lambdas = [*larger, _LEAST] if searches else [start]
        self._logits: dict[float, FloatArray] = {}
        self._coef: dict[float, FloatArray] = {}  # summed over the folds
        self._folds: list[Positions] = []

    def add(self, kernel: FloatArray, inside: Positions) -> None:
        """Predict the rows of a fold from all others.

        Parameters
        ----------
        kernel : ndarray of shape (n_samples, n_samples)
            The kernel between all rows, learned without the fold, times √ω on both sides.
        inside : ndarray of int
            The rows of the fold.
        """
        outside = np.setdiff1d(np.arange(self.target.n_samples), inside)
        square = kernel[np.ix_(outside, outside)]
        cross = kernel[np.ix_(inside, outside)] / self._roots[inside][:, None]
        self.add_fold(square, cross, outside, inside)

    def add_fold(
        self, square: FloatArray, cross: FloatArray, outside: Positions, inside: Positions
    ) -> None:
        """Predict the rows of a fold from others.

        Parameters
        ----------
        square, cross : ndarray
            The kernel between the other rows, times √ω on both sides, and from the rows of the fold
            to the others, times the √ω of the latter.
        outside, inside : ndarray of int
            The other rows and those of the fold.
        """
        target, problem = self.target, _problem(square, self.target.part(outside))
        part, fits = target.part(inside), dict[float, LogisticFit]()

        def loss(regularization: float) -> float:
            near = min(fits, key=lambda lam: abs(np.log(lam / regularization)), default=0.0)
            found = problem.minimize(regularization, tol=_FOLD_TOL, start=fits.get(near))
            fits[regularization] = found
            logits = cross @ found.coef + found.intercept
            shape = target.n_samples, target.n_classes
            self._logits.setdefault(regularization, np.zeros(shape))[inside] = logits
            self._coef.setdefault(regularization, np.zeros(shape))[outside] += found.coef
            return _log_loss(logits, part)

        self._folds.append(inside)
        if self._logits:
            for regularization in self._logits:
                loss(regularization)
            return
        first = min(_MIDDLE, len(self._lambdas) - 1)
        position = search_lambda(self._lambdas, loss, start=first).position
        beside = 0 if len(inside) >= _ENOUGH else 1
        near = self._lambdas[max(position - beside, 0) : position + beside + 1]
        self._logits = {lam: found for lam, found in self._logits.items() if lam in near}

    def _losses(self) -> FloatArray:
        """Return the summed log-loss of the rows of each fold, for each λ."""
        parts = [(rows, self.target.part(rows)) for rows in self._folds]
        logits = self._logits.values()
        return np.array([[_log_loss(one[rows], part) for rows, part in parts] for one in logits])

    @property
    def loss(self) -> float:
        """The least summed log-loss of the rows of all folds."""
        return float(self._losses().sum(axis=1).min())

    @property
    def regularization(self) -> float:
        """The λ with the least log-loss of the rows of all folds."""
        return list(self._logits)[int(self._losses().sum(axis=1).argmin())]

    def held_out(self) -> FloatArray:
        """Return the logits of the rows of all folds, by fits to other rows; 0 of other rows."""
        logits, losses = list(self._logits.values()), self._losses()
        found = np.zeros_like(logits[0])
        for fold, inside in enumerate(self._folds):
            best = int((losses.sum(axis=1) - losses[:, fold]).argmin())
            found[inside] = logits[best][inside]
        return found

    def fit(self, kernel: FloatArray) -> KernelLogistic | None:
        """Return the regression of all rows; None, with a warning, if it did not converge.

        Parameters
        ----------
        kernel : ndarray of shape (n_samples, n_samples)
            The kernel between all rows, learned from all, times √ω on both sides.
        """
        target, held_out, lam = self.target, self.held_out(), self.regularization
        problem = _problem(kernel, target)
        rows = np.concatenate(self._folds)
        mean = self._coef[lam] / max(1.0, len(self._folds) - len(rows) / target.n_samples)
        start = problem.start()._replace(coef=mean, mapped=problem.times_kernel(mean))
        found = problem.minimize(lam, tol=_TOL, start=start)
        own = found.mapped[rows] / self._roots[rows, None] + found.intercept
        part = target.part(rows)
        if _log_loss(own, part) > _UNFIT * _log_loss(held_out[rows], part):
            message = (
                "The kernel logistic regression did not converge, and is no part of the model. "
                "Probabilities are those of the other links; a smaller range of the columns or a "
                "larger regularization may help."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=caller_stacklevel())
            return None
        coef = self._roots[:, None] * found.coef
        return KernelLogistic(
            coef[:, 1:] - coef[:, :1],
            found.intercept[1:] - found.intercept[0],
            held_out[:, 1:] - held_out[:, :1],
        )


def _problem(kernel: FloatArray, target: ClassTarget) -> LogisticProblem:
    """Return the regression of the classes of a target with a kernel."""
    return LogisticProblem(kernel, target.codes, target.n_classes, target.row_weights.values)


def _log_loss(logits: FloatArray, target: ClassTarget) -> float:
    """Return the summed log-loss of rows, none of which counts as less likely than 1e-6."""
    told = log_softmax(logits, axis=1)[np.arange(len(logits)), target.codes]
    return -float(target.row_weights.values @ np.maximum(told, LEAST_LOG))
