"""The way in: from paths, patterns, arrays, dataframes and chunks to a source of rows."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from discernel.arrays import convert_rows, is_frame, is_sparse
from discernel.exceptions import InvalidInputError
from discernel.rows.chunks import is_dask
from discernel.rows.files import FileSource
from discernel.rows.formats import ENDINGS, file_ending
from discernel.rows.reading import read_table
from discernel.rows.sources import ArraySource, ChunkSource, Source, split_frame


def open_rows(
    rows: Any,
    target: Any = None,
    *,
    weights: Any = None,
    drop: Sequence[str] = (),
    chunk_rows: int | None = None,
) -> Source:
    """Open rows that need not fit into memory, for ``fit`` and ``predict``.

    Only the column names and types are read at this point.

    Parameters
    ----------
    rows : str, path, list of them, array, dataframe, Dask collection, list of chunks or callable
        Files that end with ``.parquet``, ``.csv``, ``.tsv``, ``.csv.gz``, ``.tsv.gz``, ``.arrow``
        or ``.feather``: one, several, a folder of them or a pattern such as ``"data/*.parquet"``.
        Delimiter, decimal sign and line of names are found. An ``.npz`` file, which is read whole,
        or an ``.npy`` file, which is mapped into memory. An
        array, perhaps a ``np.memmap``, a sparse matrix or a dataframe. A list of chunks, or a
        function that returns an iterator of chunks, each of which is X, (X, y), (X, y, weights) or
        a dataframe. A Dask array or dataframe, whose partitions are the chunks.
    target : str or array-like of shape (n_samples,), optional
        The column that is to be predicted; of arrays, y itself. Rows to predict need none.
    weights : str or array-like of shape (n_samples,), optional
        How much each row counts: a column, or of arrays the numbers themselves.
    drop : sequence of str, optional
        Columns of files and dataframes to leave out.
    chunk_rows : int, optional
        The most rows that are held at a time; fewer where the machine has little memory. The
        result does not depend on it, but for rounding.

    Returns
    -------
    Source
        To be given to ``fit``, ``predict`` or ``predict_proba`` in place of X.

    Examples
    --------
    >>> import numpy as np
    >>> from discernel import MultipleKernelDiscriminant, open_rows
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = np.hypot(*X.T) > 1.2
    >>> rows = open_rows(X, y, chunk_rows=100)
    >>> clf = MultipleKernelDiscriminant().fit(rows)
    >>> [part.shape for part in clf.predict(rows)]
    [(100,), (100,), (100,), (100,)]
    """
    if isinstance(rows, Source):
        return rows
    if isinstance(rows, (str, PathLike)) or _are_paths(rows):
        return _open_files(rows, target, weights, drop, chunk_rows)
    if is_dask(rows):
        from discernel.rows.dask import DaskSource

        return DaskSource(rows, target, weights, drop)
    rows = convert_rows(rows)
    if callable(rows) or (isinstance(rows, (list, tuple, Iterator)) and _are_chunks(rows, target)):
        return ChunkSource(rows, target, weights, drop)
    if is_frame(rows):
        return _open_frame(rows, target, weights, drop, chunk_rows)
    X = rows if is_sparse(rows) or isinstance(rows, np.ndarray) else np.asarray(rows)
    return ArraySource(X, target, weights, chunk_rows=chunk_rows)


def _are_paths(rows: Any) -> bool:
    return (
        isinstance(rows, (list, tuple))
        and len(rows) > 0
        and all(isinstance(each, (str, PathLike)) for each in rows)
    )


def _are_chunks(rows: Any, target: Any) -> bool:
    """Whether a list is one of chunks, and not of rows, which are lists of numbers."""
    if isinstance(rows, Iterator):
        return True
    labelled = target is None or isinstance(target, str)
    return labelled and all(map(_is_chunk, rows))


def _is_chunk(given: Any) -> bool:
    """Whether a chunk is given: rows of two dimensions, or a tuple that begins with such rows."""
    X = given[0] if isinstance(given, tuple) else given
    if is_frame(X) or is_sparse(X):
        return True
    return isinstance(given, (np.ndarray, tuple)) and np.ndim(X) == 2


def _open_frame(
    X: Any, target: Any, weights: Any, drop: Sequence[str], chunk_rows: int | None
) -> Source:
    names = [name if isinstance(name, str) else None for name in (target, weights)]
    rest, y, numbers = split_frame(X, names[0], names[1], drop, "X")
    return ArraySource(
        rest,
        target if names[0] is None else y,
        weights if names[1] is None else numbers,
        chunk_rows=chunk_rows,
    )


def _open_files(
    rows: Any, target: Any, weights: Any, drop: Sequence[str], chunk_rows: int | None
) -> Source:
    paths = _found(rows)
    if paths[0].suffix.lower() == ".npy":
        if len(paths) > 1:
            raise InvalidInputError(
                f"Of .npy files one is taken. Got {len(paths)}. Give a list of arrays, each "
                "np.load(path, mmap_mode='r')."
            )
        y, numbers = (_loaded(each) for each in (target, weights))
        X = np.load(paths[0], mmap_mode="r")
        return ArraySource(X, y, numbers, chunk_rows=chunk_rows, name=str(paths[0]))
    if file_ending(paths[0]) == ".npz" and len(paths) == 1:
        return _open_frame(read_table(paths[0]).frame, target, weights, drop, chunk_rows)
    for what, given in (("target", target), ("weights", weights)):
        if given is not None and not isinstance(given, str):
            raise InvalidInputError(
                f"The {what} of files must be the name of a column. Got {type(given).__name__}."
            )
    return FileSource(paths, target, weights=weights, drop=drop, chunk_rows=chunk_rows)


def _loaded(given: Any) -> Any:
    if isinstance(given, (str, PathLike)):
        return np.load(given, mmap_mode="r")
    return given


def _found(rows: Any) -> list[Path]:
    """Return the files that a path, a folder, a pattern or a list of these stands for, sorted."""
    given = [rows] if isinstance(rows, (str, PathLike)) else list(rows)
    return [path for each in given for path in _found_one(str(each))]


def _found_one(given: str) -> list[Path]:
    path = Path(given)
    if path.is_file():
        return [path]
    if path.is_dir():
        within = [each for each in sorted(path.rglob("*")) if each.is_file()]
    else:
        within = [Path(each) for each in sorted(glob.glob(given, recursive=True))]
    # Names that begin so are those of logs and marks, as Spark leaves them.
    seen = [each for each in within if each.is_file() and each.name[0] not in "._"]
    kinds = {file_ending(each) for each in seen} & set(ENDINGS)
    if path.is_dir() and kinds:
        seen = [each for each in seen if file_ending(each) in kinds]
    if not seen:
        raise InvalidInputError(
            "Rows must be a file, a folder of files such as Parquet or CSV, or a pattern that fits "
            f"some. Got {given!r}, where there is none."
        )
    return seen
