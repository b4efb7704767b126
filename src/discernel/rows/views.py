"""Join several sources of the same rows into one table, and make kernels for each source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from discernel.arrays import convert_rows, is_frame, is_sparse, n_rows
from discernel.exceptions import InvalidInputError, is_word
from discernel.kernels import (
    RBF,
    Jaccard,
    Kernel,
    Linear,
    Matching,
    NGram,
    Spectrum,
    Standardized,
    WhereKnown,
    as_kernels,
    kernel_names,
)
from discernel.kernels.columns import (
    Table,
    column_cells,
    column_indices,
    is_missing,
    missing_cells,
    take_columns,
)
from discernel.rows.formats import import_pandas, view_slices

#: The relative tolerance for a symmetric matrix.
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
    """Join sources of the same rows into one table, and return the columns of each source.

    One table works with ``fit``, cross-validation, pipelines and ``predict``: a selection of its
    rows is a selection from all sources. Join new rows in the same way.

    Parameters
    ----------
    views : dict of str to view, or sequence of views
        The sources, by name; in a sequence they are called "view 0", "view 1", ... A view is an
        array, sparse matrix or dataframe with one row per sample; or a list, array or series with
        one object per sample, such as a text, a sequence or a set. Rows are joined by position;
        dataframes must have equal indices. A symmetric square matrix is refused, because its
        columns are not features; use the kernel `Lookup` for similarities.

    Returns
    -------
    JoinedViews
        The table is an array if all views are arrays of numbers, a sparse matrix if one of these
        is sparse, and otherwise a pandas DataFrame, with columns such as ``scan[0]`` or
        ``clinic[age]``.

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
            + ". If a row lacks a view, set the cells of the view to NaN or None."
        )
    if any(is_frame(view) or view.dtype.kind not in "fiub" for view in named.values()):
        return _joined_frames(named)
    parts = [view if view.ndim == 2 else view[:, None] for view in named.values()]
    columns = view_slices({name: part.shape[1] for name, part in zip(named, parts, strict=True)})
    if any(is_sparse(part) for part in parts):
        return JoinedViews(sp.hstack(parts, format="csr"), columns)
    return JoinedViews(np.hstack(parts).astype(np.float64), columns)


def _as_view(name: str, view: Any) -> Any:
    """Return a view as a dataframe, a sparse matrix, or an array of one or two dimensions."""
    view = convert_rows(view)
    if is_sparse(view) or is_frame(view):
        return view
    if hasattr(view, "to_numpy"):  # a series
        view = view.to_numpy()
    if not isinstance(view, np.ndarray):
        view = _as_array(list(view))
    if view.ndim not in (1, 2):
        raise InvalidInputError(
            f"A view must have one or two dimensions. Got {name!r} of shape {view.shape}. Flatten "
            "it: view.reshape(len(view), -1)."
        )
    return view


def _refuse_similarities(name: str, view: Any) -> None:
    """Raise an error if a view is a matrix of similarities or distances between rows.

    A view is taken for one if it is a symmetric matrix of at least three rows, without column
    names, whose entries are not all equal.
    """
    shape = view.shape
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 3:
        return
    if is_frame(view):
        index = _pandas_index(view)
        if index is None or list(view.columns) != list(index):
            return
        view = view.to_numpy()
    if view.dtype.kind in "fiub" and _is_symmetric(view):
        raise InvalidInputError(
            f"The columns of a view must be features. Got {name!r}, a symmetric matrix of "
            f"{shape[0]} rows and as many columns, which looks like similarities between rows. "
            "Pass np.arange(n_rows) as the view and Lookup(matrix) as its kernel, with a matrix of "
            "all rows, including rows to predict. If the columns are features, name them: "
            "pd.DataFrame(view, columns=names)."
        )


def _pandas_index(view: Any) -> Any:
    """Return the index of a pandas DataFrame; None for other views, which have no index."""
    return getattr(view, "index", None)


def _is_symmetric(matrix: Any) -> bool:
    """Whether a square matrix is symmetric up to rounding, and its entries are not all equal."""
    if is_sparse(matrix):
        matrix = matrix.astype(np.float64)
        return bool(abs(matrix - matrix.T).max() <= _SYMMETRIC * abs(matrix).max())
    first, cells = np.asarray(matrix[0], dtype=np.float64), np.asarray(matrix, dtype=np.float64)
    atol = _SYMMETRIC * float(np.abs(first).max())
    # The first row and column rule out most tables quickly.
    if not np.allclose(first, cells[:, 0], rtol=_SYMMETRIC, atol=atol):
        return False
    return bool(np.ptp(cells) > 0 and np.allclose(cells, cells.T, rtol=_SYMMETRIC, atol=atol))


def _as_array(cells: list[Any]) -> NDArray[Any]:
    """Return rows of numbers as a two-dimensional array, and other rows as an array of objects."""
    try:
        found = np.asarray(cells)
    except ValueError:  # rows of different lengths
        found = np.empty(0, dtype=object)
    if found.dtype.kind in "fiub" and found.ndim == 2:
        return found
    return np.fromiter(cells, dtype=object, count=len(cells))


def _joined_frames(named: dict[str, Any]) -> JoinedViews:
    pd = import_pandas("Views that are not all arrays of numbers need pandas")
    index, first = None, ""
    for name, view in named.items():
        own = _pandas_index(view)
        if index is None:
            index, first = own, name
        elif own is not None and not own.equals(index):
            raise InvalidInputError(
                f"Views that are dataframes must have the same index. The indices of {first!r} and "
                f"{name!r} differ. Sort the rows with view.reindex(...), or drop the index if rows "
                "are joined by position: view.reset_index(drop=True)."
            )
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
    """Return the columns of one view, by their names in the joined table."""
    if is_sparse(view):
        view = view.toarray()
    if not is_frame(view):
        if view.ndim == 1:
            return {name: list(view)}
        return {f"{name}[{i}]": view[:, i] for i in range(view.shape[1])}
    if _pandas_index(view) is not None:  # types of pandas, such as categories, are kept
        return {f"{name}[{label}]": view.iloc[:, i].array for i, label in enumerate(view.columns)}
    return {f"{name}[{label}]": column_cells(view, i) for i, label in enumerate(view.columns)}


# ---- kernels of sources ------------------------------------------------------------------------


def source_kernels(sources: Any, kernels: Any = "auto", table: Any = None) -> dict[str, Kernel]:
    """Return kernels for each source, named "source: kernel".

    Parameters
    ----------
    sources : JoinedViews, or mapping of source name to columns
        Returned by `join_views`, or columns as for ``kernel.on``.
    kernels : "auto", kernel, list of kernels, or mapping of source name to one of these
        The kernels of all sources, or of each source. ``"auto"`` chooses kernels by the values:

        ============================ ==========================================================
        values                       kernels
        ============================ ==========================================================
        numbers                      three Gaussian kernels and a linear one, standardised
        categories (columns of text  `Matching`
        with few values)
        one column of text           `NGram`
        one column of sequences      `Spectrum` of 3 and of 5 characters
        one column of sets or lists  `Jaccard`
        ============================ ==========================================================

        A source of numbers and categories has the kernels of both.
    table : dataframe or array, optional
        The rows, if ``sources`` is not `JoinedViews`. Needed for ``"auto"``, and to find sources
        with missing cells, whose kernels are wrapped in `WhereKnown`.

    Returns
    -------
    dict of str to Kernel
        Kernels for the parameter ``kernels`` of an estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from discernel.views import join_views
    >>> notes = ["chest pain", "leg", "a cough", "arm"]
    >>> views = join_views({"scan": np.ones((4, 2)), "notes": notes})
    >>> list(source_kernels(views, {"scan": ["rbf", "linear"], "notes": "ngram"}))
    ["scan: RBF(width='median')", 'scan: Linear()', 'notes: NGram(n=(2, 4))']
    """
    if isinstance(sources, JoinedViews):
        table, sources = sources.table, sources.columns
    if not (isinstance(sources, Mapping) and sources):
        raise InvalidInputError(
            "The sources must be a mapping of names to columns, or the result of join_views. Got "
            f"{sources!r}."
        )
    chosen = kernels if isinstance(kernels, Mapping) else dict.fromkeys(sources, kernels)
    if absent := [name for name in sources if name not in chosen]:
        raise InvalidInputError(f"Every source must have kernels. Got none for {absent[0]!r}.")
    if unknown := [name for name in chosen if name not in sources]:
        raise InvalidInputError(
            f"Kernels must belong to the sources {list(sources)}. Got kernels for {unknown[0]!r}."
        )
    made: dict[str, Kernel] = {}
    for name, columns in sources.items():
        made |= kernels_of(str(name), columns, chosen[name], table)
    return made


def kernels_of(
    source: str, columns: Any, given: Any, table: Any, *, may_lack: bool = False
) -> dict[str, Kernel]:
    """Return the kernels of one source, by name; with ``may_lack``, all take rows without it."""
    found: list[tuple[Kernel, Any]]
    if is_word(given, "auto"):
        found = _auto(source, columns, table)
    else:
        found = [(kernel, columns) for kernel in as_kernels(given)]
    names = kernel_names([kernel for kernel, _ in found])
    made: dict[str, Kernel] = {}
    for (kernel, where), name in zip(found, names, strict=True):
        lacks = may_lack or (table is not None and _has_missing(table, where))
        if lacks and not kernel.takes_missing:
            kernel = WhereKnown(kernel)
        full = f"{source}: {name}"
        made[full] = kernel.on(where, source).named(full)
    return made


def _has_missing(table: Any, columns: Any) -> bool:
    """Whether cells in some columns of a table are missing."""
    taken = take_columns(table, column_indices(columns, table))
    if isinstance(taken, Table):
        return bool(np.isnan(taken.numbers.sum()) or missing_cells(taken.others).any())
    return not is_sparse(taken) and bool(np.isnan(taken.sum()))


def _auto(source: str, columns: Any, table: Any) -> list[tuple[Kernel, Any]]:
    """Choose kernels by the values of a source; return them with their columns."""
    if table is None:
        raise InvalidInputError(
            "kernels='auto' needs the rows. Got only columns. Pass table=..., or the result of "
            "join_views."
        )
    indices = column_indices(columns, table)
    taken = take_columns(table, indices)
    if not isinstance(taken, Table):
        return [(kernel, columns) for kernel in _of_numbers()]
    if len(indices) == 1 and (kernels := _of_cells(taken.others[:, 0])):
        return [(kernel, columns) for kernel in kernels]
    is_number = np.array(taken.is_number)
    labels: Any = indices
    if is_frame(table):
        labels = np.array(list(table.columns), dtype=object)[indices]
    others = labels[~is_number].tolist()
    for name, cells in zip(others, taken.others.T, strict=True):
        if _of_cells(cells):
            raise InvalidInputError(
                f"The column {name!r} of texts, sequences or sets must be the only column of its "
                f"source. The source {source!r} has others. Make it a separate source, or name "
                "the kernels of the source."
            )
    numbers = labels[is_number].tolist()
    of_numbers = [(kernel, numbers) for kernel in _of_numbers()] if numbers else []
    return [*of_numbers, (Matching(), others)]


def _of_numbers() -> list[Kernel]:
    widths = ("0.5*median", "median", "2*median")
    return [Standardized(kernel) for kernel in (*(RBF(width=width) for width in widths), Linear())]


#: Text with at most this many distinct values, and at most half as many as rows, is categorical.
#: Text of at most this many distinct characters, without spaces, is a sequence.
_CATEGORIES, _CHARACTERS = 50, 30


def _of_cells(cells: NDArray[np.object_]) -> list[Kernel]:
    """Return kernels for a column of sets, sequences or texts; an empty list for categories."""
    known = [cell for cell in cells if not is_missing(cell)]
    if known and all(isinstance(cell, (set, frozenset, list, tuple)) for cell in known):
        return [Jaccard()]
    if not all(isinstance(cell, str) for cell in known):
        return []
    different = set(known)
    if len(different) <= min(_CATEGORIES, 0.5 * len(known)):
        return []
    characters = set().union(*different)
    if len(characters) <= _CHARACTERS and not any(map(str.isspace, characters)):
        return [Spectrum(k=3), Spectrum(k=5)]
    return [NGram()]
