"""A learned kernel for any other estimator that takes kernel matrices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _num_samples, check_is_fitted

from discernel.arrays import FloatArray, n_rows
from discernel.arrays.sample_weights import check_sample_weight
from discernel.bank import Centering, CombinedKernel
from discernel.criteria import KernelLeastSquares
from discernel.estimators.arrays import where_rows_are, whole_or_nothing
from discernel.estimators.learner import BaseKernelLearner
from discernel.estimators.staged import in_stages
from discernel.exceptions import InvalidInputError
from discernel.targets import ClassTarget

__all__ = ["LearnedKernelTransformer"]


class LearnedKernelTransformer(TransformerMixin, BaseKernelLearner):
    """Learn a kernel from labels and hand its matrix to the next step of a pipeline.

    ``transform`` returns the kernel between new rows and the training rows, which is what
    estimators with ``kernel="precomputed"`` take, in training and in prediction, so the pipeline
    is right under cross-validation.

    Parameters
    ----------
    kernels, criterion, solver, regularization, tol, max_iter, random_state
        As in `MultipleKernelDiscriminant`; λ only serves the learning of the weights.
    bank, cache_size, rank, max_time, device, verbose, callback
        As there.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        At least 0, summing to 1, over the normalised kernels.
    kernel_names_ : list of str
        What the weights belong to.
    learned_kernel_ : LearnedKernel
        Everything the solver said.
    combined_kernel_ : CombinedKernel
        The centred learned kernel between new rows and the training rows.
    feature_importances_, feature_importances_std_ : ndarray of shape (n_features,)
        How much a least-squares fit of class scores with this kernel loses without each column,
        as in `MultipleKernelDiscriminant`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> X, y = load_wine(return_X_y=True)
    >>> svm = make_pipeline(StandardScaler(), LearnedKernelTransformer(), SVC(kernel="precomputed"))
    >>> print(round(cross_val_score(svm, X, y).mean(), 2))
    0.99
    """

    _approximable: ClassVar[bool] = False

    @whole_or_nothing
    @in_stages
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, of any kind `MultipleKernelDiscriminant` takes.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, as in `MultipleKernelDiscriminant`. A row of weight 0 has no
            say in the kernel, but a column of `transform` as all rows have.

        Returns
        -------
        self
            Fitted.
        """
        request = self._request()
        if self.bank == "lowrank":
            raise InvalidInputError(
                "LearnedKernelTransformer returns the kernel to all training rows, which "
                "bank='lowrank' does not keep. Use another bank."
            )
        all_rows, present, n_samples = None, None, _num_samples(X)
        if sample_weight is not None:
            present = np.flatnonzero(check_sample_weight(sample_weight, n_samples))
            if len(present) < n_samples:
                all_rows, *_ = self._validate_training(X, y)
        X, y, kernels, sample_weights = self._validate_weighted(X, y, sample_weight)
        target = ClassTarget.from_labels(y, sample_weights)
        request.check_target(target)
        with self._working(X, kernels, target, request) as way:
            learning = self._learn(X, kernels, target, request, way)
            ridge = request.criterion.sample_ridge(target, self.regularization_)
            system = learning.bank.system(learning.weights, ridge)
            fit = KernelLeastSquares(system, ridge, target.scores, sample_weights)
            self._store_importances(X, learning, fit, fit.truth)
        if all_rows is not None and isinstance(self.combined_kernel_, CombinedKernel):
            assert present is not None  # there are rows of weight 0
            if hasattr(self, "feature_importances_"):
                self._deferred = None  # known by now; later its rows would be others
            self.combined_kernel_ = _on_all_rows(self.combined_kernel_, all_rows, present)
            self._present, self.n_features_in_ = None, all_rows.shape[1]
        self.n_samples_fit_ = n_samples
        self._total = target.total
        return self

    @where_rows_are
    def transform(self, X: Any) -> FloatArray:
        """Return the learned kernel between rows and the training rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows, or the training rows.

        Returns
        -------
        ndarray of shape (n_rows, n_samples)
            Centred; on the training rows, the diagonal has the mean 1, by their weights.
        """
        check_is_fitted(self, "combined_kernel_")
        X = self._validate(X, self.kernels_)
        # Mean 1 on the diagonal, so that the C of an SVM means what it usually does.
        return np.asarray(self._total * self.combined_kernel_(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return one name per training row.

        Parameters
        ----------
        input_features : array-like of str, optional
            Not used; the columns belong to rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Names.
        """
        check_is_fitted(self, "combined_kernel_")
        return np.array([f"row{i}" for i in range(self.n_samples_fit_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _on_all_rows(
    kernel: CombinedKernel, all_rows: Any, present: NDArray[np.intp]
) -> CombinedKernel:
    """Return a kernel to some training rows as one to all, centred as before."""
    centering, n = kernel.centering, n_rows(all_rows)
    absent = np.setdiff1d(np.arange(n), present)
    shares, means = np.zeros(n), np.empty(n)
    shares[present] = 1.0 / len(present) if centering.shares is None else centering.shares
    means[present] = centering.row_means
    new = all_rows[absent] if kernel.rows is not None else all_rows[np.ix_(absent, present)]
    means[absent] = sum(
        factor * (one(new, kernel.rows) @ shares[present])
        for one, factor in zip(kernel.kernels, kernel.coefficients, strict=True)
    )
    return replace(
        kernel,
        rows=None if kernel.rows is None else all_rows,
        centering=Centering(means, centering.grand_mean, shares),
    )
