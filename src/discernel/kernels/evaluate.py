"""The matrices of several kernels at once: what they have in common is computed once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discernel.arrays import Buffers, FloatArray, ShiftedRows, n_rows
from discernel.exceptions import InvalidInputError
from discernel.kernels.base import Kernel
from discernel.kernels.columns import Table
from discernel.kernels.distance import LEAST_EXPONENT, LEAST_SINGLE_EXPONENT

__all__ = ["KernelSet", "PreparedRows", "can_prepare"]

#: From this many squarings on, an exponential is as cheap.
_MOST_SQUARINGS = 6

#: The square of this is the least value of an exponential; see there for why it is not 0.
_TINY, _SINGLE_TINY = math.exp(0.5 * LEAST_EXPONENT), math.exp(0.5 * LEAST_SINGLE_EXPONENT)

#: A kernel's position and how often the matrix before it is to be squared; None: it is made of
#: the pairwise matrix.
Step = tuple[int, int | None]


def can_prepare(X: Any) -> bool:
    """Whether rows are dense, of numbers or of anything, so that `KernelSet.prepare` takes them."""
    return isinstance(X, (np.ndarray, Table))


@dataclass(frozen=True)
class PreparedRows:
    """Dense rows, and what the pairwise matrices of some kernels need of them, computed once.

    A slice of them costs next to nothing. `KernelSet.prepare` makes them.
    """

    rows: Any
    bases: dict[Hashable, Any]

    def single(self, keys: Iterable[Hashable]) -> PreparedRows | None:
        """Return the same rows of single precision; None where some kernels' have none.

        Those of squared distances of several columns have.

        Parameters
        ----------
        keys : iterable of Hashable
            The `Kernel.base_key` of the kernels.
        """
        bases = {}
        for key in keys:
            base = self.bases.get(key)
            if not isinstance(base, ShiftedRows) or len(base.origin) < 2:
                return None
            bases[key] = base.single()
        return PreparedRows(self.rows, bases)

    def __getitem__(self, rows: slice) -> PreparedRows:
        bases = {key: base[rows] for key, base in self.bases.items()}
        return PreparedRows(self.rows[rows], bases)


class KernelSet:
    """Kernels that are computed together, many times: what to share is found out once.

    Parameters
    ----------
    kernels : sequence of Kernel
        The kernels, resolved.

    Attributes
    ----------
    direct : list of int
        The positions of those that share nothing.
    groups : dict of Hashable to list of (int, int or None)
        For every pairwise matrix that is shared, the kernels made of it, in the order in which
        each follows from the one before.
    """

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = list(kernels)
        keys = [kernel.base_key for kernel in kernels]
        self.direct = [position for position, key in enumerate(keys) if key is None]
        positions: dict[Hashable, list[int]] = {}
        for position, key in enumerate(keys):
            if key is not None:
                positions.setdefault(key, []).append(position)
        self.groups = {key: _steps(self.kernels, found) for key, found in positions.items()}

    def of(self, positions: Iterable[int]) -> KernelSet:
        """Return some of the kernels."""
        return KernelSet([self.kernels[i] for i in positions])

    def prepare(self, X: Any, like: PreparedRows | None = None) -> PreparedRows:
        """Return dense rows as `matrices` takes them best.

        Parameters
        ----------
        X : ndarray or Table of shape (n_rows, n_features)
            Rows, for which `can_prepare` holds.
        like : PreparedRows, optional
            The other rows that these ones will meet. Rows meet only such as were prepared
            together, by slicing, or like one another.
        """
        bases = {
            key: self.kernels[steps[0][0]].base_rows(X, None if like is None else like.bases[key])
            for key, steps in self.groups.items()
        }
        return PreparedRows(X, bases)

    def matrices(
        self, X: Any, Z: Any | None = None, buffers: Buffers | None = None
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield every kernel's position and matrix, which is to be read, not changed.

        Kernels on the same columns share distances or inner products, and come one after another,
        so that only one shared matrix is alive at a time. Of exponentials whose factors differ by
        a power of two, such as a ladder of widths, only the widest is an exponential; the others
        are squares.

        Parameters
        ----------
        X : array-like of shape (n_rows_X, n_features) or PreparedRows
            Rows.
        Z : array-like of shape (n_rows_Z, n_features) or PreparedRows, optional
            Other rows, prepared if X is; by default X.
        buffers : Buffers, optional
            Where matrices are made: each is then lost when the next one is asked for. By default
            each is a new array.
        """
        for position in self.direct:
            yield position, self.direct_matrix(position, _plain(X), _plain(Z))
        yield from self.shared_matrices(X, Z, buffers)

    def direct_matrix(self, position: int, X: Any, Z: Any | None = None) -> FloatArray:
        """Return the matrix of one kernel that shares nothing, or raise an error with its name."""
        kernel = self.kernels[position]
        matrix = kernel(X, Z)
        expected = n_rows(X), n_rows(X if Z is None else Z)
        if matrix.shape != expected and not kernel.precomputed:
            raise InvalidInputError(
                f"{kernel.name} must return a matrix with one row per row of X and one column "
                f"per row of Z, here {expected}. Got shape {matrix.shape}."
            )
        return matrix

    def shared_matrices(
        self, X: Any, Z: Any | None = None, buffers: Buffers | None = None
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield what `matrices` does, without the kernels that share nothing."""
        for key, steps in self.groups.items():
            kernel = self.kernels[steps[0][0]]
            if isinstance(X, PreparedRows):
                shape = len(X.rows), len(X.rows if Z is None else Z.rows)
                out = None if buffers is None else buffers("base", shape)
                base = kernel.base_tile(X.bases[key], None if Z is None else Z.bases[key], out)
            else:
                base = kernel.base_matrix(X, Z)
            yield from self._from_base(steps, base, buffers)

    def matrices_of(
        self, base: FloatArray, buffers: Buffers | None = None
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield what `matrices` does, of kernels that all share one pairwise matrix.

        Parameters
        ----------
        base : ndarray of shape (n_rows_X, n_rows_Z)
            The pairwise matrix, such as squared distances.
        buffers : Buffers, optional
            Where matrices are made, as in `matrices`.
        """
        (steps,) = self.groups.values()
        yield from self._from_base(steps, base, buffers)

    def _from_base(
        self, steps: list[Step], base: FloatArray, buffers: Buffers | None
    ) -> Iterator[tuple[int, FloatArray]]:
        matrix, least = base, None
        tiny = _SINGLE_TINY if base.dtype == np.float32 else _TINY
        for position, squarings in steps:
            if squarings is None:
                matrix = _made_of(self.kernels[position], base, buffers)
                least = None
            for already in range(squarings or 0):
                fresh = buffers is None and already == 0
                least = float(matrix.min()) if least is None else least * least
                if least < tiny:
                    matrix = np.maximum(matrix, tiny, out=None if fresh else matrix)
                    fresh, least = False, tiny
                matrix = np.square(matrix, out=None if fresh else matrix)
            yield position, matrix


def _plain(X: Any) -> Any:
    return X.rows if isinstance(X, PreparedRows) else X


def _made_of(kernel: Kernel, base: FloatArray, buffers: Buffers | None) -> FloatArray:
    if buffers is None:
        return kernel.from_base(base)
    matrix = buffers("kernel", (base.shape[0], base.shape[1]))
    kernel.fill_from_base(base, matrix)
    return matrix


def _steps(kernels: list[Kernel], positions: list[int]) -> list[Step]:
    """Return how to go through kernels of one pairwise matrix."""
    steps: list[Step] = []
    chains: dict[Hashable, list[tuple[float, int]]] = {}
    for position in positions:
        decay = kernels[position].decay
        if decay is None:
            steps.append((position, None))
        else:
            chains.setdefault(decay[0], []).append((decay[1], position))
    for chain in chains.values():
        before: float | None = None
        for factor, position in sorted(chain):  # the widest first: the others are its powers
            steps.append((position, None if before is None else _squarings(factor, before)))
            before = factor
    return steps


def _squarings(factor: float, other: float) -> int | None:
    """Return how often exp(−other·d) must be squared to be exp(−factor·d); None: too often."""
    n = round(math.log2(factor / other))
    exact = math.isclose(factor, other * 2.0**n, rel_tol=1e-14)
    return n if exact and n < _MOST_SQUARINGS else None
