"""Load a data set from a user's file: CSV, TSV, Parquet, Arrow, Feather, or an NPZ of views.

The content is checked before anything is fitted. Errors name the column and the row; rows are
counted from 1, without the header.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.exceptions import InvalidInputError
from discernel.rows.columns import NUMBER, TableSchema, canonical_text, detect_columns
from discernel.rows.datasets import Dataset
from discernel.rows.formats import check_file, file_stem, listed, view_slices
from discernel.rows.groups import group_labels
from discernel.rows.reading import read_table

#: Column names that are recognized as the target if the user names none.
TARGET_NAMES = ("target", "class", "label", "y")
_SPELLED_TARGETS = [
    spelled for name in TARGET_NAMES for spelled in (name, name.capitalize(), name.upper())
]
#: A target with more distinct decimal numbers than this is a quantity, not a class.
MAX_FRACTIONS = 10
_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True, eq=False)
class OpenedFile:
    """The data set of a file, and notes on its columns.

    Attributes
    ----------
    dataset : Dataset
        The features, as a table of numbers, dates and categories, and the labels.
    schema : TableSchema
        The kinds of the columns of the features.
    target : str
        The column with the labels.
    notes : tuple of str
        Notes for users: the detected format, columns left out, and possible problems.
    columns : dict of str to str
        The use of each column of the file, for users.
    identifiers : tuple of str
        Columns left out because they identify rows.
    groups : ndarray or None
        The group of each row, if a column of groups was named.
    """

    dataset: Dataset
    schema: TableSchema
    target: str
    notes: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    identifiers: tuple[str, ...] = ()
    groups: NDArray[Any] | None = None


def open_file(
    path: str | Path,
    target: str | None = None,
    *,
    name: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    groups: str | None = None,
    digest: str | None = None,
) -> OpenedFile:
    r"""Load the data set of a file.

    The delimiter, decimal sign and header of a CSV file, and the kinds of all columns, are
    detected. Constant columns, columns that number the rows, and free text are left out. Dates,
    categories and missing cells are kept; a model learns their encoding from its training rows.

    Parameters
    ----------
    path : str or Path
        A CSV, TSV, Parquet, Arrow or Feather file, or an NPZ file in which each two-dimensional
        array is a view, and the array ``target`` or ``y`` holds the labels.
    target : str, optional
        The column with the labels; by default the column called target, class, label or y.
    name : str, optional
        The name of the data set; by default the name of the file without its extension.
    drop : sequence of str
        Columns to leave out.
    categorical : sequence of str
        Columns of numbers to treat as categories.
    numeric : sequence of str
        Columns to treat as numbers; other text becomes missing cells.
    groups : str, optional
        The column with the groups of the rows, which is not a feature.
    digest : str, optional
        The expected digest of the content, from `digest`. Other content raises an error.

    Returns
    -------
    OpenedFile
        The checked features and labels, and notes on the columns.

    Raises
    ------
    InvalidInputError
        If the file or its content cannot be used. The message names the place and a remedy.
    MissingExtraError
        If pandas or pyarrow is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from discernel.rows.labelled import open_file
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "plants.csv"
    ...     _ = path.write_text("height;kind;class\n1,5;u;a\n2,5;v;a\n7,0;u;b\n;v;b\n")
    ...     plants = open_file(path)
    >>> plants.dataset.X.shape, plants.dataset.y.tolist()
    ((4, 2), ['a', 'a', 'b', 'b'])
    >>> plants.notes
    ("CSV, delimiter ';', decimal ','; 1 number, 1 category; 1 cell missing",)
    """
    path = Path(path)
    stamp, path = check_file(path), path.resolve()
    if digest is not None and digest != _digest(str(path), stamp):
        raise InvalidInputError(
            f"{path.name} must not change during a run. Its content has changed. Start the "
            "comparison again; results for the old content are kept separately."
        )
    return _open(
        str(path),
        stamp,
        target,
        name or file_stem(path),
        tuple(drop),
        tuple(categorical),
        tuple(numeric),
        groups,
    )


def digest(path: str | Path) -> str:
    """Return a digest of the content of a file."""
    stamp = check_file(Path(path))
    return _digest(str(Path(path).resolve()), stamp)


@lru_cache(maxsize=8)
def _digest(path: str, stamp: tuple[int, int]) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


@lru_cache(maxsize=2)  # each run of a comparison opens its file again
def _open(
    path: str,
    stamp: tuple[int, int],
    target: str | None,
    name: str,
    drop: tuple[str, ...],
    categorical: tuple[str, ...],
    numeric: tuple[str, ...],
    groups: str | None,
) -> OpenedFile:
    where = Path(path).name
    labels = (target, f"column {target}") if target is not None else _SPELLED_TARGETS
    named = () if groups is None else (groups,)
    read = read_table(Path(path), (*categorical, *labels, *named))
    table = read.frame
    if not len(table):
        raise InvalidInputError(f"{where} must have rows below the header. Got none.")
    target = find_target(list(table.columns), target, where)
    _check_names(table, (*drop, *categorical, *numeric, *named), target, where)
    became = dict.fromkeys(drop, "left out: dropped") | {target: "the classes"}
    became |= dict.fromkeys(named, "the groups")
    table, y, notes = rows_with_labels(table, target, where)
    together = None if groups is None else group_labels(np.asarray(table[groups]), len(table))
    found = detect_columns(table.drop(columns=list(became)), categorical, numeric, where)
    kept = found.schema.columns
    n_kept = {view: len(set(columns) & set(kept)) for view, columns in read.views.items()}
    n_kept = {view: n for view, n in n_kept.items() if n}
    y.setflags(write=False)
    n = len(np.unique(y))
    dataset = Dataset(
        name=name,
        X=found.features,
        y=y,
        feature_names=kept,
        description=f"{len(y):,} rows, {len(kept):,} columns, {n} classes",
        source=f"file {where}",
        views=view_slices(n_kept) if len(n_kept) > 1 else {},
    )
    became |= found.columns
    return OpenedFile(
        dataset,
        found.schema,
        target,
        (f"{read.how}; {found.summary}", *notes, *found.notes),
        {column: became[column] for column in read.frame.columns},
        found.identifiers,
        together,
    )


# ---- the checks --------------------------------------------------------------------------------


def find_target(columns: Sequence[str], target: str | None, where: str) -> str:
    """Return the name of the column with the labels, or raise an error if there is none.

    Parameters
    ----------
    columns : sequence of str
        The columns of a file.
    target : str or None
        The column that the user named; None to find it by its name, from `TARGET_NAMES`.
    where : str
        The name of the file, for error messages.
    """
    if target is None:
        guesses = [column for column in columns if str(column).lower() in TARGET_NAMES]
        if len(guesses) == 1:
            return guesses[0]
        found = f"has {listed(guesses)}" if guesses else f"has {listed(columns, 8)}"
        raise InvalidInputError(
            f"The target must be named: {where} {found}. Name the column with the classes to "
            "predict: --target COLUMN (target=... in Python)."
        )
    for name in (target, f"column {target}"):  # without a header, columns are numbered
        if name in columns:
            return name
    raise InvalidInputError(
        f"The target must be a column of {where}. Got {target!r}.{_suggest(target, columns)}"
    )


def _suggest(name: str, columns: Sequence[str]) -> str:
    """Return a sentence with similar column names, or with the existing ones."""
    lower = {str(column).lower(): column for column in columns}
    close = [lower[found] for found in get_close_matches(name.lower(), list(lower), n=3)]
    if close:
        return f" Did you mean {' or '.join(map(repr, close))}?"
    return f" There are {listed(columns, 8)}."


def _check_names(table: Any, names: Iterable[str], target: str, where: str) -> None:
    """Raise an error if a column that the user named does not exist, or is the target."""
    for name in names:
        if name not in table.columns:
            raise InvalidInputError(
                "The columns of drop, categorical, numeric and groups must be in "
                f"{where}. Got {name!r}."
                f"{_suggest(name, list(table.columns))}"
            )
        if name == target:
            raise InvalidInputError(
                f"The target {name!r} must not be in drop, categorical, numeric or groups. Remove "
                "it there, or name another target."
            )


def rows_with_labels(table: Any, target: str, where: str) -> tuple[Any, NDArray[Any], list[str]]:
    """Return the rows with labels, the labels as integers or text, and notes for users.

    Parameters
    ----------
    table : DataFrame
        All rows.
    target : str
        The column with the labels.
    where : str
        The name of the table, for error messages.
    """
    absent, notes = table[target].isna(), []
    if absent.any():
        rows = "row" if absent.sum() == 1 else "rows"
        notes.append(f"left out {absent.sum():,} {rows} without a class in {target!r}")
        table = table[~absent].reset_index(drop=True)
    if not len(table):
        raise InvalidInputError(
            f"The target must hold classes. Column {target!r} of {where} has no values. Name "
            "another target."
        )
    y = _classes(canonical_text(table[target]), target, where)
    classes = np.unique(y)
    if len(classes) < 2:
        raise InvalidInputError(
            f"The target must hold at least two classes. Column {target!r} of {where} holds "
            f"{classes[0]!s} in every row. Name another target."
        )
    return table, y, notes


def _classes(texts: NDArray[Any], target: str, where: str) -> NDArray[Any]:
    """Return labels as 64-bit integers if possible, or else as text."""
    values = set(texts)
    if all(_COMMA.fullmatch(text) or NUMBER.fullmatch(text) for text in values):
        values = {text.replace(",", ".") for text in values}
    if all(NUMBER.fullmatch(text) for text in values):
        whole = not any("." in text for text in values)
        # Integers may be class labels, but hardly with fewer than three rows each.
        if len(values) > (max(20, len(texts) // 3) if whole else MAX_FRACTIONS):
            numbers = [float(text) for text in values]
            raise InvalidInputError(
                f"The target must hold classes. Column {target!r} of {where} holds {len(values)} "
                f"distinct numbers, from {min(numbers):g} to {max(numbers):g}: a quantity. Divide "
                "it into classes, or predict it with discernel.MultipleKernelRidge."
            )
        if whole and all(-(2**63) <= int(text) < 2**63 for text in values):
            return np.array([int(text) for text in texts], dtype=np.int64)
    elif len(values) > max(20, len(texts) // 2):
        raise InvalidInputError(
            f"The target must hold classes. Column {target!r} of {where} holds {len(values)} "
            f"distinct texts in {len(texts)} rows. Name another target."
        )
    return texts.astype(str)
