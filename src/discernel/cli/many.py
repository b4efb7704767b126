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
from discernel.rows.columns import TableSchema, canonical_text
from discernel.rows.encoder import column_uses
from discernel.rows.formats import file_ending, import_pandas, uncompressed_size
from discernel.rows.labelled import (
    Task,
    are_numbers,
    check_names,
    find_target,
    find_task,
    plain_decimals,
)
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
    task: Task = "auto",
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
    task : {"auto", "classes", "numbers"}
        What the target holds; by default decided by the first chunk.
    """
    columns = open_rows(find_files(data)[:1]).columns or []  # opening reads the first rows
    target = find_target(columns, target, data[0])
    named = () if learner.groups is None else (learner.groups,)
    check_names(columns, (*drop, *named), target, data[0])
    with _opened(data, scheduler, target, drop, learner.groups) as source:
        texts = np.empty(0, dtype=object)
        if task == "auto":
            texts = plain_decimals(canonical_text(import_pandas().Series(source.first().y)))
        found = find_task(texts) if task == "auto" else task
        clf = learner.make(numbers=found == "numbers", callback=report).fit(source)
    name = Path(data[0].rstrip("/*?[]")).name or data[0]
    names, encoder = source.columns or (), clf.encoder_
    schema = TableSchema.from_encoder(names, encoder)
    facts: dict[str, Any] = {"columns": dict.fromkeys(names, "number"), "notes": ()}
    if encoder is not None:
        uses = column_uses(names, encoder.columns_, encoder.left_out_)
        facts = {"columns": {column: uses[column] for column in names}}
        facts |= {"identifiers": encoder.identifiers, "notes": encoder.notes}
    if task == "auto" and are_numbers(texts):
        other = "numbers" if found == "classes" else "classes"
        note = f"predicts {found}: the first rows of {target!r} hold {len(set(texts)):,} distinct "
        note += f"numbers. --task {other} predicts {other}."
        facts["notes"] = (*facts["notes"], note)
    origin = learner.origin(" ".join(data), class_counts=_class_counts(clf), **facts)
    return SavedModel(make_pipeline(clf), schema, target, name, origin)


def _class_counts(model: Any) -> dict[str, int]:
    """Return the rows of each class, from the class shares; empty for numbers."""
    classes = model.model_.classes
    if classes is None:
        return {}
    counts = np.round(model.priors_ * model.streamed_.n_rows).astype(int).tolist()
    return dict(zip(map(str, classes), counts, strict=True))


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
        return Predictions.of(model, Rows.of(model, chunk.X, chunk.place, keep))

    with _opened(data, scheduler) as source:
        done, total = 0, source.estimated_n_rows
        for part in source.map(predicted):
            yield part
            done += part.n_rows
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
