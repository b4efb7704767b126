"""Multi-label kernel discriminant analysis, with one learned kernel for all labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from discernel.arrays import FloatArray, is_sparse
from discernel.arrays.sample_weights import SampleWeights
from discernel.discriminant import Discriminant, Head, fit_discriminant
from discernel.estimators.base import BaseKernelEstimator, like_input, score_any, view
from discernel.exceptions import InvalidInputError, caller_stacklevel
from discernel.learn import Request
from discernel.learn.held_out import held_out_scores
from discernel.learn.rows import Learning
from discernel.learn.stages import FitRun
from discernel.model import Model
from discernel.model.training import TrainingRows
from discernel.programs.least_squares import KernelLeastSquares
from discernel.targets import ClassTarget, LabelsTarget


@dataclass(frozen=True, eq=False)
class LabelsHead(Head):
    """The head of multi-label classifiers, which converts scores to log-odds of all labels.

    Attributes
    ----------
    discriminants : dict of int to Discriminant
        Discriminants of all labels that vary in the training rows, by position.
    shares : ndarray of shape (n_labels,)
        The share of the training rows with each label.
    is_multilabel : bool
        Whether y has one column for each label.
    """

    discriminants: dict[int, Discriminant]
    shares: FloatArray
    is_multilabel: bool

    def log_posterior(self, label: int, scores: FloatArray) -> FloatArray:
        """Return the log-posteriors without and with a label, up to a constant of each row."""
        priors = np.array([1.0 - self.shares[label], self.shares[label]])
        return self.discriminants[label].log_posterior(scores, priors)

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds of every label; ±inf for labels that do not vary in training."""
        # A label that all training rows have, or none, gets the same prediction for every row.
        constant = np.where(self.shares == 1.0, np.inf, -np.inf)
        odds = np.tile(constant, (len(scores), 1))
        for column, label in enumerate(self.discriminants):
            posterior = self.log_posterior(label, scores[:, [column]])
            odds[:, label] = posterior[:, 1] - posterior[:, 0]
        return odds

    def row_losses(self, labels: NDArray[Any]) -> Callable[[FloatArray], FloatArray]:
        """Return a function that computes the loss of each row from its scores."""
        rows = np.arange(len(labels))

        def loss(scores: FloatArray) -> FloatArray:
            total = np.zeros(len(labels))
            for column, label in enumerate(self.discriminants):
                posterior = self.log_posterior(label, scores[:, [column]])
                total -= log_softmax(posterior, axis=1)[rows, labels[:, column]]
            return total

        return loss


class MultiLabelKernelDiscriminant(ClassifierMixin, BaseKernelEstimator):
    """Multi-label kernel discriminant analysis with one learned kernel for all labels.

    One program over all labels, which [Ye08]_ leaves as future work, determines the weights and λ.
    Each label then has its own two-class discriminant; all of them need only one factorization.
    Labels have equal influence, rare or frequent. y has one 0/1 column for each label. If y holds
    one class for each row instead, the method is one-vs-rest and predicts the most probable class.

    Parameters
    ----------
    kernels : "auto", "precomputed", kernel, list of kernels or dict of names to kernels
        As in `MultipleKernelDiscriminant`.
    criterion : {"auto", "rkda", "alignment", "loo", "uniform"} or object, default="auto"
        As in `MultipleKernelDiscriminant`.
    solver, regularization
        As in `MultipleKernelDiscriminant`.
    class_weight : dict, "balanced" or None, default=None
        Factors for the sample weights of each class, if each row has one class, as in
        `MultipleKernelDiscriminant`.
    tol, max_iter, random_state, bank, max_time, device, verbose, callback
        As in `MultipleKernelDiscriminant`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Positions of the labels, or the classes.
    multilabel_ : bool
        Whether y has one column for each label.
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
    discriminants_ : dict of int to Discriminant
        Discriminants of all labels that vary in the training rows, by position.
    combined_kernel_ : CombinedKernel
        The centred learned kernel between new rows and the training rows.
    feature_importances_ : ndarray of shape (n_features,)
        Increase of the loss of all labels when the cells of a column come from other rows, as in
        `MultipleKernelDiscriminant`.
    feature_importances_std_ : ndarray of shape (n_features,)
        Standard errors of `feature_importances_`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> clf = MultiLabelKernelDiscriminant().fit(X[::2], Y[::2])
    >>> clf.predict(X[1:2])
    array([[0, 0, 1, 0, 0]])
    """

    _y_checks: ClassVar[Mapping[str, Any]] = {"multi_output": True}

    classes_ = view("classes", "Positions of the labels, or the classes.")
    multilabel_ = view("head.is_multilabel", "Whether y has one column for each label.")
    discriminants_ = view("head.discriminants", "Discriminants of all labels that vary.")

    score = score_any(ClassifierMixin.score)

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        criterion: Any = "auto",
        solver: Any = "auto",
        regularization: float | str = "auto",
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        random_state: Any = None,
        bank: Any = "auto",
        max_time: Any = None,
        device: str | None = None,
        verbose: bool = False,
        callback: Any = None,
    ) -> None:
        self._store(locals())

    # ---- fitting -----------------------------------------------------------------------------

    def _fit_model(self, X: Any, y: Any, sample_weight: Any, groups: Any, run: FitRun) -> Model:
        """Return the model of one stage; y may be a sparse matrix."""
        y = y.toarray() if is_sparse(y) else y
        return super()._fit_model(X, y, sample_weight, groups, run)

    def _make_target(self, training: TrainingRows, request: Request) -> tuple[Any, ...]:
        """Return the target of the varying labels, and the arguments of `_make_model`.

        These are the positions of the varying labels, all labels, the classes, and whether y has
        one column for each label.
        """
        has, weights, classes, is_multilabel = self._indicate(training)
        varies = _check_labels(has, classes if is_multilabel else None)
        target = LabelsTarget(has[:, varies], weights, training.groups)
        request.criterion.check_target(target, request.regularization)
        return target, varies, has, classes, is_multilabel

    def _make_model(self, learning: Learning, *known: Any) -> Model:
        """Return the model of a learned kernel."""
        (varies, has, classes, is_multilabel), target = known, learning.target
        found, fit = _fit_labels(learning)
        share = target.row_weights.means(has.T)
        share[has.all(axis=0)] = 1.0  # exactly, without rounding errors
        head = LabelsHead(dict(zip(varies.tolist(), found, strict=True)), share, is_multilabel)
        return learning.model(
            fit,
            head,
            target.has.astype(np.intp),
            coef=np.hstack([one.dual_coef for one in found]),
            intercept=np.concatenate([one.intercept for one in found]),
            classes=classes,
        )

    def _indicate(
        self, training: TrainingRows
    ) -> tuple[NDArray[np.bool_], SampleWeights | None, NDArray[Any], bool]:
        """Return the indicator matrix, sample weights, classes, and whether y is multi-label.

        If y has one class for each row, each class becomes a label, and class weights are included
        in the sample weights.
        """
        y, weights = np.asarray(training.y), training.weights
        if not (y.ndim == 2 and y.shape[1] > 1):
            y = column_or_1d(y, warn=True)
            known = ClassTarget.from_labels(y, weights, training.groups)
            target = training.among_given(known, self.class_weight)
            has = LabelBinarizer().fit(target.classes).transform(y)
            return np.asarray(has == 1), target.row_weights, target.classes, False
        if self.class_weight is not None:
            raise InvalidInputError(
                "class_weight requires one class for each row. Got several labels per row, and "
                f"class_weight={self.class_weight!r}. Use sample_weight. Rare and frequent labels "
                "have equal influence anyway."
            )
        if type_of_target(y) != "multilabel-indicator":
            raise InvalidInputError(
                "y must hold 0 and 1, one column per label, or one class per row. Got "
                f"{type_of_target(y)} of shape {y.shape}. Use "
                "sklearn.preprocessing.MultiLabelBinarizer to convert sets of labels to columns."
            )
        others = np.setdiff1d(y, [0, 1])  # 1 and 2, or 1 and -1: which of them has the label?
        if len(others):
            raise InvalidInputError(
                f"y must hold 0 and 1, one column per label. Got {others[0]!s}. Convert it, such "
                "as by y == 1."
            )
        return np.asarray(y == 1), weights, np.arange(y.shape[1]), True

    # ---- prediction --------------------------------------------------------------------------

    @like_input
    def decision_function(self, X: Any) -> FloatArray:
        """Return the log-odds of every label.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows, n_labels), or (n_rows,) for two classes
            Positive if the label is more likely than not.
        """
        odds: FloatArray = self.model_.head.log_odds(self.model_.scores(X))
        return odds if odds.shape[1] > 1 or self.multilabel_ else odds[:, 0]

    @like_input
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels of each row, or its class.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows, n_labels) or (n_rows,)
            1 if a row has a label, else 0; or the most probable class.
        """
        odds = self.model_.head.log_odds(self.model_.scores(X))
        if self.multilabel_:
            return np.asarray((odds > 0).astype(np.intp))
        codes = odds.argmax(axis=1) if odds.shape[1] > 1 else (odds[:, 0] > 0).astype(np.intp)
        return np.asarray(self.classes_[codes])

    @like_input
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every label or class.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows, n_labels) or (n_rows, n_classes)
            For labels, independent probabilities; for classes, rows sum to 1.
        """
        odds = self.model_.head.log_odds(self.model_.scores(X))
        if self.multilabel_:
            return np.asarray(expit(odds))
        if odds.shape[1] == 1:
            return np.hstack([expit(-odds), expit(odds)])
        return np.asarray(softmax(log_expit(odds), axis=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _check_labels(has: NDArray[np.bool_], labels: NDArray[Any] | None) -> NDArray[np.intp]:
    """Return the positions of the labels that vary; warn of others, and raise if none varies."""
    varies = has.any(axis=0) & ~has.all(axis=0)
    if not varies.any():
        raise InvalidInputError(
            "At least one label must vary over the samples. Got "
            f"{has.shape[1]} constant labels. y may be filtered too far."
        )
    if labels is not None and not varies.all():
        warnings.warn(
            "Labels that all samples have, or none, get the same prediction for every row: "
            f"{labels[~varies].tolist()}.",
            UserWarning,
            stacklevel=caller_stacklevel(),
        )
    return np.flatnonzero(varies)


def _fit_labels(learning: Learning) -> tuple[list[Discriminant], KernelLeastSquares]:
    """Return the discriminant of each label, and the fit of all of them."""
    target = learning.target
    whole = learning.fit()  # all labels at once, which caches the system for the others
    fits = [learning.fit(part.scores) for part in target.parts]
    held_out, found = held_out_scores(learning, whole), []
    for i, (fit, part) in enumerate(zip(fits, target.parts, strict=True)):
        own = held_out
        if held_out.scores is not None:
            own = replace(held_out, scores=held_out.scores[:, i : i + 1])
        one = fit_discriminant(fit, part, "loo", own)
        found.append(replace(one, dual_coef=learning.coef(one.dual_coef)))
    return found, whole
