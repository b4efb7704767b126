"""Load a data set from a user's file: CSV, TSV, Parquet, Arrow, Feather, or an NPZ of views.

The content is checked before anything is fitted. Errors name the column and the row; rows are
counted from 1, without the header.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discernel.exceptions import InvalidInputError, did_you_mean, listed
from discernel.rows.chunks import Place
from discernel.rows.columns import (
    NUMBER,
    TableSchema,
    canonical_text,
    detect_columns,
    one_spelling,
)
from discernel.rows.datasets import Dataset
from discernel.rows.formats import check_file, file_stem, view_slices
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
#: What a target holds: classes, numbers to predict, or whatever its values suggest.
Task = Literal["auto", "classes", "numbers"]


@dataclass(frozen=True, eq=False)
class OpenedFile:
    """The data set of a file, and notes on its columns.

    Attributes
    ----------
    dataset : Dataset
        The features, as a table of numbers, dates and categories, and the labels; numbers to
        predict are floats.
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
    task: Task = "auto",
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
    task : {"auto", "classes", "numbers"}
        What the target holds. By default numbers, if it has more than 10 distinct decimal numbers
        or many distinct integers, and otherwise classes.
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
    if digest is not None and digest != _digest(path, stamp):
        raise InvalidInputError(
            f"{path.name} must not change during a run. Its content has changed. Start the "
            "comparison again; results for the old content are kept separately."
        )
    asked = (tuple(each) for each in (drop, categorical, numeric))
    return _open(path, stamp, target, name or file_stem(path), *asked, groups, task)


def digest(path: str | Path) -> str:
    """Return a digest of the content of a file."""
    stamp = check_file(Path(path))
    return _digest(Path(path).resolve(), stamp)


@lru_cache(maxsize=8)
def _digest(path: Path, stamp: tuple[int, int]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


@lru_cache(maxsize=2)  # each run of a comparison opens its file again
def _open(
    path: Path,
    stamp: tuple[int, int],
    target: str | None,
    name: str,
    drop: tuple[str, ...],
    categorical: tuple[str, ...],
    numeric: tuple[str, ...],
    groups: str | None,
    task: Task,
) -> OpenedFile:
    labels = (target, f"column {target}") if target is not None else _SPELLED_TARGETS
    named = () if groups is None else (groups,)
    read = read_table(path, (*categorical, *labels, *named))
    table = read.frame
    if not len(table):
        raise InvalidInputError(f"{path.name} must have rows below the header. Got none.")
    target = find_target(list(table.columns), target, path.name)
    check_names(list(table.columns), (*drop, *categorical, *numeric, *named), target, path.name)
    place, table, y, notes = rows_with_labels(table, target, Place.of_file(path.name), task)
    became = dict.fromkeys(drop, "left out: dropped") | {target: target_use(y)}
    became |= dict.fromkeys(named, "the groups")
    features, schema, uses, found, identifiers = detect_columns(
        table.drop(columns=list(became)), categorical, numeric, place
    )
    became |= uses
    kept = schema.columns
    n_kept = {view: len(set(columns) & set(kept)) for view, columns in read.views.items()}
    n_kept = {view: n for view, n in n_kept.items() if n}
    y.setflags(write=False)
    dataset = Dataset(
        name=name,
        X=features,
        y=y,
        feature_names=kept,
        description=f"{len(y):,} rows, {len(kept):,} columns, {describe_target(y)}",
        source=f"file {path.name}",
        views=view_slices(n_kept) if len(n_kept) > 1 else {},
    )
    return OpenedFile(
        dataset,
        schema,
        target,
        (f"{read.how}; {found[0]}", *notes, *found[1:]),
        {column: became[column] for column in read.frame.columns},
        identifiers,
        None if groups is None else group_labels(np.asarray(table[groups]), len(table)),
    )


def holds_numbers(y: NDArray[Any]) -> bool:
    """Return whether labels from `rows_with_labels` or a data set are numbers to predict."""
    return y.dtype.kind == "f"


def target_use(y: NDArray[Any]) -> str:
    """Return how the target column is used, for users."""
    return "the numbers to predict" if holds_numbers(y) else "the classes"


def describe_target(y: NDArray[Any]) -> str:
    """Return the number of classes, or the range of numbers to predict."""
    if holds_numbers(y):
        return f"numbers from {y.min():.7g} to {y.max():.7g}"
    return f"{len(np.unique(y))} classes"


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
    if list(columns) == [f"column {i}" for i in range(1, len(columns) + 1)]:
        return f" The file has no header line: its columns are numbered, {listed(columns, 3)}."
    return did_you_mean(name, columns) or f" The columns are {listed(columns, 8)}."


def check_names(columns: Sequence[str], names: Iterable[str], target: str, where: str) -> None:
    """Raise an error if a column that the user named does not exist, or is the target.

    Parameters
    ----------
    columns : sequence of str
        The columns of the table.
    names : iterable of str
        The named columns.
    target : str
        The target.
    where : str
        The name of the file, for the error message.
    """
    for name in names:
        if name not in columns:
            raise InvalidInputError(
                "The columns of drop, categorical, numeric and groups must be in "
                f"{where}. Got {name!r}."
                f"{_suggest(name, columns)}"
            )
        if name == target:
            raise InvalidInputError(
                f"The target {name!r} must not be in drop, categorical, numeric or groups. Remove "
                "it there, or name another target."
            )


def rows_with_labels(
    table: Any, target: str, place: Place, task: Task = "auto"
) -> tuple[Place, Any, NDArray[Any], list[str]]:
    """Return the rows with labels: place, table, labels as integers, text or floats, and notes.

    Parameters
    ----------
    table : DataFrame
        All rows.
    target : str
        The column with the labels, or with the numbers to predict.
    place : Place
        The origin of the rows, for error messages.
    task : {"auto", "classes", "numbers"}
        What the column holds. ``"auto"`` decides by `find_task`. Numbers are floats.
    """
    absent, notes, where = table[target].isna(), [], place.name
    rows = table
    if absent.any():
        place = replace(place, rows=np.flatnonzero(~absent))
        rows = table[~absent].reset_index(drop=True)
    if not len(rows):
        raise InvalidInputError(
            f"The target must hold classes or numbers. Column {target!r} of {where} has no values. "
            "Name another target."
        )
    cells = canonical_text(rows[target])
    texts = plain_decimals(cells)
    found = find_task(texts) if task == "auto" else task
    if absent.any():
        what = "class" if found == "classes" else "number"
        named = "row" if absent.sum() == 1 else "rows"
        notes.append(f"left out {absent.sum():,} {named} without a {what} in {target!r}")
    if found == "numbers":
        y = _numbers(texts, target, where)
        few = task == "auto" and len(set(texts)) <= _most_classes(len(texts))
        advice = " --task classes predicts classes." if few else ""
        how = f"{len(set(texts)):,} distinct {describe_target(y)}"
        return place, rows, y, [*notes, f"predicts numbers: {target!r} holds {how}.{advice}"]
    y = _classes(texts, target, where)
    y = y if y.dtype.kind == "i" else cells.astype(str)  # labels of decimal numbers as given
    classes = np.unique(y)
    if len(classes) < 2:
        raise InvalidInputError(
            f"The target must hold at least two classes. Column {target!r} of {where} holds "
            f"{classes[0]!s} in every row. Name another target."
        )
    if task == "auto" and y.dtype.kind == "i" and len(classes) > 2:
        how = f"{len(classes)} distinct integers. --task numbers predicts numbers."
        notes.append(f"predicts classes: {target!r} holds {how}")
    return place, rows, y, notes


def find_task(values: NDArray[Any]) -> Literal["classes", "numbers"]:
    """Return whether a target holds classes or numbers to predict.

    It holds numbers if all values are numbers, and if there are more than 10 distinct ones with
    decimals, or more than 20 distinct integers and a third as many as rows: integers may be
    labels, but hardly with fewer than three rows each.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        The values, as text in one spelling.
    """
    different = set(values)
    if not are_numbers(different):
        return "classes"
    has_decimals = any("." in text for text in different)
    most = MAX_FRACTIONS if has_decimals else max(20, len(values) // 3)
    return "numbers" if len(different) > most else "classes"


def are_numbers(texts: Iterable[str]) -> bool:
    """Return whether all texts are numbers."""
    return all(NUMBER.fullmatch(text) for text in texts)


def _most_classes(n_rows: int) -> int:
    """Return the largest number of classes of so many rows."""
    return max(20, n_rows // 2)


def plain_decimals(texts: NDArray[Any]) -> NDArray[Any]:
    """Return texts with a decimal point instead of a decimal comma, if all of them are numbers.

    Parameters
    ----------
    texts : ndarray of shape (n_rows,)
        Texts; None for missing cells.
    """
    different = set(texts) - {None}
    has_commas = any(_COMMA.fullmatch(text) for text in different)
    if not has_commas or not all(_COMMA.fullmatch(t) or NUMBER.fullmatch(t) for t in different):
        return texts
    points = {text: one_spelling(text.replace(",", ".")) for text in different}
    return np.array([points.get(text) for text in texts], dtype=object)


def _numbers(texts: NDArray[Any], target: str, where: str) -> NDArray[np.float64]:
    """Return the numbers of a target, or raise an error that names the first other value."""
    odd = [i for i, text in enumerate(texts) if not NUMBER.fullmatch(text)]
    if odd:
        raise InvalidInputError(
            f"The target must hold numbers. Column {target!r} of {where} holds {texts[odd[0]]!r}. "
            "Correct or empty such cells, or predict classes: --task classes (task='classes' in "
            "Python)."
        )
    y = texts.astype(np.float64)
    if not np.isfinite(y).all() or np.ptp(y) == 0:
        raise InvalidInputError(
            f"The target must hold finite numbers that vary. Column {target!r} of {where} holds "
            f"{y[0] if np.ptp(y) == 0 else y[~np.isfinite(y)][0]:g}. Name another target."
        )
    return y


def _classes(texts: NDArray[Any], target: str, where: str) -> NDArray[Any]:
    """Return labels as 64-bit integers if possible, or else as text."""
    values = set(texts)
    numeric = are_numbers(values)
    if len(values) > _most_classes(len(texts)):
        what, advice = "texts", "Name another target."
        if numeric:
            what = "numbers"
            advice = "Predict numbers: --task numbers (task='numbers' in Python)."
        raise InvalidInputError(
            f"The target must hold classes. Column {target!r} of {where} holds {len(values)} "
            f"distinct {what} in {len(texts)} rows. {advice}"
        )
    whole = numeric and not any("." in text for text in values)
    if whole and all(-(2**63) <= int(text) < 2**63 for text in values):
        return np.array([int(text) for text in texts], dtype=np.int64)
    return texts.astype(str)
