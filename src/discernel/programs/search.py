"""Which criterion: whatever predicts left-out rows best."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from discernel.arrays import FloatArray
from discernel.bank import Bank
from discernel.programs.lambdas import find_limit, lambda_grid
from discernel.programs.lbfgs import (
    choose_regularization,
    leave_one_out_error,
    minimize_error,
    pull_to_equal,
)
from discernel.programs.loo import LeaveOneOutError, LeaveOneOutProgram
from discernel.programs.newton import Newton
from discernel.programs.part import Part, draw_part
from discernel.programs.rkda import ShrunkRKDAProgram
from discernel.programs.simplex import uniform
from discernel.programs.solution import (
    Candidate,
    Limit,
    Solution,
    Status,
    StoppedError,
    Task,
)
from discernel.progress.deadline import must_stop_learning
from discernel.targets import Target

__all__ = ["LBFGS", "Search"]

#: Evaluations of the leave-one-out gradient on all samples, after a start from a part of them.
_REFINEMENTS = 3
#: A candidate on a part of the samples counts as close up to this multiple of the best score.
_CLOSE = 1.1
_LAMBDAS = lambda_grid(0.0, -6.0, per_decade=1)
_SHRINKAGES = (0.0, 0.03, 0.1, 0.3)


@dataclass
class _Search:
    """One search for the best candidate on one set of samples."""

    bank: Bank
    target: Target
    pull: float
    #: λ; None where it is to be chosen.
    regularization: float | None
    task: Task
    stage: int = 0
    n_stages: int = 1
    #: Evaluations before, and of this search.
    n_before: int = 0
    n_evaluations: int = 0
    found: dict[str, Candidate] = field(default_factory=dict)
    #: Whether the time was over before all was tried.
    is_stopped: bool = False

    @classmethod
    def of(cls, program: LeaveOneOutProgram, task: Task, **options: Any) -> _Search:
        """Return the search on all samples of a program."""
        return cls(
            program.bank, program.target, program.pull, program.regularization, task, **options
        )

    def add(self, name: str, weights: FloatArray, regularization: float, error: float) -> None:
        """Note a candidate if it is the best of its name so far."""
        pull = pull_to_equal(weights, self.pull, self.bank.effective)
        candidate = Candidate(name, weights, regularization, error, pull)
        if name not in self.found or candidate.score < self.found[name].score:
            self.found[name] = candidate

    def try_all(self) -> None:
        """Try every kind of candidate that there is time for."""
        lambdas, p = self.lambdas, self.bank.n_kernels
        best = self.try_lambdas("average", uniform(p), lambdas)
        for unit in np.eye(p):  # neighbours on a ladder want about the same λ
            if self.must_stop():
                return
            best = self.try_lambdas("single", unit, lambdas, start=best)
        self.try_rkda(lambdas)
        if not self.bank.has_matrices:  # the gradient of the leave-one-out error needs it
            return
        self.try_loo(self.found["average"])
        other = self.ranking()[0]
        if other.name != "loo":  # descent from the average ended in a worse place
            self.try_loo(other)

    def must_stop(self) -> bool:
        """Whether the time is over, which is noted."""
        self.is_stopped = self.is_stopped or must_stop_learning()
        return self.is_stopped

    def try_lambdas(
        self,
        name: str,
        weights: FloatArray,
        lambdas: tuple[float, ...],
        start: float | None = None,
    ) -> float:
        """Try weights with some λ, falling, all or from a start downhill; return the best."""
        best, error = choose_regularization(self.bank, self.target, weights, lambdas, start)
        self.add(name, weights, best, error)
        return best

    def try_rkda(self, lambdas: tuple[float, ...]) -> None:
        """Try the optimum of `rkda` for some λ, and what shrinkage makes of the best of them."""
        init = None
        for lam in lambdas:
            if self.must_stop():
                return
            init = self._solve_rkda(lam, 0.0, init)
            self.try_lambdas("rkda", init, (lam,))
        best = self.found["rkda"]
        init = best.weights
        for shrinkage in _SHRINKAGES[1:]:
            if self.must_stop():
                return
            init = self._solve_rkda(best.regularization, shrinkage, init)
            self.try_lambdas("rkda", init, (best.regularization,))

    def _solve_rkda(self, lam: float, shrinkage: float, init: FloatArray | None) -> FloatArray:
        program = ShrunkRKDAProgram(self.bank, self.target, lam, shrinkage)
        return Newton().solve(program, Task(1e-3, init=init)).weights

    def try_loo(self, start: Candidate, max_evaluations: int = 60) -> None:
        """Try the least leave-one-out error that descent finds from a candidate, in time."""
        try:
            weights, lam = minimize_error(
                LeaveOneOutError(self.bank, self.target).at,
                start.weights,
                start.regularization,
                pull=self.pull,
                n_samples=self.bank.effective,
                learns_regularization=self.regularization is None,
                max_evaluations=max_evaluations,
                monitor=self._monitor,
            )
        except StoppedError:
            self.is_stopped = True
            return
        self.add("loo", weights, lam, leave_one_out_error(self.bank, self.target, weights, lam))

    def _monitor(self, value: float, weights: FloatArray) -> None:
        shown = np.where(weights > 1e-3, weights, 0.0)
        if self.must_stop():
            raise StoppedError
        iteration = self.n_before + self.n_evaluations
        self.task.monitor(iteration, value, None, shown, stage=self.stage, n_stages=self.n_stages)
        self.n_evaluations += 1

    @property
    def lambdas(self) -> tuple[float, ...]:
        """The λ to try, falling."""
        return _LAMBDAS if self.regularization is None else (self.regularization,)

    def lambdas_on_all(self, candidate: Candidate, best: Candidate) -> tuple[float, ...]:
        """Return λ of a part of the samples and a smaller one: more samples want less of it.

        A candidate far behind is scored too, but not worth a second λ.
        """
        lam = candidate.regularization
        is_close = candidate.score <= _CLOSE * best.score
        return (lam, 0.3 * lam) if is_close and self.regularization is None else (lam,)

    def ranking(self) -> tuple[Candidate, ...]:
        """Return the candidates, the one with the least score first."""
        return tuple(sorted(self.found.values(), key=lambda candidate: candidate.score))

    def solution(self) -> Solution:
        """Return the best candidate."""
        ranking = self.ranking()
        best = ranking[0]
        return Solution(
            best.weights,
            best.score,
            -np.inf,
            Status.OUT_OF_TIME if self.is_stopped else Status.NO_CERTIFICATE,
            self.n_evaluations,
            regularization=best.regularization,
            regularization_at_limit=self._limit(best),
            considered=ranking,
        )

    def _limit(self, best: Candidate) -> Limit | None:
        """Return whether λ was chosen and lies at an end of the values searched, or beyond.

        On all samples a smaller λ than the smallest is tried too. And descent starts from one of
        them, which it hardly leaves where the error is flat: within a tenth counts as there.
        """
        if self.regularization is not None:
            return None
        return find_limit(best.regularization, (0.9 * _LAMBDAS[0], 1.1 * _LAMBDAS[-1]))


@dataclass(frozen=True)
class Search:
    """Choose among plain average, best single kernel, `rkda` with shrinkage, and `loo`.

    Every candidate is scored by its leave-one-out error plus the pull towards equal weights; the
    least score wins. On more than 500 samples the candidates are found on a third of them (300 to
    600) and scored on all, and the weights of `loo` take a few more steps there.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import Search
    >>> learned = learn_kernel(
    ...     grams, y[::3], criterion="auto", solver=Search()
    ... )
    >>> learned.solver, learned.status.value
    ('search', 'the best found; the program is not convex')
    """

    name: ClassVar[str] = "search"
    needs: ClassVar[tuple[str, ...]] = ("bank", "target", "pull")

    def solve(self, program: LeaveOneOutProgram, task: Task) -> Solution:
        part = _search_part(program.bank, program.target, task)
        if part is None:
            search = _Search.of(program, task)
            search.try_all()
            return search.solution()
        pull, lam = program.pull, program.regularization
        small = _Search(part.bank, part.target, pull, lam, task, n_stages=2)
        small.try_all()
        full = _Search.of(program, task, stage=1, n_stages=2, n_before=small.n_evaluations)
        full.is_stopped = small.is_stopped
        best = small.ranking()[0]
        for name, candidate in small.found.items():
            if full.found and full.must_stop():
                break
            lambdas = full.lambdas_on_all(candidate, best)
            for weights in _on_all(candidate, part):
                full.try_lambdas(name, weights, lambdas)
        if full.bank.has_matrices and not full.must_stop():
            full.try_loo(full.found["loo"], max_evaluations=_REFINEMENTS)
        return full.solution()


@dataclass(frozen=True)
class LBFGS:
    """Minimise the leave-one-out error over weights and λ, from equal weights, on all samples.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import LBFGS
    >>> learned = learn_kernel(
    ...     grams, y[::3], criterion="loo", solver=LBFGS()
    ... )
    >>> learned.solver, learned.status.value
    ('lbfgs', 'the best found; the program is not convex')
    """

    name: ClassVar[str] = "lbfgs"
    needs: ClassVar[tuple[str, ...]] = ("bank", "target", "pull")

    def solve(self, program: LeaveOneOutProgram, task: Task) -> Solution:
        search = _Search.of(program, task)
        search.try_lambdas("average", uniform(program.n_weights), search.lambdas)
        search.try_loo(search.found["average"], max_evaluations=task.max_iter or 60)
        if "loo" in search.found:
            del search.found["average"]
        return search.solution()


def _on_all(candidate: Candidate, part: Part) -> list[FloatArray]:
    """Return what the weights of a part may be on all samples.

    Of kernels that are constant on the part nothing is known: they are part of the average, and
    `loo` is tried without them and with the equal share that the pull alone would give them.
    """
    unseen = part.unseen
    if candidate.name == "average":
        return [uniform(len(unseen))]
    weights = part.on_all(candidate.weights)
    if candidate.name != "loo" or not unseen.any():
        return [weights]
    return [weights, (1.0 - unseen.mean()) * weights + unseen / len(unseen)]


def _search_part(bank: Bank, target: Target, task: Task) -> Part | None:
    """Return a third of the samples to search on; None where it is to be done on all of them."""
    n = target.n_samples
    if n <= task.few:
        return None
    # None is 0 here: the same data give the same kernel.
    rng = check_random_state(0 if task.random_state is None else task.random_state)
    return draw_part(bank, target, min(max(n // 3, 300), 600) / n, rng)
