"""Predictions of a model that discernel fitted, with NumPy and nothing else.

This file is the same for all models. The numbers of one lie beside it, in a file of the same name
that ends with ``.npz``. Of ``scorer.py`` and ``scorer.npz``::

    import scorer

    scorer.predict(rows)        # a label per row
    scorer.predict_proba(rows)  # a probability per row and class
    scorer.classes()            # the classes, in the order of those columns

Rows are an array, a dataframe, a dictionary of columns, or a list of dictionaries, one per row.
Missing cells are None or NaN, where the model takes any.

How it predicts: f(x) = Σ_j c_j k(x, z_j) + b are scores of a row x, from rows z_j that are stored
and k, a sum of products of kernels. Log-probabilities of classes are a linear function of f(x), up
to a number that makes them sum to 1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Raised with every change to what the file of numbers holds.
FORMAT = 2
#: Numbers that a model takes are at most this large: sums of their squares are finite.
LARGEST = 1e150
#: Texts that stand for a missing cell.
MISSING_VALUES = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "?")
#: Entries of a matrix between some new rows and all stored ones.
_BLOCK = 2**20
#: exp(−690) is 1e-300; below it processors are slow.
_LEAST = -690.0


def predict(X: Any) -> NDArray[Any]:
    """Return the label of each row."""
    return _beside().predict(X)


def predict_proba(X: Any) -> Floats:
    """Return the probability of each class, one row per row and one column per class."""
    return _beside().predict_proba(X)


def classes() -> NDArray[Any]:
    """Return the classes, in the order of the columns of `predict_proba`."""
    return _beside().classes


@lru_cache(maxsize=1)
def _beside() -> Scorer:
    """Return the model whose numbers lie beside this file."""
    return Scorer.load(Path(__file__).with_suffix(".npz"))


# ---- kernels -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """One number per new row x and stored row z, of which kernels are made.

    Attributes
    ----------
    kind : str
        ``"squared"``, the squared distance; ``"squared by column"``, the same without loss of
        digits where rows are far out; ``"city"``, the sum of absolute differences; ``"inner"``,
        the inner product; ``"cosine"``, that of x divided by its length.
    columns : ndarray of shape (n_columns,)
        Which features of x count.
    factors, origin : ndarray of shape (n_columns,)
        What they are multiplied by, and what is then taken off.
    rows : ndarray of shape (n_rows, n_columns)
        The rows z, to which the same was done.
    added : ndarray of shape (n_rows,)
        What is added to inner products.
    """

    kind: str
    columns: NDArray[np.int64]
    factors: Floats
    origin: Floats
    rows: Floats
    added: Floats

    def __call__(self, X: Floats) -> Floats:
        """Return the numbers, of shape (n_new_rows, n_rows)."""
        new = X[:, self.columns] * self.factors - self.origin
        if self.kind == "city":
            return _by_column(new, self.rows, np.abs)
        if self.kind == "squared by column":
            return _by_column(new, self.rows, np.square)
        if self.kind == "squared":
            lengths = np.sum(new**2, axis=1)[:, None] + np.sum(self.rows**2, axis=1)
            return np.asarray(np.maximum(lengths - 2.0 * (new @ self.rows.T), 0.0))
        if self.kind == "cosine":
            length = np.sqrt(np.sum(new**2, axis=1, keepdims=True))
            new = new / np.where(length > 0, length, 1.0)
        return np.asarray(new @ self.rows.T + self.added)


def _by_column(new: Floats, rows: Floats, of: Callable[[Floats], Floats]) -> Floats:
    """Return the sum over columns of a function of differences, one column at a time."""
    total = np.zeros((len(new), len(rows)))
    for left, right in zip(new.T, rows.T, strict=True):
        total += of(left[:, None] - right)
    return total


@dataclass(frozen=True)
class Factor:
    """A function of `Pairs` p, which kernels are products of.

    Attributes
    ----------
    pairs : int
        Which of the pairs.
    kind : str
        ``"exp"``, exp(−a·p); ``"exp of root"``, exp(−a·√p); ``"power"``, (b + a·p)^n.
    numbers : tuple of float
        a, and of powers b and n too.
    """

    pairs: int
    kind: str
    numbers: tuple[float, ...]

    def __call__(self, pairs: Floats) -> Floats:
        """Return the function of every pair."""
        a, *rest = self.numbers
        if self.kind == "power":
            return np.asarray((rest[0] + a * pairs) ** int(rest[1]))
        distance = np.sqrt(pairs) if self.kind == "exp of root" else pairs
        return np.exp(np.maximum(-a * distance, _LEAST))


@dataclass(frozen=True)
class Lack:
    """Scores of rows that lack a source: all of its cells are missing.

    Attributes
    ----------
    columns : ndarray of shape (n_columns,)
        The columns of the source.
    medians : ndarray of shape (n_columns,)
        What stands in for cells where a row lacks some, not all.
    scores : ndarray of shape (n_scores,)
        What a row without the source has for scores.
    """

    columns: NDArray[np.int64]
    medians: Floats
    scores: Floats


@dataclass(frozen=True)
class KernelSum:
    """Scores that are sums over stored rows, Σ_j k(x, z_j) c_j.

    Attributes
    ----------
    pairs : tuple of Pairs
        What k is made of.
    terms : tuple of (float, tuple of Factor)
        k is the sum of these numbers times these products.
    coef : ndarray of shape (n_rows, n_scores)
        The c_j.
    balanced : bool
        Whether the c_j sum to 0: a number may then be taken from all k(x, z_j) of a row, without
        which products keep more digits.
    lack : Lack or None
        What rows have that lack the source that k is of; None where all have it.
    """

    pairs: tuple[Pairs, ...]
    terms: tuple[tuple[float, tuple[Factor, ...]], ...]
    coef: Floats
    balanced: bool
    lack: Lack | None = None

    def __call__(self, X: Floats) -> Floats:
        """Return the scores of rows, some rows at a time."""
        if self.lack is None:
            return self._known(X)
        cells = X[:, self.lack.columns]
        missing, X = np.isnan(cells), X.copy()
        X[:, self.lack.columns] = np.where(missing, self.lack.medians, cells)
        lacks = np.asarray(missing.all(axis=1))[:, None]
        return np.where(lacks, self.lack.scores, self._known(X))

    def _known(self, X: Floats) -> Floats:
        """Return the scores of rows that have all cells."""
        step = max(1, _BLOCK // max(1, len(self.coef)))
        parts = [self._block(X[start : start + step]) for start in range(0, len(X), step)]
        return np.concatenate([np.empty((0, self.coef.shape[1])), *parts])

    def _block(self, X: Floats) -> Floats:
        pairs = [each(X) for each in self.pairs]
        total = np.zeros((len(X), len(self.coef)))
        for number, factors in self.terms:
            product = np.full((), number)
            for factor in factors:
                product = product * factor(pairs[factor.pairs])
            total += product
        if self.balanced:
            total -= total[:, :1].copy()
        return np.asarray(total @ self.coef)


# ---- columns of tables -------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers.

    Attributes
    ----------
    position : int
        Which column of the table.
    median : float
        What stands in for a missing cell.
    tells_missing : bool
        Whether a second column, of 0 and 1, says which cells are missing.
    """

    is_number: ClassVar[bool] = True
    position: int
    median: float
    tells_missing: bool

    def encode(self, name: str, cells: NDArray[Any]) -> Floats:
        """Return what the column becomes."""
        numbers = as_numbers(name, cells)
        missing = np.isnan(numbers)
        filled = np.where(missing, self.median, numbers)
        return np.column_stack([filled, missing] if self.tells_missing else [filled])


@dataclass(frozen=True)
class ValueColumn:
    """A column of categories or text: a column of 0 and 1 per value, one for all other values.

    Attributes
    ----------
    position : int
        Which column of the table.
    values : sequence of str
        The values that have a column.
    is_text : bool
        Whether a cell must be text.
    tells_missing : bool
        Whether one more column is for missing cells, which otherwise count as other values.
    """

    is_number: ClassVar[bool] = False
    position: int
    values: Sequence[str]
    is_text: bool
    tells_missing: bool

    def encode(self, name: str, cells: NDArray[Any]) -> Floats:
        """Return what the column becomes."""
        places = {value: place for place, value in enumerate(self.values)}
        other = len(places)
        out = np.zeros((len(cells), other + 1 + self.tells_missing))
        for row, cell in enumerate(cells.tolist()):
            if is_missing(cell):
                out[row, other + self.tells_missing] = 1.0
            elif self.is_text and not isinstance(cell, (str, bytes)):
                raise ValueError(f"The column {name!r} must hold text. Got {cell!r} in row {row}.")
            else:
                out[row, places.get(as_word(cell), other)] = 1.0
        return out


def is_missing(cell: Any) -> bool:
    # Cells of pandas without a value are known by name: pandas need not be installed.
    if isinstance(cell, str):
        return cell in MISSING_VALUES
    is_nan = isinstance(cell, (float, np.floating, Decimal)) and cell != cell
    return cell is None or is_nan or type(cell).__name__ in ("NAType", "NaTType")


def as_word(cell: Any) -> str:
    """Return a value as text, the same for equal numbers of any type; 0.1 of 32 bits is 0.1."""
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
    """Return one column of what `as_table` returned, as it was given."""
    if not isinstance(X, Mapping):
        return np.asarray(X[:, position])
    if name not in X:
        raise ValueError(
            f"The table must have the column {name!r}. Got {list(X)}. Name it, or give an array "
            "with all columns of training, in their order."
        )
    return _exact_cells(X[name])


def as_table(X: Any, n_columns: int) -> Any:
    """Return a dictionary of columns where these have names, and else an array, checked."""
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
        cells = np.array(X, dtype=object)  # beside text, numbers would have become text
    if cells.ndim != 2 or cells.shape[1] != n_columns:
        raise ValueError(
            f"Rows must be an array of shape (n_rows, {n_columns}). Got {cells.shape}. Give all "
            "columns of training, in their order, or a table whose columns have names."
        )
    return cells


def _exact_cells(column: Any) -> NDArray[Any]:
    """Return the cells of a column without rounding; a missing integer would make others floats."""
    if isinstance(getattr(column, "dtype", None), np.dtype):
        return np.asarray(_unmasked(column))
    for method in ("to_list", "to_pylist"):  # of pandas and polars, and of pyarrow
        column = getattr(column, method)() if hasattr(column, method) else column
    return _objects(column)


def _unmasked(cells: Any) -> Any:
    """Return masked cells as missing ones."""
    if not isinstance(cells, np.ma.MaskedArray):
        return cells
    filled = np.asarray(cells.data).astype(object)
    filled[np.ma.getmaskarray(cells)] = None
    return filled


def _objects(cells: Sequence[Any]) -> NDArray[np.object_]:
    """Return cells as they are: beside text, numbers would become text."""
    out = np.empty(len(cells), dtype=object)
    out[:] = list(cells)
    return out


# ---- the model ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scorer:
    """A fitted model, as numbers.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The labels.
    names : tuple of str
        The columns of rows.
    scaling : tuple of ndarray, or None
        What is taken off the columns first, and what they are divided by.
    columns : tuple of NumberColumn or ValueColumn, or None
        How a table becomes numbers; None where it is numbers.
    medians : ndarray of shape (n_columns,) or None
        What stands in for missing numbers; None where they are refused.
    sums : tuple of KernelSum
        What scores are the sum of.
    intercept : ndarray of shape (n_scores,)
        What is added to them.
    slope, bias : ndarray of shape (n_scores, n_classes) and (n_classes,)
        From scores to log-probabilities, up to a number per row.
    offsets : ndarray of shape (n_classes,)
        What is added to these before the largest is taken: costs, or a threshold.
    """

    classes: NDArray[Any]
    names: tuple[str, ...]
    scaling: tuple[Floats, Floats] | None
    columns: tuple[NumberColumn | ValueColumn, ...] | None
    medians: Floats | None
    sums: tuple[KernelSum, ...]
    intercept: Floats
    slope: Floats
    bias: Floats
    offsets: Floats

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row."""
        return np.asarray(self.classes[(self._logs(X) + self.offsets).argmax(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, one row per row and one column per class."""
        logs = self._logs(X)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _logs(self, X: Any) -> Floats:
        """Return log-probabilities, up to a number per row."""
        rows = self.features(X)
        scores = sum((each(rows) for each in self.sums), np.zeros((len(rows), 1)))
        return np.asarray((scores + self.intercept) @ self.slope + self.bias)

    def features(self, X: Any) -> Floats:
        """Return rows as the numbers that kernels take."""
        X = as_table(X, len(self.names))
        if self.columns is None or self.scaling is not None:
            X = np.column_stack(
                [as_numbers(name, cells_of(X, name, i)) for i, name in enumerate(self.names)]
            )
        if self.scaling is not None:
            X = (X - self.scaling[0]) / self.scaling[1]
        if self.columns is not None:
            parts = [
                each.encode(name, cells_of(X, name, each.position))
                for each, name in ((each, self.names[each.position]) for each in self.columns)
            ]
            return np.concatenate(parts, axis=1)
        missing = np.isnan(X)
        if self.medians is not None:
            return np.where(missing, self.medians, X)
        if any(each.lack is not None for each in self.sums):  # then others need what they see
            plain = [pairs for each in self.sums if each.lack is None for pairs in each.pairs]
            missing = missing[:, [i for pairs in plain for i in pairs.columns]]
        if missing.any():
            raise ValueError("This model takes no missing cells. Got NaN; fill it in, or drop it.")
        return np.asarray(X)

    @classmethod
    def load(cls, path: str | Path) -> Scorer:
        """Return the model whose numbers a file holds."""
        with np.load(path, allow_pickle=False) as stored:
            return cls.unpack({name: stored[name] for name in stored.files})

    @classmethod
    def unpack(cls, stored: Mapping[str, NDArray[Any]]) -> Scorer:
        """Return the model of some arrays; the one called ``plan`` says what they are."""
        plan = json.loads(str(stored["plan"]))
        if plan["format"] != FORMAT:
            raise ValueError(
                f"The numbers must be of format {FORMAT}. Got {plan['format']}. Write the scorer "
                "and its numbers again, together."
            )
        made: Scorer = _restore(plan["model"], stored)
        return made


def _restore(plan: Any, stored: Mapping[str, NDArray[Any]]) -> Any:
    """Return what a plan stands for: objects by the name of their class, and arrays by theirs."""
    if isinstance(plan, list):
        return tuple(_restore(each, stored) for each in plan)
    if not isinstance(plan, dict):
        return plan
    if "array" in plan:
        return stored[plan["array"]]
    made = (Pairs, Factor, Lack, KernelSum, NumberColumn, ValueColumn, Scorer)
    cls = {each.__name__: each for each in made}[plan["class"]]
    return cls(**{name: _restore(each, stored) for name, each in plan.items() if name != "class"})
