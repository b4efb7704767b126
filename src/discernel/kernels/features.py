"""Feature maps, from rows to φ(x) with k(x, z) ≈ φ(x)·φ(z), and the rows they are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import (
    FloatArray,
    as_dense,
    as_rows,
    is_sparse,
    n_rows,
    pivoted_cholesky,
    rows_for_threads,
)
from discernel.exceptions import InvalidInputError
from discernel.kernels.base import Kernel
from discernel.kernels.terms import IDENTITY, Atom, single_atom
from discernel.kernels.weighted import WeightedKernels, slices

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
        self.pivots, self.lower = pivoted_cholesky(gram, least)
        if not (len(self.pivots) and gram.any()):
            raise InvalidInputError(
                "The kernel must be above 0 between a landmark and itself, but it is 0 for all "
                f"{n_rows(landmarks)} landmarks. Draw others, or another kernel."
            )
        self.landmarks = landmarks[self.pivots]

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

Positions = NDArray[np.intp]

#: Rows, in multiples of the landmarks, that landmarks are looked for among where each row must be
#: looked at; drawn at random.
_POOL = 16
#: Landmarks by default, and from how many rows on there are twice as many.
_LANDMARKS, _MANY_ROWS = 1_500, 200_000
#: The first draw by distance is this share of the landmarks; every draw doubles what there is.
_FIRST = 1 / 16
#: Rows of which distances to landmarks are computed at a time.
_ROWS = 1024


def n_landmarks(n_rows: int) -> int:
    """Return how many landmarks so many rows are worth."""
    return _LANDMARKS if n_rows < _MANY_ROWS else 2 * _LANDMARKS


def draw_landmarks(X: Any, n: int, kernel: WeightedKernels | None = None) -> Positions:
    """Return the positions of at most n different rows, rising; the same for the same rows.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features)
        Rows.
    n : int
        How many. Fewer are returned where there are fewer different rows.
    kernel : WeightedKernels, optional
        With a kernel, rows are drawn as k-means++ does: in a few rounds, each row by its squared
        distance to the landmarks so far, in the space of the kernel. Without, all rows alike.
    """
    if n < 1:
        raise InvalidInputError(f"There must be at least one landmark. Got {n!r}.")
    rng = np.random.default_rng(0)
    order = rng.permutation(n_rows(X))
    if kernel is None or n >= n_rows(X):
        return np.sort(_first_distinct(X, order, n))
    pool = _first_distinct(X, order, _POOL * n)
    return np.sort(pool if len(pool) <= n else pool[_by_distance(X[pool], n, kernel, rng)])


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


def _by_distance(rows: Any, n: int, kernel: WeightedKernels, rng: np.random.Generator) -> Positions:
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
        with np.errstate(divide="ignore"):  # so the largest keys are a draw in proportion to `left`
            keys = np.log(left) + rng.gumbel(size=len(left))
        new = np.argsort(-keys, kind="stable")[:wanted]
        chosen = np.concatenate([chosen, new])
        if len(chosen) < n:
            left = np.minimum(left, _squared_distances(rows, new, kernel))
    return chosen


def _squared_distances(rows: Any, chosen: Positions, kernel: WeightedKernels) -> FloatArray:
    """Return the squared distance of every row to the nearest of some of them."""
    landmarks, least = rows[chosen], kernel.diagonal(rows)
    own = kernel.diagonal(landmarks)
    for part in slices(slice(0, len(least)), _ROWS):
        least[part] += (own - 2.0 * kernel(rows[part], landmarks)).min(axis=1)
    return np.maximum(least, 0.0)
