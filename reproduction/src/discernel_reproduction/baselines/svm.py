"""A support vector machine on a learned kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import FloatArray
from discernel.criteria import takes_two_classes
from discernel.estimators.transformer import LearnedKernelTransformer
from discernel.exceptions import check_number, unknown_choice

#: Where libsvm stops, in units of the margin: well below what changes a prediction.
_SVM_TOL = 1e-4


class LearnedKernelSVC(ClassifierMixin, LearnedKernelTransformer):
    """Learn a kernel from labels and train a support vector machine on it.

    The same as `LearnedKernelTransformer` and scikit-learn's ``SVC(kernel="precomputed")`` in a
    pipeline, and with the squared hinge loss as well, which SVC does not have. Several classes
    are told apart two by two, as SVC does.

    Parameters
    ----------
    kernels, criterion, solver, regularization
        As in `MultipleKernelDiscriminant`; λ only serves the learning of the weights.
    loss : {"l1", "l2"}, default="l1"
        What is paid for slacks ξ: ``"l1"``, C Σ ξ_i, or ``"l2"``, (C/2) Σ ξ_i², beside ½‖f‖². The
        C of scikit-learn's LinearSVC with its squared hinge is half of the latter.
    C : float, default=1.0
        Positive; larger fits the training rows more closely. The learned kernel is centred and
        scaled to a diagonal of mean 1, so that C means the same whatever the kernels are.
    tol, max_iter, random_state, callback
        As in `MultipleKernelDiscriminant`, for the learning of the weights.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        At least 0, summing to 1, over the normalised kernels.
    kernel_names_ : list of str
        What the weights belong to.
    learned_kernel_ : LearnedKernel
        Everything the solver said.
    svm_ : SVC
        The machine, on the matrix that `transform` returns.
    classes_ : ndarray of shape (n_classes,)
        The labels.

    Notes
    -----
    With ``"l2"``, the dual is that of the machine without slacks on K + I/C, which is how it is
    trained; the predictions are those of K.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> svm = make_pipeline(StandardScaler(), LearnedKernelSVC(criterion="alignment", loss="l2"))
    >>> round(svm.fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 2)
    0.96
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        criterion: Any = "auto",
        solver: Any = "auto",
        regularization: float | str = "auto",
        loss: str = "l1",
        C: float = 1.0,
        tol: float = 1e-6,
        max_iter: int | None = None,
        random_state: Any = None,
        callback: Any = None,
    ) -> None:
        super().__init__(
            kernels,
            criterion=criterion,
            solver=solver,
            regularization=regularization,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            callback=callback,
        )
        self.loss = loss
        self.C = C

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]  # libsvm would not be exact
        """Learn the kernel and train the machine.

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
        if self.loss not in ("l1", "l2"):
            raise unknown_choice("loss of LearnedKernelSVC", self.loss, ["l1", "l2"])
        check_number("C of LearnedKernelSVC", self.C, positive=True)
        super().fit(X, y)
        matrix, C = self._matrix(X), float(self.C)
        if self.loss == "l2":
            matrix[np.diag_indices_from(matrix)] += 1.0 / C
            C = np.inf
        self.svm_ = SVC(kernel="precomputed", C=C, tol=_SVM_TOL).fit(matrix, y)
        self.classes_ = self.svm_.classes_
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return how strongly each row belongs to the classes.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Two classes: the second is predicted above 0. More: votes of the pairs, as SVC's.
        """
        check_is_fitted(self, "svm_")
        return np.asarray(self.svm_.decision_function(self._matrix(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not takes_two_classes(self.criterion)
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        check_is_fitted(self, "svm_")
        return np.asarray(self.svm_.predict(self._matrix(X)))

    def _matrix(self, X: Any) -> FloatArray:
        return np.array(self.transform(X))  # `set_output` may have made a dataframe of it
