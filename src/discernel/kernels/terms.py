"""The normal form of kernels: sums of products of functions of distances and inner products.

Every kernel is k(x, z) = Σ c Π f(p(v(x), v(z))): numbers c times products of atoms, each of which
is a function f of a pairwise matrix p, such as squared distances, of what a view v shows of rows.
A kernel of which nothing more is known is one atom, whose pairwise matrix is the kernel itself.
Evaluation, gradients, devices, feature maps, explanations and exports read this form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from itertools import product
from math import comb, inf
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, FloatArray, as_dense, as_rows, n_rows
from discernel.arrays.loops import Factors
from discernel.exceptions import InvalidInputError
from discernel.kernels.columns import (
    column_indices,
    divided_columns,
    scaled_columns,
    take_columns,
)

#: exp(−690) is 1e-300. Below it numbers are denormal, with which processors are ten times slower,
#: also in every product and factorisation to come.
LEAST_EXPONENT = -690.0
#: The same for tiles of single precision, of which the least normal number is 1e-38.
LEAST_SINGLE_EXPONENT = -80.0

#: An array of single or double precision.
Array = NDArray[Any]


# ---- views -------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """A view as numbers: it shows ``X[:, columns] * factors - origin``."""

    columns: NDArray[np.intp]
    factors: FloatArray
    origin: FloatArray

    def of(self, X: Any) -> Any:
        """Return what the view shows of rows, an array or rows that exports record."""
        shown = X[:, self.columns]
        shown = shown * self.factors if (self.factors != 1).any() else shown
        return shown - self.origin if self.origin.any() else shown


@dataclass(frozen=True)
class View:
    """What a kernel sees of rows: steps, and with what each of them is done.

    Some columns are taken, divided by spreads, multiplied by scales, or an origin is taken off.
    """

    steps: tuple[tuple[str, Any], ...] = ()

    @cached_property
    def _hash(self) -> int:
        return hash(self.steps)

    def __hash__(self) -> int:
        # Computed once: a prediction looks views up some forty times, and they know every column.
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        return {"steps": self.steps}  # hashes of words differ between processes

    def take(self, columns: Any) -> View:
        """Return the view of some of these columns, chosen in any way."""
        # Before Python 3.12, slices are no keys.
        fixed = ("slice", *columns.__reduce__()[1]) if isinstance(columns, slice) else columns
        return View((*self.steps, ("columns", fixed)))

    def divide(self, spreads: tuple[float, ...]) -> View:
        """Return the view of these columns over their spreads; those of spread 0 become 0."""
        return View((*self.steps, ("spreads", spreads)))

    def scale(self, scales: tuple[float, ...] | None) -> View:
        """Return the view of these columns times factors, without those of factor 0."""
        return self if scales is None else View((*self.steps, ("scales", scales)))

    def shift(self, origin: tuple[float, ...] | None) -> View:
        """Return the view of these columns less an origin."""
        return self if origin is None else View((*self.steps, ("origin", origin)))

    def of(self, X: Any) -> Any:
        """Return what is seen of rows: an array, CSR or Table."""
        for step, by in self.steps:
            X = _STEPS[step](X, by)
        return X

    def of_both(self, X: Any, Z: Any | None) -> tuple[Any, Any | None]:
        """Return what is seen of X and of Z; None for a Z that is seen the same as X."""
        if not self.steps:
            return X, Z
        return self.of(X), None if Z is None or Z is X else self.of(Z)

    def seen(self, n_columns: int) -> Seen:
        """Return the view of so many columns as numbers."""
        columns, factors, origin = np.arange(n_columns)[None, :], np.ones((1, n_columns)), None
        for step, by in self.steps:
            if step == "origin":
                origin = np.asarray(by)
                continue
            factors = _STEPS[step](factors, by)
            if step == "columns":
                columns = _taken(columns, by)
            elif step == "scales":
                columns = columns[:, np.flatnonzero(by)]
        return Seen(columns[0], factors[0], np.zeros(len(columns[0])) if origin is None else origin)


def _taken(X: Any, columns: Any) -> Any:
    is_slice = isinstance(columns, tuple) and columns[:1] == ("slice",) and len(columns) == 4
    return take_columns(X, column_indices(slice(*columns[1:]) if is_slice else columns, X))


def _less_origin(X: Any, origin: tuple[float, ...]) -> Any:
    X = as_rows(X)
    if X.shape[1] != len(origin):
        raise InvalidInputError(
            f"Rows must have {len(origin)} features, as those that the kernel was shifted by. "
            f"Got {X.shape[1]}."
        )
    return as_dense(X) - np.array(origin)


_STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "columns": _taken,
    "spreads": divided_columns,
    "scales": scaled_columns,
    "origin": _less_origin,
}


# ---- pairs -------------------------------------------------------------------------------------


class OnDevice:
    """Arrays of prepared rows on a device, or None, that are sliced together."""

    def __init__(self, *arrays: Any) -> None:
        self.arrays = arrays

    def __getitem__(self, rows: slice) -> OnDevice:
        return OnDevice(*(None if each is None else each[rows, :] for each in self.arrays))


class PairKind(ABC):
    """What is computed of all pairs of rows: distances, inner products, or a whole kernel."""

    #: What other array libraries and gradients know the matrix by; None: they do not.
    kind: ClassVar[str | None] = None
    #: Whether rows are prepared once, so that kernels share the matrix, tile by tile.
    is_prepared: ClassVar[bool] = True
    #: Whether a row has 0 with itself.
    is_distance: ClassVar[bool] = False
    #: Whether the entries are sums over columns, which can be differentiated by each of them.
    is_sum: ClassVar[bool] = False
    #: The h with which the part of a column, times s in both rows, is sʰ times what it was; None:
    #: columns have no scales.
    homogeneity: ClassVar[int | None] = None
    #: Whether rows may have missing cells.
    takes_missing: bool = False

    def entries(self, X: Any, Z: Any | None = None) -> FloatArray:
        """Return the matrix between the rows of X and Z, dense or CSR, or of X with itself."""
        if Z is None or Z is X:
            return self.tile(self.rows(X), None, None)
        training = self.rows(Z)
        return self.tile(self.rows(X, training), training, None)

    @abstractmethod
    def diagonal(self, X: Any) -> FloatArray:
        """Return the diagonal of ``entries(X)``, without the rest."""

    def rows(self, X: Any, like: Any | None = None) -> Any:
        """Return dense rows, CSR or a Table as `tile` takes them, computed once, to be sliced.

        ``like`` is what this method returned of the rows that these ones will meet.
        """
        return X

    @abstractmethod
    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        """Return the matrix of what `rows` returned, a new one or ``out``."""

    def single(self, rows: Any) -> Any | None:
        """Return what `rows` returned, of single precision; None where that makes nothing fast."""
        return None

    def factors(self, rows: Any) -> Factors | None:
        """Return what compiled loops make the matrix of what `rows` returned of; None: they do not.

        The arrays belong to ``rows``, and live as long.
        """
        return None

    def put(self, rows: Any, device: Device, single: bool) -> Any:
        """Return what `rows` returned as `tile_on` takes it, sent to a device, to be sliced.

        Without a `kind`, rows stay with NumPy.
        """
        return rows if self.kind is None else OnDevice(device.put(rows, single=single))

    def tile_on(self, device: Device, X: Any, Z: Any, single: bool) -> Any:
        """Return the matrix of what `put` returned, on the device.

        By its `formula`; without a `kind`, it is made by NumPy and sent there.
        """
        if self.kind is None:
            return device.put(self.tile(X, Z, None), single=single)
        (left,), (right,) = X.arrays, Z.arrays
        return self.formula(left, right, device.functions, inf)

    def slope_sums(self, view: View, expansion: Any) -> Callable[[slice, Any], Any]:
        """Return a function of some rows of an `Expansion` and their slopes.

        It returns Σ_j slope_ij coef_jc d_l(x_i, z_j), of shape (n_outputs, n_rows, n_columns),
        where d_l is the derivative of the entries by a column as the view shows it.
        """
        raise NotImplementedError

    def formula_rows(self, X: Any, xp: Any) -> Any:
        """Return rows as `formula` takes them, by functions of the namespace ``xp``."""
        return X

    def formula(self, X: Any, Z: FloatArray, xp: Any, steepness: float) -> Any | None:
        """Return the matrix between new rows X and stored rows Z for exports; None: it has none.

        X holds no numbers: the operators of X and the functions of ``xp`` write down what is to be
        computed (`discernel.export.record.Recorder` lists them). ``steepness`` is the largest
        derivative of the functions that are taken of the matrix, for the digits that these need.
        """
        return None


# ---- functions ---------------------------------------------------------------------------------


class PairFunction(ABC):
    """A function of the entries of a pairwise matrix, which is left as it is.

    A subclass is a frozen dataclass of its numbers.
    """

    #: The name of the function, without its numbers.
    kind: ClassVar[str]

    #: The rate of an exponential; None for other functions. Those of one kind are powers of each
    #: other.
    decay: float | None = None

    @property
    def steepness(self) -> float:
        """The largest derivative by the entries of a pairwise matrix, in size."""
        return inf

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers of the function."""
        return tuple(map(float, astuple(cast(Any, self))))

    @abstractmethod
    def values(self, base: Any, xp: Any) -> Any:
        """Return the values for an array of the namespace ``xp``, which exports record too."""

    @abstractmethod
    def slope(self, base: Any, xp: Any) -> tuple[Any, float]:
        """Return the derivative by the entries of a pairwise matrix: a matrix, and its factor."""

    def times(self, other: PairFunction) -> PairFunction | None:
        """Return the product with another function of the same matrix; None: it is no function."""
        return None

    def write(self, base: Array, out: Array) -> None:
        """Write the values for a matrix of NumPy to ``out``; override it to need no more memory."""
        out[...] = self.values(base, np)

    def __call__(self, base: Any, xp: Any = np) -> Any:
        """Return the values, by `write` for a matrix of NumPy."""
        if xp is not np:
            return self.values(base, xp)
        out = np.empty_like(base)
        self.write(base, out)
        return out


@dataclass(frozen=True)
class Decay(PairFunction):
    """exp(−rate·p)."""

    kind = "exp"

    rate: float

    @property
    def decay(self) -> float | None:  # type: ignore[override]
        return self.rate

    @property
    def steepness(self) -> float:
        return self.rate

    def distance(self, base: Any, xp: Any, out: Array | None = None) -> Any:
        """Return what is multiplied by the rate: ``base`` itself, or by NumPy in ``out``."""
        return base

    def values(self, base: Any, xp: Any) -> Any:
        return xp.exp(self.distance(base, xp) * -self.rate)

    def write(self, base: Array, out: Array) -> None:
        np.multiply(self.distance(base, np, out), -self.rate, out=out)
        single = out.dtype == np.float32
        np.maximum(out, LEAST_SINGLE_EXPONENT if single else LEAST_EXPONENT, out=out)
        np.exp(out, out=out)

    def slope(self, base: Any, xp: Any) -> tuple[Any, float]:
        return self(base, xp), -self.rate

    def times(self, other: PairFunction) -> PairFunction | None:
        if other.kind != self.kind:
            return None
        return replace(self, rate=self.rate + other.numbers[0])


class RootDecay(Decay):
    """exp(−rate·√p)."""

    kind = "exp of root"

    @property
    def steepness(self) -> float:
        return inf  # next to distance 0

    def distance(self, base: Any, xp: Any, out: Array | None = None) -> Any:
        # On a device, rounding may leave less than 0.
        return np.sqrt(base, out=out) if xp is np else xp.sqrt(xp.clip(base, min=0.0))

    def slope(self, base: Any, xp: Any) -> tuple[Any, float]:
        distance, gram = self.distance(base, xp), self(base, xp)
        # At distance 0 there is a tip and no derivative; 0 is the mean of those around it.
        apart, ones = distance > 0, xp.ones_like(distance)
        slope = xp.where(apart, gram, 0.0 * gram) / xp.where(apart, distance, ones)
        return slope, -0.5 * self.rate


@dataclass(frozen=True)
class Monomial(PairFunction):
    """(factor·p + constant)^degree."""

    kind = "power"

    factor: float = 1.0
    constant: float = 0.0
    degree: int = 1

    def values(self, base: Any, xp: Any) -> Any:
        return base if self == IDENTITY else (base * self.factor + self.constant) ** self.degree

    def write(self, base: Array, out: Array) -> None:
        np.multiply(base, self.factor, out=out)
        if self.constant:
            out += self.constant
        if self.degree != 1:
            out **= self.degree

    def slope(self, base: Any, xp: Any) -> tuple[Any, float]:
        return replace(self, degree=self.degree - 1)(base, xp), self.degree * self.factor

    def times(self, other: PairFunction) -> PairFunction | None:
        if other.kind != self.kind or other.numbers[:2] != self.numbers[:2]:
            return None
        return replace(self, degree=self.degree + int(other.numbers[2]))


#: The entries themselves.
IDENTITY = Monomial()


# ---- terms -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Atom:
    """A function of a pairwise matrix of what is seen of rows."""

    pair: PairKind
    view: View
    function: PairFunction = IDENTITY

    @property
    def key(self) -> Key:
        """What atoms have in common that share a pairwise matrix."""
        return self.pair, self.view


class Term(NamedTuple):
    """A number and the atoms whose product it multiplies; without atoms, a constant."""

    factor: float
    atoms: tuple[Atom, ...]


Key: TypeAlias = tuple[PairKind, View]
Terms: TypeAlias = tuple[Term, ...]
#: What belongs to pairwise matrices: rows as these take them, or the matrices.
Bases: TypeAlias = dict[Key, Any]


def single_atom(terms: Terms) -> tuple[float, Atom] | None:
    """Return the factor and atom of a kernel that is a number times one atom; None for others."""
    if len(terms) != 1 or len(terms[0].atoms) != 1:
        return None
    return terms[0].factor, terms[0].atoms[0]


def multiply(left: Terms, right: Terms) -> Terms:
    """Return the terms of the product of two kernels."""
    return tuple(
        Term(a * b, _joined((*one, *other))) for (a, one), (b, other) in product(left, right)
    )


def _joined(atoms: Iterable[Atom]) -> tuple[Atom, ...]:
    """Return atoms with the same product, of which no two are one function of one matrix."""
    found: list[Atom] = []
    for atom in atoms:
        for place, other in enumerate(found):
            made = atom.function.times(other.function) if other.key == atom.key else None
            if made is not None:
                found[place] = replace(atom, function=made)
                break
        else:
            found.append(atom)
    return tuple(found)


def raise_to(terms: Terms, exponent: int) -> Terms:
    """Return the terms of a power of a kernel, by the binomial formula for sums."""
    if len(terms) == 1 or exponent == 1:
        made = terms
        for _ in range(exponent - 1):
            made = multiply(made, terms)
        return made
    first, rest = terms[:1], terms[1:]
    found: list[Term] = []
    for n in range(exponent + 1):
        parts = [raise_to(part, k) for part, k in ((first, n), (rest, exponent - n)) if k]
        whole = parts[0] if len(parts) == 1 else multiply(*parts)
        found += [Term(comb(exponent, n) * factor, atoms) for factor, atoms in whole]
    return tuple(found)


# ---- values ------------------------------------------------------------------------------------


def keys_of(terms: Sequence[Term]) -> tuple[Key, ...]:
    """Return the pairwise matrices that terms are made of, each once."""
    return tuple(dict.fromkeys(atom.key for term in terms for atom in term.atoms))


def combine(terms: Sequence[Term], bases: Bases, xp: Any = np) -> Any:
    """Return Σ c Π f(p) of pairwise matrices of any library, which are left as they are."""
    total: Any = None
    for factor, atoms in terms:
        made: Any = None
        for atom in atoms:
            value = atom.function(bases[atom.key], xp)
            made = value if made is None else made * value
        made = factor if made is None else made if factor == 1 else made * factor
        total = made if total is None else total + made
    return total


def matrix_of(terms: Terms, X: Any, Z: Any | None = None, known: Bases | None = None) -> FloatArray:
    """Return the matrix of a kernel between the rows of X and of Z, without Z those of X.

    ``known`` holds distances and inner products of these rows; more are added.
    """
    bases: Bases = {}
    for pair, view in keys_of(terms):
        store = bases if known is None or not pair.is_prepared else known
        if (pair, view) not in store:
            store[pair, view] = pair.entries(*view.of_both(X, Z))
        bases[pair, view] = store[pair, view]
    return np.asarray(combine(terms, bases))


def diagonal_of(terms: Terms, X: Any) -> FloatArray:
    """Return the value of every row with itself, of shape (n_rows,)."""
    # Where rows are at distance 0 from themselves, their columns need not be looked at.
    bases = {
        (pair, view): np.zeros(n_rows(X)) if pair.is_distance else pair.diagonal(view.of(X))
        for pair, view in keys_of(terms)
    }
    return np.asarray(combine(terms, bases))


def formula_of(terms: Sequence[Term], X: Any, Z: FloatArray, xp: Any) -> Any | None:
    """Return the matrix between new rows X, without numbers, and stored rows Z, for exports.

    `PairKind.formula` says what X and ``xp`` are. None: a part of the kernel has no formula.
    """
    atoms = [atom for term in terms for atom in term.atoms]
    bases: Bases = {}
    for pair, view in keys_of(terms):
        steep = max(atom.function.steepness for atom in atoms if atom.key == (pair, view))
        seen = view.seen(Z.shape[1])
        new, stored = pair.formula_rows(seen.of(X), xp), pair.formula_rows(seen.of(Z), np)
        bases[pair, view] = pair.formula(new, stored, xp, steep)
        if bases[pair, view] is None:
            return None
    return combine(terms, bases, xp)
