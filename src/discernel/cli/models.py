"""Fitted models in files that hold no code: what `fit` writes and `predict` reads."""

from __future__ import annotations

import json
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

import discernel
from discernel.exceptions import InvalidInputError, missing_extra
from discernel.inspection.facts import model_facts
from discernel.rows.encoder import TableEncoder
from discernel.rows.formats import import_pandas
from discernel.rows.preparation import Preparation
from discernel.show.facts import ModelFacts
from discernel.show.writing import check_place, write_file

__all__ = ["Origin", "SavedModel", "load_model", "save_model"]

#: Raised with every change that an older version could not read.
_FORMAT = 5
#: The first skops that builds nothing it was not told to trust.
_SKOPS = (0, 12)
#: Our own parts of a model.
_OURS = (
    "discernel.bank.base.Centering",
    "discernel.bank.base.Uncentered",
    "discernel.bank.choice.AutoBank",
    "discernel.bank.choice.LowRank",
    "discernel.bank.choice.Tiled",
    "discernel.bank.combined.CombinedFeatures",
    "discernel.bank.combined.CombinedKernel",
    "discernel.discriminant.ClassHead",
    "discernel.discriminant.Decision",
    "discernel.discriminant.Discriminant",
    "discernel.discriminant.Expectation",
    "discernel.estimators.discriminant.MultipleKernelDiscriminant",
    "discernel.learn.chunks.Streamed",
    "discernel.learn.low_rank.LowRankLoss",
    "discernel.kernels.features.ExactMap",
    "discernel.kernels.features.NystromMap",
    "discernel.kernels.base.Named",
    "discernel.kernels.base.Restricted",
    "discernel.kernels.base.Standardized",
    "discernel.kernels.columns.Table",
    "discernel.kernels.distance.Laplace",
    "discernel.kernels.distance.RBF",
    "discernel.kernels.distance.ChiSquared",
    "discernel.kernels.objects.Intersection",
    "discernel.kernels.inner.Linear",
    "discernel.kernels.objects.Lookup",
    "discernel.kernels.missing.WhereKnown",
    "discernel.kernels.missing._Reference",
    "discernel.kernels.objects.Jaccard",
    "discernel.kernels.objects.Matching",
    "discernel.kernels.objects.Tanimoto",
    "discernel.kernels.objects.NGram",
    "discernel.kernels.objects.Spectrum",
    "discernel.kernels.weighted.WeightedKernels",
    "discernel.model.importances.Importances",
    "discernel.model.model.Facts",
    "discernel.model.model.KeptRows",
    "discernel.model.model.Model",
    "discernel.rows.reader.RowReader",
    "discernel.programs.solution.Candidate",
    "discernel.programs.solution.LearnedKernel",
    "discernel.programs.solution.Progress",
    "discernel.default.metric.Metric",
    "discernel.plan.costs.Stage",
    "discernel.plan.plan.FitPlan",
    "discernel.rows.encoder.EncodedDates",
    "discernel.rows.encoder.EncodedNumbers",
    "discernel.rows.encoder.EncodedValues",
    "discernel.rows.encoder.LeftOut",
    "discernel.rows.encoder.TableEncoder",
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
class Origin:
    """Where a model comes from, so that what is predicted can be traced.

    Attributes
    ----------
    source : str
        The file or data set it was fitted to.
    digest : str
        That of the content of the file; empty where there is none.
    command : str
        The command that fitted it.
    fitted : str
        When, in UTC.
    version : str
        The version of discernel.
    class_counts : dict of str to int
        Rows of each class.
    columns : dict of str to str
        What became of each column of the file.
    identifiers : tuple of str
        Columns that were left out because they tell rows apart.
    notes : tuple of str
        How the file was read, and what was done to it.
    """

    source: str = ""
    digest: str = ""
    command: str = ""
    fitted: str = ""
    version: str = discernel.__version__
    class_counts: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    identifiers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """The rows it was fitted to."""
        return sum(self.class_counts.values())

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Origin:
        """Return what ``asdict`` was called on, or raise anything where it is none."""
        names = ("source", "digest", "command", "fitted", "version")
        words: dict[str, Any] = {name: plain[name] for name in names}
        identifiers, notes = tuple(plain["identifiers"]), tuple(plain["notes"])
        if not all(isinstance(text, str) for text in (*words.values(), *identifiers, *notes)):
            raise TypeError("where it comes from must be said in text")
        return cls(
            **words,
            class_counts={str(k): int(n) for k, n in plain["class_counts"].items()},
            columns={str(k): str(became) for k, became in plain["columns"].items()},
            identifiers=identifiers,
            notes=notes,
        )


@dataclass(frozen=True)
class SavedModel:
    """A fitted pipeline, and what the columns of a file are for it.

    Attributes
    ----------
    pipeline : Pipeline
        Its last step is a `MultipleKernelDiscriminant`; it takes tables.
    preparation : Preparation
        What is done to the columns of a file.
    target : str
        The column with the labels.
    dataset : str
        What it was fitted to.
    origin : Origin
        Where it comes from.
    """

    pipeline: Pipeline
    preparation: Preparation
    target: str
    dataset: str
    origin: Origin = field(default_factory=Origin)

    @property
    def columns(self) -> list[str]:
        """The column of the table which each column that the last step is given is part of."""
        names, first = list(self.preparation.columns), self.pipeline[0]
        return [names[i] for i in first.source] if isinstance(first, TableEncoder) else names

    def describe(self) -> ModelFacts:
        """Return all there is to say about the model, as plain data."""
        facts = model_facts(
            self.pipeline,
            name=self.dataset,
            target=self.target,
            columns=self.columns,
            origin=asdict(self.origin),
        )
        return replace(facts, n_columns=len(self.preparation.columns))


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


def save_model(model: SavedModel, path: str | Path) -> Path:
    """Write a model to a file that loading runs no code from.

    A model in a file predicts: what only `partial_fit` needs is left out.
    """
    check_place("model", path)
    *first, (name, last) = model.pipeline.steps
    stored = {
        "format": _FORMAT,
        "version": discernel.__version__,
        "pipeline": Pipeline([*first, (name, last.for_prediction())]),
        "preparation": model.preparation.as_plain(),
        "target": model.target,
        "dataset": model.dataset,
        "origin": asdict(model.origin),
    }
    return write_file(path, _skops().dumps(stored))


class _RefusedError(InvalidInputError):
    """A file that is a model, or looks like one, and is not loaded all the same."""


def load_model(path: str | Path) -> SavedModel:
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


def _checked(stored: Any, path: Path) -> SavedModel:
    """Return what a file holds as a model, or raise anything where it is none."""
    number, version = stored["format"], stored["version"]
    if not isinstance(number, int) or not isinstance(version, str):
        raise TypeError("its version is not said")
    if number != _FORMAT:
        remedy = (
            "a newer version. Update discernel"
            if number > _FORMAT
            else f"an older version than this one, {discernel.__version__}. Fit it again"
        )
        raise _RefusedError(f"{path.name} was written by discernel {version}, {remedy}.")
    model = SavedModel(
        stored["pipeline"],
        Preparation.from_plain(stored["preparation"]),
        stored["target"],
        stored["dataset"],
        Origin.from_plain(stored["origin"]),
    )
    if not isinstance(model.target, str) or not isinstance(model.dataset, str):
        raise TypeError("the names of target and data set must be text")
    # Whatever else is missing, or does not go together, breaks the prediction of a row.
    text, dates = model.preparation.categories, model.preparation.dates
    cells: dict[str, list[Any]] = {
        name: [None if name in dates else "" if name in text else 0.0]
        for name in model.preparation.columns
    }
    if any(kernel.takes_missing for kernel in model.pipeline[-1].kernels_):
        cells = {name: [None] for name in cells}  # which any source may be
    row = import_pandas().DataFrame(cells)
    shape = model.pipeline.predict_proba(row).shape
    if model.pipeline.predict(row).shape != (1,) or shape != (1, len(model.pipeline.classes_)):
        raise ValueError("it does not predict")
    return model


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
