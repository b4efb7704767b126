"""Read the sources of a model and their kernels from a TOML file.

Each source is a table::

    [sources.scan]
    columns = ["scan_*", "weight"]
    kernels = ["rbf", {kind = "rbf", width = "0.5*median"}, "linear"]

    [sources.sequence]
    file = "sequences.csv"
    key = "patient"
    columns = ["promoter"]
    kernels = [{kind = "spectrum", k = 4}]

``columns`` are names or patterns of columns. ``file`` is another file with the columns of the
source, in the folder of the TOML file; its rows are joined by the column ``key``, which both files
have. Without ``kernels``, kernels are chosen by the values. A kernel is a name, or a table with its
parameters. ``standardize`` divides columns by their spread; it is true by default for kernels of
distances and inner products. ``file`` of a ``lookup`` kernel is a CSV file with a matrix, and with
names in the first line and the first column.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from discernel.exceptions import InvalidInputError, listed
from discernel.kernels import Kernel, Lookup, Standardized
from discernel.kernels.make import KINDS
from discernel.rows.columns import canonical_text, one_spelling
from discernel.rows.formats import import_pandas
from discernel.rows.reading import read_table
from discernel.rows.views import kernels_of

#: Kernels that divide columns by their spread by default.
_STANDARDIZED = ("rbf", "laplace", "exponential", "linear", "polynomial")
_KEYS = ("columns", "kernels", "file", "key")


@dataclass(frozen=True)
class SourceChoice:
    """A source in a TOML file.

    Attributes
    ----------
    name : str
        The name of the source.
    columns : tuple of str
        Names or patterns of columns.
    kernels : tuple of partial
        Functions that make the kernels; empty to choose kernels by the values.
    file : str or None
        The file of the columns; None if they are in the table itself.
    key : str or None
        The column by which rows of the file are joined.
    """

    name: str
    columns: tuple[str, ...]
    kernels: tuple[partial[Kernel], ...] = ()
    file: str | None = None
    key: str | None = None

    @property
    def takes_dates(self) -> bool:
        """Whether dates of the source are numbers: not for kernels of texts and identifiers."""
        kinds = (KINDS.get(make.keywords.get("kind", ""), Lookup) for make in self.kernels)
        return not any(kind.takes_any_rows for kind in kinds)

    def find(self, names: Iterable[Any]) -> list[str]:
        """Return the columns of the source in a joined table, in order.

        Parameters
        ----------
        names : iterable of str
            The columns of a table returned by `join_files`.
        """
        if self.file is None:
            return self.match(names)
        return [name for name in names if str(name).startswith(f"{self.name}[")]

    def match(self, names: Iterable[Any]) -> list[str]:
        """Return the names that match the columns, or raise an error if a pattern matches none.

        Parameters
        ----------
        names : iterable of str
            The columns of the table, or of the file of the source.
        """
        names, found = list(names), set()
        for pattern in self.columns:
            # Column names may contain the wildcards of patterns.
            own = [name for name in names if name == pattern] or [
                name for name in names if fnmatchcase(str(name), pattern)
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
    """The content of a TOML file of sources.

    Attributes
    ----------
    path : Path
        The file.
    sources : tuple of SourceChoice
        The sources, in order.
    """

    path: Path
    sources: tuple[SourceChoice, ...]


# ---- reading -----------------------------------------------------------------------------------


def read_views(path: str | Path) -> ViewsFile:
    """Read and check a TOML file of sources and kernels.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, or an entry is unknown or invalid; the message names the line.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{str(path)!r} must be a TOML file of sources. It cannot be read: {error}"
        ) from error
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"{path.name} is not valid TOML: {error}.") from error
    return _Reader(path, text).views(found)


@dataclass(frozen=True)
class _Reader:
    """Checks the content of a TOML file; errors name the line."""

    path: Path
    text: str

    def views(self, found: Mapping[str, Any]) -> ViewsFile:
        for key in found:
            if key != "sources":
                self.fail(f"{key} is unknown", key, "sources are tables [sources.NAME]")
        remedy = "write a table [sources.NAME] for each source"
        sources = self.typed(found.get("sources"), Mapping, "sources", "", remedy)
        if not sources:
            self.fail("sources is empty", "", remedy)
        return ViewsFile(
            self.path, tuple(self.source(name, table) for name, table in sources.items())
        )

    def source(self, name: str, table: Any) -> SourceChoice:
        where = f"sources.{name}"
        table = self.typed(table, Mapping, where, where, f"write a table [{where}]")
        for key in table:
            if key not in _KEYS:
                self.fail(f"{where}.{key} is unknown", f"{where}.{key}", _one_of(_KEYS))
        columns, at = _as_list(table.get("columns", [])), f"{where}.columns"
        remedy = 'write a list of names or patterns, such as ["age", "scan_*"]'
        if not columns:
            self.fail(f"{where} has no columns", at, remedy)
        for i, column in enumerate(columns):
            self.typed(column, str, f"{at}[{i}]", at, remedy)
        for key, other in (("file", "key"), ("key", "file")):
            if key not in table:
                continue
            self.typed(table[key], str, f"{where}.{key}", f"{where}.{key}", "write a string")
            if other not in table:
                self.fail(
                    f"{where} has {key} but no {other}", where, "name both: rows are joined by key"
                )
        chosen = (
            self.kernel(f"{where}.kernels[{i}]", given, f"{where}.kernels")
            for i, given in enumerate(_as_list(table.get("kernels", [])))
        )
        return SourceChoice(
            name, tuple(columns), tuple(chosen), table.get("file"), table.get("key")
        )

    def kernel(self, where: str, given: Any, key: str) -> partial[Kernel]:
        """Return a function that makes a kernel, after checking its parameters."""
        table = {"kind": given} if isinstance(given, str) else given
        remedy = 'write "rbf" or {kind = "rbf", width = 2.0}'
        kind = self.typed(table, Mapping, where, key, remedy).get("kind")
        if kind not in list(KINDS):  # a list, because the value may not be hashable
            self.fail(f"{where} is of kind {kind!r}", key, _one_of(KINDS))
        known = _options(kind)
        for name in table:
            if name != "kind" and name not in known:
                self.fail(
                    f"{where}.{name} is unknown",
                    key,
                    f"{kind} takes {', '.join(known) or 'no options'}",
                )
        if kind == "lookup":
            remedy = 'name the file of the matrix: file = "similar.csv"'
            file = self.typed(table.get("file"), str, f"{where}.file", key, remedy)
            # Read when needed: prediction does not need the file.
            return partial(_lookup, self.path.parent / file)
        lists: dict[str, Any] = {
            n: tuple(v) if isinstance(v, list) else v for n, v in table.items()
        }
        make = partial(_make, **lists)
        try:
            make()
        except InvalidInputError as error:
            self.fail(f"{where}: {str(error).rstrip('.')}", key, "see the kernel's documentation")
        return make

    def typed(self, value: Any, kind: Any, name: str, key: str, remedy: str) -> Any:
        """Return a value of a type, or raise an error."""
        if not isinstance(value, kind):
            self.fail(f"{name} is {value!r}", key, remedy)
        return value

    def fail(self, problem: str, key: str, remedy: str) -> NoReturn:
        """Raise an error that names the line of a key."""
        line = _line_of(self.text, key)
        at = f"{self.path.name}, line {line}" if line else self.path.name
        raise InvalidInputError(f"{at}: {problem}; {remedy}.")


def _as_list(value: Any) -> list[Any]:
    """Return a list unchanged, and another value as a list with one entry."""
    return value if isinstance(value, list) else [value]


def _one_of(names: Iterable[str]) -> str:
    return f"it must be one of {', '.join(names)}"


def _options(kind: str) -> list[str]:
    """Return the parameters that a kernel takes in a TOML file."""
    if kind == "lookup":
        return ["file"]
    return [*KINDS[kind]().settings, *(["standardize"] if kind in _STANDARDIZED else [])]


def _line_of(text: str, key: str) -> int | None:
    """Return the number of the line of a key, or else of its table; None if neither exists."""
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


def build_kernels(
    views: ViewsFile, table: Any, parts: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Kernel]:
    """Return the kernels of all sources, named "source: kernel".

    All are wrapped in `WhereKnown`, because rows to predict may lack sources.

    Parameters
    ----------
    views : ViewsFile
        Returned by `read_views`.
    table : DataFrame
        The training rows, returned by `join_files`.
    parts : mapping of str to sequence of str, optional
        The columns of ``table`` in place of each column of the sources, from `DateEncoder`.
    """
    made: dict[str, Kernel] = {}
    parts = parts or {name: [name] for name in table.columns}
    for source in views.sources:
        kernels = [make() for make in source.kernels] or "auto"
        columns = [part for name in source.find(parts) for part in parts[name]]
        made |= kernels_of(source.name, columns, kernels, table, may_lack=True)
    return made


def _make(kind: str, standardize: bool | None = None, **options: Any) -> Kernel:
    """Return a kernel; the option ``standardize`` divides columns by their spread."""
    kernel, by_default = KINDS[kind](**options), kind in _STANDARDIZED
    return Standardized(kernel) if standardize or (standardize is None and by_default) else kernel


def _lookup(path: Path) -> Kernel:
    """Return the kernel of a matrix in a CSV file with names in the first line and column."""
    try:
        matrix = import_pandas().read_csv(path, index_col=0)
        numbers = matrix.to_numpy(dtype=np.float64)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"{path.name} must be a CSV file with a matrix, with row names in the first column and "
            f"column names in the first line. Problem: {error}"
        ) from error
    names = [list(map(one_spelling, labels)) for labels in (matrix.index, matrix.columns)]
    if names[0] != names[1]:
        raise InvalidInputError(
            f"{path.name} must have the same names for rows and columns, in the same order. Got "
            f"{listed(names[0], 3)} and {listed(names[1], 3)}."
        )
    return Lookup(numbers, keys=matrix.index.tolist())


# ---- other files -------------------------------------------------------------------------------


def join_files(views: ViewsFile, table: Any) -> Any:
    """Add the columns of sources in other files to a table, named ``source[column]``.

    Rows are joined by the key. If a file has no row for a key, the cells are missing.

    Parameters
    ----------
    views : ViewsFile
        Returned by `read_views`.
    table : DataFrame
        The rows to fit or to predict, including the columns of keys.
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
                    f"{views.path.name}: the key {source.key!r} of sources.{source.name} must be "
                    f"a column of {where}."
                )
        keys = other[source.key]
        if keys.duplicated().any():
            twice = keys[keys.duplicated()].tolist()[0]
            raise InvalidInputError(
                f"{source.file} must have one row per {source.key}. Got {twice!r} more than once."
            )
        names = source.match(name for name in other.columns if name != source.key)
        # Different notations of a number are the same key.
        found = (
            other[names].set_axis(canonical_text(keys)).reindex(canonical_text(table[source.key]))
        )
        found = found.set_axis([f"{source.name}[{name}]" for name in names], axis=1)
        parts.append(found.set_axis(table.index))
    return pandas.concat(parts, axis=1)
