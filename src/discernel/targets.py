"""Targets: class labels, numbers or label sets, as columns of numbers to fit.

With sample weights ω, all columns are multiplied by √ω, like the kernel matrices of a bank; see
`discernel.arrays.sample_weights`. Rows may have groups, which are held out together; see
`discernel.arrays.groups`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from discernel.arrays import FloatArray, round_keys
from discernel.arrays.groups import Groups
from discernel.arrays.sample_weights import SampleWeights, effective_number, row_weights
from discernel.exceptions import InvalidInputError, listed

#: Lower limit of the share of a class or variance that remains when one row is left out.
SMALLEST_REST = 1e-3
#: Limits of the differences of numbers to predict: their squares must be numbers.
RANGES = 1e-100, 1e100
#: Up to so many rows, rows are left out together with rows of the other classes; the smallest and
#: largest number of such groups.
_MOST_IN_GROUPS, _GROUPS = 10_000, (5, 20)


class Target(ABC):
    """The classes, label sets or numbers of a training set."""

    #: Kind of the target, for error messages.
    kind: ClassVar[str]
    #: Whether scores are predictions, and are not converted to probabilities of classes.
    predicts_scores: ClassVar[bool] = False
    #: Sample weights as given, for `row_weights`; None for equal ones.
    sample_weights: SampleWeights | None
    #: Groups of rows that are held out together; None if each row is held out alone.
    groups: Groups | None

    @property
    @abstractmethod
    def labels(self) -> FloatArray:
        """Labels as numbers, of shape (n_samples, n_columns), which do not depend on other rows."""

    @property
    @abstractmethod
    def scores(self) -> FloatArray:
        """The columns to fit, centred and with mean square 1, of shape (n_samples, n_columns).

        With sample weights ω, the means are weighted, and rows are then multiplied by √ω.
        """

    @property
    def n_samples(self) -> int:
        """The number of samples."""
        return len(self.labels)

    @property
    def indicator(self) -> FloatArray:
        """Columns with the same outer product as `scores`, in the notation of the papers."""
        return self.scores

    @property
    def n_classes(self) -> int:
        """The number of classes; 0 for targets without classes."""
        return 0

    @property
    def is_complete(self) -> bool:
        """Whether there are samples, and some of every class."""
        return self.n_samples > 0

    @property
    def strata(self) -> NDArray[np.intp]:
        """The class of each sample as an integer from 0; all 0 for targets without classes."""
        return np.zeros(self.n_samples, dtype=np.intp)

    @property
    def own_sizes(self) -> FloatArray:
        """The size of the class of each sample; 1 for targets without classes."""
        return np.ones(self.n_samples)

    @property
    def n_left_out_groups(self) -> int | None:
        """The number of groups of `left_out_groups`; None if each row is left out alone."""
        return None if self.groups is None else len(self.groups)

    def left_out_groups(self, keys: FloatArray) -> Groups | None:
        """Return the groups in which rows are left out to score them; None: each row alone.

        Parameters
        ----------
        keys : ndarray of shape (n_samples, n_columns)
            Numbers that distinguish the rows.
        """
        return self.groups

    @cached_property
    def row_weights(self) -> SampleWeights:
        """The sample weights; all 1 if none are given."""
        return row_weights(self.sample_weights, self.n_samples)

    @property
    def effective(self) -> float:
        """The effective number of rows, (Σω)²/Σω², or of groups with the sums of their weights."""
        weights = self.row_weights.values
        return effective_number(weights if self.groups is None else self.groups.sums(weights))

    @property
    def truth(self) -> FloatArray:
        """The scores, not multiplied by √ω."""
        return self.row_weights.unscale(self.scores)

    def _of(self, rows: NDArray[np.intp]) -> tuple[SampleWeights, Groups | None]:
        """Return sample weights and groups of some samples."""
        groups = None if self.groups is None else self.groups.subset(rows)
        return self.row_weights.subset(rows), groups

    @abstractmethod
    def subset(self, rows: NDArray[np.intp]) -> Target:
        """Return the target of some samples, without classes or labels that they lack."""

    def part(self, rows: NDArray[np.intp]) -> Target:
        """Return the target of some samples, with all classes, including empty ones."""
        return self.subset(rows)

    @abstractmethod
    def draw(self, share: float, rng: np.random.RandomState) -> NDArray[np.intp]:
        """Return the sorted positions of a random share of the samples, with all classes."""

    def shuffled(self, n_drawn: int, rng: np.random.RandomState) -> NDArray[np.intp]:
        """Return all samples in a random order, of which the first are drawn; groups together."""
        if self.groups is None:
            return rng.permutation(self.n_samples)
        drawn = self.groups.draw(self.strata, n_drawn, rng)
        return np.concatenate([drawn, np.setdiff1d(np.arange(self.n_samples), drawn)])


def _encode_labels(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes of labels and the position of each, or raise an error for other values."""
    try:
        kind = type_of_target(y)
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError:  # bytes, or labels without an order
        kind = "unknown"
    if kind == "unknown" and y.dtype.kind in "OS":
        kinds = listed(sorted({type(label).__name__ for label in y.tolist()}), form=str)
        raise InvalidInputError(
            "Unknown label type: labels must be text, or an array of numbers or booleans. Got "
            f"objects of type {kinds}. Convert them, for example with y.astype(str)."
        )
    if kind not in ("binary", "multiclass"):
        try:
            check_classification_targets(y)
        except ValueError as error:
            raise InvalidInputError(
                f"{error} To predict numbers, use MultipleKernelRidge."
            ) from None
    return classes, codes


@dataclass(frozen=True, eq=False)
class ClassTarget(Target):
    """The classes of a training set.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The class labels, sorted.
    codes : ndarray of shape (n_samples,)
        The class of each sample as a position in ``classes``.
    sample_weights : SampleWeights, optional
        Sample weights.
    groups : Groups, optional
        Groups of rows that are held out together.
    """

    classes: NDArray[Any]
    codes: NDArray[np.intp]
    sample_weights: SampleWeights | None = None
    groups: Groups | None = None
    kind: ClassVar[str] = "classes"

    @classmethod
    def from_labels(
        cls,
        y: Any,
        sample_weights: SampleWeights | None = None,
        groups: Groups | None = None,
        *,
        least: int = 2,
    ) -> ClassTarget:
        """Return the target of class labels, or raise an error for fewer classes than ``least``."""
        y = np.asarray(y)
        if y.ndim != 1:
            raise InvalidInputError(
                f"y should be a 1d array of labels, one per sample. Got shape {y.shape}."
            )
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise InvalidInputError(
                "The labels must not contain NaN or infinity. Got "
                f"{y[~np.isfinite(y)][0]} at position {np.flatnonzero(~np.isfinite(y))[0]}."
            )
        classes, codes = _encode_labels(y)
        if len(classes) < least:
            raise InvalidInputError(
                "There must be at least two classes to separate. Got 1 class: "
                f"{classes.tolist()}. y may be filtered too far, or sample_weight be 0 for all "
                "rows of the other classes."
            )
        if len(classes) >= len(y):
            raise InvalidInputError(
                "There must be more samples than classes. Got n_samples = "
                f"{len(y)} and {len(classes)} classes. Are the labels continuous?"
            )
        found = cls(classes, codes, sample_weights, groups)
        if groups is not None and len(classes) > 1 and (found.holders < 2).all():
            raise InvalidInputError(
                "At least one class must be in two groups, so that its rows can be predicted from "
                f"other groups. Got {len(groups)} groups, and each of the {len(classes)} classes "
                "in one of them. Are the groups the classes?"
            )
        return found

    def subset(self, rows: NDArray[np.intp]) -> ClassTarget:
        """Return the target of some samples, without classes that they lack."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        return ClassTarget(self.classes[present], codes, *self._of(rows))

    def part(self, rows: NDArray[np.intp]) -> ClassTarget:
        return ClassTarget(self.classes, self.codes[rows], *self._of(rows))

    def among(self, classes: NDArray[Any]) -> ClassTarget:
        """Return the same samples with a longer list of classes, which contains their own."""
        codes = np.searchsorted(classes, self.classes)[self.codes]
        return ClassTarget(classes, codes, self.row_weights, self.groups)

    @property
    def seen(self) -> ClassTarget:
        """The same samples, without empty classes."""
        return self if self.is_complete else self.among(self.classes[self.counts > 0])

    def draw(self, share: float, rng: np.random.RandomState) -> NDArray[np.intp]:
        """Return the sorted positions of a random share of each class, at least two samples."""
        if self.groups is not None:
            n_drawn = _count(share, self.n_samples)
            return np.sort(self.shuffled(n_drawn, rng)[:n_drawn])
        order = by_appearance(self.codes)  # so that the names of the classes do not matter
        chosen = [
            rng.permutation(np.flatnonzero(order == code))[: max(2, round(share * count))]
            for code, count in enumerate(np.bincount(order))
        ]
        return np.sort(np.concatenate(chosen))

    @property
    def n_left_out_groups(self) -> int | None:
        if self.groups is not None or self.n_samples > _MOST_IN_GROUPS or self.n_classes < 2:
            return super().n_left_out_groups
        smallest = self.counts[self.counts > 0].min()
        return int(min(np.clip(smallest, *_GROUPS), self.counts.max()))

    def left_out_groups(self, keys: FloatArray) -> Groups | None:
        """Return the given groups or, of few rows, groups with the same share of every class.

        Without one row, its class is rarer than it was, and the score of the row moves away from
        it. Where two classes have the same distribution, these moves alone would tell them apart.
        A group has one row in 20 of each class, or one row of the smallest class. With many rows
        the moves are small, and each row is left out alone.
        """
        n_groups = self.n_left_out_groups
        if self.groups is not None or n_groups is None:
            return self.groups
        # Shuffled together: two near rows of two classes have the same distance from their means,
        # and would be in one group if every class was shuffled in the same way.
        order = np.random.RandomState(0).permutation(_order(keys, self.codes))
        groups = np.empty(self.n_samples, dtype=np.intp)
        for code in range(self.n_classes):
            rows = order[self.codes[order] == code]
            groups[rows] = np.arange(len(rows)) % n_groups
        return Groups(groups)

    @property
    def labels(self) -> FloatArray:
        """The codes, as a column of numbers."""
        return self.codes[:, None].astype(np.float64)

    @property
    def strata(self) -> NDArray[np.intp]:
        """The codes."""
        return self.codes

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.classes)

    @property
    def is_complete(self) -> bool:
        return bool(self.counts.all())

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """The number of samples of each class, of shape (n_classes,)."""
        return np.bincount(self.codes, minlength=self.n_classes)

    @cached_property
    def holders(self) -> NDArray[np.intp]:
        """The number of groups that have samples of each class; `counts` without groups."""
        if self.groups is None:
            return self.counts
        held = np.unique(np.column_stack([self.groups.numbers, self.codes]), axis=0)[:, 1]
        return np.bincount(held, minlength=self.n_classes)

    @cached_property
    def sizes(self) -> NDArray[Any]:
        """The sum of the sample weights of each class; `counts` without weights."""
        return np.bincount(self.codes, self.row_weights.values, minlength=self.n_classes)

    @property
    def own_sizes(self) -> FloatArray:
        """The size of the class of each sample."""
        return np.asarray(self.sizes[self.codes], dtype=np.float64)

    @cached_property
    def shares(self) -> FloatArray:
        """The share of each class in the sum of the sample weights."""
        return np.asarray(self.sizes / self.row_weights.total)

    @cached_property
    def membership(self) -> FloatArray:
        """One-hot encoded classes, of shape (n_samples, n_classes), with rows times √ω."""
        return self.row_weights.scale(np.eye(self.n_classes)[self.codes])

    @cached_property
    def indicator(self) -> FloatArray:
        """The matrix H of [Ye08]_, Eq. (24), of shape (n_samples, n_classes)."""
        roots = np.sqrt(self.shares)
        return self.membership / roots - np.outer(self.row_weights.roots, roots)

    @cached_property
    def scores(self) -> FloatArray:
        """T with TTᵀ = HHᵀ and only n_classes − 1 columns, each of length √n_samples.

        H has rank n_classes − 1, because H√share = 0. Whatever depends on HHᵀ alone is cheaper
        to compute with T, which has one column for two classes.
        """
        return np.asarray(self.indicator @ self._basis)

    @cached_property
    def _basis(self) -> FloatArray:
        """Orthonormal columns that are orthogonal to √share, made in the order of the shares.

        Scores are then the same for other names of the classes, unless their shares are equal.
        """
        order = np.argsort(self.shares, kind="stable")
        null = np.sqrt(self.shares[order])[:, None]
        basis = np.empty((self.n_classes, self.n_classes - 1))
        basis[order] = np.linalg.qr(np.hstack([null, np.eye(self.n_classes)]))[0][:, 1:]
        # The sign must not depend on LAPACK: the last class has the larger score.
        return np.asarray(basis * np.where(basis[-1] < 0, -1.0, 1.0))

    @cached_property
    def class_scores(self) -> FloatArray:
        """The score of each class, without sample weights, of shape (n_classes, n_columns)."""
        roots = np.sqrt(self.shares)
        return np.asarray((np.diag(1.0 / roots) - roots) @ self._basis)

    def scores_of(self, other: ClassTarget) -> FloatArray:
        """Return the scores of other samples of the same classes, without sample weights."""
        return np.asarray(self.class_scores[other.codes])

    @property
    def signs(self) -> FloatArray:
        """1 for samples of the second of two classes, −1 for the first; of shape (n_samples,)."""
        return np.where(self.codes == 1, 1.0, -1.0)

    @cached_property
    def mean_difference(self) -> FloatArray:
        """The vector a of [Kim06]_: 1/m₊ on the second class, −1/m₋ on the first."""
        found = self.signs / self.sizes[self.codes]
        return self.row_weights.scale(found[:, None])[:, 0]

    def means(self, rows: FloatArray) -> FloatArray:
        """Return class means of the columns of an array, of shape (n_classes, n_columns)."""
        weighted = rows * self.row_weights.roots[:, None]  # `membership` has the other √ω
        return np.asarray(self.membership.T @ weighted / self.sizes[:, None])

    @cached_property
    def freedom(self) -> tuple[float, FloatArray]:
        """Degrees of freedom of the within-class covariance, and those without each sample.

        For weights that sum to 1 they are 1 − Σ_c (Σω²/Σω over class c). The sum Σω rrᵀ over
        residuals r is divided by them to be unbiased. For n equal weights they are
        (n − n_classes)/n.
        """
        weights, codes, sizes = self.row_weights.shares, self.codes, self.shares
        squares = np.bincount(codes, weights**2, minlength=self.n_classes)
        lost = np.divide(squares, sizes, out=np.zeros(self.n_classes), where=sizes > 0)
        freedom = max(1.0 - float(lost.sum()), 1.0 / len(codes))
        rest = np.maximum(sizes[codes] - weights, SMALLEST_REST * sizes[codes])
        own = np.maximum(squares[codes] - weights**2, 0.0) / rest
        return freedom, freedom - weights + lost[codes] - own


@dataclass(frozen=True, eq=False)
class RegressionTarget(Target):
    """Numbers to predict: one or several columns that share one kernel.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_targets)
        The numbers.
    sample_weights : SampleWeights, optional
        Sample weights.
    groups : Groups, optional
        Groups of rows that are held out together.
    """

    values: FloatArray
    sample_weights: SampleWeights | None = None
    groups: Groups | None = None
    kind: ClassVar[str] = "numbers to regress on"
    predicts_scores: ClassVar[bool] = True

    @classmethod
    def from_values(
        cls, y: Any, sample_weights: SampleWeights | None = None, groups: Groups | None = None
    ) -> RegressionTarget:
        """Return the target of numbers, or raise an error if a column is constant or too large."""
        values = np.asarray(y, dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        with np.errstate(over="ignore"):
            ranges = np.ptp(values, axis=0)
        constant = np.flatnonzero(ranges == 0)
        if len(constant):
            raise InvalidInputError(
                "Every target must vary over the samples. Got a constant in column "
                f"{constant[0]} of y. Leave this column out."
            )
        low, high = RANGES
        extreme = np.flatnonzero((ranges < low) | (ranges > high))
        if len(extreme):
            raise InvalidInputError(
                f"The range of every target must be between {low:g} and {high:g}, so that its "
                f"squares are numbers. Got {ranges[extreme[0]]:g} in column {extreme[0]} of y. Use "
                "other units: multiply or divide this column by a power of ten."
            )
        return cls(values, sample_weights, groups)

    @property
    def labels(self) -> FloatArray:
        """The numbers."""
        return self.values

    @cached_property
    def scores(self) -> FloatArray:
        """The columns, centred and with mean square 1, so that all have equal influence."""
        return self.row_weights.scale(self._centered / self.units)

    @cached_property
    def units(self) -> FloatArray:
        """The standard deviation of each column; 1 for a column that is constant on a fold."""
        units = np.sqrt(self.row_weights.means((self._centered**2).T))
        return np.where(units > 0, units, 1.0)

    @property
    def _centered(self) -> FloatArray:
        return self.row_weights.center(self.values.copy())

    def scores_of(self, other: RegressionTarget) -> FloatArray:
        """Return the numbers of other samples, in the units of the scores of these ones."""
        means = self.row_weights.means(self.values.T)
        return np.asarray((other.values - means) / self.units)

    def in_units(self, scores: FloatArray) -> FloatArray:
        """Return predictions of `truth`, the scores without √ω, in the units of the numbers."""
        means = self.row_weights.means(self.values.T)
        return np.asarray(means + self.units * scores)

    @property
    def weighted_values(self) -> FloatArray:
        """The numbers, multiplied by √ω."""
        return self.row_weights.scale(self.values.copy())

    def columns(self, places: Any) -> RegressionTarget:
        """Return some of the columns."""
        return RegressionTarget(self.values[:, places], self.row_weights, self.groups)

    def subset(self, rows: NDArray[np.intp]) -> RegressionTarget:
        """Return the target of some samples."""
        return RegressionTarget(self.values[rows], *self._of(rows))

    def draw(self, share: float, rng: np.random.RandomState) -> NDArray[np.intp]:
        """Return the sorted positions of a random share of samples on which all columns vary."""
        n_drawn = _count(share, self.n_samples)
        chosen = self.shuffled(n_drawn, rng)[:n_drawn]
        constant = self.values[:, np.ptp(self.values[chosen], axis=0) == 0]
        ends = [constant.argmin(axis=0), constant.argmax(axis=0)]
        return np.unique(np.concatenate([chosen, *ends]))


@dataclass(frozen=True, eq=False)
class LabelsTarget(Target):
    """Label sets: each sample has any number of labels, and all labels share one kernel.

    Attributes
    ----------
    has : ndarray of bool of shape (n_samples, n_labels)
        Whether each sample has each label. Every label varies: some samples have it, others not.
    sample_weights : SampleWeights, optional
        Sample weights.
    groups : Groups, optional
        Groups of rows that are held out together.
    """

    has: NDArray[np.bool_]
    sample_weights: SampleWeights | None = None
    groups: Groups | None = None
    kind: ClassVar[str] = "several labels per sample"

    @property
    def labels(self) -> FloatArray:
        """Whether each sample has each label, as 0 and 1."""
        return self.has.astype(np.float64)

    @cached_property
    def parts(self) -> list[ClassTarget]:
        """One two-class target per label: the samples without and with the label."""
        columns = self.has.T.astype(np.intp)
        known = self.row_weights, self.groups
        return [ClassTarget(np.arange(2), column, *known) for column in columns]

    @cached_property
    def scores(self) -> FloatArray:
        """One column per label, centred and with mean square 1, for rare and frequent labels."""
        return np.hstack([np.empty((len(self.has), 0)), *(part.scores for part in self.parts)])

    def subset(self, rows: NDArray[np.intp]) -> LabelsTarget:
        """Return the target of some samples, without labels that are constant on them."""
        has = self.has[rows]
        varies = has.any(axis=0) & ~has.all(axis=0)
        return LabelsTarget(has[:, varies], *self._of(rows))

    def draw(self, share: float, rng: np.random.RandomState) -> NDArray[np.intp]:
        """Return sorted positions of a random share, two samples with and without each label."""
        n_drawn = _count(share, self.n_samples)
        order = self.shuffled(n_drawn, rng)
        chosen = order[:n_drawn]
        shuffled = self.has[order]
        # The first two samples with and without each label: mostly chosen already.
        first = [
            order[np.flatnonzero(column == value)[:2]]
            for column in shuffled.T
            for value in (False, True)
        ]
        return np.unique(np.concatenate([chosen, *first]))


def _count(share: float, n: int) -> int:
    """Return the number of samples of a share, at least two."""
    return max(2, round(share * n))


def refuse_words(y: NDArray[Any]) -> None:
    """Raise an error if numbers to predict are text or dates."""
    first = next(y.flat, 0.0) if y.dtype.kind in "OUSM" else 0.0
    if isinstance(first, (str, np.datetime64)):
        raise InvalidInputError(
            f"y must hold numbers to predict. Got {str(first)!r}. For classes use "
            "MultipleKernelDiscriminant; convert dates to numbers, such as days."
        )


def deal_folds(
    keys: FloatArray, codes: NDArray[np.intp], n_folds: int, groups: Groups | None = None
) -> NDArray[np.intp]:
    """Return the fold of each row, from 0, for random stratified folds of rows or groups.

    Folds depend neither on the order of the rows nor on the names of the classes.

    Parameters
    ----------
    keys : ndarray of shape (n_rows, n_columns)
        Scores of the rows, which are sorted by them before shuffling; see `_order`.
    codes : ndarray of int of shape (n_rows,)
        The class of each row.
    n_folds : int
        The number of folds, at most the number of rows or groups.
    groups : Groups, optional
        Groups of rows; each is in one fold.
    """
    order = _order(keys, codes, groups)
    strata = by_appearance(codes[order])
    shuffled = np.argsort(np.random.RandomState(0).permutation(len(order)))
    rows, folds = order[shuffled], np.empty(len(order), dtype=np.intp)
    folds[rows] = deal(strata[shuffled], n_folds, None if groups is None else groups.subset(rows))
    return folds


def _order(keys: FloatArray, codes: NDArray[np.intp], groups: Groups | None = None) -> Any:
    """Return the rows, sorted by the distance of their scores from the mean of their class.

    Other names of the classes rotate the scores, which changes no distance.
    """
    counts = np.maximum(np.bincount(codes), 1)
    means = np.stack([np.bincount(codes, key) / counts for key in keys.T], axis=1)
    distances = ((keys - means[codes]) ** 2).sum(axis=1)
    last = [] if groups is None else [groups.codes]  # for rows with the same scores
    ties = [*last, *round_keys(keys).T[::-1], codes, counts[codes]]
    return np.lexsort([*ties, *round_keys(distances[:, None]).T])


def deal(strata: NDArray[np.intp], n_folds: int, groups: Groups | None = None) -> NDArray[np.intp]:
    """Return the fold of each row: rows, or groups, sorted by stratum go to folds in turn."""
    if groups is not None:
        return Groups(by_appearance(groups.codes)).deal(strata, n_folds)
    folds = np.empty(len(strata), dtype=np.intp)
    folds[np.argsort(strata, kind="stable")] = np.arange(len(strata)) % min(n_folds, len(strata))
    return folds


def by_appearance(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return codes renumbered by first appearance, so that class names do not matter."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def labels_without_weight(
    y: Any, present: NDArray[np.intp], no_class: Any = None
) -> NDArray[Any] | None:
    """Return the sorted labels that only samples of weight 0 have; None if there are none.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels.
    present : ndarray of int
        Positions of the samples with a positive weight.
    no_class : object, optional
        Mark of unlabelled samples. None and NaN always mark them.
    """
    labels = np.asarray(y).ravel()
    known = {no_class, None, *labels[present].tolist()}
    absent = [label not in known and label == label for label in labels.tolist()]
    return np.unique(labels[absent].tolist()) if any(absent) else None
