"""What the discriminant estimators share: validation, fitting, prediction."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from discernel.backend import FloatArray, blas_threads
from discernel.bank import CombinedKernel, DenseBank, gram_stack
from discernel.criteria import KernelLeastSquares
from discernel.discriminant import Decision, fit_discriminant
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.kernels import Kernel, as_kernels, kernel_names
from discernel.learners import Request, check_leave_one_out, learn
from discernel.targets import ClassTarget

__all__ = ["BaseKernelDiscriminant"]


class BaseKernelDiscriminant(
    ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator
):
    """Validate, build the bank, learn, store; then predict.

    Subclasses say which candidates there are and what is to be learnt.
    """

    priors: Any
    class_costs: Any
    threshold: Any
    statistics: Any
    n_components: Any

    def _candidates(self) -> Any:
        """Return the kernels as the user gave them."""
        raise NotImplementedError

    def _request(self) -> Request:
        """Return what is to be learnt, checked."""
        raise NotImplementedError

    # ---- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the kernel and its discriminant.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows: an array, a sparse matrix, a dataframe, what callable kernels take, or
            for precomputed kernels a stack of shape (n_samples, n_samples, n_kernels).
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self
            Fitted.
        """
        request = self._request()
        candidates = as_kernels(self._candidates(), n_precomputed=_n_matrices(X))
        frame = X
        X, y = self._validate(X, candidates, y, reset=True)
        target = ClassTarget.from_labels(y)
        decision = self._check_target(target, request)
        kernels = _resolve(candidates, X, frame)
        with blas_threads(target.n_samples):
            return self._fit(X, kernels, target, request, decision)

    def _fit(
        self,
        X: Any,
        kernels: list[Kernel],
        target: ClassTarget,
        request: Request,
        decision: Decision,
    ) -> Self:
        """Learn from what has been checked, and store."""
        bank = DenseBank(
            gram_stack(kernels, X),
            kernel_names(kernels),
            normalization=request.spec.normalization,
            trusted=[kernel.trusted for kernel in kernels],
        )
        learned = learn(bank, target, request)
        weights = learned.weights[bank.kept]
        ridge = request.spec.sample_ridge(target, learned.regularization)
        fit = KernelLeastSquares(bank.system(weights, ridge), ridge, target.scores)
        discriminant = fit_discriminant(fit, ridge, target, self.statistics)
        if isinstance(self.threshold, str):
            self.threshold_ = decision.choose_threshold(discriminant, target)
            decision = decision.with_threshold(self.threshold_)

        active = np.flatnonzero(learned.coefficients)
        self.combined_kernel_ = CombinedKernel(
            [kernels[i] for i in active],
            learned.coefficients[active],
            None if kernels[0].precomputed else X,
            bank.centering(weights),
        )
        self.learned_kernel_ = learned
        self.kernels_ = kernels
        self.kernel_names_ = bank.names
        self.kernel_weights_ = learned.weights
        self.regularization_ = learned.regularization
        self.gap_ = learned.gap
        self.n_iter_ = max(1, learned.n_iter)
        self.discriminant_ = discriminant
        self.decision_ = decision
        self.classes_ = target.classes
        self.priors_ = decision.priors
        self._n_features_out = self._check_n_components(target)
        self.explained_variance_ratio_ = discriminant.explained[: self._n_features_out]
        return self

    def _validate(
        self, X: Any, kernels: list[Kernel], y: Any = None, *, reset: bool = False
    ) -> Any:
        """Return X as the kernels take it, at training (``reset``) with y."""
        if all(kernel.takes_any_rows for kernel in kernels) and not _is_table_of_numbers(X):
            rows = np.empty(len(X), dtype=object)
            rows[:] = list(X)
            if reset and len(rows) != len(y):
                raise InvalidInputError(
                    f"There must be one label a row. Got {len(rows)} rows and {len(y)} labels."
                )
            return (rows, y) if reset else rows
        precomputed = any(kernel.precomputed for kernel in kernels)
        if precomputed and not all(kernel.precomputed for kernel in kernels):
            raise InvalidInputError(
                "Precomputed kernels must not be mixed with kernels of rows: X is either a stack "
                f"of matrices or rows. Got {kernel_names(kernels)}. Compute the others too, with "
                "kernel(X), and stack all of them."
            )
        checked = validate_data(
            self,
            X,
            **({"y": y} if reset else {}),
            reset=reset,
            dtype=np.float64,
            accept_sparse=False if precomputed else "csr",
            allow_nd=precomputed,
            ensure_min_samples=2 if reset else 1,
        )
        if precomputed and reset and checked[0].shape[0] != checked[0].shape[1]:
            raise InvalidInputError(
                "Precomputed kernels must be given as (n_samples, n_samples) or (n_samples, "
                f"n_samples, n_kernels), the kernels last. Got {checked[0].shape}. A stack with "
                "the kernels first is turned by np.moveaxis(stack, 0, -1)."
            )
        return checked

    def _check_target(self, target: ClassTarget, request: Request) -> Decision:
        """Check all that depends on the classes, before any heavy work."""
        request.check_target(target)
        if self.statistics not in ("loo", "training"):
            raise unknown_choice("statistics", self.statistics, ["loo", "training"])
        if self.statistics == "loo":
            check_leave_one_out(target, "statistics='loo'", "statistics='training'")
        self._check_n_components(target)
        return Decision.make(
            target, priors=self.priors, class_costs=self.class_costs, threshold=self.threshold
        )

    def _check_n_components(self, target: ClassTarget) -> int:
        most, asked = target.n_classes - 1, self.n_components
        if asked is None:
            return most
        if not (isinstance(asked, (int, np.integer)) and 1 <= asked <= most):
            raise InvalidInputError(
                f"n_components must be an integer from 1 to n_classes - 1 = {most}, or None. "
                f"Got {asked!r}."
            )
        return int(asked)

    # ---- prediction --------------------------------------------------------------------------

    def _scores(self, X: Any) -> FloatArray:
        """Return the fitted class scores of new rows."""
        check_is_fitted(self, "discriminant_")
        X = self._validate(X, self.kernels_)
        discriminant = self.discriminant_
        product = self.combined_kernel_.product(X, discriminant.dual_coef)
        return np.asarray(product + discriminant.intercept)

    def _log_posterior(self, X: Any) -> FloatArray:
        scores = self._scores(X)
        return np.asarray(self.discriminant_.log_posterior(scores, self.decision_.priors))

    def decision_function(self, X: Any) -> FloatArray:
        """Return how strongly each row belongs to the classes.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Two classes: the log-odds of the second, less the boundary that costs or a threshold
            set, so that it is predicted above 0. More: log-posteriors up to a constant of the
            row, costs added; the largest is predicted.
        """
        decision = self._log_posterior(X) + self.decision_.offsets
        if len(self.classes_) == 2:
            return decision[:, 1] - decision[:, 0]
        return decision

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
        decision = self.decision_function(X)
        codes = (decision > 0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class; costs and thresholds do not change it.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Rows sum to 1.
        """
        return np.asarray(softmax(self._log_posterior(X), axis=1))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Log-probabilities.
        """
        return np.asarray(log_softmax(self._log_posterior(X), axis=1))

    def transform(self, X: Any) -> FloatArray:
        """Return discriminant coordinates, in which the classes have covariance one.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            The classes differ most along the first column.
        """
        coordinates = self.discriminant_.coordinates(self._scores(X))
        return np.asarray(coordinates[:, : self._n_features_out])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = _are_precomputed(self._candidates())
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags


def _n_matrices(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return int(shape[2]) if shape is not None and len(shape) == 3 else 1


def _are_precomputed(candidates: Any) -> bool:
    """Whether X is a stack of matrices; False for candidates that are no kernels at all."""
    try:
        return as_kernels(candidates)[0].precomputed
    except InvalidInputError:
        return False


def _is_table_of_numbers(X: Any) -> bool:
    """Whether X is anything but rows of a kind that only the user's own callables understand."""
    if hasattr(X, "columns") or hasattr(X, "tocsr"):
        return True
    try:
        return np.asarray(X).dtype.kind in "fiub"
    except ValueError:  # rows of different lengths
        return False


def _resolve(candidates: list[Kernel], X: Any, frame: Any) -> list[Kernel]:
    if candidates[0].precomputed:
        return candidates
    names = frame if hasattr(frame, "columns") else X
    return [kernel.resolve(X, names) for kernel in candidates]
