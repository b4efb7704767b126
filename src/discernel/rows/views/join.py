"""Several data sources of the same rows as one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from discernel.arrays import convert_rows, n_rows
from discernel.exceptions import InvalidInputError, missing_extra
from discernel.kernels.columns import column_cells

__all__ = ["JoinedViews", "join_views", "refuse_views"]

#: Entries of a matrix and its transpose that differ by less than this share are the same.
_SYMMETRIC = 1e-8


class JoinedViews(NamedTuple):
    """Several sources as one table; ``table, columns = join_views(views)``.

    Attributes
    ----------
    table : dataframe, ndarray or CSR of shape (n_rows, n_columns)
        The rows, for ``fit``, ``predict`` and scikit-learn's cross-validation.
    columns : dict of str to list of str, or slice
        The columns of each source, as ``kernel.on`` takes them.
    """

    table: Any
    columns: dict[str, Any]


def join_views(views: Any) -> JoinedViews:
    """Return sources of the same rows as one table, and which columns belong to which source.

    One table goes through ``fit``, cross-validation, pipelines and ``predict`` as any other:
    whoever takes some of its rows takes them from all sources. New rows are joined in the same way.

    Parameters
    ----------
    views : dict of str to view, or sequence of views
        The sources, by name, or called "view 0", "view 1" and so on. A view is an array, sparse
        matrix or dataframe with one row per sample; or a list, array or series of one thing per
        sample, such as texts, sequences or sets. Rows of dataframes are joined by their position,
        and their indices must be the same. A symmetric matrix of as many columns as rows is
        refused: its columns are rows too, and `Lookup` is the kernel of it.

    Returns
    -------
    JoinedViews
        The table is an array where all views are arrays of numbers, sparse where one of them is,
        and else a dataframe of pandas, with columns such as ``scan[0]`` or ``clinic[age]``.

    Examples
    --------
    >>> import numpy as np
    >>> table, columns = join_views([np.zeros((5, 3)), np.ones((5, 2))])
    >>> table.shape, columns
    ((5, 5), {'view 0': slice(0, 3, None), 'view 1': slice(3, 5, None)})
    """
    if isinstance(views, Mapping):
        named = {str(name): view for name, view in views.items()}
    else:
        named = {f"view {i}": view for i, view in enumerate(views)}
    if not named:
        raise InvalidInputError("There must be at least one view. Got none.")
    named = {name: _as_view(name, view) for name, view in named.items()}
    for name, view in named.items():
        _refuse_similarities(name, view)
    sizes = {name: n_rows(view) for name, view in named.items()}
    if len(set(sizes.values())) > 1:
        raise InvalidInputError(
            "All views must have the same rows, in the same order. Got "
            + ", ".join(f"{n} rows in {name!r}" for name, n in sizes.items())
            + ". A row that lacks a view has missing cells (NaN, None) there."
        )
    if all(_is_numeric_array(view) for view in named.values()):
        return _joined_arrays(named)
    return _joined_frames(named)


def _as_view(name: str, view: Any) -> Any:
    """Return a dataframe, a sparse matrix, or an array of one or two dimensions."""
    view = convert_rows(view)
    if hasattr(view, "tocsr") or (hasattr(view, "columns") and hasattr(view, "shape")):
        return view
    if hasattr(view, "to_numpy"):  # a series
        view = view.to_numpy()
    if not isinstance(view, np.ndarray):
        view = _as_array(list(view))
    if view.ndim not in (1, 2):
        raise InvalidInputError(
            f"A view must have one row per sample, and columns. Got {name!r} of shape "
            f"{view.shape}. Flatten it: view.reshape(len(view), -1)."
        )
    return view


def _refuse_similarities(name: str, view: Any) -> None:
    """Raise where a view is a matrix of similarities or distances, whose columns are rows.

    Such a matrix is symmetric, and has no columns with names of their own. One or two rows say
    nothing, nor do cells that are all the same.
    """
    shape: tuple[int, ...] = getattr(view, "shape", ())
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 3:
        return
    if hasattr(view, "columns"):
        if not hasattr(view, "index") or list(view.columns) != list(view.index):
            return
        view = view.to_numpy()
    if view.dtype.kind in "fiub" and _is_symmetric(view):
        raise InvalidInputError(
            f"The columns of a view must be features. Got {name!r}, a symmetric matrix of "
            f"{shape[0]} rows and as many columns, as of similarities between rows. Give "
            "np.arange(n_rows) as the view and Lookup(matrix) as its kernel, with a matrix of all "
            "rows, those to be predicted too. If its columns are features, give them names: "
            "pd.DataFrame(view, columns=names)."
        )


def _is_symmetric(matrix: Any) -> bool:
    """Whether a square matrix is symmetric up to rounding, and not all of its entries equal."""
    if hasattr(matrix, "tocsr"):
        matrix = matrix.astype(np.float64)
        return bool(abs(matrix - matrix.T).max() <= _SYMMETRIC * abs(matrix).max())
    first, cells = np.asarray(matrix[0], dtype=np.float64), np.asarray(matrix, dtype=np.float64)
    atol = _SYMMETRIC * float(np.abs(first).max())
    if not np.allclose(first, cells[:, 0], rtol=_SYMMETRIC, atol=atol):  # most tables end here
        return False
    return bool(np.ptp(cells) > 0 and np.allclose(cells, cells.T, rtol=_SYMMETRIC, atol=atol))


def _as_array(cells: list[Any]) -> NDArray[Any]:
    """Return rows of numbers as an array of them, and anything else as one thing per row."""
    try:
        found = np.asarray(cells)
    except ValueError:  # of different lengths
        found = np.empty(0, dtype=object)
    if found.dtype.kind in "fiub" and found.ndim == 2:
        return found
    return np.fromiter(cells, dtype=object, count=len(cells))


def _is_numeric_array(view: Any) -> bool:
    return not hasattr(view, "columns") and view.dtype.kind in "fiub"


def _joined_arrays(named: dict[str, Any]) -> JoinedViews:
    parts = [view if view.ndim == 2 else view[:, None] for view in named.values()]
    ends = np.cumsum([0, *(part.shape[1] for part in parts)]).tolist()
    columns = {
        name: slice(start, stop)
        for name, start, stop in zip(named, ends[:-1], ends[1:], strict=True)
    }
    if any(hasattr(part, "tocsr") for part in parts):
        return JoinedViews(sp.hstack(parts, format="csr"), columns)
    return JoinedViews(np.hstack(parts).astype(np.float64), columns)


def _joined_frames(named: dict[str, Any]) -> JoinedViews:
    try:
        import pandas as pd
    except ImportError as error:
        raise missing_extra(
            "Views that are not all arrays of numbers need pandas", "app"
        ) from error
    indices = {name: view.index for name, view in named.items() if hasattr(view, "iloc")}
    first = next(iter(indices), None)
    for name, index in indices.items():
        if not index.equals(indices[first or name]):
            raise InvalidInputError(
                f"Views that are dataframes must have the same index. Those of {first!r} and "
                f"{name!r} differ. Bring their rows into one order, with view.reindex(...), or "
                "drop the index if rows belong together by position: view.reset_index(drop=True)."
            )
    index = None if first is None else indices[first]
    cells: dict[str, Any] = {}
    columns: dict[str, list[str]] = {}
    for name, view in named.items():
        part = _columns_of(name, view)
        if clash := cells.keys() & part.keys():
            raise InvalidInputError(f"Two views have a column {min(clash)!r}. Rename a view.")
        cells |= part
        columns[name] = list(part)
    return JoinedViews(pd.DataFrame(cells, index=index), columns)


def _columns_of(name: str, view: Any) -> dict[str, Any]:
    """Return the columns of one view under the names that they have in the table."""
    if hasattr(view, "tocsr"):
        view = view.toarray()
    if not hasattr(view, "columns"):
        if view.ndim == 1:
            return {name: list(view)}
        return {f"{name}[{i}]": view[:, i] for i in range(view.shape[1])}
    if hasattr(view, "iloc"):  # types of pandas, such as categories, are kept
        return {f"{name}[{label}]": view.iloc[:, i].array for i, label in enumerate(view.columns)}
    return {f"{name}[{label}]": column_cells(view, i) for i, label in enumerate(view.columns)}


def refuse_views(X: Any, y: Any = None) -> None:
    """Raise an error that says what to do where X is several views, and not one table.

    Parameters
    ----------
    X : anything
        What an estimator was given for its rows.
    y : sequence, optional
        The labels, one per row.
    """
    if hasattr(X, "tocsr"):  # one kind of sparse matrix is a dictionary too
        return
    what = "a dictionary" if isinstance(X, Mapping) else f"a {type(X).__name__} of arrays"
    if not isinstance(X, Mapping):
        if not isinstance(X, (list, tuple)) or len(X) < 2 or (y is not None and len(X) == len(y)):
            return
        shapes: list[tuple[int, ...]] = [getattr(part, "shape", ()) for part in X]
        if any(len(shape) != 2 for shape in shapes) or len({shape[0] for shape in shapes}) > 1:
            return
    raise InvalidInputError(
        f"X must be one table. Got {what}. Join several sources with `table, columns = "
        "join_views(X)` of discernel.views, and give the estimator `source_kernels(columns)`."
    )
