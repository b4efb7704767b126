"""Kernels of a distance: Gaussian, exponential, Laplace, χ²."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from discernel.arrays import (
    ROUNDING,
    SQUARED_ROUNDING,
    FloatArray,
    ShiftedRows,
    as_rows,
    city_distances,
    draw_rows,
    is_sparse,
    squared_distances,
    squared_norms,
)
from discernel.exceptions import InvalidInputError, is_positive
from discernel.kernels.base import Kernel, Known
from discernel.kernels.pairs import CHI_SQUARED, CITY, SQUARED
from discernel.kernels.terms import Atom, Decay, PairKind, RootDecay, Term, Terms, View

Width = float | str | None
Scales = tuple[float, ...] | None

#: Rows from which the median distance is taken; its error from 2,000 rows is far below the
#: step of any ladder of widths.
MEDIAN_ROWS = 2000


def median_distance(X: Any, norm: Literal[1, 2] = 2) -> float:
    """Return the median distance between different rows of X, of at most 2,000 rows.

    Of more rows 2,000 are drawn, always the same for the same number of rows, so that the result
    depends on nothing but the rows and next to nothing on their order. Rows are equal if they
    differ by no more than rounding of their own size: one far row makes no others equal.

    Parameters
    ----------
    X : array-like or CSR of shape (n_rows, n_features)
        Rows.
    norm : {1, 2}, default=2
        The norm of their differences.
    """
    X = draw_rows(as_rows(X), MEDIAN_ROWS)
    if not is_sparse(X) and X.shape[1] == 1:
        return _median_difference(np.sort(X[:, 0]))
    if norm == 1:
        # Where no row differs, nothing can be rounding.
        varying = X if is_sparse(X) else X[:, (X[:1] != X).any(axis=0)]
        distances = city_distances(X)
        rounding = np.asarray(ROUNDING * np.abs(varying).sum(axis=1), dtype=np.float64).ravel()
    elif is_sparse(X):
        distances, rounding = squared_distances(X), SQUARED_ROUNDING * squared_norms(X)
    else:
        rows = ShiftedRows.of(X)
        distances, rounding = rows.squared_distances(), rows.rounding()
    # Equal rows, whose distance may be a rounding error, say nothing about the scale.
    different = distances > np.add.outer(rounding, rounding)
    different &= np.tri(len(distances), k=-1, dtype=np.bool_)
    pairs = distances[different]
    # Rows that are all the same have no scale: any width gives the same constant kernel.
    return _median(pairs if norm == 1 else np.sqrt(pairs)) if pairs.size else 1.0


def _median(values: FloatArray) -> float:
    """Return the median of an array, which is put in another order.

    NumPy's own looks for two ranks at once, which takes seven times as long.
    """
    middle = len(values) // 2
    values.partition(middle)
    if len(values) % 2:
        return float(values[middle])
    return float(0.5 * (values[:middle].max() + values[middle]))


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


def median_factor(width: str) -> float:
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


def _as_scales(scales: Any) -> Scales:
    """Return factors of columns as a tuple of floats, or raise an error that says what is wrong."""
    if scales is None:
        return None
    try:
        values = np.asarray(scales, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.full(1, np.nan)
    if values.ndim != 1 or not len(values):
        problem = f"an array of shape {values.shape}"
    elif not np.isfinite(values).all():
        problem = "one that is no finite number"
    elif values.min() < 0:
        problem = f"{values.min():g} among them"
    elif values.max() == 0:
        problem = "zeros only"
    else:
        return tuple(values.tolist())
    raise InvalidInputError(
        "scales must be a list of finite numbers, one per column, at least 0 and not all 0. "
        f"Got {problem}."
    )


def _few(values: tuple[float, ...]) -> str:
    """Return the text of some numbers, of many the first and the last."""
    shown = [f"{value:.4g}" for value in values]
    return f"({', '.join(shown)})" if len(shown) <= 4 else f"({shown[0]}, ..., {shown[-1]})"


@dataclass(frozen=True, repr=False)
class DistanceKernel(Kernel):
    """A kernel exp(−c d(s∘x, s∘z)ᵖ) of a distance d.

    Exactly one of the fields but ``scales`` is given; which one says which convention is meant.
    """

    #: The pairwise matrix, the function of it, the power p, and the fields of which one is given.
    pair: ClassVar[PairKind] = SQUARED
    function: ClassVar[type[Decay]] = Decay
    power: ClassVar[int] = 1
    differentiable: ClassVar[tuple[str, ...]] = ("width", "gamma")

    scales: Scales = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", _as_scales(self.scales))
        values = {name: vars(self)[name] for name in self.differentiable}
        given = {name: value for name, value in values.items() if value is not None}
        if not given:
            object.__setattr__(self, "width", "median")
        elif len(given) > 1:
            raise InvalidInputError(
                f"{type(self).__name__} takes exactly one of {list(values)}. Got {given}."
            )
        for name, value in given.items():
            if isinstance(value, str) and name != "gamma":
                median_factor(value)
            elif not is_positive(value):
                choices = "a positive number" + ("" if name == "gamma" else " or 'median'")
                raise InvalidInputError(
                    f"The {name} of {type(self).__name__} must be {choices}. Got {value!r}."
                )

    def _given(self) -> tuple[str, Any, float | None]:
        """Return the name and value of the field that was given, and the factor of a median."""
        name = next(name for name in self.differentiable if vars(self)[name] is not None)
        value = vars(self)[name]
        return name, value, median_factor(value) if isinstance(value, str) else None

    def _with(self, kind: str, values: dict[str, Any]) -> Kernel:
        # One is given at a time: a new one takes the place of the old one.
        given = any(values.get(name) is not None for name in self.differentiable)
        return replace(self, **(dict.fromkeys(self.differentiable) if given else {}) | values)

    def _resolve(self, X: Any, frame: Any | None, known: Known) -> Kernel:
        name, _, factor = self._given()
        if factor is None:
            return self
        self.check_rows(X)
        key = "median distance", self.pair, self.scales
        if key not in known:
            known[key] = self._median_distance(View().then("scales", self.scales).of(X))
        return replace(self, **{name: factor * known[key]})

    def _median_distance(self, X: Any) -> float:
        return median_distance(X, 1 if self.pair is CITY else 2)

    @property
    def exponent(self) -> float:
        """The factor c of the power of the distance in the exponent."""
        name, value, is_open = self._given()
        if is_open:
            raise self._unresolved()
        if name == "gamma":
            return float(value)
        try:
            return (0.5 if name == "length_scale" else 1.0) * float(value) ** -self.power
        except OverflowError as error:
            raise InvalidInputError(
                f"The {name} of {self!r} is too small for double precision. Multiply the columns "
                "by a power of ten."
            ) from error

    def _terms(self, view: View) -> Terms:
        function = self.function(self.exponent)
        return (Term(1.0, (Atom(self.pair, view.then("scales", self.scales), function),)),)

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        (_, value, _), ((_, (atom,)),) = self._given(), self.terms()
        function = self.function(self.exponent)
        base = atom.pair.entries(*atom.view.of_both(X, Z))
        by = 1.0 if parameter == "gamma" else -self.power * self.exponent / value
        return np.asarray(-by * function.distance(base, np) * function(base))

    def __repr__(self) -> str:
        name, value, factor = self._given()
        shown = f"{value:.4g}" if factor is None else repr(f"{factor:.6g}*median")
        shown = repr(value) if value == "median" else shown
        scales = "" if self.scales is None else f", scales={_few(self.scales)}"
        return f"{type(self).__name__}({name}={shown}{scales})"


@dataclass(frozen=True, repr=False)
class RBF(DistanceKernel):
    """Gaussian kernel; the name of the parameter selects the convention.

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
        Factor of the squared distance.
    scales : sequence of float, optional
        One factor for each column, at least 0: ‖x − z‖² becomes Σ s_l² (x_l − z_l)². A column of
        scale 0 is ignored. The median refers to the scaled rows.

    Examples
    --------
    >>> RBF(width=2.0)([[0.0]], [[2.0]]).item() == RBF(gamma=0.25)([[0.0]], [[2.0]]).item()
    True
    """

    power = 2
    differentiable = ("width", "length_scale", "gamma")

    width: Width = None
    length_scale: Width = None
    gamma: float | None = None


@dataclass(frozen=True, repr=False)
class Exponential(DistanceKernel):
    """Exponential kernel of the distance, not of its square.

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
    scales : sequence of float, optional
        One factor for each column, at least 0, as in `RBF`.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> Exponential(width=1.0)(rows).round(2)
    array([[1.  , 0.37, 0.11],
           [0.37, 1.  , 0.24],
           [0.11, 0.24, 1.  ]])
    """

    function = RootDecay

    width: Width = None
    gamma: float | None = None


@dataclass(frozen=True, repr=False)
class Laplace(DistanceKernel):
    """Laplace kernel of the 1-norm, ``‖x − z‖₁ = Σ |x_l − z_l|``.

    ===================== ======================== =================================
    given                 k(x, z)                  note
    ===================== ======================== =================================
    ``Laplace(width=s)``  exp(−‖x − z‖₁ / s)       a product over the columns
    ``Laplace(gamma=g)``  exp(−g ‖x − z‖₁)         scikit-learn's ``laplacian``
    ===================== ======================== =================================

    Compared with `RBF`, it fits steps along single columns better and is less sensitive to columns
    of noise.

    Parameters
    ----------
    width : float or str, optional
        A number, ``"median"`` (the median distance of the 1-norm of the training set) or a
        multiple of it such as ``"0.5*median"``; ``"median"`` by default.
    gamma : float, optional
        The factor of the distance.
    scales : sequence of float, optional
        One factor for each column, at least 0: ‖x − z‖₁ becomes ``Σ s_l |x_l − z_l|``. A column of
        scale 0 is ignored. The median refers to the scaled rows.

    Examples
    --------
    >>> round(Laplace(width=2.0)([[0.0, 0.0]], [[1.0, 3.0]]).item(), 4)  # exp(−(1 + 3) / 2)
    0.1353
    """

    pair = CITY

    width: Width = None
    gamma: float | None = None


@dataclass(frozen=True, repr=False)
class ChiSquared(DistanceKernel):
    """Exponential kernel of the χ² distance of histograms.

    χ²(x, z) = Σ (x_l − z_l)² / (x_l + z_l), for non-negative counts or frequencies.

    ======================== ======================= ==========================================
    given                    k(x, z)                 note
    ======================== ======================= ==========================================
    ``ChiSquared(width=s)``  exp(−χ²(x, z) / s)      [Zhang07]_, with the mean distance for s
    ``ChiSquared(gamma=g)``  exp(−g χ²(x, z))        scikit-learn's ``chi2``
    ======================== ======================= ==========================================

    Rows are not normalized: divide them by their sums first if only frequencies matter.

    Parameters
    ----------
    width : float or str, optional
        A number, ``"median"`` (the median χ² distance of the training rows) or a multiple of it
        such as ``"0.5*median"``; ``"median"`` by default.
    gamma : float, optional
        The factor of the distance.
    scales : sequence of float, optional
        One factor for each column, at least 0, which multiplies its term.

    Examples
    --------
    >>> ChiSquared(gamma=1.0)([[0.5, 0.5]], [[0.5, 0.5], [1.0, 0.0]]).round(3)
    array([[1.   , 0.513]])
    """

    pair = CHI_SQUARED

    width: Width = None
    gamma: float | None = None

    def _median_distance(self, X: Any) -> float:
        distances = CHI_SQUARED.entries(draw_rows(as_rows(X), MEDIAN_ROWS))
        pairs = distances[np.tri(len(distances), k=-1, dtype=np.bool_) & (distances > 0)]
        return _median(pairs) if len(pairs) else 1.0
