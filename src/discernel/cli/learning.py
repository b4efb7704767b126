"""Fit a model from the options of the command line, and read rows to predict."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import discernel
from discernel.compare.exports import count_classes
from discernel.compare.fitting import learner_kernels
from discernel.compare.plan import Data
from discernel.compare.tasks import encoded_views
from discernel.exceptions import InvalidInputError, listed
from discernel.persistence import SavedModel
from discernel.plan import FEW_ROWS, parse_duration
from discernel.rows.chunks import Place
from discernel.rows.columns import TableSchema
from discernel.rows.datasets import Dataset, load
from discernel.rows.encoder import TableEncoder
from discernel.rows.labelled import digest, holds_numbers, open_file
from discernel.rows.reading import read_table
from discernel.show.facts import Origin


@dataclass(frozen=True)
class Learner:
    """The settings of a fit.

    Attributes
    ----------
    criterion : str
        The criterion for learning the kernel weights.
    max_time : str or None
        The time limit, such as ``"10m"``.
    command : str
        The command line, which is saved with the model.
    quiet : bool
        Whether no progress is printed during a long fit.
    groups : str or None
        The column with the groups of the rows.
    """

    criterion: str = "auto"
    max_time: str | None = None
    command: str = ""
    quiet: bool = False
    groups: str | None = None

    def __post_init__(self) -> None:
        parse_duration(self.max_time)

    def make(
        self, kernels: Any = "auto", n_rows: int = 0, *, numbers: bool, **options: Any
    ) -> discernel.MultipleKernelDiscriminant | discernel.MultipleKernelRidge:
        """Return the unfitted estimator; it shows progress if there are many rows.

        Parameters
        ----------
        kernels : object
            The candidate kernels.
        n_rows : int
            The number of rows.
        numbers : bool
            Whether numbers are predicted, not classes.
        **options
            Further parameters of the estimator.
        """
        make = discernel.MultipleKernelRidge if numbers else discernel.MultipleKernelDiscriminant
        return make(
            kernels,
            criterion=self.criterion,
            max_time=self.max_time,
            verbose=n_rows >= FEW_ROWS and not self.quiet,
            **options,
        )

    def origin(self, source: str, **facts: Any) -> Origin:
        """Return the origin of a model: data, command and current time.

        Parameters
        ----------
        source : str
            The files, or the name of a data set.
        **facts
            Further attributes of `Origin`.
        """
        created = datetime.now(UTC).isoformat(timespec="seconds")
        return Origin(source, command=self.command, created=created, **facts)


def fit_model(data: Data, learner: Learner) -> SavedModel:
    """Fit a model to all rows of a file or data set.

    Parameters
    ----------
    data : Data
        A file, or a data set by name.
    learner : Learner
        The settings of the fit.
    """
    groups = None
    if data.file:
        opened = open_file(name=data.name, groups=learner.groups, **data.file)
        dataset, schema, target = opened.dataset, opened.schema, opened.target
        groups = opened.groups
        facts = {"columns": opened.columns, "identifiers": opened.identifiers}
        facts |= {"notes": opened.notes, "digest": digest(data.file["path"])}
        source = Path(data.file["path"]).name
    else:
        if learner.groups is not None:
            raise InvalidInputError(
                f"--groups needs a file. {data.name!r} is the name of a data set. Omit --groups."
            )
        dataset = load(data.name, as_frame=True)
        schema, target = TableSchema.from_encoder(dataset.feature_names, None), "target"
        facts, source = {"columns": schema.kinds}, data.name
    pipeline = _fitted(dataset, learner, groups)
    origin = learner.origin(source, class_counts=count_classes(dataset.y), **facts)
    return SavedModel(pipeline, schema, target, dataset.name, origin)


def _fitted(dataset: Dataset, learner: Learner, groups: NDArray[Any] | None) -> Any:
    """Fit a pipeline to a table; kernels of views are on encoded and standardized columns."""
    y, views = np.asarray(dataset.y), dataset.views
    if views:
        views = encoded_views(TableEncoder().fit(dataset.X), views)
    kernels = learner_kernels(views, learner.criterion)
    clf = learner.make(kernels, len(y), numbers=holds_numbers(y))
    steps = [clf] if kernels == "auto" else [TableEncoder(), StandardScaler(), clf]
    pipeline = make_pipeline(*steps)
    return pipeline.fit(dataset.X, y, **{f"{pipeline.steps[-1][0]}__groups": groups})


# ---- rows to predict ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to predict.

    Attributes
    ----------
    X : DataFrame
        The rows, converted for the pipeline of the model.
    y : Series or None
        The classes or numbers, if the table has the target.
    kept : DataFrame
        Columns that are copied to the output.
    """

    X: Any
    y: Any
    kept: Any

    @classmethod
    def of(cls, model: SavedModel, table: Any, place: Place, keep: Sequence[str] = ()) -> Rows:
        """Return the rows of a table for a model, or raise an error if columns are missing.

        Parameters
        ----------
        model : SavedModel
            The model.
        table : DataFrame
            The rows.
        place : Place
            The origin of the rows, for error messages.
        keep : sequence of str
            Columns to keep, besides identifiers.
        """
        absent = [column for column in keep if column not in table.columns]
        if absent:
            raise InvalidInputError(
                f"The columns of --keep must be columns of {place.name}. Got {listed(absent)}. "
                f"Columns: {listed(table.columns, 8)}."
            )
        identifiers = [column for column in model.origin.identifiers if column in table.columns]
        return cls(
            model.schema.convert(table, place),
            table[model.target] if model.target in table.columns else None,
            table[list(dict.fromkeys([*identifiers, *keep]))],
        )


def read_rows(
    model: SavedModel,
    source: str,
    keep: Sequence[str] = (),
    join: Callable[[Any], Any] | None = None,
) -> Rows:
    """Read rows from a file, from standard input, or from a data set by name.

    Parameters
    ----------
    model : SavedModel
        The model that predicts the rows.
    source : str
        A file, ``-`` for standard input, or the name of a data set.
    keep : sequence of str
        Columns to keep, besides identifiers.
    join : callable, optional
        Adds the columns of other files to a table.
    """
    path = Path(source)
    if source == "-" or path.suffix or path.is_file():
        as_text = {model.target, *model.origin.identifiers, *keep, *model.schema.categories}
        columns = list(model.origin.columns)
        known = [columns, [column for column in columns if column != model.target]]
        with given_file(source) as file:
            table = read_table(file, as_text, known if columns else ()).frame
            if not len(table):
                raise InvalidInputError(f"{file.name} must have rows to predict. Got none.")
            if join is None:
                _refuse_other_files(model, table, file.name)
            place = Place.of_file(file.name)
            return Rows.of(model, table if join is None else join(table), place, keep)
    dataset = load(source, as_frame=True)
    if dataset.feature_names != model.schema.columns:
        raise InvalidInputError(
            f"The rows must have the features of {model.dataset!r}, which the model was fitted "
            f"to. The features of {source!r} differ."
        )
    return Rows(dataset.X, dataset.y, dataset.X[list(keep)])


def _refuse_other_files(model: SavedModel, table: Any, where: str) -> None:
    """Raise an error if a column is missing that came from a separate file in training."""
    own = model.origin.columns
    other = [name for name in model.schema.columns if own and name not in own]
    absent = [name for name in other if name not in table.columns]
    if absent:
        raise InvalidInputError(
            f"{where} has no column {absent[0]!r}, which came from a separate file in training. "
            "Name the TOML file of sources: --views FILE, as for `discernel fit`."
        )


#: The first bytes of binary formats.
_BEGINNINGS = {
    **{b"PAR1": ".parquet", b"ARROW1": ".arrow", b"FEA1": ".feather"},
    **{b"PK\x03\x04": ".npz", b"\x1f\x8b": ".csv.gz"},
}


@contextmanager
def given_file(source: str) -> Iterator[Path]:
    """Yield the path of a file; for ``-``, of a temporary file with the standard input.

    Parameters
    ----------
    source : str
        A path, or ``-``.
    """
    if source != "-":
        yield Path(source)
        return
    content = sys.stdin.buffer.read()
    ending = next((e for begin, e in _BEGINNINGS.items() if content.startswith(begin)), ".csv")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"standard input{ending}"
        path.write_bytes(content)
        yield path
