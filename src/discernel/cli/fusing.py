"""`discernel fit --views`: several sources and their kernels from a TOML file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.pipeline import make_pipeline

from discernel.cli.learning import Learner
from discernel.compare.exports import count_classes
from discernel.compare.plan import Data
from discernel.exceptions import InvalidInputError
from discernel.inspection.source_weights import kernel_sources
from discernel.persistence import SavedModel
from discernel.rows.cells import read_column
from discernel.rows.chunks import Place
from discernel.rows.columns import TableSchema
from discernel.rows.dates import FORMATS
from discernel.rows.encoder import DateEncoder, column_kind
from discernel.rows.formats import import_pandas
from discernel.rows.groups import group_labels
from discernel.rows.labelled import (
    check_names,
    digest,
    find_target,
    holds_numbers,
    rows_with_labels,
    target_use,
)
from discernel.rows.reading import read_table
from discernel.rows.views_file import ViewsFile, build_kernels, join_files, read_views

#: The option of commands that read new rows.
ViewsOption = Annotated[
    Path | None,
    typer.Option(
        "--views",
        metavar="FILE",
        help="The TOML file of `fit --views`, if some sources are in separate files.",
    ),
]


def fit_views(data: Data, views: Path, learner: Learner) -> SavedModel:
    """Fit a model with several sources to all rows.

    Parameters
    ----------
    data : Data
        The data file.
    views : Path
        The TOML file of sources, their columns and kernels.
    learner : Learner
        The settings of the fit.
    """
    if not data.file or any(data.file.get(name) for name in ("drop", "categorical", "numeric")):
        raise InvalidInputError(
            "--views needs a data file, without --drop, --categorical and --numeric. The TOML file "
            "names the columns that are used."
        )
    meant, path = read_views(views), Path(data.file["path"])
    named = () if learner.groups is None else (learner.groups,)
    read = read_table(path, (*([data.file["target"]] if data.file.get("target") else ()), *named))
    target = find_target(list(read.frame.columns), data.file.get("target"), path.name)
    check_names(list(read.frame.columns), named, target, path.name)
    task = data.file.get("task", "auto")
    where = Place.of_file(path.name)
    place, table, y, notes = rows_with_labels(read.frame, target, where, task)
    for what, name in (("target", target), *(("column of groups", name) for name in named)):
        if name in _named(meant, table):
            raise InvalidInputError(
                f"{views.name}: the {what} {name!r} must not be a column of a source. Remove it."
            )
    groups = [group_labels(np.asarray(table[name]), len(table)) for name in named]
    joined = join_files(meant, table)
    columns, schema = _named(meant, joined), TableSchema(_kinds(meant, joined))
    X = schema.convert(joined, place)
    dates = DateEncoder().fit(X)
    kernels = build_kernels(meant, dates.transform(X), dates.parts)
    clf = learner.make(kernels, len(y), numbers=holds_numbers(y))
    pipeline = make_pipeline(*([dates] if dates.columns_ else []), clf)
    together = {f"{pipeline.steps[-1][0]}__groups": each for each in groups}
    pipeline.fit(X, y, **together)
    sources = list(dict.fromkeys(kernel_sources(list(kernels.values()))))
    origin = learner.origin(
        path.name,
        digest=digest(path),
        class_counts=count_classes(y),
        columns={str(name): columns.get(name, "not in a source") for name in table.columns}
        | {target: target_use(y)}
        | dict.fromkeys(named, "the groups"),
        notes=(f"{read.how}; {len(sources)} sources: {', '.join(sources)}", *notes, *dates.notes),
    )
    return SavedModel(pipeline, schema, target, data.name, origin)


def _named(views: ViewsFile, table: Any) -> dict[str, str]:
    """Return the used columns, with their sources in words."""
    found: dict[str, str] = {}
    for source in views.sources:
        for name in source.find(table.columns):
            found[name] = f"source {source.name}"
    return found


def _kinds(views: ViewsFile, table: Any) -> dict[str, str]:
    """Return the kind of each used column, as in `TableSchema`: number, category or dates."""
    is_number = import_pandas().api.types.is_numeric_dtype
    kinds: dict[str, str] = {}
    for source in views.sources:
        for name in source.find(table.columns):
            kind = column_kind(read_column(table[[name]], 0, name))
            is_date = kind in FORMATS and source.takes_dates and kinds.get(name) != "category"
            kinds[name] = kind if is_date else "category"
            if is_number(table[name]):
                kinds[name] = "number"
    return {name: kinds[name] for name in _named(views, table)}


def views_files(views: Path | None) -> list[Path]:
    """Return a TOML file of sources, and the files that it names; none without it."""
    if views is None:
        return []
    named = {source.file for source in read_views(views).sources if source.file is not None}
    return [views, *(views.parent / name for name in sorted(named))]


def joiner(views: Path | None) -> Callable[[Any], Any] | None:
    """Return a function that adds columns from other files to a table; None if not needed.

    Parameters
    ----------
    views : Path or None
        The TOML file of sources; None if the table has all columns.
    """
    if views is None:
        return None
    meant = read_views(views)
    return lambda table: join_files(meant, table)
