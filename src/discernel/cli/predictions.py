"""Predictions for rows, and writing them as CSV, JSON lines or Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.cli.learning import Rows, count_right
from discernel.exceptions import InvalidInputError, missing_extra
from discernel.persistence import SavedModel
from discernel.rows.writing import csv_text, open_atomic

_PARQUET, _JSON = (".parquet", ".pq"), (".jsonl", ".ndjson")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for some rows.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,)
        The predicted classes.
    probabilities : ndarray of shape (n_rows, n_classes)
        The predicted probability of each class.
    classes : ndarray of shape (n_classes,)
        The labels of the classes.
    kept : DataFrame
        Columns that are copied to the output.
    n_known, n_right : int
        The number of rows with known classes, and of correct predictions among them.
    """

    labels: NDArray[Any]
    probabilities: NDArray[np.float64]
    classes: NDArray[Any]
    kept: Any
    n_known: int = 0
    n_right: int = 0

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
        labels = model.pipeline.predict(rows.X)
        known = (0, 0) if rows.y is None else count_right(labels, rows.y)
        shares, classes = model.pipeline.predict_proba(rows.X), model.pipeline.classes_
        return cls(labels, shares, classes, rows.kept, *known)

    @property
    def names(self) -> list[str]:
        """The names of all output columns; a kept column called "row" replaces row numbers."""
        kept = list(self.kept.columns)
        ours = ["predicted", *(f"probability_{label}" for label in self.classes)]
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
        numbers = list(range(first, first + len(self.labels)))
        kept = [_plain(self.kept[name]) for name in self.kept.columns]
        rows = [numbers] * ("row" not in self.kept.columns)
        return [*rows, *kept, self.labels.tolist(), *self.probabilities.T.tolist()]


def _plain(column: Any) -> list[Any]:
    """Return the cells of a column, None for missing cells."""
    cells = column.astype(object)
    return list(cells.where(cells.notna(), None))


def write_predictions(
    parts: Iterable[Predictions], output: Path | Callable[[str], Any], *, as_json: bool = False
) -> tuple[int, int]:
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
    n_known, n_right : int
        The number of rows with known classes, and of correct predictions among them.
    """
    known: list[tuple[int, int]] = []

    def noted() -> Iterator[Predictions]:
        for part in parts:
            known.append((part.n_known, part.n_right))
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
    return sum(n for n, _ in known), sum(n for _, n in known)


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
        done += len(part.labels)


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
