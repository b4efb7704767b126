"""Who learned the kernel, whatever it is wrapped in; the names of its columns and sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from discernel.exceptions import InvalidInputError
from discernel.kernels.columns import column_indices

__all__ = [
    "column_groups",
    "column_names",
    "fitted_learner",
    "learner_rows",
]


def fitted_learner(estimator: Any) -> Any:
    """Return the estimator that learned a kernel: itself, or the last such step of a pipeline.

    Raises
    ------
    NotFittedError
        If it is not fitted.
    InvalidInputError
        If there is no estimator of discernel in it.
    """
    check_is_fitted(estimator)
    inner = getattr(estimator, "best_estimator_", estimator)
    steps = [step for _, step in inner.steps] if isinstance(inner, Pipeline) else [inner]
    learners = [step for step in steps if hasattr(step, "kernel_weights_")]
    if not learners:
        raise InvalidInputError(
            "The estimator must be one of discernel with kernel_weights_, or a pipeline or a "
            f"refitted search with one. Got {estimator!r}."
        )
    return learners[-1]


def learner_rows(estimator: Any, X: Any) -> Any:
    """Return rows as the learner in an estimator is given them, by the steps before it."""
    learner = fitted_learner(estimator)
    inner = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(inner, Pipeline):
        return X
    position = [step for _, step in inner.steps].index(learner)
    return inner[:position].transform(X) if position else X


def column_names(estimator: Any) -> list[str]:
    """Return the names of the columns that the learner in an estimator was given.

    Those of a dataframe, through the steps of a pipeline before it where these have names for what
    they return; else "column 0", "column 1", ...
    """
    learner = fitted_learner(estimator)
    inner = getattr(estimator, "best_estimator_", estimator)
    names = getattr(learner, "feature_names_in_", None)
    if names is None and isinstance(inner, Pipeline) and hasattr(inner, "feature_names_in_"):
        position = [step for _, step in inner.steps].index(learner)
        try:
            names = inner[:position].get_feature_names_out()
        except (AttributeError, ValueError):  # a step that has no names to give
            names = None
    if names is None:
        names = [f"column {i}" for i in range(learner.n_features_in_)]
    return [str(name) for name in names]


def column_groups(
    groups: Mapping[str, Any], names: Sequence[str]
) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of groups of columns, and the group of each column.

    Columns of no group make one more, "other columns".

    Parameters
    ----------
    groups : mapping of str to columns
        The columns of each group, by name or position, as kernels take them in ``.on``.
    names : sequence of str
        The names of all columns.
    """
    if not (isinstance(groups, Mapping) and groups):
        raise InvalidInputError(
            "groups must be a dictionary of names to columns, such as "
            f"{{'clinical': ['age', 'bmi'], 'lab': slice(2, 9)}}. Got {groups!r}."
        )
    frame = SimpleNamespace(columns=list(names), shape=(0, len(names)))
    found = np.full(len(names), -1, dtype=np.intp)
    for position, (group, columns) in enumerate(groups.items()):
        indices = column_indices(columns, frame)
        taken = indices[found[indices] >= 0]
        if len(taken):
            raise InvalidInputError(
                f"Every column must be in one group. {names[taken[0]]!r} is in {group!r} and in "
                f"{list(groups)[found[taken[0]]]!r}."
            )
        found[indices] = position
    labels = [str(name) for name in groups]
    if (found < 0).any():
        labels.append("other columns")
        found[found < 0] = len(labels) - 1
    return labels, found
