"""The estimator that is explained, its scores as sums of kernels at rows, and the rows to explain.

Scores of discriminants are linear in kernels, and log-posteriors of Gaussian classes with one
covariance are linear in scores. So all of ``decision_function`` is Σ_i c_i Σ_j a_j k_i(x, x_j) + b,
and what a kernel adds to scores it adds to log-odds, exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import Buffers, FloatArray, is_sparse, n_rows
from discernel.bank import CombinedFeatures, CombinedKernel, Uncentered
from discernel.bank.base import Centering
from discernel.exceptions import InvalidInputError
from discernel.inspection.games import Game, add_linear, kernel_forms, sampled_game
from discernel.inspection.rows import dense, has_columns, typical_rows
from discernel.inspection.swapped import Swap, SwappedKernel, swap_features, swap_kernels
from discernel.kernels import Kernel
from discernel.kernels.columns import column_cells, column_indices
from discernel.kernels.features import FeatureMap, NystromMap
from discernel.kernels.weighted import WeightedKernels
from discernel.streams import Source
from discernel.streams.chunks import is_dask

__all__ = [
    "ExplainedRows",
    "FeaturePart",
    "KernelPart",
    "Part",
    "Scoring",
    "column_groups",
    "column_names",
    "expand",
    "explained_learner",
    "fitted_learner",
    "learner_rows",
]


# ---- the estimator -----------------------------------------------------------------------------


class _Place(NamedTuple):
    """The estimator that learned a kernel, and the steps of a pipeline before and after it."""

    learner: Any
    before: Pipeline | None
    after: list[Any]

    @classmethod
    def of(cls, estimator: Any) -> _Place:
        check_is_fitted(estimator)
        inner = getattr(estimator, "best_estimator_", estimator)
        steps = [step for _, step in inner.steps] if isinstance(inner, Pipeline) else [inner]
        places = [place for place, step in enumerate(steps) if hasattr(step, "kernel_weights_")]
        if not places:
            raise InvalidInputError(
                "The estimator must be one of discernel with kernel_weights_, or a pipeline or a "
                f"refitted search with one. Got {estimator!r}."
            )
        last = places[-1]
        return cls(steps[last], inner[:last] if last else None, steps[last + 1 :])


def fitted_learner(estimator: Any) -> Any:
    """Return the estimator that learned a kernel: itself, or the last such step of a pipeline.

    Raises
    ------
    NotFittedError
        If it is not fitted.
    InvalidInputError
        If there is no estimator of discernel in it.
    """
    return _Place.of(estimator).learner


def explained_learner(estimator: Any) -> Any:
    """Return the estimator whose predictions are explained: the last step of a pipeline."""
    learner, _, after = _Place.of(estimator)
    if after:
        raise InvalidInputError(
            "The last step of a pipeline is explained, which must be an estimator of discernel. "
            f"Got {type(after[-1]).__name__} after {type(learner).__name__}."
        )
    return learner


def learner_rows(estimator: Any, X: Any) -> Any:
    """Return rows as the learner in an estimator is given them, by the steps before it."""
    before = _Place.of(estimator).before
    return X if before is None else before.transform(X)


def column_names(estimator: Any) -> list[str]:
    """Return the names of the columns that the learner in an estimator was given.

    Those of a dataframe, through the steps of a pipeline before it where these have names for what
    they return; else "column 0", "column 1", ...
    """
    learner, before, _ = _Place.of(estimator)
    names = getattr(learner, "feature_names_in_", None)
    if names is None and before is not None and hasattr(before, "feature_names_in_"):
        try:
            names = before.get_feature_names_out()
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


# ---- scores ------------------------------------------------------------------------------------


class Part(ABC):
    """Functions of a row that are linear in some terms of it, and a part of its scores."""

    #: What the terms are multiplied by, of shape (n_terms, n_outputs).
    coef: FloatArray

    @property
    @abstractmethod
    def kernels(self) -> list[Kernel]:
        """The kernels that the terms are of."""

    @abstractmethod
    def values(self, X: Any) -> FloatArray:
        """Return the terms of rows, of shape (n_rows, n_terms)."""

    @abstractmethod
    def __call__(self, X: Any) -> FloatArray:
        """Return the terms of rows times ``coef``, of shape (n_rows, n_outputs)."""

    def by_kernel(self) -> list[Any]:
        """Return one part per kernel."""
        return [self]

    @abstractmethod
    def games(self, player: NDArray[np.intp]) -> Iterator[Game]:
        """Yield what the part, of one kernel, is a sum of, player by player."""

    @abstractmethod
    def swaps(self, n_columns: int) -> Callable[[Any, Buffers], Swap]:
        """Return a function of rows and buffers: how the terms change with columns of the rows."""

    @property
    def thread_safe(self) -> bool:
        """Whether several threads may compute the terms."""
        return False


@dataclass(frozen=True)
class KernelPart(Part):
    """Sums of one kernel at the same rows: Σ_j coef_j k(x, z_j).

    Attributes
    ----------
    kernel : WeightedKernels
        The kernel, a weighted sum.
    rows : array of shape (n_rows, n_features) or None
        The rows z_j; None for precomputed kernels.
    coef : ndarray of shape (n_rows, n_outputs)
        The coefficients.
    centered : bool
        Whether they sum to 0, so that a constant of the kernel does not matter.
    """

    kernel: WeightedKernels
    rows: Any
    coef: FloatArray
    centered: bool

    @property
    def kernels(self) -> list[Kernel]:
        return self.kernel.kernels

    def values(self, X: Any) -> FloatArray:
        if self.rows is not None:
            return self.kernel(X, self.rows)
        pairs = zip(self.kernel.coefficients, self.kernels, strict=True)
        return np.asarray(sum(factor * kernel(X) for factor, kernel in pairs))

    def __call__(self, X: Any) -> FloatArray:
        # Without centring of rows: its coefficients are centred, so that digits are kept.
        nothing = Centering(np.zeros(len(self.coef)), 0.0) if self.centered else Uncentered()
        whole = CombinedKernel(self.kernels, self.kernel.coefficients, self.rows, nothing)
        return whole.product(X, self.coef)

    def by_kernel(self) -> list[Any]:
        one = np.ones(1)
        return [
            KernelPart(WeightedKernels([kernel], one), self.rows, factor * self.coef, self.centered)
            for kernel, factor in zip(self.kernels, self.kernel.coefficients, strict=True)
        ]

    def games(self, player: NDArray[np.intp]) -> Iterator[Game]:
        for form in kernel_forms(self.kernels[0], len(player)):
            yield form.game(self, player)

    def swaps(self, n_columns: int) -> Callable[[Any, Buffers], Swap]:
        return partial(swap_kernels, SwappedKernel(self, n_columns))

    @property
    def thread_safe(self) -> bool:
        return all(kernel.thread_safe for kernel in self.kernels)


@dataclass(frozen=True)
class FeaturePart(Part):
    """A linear function of the features of a kernel.

    Attributes
    ----------
    kernel : Kernel
        What the features are of.
    features : FeatureMap
        From rows to features.
    coef : ndarray of shape (rank, n_outputs)
        What these are multiplied by.
    """

    kernel: Kernel
    features: FeatureMap
    coef: FloatArray

    @property
    def kernels(self) -> list[Kernel]:
        return [self.kernel]

    def values(self, X: Any) -> FloatArray:
        return np.asarray(self.features(X))

    def __call__(self, X: Any) -> FloatArray:
        return self.features.product(X, self.coef)

    def games(self, player: NDArray[np.intp]) -> Iterator[Game]:
        n = len(player)
        if all(form.is_linear for form in kernel_forms(self.kernel, n)):
            yield partial(add_linear, self(np.eye(n)) - self(np.zeros((1, n))), player)
        else:
            yield sampled_game(self, self.kernel, player)

    def swaps(self, n_columns: int) -> Callable[[Any, Buffers], Swap]:
        return partial(swap_features, self)


def expand(combined: CombinedKernel | CombinedFeatures, coef: FloatArray) -> Iterator[Any]:
    """Yield the parts that ``combined.product(X, coef)`` is a sum of, but for a constant.

    Parameters
    ----------
    combined : CombinedKernel or CombinedFeatures
        The learned kernel between new rows and those of training.
    coef : ndarray of shape (n_terms, n_outputs)
        What it is multiplied by.
    """
    if isinstance(combined, CombinedKernel):
        # Centring is a subtraction: from the coefficients, and a constant that no row changes.
        coef, _ = combined.centering.of_product(coef)
        kernel = WeightedKernels(combined.kernels, combined.coefficients)
        yield KernelPart(kernel, combined.rows, coef, combined.centering.ignores_constants)
        return
    first = 0
    for factor, one in zip(combined.factors, combined.maps, strict=True):
        own = factor * coef[first : first + one.rank]
        first += one.rank
        if isinstance(one, NystromMap):  # features of landmarks are sums of kernels at these
            yield KernelPart(one.kernel, one.landmarks, one.expansion(own), False)
        else:
            yield FeaturePart(one.kernel, one, own)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Scoring:
    """Scores of a fitted estimator: what its kernels are multiplied by, and a constant.

    Attributes
    ----------
    combined : CombinedKernel or CombinedFeatures
        The learned kernel between new rows and those of training.
    coef : ndarray of shape (n_terms, n_outputs)
        What it is multiplied by.
    constant : ndarray of shape (n_outputs,)
    classes : ndarray of shape (n_classes,) or None
        The labels that can be predicted, so none of which all rows have the weight 0; None for
        numbers that are predicted. Two classes have one output, the log-odds of the second. More
        have one each, less the mean over the classes.
    """

    combined: CombinedKernel | CombinedFeatures
    coef: FloatArray
    constant: FloatArray
    classes: NDArray[Any] | None

    @classmethod
    def of(cls, learner: Any) -> Scoring:
        """Return the scoring of a fitted estimator, or raise a clear error."""
        model = learner.model_
        linear_scores = getattr(model.head, "linear_scores", None)
        if linear_scores is None:
            raise InvalidInputError(
                "Predictions are explained of KernelDiscriminant, MultipleKernelDiscriminant, "
                "MultipleKernelRidge and AKFDClassifier, or a pipeline that ends in one. Got "
                f"{type(learner).__name__}. Of several labels, fit one of these per label."
            )
        coef, constant, seen = linear_scores(model.coef, model.intercept)
        classes = None if seen is None else model.classes[seen]
        if classes is not None and len(classes) > 2:
            coef = coef - coef.mean(axis=1, keepdims=True)
            constant = constant - constant.mean()
        elif classes is not None and coef.shape[1] == 2:
            coef, constant = coef[:, 1:] - coef[:, :1], constant[1:] - constant[:1]
        return cls(model.kernel, np.ascontiguousarray(coef), constant, classes)

    def __call__(self, X: Any) -> FloatArray:
        """Return the scores of rows as the kernels take them, of shape (n_rows, n_outputs)."""
        return np.asarray(self.combined.product(X, self.coef) + self.constant)

    @property
    def rows(self) -> Any:
        """The training rows that are kept: all, or landmarks; None if there are none.

        Landmarks of several maps are those of the largest.
        """
        if isinstance(self.combined, CombinedKernel):
            return self.combined.rows
        kept = [one.landmarks for one in self.combined.maps if isinstance(one, NystromMap)]
        return max(kept, key=n_rows) if kept else None


# ---- rows --------------------------------------------------------------------------------------


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
        reader = learner.model_.reader
        rows = reader.read(prepared)
        is_table = has_columns(rows) and not reader.kernels[0].precomputed
        if background is not None:
            background = reader.read(learner_rows(estimator, background))
        elif is_table:
            background = _typical(reader, scoring)
        names = column_names(estimator) if is_table else []
        shown = X if _keeps_columns(estimator) else prepared
        return cls(learner, scoring, shown, rows, background, names)

    @cached_property
    def scores(self) -> FloatArray:
        """The scores, of shape (n_rows, n_outputs)."""
        return self.scoring(self.rows)

    @cached_property
    def parts(self) -> list[Part]:
        """What the scores are a sum of, one part per kernel, but for a constant."""
        whole = expand(self.scoring.combined, self.scoring.coef)
        return [one for part in whole for one in part.by_kernel()]

    @property
    def player(self) -> NDArray[np.intp]:
        """The column that was given which each column of the kernels is of."""
        encoder = self.learner.model_.reader.encoder
        return np.arange(self.rows.shape[1]) if encoder is None else encoder.source

    @property
    def cells(self) -> NDArray[np.object_] | None:
        """The cells as they were given, of shape (n_rows, n_columns); None without columns."""
        if not self.column_names:
            return None
        X = self.shown
        if not hasattr(type(X), "columns"):
            return np.asarray(dense(X) if is_sparse(X) else X, dtype=object)
        cells = np.empty(X.shape, dtype=object)
        for position in range(X.shape[1]):
            cells[:, position] = column_cells(X, position)
        return cells


def _keeps_columns(estimator: Any) -> bool:
    """Whether the steps before the last, if any, return the columns they are given."""
    before = _Place.of(estimator).before
    steps = [] if before is None else [step for _, step in before.steps]
    return all(isinstance(step, OneToOneFeatureMixin) for step in steps if step != "passthrough")


def _typical(reader: Any, scoring: Scoring) -> Any:
    """Return a typical row of training, or raise a clear error where none is known."""
    if reader.medians is not None:
        return reader.medians[None]
    if scoring.rows is None:
        raise InvalidInputError(
            "A model of exact features keeps no training row to compare with. Give some rows as "
            "background."
        )
    return typical_rows(scoring.rows, reader.encoder)
