"""Landmarks: which rows stand for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import FloatArray, as_rows, is_sparse, n_rows, self_product, squared_distances
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.kernels.columns import Table
from discernel.kernels.features.nystrom import NystromMap
from discernel.kernels.weighted import WeightedKernels, slices

__all__ = ["How", "distinct_rows", "draw_landmarks", "n_landmarks"]

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
        order = _balanced_order(codes, rng)
        return np.sort(_first_distinct(X, order, n))
    order = rng.permutation(n_rows(X))
    if how == "uniform" or n >= n_rows(X):
        return np.sort(_first_distinct(X, order, n))
    pool = _first_distinct(X, order, _POOL * n)
    if len(pool) <= n:
        return np.sort(pool)
    if how == "leverage":
        if kernel is None:
            raise InvalidInputError("Leverage scores need a kernel. Got none.")
        scores = _leverage(X, pool, n, kernel)
        return np.sort(pool[_weighted_draw(scores, n, rng)])
    return np.sort(pool[_by_distance(X[pool], n, kernel, rng)])


def distinct_rows(X: Any) -> Positions:
    """Return the position of the first of equal rows, in rising order.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features)
        Rows.
    """
    return _first_distinct(X, np.arange(n_rows(X)), n_rows(X))


def _first_distinct(X: Any, order: Positions, n: int) -> Positions:
    """Return the first n positions of an order whose rows are all different."""
    seen: set[bytes] = set()
    found: list[int] = []
    for block in slices(slice(0, len(order)), max(_ROWS, min(n, len(order)))):
        positions = order[block]
        for position, key in zip(positions.tolist(), _keys(X[positions]), strict=True):
            if key not in seen:
                seen.add(key)
                found.append(position)
                if len(found) == n:
                    return np.array(found, dtype=np.intp)
    return np.array(found, dtype=np.intp)


def _keys(rows: Any) -> Iterator[bytes]:
    """Yield bytes that are the same for equal rows."""
    if isinstance(rows, Table):
        for key, others in zip(_keys(rows.numbers), rows.others.tolist(), strict=True):
            yield key + repr(others).encode()
        return
    if isinstance(rows, np.ndarray) and rows.dtype == object:
        for row in rows.tolist():
            yield repr(row).encode()
        return
    if not is_sparse(rows):
        for row in np.asarray(rows, dtype=np.float64) + 0.0:  # −0 becomes 0
            yield row.tobytes()
        return
    rows = as_rows(rows).tocsr(copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        yield rows.indices[start:stop].astype(np.int64).tobytes() + rows.data[start:stop].tobytes()


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


def _leverage(X: Any, pool: Positions, n: int, kernel: WeightedKernels) -> FloatArray:
    """Return upper estimates of ridge leverage scores of the rows of a pool.

    φᵀ(ΦᵀΦ + ρI)⁻¹φ of Nyström features of the first n rows, and what these leave of k(x, x) over
    the ridge ρ [Musco17]_.
    """
    rows = X[pool]
    first = NystromMap(kernel.kernels, kernel.coefficients, rows[: min(n, len(pool))])
    features = first(rows)
    left = first.remainder(rows, features)
    ridge = _RIDGE * float(kernel.diagonal(rows).mean()) * len(pool) / n
    gram = self_product(np.asfortranarray(features.T))
    gram[np.diag_indices_from(gram)] += ridge
    factor = scipy.linalg.cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    solved = scipy.linalg.solve_triangular(factor, features.T, lower=True, check_finite=False)
    scores = np.einsum("ij,ij->j", solved, solved) + left / ridge
    return np.asarray(np.minimum(scores, 1.0))
