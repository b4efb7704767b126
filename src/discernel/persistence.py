"""Fitted models in files that hold no code: `save`, `load`, and what `discernel fit` writes."""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import discernel.criteria as criteria
import discernel.kernels as kernels
import discernel.solvers as solvers
from discernel.bank import AutoBank, CombinedFeatures, CombinedKernel, LowRank, Tiled
from discernel.bank.base import Centering, Uncentered
from discernel.bank.choice import Distributed, Iterative
from discernel.default.metric import Metric
from discernel.discriminant import ClassHead, Decision, Discriminant, Expectation, Link, Mixture
from discernel.estimators import akfd, discriminant, multilabel, ridge, separability, transformer
from discernel.estimators.base import BaseKernelEstimator
from discernel.exceptions import InvalidInputError, missing_extra
from discernel.inspection.explained import pipeline_steps
from discernel.inspection.facts import model_facts
from discernel.kernels.base import Named, Offset, Power, Product, Restricted, Scaled, Sum
from discernel.kernels.columns import Table
from discernel.kernels.features import ExactMap, NystromMap
from discernel.kernels.missing import _Reference
from discernel.kernels.weighted import WeightedKernels
from discernel.learn.chunks import Streamed
from discernel.learn.low_rank import LowRankLoss
from discernel.model.importances import Importances, LaterImportances
from discernel.model.model import Facts, KeptRows, Model
from discernel.papers.akfd.solver import Alternation
from discernel.papers.separability.criterion import Scatter
from discernel.papers.separability.spectrum import ReweighedSpectrum
from discernel.papers.separability.spectrum_choice import Trial
from discernel.plan.costs import Stage
from discernel.plan.plan import FitPlan
from discernel.programs.solution import Candidate, LearnedKernel, Progress
from discernel.rows.columns import Preparation
from discernel.rows.encoder import (
    EncodedDates,
    EncodedNumbers,
    EncodedValues,
    LeftOut,
    TableEncoder,
)
from discernel.rows.formats import import_pandas
from discernel.rows.reader import RowReader
from discernel.show.facts import ModelFacts, Origin, versions_here
from discernel.show.writing import check_place, write_file

__all__ = ["SavedModel", "load", "read_model", "save", "trusted_types", "write_model"]

#: Raised with every change that an older version could not read.
_FORMAT = 9
#: The first skops that builds nothing it was not told to trust.
_SKOPS = (0, 12)
#: Estimators, and what their models are made of. None of these runs anything when it is built.
_PARTS = (
    *(discriminant.KernelDiscriminant, discriminant.MultipleKernelDiscriminant),
    *(ridge.MultipleKernelRidge, ridge.NumberHead),
    *(multilabel.MultiLabelKernelDiscriminant, multilabel.LabelsHead),
    *(akfd.AKFDClassifier, akfd.AKFDFacts, akfd.AKFDHead, Alternation),
    *(separability.SeparabilityClassifier, separability.SpectrumFacts, separability.SpectrumHead),
    *(separability._Neighbors, ReweighedSpectrum, Scatter, Trial),
    *(transformer.LearnedKernelTransformer, transformer.KernelHead),
    *(Model, RowReader, KeptRows, Facts, Importances, LaterImportances, Streamed, LowRankLoss),
    *(Metric, FitPlan, Stage),
    *(ClassHead, Decision, Discriminant, Expectation, Link, Mixture),
    *(CombinedKernel, CombinedFeatures, Centering, Uncentered, WeightedKernels, Table),
    *(ExactMap, NystromMap, _Reference),
    *(Named, Offset, Power, Product, Restricted, Scaled, Sum),
    *(AutoBank, Distributed, Iterative, LowRank, Tiled),
    *(Candidate, LearnedKernel, Progress),
    *(TableEncoder, EncodedDates, EncodedNumbers, EncodedValues, LeftOut),
)
#: Plain data, arrays, and two parts of scikit-learn that a model may also hold.
_PLAIN = frozenset(
    (
        *(f"builtins.{name}" for name in ("bool", "dict", "float", "int", "list", "set", "slice")),
        *(f"builtins.{name}" for name in ("NoneType", "str", "tuple")),
        *(f"numpy.{name}" for name in ("bool", "bool_", "dtype", "ndarray", "str_")),
        *(f"numpy.{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)),
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing._data.StandardScaler",
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


def trusted_types() -> list[str]:
    """Return the types of discernel that a fitted model is made of, for skops and MLflow.

    `save` and `load` need no such list. It is for files that other tools write with skops: for
    ``skops.io.load(file, trusted=...)``, and for ``skops_trusted_types`` of MLflow.

    Returns
    -------
    list of str
        Full names of classes. None of them runs anything when it is built from a file.

    Examples
    --------
    >>> from discernel import trusted_types
    >>> "discernel.kernels.distance.RBF" in trusted_types()
    True
    """
    modules = (kernels, criteria, solvers)  # what users give an estimator
    public = [vars(module)[name] for module in modules for name in module.__all__]
    found = {*_PARTS, *(each for each in public if isinstance(each, type))}
    return sorted(f"{each.__module__}.{each.__qualname__}" for each in found)


# ---- models of any kind ------------------------------------------------------------------------


def save(model: Any, path: Any) -> Path:
    """Write a fitted model to a file that holds no code.

    The file keeps all that predictions, explanations and reports need, and the facts that
    ``discernel info`` shows. What only `partial_fit` needs, and callbacks, are left out; a model on
    a device is saved as one of NumPy.

    Parameters
    ----------
    model : estimator of discernel, or Pipeline that ends with one
        Fitted. The other steps of a pipeline may be `StandardScaler` and `TableEncoder`.
    path : str or Path
        The file, whose folder must be there. By custom it ends with ``.skops``.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        If it is no fitted model of discernel, or holds anything else, such as a function or a
        kernel of your own.
    FileWriteError
        If it cannot be written; what was there is as it was.
    MissingExtraError
        If skops is not installed.

    See Also
    --------
    load : Read the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import discernel
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> clf = discernel.MultipleKernelDiscriminant().fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     again = discernel.load(discernel.save(clf, Path(folder) / "wine.skops"))
    >>> bool((again.predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    return _write(path, {"model": model})


def load(path: str | Path) -> Any:
    """Return a model from a file that `save` or ``discernel fit`` wrote.

    Nothing in the file is run, and a file that holds anything but a model of discernel is refused
    before anything is built from it.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    estimator or Pipeline
        As it was saved; that of ``discernel fit`` is a pipeline that takes DataFrames.

    Raises
    ------
    InvalidInputError
        If the file is no model, is damaged, or was written by a version with another format.
    MissingExtraError
        If skops is not installed.

    See Also
    --------
    save : Write the file; with an example.

    Examples
    --------
    >>> import discernel
    >>> discernel.load("nothing.skops")
    Traceback (most recent call last):
    ...
    discernel.exceptions.InvalidInputError: The model must be a file that discernel.save or ...
    """
    return _read(Path(path))["model"]


# ---- models of the command line ----------------------------------------------------------------


@dataclass(frozen=True)
class SavedModel:
    """A fitted pipeline, and the columns of the files that it takes.

    Attributes
    ----------
    pipeline : Pipeline
        Its last step is an estimator of discernel; it takes tables.
    preparation : Preparation
        The kinds of the columns of a file.
    target : str
        The column with the labels.
    dataset : str
        The name of the data it was fitted to.
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
        """Return the facts about the model, as plain data."""
        facts = model_facts(
            self.pipeline,
            name=self.dataset,
            target=self.target,
            columns=self.columns,
            origin=replace(self.origin, target=self.target),
        )
        return replace(facts, n_columns=len(self.preparation.columns))


def write_model(model: SavedModel, path: str | Path) -> Path:
    """Write a model of the command line; see `save`."""
    return _write(
        path,
        {
            "model": model.pipeline,
            "preparation": dict(model.preparation.kinds),
            "target": model.target,
            "dataset": model.dataset,
            "origin": asdict(model.origin),
        },
    )


def read_model(path: str | Path) -> SavedModel:
    """Return a model of the command line; one that `save` wrote takes its own columns by name."""
    path = Path(path)
    stored = _read(path)
    with _damage_named(path):
        if set(stored) == {"format", "version", "model"}:
            return _of_python(stored["model"], path.stem)
        model = SavedModel(
            stored["model"],
            Preparation({_text(k): _text(v) for k, v in stored["preparation"].items()}),
            _text(stored["target"]),
            _text(stored["dataset"]),
            _origin(stored["origin"]),
        )
        _check_prediction(model)
        return model


def _of_python(model: Any, name: str) -> SavedModel:
    """Return a model that `save` wrote, with the columns that it was fitted to."""
    learner = _learner(model)
    pipeline = Pipeline([("model", model)]) if learner is model else model
    reader, first = learner.model_.reader, pipeline[0]
    encoder = first if isinstance(first, TableEncoder) else reader.encoder
    names = getattr(pipeline, "feature_names_in_", None)
    if names is None:
        names = [f"column {i}" for i in range(reader.n_features or 0)]
    names = tuple(map(str, names))
    prepared = Preparation.of(names, encoder)
    if encoder is None and reader.is_number is not None:
        kinds = ("number" if each else "category" for each in reader.is_number)
        prepared = Preparation(dict(zip(names, kinds, strict=True)))
    return SavedModel(pipeline, prepared, "", name)


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


def _learner(model: Any) -> BaseKernelEstimator:
    """Return the estimator of discernel that a model is, or ends with."""
    *_, last = model, *pipeline_steps(model)
    if not isinstance(last, BaseKernelEstimator):
        raise InvalidInputError(
            "The model must be an estimator of discernel, or a Pipeline that ends with one. "
            f"Got {model!r}."
        )
    return last


def _write(path: Any, content: Mapping[str, Any]) -> Path:
    check_place("model", path)
    model = content["model"]
    learner = _learner(model)
    check_is_fitted(learner, "model_")
    kept: Any = learner.for_prediction().to_cpu()
    if learner is not model:
        kept = Pipeline([*model.steps[:-1], (model.steps[-1][0], kept)])
    version = versions_here()["discernel"]
    stored = {"format": _FORMAT, "version": version, **content, "model": kept}
    written: bytes = _skops().dumps(stored)
    if unknown := _unknown_types(io.BytesIO(written)):
        raise InvalidInputError(
            "The model must be made of parts of discernel, StandardScaler and plain data. Got "
            f"{', '.join(unknown)}. Keep it with pickle or skops, where you trust the file: "
            "skops.io.dump(model, path), and to load it, skops.io.load(path, trusted=["
            "*discernel.trusted_types(), ...]) with the names of the other parts."
        )
    return write_file(path, written)


class _RefusedError(InvalidInputError):
    """A file that is a model, or looks like one, and is not loaded all the same."""


def _read(path: Path) -> dict[str, Any]:
    """Return what a file holds; a file with anything but a model in it is refused."""
    skops = _skops()
    if not path.is_file():
        raise InvalidInputError(
            "The model must be a file that discernel.save or `discernel fit` wrote. There is none "
            f"at {str(path)!r}."
        )
    with _damage_named(path):
        if unknown := _unknown_types(path):
            raise _RefusedError(
                f"{path.name} holds {', '.join(unknown)}, which no model of ours has. It was not "
                "loaded."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of another scikit-learn; what breaks is said below
            stored = skops.load(path, trusted=trusted_types())
        _check_format(stored, path)
        check_is_fitted(_learner(stored["model"]), "model_")
        if not isinstance(_learner(stored["model"]).model_, Model):
            raise TypeError("it has no model")
        return dict(stored)


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Raise one error that names the file, whatever goes wrong with what it holds."""
    try:
        yield
    except (_RefusedError, PermissionError):
        raise
    # A file can be anything, so that reading it can fail in any way.
    except Exception as error:
        brief = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise InvalidInputError(
            f"{path.name} must be a model that discernel.save or `discernel fit` wrote, with this "
            f"version of discernel or one like it. It is another file, or damaged ({brief}). Fit "
            "it again."
        ) from error


def _unknown_types(file: Any) -> list[str]:
    """Return what a file would have built that no model has; nothing is built for that."""
    with zipfile.ZipFile(file) as archive:
        schema = json.loads(archive.read("schema.json"))
    return sorted(set(_untrusted(schema, {*_PLAIN, *trusted_types()})))


def _untrusted(node: Any, trusted: Set[str]) -> Iterator[str]:
    """Yield what a schema would have built that is not trusted, wherever it is hidden."""
    if isinstance(node, list):
        for part in node:
            yield from _untrusted(part, trusted)
    if isinstance(node, dict):
        name, loader = f"{node.get('__module__')}.{node.get('__class__')}", node.get("__loader__")
        if {"__module__", "__class__"} & node.keys() and name not in trusted:
            yield name
        if "__loader__" in node and loader not in _LOADERS:
            yield f"{name} through {loader}"
        for part in node.values():
            yield from _untrusted(part, trusted)


# ---- checks ------------------------------------------------------------------------------------


def _check_format(stored: Any, path: Path) -> None:
    number, version = stored["format"], _text(stored["version"])
    if not isinstance(number, int):
        raise TypeError("its version is not said")
    if number != _FORMAT:
        here = versions_here()["discernel"]
        remedy = (
            "a newer version. Update discernel"
            if number > _FORMAT
            else f"in a format that this version, {here}, no longer reads. Fit it again"
        )
        raise _RefusedError(f"{path.name} was written by discernel {version}, {remedy}.")


def _text(value: Any) -> str:
    """Return a text of a file, or raise where it is none."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} must be text")
    return value


def _origin(plain: Mapping[str, Any]) -> Origin:
    """Return what ``asdict`` was called on, or raise anything where it is none."""
    names = ("source", "digest", "command", "created", "target")
    words: dict[str, Any] = {name: _text(plain[name]) for name in names}
    return Origin(
        **words,
        versions={str(k): str(version) for k, version in plain["versions"].items()},
        class_counts={str(k): int(n) for k, n in plain["class_counts"].items()},
        columns={str(k): str(use) for k, use in plain["columns"].items()},
        identifiers=tuple(map(_text, plain["identifiers"])),
        notes=tuple(map(_text, plain["notes"])),
    )


def _check_prediction(model: SavedModel) -> None:
    """Raise anything where the parts of a model do not go together: it cannot predict a row."""
    text, dates = model.preparation.categories, model.preparation.dates
    cells: dict[str, list[Any]] = {
        name: [None if name in dates else "" if name in text else 0.0]
        for name in model.preparation.columns
    }
    if any(kernel.takes_missing for kernel in model.pipeline[-1].kernels_):
        cells = {name: [None] for name in cells}  # which any source may be
    row = import_pandas().DataFrame(cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names of columns
        shapes = model.pipeline.predict(row).shape, model.pipeline.predict_proba(row).shape
    if shapes != ((1,), (1, len(model.pipeline.classes_))):
        raise ValueError("it does not predict")
