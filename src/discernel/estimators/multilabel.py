"""Discriminants for samples with any number of labels, all with one learned kernel."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from discernel.arrays import FloatArray
from discernel.arrays.sample_weights import SampleWeights
from discernel.criteria import KernelLeastSquares
from discernel.discriminant import fit_discriminant
from discernel.estimators.arrays import ScoresAnywhere, where_rows_are, whole_or_nothing
from discernel.estimators.learner import BaseKernelLearner, held_out_scores
from discernel.estimators.staged import in_stages
from discernel.exceptions import InvalidInputError, levels_to_the_caller
from discernel.inspection.importances import Loss
from discernel.targets import ClassTarget, LabelsTarget

__all__ = ["MultiLabelKernelDiscriminant"]


class MultiLabelKernelDiscriminant(ScoresAnywhere, ClassifierMixin, BaseKernelLearner):
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
    tol, max_iter, random_state, bank, cache_size, rank, max_time, device, verbose, callback
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

    _holds_out = True

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
        bank: str = "auto",
        cache_size: float = 256,
        rank: int | None = None,
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
            cache_size=cache_size,
            rank=rank,
            max_time=max_time,
            device=device,
            verbose=verbose,
            callback=callback,
        )
        self.class_weight = class_weight

    # ---- fitting -----------------------------------------------------------------------------

    @whole_or_nothing
    @in_stages
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
        request = self._request()
        y = y.toarray() if hasattr(y, "toarray") else y
        one_class = sample_weight is not None and np.asarray(y).ndim == 1
        X, y, kernels, sample_weights = self._validate_weighted(
            X, y, sample_weight, labels=one_class, multi_output=True
        )
        has, sample_weights = self._indicate(np.asarray(y), sample_weights)
        varies = _check_labels(has, self.classes_ if self.multilabel_ else None)
        target = LabelsTarget(has[:, varies], sample_weights)
        request.check_target(target)
        with self._working(X, kernels, target, request) as way:
            learning = self._learn(X, kernels, target, request, way)
            bank, weights = learning.bank, learning.weights
            ridge = request.criterion.sample_ridge(target, self.regularization_)
            system = bank.system(weights, ridge)
            scores = np.hstack([part.scores for part in target.parts])
            system.expect(scores)
            fits = [
                KernelLeastSquares(system, ridge, part.scores, sample_weights)
                for part in target.parts
            ]
            whole = KernelLeastSquares(system, ridge, target.scores, sample_weights)
            held_out = held_out_scores(learning, whole, target)
            honest = [held_out(part, slice(i, i + 1)) for i, part in enumerate(target.parts)]
            found = [
                fit_discriminant(fit, ridge, part, "loo", scores)
                for fit, part, scores in zip(fits, target.parts, honest, strict=True)
            ]
            found = [replace(one, dual_coef=learning.coef(one.dual_coef)) for one in found]
            self.discriminants_ = dict(zip(varies.tolist(), found, strict=True))
        share = has.mean(axis=0) if sample_weights is None else sample_weights.shares @ has
        share[has.all(axis=0)] = 1.0  # without rounding
        self._priors = np.column_stack([1.0 - share, share])
        # A label that all rows have, or none: the same answer for every row.
        self._constant = np.where(share == 1.0, np.inf, -np.inf)
        fit = KernelLeastSquares(system, ridge, scores, sample_weights)
        self._store_importances(X, learning, fit, has[:, varies].astype(np.intp))
        return self

    def _row_losses(self, labels: NDArray[Any]) -> Loss:
        rows, found = np.arange(len(labels)), self.discriminants_

        def loss(scores: FloatArray) -> FloatArray:
            total = np.zeros(len(labels))
            for column, (label, one) in enumerate(found.items()):
                posterior = one.log_posterior(scores[:, [column]], self._priors[label])
                total -= log_softmax(posterior, axis=1)[rows, labels[:, column]]
            return total

        return loss

    def _indicate(
        self, y: NDArray[Any], weights: SampleWeights | None
    ) -> tuple[NDArray[np.bool_], SampleWeights | None]:
        """Return which row has which label, and the weights of rows with those of classes.

        One class per row becomes one label per class.
        """
        self.multilabel_ = y.ndim == 2 and y.shape[1] > 1
        if not self.multilabel_:
            y = column_or_1d(y, warn=True)
            target = self._among_given(ClassTarget.from_labels(y, weights), self.class_weight)
            self.classes_ = target.classes
            has = LabelBinarizer().fit(self.classes_).transform(y)
            return np.asarray(has == 1), target.sample_weights
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
        self.classes_ = np.arange(y.shape[1])
        return np.asarray(y == 1), weights

    # ---- prediction --------------------------------------------------------------------------

    def _log_odds(self, X: Any) -> FloatArray:
        """Return the log-odds of every label, ±inf for labels that never varied."""
        check_is_fitted(self, "discriminants_")
        X = self._validate(X, self.kernels_)
        coef = np.hstack([found.dual_coef for found in self.discriminants_.values()])
        scores = self.combined_kernel_.product(X, coef)
        odds = np.tile(self._constant, (len(scores), 1))
        for column, (label, found) in enumerate(self.discriminants_.items()):
            score = scores[:, [column]] + found.intercept
            posterior = found.log_posterior(score, self._priors[label])
            odds[:, label] = posterior[:, 1] - posterior[:, 0]
        return odds

    @where_rows_are
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
        odds = self._log_odds(X)
        return odds if odds.shape[1] > 1 or self.multilabel_ else odds[:, 0]

    @where_rows_are
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
        odds = self._log_odds(X)
        if self.multilabel_:
            return np.asarray((odds > 0).astype(np.intp))
        codes = odds.argmax(axis=1) if odds.shape[1] > 1 else (odds[:, 0] > 0).astype(np.intp)
        return np.asarray(self.classes_[codes])

    @where_rows_are
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
        odds = self._log_odds(X)
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
            stacklevel=levels_to_the_caller(),
        )
    return np.flatnonzero(varies)
