"""What groups of columns add to the score of each row in the fit to all other rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import FloatArray, city_distances, n_rows, squared_distances
from discernel.exceptions import InvalidInputError
from discernel.inspection.columns import seen_columns
from discernel.inspection.forms import ProductForm, SumForm, kernel_forms
from discernel.inspection.games import product_integrals
from discernel.inspection.reference import dense
from discernel.kernels import Kernel
from discernel.kernels.weighted import slices

__all__ = ["LeftOutFit", "kernel_groups"]

#: Factors of groups and pairs of rows that are made at a time.
_BLOCK_ENTRIES = 2**21


@dataclass(frozen=True)
class LeftOutFit:
    """The coefficients of a kernel fit, and those of the fits without each of its rows.

    With Q = N⁻¹ − N⁻¹11ᵀN⁻¹/(1ᵀN⁻¹1) and α = QT, the fit without row i has the coefficients
    α − Q_:i α_i/Q_ii, of which that of row i is 0. They sum to 0, as α does, so that kernels need
    not be centred.

    Attributes
    ----------
    inverse : ndarray of shape (n_rows, n_rows)
        Q.
    coef : ndarray of shape (n_rows, n_outputs)
        α.
    """

    inverse: FloatArray
    coef: FloatArray

    @classmethod
    def of(cls, gram: FloatArray, targets: FloatArray, ridge: FloatArray) -> LeftOutFit:
        """Return the fit.

        Parameters
        ----------
        gram : ndarray of shape (n_rows, n_rows)
            The kernel; overwritten.
        targets : ndarray of shape (n_rows, n_outputs)
            T.
        ridge : ndarray of shape (n_rows,)
            What is added to the diagonal of the centred kernel.
        """
        gram -= gram.mean(axis=0)
        gram -= gram.mean(axis=1, keepdims=True)
        gram[np.diag_indices_from(gram)] += ridge
        inverse = scipy.linalg.inv(gram, overwrite_a=True)
        ones = inverse.sum(axis=1)
        inverse -= np.outer(ones, ones) / ones.sum()
        return cls(inverse, inverse @ targets)

    def add(self, out: FloatArray, rows: slice, values: FloatArray) -> None:
        """Add to ``out`` what some kernel adds to the scores of some rows that are left out.

        Parameters
        ----------
        out : ndarray of shape (n_rows, n_outputs)
            Where to add.
        rows : slice
            The rows that are left out.
        values : ndarray of shape (n, n_rows)
            The kernel between them and all rows.
        """
        inverse = self.inverse[rows]
        own = np.einsum("ij,ij->i", values, inverse) / self.inverse.diagonal()[rows]
        out[rows] += values @ self.coef - own[:, None] * self.coef[rows]

    def add_kernel(self, out: FloatArray, gram: FloatArray) -> None:
        """Add what a kernel adds to the scores of all rows, each left out, less its mean.

        The mean is that over the other rows, each left out too: what is the same for all rows is
        no contribution, but would go with the label of the row that is left out.

        Parameters
        ----------
        out : ndarray of shape (n_rows, n_outputs)
            Where to add.
        gram : ndarray of shape (n_rows, n_rows)
            The kernel.
        """
        whole = slice(0, len(gram))
        means = mean_of_others(gram, gram.sum(axis=0), gram.diagonal(), whole)
        self.add(out, whole, np.asarray(gram - means))


def mean_of_others(
    values: FloatArray, sums: FloatArray, diagonal: FloatArray, rows: slice
) -> FloatArray:
    """Return, for k(x_i, x_j), the mean of k(x_m, x_j) over all rows m but i and j.

    On the diagonal it is k(x_i, x_i) itself: a row says nothing of itself.

    Parameters
    ----------
    values : ndarray of shape (..., n, n_rows)
        The kernel between some rows i and all rows j.
    sums, diagonal : ndarray of shape (..., n_rows)
        Of each j, the sum over all rows, and the kernel with itself.
    rows : slice
        Which rows the i are.
    """
    n = values.shape[-1]
    means = (sums[..., None, :] - values - diagonal[..., None, :]) / (n - 2)
    here = np.arange(rows.start, rows.stop)
    means[..., np.arange(len(here)), here] = values[..., np.arange(len(here)), here]
    return np.asarray(means)


# ---- kernels of several groups -------------------------------------------------------------------


def kernel_groups(kernel: Kernel, group: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the groups whose columns a kernel sees.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    group : ndarray of shape (n_columns,)
        The group of each column.
    """
    seen = seen_columns(kernel, len(group))
    forms = kernel_forms(kernel, len(group))
    if all(isinstance(form, ProductForm) for form in forms):
        weights = [form.squares + form.absolutes for form in forms if isinstance(form, ProductForm)]
        seen = seen & (np.sum(weights, axis=0) > 0)
    return np.unique(group[seen])


def add_split(
    out: FloatArray, fit: LeftOutFit, kernel: Kernel, factor: float, X: Any, group: NDArray[np.intp]
) -> None:
    """Add what groups of columns add by a kernel that sees several.

    Parameters
    ----------
    out : ndarray of shape (n_groups, n_rows, n_outputs)
        Where to add.
    fit : LeftOutFit
        The fits without each row.
    kernel : Kernel
        Resolved.
    factor : float
        What it is multiplied by.
    X : array or CSR of shape (n_rows, n_columns)
        All rows.
    group : ndarray of shape (n_columns,)
        The group of each column.
    """
    for form in kernel_forms(kernel, len(group)):
        if isinstance(form, ProductForm):
            _add_product(out, fit, form, factor, dense(X), group)
        elif isinstance(form, SumForm):
            moved = (dense(X) - form.origin) * np.sqrt(factor * form.factor * form.weights)
            for one in np.unique(group):
                part = moved[:, group == one]
                fit.add_kernel(out[one], part @ part.T)
        else:
            raise InvalidInputError(
                f"{kernel.name} is neither a product nor a sum over its columns, and cannot be "
                "split into groups of them. Put it on the columns of one group with .on, or leave "
                "groups out."
            )


def _add_product(
    out: FloatArray,
    fit: LeftOutFit,
    form: ProductForm,
    factor: float,
    X: FloatArray,
    group: NDArray[np.intp],
) -> None:
    """Add the Shapley values of the factors of groups, each between its value and its mean."""
    groups, n = np.unique(group[form.columns]), n_rows(X)
    scaled = [
        (
            X[:, (group == one)] * np.sqrt(form.squares[group == one]),
            X[:, (group == one)] * form.absolutes[group == one],
        )
        for one in groups
    ]

    def factors(rows: slice) -> FloatArray:
        found = np.empty((len(groups), rows.stop - rows.start, n))
        for place, (near, city) in enumerate(scaled):
            found[place] = squared_distances(near[rows], near) if near.any() else 0.0
            if city.any():
                found[place] += city_distances(city[rows], city)
        return np.asarray(np.exp(-found))

    blocks = slices(slice(0, n), max(1, _BLOCK_ENTRIES // (n * len(groups))))
    sums, ones = sum(factors(rows).sum(axis=1) for rows in blocks), np.ones((len(groups), n))
    for rows in blocks:
        present = factors(rows)
        absent = mean_of_others(present, sums, ones, rows)
        values = product_integrals(present, absent)
        for place, one in enumerate(groups):
            fit.add(out[one], rows, factor * form.factor * values[place])
