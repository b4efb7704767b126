"""Feature maps, from rows to φ(x) with k(x, z) ≈ φ(x)·φ(z), and the rows they are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import Any, Literal, get_args

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import (
    FloatArray,
    as_dense,
    as_rows,
    is_sparse,
    n_rows,
    rows_for_threads,
    self_product,
    squared_distances,
)
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.kernels.base import Kernel
from discernel.kernels.terms import IDENTITY, Atom, single_atom
from discernel.kernels.weighted import WeightedKernels, slices

__all__ = [
    "ExactMap",
    "FeatureMap",
    "FourierMap",
    "How",
    "NystromMap",
    "distinct_rows",
    "draw_landmarks",
    "exact_rank",
    "n_landmarks",
]

#: Bytes of features that are made at a time, per thread.
_THREAD_BYTES = 8 * 2**20


class FeatureMap(ABC):
    """Rows to features: k(x, z) ≈ φ(x)·φ(z), or exactly.

    A map knows no rows but its landmarks, so that it can be sent to where the rows are.
    """

    @property
    @abstractmethod
    def rank(self) -> int:
        """The number of features."""

    @abstractmethod
    def write(self, X: Any, out: FloatArray) -> None:
        """Write the features of rows to ``out``, of shape (n_rows, rank)."""

    def __call__(self, X: Any) -> FloatArray:
        """Return the features of rows, of shape (n_rows, rank), in the memory of the result."""
        out = np.empty((n_rows(X), self.rank))
        for rows in slices(slice(0, len(out)), rows_for_threads(8 * self.rank, _THREAD_BYTES)):
            self.write(X[rows], out[rows])
        return out

    def product(self, X: Any, vectors: FloatArray) -> FloatArray:
        """Return the features of rows times ``vectors``, in the memory of the result."""
        out = np.empty((n_rows(X), vectors.shape[1]))
        for rows in slices(slice(0, len(out)), rows_for_threads(8 * self.rank, _THREAD_BYTES)):
            out[rows] = np.matmul(self(X[rows]), vectors)
        return out

    @property
    def halved(self) -> NDArray[np.intp]:
        """The features of the same map at half of its rank; all of one that is exact."""
        return np.arange((self.rank + 1) // 2)


# ---- exact ---------------------------------------------------------------------------------------


def _exact_form(kernel: Kernel, n_columns: int) -> tuple[float, Atom, int, int] | None:
    """Return a power of inner products as factor, atom, terms of a factor and degree.

    None for other kernels.
    """
    found = single_atom(kernel.terms())
    if found is None or found[1].pair.kind not in ("inner", "cosine"):
        return None
    factor, atom = found
    if atom.function.kind != "power":
        return None
    _, constant, degree = atom.function.numbers
    return factor, atom, len(atom.view.seen(n_columns).columns) + (constant > 0), int(degree)


def exact_rank(kernel: Kernel, n_columns: int) -> int | None:
    """Return how many features the exact map of a kernel has; None: there is no such map."""
    found = _exact_form(kernel, n_columns)
    return None if found is None else comb(found[2] + found[3] - 1, found[3])


class ExactMap(FeatureMap):
    """φ(x) with φ(x)·φ(z) = k(x, z): the row, its direction, or all of its monomials.

    Parameters
    ----------
    kernel : Kernel
        `Linear`, `Cosine` or `Polynomial`, resolved; on columns, standardized, named or scaled
        too.
    n_columns : int
        The columns of the rows.

    Attributes
    ----------
    monomials : (ndarray, ndarray) or None
        The terms of every monomial, and the root of how often it is in the power. None where the
        features are the row itself.
    """

    def __init__(self, kernel: Kernel, n_columns: int) -> None:
        found = _exact_form(kernel, n_columns)
        if found is None:
            raise InvalidInputError(
                "Exact features are for Linear, Cosine and Polynomial kernels, on columns, "
                f"standardized, named or scaled too. Got {kernel!r}. Use NystromMap."
            )
        _, atom, n_terms, degree = found
        self.kernel, self._rank = kernel, comb(n_terms + degree - 1, degree)
        self.monomials: tuple[NDArray[np.intp], FloatArray] | None = None
        if atom.function != IDENTITY:
            chosen = list(combinations_with_replacement(range(n_terms), degree))
            counts = [
                factorial(degree) / np.prod([factorial(n) for n in Counter(terms).values()])
                for terms in chosen
            ]
            self.monomials = np.array(chosen, dtype=np.intp), np.sqrt(np.array(counts, dtype=float))

    @property
    def atom(self) -> Atom:
        """A power of the inner product of what is seen of rows."""
        return self.kernel.terms()[0].atoms[0]

    @property
    def factor(self) -> float:
        """What the atom is multiplied by."""
        return self.kernel.terms()[0].factor

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def halved(self) -> NDArray[np.intp]:
        return np.arange(self.rank)

    def write(self, X: Any, out: FloatArray) -> None:
        atom = self.atom
        dense = as_dense(atom.pair.rows(atom.view.of(X)))
        if self.monomials is None:
            out[:] = dense
        else:
            # x' with c + γ⟨x, z⟩ = ⟨x', z'⟩.
            gamma, constant, _ = atom.function.numbers
            terms = np.sqrt(gamma) * dense
            if constant > 0:
                terms = np.column_stack([np.full(len(dense), np.sqrt(constant)), terms])
            indices, roots = self.monomials
            out[:] = roots
            for position in indices.T:
                out *= terms[:, position]
        out *= np.sqrt(self.factor)


# ---- Fourier -------------------------------------------------------------------------------------


class FourierMap(FeatureMap):
    """φ(x) = √(c/D)·(cos Wx, sin Wx) of D frequencies W, with the kernel's law [Rahimi07]_.

    φ(x)·φ(z) is the kernel on average over W, exactly c = k(x, x) where x = z, and off by about
    c/√D elsewhere. The frequencies of `RBF` are Gaussian, those of `Laplace` of Cauchy's law.

    Parameters
    ----------
    kernel : Kernel
        `RBF` or `Laplace`, resolved; on columns, standardized, named or scaled too.
    n_columns : int
        The columns of the rows.
    rank : int
        The number of features, 2D: even and at least 2.
    orthogonal : bool, default=True
        Whether the frequencies of `RBF` are at right angles, n_columns at a time, which makes the
        error smaller. Those of `Laplace` never are: its law is not that of a ball.
    random_state : int, default=0
        Draws the frequencies.

    Attributes
    ----------
    frequencies : ndarray of shape (n_columns_of_kernel, D)
        Wᵀ.
    """

    def __init__(
        self,
        kernel: Kernel,
        n_columns: int,
        rank: int,
        *,
        orthogonal: bool = True,
        random_state: int = 0,
    ) -> None:
        if rank < 2 or rank % 2:
            raise InvalidInputError(f"The rank of Fourier features must be even. Got {rank!r}.")
        factor, atom = single_atom(kernel.terms()) or (1.0, None)
        if atom is None or atom.pair.kind not in ("squared", "city") or atom.function.kind != "exp":
            raise InvalidInputError(
                "Fourier features are for RBF and Laplace kernels, on columns, standardized, named "
                f"or scaled too. Got {kernel!r}. Use NystromMap."
            )
        n_seen, (exponent,) = len(atom.view.seen(n_columns).columns), atom.function.numbers
        rng, shape = np.random.default_rng(random_state), (n_seen, rank // 2)
        if atom.pair.kind == "city":
            self.frequencies: FloatArray = exponent * rng.standard_cauchy(shape)
        else:
            drawn = _orthogonal(shape, rng) if orthogonal else rng.standard_normal(shape)
            self.frequencies = np.sqrt(2.0 * exponent) * drawn
        self._view, self._amplitude = atom.view, float(np.sqrt(factor / shape[1]))

    @property
    def rank(self) -> int:
        return 2 * int(self.frequencies.shape[1])

    @property
    def halved(self) -> NDArray[np.intp]:
        n = self.frequencies.shape[1]
        few = np.arange((n + 1) // 2)
        return np.concatenate([few, n + few])

    def write(self, X: Any, out: FloatArray) -> None:
        angles, half = as_rows(self._view.of(X)) @ self.frequencies, self.rank // 2
        np.cos(angles, out=out[:, :half])
        np.sin(angles, out=out[:, half:])
        out *= self._amplitude


def _orthogonal(shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Return Gaussian columns that are orthogonal in blocks: right angles, Gaussian lengths."""
    n_columns, n = shape
    blocks = []
    for _ in range(-(-n // n_columns)):
        q, r = np.linalg.qr(rng.standard_normal((n_columns, n_columns)))
        q *= np.sign(np.diagonal(r))  # of the uniform law
        blocks.append(q * np.sqrt(rng.chisquare(n_columns, n_columns)))
    return np.ascontiguousarray(np.concatenate(blocks, axis=1)[:, :n])


# ---- Nyström -------------------------------------------------------------------------------------

#: Landmarks that all others represent up to this share of the largest k(z, z) are left out. What
#: they add is below it, and the rounding of k(x, z), 1e-16, is divided by its root.
_LEAST = 1e-12


class NystromMap(FeatureMap):
    """φ(x) = L⁻¹k(Z, x) of k = Σ c_i k_i and landmarks Z, with k(Z, Z) = LLᵀ.

    φ(x)·φ(z) is k where x or z is a landmark. Elsewhere k(x, z) − φ(x)·φ(z) is positive
    semidefinite, and its diagonal is what `remainder` returns.

    Parameters
    ----------
    kernels : sequence of Kernel
        Resolved and positive semidefinite.
    coefficients : array-like of shape (n_kernels,)
        Their factors, at least 0.
    landmarks : array-like or CSR of shape (n_landmarks, n_features)
        Rows. Those that the others represent, equal rows among them, are left out.

    Attributes
    ----------
    landmarks : array or CSR of shape (rank, n_features)
        Z, in the order of the pivots.
    pivots : ndarray of shape (rank,)
        Their positions among those that were given.
    lower : ndarray of shape (rank, rank)
        L.
    """

    def __init__(self, kernels: Sequence[Kernel], coefficients: Any, landmarks: Any) -> None:
        factors = np.array(coefficients, dtype=np.float64)
        if factors.shape != (len(kernels),) or not (np.isfinite(factors) & (factors >= 0)).all():
            raise InvalidInputError(
                f"There must be one finite coefficient of at least 0 per kernel, here "
                f"{len(kernels)}. Got {coefficients!r}."
            )
        active = np.flatnonzero(factors)
        self.kernel = WeightedKernels([kernels[int(i)] for i in active], factors[active])
        gram = self.kernel(landmarks, landmarks)
        gram += gram.T
        gram *= 0.5
        least = _LEAST * max(float(gram.diagonal().max()), 0.0)
        lower, order, rank, _ = scipy.linalg.lapack.dpstrf(gram, lower=1, tol=least)
        if rank == 0 or not gram.any():
            raise InvalidInputError(
                "The kernel must be above 0 between a landmark and itself, but it is 0 for all "
                f"{n_rows(landmarks)} landmarks. Draw others, or another kernel."
            )
        self.pivots: NDArray[np.intp] = np.asarray(order[:rank] - 1, dtype=np.intp)
        self.landmarks = landmarks[self.pivots]
        self.lower: FloatArray = np.asfortranarray(np.tril(lower[:rank, :rank]))

    @property
    def rank(self) -> int:
        return len(self.lower)

    def write(self, X: Any, out: FloatArray) -> None:
        self.kernel.write(X, self.landmarks, out)
        solved = scipy.linalg.blas.dtrsm(1.0, self.lower, out.T, lower=1, overwrite_b=1)
        if not np.shares_memory(solved, out):  # the memory of ``out`` was in another order
            out[:] = solved.T

    def product(self, X: Any, vectors: FloatArray) -> FloatArray:
        return self.kernel.product(X, self.landmarks, self.expansion(vectors))

    def remainder(self, X: Any, features: FloatArray) -> FloatArray:
        """Return k(x, x) − ‖φ(x)‖² of rows and their features, at least 0: what these leave."""
        left = self.kernel.diagonal(X) - np.einsum("ij,ij->i", features, features)
        return np.asarray(np.maximum(left, 0.0))

    def expansion(self, beta: FloatArray) -> FloatArray:
        """Return γ = L⁻ᵀβ of shape (rank, n): φ(x)·β = Σ_j k(x, z_j) γ_j, a sum over landmarks."""
        return np.asarray(scipy.linalg.solve_triangular(self.lower, beta, lower=True, trans="T"))


# ---- landmarks -----------------------------------------------------------------------------------

#: How landmarks are drawn.
How = Literal["uniform", "kmeans++", "leverage", "balanced"]

Positions = NDArray[np.intp]

#: Rows, in multiples of the landmarks, that landmarks are looked for among where each row must be
#: looked at; drawn at random.
_POOL = 16
#: Landmarks by default, and from how many rows on there are twice as many.
_LANDMARKS, _MANY_ROWS = 1_500, 200_000
#: The first draw by distance is this share of the landmarks; every draw doubles what there is.
_FIRST = 1 / 16
#: The share of k(x, x) below which a direction does not count in leverage scores.
_RIDGE = 1e-3
#: Rows of which distances to landmarks are computed at a time.
_ROWS = 1024


def n_landmarks(n_rows: int) -> int:
    """Return how many landmarks so many rows are worth."""
    return _LANDMARKS if n_rows < _MANY_ROWS else 2 * _LANDMARKS


def draw_landmarks(
    X: Any,
    n: int,
    how: How = "uniform",
    *,
    codes: NDArray[np.intp] | None = None,
    kernel: WeightedKernels | None = None,
    random_state: int = 0,
) -> Positions:
    """Return the positions of at most n different rows, in rising order.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features)
        Rows.
    n : int
        How many. Fewer are returned where there are fewer different rows.
    how : {"uniform", "kmeans++", "leverage", "balanced"}, default="uniform"
        All rows alike; in a few rounds, each row by its squared distance to the landmarks so far,
        in the space of the kernel; by approximate ridge leverage scores, how much a row adds to
        the span of the others; or as many of every class as there are, up to the same number.
    codes : ndarray of shape (n_rows,), optional
        The classes, for ``"balanced"``.
    kernel : WeightedKernels, optional
        Needed for ``"leverage"``; without it, the distances of ``"kmeans++"`` are those of rows.
    random_state : int, default=0
        The same seed and rows give the same landmarks.
    """
    if how not in get_args(How):
        raise unknown_choice("way to draw landmarks", how, list(get_args(How)))
    if n < 1:
        raise InvalidInputError(f"There must be at least one landmark. Got {n!r}.")
    rng = np.random.default_rng(random_state)
    if how == "balanced":
        if codes is None:
            raise InvalidInputError("Balanced landmarks need the classes of rows. Got no codes.")
        return np.sort(_first_distinct(X, _balanced_order(codes, rng), n))
    order = rng.permutation(n_rows(X))
    if how == "uniform" or n >= n_rows(X):
        return np.sort(_first_distinct(X, order, n))
    pool = _first_distinct(X, order, _POOL * n)
    if len(pool) <= n:
        return np.sort(pool)
    if how == "leverage":
        if kernel is None:
            raise InvalidInputError("Leverage scores need a kernel. Got none.")
        return np.sort(pool[_weighted_draw(_leverage(X[pool], n, kernel), n, rng)])
    return np.sort(pool[_by_distance(X[pool], n, kernel, rng)])


def distinct_rows(X: Any) -> Positions:
    """Return the position of the first of equal rows, in rising order."""
    return _first_distinct(X, np.arange(n_rows(X)), n_rows(X))


def _first_distinct(X: Any, order: Positions, n: int) -> Positions:
    """Return the first n positions of an order whose rows are all different."""
    seen: dict[bytes, int] = {}
    for block in slices(slice(0, len(order)), max(_ROWS, min(n, len(order)))):
        positions = order[block]
        for position, key in zip(positions.tolist(), _keys(X[positions]), strict=True):
            seen.setdefault(key, position)
            if len(seen) == n:
                return np.array(list(seen.values()), dtype=np.intp)
    return np.array(list(seen.values()), dtype=np.intp)


def _keys(rows: Any) -> Iterator[bytes]:
    """Yield bytes that are the same for equal rows."""
    if is_sparse(rows):
        rows = as_rows(rows).tocsr(copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            columns = rows.indices[start:stop].astype(np.int64)
            yield columns.tobytes() + rows.data[start:stop].tobytes()
        return
    cells = np.asarray(rows)
    if cells.dtype == object:
        yield from (repr(row).encode() for row in cells.tolist())
    else:
        yield from (row.tobytes() for row in cells.astype(np.float64) + 0.0)  # −0 becomes 0


def _balanced_order(codes: NDArray[np.intp], rng: np.random.Generator) -> Positions:
    """Return all rows, one of every class in turn as long as it has some, in random order."""
    order = rng.permutation(len(codes))
    turn = np.empty(len(codes), dtype=np.intp)
    for code in np.unique(codes):
        own = order[codes[order] == code]
        turn[own] = np.arange(len(own))
    return order[np.argsort(turn[order], kind="stable")]


def _weighted_draw(weights: FloatArray, n: int, rng: np.random.Generator) -> Positions:
    """Return n different positions, drawn one after another in proportion to weights."""
    with np.errstate(divide="ignore"):
        keys = np.log(weights) + rng.gumbel(size=len(weights))
    return np.argsort(-keys, kind="stable")[:n]


def _by_distance(
    rows: Any, n: int, kernel: WeightedKernels | None, rng: np.random.Generator
) -> Positions:
    """Return n positions, drawn in rounds by the squared distance to those that there are."""
    chosen = np.array([rng.integers(n_rows(rows))], dtype=np.intp)
    left = _squared_distances(rows, chosen, kernel)
    while len(chosen) < n:
        left[chosen] = 0.0
        wanted = min(n - len(chosen), max(len(chosen), int(_FIRST * n), 1))
        wanted = min(wanted, int(np.count_nonzero(left > 0)))
        if wanted == 0:  # what is left is nothing but rounding: any others will do
            rest = np.setdiff1d(np.arange(len(left)), chosen)
            return np.concatenate([chosen, rng.permutation(rest)[: n - len(chosen)]])
        new = _weighted_draw(left, wanted, rng)
        chosen = np.concatenate([chosen, new])
        if len(chosen) < n:
            left = np.minimum(left, _squared_distances(rows, new, kernel))
    return chosen


def _squared_distances(rows: Any, chosen: Positions, kernel: WeightedKernels | None) -> FloatArray:
    """Return the squared distance of every row to the nearest of some of them."""
    landmarks, least = rows[chosen], np.empty(n_rows(rows))
    own = None if kernel is None else kernel.diagonal(landmarks)
    for part in slices(slice(0, len(least)), _ROWS):
        if kernel is None or own is None:
            least[part] = squared_distances(rows[part], landmarks).min(axis=1)
        else:
            cross = kernel(rows[part], landmarks)
            least[part] = kernel.diagonal(rows[part]) + (own - 2.0 * cross).min(axis=1)
    return np.maximum(least, 0.0)


def _leverage(rows: Any, n: int, kernel: WeightedKernels) -> FloatArray:
    """Return upper estimates of ridge leverage scores of rows in random order.

    φᵀ(ΦᵀΦ + ρI)⁻¹φ of Nyström features of the first n rows, and what these leave of k(x, x) over
    the ridge ρ [Musco17]_.
    """
    total = n_rows(rows)
    first = NystromMap(kernel.kernels, kernel.coefficients, rows[: min(n, total)])
    features = first(rows)
    ridge = _RIDGE * float(kernel.diagonal(rows).mean()) * total / n
    gram = self_product(np.asfortranarray(features.T))
    gram[np.diag_indices_from(gram)] += ridge
    factor = scipy.linalg.cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    solved = scipy.linalg.solve_triangular(factor, features.T, lower=True, check_finite=False)
    scores = np.einsum("ij,ij->j", solved, solved) + first.remainder(rows, features) / ridge
    return np.asarray(np.minimum(scores, 1.0))
