"""A primal-dual interior-point method for the margin criteria of Lanckriet et al. (2004).

The dual of all three programs is one quadratically constrained program in α alone,

    max 2αᵀ1 − ρ‖α‖² − t   over   0 ≤ α ≤ B, Σβ = 0, βᵀK_iβ ≤ t,   β = diag(y)α,

and the weights are the multipliers of its constraints. A Newton step takes one Cholesky
factorization of size n_samples, as much as for a single support vector machine. The method learns
weights and machine together, while a cutting-plane method needs a new machine for every cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from discernel.arrays import ALMOST_ZERO, Cholesky, FloatArray, matmul
from discernel.programs.base import Point, relative_gap
from discernel.programs.simplex import normalize, uniform
from discernel.programs.solution import Monitor, Solution, Status, Task, silent

if TYPE_CHECKING:
    from discernel.papers.margin.criterion import SoftMargin

#: The largest fraction of the distance to the boundary that a step may take.
_FRACTION = 0.995
_SMALLEST_STEP = 1e-8
#: The number of steps without a smaller gap after which the method stops, because rounding errors
#: prevail. It applies below the second number, a relative gap: for large C, the gap need not
#: decrease while α is still far too small.
_PATIENCE, _NEAR = 5, 0.1
#: The relative gap of the machine at fixed weights, if floating point allows it.
_INNER_TOL = 1e-11
#: Lower limit of the numbers added to the diagonal of kernels of trace n_samples.
_FLOOR = 1e-12


class Machine(NamedTuple):
    """A support vector machine on the training set, exact or approximate.

    Attributes
    ----------
    beta : ndarray of shape (n_samples,)
        β = diag(y)α.
    threshold : float
        b.
    """

    beta: FloatArray
    threshold: float


class MarginPoint(Point):
    """A program at some weights, bounded from both sides by a support vector machine.

    Attributes
    ----------
    weights : ndarray of shape (n_weights,)
    value : float
        The primal value of the machine, an upper bound of f(w).
    """

    def __init__(
        self, program: SoftMargin, weights: FloatArray, machine: Machine, products: FloatArray
    ) -> None:
        self.weights = weights
        self.value = program.upper_bound(weights, machine, products)
        self._intercept = program.linear_part(machine.beta)
        self._energies = products @ machine.beta  # βᵀK_iβ

    @cached_property
    def gradient(self) -> FloatArray:
        return -self._energies

    @property
    def intercept(self) -> float:
        return self._intercept  # not from the value, which is an upper bound of f(w)

    @cached_property
    def bound(self) -> float:
        return self._intercept - float(self._energies.max())


@dataclass(frozen=True)
class InteriorPoint:
    """A primal-dual interior-point method for the margin criteria, [Mehrotra92]_.

    At the end, weights are set to 0 as long as the gap stays within the tolerance.

    Notes
    -----
    A step takes one factorization of size n_samples and two products with every kernel. About 5 to
    25 steps reach a relative gap of 1e-6; large C take more steps than small ones.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import InteriorPoint
    >>> learned = learn_kernel(
    ...     grams, (y[::3] == 0), criterion="margin", solver=InteriorPoint(), regularization=0.01
    ... )
    >>> learned.solver, learned.status.value
    ('interior_point', 'converged')
    """

    name: ClassVar[str] = "interior_point"
    needs: ClassVar[tuple[str, ...]] = ("feasible", "upper_bound", "products", "matrix")

    def solve(self, program: Any, task: Task) -> Solution:
        max_iter = 200 if task.max_iter is None else task.max_iter
        best, status, n_iter = _solve(program, task.tol, max_iter, task.monitor)
        point = best.point
        if status is Status.CONVERGED:
            point = _pruned(best, task.tol)
        return Solution(point.weights, point.value, best.point.bound, status, n_iter)


def maximize(program: SoftMargin) -> Machine:
    """Return the support vector machine of a program with one kernel, to high accuracy."""
    return _solve(program, _INNER_TOL, 200, silent)[0].machine


class _Iterate:
    """An iterate: numbers x > 0 with multipliers u > 0, a threshold b and a level τ.

    x consists of α, of B − α if there is a limit, and of the weights. u consists of the multipliers
    of α ≥ 0 and of α ≤ B, and of the slacks of τ ≥ ½βᵀK_iβ. At the optimum x∘u = 0.
    """

    def __init__(
        self, program: SoftMargin, x: FloatArray, u: FloatArray, threshold: float, level: float
    ) -> None:
        self.program, self.x, self.u = program, x, u
        self.threshold, self.level = threshold, level
        n_samples = len(program.signs)
        self.limited = slice(0, n_samples if np.isfinite(program.limit) else 0)
        #: The three parts of x, and of u.
        self.parts = np.split(np.arange(len(x)), [n_samples, len(x) - program.n_weights])
        #: The weight of each number: the sample weight for numbers of a row, else 1.
        rows = program.roots**2
        self.counts = np.concatenate([rows, rows[self.limited], np.ones(program.n_weights)])
        beta = program.feasible(program.signs * x[:n_samples])
        self.machine = Machine(beta, threshold)
        self.products = program.products(beta)
        weights = normalize(x[-program.n_weights :])
        self.point = MarginPoint(program, weights, self.machine, self.products)

    @classmethod
    def start(cls, program: SoftMargin) -> _Iterate:
        """Return the initial iterate, with equal weights and equal α in each class."""
        signs, weights = program.signs, uniform(program.n_weights)
        second, roots = signs > 0, program.roots
        rows = roots**2
        beta = signs / np.where(second, rows[second].sum(), rows[~second].sum()) * roots
        products = program.products(beta)
        largest = float((products @ beta).max())
        size = 2.0 / max(largest + program.ridge * float(beta @ beta), ALMOST_ZERO)
        size = min(size, 0.5 * program.limit / float(np.abs(beta / roots).max()))
        alpha, energies = size * np.abs(beta), size**2 * (products @ beta)
        level = 0.5 * float(energies.max()) + 0.05 * float((roots * alpha).sum())
        excess = size * signs * (weights @ products + program.ridge * beta) - roots
        multipliers = np.maximum(excess, 0.0) + 0.1 * roots
        room = program.limit * roots - alpha if np.isfinite(program.limit) else np.empty(0)
        x = np.concatenate([alpha, room, weights])
        # For a large C, the multipliers of the limit should equal those of α if many α reach the
        # limit, and the products x∘u should be equal if none do: use the geometric mean.
        mean = float((alpha * multipliers).sum() / rows.sum())
        balanced = mean * (rows * roots)[: len(room)] / room
        u = np.concatenate([multipliers, np.sqrt(0.1 * balanced), level - 0.5 * energies])
        return cls(program, x, u, 0.0, level)

    @property
    def mean(self) -> float:
        """The mean of x∘u, which the method drives to 0."""
        return float(self.x @ self.u) / float(self.counts.sum())

    def moved(self, step: _Step, length: float) -> _Iterate:
        """Return the iterate after a step of some length."""
        return _Iterate(
            self.program,
            self.x + length * step.x,
            self.u + length * step.u,
            self.threshold + length * step.threshold,
            self.level + length * step.level,
        )

    def longest(self, step: _Step) -> float:
        """Return the longest step, at most 1, that stays inside the boundary."""
        here, change = np.append(self.x, self.u), np.append(step.x, step.u)
        falls = change < 0
        reach = float(np.min(-here[falls] / change[falls], initial=np.inf))
        return min(1.0, _FRACTION * reach)


class _Step(NamedTuple):
    """A change of an `_Iterate`."""

    x: FloatArray
    u: FloatArray
    threshold: float
    level: float


class _NewtonSystem:
    """The optimality conditions, linearized at an iterate and factored.

    In terms of β, with D = z/α + v/(B − α), z and v the multipliers of α, and g_i = K_iβ:

        (K(w) + ρI + D) Δβ + Σ Δw_i g_i + 1 Δb = ...,    1ᵀΔβ = 0,    1ᵀΔw = 1 − 1ᵀw,
        Δτ − g_iᵀΔβ + (s_i/w_i) Δw_i = ...

    Eliminating Δβ leaves a system of size n_weights + 2.
    """

    def __init__(self, at: _Iterate) -> None:
        self.at, program = at, at.program
        self._signs, self._n = program.signs, program.n_weights
        samples, limited, kernels = at.parts
        weights = at.x[kernels]
        ratio = at.u / at.x
        diagonal = ratio[samples] + program.ridge
        diagonal[at.limited] += ratio[limited]
        matrix = program.matrix(weights)
        # If α is large, D is below the rounding errors of the kernels. A lower limit keeps the
        # matrix positive definite; it changes the direction of the step, not the conditions.
        matrix[np.diag_indices_from(matrix)] += np.maximum(diagonal, _FLOOR)
        self._factor = Cholesky(matrix)
        self._border = np.vstack([at.products, program.roots])
        self._solved = self._factor.solve(np.asfortranarray(self._border.T))
        n = self._n
        self._small = np.zeros((n + 2, n + 2))
        self._small[: n + 1, : n + 1] = matmul(self._border, self._solved)
        self._small[np.arange(n), np.arange(n)] += ratio[kernels]
        self._small[n + 1, :n] = self._small[:n, n + 1] = 1.0
        # Residuals of the optimality conditions.
        beta = at.machine.beta
        scores = weights @ at.products + program.ridge * beta + at.threshold * program.roots
        self.stationarity = program.roots - self._signs * scores + at.u[samples]
        self.stationarity[at.limited] -= at.u[limited]
        self.levels = at.level - 0.5 * (at.products @ beta) - at.u[kernels]
        self._total = 1.0 - float(weights.sum())

    def step(
        self, complementarity: FloatArray, stationarity: FloatArray, levels: FloatArray
    ) -> _Step:
        """Return the step for given residuals of x∘u, stationarity and levels."""
        at, n = self.at, self._n
        samples, limited, kernels = at.parts
        share = complementarity / at.x
        right = stationarity + share[samples]
        right[at.limited] -= share[limited]
        solved = self._factor.solve(self._signs * right)
        known = self._border @ solved
        known[:n] += share[kernels] - levels
        small = np.linalg.solve(self._small, np.append(known, self._total))
        alpha = self._signs * (solved - self._solved @ small[: n + 1])
        x = np.concatenate([alpha, -alpha[at.limited], small[:n]])
        return _Step(x, (complementarity - at.u * x) / at.x, float(small[n]), float(small[n + 1]))


def _advance(at: _Iterate) -> _Iterate | None:
    """Return the next iterate by a predictor and a corrector, or None if no step is left."""
    try:
        system = _NewtonSystem(at)
        affine = system.step(-at.x * at.u, system.stationarity, system.levels)
        ahead = at.longest(affine)
        if not at.mean > 0:  # x∘u underflows
            return None
        moved = float((at.x + ahead * affine.x) @ (at.u + ahead * affine.u))
        reached = moved / float(at.counts.sum())
        center = (max(reached, 0.0) / at.mean) ** 3 * at.mean
        # Second-order correction, from the predictor step.
        signs, kernels = at.program.signs, at.parts[2]
        change = signs * affine.x[: len(signs)]
        products = at.program.products(change)
        step = system.step(
            center * at.counts - at.x * at.u - affine.x * affine.u,
            system.stationarity - signs * (affine.x[kernels] @ products),
            system.levels - 0.5 * (products @ change),
        )
    except np.linalg.LinAlgError:  # rounding errors prevail
        return None
    length = at.longest(step)
    if not length >= _SMALLEST_STEP or not np.isfinite(step.x).all():
        return None
    return at.moved(step, length)


def _solve(
    program: SoftMargin, tol: float, max_iter: int, monitor: Monitor
) -> tuple[_Iterate, Status, int]:
    """Return the iterate with the smallest certified gap, the status, and the number of steps."""
    best = at = _Iterate.start(program)
    idle = 0
    for iteration in range(max_iter + 1):
        here, there = at.point, best.point
        better = here.gap < there.gap
        if not np.isfinite(there.value):  # and so its gap
            better = bool(np.isfinite(here.value)) or here.bound > there.bound
        if better:
            best = at
        monitor(iteration, best.point.value, best.point.gap, best.point.weights)
        if best.point.gap <= tol:
            return best, Status.CONVERGED, iteration
        idle = 0 if better or not best.point.gap < _NEAR else idle + 1
        following = _advance(at) if idle < _PATIENCE else None
        if following is None:
            return best, Status.STALLED, iteration
        at = following
    return best, Status.MAX_ITERATIONS, max_iter


def _pruned(at: _Iterate, tol: float) -> MarginPoint:
    """Return the point with as many small weights set to 0 as the tolerance allows."""
    point, bound = at.point, at.point.bound
    for index in np.argsort(point.weights)[:-1]:
        if index == 0 and at.program.identity_first:
            continue  # C would be infinite
        weights = point.weights.copy()
        weights[index] = 0.0
        without = MarginPoint(at.program, normalize(weights), at.machine, at.products)
        if relative_gap(without.value, bound) > tol:
            break
        point = without
    return point
