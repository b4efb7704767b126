"""A `Source` of files with the same columns, read in chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from discernel.exceptions import InvalidInputError
from discernel.rows.chunks import Chunk, Place
from discernel.rows.formats import TEXT, file_ending, file_stamp, import_arrow
from discernel.rows.reading import READERS
from discernel.rows.sources import Layout, Source, chunk_size


class FileSource(Source):
    """Rows of files with the same columns.

    The columns and types of all files are compared before rows are read. Files may have no rows,
    but not 0 bytes, and must not change while they are open.

    Parameters
    ----------
    paths : sequence of Path
        The files: all CSV or TSV (also compressed), all Parquet, or all Arrow or Feather.
    labels : sequence of three str or None
        The columns of y, the weights and the groups.
    drop : sequence of str
        Columns to leave out.
    chunk_rows : int, optional
        The number of rows per chunk.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        labels: Sequence[str | None],
        drop: Sequence[str],
        chunk_rows: int | None,
    ) -> None:
        self.paths = list(paths)
        endings = {file_ending(path) for path in self.paths}
        readers = {READERS.get(ending) for ending in endings}
        reader = readers.pop()
        if readers or reader is None:
            raise InvalidInputError(
                "All files must be CSV or TSV (also .csv.gz and .tsv.gz), all Parquet, or all "
                f"Arrow or Feather. Got {', '.join(sorted(endings))}."
            )
        self._stamps = {path: file_stamp(path) for path in self.paths}
        self._arrow = import_arrow()
        self._files = [reader(path) for path in self.paths]
        schemas, (target, _, groups) = [file.types for file in self._files], labels
        layout = Layout.of_names(list(schemas[0]), labels, drop, str(self.paths[0]))
        self._layout = replace(layout, drop=())  # these columns are not read
        agreed = self._common_types(schemas, (target, groups))
        self._types = {name: kind for name, kind in agreed.items() if name not in drop}
        self.columns = self._layout.columns
        self.chunk_rows = chunk_size(len(self._types), chunk_rows)
        self.n_rows = _total(file.n_rows for file in self._files)

    # ---- columns -----------------------------------------------------------------------------

    def _common_types(
        self, schemas: list[dict[str, Any]], labels: tuple[str | None, ...]
    ) -> dict[str, Any]:
        """Return a type for each column that fits all files, or raise an error that names a file.

        Integers of text files become floats, because later rows may have decimals; not in columns
        of labels.
        """
        arrow, agreed = self._arrow, dict[str, Any]()
        is_text = file_ending(self.paths[0]) in TEXT
        for path, schema in zip(self.paths, schemas, strict=True):
            if missing := [name for name in schemas[0] if name not in schema]:
                raise InvalidInputError(
                    f"All files must have the same columns. {path} has no {missing[0]!r}, which "
                    f"{self.paths[0]} has. Add it, or leave the file out."
                )
        for name, common in schemas[0].items():
            kind = _kind(common, arrow)
            for path, found in zip(self.paths, (schema[name] for schema in schemas), strict=True):
                other = _kind(found, arrow)
                if kind == "nothing" or other == "nothing":
                    kind, common = (other, found) if kind == "nothing" else (kind, common)
                elif kind != other:
                    raise InvalidInputError(
                        f"A column must hold the same kind of values in all files. {name!r} holds "
                        f"{kind} in {self.paths[0]} and {other} in {path}. Convert one of them."
                    )
                elif found != common and kind in ("numbers", "dates"):
                    common = arrow.float64() if kind == "numbers" else arrow.timestamp("ns")
            if is_text and name not in labels and arrow.types.is_integer(common):
                common = arrow.float64()
            agreed[name] = common
        return agreed

    # ---- rows --------------------------------------------------------------------------------

    @property
    def estimated_n_rows(self) -> int | None:
        """The number of rows; for CSV files, an estimate from their sizes."""
        return _total(file.estimated_n_rows for file in self._files)

    def chunks(self) -> Iterator[Chunk]:
        for part, file in enumerate(self._files):
            first = 0
            self._check_unchanged(file.path)
            for table in file.parts(self._types, self.chunk_rows):
                if table.num_rows:
                    place = Place.of_file(file.path, part, first)
                    yield self._layout.chunk(table.to_pandas(), self._layout.labels, place)
                first += table.num_rows
            self._check_unchanged(file.path)

    def _check_unchanged(self, path: Path) -> None:
        """Raise an error if a file has changed since it was opened."""
        if file_stamp(path) != self._stamps[path]:
            raise InvalidInputError(
                f"A file must not change while its rows are read. {path} was modified after it "
                "was opened. Start again when the file is complete."
            )

    def __repr__(self) -> str:
        more = f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
        return f"{type(self).__name__}({self.paths[0]}{more})"


def _total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts; None if one of them is unknown."""
    known = list(counts)
    return None if None in known else sum(filter(None, known))


def _kind(kind: Any, arrow: Any) -> str:
    """Return the kind of values of a pyarrow type, for error messages."""
    types = arrow.types
    if types.is_dictionary(kind):
        return _kind(kind.value_type, arrow)
    if types.is_null(kind):
        return "nothing"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_temporal(kind):
        return "dates"
    plain = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return "numbers" if plain or types.is_decimal(kind) else str(kind)
