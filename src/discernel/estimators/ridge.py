"""Kernel ridge regression with a learned combination of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from discernel.arrays import FloatArray
from discernel.discriminant import Head
from discernel.estimators.base import BaseKernelEstimator, like_input, score_any
from discernel.learn import Request
from discernel.learn.rows import Learning
from discernel.learn.training import TrainingRows
from discernel.model import Model
from discernel.model.importances import squared_losses
from discernel.targets import RegressionTarget


@dataclass(frozen=True, eq=False)
class NumberHead(Head):
    """The head of regressors: scores are predictions.

    Attributes
    ----------
    leave_one_out : ndarray of shape (n_samples, n_targets)
        The leave-one-out prediction for each training row.
    has_columns : bool
        Whether y, and therefore predictions, have two dimensions.
    """

    leave_one_out: FloatArray
    has_columns: bool

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

    def expect(self, labels: Any, held_out_error: float | None) -> Mapping[str, Any]:
        if labels is None or len(labels) != len(self.leave_one_out):
            return {}
        truth = np.asarray(labels, dtype=np.float64).reshape(len(labels), -1)
        variance, share, where = truth.var(axis=0), held_out_error, "held out"
        if share is None:
            errors = np.mean((truth - self.leave_one_out) ** 2, axis=0)
            share = float(np.mean(errors / np.where(variance > 0, variance, 1.0)))
            where = "each left out of the fit"
        rmse = float(np.sqrt(share * variance.mean()))
        return {"n_rows": len(truth), "where": where, "r2": 1.0 - share, "rmse": rmse}


class MultipleKernelRidge(MultiOutputMixin, RegressorMixin, BaseKernelEstimator):
    """Kernel ridge regression with learned kernel weights and λ.

    The criteria are those of the classifiers, with the centred targets in place of class scores.
    y has the shape (n_samples,) or (n_samples, n_targets); several targets share the weights and λ.

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

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the normalized kernels, at least 0. They sum to 1, except for ``RKDA`` with a
        ``norm``.
    kernel_names_ : list of str
        Names of the kernels, in the order of the weights.
    regularization_ : float
        The λ used, given, chosen or learned.
    gap_ : float or None
        The certified relative duality gap; None if the criterion is not convex.
    learned_kernel_ : LearnedKernel
        The complete result of the solver.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Coefficients of the training rows.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept.
    leave_one_out_ : ndarray of the shape of y
        The leave-one-out prediction for each training row.
    feature_importances_, feature_importances_std_ : ndarray of shape (n_features,)
        Increase of the squared error of held-out training rows when the cells of a column come
        from other rows, as in `MultipleKernelDiscriminant`.

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

    score = score_any(RegressorMixin.score)

    def _make_target(self, training: TrainingRows, request: Request) -> tuple[Any, ...]:
        """Return the target, and y as numbers."""
        y = np.asarray(training.y, dtype=np.float64)
        target = RegressionTarget.from_values(y, training.weights)
        request.criterion.check_target(target, request.regularization)
        return target, y

    def _make_model(self, learning: Learning, *known: Any) -> Model:
        """Return the model of a learned kernel."""
        (y,) = known
        fit = learning.fit(learning.target.weighted_values)
        head, coef = NumberHead(fit.leave_one_out, y.ndim == 2), learning.coef(fit.coef)
        found: dict[str, Any] = {"coef": coef, "intercept": fit.intercept, "labels": y}
        return learning.model(fit, head, fit.truth, **found)

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

    @like_input
    def predict(self, X: Any) -> FloatArray:
        """Return the prediction for each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets)
            Predictions.
        """
        return self.model_.head.shaped(self.model_.scores(X))  # type: ignore[no-any-return]
