"""Predictions of a model fitted by discernel, with NumPy only.

This file is the same for all models. The numbers of a model are in a file of the same name that
ends with ``.npz``. With ``scorer.py`` and ``scorer.npz``::

    import scorer

    scorer.predict(rows)        # a label or number per row
    scorer.predict_proba(rows)  # a probability per row and class
    scorer.classes()            # the classes, in the order of those columns

A model of numbers has only ``predict``.

Rows are an array, a dataframe, a dictionary of columns, or a list of dictionaries, one per row.
Missing cells are None or NaN, if the model accepts missing cells.

The scores of a row x are f(x) = Σ_j c_j k(x, z_j) + b, with stored rows z_j and a kernel k that is
a sum of products. Predicted numbers are these scores; log-probabilities of classes are a linear
function of f(x), up to normalization. The ``.npz`` file contains this computation as a sequence of
NumPy functions, the steps.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Version of the ``.npz`` format, increased with every change.
FORMAT = 5
#: Largest absolute value of a number; sums of squares stay finite.
LARGEST = 1e150
#: Texts that mean a missing cell.
MISSING_VALUES = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "?")
#: Entries of a matrix between new and stored rows computed at a time; they fit into a cache.
_BLOCK = 2**18
#: exp(−690) is 1e-300; processors are slow with smaller numbers.
_LEAST = -690.0


def predict(X: Any) -> NDArray[Any]:
    """Return the label of each row, or its predicted numbers."""
    return _beside().predict(X)


def predict_proba(X: Any) -> Floats:
    """Return the probability of each class, one row per row and one column per class."""
    return _beside().predict_proba(X)


def classes() -> NDArray[Any]:
    """Return the classes, in the order of the columns of `predict_proba`."""
    return _beside().known_classes()


@lru_cache(maxsize=1)
def _beside() -> Scorer:
    """Return the model of the ``.npz`` file beside this file."""
    return Scorer.load(Path(__file__).with_suffix(".npz"))


# ---- steps -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One function of matrices with a row per new row.

    Attributes
    ----------
    name : str
        A key of `FUNCTIONS`, ``"constant"``, or ``"column_sums"``: the sum over l of a function of
        column l of the new rows (as a column vector) and column l of the stored rows.
    inputs : sequence of int
        Positions of the inputs among all values. The first values are the arguments of the
        computation; every step adds one value.
    width : int
        Number of columns of the value.
    constant : float or ndarray, or None
        The value of ``"constant"``.
    body : Computation or None
        The function of ``"column_sums"``.
    """

    name: str
    inputs: Sequence[int] = ()
    width: int = 1
    constant: Any = None
    body: Computation | None = None

    @property
    def function(self) -> Callable[..., Any]:
        """The function of the inputs."""
        return FUNCTIONS[self.name] if self.body is None else self.body.column_sums


@dataclass(frozen=True)
class Computation:
    """A sequence of steps; the last value is the result.

    Attributes
    ----------
    n_given : int
        Number of arguments.
    steps : sequence of Step
        The steps.
    """

    n_given: int
    steps: Sequence[Step]

    def __call__(self, *given: Any) -> Any:
        """Return the last value; other values are released when no later step needs them."""
        known, calls = self._plan
        values = [*given, *known]
        for place, function, inputs, dropped in calls:
            values[place] = function(*[values[each] for each in inputs])
            for each in dropped:
                values[each] = None
        return values[-1]

    @cached_property
    def _plan(self) -> tuple[list[Any], list[Any]]:
        """Constants (else None); position, function, inputs and releases of other steps."""
        places = list(enumerate(self.steps, start=self.n_given))
        last = {each: place for place, step in places for each in step.inputs}
        calls = [
            (i, step.function, step.inputs, [each for each in step.inputs if last[each] == i])
            for i, step in places
            if step.name != "constant"
        ]
        return [step.constant for step in self.steps], calls

    def column_sums(self, new: Floats, stored: Floats) -> Floats:
        """Return the sum over columns of the result for one column of both arguments."""
        total = np.zeros((len(new), len(stored)))
        for left, right in zip(new.T, stored.T, strict=True):
            total += self(left[:, None], right)
        return total


def _exp(X: Floats) -> Floats:
    return np.exp(np.maximum(X, _LEAST))


def _row_sums(X: Floats) -> Floats:
    return np.asarray(np.sum(X, axis=1, keepdims=True))


def _row_all(X: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(np.all(X, axis=1, keepdims=True))


def _take(X: Floats, columns: NDArray[np.int64]) -> Floats:
    return np.asarray(X[:, columns])


def _concat(*parts: Floats) -> Floats:
    return np.concatenate(parts, axis=1)


#: The functions of steps.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": operator.pow,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "matmul": np.matmul,
    "negative": np.negative,
    "absolute": np.absolute,
    "sqrt": np.sqrt,
    "exp": _exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sum": _row_sums,
    "all": _row_all,
    "isnan": np.isnan,
    "greater": np.greater,
    "equal": np.equal,
    "where": np.where,
    "take": _take,
    "concat": _concat,
}


# ---- columns of tables -------------------------------------------------------------------------


@dataclass(frozen=True)
class InputColumn:
    """An input column of a model, and its conversion to numbers.

    Attributes
    ----------
    position : int
        Position of the column in the table.
    values : sequence of str, or None
        Categories; the number of a category is its position, and unknown categories have the next
        number. None for a column of numbers.
    is_text : bool
        Whether categories must be text.
    missing : int
        Number of a missing category. Missing numbers are NaN.
    """

    position: int
    values: Sequence[str] | None = None
    is_text: bool = False
    missing: int = 0

    def read(self, name: str, cells: NDArray[Any]) -> Floats:
        """Return the cells as numbers, or raise an error that names the column."""
        if self.values is None:
            return as_numbers(name, cells)
        places = {value: place for place, value in enumerate(self.values)}
        out = np.empty(len(cells))
        for row, cell in enumerate(cells.tolist()):
            if is_missing(cell):
                out[row] = self.missing
            elif self.is_text and not isinstance(cell, (str, bytes)):
                raise ValueError(f"The column {name!r} must hold text. Got {cell!r} in row {row}.")
            else:
                out[row] = places.get(as_word(cell), len(places))
        return out


def is_missing(cell: Any) -> bool:
    # Missing values of pandas are recognized by class name: pandas need not be installed.
    if isinstance(cell, str):
        return cell in MISSING_VALUES
    is_nan = isinstance(cell, (float, np.floating, Decimal)) and cell != cell
    return cell is None or is_nan or type(cell).__name__ in ("NAType", "NaTType")


def as_word(cell: Any) -> str:
    """Return a category as text, the same for equal numbers of any type; float32 0.1 is "0.1"."""
    if isinstance(cell, bytes):
        return cell.decode(errors="replace")
    if not isinstance(cell, (float, np.floating, Decimal)):
        return str(cell)
    number = float(cell)
    if np.isfinite(number) and cell == int(cell):
        return str(int(cell))
    with np.errstate(over="ignore"):
        single = np.float32(number)
    return repr(float(str(single)) if single == number else number)


def as_numbers(name: str, cells: NDArray[Any]) -> Floats:
    """Return the cells of a column as numbers, NaN where missing."""
    if cells.dtype.kind not in "fiub":
        known = [cell for cell in cells.tolist() if not is_missing(cell)]
        strange = [cell for cell in known if isinstance(cell, (str, bytes))]
        if strange:
            raise ValueError(f"The column {name!r} must hold numbers. Got {strange[0]!r}.")
        huge = [cell for cell in known if isinstance(cell, int) and abs(cell) > LARGEST]
        if huge:
            raise ValueError(_too_large(name, f"{Decimal(huge[0]):.3g}"))
        cells = np.array([np.nan if is_missing(c) else float(c) for c in cells.tolist()])
    numbers = np.asarray(cells, dtype=np.float64)
    large = numbers[np.abs(numbers) > LARGEST]
    if len(large):
        raise ValueError(_too_large(name, large[0]))
    return numbers


def _too_large(name: str, number: Any) -> str:
    size = f"at most {LARGEST:g} in size"
    return f"The column {name!r} must hold finite numbers, {size}. Got {number}."


def cells_of(X: Any, name: str, position: int) -> NDArray[Any]:
    """Return one column of a table that `as_table` returned."""
    if not isinstance(X, Mapping):
        return np.asarray(X[:, position])
    if name not in X:
        raise ValueError(
            f"The table must have the column {name!r}. Got {list(X)}. Rename the column, or pass "
            "an array with all columns of training, in their order."
        )
    return _exact_cells(X[name])


def as_table(X: Any, n_columns: int) -> Any:
    """Return a dictionary of columns if they have names, else an array of the right shape."""
    if isinstance(X, Mapping):
        return X
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping):
        names = dict.fromkeys(name for row in X for name in row)
        return {name: [row.get(name) for row in X] for name in names}
    if hasattr(X, "columns"):
        X = X.collect() if hasattr(X, "collect") else X
        return {name: X[name] for name in getattr(X, "column_names", X.columns)}
    cells = np.asarray(_unmasked(X))
    if isinstance(X, (list, tuple)) and cells.dtype.kind in "US":
        cells = np.array(X, dtype=object)  # np.asarray converts numbers beside text to text
    if cells.ndim != 2 or cells.shape[1] != n_columns:
        raise ValueError(
            f"Rows must be an array of shape (n_rows, {n_columns}). Got {cells.shape}. Pass all "
            "columns of training, in their order, or a table with column names."
        )
    return cells


def _exact_cells(column: Any) -> NDArray[Any]:
    """Return the cells of a column without conversion of integers to floats."""
    if isinstance(getattr(column, "dtype", None), np.dtype):
        return np.asarray(_unmasked(column))
    for method in ("to_list", "to_pylist"):  # pandas and polars; pyarrow
        column = getattr(column, method)() if hasattr(column, method) else column
    return _objects(column)


def _unmasked(cells: Any) -> Any:
    """Return an array with None for masked cells."""
    if not isinstance(cells, np.ma.MaskedArray):
        return cells
    filled = np.asarray(cells.data).astype(object)
    filled[np.ma.getmaskarray(cells)] = None
    return filled


def _objects(cells: Sequence[Any]) -> NDArray[np.object_]:
    """Return cells as an array of objects, so that numbers beside text stay numbers."""
    out = np.empty(len(cells), dtype=object)
    out[:] = list(cells)
    return out


# ---- the model ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scorer:
    """A fitted model as arrays and steps.

    Attributes
    ----------
    names : sequence of str
        Names of the columns of a table.
    columns : sequence of InputColumn
        Columns that the model uses.
    needed : ndarray of int
        Positions of columns without missing cells.
    scores : Computation
        Computation from these columns of the predicted numbers, or of the log-probabilities of the
        classes up to a constant per row.
    classes : ndarray of shape (n_classes,) or None
        The labels; None for a model of numbers.
    offsets : ndarray of shape (n_classes,) or None
        Offsets of log-probabilities before the largest is taken, from costs or a threshold.
    has_columns : bool
        Whether predicted numbers have one column per target; else they have one dimension.
    """

    names: Sequence[str]
    columns: Sequence[InputColumn]
    needed: NDArray[np.int64]
    scores: Computation
    classes: NDArray[Any] | None = None
    offsets: Any = None
    has_columns: bool = False

    @property
    def used_names(self) -> list[str]:
        """The names of the columns that the model uses."""
        return [self.names[column.position] for column in self.columns]

    def known_classes(self) -> NDArray[Any]:
        """Return the classes, or raise an error for a model of numbers."""
        if self.classes is None:
            raise TypeError("This model predicts numbers and has no classes. Call predict(rows).")
        return self.classes

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row, or its predicted numbers."""
        if self.classes is not None:
            return np.asarray(self.classes[(self._scores(X) + self.offsets).argmax(axis=1)])
        return self._scores(X) if self.has_columns else self._scores(X)[:, 0]

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, one row per row and one column per class."""
        self.known_classes()
        logs = self._scores(X)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _scores(self, X: Any) -> Floats:
        """Return the scores of rows, computed in blocks of rows."""
        rows, steps = self.features(X), self.scores.steps
        size = max(1, _BLOCK // max(step.width for step in steps))
        parts = [self.scores(rows[i : i + size]) for i in range(0, len(rows), size)]
        return np.concatenate([np.empty((0, steps[-1].width)), *parts])

    def features(self, X: Any) -> Floats:
        """Return the columns that the model uses, as numbers."""
        X, parts = as_table(X, len(self.names)), []
        for column, name in zip(self.columns, self.used_names, strict=True):
            parts.append(column.read(name, cells_of(X, name, column.position)))
        rows = np.column_stack(parts)
        if np.isnan(rows[:, self.needed]).any():
            raise ValueError(
                "This model does not accept missing cells. Got NaN. Impute or drop it."
            )
        return rows

    @classmethod
    def load(cls, path: str | Path) -> Scorer:
        """Return the model stored in a file."""
        with np.load(path, allow_pickle=False) as stored:
            return cls.unpack({name: stored[name] for name in stored.files})

    @classmethod
    def unpack(cls, stored: Mapping[str, NDArray[Any]]) -> Scorer:
        """Return the model stored in arrays; ``plan`` describes its structure."""

        def decode(described: dict[str, Any]) -> Any:
            """Return the array or object that a dictionary describes."""
            if "array" in described:
                return stored[described["array"]]
            if "class" not in described:
                return described
            made = {each.__name__: each for each in (Step, Computation, InputColumn, Scorer)}
            return made[described.pop("class")](**described)

        plan = str(stored["plan"])
        if json.loads(plan)["format"] != FORMAT:
            raise ValueError(
                f"The numbers must be of format {FORMAT}. Got {json.loads(plan)['format']}. Write "
                "the scorer and its numbers again, together."
            )
        model: Scorer = json.loads(plan, object_hook=decode)["model"]
        return model
