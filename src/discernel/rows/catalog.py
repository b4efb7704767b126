"""The catalogue of data sets, read from ``catalog.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

Label: TypeAlias = int | str


@dataclass(frozen=True)
class CatalogEntry:
    """One public data set.

    Attributes
    ----------
    title : str
        A line that describes it.
    shape : tuple of (n_samples, n_features)
        Its size.
    classes : dict of label to int, or None
        How many samples each class has; None for a number to predict.
    features : tuple of str
        Names of the features, where they have any.
    views : dict of str to int
        How many features each view has, in their order.
    n_missing : int
        How many values are missing.
    file : str
        The file in the folder; empty for a set that a function makes or scikit-learn has.
    openml : dict of str to int
        The data id on OpenML of each view; one, named ``all``, for a set without views; none where
        OpenML has no copy. An id stands for one version of a set for good.
    openml_labels : dict of str to label
        From the labels on OpenML to the labels here, where they differ.
    openml_target : str
        The column to predict on OpenML.
    complete_rows : bool
        Whether rows of OpenML with missing values are left out.
    threshold : float or None
        Where the number that is stored is divided into two classes; None where it is not.
    n_train : int or None
        How many of the first rows of the file are the training part its donor made.
    """

    title: str
    shape: tuple[int, int]
    classes: Mapping[Label, int] | None = None
    features: tuple[str, ...] = ()
    views: Mapping[str, int] = field(default_factory=dict)
    n_missing: int = 0
    file: str = ""
    openml: Mapping[str, int] = field(default_factory=dict)
    openml_labels: Mapping[str, Label] = field(default_factory=dict)
    openml_target: str = "default-target"
    complete_rows: bool = False
    threshold: float | None = None
    n_train: int | None = None

    @property
    def stores_numbers(self) -> bool:
        """Whether a number is stored to be predicted, or to be divided into classes."""
        return self.classes is None or self.threshold is not None


def _entry(
    shape: list[int],
    classes: list[int] | dict[str, int] | None = None,
    features: str = "",
    **rest: Any,
) -> CatalogEntry:
    """Return what a table of the file says."""
    counts: dict[Label, int] | None = None
    if isinstance(classes, dict):  # keys of TOML are texts
        counts = {int(name) if name.isdigit() else name: n for name, n in classes.items()}
    elif classes is not None:
        counts = dict(enumerate(classes))
    size = (shape[0], shape[1])
    return CatalogEntry(shape=size, classes=counts, features=tuple(features.split()), **rest)


_STORED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CATALOG = {name: _entry(**table) for name, table in _STORED.items() if "shape" in table}
#: Data sets that a paper used and that are not public: title, and public ones ``instead``.
PRIVATE = {name: table for name, table in _STORED.items() if "instead" in table}


def names() -> list[str]:
    """Return the names of all public data sets.

    Examples
    --------
    >>> from discernel.datasets import names
    >>> names()[:3]
    ['boston_housing', 'boston_housing_binary', 'breast_cancer_wisconsin']
    """
    return sorted(CATALOG)


def private_names() -> list[str]:
    """Return the names of the data sets that a paper used and that are not public."""
    return sorted(PRIVATE)
