"""A learned kernel for any other estimator that takes kernel matrices."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discernel.backend import FloatArray, blas_threads
from discernel.estimators.learner import BaseKernelLearner
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
    bank, cache_size, callback
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
    0.98
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the kernel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, of any kind `MultipleKernelDiscriminant` takes.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self
            Fitted.
        """
        request = self._request()
        X, y, kernels = self._validate_training(X, y)
        target = ClassTarget.from_labels(y)
        request.check_target(target)
        with blas_threads(target.n_samples):
            self._learn(X, kernels, target, request)
        self.n_samples_fit_ = target.n_samples
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the learned kernel between rows and the training rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows, or the training rows.

        Returns
        -------
        ndarray of shape (n_rows, n_samples)
            Centred; on the training rows, the diagonal has mean 1.
        """
        check_is_fitted(self, "combined_kernel_")
        X = self._validate(X, self.kernels_)
        # Mean 1 on the diagonal, so that the C of an SVM means what it usually does.
        return np.asarray(self.n_samples_fit_ * self.combined_kernel_(X))

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
