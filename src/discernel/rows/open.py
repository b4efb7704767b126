"""`open_rows`: make a `Source` from paths, patterns, arrays, dataframes or chunks."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from discernel.arrays import convert_rows, is_dask, is_frame, is_sparse
from discernel.exceptions import InvalidInputError
from discernel.rows.files import FileSource
from discernel.rows.formats import ENDINGS, file_ending
from discernel.rows.reading import read_table
from discernel.rows.sources import ArraySource, ChunkSource, Source


def open_rows(
    rows: Any,
    target: Any = None,
    *,
    weights: Any = None,
    groups: Any = None,
    drop: Sequence[str] = (),
    chunk_rows: int | None = None,
) -> Source:
    """Open rows that may be larger than memory, for ``fit`` and ``predict``.

    Only the names and types of the columns are read at this point.

    Parameters
    ----------
    rows : str, path, list of them, array, dataframe, Dask collection, list of chunks or callable
        One of:

        - files that end with ``.parquet``, ``.csv``, ``.tsv``, ``.csv.gz``, ``.tsv.gz``,
          ``.arrow`` or ``.feather``: one file, several, a folder, or a pattern such as
          ``"data/*.parquet"``. The delimiter, decimal sign and header of text files are detected;
        - an ``.npz`` file, which is read into memory, or an ``.npy`` file, which is memory-mapped;
        - an array (also ``np.memmap``), a sparse matrix or a dataframe;
        - a list of chunks, or a function that returns an iterator of chunks. A chunk is X, (X, y),
          (X, y, weights), (X, y, weights, groups) or a dataframe;
        - a Dask array or dataframe, whose partitions are the chunks.
    target : str or array-like of shape (n_samples,), optional
        The column to predict, or y if the rows are an array. Not needed for rows to predict.
    weights : str or array-like of shape (n_samples,), optional
        The column with the sample weights, or an array of weights if the rows are an array.
    groups : str or array-like of shape (n_samples,), optional
        The column with labels of groups of rows, such as patients, or an array of labels if the
        rows are an array. Rows of a group are held out together, in whatever chunks they are; the
        column is not a feature.
    drop : sequence of str, optional
        Columns of files and dataframes to leave out.
    chunk_rows : int, optional
        The maximum number of rows in memory at a time; reduced if memory is small. It affects
        results only by rounding.

    Returns
    -------
    Source
        The rows, accepted by ``fit``, ``predict`` and ``predict_proba`` as X.

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
    labels = target, weights, groups
    if isinstance(rows, Source):
        if any(each is not None for each in labels):
            raise InvalidInputError(
                "A source of rows in chunks contains labels, weights and groups. Got them as "
                "arguments too; pass them, or the names of their columns, to open_rows."
            )
        return rows
    if given := _as_paths(rows):
        return _open_files(find_files(given), labels, drop, chunk_rows)
    if is_dask(rows):
        from discernel.rows.dask import DaskSource

        return DaskSource(rows, labels, drop)
    rows = convert_rows(rows)
    if callable(rows) or (isinstance(rows, (list, tuple, Iterator)) and _are_chunks(rows, target)):
        return ChunkSource(rows, target, weights, drop, groups)
    # np.memmap stays what it is
    X = rows if is_frame(rows) or is_sparse(rows) else np.asanyarray(rows)
    return ArraySource(X, *labels, drop=drop, chunk_rows=chunk_rows)


def _as_paths(rows: Any) -> list[str]:
    """Return a path, or a list of paths, as a list of strings; an empty list for other rows."""
    given = rows if isinstance(rows, (list, tuple)) else [rows]
    are_paths = all(isinstance(each, (str, PathLike)) for each in given)
    return [str(each) for each in given] if are_paths else []


def _are_chunks(rows: Any, target: Any) -> bool:
    """Whether a list holds chunks, rather than rows as lists of numbers."""
    if isinstance(rows, Iterator):
        return True
    return (target is None or isinstance(target, str)) and all(map(_is_chunk, rows))


def _is_chunk(given: Any) -> bool:
    """Whether an object is a chunk: a two-dimensional table, or a tuple that begins with one."""
    X = given[0] if isinstance(given, tuple) else given
    if is_frame(X) or is_sparse(X):
        return True
    return isinstance(given, (np.ndarray, tuple)) and np.ndim(X) == 2


def _open_files(
    paths: list[Path], labels: Sequence[Any], drop: Sequence[str], chunk_rows: int | None
) -> Source:
    """Open files; the labels are y, weights and groups, as for `open_rows`."""
    if paths[0].suffix.lower() == ".npy":
        if len(paths) > 1:
            raise InvalidInputError(
                f"Only one .npy file can be opened at a time. Got {len(paths)}. Pass a list of "
                "arrays instead, each np.load(path, mmap_mode='r')."
            )
        X, *arrays = (
            np.load(each[0], mmap_mode="r") if (each := _as_paths(given)) else given
            for given in (paths[0], *labels)
        )
        return ArraySource(X, *arrays, drop=drop, chunk_rows=chunk_rows, name=str(paths[0]))
    if file_ending(paths[0]) == ".npz" and len(paths) == 1:
        frame = read_table(paths[0]).frame
        return ArraySource(frame, *labels, drop=drop, chunk_rows=chunk_rows)
    for what, given in zip(("target", "weights", "groups"), labels, strict=True):
        if not (given is None or isinstance(given, str)):
            raise InvalidInputError(
                f"For files, {what} must be the name of a column. Got {type(given).__name__}."
            )
    return FileSource(paths, labels, drop, chunk_rows)


def find_files(given: Sequence[str]) -> list[Path]:
    """Return the files that match paths, folders or patterns, sorted for each of them.

    Parameters
    ----------
    given : sequence of str
        Paths of files or folders, or patterns.
    """
    return [path for each in given for path in _find_one(each)]


def _find_one(given: str) -> list[Path]:
    path = Path(given)
    if path.is_file():
        return [path]
    if path.is_dir():
        within = [each for each in sorted(path.rglob("*")) if each.is_file()]
    else:
        within = [Path(each) for each in sorted(glob.glob(given, recursive=True))]
    # Spark and others write logs and markers whose names begin with a dot or an underscore.
    seen = [each for each in within if each.is_file() and each.name[0] not in "._"]
    kinds = {file_ending(each) for each in seen} & set(ENDINGS)
    if path.is_dir() and kinds:
        seen = [each for each in seen if file_ending(each) in kinds]
    if not seen:
        raise InvalidInputError(
            "Rows must be a file, a folder of data files such as Parquet or CSV, or a pattern that "
            f"matches files. Found no files for {given!r}."
        )
    return seen
