"""What all estimators share: rows, checked and owned, and kernels fixed to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import validate_data

from discernel.arrays import Device, FloatArray, check_given, elsewhere, on_host
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel, Linear, Standardized, as_kernels, kernel_names
from discernel.kernels.base import Known
from discernel.kernels.calls import refuse_sparse
from discernel.kernels.columns import AUTO_TAKES_TABLES, Table, column_quantiles, is_mixed
from discernel.kernels.settings import get_settings, with_settings
from discernel.tables import TableEncoder
from discernel.tables.cells import (
    are_in_range,
    as_table,
    check_columns,
    column_names,
    is_plain,
    number_out_of_range,
    out_of_range,
    read_column,
)
from discernel.tables.encoder import has_row_numbers
from discernel.tables.facts import ColumnFacts
from discernel.views import refuse_views

__all__ = ["BaseRowEstimator", "are_precomputed"]

#: What scikit-learn says of cells that kernels of numbers do not take.
_REFUSED = "Input X contains NaN|could not convert string"
#: What is said of missing cells instead: scikit-learn names estimators of its own.
_MISSING_REFUSED = (
    "Input X contains NaN. Kernels must see numbers, none of them missing; the column {column!r} "
    "has NaN in row {row}. Give WhereKnown(kernel) of discernel.kernels in place of the kernel, "
    "which fills single cells by medians and ignores columns that a row lacks altogether, or fill "
    "the cells in before, for example with SimpleImputer() in a Pipeline."
)


class BaseRowEstimator(BaseEstimator):
    """Check rows as the kernels take them; reach the settings of kernels.

    Subclasses have a parameter ``kernels``, or say otherwise by `_candidates` what there is.
    """

    #: The parameters that hold kernels.
    _kernel_parameters: ClassVar[tuple[str, ...]] = ("kernel", "kernels")
    #: Which columns of the training rows held numbers; None where all did.
    _is_number: tuple[bool, ...] | None = None
    #: The names of its columns, where these are no text.
    _column_labels: Sequence[Any] = ()
    #: How many matrices were given for X in training, where X is matrices.
    _n_given: int = 1
    #: What missing cells of new rows become, where training rows were numbers without any.
    _medians: FloatArray | None = None
    #: The labels of the rows that predictions are made from, and where they stood in training;
    #: None where that is not known.
    _kept_labels: NDArray[Any] | None = None
    _kept_rows: NDArray[np.intp] | None = None
    #: Where kernels are computed; None: here.
    _device: Device | None = None
    #: Whether they can be computed elsewhere.
    _computes_there: ClassVar[bool] = False
    kernels: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, and with ``deep`` those of the kernels among them.

        Parameters
        ----------
        deep : bool, default=True
            Whether the settings of kernels are included: ``kernel__width``, ``kernels__0__width``
            in a list, ``kernels__name__width`` in a dictionary.

        Returns
        -------
        dict of str to value
            By name.
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for name in self._kernel_parameters:
                if name in params:
                    settings = get_settings(params[name])
                    params |= {f"{name}__{inner}": value for inner, value in settings.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of kernels among them, which are replaced and never changed.

        Parameters
        ----------
        **params : dict
            By the names of `get_params`.

        Returns
        -------
        self
            This estimator.
        """
        plain: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for path, value in params.items():
            name, _, inner = path.partition("__")
            if inner and name in self._kernel_parameters and name in self._get_param_names():
                nested.setdefault(name, {})[inner] = value
            else:
                plain[path] = value
        for name, changes in nested.items():
            plain[name] = with_settings(plain.get(name, getattr(self, name)), changes)
        super().set_params(**plain)
        return self

    def _candidates(self) -> Any:
        """Return the kernels as the user gave them."""
        return self.kernels

    def _takes_tables(self) -> bool:
        """Whether rows may have categories, text and missing cells."""
        kernels = self._candidates()
        return isinstance(kernels, str) and kernels == "auto"

    def _validate_training(
        self,
        X: Any,
        y: Any,
        *,
        keep: bool = True,
        facts: Sequence[ColumnFacts] | None = None,
        **options: Any,
    ) -> tuple[Any, Any, list[Kernel]]:
        """Return X and y, checked, and the kernels with all that depends on X fixed.

        Rows that are to be kept are our own: what the caller does to them later is not seen. With
        ``facts``, X is a random part of the training rows, of the columns of which this is known.
        """
        X, y = on_host(X), on_host(y)
        given, kernels = X, self._candidates()
        self.encoder_: TableEncoder | None = None
        self._medians, self._column_labels = None, []
        if isinstance(kernels, str) and kernels == "precomputed":
            X = _stacked(X)
        else:
            refuse_views(X, y)
        candidates = as_kernels(kernels, n_precomputed=_n_matrices(X))
        if self._takes_tables() and not (is_plain(X) and not has_row_numbers(X, facts)):
            X, y = self._encode_training(X, y, facts, **options)
            return X, y, self._resolve(candidates, X, X)
        X, y = self._validate(X, candidates, y, reset=True, **options)
        if keep and not candidates[0].precomputed:
            X = _owned(X, given)
        if self._takes_tables() and isinstance(X, np.ndarray):
            (self._medians,) = column_quantiles(X, (0.5,))
        return X, y, self._resolve(candidates, X, given)

    def _device_for(self, *given: Any) -> Device | None:
        """Return where to compute: the device that is named, or that of what was given.

        None is NumPy, which also computes with what other libraries have in its memory.
        """
        found, named = check_given(*given), getattr(self, "device", None)
        if named == "cpu" or not self._computes_there:  # needs no other library
            return None
        return elsewhere(found if named is None else Device.named(named))

    def _resolve(self, candidates: list[Kernel], X: Any, frame: Any) -> list[Kernel]:
        """Return the kernels with all that depends on X fixed."""
        if candidates[0].precomputed:
            return candidates
        names = frame if hasattr(frame, "columns") else X
        known: Known = {}
        if self.encoder_ is not None:
            # Divided by its deviation, a rare category would be far from all others.
            names, known = X, {"spreads": self.encoder_.spreads}
        if self._takes_tables() and isinstance(X, np.ndarray):
            candidates = [Standardized(Linear())]  # spreads; others are proposed later
        resolved = [kernel.resolve(X, names, known) for kernel in candidates]
        _check_rows(resolved, X)
        return resolved

    def _encode_training(
        self, X: Any, y: Any, facts: Sequence[ColumnFacts] | None, **options: Any
    ) -> tuple[Any, Any]:
        """Return a table as numbers, and y checked; the encoder is kept."""
        X = as_table(X)
        check_columns(self, X, reset=True)
        encoder = TableEncoder().fit(X, facts=facts)
        encoded, y = check_X_y(
            encoder.encode(X), y, dtype=np.float64, ensure_min_samples=2, estimator=self, **options
        )
        self._is_number, self._n_given = None, 1
        self.encoder_ = encoder
        return encoded, y

    def _encoder_for(self, X: Any) -> TableEncoder | None:
        """Return what turns new rows into numbers; None where they are numbers already."""
        encoder: TableEncoder | None = getattr(self, "encoder_", None)
        if encoder is not None or self._medians is None or is_plain(X):
            return encoder
        return TableEncoder.filling(self._medians)

    def _validate(
        self,
        X: Any,
        kernels: list[Kernel],
        y: Any = None,
        *,
        reset: bool = False,
        **options: Any,
    ) -> Any:
        """Return X as the kernels take it, at training (``reset``) with y."""
        X = on_host(X)
        if not reset and (encoder := self._encoder_for(X)) is not None:
            X = as_table(X)
            check_columns(self, X, reset=False)
            return encoder.encode(X)
        if not reset and not all(k.takes_any_rows or k.precomputed for k in kernels):
            refuse_views(X)
        with self._hint(X):
            checked = self._validate_rows(X, kernels, y, reset=reset, **options)
        if not kernels[0].precomputed:
            _check_range(checked[0] if reset else checked, X)
        return checked

    @contextmanager
    def _hint(self, X: Any) -> Iterator[None]:
        """Say what takes missing cells and text, where these are refused; name large numbers."""
        try:
            yield
        except OverflowError:
            _refuse_large(X)
            raise
        except ValueError as error:
            if "Input X contains infinity" in str(error):
                _refuse_large(X)
            if self._takes_tables() or not (refused := re.search(_REFUSED, str(error))):
                raise
            said, found = str(error), _find_number(X, np.isnan)
            if "NaN" in refused[0] and found is not None:
                said = _MISSING_REFUSED.format(column=found[1], row=found[2])
            raise InvalidInputError(f"{said}\n{AUTO_TAKES_TABLES}") from error

    def _validate_rows(
        self, X: Any, kernels: list[Kernel], y: Any, *, reset: bool, **options: Any
    ) -> Any:
        """Return numbers, matrices, or columns of other things for kernels that take them."""
        expected = None if reset else self._is_number
        if expected is not None or _is_mixed(X, kernels):
            return self._validate_mixed(X, kernels, y, reset=reset, **options)
        if all(kernel.takes_any_rows for kernel in kernels) and not _is_table_of_numbers(X):
            rows = np.fromiter(X, dtype=object, count=len(X))
            if reset and len(rows) != len(y):
                raise InvalidInputError(
                    f"There must be one label per row. Got {len(rows)} rows and {len(y)} labels."
                )
            return (rows, y) if reset else rows
        precomputed = any(kernel.precomputed for kernel in kernels)
        if precomputed:
            X = _stacked(X, None if reset else self._n_given)
        if precomputed and not all(kernel.precomputed for kernel in kernels):
            raise InvalidInputError(
                "Precomputed kernels must not be mixed with kernels of rows: X is either a stack "
                f"of matrices or rows. Got {kernel_names(kernels)}. Compute the others too, with "
                "kernel(X), and stack all of them."
            )
        if hasattr(X, "columns"):
            check_columns(self, X, reset=reset)
        checked = validate_data(
            self,
            X,
            **({"y": y} if reset else {}),
            reset=reset,
            dtype=np.float64,
            accept_sparse=False if precomputed else "csr",
            allow_nd=precomputed,
            ensure_min_samples=2 if reset else 1,
            ensure_all_finite=_missing_allowed(kernels),
            **options,
        )
        for kernel in kernels:
            refuse_sparse(kernel, checked[0] if reset else checked)
        if not reset and _missing_allowed(kernels) == "allow-nan":
            _check_rows(kernels, checked)
        if reset:
            self._is_number, self._n_given = None, _n_matrices(checked[0])
        if precomputed and reset and checked[0].shape[0] != checked[0].shape[1]:
            raise InvalidInputError(
                "Precomputed kernels must be given as (n_samples, n_samples) or (n_samples, "
                f"n_samples, n_kernels), the kernels last. Got {checked[0].shape}. A stack with "
                "the kernels first is turned by np.moveaxis(stack, 0, -1)."
            )
        return checked

    def _validate_mixed(
        self, X: Any, kernels: list[Kernel], y: Any, *, reset: bool, **options: Any
    ) -> Any:
        """Return X as a table of numbers and other things, at training with y."""
        check_columns(self, X, reset=reset)
        expected = self._is_number or [True] * X.shape[1]
        table = Table.of(X, None if reset else expected)
        checks: dict[str, Any] = {"dtype": np.float64, "ensure_min_features": 0, "estimator": self}
        checks["ensure_all_finite"] = _missing_allowed(kernels)
        if not reset:
            check_array(table.numbers, input_name="X", **checks)
            if _missing_allowed(kernels) == "allow-nan":
                _check_rows(kernels, table)
            return table
        _, y = check_X_y(table.numbers, y, ensure_min_samples=2, **checks, **options)
        self._is_number = table.is_number
        return table, y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = are_precomputed(self._candidates())
        tags.input_tags.sparse = _take_sparse(self._candidates())
        # Not `categorical`: scikit-learn's checks would make codes of all numbers, as they would
        # not of what histogram gradient boosting takes, which has no such tag either.
        tags.input_tags.allow_nan = tags.input_tags.string = self._takes_tables()
        return tags


def _missing_allowed(kernels: list[Kernel]) -> bool | str:
    """Return what scikit-learn's checks are told about missing cells."""
    return "allow-nan" if any(kernel.takes_missing for kernel in kernels) else True


def _check_range(rows: Any, given: Any) -> None:
    """Raise an error that names the column of a number that is too large."""
    numbers: Any = rows.numbers if isinstance(rows, Table) else rows
    numbers = numbers.data if hasattr(numbers, "tocsr") else numbers
    if numbers.dtype != object and not are_in_range(numbers):
        _refuse_large(given)


def _refuse_large(X: Any) -> None:
    """Raise an error that names the first number that is too large, if there is one."""
    if found := _find_number(X, out_of_range):
        raise number_out_of_range(*found)


def _find_number(
    X: Any, which: Callable[[FloatArray], NDArray[np.bool_]]
) -> tuple[Any, str, int] | None:
    """Return the first of some numbers of a table, its column and its row; None without any."""
    if hasattr(X, "tocsr"):
        cells = X.tocoo()
        for place in np.flatnonzero(which(cells.data))[:1]:
            return cells.data[place], f"x{cells.col[place]}", int(cells.row[place])
        return None
    X = X if hasattr(X, "columns") else np.asarray(X)
    for position, name in enumerate(column_names(X) if len(X.shape) == 2 else []):
        column = read_column(X, position, name)
        found = which(column.numbers) if column.kinds <= {"number"} else np.zeros(0, dtype=bool)
        if found.any():
            return column.cells[found.argmax()], name, int(found.argmax())
    return None


def _check_rows(kernels: list[Kernel], X: Any) -> None:
    """Raise a clear error where a kernel cannot take what stands in its columns."""
    for kernel in kernels:
        kernel.check_rows(X)


def _is_mixed(X: Any, kernels: list[Kernel]) -> bool:
    """Whether X is a table with other things than numbers, which kernels take column by column."""
    if isinstance(X, np.ndarray):
        # Where all kernels take any rows, and none picks columns, they get them whole; where none
        # takes any, scikit-learn's own checks say what is wrong.
        able = [kernel.takes_any_rows for kernel in kernels]
        whole = all(able) and not any(kernel.picks_columns for kernel in kernels)
        return any(able) and not whole and is_mixed(X)
    return is_mixed(X)


def _owned(X: Any, given: Any) -> Any:
    """Return rows that share no memory with what was given, copied only where they may."""
    if isinstance(X, Table):
        return X  # made of copies
    if hasattr(X, "tocsr"):
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
    return X if hasattr(given, "columns") and X.base is None else X.copy()


def _may_share(ours: Any, theirs: Any) -> bool:
    return isinstance(theirs, np.ndarray) and np.may_share_memory(ours, theirs)


def _n_matrices(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return int(shape[2]) if shape is not None and len(shape) == 3 else 1


def _stacked(X: Any, n_expected: int | None = None) -> Any:
    """Return matrices as one array, kernels last, or raise an error that says how to stack them.

    ``n_expected`` matrices are given for new rows, as in training.
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
    wrong = len(shape) == 3 and (
        shape[0] != shape[1] if n_expected is None else shape[2] != n_expected
    )
    if not wrong:
        return X
    wanted = "(n_samples, n_samples, n_kernels)"
    if n_expected is not None:
        wanted = f"(n_rows, n_samples, n_kernels = {n_expected})"
    raise InvalidInputError(
        f"Precomputed kernels must be given as {wanted}, the kernels last. Got {shape}. A list of "
        "matrices becomes that by np.stack(matrices, axis=-1), a stack with the kernels first by "
        "np.moveaxis(stack, 0, -1)."
    )


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


def _take_sparse(candidates: Any) -> bool:
    """Whether X may be sparse; True for candidates that are no kernels at all."""
    try:
        return all(kernel.takes_sparse for kernel in as_kernels(candidates))
    except InvalidInputError:
        return True


def _is_table_of_numbers(X: Any) -> bool:
    """Whether X is anything but rows of a kind that only the user's own callables understand."""
    if hasattr(X, "columns") or hasattr(X, "tocsr"):
        return True
    try:
        return np.asarray(X).dtype.kind in "fiub"
    except ValueError:  # rows of different lengths
        return False
