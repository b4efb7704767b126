"""A user's own file to a data set: CSV, Parquet, or an NPZ of views.

What cannot work is refused here, before anything is fitted, with the column and the row named and
what to do about it. Rows are counted from 1, without the line of column names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discernel.datasets import Dataset
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.experiments.formats import check_file, import_pandas, listed, read_table
from discernel.experiments.preparation import NUMBER, Preparation, flags, refuse_text, spelt

__all__ = ["OpenedFile", "digest", "find_target", "open_file"]

#: Column names that are taken for the target where none is named.
TARGET_NAMES = ("target", "class", "label", "y")
MISSING_RULES = ("error", "drop", "median")
#: A column of text with more values than this is an identifier or prose, not categories.
MAX_CATEGORIES = 50
#: A target with more different fractions than this is a quantity, not a class.
MAX_FRACTIONS = 10


@dataclass(frozen=True, eq=False)
class OpenedFile:
    """A file that was read.

    Attributes
    ----------
    dataset : Dataset
        Features and labels.
    preparation : Preparation
        How its columns became features.
    target : str
        The column with the labels.
    notes : tuple of str
        What was done, or looks odd, and is no error.
    """

    dataset: Dataset
    preparation: Preparation
    target: str
    notes: tuple[str, ...] = ()


def open_file(
    path: str | Path,
    target: str | None = None,
    *,
    name: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    missing: Literal["error", "drop", "median"] = "error",
    digest: str | None = None,
) -> OpenedFile:
    r"""Return the data set that a file holds, and what was done to its columns.

    Parameters
    ----------
    path : str or Path
        A CSV file with a line of column names, a Parquet file, or an NPZ file: in this one every
        array of two dimensions is a view, and the labels are the array ``target`` or ``y``.
    target : str, optional
        The column with the labels; where it is called target, class, label or y, it is found.
    name : str, optional
        What to call the data set; by default the name of the file without its ending.
    drop : sequence of str
        Columns to leave out.
    categorical : sequence of str
        Columns to turn into one feature a value.
    missing : {"error", "drop", "median"}, default="error"
        What to do with missing values: refuse them; leave their rows out; put the median of the
        column in their place, over all rows, those held out later included.
    digest : str, optional
        That of the content, as `digest` returns it; another content is refused.

    Returns
    -------
    OpenedFile
        Features and labels, checked, and how they were made.

    Raises
    ------
    InvalidInputError
        If the file, or something in it, cannot be used. The message says where and what to do.
    MissingExtraError
        If pandas, or pyarrow for Parquet, is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from discernel.experiments.files import open_file
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "plants.csv"
    ...     _ = path.write_text("height,width,class\n1,4,a\n2,3,a\n7,4,b\n9,2,b\n")
    ...     plants = open_file(path).dataset
    >>> plants.X.shape, plants.y.tolist()
    ((4, 2), ['a', 'a', 'b', 'b'])
    """
    path = Path(path)
    if missing not in MISSING_RULES:
        raise unknown_choice("rule for missing values", missing, list(MISSING_RULES))
    stamp, path = check_file(path), path.resolve()
    if digest is not None and digest != _digest(str(path), stamp):
        raise InvalidInputError(
            f"{path.name} must be as it was when the run began. Its content has changed. Start "
            "the comparison again; what was computed from the old content is kept apart."
        )
    return _open(
        str(path), stamp, target, name or path.stem, tuple(drop), tuple(categorical), missing
    )


def digest(path: str | Path) -> str:
    """Return a digest of the content of a file."""
    stamp = check_file(Path(path))
    return _digest(str(Path(path).resolve()), stamp)


@lru_cache(maxsize=8)
def _digest(path: str, stamp: tuple[int, int]) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


@lru_cache(maxsize=2)  # every cell of a plan reads its file again
def _open(
    path: str,
    stamp: tuple[int, int],
    target: str | None,
    name: str,
    drop: tuple[str, ...],
    categorical: tuple[str, ...],
    missing: str,
) -> OpenedFile:
    where = Path(path).name
    labels = (lambda name: name.lower() in TARGET_NAMES) if target is None else target.__eq__
    table, views = read_table(Path(path), lambda name: name in categorical or labels(name))
    if not len(table):
        raise InvalidInputError(f"{where} must have rows below the column names. Got none.")
    target = find_target(list(table.columns), target, where)
    _check_names(table, (*drop, *categorical), target, where)
    notes: list[str] = []
    table, y = _labels(table, target, missing, where, notes)
    table = table.drop(columns=[target, *drop])
    table = _without_constant(table, notes)
    notes += _row_numbers(table)
    refuse_text(table, [c for c in table.columns if c not in categorical], where)
    table, y = _handle_missing(table, y, missing, where, notes)
    preparation = _prepare(table, [c for c in categorical if c in table], missing, views, where)
    X = preparation.apply(table, where)
    X.flags.writeable = False
    y.flags.writeable = False
    dataset = Dataset(
        name=name,
        X=X,
        y=y,
        feature_names=preparation.feature_names,
        description=f"{len(y):,} rows, {X.shape[1]:,} features, {len(np.unique(y))} classes",
        source=f"file {where}",
        views=preparation.slices,
    )
    return OpenedFile(dataset, preparation, target, tuple(notes))


# ---- the checks --------------------------------------------------------------------------------


def find_target(columns: Sequence[str], target: str | None, where: str) -> str:
    """Return the column with the labels, or raise a clear error.

    Parameters
    ----------
    columns : sequence of str
        The columns of a file.
    target : str or None
        The one that is meant; None where its name says so.
    where : str
        What the file is called in messages.
    """
    if target is None:
        guesses = [column for column in columns if str(column).lower() in TARGET_NAMES]
        if len(guesses) == 1:
            return guesses[0]
        found = f"has {listed(guesses)}" if guesses else f"has {listed(columns, 8)}"
        raise InvalidInputError(
            f"The target must be named: {where} {found}. Give target=... (--target COLUMN), the "
            "column with the classes to predict."
        )
    if target in columns:
        return target
    raise InvalidInputError(
        f"The target must be a column of {where}. Got {target!r}.{_close(target, columns)}"
    )


def _close(name: str, columns: Sequence[str]) -> str:
    lower = {str(column).lower(): column for column in columns}
    close = [lower[found] for found in get_close_matches(name.lower(), list(lower), n=3)]
    if close:
        return f" Did you mean {' or '.join(map(repr, close))}?"
    return f" There are {listed(columns, 8)}."


def _check_names(table: Any, names: Iterable[str], target: str, where: str) -> None:
    for name in names:
        if name not in table.columns:
            raise InvalidInputError(
                f"Columns to drop or to encode must be columns of {where}. Got {name!r}."
                f"{_close(name, list(table.columns))}"
            )
        if name == target:
            raise InvalidInputError(
                f"{name!r} is the target: it can be neither dropped nor encoded. Name another "
                "target, or leave it out of drop and categorical."
            )


def _labels(
    table: Any, target: str, missing: str, where: str, notes: list[str]
) -> tuple[Any, NDArray[Any]]:
    """Return the rows that have a label, and the labels: whole numbers, else text."""
    absent = table[target].isna()
    if absent.any():
        if missing != "drop":
            raise InvalidInputError(
                f"{where}: every row must have a target. Column {target!r} is empty in "
                f"{absent.sum()} rows, first in row {absent.to_numpy().argmax() + 1}. Fill them, "
                "or leave the rows out with missing='drop' (--missing drop)."
            )
        notes.append(f"left out {absent.sum()} rows without a target")
        table = table[~absent].reset_index(drop=True)
    y = _classes(spelt(table[target]), target, where)
    classes = np.unique(y)
    if len(classes) < 2:
        raise InvalidInputError(
            f"The target must hold at least two classes. Column {target!r} of {where} holds "
            f"{classes[0]!s} in every row. Name another target."
        )
    return table, y


def _classes(texts: NDArray[Any], target: str, where: str) -> NDArray[Any]:
    """Return labels as whole numbers where all are that and 64 bits hold them, else as text."""
    values = set(texts)
    if all(NUMBER.fullmatch(text) for text in values):
        whole = not any("." in text for text in values)
        # Whole numbers may count people or digits, but hardly with less than three rows each.
        if len(values) > (max(20, len(texts) // 3) if whole else MAX_FRACTIONS):
            numbers = [float(text) for text in values]
            raise InvalidInputError(
                f"The target must hold classes. Column {target!r} of {where} holds {len(values)} "
                f"different numbers, from {min(numbers):g} to {max(numbers):g}: a quantity. Divide "
                "it into classes, or predict it with discernel.MultipleKernelRidge."
            )
        if whole and all(-(2**63) <= int(text) < 2**63 for text in values):
            return np.array([int(text) for text in texts], dtype=np.int64)
    return texts.astype(str)


def _without_constant(table: Any, notes: list[str]) -> Any:
    constant = [column for column in table.columns if _is_constant(table[column])]
    if constant:
        notes.append(f"left out {listed(constant)}: the same in every row")
        table = table.drop(columns=constant)
    if not table.shape[1]:
        raise InvalidInputError(
            "At least one column beside the target must differ from row to row. None is left."
        )
    return table


def _is_constant(values: Any) -> bool:
    try:
        return bool(values.nunique(dropna=False) < 2)
    except TypeError:  # lists in a Parquet file; refused with the text
        return False


def _row_numbers(table: Any) -> list[str]:
    """Return a note on columns that count the rows."""
    pd = import_pandas()
    numbered = [
        column
        for column in table.columns
        if pd.api.types.is_integer_dtype(table[column])
        and len(table) > 2
        and bool((table[column].diff().iloc[1:] == 1).all())
    ]
    if not numbered:
        return []
    how = flags("drop", numbered)
    return [f"{listed(numbered)} counts the rows; leave it out with drop ({how})"]


def _handle_missing(
    table: Any, y: NDArray[Any], rule: str, where: str, notes: list[str]
) -> tuple[Any, NDArray[Any]]:
    absent = table.isna()
    counts = absent.sum()
    counts = counts[counts > 0]
    if not len(counts):
        return table, y
    if rule == "error":
        first = counts.index[0]
        others = f" Others: {listed(counts.index[1:])}." if len(counts) > 1 else ""
        raise InvalidInputError(
            f"{where}: no value may be missing. Column {first!r} has {counts.iloc[0]} missing, the "
            f"first in row {absent[first].to_numpy().argmax() + 1}.{others} Leave such rows out "
            "with missing='drop' (--missing drop), put medians in with missing='median' (--missing "
            f"median), or leave the columns out with drop ({flags('drop', list(counts.index))})."
        )
    if rule == "median":
        notes.append(f"put medians for {counts.sum()} missing values in {listed(counts.index)}")
        return table, y
    complete = ~absent.any(axis=1).to_numpy()
    if len(np.unique(y[complete])) < len(np.unique(y)):
        raise InvalidInputError(
            f"{where}: every class must have complete rows. Without the {np.sum(~complete)} rows "
            "that miss a value, one has none. Use missing='median' (--missing median) instead."
        )
    notes.append(f"left out {np.sum(~complete)} rows with missing values")
    return table[complete].reset_index(drop=True), y[complete]


def _prepare(
    table: Any,
    categorical: Sequence[str],
    missing: str,
    views: Mapping[str, Sequence[str]],
    where: str,
) -> Preparation:
    categories = {
        column: tuple(sorted(set(spelt(table[column].dropna())))) for column in categorical
    }
    for column, values in categories.items():
        if len(values) > MAX_CATEGORIES:
            raise InvalidInputError(
                f"{where}: a column to encode must have at most {MAX_CATEGORIES} different values. "
                f"Column {column!r} has {len(values)}. Leave it out with drop "
                f"({flags('drop', [column])})."
            )
    numbers = [column for column in table.columns if column not in categories]
    fill = {}
    if missing == "median":
        fill = {column: float(table[column].median()) for column in numbers}
    kept = {
        view: tuple(column for column in columns if column in table.columns)
        for view, columns in views.items()
    }
    kept = {view: columns for view, columns in kept.items() if columns}
    return Preparation(tuple(table.columns), categories, fill, kept if len(kept) > 1 else {})
