"""From sums over all rows to the least-squares fit, and what it says of rows left out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from discernel.arrays import FloatArray, symmetric_eigen
from discernel.arrays.sample_weights import SampleWeights
from discernel.exceptions import InvalidInputError
from discernel.kernels.features import NystromMap
from discernel.streams.summary import FeatureSums, sums_are_of_kernels

__all__ = ["SampledFit", "SummedSystem"]


class SummedSystem:
    """Minimise Σω‖t − f(x) − b‖²/λ + ‖f‖² for any λ, from the sums of all rows.

    Over functions f(x) = φ(x)·β, in units in which the centred kernel of all rows has trace 1: the
    same as `KernelLeastSquares` for the kernel φ(x)·φ(z) over the centred trace of k.

    Parameters
    ----------
    summary : FeatureSums
        The sums.
    features : NystromMap
        What they are of.

    Attributes
    ----------
    weight : float
        Σω, of weights that are scaled to the mean 1: the number of rows.
    unit : float
        The centred trace of k over all rows: Σωk(x, x) less what the mean of all rows takes.
    captured : float
        The share of it that the features have.
    mean : ndarray of shape (rank,)
        The mean of the features.
    """

    def __init__(self, summary: FeatureSums, features: NystromMap) -> None:
        self.weight, self._scale = float(summary.n_rows), summary.n_rows / summary.weight
        self._values_sum = self._scale * summary.values
        mean = summary.features / summary.weight
        cross = self._scale * summary.cross - np.outer(mean, self._values_sum)
        products = self._scale * np.tril(summary.products)
        products += np.tril(products, -1).T
        products -= self.weight * np.outer(mean, mean)
        if sums_are_of_kernels(features):
            mean, cross = (_solved(features.lower, each) for each in (mean, cross))
            products = _solved(features.lower, products)
            products = _solved(features.lower, products.T)
        self.mean, self._cross = mean, cross
        self.unit = self._scale * summary.diagonal - self.weight * float(mean @ mean)
        if not self.unit > 0:
            raise InvalidInputError(
                "The kernel must vary over the rows, but it is constant on all of them. Check the "
                "rows, and the kernels for far too large widths."
            )
        products /= self.unit
        values, self._vectors = symmetric_eigen(products, driver="evd")
        self._values = np.maximum(values, 0.0)
        self.captured = min(1.0, float(self._values.sum()))

    def fit(self, table: FloatArray, regularization: float) -> tuple[FloatArray, FloatArray]:
        """Return β and b with which f(x) + b = φ(x)·β + b.

        Parameters
        ----------
        table : ndarray of shape (n_values, n_targets)
            How targets are made of values: t = v·table.
        regularization : float
            λ.
        """
        turned = self._right(table) / (self._values + regularization)[:, None]
        beta = self._vectors @ turned / self.unit
        return beta, self._target_mean(table) - self.mean @ beta

    def influence(
        self, features: FloatArray, weights: FloatArray, regularization: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return β of the fits to 1 at each of some rows and 0 elsewhere, and their errors there.

        Parameters
        ----------
        features : ndarray of shape (n_rows, rank)
            Features of rows that are among those of the sums; overwritten.
        weights : ndarray of shape (n_rows,)
            What they weigh in the sums.
        regularization : float
            λ.

        Returns
        -------
        beta : ndarray of shape (rank, n_rows)
            One column per row.
        left : ndarray of shape (n_rows,)
            1 less the fit at the row itself.
        """
        features -= self.mean
        turned = np.matmul(features, self._vectors)
        shrunk = turned * weights[:, None] / (self.unit * (self._values + regularization))
        leverage = np.einsum("ij,ij->i", turned, shrunk) + weights / self.weight
        return np.asarray(self._vectors @ shrunk.T), 1.0 - leverage

    def penalty(self, table: FloatArray, regularization: float) -> FloatArray:
        """Return ‖f‖², between all pairs of targets."""
        turned = self._right(table) / (self._values + regularization)[:, None]
        return np.asarray(turned.T @ turned / self.unit)

    def sampled(
        self, features: FloatArray, weights: FloatArray, table: FloatArray
    ) -> Callable[[float], tuple[FloatArray, FloatArray]]:
        """Return a function of λ: the fit for some of the rows, and the share left without each.

        That share is 1 − h, with h the leverage of a row: the error of the fit without the row is
        that of the fit over the share.

        Parameters
        ----------
        features : ndarray of shape (n_rows, rank)
            Features of rows that are among those of the sums; overwritten.
        weights : ndarray of shape (n_rows,)
            What they weigh in the sums.
        table : ndarray of shape (n_values, n_targets)
            How targets are made of values.
        """
        features -= self.mean
        turned = np.matmul(features, self._vectors)
        right, constant = self._right(table), self._target_mean(table)
        weights = self._scale * weights

        def at(regularization: float) -> tuple[FloatArray, FloatArray]:
            shrunk = 1.0 / (self.unit * (self._values + regularization))
            fitted = turned @ (shrunk[:, None] * right) + constant
            squared = np.einsum("ij,j,ij->i", turned, shrunk, turned, optimize=False)
            leverage = weights * (squared + 1.0 / self.weight)
            return fitted, 1.0 - leverage

        return at

    def _target_mean(self, table: FloatArray) -> FloatArray:
        return np.asarray(self._values_sum @ table / self.weight)

    def _right(self, table: FloatArray) -> FloatArray:
        """Return Σω(φ − mean)tᵀ along the eigenvectors."""
        return np.asarray(self._vectors.T @ (self._cross @ table))


def _solved(lower: FloatArray, right: FloatArray) -> FloatArray:
    """Return L⁻¹R."""
    return np.asarray(scipy.linalg.solve_triangular(lower, right, lower=True, check_finite=False))


@dataclass(frozen=True, eq=False)
class SampledFit:
    """The fit to all rows, as far as it is known: on a sample of them.

    It has what `fit_discriminant` asks of a `KernelLeastSquares`.

    Attributes
    ----------
    coef : ndarray of shape (rank, n_targets)
        The expansion of f in the landmarks: f(x) = Σ_j coef_j k(z_j, x).
    intercept : ndarray of shape (n_targets,)
        b.
    fitted, leave_one_out, left_out_scores : ndarray of shape (n_rows, n_targets)
        The predictions for the rows of the sample of the fit to all rows, and of that to all
        others, and these in the units of the first.
    regularization : float
        λ.
    sample_weights : SampleWeights or None
        How much the rows of the sample count among themselves.
    penalty : ndarray of shape (n_targets, n_targets)
        ‖f‖² between all pairs, for a sample instead of all rows.
    """

    coef: FloatArray
    intercept: FloatArray
    fitted: FloatArray
    leave_one_out: FloatArray
    left_out_scores: FloatArray
    regularization: float
    sample_weights: SampleWeights | None
    penalty: FloatArray

    @property
    def ridge(self) -> FloatArray:
        """What each row is fitted with."""
        weights = self.sample_weights
        ones = np.ones(len(self.fitted))
        return np.asarray(self.regularization * (ones if weights is None else 1.0 / weights.values))
