"""The search for the weights with the best leave-one-out predictions, over several criteria."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from discernel.arrays import FloatArray
from discernel.programs.base import Part, draw_start
from discernel.programs.lambdas import find_limit, lambda_grid
from discernel.programs.loo import (
    LeaveOneOutProgram,
    choose_regularization,
    minimize_error,
    pull_to_equal,
)
from discernel.programs.newton import Newton
from discernel.programs.rkda import ShrunkRKDAProgram
from discernel.programs.simplex import uniform
from discernel.programs.solution import Candidate, Solution, Status, StoppedError, Task
from discernel.progress.deadline import must_stop_learning

#: Evaluations of the leave-one-out gradient on all samples, after a search on a part of them.
REFINEMENTS = 3
#: Candidates whose score on a part of the samples is within this multiple of the best get a second
#: λ on all samples.
_CLOSE = 1.1
LAMBDAS = lambda_grid(0.0, -6.0, per_decade=1)
_SHRINKAGES = (0.03, 0.1, 0.3)


@dataclass
class _Search:
    """A search for the best candidate on one set of samples."""

    program: LeaveOneOutProgram
    task: Task
    stage: int = 0
    n_stages: int = 1
    #: Evaluations of earlier searches and of this one.
    n_before: int = 0
    n_evaluations: int = 0
    #: The best candidate of each name.
    found: dict[str, Candidate] = field(default_factory=dict)
    #: Whether the deadline ended the search.
    is_stopped: bool = False

    def try_all(self) -> None:
        """Try all kinds of candidates, until the deadline."""
        bank, lambdas = self.program.bank, self.lambdas
        best = self.try_lambdas("average", uniform(bank.n_kernels), lambdas)
        for unit in np.eye(bank.n_kernels):  # neighbouring widths need about the same λ
            if self.must_stop():
                return
            best = self.try_lambdas("single", unit, lambdas, start=best)
        self.try_rkda()
        if not bank.has_matrices:  # the gradient of the leave-one-out error needs them
            return
        self.try_loo(self.found["average"])
        other = self.ranking()[0]
        if other.name != "loo":  # descent from the average ended in a worse minimum
            self.try_loo(other)

    def must_stop(self) -> bool:
        """Return and record whether the deadline has passed."""
        self.is_stopped = self.is_stopped or must_stop_learning()
        return self.is_stopped

    def try_lambdas(
        self,
        name: str,
        weights: FloatArray,
        lambdas: tuple[float, ...],
        start: float | None = None,
    ) -> float:
        """Try weights with some λ in decreasing order; return the best λ.

        With ``start``, the search descends from this λ. The candidate is kept if it is the best of
        its name so far.
        """
        bank, target = self.program.bank, self.program.target
        best, error = choose_regularization(bank, target, weights, lambdas, start)
        pull = pull_to_equal(weights, self.program.pull, target.effective)
        candidate = Candidate(name, weights, best, error, pull)
        if name not in self.found or candidate.score < self.found[name].score:
            self.found[name] = candidate
        return best

    def try_rkda(self) -> None:
        """Try the optimum of `rkda` for several λ, and for the best λ with shrinkage."""
        weights = None
        for lam in self.lambdas:
            if self.must_stop():
                return
            weights = self._try_shrunk(lam, 0.0, weights)
        best = self.found["rkda"]
        weights = best.weights
        for shrinkage in _SHRINKAGES:
            if self.must_stop():
                return
            weights = self._try_shrunk(best.regularization, shrinkage, weights)

    def _try_shrunk(self, lam: float, shrinkage: float, init: FloatArray | None) -> FloatArray:
        program = ShrunkRKDAProgram(self.program.bank, self.program.target, lam, shrinkage)
        weights = Newton().solve(program, Task(1e-3, init=init)).weights
        self.try_lambdas("rkda", weights, (lam,))
        return weights

    def try_loo(self, start: Candidate, max_evaluations: int = 60) -> None:
        """Try the weights with the smallest leave-one-out error that descent from a start finds."""
        try:
            weights, lam = minimize_error(
                self.program.error,
                start.weights,
                start.regularization,
                pull=self.program.pull,
                n_samples=self.program.target.effective,
                learns_regularization=self.program.regularization is None,
                max_evaluations=max_evaluations,
                monitor=self._monitor,
            )
        except StoppedError:
            self.is_stopped = True
            return
        self.try_lambdas("loo", weights, (lam,))

    def _monitor(self, value: float, weights: FloatArray) -> None:
        shown = np.where(weights > 1e-3, weights, 0.0)
        if self.must_stop():
            raise StoppedError
        iteration = self.n_before + self.n_evaluations
        self.task.monitor(iteration, value, None, shown, stage=self.stage, n_stages=self.n_stages)
        self.n_evaluations += 1

    @property
    def lambdas(self) -> tuple[float, ...]:
        """The λ to try, in decreasing order."""
        given = self.program.regularization
        return LAMBDAS if given is None else (given,)

    def lambdas_on_all(self, candidate: Candidate, best: Candidate) -> tuple[float, ...]:
        """Return the λ to try on all samples for a candidate found on a part of them.

        They are its own λ and a smaller one, because more samples need less regularization. A
        candidate with a much worse score gets no second λ.
        """
        lam, is_close = candidate.regularization, candidate.score <= _CLOSE * best.score
        return (lam, 0.3 * lam) if is_close and self.program.regularization is None else (lam,)

    def ranking(self) -> tuple[Candidate, ...]:
        """Return the candidates, in increasing order of their score."""
        return tuple(sorted(self.found.values(), key=lambda candidate: candidate.score))

    def solution(self) -> Solution:
        """Return the best candidate."""
        ranking = self.ranking()
        best = ranking[0]
        limit = None
        if self.program.regularization is None:
            # On all samples, a λ below the smallest one is tried too. Descent starts from one of
            # the λ and hardly moves where the error is flat, so 10 % away counts as the limit.
            limit = find_limit(best.regularization, (0.9 * LAMBDAS[0], 1.1 * LAMBDAS[-1]))
        return Solution(
            best.weights,
            best.score,
            -np.inf,
            Status.OUT_OF_TIME if self.is_stopped else Status.NO_CERTIFICATE,
            self.n_evaluations,
            regularization=best.regularization,
            regularization_at_limit=limit,
            considered=ranking,
        )


@dataclass(frozen=True)
class Search:
    """Choose among plain average, best single kernel, `rkda` with shrinkage, and `loo`.

    The candidate with the smallest score is chosen: the leave-one-out error plus a penalty on
    unequal weights. With more than 500 samples, candidates are learned on a third of them (300 to
    600) and scored on all samples, where the weights of `loo` are refined by a few steps.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import Search
    >>> learned = learn_kernel(grams, y[::3], criterion="auto", solver=Search())
    >>> learned.solver, learned.status.value
    ('search', 'the best found; the program is not convex')
    """

    name: ClassVar[str] = "search"
    needs: ClassVar[tuple[str, ...]] = ("bank", "target", "pull")

    def solve(self, program: LeaveOneOutProgram, task: Task) -> Solution:
        bank = program.bank
        part = draw_start(bank, program.target, task.few, task.random_state)
        if part is None:
            search = _Search(program, task)
            search.try_all()
            return search.solution()
        small = _Search(replace(program, bank=part.bank, target=part.target), task, n_stages=2)
        small.try_all()
        full = _Search(
            program,
            task,
            stage=1,
            n_stages=2,
            n_before=small.n_evaluations,
            is_stopped=small.is_stopped,
        )
        best = small.ranking()[0]
        for name, candidate in small.found.items():
            if full.found and full.must_stop():
                break
            lambdas = full.lambdas_on_all(candidate, best)
            for weights in _on_all(candidate, part):
                full.try_lambdas(name, weights, lambdas)
        if bank.has_matrices and not full.must_stop():
            full.try_loo(full.found["loo"], max_evaluations=REFINEMENTS)
        return full.solution()


@dataclass(frozen=True)
class LBFGS:
    """Minimize the leave-one-out error over weights and λ, starting from equal weights.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import LBFGS
    >>> learned = learn_kernel(grams, y[::3], criterion="loo", solver=LBFGS())
    >>> learned.solver, learned.status.value
    ('lbfgs', 'the best found; the program is not convex')
    """

    name: ClassVar[str] = "lbfgs"
    needs: ClassVar[tuple[str, ...]] = ("bank", "target", "pull")

    def solve(self, program: LeaveOneOutProgram, task: Task) -> Solution:
        search = _Search(program, task)
        search.try_lambdas("average", uniform(program.n_weights), search.lambdas)
        search.try_loo(search.found["average"], max_evaluations=task.max_iter or 60)
        if "loo" in search.found:
            del search.found["average"]
        return search.solution()


def _on_all(candidate: Candidate, part: Part) -> list[FloatArray]:
    """Return the weights to try on all samples for a candidate found on a part of them.

    Kernels that are constant on the part have no learned weight. They belong to the average, and
    `loo` is tried without them, and with the equal share that the penalty alone would give them.
    """
    unseen = part.unseen
    if candidate.name == "average":
        return [uniform(len(unseen))]
    weights = part.bank.expand(candidate.weights)
    if candidate.name != "loo" or not unseen.any():
        return [weights]
    return [weights, (1.0 - unseen.mean()) * weights + unseen / len(unseen)]
