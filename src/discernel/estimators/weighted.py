"""Weights of rows and of classes, checked, as the estimators take them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples

from discernel.arrays.sample_weights import SampleWeights, check_sample_weight
from discernel.discriminant import class_factors
from discernel.estimators.rows import BaseRowEstimator
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel
from discernel.targets import ClassTarget, labels_without_weight

__all__ = ["BaseWeightedEstimator", "with_class_weight"]


class BaseWeightedEstimator(BaseRowEstimator):
    """Check rows and their weights.

    Rows of weight 0 are absent: nothing is ever checked, computed or kept of them.
    """

    #: Which rows of given training matrices have weight, and how many there are; None: all.
    _present: tuple[NDArray[np.intp], int] | None = None
    #: Which of the training rows have weight; None: all.
    _weighted_rows: NDArray[np.intp] | None = None
    #: Labels of which all rows have the weight 0; None: none.
    _labels_without_weight: NDArray[Any] | None = None

    def _validate_weighted(
        self, X: Any, y: Any, sample_weight: Any, *, labels: bool = True, **options: Any
    ) -> tuple[Any, Any, list[Kernel], SampleWeights | None]:
        """Return X, y and kernels as `_validate_training` does, and the weights of the rows.

        With ``labels``, y holds classes, also those that no row with weight has.
        """
        self._present = self._weighted_rows = self._labels_without_weight = None
        if sample_weight is None:
            return (*self._validate_training(X, y, **options), None)
        check_consistent_length(X, y)
        weights = check_sample_weight(sample_weight, _num_samples(X))
        present = np.flatnonzero(weights)
        if len(present) < len(weights):
            if labels and y is not None:
                self._labels_without_weight = labels_without_weight(y, present)
            X, y = self._without_absent(X, present), _safe_indexing(y, present)
            self._weighted_rows = present
        found = SampleWeights.of(weights[present])
        return (*self._validate_training(X, y, **options), found)

    def _among_given(self, target: ClassTarget, class_weight: Any) -> ClassTarget:
        """Return a target among all classes that were given, with the weights of these.

        Classes of which all rows have the weight 0 have no rows in it.
        """
        absent = self._labels_without_weight
        if absent is not None:
            target = target.among(np.union1d(target.classes, absent))
        return with_class_weight(target, class_weight)

    def _keep_labels(self, labels: NDArray[Any], rows: NDArray[np.intp] | None) -> None:
        """Keep the labels of training rows that predictions are made from.

        ``rows`` are their positions among those with weight; None where they are not known.
        """
        self._kept_labels = self._kept_rows = None
        if rows is not None:
            given = self._weighted_rows
            self._kept_labels, self._kept_rows = (
                labels[rows],
                rows if given is None else given[rows],
            )

    def _without_absent(self, X: Any, present: NDArray[np.intp]) -> Any:
        if not self.__sklearn_tags__().input_tags.pairwise:
            return _safe_indexing(X, present)
        matrices = np.asarray(X)
        if matrices.ndim < 2 or matrices.shape[0] != matrices.shape[1]:
            return X  # what is wrong with it is said later
        self._present = present, len(matrices)
        return matrices[np.ix_(present, present)]

    def _validate(
        self, X: Any, kernels: list[Kernel], y: Any = None, *, reset: bool = False, **options: Any
    ) -> Any:
        if not reset and self._present is not None:
            present, n_given = self._present
            if np.ndim(X) < 2 or np.shape(X)[1] != n_given:
                raise InvalidInputError(
                    "Precomputed kernels must be given between new rows and all training rows, "
                    f"here {n_given}, also those of weight 0. Got shape {np.shape(X)}."
                )
            X = np.asarray(X)[:, present]
        return super()._validate(X, kernels, y, reset=reset, **options)


def with_class_weight(target: ClassTarget, class_weight: Any) -> ClassTarget:
    """Return the target with weights multiplied by those of the classes, or raise a clear error.

    Parameters
    ----------
    target : ClassTarget
        The classes, and the weights of samples.
    class_weight : dict, "balanced" or None
        A number above 0 per class, 1 where not said; or what makes all classes weigh the same.
    """
    factors = class_factors(class_weight, target)
    if factors is None:
        return target
    values, known = factors[target.codes], target.sample_weights
    weights = SampleWeights.of(values if known is None else values * known.values)
    return replace(target, sample_weights=weights)
