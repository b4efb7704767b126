"""The rows that are explained, as the model sees them, and what they are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.pipeline import Pipeline

from discernel.arrays import FloatArray
from discernel.exceptions import InvalidInputError
from discernel.inspection.learner import column_names, fitted_learner, learner_rows
from discernel.inspection.reference import dense, has_columns, typical_rows
from discernel.inspection.scoring import Part, Scoring
from discernel.kernels.columns import column_cells
from discernel.streams import Source
from discernel.streams.chunks import is_dask

__all__ = ["ExplainedRows", "explained_learner"]


def explained_learner(estimator: Any) -> Any:
    """Return the estimator whose predictions are explained, or raise a clear error.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted, of discernel; of a pipeline its last step is explained.
    """
    learner = fitted_learner(estimator)
    inner = getattr(estimator, "best_estimator_", estimator)
    if isinstance(inner, Pipeline) and inner.steps[-1][1] is not learner:
        raise InvalidInputError(
            "The last step of a pipeline is explained, which must be an estimator of discernel. "
            f"Got {type(inner.steps[-1][1]).__name__} after {type(learner).__name__}."
        )
    return learner


@dataclass(frozen=True)
class ExplainedRows:
    """Rows of a fitted estimator.

    Attributes
    ----------
    learner : estimator
        The one that predicts.
    scoring : Scoring
        Its scores as a sum of kernels.
    shown : array-like
        The rows as a person knows them: as they were given, where the steps of a pipeline change
        numbers but no columns, else as the learner is given them.
    rows : array, CSR or Table
        The rows as its kernels take them.
    background : array, CSR or Table, or None
        What they are compared with, as kernels take it; None if there is no such row.
    column_names : list of str
        The columns that were given; empty where rows have none.
    """

    learner: Any
    scoring: Scoring
    shown: Any
    rows: Any
    background: Any
    column_names: list[str]

    @classmethod
    def of(cls, estimator: Any, X: Any, background: Any = None) -> ExplainedRows:
        """Return the rows, checked, or raise a clear error.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted.
        X : array-like of shape (n_rows, n_features)
            The rows.
        background : array-like of shape (n_background, n_features), optional
            What they are compared with; by default a typical row.
        """
        if isinstance(X, Source) or is_dask(X):
            raise InvalidInputError(
                "Rows to explain must be in memory. Got rows in chunks; give some of them, as an "
                "array or a dataframe."
            )
        learner = explained_learner(estimator)
        scoring, prepared = Scoring.of(learner), learner_rows(estimator, X)
        rows = learner.model_.reader.read(prepared)
        is_table = has_columns(rows) and not learner.kernels_[0].precomputed
        if background is not None:
            given = learner_rows(estimator, background)
            background = learner.model_.reader.read(given)
        elif is_table:
            background = _typical(learner, scoring)
        names = column_names(estimator) if is_table else []
        shown = X if _keeps_columns(estimator) else prepared
        return cls(learner, scoring, shown, rows, background, names)

    @cached_property
    def scores(self) -> FloatArray:
        """The scores, of shape (n_rows, n_outputs)."""
        return self.scoring(self.rows)

    @cached_property
    def parts(self) -> list[Part]:
        """What the scores are a sum of."""
        return self.scoring.parts()

    @property
    def player(self) -> NDArray[np.intp]:
        """The column that was given which each column of the kernels is of."""
        encoder = self.learner.encoder_
        return np.arange(self.rows.shape[1]) if encoder is None else encoder.source

    @property
    def cells(self) -> NDArray[np.object_] | None:
        """The cells as they were given, of shape (n_rows, n_columns); None without columns."""
        if not self.column_names:
            return None
        X = self.shown
        if not hasattr(type(X), "columns"):
            return np.asarray(dense(X) if hasattr(X, "tocsr") else X, dtype=object)
        cells = np.empty(X.shape, dtype=object)
        for position in range(X.shape[1]):
            cells[:, position] = column_cells(X, position)
        return cells


def _keeps_columns(estimator: Any) -> bool:
    """Whether the steps before the last, if any, return the columns they are given."""
    inner = getattr(estimator, "best_estimator_", estimator)
    steps = [step for _, step in inner.steps[:-1]] if isinstance(inner, Pipeline) else []
    return all(isinstance(step, OneToOneFeatureMixin) for step in steps if step != "passthrough")


def _typical(learner: Any, scoring: Scoring) -> Any:
    """Return a typical row of training, or raise a clear error where none is known."""
    medians = learner.model_.reader.medians
    if medians is not None:
        return medians[None]
    if scoring.rows is None:
        raise InvalidInputError(
            "A model of exact features keeps no training row to compare with. Give some rows as "
            "background."
        )
    return typical_rows(scoring.rows, learner.encoder_)
