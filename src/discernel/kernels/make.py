"""Conversion of names, callables and lists to kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from discernel.exceptions import InvalidInputError, is_number, is_word, unknown_choice
from discernel.kernels.adapters import Function, GaussianProcess, Pairwise, Precomputed
from discernel.kernels.base import Kernel, Known
from discernel.kernels.composites import Standardized
from discernel.kernels.distance import RBF, ChiSquared, Exponential, Laplace
from discernel.kernels.inner import Cosine, Linear, Polynomial
from discernel.kernels.objects import (
    Intersection,
    Jaccard,
    Lookup,
    Matching,
    NGram,
    Spectrum,
    Tanimoto,
)

#: The kernels that have a name.
KINDS: dict[str, type[Kernel]] = {
    "rbf": RBF,
    "laplace": Laplace,
    "exponential": Exponential,
    "linear": Linear,
    "polynomial": Polynomial,
    "cosine": Cosine,
    "chi_squared": ChiSquared,
    "intersection": Intersection,
    "tanimoto": Tanimoto,
    "jaccard": Jaccard,
    "matching": Matching,
    "spectrum": Spectrum,
    "ngram": NGram,
    "lookup": Lookup,
}
#: The kernels without parameters by name, preferred to scikit-learn's: they share distances and
#: have derivatives.
_OWN: dict[str, Kernel] = {
    **{name: kind() for name, kind in KINDS.items() if kind is not Lookup},
    **dict.fromkeys(("poly", "polynomial"), Polynomial(degree=3, gamma=None)),
    "precomputed": Precomputed(),
}


def rbf_ladder(
    n_kernels: int = 9, *, center: float | str = "median", step: float = 2.0
) -> list[RBF]:
    """Return Gaussian kernels whose widths form a geometric sequence.

    Parameters
    ----------
    n_kernels : int, default=9
        The number of kernels.
    center : float or "median", default="median"
        The middle of the sequence: a number, or the median distance of the training set.
    step : float, default=2.0
        The ratio of neighbouring widths. With 2, each kernel is the fourth power of the next.

    Returns
    -------
    list of RBF
        From narrow to wide.

    Examples
    --------
    >>> [kernel.width for kernel in rbf_ladder(3, center=10.0)]
    [5.0, 10.0, 20.0]
    """
    if n_kernels < 1 or not step > 1:
        raise InvalidInputError(
            "A ladder needs at least one kernel and a step above 1. "
            f"Got n_kernels={n_kernels!r} and step={step!r}."
        )
    factors = float(step) ** (np.arange(n_kernels) - (n_kernels - 1) / 2)
    if is_word(center, "median"):
        # Without rounding, so that the kernels are powers of each other.
        return [RBF(width=f"{factor:.17g}*median") for factor in factors]
    if not is_number(center):
        raise InvalidInputError(f"The center must be a number or 'median'. Got {center!r}.")
    return [RBF(width=float(center) * float(factor)) for factor in factors]


def feature_kernels(columns: Any, kernel: Any = "rbf") -> dict[str, Kernel]:
    """Return one kernel for each feature, or for each group of features, by name.

    With a criterion of sparse weights, such as ``"rkda"``, learning their combination selects
    features, which [Fung04]_ leaves as future work. Weights are not importances: the smaller λ is,
    the more features of pure noise get weight.

    Parameters
    ----------
    columns : int, dataframe, sequence of columns, or mapping of group name to columns
        The number of features, a DataFrame, or a sequence of columns as in ``kernel.on``. A mapping
        makes one kernel for each group.
    kernel : kernel, str or callable, default="rbf"
        The kernel of each feature; ``"rbf"`` uses the median distance within the feature.

    Returns
    -------
    dict of str to Kernel
        Kernels for the parameter ``kernels`` of an estimator.

    Examples
    --------
    >>> list(feature_kernels({"shape": [0, 1], "colour": slice(2, 5)}))
    ['shape', 'colour']
    >>> list(feature_kernels(3))
    ['feature 0', 'feature 1', 'feature 2']
    """
    made = as_kernel(kernel)
    if isinstance(columns, Mapping):
        groups: dict[str, Any] = {str(name): group for name, group in columns.items()}
    elif isinstance(columns, (int, np.integer)):
        groups = {f"feature {i}": [i] for i in range(columns)}
    else:
        names = columns.columns if hasattr(columns, "columns") else columns
        groups = {
            name if isinstance(name, str) else f"feature {name}": [name] for name in list(names)
        }
    if not groups:
        raise InvalidInputError(
            f"There must be at least one feature to make a kernel of. Got {columns!r}."
        )
    return {name: made.on(group).named(name) for name, group in groups.items()}


def as_kernel(kernel: Any) -> Kernel:
    """Convert a name, callable or scikit-learn kernel to a kernel.

    Parameters
    ----------
    kernel : Kernel, str, callable or sklearn.gaussian_process.kernels.Kernel
        A name of a scikit-learn pairwise kernel has scikit-learn's default parameters, except
        ``"rbf"``: it is `RBF` with the median distance as width, where scikit-learn has gamma =
        1 / n_features. Further names are ``"laplace"``, ``"exponential"``, ``"chi_squared"``,
        ``"intersection"``, ``"jaccard"``, ``"tanimoto"``, ``"matching"``, ``"spectrum"`` and
        ``"ngram"``.

    Examples
    --------
    >>> as_kernel("rbf")
    RBF(width='median')
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel in _OWN:
            return _OWN[kernel]
        if kernel not in PAIRWISE_KERNEL_FUNCTIONS:
            raise unknown_choice("kernel name", kernel, sorted({*_OWN, *PAIRWISE_KERNEL_FUNCTIONS}))
        return Pairwise(kernel)
    is_class = isinstance(kernel, type)
    if callable(kernel) and not is_class:
        # Imported here: it takes a third of the import time of this package.
        from sklearn.gaussian_process.kernels import Kernel as SklearnGPKernel

        is_gaussian_process = isinstance(kernel, SklearnGPKernel)
        return GaussianProcess(kernel) if is_gaussian_process else Function(kernel)
    raise InvalidInputError(
        "A kernel must be an object of discernel.kernels, the name of a scikit-learn pairwise "
        "kernel, a scikit-learn Gaussian process kernel or a callable(X, Z). "
        f"Got {kernel!r} of type {type(kernel).__name__}."
        + (" Call the class to make a kernel." if is_class else "")
    )


def as_kernels(kernels: Any, *, n_precomputed: int = 1) -> list[Kernel]:
    """Convert the parameter ``kernels`` of an estimator to a list of kernels.

    Parameters
    ----------
    kernels : "auto", "precomputed", kernel, sequence of kernels, or mapping of name to kernel
        ``"auto"`` is a ladder of nine Gaussian kernels around the median distance, plus linear,
        each column divided by its spread. So is a mapping of names to columns; see `are_sources`.
    n_precomputed : int, default=1
        Number of matrices in a ``"precomputed"`` stack.

    Examples
    --------
    >>> as_kernels(["linear", "rbf"])
    [Linear(), RBF(width='median')]
    """
    found: list[Kernel]
    if learns_scales(kernels):
        return [Standardized(kernel) for kernel in (*rbf_ladder(), Linear())]
    if isinstance(kernels, str):
        if kernels == "precomputed":
            return [Precomputed(i) for i in range(n_precomputed)]
        found = [as_kernel(kernels)]
    elif isinstance(kernels, Mapping):
        found = [as_kernel(kernel).named(str(name)) for name, kernel in kernels.items()]
    elif isinstance(kernels, Sequence):
        found = [as_kernel(kernel) for kernel in kernels]
    else:
        found = [as_kernel(kernels)]
    if not found:
        raise InvalidInputError(
            f"The kernels must be a non-empty list of kernels. Got {kernels!r}. Pass at least "
            "one kernel, for example [RBF(width='median')], or 'auto'."
        )
    return found


def are_sources(kernels: Any) -> bool:
    """Whether the parameter ``kernels`` of an estimator maps names of sources to their columns.

    Columns are lists or arrays of positions or names, masks, or slices. A single name of a column
    must be in a list, because a string is the name of a kernel.
    """
    if not isinstance(kernels, Mapping):
        return False
    are_columns = [isinstance(each, (list, tuple, slice, np.ndarray)) for each in kernels.values()]
    if any(are_columns) and not all(are_columns):
        raise InvalidInputError(
            "The values of kernels must all be kernels, or all columns. Got both: "
            f"{list(kernels.values())!r}. For columns, make kernels with "
            "discernel.views.source_kernels, and add the others to its result."
        )
    for each in kernels.values():
        made = [one for one in each if isinstance(one, Kernel)] if isinstance(each, list) else []
        if made:
            raise InvalidInputError(
                "A source must have one kernel or its columns. Got a list with "
                f"{made[0].name}. For several kernels of a source, use discernel.views."
                "source_kernels(sources, kernels, table)."
            )
    return bool(are_columns) and all(are_columns)


def learns_scales(kernels: Any) -> bool:
    """Whether kernels are those of the default, on all columns or on those of each source."""
    return is_word(kernels, "auto") or are_sources(kernels)


def resolve_kernels(kernels: Sequence[Kernel], X: Any, frame: Any | None = None) -> list[Kernel]:
    """Return kernels with all values that depend on the training set fixed.

    Parameters
    ----------
    kernels : sequence of Kernel
        The kernels. Statistics of the same columns, such as the median distance, are computed
        once.
    X, frame
        As in `Kernel.resolve`.

    Examples
    --------
    >>> import numpy as np
    >>> resolve_kernels(as_kernels(["rbf"]), np.array([[0.0], [2.0], [4.0]]))
    [RBF(width=2)]
    """
    known: Known = {}
    return [kernel.resolve(X, frame, known) for kernel in kernels]


def kernel_names(kernels: Sequence[Kernel]) -> list[str]:
    """Return one name for each kernel, with duplicates made distinct.

    Parameters
    ----------
    kernels : sequence of Kernel
        The kernels.

    Examples
    --------
    >>> kernel_names(as_kernels({"a": "linear", "b": "rbf"}))
    ['a', 'b']
    """
    names = [kernel.name for kernel in kernels]
    unique: list[str] = []
    for name in names:
        chosen, copy = name, 0
        while chosen in unique or (names.count(name) > 1 and not copy):
            copy += 1
            chosen = f"{name} #{copy}"
        unique.append(chosen)
    return unique


def get_settings(kernels: Any) -> dict[str, Any]:
    """Return the settings of a kernel, or of the kernels of a list or dictionary, by name.

    As in scikit-learn's parameter searches, names start with the position of a kernel in a list,
    as in ``0__width``, or with its key in a dictionary. Anything else has no settings.
    """
    items = None if are_sources(kernels) else _items(kernels)
    if items is None:
        kernel = _as_kernel(kernels)
        return {} if kernel is None else kernel.settings
    found: dict[str, Any] = {}
    for name, each in items.items():
        found[name] = each
        found |= {f"{name}__{inner}": value for inner, value in get_settings(each).items()}
    return found


def with_settings(kernels: Any, values: dict[str, Any]) -> Any:
    """Return a copy of kernels with new values of some settings, named as in `get_settings`."""
    new = _items(kernels)
    if new is None:
        kernel = _as_kernel(kernels)
        if kernel is None:
            raise InvalidInputError(
                f"Settings {list(values)} can only be set for a kernel. Got {kernels!r}."
            )
        return kernel.with_settings(**values)
    inner: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        # The name of a kernel may contain "__", so the longest matching name is used.
        names = [name for name in new if path == name or path.startswith(f"{name}__")]
        if not names:
            raise InvalidInputError(f"The names of the kernels are {list(new)}. Got {path!r}.")
        name = max(names, key=len)
        if path == name:
            new[name] = value
        else:
            inner.setdefault(name, {})[path[len(name) + 2 :]] = value
    for name, changes in inner.items():
        new[name] = with_settings(new[name], changes)
    if isinstance(kernels, Mapping):
        return dict(zip(kernels, new.values(), strict=True))
    return type(kernels)(new.values())


def _items(kernels: Any) -> dict[str, Any] | None:
    """Return the kernels of a list or dictionary by name, or None for anything else."""
    if isinstance(kernels, Mapping):
        return {str(name): kernel for name, kernel in kernels.items()}
    if isinstance(kernels, (list, tuple)):
        return {str(position): kernel for position, kernel in enumerate(kernels)}
    return None


def _as_kernel(kernel: Any) -> Kernel | None:
    """Convert to one kernel, or return None if that is not possible."""
    if learns_scales(kernel) or is_word(kernel, "precomputed"):
        return None
    try:
        return as_kernel(kernel)
    except InvalidInputError:
        return None
