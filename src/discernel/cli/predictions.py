"""Predictions for rows, and writing them as CSV, JSON lines or Parquet."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.cli.learning import Rows
from discernel.exceptions import InvalidInputError, missing_extra
from discernel.persistence import SavedModel
from discernel.rows.columns import canonical_text, one_spelling
from discernel.rows.formats import import_pandas
from discernel.rows.labelled import plain_decimals
from discernel.rows.writing import csv_text, open_atomic

_PARQUET, _JSON = (".parquet", ".pq"), (".jsonl", ".ndjson")


@dataclass(frozen=True)
class Hits:
    """The number of rows with known classes, and of correct predictions among them."""

    n_known: int
    n_right: int

    @classmethod
    def of(cls, labels: NDArray[Any], truth: Any) -> Hits:
        """Count correct predictions.

        Parameters
        ----------
        labels : ndarray of shape (n_rows,)
            The predicted classes.
        truth : array-like of shape (n_rows,)
            The classes; missing where they are not known.
        """
        truth = import_pandas().Series(truth)
        known = truth.notna()
        said = [one_spelling(label) for label in labels[known.to_numpy()].tolist()]
        right = said == truth[known].astype(object).map(one_spelling)
        return cls(int(known.sum()), int(right.sum()))

    def __add__(self, other: Hits) -> Hits:
        return Hits(self.n_known + other.n_known, self.n_right + other.n_right)

    def __str__(self) -> str:
        return f"accuracy {self.n_right / self.n_known:.3f} on {self.n_known:,} rows"


@dataclass(frozen=True)
class Errors:
    """Sums over rows with known numbers: squared errors, and the mean and scatter of numbers."""

    n_known: int
    squared: float
    mean: float
    scatter: float

    @classmethod
    def of(cls, numbers: NDArray[np.float64], truth: Any) -> Errors:
        """Sum squared errors.

        Parameters
        ----------
        numbers : ndarray of shape (n_rows,)
            The predictions.
        truth : array-like of shape (n_rows,)
            The numbers; missing, or other text, where they are not known.
        """
        cells = plain_decimals(canonical_text(import_pandas().Series(truth)))
        found = import_pandas().to_numeric(import_pandas().Series(cells), errors="coerce")
        values = found.to_numpy(dtype=np.float64)
        known = np.isfinite(values)
        if not known.any():
            return cls(0, 0.0, 0.0, 0.0)
        y, squares = values[known], (values[known] - numbers[known]) ** 2
        return cls(len(y), float(squares.sum()), float(y.mean()), float(len(y) * y.var()))

    def __add__(self, other: Errors) -> Errors:
        n = self.n_known + other.n_known
        share = other.n_known / max(1, n)
        gap = other.mean - self.mean
        return Errors(
            n,
            self.squared + other.squared,
            self.mean + share * gap,
            self.scatter + other.scatter + self.n_known * share * gap**2,
        )

    def __str__(self) -> str:
        typical = f"root mean squared error {math.sqrt(self.squared / self.n_known):.4g}"
        r2 = f"R² {1.0 - self.squared / self.scatter:.3f}, " if self.scatter > 0 else ""
        return f"{r2}{typical} on {self.n_known:,} rows"


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for some rows.

    Attributes
    ----------
    outputs : dict of str to ndarray of shape (n_rows,)
        The predicted classes and the probability of each class, or the predicted numbers, by the
        name of the output column.
    kept : DataFrame
        Columns that are copied to the output.
    known : Hits, Errors or None
        The comparison with known classes or numbers; None if the rows have no target.
    """

    outputs: Mapping[str, NDArray[Any]]
    kept: Any
    known: Hits | Errors | None = None

    @classmethod
    def of(cls, model: SavedModel, rows: Rows) -> Predictions:
        """Predict rows with a model.

        Parameters
        ----------
        model : SavedModel
            The model.
        rows : Rows
            The rows.
        """
        predicted, classes = model.pipeline.predict(rows.X), model.pipeline[-1].model_.classes
        outputs = {"predicted": predicted}
        if classes is not None:
            shares = model.pipeline.predict_proba(rows.X).T
            names = (f"probability_{label}" for label in classes)
            outputs |= dict(zip(names, shares, strict=True))
        compared: type[Hits | Errors] = Errors if classes is None else Hits
        known = None if rows.y is None else compared.of(predicted, rows.y)
        return cls(outputs, rows.kept, known)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.outputs["predicted"])

    @property
    def names(self) -> list[str]:
        """The names of all output columns; a kept column called "row" replaces row numbers."""
        kept = list(self.kept.columns)
        ours = list(self.outputs)
        if twice := sorted(set(kept) & set(ours)):
            raise InvalidInputError(
                f"A kept column must not have the name of an output column. Got {twice[0]!r}. "
                "Rename the column, or do not keep it."
            )
        return ["row"] * ("row" not in kept) + kept + ours

    def columns(self, first: int) -> list[list[Any]]:
        """Return the cells of all output columns, as plain data.

        Parameters
        ----------
        first : int
            The row number of the first row.
        """
        numbers = list(range(first, first + self.n_rows))
        kept = [_plain(self.kept[name]) for name in self.kept.columns]
        rows = [numbers] * ("row" not in self.kept.columns)
        return [*rows, *kept, *(column.tolist() for column in self.outputs.values())]


def _plain(column: Any) -> list[Any]:
    """Return the cells of a column, None for missing cells."""
    cells = column.astype(object)
    return list(cells.where(cells.notna(), None))


def write_predictions(
    parts: Iterable[Predictions], output: Path | Callable[[str], Any], *, as_json: bool = False
) -> Hits | Errors | None:
    """Write predictions chunk by chunk.

    A file is replaced only if all predictions have been written.

    Parameters
    ----------
    parts : iterable of Predictions
        The predictions.
    output : Path or callable
        A file, whose extension selects Parquet, JSON lines or (by default) CSV; or a function that
        takes text.
    as_json : bool, default=False
        Whether to write JSON lines instead of CSV.

    Returns
    -------
    Hits, Errors or None
        The comparison with known classes or numbers; None if none is known.
    """
    known: list[Any] = []

    def noted() -> Iterator[Predictions]:
        for part in parts:
            if part.known is not None and part.known.n_known:
                known.append(part.known)
            yield part

    if not isinstance(output, Path):
        _write_text(noted(), output, as_json)
    elif output.suffix.lower() in _PARQUET:
        with open_atomic(output) as file:
            _write_parquet(noted(), file)
    else:
        as_json = as_json or output.suffix.lower() in _JSON
        with open_atomic(output) as file:
            _write_text(noted(), lambda text: file.write(text.encode()), as_json)
    return reduce(operator.add, known) if known else None


def _write_text(parts: Iterable[Predictions], write: Callable[[str], Any], as_json: bool) -> None:
    done = 0
    for part in parts:
        rows = zip(*part.columns(done + 1), strict=True)
        if as_json:
            named = (dict(zip(part.names, row, strict=True)) for row in rows)
            write("".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in named))
        else:
            # Only the first chunk has a header.
            header = csv_text(part.names, []) if done else ""
            write(csv_text(part.names, rows).removeprefix(header))
        done += part.n_rows


def _write_parquet(parts: Iterable[Predictions], file: Any) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise missing_extra("Writing Parquet needs pyarrow", "app", "name a CSV file") from error
    done, writer = 0, None
    try:
        for part in parts:
            cells = dict(zip(part.names, part.columns(done + 1), strict=True))
            schema = None if writer is None else writer.schema
            table = pa.table(cells, schema=schema)
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
            done += table.num_rows
    finally:
        if writer is not None:  # it writes the last bytes, so the file must still be open
            writer.close()
    if writer is None:
        raise InvalidInputError("There must be rows to predict. Got none.")
