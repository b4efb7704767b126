"""The methods that can be compared, by name, and the choice of those that suit a data set."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegression, RidgeCV

from discernel.arrays import memory_limit
from discernel.compare.fitting import (
    PeerClassifier,
    discriminant,
    kernel_ridge,
    plain_fit,
    single,
    svc_grid,
    svr_grid,
)
from discernel.compare.plan import Method, Plan
from discernel.compare.store import Result
from discernel.compare.tasks import TrainTestSplit
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.rows.labelled import holds_numbers

#: Bytes per entry of a kernel matrix, times the number of copies while kernels are learned.
_BYTES_PER_ENTRY = 8 * 3
#: The default number of candidate kernels; several views have a few more.
_KERNELS = 10


@dataclass(frozen=True)
class Entrant:
    """A method that can be compared.

    Attributes
    ----------
    name, kind : str
        Name in tables, and key of the function that runs the method.
    run : callable
        Function of a split and options that returns a result; methods of one kind share it.
    options : dict
        Options of the method, as plain data.
    slow_from : float
        Number of training rows from which a fit takes an hour or more. The method is then omitted
        unless it is requested by name.
    needs_two_rows : bool
        Whether the fit holds out rows, so that it needs two training rows of every class.
    package : str
        Package to install for the method; empty for scikit-learn and discernel.
    is_default : bool
        Whether the method is compared by default, if its package is installed.
    """

    name: str
    kind: str
    run: Callable[[TrainTestSplit, dict[str, Any]], Result]
    options: Mapping[str, Any] = field(default_factory=dict)
    slow_from: float = math.inf
    needs_two_rows: bool = False
    package: str = ""
    is_default: bool = True

    @property
    def is_installed(self) -> bool:
        """Whether the package is installed; it is not imported."""
        return not self.package or find_spec(self.package) is not None


def _learner(name: str, criterion: str, is_default: bool = False) -> Entrant:
    """Return a `MultipleKernelDiscriminant` with a criterion."""
    options = {"criterion": criterion}
    return Entrant(
        name, "discriminant", discriminant, options, needs_two_rows=True, is_default=is_default
    )


def _peer(
    name: str, package: str, maker: str, slow_from: float = math.inf, /, **given: Any
) -> Entrant:
    """Return a classifier of another package; see `PeerClassifier`."""
    run = partial(plain_fit, PeerClassifier(package, maker, **given))
    return Entrant(name, name.lower(), run, slow_from=slow_from, package=package)


_ONE_THREAD = {"device": "cpu", "n_threads": 1, "verbosity": 0}
_CATBOOST = {"thread_count": 1, "verbose": False, "allow_writing_files": False}
#: All methods: learned kernels, then baselines.
METHODS: tuple[Entrant, ...] = (
    _learner("discernel", "auto", True),
    _learner("rkda", "rkda", True),
    _learner("loo", "loo"),
    _learner("alignment", "alignment"),
    _learner("akfd", "akfd"),
    _learner("plain average", "uniform", True),
    Entrant("single kernel", "single", single, slow_from=2_000, needs_two_rows=True),
    Entrant("SVC grid", "svc_grid", svc_grid, {"probabilities": True}, slow_from=10_000),
    Entrant("forest", "forest", partial(plain_fit, RandomForestClassifier(500))),
    Entrant("boosting", "boosting", partial(plain_fit, HistGradientBoostingClassifier())),
    Entrant("logistic", "logistic", partial(plain_fit, LogisticRegression(max_iter=10_000))),
    Entrant(
        "LDA",
        "lda",
        # Shrinkage, because the covariance may be singular.
        partial(plain_fit, LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
        is_default=False,
    ),
    _peer("LightGBM", "lightgbm", "LGBMClassifier", options={"n_jobs": 1, "verbose": -1}),
    _peer("XGBoost", "xgboost", "XGBClassifier", options={"n_jobs": 1}),
    _peer("CatBoost", "catboost", "CatBoostClassifier", options=_CATBOOST, seed="random_seed"),
    # Recursive feature machines.
    _peer("xRFM", "xrfm", "xRFM", 50_000, options={"device": "cpu", "verbose": False}, tunes=True),
    # Neural networks: tuned defaults, parameter-efficient ensemble, pretrained on synthetic tables.
    _peer("RealMLP", "pytabkit", "RealMLP_TD_Classifier", 20_000, options=_ONE_THREAD),
    _peer("TabM", "pytabkit", "TabM_D_Classifier", 20_000, options=_ONE_THREAD),
    _peer("TabPFN", "tabpfn", "TabPFNClassifier", 5_000, options={"n_jobs": 1}),
    Entrant("majority", "majority", partial(plain_fit, DummyClassifier(strategy="prior"))),
)


def _ridge(name: str, criterion: str) -> Entrant:
    """Return a `MultipleKernelRidge` with a criterion."""
    return Entrant(name, "kernel_ridge", kernel_ridge, {"criterion": criterion})


#: All methods that predict numbers: learned kernels, then baselines.
NUMBER_METHODS: tuple[Entrant, ...] = (
    _ridge("discernel", "auto"),
    _ridge("rkda", "rkda"),
    _ridge("plain average", "uniform"),
    Entrant("SVR grid", "svr_grid", svr_grid, slow_from=10_000),
    Entrant(
        "Gaussian process",
        "gaussian_process",
        partial(
            plain_fit,
            GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(), normalize_y=True),
        ),
        slow_from=3_000,
    ),
    Entrant("forest", "forest_numbers", partial(plain_fit, RandomForestRegressor(500))),
    Entrant("boosting", "boosting_numbers", partial(plain_fit, HistGradientBoostingRegressor())),
    Entrant("ridge", "ridge", partial(plain_fit, RidgeCV(alphas=np.logspace(-3, 5, 17)))),
    Entrant("mean", "mean", partial(plain_fit, DummyRegressor())),
)
#: The methods that are compared by default: of classes, and of numbers.
DEFAULT_METHODS, DEFAULT_NUMBER_METHODS = (
    tuple(method.name for method in methods if method.is_default and method.is_installed)
    for methods in (METHODS, NUMBER_METHODS)
)
#: The function of each kind of method.
KINDS: dict[str, Callable[[TrainTestSplit, dict[str, Any]], Result]] = {
    method.kind: method.run for method in (*METHODS, *NUMBER_METHODS)
}


def find_method(name: str, *, numbers: bool = False) -> Method:
    """Return a method by its name, or raise an error that lists them.

    Parameters
    ----------
    name : str
        Name in upper or lower case, with hyphens or spaces; "auto" is discernel's default.
    numbers : bool, default=False
        Whether the method predicts numbers, not classes.
    """
    methods = NUMBER_METHODS if numbers else METHODS
    known = {method.name.lower(): method for method in methods}
    found = (known | {"auto": known["discernel"]}).get(re.sub("[-_]", " ", name.lower()))
    if found is None:
        raise unknown_choice("method", name, [method.name for method in methods])
    if not found.is_installed:
        raise InvalidInputError(f"{found.name} is not installed. Run: pip install {found.package}")
    return Method(found.name, found.kind, found.options)


def method_name(kind: str, options: Mapping[str, Any]) -> str:
    """Return a readable name for a method, given its kind and options.

    Parameters
    ----------
    kind : str
        The kind of the method.
    options : dict
        Its options.

    Examples
    --------
    >>> from discernel.compare.methods import method_name
    >>> method_name("discriminant", {"criterion": "uniform"})
    'plain average'
    >>> method_name("discriminant", {"criterion": "rkda", "regularization": 0.01})
    'discriminant, criterion rkda, regularization 0.01'
    """
    for method in (*METHODS, *NUMBER_METHODS):
        if method.kind == kind and dict(method.options) == dict(options):
            return method.name
    listed = (f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in options.items())
    return ", ".join([kind, *listed]).replace('"', "")


# ---- methods that suit a data set ----------------------------------------------------------------


def smallest_class(y: NDArray[Any], n_rows: int) -> tuple[Any, int]:
    """Return the smallest class, and its number of rows in a stratified sample of n_rows rows."""
    classes, counts = np.unique(y, return_counts=True)
    smallest = int(np.argmin(counts))
    return classes[smallest].item(), int(counts[smallest]) * n_rows // len(y)


def without_unsuitable(
    plan: Plan, y: NDArray[Any], n_rows: int, *, named: bool
) -> tuple[Plan, list[str]]:
    """Return a plan without unsuitable methods, and notes that say which were omitted and why.

    Parameters
    ----------
    plan : Plan
        A plan with one data set.
    y : ndarray of shape (n_samples,)
        Labels of the data set.
    n_rows : int
        Number of rows used.
    named : bool
        Whether the methods were requested by name; slow methods are then kept.
    """
    n_train, numbers = round(plan.splits.train_size * n_rows), holds_numbers(y)
    label, least = ("", n_rows) if numbers else smallest_class(y, n_rows)
    # A stratified split may round the rows of a class down.
    in_training = math.floor(round(least * plan.splits.train_size, 6))
    known = {each.name: each for each in (NUMBER_METHODS if numbers else METHODS)}
    reasons: dict[str, list[str]] = {}
    kept = []
    for method in plan.methods:
        entrant = known[method.name]
        if entrant.needs_two_rows and in_training < 2:
            reason = f"needs two training rows of every class, and {label!r} has too few"
        elif not named and n_train >= entrant.slow_from:
            reason = f"takes hours with {n_train:,} rows; request it by name to run it"
        else:
            kept.append(method)
            continue
        reasons.setdefault(reason, []).append(method.name)
    notes = [f"left out {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    if not kept:
        raise InvalidInputError(
            f"At least one method must be able to learn from these rows. {'; '.join(notes)}. "
            "Choose other methods, more rows or fewer classes."
        )
    return replace(plan, methods=tuple(kept)), notes


def fitting_jobs(n_train: int, n_jobs: int | None = None) -> int:
    """Return the number of cells to run in parallel: as many as memory allows, at least one.

    Parameters
    ----------
    n_train : int
        Number of training rows per cell.
    n_jobs : int, optional
        Largest number; by default the number of cores.
    """
    wanted, memory = effective_n_jobs(-1 if n_jobs is None else n_jobs), memory_limit()
    if memory is None:
        return int(wanted)
    matrices = _BYTES_PER_ENTRY * _KERNELS * n_train**2
    return int(min(wanted, max(1, memory // matrices)))
