"""The default's kernels: proposed from the rows and what is to be predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from discernel.backend import FloatArray
from discernel.bank import Bank
from discernel.criteria.loo import LeaveOneOutProgram
from discernel.crossfit.choose import Choice, choose, each
from discernel.crossfit.losses import row_losses
from discernel.crossfit.menu import MENU
from discernel.crossfit.sample import Positions, Sample, draw_sample
from discernel.kernels import Kernel, Standardized
from discernel.kernels.columns import divided_columns
from discernel.criteria import KernelLeastSquares
from discernel.learners.solution import Candidate, Solution, Status, Task
from discernel.metric import Metric, learn_metric
from discernel.targets import Target

__all__ = ["CrossFitted", "Proposal", "propose_kernels"]

#: Up to this many different rows kernels are chosen on all of them; of more, on half, and on no
#: more than the second number. The metric of the fit is learned on no more than the third.
_FEW, _MOST, _MOST_FOR_METRIC = 600, 1000, 1500
_FOLDS = 5
#: λ on all rows is chosen on this many, outside of those that kernels were chosen on.
_MOST_FOR_REGULARIZATION = 3000
#: λ to choose from there, in units of that of the sample, and the least of all.
_FACTORS, _LEAST = tuple(10.0**power for power in (0.5, 0.0, -0.5, -1.0, -1.5, -2.0)), 1e-7


@dataclass(frozen=True)
class Proposal:
    """Kernels on the chosen metric, and how they were chosen.

    Attributes
    ----------
    kernels : list of Kernel
        The kernels of the menu, resolved.
    candidates : list of Choice
        All that was compared, the chosen one first.
    sample : Sample
        The rows it was compared on.
    metric : Metric
        Learned on all rows of the sample, or on some more.
    fold_metrics : list of Metric
        One per fold, learned without it.
    dependent : ndarray of int
        The rows of the training set whose labels had a part in the chosen metric.
    """

    kernels: list[Kernel]
    candidates: list[Choice]
    sample: Sample
    metric: Metric
    fold_metrics: list[Metric]
    dependent: Positions

    @property
    def chosen(self) -> Choice:
        """The candidate that won."""
        return self.candidates[0]


def propose_kernels(
    X: FloatArray,
    spreads: tuple[float, ...],
    target: Target,
    *,
    pull: float = 5.0,
    regularization: float | None = None,
    random_state: Any = None,
) -> Proposal:
    """Return the kernels that predict rows best that had no part in choosing them.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
        The training rows.
    spreads : tuple of float
        What every column is divided by first; 0 leaves it out.
    target : Target
        What is to be predicted, and how much each row counts.
    pull : float, default=5.0
        As in `discernel.criteria.LeaveOneOut`.
    regularization : float, optional
        λ; chosen by default.
    random_state : int or RandomState, optional
        Draws rows and folds; None is 0.
    """
    rng = check_random_state(0 if random_state is None else random_state)
    rows = divided_columns(X, spreads)
    n = len(rows)
    most = max(_FEW, min(n // 2, _MOST), 3 * target.scores.shape[1])
    sample = draw_sample(rows, target, most=most, n_folds=_FOLDS, rng=rng)
    jobs = [outside for outside, _ in sample.divisions()]
    wider = sample
    if n > len(sample.rows):
        wider = draw_sample(rows, target, most=_MOST_FOR_METRIC, n_folds=1, rng=rng)
    *fold_metrics, metric = each(
        lambda job: learn_metric(job[0].rows[job[1]], job[0].scores[job[1]], job[0].weights[job[1]]),
        [*((sample, outside) for outside in jobs), (wider, slice(None))],
    )
    candidates = choose(sample, fold_metrics, pull=pull, regularization=regularization)
    scales = metric.of_strength(candidates[0].strength)
    divisors = np.divide(spreads, scales, out=np.zeros(len(scales)), where=scales > 0)
    kernels: list[Kernel] = [
        Standardized(kernel, tuple(divisors.tolist())) for kernel in MENU.kernels(wider.rows * scales)
    ]
    dependent = wider.positions if candidates[0].strength > 0 else np.empty(0, dtype=np.intp)
    return Proposal(kernels, candidates, sample, metric, fold_metrics, dependent)


@dataclass(frozen=True)
class CrossFitted:
    """The weights of a proposal, and a λ that fits the number of rows."""

    proposal: Proposal
    name: ClassVar[str] = "crossfit"
    needs: ClassVar[tuple[str, ...]] = ("bank", "target", "pull")

    def solve(self, program: LeaveOneOutProgram, task: Task) -> Solution:
        chosen, bank = self.proposal.chosen, program.bank
        weights = chosen.weights[bank.kept]
        weights = weights / weights.sum()
        lam = program.regularization or self._regularization(program, weights)
        return Solution(
            weights,
            chosen.mean_loss,
            -np.inf,
            Status.NO_CERTIFICATE,
            len(self.proposal.candidates),
            regularization=lam,
            considered=tuple(self._candidates()),
        )

    def _regularization(self, program: LeaveOneOutProgram, weights: FloatArray) -> float:
        """Return λ for all rows: more rows want less of it.

        By the leave-one-out losses of rows whose labels had no part in the metric, where there are
        enough of them.
        """
        proposal, bank, target = self.proposal, program.bank, program.target
        rows = _some(bank.n_samples, _MOST_FOR_REGULARIZATION)
        counted = np.flatnonzero(~np.isin(rows, proposal.dependent))
        if len(counted) < len(proposal.sample.rows) // 2:
            return proposal.chosen.regularization * (1.0 - 1.0 / proposal.sample.n_folds)
        if len(rows) < bank.n_samples:
            bank, target = bank.subset(rows), target.subset(rows)
            weights = proposal.chosen.weights[bank.kept]
        return _best_regularization(
            bank, target, weights, proposal.chosen.regularization, counted
        )

    def _candidates(self) -> list[Candidate]:
        return [
            Candidate(
                choice.name, choice.weights, choice.regularization, choice.mean_loss, 0.0
            )
            for choice in self.proposal.candidates
        ]


def _some(n: int, most: int) -> Positions:
    return np.arange(n) if n <= most else np.sort(np.random.RandomState(0).permutation(n)[:most])


def _best_regularization(
    bank: Bank, target: Target, weights: FloatArray, start: float, counted: Positions
) -> float:
    """Return the λ around one with the least leave-one-out loss of some rows."""
    system, part = bank.systems(weights), target.subset(counted)
    shares = None if part.sample_weights is None else part.sample_weights.shares
    losses: dict[float, float] = {}
    for factor in _FACTORS:
        lam = max(factor * start, _LEAST)
        ridge = np.full(bank.n_samples, lam)
        fit = KernelLeastSquares(system(ridge), ridge, target.scores, target.sample_weights)
        losses[lam] = float(np.average(row_losses(fit.leave_one_out[counted], part), weights=shares))
    return min(losses, key=lambda lam: losses[lam])
