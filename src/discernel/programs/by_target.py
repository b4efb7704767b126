"""Kernel weights and λ of each target, by the leave-one-out errors of all targets together.

With weights of its own, each target needs a system of its own, and only the kernels are shared. But
the search can be shared: the plain average, single kernels and random weights have the same systems
for all targets, so one factorization for each λ gives the leave-one-out errors of all of them. From
the best of these, `minimize_errors` descends in (log w, log λ) for all targets in lockstep. The
errors and gradients of a step are those of `LeaveOneOutProgram`. `StackedKernels` computes them,
and the fits, for many targets at once on a device, or on the CPU with few rows. Otherwise they are
computed one target at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from discernel.arrays import Device, FloatArray
from discernel.bank import Bank, System
from discernel.kernels.weighted import slices
from discernel.programs.base import Part
from discernel.programs.lambdas import FLAT
from discernel.programs.least_squares import KernelLeastSquares
from discernel.programs.lockstep import ErrorsAt, TargetErrors, minimize_errors
from discernel.programs.loo import LeaveOneOut, LeaveOneOutProgram
from discernel.programs.search import LAMBDAS, REFINEMENTS
from discernel.programs.simplex import uniform
from discernel.programs.solution import TargetWeights
from discernel.programs.stacked import StackedKernels
from discernel.progress.deadline import must_stop_learning
from discernel.targets import RegressionTarget, Target

#: Random weights that are tried, and the concentrations of their Dirichlet distributions. With six
#: kernels, 200 rows and 100 targets they alone give as good predictions of new rows as descents
#: from the average, in a sixth of the time.
_N_RANDOM, _CONCENTRATIONS = 64, (0.1, 1.0)
#: The decrease below which descents from the best candidate end. Smaller ones halve the speed, and
#: leave-one-out errors that are 0.3 % smaller, but no better predictions of new rows.
_WORTHWHILE = 1e-3
#: Numbers of predictions of all targets that are computed at a time.
_BLOCK = 2**24


# ---- fits --------------------------------------------------------------------------------------


class TargetFits:
    """Least-squares fits with kernel weights and λ of each target.

    The interface is that of `KernelLeastSquares`. Where they are fitted one at a time, targets
    with the same weights and λ share one system.

    Parameters
    ----------
    bank : Bank
        The kernels.
    weights : ndarray of shape (n_targets, n_kernels)
        The weights.
    regularization : ndarray of shape (n_targets,)
        The λ.
    targets : ndarray of shape (n_samples, n_targets)
        As in `KernelLeastSquares`.
    target : Target
        The sample weights and groups.
    device : Device, optional
        Where to fit many targets at once; by default the CPU.
    """

    #: Whether systems are solved by iteration.
    by_iteration = False

    def __init__(
        self,
        bank: Bank,
        weights: FloatArray,
        regularization: FloatArray,
        targets: FloatArray,
        target: Target,
        device: Device | None = None,
    ) -> None:
        rows = self.row_weights = target.row_weights
        self.groups, self.truth = target.groups, rows.unscale(targets)
        #: The ridge of each row and target.
        self.ridge = regularization / rows.values[:, None]
        stacked = StackedKernels.of(bank, targets, target, device)
        if stacked is not None:
            dual, diagonal, self.intercept = stacked.fits(weights, regularization)
            self.coef = dual.T * rows.roots[:, None]
            self.fitted = rows.unscale(targets - regularization * dual.T)
            self.leave_one_out = rows.unscale(targets - (dual / diagonal).T)
            return
        self.coef, self.fitted, self.leave_one_out = (np.empty_like(targets) for _ in range(3))
        self.intercept = np.empty(targets.shape[1])
        for one, lam, columns in _same_fits(weights, regularization):
            fit = KernelLeastSquares.of(bank.system(one, lam), lam, target, targets[:, columns])
            self.coef[:, columns], self.intercept[columns] = fit.coef, fit.intercept
            self.fitted[:, columns] = fit.fitted
            self.leave_one_out[:, columns] = fit.leave_one_out

    @property
    def n_samples(self) -> int:
        """The number of training rows."""
        return len(self.truth)


def _same_fits(
    weights: FloatArray, regularization: FloatArray
) -> Iterator[tuple[FloatArray, float, NDArray[np.intp]]]:
    """Yield all different weights and λ, and the targets that have them."""
    known, place = np.unique(
        np.column_stack([weights, regularization]), axis=0, return_inverse=True
    )
    order = np.argsort(place.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(place.ravel()))
    for row, columns in zip(known, np.split(order, ends[:-1]), strict=True):
        yield row[:-1], float(row[-1]), columns


@dataclass(frozen=True)
class LeaveOneOutByTarget(LeaveOneOut):
    """Leave-one-out error of each target, with weights and λ of its own.

    Attributes
    ----------
    pull : float
        As in `LeaveOneOut`.
    tries_others : bool
        Whether single kernels and random weights are candidates too, as with
        ``criterion="auto"``.
    device : Device or None
        Where to compute many targets at once; None for the CPU.
    """

    tries_others: bool = False
    device: Device | None = None
    by_target: ClassVar[bool] = True

    def least_squares(  # type: ignore[override]
        self,
        bank: Bank,
        weights: FloatArray,
        target: Target,
        regularization: FloatArray,
        scores: FloatArray | None = None,
    ) -> TargetFits:
        scores = target.scores if scores is None else scores
        return TargetFits(bank, weights, regularization, scores, target, self.device)


# ---- errors and gradients ----------------------------------------------------------------------


class SingleErrors:
    """TargetErrors of targets with any bank, one target at a time.

    Parameters
    ----------
    bank, target
        The kernels and all targets.
    """

    def __init__(self, bank: Bank, target: RegressionTarget) -> None:
        self._bank, self._target = bank, target

    def __call__(
        self, places: NDArray[np.intp], weights: FloatArray, regularization: FloatArray
    ) -> TargetErrors:
        values, by_regularization = np.empty(len(places)), np.empty(len(places))
        by_weights = np.empty_like(weights)
        for i, place in enumerate(places):
            program = LeaveOneOutProgram(self._bank, self._target.columns([place]))
            point = program.error(weights[i], float(regularization[i]))
            values[i], by_regularization[i] = point.value, point.by_regularization
            by_weights[i] = point.by_weights
        return TargetErrors(values, by_weights, by_regularization)


# ---- search ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TargetSearch:
    """The search for the weights and λ of every target, on one set of samples.

    Attributes
    ----------
    bank, target
        The kernels and all targets.
    pull : float
        As in `LeaveOneOut`.
    regularization : float or None
        λ of all targets; None if they are learned.
    device : Device or None
        Where to compute many targets at once; None for the CPU.
    monitor : callable, optional
        As in `minimize_errors`.
    """

    bank: Bank
    target: RegressionTarget
    pull: float
    regularization: float | None = None
    device: Device | None = None
    monitor: Callable[[float, FloatArray], None] | None = None

    @property
    def lambdas(self) -> tuple[float, ...]:
        """The λ to try, in decreasing order."""
        return LAMBDAS if self.regularization is None else (self.regularization,)

    @cached_property
    def stacked(self) -> StackedKernels | None:
        """The kernels in one array, if many targets are computed at once."""
        return StackedKernels.of(self.bank, self.target.scores, self.target, self.device)

    @property
    def errors(self) -> ErrorsAt:
        """TargetErrors and derivatives of some targets."""
        return self.stacked or SingleErrors(self.bank, self.target)

    def search(self, *, tries_others: bool, random_state: Any = None) -> TargetWeights:
        """Return the best weights and λ of each target that descent from candidates finds.

        Parameters
        ----------
        tries_others : bool
            Whether single kernels and random weights are candidates too, not only the average.
        random_state : int, RandomState or None
            The seed of the random weights; None means 0.
        """
        best = self.try_weights(uniform(self.bank.n_kernels)[None])
        others = self._others(random_state) if tries_others else np.empty((0, 0))
        together = 1 if self.stacked is None else self.stacked.n_together(len(self.lambdas))
        for some in slices(slice(0, len(others)), together):
            if must_stop_learning():
                return best
            best = self.best(best, self.try_weights(others[some]))
        if must_stop_learning():
            return best
        if not tries_others:
            return self.descend(best)
        return self.best(best, self.descend(best, worthwhile=_WORTHWHILE))

    def _others(self, random_state: Any) -> FloatArray:
        """Return single kernels and random weights."""
        p = self.bank.n_kernels
        if p == 1:
            return np.empty((0, 1))
        rng = check_random_state(0 if random_state is None else random_state)
        drawn = [rng.dirichlet(np.full(p, _CONCENTRATIONS[i % 2])) for i in range(_N_RANDOM)]
        return np.vstack([np.eye(p), drawn])

    def try_weights(self, several: FloatArray) -> TargetWeights:
        """Return the best of several weights, which all targets share, and λ for each target.

        λ is the largest within 1 % of the best.
        """
        found = (
            self._with_lambda(*each) for each in zip(several, self._tried(several), strict=True)
        )
        return reduce(self.best, found)

    def _tried(self, several: FloatArray) -> Iterable[FloatArray]:
        """Return the errors with each of several weights, of shape (n_lambdas, n_targets)."""
        if self.stacked is not None:
            return self.stacked.shared_errors(several, np.array(self.lambdas))
        systems = (self.bank.systems(weights) for weights in several)
        return (np.stack([self._losses(of(lam), lam) for lam in self.lambdas]) for of in systems)

    def _with_lambda(self, weights: FloatArray, losses: FloatArray) -> TargetWeights:
        """Return weights with the λ of each target."""
        chosen = np.argmax(losses <= (1.0 + FLAT) * losses.min(axis=0), axis=0)
        n_targets, lam = losses.shape[1], np.array(self.lambdas)[chosen]
        errors = losses[chosen, np.arange(n_targets)]
        return TargetWeights(np.tile(weights, (n_targets, 1)), lam, errors)

    def _losses(self, system: System, lam: float) -> FloatArray:
        """Return the leave-one-out error of each target with one system."""
        scores, shares = self.target.scores, self.target.row_weights.shares
        step, out = max(1, _BLOCK // len(scores)), np.empty(scores.shape[1])
        for first in range(0, len(out), step):
            some = slice(first, first + step)
            fit = KernelLeastSquares.of(system, lam, self.target, scores[:, some])
            out[some] = shares @ (fit.truth - fit.leave_one_out) ** 2
        return out

    def scored(self, found: TargetWeights) -> TargetWeights:
        """Return weights and λ with their leave-one-out errors."""
        if self.stacked is not None:
            own = self.stacked.errors(found.weights, found.regularization)
            return replace(found, errors=own)
        errors = np.empty(len(found.regularization))
        for weights, lam, columns in _same_fits(found.weights, found.regularization):
            part = replace(self, target=self.target.columns(columns))
            errors[columns] = part._losses(self.bank.system(weights, lam), lam)
        return replace(found, errors=errors)

    def descend(
        self, start: TargetWeights, max_evaluations: int = 60, worthwhile: float = 1e-5
    ) -> TargetWeights:
        """Return weights and λ that descent from a start finds, with their errors."""
        found = minimize_errors(
            self.errors,
            start,
            pull=self.pull / self.target.effective,
            learns_regularization=self.regularization is None,
            max_evaluations=max_evaluations,
            worthwhile=worthwhile,
            monitor=self.monitor,
        )
        return self.scored(found)

    def refine(self, found: TargetWeights, part: Part) -> TargetWeights:
        """Return weights and λ for all samples, from those of a part of them."""
        n_kernels = self.bank.n_kernels
        weights = np.zeros((len(found.regularization), n_kernels))
        weights[:, part.bank.kept] = found.weights
        equal = (found.weights == uniform(part.bank.n_kernels)).all(axis=1)
        weights[equal] = uniform(n_kernels)
        own = self.scored(replace(found, weights=weights))
        if self.regularization is None:  # more samples need less regularization
            own = self.best(own, self.scored(replace(own, regularization=0.3 * own.regularization)))
        if must_stop_learning():
            return own
        return self.best(own, self.descend(own, max_evaluations=REFINEMENTS))

    def best(self, one: TargetWeights, other: TargetWeights) -> TargetWeights:
        """Return the better of two candidates for each target, by error plus pull."""
        better = np.flatnonzero(self._scores(other) < self._scores(one))
        return one.replaced(better, other.of(better))

    def _scores(self, found: TargetWeights) -> FloatArray:
        w = found.weights
        logs = np.log(np.where(w > 0, w * w.shape[1], 1.0))
        pulls = self.pull / self.target.effective * np.sum(w * logs, axis=1)
        return np.asarray(found.errors + pulls)
