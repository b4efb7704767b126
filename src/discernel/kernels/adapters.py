"""Kernels from elsewhere: matrices, callables, and kernels of scikit-learn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from discernel.arrays import FloatArray, as_rows, is_sparse, n_rows
from discernel.exceptions import InvalidInputError, is_number, unknown_choice
from discernel.kernels.base import Kernel, Known
from discernel.kernels.columns import Table
from discernel.kernels.pairs import check_shape


@dataclass(frozen=True)
class Precomputed(Kernel):
    """One matrix of a precomputed stack.

    X is then the stack itself, of shape (n_rows, n_training_rows, n_kernels), which
    cross-validation splits correctly.

    Parameters
    ----------
    index : int, default=0
        Position of the kernel on the last axis of the stack.

    Notes
    -----
    ``kernels={"spectra": Precomputed(0), "texts": Precomputed(1)}`` gives the matrices names.

    Examples
    --------
    >>> import numpy as np
    >>> stack = np.stack([np.eye(3), np.ones((3, 3))], axis=-1)
    >>> Precomputed(1)(stack)
    array([[1., 1., 1.],
           [1., 1., 1.],
           [1., 1., 1.]])
    """

    index: int = 0
    trusted = False
    precomputed = True
    takes_sparse = False

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        matrix = np.asarray(X, dtype=np.float64)
        if matrix.ndim == 2 and self.index == 0:
            return matrix
        if matrix.ndim != 3 or not 0 <= self.index < matrix.shape[2]:
            raise InvalidInputError(
                f"{self!r} needs a stack of shape (n_rows, n_training_rows, n_kernels) with "
                f"n_kernels > {self.index}. Got shape {matrix.shape}. A stack of shape "
                "(n_kernels, n_rows, n_rows) is converted by np.moveaxis(stack, 0, -1)."
            )
        return np.ascontiguousarray(matrix[:, :, self.index])

    def diagonal(self, X: Any) -> FloatArray:
        return np.diagonal(self(X)).copy()

    @property
    def name(self) -> str:
        return f"matrix {self.index}"


@dataclass(frozen=True)
class Function(Kernel):
    """Kernel defined by a callable.

    Parameters
    ----------
    function : callable
        ``function(X, Z)`` returns the kernel matrix of the rows of X and Z. These are arrays of
        floats, or arrays of objects if some columns of a DataFrame, or the rows themselves, are
        not numbers; objects are passed unchanged.
    thread_safe : bool, default=False
        Whether several threads may call the function at once.

    Examples
    --------
    >>> import numpy as np
    >>> def same_first_letter(A, B):
    ...     return np.array([[float(a[0] == b[0]) for b in B] for a in A])
    >>> Function(same_first_letter)(["ant", "ape", "bee"])
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """

    function: Callable[[Any, Any], Any]
    thread_safe: bool = False
    trusted = False
    takes_any_rows = True

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        X, Z = (np.asarray(rows) if isinstance(rows, Table) else rows for rows in (X, Z))
        other = X if Z is None else Z
        matrix = np.asarray(self.function(X, other), dtype=np.float64)
        return check_shape(self, matrix, (n_rows(X), n_rows(other)))

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))

    def __repr__(self) -> str:
        return f"Function({self.name})"


def _for_sklearn(X: Any) -> Any:
    """Convert rows for scikit-learn's compiled kernels: writeable, with 32-bit indices."""
    return as_rows(X) if is_sparse(X) else np.require(X, requirements="W")


@dataclass(frozen=True)
class Pairwise(Kernel):
    """Kernel of `sklearn.metrics.pairwise`, by name.

    Parameters
    ----------
    metric : str
        A key of ``sklearn.metrics.pairwise.PAIRWISE_KERNEL_FUNCTIONS``.
    options : tuple of (name, value), default=()
        Options of the function, such as ``(("gamma", 0.5),)``.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> Pairwise("chi2")(rows).round(2)
    array([[1.  , 0.37, 0.05],
           [0.37, 1.  , 0.26],
           [0.05, 0.26, 1.  ]])
    """

    metric: str
    options: tuple[tuple[str, Any], ...] = ()
    trusted = False

    def __post_init__(self) -> None:
        if self.metric not in PAIRWISE_KERNEL_FUNCTIONS:
            raise unknown_choice("kernel name", self.metric, sorted(PAIRWISE_KERNEL_FUNCTIONS))

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        X, Z = _for_sklearn(X), None if Z is None else _for_sklearn(Z)
        matrix = pairwise_kernels(X, Z, metric=self.metric, **dict(self.options))
        return np.asarray(matrix, dtype=np.float64)

    def _resolve(self, X: Any, frame: Any | None, known: Known) -> Kernel:
        # Without gamma, use scikit-learn's default: 1 for chi2, else 1 / n_features.
        options = dict(self.options)
        if "gamma" in KERNEL_PARAMS[self.metric] and options.get("gamma") is None:
            function = PAIRWISE_KERNEL_FUNCTIONS[self.metric]
            default = inspect.signature(function).parameters["gamma"].default
            options["gamma"] = 1.0 / X.shape[1] if default is None else default
        return replace(self, options=tuple(options.items()))

    @property
    def parameters(self) -> dict[str, float]:
        return {
            name: float(value)
            for name, value in self.options
            if is_number(value) and name != "degree"
        }

    @property
    def settings(self) -> dict[str, Any]:
        known = dict.fromkeys(sorted(KERNEL_PARAMS[self.metric]))
        return {"metric": self.metric, **known, **dict(self.options)}

    def _with(self, kind: str, values: dict[str, Any]) -> Kernel:
        metric = values.pop("metric", self.metric)
        options = {**dict(self.options), **values}
        return Pairwise(metric, tuple((k, v) for k, v in options.items() if v is not None))

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        """Return a central difference, as scikit-learn has no derivatives of these kernels."""
        value = self.parameters[parameter]
        step = 1e-5 * max(abs(value), 1e-3)
        near = [self.with_parameters(**{parameter: value + s})(X, Z) for s in (step, -step)]
        return np.asarray((near[0] - near[1]) / (2.0 * step))

    def __repr__(self) -> str:
        shown = {k: f"{v:.4g}" if isinstance(v, float) else repr(v) for k, v in self.options}
        options = "".join(f", {name}={value}" for name, value in shown.items())
        return f"Pairwise({self.metric!r}{options})"


def equal_pairs(X: Any, Z: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions of all pairs of equal rows of X and Z, as two arrays."""
    stacked = np.ascontiguousarray(np.vstack([X, Z]), dtype=np.float64) + 0.0  # no -0.0
    as_bytes = stacked.view(np.dtype((np.void, stacked.dtype.itemsize * stacked.shape[1])))
    _, codes = np.unique(as_bytes.ravel(), return_inverse=True)
    rows, columns = np.nonzero(codes[: n_rows(X), None] == codes[n_rows(X) :])
    return rows, columns


def _frozen(value: Any) -> Hashable:
    """Return the type and parameters of a scikit-learn kernel as a hashable value."""
    if hasattr(value, "get_params"):
        params = value.get_params(deep=False)
        return type(value), tuple((name, _frozen(params[name])) for name in sorted(params))
    if isinstance(value, (list, tuple, np.ndarray)):
        return tuple(_frozen(part) for part in np.asarray(value, dtype=object).tolist())
    return value if isinstance(value, Hashable) else repr(value)


@dataclass(frozen=True, eq=False)
class GaussianProcess(Kernel):
    """Kernel of `sklearn.gaussian_process.kernels` with fixed hyperparameters.

    The noise of a ``WhiteKernel`` applies to all pairs of equal rows: k(x, z) = k(x, x) if x = z.
    scikit-learn adds it only to the diagonal of ``kernel(X)``, and would treat a training row that
    is predicted again as a different row.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The kernel.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> from sklearn.gaussian_process.kernels import RationalQuadratic
    >>> GaussianProcess(RationalQuadratic())(rows).round(2)
    array([[1.  , 0.67, 0.29],
           [0.67, 1.  , 0.5 ],
           [0.29, 0.5 , 1.  ]])
    """

    kernel: Any
    takes_sparse = False

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        matrix = np.array(self.kernel(X, Z), dtype=np.float64)
        if self._has_noise(X):
            rows, columns = equal_pairs(X, X if Z is None else Z)
            matrix[rows, columns] = self.diagonal(X)[rows]
        return matrix

    def _has_noise(self, X: Any) -> bool:
        """Whether k(x, x) differs from k(x, z) for an equal row z."""
        one = np.asarray(X[:1])
        return not np.allclose(self.kernel(one), self.kernel(one, one.copy()), rtol=1e-12, atol=0)

    def diagonal(self, X: Any) -> FloatArray:
        return np.asarray(self.kernel.diag(X), dtype=np.float64)

    def _resolve(self, X: Any, frame: Any | None, known: Known) -> Kernel:
        # A copy, because kernels of scikit-learn are mutable.
        return GaussianProcess(clone(self.kernel))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GaussianProcess):
            return NotImplemented
        return _frozen(self.kernel) == _frozen(other.kernel)

    def __hash__(self) -> int:
        return hash(_frozen(self.kernel))

    @property
    def parameters(self) -> dict[str, float]:
        free = [h for h in self.kernel.hyperparameters if not h.fixed]
        names = [
            h.name if h.n_elements == 1 else f"{h.name}[{i}]"
            for h in free
            for i in range(h.n_elements)
        ]
        return dict(zip(names, np.exp(self.kernel.theta).tolist(), strict=True))

    def _with(self, kind: str, values: dict[str, Any]) -> Kernel:
        if kind == "settings":
            return GaussianProcess(clone(self.kernel).set_params(**values))
        if not all(value > 0 for value in values.values()):
            raise InvalidInputError(f"The parameters of {self!r} must be positive. Got {values}.")
        theta = np.log(list({**self.parameters, **values}.values()))
        return GaussianProcess(clone(self.kernel).clone_with_theta(theta))

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.kernel.get_params())

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        if Z is not None:
            raise InvalidInputError(
                "scikit-learn's Gaussian process kernels can be differentiated for one set of rows "
                f"only. Got X and Z for {self!r}; call derivative({parameter!r}, X)."
            )
        names = list(self.parameters)
        _, gradient = self.kernel(X, eval_gradient=True)
        # The gradient of scikit-learn is by the logarithm of the parameter.
        derivative = gradient[:, :, names.index(parameter)] / self.parameters[parameter]
        if self._has_noise(X):
            rows, columns = equal_pairs(X, X)
            derivative[rows, columns] = derivative.diagonal()[rows]
        return np.asarray(derivative)

    @property
    def name(self) -> str:
        return str(self.kernel)

    def __repr__(self) -> str:
        return f"GaussianProcess({self.kernel!r})"
