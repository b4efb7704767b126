"""Read tables from files, whole or in chunks: CSV, TSV, Parquet, Arrow, Feather, NPZ of views."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from discernel.exceptions import InvalidInputError
from discernel.rows.delimited import DelimitedFile
from discernel.rows.formats import (
    FORMATS,
    check_bytes,
    check_file,
    check_size,
    file_ending,
    import_arrow,
    import_pandas,
    numbered_columns,
    refuse_duplicates,
    view_slices,
)


@dataclass(frozen=True, eq=False)
class ReadTable:
    """The content of a file.

    Attributes
    ----------
    frame : DataFrame
        All columns.
    how : str
        The format of the file, for users, such as "CSV, delimiter ';'".
    views : dict of str to tuple of str
        The columns of each view; empty for a single view.
    """

    frame: Any
    how: str
    views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_table(
    path: Path,
    as_text: Collection[str] = (),
    known: Sequence[Sequence[str]] = (),
) -> ReadTable:
    """Read all rows and columns of a file.

    Parameters
    ----------
    path : Path
        The file.
    as_text : collection of str
        Columns of labels, categories or identifiers to read as text; names that the file does not
        have are ignored. As floats, long integers in columns with missing cells would lose digits.
    known : sequence of sequence of str
        Lists of column names for a CSV file without a header. The first list with as many names
        as the file has columns is used.
    """
    check_file(path)
    if file_ending(path) == ".npz":
        return _read_npz(path)
    reader = READERS[file_ending(path)]
    file = reader(path, as_text, known) if reader is DelimitedFile else reader(path)
    table, pa = file.read(), import_arrow()
    frame = table.to_pandas().reset_index(drop=True)
    for column in table.schema:
        if column.name in as_text and pa.types.is_integer(column.type):
            frame[column.name] = table[column.name].cast(pa.string()).to_pandas()
    return ReadTable(frame, ", ".join(filter(None, [FORMATS[file_ending(path)], file.how])))


# ---- Parquet, Arrow and Feather ----------------------------------------------------------------


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Convert errors of pyarrow to errors that name the file."""
    try:
        yield
    except (import_arrow().ArrowException, OSError) as error:
        said = str(error).splitlines()[0].rstrip(".")
        raise InvalidInputError(
            f"{path.name} must be a valid {FORMATS[file_ending(path)]} file. pyarrow: {said}."
        ) from error


def _columns(path: Path, schema: Any) -> dict[str, Any]:
    """Return the types of the columns, without stored indices of pandas DataFrames."""
    refuse_duplicates(schema.names, path.name)
    stored = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    index = {name for name in stored.get("index_columns", []) if isinstance(name, str)}
    return {column.name: column.type for column in schema if column.name not in index}


class ParquetFile:
    """A Parquet file.

    Parameters
    ----------
    path : Path
        The file.
    """

    how = ""

    def __init__(self, path: Path) -> None:
        self.path, self._parquet = path, import_arrow().parquet
        with _reading(path), self._parquet.ParquetFile(path) as file:
            self.types = _columns(path, file.schema_arrow)
            self.n_rows = self.estimated_n_rows = int(file.metadata.num_rows)

    def parts(self, types: Mapping[str, Any], n_rows: int) -> Iterator[Any]:
        with _reading(self.path), self._parquet.ParquetFile(self.path) as file:
            yield from file.iter_batches(n_rows, columns=list(types))

    def read(self) -> Any:
        check_size(self.path, self.n_rows, len(self.types))
        with _reading(self.path), self._parquet.ParquetFile(self.path) as file:
            return file.read(columns=list(self.types))


class ArrowFile:
    """An Arrow file or stream, or a Feather file of any version.

    Parameters
    ----------
    path : Path
        The file.
    """

    how = ""
    n_rows: int | None = None
    estimated_n_rows: int | None = None

    def __init__(self, path: Path) -> None:
        self.path, self._pa = path, import_arrow()
        with _reading(path), self._open() as (schema, _):
            self.types = _columns(path, schema)

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, Iterable[Any]]]:
        """Yield the schema and the batches of rows."""
        from pyarrow import feather, ipc

        with self._pa.memory_map(str(self.path)) as file:
            try:
                stored = ipc.open_file(file)
                batches = map(stored.get_batch, range(stored.num_record_batches))
            except self._pa.ArrowInvalid:
                try:
                    file.seek(0)
                    stored = batches = ipc.open_stream(file)
                except self._pa.ArrowInvalid:  # the first version of Feather
                    stored = feather.read_table(self.path, memory_map=False)
                    batches = stored.to_batches()
            yield stored.schema, batches

    def parts(self, types: Mapping[str, Any], n_rows: int) -> Iterator[Any]:
        with _reading(self.path), self._open() as (_, batches):
            for batch in batches:
                for first in range(0, batch.num_rows, n_rows):
                    yield batch.slice(first, n_rows).select(list(types))

    def read(self) -> Any:
        check_bytes(self.path, self.path.stat().st_size)
        with _reading(self.path), self._open() as (schema, batches):
            table = self._pa.Table.from_batches(batches, schema)
        check_size(self.path, table.num_rows, table.num_columns)
        return table.select(list(self.types))


#: The classes that read files. ``types`` are the pyarrow types of the columns, ``n_rows`` and
#: ``estimated_n_rows`` are None if unknown, and ``how`` is the detected format of a text file.
#: ``parts`` yields tables of at most so many rows, and ``read`` returns all rows.
TableFile: TypeAlias = DelimitedFile | ParquetFile | ArrowFile
#: These classes by file extension.
READERS: dict[str, type[TableFile]] = {
    **{".csv": DelimitedFile, ".tsv": DelimitedFile, ".parquet": ParquetFile},
    **{".arrow": ArrowFile, ".feather": ArrowFile},
}


# ---- NPZ ---------------------------------------------------------------------------------------


def _read_npz(path: Path) -> ReadTable:
    pd = import_pandas()
    try:
        with zipfile.ZipFile(path) as archive:
            check_bytes(path, sum(member.file_size for member in archive.infolist()))
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInputError(
            f"{path.name} must be an NPZ file of numbers and text, without objects. Got: {error}. "
            "Write it with numpy.savez(path, view_a=..., view_b=..., target=...)."
        ) from error
    views = {name: array for name, array in arrays.items() if array.ndim == 2}
    _check_arrays(path, arrays, views)
    sizes = {view: array.shape[1] for view, array in views.items()}
    columns = numbered_columns(sizes)
    refuse_duplicates([*columns, *(name for name in arrays if name not in views)], path.name)
    table = pd.DataFrame(np.hstack(list(views.values())), columns=list(columns))
    for name, array in arrays.items():
        if name not in views:
            table[name] = array
    if len(views) == 1:
        return ReadTable(table, "NPZ")
    names = {view: columns[part] for view, part in view_slices(sizes).items()}
    return ReadTable(table, f"NPZ, {len(views)} views: {', '.join(views)}", names)


def _check_arrays(path: Path, arrays: Mapping[str, Any], views: Mapping[str, Any]) -> None:
    if not views:
        raise InvalidInputError(
            f"{path.name} must hold a two-dimensional array for each view, and a target. Got the "
            f"shapes { {name: array.shape for name, array in arrays.items()} }."
        )
    check_size(path, 1, sum(array.shape[1] for array in views.values()))
    deep = [name for name, array in arrays.items() if array.ndim not in (1, 2)]
    if deep:
        raise InvalidInputError(
            f"{path.name}: arrays must have one dimension (the target) or two (a view). Got "
            f"{deep[0]!r} of shape {arrays[deep[0]].shape}."
        )
    text = [name for name, array in views.items() if array.dtype.kind not in "buif"]
    if text:
        raise InvalidInputError(
            f"{path.name}: the view {text[0]!r} must hold numbers. Got {views[text[0]].dtype}."
        )
    n_rows = {name: len(array) for name, array in arrays.items()}
    if len(set(n_rows.values())) > 1:
        raise InvalidInputError(
            f"{path.name}: all arrays must have the same number of rows. Got {n_rows}."
        )
