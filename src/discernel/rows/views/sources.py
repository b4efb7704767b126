"""Several kernels per source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from discernel.kernels.columns import Table, column_indices, is_missing, take_columns
from discernel.rows.views.join import JoinedViews

__all__ = ["source_kernels"]


def source_kernels(sources: Any, kernels: Any = "auto", table: Any = None) -> dict[str, Kernel]:
    """Return several kernels per source, for an estimator, named "source: kernel".

    Parameters
    ----------
    sources : JoinedViews, or mapping of source name to columns
        What `join_views` returned, or columns as ``kernel.on`` takes them.
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
        To be given to an estimator as its ``kernels``.

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
    if hasattr(taken, "tocsr"):
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
    if hasattr(table, "columns"):
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
