"""Kernel weights and λ of each target, by the leave-one-out errors of all targets together.

With weights of its own, each target needs a system of its own, and only the kernels are shared. But
the search can be shared: the plain average, single kernels and random weights have the same systems
for all targets, so one factorization for each λ gives the leave-one-out errors of all of them. From
the best of these, `minimize_errors` descends in (log w, log λ) for all targets in
lockstep, by L-BFGS with a history and a line search for each target: no target depends on another.
The errors and gradients of a step are those of `LeaveOneOutProgram`, computed one target at a time,
or on a device for as many targets at once as fit into its memory (`StackedErrors`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils import check_random_state

from discernel.arrays import Device, FloatArray
from discernel.arrays.device import as_host
from discernel.bank import Bank, System
from discernel.programs.base import Part
from discernel.programs.lambdas import FLAT, lambda_grid
from discernel.programs.least_squares import KernelLeastSquares
from discernel.programs.loo import (
    LAMBDA_BOUNDS,
    NEGLIGIBLE,
    TINY,
    LeaveOneOut,
    LeaveOneOutProgram,
)
from discernel.programs.simplex import uniform
from discernel.programs.solution import TargetWeights
from discernel.progress.deadline import must_stop_learning
from discernel.targets import RegressionTarget, Target

#: λ to try, as in `Search`.
_LAMBDAS = lambda_grid(0.0, -6.0, per_decade=1)
#: Random weights that are tried, and the concentrations of their Dirichlet distributions. With six
#: kernels, 200 rows and 100 targets they alone give as good predictions of new rows as descents
#: from the average, in a sixth of the time.
_N_RANDOM, _CONCENTRATIONS = 64, (0.1, 1.0)
#: The decrease below which descents from the best candidate end. Smaller ones halve the speed, and
#: leave-one-out errors that are 0.3 % smaller, but no better predictions of new rows.
_WORTHWHILE = 1e-3
#: Evaluations on all samples, after a search on a part of them, as in `Search`.
_REFINEMENTS = 3
#: Numbers of predictions of all targets that are computed at a time.
_BLOCK = 2**24
#: Steps and changes of the gradient that L-BFGS keeps, as SciPy does.
_HISTORY = 10
#: An accepted step decreases the value by this share of the expected decrease.
_SUFFICIENT = 1e-4
#: A step is shortened at most so many times, and by these factors.
_MOST_SHORTER, _SHORTER = 10, (0.1, 0.5)
#: Gradients below this end the descent, as in SciPy.
_FLAT_GRADIENT = 1e-5
#: Bytes on a device for the matrices of the targets of one step, and matrices per target.
_DEVICE_BYTES, _MATRICES = 2**31, 6


# ---- fits --------------------------------------------------------------------------------------


class TargetFits:
    """Least-squares fits with kernel weights and λ of each target.

    The interface is that of `KernelLeastSquares`. Targets with the same weights and λ share one
    system.

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
    ) -> None:
        self.sample_weights, self.groups = target.sample_weights, target.groups
        self.truth = target.row_weights.unscale(targets)
        self.coef, self.fitted, self.leave_one_out = (np.empty_like(targets) for _ in range(3))
        self.intercept = np.empty(targets.shape[1])
        #: The ridge of each row and target.
        self.ridge = regularization / target.row_weights.values[:, None]
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
        Where errors of many targets are computed at once; None for the CPU, which computes them
        one target at a time.
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
        return TargetFits(bank, weights, regularization, scores, target)


# ---- errors and gradients ----------------------------------------------------------------------


class TargetErrors(NamedTuple):
    """Errors of some targets at weights and λ of their own, with derivatives, as `ErrorPoint`."""

    values: FloatArray
    by_weights: FloatArray
    by_regularization: FloatArray


#: From positions of targets, their weights and their λ to their errors.
ErrorsAt = Callable[[NDArray[np.intp], FloatArray, FloatArray], TargetErrors]


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


class StackedErrors:
    """TargetErrors of targets on a device, of many targets at a time; rows have no groups.

    Parameters
    ----------
    bank, target
        The kernels and all targets. All kernel matrices are put on the device.
    device : Device
        The device.
    n_bytes : int
        Memory for the matrices of the targets of one step.
    """

    def __init__(
        self, bank: Bank, target: Target, device: Device, n_bytes: int = _DEVICE_BYTES
    ) -> None:
        n, self._device = bank.n_samples, device
        stack = np.stack([bank.combined(unit).ravel() for unit in np.eye(bank.n_kernels)])
        self._stack = device.put(stack)
        self._roots, self._total = device.put(bank.row_weights.roots), float(bank.total)
        self._scores = np.ascontiguousarray(target.scores.T)
        self._n, self._step = n, max(1, n_bytes // (8 * _MATRICES * n * n))

    def __call__(
        self, places: NDArray[np.intp], weights: FloatArray, regularization: FloatArray
    ) -> TargetErrors:
        parts = [
            self._some(self._scores[places[some]], weights[some], regularization[some])
            for first in range(0, len(places), self._step)
            for some in [slice(first, first + self._step)]
        ]
        return TargetErrors(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _some(self, scores: FloatArray, weights: FloatArray, lam: FloatArray) -> TargetErrors:
        """Return the errors of some targets: the equations of `LeaveOneOutProgram.error`."""
        xp, n, r = self._device.xp, self._n, self._roots
        T, W, lam = self._device.put(scores), self._device.put(weights), self._device.put(lam)
        identity = xp.eye(n, dtype=T.dtype, device=self._device.where)
        N = xp.reshape(xp.matmul(W, self._stack), (-1, n, n)) + lam[:, None, None] * identity
        C = xp.linalg.inv(N)

        def times(vectors: Any) -> Any:  # N⁻¹ times one vector for each target
            return xp.matmul(C, vectors[:, :, None])[:, :, 0]

        def dot(left: Any, right: Any) -> Any:
            return xp.sum(left * right, axis=1)[:, None]

        s = xp.matmul(C, r)
        total = dot(s, r[None, :])

        def project(vectors: Any) -> Any:  # Q times
            return times(vectors) - s * (dot(s, vectors) / total)

        diagonal = xp.linalg.diagonal(C) - s**2 / total
        dual = project(T)
        errors = dual / diagonal
        influence, leverage = project(2.0 * errors / diagonal), 2.0 * errors**2 / diagonal
        twice = 2.0 * times(leverage * s) / total - (dot(leverage, s**2) / total**2) * s
        S = xp.matmul(C * leverage[:, None, :], C)
        left, right = xp.stack([influence, twice], axis=2), xp.stack([dual, s], axis=2)
        S = (S - xp.matmul(left, xp.matrix_transpose(right))) / self._total
        flat = xp.reshape(S, (S.shape[0], n * n))
        by_weights = xp.matmul(flat, xp.matrix_transpose(self._stack))
        by_lambda = xp.sum(xp.linalg.diagonal(S), axis=1)
        values = xp.sum(errors**2, axis=1) / self._total
        return TargetErrors(as_host(values), as_host(by_weights), as_host(by_lambda))


# ---- minimization ------------------------------------------------------------------------------


class _Points(NamedTuple):
    """Values and gradients of targets in z = (log weights, log λ), relative to the first value."""

    values: FloatArray
    gradients: FloatArray


@dataclass(frozen=True, eq=False)
class _Objective:
    """TargetErrors plus pull of all targets as functions of z."""

    at: ErrorsAt
    pull: float
    #: λ of each target; None if it is learned.
    regularization: FloatArray | None

    def split(self, z: FloatArray, places: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return weights and λ."""
        if self.regularization is not None:
            return softmax(z, axis=1), self.regularization[places]
        return softmax(z[:, :-1], axis=1), np.exp(z[:, -1])

    def __call__(self, z: FloatArray, places: NDArray[np.intp]) -> _Points:
        weights, lam = self.split(z, places)
        w, p = np.maximum(weights, TINY), weights.shape[1]
        found = self.at(places, w, lam)
        logs = np.log(w * p)
        values = found.values + self.pull * np.sum(w * logs, axis=1)
        by_w = found.by_weights + self.pull * (logs + 1.0)
        gradients = w * (by_w - np.sum(w * by_w, axis=1)[:, None])
        if self.regularization is None:
            gradients = np.column_stack([gradients, found.by_regularization * lam])
        return _Points(values, gradients)


class _History:
    """The last steps and changes of the gradient of every target, for L-BFGS."""

    def __init__(self, n_targets: int, n_variables: int) -> None:
        self._steps = np.zeros((_HISTORY, n_targets, n_variables))
        self._changes = np.zeros_like(self._steps)
        #: Inverses of ⟨step, change⟩; 0 where there is none.
        self._curvatures = np.zeros((_HISTORY, n_targets))

    def add(self, places: NDArray[np.intp], steps: FloatArray, changes: FloatArray) -> None:
        """Add a step of some targets, where the gradient grew along it."""
        products = np.sum(steps * changes, axis=1)
        good = products > 1e-10 * np.sum(changes**2, axis=1)
        places = places[good]
        for kept, new in (
            (self._steps, steps[good]),
            (self._changes, changes[good]),
            (self._curvatures, 1.0 / products[good]),
        ):
            kept[:-1, places] = kept[1:, places]
            kept[-1, places] = new

    def forget(self, places: NDArray[np.intp]) -> None:
        """Drop the steps of some targets."""
        self._curvatures[:, places] = 0.0

    def directions(self, places: NDArray[np.intp], gradients: FloatArray) -> FloatArray:
        """Return minus the gradients times the approximate inverse Hessians."""
        steps, changes = self._steps[:, places], self._changes[:, places]
        curvatures, factors = self._curvatures[:, places], []
        q = gradients.copy()
        for s, y, rho in zip(steps[::-1], changes[::-1], curvatures[::-1], strict=True):
            factors.append(rho * np.sum(s * q, axis=1))
            q -= factors[-1][:, None] * y
        squares = np.sum(changes[-1] ** 2, axis=1) * curvatures[-1]
        known = squares > 0
        # Without a history, a step of length 1.
        lengths = np.linalg.norm(gradients, axis=1)
        q /= np.where(known, squares, np.maximum(lengths, TINY))[:, None]
        for s, y, rho, factor in zip(steps, changes, curvatures, factors[::-1], strict=True):
            q += (factor - rho * np.sum(y * q, axis=1))[:, None] * s
        return -q


class _Descent:
    """Descents of all targets, one evaluation of each at a time.

    Parameters
    ----------
    function : _Objective
        The function of z.
    start : TargetWeights
        Where to start.
    """

    def __init__(self, function: _Objective, start: TargetWeights) -> None:
        n_targets, self._n_kernels = start.weights.shape
        self._function = function
        z = np.log(np.maximum(start.weights, NEGLIGIBLE / self._n_kernels))
        self._low, self._high = np.full(z.shape[1], -np.inf), np.full(z.shape[1], np.inf)
        if function.regularization is None:
            z = np.column_stack([z, np.log(start.regularization)])
            self._low, self._high = (
                np.append(end, np.log(limit))
                for end, limit in zip((self._low, self._high), LAMBDA_BOUNDS, strict=True)
            )
        self._z, self._active = z, np.arange(n_targets)
        values, gradients = function(z, self._active)
        #: Values and gradients are relative to the first value.
        self._units = np.maximum(np.abs(values), TINY)
        self._values, self._gradients = values / self._units, gradients / self._units[:, None]
        self._history, self._directions = _History(n_targets, z.shape[1]), np.zeros_like(z)
        self._lengths, self._n_shorter = np.ones(n_targets), np.zeros(n_targets, dtype=np.intp)
        self._fresh = self._active  # targets that need a direction

    @property
    def _inside(self) -> NDArray[np.bool_]:
        """The variables that do not move beyond a bound."""
        z, gradients = self._z, self._gradients
        low, high = z > self._low, z < self._high
        return np.asarray((low | (gradients < 0)) & (high | (gradients > 0)))

    @property
    def means(self) -> tuple[float, FloatArray]:
        """The mean value and the mean weights."""
        weights = softmax(self._z[:, : self._n_kernels], axis=1)
        return float(np.mean(self._values * self._units)), np.asarray(weights.mean(axis=0))

    def is_done(self) -> bool:
        """Drop targets with a gradient of 0, and return whether none is left."""
        steep = np.abs(self._gradients * self._inside).max(axis=1) > _FLAT_GRADIENT
        self._active = self._active[steep[self._active]]
        return not len(self._active)

    def step(self, worthwhile: float) -> None:
        """Try a step of every active target, and take those that decrease the value enough."""
        self._set_directions(np.intersect1d(self._fresh, self._active))
        active, low, high = self._active, self._low, self._high
        old, gradients, units = self._z[active], self._gradients[active], self._units[active]
        trial = np.clip(old + self._lengths[active][:, None] * self._directions[active], low, high)
        found = self._function(trial, active)
        new, slopes, before = found.values / units, found.gradients, self._values[active]
        expected = np.sum(gradients * (trial - old), axis=1)
        good = new <= before + _SUFFICIENT * np.minimum(expected, 0.0)
        # The minimum of the parabola through both values and the first slope.
        bend = np.maximum(new - before - expected, TINY)
        shorter = np.clip(-expected / (2.0 * bend), *_SHORTER)
        bad, taken = active[~good], active[good]
        self._lengths[bad] *= shorter[~good]
        self._n_shorter[bad] += 1
        slopes = slopes[good] / units[good][:, None]
        self._history.add(taken, (trial - old)[good], slopes - gradients[good])
        self._z[taken], self._values[taken], self._gradients[taken] = trial[good], new[good], slopes
        gains = (before - new)[good]
        again = bad[self._n_shorter[bad] < _MOST_SHORTER]
        self._fresh, self._active = taken, np.union1d(taken[gains > worthwhile], again)

    def _set_directions(self, places: NDArray[np.intp]) -> None:
        """Choose the directions of some targets."""
        inside = self._inside[places]
        slopes = self._gradients[places] * inside
        d = self._history.directions(places, slopes) * inside
        uphill = np.sum(d * slopes, axis=1) >= 0
        self._history.forget(places[uphill])
        d[uphill] = -slopes[uphill]
        self._directions[places], self._lengths[places], self._n_shorter[places] = d, 1.0, 0

    def found(self) -> TargetWeights:
        """Return weights and λ; small weights are set to 0."""
        weights, lam = self._function.split(self._z, np.arange(len(self._z)))
        weights = np.where(weights < NEGLIGIBLE, 0.0, weights)
        weights /= weights.sum(axis=1, keepdims=True)
        return TargetWeights(weights, lam, np.full(len(lam), np.inf))


def minimize_errors(
    at: ErrorsAt,
    start: TargetWeights,
    *,
    pull: float,
    learns_regularization: bool = True,
    max_evaluations: int = 60,
    worthwhile: float = 1e-5,
    monitor: Callable[[float, FloatArray], None] | None = None,
) -> TargetWeights:
    """Minimize the error plus pull of every target over weights and λ, as `minimize_error`.

    Parameters
    ----------
    at : callable
        Returns errors and derivatives of some targets.
    start : TargetWeights
        The initial weights and λ.
    pull : float
        The factor of KL(weights ‖ equal weights).
    learns_regularization : bool, default=True
        Whether λ are learned too.
    max_evaluations : int, default=60
        Maximum number of evaluations of each target.
    worthwhile : float, default=1e-5
        The decrease, relative to the first value, below which the descent of a target ends.
    monitor : callable, optional
        Called with the mean value and mean weights after every step.

    Returns
    -------
    TargetWeights
        Weights below 0.001 are set to 0; errors are not computed.
    """
    given = None if learns_regularization else start.regularization
    descent = _Descent(_Objective(at, pull, given), start)
    for _ in range(max_evaluations - 1):
        if descent.is_done() or must_stop_learning():
            break
        descent.step(worthwhile)
        if monitor is not None:
            monitor(*descent.means)
    return descent.found()


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
        Where errors of many targets are computed at once; None for one target at a time.
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
        return _LAMBDAS if self.regularization is None else (self.regularization,)

    @cached_property
    def errors(self) -> ErrorsAt:
        """TargetErrors and derivatives of some targets."""
        if self.device is None or self.target.groups is not None:
            return SingleErrors(self.bank, self.target)
        return StackedErrors(self.bank, self.target, self.device)

    def search(self, *, tries_others: bool, random_state: Any = None) -> TargetWeights:
        """Return the best weights and λ of each target that descent from candidates finds.

        Parameters
        ----------
        tries_others : bool
            Whether single kernels and random weights are candidates too, not only the average.
        random_state : int, RandomState or None
            The seed of the random weights; None means 0.
        """
        best = self.try_weights(uniform(self.bank.n_kernels))
        for weights in self._others(random_state) if tries_others else ():
            if must_stop_learning():
                return best
            best = self.best(best, self.try_weights(weights))
        if must_stop_learning():
            return best
        if not tries_others:
            return self.descend(best)
        return self.best(best, self.descend(best, worthwhile=_WORTHWHILE))

    def _others(self, random_state: Any) -> Iterator[FloatArray]:
        """Yield single kernels and random weights."""
        p = self.bank.n_kernels
        if p > 1:
            yield from np.eye(p)
            rng = check_random_state(0 if random_state is None else random_state)
            for i in range(_N_RANDOM):
                yield rng.dirichlet(np.full(p, _CONCENTRATIONS[i % 2]))

    def try_weights(self, weights: FloatArray) -> TargetWeights:
        """Return the λ of each target for the same weights: the largest within 1 % of the best."""
        systems = self.bank.systems(weights)
        losses = np.stack([self._losses(systems(lam), lam) for lam in self.lambdas])
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
        return self.best(own, self.descend(own, max_evaluations=_REFINEMENTS))

    def best(self, one: TargetWeights, other: TargetWeights) -> TargetWeights:
        """Return the better of two candidates for each target, by error plus pull."""
        better = np.flatnonzero(self._scores(other) < self._scores(one))
        return one.replaced(better, other.of(better))

    def _scores(self, found: TargetWeights) -> FloatArray:
        w = found.weights
        logs = np.log(np.where(w > 0, w * w.shape[1], 1.0))
        pulls = self.pull / self.target.effective * np.sum(w * logs, axis=1)
        return np.asarray(found.errors + pulls)
