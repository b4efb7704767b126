"""Maximize the alignment over parameters of kernels, alternating with the weights.

This is the algorithm of Pothin and Richard (2006), section 4. It needs rows, because new parameters
change the kernel matrices.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils.multiclass import type_of_target

from discernel.arrays import FloatArray, as_rows, blas_threads, n_rows, on_host
from discernel.bank import DenseBank
from discernel.bank.grams import check_grams
from discernel.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    check_count,
    check_number,
    unknown_choice,
)
from discernel.kernels import Kernel, as_kernels, kernel_names, resolve_kernels
from discernel.kernels.terms import Key, matrix_of
from discernel.papers.alignment.criterion import (
    MatrixAlignment,
    alignment,
    stack_products,
)
from discernel.papers.alignment.solvers import greedy, qp
from discernel.programs.simplex import normalize
from discernel.targets import ClassTarget, RegressionTarget

#: The largest change of a parameter, as a factor of its initial value. With a width larger or
#: smaller by this factor, a kernel is linear or the identity to eight digits.
_REACH = 1e4
#: The step of finite differences for second derivatives, in the coordinate of `_Coordinate`.
_DIFFERENCE = 1e-3
#: Rounding error of a derivative of the alignment in this coordinate.
_ROUNDING = 1e-12
#: The share of the gain predicted by the gradient that a step must reach. With a quarter, a step on
#: a parabola at least halves the distance to the maximum.
_SUFFICIENT = 0.25


@dataclass(frozen=True, eq=False)
class AlignedKernels:
    """Kernels with parameters and weights of maximal alignment with a target.

    Attributes
    ----------
    kernels : list of Kernel
        All candidates with their final parameters. Parameters of a kernel only change while it has
        positive weight.
    weights : ndarray of shape (n_kernels,)
        Weights of the kernels scaled to equal trace (of the centred matrix if kernels are centred),
        at least 0 and summing to 1.
    coefficients : ndarray of shape (n_kernels,)
        Factors of the raw matrices: weights divided by traces.
    alignment : float
        The final alignment on the training set.
    history : tuple of float
        The alignment with the initial parameters and after each iteration; it never decreases.
    held : tuple of (int, str)
        Parameters at a bound, of kernels with positive weight: position of the kernel and name.
    """

    kernels: list[Kernel]
    weights: FloatArray
    coefficients: FloatArray
    alignment: float
    history: tuple[float, ...]
    held: tuple[tuple[int, str], ...]


def align_kernels(
    kernels: Any,
    X: Any,
    y: Any,
    *,
    centered: bool = True,
    step: float = 0.5,
    method: Literal["gradient", "newton"] = "gradient",
    epsilon: float = 1e-3,
    tol: float = 1e-5,
    max_iter: int = 100,
) -> AlignedKernels:
    """Maximize the alignment over weights and parameters of kernels, [Pothin06]_ section 4.

    Each iteration computes greedy weights for the current parameters, then takes one step of the
    parameters of all kernels with positive weight, by the derivatives of Eq. (12). It stops when an
    iteration gains less than ``tol``. A step is shortened until the alignment increases. If greedy
    weights are worse than the current ones, the weights of Eq. (6) on the kernels with positive
    weight are used instead. So the alignment never decreases. The result is a local optimum.

    Parameters
    ----------
    kernels : "auto", kernel, sequence of kernels, or mapping of name to kernel
        The candidates, whose parameters are the initial ones. Kernels without parameters stay
        unchanged. So does the factor of ``2.0 * kernel``, which is equivalent to its weight.
    X : array-like of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Class labels, or columns of numbers to regress on, which are always centred and have equal
        influence. As everywhere in scikit-learn, whole numbers are labels; standardize them for
        regression.
    centered : bool, default=True
        Whether kernels and target are centred. If not, the target of two classes is Eq. (3), with
        labels ±1.
    step : float, default=0.5
        The initial step length of ``"gradient"``, as a factor of the gradient; the paper's η.
        Later steps start from the last accepted length.
    method : {"gradient", "newton"}, default="gradient"
        ``"newton"`` divides the gradient by second derivatives, one for each parameter, from finite
        differences. It computes three more matrices for each parameter, which is worthwhile for a
        small ``tol``.
    epsilon : float, default=1e-3
        The increase of the alignment for which `greedy` adds one more kernel; at least 0.
    tol : float, default=1e-5
        The increase of the alignment below which to stop.
    max_iter : int, default=100
        Maximum number of iterations.

    Returns
    -------
    AlignedKernels
        Kernels, weights, alignment, history and the parameters at a bound.

    Raises
    ------
    InvalidInputError
        If kernels, rows, target or parameters are invalid.

    Warns
    -----
    ConvergenceWarning
        If the last allowed iteration still gained at least ``tol``.
    DroppedKernelWarning
        If kernels are centred and one is constant on the training set.

    Notes
    -----
    Steps of positive parameters are taken in their logarithm, so that the units of X do not matter,
    and change them by at most a factor of e; ``coef0`` may reach 0. No parameter changes by more
    than a factor of 10,000 from its initial value. A parameter at a bound moves again when the
    derivative points inwards.

    Memory is needed for all kernel matrices, and for one matrix of distances or inner products for
    each type of kernel.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discernel.kernels import RBF, Linear
    >>> X, y = load_wine(return_X_y=True)
    >>> aligned = align_kernels([RBF(width=2.0), Linear()], scale(X), y, method="newton")
    >>> aligned.kernels
    [RBF(width=4.8...), Linear()]
    >>> [round(aligned.history[0], 3), round(aligned.alignment, 3)]
    [0.711, 0.748]
    """
    if method not in ("gradient", "newton"):
        raise unknown_choice("method of align_kernels", method, ["gradient", "newton"])
    X, y = on_host(X), on_host(y)
    check_number("step", step, positive=True)
    check_number("epsilon", epsilon)
    check_number("tol", tol, positive=True)
    check_count("max_iter", max_iter)
    columns = _target_columns(y, centered=centered)
    found, rows = _resolve(kernels, X)
    if n_rows(rows) != len(columns):
        raise InvalidInputError(
            f"There must be one target per row. Got {n_rows(rows)} rows and {len(columns)} targets."
        )
    with blas_threads(len(columns)):
        search = _Search(found, rows, columns, centered=centered, epsilon=epsilon)
        return search.run(method, step, tol, max_iter)


def _target_columns(y: Any, *, centered: bool) -> FloatArray:
    """Return T, of shape (n_samples, n_columns), from labels or from numbers to regress on."""
    y = np.asarray(y)
    numbers = y.dtype.kind == "f" and bool(np.isfinite(y).all())
    if numbers and type_of_target(y).startswith("continuous"):
        return RegressionTarget.from_values(y).scores
    target = ClassTarget.from_labels(y)
    return target.signs[:, None] if target.n_classes == 2 and not centered else target.scores


def _resolve(kernels: Any, X: Any) -> tuple[list[Kernel], Any]:
    """Return resolved kernels, whose parameters are numbers, and the rows as kernels take them."""
    found = as_kernels(kernels, n_precomputed=X.shape[2] if getattr(X, "ndim", 2) == 3 else 1)
    rows = X if all(kernel.takes_any_rows for kernel in found) else as_rows(X)
    if found[0].precomputed:
        return found, rows
    frame = X if hasattr(X, "columns") else rows
    return resolve_kernels(found, rows, frame), rows


@dataclass(frozen=True)
class _Coordinate:
    """One parameter of one kernel, in a coordinate in which a step of 1 is long.

    For positive parameters, the coordinate is the logarithm of the ratio to the initial value, so
    that steps do not depend on units and cannot leave the domain. For coef0, which may be 0, it is
    the inverse hyperbolic sine of this ratio, which is linear near 0 and logarithmic far from it.
    """

    kernel: int
    name: str
    start: float

    @property
    def is_logarithm(self) -> bool:
        return self.start > 0 and self.name.rpartition(".")[2] != "coef0"

    @property
    def unit(self) -> float:
        return abs(self.start) or 1.0

    @property
    def origin(self) -> float:
        return 0.0 if self.is_logarithm else math.asinh(self.start / self.unit)

    @property
    def bounds(self) -> tuple[float, float]:
        if self.is_logarithm:
            return -math.log(_REACH), math.log(_REACH)
        return min(0.0, self.origin), math.asinh(_REACH)

    def value(self, at: float) -> float:
        """Return the parameter."""
        if at == self.origin:
            return self.start  # exactly, if the parameter has not moved
        return self.unit * (math.exp(at) if self.is_logarithm else math.sinh(at))

    def slope(self, at: float) -> float:
        """Return the derivative of the parameter."""
        return self.unit * (math.exp(at) if self.is_logarithm else math.cosh(at))


def _coordinates(kernels: Sequence[Kernel]) -> list[_Coordinate]:
    return [
        _Coordinate(position, name, start)
        for position, kernel in enumerate(kernels)
        for name, start in kernel.parameters.items()
        if name != "factor"  # the factor of a kernel is equivalent to its weight
    ]


class _Search:
    """The search for weights and parameters of kernels on one training set.

    In a step of the parameters, the weights of kernels scaled to equal trace are constant. With
    constant factors of raw kernels instead, a kernel would lose influence as its width grows, and
    steps would have to be short.

    Attributes
    ----------
    point : ndarray of shape (n_parameters,)
        The parameters, in the coordinates of `_Coordinate`.
    grams : ndarray of shape (n_kernels, n_samples, n_samples)
        The raw matrices at the point.
    traces : ndarray of shape (n_kernels,)
        Their traces, or centred traces if kernels are centred; infinite for a kernel that is 0.
    weights : ndarray of shape (n_kernels,)
        The weights of kernels scaled to equal trace.
    value : float
        The alignment.
    """

    def __init__(
        self,
        kernels: list[Kernel],
        rows: Any,
        columns: FloatArray,
        *,
        centered: bool,
        epsilon: float,
    ) -> None:
        self.kernels, self.rows, self.columns = kernels, rows, columns
        self.centered, self.epsilon = centered, epsilon
        self._bases: dict[Key, FloatArray] = {}
        self.coordinates = _coordinates(kernels)
        self.point = np.array([coordinate.origin for coordinate in self.coordinates])
        bounds = np.array([c.bounds for c in self.coordinates]).reshape(-1, 2)
        self.lower, self.upper = bounds.T
        self.grams = np.empty((len(kernels), len(columns), len(columns)))
        for position in range(len(kernels)):
            self.grams[position] = self._gram(position, self.point)
        names, trusted = kernel_names(kernels), [kernel.trusted for kernel in kernels]
        if centered:
            DenseBank(self.grams, names, trusted=trusted)  # warns of constant kernels
        else:
            check_grams(self.grams, names, trusted)
        self.traces = np.array([self._trace(gram) for gram in self.grams])
        self.weights, self.value = np.zeros(len(kernels)), -np.inf
        self._reweigh()

    def run(
        self, method: Literal["gradient", "newton"], step: float, tol: float, max_iter: int
    ) -> AlignedKernels:
        """Alternate parameters and weights until an iteration gains less than ``tol``."""
        history = [self.value]
        for _ in range(max_iter):
            gradient = self._gradient()
            # With such a small derivative, even the longest step gains less than tol. For a
            # parameter without effect, the derivative is a rounding error.
            gradient[np.abs(gradient) < max(tol, _ROUNDING)] = 0.0
            if not gradient.any():
                break
            if method == "gradient":
                step = self._climb(gradient, gradient, step, tol)
            else:
                self._climb(gradient, self._newton_direction(gradient), 1.0, tol)
            self._reweigh()
            history.append(self.value)
            if history[-1] - history[-2] < tol:
                break
        else:
            warnings.warn(
                "The parameters of the kernels may not be optimal: iteration limit reached after "
                f"{max_iter} iterations, the last of which gained {history[-1] - history[-2]:.1e} "
                f"of alignment, asked for {tol:.1e}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self._result(history)

    def _result(self, history: list[float]) -> AlignedKernels:
        at_bound = (self.point <= self.lower) | (self.point >= self.upper)
        return AlignedKernels(
            kernels=[self._kernel(i, self.point) for i in range(len(self.kernels))],
            weights=self.weights,
            coefficients=self.weights / self.traces,
            alignment=self.value,
            history=tuple(history),
            held=tuple(
                (coordinate.kernel, coordinate.name)
                for coordinate, held in zip(self.coordinates, at_bound, strict=True)
                if held and self.weights[coordinate.kernel] > 0
            ),
        )

    # ---- matrices ----------------------------------------------------------------------------

    def _kernel(self, position: int, point: FloatArray) -> Kernel:
        values = {
            coordinate.name: coordinate.value(at)
            for coordinate, at in zip(self.coordinates, point.tolist(), strict=True)
            if coordinate.kernel == position
        }
        kernel = self.kernels[position]
        return kernel.with_parameters(**values) if values else kernel

    def _gram(self, position: int, point: FloatArray) -> FloatArray:
        # Distances and inner products do not depend on the parameters, and are reused.
        return matrix_of(self._kernel(position, point).terms(), self.rows, known=self._bases)

    def _trace(self, gram: FloatArray) -> float:
        trace = self._trace_slope(gram)
        return trace if trace > 0 else np.inf

    def _trace_slope(self, matrix: FloatArray) -> float:
        """Return the trace, or the centred trace, of a matrix or of its derivative."""
        return float(np.trace(matrix) - (matrix.sum() / len(matrix) if self.centered else 0.0))

    def _term(self, position: int, point: FloatArray) -> FloatArray:
        """Return one summand of the combined matrix."""
        gram = self._gram(position, point)
        return np.asarray(gram * (self.weights[position] / self._trace(gram)))

    def _combined(self) -> FloatArray:
        used = np.flatnonzero(self.weights)
        coefficients = self.weights[used] / self.traces[used]
        return np.asarray(np.tensordot(coefficients, self.grams[used], 1))

    def _align(self, matrix: FloatArray) -> MatrixAlignment:
        return MatrixAlignment(matrix, self.columns, centered=self.centered)

    # ---- steps -------------------------------------------------------------------------------

    def _gradient(self) -> FloatArray:
        """Return the derivatives by all coordinates, Eq. (12); 0 for those that cannot move."""
        aligned = self._align(self._combined())
        gradient = np.zeros(len(self.point))
        for index, coordinate in enumerate(self.coordinates):
            position = coordinate.kernel
            coefficient = self.weights[position] / self.traces[position]
            if coefficient > 0:
                kernel = self._kernel(position, self.point)
                slope = kernel.derivative(coordinate.name, self.rows)
                # ∂(G/t) = (∂G − G ∂t/t)/t, for kernels scaled to equal trace t.
                slope -= self._trace_slope(slope) / self.traces[position] * self.grams[position]
                scale = coefficient * coordinate.slope(self.point[index])
                gradient[index] = scale * aligned.derivative(slope)
        outwards = np.where(gradient > 0, self.point >= self.upper, self.point <= self.lower)
        gradient[outwards] = 0.0
        return gradient

    def _newton_direction(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient divided by the curvature, with entries of at most 1.

        If the alignment is not concave enough for a parameter, its entry is ±1.
        """
        direction, combined = np.zeros_like(gradient), self._combined()
        for index in np.flatnonzero(gradient).tolist():
            curvature = max(-self._second_derivative(index, combined), abs(gradient[index]))
            direction[index] = gradient[index] / curvature
        return direction

    def _second_derivative(self, index: int, combined: FloatArray) -> float:
        position = self.coordinates[index].kernel
        rest = combined - self._term(position, self.point)
        # At a bound, the centre of the difference moves inwards.
        middle = max(self.point[index], self.lower[index] + _DIFFERENCE)
        middle = min(middle, self.upper[index] - _DIFFERENCE)
        values = []
        for at in (middle - _DIFFERENCE, middle, middle + _DIFFERENCE):
            point = self.point.copy()
            point[index] = at
            values.append(self._align(rest + self._term(position, point)).value)
        return (values[0] - 2.0 * values[1] + values[2]) / _DIFFERENCE**2

    def _climb(self, gradient: FloatArray, direction: FloatArray, step: float, tol: float) -> float:
        """Take a step that increases the alignment; return its length.

        A step is halved while it gains less than a quarter of the gain predicted by the gradient,
        and given up if the predicted gain is below ``tol``. If the first length is accepted, it is
        doubled while the alignment increases further.
        """
        longest = 1.0 / float(np.abs(direction).max())
        step = min(step, longest)
        point, value = self._trial(direction, step)
        halved = False
        while value - self.value < _SUFFICIENT * (promised := gradient @ (point - self.point)):
            if promised < tol:
                return step
            step, halved = step / 2.0, True
            point, value = self._trial(direction, step)
        while not halved and 2.0 * step <= longest:
            further, higher = self._trial(direction, 2.0 * step)
            if not higher > value:
                break
            point, value, step = further, higher, 2.0 * step
        for position in self._moved(point):
            self.grams[position] = self._gram(position, point)
            self.traces[position] = self._trace(self.grams[position])
        self.point, self.value = point, value
        return step

    def _trial(self, direction: FloatArray, step: float) -> tuple[FloatArray, float]:
        point = np.clip(self.point + step * direction, self.lower, self.upper)
        moved = self._moved(point)
        matrix = np.zeros(self.grams.shape[1:])
        for position in np.flatnonzero(self.weights).tolist():
            if position in moved:
                matrix += self._term(position, point)
            else:
                matrix += self.weights[position] / self.traces[position] * self.grams[position]
        return point, self._align(matrix).value

    def _moved(self, point: FloatArray) -> set[int]:
        return {self.coordinates[index].kernel for index in np.flatnonzero(point != self.point)}

    def _reweigh(self) -> None:
        """Set the greedy weights, or those of Eq. (6) on the kernels with positive weight.

        Greedy weights start from zero and may drop a kernel that now adds less than ε, which would
        decrease the alignment. The weights of Eq. (6) never decrease it.
        """
        M, f, norm = stack_products(self.grams, self.columns, centered=self.centered)
        path = greedy(M, f, self.epsilon, norm=norm)
        mu, value = path.weights, path.alignments[-1]
        if value < self.value:
            used = np.flatnonzero(self.weights)
            mu = np.zeros(len(f))
            mu[used] = qp(M[np.ix_(used, used)], f[used])
            value = float(alignment(M, f, mu, norm))
        if value > self.value:  # otherwise the difference is a rounding error
            scaled = mu * np.where(np.isfinite(self.traces), self.traces, 0.0)
            self.weights, self.value = normalize(scaled), value
