"""Check and convert the user's rows to rows for kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names, _get_feature_names, _num_features

from discernel.arrays import FloatArray, is_frame, is_sparse, on_host
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.base import refuse_sparse
from discernel.kernels.columns import AUTO_TAKES_TABLES, Table, is_mixed
from discernel.rows.cells import (
    LARGEST,
    are_in_range,
    as_table,
    check_labels,
    column_labels,
    find_number,
    is_plain,
    number_out_of_range,
    out_of_range,
)
from discernel.rows.encoder import TableEncoder

#: scikit-learn's messages for missing cells and text.
_REFUSED = "Input X contains NaN|could not convert string"
#: Replaces scikit-learn's message for missing cells, which recommends its own estimators.
_MISSING_REFUSED = (
    "Input X contains NaN. These kernels need numbers without missing cells; the column {column!r} "
    "has NaN in row {row}. Use WhereKnown(kernel) of discernel.kernels, which replaces single "
    "missing cells by medians and ignores sources that a row lacks; or impute missing cells first, "
    "for example with SimpleImputer() in a Pipeline."
)


@dataclass(frozen=True, eq=False)
class RowReader:
    """Checks new rows of the user and converts them to rows for the kernels of a model.

    Attributes
    ----------
    estimator : str
        The name of the estimator's class, for error messages.
    kernels : list of Kernel
        The kernels, resolved on the training rows.
    n_features : int or None
        The number of columns; None for rows of objects, which only custom kernels accept.
    names : ndarray of str or None
        The names of the columns; None if they are not text.
    labels : tuple
        The names of the columns if they are not text; otherwise empty.
    takes_tables : bool
        Whether rows may have categories, text and missing cells.
    encoder : TableEncoder or None
        The encoder of tables; None if the training rows were numbers.
    medians : ndarray of shape (n_features,) or None
        Replacements of missing cells in new rows, if the training rows were numbers without
        missing cells.
    is_number : tuple of bool or None
        Which columns held numbers in training; None if all did.
    n_matrices : int
        The number of matrices, for precomputed kernels.
    present : tuple of ndarray and int, or None
        The positions of training rows with positive weight, and the number of all training rows,
        for precomputed kernels; None if all rows have positive weight.
    """

    estimator: str
    kernels: list[Kernel]
    n_features: int | None = None
    names: NDArray[np.object_] | None = None
    labels: tuple[Any, ...] = ()
    takes_tables: bool = False
    encoder: TableEncoder | None = None
    medians: FloatArray | None = None
    is_number: tuple[bool, ...] | None = None
    n_matrices: int = 1
    present: tuple[NDArray[np.intp], int] | None = None

    @property
    def given_columns(self) -> NDArray[np.intp]:
        """The position of the user's column for each column of the kernels' rows."""
        return np.arange(self.n_features or 0) if self.encoder is None else self.encoder.source

    def with_columns(self, X: Any) -> RowReader:
        """Return a copy with the number and names of the columns of training rows."""
        return replace(
            self,
            n_features=_count_columns(X),
            names=_get_feature_names(X),
            labels=column_labels(X),
        )

    def read(self, X: Any) -> Any:
        """Return new rows converted for the kernels, or raise an error if they do not fit.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The new rows.
        """
        if self.takes_plain and type(X) is np.ndarray and self._is_plain(X):
            return X
        X = on_host(X)
        if self.present is not None:
            X = self._select_present(X, *self.present)
        encoder = self.encoder
        if encoder is None and self.medians is not None and not is_plain(X):
            encoder = TableEncoder.filling(self.medians)
        if encoder is not None:
            X = as_table(X)
            self.check_columns(X)
            return encoder.encode(X)
        kernels = self.kernels
        if not all(kernel.takes_any_rows or kernel.precomputed for kernel in kernels):
            refuse_views(X)
        with hint(X, self.takes_tables):
            rows = self._checked(X)
        if not kernels[0].precomputed:
            check_range(rows, X)
        return rows

    @cached_property
    def takes_plain(self) -> bool:
        """Whether arrays of finite numbers need no conversion."""
        whole = self.encoder is None and self.present is None and self.is_number is None
        special = any(kernel.precomputed or kernel.takes_missing for kernel in self.kernels)
        return whole and self.names is None and self.n_features is not None and not special

    def _is_plain(self, X: NDArray[Any]) -> bool:
        """Whether an array has the right type and shape, and only numbers in range."""
        if X.dtype != np.float64 or X.ndim != 2 or X.shape[1] != self.n_features or not len(X):
            return False
        # Comparisons with NaN are False.
        return bool(X.max() <= LARGEST and X.min() >= -LARGEST)

    def _checked(self, X: Any) -> Any:
        is_number = self.is_number
        if is_number is None and is_mixed_table(X, self.kernels):
            is_number = (True,) * X.shape[1]  # so that the error names the column
        if is_number is not None or is_frame(X):
            self.check_columns(X)
        else:
            self._check_names(X)
        rows = convert_for_kernels(
            X, self.kernels, self.estimator, n_matrices=self.n_matrices, is_number=is_number
        )
        self._check_count(rows)
        if any(kernel.takes_missing for kernel in self.kernels):
            for kernel in self.kernels:
                kernel.check_rows(rows)
        return rows

    def _select_present(self, X: Any, present: NDArray[np.intp], n_given: int) -> Any:
        """Return the columns of precomputed kernels for training rows with positive weight."""
        if np.ndim(X) < 2 or np.shape(X)[1] != n_given:
            raise InvalidInputError(
                f"Precomputed kernels must be between new rows and all {n_given} training rows, "
                f"including rows of weight 0. Got shape {np.shape(X)}."
            )
        return np.asarray(X)[:, present]

    # ---- columns -----------------------------------------------------------------------------

    def check_columns(self, X: Any) -> None:
        """Raise an error if the number, names or order of columns differ from training.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_columns)
            The new rows.
        """
        self._check_names(X)
        self._check_count(X)
        check_labels(column_labels(X), self.labels)

    def _check_count(self, X: Any) -> None:
        found = _count_columns(X)
        if found is not None and self.n_features is not None and found != self.n_features:
            raise InvalidInputError(
                f"X has {found} features, but {self.estimator} is expecting {self.n_features} "
                "features as input."
            )

    def _check_names(self, X: Any) -> None:
        """Check column names that are text, with the messages of scikit-learn."""
        known = {} if self.names is None else {"feature_names_in_": self.names}
        try:  # of a class that has the estimator's name, for the messages
            _check_feature_names(type(self.estimator, (), known)(), X, reset=False)
        except ValueError as error:
            same = "same order" in str(error)
            advice = "Select them by name: predict(X[model.feature_names_in_]).\n" if same else ""
            raise InvalidInputError(f"{error}{advice}") from None


def refuse_views(X: Any, y: Any = None) -> None:
    """Raise an error if X is a collection of views instead of one table.

    Parameters
    ----------
    X : anything
        The rows that an estimator was given.
    y : sequence, optional
        The labels, one per row.
    """
    if is_sparse(X):  # dok_matrix is a dict
        return
    if isinstance(X, (str, PathLike)):
        raise InvalidInputError(
            f"X must be one table. Got {str(X)!r}. Read the file, such as with pandas.read_csv, or "
            f"fit open_rows({str(X)!r}, target), which reads it in chunks."
        )
    is_named = isinstance(X, Mapping)
    what = "a dictionary" if is_named else f"a {type(X).__name__} of arrays"
    if not is_named:
        if not isinstance(X, (list, tuple)) or len(X) < 2 or (y is not None and len(X) == len(y)):
            return
        shapes: list[tuple[int, ...]] = [getattr(part, "shape", ()) for part in X]
        if any(len(shape) != 2 for shape in shapes) or len({shape[0] for shape in shapes}) > 1:
            return
    raise InvalidInputError(
        f"X must be one table. Got {what}. Join several sources with `views = "
        "join_views(X)` of discernel.views, give the estimator `source_kernels(views)`, and fit it "
        "to `views.table`."
    )


def convert_for_kernels(
    X: Any,
    kernels: list[Kernel],
    estimator: str,
    *,
    n_matrices: int | None = None,
    is_number: Sequence[bool] | None = None,
) -> Any:
    """Return rows converted for kernels, or raise an error if the kernels do not accept them.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Rows, or precomputed kernels between rows.
    kernels : list of Kernel
        The kernels.
    estimator : str
        The name of the estimator's class, for error messages.
    n_matrices : int, optional
        The number of matrices of new rows; None in training, which needs at least two rows.
    is_number : sequence of bool, optional
        Which columns of a table held numbers in training; detected by default.

    Returns
    -------
    ndarray, CSR or Table
        An array of numbers or matrices, a sparse matrix, a `Table` of numbers and other columns,
        or an array of objects for custom kernels.
    """
    takes_missing = any(kernel.takes_missing for kernel in kernels)
    options: dict[str, Any] = {
        "dtype": np.float64,
        "ensure_all_finite": "allow-nan" if takes_missing else True,
        "ensure_min_samples": 2 if n_matrices is None else 1,
        "estimator": estimator,
        "input_name": "X",
    }
    if is_number is not None or is_mixed_table(X, kernels):
        table = Table.of(X, is_number)
        check_array(table.numbers, ensure_min_features=0, **options)
        return table
    if are_objects(X, kernels):
        return np.fromiter(X, dtype=object, count=len(X))
    if any(kernel.precomputed for kernel in kernels):
        if not all(kernel.precomputed for kernel in kernels):
            raise InvalidInputError(
                "Precomputed kernels must not be mixed with other kernels: X is either a stack of "
                f"matrices or rows. Got {kernel_names(kernels)}. Compute the matrices of the other "
                "kernels with kernel(X), and stack all matrices."
            )
        return check_array(stack_matrices(X, n_matrices), allow_nd=True, **options)
    rows = check_array(X, accept_sparse="csr", **options)
    for kernel in kernels:
        refuse_sparse(kernel, rows)
    return rows


@contextmanager
def hint(X: Any, takes_tables: bool) -> Iterator[None]:
    """Add advice to scikit-learn's errors about the cells and the shape of X."""
    try:
        yield
    except OverflowError:
        _refuse_large(X)
        raise
    except ValueError as error:
        if "Input X contains infinity" in str(error):
            _refuse_large(X)
        if "Found array with dim" in str(error):
            raise InvalidInputError(
                f"{error} Pass one row of numbers per sample, such as X.reshape(len(X), -1)."
            ) from None
        if takes_tables or not (refused := re.search(_REFUSED, str(error))):
            raise
        said, found = str(error), find_number(X, np.isnan)
        if "NaN" in refused[0] and found is not None:
            said = _MISSING_REFUSED.format(column=found[1], row=found[2])
        raise InvalidInputError(f"{said}\n{AUTO_TAKES_TABLES}") from error


def check_range(rows: Any, given: Any) -> None:
    """Raise an error that names the column if a number is too large."""
    numbers: Any = rows.numbers if isinstance(rows, Table) else rows
    numbers = numbers.data if is_sparse(numbers) else numbers
    if numbers.dtype != object and not are_in_range(numbers):
        _refuse_large(given)


def _refuse_large(X: Any) -> None:
    """Raise an error that names the first too large number, if there is one."""
    if found := find_number(X, out_of_range):
        raise number_out_of_range(*found)


def stack_matrices(X: Any, n_expected: int | None = None) -> Any:
    """Return matrices as one array with kernels on the last axis, or raise an error.

    Parameters
    ----------
    X : array-like
        The matrices.
    n_expected : int, optional
        The number of matrices in training; None in training.
    """
    if isinstance(X, (list, tuple)):
        try:
            X = np.asarray(X)
        except ValueError as error:
            raise InvalidInputError(
                "Precomputed kernels must be matrices of the same rows, with one shape. NumPy: "
                f"{error} Stack matrices with np.stack(matrices, axis=-1)."
            ) from error
    shape = np.shape(X)
    wanted = "(n_samples, n_samples) or (n_samples, n_samples, n_kernels)"
    is_right = len(shape) not in (2, 3) or shape[0] == shape[1]
    if n_expected is not None:
        wanted = f"(n_rows, n_samples, n_kernels = {n_expected})"
        is_right = len(shape) != 3 or shape[2] == n_expected
    if is_right:
        return X
    raise InvalidInputError(
        f"Precomputed kernels must have the shape {wanted}. Got {shape}. Stack a list of matrices "
        "with np.stack(matrices, axis=-1); convert a stack with the kernels on the first axis "
        "with np.moveaxis(stack, 0, -1)."
    )


def is_mixed_table(X: Any, kernels: list[Kernel]) -> bool:
    """Whether X is a table with columns other than numbers, from which kernels take columns."""
    if isinstance(X, np.ndarray):
        # If all kernels accept any rows and none selects columns, they get whole rows. If no
        # kernel accepts any rows, scikit-learn's checks raise the error.
        able = [kernel.takes_any_rows for kernel in kernels]
        whole = all(able) and all(kernel.source is None for kernel in kernels)
        return any(able) and not whole and is_mixed(X)
    return is_mixed(X)


def are_objects(X: Any, kernels: list[Kernel]) -> bool:
    """Whether rows are objects, which only custom kernels accept."""
    if not all(kernel.takes_any_rows for kernel in kernels):
        return False
    if is_frame(X) or is_sparse(X):
        return False
    try:
        return np.asarray(X).dtype.kind not in "fiub"
    except ValueError:  # rows of different lengths
        return True


def _count_columns(X: Any) -> int | None:
    try:
        return int(_num_features(X))
    except TypeError:  # objects without columns
        return None
