"""The target of rows in chunks: its totals over all rows, and the columns that are summed.

Classes and numbers have the same methods. The totals of two sets of rows can be merged, and sent
to other machines. After the first pass they know how y becomes the columns that the second sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, Positions
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.sums import FeatureSums
from discernel.exceptions import InvalidInputError, listed
from discernel.targets import ClassTarget, RegressionTarget, refuse_words

#: The largest number of classes.
_MOST_LABELS = 5_000


@dataclass(frozen=True, eq=False)
class ClassTotals:
    """The total weight of each class. The columns that are summed are indicators of the classes.

    Attributes
    ----------
    weights : mapping of label to float
        The total weights; 0 for classes without rows so far, and for classes whose rows all have
        weight 0.
    factors : ndarray of shape (n_classes,) or None
        The class weights, in the order of the sorted labels; None before the first fit.
    """

    weights: Mapping[Any, float] = field(default_factory=dict)
    factors: Any = None

    def __post_init__(self) -> None:
        if len(self.weights) > _MOST_LABELS:
            raise InvalidInputError(
                f"There must be at most {_MOST_LABELS:,} classes. Got more. Are the labels "
                "continuous?"
            )

    def read(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return y of a chunk in one dtype, or raise an error."""
        if y.ndim != 1:
            raise InvalidInputError(
                f"y should be a 1d array of labels, one per row. Got shape {y.shape}."
            )
        return comparable(y)

    def of(self, y: NDArray[Any], weights: FloatArray) -> ClassTotals:
        """Return the totals of some rows, from `read`."""
        found, codes = np.unique(y, return_inverse=True)
        sums = np.bincount(codes, weights, minlength=len(found))
        return ClassTotals(dict(zip(found.tolist(), map(float, sums), strict=True)))

    def merged(self, other: ClassTotals) -> ClassTotals:
        """Return the totals of the rows of both."""
        weights = dict(self.weights)
        for label, weight in other.weights.items():
            weights[label] = weights.get(label, 0.0) + weight
        return replace(self, weights=weights)

    def decayed(self, factor: float) -> ClassTotals:
        """Return the totals with all weights multiplied by a factor."""
        return replace(self, weights={each: factor * w for each, w in self.weights.items()})

    @property
    def varies(self) -> bool:
        """Whether y differs between rows, so that a model can be learned."""
        return len(self.weights) > 1

    def strata(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the stratum of each row; a sample keeps some rows of every stratum."""
        return y

    @property
    def classes(self) -> NDArray[Any]:
        """The class labels, sorted; raises an error if they cannot be sorted."""
        try:
            return np.array(sorted(self.weights))
        except TypeError as error:
            kinds = sorted({type(label).__name__ for label in self.weights})
            raise InvalidInputError(
                f"Labels must have one type. Got {' and '.join(kinds)}. Convert all to text."
            ) from error

    @property
    def seen(self) -> NDArray[Any]:
        """The labels with positive total weight, sorted."""
        return np.array([label for label in self.classes.tolist() if self.weights[label] > 0])

    def target(self, y: NDArray[Any], weights: FloatArray) -> ClassTarget:
        """Return the classes of sampled rows, with the class weights of all rows.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            The labels of the rows.
        weights : ndarray of shape (n_rows,)
            Their sample weights.
        """
        classes = self.classes
        codes = codes_of(y, classes)
        drawn = np.bincount(codes, weights, minlength=len(classes))
        all_rows = np.array([self.weights.get(label, 0.0) for label in classes.tolist()])
        values = weights * np.divide(all_rows, drawn, out=all_rows * 0.0, where=drawn > 0)[codes]
        values *= weights.sum() / values.sum()
        if np.allclose(values, weights, rtol=1e-12, atol=0.0):
            values = weights  # the sample has all rows
        return ClassTarget(classes, codes, SampleWeights.of(values))

    # ---- columns that are summed -----------------------------------------------------------------

    @property
    def n_values(self) -> int:
        """The number of columns."""
        return len(self.classes)

    def values(self, y: NDArray[Any], where: str = "y") -> FloatArray:
        """Return the columns of some rows, of shape (n_rows, n_classes), or raise an error."""
        return np.asarray(np.eye(len(self.classes))[codes_of(y, self.classes, where)])

    def factors_of(self, y: NDArray[Any]) -> FloatArray:
        """Return the factors of the sample weights of some rows."""
        return np.asarray(self.factors[codes_of(y, self.classes)])

    def table(self, target: ClassTarget) -> FloatArray:
        """Return the matrix that turns the columns into target scores."""
        table = np.zeros((len(self.classes), target.n_classes - 1))
        table[np.searchsorted(self.classes, target.classes)] = target.class_scores
        return table

    def scores(self, y: NDArray[Any], table: FloatArray) -> FloatArray:
        """Return the target scores of some rows."""
        return np.asarray(table[codes_of(y, self.classes)])

    def compared(self, sums: FeatureSums) -> Iterator[tuple[str, float, float, float]]:
        """Yield names of totals, their values in the survey and in sums, and their unit."""
        found = sums.values / self.factors
        for label, weight in zip(self.classes.tolist(), found.tolist(), strict=True):
            yield f"rows of class {label!r}", self.weights[label], weight, 0.0


@dataclass(frozen=True, eq=False)
class NumberTotals:
    """The mean and the range of the numbers to predict.

    The columns that are summed are the numbers minus an origin near them, so that sums keep their
    digits.

    Attributes
    ----------
    weight : float
        The total weight.
    mean, low, high : ndarray of shape (n_targets,)
        The mean, the smallest and the largest number of each target, over rows of positive weight.
    origin : ndarray of shape (n_targets,) or None
        The origin: the mean over the rows of the first fit; None before it.
    """

    weight: float = 0.0
    mean: FloatArray = field(default_factory=lambda: np.zeros(0))
    low: FloatArray = field(default_factory=lambda: np.zeros(0))
    high: FloatArray = field(default_factory=lambda: np.zeros(0))
    origin: Any = None

    def read(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return y of a chunk in one dtype, or raise an error."""
        refuse_words(y)
        return np.asarray(y, dtype=np.float64)

    def of(self, y: NDArray[Any], weights: FloatArray) -> NumberTotals:
        """Return the totals of some rows."""
        values, counted = _columns(y), weights > 0
        if not counted.any():
            return NumberTotals()
        values, weights = values[counted], weights[counted]
        shares = weights / weights.max()  # weights may be as large as numbers can be
        mean = (shares / shares.sum()) @ values
        return NumberTotals(float(weights.sum()), mean, values.min(axis=0), values.max(axis=0))

    def merged(self, other: NumberTotals) -> NumberTotals:
        """Return the totals of the rows of both."""
        if not other.weight or not self.weight:
            return self if self.weight else replace(other, origin=self.origin)
        if len(self.mean) != len(other.mean):
            raise InvalidInputError(
                f"All parts must have the same number of targets. Got {len(self.mean)} and "
                f"{len(other.mean)}."
            )
        weight = self.weight + other.weight
        return NumberTotals(
            weight,
            self.mean + (other.weight / weight) * (other.mean - self.mean),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.origin,
        )

    def decayed(self, factor: float) -> NumberTotals:
        """Return the totals with all weights multiplied by a factor."""
        return replace(self, weight=factor * self.weight)

    @property
    def varies(self) -> bool:
        """Whether every target differs between rows."""
        return bool(len(self.low) and (self.low < self.high).all())

    def strata(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return 0, or another integer for rows with the smallest or largest number of a target.

        So a target that differs from a constant in a few rows varies over a sample too.
        """
        values = _columns(y)
        ends = np.hstack([values == values.min(axis=0), values == values.max(axis=0)])
        return np.where(ends.any(axis=1), 1 + ends.argmax(axis=1), 0)

    def target(self, y: NDArray[Any], weights: FloatArray) -> RegressionTarget:
        """Return the numbers of sampled rows.

        Parameters
        ----------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
            The numbers.
        weights : ndarray of shape (n_rows,)
            Sample weights of the rows.
        """
        return RegressionTarget.from_values(y, SampleWeights.of(weights))

    # ---- columns that are summed -----------------------------------------------------------------

    @property
    def n_values(self) -> int:
        """The number of columns."""
        return len(self.mean)

    def values(self, y: NDArray[Any], where: str = "y") -> FloatArray:
        """Return the columns of some rows, of shape (n_rows, n_targets), or raise an error."""
        refuse_words(y)
        numbers = _columns(np.asarray(y, dtype=np.float64))
        if numbers.shape[1] != self.n_values:
            raise InvalidInputError(
                f"y must have as many targets as in the first rows, {self.n_values}. Got "
                f"{numbers.shape[1]} in {where}."
            )
        return np.asarray(numbers - self.origin)

    def factors_of(self, y: NDArray[Any]) -> FloatArray:
        """Return 1 for all rows: numbers have no class weights."""
        return np.ones(len(y))

    def table(self, target: RegressionTarget) -> FloatArray:
        """Return the matrix that turns the columns into target scores."""
        return np.diag(1.0 / target.units)

    def scores(self, y: NDArray[Any], table: FloatArray) -> FloatArray:
        """Return the target scores of some rows."""
        return np.asarray(self.values(y) @ table)

    def compared(self, sums: FeatureSums) -> Iterator[tuple[str, float, float, float]]:
        """Yield names of totals, their values in the survey and in sums, and their unit."""
        found = self.origin + sums.values / sums.weight
        units = self.high - self.low
        for i, (first, second) in enumerate(zip(self.mean, found, strict=True)):
            yield f"as the mean of target {i}", float(first), float(second), float(units[i])


def _columns(y: NDArray[Any]) -> NDArray[Any]:
    """Return numbers with one column per target."""
    return y[:, None] if y.ndim == 1 else y


def codes_of(labels: NDArray[Any], classes: NDArray[Any], where: str = "y") -> Positions:
    """Return the position of each label among the classes, or raise an error for unknown labels.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,)
        Labels.
    classes : ndarray of shape (n_classes,)
        All class labels, sorted.
    where : str
        The origin of the labels, for the error message.
    """
    labels = comparable(labels)
    wrong = labels[:1]
    if (labels.dtype.kind in "US") == (classes.dtype.kind in "US"):
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        wrong = labels[classes[codes] != labels]
        if len(wrong) == 0:
            return codes
    raise InvalidInputError(
        f"Every label must be one of the classes, {listed(classes.tolist(), 8)}. Got "
        f"{wrong.tolist()[0]!r} in {where}. Name all classes in the first call of partial_fit; in "
        "fit, rows must be the same in both passes."
    )


def comparable(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as an array with a dtype of their own instead of object."""
    return np.array(labels.tolist()) if labels.dtype == object else labels


#: The totals of y over the rows of a survey.
Totals = ClassTotals | NumberTotals
