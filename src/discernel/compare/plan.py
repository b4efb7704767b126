"""An experiment as plain data: data sets × methods × splits.

Everything here can be converted to JSON. A cell is one method on one split of one data set. Its
key is a digest of its specification, so that a store recognizes finished cells of any plan. Equal
numbers give equal keys: a method must not distinguish 1 from 1.0. The key does not include the
content of files or the version of the code; records contain the version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, Literal

from discernel.exceptions import InvalidInputError, unknown_choice

SCALINGS = ("none", "standard", "minmax", "symmetric")


@dataclass(frozen=True)
class Data:
    """A data set, and how its rows are chosen and scaled.

    Attributes
    ----------
    name : str
        A name from `discernel.datasets`, or the name of the data set in a file.
    scaling : {"none", "standard", "minmax", "symmetric"}
        Features unchanged, with mean 0 and variance 1, in [0, 1], or in [−1, 1]. Scaling is
        learned on the training rows.
    file : dict
        For rows from a file: the parameters of `discernel.rows.labelled.open_file`.
    options : dict
        ``rows``: the number of rows to draw at random.
    """

    name: str
    scaling: Literal["none", "standard", "minmax", "symmetric"] = "standard"
    file: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.scaling not in SCALINGS:
            raise unknown_choice("scaling", self.scaling, list(SCALINGS))
        plain([self.file, self.options])


@dataclass(frozen=True)
class Method:
    """A method: its name in tables, its kind (a key of `methods.KINDS`), and its options."""

    name: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plain(self.options)


@dataclass(frozen=True)
class Splits:
    """How rows are split into training and held-out rows.

    Attributes
    ----------
    n : int
        Number of splits; a larger number adds splits and keeps the first ones.
    train_size : float or int
        Fraction (below 1) or number of training rows.
    stratify : bool
        Whether class proportions are preserved.
    folds : int or None
        If given, n repetitions of stratified cross-validation with this number of folds.
    donor : bool
        Whether to use the training rows chosen by the donor of the data.
    seed : int
        Seed of the first split; it increases by 1 with each split.
    """

    n: int = 10
    train_size: float = 0.8
    stratify: bool = True
    folds: int | None = None
    donor: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n < 1 or not self.train_size > 0:
            raise InvalidInputError(
                "There must be at least one split and at least one training row. "
                f"Got n={self.n!r} and train_size={self.train_size!r}."
            )
        if self.train_size >= 1 and self.train_size != int(self.train_size):
            raise InvalidInputError(
                "train_size must be a fraction below 1 or an integer number of rows. "
                f"Got {self.train_size!r}."
            )
        if self.folds is not None and (self.folds < 2 or self.donor):
            raise InvalidInputError(
                "folds must be None or at least 2, and None if donor is True. "
                f"Got folds={self.folds!r} and donor={self.donor!r}."
            )
        if not 0 <= self.seed < 2**31:
            raise InvalidInputError(f"seed must be from 0 to 2³¹ − 1. Got {self.seed!r}.")

    @property
    def n_cells(self) -> int:
        """Total number of splits."""
        return self.n * (self.folds or 1)


@dataclass(frozen=True)
class Cell:
    """One method on one split of one data set."""

    data: Data
    method: Method
    splits: Splits
    repetition: int

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The cell as plain data, without the method name and the number of splits."""
        splits = {key: value for key, value in plain(self.splits).items() if key != "n"}
        return {
            "data": plain(self.data),
            "method": {"kind": self.method.kind, "options": plain(self.method.options)},
            "splits": splits,
            "repetition": self.repetition,
        }

    @cached_property
    def key(self) -> str:
        """A digest of `spec`."""
        spec = json.loads(json.dumps(self.spec), parse_float=_number)
        text = json.dumps(spec, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Plan:
    """Data sets × methods × splits.

    Attributes
    ----------
    name : str
        The name of the plan.
    datasets : tuple of Data
        The data sets.
    methods : tuple of Method
        The methods, with unique names.
    splits : Splits
        The splits, the same for all methods.
    """

    name: str
    datasets: tuple[Data, ...]
    methods: tuple[Method, ...]
    splits: Splits = Splits()

    def __post_init__(self) -> None:
        names = [method.name for method in self.methods]
        if not self.datasets or not names or len(set(names)) < len(names):
            raise InvalidInputError(
                "A plan must have at least one data set and methods of different names. Got "
                f"{len(self.datasets)} data sets and the methods {names}."
            )

    def cells(self) -> list[Cell]:
        """Return all cells, split by split, so that early results compare all methods."""
        return [
            Cell(data, method, self.splits, repetition)
            for repetition in range(self.splits.n_cells)
            for data in self.datasets
            for method in self.methods
        ]


def plain(value: Any) -> Any:
    """Return data as JSON types: dictionaries, lists, strings, numbers, booleans and None.

    Parameters
    ----------
    value : object
        Data that may also contain tuples, dataclasses, NumPy arrays and NumPy numbers.
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # NumPy arrays and numbers
        return plain(value.tolist())
    raise InvalidInputError(
        "Options must be plain data: dictionaries with strings as keys, lists, strings, numbers, "
        f"True, False, None. Got {value!r} of type {type(value).__name__}."
    )


def _number(text: str) -> float:
    """Return a number read from JSON; integral values as integers, whether written 1 or 1.0."""
    value = float(text)
    return int(value) if value.is_integer() else value
