"""A-KFD: a Fisher discriminant that weighs its kernels, by Fung, Dundar, Bi and Rao (2004)."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import FloatArray, blas_threads
from discernel.bank import CombinedKernel, Uncentered, gram_stack
from discernel.bank.checks import check_grams
from discernel.estimators.arrays import ScoresAnywhere, where_rows_are, whole_or_nothing
from discernel.estimators.weighted import BaseWeightedEstimator
from discernel.exceptions import ConvergenceWarning, InvalidInputError, levels_to_the_caller
from discernel.kernels import Kernel, kernel_names
from discernel.papers.akfd.criterion import AKFD, decide, one_against_rest
from discernel.papers.akfd.solver import Alternation, alternate, choose_nu
from discernel.programs.simplex import normalize
from discernel.targets import ClassTarget

__all__ = ["AKFDClassifier"]

#: Where alternations for the choice of ν end. With a tol of 1e-4 and 100 iterations it takes
#: six times as long and is no better; the paper itself reports 3 to 4 iterations.
_COARSE_TOL = 1e-2
_COARSE_MAX_ITER = 10


class AKFDClassifier(ScoresAnywhere, ClassifierMixin, BaseWeightedEstimator):
    """Kernel Fisher discriminant with automatic kernel selection, as [Fung04]_ describes it.

    The discriminant, Eq. (23), and non-negative weights of raw kernels, Eq. (24), are fitted in
    turn until their common objective, Eq. (20), changes little. Data should be scaled, in the
    paper to [−1, 1]: the kernels are neither centred nor normalised. More than two classes share
    the weights and are each told from the rest.

    Parameters
    ----------
    kernels : "auto", "precomputed", kernel, list of kernels or dict of names to kernels
        The candidates, as in `MultipleKernelDiscriminant`. The paper's are ``Linear()`` and
        ``RBF(gamma=g)`` for g = 0.001, 0.01, 0.1 and 1.
    nu : float or "cv", default="cv"
        ν > 0, the weight of the fit against that of small coefficients. ``"cv"`` takes the one of
        10^-3, 10^-2, ..., 10^12 that is most accurate in stratified tenfold cross-validation,
        there with at most 10 iterations.
    tol : float, default=1e-2
        The relative change of the objective at which to stop. The paper's 3 to 4 iterations are
        about what this takes; smaller values take tens to hundreds and were no more accurate.
    max_iter : int, default=100
        The limit of iterations.
    random_state : int, RandomState or None, default=None
        Draws the folds of ``nu="cv"``.
    class_weight : dict, "balanced" or None, default=None
        What the weights of the rows of each class are multiplied by, as in
        `MultipleKernelDiscriminant`. The targets of the paper, Eq. (6), are larger for rare
        classes already.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        The weights a of the raw kernels, at least 0, here scaled to sum to 1.
    kernel_names_ : list of str
        What the weights belong to.
    nu_ : float
        The ν used, given or chosen.
    nu_accuracies_ : dict of float to float
        The accuracy of every ν in cross-validation; empty where ν was given.
    objective_path_ : ndarray of shape (2 × n_iter,)
        Eq. (20) after every half-step. It never rises.
    n_iter_ : int
        Pairs of half-steps.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    combined_kernel_ : CombinedKernel
        Σ a_j k_j between new rows and the training rows, a not scaled.
    dual_coef_ : ndarray of shape (n_samples, n_columns)
        The coefficients v; one column for two classes, one per class for more.
    intercept_ : ndarray of shape (n_columns,)
        The thresholds, −γ.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> from discernel.kernels import RBF, Linear
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = AKFDClassifier([Linear(), RBF(gamma=0.01), RBF(gamma=1.0)], nu=0.1)
    >>> clf = make_pipeline(MinMaxScaler((-1, 1)), clf).fit(X[::3], y[::3])
    >>> round(clf.score(X[1::3], y[1::3]), 2)
    0.97
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        nu: float | str = "cv",
        tol: float = 1e-2,
        max_iter: int = 100,
        random_state: Any = None,
        class_weight: Any = None,
    ) -> None:
        self.kernels = kernels
        self.nu = nu
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.class_weight = class_weight

    @whole_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose ν, then alternate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, or for precomputed kernels a stack of shape (n_samples, n_samples,
            n_kernels).
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, as in `MultipleKernelDiscriminant`.

        Returns
        -------
        self
            Fitted.
        """
        self._check_parameters()
        X, y, kernels, sample_weights = self._validate_weighted(X, y, sample_weight)
        target = ClassTarget.from_labels(y, sample_weights)
        given = self._among_given(target, self.class_weight)
        with blas_threads(target.n_samples):
            self._fit(X, kernels, given.seen)
        self.classes_, self._seen = given.classes, given.counts > 0
        return self

    def _fit(self, X: Any, kernels: list[Kernel], target: ClassTarget) -> None:
        """Learn from what has been checked, and store."""
        trusted = [kernel.trusted for kernel in kernels]
        grams, names = check_grams(gram_stack(kernels, X), kernel_names(kernels), trusted)
        nu, accuracies = self._choose_nu(grams, target)
        found = alternate(
            grams,
            one_against_rest(target),
            nu,
            tol=self.tol,
            max_iter=self.max_iter,
            sample_weights=target.sample_weights,
        )
        if not found.converged:
            self._warn(found, nu)

        active = np.flatnonzero(found.weights)
        active = active if len(active) else np.array([0])  # all weights are 0 for a tiny ν
        self.combined_kernel_ = CombinedKernel(
            [kernels[i] for i in active],
            found.weights[active],
            None if kernels[0].precomputed else X,
            Uncentered(),
        )
        self.kernels_ = kernels
        self.kernel_names_ = names
        self.kernel_weights_ = normalize(found.weights)
        self.nu_ = nu
        self.nu_accuracies_ = accuracies
        self.objective_path_ = np.array(found.objectives)
        self.n_iter_ = found.n_iter
        self.dual_coef_ = found.v
        self.intercept_ = -found.gamma
        self._keep_labels(target.classes[target.codes], np.arange(target.n_samples))

    @where_rows_are
    def decision_function(self, X: Any) -> FloatArray:
        """Return the score of each row, [Fung04]_ Eq. (21).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Two classes: the second is predicted above 0. More: the class with the largest.
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    @where_rows_are
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
        scores = self._scores(X)
        return np.asarray(self.classes_[decide(scores)])

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self, "dual_coef_")
        X = self._validate(X, self.kernels_)
        scores = self.combined_kernel_.product(X, self.dual_coef_) + self.intercept_
        if self._seen.all():
            return np.asarray(scores)
        # Classes without weight are never predicted.
        found = np.full((len(scores), len(self._seen)), -np.inf)
        found[:, self._seen] = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
        return found

    def _check_parameters(self) -> None:
        if isinstance(self.nu, str):
            if self.nu != "cv":
                raise InvalidInputError(f"nu must be a number or 'cv'. Got {self.nu!r}.")
        else:
            AKFD(self.nu)
        if not (isinstance(self.tol, (int, float)) and self.tol > 0):
            raise InvalidInputError(f"tol must be a positive number. Got {self.tol!r}.")
        if not (isinstance(self.max_iter, (int, np.integer)) and self.max_iter > 0):
            raise InvalidInputError(f"max_iter must be a positive integer. Got {self.max_iter!r}.")

    def _choose_nu(
        self, grams: FloatArray, target: ClassTarget
    ) -> tuple[float, dict[float, float]]:
        if not isinstance(self.nu, str):
            return float(self.nu), {}
        return choose_nu(
            grams,
            target.codes,
            random_state=self.random_state,
            tol=max(self.tol, _COARSE_TOL),
            max_iter=min(self.max_iter, _COARSE_MAX_ITER),
            sample_weights=target.sample_weights,
        )

    def _warn(self, found: Alternation, nu: float) -> None:
        before, after = found.objectives[-3::2] if found.n_iter > 1 else (np.inf, 1.0)
        warnings.warn(
            f"The alternation did not settle in {found.n_iter} iterations for nu={nu:g}: its "
            f"objective last changed by {1.0 - after / before:.1e} of itself, asked for "
            f"{self.tol:.1e}. Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=levels_to_the_caller(),
        )
