"""Kernels of the Euclidean distance: Gaussian and exponential."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any

import numpy as np

from discernel.backend import (
    ROUNDING,
    SQUARED_ROUNDING,
    FloatArray,
    ShiftedRows,
    as_rows,
    draw_rows,
    n_rows,
    squared_distances,
    squared_norms,
)
from discernel.exceptions import InvalidInputError
from discernel.kernels.base import Kernel, Known

__all__ = ["RBF", "DistanceKernel", "Exponential", "Width", "median_distance"]

Width = float | str | None

#: Rows from which the median distance is taken; its error from 2,000 rows is far below the
#: step of any ladder of widths.
_MEDIAN_ROWS = 2000
#: exp(−690) is 1e-300. Below it numbers are denormal, with which processors are ten times slower,
#: also in every product and factorisation to come.
LEAST_EXPONENT = -690.0


def median_distance(X: Any) -> float:
    """Return the median distance between different rows of X, of at most 2,000 rows.

    Of more rows 2,000 are drawn, always the same for the same number of rows, so that the result
    depends on nothing but the rows and next to nothing on their order. Rows are equal if they
    differ by no more than rounding of their own size: one far row makes no others equal.
    """
    X = draw_rows(as_rows(X), _MEDIAN_ROWS)
    if isinstance(X, np.ndarray) and X.shape[1] == 1:
        return _median_difference(np.sort(X[:, 0]))
    if isinstance(X, np.ndarray):
        rows = ShiftedRows.of(X)
        distances, rounding = rows.squared_distances(), rows.rounding()
    else:
        distances, rounding = squared_distances(X), SQUARED_ROUNDING * squared_norms(X)
    # Equal rows, whose distance may be a rounding error, say nothing about the scale.
    different = distances > np.add.outer(rounding, rounding)
    different &= np.tri(len(distances), k=-1, dtype=np.bool_)
    pairs = distances[different]
    # Rows that are all the same have no scale: any width gives the same constant kernel.
    return float(np.median(np.sqrt(pairs))) if pairs.size else 1.0


def _median_difference(x: FloatArray) -> float:
    """Return the median difference between different numbers, given in rising order.

    Pairs are counted without making them: bisection encloses the median until few are left, and
    only these are made.
    """
    n = len(x)
    # Where the partners of each number end that are the same up to rounding.
    below = np.maximum(np.searchsorted(x, x + ROUNDING * np.abs(x), side="right"), 1 + np.arange(n))
    above = np.full(n, n)
    n_equal = int(below.sum())
    if n_equal == n * n:
        return 1.0
    middle = (n * n - n_equal - 1) // 2, (n * n - n_equal) // 2  # two ranks, or twice the same
    low, high = 0.0, float(x[-1] - x[0])
    while int((above - below).sum()) > 4 * n and low < (half := 0.5 * (low + high)) < high:
        between = np.maximum(np.searchsorted(x, x + half, side="right"), below)
        smaller = int(between.sum()) - n_equal
        if smaller <= middle[0]:
            low, below = half, between
        elif smaller > middle[1]:
            high, above = half, between
        else:  # between the two middle ones
            break
    counts = above - below
    firsts = np.repeat(np.arange(n), counts)
    seconds = np.arange(len(firsts)) + np.repeat(below - np.cumsum(counts) + counts, counts)
    ranks = np.array(middle) - (int(below.sum()) - n_equal)
    return float(np.partition(x[seconds] - x[firsts], ranks)[ranks].mean())


def _median_factor(width: str) -> float:
    """Return the factor of a width written ``"median"`` or ``"0.5*median"``."""
    factor, star, word = width.rpartition("*")
    try:
        value = float(factor) if star else 1.0
    except ValueError:
        value = np.nan
    if word.strip() != "median" or not (np.isfinite(value) and value > 0):
        raise InvalidInputError(
            "A width must be a positive number, 'median' or a multiple such as '0.5*median'. "
            f"Got {width!r}."
        )
    return value


@dataclass(frozen=True, repr=False)
class DistanceKernel(Kernel):
    """A kernel that depends on ‖x − z‖² only and is 1 at 0.

    Exactly one of its fields is given; which one says which convention is meant.
    """

    base = "squared distance"

    def __post_init__(self) -> None:
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        given = {name: value for name, value in given.items() if value is not None}
        if not given:
            object.__setattr__(self, "width", "median")
        elif len(given) > 1:
            raise InvalidInputError(
                f"{type(self).__name__} takes exactly one of {[f.name for f in fields(self)]}. "
                f"Got {given}."
            )
        for name, value in given.items():
            self._check_value(name, value)

    def _check_value(self, name: str, value: Any) -> None:
        if isinstance(value, str) and name != "gamma":
            _median_factor(value)
        elif not (isinstance(value, Real) and 0 < float(value) < np.inf):
            choices = "a positive number" + ("" if name == "gamma" else " or 'median'")
            raise InvalidInputError(
                f"The {name} of {type(self).__name__} must be {choices}. Got {value!r}."
            )

    def _given(self) -> tuple[str, float | str]:
        """Return the name and value of the one field that was given."""
        return next(
            (f.name, getattr(self, f.name))
            for f in fields(self)
            if getattr(self, f.name) is not None
        )

    def _number(self) -> tuple[str, float]:
        name, value = self._given()
        if isinstance(value, str):
            raise InvalidInputError(
                f"{self!r} depends on the training set. Call kernel.resolve(X) first."
            )
        return name, float(value)

    @property
    def parameters(self) -> dict[str, float]:
        name, value = self._given()
        return {} if isinstance(value, str) else {name: float(value)}

    def _with_settings(self, values: dict[str, Any]) -> Kernel:
        # One is given at a time: a new one takes the place of the old one.
        given = any(value is not None for value in values.values())
        return replace(self, **(dict.fromkeys(self._setting_names()) if given else {}) | values)

    def resolve(self, X: Any, frame: Any | None = None, known: Known | None = None) -> Kernel:
        name, value = self._given()
        if not isinstance(value, str):
            return self
        self.check_rows(X)
        known = {} if known is None else known
        if "median distance" not in known:
            known["median distance"] = median_distance(X)
        return replace(self, **{name: _median_factor(value) * known["median distance"]})

    def base_matrix(self, X: Any, Z: Any | None = None) -> FloatArray:
        return squared_distances(X, Z)

    def base_rows(self, X: Any, like: Any | None = None) -> Any:
        return ShiftedRows.of(X, like)

    def base_tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        rows: ShiftedRows = X
        return rows.squared_distances(Z, out)

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        return self.from_base(self.base_matrix(X, Z))

    def base_diagonal(self, X: Any) -> FloatArray:
        return np.zeros(n_rows(X))

    def diagonal(self, X: Any) -> FloatArray:
        return np.ones(n_rows(X))

    @property
    @abstractmethod
    def exponent(self) -> float:
        """The factor of the distance, or squared distance, in the exponent."""

    @abstractmethod
    def _exponent_derivative(self) -> float:
        """Return the derivative of `exponent` by the one parameter."""

    @abstractmethod
    def _distance(self, base: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return the power of the distance in the exponent: ``base`` itself, or in ``out``."""

    @property
    def decay(self) -> tuple[Hashable, float] | None:
        return type(self), self.exponent

    def from_base(self, base: FloatArray) -> FloatArray:
        matrix = np.empty_like(base)
        self._fill(base, matrix)
        return matrix

    def fill_from_base(self, base: FloatArray, out: FloatArray) -> None:
        self._fill(base, out)

    def _fill(self, base: FloatArray, out: FloatArray) -> None:
        np.multiply(self._distance(base, out), -self.exponent, out=out)
        np.maximum(out, LEAST_EXPONENT, out=out)
        np.exp(out, out=out)

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        base = self.base_matrix(X, Z)
        return -self._exponent_derivative() * self._distance(base) * self.from_base(base)

    def __repr__(self) -> str:
        name, value = self._given()
        if isinstance(value, str):
            shown = repr(value if value == "median" else f"{_median_factor(value):.6g}*median")
        else:
            shown = f"{value:.4g}"
        return f"{type(self).__name__}({name}={shown})"


@dataclass(frozen=True, repr=False)
class RBF(DistanceKernel):
    """The Gaussian kernel, in the convention its parameter names.

    ======================== ======================== =================================
    given                    k(x, z)                  used by
    ======================== ======================== =================================
    ``RBF(width=s)``         exp(−‖x − z‖² / s²)      [Kim06]_, [Ye08]_, [Yeung06]_
    ``RBF(length_scale=s)``  exp(−‖x − z‖² / (2 s²))  [Pothin06]_, Gaussian processes
    ``RBF(gamma=g)``         exp(−g ‖x − z‖²)         [Fung04]_, scikit-learn
    ======================== ======================== =================================

    Parameters
    ----------
    width, length_scale : float or str, optional
        A number, ``"median"`` (the median distance of the training set) or a multiple of it
        such as ``"0.5*median"``. Without any parameter, ``width="median"``.
    gamma : float, optional
        The factor of the squared distance.

    Examples
    --------
    >>> RBF(width=2.0)([[0.0]], [[2.0]]).item() == RBF(gamma=0.25)([[0.0]], [[2.0]]).item()
    True
    """

    width: Width = None
    length_scale: Width = None
    gamma: float | None = None

    @property
    def exponent(self) -> float:
        name, value = self._number()
        if name == "gamma":
            return value
        return value**-2 if name == "width" else 0.5 * value**-2

    def _exponent_derivative(self) -> float:
        name, value = self._number()
        if name == "gamma":
            return 1.0
        return -2.0 * value**-3 if name == "width" else -(value**-3)

    def _distance(self, base: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return base


@dataclass(frozen=True, repr=False)
class Exponential(DistanceKernel):
    """The exponential kernel, of the distance itself and not of its square.

    ========================= ===================== ===========================
    given                     k(x, z)               note
    ========================= ===================== ===========================
    ``Exponential(width=s)``  exp(−‖x − z‖ / s)     [Pothin06]_: s = 2σ²
    ``Exponential(gamma=g)``  exp(−g ‖x − z‖)
    ========================= ===================== ===========================

    Parameters
    ----------
    width : float or str, optional
        A number, ``"median"`` or a multiple such as ``"0.5*median"``; ``"median"`` by default.
    gamma : float, optional
        The factor of the distance.
    """

    width: Width = None
    gamma: float | None = None

    @property
    def exponent(self) -> float:
        name, value = self._number()
        return 1.0 / value if name == "width" else value

    def _exponent_derivative(self) -> float:
        name, value = self._number()
        return -(value**-2) if name == "width" else 1.0

    def _distance(self, base: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return np.asarray(np.sqrt(base, out=out))
