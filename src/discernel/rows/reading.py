"""A file to a table: CSV, TSV, Parquet, Arrow, Feather, or an NPZ of views."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from discernel.exceptions import InvalidInputError, missing_extra
from discernel.rows.delimited import read_delimited
from discernel.rows.formats import (
    check_bytes,
    check_file,
    check_size,
    file_ending,
    import_pandas,
    refuse_duplicates,
)

__all__ = ["ReadTable", "read_table"]


@dataclass(frozen=True, eq=False)
class ReadTable:
    """A table as a file has it.

    Attributes
    ----------
    frame : DataFrame
        All columns.
    how : str
        How it was read, in words.
    views : dict of str to tuple of str
        The columns of each view; empty where there is one only.
    """

    frame: Any
    how: str
    views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_table(
    path: Path,
    as_written: Callable[[str], bool] = lambda name: False,
    known: Sequence[Sequence[str]] = (),
) -> ReadTable:
    """Return all columns of a file, and how it was read.

    Parameters
    ----------
    path : Path
        The file.
    as_written : callable, optional
        Whether the column of a name holds labels, categories or names. They are read as text
        where a number could not hold them: whole numbers in a column with gaps would lose digits.
    known : sequence of sequence of str
        Names of columns that a file without a line of names may have, all at once.
    """
    check_file(path)
    ending = file_ending(path)
    if ending == ".npz":
        return _read_npz(path)
    if ending in (".csv", ".tsv"):
        frame, how = read_delimited(path, as_written, known)
        return ReadTable(frame, f"{ending[1:].upper()}, {how}")
    return _read_arrow(path, as_written)


# ---- Parquet, Arrow and Feather ----------------------------------------------------------------


def _read_arrow(path: Path, as_written: Callable[[str], bool]) -> ReadTable:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing_extra(f"Reading {path.suffix} files needs pyarrow", "app") from error
    import_pandas()
    kind = {".parquet": "Parquet", ".arrow": "Arrow", ".feather": "Feather"}[file_ending(path)]
    try:
        table = _parquet_table(path) if kind == "Parquet" else _arrow_table(path)
        frame = table.to_pandas().reset_index(drop=True)
        for column in table.schema:
            exact = as_written(column.name) and pa.types.is_integer(column.type)
            if exact and column.name in frame:
                frame[column.name] = table[column.name].cast(pa.string()).to_pandas()
        return ReadTable(frame, kind)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInputError(
            f"{path.name} must be a file of the kind {kind}. Got: {str(error).rstrip('.')}."
        ) from error


def _parquet_table(path: Path) -> Any:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        check_size(path, file.metadata.num_rows, len(names))
        refuse_duplicates(names, path)
        return file.read()


def _arrow_table(path: Path) -> Any:
    """Return the table of an Arrow file or stream, or of a Feather file of any version."""
    import pyarrow as pa
    from pyarrow import feather, ipc

    check_bytes(path, path.stat().st_size)
    try:
        table = feather.read_table(path, memory_map=False)
    except pa.ArrowInvalid:
        with path.open("rb") as file, ipc.open_stream(file) as stream:
            table = stream.read_all()
    check_size(path, table.num_rows, table.num_columns)
    refuse_duplicates(table.column_names, path)
    return table


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
    names = {
        view: tuple(f"{view}{index}" for index in range(array.shape[1]))
        for view, array in views.items()
    }
    columns = [column for of_view in names.values() for column in of_view]
    refuse_duplicates([*columns, *(name for name in arrays if name not in views)], path)
    table = pd.DataFrame(np.hstack(list(views.values())), columns=columns)
    for name, array in arrays.items():
        if name not in views:
            table[name] = array
    if len(views) == 1:
        return ReadTable(table, "NPZ")
    return ReadTable(table, f"NPZ, {len(views)} views: {', '.join(views)}", names)


def _check_arrays(path: Path, arrays: Mapping[str, Any], views: Mapping[str, Any]) -> None:
    if not views:
        raise InvalidInputError(
            f"{path.name} must hold an array of rows and columns for each view, and a target. Got "
            f"{ {name: array.shape for name, array in arrays.items()} }."
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
