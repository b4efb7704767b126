"""Learning the kernel of checked rows in memory: proposal, bank, weights and λ."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, Positions, is_dense, n_rows
from discernel.bank import (
    Bank,
    BlendBank,
    CombinedFeatures,
    CombinedKernel,
    FeatureBank,
    TargetKernels,
    make_bank,
)
from discernel.default import Proposal, residual_landmarks
from discernel.default.metric import Metric
from discernel.default.propose import LAMBDA_LIMITS
from discernel.exceptions import LeftOutColumnWarning, LowRankWarning, caller_stacklevel
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.weighted import WeightedKernels
from discernel.learn import LearnedKernel, Request, learn, make_request
from discernel.learn.low_rank import LowRankFit, LowRankLoss
from discernel.learn.stages import FitRun
from discernel.model import Facts, KeptRows, Model
from discernel.model.importances import importances_of
from discernel.model.training import TrainingRows
from discernel.programs.lambdas import find_limit
from discernel.programs.least_squares import KernelLeastSquares
from discernel.programs.simplex import normalize
from discernel.programs.solution import Progress, Status, TargetWeights
from discernel.programs.uniform import GivenWeights, Uniform
from discernel.progress import phase
from discernel.targets import Target

#: Weights and λ where nothing can be learned: of constant kernels, or of a single class.
PRIOR_REQUEST = make_request(criterion="uniform", regularization=1.0)

# ---- what is learned ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Learning:
    """A learned kernel with its rows, target, options and bank.

    Attributes
    ----------
    run : FitRun
        The fit that this is a part of.
    training : TrainingRows
        The rows; their reader has all kernels.
    target : Target
        The target.
    request : Request
        Criterion, solver and λ.
    bank : Bank
        The kernels on the training rows.
    weights : ndarray of shape (n_kernels,) or (n_targets, n_kernels)
        The learned weights of the kernels.
    proposal : Proposal or None
        The kernels chosen by ``kernels="auto"``; None for given kernels.
    kernel : CombinedKernel or CombinedFeatures
        The learned sum of kernels between new rows and those that are kept.
    facts : Facts
        Facts about the kernel; those of the fit are added by `model`.
    """

    run: FitRun
    training: TrainingRows
    target: Any
    request: Request
    bank: Bank
    weights: FloatArray
    proposal: Proposal | None
    kernel: CombinedKernel | CombinedFeatures | TargetKernels
    facts: Facts

    def coef(self, dual: FloatArray) -> FloatArray:
        """Return the factors of the learned kernel, from coefficients of the training rows."""
        features = self.bank.predicting()
        return dual if features is None else features.feature_coef(self.weights, dual)

    def fit(self, scores: FloatArray | None = None) -> KernelLeastSquares:
        """Return the fit of the target, or of other scores of its rows, with the learned kernel."""
        lam = self.facts.learned.own_regularization
        return self.request.criterion.least_squares(
            self.bank, self.weights, self.target, lam, scores
        )

    @property
    def learns_weights(self) -> bool:
        """Whether weights of given kernels depend on labels."""
        known = (GivenWeights.name, Uniform.name)
        return self.bank.n_kernels > 1 and self.request.criterion.name not in known

    @property
    def learned_rows(self) -> Positions:
        """The rows whose labels had a part in the kernel."""
        if self.proposal is not None:
            return self.proposal.dependent
        return np.arange(self.target.n_samples if self.learns_weights else 0)

    def model(
        self,
        fit: KernelLeastSquares,
        head: Any,
        truth: NDArray[Any],
        *,
        coef: FloatArray,
        intercept: FloatArray,
        classes: NDArray[Any] | None = None,
        labels: NDArray[Any] | None = None,
        rows: NDArray[np.intp] | None = None,
    ) -> Model:
        """Return the model of a fit to rows in memory.

        Parameters
        ----------
        fit : KernelLeastSquares
            The fit.
        head : Head
            Converts scores to predictions.
        truth : ndarray of shape (n_samples, ...)
            The true values from which the head computes losses.
        coef : ndarray of shape (n_kept, n_scores)
            The coefficients of the learned kernel.
        intercept : ndarray of shape (n_scores,)
            The intercepts of the scores.
        classes : ndarray of shape (n_classes,), optional
            The class labels.
        labels : ndarray of shape (n_samples,), optional
            The labels of the rows, if the model keeps them.
        rows : ndarray of int, optional
            The rows from which importances are computed; by default all.
        """
        training, bank = self.training, self.bank
        phase("computing importances")
        importances = importances_of(
            training.X, self.kernel, self.coef, training.reader, head, fit, truth, rows
        )
        forecast, plan = self.run.record(self.facts.bank)
        facts = replace(self.facts, forecast=forecast, plan=plan, importances=importances)
        kept = KeptRows()
        if labels is not None:
            every = np.arange(bank.n_samples)
            kept = training.kept(labels, every if bank.predicting() is None else bank.landmark_rows)
        device = self.run.device
        return Model(
            training.reader, self.kernel, coef, intercept, head, classes, facts, kept, device
        )


def learn_rows(
    run: FitRun, training: TrainingRows, target: Target, *, exact: bool = False
) -> Learning:
    """Learn the kernel of rows in memory, as planned.

    Parameters
    ----------
    run : FitRun
        The fit, planned.
    training : TrainingRows
        The rows.
    target : Target
        The target.
    exact : bool, default=False
        Whether the rows are a sample of those of the plan, so that the bank is an exact one.
    """
    X, reader = training.X, training.reader
    kernels, proposal, metric = reader.kernels, None, None
    phase("choosing kernels")
    varies, has_scores = rows_vary(X, kernels, run.tables), bool(target.scores.shape[1])
    # Nothing can be learned from equal rows, or from rows of one class.
    request = run.request.for_target(target, run.device) if varies and has_scores else PRIOR_REQUEST
    if run.problem.chooses and has_scores:
        if varies:
            proposal = run.propose(training, target)
            metric, kernels = proposal.metric, proposal.kernels
        else:
            metric = Metric(np.ones(X.shape[1]))
    chosen = proposal if request.leaves_choice else None
    near = shift_kernels(kernels, X, request)
    phase("looking at all rows")
    if varies:
        kind = run.stage.exact if exact else None
        bank, bank_name = bank_of_rows(run, X, near, target, request, chosen, exact=kind)
    else:
        bank, bank_name = _prior_bank(near, target), "factored"
    phase("learning weights and λ")
    if chosen is None:
        learned = learn(bank, target, request)
    else:
        learned = _learn_proposed(chosen, bank, target, request)
    phase("fitting the discriminant")
    combined, loss = _combine(run, X, near, bank, learned, target, request)
    learned = replace(learned, rank=None if loss is None else loss.rank)
    facts = Facts(learned, list(bank.names), bank_name, metric=metric, low_rank_loss=loss)
    training = replace(training, reader=replace(reader, kernels=kernels))
    weights = learned.own_weights[..., bank.kept]
    return Learning(run, training, target, request, bank, weights, proposal, combined, facts)


def _learn_proposed(
    proposal: Proposal, bank: Bank, target: Target, request: Request
) -> LearnedKernel:
    """Return the weights of a proposal, with a λ for the number of rows there are."""
    chosen, given = proposal.chosen, request.given_regularization
    if given == 0.0:
        bank.check_factored()
    weights = normalize(chosen.weights[bank.kept])
    lam = proposal.regularization_of(bank, target) if given is None else given
    progress = Progress(0, chosen.error, None, int(np.count_nonzero(weights)), given)
    if request.callback is not None:
        request.callback(progress)
    return LearnedKernel(
        weights=bank.expand(weights),
        coefficients=bank.coefficients(weights),
        regularization=lam,
        objective=chosen.error,
        gap=None,
        status=Status.NO_CERTIFICATE,
        n_iter=len(proposal.selection.candidates),
        criterion=request.criterion.name,
        solver="crossfit",
        history=[progress],
        considered=tuple(proposal.selection.candidates),
        regularization_at_limit=None if given is not None else find_limit(lam, LAMBDA_LIMITS),
        names=tuple(bank.names),
    )


def _combine(
    run: FitRun,
    X: Any,
    near: list[Kernel],
    bank: Bank,
    learned: LearnedKernel,
    target: Target,
    request: Request,
) -> tuple[CombinedKernel | CombinedFeatures | TargetKernels, LowRankLoss | None]:
    """Return the learned sum of kernels and the loss of a low rank; warn if it is large."""
    if learned.by_target is not None:
        return _combine_by_target(run, X, near, bank, learned.by_target), None
    weights, active = learned.weights[bank.kept], np.flatnonzero(learned.coefficients)
    whole = WeightedKernels([near[i] for i in active], learned.coefficients[active])
    features = bank.predicting()
    if features is not None:
        lam, criterion = learned.regularization, request.criterion
        loss = LowRankFit(features, weights, lam, criterion, target, whole, X).loss()
        if loss.advice:
            warnings.warn(loss.advice, LowRankWarning, stacklevel=caller_stacklevel())
        return features.combined_features(weights), loss
    rows, device = (None, None) if near[0].precomputed else (X, run.device)
    centering = bank.centering(weights)
    return CombinedKernel(whole.kernels, whole.coefficients, rows, centering, device), None


def _combine_by_target(
    run: FitRun, X: Any, near: list[Kernel], bank: Bank, found: TargetWeights
) -> TargetKernels:
    """Return the learned sums of kernels of all targets."""
    assert found.coefficients is not None
    used = np.flatnonzero(found.weights[:, bank.kept].any(axis=0))
    units, active = np.eye(bank.n_kernels), bank.kept[used]
    # The centring of a raw kernel, whose coefficients include its scale.
    centerings = [bank.centering(units[i] / bank.scales[i]) for i in used]
    rows, device = (None, None) if near[0].precomputed else (X, run.device)
    kernels = [near[i] for i in active]
    return TargetKernels(kernels, found.coefficients[:, active], rows, centerings, device)


def rows_vary(X: Any, kernels: list[Kernel], tables: bool) -> bool:
    """Return whether rows differ in a column that kernels use; True for rows of no numbers."""
    if not is_dense(X) or kernels[0].precomputed:
        return True
    varies = (X[0] != X).any(axis=0)  # also where cells are missing
    if tables:
        varies &= np.array(kernels[0].spreads) > 0  # type: ignore[attr-defined]
    return bool(varies.any())


def shift_kernels(kernels: list[Kernel], X: Any, request: Request) -> list[Kernel]:
    """Return kernels with their origin at a typical row, unless their raw traces are needed.

    Centred kernels do not depend on the origin, but are more accurate near the rows.
    """
    if request.criterion.normalization != "centered_trace":
        return kernels
    return [kernel.shifted(X) for kernel in kernels]


# ---- banks -------------------------------------------------------------------------------------


def bank_of_rows(
    run: FitRun,
    X: Any,
    kernels: list[Kernel],
    target: Target,
    request: Request,
    chosen: Proposal | None = None,
    *,
    exact: str | None = None,
) -> tuple[Bank, str]:
    """Return the planned bank and its name, or the ``exact`` bank for folds and samples.

    A proposal that was chosen with its weights needs only one weighted sum of kernels.
    """
    stage, asked = run.stage, run.bank
    kind, rank = (exact, None) if exact else (stage.kind, stage.rank)
    normalization, weights = request.criterion.normalization, target.row_weights
    if kind == "device":
        choice = asked._replace(kind="auto", rank=None) if exact else asked
        return make_bank(choice, kernels, X, normalization, weights, run.device), kind
    if rank is None or chosen is None:
        choice = asked._replace(kind=kind, rank=rank)
        return make_bank(choice, kernels, X, normalization, weights), kind
    n = n_rows(X)
    # More rows need less regularization.
    lam = chosen.chosen.regularization * min(1.0, len(chosen.sample.rows) / n)
    bank = BlendBank.of_landmarks(
        kernels,
        chosen.chosen.weights,
        X,
        partial(residual_landmarks, X, target=target, rank=rank, regularization=lam),
        rank=rank,
        normalization=normalization,
        sample_weights=weights,
    )
    return bank, kind


def _prior_bank(kernels: list[Kernel], target: Target) -> Bank:
    """Return the bank of kernels on equal rows, 0 once centred, and warn."""
    warnings.warn(
        "No column varies: all training rows are the same, up to rounding. Predictions are "
        "those without any column, the shares of the classes or the mean. Give columns that "
        "vary.",
        LeftOutColumnWarning,
        stacklevel=caller_stacklevel(),
    )
    nothing = np.zeros((len(kernels), target.n_samples))
    return FeatureBank(
        nothing,
        [1] * len(kernels),
        kernel_names(kernels),
        diagonals=nothing + 1.0 / target.n_samples,
        sample_weights=target.row_weights,
    )
