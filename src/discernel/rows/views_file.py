"""Sources and their kernels from a file, ``views.toml``.

One table per source::

    [sources.scan]
    columns = ["scan_*", "weight"]
    kernels = ["rbf", {kind = "rbf", width = "0.5*median"}, "linear"]

    [sources.sequence]
    file = "sequences.csv"
    key = "patient"
    columns = ["promoter"]
    kernels = [{kind = "spectrum", k = 4}]

``columns`` are names or patterns of the table's columns. With ``file``, which lies beside
``views.toml``, they are those of another table, whose rows are found by the column ``key`` that
both have. Without ``kernels``, these are chosen by what stands in the columns. A kernel is a name,
or a table with its parameters; ``standardize`` (by default true for kernels of distances and inner
products) says whether columns are divided by their spread, and ``file`` of a ``lookup`` is a CSV
file with a matrix, and names in its first line and first column.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np

from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    ChiSquared,
    Cosine,
    Exponential,
    Intersection,
    Jaccard,
    Kernel,
    Laplace,
    Linear,
    Lookup,
    Matching,
    NGram,
    Polynomial,
    Spectrum,
    Standardized,
    Tanimoto,
    WhereKnown,
)
from discernel.kernels.composites import Restricted
from discernel.rows.columns import canonical_text, one_spelling
from discernel.rows.formats import import_pandas, listed
from discernel.rows.reading import read_table
from discernel.rows.views import source_kernels

#: The kernels by their names, and which of them divide columns by their spread.
_KINDS: dict[str, type[Kernel]] = {
    "rbf": RBF,
    "laplace": Laplace,
    "exponential": Exponential,
    "linear": Linear,
    "polynomial": Polynomial,
    "cosine": Cosine,
    "chi_squared": ChiSquared,
    "intersection": Intersection,
    "tanimoto": Tanimoto,
    "jaccard": Jaccard,
    "matching": Matching,
    "spectrum": Spectrum,
    "ngram": NGram,
    "lookup": Lookup,
}
_STANDARDIZED = ("rbf", "laplace", "exponential", "linear", "polynomial")
_KEYS = ("columns", "kernels", "file", "key")


@dataclass(frozen=True)
class SourceChoice:
    """A source as a file says it.

    Attributes
    ----------
    name : str
        Its name.
    columns : tuple of str
        Names or patterns.
    kernels : tuple of callable
        Functions that make its kernels; none where they are to be chosen.
    file : str or None
        The file of its columns, where it is not the table itself.
    key : str or None
        The column by which rows of the file are found.
    """

    name: str
    columns: tuple[str, ...]
    kernels: tuple[Callable[[], Kernel], ...] = ()
    file: str | None = None
    key: str | None = None

    def find(self, names: Iterable[Any]) -> list[str]:
        """Return its columns among those of a table, in their order.

        Parameters
        ----------
        names : iterable of str
            The columns of a table, to which `join_files` has added those of other files.
        """
        if self.file is None:
            return self.match(names)
        return [name for name in names if str(name).startswith(f"{self.name}[")]

    def match(self, names: Iterable[Any]) -> list[str]:
        """Return the names that it chooses, or raise an error where a pattern has none.

        Parameters
        ----------
        names : iterable of str
            The columns of the table, or of its own file.
        """
        names, found = list(names), set()
        for pattern in self.columns:
            # A name that has the signs of a pattern in it is a name first.
            own = [name for name in names if name == pattern] or [
                name for name in names if isinstance(name, str) and fnmatchcase(name, pattern)
            ]
            if not own:
                raise InvalidInputError(
                    f"The columns of the source {self.name!r} must be columns of "
                    f"{self.file or 'the table'}. Got {pattern!r}; there are {listed(names, 8)}."
                )
            found |= set(own)
        return [name for name in names if name in found]


@dataclass(frozen=True)
class ViewsFile:
    """The content of ``views.toml``.

    Attributes
    ----------
    path : Path
        The file.
    sources : tuple of SourceChoice
        The sources, in their order.
    """

    path: Path
    sources: tuple[SourceChoice, ...]


# ---- reading -----------------------------------------------------------------------------------


def read_views(path: str | Path) -> ViewsFile:
    """Return what a file says of sources and their kernels, checked.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    InvalidInputError
        If it cannot be read, or says something that means nothing; the message names the line.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{str(path)!r} must be a text file with the sources. It cannot be read: {error}"
        ) from error
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"{path.name} is not valid TOML: {error}.") from error
    return _Reader(path, text).views(found)


@dataclass(frozen=True)
class _Reader:
    """A file while it is checked."""

    path: Path
    text: str

    def views(self, found: Mapping[str, Any]) -> ViewsFile:
        for key in found:
            if key != "sources":
                self.fail(f"{key} means nothing here", key, "sources are tables [sources.NAME]")
        sources = found.get("sources")
        if not isinstance(sources, Mapping) or not sources:
            self.fail("there is no source", "", "write one table [sources.NAME] per source")
        return ViewsFile(
            self.path, tuple(self.source(name, table) for name, table in sources.items())
        )

    def source(self, name: str, table: Any) -> SourceChoice:
        where = f"sources.{name}"
        if not isinstance(table, Mapping):
            self.fail(f"{where} is {table!r}", where, f"write a table [{where}]")
        for key in table:
            if key not in _KEYS:
                self.fail(f"{where}.{key} means nothing", f"{where}.{key}", _one_of(_KEYS))
        columns, kernels = table.get("columns"), table.get("kernels", [])
        columns = [columns] if isinstance(columns, str) else columns
        if not (isinstance(columns, list) and columns and all(isinstance(c, str) for c in columns)):
            self.fail(
                f"{where}.columns is {columns!r}",
                f"{where}.columns",
                'give a list of names or patterns, such as ["age", "scan_*"]',
            )
        for key, other in (("file", "key"), ("key", "file")):
            if key in table and not isinstance(table[key], str):
                self.fail(f"{where}.{key} is {table[key]!r}", f"{where}.{key}", "give a text")
            if key in table and other not in table:
                self.fail(
                    f"{where} has {key} but no {other}", where, "give both: rows are found by key"
                )
        if not isinstance(kernels, list):
            kernels = [kernels]
        chosen = (
            self.kernel(f"{where}.kernels[{i}]", given, f"{where}.kernels")
            for i, given in enumerate(kernels)
        )
        return SourceChoice(
            name, tuple(columns), tuple(chosen), table.get("file"), table.get("key")
        )

    def kernel(self, where: str, given: Any, key: str) -> Callable[[], Kernel]:
        """Return a function that makes a kernel; its parameters are checked here."""
        table = {"kind": given} if isinstance(given, str) else given
        if not isinstance(table, Mapping) or "kind" not in table:
            self.fail(f"{where} is {given!r}", key, 'write "rbf" or {kind = "rbf", width = 2.0}')
        kind = table["kind"]
        if not isinstance(kind, str) or kind not in _KINDS:
            self.fail(f"{where} is of kind {kind!r}", key, _one_of(_KINDS))
        known = _options(kind)
        for name in table:
            if name != "kind" and name not in known:
                self.fail(f"{where}.{name} means nothing", key, f"{kind} takes {_list(known)}")
        if kind == "lookup":
            if not isinstance(table.get("file"), str):
                self.fail(f"{where} has no matrix", key, 'give file = "similar.csv"')
            # New rows are predicted without the file of the matrix.
            return partial(_lookup, self.path.parent / table["file"])
        make = partial(_make, kind, {n: _frozen(v) for n, v in table.items() if n != "kind"})
        try:
            make()
        except InvalidInputError as error:
            self.fail(f"{where}: {str(error).rstrip('.')}", key, "see its parameters in the docs")
        return make

    def fail(self, problem: str, key: str, remedy: str) -> NoReturn:
        line = _line_of(self.text, key)
        at = f"{self.path.name}, line {line}" if line else self.path.name
        raise InvalidInputError(f"{at}: {problem}; {remedy}.")


def _one_of(names: Iterable[str]) -> str:
    return f"it must be one of {', '.join(names)}"


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "no options"


def _options(kind: str) -> list[str]:
    """Return the options that a kernel takes in a file."""
    if kind == "lookup":
        return ["file"]
    fields: Any = dataclasses.fields(_KINDS[kind])  # type: ignore[arg-type]
    names = [f.name for f in fields if f.init and not f.metadata.get("private")]
    return [*names, *(["standardize"] if kind in _STANDARDIZED else [])]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _line_of(text: str, key: str) -> int | None:
    """Return the line that a key, or the table it should stand in, begins at; None if nowhere."""
    *table, name = key.split(".")
    lines, inside, at = text.splitlines(), not table, None
    for number, line in enumerate(lines, start=1):
        if header := re.fullmatch(r"\s*\[+([^\]]*)\]+\s*(#.*)?", line):
            title = header[1].replace('"', "").strip()
            if title == key:
                return number
            inside = title == ".".join(table)
            at = number if inside else at
        elif inside and re.match(rf'\s*"?{re.escape(name)}"?\s*[=.]', line):
            return number
    return at


# ---- kernels -----------------------------------------------------------------------------------


def build_kernels(views: ViewsFile, table: Any) -> dict[str, Kernel]:
    """Return the kernels of all sources, for an estimator, named "source: kernel".

    All are put into `WhereKnown`: rows to predict may lack sources that all training rows have.

    Parameters
    ----------
    views : ViewsFile
        Returned by `read_views`.
    table : DataFrame
        The training rows, with what `join_files` added.
    """
    columns = {source.name: source.find(table.columns) for source in views.sources}
    kernels = {
        source.name: [make() for make in source.kernels] or "auto" for source in views.sources
    }
    made = source_kernels(columns, kernels, table)
    return {name: _where_known(kernel) for name, kernel in made.items()}


def _where_known(kernel: Any) -> Kernel:
    """Return a kernel on columns, under its name, that takes rows without them."""
    if kernel.takes_missing:
        return cast(Kernel, kernel)
    there: Restricted = kernel.kernel
    return WhereKnown(there.kernel).on(there.columns, there.label).named(kernel.name)


def _make(kind: str, options: Mapping[str, Any]) -> Kernel:
    """Return a kernel; ``standardize`` says whether columns are divided by their spread."""
    rest = {name: value for name, value in options.items() if name != "standardize"}
    kernel = _KINDS[kind](**rest)
    return Standardized(kernel) if options.get("standardize", kind in _STANDARDIZED) else kernel


def _lookup(path: Path) -> Lookup:
    """Return the kernel of a matrix in a CSV file, with names in the first line and column."""
    try:
        matrix = import_pandas().read_csv(path, index_col=0)
        numbers = matrix.to_numpy(dtype=np.float64)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"{path.name} must be a CSV file with a matrix, and the names of its rows in the first "
            f"column and of its columns in the first line. Got: {error}"
        ) from error
    names = [list(map(one_spelling, labels)) for labels in (matrix.index, matrix.columns)]
    if names[0] != names[1]:
        raise InvalidInputError(
            f"{path.name} must have the same names for its rows as for its columns, in one order. "
            f"Got {listed(names[0], 3)} and {listed(names[1], 3)}."
        )
    return Lookup(numbers, keys=matrix.index.tolist())


# ---- other files -------------------------------------------------------------------------------


def join_files(views: ViewsFile, table: Any) -> Any:
    """Return a table with the columns of the sources that have files of their own.

    They are called ``source[column]``. Rows are found by the key; one that a file does not have
    lacks the source.

    Parameters
    ----------
    views : ViewsFile
        Returned by `read_views`.
    table : DataFrame
        The rows, in training or in prediction, with the keys among their columns.
    """
    pandas = import_pandas()
    parts = [table]
    for source in views.sources:
        if source.file is None:
            continue
        other = read_table(views.path.parent / source.file).frame
        for what, where in ((table, "the table"), (other, source.file)):
            if source.key not in what.columns:
                raise InvalidInputError(
                    f"{views.path.name}: rows of sources.{source.name} are found by "
                    f"{source.key!r}, which {where} has no column of."
                )
        keys = other[source.key]
        if keys.duplicated().any():
            twice = keys[keys.duplicated()].tolist()[0]
            raise InvalidInputError(
                f"{source.file} must have one row per {source.key}. Got {twice!r} more than once."
            )
        names = source.match(name for name in other.columns if name != source.key)
        # A number is one key, however a file writes it.
        found = (
            other[names].set_axis(canonical_text(keys)).reindex(canonical_text(table[source.key]))
        )
        found = found.set_axis([f"{source.name}[{name}]" for name in names], axis=1)
        parts.append(found.set_axis(table.index))
    return pandas.concat(parts, axis=1)
