"""Discriminants for samples with any number of labels, all with one learned kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from discernel.arrays import FloatArray
from discernel.arrays.sample_weights import SampleWeights
from discernel.criteria import KernelLeastSquares
from discernel.discriminant import Discriminant, Head, fit_discriminant
from discernel.estimators.base import (
    BaseKernelEstimator,
    like_input,
    make_model,
    score_any,
    view,
)
from discernel.exceptions import InvalidInputError, caller_stacklevel
from discernel.learn.rows import Learning, held_out_scores, learn_rows
from discernel.learn.stages import FitRun
from discernel.learn.training import TrainingRows, check_training
from discernel.model import Model
from discernel.targets import ClassTarget, LabelsTarget


@dataclass(frozen=True)
class LabelsHead(Head):
    """From the score of every label that varies to the log-odds of all labels.

    Attributes
    ----------
    discriminants : dict of int to Discriminant
        That of every label which varies over the training rows, by its position.
    shares : ndarray of shape (n_labels,)
        The share of the training rows that have each label.
    is_multilabel : bool
        Whether rows may have any number of labels.
    """

    discriminants: dict[int, Discriminant]
    shares: FloatArray
    is_multilabel: bool

    def log_posterior(self, label: int, scores: FloatArray) -> FloatArray:
        """Return log p(label | x), without and with it, up to a constant of the row."""
        priors = np.array([1.0 - self.shares[label], self.shares[label]])
        return self.discriminants[label].log_posterior(scores, priors)

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds of every label, ±inf for labels that never varied."""
        # A label that all rows have, or none: the same answer for every row.
        constant = np.where(self.shares == 1.0, np.inf, -np.inf)
        odds = np.tile(constant, (len(scores), 1))
        for column, label in enumerate(self.discriminants):
            posterior = self.log_posterior(label, scores[:, [column]])
            odds[:, label] = posterior[:, 1] - posterior[:, 0]
        return odds

    def row_losses(self, labels: NDArray[Any]) -> Callable[[FloatArray], FloatArray]:
        """Return a function of the scores of rows of known labels: the loss of each row."""
        rows = np.arange(len(labels))

        def loss(scores: FloatArray) -> FloatArray:
            total = np.zeros(len(labels))
            for column, label in enumerate(self.discriminants):
                posterior = self.log_posterior(label, scores[:, [column]])
                total -= log_softmax(posterior, axis=1)[rows, labels[:, column]]
            return total

        return loss


class MultiLabelKernelDiscriminant(ClassifierMixin, BaseKernelEstimator):
    """Tell for every label which rows have it; all labels share one learned kernel and one λ.

    One program over all labels together, which [Ye08]_ leaves as future work, gives the weights;
    each label then has a two-class discriminant of its own, and all of them cost one
    factorisation. Labels count the same, rare or frequent. Given one class a row instead, it is
    one class against the rest, and the most probable class is predicted.

    Parameters
    ----------
    kernels : "auto", "precomputed", kernel, list of kernels or dict of names to kernels
        As in `MultipleKernelDiscriminant`.
    criterion : {"auto", "rkda", "alignment", "loo", "uniform"} or object, default="auto"
        As in `MultipleKernelDiscriminant`.
    solver, regularization
        As in `MultipleKernelDiscriminant`.
    class_weight : dict, "balanced" or None, default=None
        Where rows have one class: what the weights of the rows of each are multiplied by, as in
        `MultipleKernelDiscriminant`.
    tol, max_iter, random_state, bank, max_time, device, verbose, callback
        As in `MultipleKernelDiscriminant`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The positions of the labels, or the classes.
    multilabel_ : bool
        Whether rows may have any number of labels.
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
    discriminants_ : dict of int to Discriminant
        That of every label which varies over the training rows, by its position.
    combined_kernel_ : CombinedKernel
        The centred learned kernel between new rows and the training rows.
    feature_importances_, feature_importances_std_ : ndarray of shape (n_features,)
        How much predictions of all labels together lose without each column, as in
        `MultipleKernelDiscriminant`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> clf = MultiLabelKernelDiscriminant().fit(X[::2], Y[::2])
    >>> clf.predict(X[1:2])
    array([[0, 0, 1, 0, 0]])
    """

    _holds_out: ClassVar[bool] = True

    classes_ = view("classes", "The positions of the labels, or the classes.")
    multilabel_ = view("head.is_multilabel", "Whether rows may have any number of labels.")
    discriminants_ = view("head.discriminants", "That of every label which varies.")

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
        super().__init__(
            kernels,
            criterion=criterion,
            solver=solver,
            regularization=regularization,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            bank=bank,
            max_time=max_time,
            device=device,
            verbose=verbose,
            callback=callback,
        )
        self.class_weight = class_weight

    # ---- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel and a discriminant a label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, of any kind `MultipleKernelDiscriminant` takes.
        y : array-like of shape (n_samples, n_labels) or (n_samples,)
            1 where a row has a label, else 0; or one class a row.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, as in `MultipleKernelDiscriminant`.

        Returns
        -------
        self
            Fitted.
        """
        self.model_ = make_model(self, self._fit_in_time, X, y, sample_weight)
        return self

    def _fit_model(self, X: Any, y: Any, sample_weight: Any, run: FitRun) -> Model:
        """Return the model of a fit.

        Parameters
        ----------
        X, y, sample_weight : array-like
            Rows, labels and weights.
        run : FitRun
            The fit.
        """
        y, request = y.toarray() if hasattr(y, "toarray") else y, run.request
        one_class = sample_weight is not None and np.asarray(y).ndim == 1
        training = check_training(self, X, y, sample_weight, labels=one_class, multi_output=True)
        has, weights, classes, is_multilabel = self._indicate(training)
        varies = _check_labels(has, classes if is_multilabel else None)
        target = LabelsTarget(has[:, varies], weights)
        request.check_target(target)
        with run.working(training.X, training.kernels, target.n_samples):
            learning = learn_rows(run, training.X, training.reader, target, request)
            found, fit = _fit_labels(learning, target)
        share = has.mean(axis=0) if weights is None else weights.shares @ has
        share[has.all(axis=0)] = 1.0  # without rounding
        head = LabelsHead(dict(zip(varies.tolist(), found, strict=True)), share, is_multilabel)
        return learning.model(
            training,
            fit,
            head,
            has[:, varies].astype(np.intp),
            coef=np.hstack([one.dual_coef for one in found]),
            intercept=np.concatenate([one.intercept for one in found]),
            classes=classes,
        )

    def _indicate(
        self, training: TrainingRows
    ) -> tuple[NDArray[np.bool_], SampleWeights | None, NDArray[Any], bool]:
        """Return which row has which label, the weights of rows, the classes, and whether labels.

        Weights of rows have those of classes in them.

        One class per row becomes one label per class.
        """
        y, weights = np.asarray(training.y), training.weights
        if not (y.ndim == 2 and y.shape[1] > 1):
            y = column_or_1d(y, warn=True)
            known = ClassTarget.from_labels(y, weights)
            target = training.among_given(known, self.class_weight)
            has = LabelBinarizer().fit(target.classes).transform(y)
            return np.asarray(has == 1), target.sample_weights, target.classes, False
        if self.class_weight is not None:
            raise InvalidInputError(
                "class_weight is for rows of one class each. Got several labels per row, and "
                f"class_weight={self.class_weight!r}. Use sample_weight; labels count the same "
                "anyway, rare or frequent."
            )
        if type_of_target(y) != "multilabel-indicator":
            raise InvalidInputError(
                "y must hold 0 and 1, one column per label, or one class per row. Got "
                f"{type_of_target(y)} of shape {y.shape}. Sets of labels are turned into columns "
                "by sklearn.preprocessing.MultiLabelBinarizer."
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
            Above 0 where the label is more likely than not.
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
            1 where a row has a label; or the most probable class.
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
            Labels: each for itself. Classes: rows sum to 1.
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
    """Return the labels that vary; warn of the others by name, and raise if there is none."""
    varies = has.any(axis=0) & ~has.all(axis=0)
    if not varies.any():
        raise InvalidInputError(
            "At least one label must vary over the samples. Got "
            f"{has.shape[1]} labels that all samples have or none. y may be filtered too far."
        )
    if labels is not None and not varies.all():
        warnings.warn(
            f"Labels that all samples have, or none, are predicted as such: "
            f"{labels[~varies].tolist()}.",
            UserWarning,
            stacklevel=caller_stacklevel(),
        )
    return np.flatnonzero(varies)


def _fit_labels(
    learning: Learning, target: LabelsTarget
) -> tuple[list[Discriminant], KernelLeastSquares]:
    """Return the discriminant of each label, and the fit of all of them."""
    criterion, weights = learning.relearner.request.criterion, target.sample_weights
    ridge = criterion.sample_ridge(target, learning.learned.regularization)
    system = learning.bank.system(learning.weights, ridge)
    scores = np.hstack([part.scores for part in target.parts])
    together = KernelLeastSquares(system, ridge, scores, weights)  # first: all at once is cheaper
    fits = [KernelLeastSquares(system, ridge, part.scores, weights) for part in target.parts]
    whole = KernelLeastSquares(system, ridge, target.scores, weights)
    held_out = held_out_scores(learning, whole, target)
    honest = [held_out(part, slice(i, i + 1)) for i, part in enumerate(target.parts)]
    found = [
        fit_discriminant(fit, part, "loo", own)
        for fit, part, own in zip(fits, target.parts, honest, strict=True)
    ]
    found = [replace(one, dual_coef=learning.coef(one.dual_coef)) for one in found]
    return found, together
