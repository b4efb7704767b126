"""Fitting and predicting rows of many files, or of one that is large, a chunk at a time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from discernel.cli.learning import Learner, Rows, now
from discernel.cli.predictions import Predictions
from discernel.exceptions import InvalidInputError
from discernel.persistence import SavedModel
from discernel.rows.files.columns import identifiers
from discernel.rows.files.dates import PARTS, date_format, split_dates
from discernel.rows.files.files import find_target
from discernel.rows.files.preparation import Preparation
from discernel.rows.streams import Chunk, RowProgress, Source, open_rows
from discernel.rows.streams.files import FileSource
from discernel.rows.streams.formats import file_ending, open_bytes, uncompressed_size
from discernel.rows.streams.sources import ChangedSource
from discernel.rows.tables.encoder import EncodedNumbers
from discernel.show.facts import Origin

__all__ = ["are_many", "fit_many", "predict_many"]

#: Bytes of a file that is read in chunks.
_LARGE = 200 * 2**20
_ENDINGS = (".csv", ".parquet")


def are_many(data: Sequence[str]) -> bool:
    """Whether words of the command line mean rows that are read in chunks.

    Parameters
    ----------
    data : sequence of str
        What was given: files, a folder, a pattern or the name of a data set.
    """
    if len(data) > 1 or Path(data[0]).is_dir():
        return True
    path = Path(data[0])
    if path.is_file():
        return file_ending(path) in _ENDINGS and uncompressed_size(path) > _LARGE
    return any(sign in data[0] for sign in "*?[")


def fit_many(
    data: Sequence[str],
    target: str | None,
    drop: Sequence[str],
    learner: Learner,
    told: Callable[[Any], None],
    scheduler: str | None = None,
    command: str = "",
) -> SavedModel:
    """Return a model fitted to the rows of many files.

    Parameters
    ----------
    data : sequence of str
        Files, folders or patterns.
    target : str or None
        The column with the labels; None where its name says so.
    drop : sequence of str
        Columns to leave out.
    learner : Learner
        What is asked of the fit.
    told : callable
        Called with a `RowProgress`, after every chunk.
    scheduler : str, optional
        The address of a Dask scheduler whose workers read the files.
    command : str
        The command line, to be remembered.
    """
    _refuse_other_delimiters(data[0])
    columns = open_rows(list(data)).columns or []
    target = find_target(columns, target, data[0])
    with _opened(data, scheduler, target, drop) as source:
        dates = _find_dates(source)
        rows = ChangedSource(source, partial(split_dates, dates=dates)) if dates else source
        clf = learner.make(callback=told).fit(rows)
    name = Path(data[0].rstrip("/*?[]")).name or data[0]
    used = tuple(source.columns or ())
    categories = tuple(column for column in _categories(clf) if column in used)
    preparation = Preparation(used, categories, dates=dates)
    origin = _origin(clf, data, command, preparation)
    return SavedModel(make_pipeline(clf), preparation, target, name, origin)


def _find_dates(source: Source) -> dict[str, tuple[str, ...]]:
    """Return the columns of dates, by the first rows: how they are written, and all parts."""
    first: Any = next((chunk.X for chunk in source.chunks() if chunk.n_rows), {})
    written = {name: date_format(first[name]) for name in first}
    # Dates of a type of their own may be text in the file of rows to predict.
    return {n: (how or "ISO8601", *PARTS) for n, how in written.items() if how is not None}


def _refuse_other_delimiters(given: str) -> None:
    """Raise where a CSV file has a delimiter that chunks are not read by."""
    path = Path(given)
    files = sorted(path.rglob("*")) if path.is_dir() else map(Path, sorted(glob(given)))
    first = next((file for file in files if file_ending(file) == ".csv" and file.is_file()), None)
    if first is None:
        return
    names: set[str] = set()
    with suppress(OSError, EOFError, zlib.error), open_bytes(first) as file:  # its reader says it
        names = set(file.readline().decode(errors="replace"))
    if "," not in names and (signs := names & set(";|\t")):
        raise InvalidInputError(
            "Files that are read in chunks must be Parquet, or CSV with commas between cells and "
            f"decimal points. {first.name} has {min(signs)!r} between its names. Write it as "
            "Parquet, or fit one file of at most 200 MB."
        )


def _categories(clf: Any) -> tuple[str, ...]:
    """Return the columns that are not numbers, and those that are left out, whatever they are."""
    if clf.encoder_ is None:
        return ()
    numbers = {c.position for c in clf.encoder_.columns_ if isinstance(c, EncodedNumbers)}
    return tuple(n for i, n in enumerate(clf.feature_names_in_.tolist()) if i not in numbers)


def _origin(clf: Any, data: Sequence[str], command: str, preparation: Preparation) -> Origin:
    counts = np.round(clf.priors_ * clf.streamed_.n_rows).astype(int).tolist()
    left_out = {} if clf.encoder_ is None else clf.encoder_.left_out
    became = dict.fromkeys(preparation.columns, "number")
    became |= dict.fromkeys(preparation.categories, "category")
    became |= {name: f"date, as {', '.join(PARTS)}" for name in preparation.dates}
    return Origin(
        " ".join(data),
        command=command,
        created=now(),
        class_counts=dict(zip(map(str, clf.classes_), counts, strict=True)),
        columns=became | {n: f"left out: {why}" for n, why in left_out.items() if n in became},
        identifiers=identifiers(left_out),
        notes=tuple(
            f"{name!r} is taken as dates: {', '.join(PARTS)}" for name in preparation.dates
        ),
    )


# ---- prediction --------------------------------------------------------------------------------


def predict_many(
    model: SavedModel,
    data: Sequence[str],
    told: Callable[[Any], None],
    scheduler: str | None = None,
    keep: Sequence[str] = (),
) -> Iterator[Predictions]:
    """Yield what is predicted for the rows of many files, a chunk at a time.

    Parameters
    ----------
    model : SavedModel
        What predicts.
    data : sequence of str
        Files, folders or patterns.
    told : callable
        Called with a `RowProgress`, after every chunk.
    scheduler : str, optional
        The address of a Dask scheduler whose workers read the files.
    keep : sequence of str
        Columns that are handed on.
    """

    def predicted(chunk: Chunk) -> Predictions:
        return Predictions.of(model, Rows.of(model, chunk.X, chunk.place.name, keep))

    with _opened(data, scheduler) as source:
        done, total = 0, source.estimated_n_rows
        for part in source.map(predicted):
            yield part
            done += len(part.labels)
            told(RowProgress(0, 1, done, total))


@contextmanager
def _opened(
    data: Sequence[str],
    scheduler: str | None,
    target: str | None = None,
    drop: Sequence[str] = (),
) -> Iterator[Source]:
    """Open files here, or on the workers of a scheduler."""
    source = open_rows(list(data), target, drop=drop)
    if scheduler is None:
        yield source
        return
    from discernel.arrays.cluster import connected, spread_files

    assert isinstance(source, FileSource)
    with connected(scheduler):
        yield open_rows(spread_files(source.paths), target, drop=drop)
