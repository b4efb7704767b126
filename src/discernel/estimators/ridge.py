"""Kernel ridge regression with a learned combination of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from discernel.arrays import FloatArray, is_dask
from discernel.default import learn_spread
from discernel.discriminant import (
    Head,
    HeldOutNumbers,
    HeldOutScores,
    NumberExpectation,
    Spread,
    check_coverage,
)
from discernel.estimators.base import (
    BaseKernelEstimator,
    by_chunks,
    score_any,
    view,
)
from discernel.exceptions import InvalidInputError
from discernel.learn import Request
from discernel.learn.held_out import held_out_scores
from discernel.learn.rows import Learning
from discernel.learn.stages import FitRun
from discernel.model import Model
from discernel.model.importances import squared_losses
from discernel.model.training import TrainingRows
from discernel.programs.least_squares import KernelLeastSquares
from discernel.progress.deadline import must_stop_learning
from discernel.targets import RegressionTarget

if TYPE_CHECKING:
    from discernel.learn.chunks import StreamLearner


@dataclass(frozen=True, eq=False)
class NumberHead(Head):
    """The head of regressors: scores are predictions.

    Attributes
    ----------
    leave_one_out : ndarray of shape (n_samples, n_targets)
        The leave-one-out prediction for each training row, or for rows of a sample.
    has_columns : bool
        Whether y, and therefore predictions, have two dimensions.
    held_out : HeldOutNumbers or None
        Predictions of rows whose targets neither the kernel nor the fit has seen.
    spread : Spread or None
        How large errors are at new rows, relative to each other; None: the same everywhere.
    """

    leave_one_out: FloatArray
    has_columns: bool
    held_out: HeldOutNumbers | None = None
    spread: Spread | None = None

    @property
    def n_rows(self) -> int:
        return len(self.leave_one_out)

    @property
    def expected(self) -> NumberExpectation | None:
        """The errors to expect on new rows; None without held-out rows."""
        return None if self.held_out is None else self.held_out.expectation

    def shaped(self, numbers: FloatArray) -> FloatArray:
        """Return predictions in the shape of y, with one or two dimensions."""
        return numbers if self.has_columns else numbers[:, 0]

    def linear_scores(
        self, coef: FloatArray, intercept: FloatArray
    ) -> tuple[FloatArray, FloatArray, None]:
        return coef, intercept, None

    def row_losses(self, labels: FloatArray) -> Any:
        """Return a function that computes the squared error of each row from its scores."""
        return squared_losses(labels)

    def with_spreads(self, model: Model, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return predictions and spreads of new rows, of shape (n_rows, n_targets) both.

        Parameters
        ----------
        model : Model
            The model of this head.
        X : array-like of shape (n_rows, n_features)
            New rows.
        """
        if self.spread is None:
            predicted = model.scores(X)
            return predicted, np.ones_like(predicted)
        n = len(model.intercept)
        coef = np.hstack([model.coef, self.spread.coef])  # one pass over the kernels
        intercept = np.concatenate([model.intercept, self.spread.intercept])
        found = replace(model, coef=coef, intercept=intercept).scores(X)
        return found[:, :n], self.spread.of(found[:, n:])


class MultipleKernelRidge(MultiOutputMixin, RegressorMixin, BaseKernelEstimator):
    """Kernel ridge regression with a learned combination of kernels.

    By default, `fit` learns a scale for every column, the weights of twelve kernels and the
    regularization, and estimates the errors to expect on held-out rows. The criteria are those of
    the classifiers, with the centred targets in place of class scores. Several targets share the
    weights and λ, unless ``weights_per_target=True``. Read more in the
    :doc:`user guide </expectations>`.

    Parameters
    ----------
    kernels : "auto", "precomputed", kernel, list of kernels or dict of names to kernels
        As in `MultipleKernelDiscriminant`.
    criterion : {"auto", "rkda", "loo", "uniform"} or object, default="auto"
        As in `MultipleKernelDiscriminant`; here ``"rkda"`` is the regularized squared error.
    solver, regularization, tol, max_iter, random_state
        As in `MultipleKernelDiscriminant`.
    bank, max_time, device, verbose, callback
        As in `MultipleKernelDiscriminant`.
    weights_per_target : bool, default=False
        Whether each of several targets gets kernel weights and λ of its own, those with the
        smallest leave-one-out error of this target, for ``criterion="auto"`` or ``"loo"``. All
        targets share the kernels; the default's kernels and column scales are chosen for all
        targets together.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,) or (n_targets, n_kernels)
        Weights of the normalized kernels, at least 0. They sum to 1, except for ``RKDA`` with a
        ``norm``. With ``weights_per_target=True``, one row for each of several targets.
    kernel_names_ : list of str
        Names of the kernels, in the order of the weights.
    regularization_ : float or ndarray of shape (n_targets,)
        The λ used, given, chosen or learned.
    gap_ : float or None
        The certified relative duality gap; None if the criterion is not convex.
    learned_kernel_ : LearnedKernel
        The complete result of the solver; with weights of each target, their means.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Coefficients of the training rows.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept.
    leave_one_out_ : ndarray of the shape of y
        The leave-one-out prediction for each training row, with the kernel of all rows; with
        groups, the prediction by the fit without its group. After a fit to rows in chunks or
        `partial_fit`, for rows of a random sample.
    expected_ : NumberExpectation
        The errors to expect on new rows: R² and root mean squared error with intervals, and the
        rows they were estimated on. Kernel, λ and fit of each of these rows are without its target,
        as in `MultipleKernelDiscriminant`.
    streamed_ : Streamed
        After a fit to rows in chunks or `partial_fit`: the number of rows, of sampled rows and of
        landmarks, and the share of the kernel's variance that the landmarks capture. ``bank_`` is
        then ``"stream"``.
    feature_importances_ : ndarray of shape (n_features,)
        Increase of the squared error of held-out training rows when the cells of a column come
        from other rows, as in `MultipleKernelDiscriminant`. With weights of each target, of 30
        targets drawn at random, if there are more.
    feature_importances_std_ : ndarray of shape (n_features,)
        Standard errors of `feature_importances_`.

    See Also
    --------
    MultipleKernelDiscriminant : Classification with learned kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = make_pipeline(StandardScaler(), MultipleKernelRidge()).fit(X[::2], y[::2])
    >>> bool(reg.score(X[1::2], y[1::2]) > 0.4)
    True
    """

    _y_checks: ClassVar[Mapping[str, Any]] = {
        "labels": False,
        "y_numeric": True,
        "multi_output": True,
    }

    _sums: ClassVar[bool] = True

    kernel_weights_ = view("facts.learned.own_weights", "The weights of the normalized kernels.")
    regularization_ = view("facts.learned.own_regularization", "The λ used.")
    expected_ = view("head.expected", "The errors to expect on new rows.")

    score = score_any(RegressorMixin.score)

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
        bank: Any = "auto",
        max_time: Any = None,
        device: str | None = None,
        verbose: bool = False,
        callback: Any = None,
        weights_per_target: bool = False,
    ) -> None:
        self._store(locals())

    # ---- fitting -----------------------------------------------------------------------------

    def _request(self) -> Request:
        """Return the criterion, solver and λ that the parameters name, checked."""
        if not isinstance(self.weights_per_target, (bool, np.bool_)):
            raise InvalidInputError(
                f"weights_per_target must be True or False. Got {self.weights_per_target!r}."
            )
        return super()._request().with_weights_per_target(bool(self.weights_per_target))

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        forget: float = 1.0,
    ) -> Self:
        """Add rows to the model.

        The first call learns the kernel and draws the landmarks from its rows alone, so pass some
        thousands; after `fit` with a `Source` the kernel is kept. Each further call adds rows to
        sums, and the regression is that of one fit to all rows so far. A call takes some seconds
        with 1,500 landmarks, whatever the number of rows, so pass many rows at a time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their numbers, with the same number of targets in every call.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        groups : array-like of shape (n_samples,), optional
            Groups of the rows, in every call or in none.
        forget : float, default=1.0
            Factor for the weights of all rows of earlier calls, above 0 and at most 1.

        Returns
        -------
        self
            Fitted.
        """
        return self._add_rows(X, y, sample_weight, groups, forget)

    def _stream_learner(self, run: FitRun, **options: Any) -> StreamLearner:
        if self.weights_per_target:
            raise InvalidInputError(
                "weights_per_target=True requires rows in memory, all at once. Got rows in chunks, "
                "or partial_fit. Fit a sample of the rows, or use weights_per_target=False."
            )
        from discernel.learn.number_chunks import NumberStreamLearner

        return NumberStreamLearner(self, run, **options)

    def _make_target(self, training: TrainingRows, request: Request) -> tuple[Any, ...]:
        """Return the target, and y as numbers."""
        y = np.asarray(training.y, dtype=np.float64)
        target = RegressionTarget.from_values(y, training.weights, training.groups)
        request.criterion.check_target(target, request.regularization)
        return target, y

    def _make_model(self, learning: Learning, *known: Any) -> Model:
        """Return the model of a learned kernel."""
        (y,) = known
        fit = learning.fit(learning.target.weighted_values)
        held_out = held_out_scores(learning, fit)
        rows, coef = held_out.rows if held_out.scores is None else None, learning.coef(fit.coef)
        head = self._make_head(learning, fit, held_out, has_columns=y.ndim == 2)
        found: dict[str, Any] = {"coef": coef, "intercept": fit.intercept, "labels": y}
        return learning.model(fit, head, fit.truth, rows=rows, **found)

    def _make_head(
        self,
        learning: Learning,
        fit: KernelLeastSquares,
        held_out: HeldOutScores,
        *,
        has_columns: bool,
    ) -> NumberHead:
        """Return the head of a fit, with held-out predictions and the spread of their errors."""
        target, truth = learning.target, fit.truth
        errors = truth - fit.leave_one_out
        rows = np.arange(len(truth)) if held_out.rows is None else held_out.rows
        if held_out.scores is not None:
            errors[rows] = truth[rows] - target.in_units(held_out.scores)
        found, spread, spreads = None, None, np.ones_like(errors)
        by_target = learning.request.criterion.by_target  # errors of targets are taken for alike
        if not (fit.by_iteration or by_target or must_stop_learning()):
            found = learn_spread(learning.bank, learning.weights, target, errors)
        if found is not None:
            limits = np.stack([found.left_out.min(axis=0), found.left_out.max(axis=0)])
            spread = Spread(learning.coef(found.dual), found.intercept, limits)
            spreads = spread.of(found.left_out)
        weights = target.row_weights.values[rows]
        numbers, groups = (truth[rows], (truth - errors)[rows], spreads[rows]), target.groups
        codes = None if groups is None else groups.codes[rows]
        known = HeldOutNumbers(*numbers, weights, held_out.where, codes)
        return NumberHead(fit.leave_one_out, has_columns, known, spread)

    def _make_stream_head(
        self, leave_one_out: FloatArray, held_out: HeldOutNumbers | None, *, has_columns: bool
    ) -> NumberHead:
        """Return the head of a fit to rows in chunks; all rows have the same spread."""
        return NumberHead(leave_one_out, has_columns, held_out)

    def _held_out_loss(self, model: Model) -> float | None:
        """Return the held-out squared error of a model, in units of the variance."""
        expected = model.head.expected
        return None if expected is None else 1.0 - float(expected.r2)

    @property
    def dual_coef_(self) -> FloatArray:
        """The coefficients of the training rows."""
        return self.model_.head.shaped(self.model_.coef)  # type: ignore[no-any-return]

    @property
    def intercept_(self) -> Any:
        """The intercept, as a number or with one number for each target."""
        intercept = self.model_.intercept
        return intercept if self.model_.head.has_columns else float(intercept[0])

    @property
    def leave_one_out_(self) -> FloatArray:
        """The leave-one-out prediction for each training row."""
        return self.model_.head.shaped(self.model_.head.leave_one_out)  # type: ignore[no-any-return]

    # ---- prediction --------------------------------------------------------------------------

    def _result_of(self, method: str) -> tuple[tuple[int, ...], Any]:
        """Return the shape of a method's result for one row, and its dtype."""
        model = self.model_
        targets = (len(model.intercept),) if model.head.has_columns else ()
        return (*targets, 2) if method == "predict_interval" else targets, np.float64

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the prediction for each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows. For a `Source` an iterator over the results of its chunks is returned, for
            a Dask collection a Dask array with the same partitions.
        return_std : bool, default=False
            Whether to return standard deviations too; not for a Dask collection.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets)
            Predictions.
        std : ndarray of the same shape
            With ``return_std``, the standard deviation of y about the prediction: of noise and of
            the error of the fit together.

        Notes
        -----
        The standard deviation is c exp(κg(x)). g is fitted with the learned kernel to the
        logarithms of the sizes of held-out errors, with a λ of its own; it is constant if it
        predicts the sizes of left-out errors no better than their mean does, by a standard error.
        κ is that of the largest likelihood, and c is such that the held-out errors, divided by
        their standard deviations, have the mean square 1. So it is measured, not that of a Gaussian
        process, and does not grow far from all training rows. After a fit to rows in chunks or
        `partial_fit`, g is constant.
        """
        if return_std and is_dask(X):
            raise InvalidInputError(
                "Standard deviations are for rows in memory, or a Source of chunks. Got a Dask "
                "collection. Call predict(open_rows(X), return_std=True), or pass partitions."
            )
        return self._predict(X, return_std)

    @by_chunks
    def _predict(self, X: Any, return_std: bool) -> Any:
        model = self.model_
        if not return_std:
            return model.head.shaped(model.scores(X))
        held_out = self._held_out()
        predicted, spreads = model.head.with_spreads(model, X)
        return model.head.shaped(predicted), model.head.shaped(held_out.scales * spreads)

    @by_chunks
    def predict_interval(self, X: Any, coverage: float = 0.9) -> FloatArray:
        """Return a prediction interval for each row, with the given coverage.

        The interval is the prediction ± q s. s is the standard deviation of
        ``predict(X, return_std=True)``, and q the conformal quantile of the held-out errors divided
        by theirs. Nothing is fitted again.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows, as for `predict`.
        coverage : float, default=0.9
            The share of new rows whose target is to be in the interval, above 0 and below 1.

        Returns
        -------
        ndarray of shape (n_rows, 2) or (n_rows, n_targets, 2)
            The lower and the upper end. Of several targets, each is covered with this probability,
            not all of them together. With fewer than coverage/(1 − coverage) held-out rows, the
            ends are infinite.

        Notes
        -----
        *What is exact.* If the errors, divided by s, of n rows and of a new row are exchangeable,
        that of the new row is at most q with a probability of at least ``coverage``, and without
        ties of at most coverage + 1/(n + 1), whatever the distribution of errors: its rank among
        the n + 1 is uniform (`conformal_quantile` has the proof). This is so if no model has seen
        any of the rows.

        *What is approximate.* Each held-out row is predicted by a kernel learned from the other
        folds and a fit to all other rows, a new row by the model of all rows. Both are alike, not
        exchangeable. As for the jackknife, no bound close to ``coverage`` holds for every
        distribution; for the related jackknife+ and CV+ it is 1 − 2(1 − coverage) [Barber21]_.
        docs/measured.md has measured shares. They are averages over rows drawn like the training
        rows, weighted as in `fit`, not the probability given a row.
        """
        held_out = self._held_out()
        radii = held_out.radii(check_coverage(coverage))
        predicted, spreads = self.model_.head.with_spreads(self.model_, X)
        ends = np.stack([predicted - radii * spreads, predicted + radii * spreads], axis=-1)
        return self.model_.head.shaped(ends)  # type: ignore[no-any-return]

    def _held_out(self) -> HeldOutNumbers:
        """Return the held-out predictions, or raise a clear error."""
        found: HeldOutNumbers | None = self.model_.head.held_out
        if found is None:
            raise InvalidInputError(
                "Standard deviations and intervals need rows that were predicted without their "
                "targets. This model has none. Fit it to rows in memory."
            )
        return found
