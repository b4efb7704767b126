"""The normal form of kernels: sums of products of functions of distances and inner products.

Every kernel is k(x, z) = Σ c Π f(p(v(x), v(z))): a sum of numbers c times products of atoms. An
atom is a function f of a pairwise matrix p, such as squared distances. A view v selects, bends and
scales columns. An opaque kernel is one atom, whose pairwise matrix is the kernel matrix itself.
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

from discernel.arrays import Buffers, Device, FieldState, FloatArray, as_dense, as_rows, n_rows
from discernel.arrays.loops import Factors
from discernel.exceptions import InvalidInputError
from discernel.kernels.columns import column_indices, take_columns
from discernel.kernels.curves import Curves, curved_columns, divided_columns, scaled_columns

#: Smallest exponent: exp(−690) is 1e-300. Smaller numbers would be denormal, which makes all later
#: products and factorizations ten times slower.
LEAST_EXPONENT = -690.0
#: The same for single precision, whose smallest normal number is 1e-38.
LEAST_SINGLE_EXPONENT = -80.0

#: An array of single or double precision.
Array = NDArray[Any]


# ---- views -------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """A view as arrays: ``curves.of(X[:, columns]) * factors - origin``; perhaps without curves."""

    columns: NDArray[np.intp]
    factors: FloatArray
    origin: FloatArray
    curves: Curves | None = None

    def of(self, X: Any) -> Any:
        """Apply the view to rows: an array, or symbolic rows of an export."""
        shown = X[:, self.columns]
        shown = shown if self.curves is None else self.curves.of(shown)
        shown = shown * self.factors if (self.factors != 1).any() else shown
        return shown - self.origin if self.origin.any() else shown

    def slopes(self, X: FloatArray) -> FloatArray:
        """Return the derivatives of the columns, the same for all rows if there are no curves."""
        if self.curves is None:
            return self.factors
        return self.factors * self.curves.slopes(X[:, self.columns])

    def take(self, places: NDArray[np.intp]) -> Seen:
        """Return the view of some of its columns."""
        curves = None if self.curves is None else self.curves.take(places.tolist())
        return Seen(self.columns[places], self.factors[places], self.origin[places], curves)


@dataclass(frozen=True)
class View(FieldState):
    """Steps that select and scale the columns of rows before a kernel is computed.

    A step is a name and its argument: take ``columns``, selected as in `Kernel.on`, or a ``slice``
    of them, apply ``curves``, divide by ``spreads`` (columns of spread 0 become 0), multiply by
    ``scales`` (columns of scale 0 are left out) or subtract an ``origin``.
    """

    steps: tuple[tuple[str, Any], ...] = ()

    @cached_property
    def _hash(self) -> int:
        return hash(self.steps)

    def __hash__(self) -> int:
        # Cached: a prediction looks up views about forty times, and hashing visits every column.
        # No part of the state, because hashes of strings differ between processes.
        return self._hash

    def then(self, step: str, by: Any) -> View:
        """Return the view with one more step, or this one if there are no numbers for the step."""
        if by is None and step not in _SELECTIONS:
            return self
        if isinstance(by, slice):  # not hashable before Python 3.12
            step, by = "slice", by.__reduce__()[1]
        before = [name for name, _ in self.steps]
        if step == "curves" and not _SELECTIONS.issuperset(before):
            raise InvalidInputError(
                "Curves are for columns as they were given, before these are divided, scaled or "
                f"shifted. Got the steps {before} before."
            )
        return View((*self.steps, (step, by)))

    def of(self, X: Any) -> Any:
        """Apply the steps to rows: an array, CSR matrix or Table."""
        for step, by in self.steps:
            X = _STEPS[step](X, by)
        return X

    def of_both(self, X: Any, Z: Any | None) -> tuple[Any, Any | None]:
        """Apply the steps to X and Z; return None instead of Z if Z is X."""
        if not self.steps:
            return X, Z
        return self.of(X), None if Z is None or Z is X else self.of(Z)

    def seen(self, n_columns: int) -> Seen:
        """Return the view as arrays, for rows with this many columns."""
        columns, factors, origin = np.arange(n_columns)[None, :], np.ones((1, n_columns)), None
        curved, curves = columns, None
        for step, by in self.steps:
            if step == "origin":
                origin = np.asarray(by)
                continue
            if step == "curves":
                curved, curves = columns, by
                continue
            factors = _STEPS[step](factors, by)
            if step in _SELECTIONS:
                columns = _STEPS[step](columns, by)
            elif step == "scales":
                columns = columns[:, np.flatnonzero(by)]
        if curves is not None and not np.array_equal(columns, curved):
            places = {column: place for place, column in enumerate(curved[0].tolist())}
            curves = curves.take(places[column] for column in columns[0].tolist())
        origin = np.zeros(len(columns[0])) if origin is None else origin
        return Seen(columns[0], factors[0], origin, curves)


def _taken(X: Any, columns: Any) -> Any:
    return take_columns(X, column_indices(columns, X))


def _less_origin(X: Any, origin: tuple[float, ...]) -> Any:
    X = as_rows(X)
    if X.shape[1] != len(origin):
        raise InvalidInputError(
            f"Rows must have {len(origin)} features, like the training rows of the kernel. "
            f"Got {X.shape[1]}."
        )
    return as_dense(X) - np.array(origin)


#: The steps that select columns.
_SELECTIONS = {"columns", "slice"}
_STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "columns": _taken,
    "slice": lambda X, ends: _taken(X, slice(*ends)),
    "curves": curved_columns,
    "spreads": divided_columns,
    "scales": scaled_columns,
    "origin": _less_origin,
}


# ---- pairs -------------------------------------------------------------------------------------


class OnDevice:
    """Arrays of prepared rows on a device (or None), sliced together."""

    def __init__(self, *arrays: Any) -> None:
        self.arrays = arrays

    def __getitem__(self, rows: slice) -> OnDevice:
        return OnDevice(*(None if each is None else each[rows, :] for each in self.arrays))


class PairKind(ABC):
    """A function of all pairs of rows: distances, inner products, or an opaque kernel."""

    #: Name for devices, gradients and feature maps; None if only NumPy can compute the matrix.
    kind: ClassVar[str | None] = None
    #: Whether rows are prepared once, so that kernels can share the tiles of the matrix.
    is_prepared: ClassVar[bool] = True
    #: Whether the diagonal is 0.
    is_distance: ClassVar[bool] = False
    #: Whether entries are sums over columns and can be differentiated by each column.
    is_sum: ClassVar[bool] = False
    #: Of two entries of a column, what compiled loops add up; None if they do not.
    operation: ClassVar[int | None] = None
    #: Degree h of homogeneity: scaling a column by s multiplies its part of an entry by sʰ. None if
    #: columns cannot be scaled.
    homogeneity: ClassVar[int | None] = None
    #: Whether rows may have missing cells.
    takes_missing: bool = False

    def entries(self, X: Any, Z: Any | None = None) -> FloatArray:
        """Return the matrix between the rows of X and Z, or of X, for dense or CSR rows."""
        if Z is None or Z is X:
            return self.tile(self.rows(X), None, None)
        training = self.rows(Z)
        return self.tile(self.rows(X, training), training, None)

    @abstractmethod
    def diagonal(self, X: Any) -> FloatArray:
        """Return the diagonal of ``entries(X)`` without computing the matrix."""

    def rows(self, X: Any, like: Any | None = None) -> Any:
        """Prepare dense rows, CSR rows or a Table for `tile`. The result can be sliced.

        ``like`` are the prepared rows of the other side of the matrix.
        """
        return X

    @abstractmethod
    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        """Return the matrix between prepared rows, as a new array or in ``out``."""

    def single(self, rows: Any) -> Any | None:
        """Convert prepared rows to single precision; return None if that is not faster."""
        return None

    def factors(self, rows: Any) -> Factors | None:
        """Return what compiled loops make the matrix of what `rows` returned of; None: they do not.

        The arrays belong to ``rows``, and live as long.
        """
        return None

    def put(self, rows: Any, device: Device, single: bool) -> Any:
        """Copy prepared rows to a device for `tile_on`. The result can be sliced.

        Without a `kind`, rows stay NumPy arrays.
        """
        return rows if self.kind is None else OnDevice(device.put(rows, single=single))

    def tile_on(self, device: Device, X: Any, Z: Any, single: bool) -> Any:
        """Return the matrix between rows from `put`, on the device.

        It is computed by `formula` or, without a `kind`, by NumPy and copied.
        """
        if self.kind is None:
            return device.put(self.tile(X, Z, None), single=single)
        (left,), (right,) = X.arrays, Z.arrays
        return self.formula(left, right, device.functions, inf)

    def slope_sums(self, view: View, expansion: Any) -> Callable[[slice, Any], Any]:
        """Return a function from rows of an `Expansion` and their slopes to sums of derivatives.

        The sums are Σ_j slope_ij coef_jc d_l(x_i, z_j), of shape (n_outputs, n_rows, n_columns),
        where d_l is the derivative of the entries by a column of the view.
        """
        raise NotImplementedError

    def formula_rows(self, X: Any, xp: Any) -> Any:
        """Prepare rows for `formula` with functions of the namespace ``xp``."""
        return X

    def formula(self, X: Any, Z: FloatArray, xp: Any, steepness: float) -> Any | None:
        """Return the matrix between new rows X and stored rows Z; None if there is no formula.

        In an export, X is symbolic: its operators and the functions of ``xp`` record the operations
        (`discernel.export.record.Recorder` lists them). ``steepness`` is the largest derivative of
        the functions of the matrix. It determines how accurate the entries must be.
        """
        return None


# ---- functions ---------------------------------------------------------------------------------


class PairFunction(ABC):
    """A function of the entries of a pairwise matrix, which it does not change.

    A subclass is a frozen dataclass whose fields are numbers.
    """

    #: Name of the function, without its numbers.
    kind: ClassVar[str]

    @property
    def steepness(self) -> float:
        """The largest absolute derivative by the entries of a pairwise matrix."""
        return inf

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers of the function."""
        return tuple(map(float, astuple(cast(Any, self))))

    @abstractmethod
    def values(self, base: Any, xp: Any) -> Any:
        """Return the values for an array of the namespace ``xp``, or for symbolic rows."""

    @abstractmethod
    def slope(self, base: Any, xp: Any) -> tuple[Any, float]:
        """Return the derivative by the entries of a pairwise matrix, as a matrix and a factor."""

    def times(self, other: PairFunction) -> PairFunction | None:
        """Return the product with another function of the same matrix if it has a closed form."""
        return None

    def write(self, base: Array, out: Array) -> None:
        """Write the values for a NumPy matrix to ``out``. Override to save memory."""
        out[...] = self.values(base, np)

    def __call__(self, base: Any, xp: Any = np) -> Any:
        """Return the values, for a NumPy matrix by `write`."""
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
    def steepness(self) -> float:
        return self.rate

    def distance(self, base: Any, xp: Any, out: Array | None = None) -> Any:
        """Return the distance that the rate multiplies, here ``base``; NumPy may use ``out``."""
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
        return inf  # at distance 0

    def distance(self, base: Any, xp: Any, out: Array | None = None) -> Any:
        # On a device, rounding may give negative distances.
        return np.sqrt(base, out=out) if xp is np else xp.sqrt(xp.clip(base, min=0.0))

    def slope(self, base: Any, xp: Any) -> tuple[Any, float]:
        distance, gram = self.distance(base, xp), self(base, xp)
        # Not differentiable at distance 0; 0 is the mean of the derivatives around it.
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
    """A function of a pairwise matrix of a view of the rows."""

    pair: PairKind
    view: View
    function: PairFunction = IDENTITY

    @property
    def key(self) -> Key:
        """The pairwise matrix: atoms with the same key share it."""
        return self.pair, self.view

    @property
    def is_base(self) -> bool:
        """Whether the atom is its pairwise matrix."""
        return self.function is IDENTITY


class Term(NamedTuple):
    """A factor times a product of atoms; a constant if there are no atoms."""

    factor: float
    atoms: tuple[Atom, ...]


Key: TypeAlias = tuple[PairKind, View]
Terms: TypeAlias = tuple[Term, ...]
#: Prepared rows, or pairwise matrices, by their keys.
Bases: TypeAlias = dict[Key, Any]


def single_atom(terms: Terms) -> tuple[float, Atom] | None:
    """Return factor and atom if a kernel is a number times one atom, else None."""
    if len(terms) != 1 or len(terms[0].atoms) != 1:
        return None
    return terms[0].factor, terms[0].atoms[0]


def multiply(left: Terms, right: Terms) -> Terms:
    """Return the terms of the product of two kernels."""
    return tuple(
        Term(a * b, _joined((*one, *other))) for (a, one), (b, other) in product(left, right)
    )


def _joined(atoms: Iterable[Atom]) -> tuple[Atom, ...]:
    """Multiply atoms of the same pairwise matrix if their product is a function of it."""
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
    """Return the terms of a power of a kernel, for sums by the binomial theorem."""
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


# ---- rows --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """Rows, and what the pairwise matrices of some kernels need of them, computed once.

    A slice of them costs next to nothing. `of` makes them for NumPy; `on` sends what was prepared
    to a device.
    """

    rows: Any
    bases: Bases
    device: Device | None = None
    is_single: bool = False

    @classmethod
    def of(cls, keys: Iterable[Key], X: Any, like: PreparedRows | None = None) -> PreparedRows:
        """Return rows for some pairwise matrices; ``like`` are the rows that they will meet."""
        wanted = dict.fromkeys(keys)
        seen = {view: view.of(X) for view in dict.fromkeys(view for _, view in wanted)}
        bases = {
            (pair, view): pair.rows(seen[view], None if like is None else like.bases[pair, view])
            for pair, view in wanted
        }
        return cls(X, bases)

    def single(self, keys: Iterable[Key]) -> PreparedRows | None:
        """Return the same rows of single precision, for some pairwise matrices.

        None where one has none: squared distances of several columns have.
        """
        bases = {key: key[0].single(self.bases[key]) for key in keys}
        found = {key: base for key, base in bases.items() if base is not None}
        return PreparedRows(self.rows, found) if len(found) == len(bases) else None

    def on(self, device: Device, *, single: bool = False) -> PreparedRows:
        """Return the same rows on a device, whose matrices are then made there."""
        bases = {key: key[0].put(base, device, single) for key, base in self.bases.items()}
        return PreparedRows(self.rows, bases, device, single)

    def __getitem__(self, rows: Any) -> PreparedRows:
        bases = {key: base[rows] for key, base in self.bases.items()}
        return replace(self, rows=self.rows[rows], bases=bases)

    def pairwise(
        self,
        keys: Iterable[Key],
        other: PreparedRows | None = None,
        buffers: Buffers | None = None,
        *,
        aligned: bool = False,
    ) -> Bases:
        """Return some pairwise matrices of these rows and others, by default of these alone.

        Of rows on a device, the others are always given. ``aligned`` says that they begin with
        these, or these with them: distances there are then exactly 0. By NumPy, matrices are made
        in buffers if there are some.
        """
        there, found = self if other is None else other, {}
        for place, (pair, view) in enumerate(keys):
            left, right = self.bases[pair, view], there.bases[pair, view]
            if self.device is None:
                out = None
                if buffers is not None:
                    out = buffers(f"base {place}", (n_rows(self.rows), n_rows(there.rows)))
                base = pair.tile(left, None if other is None else right, out)
            else:
                base = pair.tile_on(self.device, left, right, self.is_single)
                if aligned and pair.is_distance:
                    base = self.device.clear_diagonal(base)  # not what rounding leaves there
            found[pair, view] = base
        return found


# ---- values ------------------------------------------------------------------------------------


def keys_of(terms: Sequence[Term]) -> tuple[Key, ...]:
    """Return the keys of the pairwise matrices of terms, without duplicates."""
    return tuple(dict.fromkeys(atom.key for term in terms for atom in term.atoms))


def combine(terms: Sequence[Term], bases: Bases, xp: Any = np) -> Any:
    """Return Σ c Π f(p) for pairwise matrices of any array library, without changing them."""
    total: Any = None
    for factor, atoms in terms:
        made: Any = None
        for atom in atoms:
            base = bases[atom.key]
            value = base if atom.is_base else atom.function(base, xp)
            made = value if made is None else made * value
        made = factor if made is None else made if factor == 1 else made * factor
        total = made if total is None else total + made
    return total


def matrix_of(terms: Terms, X: Any, Z: Any | None = None, known: Bases | None = None) -> FloatArray:
    """Return the kernel matrix between the rows of X and Z, without Z between the rows of X.

    ``known`` holds pairwise matrices that were computed before. New ones are added.
    """
    bases: Bases = {}
    for pair, view in keys_of(terms):
        store = bases if known is None or not pair.is_prepared else known
        if (pair, view) not in store:
            store[pair, view] = pair.entries(*view.of_both(X, Z))
        bases[pair, view] = store[pair, view]
    return np.asarray(combine(terms, bases))


def diagonal_of(terms: Terms, X: Any) -> FloatArray:
    """Return k(x, x) for every row of X, of shape (n_rows,)."""
    # The distance of a row to itself is 0, whatever its columns.
    bases = {
        (pair, view): np.zeros(n_rows(X)) if pair.is_distance else pair.diagonal(view.of(X))
        for pair, view in keys_of(terms)
    }
    return np.asarray(combine(terms, bases))


def formula_of(terms: Sequence[Term], X: Any, Z: FloatArray, xp: Any) -> Any | None:
    """Return the kernel matrix between symbolic rows X and stored rows Z, for exports.

    X and ``xp`` are those of `PairKind.formula`. Return None if an atom has no formula.
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
