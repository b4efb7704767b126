"""From a name to features and labels, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.exceptions import (
    DataUnavailableError,
    InvalidInputError,
    missing_extra,
    unknown_choice,
)
from discernel.rows.datasets.catalog import CATALOG, PRIVATE, CatalogEntry, names
from discernel.rows.datasets.sources import (
    FOLDER_VARIABLE,
    data_folder,
    from_openml,
    read_file,
)

__all__ = ["Dataset", "load"]


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
        What it is.
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
    if entry.relabel is not None:
        y = entry.relabel(y)
    _verify(name, entry, X, y, source)
    n_train = entry.n_train if source.startswith("folder") else None
    data = Dataset(
        name=name,
        X=X,
        y=y,
        feature_names=_feature_names(entry),
        description=entry.title,
        source=source,
        views=_slices(entry.views),
        train=None if n_train is None else np.arange(len(y)) < n_train,
    )
    return _as_frame(data) if as_frame else data


def _find(name: str) -> CatalogEntry:
    if name in CATALOG:
        return CATALOG[name]
    if name in PRIVATE:
        private = PRIVATE[name]
        instead = " or ".join(f"load({other!r})" for other in private.instead)
        raise DataUnavailableError(
            f"The data set {name!r} ({private.title}) is private and cannot be downloaded. For "
            f"the same kind of task use {instead}."
        )
    error = unknown_choice("name of a data set", name, names())
    close = get_close_matches(str(name), names(), n=3)
    if close:
        raise InvalidInputError(f"{error} Did you mean {' or '.join(map(repr, close))}?")
    raise error


def _read(name: str, entry: CatalogEntry) -> tuple[FloatArray, NDArray[Any], str]:
    """Return features, labels and where they came from: the first source that has them."""
    if entry.bundled is not None:
        return _read_bundled(name, entry)
    folder = data_folder()
    if folder is not None and (folder / entry.file).is_file():
        return *read_file(folder / entry.file, entry), f"folder, {entry.file}"
    if entry.openml is not None:
        ids = ", ".join(map(str, entry.openml.ids.values()))
        return *from_openml(name, entry, entry.openml), f"OpenML, data id {ids}"
    where = "it is not set" if folder is None else "the file is not there"
    drawn = " Or draw afresh with make_waveform()." if name == "waveform" else ""
    raise DataUnavailableError(
        f"The data set {name!r} must be the file {entry.file} in the folder named by the "
        f"environment variable {FOLDER_VARIABLE}, but {where}. OpenML has no copy of it.{drawn}"
    )


def _read_bundled(name: str, entry: CatalogEntry) -> tuple[FloatArray, NDArray[Any], str]:
    assert entry.bundled is not None
    try:
        found = entry.bundled()
    except OSError as error:
        raise DataUnavailableError(
            f"The data set {name!r} could not be downloaded: {error}. Connect to the internet "
            "once: scikit-learn keeps what it fetched."
        ) from error
    if isinstance(found, tuple):
        return *found, "rule"
    return np.asarray(found.data, dtype=np.float64), np.asarray(found.target), "scikit-learn"


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


def _feature_names(entry: CatalogEntry) -> tuple[str, ...]:
    if entry.views:
        return tuple(f"{view}{i}" for view, size in entry.views.items() for i in range(size))
    return entry.features or tuple(f"x{index}" for index in range(entry.shape[1]))


def _slices(views: Mapping[str, int]) -> dict[str, slice]:
    ends = list(accumulate(views.values()))
    return {
        view: slice(end - size, end) for (view, size), end in zip(views.items(), ends, strict=True)
    }


def _as_frame(data: Dataset) -> Dataset:
    try:
        import pandas as pd
    except ImportError as error:
        raise missing_extra("as_frame=True needs pandas", "app") from error
    X = pd.DataFrame(data.X, columns=list(data.feature_names))
    return replace(data, X=X, y=pd.Series(data.y, name="target"))
