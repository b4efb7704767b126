"""What the discriminant estimators share: fitting and prediction."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discernel.arrays import FloatArray, check_given, n_rows, on_host
from discernel.arrays.sample_weights import SampleWeights
from discernel.criteria import KernelLeastSquares, takes_two_classes
from discernel.discriminant import (
    Decision,
    Discriminant,
    Expectation,
    HeldOutScores,
    fit_discriminant,
)
from discernel.estimators.arrays import ScoresAnywhere, whole_or_nothing
from discernel.estimators.learner import PRIOR_REQUEST, Way, held_out_scores
from discernel.estimators.staged import in_stages
from discernel.estimators.streamed import BaseStreamedLearner, by_chunks
from discernel.estimators.weighted import with_class_weight
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.inspection.importances import Loss
from discernel.learn import Request
from discernel.streams import Source, open_rows
from discernel.streams.chunks import is_dask
from discernel.streams.fit import StreamedFit
from discernel.streams.survey import codes_of
from discernel.targets import ClassTarget

__all__ = ["BaseKernelDiscriminant"]

#: Below this no logarithm of a probability counts, as in scikit-learn's ``log_loss``.
_LEAST_LOG = float(np.log(np.finfo(np.float64).eps))


class BaseKernelDiscriminant(
    ScoresAnywhere,
    ClassNamePrefixFeaturesOutMixin,
    ClassifierMixin,
    TransformerMixin,
    BaseStreamedLearner,
):
    """Learn a kernel and its discriminant; then predict."""

    priors: Any
    class_weight: Any
    class_costs: Any
    threshold: Any
    statistics: Any
    n_components: Any
    _holds_out = True

    # ---- fitting -----------------------------------------------------------------------------

    @whole_or_nothing
    @in_stages
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the kernel and its discriminant.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or Source
            Training rows: an array, a sparse matrix, a dataframe, with ``kernels="auto"`` of any
            columns, what callable kernels take, or for precomputed kernels a stack of shape
            (n_samples, n_samples, n_kernels). What `open_rows` returned is read twice, a chunk at
            a time: the kernel is learned on a random sample of some thousands of rows, and the
            discriminant, of kernels at landmarks, on all of them. So is a Dask array or dataframe,
            where its partitions lie; with ``bank="distributed"`` its rows are collected instead.
        y : array-like of shape (n_samples,)
            Class labels; of a `Source` nothing, which has them; of a Dask dataframe also the name
            of a column.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, at least 0; a row of weight 0 is absent. Weights are
            relative: their scale changes nothing. Leave-one-out leaves out a row with all of its
            weight, and intervals have the effective number of rows (Σω)²/Σω².

        Returns
        -------
        self
            Fitted.
        """
        self._waiting = None
        X, y, sample_weight = self._opened_rows(X, y, sample_weight)
        if isinstance(X, Source):
            if y is not None or sample_weight is not None:
                raise InvalidInputError(
                    "Labels and weights of rows in chunks come with them. Got them for fit; name "
                    "their columns, or give them, to open_rows."
                )
            return self._store_streamed(self._fit_source(X))
        self._stream = None
        given, request = (X, y, sample_weight), self._request()
        X, y, kernels, sample_weights = self._validate_weighted(X, y, sample_weight)
        least = 2 if self._labels_without_weight is None else 1
        target = ClassTarget.from_labels(y, sample_weights, least=least)
        given_classes = self._among_given(target, self.class_weight)
        target = given_classes.seen
        if target.n_classes == 1:  # nothing to learn by: all rows with weight are of one class
            request = replace(PRIOR_REQUEST)
        self._check_target(given_classes, request)
        decision = self._decide(given_classes)
        with self._working(X, kernels, target, request) as way:
            summed = self._sums_are_enough(way, request, target.n_samples)
            if summed and self._rows_vary(X, kernels):
                del X, y, target, given_classes
                return self._store_streamed(self._fit_first(*given, way=way))
            learning = self._learn(X, kernels, target, request, way)
            ridge = request.criterion.sample_ridge(target, self.regularization_)
            system = learning.bank.system(learning.weights, ridge)
            fit = KernelLeastSquares(system, ridge, target.scores, target.sample_weights)
            held_out = HeldOutScores()
            if self.statistics == "loo":
                held_out = held_out_scores(learning, fit, target)(target, slice(None))
            discriminant = fit_discriminant(fit, ridge, target, self.statistics, held_out)
            discriminant = replace(discriminant, dual_coef=learning.coef(discriminant.dual_coef))
            self._keep_labels(target.classes[target.codes], learning.kept)
            self._store(discriminant, decision, given_classes, held_out)
            self._store_importances(X, learning, fit, target.codes, held_out.rows)
        return self

    def _held_out_loss(self) -> float | None:
        return None if self.expected_ is None else self.expected_.log_loss

    def _opened_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        if not is_dask(X):
            return X, y, sample_weight
        source = open_rows(X, y, weights=sample_weight)
        if getattr(self, "bank", "auto") != "distributed":
            return source, None, None
        from discernel.streams.dask import gathered

        return gathered(source)  # of which every worker will have all

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        forget: float = 1.0,
    ) -> Self:
        """Learn from these rows too.

        The first call learns the kernel and draws the landmarks, from its rows alone, so these
        should be some thousands; after `fit` of a `Source` its kernel stays. Every further call
        adds rows to sums, and the discriminant is that of one fit to all rows so far. It costs
        some seconds with 1,500 landmarks, whatever the number of rows: give many at a time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), optional
            In the first call, all labels that there will be, which ``classes_`` are from then on;
            by default those of its rows. A class is learned from its second row on: until then
            its prior and its probabilities are 0, and its rows wait. So do all rows until two
            classes are learned from: predictions are then the shares of the classes.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts.
        forget : float, default=1.0
            What the weights of all rows of the calls before are multiplied by, above 0 and at
            most 1.

        Returns
        -------
        self
            Fitted.
        """
        if not (isinstance(forget, Real) and 0 < forget <= 1):
            raise InvalidInputError(
                f"forget must be a number above 0 and at most 1, which forgets nothing. Got "
                f"{forget!r}."
            )
        if isinstance(self.class_weight, str):
            raise InvalidInputError(
                f"class_weight={self.class_weight!r} depends on all rows, which partial_fit does "
                "not know. Give a dictionary of class to number."
            )
        check_given(X, y, classes, sample_weight)
        X, y, classes, sample_weight = map(on_host, (X, y, classes, sample_weight))
        before = dict(vars(self))
        try:
            found = self._learn_more(X, y, sample_weight, classes, float(forget))
            if found is not None:
                return self._store_streamed(found)
            return self._store_waiting() if self._stream is None else self
        except BaseException:
            self.__dict__ = before
            raise

    def _sums_are_enough(self, way: Way, request: Request, n_samples: int) -> bool:
        """Whether features are summed up: those of all rows do not fit into the cache.

        On a device always, which is where that is done.
        """
        n_bytes = 8 * n_samples * (way.rank or 1)
        summed = self._device is not None or n_bytes > self._cache_bytes()
        return way.kind == "lowrank" and summed and not request.criterion.balanced

    def _store_streamed(self, found: StreamedFit) -> Self:
        """Store what a fit from sums predicts with."""
        fit, target, honest = found.fit, found.target, found.honest
        ridge = np.full(target.n_samples, fit.regularization)
        discriminant = fit_discriminant(fit, ridge, target, self.statistics, honest)
        assert self._stream is not None  # what was fitted is kept
        target = target.among(self._stream.classes)
        self._check_target(target, self._request())
        self._store(discriminant, self._decide(target), target, honest)
        self._store_streamed_importances(found)
        return self

    def _store_waiting(self) -> Self:
        """Store what predicts the shares of the classes, while no two can be learned from."""
        chunk = self._waiting
        assert chunk is not None
        weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
        counted = np.flatnonzero(weights)
        if not len(counted):
            raise InvalidInputError("Some rows must have a weight above 0. Got none.")
        codes, classes = codes_of(np.asarray(chunk.y), self.classes_)[counted], self.classes_
        target = ClassTarget(classes, codes, SampleWeights.of(weights[counted]))
        target = with_class_weight(target, self.class_weight)
        none = np.empty(0)
        discriminant = Discriminant(
            dual_coef=np.empty((0, 0)),
            intercept=none,
            means=np.empty((len(classes), 0)),
            scalings=np.empty((0, 0)),
            center=none,
            explained=none,
            training_scores=np.empty((len(codes), 0)),
            training_codes=codes,
        )
        return self._store(discriminant, self._decide(target), target, None)

    def _store(
        self,
        discriminant: Discriminant,
        decision: Decision,
        target: ClassTarget,
        honest: HeldOutScores | None,
    ) -> Self:
        """Store what predictions are made with, for all classes of a target.

        Without held-out scores, nothing is expected.
        """
        discriminant = discriminant.among(target)
        if isinstance(self.threshold, str) and honest is not None:
            self.threshold_ = decision.choose_threshold(discriminant)
            decision = decision.with_threshold(self.threshold_)
        self.discriminant_ = discriminant
        self.decision_ = decision
        self.expected_ = None
        if self.statistics == "loo" and honest is not None:
            self.expected_ = Expectation.of(discriminant, decision, honest.where)
        self.classes_ = target.classes
        self.priors_ = decision.priors
        n_coordinates = len(discriminant.explained)
        self._n_features_out = min(self._check_n_components(target), n_coordinates)
        self.explained_variance_ratio_ = discriminant.explained[: self._n_features_out]
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        binary = self.threshold is not None or takes_two_classes(self.criterion)
        tags.classifier_tags.multi_class = not binary
        return tags

    def _check_target(self, target: ClassTarget, request: Request) -> None:
        """Raise a clear error where classes cannot be learned as asked, before any heavy work."""
        request.check_target(target.seen)
        if self.statistics not in ("loo", "training"):
            raise unknown_choice("statistics", self.statistics, ["loo", "training"])
        if self.statistics == "training" and request.regularization == 0.0:
            raise InvalidInputError(
                "Without regularization the fit is exact on training rows, which then have no "
                "scatter: statistics must be 'loo'. Got 'training' and regularization=0."
            )

    def _decide(self, target: ClassTarget) -> Decision:
        """Return how probabilities become a class, or raise a clear error."""
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

    def _row_losses(self, labels: NDArray[Any]) -> Loss:
        rows, discriminant, priors = np.arange(len(labels)), self.discriminant_, self.priors_

        def loss(scores: FloatArray) -> FloatArray:
            told = log_softmax(discriminant.log_posterior(scores, priors), axis=1)
            return np.asarray(-np.maximum(told[rows, labels], _LEAST_LOG))

        return loss

    # ---- prediction --------------------------------------------------------------------------

    def _result_of(self, method: str) -> tuple[int | None, Any]:
        """Return how many columns a method returns, None for one dimension, and of which kind."""
        n_classes = len(self.classes_)
        if method == "predict":
            return None, self.classes_.dtype
        if method == "decision_function" and n_classes == 2:
            return None, np.float64
        return self._n_features_out if method == "transform" else n_classes, np.float64

    def _scores(self, X: Any) -> FloatArray:
        """Return the fitted class scores of new rows."""
        check_is_fitted(self, "discriminant_")
        discriminant = self.discriminant_
        if not len(discriminant.intercept):  # no two classes to learn from yet
            validate_data(self, X, skip_check_array=True, reset=False)
            return np.empty((n_rows(X), 0))
        X = self._validate(X, self.kernels_)
        product = self.combined_kernel_.product(X, discriminant.dual_coef)
        return np.asarray(product + discriminant.intercept)

    def _log_posterior(self, X: Any) -> FloatArray:
        scores = self._scores(X)
        return np.asarray(self.discriminant_.log_posterior(scores, self.decision_.priors))

    @by_chunks
    def decision_function(self, X: Any) -> FloatArray:
        """Return how strongly each row belongs to the classes.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows. Of a `Source`, an iterator of the results of its chunks is returned, of a
            Dask collection a Dask array with the same partitions.

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

    @by_chunks
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows. Of a `Source`, an iterator of the results of its chunks is returned, of a
            Dask collection a Dask array with the same partitions.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        decision = self.decision_function(X)
        codes = (decision > 0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    @by_chunks
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class; costs and thresholds do not change it.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows. Of a `Source`, an iterator of the results of its chunks is returned, of a
            Dask collection a Dask array with the same partitions.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Rows sum to 1.
        """
        return np.asarray(softmax(self._log_posterior(X), axis=1))

    @by_chunks
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows. Of a `Source`, an iterator of the results of its chunks is returned, of a
            Dask collection a Dask array with the same partitions.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Log-probabilities.
        """
        return np.asarray(log_softmax(self._log_posterior(X), axis=1))

    @by_chunks
    def transform(self, X: Any) -> FloatArray:
        """Return discriminant coordinates, in which the classes have covariance one.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows. Of a `Source`, an iterator of the results of its chunks is returned, of a
            Dask collection a Dask array with the same partitions.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            The classes differ most along the first column.
        """
        coordinates = self.discriminant_.coordinates(self._scores(X))
        return np.asarray(coordinates[:, : self._n_features_out])
