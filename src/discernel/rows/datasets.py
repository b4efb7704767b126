"""The data sets of the papers, by name: from a name to features and labels, checked.

`load` finds a set in this order: it ships with scikit-learn or follows from a rule; it lies in
the folder that the environment variable ``DISCERNEL_DATA`` names; it is fetched from OpenML and
kept in scikit-learn's cache. Shape, missing values and class counts are checked each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import (
    fetch_olivetti_faces,
    fetch_openml,
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
)

from discernel.arrays import FloatArray
from discernel.exceptions import (
    DataUnavailableError,
    InvalidInputError,
    unknown_choice,
)
from discernel.rows.catalog import CATALOG, PRIVATE, CatalogEntry, names
from discernel.rows.columns import Preparation
from discernel.rows.formats import import_pandas, listed, numbered_columns, view_slices
from discernel.rows.generators import make_monks
from discernel.rows.reading import read_table

#: The environment variable that names the folder.
FOLDER_VARIABLE = "DISCERNEL_DATA"

Arrays: TypeAlias = tuple[FloatArray, NDArray[Any]]

#: Sets that scikit-learn has, or, of Olivetti, fetches from the web: functions that return a bunch.
_BUNDLED: dict[str, Callable[[], Any]] = {
    "digits": load_digits,
    "iris": load_iris,
    "olivetti": partial(fetch_olivetti_faces, n_retries=1, delay=0.5),
    "wdbc": load_breast_cancer,
    "wine": load_wine,
}
#: Sets that follow from a rule.
_RULES = {f"monks{problem}": partial(make_monks, problem) for problem in (1, 2, 3)}


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set.

    Attributes
    ----------
    name : str
        Its name.
    X : ndarray or DataFrame of shape (n_samples, n_features)
        The features, unscaled; NaN where a value is missing.
    y : ndarray or Series of shape (n_samples,)
        Integers or strings as the files have them for classes, floats for regression.
    feature_names : tuple of str
        One name per feature: ``x0``, ``x1``, ... where there are no better ones.
    views : dict of str to slice
        Columns of each view; empty where there is one view only. A slice goes into the ``on`` of
        a kernel.
    train : ndarray of bool of shape (n_samples,), or None
        The training part that the donor of the data made, where there is one and the order of
        the rows is known.
    description : str
        Its title.
    source : str
        Where this copy came from.
    """

    name: str
    X: Any
    y: Any
    feature_names: tuple[str, ...]
    description: str
    source: str
    views: Mapping[str, slice] = field(default_factory=dict)
    train: NDArray[np.bool_] | None = None

    def view(self, name: str) -> Any:
        """Return the features of one view.

        Parameters
        ----------
        name : str
            One of `views`.
        """
        if name not in self.views:
            raise unknown_choice(f"view of the data set {self.name!r}", name, list(self.views))
        columns = self.views[name]
        return self.X.iloc[:, columns] if hasattr(self.X, "iloc") else self.X[:, columns]


def load(name: str, *, as_frame: bool = False) -> Dataset:
    """Return a data set by its name.

    Parameters
    ----------
    name : str
        One of `names`.
    as_frame : bool, default=False
        Whether X is a pandas DataFrame and y a Series.

    Returns
    -------
    Dataset
        The data, with the number of samples, features, missing values and members of each class
        checked, wherever they came from.

    Raises
    ------
    InvalidInputError
        If there is no such name, if a file is broken, or if its content is not what it should be.
    DataUnavailableError
        If the data are private, or if neither the folder named by the environment variable
        ``DISCERNEL_DATA`` nor OpenML has them.
    MissingExtraError
        If a file of the folder is to be read without pandas and pyarrow.

    Examples
    --------
    >>> from discernel.datasets import load
    >>> wine = load("wine")
    >>> wine.X.shape
    (178, 13)
    >>> wine.source
    'scikit-learn'
    """
    entry = _find(name)
    X, y, source = _read(name, entry)
    if entry.threshold is not None:
        known = f"above {entry.threshold:g}", f"up to {entry.threshold:g}"
        y = np.where(y > entry.threshold, *known)
    _verify(name, entry, X, y, source)
    n_train = entry.n_train if source.startswith("folder") else None
    data = Dataset(
        name=name,
        X=X,
        y=y,
        feature_names=entry.features or numbered_columns(entry.views or {"x": entry.shape[1]}),
        description=entry.title,
        source=source,
        views=view_slices(entry.views),
        train=None if n_train is None else np.arange(len(y)) < n_train,
    )
    return _as_frame(data) if as_frame else data


def _find(name: str) -> CatalogEntry:
    if name in CATALOG:
        return CATALOG[name]
    if name in PRIVATE:
        instead = " or ".join(f"load({other!r})" for other in PRIVATE[name]["instead"])
        raise DataUnavailableError(
            f"The data set {name!r} ({PRIVATE[name]['title']}) is private and cannot be "
            f"downloaded. For the same kind of task use {instead}."
        )
    error = unknown_choice("name of a data set", name, names())
    close = get_close_matches(str(name), names(), n=3)
    if close:
        raise InvalidInputError(f"{error} Did you mean {' or '.join(map(repr, close))}?")
    raise error


def _read(name: str, entry: CatalogEntry) -> tuple[FloatArray, NDArray[Any], str]:
    """Return features, labels and where they came from: the first source that has them."""
    if name in _RULES:
        return *_RULES[name](), "rule"
    if name in _BUNDLED:
        return *_read_bundled(name), "scikit-learn"
    folder = data_folder()
    if folder is not None and (folder / entry.file).is_file():
        return *_read_file(folder / entry.file, entry), f"folder, {entry.file}"
    if entry.openml:
        ids = ", ".join(map(str, entry.openml.values()))
        return *_from_openml(name, entry), f"OpenML, data id {ids}"
    where = "it is not set" if folder is None else "the file is not there"
    drawn = " Or draw afresh with make_waveform()." if name == "waveform" else ""
    raise DataUnavailableError(
        f"The data set {name!r} must be the file {entry.file} in the folder named by the "
        f"environment variable {FOLDER_VARIABLE}, but {where}. OpenML has no copy of it.{drawn}"
    )


def _read_bundled(name: str) -> Arrays:
    try:
        found = _BUNDLED[name]()
    except OSError as error:
        raise DataUnavailableError(
            f"The data set {name!r} could not be downloaded: {error}. Connect to the internet "
            "once: scikit-learn keeps what it fetched."
        ) from error
    return np.asarray(found.data, dtype=np.float64), np.asarray(found.target)


def _verify(name: str, entry: CatalogEntry, X: FloatArray, y: NDArray[Any], source: str) -> None:
    """Raise where the data are not those of the catalogue."""
    n_missing = int(np.isnan(X).sum())
    found: dict[str, tuple[Any, Any]] = {
        "shape": (entry.shape, X.shape),
        "number of missing values": (entry.n_missing, n_missing),
        "number of infinite values": (0, int(np.isinf(X).sum())),
    }
    if entry.classes is None:
        found["number of targets that are finite"] = (entry.shape[0], int(np.isfinite(y).sum()))
    else:
        labels, counts = np.unique(y, return_counts=True)
        counted = dict(zip(labels.tolist(), counts.tolist(), strict=True))
        found["members of the classes"] = (dict(entry.classes), counted)
    for what, (expected, received) in found.items():
        if expected != received:
            raise InvalidInputError(
                f"The {what} of the data set {name!r} must be {expected}. Got {received} from "
                f"{source}: it is another version of the data, or it is damaged."
            )


def _as_frame(data: Dataset) -> Dataset:
    pd = import_pandas("as_frame=True needs pandas")
    X = pd.DataFrame(data.X, columns=list(data.feature_names))
    return replace(data, X=X, y=pd.Series(data.y, name="target"))


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


def _read_file(path: Path, entry: CatalogEntry) -> Arrays:
    """Return features and labels of a CSV file, or of an NPZ file of views."""
    columns = numbered_columns(entry.views or {"x": entry.shape[1]})
    table = read_table(path, () if entry.stores_numbers else ("target",)).frame
    absent = [name for name in (*columns, "target") if name not in table.columns]
    if absent:
        raise InvalidInputError(
            f"{path.name} must have the columns {columns[0]} to {columns[-1]} and target. Got none "
            f"named {listed(absent)}."
        )
    X = Preparation(dict.fromkeys(columns, "number")).apply(table, path.name)
    y = table["target"]
    if entry.stores_numbers:
        y = Preparation({"target": "number"}).apply(table, path.name)["target"]
    elif y.isna().any():
        raise InvalidInputError(
            f"{path.name}: every row must have a class. Column 'target' is empty in row "
            f"{int(y.isna().argmax()) + 1}."
        )
    return X.to_numpy(dtype=np.float64), _as_labels(y.tolist(), numbers=entry.stores_numbers)


def _as_labels(values: Sequence[Any], *, numbers: bool) -> NDArray[Any]:
    """Return floats to regress on; else integers where all labels are integers, else strings."""
    if numbers:
        return np.array(values, dtype=np.float64)
    try:
        return np.array([int(value) for value in values])
    except ValueError:
        return np.array([str(value) for value in values])


# ---- OpenML ----------------------------------------------------------------------------------


def _from_openml(name: str, entry: CatalogEntry) -> Arrays:
    """Return features and labels from OpenML, or from scikit-learn's cache of it."""
    tables = [_fetch(name, data_id, entry) for data_id in entry.openml.values()]
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


def _fetch(name: str, data_id: int, entry: CatalogEntry) -> Arrays:
    try:
        bunch = fetch_openml(
            data_id=data_id,
            target_column=entry.openml_target,
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
    labels = [entry.openml_labels.get(label, label) for label in map(_label, bunch.target)]
    return _decode(name, bunch), _as_labels(labels, numbers=entry.stores_numbers)


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
