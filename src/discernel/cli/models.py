"""Fitted models in files that hold no code: what `fit` writes and `predict` reads."""

from __future__ import annotations

import zipfile
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
from discernel.experiments.compare import fitting_jobs
from discernel.experiments.files import Preparation, open_file
from discernel.experiments.formats import read_table
from discernel.experiments.methods import make_kernels
from discernel.experiments.plan import Data
from discernel.experiments.tasks import Division

__all__ = ["Model", "Predictions", "fit_model", "load_model", "predict_rows", "save_model"]

#: Raised with every change that an older version could not read.
_FORMAT = 1
#: What a model is made of, beside NumPy and scikit-learn, which skops knows.
_TRUSTED = (
    "discernel.bank.base.Centering",
    "discernel.bank.combined.CombinedKernel",
    "discernel.discriminant.Decision",
    "discernel.discriminant.Discriminant",
    "discernel.estimators.discriminant.MultipleKernelDiscriminant",
    "discernel.kernels.base.Named",
    "discernel.kernels.base.Restricted",
    "discernel.kernels.distance.RBF",
    "discernel.kernels.inner.Linear",
    "discernel.learners.solution.Candidate",
    "discernel.learners.solution.LearnedKernel",
    "discernel.learners.solution.Progress",
)


@dataclass(frozen=True)
class Model:
    """A fitted pipeline, and how the columns of a file become its features.

    Attributes
    ----------
    pipeline : Pipeline
        Standardisation, then a `MultipleKernelDiscriminant`.
    preparation : Preparation
        What is done to the columns of a file.
    target : str
        The column with the labels.
    dataset : str
        What it was fitted to.
    """

    pipeline: Pipeline
    preparation: Preparation
    target: str
    dataset: str


@dataclass(frozen=True)
class Predictions:
    """The classes of some rows, their probabilities, and of the labels known how many are right."""

    labels: NDArray[Any]
    probabilities: NDArray[np.float64]
    classes: NDArray[Any]
    n_known: int = 0
    n_right: int = 0


def fit_model(data: Data, criterion: str = "auto") -> tuple[Model, Dataset, tuple[str, ...]]:
    """Return a model fitted to all rows, the rows, and notes on them.

    Parameters
    ----------
    data : Data
        A file or the name of a data set.
    criterion : str, default="auto"
        What makes a combination of kernels good.
    """
    if data.file:
        opened = open_file(name=data.name, **data.file)
        dataset, preparation, target = opened.dataset, opened.preparation, opened.target
        notes = opened.notes
    else:
        dataset, notes = load(data.name), ()
        preparation, target = _of_catalog(dataset), "target"
    fitting_jobs(len(dataset.y), 1)
    whole = Division(dataset.X, dataset.X, dataset.y, dataset.y, dataset.views)
    pipeline = make_pipeline(
        StandardScaler(),
        discernel.MultipleKernelDiscriminant(make_kernels("auto", whole), criterion=criterion),
    ).fit(dataset.X, dataset.y)
    return Model(pipeline, preparation, target, dataset.name), dataset, notes


def _of_catalog(dataset: Dataset) -> Preparation:
    views = {view: dataset.feature_names[columns] for view, columns in dataset.views.items()}
    return Preparation(dataset.feature_names, views=views)


def predict_rows(model: Model, source: str) -> Predictions:
    """Return what a model says of the rows of a file, or of a data set by its name.

    Parameters
    ----------
    model : Model
        From `load_model`.
    source : str
        The file or the name.
    """
    path = Path(source)
    if path.suffix or path.is_file():
        table, _ = read_table(path)
        X = model.preparation.apply(table, path.name)
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
        *((0, 0) if y is None else _count_right(labels, y)),
    )


def _count_right(labels: NDArray[Any], truth: Any) -> tuple[int, int]:
    """Return how many labels are known, and how many of these are predicted."""
    import pandas as pd

    truth = pd.Series(truth)
    known = truth.notna().to_numpy()
    if labels.dtype.kind == "i":  # a file may write 1 as 1.0
        right = pd.to_numeric(truth, errors="coerce").to_numpy() == labels
    else:
        right = truth.astype(str).to_numpy() == labels
    return int(known.sum()), int(np.sum(right & known))


# ---- files -------------------------------------------------------------------------------------


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise missing_extra("Saving and loading models needs skops", "app") from error
    return skops.io


def save_model(model: Model, path: str | Path) -> Path:
    """Write a model to a file that loading runs no code from.

    Parameters
    ----------
    model : Model
        From `fit_model`.
    path : str or Path
        The file.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"The model must go to a folder that is there. Got {str(path)!r}. Make its folder."
        )
    stored = {
        "format": _FORMAT,
        "version": discernel.__version__,
        "pipeline": model.pipeline,
        "preparation": model.preparation.as_plain(),
        "target": model.target,
        "dataset": model.dataset,
    }
    _skops().dump(stored, path)
    return path


def load_model(path: str | Path) -> Model:
    """Return a model from a file; a file with anything else in it is refused.

    Parameters
    ----------
    path : str or Path
        What `save_model` wrote.
    """
    path, skops = Path(path), _skops()
    if not path.is_file():
        raise InvalidInputError(
            f"The model must be a file that `discernel fit` wrote. There is none at {str(path)!r}."
        )
    try:
        strange = sorted(set(skops.get_untrusted_types(file=path)) - set(_TRUSTED))
        if strange:
            raise InvalidInputError(
                f"{path.name} holds {', '.join(strange)}, which no model of ours has. It was not "
                "loaded."
            )
        stored = skops.load(path, trusted=list(_TRUSTED))
        if stored["format"] > _FORMAT:
            raise InvalidInputError(
                f"{path.name} was written by discernel {stored['version']}, a newer version. "
                "Update discernel."
            )
        return Model(
            stored["pipeline"],
            Preparation(**stored["preparation"]),
            stored["target"],
            stored["dataset"],
        )
    except (zipfile.BadZipFile, KeyError, TypeError) as error:
        raise InvalidInputError(
            f"{path.name} must be a model that `discernel fit` wrote. It is another file."
        ) from error
