"""What estimators that learn share: from rows to a bank, from a bank to a learned kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from discernel.backend import FloatArray
from discernel.bank import Bank, CombinedKernel, choose_bank, make_bank
from discernel.criteria import Auto, LeaveOneOut
from discernel.crossfit import CrossFitted, Proposal, propose_kernels
from discernel.discriminant import HonestScores
from discernel.estimators.weighted import BaseWeightedEstimator
from discernel.exceptions import check_number
from discernel.kernels import Kernel
from discernel.learners import Request, learn, make_request
from discernel.metric import Metric
from discernel.sample_weights import SampleWeights
from discernel.targets import ClassTarget, Target

__all__ = ["BaseKernelLearner", "Learning", "honest_scores"]


_ALL = slice(None)


class Learning(NamedTuple):
    """What was learned, for those who fit with it."""

    bank: Bank
    weights: FloatArray
    #: Where the kernels come from; None where they were given.
    proposal: Proposal | None


class BaseKernelLearner(BaseWeightedEstimator):
    """Build the bank, learn, store.

    Subclasses have the parameters of this class, described in `MultipleKernelDiscriminant`, or
    say otherwise which candidates there are and what is to be learned.
    """

    #: How the rows were learned from: the bank, or ``"stream"``.
    bank_: str

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        criterion: Any = "auto",
        solver: Any = "auto",
        regularization: float | str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        random_state: Any = None,
        bank: str = "auto",
        cache_size: float = 256,
        callback: Any = None,
    ) -> None:
        self.kernels = kernels
        self.criterion = criterion
        self.solver = solver
        self.regularization = regularization
        self.tol = tol
        self.max_iter: Any = max_iter  # a number, always, where a subclass says so
        self.random_state = random_state
        self.bank = bank
        self.cache_size = cache_size
        self.callback = callback

    def _request(self) -> Request:
        """Return what is to be learned, checked."""
        return make_request(
            criterion=self.criterion,
            solver=self.solver,
            regularization=self.regularization,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
            callback=self.callback,
        )

    def _propose(
        self, X: Any, kernels: list[Kernel], target: Target, request: Request
    ) -> Proposal | None:
        """Return the default's kernels for these rows; None where the user has given kernels.

        Sparse rows have no metric: their kernels stay as they are.
        """
        for name in ("feature_importances_", "feature_importances_std_", "metric_"):
            self.__dict__.pop(name, None)  # of a fit before
        if not (self._takes_tables() and isinstance(X, np.ndarray)):
            return None
        given = request.regularization if isinstance(request.regularization, float) else None
        proposal = propose_kernels(
            X,
            kernels[0].spreads,  # type: ignore[attr-defined]
            target,
            pull=request.criterion.pull if isinstance(request.criterion, LeaveOneOut) else 0.0,
            regularization=given,
            random_state=request.random_state,
        )
        self._store_importances(proposal)
        return proposal

    def _store_importances(self, proposal: Proposal) -> None:
        """Store what the metrics of the folds say about the columns that were given."""
        self._store_metric(proposal.metric)
        shares = np.array([self._importances(metric) for metric in proposal.fold_metrics])
        self.feature_importances_ = shares.mean(axis=0)
        self.feature_importances_std_ = (
            shares.std(axis=0, ddof=1) if len(shares) > 1 else 0.0 * shares[0]
        )

    def _store_metric(self, metric: Metric) -> None:
        """Store a metric, and what it says about the columns that were given."""
        self.metric_, self.feature_importances_ = metric, self._importances(metric)

    def _importances(self, metric: Metric) -> FloatArray:
        """Return the importances of columns that were given, of which encoded ones are parts."""
        source = np.arange(len(metric.scales)) if self.encoder_ is None else self.encoder_.source
        shares = np.zeros(self.n_features_in_)
        np.add.at(shares, source, metric.importances)
        return shares

    def _learn(self, X: Any, kernels: list[Kernel], target: Target, request: Request) -> Learning:
        """Learn and store; return the bank, the weights of its kernels and what was proposed."""
        proposal = self._propose(X, kernels, target, request)
        if proposal is not None:
            kernels = proposal.kernels
            if isinstance(request.criterion, Auto) and request.automatic:
                request = replace(request, solver=CrossFitted(proposal))
        cache_size = getattr(self, "cache_size", 256)
        check_number("cache_size", cache_size, positive=True)
        n_bytes = cache_size * 2**20
        # One program takes some ten passes, in which a large stack does not earn its page faults.
        given = request.criterion.regularization_is == "given"
        one_program = given and request.regularization != "loo"
        room = n_bytes / 4 if one_program else n_bytes
        kind = choose_bank(getattr(self, "bank", "auto"), kernels, X, room)
        near = kernels
        if request.criterion.normalization == "centered_trace":
            # The same once centred; raw traces would not be the same.
            near = [kernel.shifted(X) for kernel in kernels]
        normalization = request.criterion.normalization
        bank = make_bank(kind, near, X, normalization, n_bytes, target.sample_weights)
        self.bank_ = kind
        learned = learn(bank, target, request)
        weights = learned.weights[bank.kept]
        active = np.flatnonzero(learned.coefficients)
        self.combined_kernel_ = CombinedKernel(
            [near[i] for i in active],
            learned.coefficients[active],
            None if kernels[0].precomputed else X,
            bank.centering(weights),
        )
        self.learned_kernel_ = learned
        self.kernels_ = kernels
        self.kernel_names_ = bank.names
        self.kernel_weights_ = learned.weights
        self.regularization_ = learned.regularization
        self.gap_ = learned.gap
        self.n_iter_ = max(1, learned.n_iter)
        return Learning(bank, weights, proposal)


def honest_scores(
    proposal: Proposal | None, target: ClassTarget, column: slice = _ALL
) -> HonestScores:
    """Return what class statistics are taken from: all rows, left out of the fit.

    Where the metric has seen labels, only rows that had no part in it, or else the predictions of
    the folds.

    Parameters
    ----------
    proposal : Proposal or None
        Where the kernels come from; None where they were given.
    target : ClassTarget
        The classes of all training rows.
    column : slice
        The columns of what was predicted that are scores of these classes; all by default.
    """
    if proposal is None or not len(proposal.dependent):
        return HonestScores()
    rows = proposal.independent(np.arange(target.n_samples))
    if len(rows):
        return HonestScores(rows, where="leave-one-out, of rows that had no part in the metric")
    sample = proposal.sample
    part = replace(target.part(sample.positions), sample_weights=SampleWeights.of(sample.weights))
    if not part.counts.all():
        return HonestScores()  # a label so rare that the sample has none
    where = f"{sample.n_folds} folds, the metric learned without each"
    return HonestScores(scores=proposal.chosen.predicted[:, column], target=part, where=where)
