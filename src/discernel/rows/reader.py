"""From rows as users have them to rows as kernels take them, checked."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import _get_feature_names, _num_features

from discernel.arrays import FloatArray, is_frame, is_sparse, on_host
from discernel.exceptions import InvalidInputError, caller_stacklevel
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.calls import refuse_sparse
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
from discernel.rows.views import refuse_views

#: What scikit-learn says of cells that kernels of numbers do not take.
_REFUSED = "Input X contains NaN|could not convert string"
#: What is said of missing cells instead: scikit-learn names estimators of its own.
_MISSING_REFUSED = (
    "Input X contains NaN. Kernels must see numbers, none of them missing; the column {column!r} "
    "has NaN in row {row}. Give WhereKnown(kernel) of discernel.kernels in place of the kernel, "
    "which fills single cells by medians and ignores columns that a row lacks altogether, or fill "
    "the cells in before, for example with SimpleImputer() in a Pipeline."
)


@dataclass(frozen=True)
class RowReader:
    """From new rows, as users have them, to rows as the kernels of a model take them.

    Attributes
    ----------
    estimator : str
        The name of the class that was fitted, for messages.
    kernels : list of Kernel
        The kernels, with all that depends on training rows fixed.
    n_features : int or None
        The number of columns; None for rows that only a user's own kernels understand.
    names : ndarray of str or None
        The names of the columns, where these are text.
    labels : tuple
        The names of the columns, where these are no text.
    takes_tables : bool
        Whether rows may have categories, text and missing cells.
    encoder : TableEncoder or None
        The encoder of tables; None where training rows were numbers.
    medians : ndarray of shape (n_features,) or None
        Fill values of missing cells, where training rows were numbers without any.
    is_number : tuple of bool or None
        Which columns held numbers; None where all did.
    n_matrices : int
        How many matrices are given for X, where X is matrices.
    present : tuple of ndarray and int, or None
        Which rows of given training matrices have weight, and how many there are; None: all.
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
        """The column that was given which each column that kernels take is of."""
        return np.arange(self.n_features or 0) if self.encoder is None else self.encoder.source

    def with_columns(self, X: Any) -> RowReader:
        """Return the reader with number and names of the columns of training rows."""
        return replace(
            self,
            n_features=_count_columns(X),
            names=_get_feature_names(X),
            labels=column_labels(X),
        )

    def read(self, X: Any) -> Any:
        """Return new rows as the kernels take them, or raise a clear error.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.
        """
        if self.takes_plain and type(X) is np.ndarray and self._is_plain(X):
            return X
        X = on_host(X)
        if self.present is not None:
            X = self._of_present(X, *self.present)
        if (encoder := self._encoder_for(X)) is not None:
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
        """Whether arrays of finite numbers are taken as they are."""
        whole = self.encoder is None and self.present is None and self.is_number is None
        special = any(kernel.precomputed or kernel.takes_missing for kernel in self.kernels)
        return whole and self.names is None and self.n_features is not None and not special

    def _is_plain(self, X: NDArray[Any]) -> bool:
        if X.dtype != np.float64 or X.ndim != 2 or X.shape[1] != self.n_features or not len(X):
            return False
        # Comparisons with NaN are False.
        return bool(X.max() <= LARGEST and X.min() >= -LARGEST)

    def _checked(self, X: Any) -> Any:
        is_number = self.is_number
        if is_number is None and is_mixed_table(X, self.kernels):
            is_number = (True,) * X.shape[1]  # the column that holds other things is named
        if is_number is not None or is_frame(X):
            self.check_columns(X)
        else:
            self._check_names(X)
        rows = check_rows(
            X, self.kernels, self.estimator, n_matrices=self.n_matrices, is_number=is_number
        )
        self._check_count(rows)
        if missing_allowed(self.kernels) == "allow-nan":
            check_kernels_take(self.kernels, rows)
        return rows

    def _encoder_for(self, X: Any) -> TableEncoder | None:
        """Return what turns new rows into numbers; None where they are numbers already."""
        if self.encoder is not None or self.medians is None or is_plain(X):
            return self.encoder
        return TableEncoder.filling(self.medians)

    def _of_present(self, X: Any, present: NDArray[np.intp], n_given: int) -> Any:
        if np.ndim(X) < 2 or np.shape(X)[1] != n_given:
            raise InvalidInputError(
                "Precomputed kernels must be given between new rows and all training rows, here "
                f"{n_given}, also those of weight 0. Got shape {np.shape(X)}."
            )
        return np.asarray(X)[:, present]

    # ---- columns -----------------------------------------------------------------------------

    def check_columns(self, X: Any) -> None:
        """Raise where columns are not those of training: their number, their names, their order.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_columns)
            New rows.
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
        """Check names of text, and say about them what scikit-learn says."""
        names, given = self.names, _get_feature_names(X)
        if names is None and given is None:
            return
        if names is None or given is None:
            found = "has" if names is None else "does not have valid"
            fitted = "without" if names is None else "with"
            warnings.warn(
                f"X {found} feature names, but {self.estimator} was fitted {fitted} feature names",
                UserWarning,
                stacklevel=caller_stacklevel(),
            )
            return
        if len(names) == len(given) and (names == given).all():
            return
        said = "The feature names should match those that were passed during fit.\n"
        unexpected, missing = sorted(set(given) - set(names)), sorted(set(names) - set(given))
        if unexpected:
            said += "Feature names unseen at fit time:\n" + _listed(unexpected)
        if missing:
            said += "Feature names seen at fit time, yet now missing:\n" + _listed(missing)
        if not missing and not unexpected:
            said += "Feature names must be in the same order as they were in fit.\n"
        raise InvalidInputError(said)


def check_rows(
    X: Any,
    kernels: list[Kernel],
    estimator: str,
    *,
    n_matrices: int | None = None,
    is_number: Sequence[bool] | None = None,
) -> Any:
    """Return rows as kernels take them, or raise a clear error.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Rows, or kernels between rows.
    kernels : list of Kernel
        The kernels that take the rows.
    estimator : str
        The name of a class, for messages.
    n_matrices : int, optional
        How many matrices new rows must have; None in training, which takes two rows at least.
    is_number : sequence of bool, optional
        Which columns held numbers in training, of rows that are a table; found out by default.

    Returns
    -------
    ndarray, CSR or Table
        Numbers or matrices; columns of numbers beside columns of other things; or objects, of
        which kernels take a row as it is.
    """
    options: dict[str, Any] = {
        "dtype": np.float64,
        "ensure_all_finite": missing_allowed(kernels),
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
                "Precomputed kernels must not be mixed with kernels of rows: X is either a stack "
                f"of matrices or rows. Got {kernel_names(kernels)}. Compute the others too, with "
                "kernel(X), and stack all of them."
            )
        return check_array(stack_matrices(X, n_matrices), allow_nd=True, **options)
    rows = check_array(X, accept_sparse="csr", **options)
    for kernel in kernels:
        refuse_sparse(kernel, rows)
    return rows


@contextmanager
def hint(X: Any, takes_tables: bool) -> Iterator[None]:
    """Add advice to errors about missing cells and text; name numbers that are too large."""
    try:
        yield
    except OverflowError:
        _refuse_large(X)
        raise
    except ValueError as error:
        if "Input X contains infinity" in str(error):
            _refuse_large(X)
        if takes_tables or not (refused := re.search(_REFUSED, str(error))):
            raise
        said, found = str(error), find_number(X, np.isnan)
        if "NaN" in refused[0] and found is not None:
            said = _MISSING_REFUSED.format(column=found[1], row=found[2])
        raise InvalidInputError(f"{said}\n{AUTO_TAKES_TABLES}") from error


def missing_allowed(kernels: list[Kernel]) -> bool | str:
    """Return what scikit-learn's checks are told about missing cells."""
    return "allow-nan" if any(kernel.takes_missing for kernel in kernels) else True


def check_kernels_take(kernels: list[Kernel], X: Any) -> None:
    """Raise a clear error where a kernel cannot take what stands in its columns."""
    for kernel in kernels:
        kernel.check_rows(X)


def check_range(rows: Any, given: Any) -> None:
    """Raise an error that names the column of a number that is too large."""
    numbers: Any = rows.numbers if isinstance(rows, Table) else rows
    numbers = numbers.data if is_sparse(numbers) else numbers
    if numbers.dtype != object and not are_in_range(numbers):
        _refuse_large(given)


def _refuse_large(X: Any) -> None:
    """Raise an error that names the first number that is too large, if there is one."""
    if found := find_number(X, out_of_range):
        raise number_out_of_range(*found)


def stack_matrices(X: Any, n_expected: int | None = None) -> Any:
    """Return matrices as one array, kernels last, or raise an error that says how to stack them.

    Parameters
    ----------
    X : array-like
        Matrices.
    n_expected : int, optional
        How many there are for new rows, as in training; None in training.
    """
    if isinstance(X, (list, tuple)):
        try:
            X = np.asarray(X)
        except ValueError as error:
            raise InvalidInputError(
                "Precomputed kernels must be matrices of one shape, of the same rows. Got a list "
                f"of which NumPy says: {error} Stack them by np.stack(matrices, axis=-1)."
            ) from error
    shape: tuple[int, ...] = getattr(X, "shape", ())
    wanted = "(n_samples, n_samples) or (n_samples, n_samples, n_kernels)"
    is_right = len(shape) not in (2, 3) or shape[0] == shape[1]
    if n_expected is not None:
        wanted = f"(n_rows, n_samples, n_kernels = {n_expected})"
        is_right = len(shape) != 3 or shape[2] == n_expected
    if is_right:
        return X
    raise InvalidInputError(
        f"Precomputed kernels must be given as {wanted}, the kernels last. Got {shape}. A list of "
        "matrices becomes that by np.stack(matrices, axis=-1), a stack with the kernels first by "
        "np.moveaxis(stack, 0, -1)."
    )


def is_mixed_table(X: Any, kernels: list[Kernel]) -> bool:
    """Whether X is a table with other things than numbers, which kernels take column by column."""
    if isinstance(X, np.ndarray):
        # Where all kernels take any rows, and none picks columns, they get them whole; where none
        # takes any, scikit-learn's own checks say what is wrong.
        able = [kernel.takes_any_rows for kernel in kernels]
        whole = all(able) and all(kernel.source is None for kernel in kernels)
        return any(able) and not whole and is_mixed(X)
    return is_mixed(X)


def are_objects(X: Any, kernels: list[Kernel]) -> bool:
    """Whether rows are of a kind that only the user's own kernels understand."""
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
    except TypeError:  # what has no columns
        return None


def _listed(names: list[str]) -> str:
    shown = "".join(f"- {name}\n" for name in names[:5])
    return shown + ("- ...\n" if len(names) > 5 else "")
