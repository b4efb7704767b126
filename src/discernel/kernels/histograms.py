"""Kernels of histograms: rows of counts or shares of at least 0."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discernel.arrays import FloatArray, as_dense, as_rows, city_distances, draw_rows
from discernel.kernels.base import Kernel, Known
from discernel.kernels.distance import MEDIAN_ROWS, DistanceKernel, Width, median_factor
from discernel.kernels.pairs import CHI_SQUARED, non_negative
from discernel.kernels.similarity import SimilarityKernel
from discernel.kernels.terms import View

__all__ = ["ChiSquared", "Intersection"]


@dataclass(frozen=True, repr=False)
class ChiSquared(DistanceKernel):
    """The exponential kernel of the χ² distance of histograms.

    χ²(x, z) = Σ (x_l − z_l)² / (x_l + z_l), of counts or shares of at least 0.

    ======================== ======================= ==========================================
    given                    k(x, z)                 note
    ======================== ======================= ==========================================
    ``ChiSquared(width=s)``  exp(−χ²(x, z) / s)      [Zhang07]_, with the mean distance for s
    ``ChiSquared(gamma=g)``  exp(−g χ²(x, z))        scikit-learn's ``chi2``
    ======================== ======================= ==========================================

    Rows are taken as they are: divide them by their sums first if only shares matter.

    Parameters
    ----------
    width : float or str, optional
        A number, ``"median"`` (the median χ² distance of the training rows) or a multiple of it
        such as ``"0.5*median"``; ``"median"`` by default.
    gamma : float, optional
        The factor of the distance.
    scales : sequence of float, optional
        A factor per column, at least 0, which multiplies its term.

    Examples
    --------
    >>> ChiSquared(gamma=1.0)([[0.5, 0.5]], [[0.5, 0.5], [1.0, 0.0]]).round(3)
    array([[1.   , 0.513]])
    """

    pair = CHI_SQUARED
    norm = 1
    power = 1

    width: Width = None
    gamma: float | None = None

    def resolve(self, X: Any, frame: Any | None = None, known: Known | None = None) -> Kernel:
        name, value = self._given()
        if not isinstance(value, str):
            return self
        self.check_rows(X)
        known, key = {} if known is None else known, ("median chi squared", self.scales)
        if key not in known:
            rows = draw_rows(as_rows(View().scale(self.scales).of(X)), MEDIAN_ROWS)
            distances = CHI_SQUARED.entries(rows)
            pairs = distances[np.tri(len(distances), k=-1, dtype=np.bool_)]
            pairs = pairs[pairs > 0]
            # Rows that are all the same have no scale: any width gives the same kernel.
            known[key] = float(np.median(pairs)) if len(pairs) else 1.0
        return replace(self, **{name: median_factor(value) * known[key]})


@dataclass(frozen=True, repr=False)
class Intersection(SimilarityKernel):
    """The part that two histograms have in common, Σ min(x_l, z_l).

    Parameters
    ----------
    shares : bool, default=True
        Whether every row is first divided by its sum, so that k(x, x) is 1. A row of zeros stays
        one, and is 0 with all.

    Examples
    --------
    >>> Intersection()([[3, 1, 0]], [[1, 1, 2], [6, 2, 0]])
    array([[0.5, 1. ]])
    >>> Intersection(shares=False)([[3, 1, 0]], [[1, 1, 2], [6, 2, 0]])
    array([[2., 4.]])
    """

    shares: bool = True

    def rows(self, X: Any, like: Any | None = None) -> Any:
        X = np.ascontiguousarray(non_negative(as_dense(as_rows(X)), repr(self)))
        if not self.shares:
            return X
        sums = X.sum(axis=1, keepdims=True)
        return np.divide(X, sums, out=np.zeros_like(X), where=sums > 0)

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        other = X if Z is None else Z
        # min(a, b) = (a + b − |a − b|) / 2
        matrix = city_distances(X, Z, out)
        np.subtract(X.sum(axis=1)[:, None], matrix, out=matrix)
        matrix += other.sum(axis=1)
        matrix *= 0.5
        return matrix

    def diagonal(self, X: Any) -> FloatArray:
        return np.asarray(self.rows(X).sum(axis=1))
