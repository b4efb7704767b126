"""L-BFGS for the errors of many targets in lockstep, over the weights and λ of each.

Every target has a history and a line search of its own; no target depends on another. The errors
and gradients of a step are computed for all targets together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from discernel.arrays import FloatArray
from discernel.programs.loo import LAMBDA_BOUNDS, NEGLIGIBLE, TINY
from discernel.programs.solution import TargetWeights
from discernel.progress.deadline import must_stop_learning

#: Steps and changes of the gradient that L-BFGS keeps, as SciPy does.
_HISTORY = 10
#: An accepted step decreases the value by this share of the expected decrease.
_SUFFICIENT = 1e-4
#: A step is shortened at most so many times, and by these factors.
_MOST_SHORTER, _SHORTER = 10, (0.1, 0.5)
#: Gradients below this end the descent, as in SciPy.
_FLAT_GRADIENT = 1e-5


class TargetErrors(NamedTuple):
    """Errors of some targets at weights and λ of their own, with derivatives, as `ErrorPoint`."""

    values: FloatArray
    by_weights: FloatArray
    by_regularization: FloatArray


#: From positions of targets, their weights and their λ to their errors.
ErrorsAt = Callable[[NDArray[np.intp], FloatArray, FloatArray], TargetErrors]


@dataclass(frozen=True, eq=False)
class _Objective:
    """Errors plus pull of all targets as functions of z = (log weights, log λ)."""

    at: ErrorsAt
    pull: float
    #: λ of each target; None if it is learned.
    regularization: FloatArray | None

    def split(self, z: FloatArray, places: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return weights and λ."""
        if self.regularization is not None:
            return softmax(z, axis=1), self.regularization[places]
        return softmax(z[:, :-1], axis=1), np.exp(z[:, -1])

    def __call__(self, z: FloatArray, places: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return values and gradients of some targets."""
        weights, lam = self.split(z, places)
        w, p = np.maximum(weights, TINY), weights.shape[1]
        found = self.at(places, w, lam)
        logs = np.log(w * p)
        values = found.values + self.pull * np.sum(w * logs, axis=1)
        by_w = found.by_weights + self.pull * (logs + 1.0)
        gradients = w * (by_w - np.sum(w * by_w, axis=1)[:, None])
        if self.regularization is None:
            gradients = np.column_stack([gradients, found.by_regularization * lam])
        return values, gradients


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
        values, slopes = self._function(trial, active)
        new, before = values / units, self._values[active]
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
