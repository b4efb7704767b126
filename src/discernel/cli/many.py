"""Fit and predict rows of many files, or of one large file, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from discernel.cli.learning import Learner, Rows
from discernel.cli.predictions import Predictions
from discernel.persistence import SavedModel
from discernel.rows.chunks import Chunk, RowProgress
from discernel.rows.columns import TableSchema
from discernel.rows.encoder import column_uses
from discernel.rows.formats import file_ending, uncompressed_size
from discernel.rows.labelled import find_target
from discernel.rows.open import find_files, open_rows
from discernel.rows.reading import READERS
from discernel.rows.sources import Source

#: Files larger than this, in bytes, are read in chunks.
_LARGE = 200 * 2**20


def are_many(data: Sequence[str]) -> bool:
    """Whether the arguments are data to read in chunks: several files, or one large file.

    Parameters
    ----------
    data : sequence of str
        Files, a folder, a pattern or the name of a data set.
    """
    if len(data) > 1 or Path(data[0]).is_dir():
        return True
    path = Path(data[0])
    if path.is_file():
        return file_ending(path) in READERS and uncompressed_size(path) > _LARGE
    return any(sign in data[0] for sign in "*?[")


def fit_many(
    data: Sequence[str],
    target: str | None,
    drop: Sequence[str],
    learner: Learner,
    report: Callable[[Any], None],
    scheduler: str | None = None,
) -> SavedModel:
    """Fit a model to the rows of many files.

    Parameters
    ----------
    data : sequence of str
        Files, folders or patterns.
    target : str or None
        The column with the labels; None to find it by its name.
    drop : sequence of str
        Columns to leave out.
    learner : Learner
        The settings of the fit.
    report : callable
        Called with a `RowProgress` after each chunk.
    scheduler : str, optional
        The address of a Dask scheduler whose workers read the files.
    """
    columns = open_rows(list(data)).columns or []
    target = find_target(columns, target, data[0])
    with _opened(data, scheduler, target, drop, learner.groups) as source:
        clf = learner.make(callback=report).fit(source)
    name = Path(data[0].rstrip("/*?[]")).name or data[0]
    names, encoder = source.columns or (), clf.encoder_
    schema = TableSchema.from_encoder(names, encoder)
    counts = np.round(clf.priors_ * clf.streamed_.n_rows).astype(int).tolist()
    facts: dict[str, Any] = {"columns": dict.fromkeys(names, "number")}
    if encoder is not None:
        uses = column_uses(names, encoder.columns_, encoder.left_out_)
        facts = {"columns": {column: uses[column] for column in names}}
        facts |= {"identifiers": encoder.identifiers, "notes": encoder.notes}
    origin = learner.origin(
        " ".join(data),
        class_counts=dict(zip(map(str, clf.classes_), counts, strict=True)),
        **facts,
    )
    return SavedModel(make_pipeline(clf), schema, target, name, origin)


# ---- prediction --------------------------------------------------------------------------------


def predict_many(
    model: SavedModel,
    data: Sequence[str],
    report: Callable[[Any], None],
    scheduler: str | None = None,
    keep: Sequence[str] = (),
) -> Iterator[Predictions]:
    """Yield the predictions for the rows of many files, in chunks.

    Parameters
    ----------
    model : SavedModel
        The model.
    data : sequence of str
        Files, folders or patterns.
    report : callable
        Called with a `RowProgress` after each chunk.
    scheduler : str, optional
        The address of a Dask scheduler whose workers read the files.
    keep : sequence of str
        Columns to copy to the output.
    """

    def predicted(chunk: Chunk) -> Predictions:
        return Predictions.of(model, Rows.of(model, chunk.X, chunk.place.name, keep))

    with _opened(data, scheduler) as source:
        done, total = 0, source.estimated_n_rows
        for part in source.map(predicted):
            yield part
            done += len(part.labels)
            report(RowProgress(0, 1, done, total))


@contextmanager
def _opened(
    data: Sequence[str],
    scheduler: str | None,
    target: str | None = None,
    drop: Sequence[str] = (),
    groups: str | None = None,
) -> Iterator[Source]:
    """Open files in this process, or on the workers of a Dask scheduler."""
    if scheduler is None:
        yield open_rows(list(data), target, groups=groups, drop=drop)
        return
    from discernel.arrays.cluster import connected, spread_files

    with connected(scheduler):
        yield open_rows(spread_files(find_files(data)), target, groups=groups, drop=drop)
