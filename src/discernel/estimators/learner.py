"""What estimators that learn share: from rows to a bank, from a bank to a learned kernel."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from discernel.backend import FloatArray, blas_threads, n_rows, one_blas_thread
from discernel.bank import (
    Bank,
    BlendBank,
    CombinedFeatures,
    CombinedKernel,
    DeviceBank,
    FeatureBank,
    Normalization,
    bank_of_matrices,
    choose_bank,
    default_rank,
    make_bank,
)
from discernel.criteria import Auto, LeaveOneOut, LowRankLoss, low_rank_loss
from discernel.crossfit import CrossFitted, Proposal, propose_kernels, residual_landmarks
from discernel.deadline import Clock
from discernel.discriminant import HonestScores
from discernel.estimators.planned import FitPlanner, showing
from discernel.estimators.rows import are_precomputed
from discernel.estimators.shown import ShownInNotebooks
from discernel.estimators.staged import active_stages
from discernel.estimators.weighted import BaseWeightedEstimator
from discernel.exceptions import (
    InvalidInputError,
    LowRankWarning,
    check_number,
    levels_to_the_caller,
)
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.weighted import WeightedKernels
from discernel.learners import Request, learn, make_request
from discernel.metric import Metric
from discernel.planning import PATIENCE, FitPlan, Stage
from discernel.progress import phase
from discernel.sample_weights import SampleWeights
from discernel.targets import ClassTarget, Target

__all__ = ["BaseKernelLearner", "Learning", "Way", "honest_scores"]


_ALL = slice(None)


class Learning(NamedTuple):
    """What was learned, for those who fit with it."""

    bank: Bank
    weights: FloatArray
    #: Where the kernels come from; None where they were given.
    proposal: Proposal | None

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
    _computes_there: ClassVar[bool] = True
    #: The banks that compute on a device.
    _banks_there: ClassVar[tuple[str, ...]] = ("auto", "iterative")
    #: How the rows were learned from: the bank, or ``"stream"``.
    bank_: str
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

        Sparse rows have no metric: their kernels stay as they are.
        """
        for name in ("feature_importances_", "feature_importances_std_", "metric_"):
            self.__dict__.pop(name, None)  # of a fit before
        if not (self._takes_tables() and isinstance(X, np.ndarray)):
            return None
        given = request.regularization if isinstance(request.regularization, float) else None
        stages = active_stages()
        proposal = None if stages is None else stages.known_proposal(len(X))
        if proposal is None:
            proposal = propose_kernels(
                X,
                kernels[0].spreads,  # type: ignore[attr-defined]
                target,
                pull=request.criterion.pull if isinstance(request.criterion, LeaveOneOut) else 0.0,
                regularization=given,
                random_state=request.random_state,
                device=self._device,
            )
            if stages is not None:
                stages.keep_proposal(len(X), proposal)
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
        proposal = self._propose(X, kernels, target, request)
        if proposal is not None:
            kernels = proposal.kernels
            if isinstance(request.criterion, Auto) and request.automatic:
                request = replace(request, solver=CrossFitted(proposal))
        near = kernels
        if request.criterion.normalization == "centered_trace":
            # The same once centred; raw traces would not be the same.
            near = [kernel.shifted(X) for kernel in kernels]
        phase("looking at all rows")
        bank = self._make_bank(X, near, target, request, way)
        phase("learning weights and λ")
        learned = learn(bank, target, request)
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
        return Learning(bank, weights, proposal)

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
    ) -> Bank:
        """Return the bank of a way; `bank_` says which."""
        n_bytes, rank = self._cache_bytes(), way.rank
        normalization, solver = request.criterion.normalization, request.solver
        if self._device is not None and way.kind != "lowrank":
            self.bank_ = "device"
            return self._bank_there(X, kernels, target, normalization, way)
        kind = choose_bank(way.kind, kernels, X, self._cache_bytes(request))
        self.bank_ = kind
        if kind == "lowrank" and isinstance(solver, CrossFitted):
            rank = default_rank(n_rows(X), n_bytes) if rank is None else rank
            return _blend(X, kernels, target, solver.proposal, rank, normalization)
        return make_bank(kind, kernels, X, normalization, n_bytes, target.sample_weights, rank)

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
