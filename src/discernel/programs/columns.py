"""Column generation and safe screening, for many kernels with few positive weights.

Screening excludes kernels that cannot have positive weight at an optimum of `rkda`.
With P(w) = ⟨T, N(w)⁻¹T⟩, N(w) = λI + Σ w_iK_i and q_i(B) = ⟨B, K_iB⟩, the criterion is

    min_w P(w)  =  min_w max_B L(w, B)  =  max_B D(B),
    L(w, B) = 2⟨T, B⟩ − λ‖B‖² − Σ w_i q_i(B),    D(B) = 2⟨T, B⟩ − λ‖B‖² − max_i q_i(B).

D is strongly concave, so it has a unique maximizer B*. Every optimal w* minimizes L(·, B*) over the
simplex, so only kernels with the largest q_i(B*) of all have positive weight.

The ball. For any w on the simplex, B = N(w)⁻¹T and number t:

* D(tB) ≤ D(B*) − λ‖tB − B*‖², because D plus λ‖·‖² is concave and B* is the maximizer of D;
* D(B*) ≤ L(w, B*) = P(w) − ⟨B − B*, N(w)(B − B*)⟩ ≤ P(w) − λ‖B − B*‖².

Their sum is λ‖tB − B*‖² + λ‖B − B*‖² ≤ P(w) − D(tB) = g. The left side is, with the midpoint
C = ½(1 + t)B, equal to 2λ‖C − B*‖² + ½λ(1 − t)²‖B‖², hence

    ‖C − B*‖²  ≤  r² = g / (2λ) − ¼(1 − t)²‖B‖²,

half the squared radius that either inequality gives alone. The t with the largest D(tB) is the one
of `RKDAProgram.lower_bound`.

The bounds. q_i is convex and its curvature is at most 2‖K_i‖, so in the ball

    q_i(C) − 2r‖K_iC‖  ≤  q_i(B*)  ≤  q_i(C) + 2r‖K_iC‖ + r²‖K_i‖.

A kernel whose upper bound is below some kernel's lower bound has weight 0 at every optimum. This
is the gap-safe rule [Ndiaye17]_ for a sum of kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, inner, quadratic_forms
from discernel.programs.base import relative_gap
from discernel.programs.newton import Newton
from discernel.programs.simplex import normalize, uniform
from discernel.programs.solution import Monitor, Solution, Solver, Status, Task

#: From this many kernels on, solvers get few of them at a time. With 400 kernels on 400 rows this
#: is four times as fast if 4 have positive weight, twice as fast for 80, and no faster for 200.
MANY_KERNELS = 200
#: Number of kernels of the first program, and the smallest number added to a later one.
_FIRST, _NEW = 64, 32
#: Tolerance for a program of few kernels, relative to the tolerance for all kernels.
_INNER = 0.5
#: Limit of the steps of all programs together.
_MAX_STEPS = 1000


@dataclass(frozen=True)
class DualBall:
    """A ball around ``scale`` times B that contains B*.

    Attributes
    ----------
    scale : float
        ½(1 + t).
    radius : float
        r.
    """

    scale: float
    radius: float

    def can_enter(
        self,
        energies: FloatArray,
        lengths: FloatArray,
        norms: FloatArray,
        noise: float | FloatArray = 0.0,
    ) -> NDArray[np.bool_]:
        """Return which kernels may have positive weight; all others have weight 0 at every optimum.

        Parameters
        ----------
        energies : ndarray of shape (n_kernels,)
            ⟨B, K_iB⟩.
        lengths : ndarray of shape (n_kernels,)
            ‖K_iB‖.
        norms : ndarray of shape (n_kernels,)
            Upper bounds of ‖K_i‖.
        noise : float or ndarray of shape (n_kernels,), default=0.0
            Bounds of the rounding errors of the energies.
        """
        center = self.scale**2 * energies
        slack = 2.0 * self.radius * self.scale * lengths + self.scale**2 * noise
        largest = float((center - slack).max())
        return np.asarray(center + slack + self.radius**2 * norms >= largest)


class _Survivors:
    """The kernels that may have positive weight at an optimum, with their norms and energies.

    Attributes
    ----------
    positions : ndarray
        Positions of these kernels.
    norms : ndarray
        Upper bounds of their norms.
    energies, lengths : ndarray
        ⟨B, K_iB⟩ and ‖K_iB‖ at the last dual point.
    noise : ndarray
        Bounds of the rounding errors of the energies.
    """

    energies: FloatArray
    lengths: FloatArray
    noise: FloatArray

    def __init__(self, program: Any) -> None:
        self.program, self.norms = program, program.bank.norms()
        self.positions = np.arange(program.n_weights)

    def update(self, dual: FloatArray) -> float:
        """Update energies and lengths in one pass over the kernels; return the lower bound.

        All other kernels have weight 0 at every optimum, so the bound is valid for all kernels.
        """
        few = self.program
        if len(self.positions) < few.n_weights:
            few = few.select(self.positions)
        products = few.bank.products(dual)
        self.energies = quadratic_forms(products, dual)
        self.lengths = np.array([np.sqrt(inner(product, product)) for product in products])
        self.noise = few.bank.rounding * inner(dual, dual)
        return float(few.lower_bound(dual, energies=self.energies))

    def screen(self, value: float, dual: FloatArray) -> None:
        """Drop the kernels that have weight 0 at every optimum."""
        ball = self.program.dual_ball(value, dual, self.energies)
        stay = ball.can_enter(self.energies, self.lengths, self.norms, self.noise)
        self.positions, self.norms = self.positions[stay], self.norms[stay]
        self.energies = self.energies[stay]

    def strongest(self, n: int) -> NDArray[np.intp]:
        """Return the ``n`` kernels with the largest energies."""
        return self.positions[np.argsort(-self.energies, kind="stable")[:n]]

    def entering(self, support: NDArray[np.intp], n: int) -> NDArray[np.intp]:
        """Return at most ``n`` kernels whose energies exceed those of all kernels in use."""
        has_weight = np.isin(self.positions, support)
        above = self.energies > self.energies[has_weight].max(initial=0.0)
        return self.strongest(min(n, int(above.sum())))


@dataclass
class _StepReporter:
    """Report the steps of one program of few kernels as steps over all kernels.

    The gap of a program of few kernels is not a gap over all kernels. The reported gap is relative
    to the bound over all kernels so far. The last step is held back until this bound is updated.
    """

    monitor: Monitor
    n_before: int
    #: Whether this is the first program. Others start at the end of the one before.
    is_first: bool
    bound: float
    active: NDArray[np.intp]
    n_kernels: int
    held: tuple[int, float, float, FloatArray] | None = None

    def expand(self, weights: FloatArray) -> FloatArray:
        """Return weights of all kernels from weights of the active kernels."""
        full = np.zeros(self.n_kernels)
        full[self.active] = weights
        return full

    def report(
        self, iteration: int, value: float, _: float | None, weights: FloatArray, /, **__: int
    ) -> None:
        """Report the previous step, and keep this one; a `Monitor`."""
        if self.held is not None:
            self.monitor(*self.held)
        if iteration > 0 or self.is_first:
            gap = relative_gap(value, self.bound)
            self.held = self.n_before + iteration, value, gap, self.expand(weights)


@dataclass(frozen=True)
class Columns:
    """Minimize `rkda` over many kernels by solving programs of few of them.

    Each round solves the program of the active kernels, then passes once over all kernels that
    may still have positive weight. The pass gives the certificate; the kernels that would decrease
    the value fastest, which become active; and a ball that contains the dual optimum, by which
    other kernels are excluded permanently.

    Parameters
    ----------
    solver : Solver, default=Newton()
        The solver of the programs of few kernels.

    Notes
    -----
    The value decreases in every round, so no set of active kernels occurs twice. Iterations are
    the steps of the solver over all programs. ``max_iter`` limits their sum, and the monitor gets
    each step with the gap over all kernels that is certified so far. The last step of a round is
    reported after the pass.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import Columns
    >>> learned = learn_kernel(
    ...     grams, y[::3], criterion="rkda", solver=Columns(), regularization=0.01
    ... )
    >>> learned.solver, learned.status.value
    ('columns', 'converged')
    """

    solver: Solver = field(default_factory=Newton)
    name: ClassVar[str] = "columns"
    needs: ClassVar[tuple[str, ...]] = ("at", "select", "dual_ball", "lower_bound")

    def solve(self, program: Any, task: Task) -> Solution:
        survivors, n_kernels = _Survivors(program), program.n_weights
        weights, active, bound = self._start(survivors, task)
        max_iter = _MAX_STEPS if task.max_iter is None else task.max_iter
        n_steps, is_first, status = 0, True, Status.MAX_ITERATIONS
        while True:
            few = program.select(active)
            steps = _StepReporter(task.monitor, n_steps, is_first, bound, active, n_kernels)
            part = Task(_INNER * task.tol, max_iter - n_steps, weights, steps.report)
            found = self.solver.solve(few, part)
            n_steps += found.n_iter
            dual = few.at(found.weights).dual
            bound = max(bound, survivors.update(dual))
            gap = relative_gap(found.value, bound, found.error)
            support, weights = active[found.weights > 0], found.weights[found.weights > 0]
            full = steps.expand(found.weights)
            task.monitor(n_steps, found.value, gap, full)
            survivors.screen(found.value + found.error, dual)
            if gap <= task.tol:
                status = Status.CONVERGED
                break
            if n_steps >= max_iter:
                break
            new = survivors.entering(support, max(_NEW, len(support)))
            is_stuck = not len(new) and not found.status.is_success
            if is_stuck or (found.n_iter == 0 and not is_first):
                status = Status.STALLED if found.status.is_success else found.status
                break
            stays = np.isin(support, survivors.positions)
            active = np.concatenate([support[stays], new])
            weights = normalize(np.concatenate([weights[stays], np.zeros(len(new))]))
            is_first = False
        screened = len(full) - len(np.union1d(survivors.positions, support))
        return Solution(full, found.value, bound, status, n_steps, screened, found.error)

    @staticmethod
    def _start(survivors: _Survivors, task: Task) -> tuple[FloatArray, NDArray[np.intp], float]:
        """Return initial weights of the first active kernels, their positions, and a bound."""
        if task.init is not None:
            active = np.flatnonzero(task.init)
            return task.init[active], active, 0.0  # values are never negative
        # For λ → ∞, B is a multiple of T, and selects the kernels most similar to the classes.
        bound = survivors.update(survivors.program.scores)
        active = survivors.strongest(_FIRST)
        return uniform(len(active)), active, bound
