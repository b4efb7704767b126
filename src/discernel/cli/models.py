"""Fitted models in files that hold no code: what `fit` writes and `predict` reads."""

from __future__ import annotations

import json
import re
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import discernel
from discernel.datasets import Dataset, load
from discernel.exceptions import InvalidInputError, missing_extra
from discernel.experiments.files import open_file
from discernel.experiments.formats import listed, read_table
from discernel.experiments.methods import learner_kernels
from discernel.experiments.plan import Data
from discernel.experiments.preparation import Preparation, one_spelling
from discernel.experiments.tasks import Division
from discernel.experiments.writing import check_place, write_file
from discernel.planning import FEW_ROWS, parse_duration

__all__ = [
    "Learner",
    "Model",
    "Predictions",
    "count_right",
    "fit_model",
    "load_model",
    "predict_rows",
    "save_model",
]

#: Raised with every change that an older version could not read: 2 has models of tables.
_FORMAT = 2
#: The first skops that builds nothing it was not told to trust.
_SKOPS = (0, 12)
#: Our own parts of a model.
_OURS = (
    "discernel.bank.base.Centering",
    "discernel.bank.base.Uncentered",
    "discernel.bank.combined.CombinedFeatures",
    "discernel.bank.combined.CombinedKernel",
    "discernel.criteria.low_rank.LowRankLoss",
    "discernel.discriminant.Decision",
    "discernel.discriminant.Discriminant",
    "discernel.discriminant.Expectation",
    "discernel.estimators.discriminant.MultipleKernelDiscriminant",
    "discernel.estimators.streamed.Streamed",
    "discernel.features.exact.ExactMap",
    "discernel.features.nystrom.NystromMap",
    "discernel.kernels.base.Named",
    "discernel.kernels.base.Restricted",
    "discernel.kernels.base.Standardized",
    "discernel.kernels.columns.Table",
    "discernel.kernels.distance.Laplace",
    "discernel.kernels.distance.RBF",
    "discernel.kernels.histograms.ChiSquared",
    "discernel.kernels.histograms.Intersection",
    "discernel.kernels.inner.Linear",
    "discernel.kernels.lookup.Lookup",
    "discernel.kernels.missing.WhereKnown",
    "discernel.kernels.missing._Reference",
    "discernel.kernels.sets.Jaccard",
    "discernel.kernels.sets.Matching",
    "discernel.kernels.sets.Tanimoto",
    "discernel.kernels.strings.NGram",
    "discernel.kernels.strings.Spectrum",
    "discernel.kernels.weighted.WeightedKernels",
    "discernel.learners.solution.Candidate",
    "discernel.learners.solution.LearnedKernel",
    "discernel.learners.solution.Progress",
    "discernel.metric.Metric",
    "discernel.planning.forecast.Forecast",
    "discernel.tables.encoder.EncodedNumbers",
    "discernel.tables.encoder.EncodedValues",
    "discernel.tables.encoder.LeftOut",
    "discernel.tables.encoder.TableEncoder",
)
#: All that a model may be made of: plain data, arrays, two parts of scikit-learn, and ours.
_TRUSTED = frozenset(
    (
        *(f"builtins.{name}" for name in ("bool", "dict", "float", "int", "list", "set", "slice")),
        *(f"builtins.{name}" for name in ("NoneType", "str", "tuple")),
        *(f"numpy.{name}" for name in ("bool", "bool_", "dtype", "ndarray", "str_")),
        *(f"numpy.{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)),
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing._data.StandardScaler",
        *_OURS,
    )
)
#: How skops may build them: none of these calls what a file names.
_LOADERS = frozenset(
    f"{name}Node"
    for name in (
        *("Cached", "Dict", "Dtype", "Json", "List", "NdArray"),
        *("Object", "Set", "Slice", "Tuple", "Type"),
    )
)


@dataclass(frozen=True)
class Model:
    """A fitted pipeline, and how the columns of a file become its features.

    Attributes
    ----------
    pipeline : Pipeline
        Standardisation, then a `MultipleKernelDiscriminant`; of many files the latter alone.
    preparation : Preparation
        What is done to the columns of a file.
    target : str
        The column with the labels.
    dataset : str
        What it was fitted to.
    takes_tables : bool
        Whether the pipeline itself knows what to do with columns of any kind.
    """

    pipeline: Pipeline
    preparation: Preparation
    target: str
    dataset: str
    takes_tables: bool = False

    def features(self, table: Any, where: str) -> Any:
        """Return rows of a file as the pipeline takes them, or raise a clear error.

        Parameters
        ----------
        table : DataFrame
            The rows.
        where : str
            What the table is called in messages.
        """
        if not self.takes_tables:
            return self.preparation.apply(table, where)
        columns = list(self.preparation.columns)
        if absent := [column for column in columns if column not in table.columns]:
            raise InvalidInputError(
                f"{where} must have the columns the model was fitted to. Got none named "
                f"{listed(absent)}."
            )
        return table[columns]


@dataclass(frozen=True)
class Predictions:
    """The classes of some rows, their probabilities, and of the labels known how many are right."""

    labels: NDArray[Any]
    probabilities: NDArray[np.float64]
    classes: NDArray[Any]
    n_known: int = 0
    n_right: int = 0


@dataclass(frozen=True)
class Learner:
    """What is asked of a fit.

    Attributes
    ----------
    criterion : str
        What makes a combination good.
    max_time : str or None
        The time there is, such as ``"10m"``.
    """

    criterion: str = "auto"
    max_time: str | None = None

    def __post_init__(self) -> None:
        parse_duration(self.max_time)

    def make(self, kernels: Any = "auto", **options: Any) -> discernel.MultipleKernelDiscriminant:
        """Return the estimator, not fitted."""
        return discernel.MultipleKernelDiscriminant(
            kernels, criterion=self.criterion, max_time=self.max_time, **options
        )


def fit_model(data: Data, learner: Learner) -> tuple[Model, Dataset, tuple[str, ...]]:
    """Return a model fitted to all rows, the rows, and notes on them."""
    if data.file:
        opened = open_file(name=data.name, **data.file)
        dataset, preparation, target = opened.dataset, opened.preparation, opened.target
        notes = opened.notes
    else:
        dataset, notes = load(data.name), ()
        preparation, target = _of_catalog(dataset), "target"
    whole = Division(dataset.X, dataset.X, dataset.y, dataset.y, dataset.views)
    kernels = learner_kernels("auto", whole, learner.criterion)
    # Few rows take no time that is worth a word.
    clf = learner.make(kernels, verbose=len(dataset.y) >= FEW_ROWS)
    pipeline = make_pipeline(StandardScaler(), clf).fit(dataset.X, dataset.y)
    return Model(pipeline, preparation, target, dataset.name), dataset, notes


def _of_catalog(dataset: Dataset) -> Preparation:
    views = {view: dataset.feature_names[columns] for view, columns in dataset.views.items()}
    return Preparation(dataset.feature_names, views=views)


def predict_rows(model: Model, source: str) -> Predictions:
    """Return what a model says of the rows of a file, or of a data set by its name."""
    path = Path(source)
    if path.suffix or path.is_file():
        table, _ = read_table(
            path, lambda name: name == model.target or model.preparation.as_written(name)
        )
        X = model.features(table, path.name)
        y = table[model.target] if model.target in table.columns else None
    else:
        dataset = load(source)
        if dataset.feature_names != model.preparation.columns:
            raise InvalidInputError(
                f"The rows must have the features of {model.dataset!r}, which the model was fitted "
                f"to. Got those of {source!r}."
            )
        X, y = dataset.X, dataset.y
    labels = model.pipeline.predict(X)
    return Predictions(
        labels,
        model.pipeline.predict_proba(X),
        model.pipeline.classes_,
        *((0, 0) if y is None else count_right(labels, y)),
    )


def count_right(labels: NDArray[Any], truth: Any) -> tuple[int, int]:
    """Return how many labels are known, and how many of these are predicted."""
    import pandas as pd

    truth = pd.Series(truth)
    known = truth[truth.notna()].astype(object).map(one_spelling)
    right = [one_spelling(label) for label in labels[truth.notna().to_numpy()].tolist()] == known
    return len(known), int(right.sum())


# ---- files -------------------------------------------------------------------------------------


def _skops() -> Any:
    wanted = ".".join(map(str, _SKOPS))
    try:
        import skops
        import skops.io
    except ImportError as error:
        need = f"Saving and loading models needs skops {wanted} or newer"
        raise missing_extra(need, "app") from error
    found = re.match(r"(\d+)\.(\d+)", skops.__version__)
    if found is None or tuple(map(int, found.groups())) < _SKOPS:
        raise missing_extra(
            f"Saving and loading models needs skops {wanted} or newer, because older ones run code "
            f"from a crafted file; this is skops {skops.__version__}",
            "app",
        )
    return skops.io


def save_model(model: Model, path: str | Path) -> Path:
    """Write a model to a file that loading runs no code from."""
    check_place("model", path)
    stored = {
        "format": _FORMAT if model.takes_tables else 1,
        "version": discernel.__version__,
        "pipeline": model.pipeline,
        "preparation": model.preparation.as_plain(),
        "target": model.target,
        "dataset": model.dataset,
        "takes_tables": model.takes_tables,
    }
    return write_file(path, _skops().dumps(stored))


class _RefusedError(InvalidInputError):
    """A file that is a model, or looks like one, and is not loaded all the same."""


def load_model(path: str | Path) -> Model:
    """Return a model from a file; a file with anything else in it is refused."""
    path, skops = Path(path), _skops()
    if not path.is_file():
        raise InvalidInputError(
            f"The model must be a file that `discernel fit` wrote. There is none at {str(path)!r}."
        )
    try:
        _refuse_strange(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of another scikit-learn; what breaks is said below
            return _checked(skops.load(path, trusted=list(_OURS)), path)
    except (_RefusedError, PermissionError):
        raise
    # A file can be anything, so that reading it can fail in any way.
    except Exception as error:
        raise InvalidInputError(
            f"{path.name} must be a model that `discernel fit` wrote, with this version of "
            f"discernel or one like it. It is another file, or damaged ({_brief(error)}). Fit it "
            "again."
        ) from error


def _refuse_strange(path: Path) -> None:
    """Raise where a file names anything that no model has, before anything is built from it."""
    with zipfile.ZipFile(path) as archive:
        schema = json.loads(archive.read("schema.json"))
    strange = sorted(set(_strange(schema)))
    if strange:
        raise _RefusedError(
            f"{path.name} holds {', '.join(strange)}, which no model of ours has. It was not "
            "loaded."
        )


def _strange(node: Any) -> Iterator[str]:
    """Yield what a schema would have built that is not trusted, wherever it is hidden."""
    if isinstance(node, list):
        for part in node:
            yield from _strange(part)
    if isinstance(node, dict):
        name, loader = f"{node.get('__module__')}.{node.get('__class__')}", node.get("__loader__")
        if {"__module__", "__class__"} & node.keys() and name not in _TRUSTED:
            yield name
        if "__loader__" in node and loader not in _LOADERS:
            yield f"{name} through {loader}"
        for part in node.values():
            yield from _strange(part)


def _checked(stored: Any, path: Path) -> Model:
    """Return what a file holds as a model, or raise anything where it is none."""
    number, version = stored["format"], stored["version"]
    if not isinstance(number, int) or not isinstance(version, str):
        raise TypeError("its version is not said")
    if not 1 <= number <= _FORMAT:
        remedy = (
            "a newer version. Update discernel"
            if number > _FORMAT
            else f"an older version than this one, {discernel.__version__}. Fit it again"
        )
        raise _RefusedError(f"{path.name} was written by discernel {version}, {remedy}.")
    model = Model(
        stored["pipeline"],
        Preparation.from_plain(stored["preparation"]),
        stored["target"],
        stored["dataset"],
        stored.get("takes_tables", False) is True,
    )
    if not isinstance(model.target, str) or not isinstance(model.dataset, str):
        raise TypeError("the names of target and data set must be text")
    # Whatever else is missing, or does not go together, breaks the prediction of a row.
    row: Any = np.zeros((1, len(model.preparation.feature_names)))
    if model.takes_tables:
        import pandas as pd

        row = pd.DataFrame([[None] * row.shape[1]], columns=list(model.preparation.columns))
    shape = model.pipeline.predict_proba(row).shape
    if model.pipeline.predict(row).shape != (1,) or shape != (1, len(model.pipeline.classes_)):
        raise ValueError("it does not predict")
    return model


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
