"""Feature maps φ with k(x, z) ≈ φ(x)·φ(z), exact or by Nyström, and their landmarks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import Any

import numpy as np
import scipy.linalg

from discernel.arrays import (
    FloatArray,
    Positions,
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

#: Bytes of features computed at a time, per thread.
_THREAD_BYTES = 8 * 2**20


class FeatureMap(ABC):
    """Map from rows to features φ(x) with k(x, z) ≈ φ(x)·φ(z), or exactly.

    A map holds no rows except its landmarks, so that it can be sent to other machines.
    """

    @property
    @abstractmethod
    def rank(self) -> int:
        """The number of features."""

    @abstractmethod
    def write(self, X: Any, out: FloatArray) -> None:
        """Write the features of rows to ``out``, of shape (n_rows, rank)."""

    def __call__(self, X: Any) -> FloatArray:
        """Return the features of rows, of shape (n_rows, rank), computed in blocks."""
        out = np.empty((n_rows(X), self.rank))
        for rows in slices(slice(0, len(out)), rows_for_threads(8 * self.rank, _THREAD_BYTES)):
            self.write(X[rows], out[rows])
        return out

    def product(self, X: Any, vectors: FloatArray) -> FloatArray:
        """Return the features of rows times ``vectors``, computed in blocks."""
        out = np.empty((n_rows(X), vectors.shape[1]))
        for rows in slices(slice(0, len(out)), rows_for_threads(8 * self.rank, _THREAD_BYTES)):
            out[rows] = np.matmul(self(X[rows]), vectors)
        return out

    @property
    def halved(self) -> Positions:
        """Positions of the features of the same map at half the rank; all of an exact map."""
        return np.arange((self.rank + 1) // 2)


# ---- exact ---------------------------------------------------------------------------------------


def _exact_form(kernel: Kernel, n_columns: int) -> tuple[float, Atom, int, int] | None:
    """Return factor, atom, number of summands and degree of a power of an inner product.

    Return None for other kernels.
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
    """Return the number of features of the exact map, or None if there is no exact map."""
    found = _exact_form(kernel, n_columns)
    return None if found is None else comb(found[2] + found[3] - 1, found[3])


class ExactMap(FeatureMap):
    """Exact feature map of a linear, cosine or polynomial kernel: the row, or its monomials.

    Parameters
    ----------
    kernel : Kernel
        `Linear`, `Cosine` or `Polynomial`, resolved; also on columns, standardized, named or
        scaled.
    n_columns : int
        Number of columns of the rows.

    Attributes
    ----------
    monomials : (ndarray, ndarray) or None
        Positions of the factors of every monomial, and the square roots of the multinomial
        coefficients. None if the features are the row itself.
    """

    def __init__(self, kernel: Kernel, n_columns: int) -> None:
        found = _exact_form(kernel, n_columns)
        if found is None:
            raise InvalidInputError(
                "Exact features exist for Linear, Cosine and Polynomial kernels, also on columns, "
                f"standardized, named or scaled. Got {kernel!r}. Use NystromMap."
            )
        _, atom, n_terms, degree = found
        self.kernel, self._rank = kernel, comb(n_terms + degree - 1, degree)
        self.monomials: tuple[Positions, FloatArray] | None = None
        if atom.function != IDENTITY:
            chosen = list(combinations_with_replacement(range(n_terms), degree))
            counts = [
                factorial(degree) / np.prod([factorial(n) for n in Counter(terms).values()])
                for terms in chosen
            ]
            self.monomials = np.array(chosen, dtype=np.intp), np.sqrt(np.array(counts, dtype=float))

    @property
    def atom(self) -> Atom:
        """The power of an inner product, without its factor."""
        return self.kernel.terms()[0].atoms[0]

    @property
    def factor(self) -> float:
        """The factor of the atom."""
        return self.kernel.terms()[0].factor

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def halved(self) -> Positions:
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

#: A landmark is dropped if the others represent it up to this share of the largest k(z, z): it
#: would add less than this, and divide rounding errors of k(x, z) by the square root of it.
_LEAST = 1e-12


class NystromMap(FeatureMap):
    """Nyström features φ(x) = L⁻¹k(Z, x) of k = Σ c_i k_i with landmarks Z, k(Z, Z) = LLᵀ.

    φ(x)·φ(z) equals k(x, z) if x or z is a landmark. The rest, k(x, z) − φ(x)·φ(z), is positive
    semidefinite, and `remainder` returns its diagonal.

    Parameters
    ----------
    kernels : sequence of Kernel
        Positive semidefinite kernels, resolved.
    coefficients : array-like of shape (n_kernels,)
        Factors of the kernels, at least 0.
    landmarks : array-like or CSR of shape (n_landmarks, n_features)
        Candidate landmarks. Rows that the others represent, such as repeated rows, are dropped.

    Attributes
    ----------
    landmarks : array or CSR of shape (rank, n_features)
        Z, in the order of the pivots.
    pivots : ndarray of shape (rank,)
        Positions of the landmarks among the candidates.
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
                "k(z, z) must be above 0 for at least one landmark z, but it is 0 for all "
                f"{n_rows(landmarks)} landmarks. Use other landmarks or another kernel."
            )
        self.landmarks = landmarks[self.pivots]

    @property
    def rank(self) -> int:
        return len(self.lower)

    def write(self, X: Any, out: FloatArray) -> None:
        self.kernel.write(X, self.landmarks, out)
        solved = scipy.linalg.blas.dtrsm(1.0, self.lower, out.T, lower=1, overwrite_b=1)
        if not np.shares_memory(solved, out):  # `out` was not C-contiguous
            out[:] = solved.T

    def product(self, X: Any, vectors: FloatArray) -> FloatArray:
        return self.kernel.product(X, self.landmarks, self.expansion(vectors))

    def remainder(self, X: Any, features: FloatArray) -> FloatArray:
        """Return k(x, x) − ‖φ(x)‖², at least 0, for rows and their features."""
        left = self.kernel.diagonal(X) - np.einsum("ij,ij->i", features, features)
        return np.asarray(np.maximum(left, 0.0))

    def expansion(self, beta: FloatArray) -> FloatArray:
        """Return γ = L⁻ᵀβ, with which φ(x)·β = Σ_j k(x, z_j) γ_j, of shape (rank, n)."""
        return np.asarray(scipy.linalg.solve_triangular(self.lower, beta, lower=True, trans="T"))


# ---- landmarks -----------------------------------------------------------------------------------

#: Landmarks drawn by distance are chosen from a random pool of this many times as many rows.
_POOL = 16
#: Default number of landmarks, and the number of rows from which it is doubled.
_LANDMARKS, _MANY_ROWS = 1_500, 200_000
#: Share of the landmarks in the first draw by distance; each further draw doubles their number.
_FIRST = 1 / 16
#: Rows in each block of distances to landmarks.
_ROWS = 1024


def n_landmarks(n_rows: int) -> int:
    """Return the default number of landmarks for this many rows."""
    return _LANDMARKS if n_rows < _MANY_ROWS else 2 * _LANDMARKS


def draw_landmarks(X: Any, n: int, kernel: WeightedKernels | None = None) -> Positions:
    """Return the sorted positions of at most n distinct rows; deterministic.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features)
        Rows.
    n : int
        Number of landmarks. Fewer are returned if there are fewer distinct rows.
    kernel : WeightedKernels, optional
        With a kernel, rows are drawn as in k-means++: in a few rounds, with probabilities
        proportional to the squared distance to the landmarks so far, in the feature space of the
        kernel. Without, all rows have the same probability.
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
    """Return the first n positions of ``order`` with distinct rows."""
    seen: dict[bytes, int] = {}
    for block in slices(slice(0, len(order)), max(_ROWS, min(n, len(order)))):
        positions = order[block]
        for position, key in zip(positions.tolist(), _keys(X[positions]), strict=True):
            seen.setdefault(key, position)
            if len(seen) == n:
                return np.array(list(seen.values()), dtype=np.intp)
    return np.array(list(seen.values()), dtype=np.intp)


def _keys(rows: Any) -> Iterator[bytes]:
    """Yield a key for each row; equal rows have equal keys."""
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
    """Draw n positions in rounds, by the squared distance to the positions drawn before."""
    chosen = np.array([rng.integers(n_rows(rows))], dtype=np.intp)
    left = _squared_distances(rows, chosen, kernel)
    while len(chosen) < n:
        left[chosen] = 0.0
        wanted = min(n - len(chosen), max(len(chosen), int(_FIRST * n), 1))
        wanted = min(wanted, int(np.count_nonzero(left > 0)))
        if wanted == 0:  # all distances are 0 up to rounding: fill up at random
            rest = np.setdiff1d(np.arange(len(left)), chosen)
            return np.concatenate([chosen, rng.permutation(rest)[: n - len(chosen)]])
        with np.errstate(divide="ignore"):  # the largest keys are a draw in proportion to `left`
            keys = np.log(left) + rng.gumbel(size=len(left))
        new = np.argsort(-keys, kind="stable")[:wanted]
        chosen = np.concatenate([chosen, new])
        if len(chosen) < n:
            left = np.minimum(left, _squared_distances(rows, new, kernel))
    return chosen


def _squared_distances(rows: Any, chosen: Positions, kernel: WeightedKernels) -> FloatArray:
    """Return the squared distance of every row to the nearest chosen row."""
    landmarks, least = rows[chosen], kernel.diagonal(rows)
    own = kernel.diagonal(landmarks)
    for part in slices(slice(0, len(least)), _ROWS):
        least[part] += (own - 2.0 * kernel(rows[part], landmarks)).min(axis=1)
    return np.maximum(least, 0.0)
