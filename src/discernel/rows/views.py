"""Several sources of the same rows: one table, and kernels per source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from discernel.arrays import convert_rows, is_frame, is_sparse, n_rows
from discernel.exceptions import InvalidInputError
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
    take_columns,
)
from discernel.rows.formats import import_pandas, view_slices

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
    if is_sparse(view) or is_frame(view):
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
    if is_frame(view):
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
    if is_sparse(matrix):
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
    return not is_frame(view) and view.dtype.kind in "fiub"


def _joined_arrays(named: dict[str, Any]) -> JoinedViews:
    parts = [view if view.ndim == 2 else view[:, None] for view in named.values()]
    columns = view_slices({name: part.shape[1] for name, part in zip(named, parts, strict=True)})
    if any(is_sparse(part) for part in parts):
        return JoinedViews(sp.hstack(parts, format="csr"), columns)
    return JoinedViews(np.hstack(parts).astype(np.float64), columns)


def _joined_frames(named: dict[str, Any]) -> JoinedViews:
    pd = import_pandas("Views that are not all arrays of numbers need pandas")
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
    if is_sparse(view):
        view = view.toarray()
    if not is_frame(view):
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
        The rows that an estimator was given.
    y : sequence, optional
        The labels, one per row.
    """
    if is_sparse(X):  # one kind of sparse matrix is a dictionary too
        return
    what = "a dictionary" if isinstance(X, Mapping) else f"a {type(X).__name__} of arrays"
    if not isinstance(X, Mapping):
        if not isinstance(X, (list, tuple)) or len(X) < 2 or (y is not None and len(X) == len(y)):
            return
        shapes: list[tuple[int, ...]] = [getattr(part, "shape", ()) for part in X]
        if any(len(shape) != 2 for shape in shapes) or len({shape[0] for shape in shapes}) > 1:
            return
    raise InvalidInputError(
        f"X must be one table. Got {what}. Join several sources with `views = "
        "join_views(X)` of discernel.views, give the estimator `source_kernels(views)`, and fit it "
        "to `views.table`."
    )


# ---- kernels of sources ------------------------------------------------------------------------


def source_kernels(sources: Any, kernels: Any = "auto", table: Any = None) -> dict[str, Kernel]:
    """Return several kernels per source, for an estimator, named "source: kernel".

    Parameters
    ----------
    sources : JoinedViews, or mapping of source name to columns
        Returned by `join_views`, or columns as ``kernel.on`` takes them.
    kernels : "auto", kernel, list of kernels, or mapping of source name to one of these
        The kernels of every source, or those of each. ``"auto"`` looks at the table:

        ============================ ==========================================================
        a source of                  has
        ============================ ==========================================================
        numbers                      three Gaussian kernels and a linear one, standardised
        categories (columns of text  `Matching`
        with few values)
        one column of text           `NGram`
        one column of sequences      `Spectrum` of 3 and of 5 characters
        one column of sets or lists  `Jaccard`
        ============================ ==========================================================

        Numbers and categories in one source have the kernels of both.
    table : dataframe or array, optional
        The rows, if ``sources`` are only columns. Needed for ``"auto"``, and to see which sources
        some rows lack: their kernels are put into `WhereKnown`.

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
            "The sources must be a mapping of names to columns, or what join_views returns. Got "
            f"{sources!r}."
        )
    if isinstance(kernels, Mapping):
        if absent := [name for name in sources if name not in kernels]:
            raise InvalidInputError(f"Every source must have kernels. Got none for {absent[0]!r}.")
        if strange := [name for name in kernels if name not in sources]:
            raise InvalidInputError(
                f"Kernels must be those of the sources {list(sources)}. Got some for "
                f"{strange[0]!r}."
            )
    made: dict[str, Kernel] = {}
    for name, columns in sources.items():
        given = kernels[name] if isinstance(kernels, Mapping) else kernels
        made |= _kernels_of(str(name), columns, given, table)
    return made


def _kernels_of(source: str, columns: Any, given: Any, table: Any) -> dict[str, Kernel]:
    """Return the kernels of one source, by name."""
    found: list[tuple[Kernel, Any]]
    if isinstance(given, str) and given == "auto":
        found = _auto(source, columns, table)
    else:
        found = [(kernel, columns) for kernel in as_kernels(given)]
    names = kernel_names([kernel for kernel, _ in found])
    made: dict[str, Kernel] = {}
    for (kernel, where), name in zip(found, names, strict=True):
        if table is not None and not kernel.takes_missing and _has_missing(table, where):
            kernel = WhereKnown(kernel)
        full = f"{source}: {name}"
        made[full] = kernel.on(where, source).named(full)
    return made


def _has_missing(table: Any, columns: Any) -> bool:
    """Whether some cells of some columns are missing."""
    taken = take_columns(table, column_indices(columns, table))
    if is_sparse(taken):
        return False
    numbers = taken.numbers if isinstance(taken, Table) else taken
    others = taken.others if isinstance(taken, Table) else np.empty(0)
    return bool(np.isnan(numbers.sum())) or any(map(is_missing, others.ravel()))


def _auto(source: str, columns: Any, table: Any) -> list[tuple[Kernel, Any]]:
    """Return kernels that suit what stands in the columns of a source, and their columns."""
    if table is None:
        raise InvalidInputError(
            "kernels='auto' looks at the rows. Got only columns: pass table=, or what join_views "
            "returns."
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
                f"The source {source!r} has other columns beside {name!r}, which holds texts, "
                "sequences or sets. Make it a source of its own, or give the source its kernels."
            )
    numbers = labels[is_number].tolist()
    of_numbers = [(kernel, numbers) for kernel in _of_numbers()] if numbers else []
    return [*of_numbers, (Matching(), others)]


def _of_numbers() -> list[Kernel]:
    widths = ("0.5*median", "median", "2*median")
    return [Standardized(kernel) for kernel in (*(RBF(width=width) for width in widths), Linear())]


#: Columns of text with at most this many different values, in half of the rows or fewer, are
#: categories; strings of at most this many different characters and no blanks are sequences.
_CATEGORIES, _CHARACTERS = 50, 30


def _of_cells(cells: NDArray[np.object_]) -> list[Kernel]:
    """Return kernels of a column of sets, sequences or texts; none for a column of categories."""
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
