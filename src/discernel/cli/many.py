"""Fitting and predicting rows of many files, or of one that is large, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

from discernel.cli.models import Learner, Model, Predictions, count_right
from discernel.exceptions import InvalidInputError, missing_extra
from discernel.experiments.files import find_target
from discernel.experiments.preparation import Preparation
from discernel.experiments.writing import csv_text, drafted
from discernel.streams import Chunk, RowProgress, Source, open_rows
from discernel.streams.files import FileSource

__all__ = ["are_many", "fit_many", "predict_many", "write_predictions"]

#: Bytes of a file that is read in chunks.
_LARGE = 200 * 2**20
_ENDINGS = (".csv", ".parquet", ".pq")


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
        return path.suffix.lower() in _ENDINGS and path.stat().st_size > _LARGE
    return any(sign in data[0] for sign in "*?[")


def fit_many(
    data: Sequence[str],
    target: str | None,
    drop: Sequence[str],
    learner: Learner,
    told: Callable[[Any], None],
    scheduler: str | None = None,
) -> Model:
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
    """
    columns = open_rows(list(data)).columns or []
    target = find_target(columns, target, data[0])
    with _opened(data, scheduler, target, drop) as source:
        clf = learner.make(callback=told).fit(source)
    # A model in a file predicts; the sums that more rows could be added to stay behind.
    kept = copy(clf).set_params(callback=None)
    kept._stream = kept._fallback = None
    preparation = Preparation(tuple(source.columns or ()))
    name = Path(data[0].rstrip("/*?[]")).name or data[0]
    return Model(make_pipeline(kept), preparation, target, name, takes_tables=True)


# ---- prediction --------------------------------------------------------------------------------


def predict_many(
    model: Model,
    data: Sequence[str],
    told: Callable[[Any], None],
    scheduler: str | None = None,
) -> Iterator[Predictions]:
    """Yield what is predicted for the rows of many files, a chunk at a time.

    Parameters
    ----------
    model : Model
        What predicts.
    data : sequence of str
        Files, folders or patterns.
    told : callable
        Called with a `RowProgress`, after every chunk.
    scheduler : str, optional
        The address of a Dask scheduler whose workers read the files.
    """

    def predicted(chunk: Chunk) -> Predictions:
        X, classes = model.features(chunk.X, chunk.place.name), model.pipeline.classes_
        labels, known = model.pipeline.predict(X), (0, 0)
        if model.target in chunk.X.columns:
            known = count_right(labels, chunk.X[model.target])
        return Predictions(labels, model.pipeline.predict_proba(X), classes, *known)

    with _opened(data, scheduler) as source:
        done, total = 0, source.about_n_rows
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
    from discernel.cluster import connected, spread_files

    assert isinstance(source, FileSource)
    with connected(scheduler):
        yield open_rows(spread_files(source.paths), target, drop=drop)


def write_predictions(
    parts: Iterable[Predictions], output: Path | Callable[[str], Any]
) -> tuple[int, int]:
    """Write predictions, a part at a time.

    A file is written whole or not at all.

    Parameters
    ----------
    parts : iterable of Predictions
        What is predicted.
    output : Path or callable
        A file, which is Parquet if it ends so and else CSV; or what CSV is given to.

    Returns
    -------
    n_known, n_right : int
        How many labels are known, and how many of these are predicted.
    """
    known: list[tuple[int, int]] = []

    def noted() -> Iterator[Predictions]:
        for part in parts:
            known.append((part.n_known, part.n_right))
            yield part

    if not isinstance(output, Path):
        _write_csv(noted(), output)
    elif output.suffix.lower() == ".parquet":
        with drafted(output) as file:
            _write_parquet(noted(), file)
    else:
        with drafted(output) as file:
            _write_csv(noted(), lambda text: file.write(text.encode()))
    return sum(n for n, _ in known), sum(n for _, n in known)


def _column_names(classes: NDArray[Any]) -> list[str]:
    return ["row", "predicted", *(f"probability of {label}" for label in classes)]


def _write_csv(parts: Iterable[Predictions], write: Callable[[str], Any]) -> None:
    done = 0
    for part in parts:
        rows = zip(part.labels.tolist(), part.probabilities, strict=True)
        text = csv_text(
            _column_names(part.classes),
            (
                [row, label, *(f"{share:.4f}" for share in shares)]
                for row, (label, shares) in enumerate(rows, done + 1)
            ),
        )
        # The line of names is that of the first part.
        header = csv_text(_column_names(part.classes), []) if done else ""
        write(text.removeprefix(header))
        done += len(part.labels)


def _write_parquet(parts: Iterable[Predictions], file: Any) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise missing_extra("Writing Parquet needs pyarrow", "app", "name a CSV file") from error
    done, writer = 0, None
    try:
        for part in parts:
            rows = np.arange(done + 1, done + 1 + len(part.labels))
            columns = [rows, pa.array(part.labels.tolist()), *part.probabilities.T]
            table = pa.table(dict(zip(_column_names(part.classes), columns, strict=True)))
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
            done += len(rows)
    finally:
        if writer is not None:  # before the file is closed, in which it writes its last bytes
            writer.close()
    if writer is None:
        raise InvalidInputError("There must be rows to predict. Got none.")
