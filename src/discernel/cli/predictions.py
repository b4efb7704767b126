"""Predictions for rows, and writing them as CSV, JSON lines or Parquet."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.cli.learning import Rows
from discernel.exceptions import InvalidInputError, needs_extra
from discernel.persistence import SavedModel
from discernel.rows.columns import canonical_text, one_spelling
from discernel.rows.formats import import_pandas
from discernel.rows.labelled import plain_decimals
from discernel.rows.writing import csv_text, open_atomic

_PARQUET, _JSON, _CSV = (".parquet", ".pq"), (".jsonl", ".ndjson"), (".csv", ".txt", "")


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
    known : tuple of float
        From `count_correct` or `sum_errors`; empty if the rows have no target.
    """

    outputs: Mapping[str, NDArray[Any]]
    kept: Any
    known: tuple[float, ...] = ()

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
        compare = sum_errors if classes is None else count_correct
        return cls(outputs, rows.kept, () if rows.y is None else compare(predicted, rows.y))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.outputs["predicted"])

    def columns(self, first: int) -> dict[str, list[Any]]:
        """Return the cells of all output columns, as plain data; None for missing cells.

        Parameters
        ----------
        first : int
            The row number of the first row. A kept column called "row" replaces row numbers.
        """
        kept, ours = list(self.kept.columns), list(self.outputs)
        if twice := sorted(set(kept) & set(ours)):
            raise InvalidInputError(
                f"A kept column must not have the name of an output column. Got {twice[0]!r}. "
                "Rename the column, or do not keep it."
            )
        cells = self.kept.astype(object)
        cells = cells.where(cells.notna(), None)
        numbers = {} if "row" in kept else {"row": list(range(first, first + self.n_rows))}
        copied = {name: list(cells[name]) for name in kept}
        return numbers | copied | {name: self.outputs[name].tolist() for name in ours}


# ---- comparison with known classes or numbers --------------------------------------------------


def count_correct(labels: NDArray[Any], truth: Any) -> tuple[float, ...]:
    """Return the number of rows with a known class, and of correct predictions among them."""
    truth = import_pandas().Series(truth)
    known = truth.notna()
    predicted = [one_spelling(label) for label in labels[known.to_numpy()].tolist()]
    right = predicted == truth[known].astype(object).map(one_spelling)
    return int(known.sum()), int(right.sum())


def sum_errors(numbers: NDArray[np.float64], truth: Any) -> tuple[float, ...]:
    """Return the number of rows with a known number, and sums over them.

    These are the sum of squared errors, the mean of the numbers, and their scatter: the sum of
    squared differences from the mean. Text that is no number counts as unknown.
    """
    cells = plain_decimals(canonical_text(import_pandas().Series(truth)))
    found = import_pandas().to_numeric(import_pandas().Series(cells), errors="coerce")
    values = found.to_numpy(dtype=np.float64)
    known = np.isfinite(values)
    if not known.any():
        return 0, 0.0, 0.0, 0.0
    y, squares = values[known], (values[known] - numbers[known]) ** 2
    return len(y), float(squares.sum()), float(y.mean()), float(len(y) * y.var())


def describe_known(sums: Sequence[tuple[float, ...]]) -> str:
    """Return the accuracy, or R² and the typical error, from the sums of all chunks."""
    n, *others = np.transpose(sums)
    rows = f"on {int(n.sum()):,} rows"
    if len(others) == 1:
        return f"accuracy {others[0].sum() / n.sum():.3f} {rows}"
    squared, means, scatter = others
    between = float(n @ (means - np.average(means, weights=n)) ** 2)
    total, error = float(scatter.sum()) + between, float(squared.sum())
    rounding = 16 * np.finfo(np.float64).eps * float(np.abs(means).max())
    r2 = f"R² {1.0 - error / total:.3f}, " if total > float(n.sum()) * rounding**2 else ""
    return f"{r2}root mean squared error {math.sqrt(error / n.sum()):.4g} {rows}"


# ---- writing -----------------------------------------------------------------------------------


def check_format(output: Path) -> None:
    """Raise an error if the extension of a file names a format that is not written.

    Parameters
    ----------
    output : Path
        The file.
    """
    if output.suffix.lower() not in (*_PARQUET, *_JSON, *_CSV):
        raise InvalidInputError(
            f"The predictions must be a .csv, .jsonl or .parquet file. Got {str(output)!r}. Name "
            "another file."
        )


def write_predictions(
    parts: Iterable[Predictions], output: Path | Callable[[str], Any], *, as_json: bool = False
) -> str:
    """Write predictions chunk by chunk; return a comparison with known classes or numbers, if any.

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
    """
    known: list[tuple[float, ...]] = []

    def noted() -> Iterator[Predictions]:
        for part in parts:
            if any(part.known):
                known.append(part.known)
            yield part

    if callable(output):
        _write_text(noted(), output, as_json)
    elif output.suffix.lower() in _PARQUET:
        with open_atomic(output) as file:
            _write_parquet(noted(), file)
    else:
        as_json = as_json or output.suffix.lower() in _JSON
        with open_atomic(output) as file:
            _write_text(noted(), lambda text: file.write(text.encode()), as_json)
    return describe_known(known) if known else ""


def _write_text(parts: Iterable[Predictions], write: Callable[[str], Any], as_json: bool) -> None:
    done = 0
    for part in parts:
        columns = part.columns(done + 1)
        names, rows = list(columns), zip(*columns.values(), strict=True)
        if as_json:
            named = (dict(zip(names, row, strict=True)) for row in rows)
            write("".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in named))
        else:
            # Only the first chunk has a header.
            header = csv_text(names, []) if done else ""
            write(csv_text(names, rows).removeprefix(header))
        done += part.n_rows


def _write_parquet(parts: Iterable[Predictions], file: Any) -> None:
    """Write Parquet with types that hold the cells of all chunks.

    The first chunks may hold only missing cells or whole numbers of a column, so all chunks wait in
    a temporary file.
    """
    with needs_extra("Writing Parquet needs pyarrow", "app", "name a CSV file"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    schemas: list[Any] = []
    with TemporaryFile() as waiting:
        try:
            done = 0
            for part in parts:
                table = pa.table(part.columns(done + 1))
                with pa.ipc.new_stream(waiting, table.schema) as stream:
                    stream.write_table(table)
                schemas.append(table.schema)
                done += table.num_rows
            if not schemas:
                raise InvalidInputError("There must be rows to predict. Got none.")
            waiting.seek(0)
            schema = pa.unify_schemas(schemas, promote_options="permissive")
            with pq.ParquetWriter(file, schema) as writer:
                for _ in schemas:
                    table = pa.ipc.open_stream(waiting).read_all()
                    writer.write_table(table.cast(schema))
        except (pa.ArrowException, OverflowError) as error:
            raise InvalidInputError(
                "A column of a Parquet file must hold cells of one type. pyarrow: "
                f"{error}. Convert the column, or write CSV."
            ) from error
