"""An experiment as plain data: data sets × methods × splits.

Everything here turns into JSON. A cell is one method on one split of one data set; its
key is a digest of what it does, so that a store knows what has been run, whichever plan asked.
Numbers that are equal are one number there: a method may not tell 1 from 1.0. What a key does not
know is the content of a file and the version of the code; records say which version it was.
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
        A name of `discernel.datasets`, or that of the data set in a file.
    scaling : {"none", "standard", "minmax", "symmetric"}
        Each feature as it is, to mean 0 and variance 1, to [0, 1], or to [−1, 1]. What it takes
        is learned on the training rows.
    file : dict
        Where the rows are read from if not from `discernel.datasets`: the parameters of
        `discernel.rows.labelled.open_file`.
    options : dict
        ``rows``: only so many rows, drawn at random.
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
    """A method: the name to show, its kind, which is a key of `methods.KINDS`, and its options."""

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
        The number of splits; the first ones stay the same if there are more.
    train_size : float or int
        The share, or the number, of training rows.
    stratify : bool
        Whether classes keep their shares.
    folds : int or None
        With a number, n repetitions of cross-validation with so many folds instead, stratified.
    donor : bool
        Whether the training part is the one that the donor of the data made.
    seed : int
        The seed of the first split; the others follow.
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
                "There must be at least one split and a training part. "
                f"Got n={self.n!r} and train_size={self.train_size!r}."
            )
        if self.train_size >= 1 and self.train_size != int(self.train_size):
            raise InvalidInputError(
                "train_size must be a share below 1 or a whole number of rows. "
                f"Got {self.train_size!r}."
            )
        if self.folds is not None and (self.folds < 2 or self.donor):
            raise InvalidInputError(
                "folds must be None or at least 2, and None where the donor made the split. "
                f"Got folds={self.folds!r} and donor={self.donor!r}."
            )
        if not 0 <= self.seed < 2**31:
            raise InvalidInputError(f"seed must be from 0 to 2³¹ − 1. Got {self.seed!r}.")

    @property
    def n_cells(self) -> int:
        """The number of splits in all."""
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
        """The cell as plain data, without the name of the method and the number of splits."""
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
        The methods, of different names.
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
    """Return the same data in types of JSON: dictionaries, lists, strings, numbers, True, None.

    Parameters
    ----------
    value : object
        Such data, with tuples, dataclasses, NumPy's arrays and numbers among them.
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        return plain(value.tolist())
    raise InvalidInputError(
        "Options must be plain data: dictionaries with strings as keys, lists, strings, numbers, "
        f"True, False, None. Got {value!r} of type {type(value).__name__}."
    )


def _number(text: str) -> float:
    """Return a number of JSON, whole ones as integers however they were written."""
    value = float(text)
    return int(value) if value.is_integer() else value
