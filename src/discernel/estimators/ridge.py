"""Kernel ridge regression with the best combination of several kernels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import FloatArray
from discernel.criteria import KernelLeastSquares
from discernel.estimators.arrays import ScoresAnywhere, where_rows_are, whole_or_nothing
from discernel.estimators.learner import BaseKernelLearner
from discernel.estimators.staged import in_stages
from discernel.targets import RegressionTarget

__all__ = ["MultipleKernelRidge"]


class MultipleKernelRidge(ScoresAnywhere, MultiOutputMixin, RegressorMixin, BaseKernelLearner):
    """Kernel ridge regression whose kernel weights and λ are learned; several targets share them.

    The programs are those of the classifiers with other columns to fit: y, centred, in place of
    class scores.

    Parameters
    ----------
    kernels : "auto", "precomputed", kernel, list of kernels or dict of names to kernels
        As in `MultipleKernelDiscriminant`.
    criterion : {"auto", "rkda", "loo", "uniform"} or object, default="auto"
        As in `MultipleKernelDiscriminant`; ``"rkda"`` is here the regularised squared error.
    solver, regularization, tol, max_iter, random_state
        As in `MultipleKernelDiscriminant`.
    bank, cache_size, rank, max_time, device, verbose, callback
        As in `MultipleKernelDiscriminant`.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        At least 0, summing to 1, over the normalised kernels.
    kernel_names_ : list of str
        What the weights belong to.
    regularization_ : float
        The λ used, chosen or learned.
    gap_ : float or None
        The certified relative duality gap; None where the criterion is not convex.
    learned_kernel_ : LearnedKernel
        Everything the solver said.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        The expansion in the training rows.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant.
    leave_one_out_ : ndarray of the shape of y
        The prediction for each training row of the fit to all the others.
    feature_importances_, feature_importances_std_ : ndarray of shape (n_features,)
        How much worse the squared error of training rows gets, each left out of the fit, when a
        column is that of another row, as in `MultipleKernelDiscriminant`.

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

    @whole_or_nothing
    @in_stages
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel and the regression.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, of any kind `MultipleKernelDiscriminant` takes.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The numbers to predict.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, as in `MultipleKernelDiscriminant`: relative to the others,
            and a row of weight 0 is absent.

        Returns
        -------
        self
            Fitted.
        """
        request = self._request()
        X, y, kernels, sample_weights = self._validate_weighted(
            X, y, sample_weight, labels=False, y_numeric=True, multi_output=True
        )
        y = np.asarray(y, dtype=np.float64)
        target = RegressionTarget.from_values(y, sample_weights)
        request.check_target(target)
        with self._working(X, kernels, target, request) as way:
            learning = self._learn(X, kernels, target, request, way)
            ridge = np.full(target.n_samples, self.regularization_)
            system = learning.bank.system(learning.weights, ridge)
            fit = KernelLeastSquares(system, ridge, target.weighted_values, target.sample_weights)
            self._store_importances(X, learning, fit, fit.truth)
        # One target in, one target out: no column where y had none.
        self._keep_labels(y, learning.kept)
        coef = learning.coef(fit.coef)
        self.dual_coef_ = coef if y.ndim == 2 else coef[:, 0]
        self.intercept_ = fit.intercept if y.ndim == 2 else float(fit.intercept[0])
        self.leave_one_out_ = fit.leave_one_out if y.ndim == 2 else fit.leave_one_out[:, 0]
        return self

    @where_rows_are
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
        check_is_fitted(self, "dual_coef_")
        X = self._validate(X, self.kernels_)
        coef = self.dual_coef_ if self.dual_coef_.ndim == 2 else self.dual_coef_[:, None]
        predicted = self.combined_kernel_.product(X, coef) + self.intercept_
        return np.asarray(predicted if self.dual_coef_.ndim == 2 else predicted[:, 0])
