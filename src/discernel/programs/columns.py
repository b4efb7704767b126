"""Column generation, for many kernels with few positive weights."""

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

#: From this many kernels on a solver is given few of them at a time. Of 400 kernels on 400 rows it
#: is then four times as fast where 4 have weight, twice where 80 have, no faster where half have.
MANY_KERNELS = 200
#: Kernels that the first program has, and that a further one gets at least.
_FIRST, _NEW = 64, 32
#: The gap of a program of few kernels, relative to the gap over all that is asked for.
_INNER = 0.5
#: Steps of all programs together.
_MAX_STEPS = 1000


class _Survivors:
    """The kernels that may have weight at an optimum, with their norms and energies.

    Attributes
    ----------
    positions : ndarray
        Which they are.
    norms : ndarray
        Their norms, or more.
    energies, lengths : ndarray
        ⟨B, K_iB⟩ and ‖K_iB‖ at the last dual point.
    noise : ndarray
        How much the energies can be wrong because of rounding.
    """

    energies: FloatArray
    lengths: FloatArray
    noise: FloatArray

    def __init__(self, program: Any) -> None:
        self.program, self.norms = program, program.bank.norms()
        self.positions = np.arange(program.n_weights)

    def look(self, dual: FloatArray) -> float:
        """Pass over all of them once, and return the bound that the dual point gives.

        The other kernels have no weight at an optimum, so it is a bound for all of them.
        """
        few = self.program
        if len(self.positions) < few.n_weights:
            few = few.few(self.positions)
        products = few.bank.products(dual)
        self.energies = quadratic_forms(products, dual)
        self.lengths = np.array([np.sqrt(inner(product, product)) for product in products])
        self.noise = few.bank.rounding * inner(dual, dual)
        return float(few.lower_bound(dual, energies=self.energies))

    def screen(self, value: float, dual: FloatArray) -> None:
        """Drop the kernels that have no weight at any optimum."""
        ball = self.program.dual_ball(value, dual, self.energies)
        stay = ball.can_enter(self.energies, self.lengths, self.norms, self.noise)
        self.positions, self.norms = self.positions[stay], self.norms[stay]
        self.energies = self.energies[stay]

    def strongest(self, n: int) -> NDArray[np.intp]:
        """Return the ``n`` kernels with the largest energies."""
        return self.positions[np.argsort(-self.energies, kind="stable")[:n]]

    def entering(self, support: NDArray[np.intp], n: int) -> NDArray[np.intp]:
        """Return at most ``n`` kernels whose energies are above those of all with weight."""
        has_weight = np.isin(self.positions, support)
        above = self.energies > self.energies[has_weight].max(initial=0.0)
        return self.strongest(min(n, int(above.sum())))


@dataclass
class _Steps:
    """The steps of one program, told as steps of all of them; the last is held back.

    The gap of a few kernels is no gap of all, but the bound so far is one: it gives the gap.
    """

    monitor: Monitor
    n_before: int
    #: Where the others start, the program before has ended.
    is_first: bool
    bound: float
    active: NDArray[np.intp]
    n_kernels: int
    held: tuple[int, float, float, FloatArray] | None = None

    def expand(self, weights: FloatArray) -> FloatArray:
        """Return weights of the active kernels as weights of all."""
        full = np.zeros(self.n_kernels)
        full[self.active] = weights
        return full

    def tell(
        self, iteration: int, value: float, _: float | None, weights: FloatArray, /, **__: int
    ) -> None:
        if self.held is not None:
            self.monitor(*self.held)
        if iteration > 0 or self.is_first:
            gap = relative_gap(value, self.bound)
            self.held = self.n_before + iteration, value, gap, self.expand(weights)


@dataclass(frozen=True)
class Columns:
    """Minimize `rkda` over many kernels by solving programs of few of them.

    Each round solves the program of the active kernels, then passes once over all kernels that
    may still have weight. The pass gives the certificate; the kernels that would lower the value
    fastest, which become active; and a ball that holds the dual optimum, because of which others
    leave for good.

    Parameters
    ----------
    solver : Solver, default=Newton()
        What solves the programs of few kernels.

    Notes
    -----
    The value falls from round to round, so no set of active kernels comes twice. Iterations are
    the steps of the solver, over all programs: ``max_iter`` limits their sum, and the monitor is
    told of each, with the gap over all kernels that is certified so far. The last step of a round
    is told of after the pass.

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
    needs: ClassVar[tuple[str, ...]] = ("at", "few", "dual_ball", "lower_bound")

    def solve(self, program: Any, task: Task) -> Solution:
        survivors, n_kernels = _Survivors(program), program.n_weights
        weights, active, bound = self._start(survivors, task)
        max_iter = _MAX_STEPS if task.max_iter is None else task.max_iter
        n_steps, is_first, status = 0, True, Status.MAX_ITERATIONS
        while True:
            few = program.few(active)
            steps = _Steps(task.monitor, n_steps, is_first, bound, active, n_kernels)
            part = Task(_INNER * task.tol, max_iter - n_steps, weights, steps.tell)
            found = self.solver.solve(few, part)
            n_steps += found.n_iter
            dual = few.at(found.weights).dual
            bound = max(bound, survivors.look(dual))
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
        """Return the weights of the first active kernels, which they are, and a first bound."""
        if task.init is not None:
            active = np.flatnonzero(task.init)
            return task.init[active], active, 0.0  # no value is below
        # λ → ∞: B is a multiple of T, and the kernels it favours are those most like the classes
        bound = survivors.look(survivors.program.scores)
        active = survivors.strongest(_FIRST)
        return uniform(len(active)), active, bound
