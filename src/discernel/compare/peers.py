"""Classifiers of other packages, compared where they are installed, with their own defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split

from discernel.arrays import FloatArray


@dataclass(frozen=True)
class Peer:
    """A classifier of another package.

    Attributes
    ----------
    name, description : str
        As in tables, and in a few words.
    package, maker : str
        What is imported, and what makes the classifier there.
    options : dict
        One thread and no output; all else is left at the defaults that its authors recommend.
    seed : str
        What the parameter for the seed is called.
    tunes : bool
        Whether its fit also takes rows and labels to tune it by: a fifth of the training rows.
    slow_from : float
        Training rows from which on a fit takes an hour or more on a processor.
    """

    name: str
    description: str
    package: str
    maker: str
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: str = "random_state"
    tunes: bool = False
    slow_from: float = np.inf

    @property
    def kind(self) -> str:
        """The kind of method that it is in a plan."""
        return self.name.lower()

    @property
    def is_installed(self) -> bool:
        """Whether its package is here; it is not imported for that."""
        return find_spec(self.package) is not None

    def make(self, seed: int) -> Any:
        """Return the classifier, not fitted."""
        made = getattr(import_module(self.package), self.maker)
        return made(**{self.seed: seed}, **self.options)


_THREADED = {"device": "cpu", "n_threads": 1, "verbosity": 0}
#: The peers by the kinds of their methods.
PEERS: dict[str, Peer] = {
    peer.kind: peer
    for peer in (
        Peer(
            "LightGBM",
            "boosted trees of Microsoft",
            "lightgbm",
            "LGBMClassifier",
            {"n_jobs": 1, "verbose": -1},
        ),
        Peer("XGBoost", "boosted trees of DMLC", "xgboost", "XGBClassifier", {"n_jobs": 1}),
        Peer(
            "CatBoost",
            "boosted trees of Yandex",
            "catboost",
            "CatBoostClassifier",
            {"thread_count": 1, "verbose": False, "allow_writing_files": False},
            seed="random_seed",
        ),
        Peer(
            "xRFM",
            "recursive feature machines",
            "xrfm",
            "xRFM",
            {"device": "cpu", "verbose": False},
            tunes=True,
            slow_from=50_000,
        ),
        Peer(
            "RealMLP",
            "a network with tuned defaults",
            "pytabkit",
            "RealMLP_TD_Classifier",
            _THREADED,
            slow_from=20_000,
        ),
        Peer(
            "TabM",
            "an ensemble in one network",
            "pytabkit",
            "TabM_D_Classifier",
            _THREADED,
            slow_from=20_000,
        ),
        Peer(
            "TabPFN",
            "a network trained on made-up tables",
            "tabpfn",
            "TabPFNClassifier",
            {"n_jobs": 1},
            slow_from=5_000,
        ),
    )
}


class PeerClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A peer with labels of any kind: it is given the position of each label.

    Parameters
    ----------
    kind : str
        Which of `PEERS`.
    seed : int, default=0
        For whatever is random in it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    fitted_ : object
        The classifier of the package.
    """

    def __init__(self, kind: str, seed: int = 0) -> None:
        self.kind = kind
        self.seed = seed

    def fit(self, X: FloatArray, y: NDArray[Any]) -> Self:
        """Fit the classifier of the package."""
        peer = PEERS[self.kind]
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.fitted_, X = peer.make(self.seed), np.asarray(X, dtype=np.float32)
        given = [X, codes]
        if peer.tunes:
            X, X_tune, codes, tune = train_test_split(
                X, codes, test_size=0.2, random_state=self.seed, stratify=codes
            )
            given = [X, codes, X_tune, tune]
        self.fitted_.fit(*given)
        return self

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return the probability of each class."""
        rows = np.asarray(X, dtype=np.float32)
        return np.asarray(self.fitted_.predict_proba(rows), dtype=np.float64)

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Return the most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
