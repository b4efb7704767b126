"""The A-KFD classifier of Fung, Dundar, Bi and Rao (2004)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from discernel.arrays import Device, FloatArray, blas_threads
from discernel.bank import CombinedKernel, Uncentered
from discernel.discriminant import Head
from discernel.estimators.base import (
    BaseKernelEstimator,
    like_input,
    score_any,
    view,
)
from discernel.exceptions import (
    ConvergenceWarning,
    caller_stacklevel,
    check_count,
    check_number,
    is_word,
)
from discernel.model import Model
from discernel.model.training import TrainingRows, check_training
from discernel.papers.akfd.criterion import decide, one_against_rest
from discernel.papers.akfd.solver import Alternation, alternate, choose_nu
from discernel.programs.simplex import normalize
from discernel.targets import ClassTarget

#: Limits of the alternations for the choice of ν. A tolerance of 1e-4 and 100 iterations take six
#: times as long and are no better; the paper reports 3 to 4 iterations.
_COARSE_TOL = 1e-2
_COARSE_MAX_ITER = 10


@dataclass(frozen=True, eq=False)
class AKFDHead(Head):
    """The head of the A-KFD classifier.

    Attributes
    ----------
    seen : ndarray of bool of shape (n_classes,)
        Whether each class has a row of positive weight, and therefore a score.
    """

    seen: NDArray[np.bool_]

    def linear_scores(
        self, coef: FloatArray, intercept: FloatArray
    ) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        return coef, intercept, self.seen


@dataclass(frozen=True, eq=False)
class AKFDFacts:
    """Facts about a fit of A-KFD.

    Attributes
    ----------
    names : list of str
        The names of the kernels.
    weights : ndarray of shape (n_kernels,)
        Their weights, summing to 1.
    nu : float
        The ν used.
    accuracies : dict of float to float
        The cross-validated accuracy of every ν.
    found : Alternation
        The result of the alternation.
    learned, importances : None
        A-KFD has no `LearnedKernel` and no column importances.
    """

    names: list[str]
    weights: FloatArray
    nu: float
    accuracies: dict[float, float]
    found: Alternation
    learned: None = None
    importances: None = None


class AKFDClassifier(ClassifierMixin, BaseKernelEstimator):
    """Kernel Fisher discriminant with automatic kernel selection of [Fung04]_.

    The discriminant, Eq. (23), and non-negative weights of raw kernels, Eq. (24), are fitted
    alternately until their common objective, Eq. (20), converges. Scale the data, in the paper to
    [−1, 1]: the kernels are neither centred nor normalized. With more than two classes, each class
    is separated from the rest, with common weights.

    Parameters
    ----------
    kernels : "auto", "precomputed", kernel, list of kernels or dict of names to kernels
        The candidates, as in `MultipleKernelDiscriminant`. The paper's are ``Linear()`` and
        ``RBF(gamma=g)`` for g = 0.001, 0.01, 0.1 and 1.
    nu : float or "cv", default="cv"
        ν > 0, the weight of the fit relative to the penalty on coefficients. ``"cv"`` selects from
        10^-3, 10^-2, ..., 10^12 by accuracy in stratified tenfold cross-validation, with at most
        10 iterations.
    tol : float, default=1e-2
        Relative change of the objective at which to stop. The default takes about 3 to 4
        iterations, as in the paper; smaller values take tens to hundreds and were no more accurate.
    max_iter : int, default=100
        Maximum number of iterations.
    random_state : int, RandomState or None, default=None
        Determines the folds of ``nu="cv"``.
    class_weight : dict, "balanced" or None, default=None
        Factors for the sample weights of each class, as in `MultipleKernelDiscriminant`. The
        targets of the paper, Eq. (6), are already larger for rare classes.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights a of the raw kernels, at least 0 and scaled to sum to 1.
    kernel_names_ : list of str
        Names of the kernels, in the order of the weights.
    nu_ : float
        The ν used, given or chosen.
    nu_accuracies_ : dict of float to float
        Cross-validated accuracy of every ν; empty if ν was given.
    objective_path_ : ndarray of shape (2 × n_iter,)
        Eq. (20) after every half-step; never increasing.
    n_iter_ : int
        Number of pairs of half-steps.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    combined_kernel_ : CombinedKernel
        Σ a_j k_j between new rows and the training rows, with unscaled a.
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

    _computes_on_device: ClassVar[bool] = False

    classes_ = view("classes", "The class labels.")
    kernel_weights_ = view("facts.weights", "The weights of the raw kernels, summing to 1.")
    nu_ = view("facts.nu", "The ν used, given or chosen.")
    nu_accuracies_ = view("facts.accuracies", "The cross-validated accuracy of every ν.")
    dual_coef_ = view("coef", "The coefficients v.")
    intercept_ = view("intercept", "The thresholds, −γ.")

    score = score_any(ClassifierMixin.score)

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
        self._store(locals())

    @property
    def objective_path_(self) -> FloatArray:
        """Eq. (20) after every half-step."""
        return np.array(self.model_.facts.found.objectives)

    @property
    def n_iter_(self) -> int:
        """The number of pairs of half-steps."""
        return int(self.model_.facts.found.n_iter)

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, device: Device | None) -> Model:
        """Return the model of a fit: choose ν, then alternate."""
        self._check_parameters()
        self._refuse_groups(groups)
        training = check_training(self, X, y, sample_weight)
        target = ClassTarget.from_labels(training.y, training.weights)
        given = training.among_given(target, self.class_weight)
        with blas_threads(target.n_samples):
            return self._fit_rows(training, given)

    def _fit_rows(self, training: TrainingRows, given: ClassTarget) -> Model:
        """Return the model of checked rows."""
        (grams, names), target, kernels = training.grams(), given.seen, training.reader.kernels
        nu, accuracies = self._choose_nu(grams, target)
        found = alternate(
            grams,
            one_against_rest(target),
            nu,
            tol=self.tol,
            max_iter=self.max_iter,
            sample_weights=target.row_weights,
        )
        if not found.converged:
            self._warn(found, nu)

        active = np.flatnonzero(found.weights)
        active = active if len(active) else np.array([0])  # all weights are 0 for a tiny ν
        combined = CombinedKernel(
            [kernels[i] for i in active],
            found.weights[active],
            None if kernels[0].precomputed else training.X,
            Uncentered(),
        )
        return Model(
            training.reader,
            combined,
            found.v,
            -found.gamma,
            AKFDHead(given.counts > 0),
            given.classes,
            AKFDFacts(names, normalize(found.weights), nu, accuracies, found),
            training.kept(target.classes[target.codes], np.arange(target.n_samples)),
        )

    @like_input
    def decision_function(self, X: Any) -> FloatArray:
        """Return the score of each row, [Fung04]_ Eq. (21).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            For two classes, the second is predicted above 0. For more classes, the class with the
            largest score is predicted.
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    @like_input
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
        """Return the scores of all classes; −∞ for classes that only rows of weight 0 have."""
        scores, seen = self.model_.scores(X), self.model_.head.seen
        if seen.all():
            return scores
        found = np.full((len(scores), len(seen)), -np.inf)
        found[:, seen] = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
        return found

    def _check_parameters(self) -> None:
        if not is_word(self.nu, "cv"):
            check_number("nu of A-KFD, if it is not 'cv',", self.nu, positive=True)
        check_number("tol", self.tol, positive=True)
        check_count("max_iter", self.max_iter)

    def _choose_nu(
        self, grams: FloatArray, target: ClassTarget
    ) -> tuple[float, dict[float, float]]:
        if not is_word(self.nu, "cv"):
            return float(self.nu), {}
        return choose_nu(
            grams,
            target.codes,
            random_state=self.random_state,
            tol=max(self.tol, _COARSE_TOL),
            max_iter=min(self.max_iter, _COARSE_MAX_ITER),
            sample_weights=target.row_weights,
        )

    def _warn(self, found: Alternation, nu: float) -> None:
        before, after = found.objectives[-3::2] if found.n_iter > 1 else (np.inf, 1.0)
        warnings.warn(
            f"The alternation did not converge in {found.n_iter} iterations for nu={nu:g}: the "
            f"last relative change of its objective is {1.0 - after / before:.1e}, asked for "
            f"{self.tol:.1e}. Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=caller_stacklevel(),
        )
