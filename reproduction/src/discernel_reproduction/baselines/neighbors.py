"""Nearest neighbours in the feature space of a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import FloatArray, blas_threads, n_rows
from discernel.bank.grams import check_grams
from discernel.estimators.base import BaseKernelEstimator
from discernel.exceptions import InvalidInputError, check_count
from discernel.model.training import check_training
from discernel.papers.separability.spectrum_choice import neighbor_votes
from discernel_reproduction.baselines.rows import model_of_rows

#: Bytes of one matrix between new and training rows; more rows are taken in turns.
_BLOCK_BYTES = 64 * 2**20


class KernelNeighborsClassifier(ClassifierMixin, BaseKernelEstimator):
    """The k nearest neighbours by d²(x, z) = k(x, x) − 2k(x, z) + k(z, z).

    With a linear kernel these are the nearest neighbours of the rows themselves; with any kernel
    that falls with the distance, such as a Gaussian one, they are too. A learned kernel changes
    them.

    Parameters
    ----------
    n_neighbors : int, default=1
        How many neighbours vote. Of classes with equally many votes the first in ``classes_`` is
        predicted; of training rows at equal distance the first ones are taken.
    kernel : kernel, str or callable, default="rbf"
        A kernel of `discernel.kernels`, the name of a scikit-learn pairwise kernel, a scikit-learn
        Gaussian process kernel, a callable or ``"precomputed"``, with which X is the kernel
        matrix: of the training rows in `fit`, between new and training rows in `predict`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    kernel_ : Kernel
        The kernel, with all that depends on the training rows fixed.
    n_samples_fit_ : int
        The number of training rows.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> clf = KernelNeighborsClassifier(n_neighbors=3, kernel="cosine").fit(X[::2], y[::2])
    >>> round(clf.score(X[1::2], y[1::2]), 2)
    0.94
    """

    def __init__(self, n_neighbors: int = 1, *, kernel: Any = "rbf") -> None:
        self.n_neighbors = n_neighbors
        self.kernel = kernel

    def _candidates(self) -> Any:
        """Return the kernels as the user gave them."""
        return self.kernel if isinstance(self.kernel, str) else [self.kernel]

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]  # takes no weights
        """Keep the training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, or their kernel matrix.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self
            Fitted.
        """
        check_count("n_neighbors", self.n_neighbors)
        training = check_training(self, X, y)
        X, y, kernel = training.X, training.y, training.reader.kernels[0]
        check_classification_targets(y)
        n_samples = n_rows(X)
        if self.n_neighbors > n_samples:
            raise InvalidInputError(
                f"n_neighbors must be at most the number of training rows, {n_samples}. "
                f"Got {self.n_neighbors}."
            )
        with blas_threads(n_samples):
            if kernel.trusted:
                squares = kernel.diagonal(X)
            else:  # what is no kernel has no distances
                grams, _ = check_grams(kernel(X)[None], [kernel.name], None)
                squares = grams[0].diagonal().copy()
        self.classes_, self._codes = np.unique(y, return_inverse=True)
        self.kernel_ = kernel
        self.model_ = model_of_rows(training.reader)
        self.n_samples_fit_ = n_samples
        self._rows = None if kernel.precomputed else X
        self._squares = squares
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the share of the neighbours that are of each class.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows, or their kernel with the training rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Rows sum to 1.
        """
        check_is_fitted(self, "kernel_")
        X = self.model_.reader.read(X)
        with blas_threads(self.n_samples_fit_):
            votes = [
                neighbor_votes(ranks, self._codes, len(self.classes_), self.n_neighbors)
                for ranks in self._ranks(X)
            ]
        return np.asarray(np.concatenate(votes) / self.n_neighbors)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of most neighbours of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows, or their kernel with the training rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        votes = self.predict_proba(X)
        return np.asarray(self.classes_[votes.argmax(axis=1)])

    def _ranks(self, X: Any) -> Iterator[FloatArray]:
        """Yield d²(x, z) − k(x, x), which has the same order in a row, some rows at a time."""
        step = max(1, _BLOCK_BYTES // (8 * self.n_samples_fit_))
        for block in gen_batches(n_rows(X), step):
            yield self._squares - 2.0 * self.kernel_(X[block], self._rows)
