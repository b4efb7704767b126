"""Training rows: checked, copied if necessary, with sample weights and resolved kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _check_y, _num_samples

from discernel.arrays import FloatArray, is_dense, is_frame, is_sparse, on_host
from discernel.arrays.groups import Groups, make_groups
from discernel.arrays.sample_weights import SampleWeights, check_sample_weight
from discernel.bank import gram_stack
from discernel.bank.grams import check_grams
from discernel.discriminant import class_factors
from discernel.exceptions import InvalidInputError, is_word
from discernel.kernels import Linear, Standardized, as_kernels, kernel_names
from discernel.kernels.base import Known
from discernel.kernels.columns import (
    Table,
    column_indices,
    column_quantiles,
    describe_columns,
    is_missing,
)
from discernel.kernels.make import are_sources, learns_scales
from discernel.model.model import KeptRows
from discernel.rows.cells import ColumnFacts, as_table, column_names, is_plain
from discernel.rows.encoder import TableEncoder, has_row_numbers
from discernel.rows.groups import group_codes, group_labels
from discernel.rows.reader import (
    RowReader,
    check_range,
    convert_for_kernels,
    hint,
    refuse_views,
    stack_matrices,
)
from discernel.targets import ClassTarget, labels_without_weight, refuse_words

#: The name of all sources as one.
_TOGETHER = "all sources"


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Checked training rows, without rows of weight 0.

    Attributes
    ----------
    X : array, CSR or Table
        The rows in the form that kernels take, independent of the user's array.
    y : ndarray
        Labels or numbers to predict.
    reader : RowReader
        Reads new rows in the same way. It has the resolved kernels: all values that depend on X,
        such as median widths, are fixed.
    weights : SampleWeights or None
        Sample weights; None if all are equal.
    groups : Groups or None
        Groups of rows that are held out together; None if each row is held out alone.
    places : ndarray of int or None
        The positions of the rows among all given rows; None if no row was dropped.
    absent : ndarray or None
        Labels that only rows of weight 0 have; None if there are none.
    proposes : bool
        Whether the default kernels are chosen for these rows, which are dense numbers.
    sources : dict of str to ndarray of int, or None
        The columns of each source, if the default kernels are chosen for several.
    """

    X: Any
    y: Any
    reader: RowReader
    weights: SampleWeights | None = None
    groups: Groups | None = None
    places: NDArray[np.intp] | None = None
    absent: NDArray[Any] | None = None
    proposes: bool = False
    sources: dict[str, NDArray[np.intp]] | None = None

    def among_given(self, target: ClassTarget, class_weight: Any) -> ClassTarget:
        """Return a target with all given classes and with class weights.

        Classes that only rows of weight 0 have are empty.

        Parameters
        ----------
        target : ClassTarget
            The classes of the rows.
        class_weight : dict, "balanced" or None
            The parameter of the estimator.
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
        """Return labels, positions and groups of the rows that the model keeps for predictions.

        Parameters
        ----------
        labels : ndarray of shape (n_samples,)
            The labels of all rows.
        rows : ndarray of int or None
            The positions of the kept rows; None if unknown.
        """
        if rows is None:
            return KeptRows()
        groups = None if self.groups is None else self.groups.codes[rows]
        return KeptRows(labels[rows], rows if self.places is None else self.places[rows], groups)


def check_training(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    groups: Any = None,
    *,
    labels: bool = True,
    facts: Sequence[ColumnFacts] | None = None,
    **options: Any,
) -> TrainingRows:
    """Check training rows, and return them as `TrainingRows`, or raise a clear error.

    Parameters
    ----------
    estimator : BaseKernelEstimator
        The estimator, whose candidate kernels must accept the rows.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples, ...)
        The target.
    sample_weight : array-like of shape (n_samples,), optional
        Sample weights.
    groups : array-like of shape (n_samples,), optional
        Labels of groups of rows.
    labels : bool, default=True
        Whether y has class labels; labels that only rows of weight 0 have are then recorded.
    facts : sequence of ColumnFacts, optional
        Facts about the columns of all rows, if X is a random sample of them.
    **options
        Options of scikit-learn's check of y.
    """
    candidates = estimator._candidates()
    absent = present = weights = matrices = None
    codes = None if groups is None else group_codes(group_labels(groups, _num_samples(X)))
    if sample_weight is not None:
        _check_lengths(X, y)
        values = check_sample_weight(sample_weight, _num_samples(X))
        counted = np.flatnonzero(values)
        if len(counted) < len(values):
            if labels and y is not None and not (options.get("multi_output") and np.ndim(y) > 1):
                absent = labels_without_weight(y, counted)
            X, matrices = _select_weighted(X, counted, input_kinds(candidates)[0])
            y, present = _safe_indexing(y, counted), counted
            codes = None if codes is None else codes[counted]
        weights = SampleWeights.of(values[counted])
    name = type(estimator).__name__
    y = on_host(y)
    if y is not None:
        _check_targets(y, present, numbers=options.get("y_numeric", False))
        # scikit-learn converts nullable booleans and integers of pandas to floats.
        known = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
        y = y if known is None else np.asarray(y, dtype=known)
    found = _check(name, candidates, X, y, facts=facts, **options)
    reader = replace(found.reader, present=matrices)
    together = None if codes is None else make_groups(codes)
    return replace(
        found, reader=reader, weights=weights, groups=together, places=present, absent=absent
    )


def _check_targets(y: Any, places: NDArray[np.intp] | None, *, numbers: bool) -> None:
    """Raise an error for a missing value of y, and for a value that is no number if it must be.

    scikit-learn's own errors name neither the row nor a remedy.
    """
    cells = np.asarray(y)
    if cells.dtype.kind in "US" and cells.ndim == 0:
        raise InvalidInputError(
            f"y must have one label or number per row. Got {y!r}. If X has this column: "
            f"fit(X.drop(columns={y!r}), X[{y!r}])."
        )
    if not cells.size or cells.ndim == 0 or cells.dtype.kind not in "OfMUS":
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
    if numbers:
        refuse_words(cells)


def _check_labels(y: Any, estimator: str, **options: Any) -> Any:
    """Return y as scikit-learn checks it; add advice to its error about several columns."""
    try:
        return _check_y(y, estimator=estimator, **options)
    except ValueError as error:
        if np.ndim(y) == 2 and "should be a 1d array" in str(error):
            raise InvalidInputError(
                f"{error} Pass one column; for several labels per row, as columns of 0 and 1, use "
                "MultiLabelKernelDiscriminant."
            ) from None
        raise


def _check_lengths(X: Any, y: Any) -> None:
    """Raise an error if X and y differ in their number of rows."""
    try:
        check_consistent_length(X, y)
    except ValueError as error:
        raise InvalidInputError(
            f"{error}. X and y must have the same number of rows: remove the same rows from both."
        ) from None


def _select_weighted(X: Any, present: NDArray[np.intp], precomputed: bool) -> tuple[Any, Any]:
    """Return the rows with a positive weight; for matrices, also their positions and number."""
    if not precomputed:
        return _safe_indexing(X, present), None
    matrices = np.asarray(X)
    if matrices.ndim < 2 or matrices.shape[0] != matrices.shape[1]:
        return X, None  # the check of the matrices raises the error
    return matrices[np.ix_(present, present)], (present, len(matrices))


def _check(
    name: str,
    candidates: Any,
    X: Any,
    y: Any,
    *,
    facts: Sequence[ColumnFacts] | None,
    **options: Any,
) -> TrainingRows:
    """Return checked rows and target, without sample weights."""
    X = frame = on_host(X)
    if y is None:
        raise InvalidInputError(f"{name} requires y to be passed, but the target y is None")
    if is_frame(X):
        column_names(X)  # refuses duplicate names
    # The default kernels take categories, text and missing cells.
    tables = learns_scales(candidates)
    if is_word(candidates, "precomputed"):
        X = stack_matrices(X)
    else:
        refuse_views(X, y)
    kernels = as_kernels(candidates, n_precomputed=_n_matrices(X))
    reader = RowReader(name, kernels, takes_tables=tables)
    if tables and not (is_plain(X) and not has_row_numbers(X, facts)):
        X = as_table(X)
        encoder = TableEncoder().fit(X, facts=facts)
        reader, X = replace(reader.with_columns(X), encoder=encoder), encoder.encode(X)
    else:
        reader, X = _convert(reader, X)
    proposes, sources = tables and is_dense(X), None
    if are_sources(candidates):
        sources = _source_columns(candidates, frame, X, reader.encoder)
    if proposes:
        # For the spreads of the columns; the kernels are proposed later.
        reader = replace(reader, kernels=[Standardized(Linear())])
        if reader.encoder is None:
            reader = replace(reader, medians=column_quantiles(X, (0.5,))[0])
    y = _check_labels(y, name, **options)
    _check_lengths(X, y)
    return TrainingRows(X, y, _resolved(reader, X, frame), proposes=proposes, sources=sources)


def _convert(reader: RowReader, given: Any) -> tuple[RowReader, Any]:
    """Return the reader of rows that need no encoder, and the rows as kernels take them."""
    with hint(given, reader.takes_tables):
        X = convert_for_kernels(given, reader.kernels, reader.estimator)
    reader = reader.with_columns(given if is_frame(given) else X)
    is_number = X.is_number if isinstance(X, Table) else None
    reader = replace(reader, is_number=is_number, n_matrices=_n_matrices(X))
    if reader.kernels[0].precomputed:
        return reader, X
    check_range(X, given)
    return reader, _copy_if_shared(X, given)


def _source_columns(
    sources: Mapping[str, Any], frame: Any, X: Any, encoder: TableEncoder | None
) -> dict[str, NDArray[np.intp]]:
    """Return the columns of each source among the encoded ones, or raise a clear error."""
    if not is_dense(X):
        raise InvalidInputError(
            "Sources given by their columns must be dense. Got sparse rows. Convert them by "
            "X.toarray(), or give kernels, such as {'name': RBF().on(columns)}."
        )
    if len({_TOGETHER, *map(str, sources)}) <= len(sources):
        raise InvalidInputError(
            f"The names of sources must differ, also from {_TOGETHER!r}, which stands for all of "
            f"them together. Got {list(sources)}."
        )
    frame, found = as_table(frame) if encoder is not None else frame, {}
    frame = frame if hasattr(frame, "shape") else X
    for name, columns in sources.items():
        chosen = column_indices(columns, frame)
        encoded = chosen if encoder is None else np.flatnonzero(np.isin(encoder.source, chosen))
        if not len(encoded):
            raise InvalidInputError(
                f"Every source must have a column that can be used. Got {name!r} with the columns "
                f"{describe_columns(columns)}, which are all left out. Leave the source out."
            )
        found[str(name)] = encoded
    if len(found) > 1:
        found[_TOGETHER] = np.unique(np.concatenate(list(found.values())))
    return found


def _resolved(reader: RowReader, X: Any, frame: Any) -> RowReader:
    """Return the reader with resolved kernels: values that depend on X are fixed."""
    kernels, encoder = reader.kernels, reader.encoder
    if kernels[0].precomputed:
        return reader
    names = frame if is_frame(frame) and encoder is None else X
    # Divided by its standard deviation, a rare category would be far from all others.
    known: Known = {} if encoder is None else {"spreads": encoder.spreads}
    resolved = [kernel.resolve(X, names, known) for kernel in kernels]
    for kernel in resolved:
        kernel.check_rows(X)
    return replace(reader, kernels=resolved)


def _copy_if_shared(X: Any, given: Any) -> Any:
    """Return rows that share no memory with the given ones, copied if necessary."""
    if isinstance(X, Table):
        return X  # a Table consists of copies
    if is_sparse(X):
        parts = [(getattr(X, name), getattr(given, name, None)) for name in ("data", "indices")]
        return X.copy() if any(np.may_share_memory(*both) for both in parts) else X
    if X.dtype == object:
        # Other objects may be compared by identity, so only mutable containers are copied.
        mutable = (np.ndarray, list, dict, set, bytearray)
        for i, row in enumerate(X):
            X[i] = deepcopy(row) if isinstance(row, mutable) else row
        return X
    if isinstance(given, (list, tuple)):
        return X
    if isinstance(given, np.ndarray):
        return X.copy() if np.may_share_memory(X, given) else X
    # A DataFrame may return a view of its data, and other containers their own memory.
    return X if is_frame(given) and X.base is None else X.copy()


def _n_matrices(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return int(shape[2]) if shape is not None and len(shape) == 3 else 1


# ---- properties of candidate kernels -----------------------------------------------------------


def input_kinds(candidates: Any) -> tuple[bool, bool]:
    """Return whether X is a stack of kernel matrices, and whether it may be sparse.

    For invalid kernels, they are False and True; the fit raises the error.

    Parameters
    ----------
    candidates : object
        The parameter ``kernels`` of an estimator.
    """
    try:
        kernels = as_kernels(candidates)
        return kernels[0].precomputed, all(kernel.takes_sparse for kernel in kernels)
    except InvalidInputError:
        return False, True


def with_class_weight(target: ClassTarget, class_weight: Any) -> ClassTarget:
    """Return the target with sample weights multiplied by class weights, or raise a clear error.

    Parameters
    ----------
    target : ClassTarget
        The classes and sample weights.
    class_weight : dict, "balanced" or None
        A positive number for each class, 1 by default; ``"balanced"`` gives all classes the same
        total weight.
    """
    factors = class_factors(class_weight, target)
    if factors is None:
        return target
    values = factors[target.codes] * target.row_weights.values
    return replace(target, sample_weights=SampleWeights.of(values))
