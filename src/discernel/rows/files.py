"""Rows of Parquet and CSV files, read a part at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.exceptions import InvalidInputError, missing_extra
from discernel.rows.cells import MISSING_VALUES
from discernel.rows.chunks import Chunk, Place, as_weights
from discernel.rows.formats import (
    file_ending,
    file_stamp,
    is_gzipped,
    open_bytes,
    uncompressed_size,
)
from discernel.rows.sources import Source, refuse_absent, rows_of_a_chunk

__all__ = ["FileSource"]

#: Bytes of a CSV file that are read at a time, of which the first say what is in a column.
_BLOCK_BYTES = 2**22
#: Bytes of a CSV file of which lines are counted.
_COUNTED_BYTES = 2**20


class FileSource(Source):
    """Rows of Parquet or CSV files with the same columns.

    Columns and their kinds are compared before anything is read. Files may have no rows, but not
    0 bytes, and must not change once they are opened.

    Parameters
    ----------
    paths : sequence of Path
        The files, all ``.parquet`` or all ``.csv`` or ``.csv.gz``.
    target : str, optional
        The column that is to be predicted.
    weights : str, optional
        The column that says how much each row counts.
    drop : sequence of str, optional
        Columns to leave out.
    chunk_rows : int, optional
        Rows of a chunk.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        target: str | None = None,
        *,
        weights: str | None = None,
        drop: Sequence[str] = (),
        chunk_rows: int | None = None,
    ) -> None:
        self.paths = list(paths)
        kinds = {file_ending(path) for path in self.paths}
        if kinds not in ({".parquet"}, {".csv"}):
            raise InvalidInputError(
                "Files must all be Parquet or all be CSV, which may end with .csv.gz. Got "
                f"{', '.join(sorted(kinds))}."
            )
        self._stamps = {path: file_stamp(path) for path in self.paths}
        self.target, self.weights = target, weights
        self._is_csv = kinds == {".csv"}
        self._arrow = _pyarrow()
        schemas = [self._schema(path) for path in self.paths]
        self._types = self._agreed(schemas)
        refuse_absent(drop, list(self._types), str(self.paths[0]))
        for name in drop:
            del self._types[name]
        taken = (target, weights)
        self.columns = [name for name in self._types if name not in taken]
        self.chunk_rows = rows_of_a_chunk(len(self._types), chunk_rows)
        if not self._is_csv:
            self.n_rows = sum(self._n_rows(path) for path in self.paths)

    # ---- columns -----------------------------------------------------------------------------

    def _schema(self, path: Path) -> dict[str, Any]:
        """Return the type of every column of a file."""
        with _named(path):
            if self._is_csv:
                return self._csv_types(path)
            schema = self._arrow.parquet.read_schema(path)
        return {name: schema.field(name).type for name in schema.names}

    def _agreed(self, schemas: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the type of every column in all files, or raise an error that names the file."""
        first = schemas[0]
        for name in (self.target, self.weights):
            if name is not None and name not in first:
                listed = ", ".join(list(first)[:12])
                raise InvalidInputError(
                    f"The column {name!r} must be in the files. {self.paths[0]} has: {listed}."
                )
        agreed = dict(first)
        for path, schema in zip(self.paths, schemas, strict=True):
            if missing := [name for name in first if name not in schema]:
                raise InvalidInputError(
                    f"All files must have the same columns. {path} has no {missing[0]!r}, which "
                    f"{self.paths[0]} has. Add it, or leave the file out."
                )
            for name, known in agreed.items():
                agreed[name] = self._common(name, known, schema[name], path)
        return agreed

    def _common(self, name: str, known: Any, found: Any, path: Path) -> Any:
        """Return the type that holds the cells of both."""
        kinds = [_kind(each, self._arrow) for each in (known, found)]
        if "nothing" in kinds:
            return found if kinds[0] == "nothing" else known
        if kinds[0] != kinds[1]:
            raise InvalidInputError(
                f"A column must hold the same kind of things in all files. {name!r} holds "
                f"{kinds[0]} in {self.paths[0]} and {kinds[1]} in {path}. Write one of them anew."
            )
        if found == known or kinds[0] not in ("numbers", "dates"):
            return known
        return self._arrow.float64() if kinds[0] == "numbers" else self._arrow.timestamp("ns")

    # ---- rows --------------------------------------------------------------------------------

    @property
    def estimated_n_rows(self) -> int | None:
        """The rows; of CSV files about as many as their size says."""
        if not self._is_csv:
            return self.n_rows
        with open_bytes(self.paths[0]) as file:
            start = file.read(_COUNTED_BYTES)
        size = sum(map(uncompressed_size, self.paths))
        return int(size * max(1, start.count(b"\n") - 1) / max(1, len(start)))

    def chunks(self) -> Iterator[Chunk]:
        for part, path in enumerate(self.paths):
            first = 0
            self._check_unchanged(path)
            with _named(path):
                for table in self._tables(path):
                    if table.num_rows:
                        yield self._chunk(table, Place(str(path), part, first))
                    first += table.num_rows
            self._check_unchanged(path)

    def _check_unchanged(self, path: Path) -> None:
        """Raise an error where a file is not the one that was opened."""
        if file_stamp(path) != self._stamps[path]:
            raise InvalidInputError(
                f"A file must not change while its rows are read. {path} was written again after "
                "it was opened. Start again when it is complete."
            )

    def _tables(self, path: Path) -> Iterator[Any]:
        """Yield some rows of a file at a time."""
        wanted = list(self._types)
        if not self._is_csv:
            with self._arrow.parquet.ParquetFile(path) as file:
                yield from file.iter_batches(self.chunk_rows, columns=wanted)
            return
        for batch in self._reader(path, self._types):
            for first in range(0, batch.num_rows, self.chunk_rows):
                yield batch.slice(first, self.chunk_rows).select(wanted)

    def _chunk(self, table: Any, place: Place) -> Chunk:
        frame = table.to_pandas()
        weights = None
        if self.weights is not None:
            weights = as_weights(frame[self.weights], place.name)
        y = None if self.target is None else _cells(frame[self.target])
        return Chunk(frame[self.columns], y, weights, place).checked()

    def _reader(self, path: Path, types: dict[str, Any] | None) -> Any:
        """Return a reader of a CSV file; without types they are those of its first rows."""
        csv, compression = self._arrow.csv, "gzip" if is_gzipped(path) else None
        return csv.open_csv(
            self._arrow.input_stream(str(path), compression=compression),
            csv.ReadOptions(block_size=_BLOCK_BYTES),
            convert_options=csv.ConvertOptions(
                column_types=types, strings_can_be_null=True, null_values=list(MISSING_VALUES)
            ),
        )

    def _csv_types(self, path: Path) -> dict[str, Any]:
        """Return the type of every column by the first rows of a CSV file.

        Numbers may have a decimal point later. Labels are whole numbers only if they are written
        as these are: 007 and 7 are two labels.
        """
        with self._reader(path, None) as reader:
            types = {name: reader.schema.field(name).type for name in reader.schema.names}
        for name, kind in types.items():
            if name != self.target and _kind(kind, self._arrow) == "numbers":
                types[name] = self._arrow.float64()
            elif self._arrow.types.is_time(kind):  # of a day, which is no date
                types[name] = self._arrow.string()
        target = self.target
        if target in types and target and self._arrow.types.is_integer(types[target]):
            text = {target: self._arrow.string()}
            with self._reader(path, text) as reader:
                first = next(iter(reader)).column(target).to_pylist()
            if not all(word is None or str(int(word)) == word.strip() for word in first):
                types |= text
        return types

    def _n_rows(self, path: Path) -> int:
        return int(self._arrow.parquet.ParquetFile(path).metadata.num_rows)

    def __repr__(self) -> str:
        more = f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
        return f"{type(self).__name__}({self.paths[0]}{more})"


# ---- what pyarrow says -------------------------------------------------------------------------


def _pyarrow() -> Any:
    try:
        import pandas  # noqa: F401
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        need = "Reading Parquet and CSV files part by part needs pandas and pyarrow"
        raise missing_extra(need, "app", "give a list of chunks") from error
    return pyarrow


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say which file it is that cannot be read."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError) as error:
        raise InvalidInputError(
            f"{path} must be a file like the others, with the same kind of things in a column. "
            f"It cannot be read: {str(error).splitlines()[0]}"
        ) from error


def _kind(kind: Any, arrow: Any) -> str:
    """Return what a type holds, in words."""
    types = arrow.types
    if types.is_dictionary(kind):
        return _kind(kind.value_type, arrow)
    if types.is_null(kind):
        return "nothing"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_temporal(kind):
        return "dates"
    plain = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return "numbers" if plain or types.is_decimal(kind) else str(kind)


def _cells(column: Any) -> NDArray[Any]:
    """Return labels as an array, text as text of Python."""
    return np.asarray(column)
