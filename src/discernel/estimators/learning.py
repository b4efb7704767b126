"""From checked rows to a bank, and from a bank to a learned kernel."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, FloatArray, blas_threads, n_rows, one_blas_thread
from discernel.bank import (
    Bank,
    BankChoice,
    BlendBank,
    CombinedFeatures,
    CombinedKernel,
    DeviceBank,
    FactoredBank,
    FeatureBank,
    Normalization,
    bank_of_matrices,
    choose_bank,
    default_rank,
    make_bank,
)
from discernel.criteria import LeastSquares, LeaveOneOut, LowRankLoss, low_rank_loss
from discernel.default import (
    Proposal,
    Relearner,
    cross_fitted_scores,
    propose_kernels,
    residual_landmarks,
)
from discernel.default.metric import Metric
from discernel.discriminant import HeldOutScores
from discernel.estimators.importances import Importances
from discernel.estimators.planned import FitPlanner, showing
from discernel.estimators.rows import TrainingRows
from discernel.estimators.staged import active_stages
from discernel.exceptions import (
    InvalidInputError,
    LeftOutColumnWarning,
    LowRankWarning,
    caller_stacklevel,
)
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.weighted import WeightedKernels
from discernel.learn import LearnedKernel, Request, learn, learn_part, make_request
from discernel.model import Facts, RowReader
from discernel.plan import PATIENCE, FitPlan, Forecast, Stage
from discernel.progress import phase
from discernel.targets import ClassTarget, Target

__all__ = [
    "PRIOR_REQUEST",
    "FitRun",
    "Learning",
    "Setting",
    "held_out_scores",
    "learn_rows",
    "rows_vary",
    "working",
]

#: Weights and λ where nothing can be learned: of constant kernels, or of a single class.
PRIOR_REQUEST = make_request(criterion="uniform", regularization=1.0)


#: No bank is asked for.
AUTOMATIC = BankChoice()


@dataclass(frozen=True)
class Setting:
    """How an estimator asks to be fitted, checked.

    Attributes
    ----------
    request : Request
        What is to be learned.
    bank : BankChoice
        How kernels are computed.
    device : Device or None
        Where; None: here.
    tables : bool
        Whether the kernels are the default's.
    precomputed : bool
        Whether kernels are given as matrices.
    verbose : bool
        Whether to show how far the fit is.
    approximable : bool
        Whether a kernel of low rank serves as well.
    holds_out : bool
        Whether kernels are learned again without each fold, to say what to expect of new rows.
    sums : bool
        Whether features of a low rank can be summed up, on a device too.
    """

    request: Request
    bank: BankChoice = AUTOMATIC
    device: Device | None = None
    tables: bool = False
    precomputed: bool = False
    verbose: Any = False
    approximable: bool = True
    holds_out: bool = False
    sums: bool = False

    def check_bank(self) -> None:
        """Raise a clear error for a bank that does not compute on the device."""
        if self.device is None:
            return
        known = ("auto", "iterative", "lowrank") if self.sums else ("auto", "iterative")
        known = ("auto", "dense") if self.precomputed else known
        if self.bank.kind not in known:
            where = self.device.where
            raise InvalidInputError(
                f"On {where}, bank must be one of {', '.join(map(repr, known))}. Got "
                f"{self.bank.kind!r}; others compute on the processor. Leave `bank` out to compute "
                f"on {where}, or give NumPy arrays and leave `device` out to compute on the "
                "processor."
            )

    def stack_bytes(self, request: Request) -> float:
        """Return the room for a stack of kernel matrices.

        Parameters
        ----------
        request : Request
            What is to be learned.
        """
        # One program takes some ten passes, in which a large stack does not earn its page faults.
        given = request.criterion.regularization_is == "given"
        few_passes = given and request.regularization != "loo"
        return self.bank.memory / 4 if few_passes else self.bank.memory


# ---- how to compute ----------------------------------------------------------------------------


@dataclass(frozen=True)
class FitRun:
    """A fit that is running.

    Attributes
    ----------
    planned : BankChoice
        How it is computed.
    forecast : Forecast or None
        What it is expected to take; None where few rows are no work.
    n_samples : int
        Its rows.
    start : float
        When it began.
    """

    planned: BankChoice
    forecast: Forecast | None
    n_samples: int
    start: float

    def plan(self, bank: str) -> FitPlan:
        """Return the plan of a fit without a time limit, by now.

        Parameters
        ----------
        bank : str
            The bank that was used.
        """
        seconds, found = time.perf_counter() - self.start, self.forecast
        if found is None:
            what = f"{self.n_samples:,} rows: bank={bank!r}"
            return FitPlan((Stage(what, "few rows need no forecast", None, seconds),))
        return FitPlan((Stage(found.what, found.reason, found.seconds, seconds),))


@contextmanager
def working(
    setting: Setting, X: Any, kernels: list[Kernel], target: Target, n_rows: int | None = None
) -> Iterator[FitRun]:
    """Choose the bank, say so, and show how far the work within is.

    Parameters
    ----------
    setting : Setting
        How to fit.
    X : array-like of shape (n_samples, n_features)
        The rows; of rows that come in chunks a sample.
    kernels : list of Kernel
        The candidates, resolved.
    target : Target
        What rows are to be predicted as.
    n_rows : int, optional
        The number of rows, of rows that come in chunks.
    """
    setting.check_bank()
    verbose, stages = setting.verbose, active_stages()
    planner = _planner(setting, X, kernels, n_rows)
    if stages is None:
        forecast = planner.forecast(always=bool(verbose))
    else:
        forecast = stages.begin(planner)
        planner = stages.planner or planner
    planned = setting.bank
    if forecast is not None and forecast.kind != "device":
        planned = planned._replace(kind=forecast.kind, rank=planned.rank or forecast.rank)
    n_samples, start = target.n_samples, time.perf_counter()
    threads = blas_threads(n_samples) if planner.blas_threads_pay else one_blas_thread()
    with showing(forecast, verbose, limited=stages is not None), threads:
        yield FitRun(planned, forecast, n_samples, start)


def _planner(setting: Setting, X: Any, kernels: list[Kernel], n_rows: int | None) -> FitPlanner:
    """Return what makes forecasts of the fit to all rows, of which X may have some only."""
    stages, in_chunks, patience = active_stages(), n_rows is not None, PATIENCE
    if stages is not None:
        n_rows, in_chunks = stages.n_rows, stages.survey is not None
        patience = max(patience, stages.seconds)
    return FitPlanner.of(
        X,
        kernels,
        setting.request,
        n_rows=n_rows,
        rank=setting.bank.rank,
        chooses=setting.tables and isinstance(X, np.ndarray),
        approximable=setting.approximable,
        holds_out=setting.holds_out,
        asked=setting.bank.kind,
        cache_bytes=setting.stack_bytes(setting.request),
        patience=patience,
        device=setting.device,
        sums_on_device=setting.sums,
        in_chunks=in_chunks,
    )


# ---- what is learned ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Learning:
    """A learned kernel, and what it was learned with.

    Attributes
    ----------
    bank : Bank
        The kernels on the training rows.
    bank_name : str
        Which bank that is.
    weights : ndarray of shape (n_kept,)
        The weights of its kernels.
    proposal : Proposal or None
        Where the kernels come from; None where they were given.
    relearner : Relearner
        What learns the same from some of the rows.
    kernels : list of Kernel
        All kernels.
    kernel : CombinedKernel or CombinedFeatures
        Their learned sum, between new rows and those that are kept.
    learned : LearnedKernel
        Everything the solver said.
    metric : Metric or None
        The scales of columns that were considered.
    low_rank_loss : LowRankLoss or None
        What a low rank lost.
    importances : Importances or None
        Those of columns, where nothing depends on any of them.
    """

    bank: Bank
    bank_name: str
    weights: FloatArray
    proposal: Proposal | None
    relearner: Relearner
    kernels: list[Kernel]
    kernel: CombinedKernel | CombinedFeatures
    learned: LearnedKernel
    metric: Metric | None = None
    low_rank_loss: LowRankLoss | None = None
    importances: Importances | None = None

    def coef(self, dual: FloatArray) -> FloatArray:
        """Return what the learned kernel multiplies, for a function expanded in training rows."""
        if isinstance(self.bank, FeatureBank):
            return self.bank.feature_coef(self.weights, dual)
        return dual

    @property
    def kept(self) -> NDArray[np.intp] | None:
        """The training rows that predictions are made from; None where they differ by kernel."""
        if isinstance(self.bank, BlendBank):
            return self.bank.landmark_rows
        return None if isinstance(self.bank, FeatureBank) else np.arange(self.bank.n_samples)

    def reader(self, training: TrainingRows) -> RowReader:
        """Return what reads new rows for the kernels."""
        return replace(training.reader, kernels=self.kernels)

    def facts(self, work: FitRun, importances: Importances | None) -> Facts:
        """Return what there is to say of the fit."""
        return Facts(
            self.learned,
            list(self.bank.names),
            self.bank_name,
            work.forecast,
            work.plan(self.bank_name),
            self.metric,
            self.low_rank_loss,
            importances,
        )


def learn_rows(
    setting: Setting,
    X: Any,
    kernels: list[Kernel],
    target: Target,
    request: Request,
    n_features: int | None = None,
    planned: BankChoice = AUTOMATIC,
) -> Learning:
    """Learn the kernel of rows in memory.

    Parameters
    ----------
    setting : Setting
        How to fit.
    X : array-like of shape (n_samples, n_features)
        The rows.
    kernels : list of Kernel
        The candidates, resolved.
    target : Target
        What rows are to be predicted as.
    request : Request
        What is to be learned, which may be less than the setting asks for.
    n_features : int, optional
        The columns that were given.
    planned : BankChoice
        How to compute.
    """
    phase("choosing kernels")
    request = request if rows_vary(X, kernels, setting.tables) else PRIOR_REQUEST
    proposal, metric, importances = None, None, None
    if setting.tables and isinstance(X, np.ndarray) and target.scores.shape[1]:
        if request is PRIOR_REQUEST:
            metric, importances = _no_preference(X.shape[1], n_features)
        else:
            proposal = _propose(setting, X, kernels, target, request)
            metric, kernels = proposal.metric, proposal.kernels
    chosen = proposal if request.leaves_choice else None
    near = _near(kernels, X, request)
    phase("looking at all rows")
    bank, bank_name = _make_bank(setting, X, near, target, request, planned, chosen)
    phase("learning weights and λ")
    learned = (learn if chosen is None else chosen.learn)(bank, target, request)
    phase("fitting the discriminant")
    weights = learned.weights[bank.kept]
    combined, learned, loss = _combine(setting, X, near, bank, learned, target, request)
    relearner = Relearner(
        target,
        request,
        learn_part,
        bank,
        weights,
        learned.regularization,
        proposal,
        X,
        lambda others: _exact_bank(setting, X, _near(others, X, request), target, request),
    )
    return Learning(
        bank,
        bank_name,
        weights,
        proposal,
        relearner,
        kernels,
        combined,
        learned,
        metric,
        loss,
        importances,
    )


def _no_preference(n_columns: int, n_features: int | None) -> tuple[Metric, Importances]:
    """Return the metric and the importances of columns of which none tells anything."""
    n = n_features or n_columns
    return Metric(np.ones(n_columns)), Importances((np.full(n, 1.0 / n), np.zeros(n)))


def _combine(
    setting: Setting,
    X: Any,
    near: list[Kernel],
    bank: Bank,
    learned: LearnedKernel,
    target: Target,
    request: Request,
) -> tuple[CombinedKernel | CombinedFeatures, LearnedKernel, LowRankLoss | None]:
    """Return the learned sum of kernels, and what a low rank loses; warn where that is much."""
    weights, active = learned.weights[bank.kept], np.flatnonzero(learned.coefficients)
    whole = WeightedKernels([near[i] for i in active], learned.coefficients[active])
    if isinstance(bank, FeatureBank):
        learned = replace(learned, rank=bank.rank)
        lam, criterion = learned.regularization, request.criterion
        loss = low_rank_loss(bank, weights, lam, criterion, target, whole, X)
        if loss.advice:
            warnings.warn(loss.advice, LowRankWarning, stacklevel=caller_stacklevel())
        return bank.combined_features(weights), learned, loss
    precomputed = near[0].precomputed
    combined = CombinedKernel(
        whole.kernels,
        whole.coefficients,
        None if precomputed else X,
        bank.centering(weights),
        None if precomputed else setting.device,
    )
    return combined, learned, None


def _propose(
    setting: Setting, X: Any, kernels: list[Kernel], target: Target, request: Request
) -> Proposal:
    """Return the default's kernels for these rows."""
    stages = active_stages()
    proposal = None if stages is None else stages.known_proposal(len(X))
    if proposal is None:
        proposal = propose_kernels(
            X,
            kernels[0].spreads,  # type: ignore[attr-defined]
            target,
            pull=request.criterion.pull if isinstance(request.criterion, LeaveOneOut) else 0.0,
            regularization=request.given_regularization or None,  # folds are never without
            random_state=request.random_state,
            device=setting.device,
        )
        if stages is not None:
            stages.keep_proposal(len(X), proposal)
    return proposal


def rows_vary(X: Any, kernels: list[Kernel], tables: bool) -> bool:
    """Whether training rows differ as kernels see them; of what is no numbers, always.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows.
    kernels : list of Kernel
        The candidates, resolved.
    tables : bool
        Whether they are the default's.
    """
    if not isinstance(X, np.ndarray) or X.dtype == object or kernels[0].precomputed:
        return True
    varies = (X[0] != X).any(axis=0)  # also where cells are missing
    if tables:
        varies &= np.array(kernels[0].spreads) > 0  # type: ignore[attr-defined]
    return bool(varies.any())


def _near(kernels: list[Kernel], X: Any, request: Request) -> list[Kernel]:
    """Return kernels with their origin at a typical row, where that changes nothing.

    The same once centred; raw traces would not be the same.
    """
    if request.criterion.normalization != "centered_trace":
        return kernels
    return [kernel.shifted(X) for kernel in kernels]


# ---- banks -------------------------------------------------------------------------------------


def _make_bank(
    setting: Setting,
    X: Any,
    kernels: list[Kernel],
    target: Target,
    request: Request,
    planned: BankChoice,
    chosen: Proposal | None,
) -> tuple[Bank, str]:
    """Return the planned bank, and its name.

    One sum of kernels is enough for a proposal that was chosen with its weights.
    """
    n_bytes, rank = setting.bank.memory, planned.rank
    normalization = request.criterion.normalization
    if request is PRIOR_REQUEST:
        return _prior_bank(kernels, target), "factored"
    if setting.device is not None and planned.kind != "lowrank":
        return _device_bank(setting, X, kernels, target, normalization, planned), "device"
    kind = choose_bank(planned.kind, kernels, X, setting.stack_bytes(request))
    if kind == "lowrank" and chosen is not None:
        rank = default_rank(n_rows(X), n_bytes) if rank is None else rank
        return _blend(X, kernels, target, chosen, rank, normalization), kind
    weights = target.sample_weights
    return make_bank(kind, kernels, X, normalization, n_bytes, weights, rank), kind


def _exact_bank(
    setting: Setting, X: Any, kernels: list[Kernel], target: Target, request: Request
) -> Bank:
    """Return a bank of kernels on all rows that is not approximated."""
    normalization = request.criterion.normalization
    if setting.device is not None:
        return _device_bank(setting, X, kernels, target, normalization, AUTOMATIC)
    kind = choose_bank("auto", kernels, X, setting.stack_bytes(request))
    return make_bank(kind, kernels, X, normalization, setting.bank.memory, target.sample_weights)


def _device_bank(
    setting: Setting,
    X: Any,
    kernels: list[Kernel],
    target: Target,
    normalization: Normalization,
    planned: BankChoice,
) -> Bank:
    """Return the bank on the device."""
    options: dict[str, Any] = {
        "normalization": normalization,
        "sample_weights": target.sample_weights,
        "device": setting.device,
    }
    if kernels[0].precomputed:
        matrices = [kernel(X) for kernel in kernels]
        return bank_of_matrices(matrices, kernel_names(kernels), **options)
    options |= {"cache_bytes": setting.bank.memory, "factors": planned.kind != "iterative"}
    return DeviceBank(kernels, X, **options)


def _prior_bank(kernels: list[Kernel], target: Target) -> Bank:
    """Return the bank of kernels on equal rows, 0 once centred, and warn."""
    warnings.warn(
        "No column varies: all training rows are the same, up to rounding. Predictions are "
        "those without any column, the shares of the classes or the mean. Give columns that "
        "vary.",
        LeftOutColumnWarning,
        stacklevel=caller_stacklevel(),
    )
    return FactoredBank(
        [np.zeros((1, target.n_samples)) for _ in kernels],
        kernel_names(kernels),
        sample_weights=target.sample_weights,
        raw_traces=np.ones(len(kernels)),
    )


def _blend(
    X: Any,
    kernels: list[Kernel],
    target: Target,
    proposal: Proposal,
    rank: int,
    normalization: Normalization,
) -> BlendBank:
    """Return the bank of one sum of kernels: their weights are known from a proposal."""
    n, chosen = n_rows(X), proposal.chosen
    # More rows want less of it.
    lam = chosen.regularization * min(1.0, len(proposal.sample.rows) / n)

    def draw(kernel: WeightedKernels) -> NDArray[np.intp]:
        return residual_landmarks(X, kernel, target, rank, lam)

    return BlendBank.of_landmarks(
        kernels,
        chosen.weights,
        X,
        draw,
        rank=rank,
        normalization=normalization,
        sample_weights=target.sample_weights,
    )


# ---- held-out rows -----------------------------------------------------------------------------


def held_out_scores(
    learning: Learning, fit: LeastSquares, target: Target
) -> Callable[[ClassTarget, slice], HeldOutScores]:
    """Return what class statistics are taken from, as a function of classes and their columns.

    Parameters
    ----------
    learning : Learning
        What was learned.
    fit : LeastSquares
        The fit of the model.
    target : Target
        What all rows are learned to be.
    """
    proposal, relearner = learning.proposal, learning.relearner
    if not relearner.learns:
        return lambda _, __: HeldOutScores()
    if proposal is not None and len(proposal.dependent):
        rows = proposal.independent(np.arange(target.n_samples))
        if len(rows):
            where = "leave-one-out, of rows held out from the metric"
            return lambda _, __: HeldOutScores(rows, where=where)
    scores, folds = cross_fitted_scores(relearner, fit)
    rows = np.flatnonzero(folds >= 0)
    n_folds = int(folds.max()) + 1
    where = "held out, half of the rows" if n_folds == 1 else f"held out, {n_folds} folds"

    def part(classes: ClassTarget, columns: slice) -> HeldOutScores:
        own = classes if len(rows) == classes.n_samples else classes.part(rows)
        return HeldOutScores(scores=scores[rows, columns], target=own, where=where)

    return part
