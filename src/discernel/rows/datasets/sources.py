"""Where data sets come from: files of a folder, and OpenML."""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml

from discernel.arrays import FloatArray
from discernel.exceptions import DataUnavailableError, InvalidInputError
from discernel.rows.datasets.catalog import CatalogEntry, OpenML

__all__ = ["FOLDER_VARIABLE", "data_folder", "from_openml", "read_file"]

#: The environment variable that names the folder.
FOLDER_VARIABLE = "DISCERNEL_DATA"

Arrays: TypeAlias = tuple[FloatArray, NDArray[Any]]


def data_folder() -> Path | None:
    """Return the folder named by ``DISCERNEL_DATA``, or None where it is not set."""
    named = os.environ.get(FOLDER_VARIABLE)
    if not named:
        return None
    if not Path(named).is_dir():
        raise InvalidInputError(
            f"The environment variable {FOLDER_VARIABLE} must name a folder. Got {named!r}, which "
            "is none. Correct it, or unset it to use OpenML."
        )
    return Path(named)


def read_file(path: Path, entry: CatalogEntry) -> Arrays:
    """Return features and labels of a CSV file, or of an NPZ file of views."""
    numbers = entry.classes is None or entry.relabel is not None
    if entry.views:
        X, y = _read_npz(path, entry.views)
    else:
        X, y = _read_csv(path, entry.shape[1])
        if numbers:
            y = _as_numbers(y[:, None], path, ["target"]).ravel()
    return X, _as_labels(y.tolist(), numbers=numbers)


def _as_labels(values: Sequence[Any], *, numbers: bool) -> NDArray[Any]:
    """Return floats to regress on; else integers where all labels are integers, else strings."""
    if numbers:
        return np.array(values, dtype=np.float64)
    try:
        return np.array([int(value) for value in values])
    except ValueError:
        return np.array([str(value) for value in values])


# ---- files -----------------------------------------------------------------------------------


def _read_csv(path: Path, n_features: int) -> Arrays:
    """Return the columns x0, x1, ... as numbers and the column target as strings."""
    header = [*(f"x{index}" for index in range(n_features)), "target"]
    try:
        with path.open(newline="", encoding="utf-8") as file:
            found, *rows = list(csv.reader(file)) or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError(f"{path.name} is not a readable CSV file: {error}.") from error
    if found != header:
        missing = [name for name in header if name not in found]
        raise InvalidInputError(
            f"{path.name}: row 1 must name the columns x0, ..., x{n_features - 1}, target. "
            f"Got {len(found)} columns"
            + (f", without {', '.join(map(repr, missing[:5]))}." if missing else ".")
        )
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise InvalidInputError(
                f"{path.name}: row {number} must have {len(header)} cells. Got {len(row)}; the "
                f"first one missing or too many is column {min(len(row), len(header))}, counted "
                "from 0. Was the file cut off?"
            )
    cells = np.array(rows, dtype=str).reshape(len(rows), len(header))
    empty = np.flatnonzero(cells[:, -1] == "")
    if len(empty):
        raise InvalidInputError(f"{path.name}: row {empty[0] + 2}, column 'target' is empty.")
    return _as_numbers(cells[:, :-1], path, header), cells[:, -1]


def _as_numbers(cells: NDArray[np.str_], path: Path, names: Sequence[str]) -> FloatArray:
    """Return numbers, with NaN for empty cells; name the first cell that is not a number."""
    filled = np.where(cells == "", "nan", cells)
    try:
        return filled.astype(np.float64)
    except ValueError:
        for (row, column), cell in np.ndenumerate(filled):
            try:
                float(cell)
            except ValueError:
                raise InvalidInputError(
                    f"{path.name}: row {row + 2}, column {names[column]!r} must be a number or "
                    f"empty. Got {str(cell)!r}."
                ) from None
        raise


def _read_npz(path: Path, views: Mapping[str, int]) -> Arrays:
    """Return the views side by side, and the array target."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in (*views, "target") if name in stored.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInputError(f"{path.name} is not a readable NPZ file: {error}.") from error
    missing = [name for name in (*views, "target") if name not in arrays]
    if missing:
        raise InvalidInputError(
            f"{path.name} must hold the arrays {', '.join(views)} and target. Got none named "
            f"{', '.join(map(repr, missing))}."
        )
    n_samples = len(arrays["target"])
    for name, n_features in views.items():
        if arrays[name].shape != (n_samples, n_features):
            raise InvalidInputError(
                f"{path.name}: the array {name!r} must have the shape {(n_samples, n_features)}. "
                f"Got {arrays[name].shape}."
            )
    return np.hstack([arrays[name].astype(np.float64) for name in views]), arrays["target"]


# ---- OpenML ----------------------------------------------------------------------------------


def from_openml(name: str, entry: CatalogEntry, source: OpenML) -> Arrays:
    """Return features and labels from OpenML, or from scikit-learn's cache of it."""
    tables = [_fetch(name, data_id, entry, source) for data_id in source.ids.values()]
    y = tables[0][1]
    if any(not np.array_equal(other, y) for _, other in tables[1:]):
        raise InvalidInputError(
            f"The views of {name!r} on OpenML must have their rows in one order. Their labels "
            f"differ. Put {entry.file} into the folder named by {FOLDER_VARIABLE} instead."
        )
    X = np.hstack([features for features, _ in tables])
    if entry.complete_rows:
        complete = ~np.isnan(X).any(axis=1)
        X, y = X[complete], y[complete]
    return X, y


def _fetch(name: str, data_id: int, entry: CatalogEntry, source: OpenML) -> Arrays:
    try:
        bunch = fetch_openml(
            data_id=data_id,
            target_column=source.target,
            as_frame=False,
            parser="liac-arff",
            n_retries=1,
            delay=0.5,
        )
    except (OSError, HTTPException) as error:
        raise DataUnavailableError(
            f"The data set {name!r} is neither bundled nor in a folder named by the environment "
            f"variable {FOLDER_VARIABLE}, and OpenML (data id {data_id}) could not be reached: "
            f"{error}. Set {FOLDER_VARIABLE} to a folder with {entry.file}, or connect to the "
            "internet once: scikit-learn keeps what it fetched."
        ) from error
    labels = [source.labels.get(label, label) for label in map(_label, bunch.target)]
    numbers = entry.classes is None or entry.relabel is not None
    return _decode(name, bunch), _as_labels(labels, numbers=numbers)


def _label(value: Any) -> str:
    """Return a label as a string; OpenML stores some whole numbers as 1.0."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _decode(name: str, bunch: Any) -> FloatArray:
    """Return the features, with the numbers that codes of categories stand for."""
    X = np.array(bunch.data, dtype=np.float64)
    for index, feature in enumerate(bunch.feature_names):
        if feature not in bunch.categories:
            continue
        try:
            values = np.array(bunch.categories[feature], dtype=np.float64)
        except ValueError:
            raise InvalidInputError(
                f"The features of {name!r} on OpenML must be numbers. Got the categories "
                f"{bunch.categories[feature]!r} in {feature!r}."
            ) from None
        known = ~np.isnan(X[:, index])
        X[known, index] = values[X[known, index].astype(np.intp)]
    return X
