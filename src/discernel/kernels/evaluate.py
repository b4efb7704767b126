"""The matrices of several kernels at once: what they have in common is computed once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from discernel.backend import FloatArray
from discernel.kernels.base import Kernel

__all__ = ["kernel_matrices"]

#: From this many squarings on, an exponential is as cheap.
_MOST_SQUARINGS = 6


def kernel_matrices(
    kernels: Sequence[Kernel], X: Any, Z: Any | None = None
) -> Iterator[tuple[int, FloatArray]]:
    """Yield every kernel's position and matrix, which is to be read, not changed.

    Kernels on the same columns share distances or inner products, and come one after another, so
    that only one shared matrix is alive at a time. Of exponentials whose factors differ by a power
    of two, such as a ladder of widths, only the widest is an exponential; the others are squares.

    Parameters
    ----------
    kernels : sequence of Kernel
        The kernels, resolved.
    X : array-like of shape (n_rows_X, n_features)
        Rows.
    Z : array-like of shape (n_rows_Z, n_features), optional
        Other rows; by default X.
    """
    groups: dict[Hashable, list[int]] = {}
    for position, kernel in enumerate(kernels):
        key = kernel.base_key
        if key is None:
            yield position, kernel(X, Z)
        else:
            groups.setdefault(key, []).append(position)
    for positions in groups.values():
        base = kernels[positions[0]].base_matrix(X, Z)
        yield from _from_base(kernels, positions, base)


def _from_base(
    kernels: Sequence[Kernel], positions: list[int], base: FloatArray
) -> Iterator[tuple[int, FloatArray]]:
    decays: dict[str, list[tuple[float, int]]] = {}
    for position in positions:
        decay = kernels[position].decay
        if decay is None:
            yield position, kernels[position].from_base(base)
        else:
            decays.setdefault(decay[0], []).append((decay[1], position))
    for chain in decays.values():
        before: tuple[float, FloatArray] | None = None
        for factor, position in sorted(chain):  # the widest first: the others are its powers
            n = _MOST_SQUARINGS if before is None else _squarings(factor, before[0])
            if before is None or n >= _MOST_SQUARINGS:
                matrix = kernels[position].from_base(base)
            else:
                matrix = before[1]
                for _ in range(n):
                    matrix = np.square(matrix)
            yield position, matrix
            before = factor, matrix


def _squarings(factor: float, other: float) -> int:
    """Return how often exp(−other·d) must be squared to be exp(−factor·d); many for never."""
    n = round(math.log2(factor / other))
    exact = math.isclose(factor, other * 2.0**n, rel_tol=1e-14)
    return n if exact else _MOST_SQUARINGS
