"""Save and load fitted models in files that contain no code, in Python and on the command line."""

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
from discernel.estimators.base import BaseKernelEstimator
from discernel.exceptions import InvalidInputError, missing_extra, needs_extra
from discernel.inspection.explained import input_encoder, pipeline_steps
from discernel.inspection.facts import model_facts
from discernel.model.model import Model
from discernel.rows.columns import TableSchema
from discernel.rows.encoder import DateEncoder, TableEncoder
from discernel.rows.formats import ENDINGS, file_ending, import_pandas
from discernel.rows.writing import check_writable_path, write_file
from discernel.show.facts import ModelFacts, Origin, versions_here

__all__ = ["SavedModel", "load", "read_model", "save", "trusted_types", "write_model"]

#: The version of the file format, incremented with each incompatible change.
_FORMAT = 11
#: The first version of skops that builds only trusted types.
_SKOPS = (0, 12)
#: Estimators and the parts of their models, by module. Building them from a file runs no code of
#: the file.
_PARTS = {
    "bank.base": "Centering Uncentered",
    "bank.choice": "AutoBank Distributed Iterative LowRank Tiled",
    "bank.combined": "CombinedFeatures CombinedKernel TargetKernels",
    "default.metric": "Metric",
    "discriminant.decision": "Decision",
    "discriminant.expectation": "Expectation",
    "discriminant.gaussian": "Discriminant",
    "discriminant.head": "ClassHead",
    "discriminant.links": "Link Mixture",
    "discriminant.numbers": "HeldOutNumbers Spread",
    "estimators.discriminant": "KernelDiscriminant MultipleKernelDiscriminant",
    "estimators.multilabel": "LabelsHead MultiLabelKernelDiscriminant",
    "estimators.ridge": "MultipleKernelRidge NumberHead",
    "estimators.transformer": "KernelHead LearnedKernelTransformer",
    "kernels.columns": "Table",
    "kernels.composites": "Named Offset Power Product Restricted Scaled Sum",
    "kernels.curves": "Curves",
    "kernels.features": "ExactMap NystromMap",
    "kernels.missing": "_Reference",
    "kernels.weighted": "WeightedKernels",
    "learn.chunks": "Streamed",
    "learn.low_rank": "LowRankLoss",
    "model.importances": "Importances",
    "model.model": "Facts KeptRows Model",
    "papers.akfd.estimator": "AKFDClassifier AKFDFacts AKFDHead",
    "papers.akfd.solver": "Alternation",
    "papers.separability.criterion": "Scatter",
    "papers.separability.estimator": "SeparabilityClassifier SpectrumFacts SpectrumHead _Neighbors",
    "papers.separability.spectrum": "ReweighedSpectrum",
    "papers.separability.spectrum_choice": "Trial",
    "plan.costs": "Stage",
    "plan.plan": "FitPlan",
    "programs.solution": "Candidate LearnedKernel Progress TargetWeights",
    "rows.encoder": "DateEncoder EncodedDates EncodedNumbers EncodedValues LeftOut TableEncoder",
    "rows.reader": "RowReader",
}
#: Other types in model files: plain data, arrays, and two classes of scikit-learn.
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
#: The loaders of skops that are allowed; none of them calls functions named by a file.
_LOADERS = frozenset(
    f"{name}Node"
    for name in (
        *("Cached", "Dict", "Dtype", "Json", "List", "NdArray"),
        *("Object", "Set", "Slice", "Tuple", "Type"),
    )
)


def trusted_types() -> list[str]:
    """Return the discernel types that a fitted model may contain, for skops and MLflow.

    Use the list with ``skops.io.load(file, trusted=...)`` and with the parameter
    ``skops_trusted_types`` of MLflow. `save` and `load` do not need it.

    Returns
    -------
    list of str
        Full names of classes. Building them from a file runs no code of the file.

    Examples
    --------
    >>> from discernel import trusted_types
    >>> "discernel.kernels.distance.RBF" in trusted_types()
    True
    """
    parts = {
        f"discernel.{module}.{name}" for module, names in _PARTS.items() for name in names.split()
    }
    modules = (kernels, criteria, solvers)  # parameters of estimators
    public = [vars(module)[name] for module in modules for name in module.__all__]
    found = (f"{each.__module__}.{each.__qualname__}" for each in public if isinstance(each, type))
    return sorted(parts.union(found))


# ---- save and load -----------------------------------------------------------------------------


def save(model: Any, path: Any) -> Path:
    """Save a fitted model to a file that contains no code.

    The file contains what predictions, explanations and reports need, and the facts that
    ``discernel info`` shows. Callbacks and the state of `partial_fit` are left out; a model on a
    device is saved as a NumPy model.

    Parameters
    ----------
    model : estimator of discernel, or Pipeline that ends with one
        A fitted model. The other steps of a pipeline may be `StandardScaler` and `TableEncoder`.
    path : str or Path
        The file, in an existing folder, usually with the extension ``.skops``.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        If the model is not a fitted model of discernel, or contains other types, such as functions
        or custom kernels.
    FileWriteError
        If the file cannot be written; an existing file is then unchanged.
    MissingExtraError
        If skops is not installed.

    See Also
    --------
    load : Load the model.

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
    """Load a model from a file written by `save` or ``discernel fit``.

    Loading runs no code of the file. Files with types that no model of discernel contains are
    refused before any object is built.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    estimator or Pipeline
        The saved model. Models of ``discernel fit`` are pipelines that take DataFrames.

    Raises
    ------
    InvalidInputError
        If the file is not a model, is damaged, or has another format version.
    MissingExtraError
        If skops is not installed.

    See Also
    --------
    save : Save a model; with an example.

    Examples
    --------
    >>> import discernel
    >>> discernel.load("nothing.skops")
    Traceback (most recent call last):
    ...
    discernel.exceptions.InvalidInputError: The model must be a file that discernel.save or ...
    """
    return _read(Path(path))["model"]


# ---- models on the command line ----------------------------------------------------------------


@dataclass(frozen=True)
class SavedModel:
    """A fitted pipeline, and the columns of the files that it predicts.

    Attributes
    ----------
    pipeline : Pipeline
        A pipeline for DataFrames, whose last step is an estimator of discernel.
    schema : TableSchema
        The columns of a file that the model uses, and their kinds.
    target : str
        The column with the labels.
    dataset : str
        The name of the training data.
    origin : Origin
        The data and the command that the model was fitted with.
    """

    pipeline: Pipeline
    schema: TableSchema
    target: str
    dataset: str
    origin: Origin = field(default_factory=Origin)

    @property
    def columns(self) -> list[str]:
        """The column of the table for each column that the last step of the pipeline gets."""
        names, first = list(self.schema.columns), self.pipeline[0]
        is_encoder = isinstance(first, (DateEncoder, TableEncoder))
        return [names[i] for i in first.source] if is_encoder else names

    @property
    def encoder(self) -> TableEncoder | None:
        """The encoder of the table: the first step of the pipeline, or part of the estimator."""
        return input_encoder(self.pipeline)

    def describe(self) -> ModelFacts:
        """Return the facts about the model, as plain data."""
        facts = model_facts(
            self.pipeline,
            name=self.dataset,
            target=self.target,
            columns=self.columns,
            origin=replace(self.origin, target=self.target),
        )
        return replace(facts, n_columns=len(self.schema.columns))


def write_model(model: SavedModel, path: str | Path) -> Path:
    """Save a model of the command line; see `save`."""
    return _write(
        path,
        {
            "model": model.pipeline,
            "schema": dict(model.schema.kinds),
            "target": model.target,
            "dataset": model.dataset,
            "origin": asdict(model.origin),
        },
    )


def read_model(path: str | Path) -> SavedModel:
    """Load a model for the command line, from a file of `write_model` or of `save`."""
    path = Path(path)
    stored = _read(path)
    with _name_damaged_file(path):
        if set(stored) == {"format", "version", "model"}:
            return _from_python(stored["model"], path.stem)
        model = SavedModel(
            stored["model"],
            TableSchema({_text(k): _text(v) for k, v in stored["schema"].items()}),
            _text(stored["target"]),
            _text(stored["dataset"]),
            _origin(stored["origin"]),
        )
        _check_prediction(model)
        return model


def _from_python(model: Any, name: str) -> SavedModel:
    """Return the `SavedModel` of a model that was saved in Python."""
    learner = _learner(model)
    pipeline = Pipeline([("model", model)]) if learner is model else model
    reader = learner.model_.reader
    encoder = input_encoder(pipeline)
    names = getattr(pipeline, "feature_names_in_", None)
    if names is None:
        names = [f"column {i}" for i in range(reader.n_features or 0)]
    names = tuple(map(str, names))
    schema = TableSchema.from_encoder(names, encoder)
    if encoder is None and reader.is_number is not None:
        kinds = ("number" if each else "category" for each in reader.is_number)
        schema = TableSchema(dict(zip(names, kinds, strict=True)))
    return SavedModel(pipeline, schema, "", name)


# ---- files -------------------------------------------------------------------------------------


def _skops() -> Any:
    wanted = ".".join(map(str, _SKOPS))
    need = f"Saving and loading models needs skops {wanted} or newer"
    with needs_extra(need, "app"):
        import skops
        import skops.io
    found = re.match(r"(\d+)\.(\d+)", skops.__version__)
    if found is None or tuple(map(int, found.groups())) < _SKOPS:
        why = f"because older versions run code from crafted files; skops {skops.__version__}"
        raise missing_extra(f"{need}, {why} is installed", "app")
    return skops.io


def _learner(model: Any) -> BaseKernelEstimator:
    """Return the estimator of discernel: the model itself, or the last step of a pipeline."""
    *_, last = model, *pipeline_steps(model)
    if not isinstance(last, BaseKernelEstimator):
        raise InvalidInputError(
            "The model must be an estimator of discernel, or a Pipeline that ends with one. "
            f"Got {model!r}."
        )
    return last


def _write(path: Any, content: Mapping[str, Any]) -> Path:
    check_writable_path("model", path)
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
            "The model must contain only types of discernel, StandardScaler and plain data. Got "
            f"{', '.join(unknown)}. If you trust the file, save the model with "
            "skops.io.dump(model, path), and load it with skops.io.load(path, trusted=["
            "*discernel.trusted_types(), ...]), with the names of the other types."
        )
    return write_file(path, written)


def is_model(path: Path) -> bool:
    """Whether a file is a model, or another archive with a schema of skops."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "schema.json" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


class _RefusedError(InvalidInputError):
    """A model file that is refused for its types or its format version."""


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a model file, or raise an error if it is not a valid model."""
    skops = _skops()
    if not path.is_file():
        raise InvalidInputError(
            "The model must be a file that discernel.save or `discernel fit` wrote. Found no file "
            f"at {str(path)!r}."
        )
    if file_ending(path) in ENDINGS and not is_model(path):
        raise InvalidInputError(
            "The model must be a file that discernel.save or `discernel fit` wrote. Got a file of "
            f"rows, {path.name}. Name the model first, and then the rows."
        )
    with _name_damaged_file(path):
        if unknown := _unknown_types(path):
            raise _RefusedError(
                f"{path.name} was not loaded. It contains {', '.join(unknown)}, which no model of "
                "discernel contains."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other versions of scikit-learn; checked below
            stored = skops.load(path, trusted=trusted_types())
        _check_format(stored, path)
        check_is_fitted(_learner(stored["model"]), "model_")
        if not isinstance(_learner(stored["model"]).model_, Model):
            raise TypeError("there is no model")
        return dict(stored)


@contextmanager
def _name_damaged_file(path: Path) -> Iterator[None]:
    """Convert any error about the content of a file to one error that names the file."""
    try:
        yield
    except (_RefusedError, PermissionError):
        raise
    # Reading an arbitrary file can raise any error.
    except Exception as error:
        brief = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise InvalidInputError(
            f"{path.name} must be a model that discernel.save or `discernel fit` wrote, with this "
            f"or a similar version of discernel. It is another kind of file, or damaged ({brief}). "
            "Fit the model again."
        ) from error


def _unknown_types(file: Any) -> list[str]:
    """Return the types in a model file that are not trusted, without building any object."""
    with zipfile.ZipFile(file) as archive:
        schema = json.loads(archive.read("schema.json"))
    return sorted(set(_untrusted(schema, {*_PLAIN, *trusted_types()})))


def _untrusted(node: Any, trusted: Set[str]) -> Iterator[str]:
    """Yield the types and loaders at any depth of a schema that are not trusted."""
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
    """Raise an error if a file has another format version."""
    number, version = stored["format"], _text(stored["version"])
    if not isinstance(number, int):
        raise TypeError("there is no format version")
    if number != _FORMAT:
        here = versions_here()["discernel"]
        remedy = (
            "a newer version. Update discernel"
            if number > _FORMAT
            else f"in a format that version {here} no longer reads. Fit the model again"
        )
        raise _RefusedError(f"{path.name} was written by discernel {version}, {remedy}.")


def _text(value: Any) -> str:
    """Return a text, or raise an error if it is not text."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} must be text")
    return value


def _origin(plain: Mapping[str, Any]) -> Origin:
    """Return an `Origin` from its plain data, or raise an error if they are invalid."""
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
    """Raise an error if a model cannot predict a row, because its parts do not fit together."""
    text, dates = model.schema.categories, model.schema.dates
    cells: dict[str, list[Any]] = {
        name: [None if name in dates else "" if name in text else 0.0]
        for name in model.schema.columns
    }
    if any(kernel.takes_missing for kernel in model.pipeline[-1].kernels_):
        cells = {name: [None] for name in cells}  # any source may be missing
    row = import_pandas().DataFrame(cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about feature names
        shapes, classes = [model.pipeline.predict(row).shape], model.pipeline[-1].model_.classes
        if classes is not None:
            shapes.append(model.pipeline.predict_proba(row).shape)
    if shapes != [(1,), *([] if classes is None else [(1, len(classes))])]:
        raise ValueError("the predictions have wrong shapes")
