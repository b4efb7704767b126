"""The estimator to explain, and the scores behind its predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import FloatArray, as_dense, is_frame
from discernel.bank import CombinedFeatures, CombinedKernel, TargetKernels
from discernel.exceptions import InvalidInputError
from discernel.kernels.columns import column_cells, column_indices
from discernel.model import Model
from discernel.model.parts import ScorePart, score_parts
from discernel.rows.encoder import TableEncoder

# ---- the estimator -----------------------------------------------------------------------------


def pipeline_steps(estimator: Any) -> list[Any]:
    """Return the steps of a pipeline, or a list with any other estimator."""
    return [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]


def first_encoder(estimator: Any) -> TableEncoder | None:
    """Return the first step of a pipeline if it is a `TableEncoder`; otherwise None."""
    first = next(step for step in pipeline_steps(estimator) if step not in (None, "passthrough"))
    return first if isinstance(first, TableEncoder) else None


def input_encoder(estimator: Any) -> TableEncoder | None:
    """Return the encoder of the table: the first step of a pipeline, or part of the estimator."""
    return first_encoder(estimator) or pipeline_steps(estimator)[-1].model_.reader.encoder


class Explained(NamedTuple):
    """A fitted estimator with a learned kernel, and the pipeline steps before it."""

    learner: Any
    before: Pipeline | None

    @classmethod
    def of(cls, estimator: Any, *, predicts: bool = True) -> Explained:
        """Return the estimator, or the last step of a pipeline with a learned kernel, or raise.

        With ``predicts``, that step must be the last one of the pipeline.
        """
        check_is_fitted(estimator)
        inner = getattr(estimator, "best_estimator_", estimator)
        steps = pipeline_steps(inner)
        places = [place for place, step in enumerate(steps) if hasattr(step, "kernel_weights_")]
        if not places:
            raise InvalidInputError(
                "The estimator must be one of discernel with kernel_weights_, or a pipeline or a "
                f"refitted search with one. Got {estimator!r}."
            )
        last, learner = places[-1], steps[places[-1]]
        if predicts and steps[-1] is not learner:
            raise InvalidInputError(
                "The last step of a pipeline is explained and must be an estimator of discernel. "
                f"Got {type(steps[-1]).__name__} after {type(learner).__name__}."
            )
        return cls(learner, inner[:last] if last else None)

    @property
    def model(self) -> Model:
        """The model of the estimator."""
        return self.learner.model_  # type: ignore[no-any-return]

    @property
    def learned(self) -> Any:
        """The `LearnedKernel` of the estimator; raises an error if there is none."""
        found = self.model.facts.learned
        if found is None:
            raise InvalidInputError(
                "The estimator must have a learned_kernel_, as KernelDiscriminant, "
                "MultipleKernelDiscriminant and MultipleKernelRidge have. Got "
                f"{self.learner!r}, which has none."
            )
        return found

    def prepare(self, X: Any) -> Any:
        """Return rows transformed by the earlier steps of the pipeline."""
        return X if self.before is None else self.before.transform(X)

    def read(self, X: Any) -> Any:
        """Return rows as input of the kernels, or raise an error."""
        return self.model.reader.read(self.prepare(X))

    @property
    def column_names(self) -> list[str]:
        """Names of the estimator's input columns.

        Names of a DataFrame, or names returned by the earlier steps of a pipeline; otherwise
        "column 0", "column 1", ...
        """
        reader, before = self.model.reader, self.before
        names = reader.names
        if names is None and before is not None and hasattr(before, "feature_names_in_"):
            with suppress(AttributeError, ValueError):  # a step without output names
                names = before.get_feature_names_out()
        if names is None:
            return [f"column {i}" for i in range(reader.n_features or 0)]
        return [str(name) for name in names]

    def cells(self, X: Any) -> NDArray[np.object_]:
        """Return the cells of rows for display, of shape (n_rows, n_columns).

        These are the input of the pipeline if its steps keep the columns, and else the input of
        the estimator.
        """
        steps = [] if self.before is None else pipeline_steps(self.before)
        changed = [step for step in steps if step != "passthrough"]
        if not all(isinstance(step, OneToOneFeatureMixin) for step in changed):
            X = self.prepare(X)
        if not is_frame(X):
            return np.asarray(as_dense(X), dtype=object)
        cells = np.empty(X.shape, dtype=object)
        for position in range(X.shape[1]):
            cells[:, position] = column_cells(X, position)
        return cells


def fitted_learner(estimator: Any) -> Any:
    """Return the estimator with a learned kernel: the given one, or the last one of a pipeline."""
    return Explained.of(estimator, predicts=False).learner


def column_groups(
    groups: Mapping[str, Any], names: Sequence[str]
) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of groups of columns, and the group of each column, or raise an error.

    The columns of a group are names or positions, as in ``kernel.on``. Columns without a group
    form the group "other columns".
    """
    if not names:
        raise InvalidInputError(
            "groups need rows with columns. Got precomputed kernels, or rows that are no table. "
            "Omit groups: every kernel is then a source."
        )
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


# ---- scores ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scoring:
    """Scores of a fitted estimator: its kernel, coefficients and a constant.

    Attributes
    ----------
    combined : CombinedKernel, CombinedFeatures or TargetKernels
        The learned kernel between new rows and training rows.
    coef : ndarray of shape (n_terms, n_outputs)
        Coefficients of the kernel.
    constant : ndarray of shape (n_outputs,)
        Constant term.
    classes : ndarray of shape (n_classes,) or None
        Labels that can be predicted, without classes whose rows all have weight 0; None for a
        regression. Two classes have one output, the log-odds of the second class. With more
        classes there is one output per class, minus the mean over the classes.
    """

    combined: CombinedKernel | CombinedFeatures | TargetKernels
    coef: FloatArray
    constant: FloatArray
    classes: NDArray[Any] | None

    @classmethod
    def of(cls, model: Model) -> Scoring:
        """Return the scoring of a fitted model, or raise an error."""
        linear = model.head.linear_scores(model.coef, model.intercept)
        if linear is None:
            raise InvalidInputError(
                "Explanations need a KernelDiscriminant, MultipleKernelDiscriminant, "
                "MultipleKernelRidge or AKFDClassifier, or a pipeline that ends with one. Got "
                f"{model.reader.estimator}. With several labels, fit one estimator per label."
            )
        coef, constant, seen = linear
        assert model.kernel is not None
        classes = None if seen is None or model.classes is None else model.classes[seen]
        if classes is not None and len(classes) > 2:
            coef = coef - coef.mean(axis=1, keepdims=True)
            constant = constant - constant.mean()
        elif classes is not None and coef.shape[1] == 2:
            coef, constant = coef[:, 1:] - coef[:, :1], constant[1:] - constant[:1]
        return cls(model.kernel, np.ascontiguousarray(coef), constant, classes)

    def __call__(self, X: Any) -> FloatArray:
        """Return scores of shape (n_rows, n_outputs) for rows from `Explained.read`."""
        return np.asarray(self.combined.product(X, self.coef) + self.constant)

    @property
    def parts(self) -> list[ScorePart]:
        """The parts that add up to the scores, up to a constant."""
        return score_parts(self.combined, self.coef)[0]
