"""What estimators that learn share: from rows to a bank, from a bank to a learned kernel."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import FloatArray, blas_threads, draw_rows, n_rows, one_blas_thread
from discernel.bank import (
    Bank,
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
from discernel.criteria import (
    KernelLeastSquares,
    LeastSquares,
    LeaveOneOut,
    LeftOutRows,
    LowRankLoss,
    low_rank_loss,
)
from discernel.default import (
    Proposal,
    Relearner,
    cross_fitted_scores,
    propose_kernels,
    residual_landmarks,
)
from discernel.default.metric import Metric
from discernel.discriminant import HeldOutScores
from discernel.estimators.planned import FitPlanner, showing
from discernel.estimators.rows import are_precomputed
from discernel.estimators.shown import ShownInNotebooks
from discernel.estimators.staged import active_stages
from discernel.estimators.weighted import BaseWeightedEstimator
from discernel.exceptions import (
    InvalidInputError,
    LeftOutColumnWarning,
    LowRankWarning,
    check_number,
    levels_to_the_caller,
)
from discernel.inspection.importances import (
    Loss,
    column_importances,
    importance_rows,
    leave_rows_out,
)
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.columns import Table
from discernel.kernels.weighted import WeightedKernels
from discernel.learn import Request, learn, make_request
from discernel.plan import PATIENCE, FitPlan, Stage
from discernel.progress import phase
from discernel.progress.deadline import Clock
from discernel.targets import ClassTarget, Target

__all__ = [
    "PRIOR_REQUEST",
    "BaseKernelLearner",
    "Learning",
    "Way",
    "has_importances",
    "held_out_scores",
]

#: Weights and λ where nothing can be learned: of constant kernels, or of a single class.
PRIOR_REQUEST = make_request(criterion="uniform", regularization=1.0)
#: Up to so many rows, whose kernel matrix is made in an instant, importances are computed when they
#: are asked for.
_MOST_DEFERRED = 2000
#: Rows that importances are taken from where a system is solved by iteration, column by column.
_MOST_SOLVED = 64
#: Digits of fitted scores that do not depend on the order of the rows.
_SAME_DIGITS = 9


class Learning(NamedTuple):
    """What was learned, for those who fit with it."""

    bank: Bank
    weights: FloatArray
    #: Where the kernels come from; None where they were given.
    proposal: Proposal | None
    #: What learns the same from some of the rows.
    relearner: Relearner

    def coef(self, dual: FloatArray) -> FloatArray:
        """Return what `combined_kernel_` multiplies, for a function expanded in training rows."""
        if isinstance(self.bank, FeatureBank):
            return self.bank.feature_coef(self.weights, dual)
        return dual

    @property
    def kept(self) -> NDArray[np.intp] | None:
        """The training rows that predictions are made from; None where they differ by kernel."""
        if isinstance(self.bank, BlendBank):
            return self.bank.landmark_rows
        return None if isinstance(self.bank, FeatureBank) else np.arange(self.bank.n_samples)


class Way(NamedTuple):
    """How to compute: the bank, or ``"auto"``, and its rank where that is to be low."""

    kind: str
    rank: int | None = None


AUTOMATIC = Way("auto")


class BaseKernelLearner(ShownInNotebooks, BaseWeightedEstimator):
    """Build the bank, learn, store.

    Subclasses have the parameters of this class, described in `MultipleKernelDiscriminant`, or
    say otherwise which candidates there are and what is to be learned.
    """

    #: Whether a kernel of low rank serves as well.
    _approximable: ClassVar[bool] = True
    #: Whether kernels are learned again without each fold, to say what to expect of new rows.
    _holds_out: ClassVar[bool] = False
    _computes_there: ClassVar[bool] = True
    #: The banks that compute on a device.
    _banks_there: ClassVar[tuple[str, ...]] = ("auto", "iterative")
    #: How the rows were learned from: the bank, or ``"stream"``.
    bank_: str
    #: Importances of columns and their standard errors, and what they are made of where they are
    #: computed later; None: neither.
    _importances: tuple[FloatArray, FloatArray] | None = None
    _deferred: dict[str, NDArray[Any]] | None = None
    #: What a time limit is kept by.
    _clock: Clock = staticmethod(time.perf_counter)

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
        rank: int | None = None,
        max_time: Any = None,
        device: str | None = None,
        verbose: bool = False,
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
        self.rank = rank
        self.max_time = max_time
        self.device = device
        self.verbose = verbose
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

        Sparse rows, and rows of one class, have no metric: their kernels stay as they are.
        """
        for name in ("_importances", "_deferred", "metric_"):
            self.__dict__.pop(name, None)  # of a fit before
        if not (self._takes_tables() and isinstance(X, np.ndarray) and target.scores.shape[1]):
            return None
        if request is PRIOR_REQUEST:
            n = self.n_features_in_
            self.metric_ = Metric(np.ones(X.shape[1]))
            self._importances = np.full(n, 1.0 / n), np.zeros(n)
            return None
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
                device=self._device,
            )
            if stages is not None:
                stages.keep_proposal(len(X), proposal)
        self.metric_ = proposal.metric
        return proposal

    # ---- importances -------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> FloatArray:
        """How much worse predictions are without each column: shares that sum to 1."""
        return self._known_importances()[0]

    @property
    def feature_importances_std_(self) -> FloatArray:
        """The standard errors of `feature_importances_`, over rows."""
        return self._known_importances()[1]

    def _known_importances(self) -> tuple[FloatArray, FloatArray]:
        """Return importances and their errors; of an exact fit, computed when first asked for."""
        if self._importances is None:
            if self._deferred is None:
                raise AttributeError(
                    f"{type(self).__name__} must be fitted to dense rows with columns to have "
                    "importances. It is not fitted, or its rows are sparse or its kernels "
                    "precomputed."
                )
            assert isinstance(self.combined_kernel_, CombinedKernel)
            given = {name: self._deferred[name] for name in ("truth", "ridge", "weights")}
            coef, left_out = leave_rows_out(self.combined_kernel_, self._deferred["rows"], **given)
            X = self.combined_kernel_.rows[left_out.rows]
            self._set_importances(X, coef, left_out, self._deferred["labels"][left_out.rows])
        assert self._importances is not None
        return self._importances

    def _store_importances(
        self,
        X: Any,
        learning: Learning,
        fit: KernelLeastSquares,
        labels: NDArray[Any],
        rows: NDArray[np.intp] | None = None,
    ) -> None:
        """Store importances of columns, or what they are made of; nothing without columns.

        Parameters
        ----------
        X : array or Table of shape (n_samples, n_columns)
            The training rows.
        learning : Learning
            What was learned.
        fit : KernelLeastSquares
            The fit that predictions are made with.
        labels : ndarray of shape (n_samples, ...)
            What `_row_losses` takes.
        rows : ndarray of int, optional
            The rows to leave out in turn, or more; by default all.
        """
        if not has_importances(X, self.kernels_) or not fit.fitted.shape[1]:
            return  # no columns, or one class, which depends on none
        every = np.arange(fit.n_samples) if rows is None else rows
        # Sorted by what they are, the same rows are drawn whatever order they were given in.
        every = every[np.lexsort(np.round(fit.fitted[every], _SAME_DIGITS).T)]
        chosen = importance_rows(every, fit.n_samples, self.n_features_in_)
        if isinstance(self.combined_kernel_, CombinedKernel) and fit.n_samples <= _MOST_DEFERRED:
            weights = fit.sample_weights
            self._deferred = {
                "rows": chosen,
                "truth": fit.truth,
                "ridge": fit.ridge,
                "weights": np.ones(fit.n_samples) if weights is None else weights.values,
                "labels": labels,
            }
            return
        if fit.by_iteration:
            chosen = draw_rows(chosen, _MOST_SOLVED)
        left_out = fit.left_out(chosen)
        left_out = replace(left_out, influence=learning.coef(left_out.influence))
        self._set_importances(X[chosen], learning.coef(fit.coef), left_out, labels[chosen])

    def _set_importances(
        self, X: Any, coef: FloatArray, left_out: LeftOutRows, labels: NDArray[Any]
    ) -> None:
        """Compute importances from rows that were left out; ``coef`` predicts their scores."""
        encoder, n = self.encoder_, self.n_features_in_
        source = np.arange(n) if encoder is None else encoder.source
        loss = self._row_losses(labels)
        found = column_importances(self.combined_kernel_, coef, left_out, X, source, n, loss)
        self._importances = found.shares, found.spread

    def _row_losses(self, labels: NDArray[Any]) -> Loss:
        """Return a function of the scores of rows: the loss of each, whose labels are these."""
        return squared_losses(labels)

    @contextmanager
    def _working(
        self,
        X: Any,
        kernels: list[Kernel],
        target: Target,
        request: Request,
        n_rows: int | None = None,
    ) -> Iterator[Way]:
        """Choose the way, say so, and show how far the work within is; `plan_` keeps it.

        Of rows that come in chunks, X is a sample, and ``n_rows`` their number.
        """
        self._check_room()
        asked, rank = getattr(self, "bank", "auto"), getattr(self, "rank", None)
        verbose, stages = getattr(self, "verbose", False), active_stages()
        planner = self._planner(X, kernels, request, n_rows)
        if stages is None:
            self.forecast_ = planner.forecast(always=bool(verbose))
        else:
            self.forecast_ = stages.begin(planner)
            planner = stages.planner or planner
        pay, n_samples = planner.blas_threads_pay, target.n_samples
        start = time.perf_counter()
        shown = showing(self.forecast_, verbose, limited=stages is not None)
        with shown, blas_threads(n_samples) if pay else one_blas_thread():
            if self.forecast_ is None or self.forecast_.kind == "device":
                yield Way(asked, rank)
            else:
                yield Way(self.forecast_.kind, rank or self.forecast_.rank)
        self.plan_ = self._plan_of_one_stage(n_samples, time.perf_counter() - start)

    def _planner(
        self, X: Any, kernels: list[Kernel], request: Request, n_rows: int | None
    ) -> FitPlanner:
        """Return what makes forecasts of the fit to all rows, of which X may have some only."""
        stages, in_chunks = active_stages(), n_rows is not None
        patience = PATIENCE
        if stages is not None:
            n_rows, in_chunks = stages.n_rows, stages.survey is not None
            patience = max(patience, stages.seconds)
        return FitPlanner.of(
            X,
            kernels,
            request,
            n_rows=n_rows,
            rank=getattr(self, "rank", None),
            chooses=self._takes_tables() and isinstance(X, np.ndarray),
            approximable=self._approximable,
            holds_out=self._holds_out,
            asked=getattr(self, "bank", "auto"),
            cache_bytes=self._cache_bytes(request),
            patience=patience,
            device=self._device,
            sums_there="lowrank" in self._banks_there,
            in_chunks=in_chunks,
        )

    def _plan_of_one_stage(self, n_samples: int, seconds: float) -> FitPlan:
        """Return the plan of a fit without a time limit."""
        found = self.forecast_
        if found is None:
            what = f"{n_samples:,} rows: bank={self.bank_!r}"
            return FitPlan((Stage(what, "few rows need no forecast", None, seconds),))
        return FitPlan((Stage(found.what, found.reason, found.seconds, seconds),))

    def _held_out_loss(self) -> float | None:
        """Return what rows cost that are left out of the fit; None where that is not known."""
        return None

    def _opened_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Return rows, labels and weights as they are learned from."""
        return X, y, sample_weight

    def _survey_rows(self, X: Any) -> Any:
        """Return what a first pass over rows in chunks finds; None for rows in memory."""
        return None

    def _learn(
        self,
        X: Any,
        kernels: list[Kernel],
        target: Target,
        request: Request,
        way: Way = AUTOMATIC,
    ) -> Learning:
        """Learn and store; return the bank, the weights of its kernels and what was proposed."""
        phase("choosing kernels")
        request = request if self._rows_vary(X, kernels) else PRIOR_REQUEST
        proposal = self._propose(X, kernels, target, request)
        kernels = kernels if proposal is None else proposal.kernels
        chosen = proposal if request.leaves_choice else None
        near = _near(kernels, X, request)
        phase("looking at all rows")
        bank = self._make_bank(X, near, target, request, way, chosen)
        phase("learning weights and λ")
        learned = (learn if chosen is None else chosen.learn)(bank, target, request)
        phase("fitting the discriminant")
        weights = learned.weights[bank.kept]
        active = np.flatnonzero(learned.coefficients)
        whole = WeightedKernels([near[i] for i in active], learned.coefficients[active])
        self.low_rank_loss_: LowRankLoss | None = None
        self.combined_kernel_: CombinedKernel | CombinedFeatures
        if isinstance(bank, FeatureBank):
            self.combined_kernel_ = bank.combined_features(weights)
            learned = replace(learned, rank=bank.rank)
            lam, criterion = learned.regularization, request.criterion
            self._store_loss(low_rank_loss(bank, weights, lam, criterion, target, whole, X))
        else:
            self.combined_kernel_ = CombinedKernel(
                whole.kernels,
                whole.coefficients,
                None if kernels[0].precomputed else X,
                bank.centering(weights),
                None if kernels[0].precomputed else self._device,
            )
        self.learned_kernel_ = learned
        self.kernels_ = kernels
        self.kernel_names_ = bank.names
        self.kernel_weights_ = learned.weights
        self.regularization_ = learned.regularization
        self.gap_ = learned.gap
        self.n_iter_ = max(1, learned.n_iter)
        relearner = Relearner(
            target,
            request,
            bank,
            weights,
            learned.regularization,
            proposal,
            X,
            lambda kernels: self._exact_bank(X, _near(kernels, X, request), target, request),
        )
        return Learning(bank, weights, proposal, relearner)

    def _rows_vary(self, X: Any, kernels: list[Kernel]) -> bool:
        """Whether training rows differ as kernels see them; of what is no numbers, always."""
        if not isinstance(X, np.ndarray) or X.dtype == object or kernels[0].precomputed:
            return True
        varies = (X[0] != X).any(axis=0)  # also where cells are missing
        if self._takes_tables():
            varies &= np.array(kernels[0].spreads) > 0  # type: ignore[attr-defined]
        return bool(varies.any())

    def _prior_bank(self, kernels: list[Kernel], target: Target) -> Bank:
        """Return the bank of kernels on equal rows, 0 once centred, and warn."""
        warnings.warn(
            "No column varies: all training rows are the same, up to rounding. Predictions are "
            "those without any column, the shares of the classes or the mean. Give columns that "
            "vary.",
            LeftOutColumnWarning,
            stacklevel=levels_to_the_caller(),
        )
        self.bank_ = "factored"
        return FactoredBank(
            [np.zeros((1, target.n_samples)) for _ in kernels],
            kernel_names(kernels),
            sample_weights=target.sample_weights,
            raw_traces=np.ones(len(kernels)),
        )

    def _store_loss(self, loss: LowRankLoss) -> None:
        """Store what a low rank loses, and warn where a larger one would clearly pay."""
        self.low_rank_loss_ = loss
        if loss.advice:
            warnings.warn(loss.advice, LowRankWarning, stacklevel=levels_to_the_caller())

    def to_cpu(self) -> Self:
        """Return the fitted model as one of NumPy, which can be saved and used anywhere.

        Returns
        -------
        BaseKernelLearner
            A copy that predicts the same, up to rounding.
        """
        check_is_fitted(self)
        model = copy(self)
        model._device = None
        if isinstance(self.combined_kernel_, CombinedKernel):
            model.combined_kernel_ = replace(self.combined_kernel_, device=None)
        return model

    def _check_room(self) -> None:
        check_number("cache_size", getattr(self, "cache_size", 256), positive=True)
        rank = getattr(self, "rank", None)
        if rank is not None and not (isinstance(rank, (int, np.integer)) and rank >= 1):
            raise InvalidInputError(f"The rank must be an integer of at least 1. Got {rank!r}.")
        self._check_bank_there()

    def _check_bank_there(self) -> None:
        """Raise a clear error for a bank that does not compute on the device."""
        if self._device is None:
            return
        asked, where = getattr(self, "bank", "auto"), self._device.where
        given = are_precomputed(self._candidates())
        known = ("auto", "dense") if given else self._banks_there
        if asked not in known:
            raise InvalidInputError(
                f"On {where}, bank must be one of {', '.join(map(repr, known))}. Got {asked!r}; "
                f"others compute on the processor. Leave `bank` out to compute on {where}, or give "
                "NumPy arrays and leave `device` out to compute on the processor."
            )

    def _cache_bytes(self, request: Request | None = None) -> float:
        """Return the room for kernel matrices; with a request, for a stack of them."""
        n_bytes = float(getattr(self, "cache_size", 256) * 2**20)
        if request is None:
            return n_bytes
        # One program takes some ten passes, in which a large stack does not earn its page faults.
        given = request.criterion.regularization_is == "given"
        return n_bytes / 4 if given and request.regularization != "loo" else n_bytes

    def _make_bank(
        self,
        X: Any,
        kernels: list[Kernel],
        target: Target,
        request: Request,
        way: Way,
        chosen: Proposal | None,
    ) -> Bank:
        """Return the bank of a way; `bank_` says which.

        One sum of kernels is enough for a proposal that was chosen with its weights.
        """
        n_bytes, rank = self._cache_bytes(), way.rank
        normalization = request.criterion.normalization
        if request is PRIOR_REQUEST:
            return self._prior_bank(kernels, target)
        if self._device is not None and way.kind != "lowrank":
            self.bank_ = "device"
            return self._bank_there(X, kernels, target, normalization, way)
        kind = choose_bank(way.kind, kernels, X, self._cache_bytes(request))
        self.bank_ = kind
        if kind == "lowrank" and chosen is not None:
            rank = default_rank(n_rows(X), n_bytes) if rank is None else rank
            return _blend(X, kernels, target, chosen, rank, normalization)
        return make_bank(kind, kernels, X, normalization, n_bytes, target.sample_weights, rank)

    def _exact_bank(self, X: Any, kernels: list[Kernel], target: Target, request: Request) -> Bank:
        """Return a bank of kernels on all rows that is not approximated."""
        normalization = request.criterion.normalization
        if self._device is not None:
            return self._bank_there(X, kernels, target, normalization, AUTOMATIC)
        kind = choose_bank("auto", kernels, X, self._cache_bytes(request))
        return make_bank(
            kind, kernels, X, normalization, self._cache_bytes(), target.sample_weights
        )

    def _bank_there(
        self,
        X: Any,
        kernels: list[Kernel],
        target: Target,
        normalization: Normalization,
        way: Way,
    ) -> Bank:
        """Return the bank on the device."""
        assert self._device is not None
        options: dict[str, Any] = {
            "normalization": normalization,
            "sample_weights": target.sample_weights,
            "device": self._device,
        }
        if kernels[0].precomputed:
            matrices = [kernel(X) for kernel in kernels]
            return bank_of_matrices(matrices, kernel_names(kernels), **options)
        options |= {"cache_bytes": self._cache_bytes(), "factors": way.kind != "iterative"}
        return DeviceBank(kernels, X, **options)


def squared_losses(truth: FloatArray) -> Loss:
    """Return a function of scores: the squared error of each row.

    Parameters
    ----------
    truth : ndarray of shape (n_rows, n_targets)
        What the scores should be; errors of a target are in units of its standard deviation.
    """
    unit = truth.var(axis=0)
    unit[unit == 0] = 1.0
    return lambda scores: np.asarray(np.sum((scores - truth) ** 2 / unit, axis=1))


def has_importances(X: Any, kernels: list[Kernel]) -> bool:
    """Whether rows have columns, and are not sparse, so that columns can be exchanged."""
    is_array = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype != object
    return (is_array or isinstance(X, Table)) and not kernels[0].precomputed


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


def _near(kernels: list[Kernel], X: Any, request: Request) -> list[Kernel]:
    """Return kernels with their origin at a typical row, where that changes nothing.

    The same once centred; raw traces would not be the same.
    """
    if request.criterion.normalization != "centered_trace":
        return kernels
    return [kernel.shifted(X) for kernel in kernels]


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
