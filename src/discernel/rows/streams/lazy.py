"""Predictions of Dask collections, which are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.rows.streams.chunks import Chunk
from discernel.rows.streams.dask import Layout, Sent, new_name

__all__ = ["lazily"]


def lazily(work: Callable[[Chunk], NDArray[Any]], X: Any, n_columns: int | None, dtype: Any) -> Any:
    """Return what work makes of the partitions of a Dask collection, as a Dask array of them.

    Parameters
    ----------
    work : callable
        Takes a `Chunk` with rows, and returns an array with as many. It is sent once.
    X : dask.array.Array or dask.dataframe.DataFrame
        Rows.
    n_columns : int or None
        The columns of what it returns; None where that has one dimension.
    dtype : dtype
        Of what it returns.
    """
    import dask.array as da
    from dask.core import flatten
    from dask.highlevelgraph import HighLevelGraph

    layout = Layout.of(X)
    is_array = layout.columns is None
    X = X.rechunk({1: -1}) if is_array else X.optimize()
    empty = np.empty((0,) if n_columns is None else (0, n_columns), dtype=dtype)
    sent, name = new_name("model"), new_name(getattr(work, "__name__", "predict"))
    tasks: dict[Any, Any] = {sent: Sent(layout, (work, empty))}
    rest = (0,) * (empty.ndim - 1)
    for part, key in enumerate(flatten(X.__dask_keys__())):
        tasks[(name, part, *rest)] = (_of_part, sent, part, key)
    rows = X.chunks[0] if is_array else (np.nan,) * X.npartitions
    return da.Array(
        HighLevelGraph.from_collections(name, tasks, dependencies=[X]),
        name,
        chunks=(rows, *((width,) for width in empty.shape[1:])),
        meta=empty,
    )


def _of_part(sent: Sent, part: int, X: Any) -> NDArray[Any]:
    """Return what work makes of a partition; without rows, an array without."""
    chunk = sent.layout.chunk(part, X, None, None)
    work, empty = sent.value
    return np.asarray(work(chunk), dtype=empty.dtype) if chunk.n_rows else empty
