"""From checked rows to a bank, and from a bank to a learned kernel."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, FloatArray, blas_threads, n_rows, one_blas_thread
from discernel.bank import (
    Bank,
    BankChoice,
    BlendBank,
    CombinedFeatures,
    CombinedKernel,
    FeatureBank,
    default_rank,
    make_bank,
)
from discernel.criteria import Auto, Criterion, KernelLeastSquares, LeastSquares
from discernel.default import (
    Proposal,
    Relearner,
    cross_fitted_scores,
    menu_kernels,
    propose_kernels,
    residual_landmarks,
)
from discernel.default.metric import Metric
from discernel.discriminant import HeldOutScores
from discernel.exceptions import (
    InvalidInputError,
    LeftOutColumnWarning,
    LongFitWarning,
    LowRankWarning,
    caller_stacklevel,
)
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.weighted import WeightedKernels
from discernel.learn import LearnedKernel, Request, learn, learn_part, make_request
from discernel.learn.low_rank import LowRankLoss, low_rank_loss
from discernel.learn.stages import StagedFit
from discernel.learn.training import TrainingRows
from discernel.model import Facts, KeptRows, Model
from discernel.model.importances import Importances, importances_of
from discernel.plan import (
    FitPlan,
    Problem,
    Stage,
    choose_bank,
    needs_forecast,
    plan_stage,
)
from discernel.progress import in_words, phase, reporting
from discernel.targets import ClassTarget, Target

#: Weights and λ where nothing can be learned: of constant kernels, or of a single class.
PRIOR_REQUEST = make_request(criterion="uniform", regularization=1.0)
#: Seconds from which on silence would be rude.
_LONG = 120.0
#: How many times weights are learned where λ is learned with them or looked for on a path, and by a
#: search among criteria.
_PROGRAMS: dict[Any, float] = {"joint": 2.0, "loo": 3.0}
_SEARCH = 4.0


@dataclass(frozen=True)
class Setting:
    """How an estimator asks to be fitted, checked."""

    #: What is to be learned, how kernels are computed, and where; None: here.
    request: Request
    bank: BankChoice = field(default_factory=BankChoice)
    device: Device | None = None
    #: Whether the kernels are the default's, or given as matrices.
    tables: bool = False
    precomputed: bool = False
    #: Whether to show how far the fit is.
    verbose: Any = False
    #: Whether a kernel of low rank serves as well.
    approximable: bool = True
    #: Whether kernels are learned again without each fold, to say what to expect of new rows.
    holds_out: bool = False
    #: Whether features of a low rank can be summed up, on a device too.
    sums: bool = False
    #: The stages of a fit with a time limit.
    stages: StagedFit | None = None

    def check_bank(self, device: Device) -> None:
        """Raise a clear error for a bank that does not compute on the device."""
        known = ("auto", "iterative", "lowrank") if self.sums else ("auto", "iterative")
        known = ("auto", "dense") if self.precomputed else known
        if self.bank.kind not in known:
            where = device.where
            raise InvalidInputError(
                f"On {where}, bank must be one of {', '.join(map(repr, known))}. Got "
                f"{self.bank.kind!r}; others compute on the processor. Leave `bank` out to compute "
                f"on {where}, or give NumPy arrays and leave `device` out to compute on the "
                "processor."
            )

    def stack_bytes(self, request: Request) -> float:
        """Return the room for a stack of kernel matrices, for what is to be learned."""
        # One program takes some ten passes, in which a large stack does not earn its page faults.
        given = request.criterion.regularization_is == "given"
        few_passes = given and request.regularization != "loo"
        return self.bank.memory / 4 if few_passes else self.bank.memory


# ---- how to compute ----------------------------------------------------------------------------


class FitRun(NamedTuple):
    """A fit that is running: its bank, its forecast, its rows, its start, and where.

    Few rows have no forecast.
    """

    planned: BankChoice
    forecast: Stage | None
    n_samples: int
    start: float
    device: Device | None = None

    def plan(self, bank: str) -> FitPlan:
        """Return the plan of a fit without a time limit, by now, and with the bank it has used."""
        seconds, stage = time.perf_counter() - self.start, self.forecast
        expected = None if stage is None else stage.seconds
        stage = stage or Stage(bank, self.n_samples, "few rows need no forecast", seconds)
        return FitPlan((replace(stage, seconds=seconds, forecast=expected, finished=True),))


@contextmanager
def working(
    setting: Setting, X: Any, kernels: list[Kernel], target: Target, n_rows: int | None = None
) -> Iterator[FitRun]:
    """Plan a fit or its present stage, say so, and show how far the work within is.

    Of ``n_rows`` rows that come in chunks, X is a sample.
    """
    if setting.device is not None:
        setting.check_bank(setting.device)
    verbose, device, stages = setting.verbose, setting.device, setting.stages
    if not isinstance(verbose, (bool, int, np.bool_)):
        raise InvalidInputError(f"verbose must be True or False. Got {verbose!r}.")
    stage = problem = None
    if stages is not None:
        problem, stage = stages.problem, stages.stage
        if problem is None:
            problem = _make_problem(setting, X, kernels, stages.n_rows, stages.survey is not None)
            problem = replace(problem, patience=max(problem.patience, stages.seconds))
            stage = stages.begin(problem)
    # What a device does not take is refused by its bank.
    elif device is None or isinstance(X, np.ndarray):
        n = n_rows or target.n_samples
        if verbose or needs_forecast(n, device):
            problem = _make_problem(setting, X, kernels, n, n_rows is not None)
            stage = plan_stage(problem)
    speed = None if problem is None else problem.speeds.get("here")
    pay = speed is None or speed.blas_threads_pay
    planned, n_samples, start = setting.bank, target.n_samples, time.perf_counter()
    if stage is not None and stage.kind != "device":
        planned = planned._replace(kind=stage.kind, rank=planned.rank or stage.rank)
    if stage is not None:
        _announce(stage, verbose=bool(verbose), limited=stages is not None)
    shown = nullcontext() if stage is None else reporting(stage.seconds, verbose=bool(verbose))
    with shown, blas_threads(n_samples) if pay else one_blas_thread():
        yield FitRun(planned, stage, n_samples, start, device)


def _announce(stage: Stage, *, verbose: bool, limited: bool) -> None:
    """Say what was chosen; without ``verbose``, only warn of a long fit without a time limit."""
    if verbose:
        print(stage)
    elif stage.seconds > _LONG and not limited:
        warnings.warn(
            f"This fit is expected to take {in_words(stage.seconds)}: {stage}. "
            "verbose=True shows how far it is, and max_time limits it.",
            LongFitWarning,
            stacklevel=caller_stacklevel(),
        )


def _make_problem(
    setting: Setting, X: Any, kernels: list[Kernel], n_rows: int, in_chunks: bool
) -> Problem:
    """Return what is planned: the fit to all rows, of which X may have some only."""
    request, criterion = setting.request, setting.request.criterion
    chooses = setting.tables and isinstance(X, np.ndarray)
    is_known = chooses and criterion.name == Auto.name
    n_programs = _PROGRAMS.get(request.regularization, 1.0)
    n_programs = _SEARCH if criterion.regularization_is == "learned" else n_programs
    trusted = all(kernel.trusted and not kernel.precomputed for kernel in kernels)
    return Problem(
        menu_kernels(X, kernels[0].spreads) if chooses else kernels,  # type: ignore[attr-defined]
        X,
        n_rows,
        chooses,
        0.0 if is_known else n_programs,
        setting.approximable and trusted and (is_known or criterion.only_products),
        setting.bank.kind,
        setting.bank.rank,
        setting.stack_bytes(request),
        holds_out=setting.holds_out,
        in_chunks=in_chunks,
        device=setting.device,
        sums_on_device=setting.sums,
    )


# ---- what is learned ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Learning:
    """A learned kernel, and what it was learned with."""

    #: The kernels on the training rows, how they are computed, and their weights.
    bank: Bank
    bank_name: str
    weights: FloatArray
    #: Where the kernels come from; None where they were given.
    proposal: Proposal | None
    #: Learns the same from some of the rows.
    relearner: Relearner
    #: All kernels, and their learned sum between new rows and those that are kept.
    kernels: list[Kernel]
    kernel: CombinedKernel | CombinedFeatures
    #: Everything the solver said.
    learned: LearnedKernel
    #: The scales of columns that were considered, if any, and what a low rank lost.
    metric: Metric | None = None
    low_rank_loss: LowRankLoss | None = None
    #: Those of columns, where nothing depends on any of them.
    importances: Importances | None = None

    def coef(self, dual: FloatArray) -> FloatArray:
        """Return what the learned kernel multiplies, for a function expanded in training rows."""
        features = self.bank.predicting()
        return dual if features is None else features.feature_coef(self.weights, dual)

    @property
    def kept(self) -> NDArray[np.intp] | None:
        """The training rows that predictions are made from; None where they differ by kernel."""
        bank = self.bank
        return np.arange(bank.n_samples) if bank.predicting() is None else bank.landmark_rows

    def fit(self, target: Target, scores: FloatArray | None = None) -> KernelLeastSquares:
        """Return the fit of the target, or of other scores of its rows, with the learned kernel."""
        criterion: Criterion = self.relearner.request.criterion
        lam = self.learned.regularization
        return criterion.least_squares(self.bank, self.weights, target, lam, scores)

    def model(
        self,
        training: TrainingRows,
        work: FitRun,
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
        training : TrainingRows
            The rows.
        work : FitRun
            How they were fitted.
        fit : KernelLeastSquares
            The fit.
        head : object
            What scores are turned into.
        truth : ndarray of shape (n_samples, ...)
            What the losses of the head take.
        coef : ndarray of shape (n_kept, n_scores)
            What the learned kernel is multiplied by.
        intercept : ndarray of shape (n_scores,)
            What is added.
        classes : ndarray of shape (n_classes,), optional
            The labels of the classes.
        labels : ndarray of shape (n_samples,), optional
            Those of the rows, to be kept.
        rows : ndarray of int, optional
            The rows that importances are taken from; by default all.
        """
        reader = replace(training.reader, kernels=self.kernels)
        importances = self.importances or importances_of(
            training.X, self.kernel, self.coef, reader, head, fit, truth, rows
        )
        facts = Facts(
            self.learned,
            list(self.bank.names),
            self.bank_name,
            work.forecast,
            work.plan(self.bank_name),
            self.metric,
            self.low_rank_loss,
            importances,
        )
        kept = KeptRows() if labels is None else training.kept(labels, self.kept)
        said = (head, classes, facts, kept, work.device)
        return Model(reader, self.kernel, coef, intercept, *said)


def learn_training(
    setting: Setting, training: TrainingRows, target: Target, request: Request, work: FitRun
) -> Learning:
    """Learn the kernel of training rows, as planned."""
    X, kernels, n_features = training.X, training.kernels, training.reader.n_features
    return learn_rows(setting, X, kernels, target, request, n_features, work.planned)


def learn_rows(
    setting: Setting,
    X: Any,
    kernels: list[Kernel],
    target: Target,
    request: Request,
    n_features: int | None = None,
    planned: BankChoice | None = None,
) -> Learning:
    """Learn the kernel of rows in memory, as planned or exactly.

    The request may be for less than the setting asks for. Rows may have had more columns.
    """
    phase("choosing kernels")
    proposal = metric = importances = None
    varies = rows_vary(X, kernels, setting.tables)
    request = request if varies else PRIOR_REQUEST
    if setting.tables and isinstance(X, np.ndarray) and target.scores.shape[1]:
        if varies:
            proposal = _propose(setting, X, kernels, target, request)
            metric, kernels = proposal.metric, proposal.kernels
        else:
            n = n_features or X.shape[1]
            metric = Metric(np.ones(X.shape[1]))
            importances = Importances((np.full(n, 1.0 / n), np.zeros(n)))
    chosen = proposal if request.leaves_choice else None
    near = _near(kernels, X, request)
    phase("looking at all rows")
    if varies:
        bank, bank_name = _make_bank(setting, X, near, target, request, planned, chosen)
    else:
        bank, bank_name = _prior_bank(near, target), "factored"
    phase("learning weights and λ")
    learned = (learn if chosen is None else chosen.learn)(bank, target, request)
    phase("fitting the discriminant")
    weights = learned.weights[bank.kept]
    combined, loss = _combine(setting, X, near, bank, learned, target, request)
    learned = replace(learned, rank=None if loss is None else loss.rank)
    relearner = Relearner(
        target,
        request,
        learn_part,
        bank,
        weights,
        learned.regularization,
        proposal,
        X,
        lambda others: _make_bank(setting, X, _near(others, X, request), target, request)[0],
    )
    made = (kernels, combined, learned, metric, loss, importances)
    return Learning(bank, bank_name, weights, proposal, relearner, *made)


def _propose(
    setting: Setting, X: Any, kernels: list[Kernel], target: Target, request: Request
) -> Proposal:
    """Return the default's kernels for these rows."""
    propose = partial(
        propose_kernels,
        X,
        kernels[0].spreads,  # type: ignore[attr-defined]
        target,
        pull=request.criterion.pull,
        regularization=request.given_regularization or None,  # folds are never without
        random_state=request.random_state,
        device=setting.device,
    )
    return propose() if setting.stages is None else setting.stages.proposal(len(X), propose)


def _combine(
    setting: Setting,
    X: Any,
    near: list[Kernel],
    bank: Bank,
    learned: LearnedKernel,
    target: Target,
    request: Request,
) -> tuple[CombinedKernel | CombinedFeatures, LowRankLoss | None]:
    """Return the learned sum of kernels, and what a low rank loses; warn where that is much."""
    weights, active = learned.weights[bank.kept], np.flatnonzero(learned.coefficients)
    whole = WeightedKernels([near[i] for i in active], learned.coefficients[active])
    features = bank.predicting()
    if features is not None:
        lam, criterion = learned.regularization, request.criterion
        loss = low_rank_loss(features, weights, lam, criterion, target, whole, X)
        if loss.advice:
            warnings.warn(loss.advice, LowRankWarning, stacklevel=caller_stacklevel())
        return features.combined_features(weights), loss
    rows, device = (None, None) if near[0].precomputed else (X, setting.device)
    centering = bank.centering(weights)
    return CombinedKernel(whole.kernels, whole.coefficients, rows, centering, device), None


def rows_vary(X: Any, kernels: list[Kernel], tables: bool) -> bool:
    """Whether rows differ as kernels, the default's or others, see them; of no numbers, always."""
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
    planned: BankChoice | None = None,
    chosen: Proposal | None = None,
) -> tuple[Bank, str]:
    """Return the planned bank, by default an exact one, and its name.

    One sum of kernels is enough for a proposal that was chosen with its weights.
    """
    choice = setting.bank._replace(kind="auto", rank=None) if planned is None else planned
    normalization, weights = request.criterion.normalization, target.sample_weights
    if setting.device is not None and choice.kind != "lowrank":
        return make_bank(choice, kernels, X, normalization, weights, setting.device), "device"
    kind = choose_bank(choice.kind, kernels, X, setting.stack_bytes(request))
    if kind != "lowrank" or chosen is None:
        return make_bank(choice._replace(kind=kind), kernels, X, normalization, weights), kind
    n, rank = n_rows(X), choice.rank or default_rank(n_rows(X), choice.memory)
    # More rows want less of it.
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
        sample_weights=target.sample_weights,
    )


# ---- held-out rows -----------------------------------------------------------------------------


def held_out_scores(
    learning: Learning, fit: LeastSquares, target: Target
) -> Callable[[ClassTarget, slice], HeldOutScores]:
    """Return what class statistics are taken from, as a function of classes and their columns."""
    proposal, relearner = learning.proposal, learning.relearner
    leave_one_out, scores = HeldOutScores(), None
    if relearner.learns:
        rows, where = np.empty(0, dtype=np.intp), "leave-one-out, of rows held out from the metric"
        if proposal is not None and len(proposal.dependent):
            rows = proposal.independent(np.arange(target.n_samples))
        if len(rows):
            leave_one_out = HeldOutScores(rows, where=where)
        else:
            scores, folds = cross_fitted_scores(relearner, fit)
            rows, n_folds = np.flatnonzero(folds >= 0), int(folds.max()) + 1
            where = f"held out, {n_folds} folds" if n_folds > 1 else "held out, half of the rows"

    def part(classes: ClassTarget, columns: slice) -> HeldOutScores:
        if scores is None:
            return leave_one_out
        own = classes if len(rows) == classes.n_samples else classes.part(rows)
        return HeldOutScores(scores=scores[rows, columns], target=own, where=where)

    return part
