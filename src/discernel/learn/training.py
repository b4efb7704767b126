"""Training rows, checked and owned, their weights, and kernels fixed to them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _check_y, _num_samples

from discernel.arrays import FloatArray, is_frame, is_sparse, on_host
from discernel.arrays.sample_weights import SampleWeights, check_sample_weight
from discernel.bank import gram_stack
from discernel.bank.grams import check_grams
from discernel.discriminant import class_factors
from discernel.exceptions import InvalidInputError, is_word
from discernel.kernels import Linear, Standardized, as_kernels, kernel_names
from discernel.kernels.base import Known
from discernel.kernels.columns import Table, column_quantiles, is_missing
from discernel.model import KeptRows
from discernel.rows.cells import ColumnFacts, as_table, is_plain
from discernel.rows.encoder import TableEncoder, has_row_numbers
from discernel.rows.reader import (
    RowReader,
    check_kernels_take,
    check_range,
    check_rows,
    hint,
    stack_matrices,
)
from discernel.rows.views import refuse_views
from discernel.targets import ClassTarget, labels_without_weight


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to learn from, checked; rows of weight 0 are absent.

    Attributes
    ----------
    X : array, CSR or Table
        The rows as kernels take them, our own: what the caller does to theirs is not seen.
    y : ndarray
        Labels or numbers to predict.
    reader : RowReader
        Reads new rows the same way; it has the kernels, with all that depends on X fixed.
    weights : SampleWeights or None
        The weights of the rows; None: all the same.
    places : ndarray of int or None
        The positions of the rows among all that were given; None: all were kept.
    absent : ndarray or None
        Labels of which all rows have the weight 0; None if there are none.
    """

    X: Any
    y: Any
    reader: RowReader
    weights: SampleWeights | None = None
    places: NDArray[np.intp] | None = None
    absent: NDArray[Any] | None = None

    def among_given(self, target: ClassTarget, class_weight: Any) -> ClassTarget:
        """Return a target among all classes that were given, with the weights of these.

        Classes of which all rows have the weight 0 have no rows in it.

        Parameters
        ----------
        target : ClassTarget
            The classes of the rows.
        class_weight : dict, "balanced" or None
            As the user gave it.
        """
        if self.absent is not None:
            target = target.among(np.union1d(target.classes, self.absent))
        return with_class_weight(target, class_weight)

    def grams(self) -> tuple[FloatArray, list[str]]:
        """Return the raw Gram matrices of the rows and the names of the kernels, checked."""
        kernels = self.reader.kernels
        trusted = [kernel.trusted for kernel in kernels]
        return check_grams(gram_stack(kernels, self.X), kernel_names(kernels), trusted)

    def kept(self, labels: NDArray[Any], rows: NDArray[np.intp] | None) -> KeptRows:
        """Return labels and positions of the rows that predictions are made from.

        Parameters
        ----------
        labels : ndarray of shape (n_samples,)
            The labels of all rows.
        rows : ndarray of int or None
            The positions of those that are kept; None where they are not known.
        """
        if rows is None:
            return KeptRows()
        return KeptRows(labels[rows], rows if self.places is None else self.places[rows])


def check_training(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    labels: bool = True,
    keep: bool = True,
    facts: Sequence[ColumnFacts] | None = None,
    **options: Any,
) -> TrainingRows:
    """Return training rows, checked, or raise a clear error.

    Parameters
    ----------
    estimator : BaseKernelEstimator
        Whose candidates are to take the rows.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples, ...)
        What they are to be predicted as.
    sample_weight : array-like of shape (n_samples,), optional
        How much each row counts.
    labels : bool, default=True
        Whether y holds classes, also those that no row with weight has.
    keep : bool, default=True
        Whether rows are to be kept, so that they must be our own.
    facts : sequence of ColumnFacts, optional
        What is known of the columns of all rows, of which X is a random part.
    **options
        How scikit-learn checks y.
    """
    candidates = estimator._candidates()
    absent = present = weights = stood = None
    if sample_weight is not None:
        check_consistent_length(X, y)
        values = check_sample_weight(sample_weight, _num_samples(X))
        counted = np.flatnonzero(values)
        if len(counted) < len(values):
            if labels and y is not None and not (options.get("multi_output") and np.ndim(y) > 1):
                absent = labels_without_weight(y, counted)
            X, stood = _of_weight(X, counted, are_precomputed(candidates))
            y, present = _safe_indexing(y, counted), counted
        weights = SampleWeights.of(values[counted])
    name = type(estimator).__name__
    y = on_host(y)
    if y is not None:
        _check_targets(y, present, numbers=options.get("y_numeric", False))
    found = _check(name, candidates, X, y, keep=keep, facts=facts, **options)
    reader = replace(found.reader, present=stood)
    return replace(found, reader=reader, weights=weights, places=present, absent=absent)


def _check_targets(y: Any, places: NDArray[np.intp] | None, *, numbers: bool) -> None:
    """Raise an error for a missing value of y, and for a value that is no number if it must be.

    scikit-learn's own errors name neither the row nor a remedy.
    """
    cells = np.asarray(y)
    if cells.ndim == 0 or cells.dtype.kind not in "OfMUS":
        return
    if cells.dtype.kind == "f":
        bad = np.isnan(cells)
    elif cells.dtype.kind == "O":
        bad = np.reshape([is_missing(cell) for cell in cells.flat], cells.shape)
    else:
        bad = np.isnat(cells) if cells.dtype.kind == "M" else np.zeros(cells.shape, dtype=bool)
    rows = np.flatnonzero(bad.reshape(len(cells), -1).any(axis=1))
    if len(rows):
        row = rows[0] if places is None else places[rows[0]]
        raise InvalidInputError(
            "Input y contains NaN. Every row must have a target. "
            f"Got {cells[bad][0]} in row {row}. Leave such rows out: X[known], y[known] with "
            "known = pd.notna(y)."
        )
    first = next(cells.flat, 0.0)
    if numbers and isinstance(first, (str, np.datetime64)):
        raise InvalidInputError(
            f"y must hold numbers to predict. Got {str(first)!r}. For classes use "
            "MultipleKernelDiscriminant; convert dates to numbers, such as days."
        )


def _of_weight(X: Any, present: NDArray[np.intp], precomputed: bool) -> tuple[Any, Any]:
    """Return rows that have weight, and of matrices which those are."""
    if not precomputed:
        return _safe_indexing(X, present), None
    matrices = np.asarray(X)
    if matrices.ndim < 2 or matrices.shape[0] != matrices.shape[1]:
        return X, None  # what is wrong with it is said later
    return matrices[np.ix_(present, present)], (present, len(matrices))


def _check(
    name: str,
    candidates: Any,
    X: Any,
    y: Any,
    *,
    keep: bool,
    facts: Sequence[ColumnFacts] | None,
    **options: Any,
) -> TrainingRows:
    X = on_host(X)
    if y is None:
        raise InvalidInputError(f"{name} requires y to be passed, but the target y is None")
    # The default takes categories, text and missing cells.
    given, tables = X, is_word(candidates, "auto")
    if is_word(candidates, "precomputed"):
        X = stack_matrices(X)
    else:
        refuse_views(X, y)
    kernels = as_kernels(candidates, n_precomputed=_n_matrices(X))
    reader = RowReader(name, kernels, takes_tables=tables)
    known: Known = {}
    if tables and not (is_plain(X) and not has_row_numbers(X, facts)):
        X = as_table(X)
        encoder = TableEncoder().fit(X, facts=facts)
        reader = replace(reader.with_columns(X), encoder=encoder)
        X = given = encoder.encode(X)
        # Divided by its deviation, a rare category would be far from all others.
        known = {"spreads": encoder.spreads}
    else:
        with hint(X, tables):
            rows = check_rows(X, kernels, name)
        reader = reader.with_columns(X if is_frame(X) else rows)
        is_number = rows.is_number if isinstance(rows, Table) else None
        reader, X = replace(reader, is_number=is_number, n_matrices=_n_matrices(rows)), rows
        if not kernels[0].precomputed:
            check_range(X, given)
            X = _owned(X, given) if keep else X
        if tables and isinstance(X, np.ndarray):
            (medians,) = column_quantiles(X, (0.5,))
            reader = replace(reader, medians=medians)
    y = _check_y(y, estimator=name, **options)
    check_consistent_length(X, y)
    return TrainingRows(X, y, _resolved(reader, X, given, known))


def _resolved(reader: RowReader, X: Any, frame: Any, known: Known) -> RowReader:
    """Return the reader with all that kernels have from X fixed."""
    kernels = reader.kernels
    if kernels[0].precomputed:
        return reader
    if reader.takes_tables and isinstance(X, np.ndarray):
        kernels = [Standardized(Linear())]  # spreads; others are proposed later
    names = frame if is_frame(frame) else X
    resolved = [kernel.resolve(X, names, known) for kernel in kernels]
    check_kernels_take(resolved, X)
    return replace(reader, kernels=resolved)


def _owned(X: Any, given: Any) -> Any:
    """Return rows that share no memory with what was given, copied only where they may."""
    if isinstance(X, Table):
        return X  # made of copies
    if is_sparse(X):
        parts = [(getattr(X, name), getattr(given, name, None)) for name in ("data", "indices")]
        return X.copy() if any(_may_share(ours, theirs) for ours, theirs in parts) else X
    if X.dtype == object:
        # Others, such as keys of a table of the user's, may be known by what they are.
        changeable = (np.ndarray, list, dict, set, bytearray)
        for i, row in enumerate(X):
            X[i] = deepcopy(row) if isinstance(row, changeable) else row
        return X
    if isinstance(given, (list, tuple)):
        return X
    if isinstance(given, np.ndarray):
        return X.copy() if _may_share(X, given) else X
    # A dataframe may give a view of itself, and anything else its very memory.
    return X if is_frame(given) and X.base is None else X.copy()


def _may_share(ours: Any, theirs: Any) -> bool:
    return isinstance(theirs, np.ndarray) and np.may_share_memory(ours, theirs)


def _n_matrices(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return int(shape[2]) if shape is not None and len(shape) == 3 else 1


# ---- what candidates take ----------------------------------------------------------------------


def are_precomputed(candidates: Any) -> bool:
    """Whether X is a stack of matrices; False for candidates that are no kernels at all.

    Parameters
    ----------
    candidates : object
        The kernels as the user gave them.
    """
    try:
        return as_kernels(candidates)[0].precomputed
    except InvalidInputError:
        return False


def take_sparse(candidates: Any) -> bool:
    """Whether X may be sparse; True for candidates that are no kernels at all.

    Parameters
    ----------
    candidates : object
        The kernels as the user gave them.
    """
    try:
        return all(kernel.takes_sparse for kernel in as_kernels(candidates))
    except InvalidInputError:
        return True


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
