"""What is compared by name, and which of it can learn from the rows at hand."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from discernel.arrays import memory_limit
from discernel.compare.peers import PEERS
from discernel.compare.plan import Method, Plan
from discernel.exceptions import InvalidInputError, unknown_choice

#: Bytes an entry of a kernel matrix, times the copies held while kernels are learned.
_BYTES_AN_ENTRY = 8 * 3
#: The candidates by default; a few more for several views.
_KERNELS = 10
#: Kinds of methods that leave one row out at a time, or some of every class.
_LEAVE_OUT = ("discriminant", "single")
#: Kinds that keep the matrix of every kernel, and know no other way.
_KEEP_MATRICES = ("single",)
#: Training rows from which on kinds take hours: they are left out unless asked for by name.
_SLOW_FROM = {
    "single": 2_000,
    "svc_grid": 10_000,
    **{kind: peer.slow_from for kind, peer in PEERS.items()},
}


def _learner(criterion: str) -> Method:
    return Method(criterion, "discriminant", {"criterion": criterion})


#: All that can be compared, with what each is in a few words: learners, then baselines.
_DESCRIBED: tuple[tuple[Method, str], ...] = (
    (Method("discernel", "discriminant", {"criterion": "auto"}), "its default"),
    (_learner("rkda"), "kernel weights with a certificate"),
    (_learner("loo"), "weights of the least leave-one-out error"),
    (_learner("alignment"), "weights aligned with the classes"),
    (_learner("akfd"), "weights of automatic kernel Fisher discriminants"),
    (Method("plain average", "discriminant", {"criterion": "uniform"}), "all kernels alike"),
    (Method("single kernel", "single"), "the best one in cross-validation"),
    (Method("SVC grid", "svc_grid", {"probabilities": True}), "an RBF SVM, 40 settings tried"),
    (Method("forest", "forest"), "a random forest of 500 trees"),
    (Method("boosting", "boosting"), "gradient boosting on histograms"),
    (Method("logistic", "logistic"), "logistic regression"),
    (Method("LDA", "lda"), "linear discriminant analysis"),
    *((Method(peer.name, kind), peer.description) for kind, peer in PEERS.items()),
    (Method("majority", "majority"), "always the most frequent class"),
)
METHODS: tuple[Method, ...] = tuple(method for method, _ in _DESCRIBED)
#: What each method is, by its name.
DESCRIPTIONS: dict[str, str] = {method.name: words for method, words in _DESCRIBED}
#: What is compared unless methods are named: peers where they are installed.
DEFAULT_METHODS: tuple[str, ...] = (
    "discernel",
    "rkda",
    "plain average",
    "single kernel",
    "SVC grid",
    "forest",
    "boosting",
    "logistic",
    *(peer.name for peer in PEERS.values() if peer.is_installed),
    "majority",
)


def find_method(name: str) -> Method:
    """Return a method by its name, or raise an error that lists them.

    Parameters
    ----------
    name : str
        In small or capital letters, with hyphens or spaces; "auto" is discernel's default.
    """

    def bare(name: str) -> str:
        return name.lower().replace("-", " ").replace("_", " ")

    for method in METHODS:
        if bare(method.name) == ("discernel" if bare(name) == "auto" else bare(name)):
            peer = PEERS.get(method.kind)
            if peer is not None and not peer.is_installed:
                raise InvalidInputError(
                    f"{peer.name} must be installed to be compared. Run: pip install {peer.package}"
                )
            return method
    raise unknown_choice("method", name, [method.name for method in METHODS])


def method_name(kind: str, options: Mapping[str, Any]) -> str:
    """Return a readable name for a method of which only kind and options are known.

    Parameters
    ----------
    kind : str
        Which function of `discernel.compare.methods` it is.
    options : dict
        Its options.

    Examples
    --------
    >>> from discernel.compare.entrants import method_name
    >>> method_name("discriminant", {"criterion": "uniform"})
    'plain average'
    >>> method_name("discriminant", {"criterion": "rkda", "regularization": 0.01})
    'discriminant, criterion rkda, regularization 0.01'
    """
    for method in METHODS:
        if method.kind == kind and dict(method.options) == dict(options):
            return method.name
    return ", ".join([kind, *(f"{key} {_short(value)}" for key, value in options.items())])


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value).replace('"', "")


# ---- what fits -------------------------------------------------------------------------------


def smallest_class(y: NDArray[Any], n_rows: int) -> tuple[Any, int]:
    """Return the class with the fewest of so many rows, and how many these are."""
    classes, counts = np.unique(y, return_counts=True)
    smallest = int(np.argmin(counts))
    return classes[smallest].item(), int(counts[smallest]) * n_rows // len(y)


def without_unfit(
    plan: Plan, y: NDArray[Any], n_rows: int, *, named: bool
) -> tuple[Plan, list[str]]:
    """Return a plan without the methods that cannot do it, and a note on each that is left out.

    Parameters
    ----------
    plan : Plan
        Of one data set.
    y : ndarray of shape (n_samples,)
        Its labels.
    n_rows : int
        How many of its rows are taken.
    named : bool
        Whether the methods were asked for by name. Those that take hours are run then.
    """
    label, least = smallest_class(y, n_rows)
    n_train = round(plan.splits.train_size * n_rows)
    # A stratified division rounds the rows of a class down, or up.
    in_training = math.floor(round(least * plan.splits.train_size, 6))
    reasons: dict[str, list[str]] = {}
    kept = []
    for method in plan.methods:
        reason = _unfit(method.kind, n_train, in_training, named)
        if reason is None:
            kept.append(method)
        else:
            reasons.setdefault(reason.format(label=label), []).append(method.name)
    notes = [f"left out {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    if not kept:
        raise InvalidInputError(
            f"At least one method must be able to learn from these rows. {'; '.join(notes)}. Name "
            "other methods, or take more rows or fewer classes."
        )
    return replace(plan, methods=tuple(kept)), notes


def _unfit(kind: str, n_train: int, in_training: int, named: bool) -> str | None:
    """Return why a kind of method is left out; None where it is not."""
    if kind in _LEAVE_OUT and in_training < 2:
        return "needs two training rows of every class, and {label!r} has too few"
    memory = memory_limit()
    if kind in _KEEP_MATRICES and memory is not None and _matrix_bytes(n_train) > memory:
        needed = f"{_matrix_bytes(n_train) / 1e9:,.0f} GB"
        return f"keeps matrices of {n_train:,} rows, {needed} where there are {memory / 1e9:,.0f}"
    if not named and n_train >= _SLOW_FROM.get(kind, math.inf):
        return f"takes hours with {n_train:,} rows; it is run where it is asked for by name"
    return None


def _matrix_bytes(n_train: int) -> int:
    return _BYTES_AN_ENTRY * _KERNELS * n_train**2


def fitting_jobs(n_train: int, n_jobs: int | None = None) -> int:
    """Return how many cells to run side by side: one where a fit may take all memory.

    Parameters
    ----------
    n_train : int
        The training rows of a cell.
    n_jobs : int, optional
        The most; by default the cores of this machine.
    """
    wanted, memory = effective_n_jobs(-1 if n_jobs is None else n_jobs), memory_limit()
    if memory is None:
        return int(wanted)
    return int(min(wanted, max(1, memory // _matrix_bytes(n_train))))
