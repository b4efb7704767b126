"""The best single kernel, by cross-validation: what learned combinations are measured against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, StratifiedKFold, check_cv
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import FloatArray
from discernel.bank import gram_stack
from discernel.bank.grams import check_grams, is_constant
from discernel.estimators.base import BaseKernelEstimator
from discernel.estimators.discriminant import KernelDiscriminant
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.kernels import Kernel, Precomputed, kernel_names
from discernel.learn.learn import DEFAULT_REGULARIZATIONS
from discernel.model.training import check_training
from discernel.targets import ClassTarget
from discernel_reproduction.baselines.rows import model_of_rows
from discernel_reproduction.baselines.svm import LearnedKernelSVC

#: What the λ or C of a classifier is called, and which values are tried. The papers name no values
#: of C. These reach from far too smooth to nearly no slack; libsvm takes minutes beyond, where
#: classes overlap.
_CLASSIFIERS = {
    "kfda": ("regularization", DEFAULT_REGULARIZATIONS),
    "svm": ("C", tuple(np.logspace(-2.0, 3.0, 6).tolist())),
}


def _machine(classifier: str, kernel: Kernel) -> BaseEstimator:
    """Return what is fitted with one kernel."""
    if classifier == "kfda":
        # Statistics of the fit, as in the papers: leave-one-out was no better on any of five sets
        # tried.
        return KernelDiscriminant(kernel, statistics="training")
    return LearnedKernelSVC([kernel], criterion="uniform", regularization=1.0)


class _Checked(Precomputed):
    """A matrix known to be a kernel matrix, because it is part of one that was checked."""

    trusted = True


def search_kernels(
    kernels: Sequence[Kernel],
    X: NDArray[Any],
    y: NDArray[Any],
    machine: Callable[[Kernel], BaseEstimator],
    grid: Mapping[str, Sequence[float]],
    folds: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]],
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the cross-validated accuracy of each kernel with each value of one parameter.

    NaN for a kernel that is constant on the rows of a fold. The search is on matrices, computed
    once and known to be kernels: on rows it takes 1.4 times as long.

    Parameters
    ----------
    kernels : sequence of Kernel
        Resolved.
    X, y : ndarray
        Training rows and labels.
    machine : callable
        From a kernel to the classifier that is fitted with it.
    grid : dict of str to sequence of float
        The name of the parameter, and its values.
    folds : sequence of (ndarray, ndarray)
        Training and held-out rows.
    n_jobs : int, optional
        The processes that share the fits with a kernel.
    """
    names, (values,) = kernel_names(list(kernels)), grid.values()
    near = [kernel.shifted(X) for kernel in kernels]  # the same once centred
    grams, _ = check_grams(gram_stack(near, X), names, [kernel.trusted for kernel in kernels])
    search = GridSearchCV(
        machine(_Checked()), grid, cv=folds, n_jobs=n_jobs, refit=False, error_score="raise"
    )
    accuracies = np.full((len(grams), len(values)), np.nan)
    for row, gram in zip(accuracies, grams, strict=True):
        if not any(is_constant(gram[np.ix_(train, train)]) for train, _ in folds):
            row[:] = search.fit(gram, y).cv_results_["mean_test_score"]
    if np.isnan(accuracies).all():
        raise InvalidInputError(
            "At least one kernel must vary over the rows of every fold. All are constant: "
            f"{', '.join(names)}. Check the data for identical rows and the kernels for far "
            "too large widths."
        )
    return accuracies


class SingleKernelClassifier(ClassifierMixin, BaseKernelEstimator):
    """The one kernel, and its regularisation, with the best accuracy in cross-validation.

    scikit-learn's GridSearchCV over kernels and λ, with every kernel computed once.
    Within a cross-validation of its own it is the double cross-validation that [Ye08]_ and
    [Kim06]_ compare learned kernels with. Any number of classes.

    Parameters
    ----------
    kernels : "auto", "precomputed", kernel, list of kernels or dict of names to kernels
        The candidates, as in `MultipleKernelDiscriminant`.
    classifier : {"kfda", "svm"}, default="kfda"
        What is fitted with a kernel: `KernelDiscriminant` with statistics of the training rows, or
        a support vector machine on the centred kernel scaled to a diagonal of mean 1.
    regularizations : array-like of float, optional
        The values to try, of λ for ``"kfda"`` and of C for ``"svm"``. By default λ from 1 down to
        1e-6, two a decade, and C from 0.01 to 1,000, one a decade. [Kim06]_ has one λ, 1e-8 in
        units of kernels of trace n_samples; [Ye08]_ does not say which values it tried.
    cv : int, cross-validation generator or iterable, default=5
        The folds. An integer is the number of stratified, shuffled ones; fewer where the smallest
        class has fewer samples.
    n_jobs : int, optional
        The processes that share the fits with a kernel.
    random_state : int, RandomState or None, default=None
        Shuffles the samples before they are split, where ``cv`` is an integer.

    Attributes
    ----------
    best_kernel_ : Kernel
        The kernel chosen.
    best_index_ : int
        Its position among the candidates.
    best_regularization_ : float
        The λ or C chosen with it.
    best_score_ : float
        Their accuracy in cross-validation.
    cv_results_ : ndarray of shape (n_kernels, n_regularizations)
        The accuracy of every pair; NaN for a kernel that is constant on the rows of a fold. Of
        equal ones the first is chosen.
    kernel_names_ : list of str
        What the rows of ``cv_results_`` belong to.
    regularizations_ : ndarray of shape (n_regularizations,)
        What the columns belong to.
    estimator_ : KernelDiscriminant or LearnedKernelSVC
        The best pair, fitted to all training rows.
    classes_ : ndarray of shape (n_classes,)
        The labels.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from discernel.kernels import RBF
    >>> X, y = load_wine(return_X_y=True)
    >>> single = SingleKernelClassifier([RBF(width=0.1), RBF(width=4.0)], random_state=0)
    >>> clf = make_pipeline(StandardScaler(), single).fit(X[::2], y[::2])
    >>> clf[-1].best_kernel_
    RBF(width=4)
    >>> round(clf.score(X[1::2], y[1::2]), 2)
    0.99
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        classifier: str = "kfda",
        regularizations: Any = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernels = kernels
        self.classifier = classifier
        self.regularizations = regularizations
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]  # takes no weights
        """Try every kernel with every λ or C, and fit the best pair to all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, or for precomputed kernels a stack of shape (n_samples, n_samples,
            n_kernels).
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self
            Fitted.
        """
        values = self._check_regularizations()
        training = check_training(self, X, y)
        X, y, kernels = training.X, training.y, training.reader.kernels
        target = ClassTarget.from_labels(y)
        folds = self._folds(target)
        names = kernel_names(kernels)
        labels = target.classes[target.codes]
        parameter, _ = _CLASSIFIERS[self.classifier]
        make = partial(_machine, self.classifier)
        self.cv_results_ = search_kernels(
            kernels, X, labels, make, {parameter: values}, folds, self.n_jobs
        )
        best = np.unravel_index(int(np.nanargmax(self.cv_results_)), self.cv_results_.shape)
        self.best_index_, column = int(best[0]), int(best[1])
        self.best_kernel_ = kernels[self.best_index_]
        self.best_regularization_ = values[column]
        self.best_score_ = float(self.cv_results_[self.best_index_, column])
        self.estimator_ = (
            make(self.best_kernel_).set_params(**{parameter: values[column]}).fit(X, labels)
        )
        self.model_ = model_of_rows(training.reader, names)
        self.regularizations_ = np.array(values)
        self.classes_ = target.classes
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return how strongly each row belongs to the classes, as ``estimator_`` says.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Two classes: the second is predicted above 0. More: the class with the largest.
        """
        check_is_fitted(self, "estimator_")
        X = self.model_.reader.read(X)
        return np.asarray(self.estimator_.decision_function(X))

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
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(self.model_.reader.read(X)))

    def _check_regularizations(self) -> list[float]:
        if self.classifier not in _CLASSIFIERS:
            raise unknown_choice(
                "classifier of SingleKernelClassifier", self.classifier, list(_CLASSIFIERS)
            )
        _, default = _CLASSIFIERS[self.classifier]
        given = default if self.regularizations is None else self.regularizations
        try:
            values = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.ndim != 1 or not values.size or not np.all((values > 0) & (values < np.inf)):
            raise InvalidInputError(
                "The regularizations must be a list of positive, finite numbers, or None. "
                f"Got {self.regularizations!r}."
            )
        return [float(value) for value in values]

    def _folds(self, target: ClassTarget) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        splitter = self.cv
        if isinstance(splitter, (int, np.integer)):
            smallest = int(target.counts.min())
            if splitter < 2 or smallest < 2:
                label = target.classes[target.counts.argmin()]
                raise InvalidInputError(
                    "Cross-validation needs at least two folds and two samples of every class. "
                    f"Got cv={self.cv!r} and {smallest} of class {label!s}. Merge or remove small "
                    "classes, or pass folds of your own as cv."
                )
            n_folds = min(int(splitter), smallest)
            splitter = StratifiedKFold(n_folds, shuffle=True, random_state=self.random_state)
        rows = np.zeros((target.n_samples, 1))
        return list(check_cv(splitter).split(rows, target.codes))
