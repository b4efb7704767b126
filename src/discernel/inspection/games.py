"""Shapley values of columns: their contributions to a score, averaged over all orders.

A player is a column or a group of columns. If present, it has its value in the explained row; if
absent, its value in a reference row. The Shapley value of a player is the change of the score when
the player is added, averaged over all orders of adding players. Kernels that are products or sums
over columns have closed forms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_legendre

from discernel.arrays import FloatArray, city_distances, squared_distances
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel
from discernel.kernels.composites import Combination
from discernel.kernels.curves import Curves
from discernel.kernels.terms import IDENTITY, Term
from discernel.kernels.weighted import WeightedKernels, slices
from discernel.model.parts import ScorePart, seen_columns
from discernel.model.swaps import dense, mixed_rows, moved_columns

#: Largest error of the sum of Shapley values of a product, per unit of its coefficients.
_TOLERANCE = 1e-13
#: Number of quadrature nodes to try first, if the exact number is larger.
_FIRST_NODES = 6
#: Number of players up to which all subsets are evaluated; number of random orders, each with its
#: reverse, for more players.
_ALL_SUBSETS, _ORDERS = 8, 32
#: Number of factors of columns and training rows computed at a time.
_BLOCK_ENTRIES = 2**20

#: Adds the Shapley values for a row and a reference, each of shape (1, n_columns), to an array of
#: shape (n_players, n_outputs); returns whether they are exact.
Game = Callable[[FloatArray, Any, Any], bool]
#: From a slice of n rows to the factors of all groups in the kernel between these rows and all
#: rows, of shape (n_groups, n, n_rows).
Factors = Callable[[slice], FloatArray]
#: Products that add up to a kernel: their groups, a coefficient and the factors.
Products = Iterator[tuple[NDArray[np.intp], float, Factors]]


# ---- kernels, column by column -----------------------------------------------------------------


class Form(ABC):
    """A kernel, or a term of one, as a function of its columns."""

    #: Whether the kernel is linear in each of its arguments.
    is_linear: ClassVar[bool] = False

    @abstractmethod
    def game(self, part: ScorePart, player: NDArray[np.intp]) -> Game:
        """Return the game of Σ_j coef_j k(x, z_j), where each column belongs to a player."""

    @abstractmethod
    def by_group(self, X: FloatArray, group: NDArray[np.intp]) -> Products:
        """Yield products over groups of columns that add up to the kernel between rows."""


@dataclass(frozen=True)
class ProductForm(Form):
    """factor · Π_l exp(−squares_l (x_l − z_l)² − absolutes_l |x_l − z_l|), over all columns l."""

    factor: float
    squares: FloatArray
    absolutes: FloatArray

    def exponents(self, x: FloatArray, Z: FloatArray) -> FloatArray:
        """Return minus the logarithms of the columns' factors, of shape (n_columns, n_rows)."""
        apart = np.abs((Z - x).T)
        return np.asarray(apart * (self.absolutes[:, None] + self.squares[:, None] * apart))

    @property
    def columns(self) -> NDArray[np.intp]:
        """The columns that the kernel depends on."""
        return np.flatnonzero((self.squares > 0) | (self.absolutes > 0))

    def game(self, part: ScorePart, player: NDArray[np.intp]) -> Game:
        columns = self.columns
        player = player[columns]
        form = ProductForm(self.factor, self.squares[columns], self.absolutes[columns])

        def add(out: FloatArray, x: Any, reference: Any) -> bool:
            here, there = dense(x)[0, columns], dense(reference)[0, columns]
            players = np.unique(player[here != there])
            moves = np.isin(player, players)
            for rows in _blocks(len(part.coef), len(columns)) if len(players) else ():
                Z = dense(part.rows[rows])[:, columns]
                now, then = (form.exponents(row, Z) for row in (here, there))
                coef = part.coef[rows] * np.exp(-now[~moves].sum(axis=0))[:, None]
                a, b = (
                    np.exp(-_sums_by_player(each[moves], player[moves])) for each in (now, then)
                )
                out[players] += form.factor * product_integrals(a, b) @ coef
            return True

        return add

    def by_group(self, X: FloatArray, group: NDArray[np.intp]) -> Products:
        groups = np.unique(group[self.columns])
        scaled = [
            (X[:, own] * np.sqrt(self.squares[own]), X[:, own] * self.absolutes[own])
            for own in (group == one for one in groups)
        ]

        def factors(rows: slice) -> FloatArray:
            found = np.empty((len(groups), rows.stop - rows.start, len(X)))
            for place, (near, city) in enumerate(scaled):
                found[place] = squared_distances(near[rows], near) if near.any() else 0.0
                if city.any():
                    found[place] += city_distances(city[rows], city)
            return np.asarray(np.exp(-found))

        yield groups, self.factor, factors


@dataclass(frozen=True)
class SumForm(Form):
    """factor · Σ_l weights_l (x_l − origin_l)(z_l − origin_l), over all columns l."""

    factor: float
    weights: FloatArray
    origin: FloatArray
    is_linear = True

    def game(self, part: ScorePart, player: NDArray[np.intp]) -> Game:
        slopes = sum(
            (dense(part.rows[rows]) - self.origin).T @ part.coef[rows]
            for rows in _blocks(len(part.coef), len(player))
        )
        return partial(add_linear, self.factor * self.weights[:, None] * slopes, player)

    def by_group(self, X: FloatArray, group: NDArray[np.intp]) -> Products:
        moved = (X - self.origin) * np.sqrt(self.weights)
        for one in np.unique(group):
            part = moved[:, group == one]
            yield np.array([one]), self.factor, rows_of(part @ part.T)


@dataclass(frozen=True)
class CurvedForm(Form):
    """A form of curves of the columns, each a function of one column."""

    form: Form
    curves: Curves

    def game(self, part: Any, player: NDArray[np.intp]) -> Game:
        of = self.curves.of
        inner = self.form.game(replace(part, rows=of(dense(part.rows))), player)

        def add(out: FloatArray, x: Any, reference: Any) -> bool:
            return inner(out, of(dense(x)), of(dense(reference)))

        return add

    def by_group(self, X: FloatArray, group: NDArray[np.intp]) -> Products:
        return self.form.by_group(self.curves.of(X), group)


@dataclass(frozen=True)
class OtherForm(Form):
    """A kernel without a known structure over its columns."""

    kernel: Kernel

    def game(self, part: Any, player: NDArray[np.intp]) -> Game:
        own = replace(part, kernel=WeightedKernels([self.kernel], np.ones(1)))
        return sampled_game(own, self.kernel, player)

    def by_group(self, X: FloatArray, group: NDArray[np.intp]) -> Products:
        raise InvalidInputError(
            f"{self.kernel.name} is neither a product nor a sum over its columns, and cannot be "
            "split into groups of columns. Restrict it to the columns of one group with .on, or "
            "omit groups."
        )


def rows_of(matrix: FloatArray) -> Factors:
    """Return a function that returns rows of a kernel matrix, as the factors of a single group."""

    def factors(rows: slice) -> FloatArray:
        return matrix[None, rows]

    return factors


def kernel_forms(kernel: Kernel, n_columns: int) -> list[Form]:
    """Return forms that add up to a resolved kernel on ``n_columns`` columns."""
    found = [(term, _known_form(term, n_columns)) for term in kernel.terms()]
    known = [form for _, form in found if form is not None]
    others = tuple(term for term, form in found if form is None)
    if not known:
        return [OtherForm(kernel)]
    # One form for all other terms, so that it is evaluated once.
    return [*known, OtherForm(Combination(others))] if others else known


def _known_form(term: Term, n: int) -> Form | None:
    """Return the form of Gaussian and Laplace products and of inner products, or None."""
    views = [atom.view.seen(n) for atom in term.atoms]
    curves = {
        None if seen.curves is None else _spread(seen.curves, seen.columns, n) for seen in views
    }
    if len(curves) > 1:
        return None
    (own,), plain = curves or {None}, _plain_form(term, n)
    return plain if own is None or plain is None else CurvedForm(plain, own)


def _plain_form(term: Term, n: int) -> Form | None:
    """Return the form of a term whose columns may be curves of those of the rows."""
    if [(atom.pair.kind, atom.function) for atom in term.atoms] == [("inner", IDENTITY)]:
        columns, factors, origins, _ = term.atoms[0].view.seen(n)
        weights, origin = np.zeros((2, n))
        weights[columns], used = factors**2, factors > 0
        origin[columns[used]] = origins[used] / factors[used]
        return SumForm(term.factor, weights, origin)
    rates = {"squared": np.zeros(n), "city": np.zeros(n)}
    for atom in term.atoms:
        if atom.function.kind != "exp" or atom.pair.kind not in rates:
            return None
        seen, (rate,) = atom.view.seen(n), atom.function.numbers
        power = 2 if atom.pair.kind == "squared" else 1
        rates[atom.pair.kind][seen.columns] += rate * seen.factors**power
    return ProductForm(term.factor, rates["squared"], rates["city"])


def _spread(curves: Curves, columns: NDArray[np.intp], n: int) -> Curves:
    """Return one curve per column: the identity for columns without a curve."""
    place = dict(zip(columns.tolist(), range(len(columns)), strict=True))
    knots, values = (
        tuple(each[place[column]] if column in place else () for column in range(n))
        for each in (curves.knots, curves.values)
    )
    return Curves(knots, values)


# ---- games between two rows --------------------------------------------------------------------


def games_of(part: ScorePart, player: NDArray[np.intp]) -> Iterator[Game]:
    """Yield games whose Shapley values add up to those of a part with one kernel."""
    (kernel,), n = part.kernels, len(player)
    forms = kernel_forms(kernel, n)
    if part.features is None:
        yield from (form.game(part, player) for form in forms)
    elif all(form.is_linear for form in forms):
        yield partial(add_linear, part(np.eye(n)) - part(np.zeros((1, n))), player)
    else:
        yield sampled_game(part, kernel, player)


def add_linear(
    slopes: FloatArray, player: NDArray[np.intp], out: FloatArray, x: Any, reference: Any
) -> bool:
    """Add the Shapley values of the linear game Σ_l slopes_l x_l."""
    np.add.at(out, player, (dense(x) - dense(reference)).T * slopes)
    return True


def sampled_game(part: ScorePart, kernel: Kernel, player: NDArray[np.intp]) -> Game:
    """Return the game of any kernel, by evaluating it on rows mixed from row and reference."""
    seen = seen_columns([kernel], len(player))

    def add(out: FloatArray, x: Any, reference: Any) -> bool:
        players = np.unique(player[moved_columns(x, reference) & seen])
        if not len(players):
            return True

        def value(taken: NDArray[np.bool_]) -> FloatArray:
            present = np.ones((len(taken), len(out)), dtype=np.bool_)
            present[:, players] = taken
            return np.asarray(part(mixed_rows(x, reference, present[:, player])))

        found, exact = sampled_values(value, len(players))
        out[players] += found
        return exact

    return add


def _blocks(n: int, n_columns: int) -> list[slice]:
    return slices(slice(0, n), max(1, _BLOCK_ENTRIES // max(1, n_columns)))


def _sums_by_player(values: FloatArray, player: NDArray[np.intp]) -> FloatArray:
    """Return the sums of values over the columns of each player, in the order of the players."""
    order = np.argsort(player, kind="stable")
    starts = np.flatnonzero(np.diff(player[order], prepend=-1))
    return np.asarray(np.add.reduceat(values[order], starts, axis=0))


# ---- Shapley values ----------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _nodes(n: int) -> tuple[FloatArray, FloatArray]:
    """Return Gauss–Legendre nodes and weights on [0, 1], exact up to degree 2n − 1."""
    points, weights = roots_legendre(n)
    return 0.5 * (1.0 + points), 0.5 * weights


def n_nodes(n_players: int) -> int:
    """Return the number of quadrature nodes to try first."""
    return min((n_players + 1) // 2, _FIRST_NODES)


def _others(factors: FloatArray) -> FloatArray:
    """Return, for each factor, the product of all others, without division: factors may be 0."""
    out = np.ones_like(factors)
    np.multiply.accumulate(factors[:-1], axis=0, out=out[1:])
    out[:-1] *= np.multiply.accumulate(factors[:0:-1], axis=0)[::-1]
    return out


def product_integrals(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the Shapley values of games v(S) = Π_{l∈S} a_l Π_{l∉S} b_l.

    φ_l = ∫₀¹ (a_l − b_l) Π_{m≠l} (b_m + t(a_m − b_m)) dt: if players are added at uniform random
    times, player l is added at time t, when each other player is present with probability t. The
    integrand is a polynomial of degree n_players − 1, so that a quadrature rule with half as many
    nodes is exact. Fewer nodes are used if the values then add up to Π a − Π b, as for smooth
    kernels of many columns. Factors and values have the shape (n_players, ...), for any number of
    games.
    """
    change, total = a - b, a.prod(axis=0) - b.prod(axis=0)
    exact, n = (len(a) + 1) // 2, n_nodes(len(a))
    while True:
        rest = np.zeros_like(a)
        for node, weight in zip(*_nodes(n), strict=True):
            rest += weight * _others(b + node * change)
        rest *= change
        if n == exact or np.abs(rest.sum(axis=0) - total).max(initial=0.0) <= _TOLERANCE:
            return np.asarray(rest)
        n = min(2 * n, exact)


def sampled_values(
    value: Callable[[NDArray[np.bool_]], FloatArray], n_players: int
) -> tuple[FloatArray, bool]:
    """Return the Shapley values of any game, and whether they are exact.

    With up to 8 players all subsets are evaluated. With more, values are averages over 32 random
    orders; they add up, because they do so for each order. ``value`` is a function of the presence
    of players, of shape (n_games, n_players), with results of shape (n_games, n_outputs).
    """
    if n_players <= _ALL_SUBSETS:
        return _all_subsets(value, n_players), True
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(n_players) for _ in range(_ORDERS // 2)]
    orders = np.array([order for one in drawn for order in (one, one[::-1])])
    ranks = np.argsort(orders, axis=1)
    # Whether a player is present: (order, number of players added, player).
    taken = ranks[:, None, :] < np.arange(n_players + 1)[None, :, None]
    results = value(taken.reshape(-1, n_players)).reshape(len(orders), n_players + 1, -1)
    steps = np.diff(results, axis=1)
    by_player = np.take_along_axis(steps, ranks[:, :, None], axis=1)
    return np.asarray(by_player.mean(axis=0)), False


def _all_subsets(value: Callable[[NDArray[np.bool_]], FloatArray], n: int) -> FloatArray:
    codes = np.arange(2**n)
    taken = (codes[:, None] >> np.arange(n)) % 2 == 1
    results, sizes = value(taken), taken.sum(axis=1)
    out = np.zeros((n, results.shape[1]))
    for player in range(n):
        without = codes[~taken[:, player]]
        weights = np.array([1.0 / (n * comb(n - 1, size)) for size in sizes[without]])
        out[player] = weights @ (results[without + 2**player] - results[without])
    return out
