"""Sums of a kernel at rows, f(x) = Σ_j c_j k(x, z_j), and what their gradients are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import free_threads, in_threads, is_sparse
from discernel.exceptions import InvalidInputError
from discernel.kernels.terms import Array, Atom, Key, Terms

__all__ = [
    "Array",
    "Expansion",
    "common_ranks",
    "difference_sums",
    "gradients",
    "pair_slopes",
    "product_sums",
    "sign_sums",
]

#: Entries of the largest array that is made at a time.
_BLOCK_ENTRIES = 2**21
#: Signs that are made at a time, and the rows that a thread takes at a time: signs, and the ranks
#: they are made of, stay in the cache.
_SIGNS, _SIGN_ROWS = 2**17, 64


@dataclass(frozen=True)
class Expansion:
    """f_c(x) = Σ_j coef_jc k(x, z_j) at rows x, to be differentiated some rows at a time.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows x.
    Z : ndarray of shape (n_rows_Z, n_features) or None
        The rows z; None if they are those of X.
    coef : ndarray of shape (n_rows_Z, n_outputs)
        The coefficients. Gradients have their precision.
    gram, base : ndarray of shape (n_rows, n_rows_Z) or None
        The kernel matrix of X and Z and the pairwise matrix it is made of, where they are known.
    blocks : tuple of slice
        The rows of X to go through one after another.
    """

    X: Array
    Z: Array | None
    coef: Array
    gram: Array | None
    base: Array | None
    blocks: tuple[slice, ...]

    @classmethod
    def of(cls, X: Any, coef: Any, Z: Any, gram: Any, base: Any) -> Expansion:
        """Return what a user gave, checked; single precision if all of it is."""
        X, Z = _dense(X), None if Z is None or Z is X else _dense(Z)
        coef = _floats(coef)
        coef = coef[:, None] if coef.ndim == 1 else coef
        n, m = len(X), len(X if Z is None else Z)
        if coef.ndim != 2 or len(coef) != m:
            raise InvalidInputError(
                f"There must be one row of coefficients per row of Z, or of X without Z, here {m}. "
                f"Got shape {coef.shape}."
            )
        known = {"gram": gram, "base": base}
        known = {name: None if a is None else _floats(a) for name, a in known.items()}
        for name, matrix in known.items():
            if matrix is not None and matrix.shape != (n, m):
                raise InvalidInputError(
                    f"{name} must have one row per row of X and one column per row of Z, here "
                    f"{(n, m)}. Got shape {matrix.shape}."
                )
        given = [array for array in (X, Z, coef, *known.values()) if array is not None]
        coef = coef.astype(np.result_type(*given), copy=False)
        step = max(1, _BLOCK_ENTRIES // max(1, m, X.shape[1] * coef.shape[1]))
        blocks = tuple(slice(a, min(a + step, n)) for a in range(0, n, step))
        return cls(X, Z, coef, known["gram"], known["base"], blocks)

    @property
    def other(self) -> Array:
        """The rows z."""
        return self.X if self.Z is None else self.Z


def _floats(values: Any) -> Array:
    """Return an array of single precision as it is, anything else in double."""
    single = isinstance(values, np.ndarray) and values.dtype == np.float32
    return np.asarray(values, dtype=np.float32 if single else np.float64)


def _dense(X: Any) -> Array:
    if is_sparse(X):
        raise InvalidInputError(
            "Gradients of kernels need dense rows. Got sparse ones; write X.toarray()."
        )
    return _floats(X)


# ---- gradients of terms -------------------------------------------------------------------------


def gradients(terms: Terms, expansion: Expansion) -> Iterator[Array]:
    """Yield the gradients of one block of rows after another.

    By the chain rule: the derivative of the kernel by each pairwise matrix, times that of the
    matrix by each column. Kernels that share a matrix share the second.

    Yields
    ------
    ndarray of shape (n_outputs, n_rows_of_block, n_features)
    """
    keys = dict.fromkeys(atom.key for term in terms for atom in term.atoms)
    n_columns, every = expansion.X.shape[1], np.arange(expansion.X.shape[1])
    seen = {(pair, view): view.seen(n_columns) for pair, view in keys}
    sums = {(pair, view): pair.slope_sums(view, expansion) for pair, view in keys}
    bases = _bases(expansion, alone=len(keys) == 1)
    for rows in expansion.blocks:
        gram = None if expansion.gram is None else expansion.gram[rows]
        total: Any = 0.0
        for key, (slope, factor) in pair_slopes(terms, bases(rows), gram).items():
            part = sums[key](rows, slope.astype(expansion.coef.dtype, copy=False))
            part *= (factor * seen[key].factors).astype(part.dtype)
            if not np.array_equal(seen[key].columns, every):
                some, part = part, np.zeros((*part.shape[:2], n_columns), dtype=part.dtype)
                part[:, :, seen[key].columns] = some
            total = part if len(keys) == 1 else total + part
        yield total


def _bases(expansion: Expansion, *, alone: bool) -> Callable[[slice], Callable[[Key], Array]]:
    """Return a function of a block of rows, that returns one of the pairwise matrices of these."""

    @cache
    def prepared(key: Key) -> tuple[Any, Any]:
        pair, view = key
        right = pair.rows(view.of(expansion.other))
        return right if expansion.Z is None else pair.rows(view.of(expansion.X), right), right

    def of(rows: slice) -> Callable[[Key], Array]:
        @cache
        def base(key: Key) -> Array:
            if expansion.base is not None and alone:
                return expansion.base[rows]
            left, right = prepared(key)
            made = key[0].tile(left[rows], right, None)
            if expansion.Z is None and key[0].is_distance:
                np.fill_diagonal(made[:, rows], 0.0)
            return made

        return base

    return of


def pair_slopes(
    terms: Terms, base: Callable[[Key], Array], gram: Array | None = None
) -> dict[Key, tuple[Array, float]]:
    """Return the derivatives of a kernel by its pairwise matrices: matrices, and their factors.

    Parameters
    ----------
    terms : tuple of Term
        The kernel.
    base : callable
        Returns one of its pairwise matrices.
    gram : ndarray, optional
        The kernel matrix, if it is known. It saves time where it is one atom, and a constant.
    """
    varying = [term for term in terms if term.atoms]
    is_known = gram is not None and len(varying) == len(varying[0].atoms) == 1
    constant = sum(term.factor for term in terms if not term.atoms)

    @cache
    def value(atom: Atom) -> Array:
        if gram is None or not is_known:
            return atom.function(base(atom.key))
        rest = gram - constant if constant else gram
        return rest if varying[0].factor == 1 else rest / varying[0].factor

    found: dict[Key, tuple[Array, float]] = {}
    for factor, atoms in varying:
        for place, atom in enumerate(atoms):
            slope, by = atom.function.slope(partial(base, atom.key), partial(value, atom))
            for other in (*atoms[:place], *atoms[place + 1 :]):
                slope = slope * value(other)
            if atom.key in found:
                before, times = found[atom.key]
                slope, by = times * before + factor * by * slope, 1.0 / factor
            found[atom.key] = slope, factor * by
    return found


# ---- sums over rows ----------------------------------------------------------------------------


def difference_sums(slope: Array, coef: Array, left: Array, right: Array) -> Array:
    """Return Σ_j slope_ij coef_jc (x_il − z_jl), of shape (n_outputs, n_rows, n_columns).

    As (SC)∘X − S(C∘Z), by two products per output: no array has three axes of rows and columns.

    Parameters
    ----------
    slope : ndarray of shape (n_rows, n_rows_Z)
        The factors of pairs of rows.
    coef : ndarray of shape (n_rows_Z, n_outputs)
        The factors of rows of Z.
    left, right : ndarray of shape (n_rows, n_columns) and (n_rows_Z, n_columns)
        The rows of X and of Z.
    """
    totals = np.matmul(slope, coef)
    out = np.empty((coef.shape[1], *left.shape), dtype=slope.dtype)
    for output, column in enumerate(coef.T):
        np.matmul(slope, column[:, None] * right, out=out[output])
        np.subtract(totals[:, output, None] * left, out[output], out=out[output])
    return out


def product_sums(slope: Array, coef: Array, right: Array) -> Array:
    """Return Σ_j slope_ij coef_jc z_jl, of shape (n_outputs, n_rows, n_columns).

    Parameters
    ----------
    slope, coef, right
        As in `difference_sums`.
    """
    return np.stack([np.matmul(slope, column[:, None] * right) for column in coef.T])


def common_ranks(X: Array, Z: Array | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the ranks of the values of every column, among those of X and Z; equal ones share one.

    Returns
    -------
    ndarray of shape (n_columns, n_rows) and (n_columns, n_rows_Z)
        Small integers, of which signs are several times faster than those of floats.
    """
    values = X if Z is None else np.concatenate([X, Z])
    ranks = np.empty(values.shape[::-1], dtype=np.int16 if len(values) < 2**15 else np.int32)
    for column in range(values.shape[1]):
        ranks[column] = np.unique(values[:, column], return_inverse=True)[1]
    return ranks[:, : len(X)], ranks if Z is None else ranks[:, len(X) :]


def sign_sums(slope: Array, coef: Array, left: NDArray[Any], right: NDArray[Any]) -> Array:
    """Return Σ_j slope_ij coef_jc sign(x_il − z_jl), of shape (n_outputs, n_rows, n_columns).

    Parameters
    ----------
    slope : ndarray of shape (n_rows, n_rows_Z)
        The factors of pairs of rows.
    coef : ndarray of shape (n_rows_Z, n_outputs)
        The factors of rows of Z.
    left, right : ndarray of shape (n_columns, n_rows) and (n_columns, n_rows_Z)
        What `common_ranks` returned.
    """
    n_columns, (n, m) = len(left), slope.shape
    out = np.empty((coef.shape[1], n, n_columns), dtype=slope.dtype)
    step, across = max(1, _SIGNS // m), np.ascontiguousarray(coef.T)

    def work(job: tuple[slice, slice], _: object) -> None:
        columns, rows = job
        there = right[columns]
        signs, floats = np.empty_like(there), np.empty(there.shape, dtype=slope.dtype)
        weights = np.empty_like(across)
        for row in range(rows.start, min(rows.stop, n)):
            np.subtract(left[columns, row, None], there, out=signs)
            np.sign(signs, out=signs)
            np.copyto(floats, signs)
            np.multiply(slope[row], across, out=weights)
            out[:, row, columns] = np.matmul(weights, floats.T)

    jobs = [
        (slice(first, first + step), slice(top, top + _SIGN_ROWS))
        for first in range(0, n_columns, step)
        for top in range(0, n, _SIGN_ROWS)
    ]
    in_threads(work, jobs, [None] * free_threads(max(n, m)))
    return out
