"""The candidate kernels outside of a fold, and what they predict for the rows in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discernel.arrays import Cholesky, FloatArray
from discernel.default.menu import Array, Menu
from discernel.default.sample import Positions, Sample

__all__ = ["Fold", "FoldError"]


@dataclass(frozen=True)
class FoldError:
    """How wrong some weights and λ are about the rows of a fold.

    Attributes
    ----------
    value : float
        The sum of squared errors, times the weights of the rows.
    by_weights : ndarray of shape (n_kernels,)
        Its derivatives by the weights of the kernels.
    """

    value: float
    by_weights: FloatArray


class Fold:
    """All kernels between the rows outside of a fold, and from those inside to those outside.

    With the weights ω of the rows, π = ω/Σω and D = diag(√ω), the normalised kernel outside is
    D(I − 1πᵀ)K(I − π1ᵀ)D, of trace 1. Matrices are kept raw; only their sum is centred. The
    intercept is not penalised.

    Parameters
    ----------
    sample : Sample
        The rows.
    outside, inside : ndarray of int
        The rows outside of the fold and in it.
    scales : ndarray of shape (n_columns,)
        The metric, learned without the rows of the fold.
    menu : Menu
        The candidate kernels.
    dtype : type
        The precision of the matrices, single or double.
    memory : Fold, optional
        One of the same rows that is not needed any more: its matrices are overwritten, so that no
        two of these stacks are alive.
    """

    def __init__(
        self,
        sample: Sample,
        outside: Positions,
        inside: Positions,
        scales: FloatArray,
        menu: Menu,
        dtype: type[np.floating[Any]],
        memory: Fold | None = None,
    ) -> None:
        self.inside = inside
        weights, scores = sample.weights[outside], sample.scores[outside]
        share = weights / weights.sum()
        self._mean = share @ scores
        self._root: Array = np.sqrt(weights).astype(dtype)
        self._right = self._root[:, None] * (scores - self._mean).astype(dtype)
        self._truth, self._weights = sample.scores[inside], sample.weights[inside]
        rows = (sample.rows * scales)[:, scales > 0]
        order, n = np.concatenate([outside, inside]), len(outside)
        shape = menu.n_kernels, len(order), n
        self._raw: Array = np.empty(shape, dtype=dtype) if memory is None else memory._raw
        menu.fill(rows[order], rows[outside], self._raw)
        self._row_means: Array = self._raw @ share.astype(dtype)
        self._total_mean = self._row_means[:, :n] @ share
        diagonals = np.diagonal(self._raw[:, :n], axis1=1, axis2=2)
        # The trace of what is centred and weighted, without making it.
        traces = (diagonals - 2.0 * self._row_means[:, :n]) @ weights
        traces += weights.sum() * self._total_mean
        self._units = np.divide(1.0, traces, out=np.zeros_like(traces), where=traces > 0)

    def predictor(self, weights: FloatArray) -> Callable[[float], FloatArray]:
        """Return a function of λ: what the fit to the rows outside predicts for those inside."""
        combined = self._combined(self._units * weights)
        return lambda regularization: self._fit(combined, regularization)[0]

    def error(self, weights: FloatArray, regularization: float) -> FoldError:
        """Return the error of the predictions and its gradient."""
        combined = self._combined(self._units * weights)
        predicted, coef, solve = self._fit(combined, regularization)
        crossing = combined[len(coef) :]
        errors = predicted - self._truth
        value = float(self._weights @ np.sum(errors**2, axis=1))
        weighted: Array = (self._weights[:, None] * errors).astype(self._root.dtype)
        adjoint = solve(crossing.T @ weighted)
        n, expansion = len(coef), self._root[:, None] * coef
        # Every ⟨K_i, M⟩ of one matrix M of low rank, in one pass over the matrices. Centring takes
        # the mean of each row off, times a sum of coefficients that is 0, and a constant, which the
        # adjoint, of sum 0 too, does not see.
        left = np.concatenate([-self._root[:, None] * adjoint, weighted])
        by_weights = self._raw.reshape(len(self._raw), -1) @ (left @ expansion.T).ravel()
        by_weights -= (self._row_means[:, :n] @ expansion) @ weighted.sum(axis=0)
        return FoldError(value, 2.0 * self._units * by_weights)

    def _fit(
        self, combined: Array, regularization: float
    ) -> tuple[FloatArray, Array, Callable[[Array], Array]]:
        """Return predictions, dual coefficients, and what solves the system."""
        n = combined.shape[1]
        system = self._root[:, None] * combined[:n]
        system[np.diag_indices(n)] += self._root.dtype.type(regularization)
        factor = Cholesky(system)

        def solve(right: Array) -> Array:
            return factor.solve(right).astype(self._root.dtype)

        coef = solve(self._right)
        return np.asarray(combined[n:] @ coef + self._mean, dtype=np.float64), coef, solve

    def _combined(self, factors: FloatArray) -> Array:
        """Return the centred sum of kernels, its columns times the roots of the weights."""
        p, n_rows, n = self._raw.shape
        factors = factors.astype(self._root.dtype)
        total = (factors @ self._raw.reshape(p, -1)).reshape(n_rows, n)
        means = factors @ self._row_means
        total -= means[:, None]
        total += total.dtype.type(factors @ self._total_mean) - means[:n]
        total *= self._root
        return np.asarray(total)
