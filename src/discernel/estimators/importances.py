"""How much columns matter to a fitted model: computed in the fit, or when first asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, draw_rows
from discernel.bank import CombinedFeatures, CombinedKernel
from discernel.criteria import KernelLeastSquares, LeftOutRows
from discernel.kernels import Kernel
from discernel.kernels.columns import Table
from discernel.kernels.weighted import WeightedKernels
from discernel.model import RowReader

if TYPE_CHECKING:
    from discernel.learn.rows import Learning

__all__ = ["Importances", "has_importances", "importances_of", "squared_losses"]

#: Up to so many rows, whose kernel matrix is made in an instant, importances are computed when they
#: are asked for.
_MOST_DEFERRED = 2000
#: Rows that importances are taken from where a system is solved by iteration, column by column.
_MOST_SOLVED = 64
#: Digits of fitted scores that do not depend on the order of the rows.
_SAME_DIGITS = 9


@dataclass(frozen=True)
class Importances:
    """Importances of the columns of a model.

    Attributes
    ----------
    known : tuple of two ndarrays of shape (n_features,), or None
        Shares and their standard errors; None where they are computed when first asked for.
    kernel : CombinedKernel, CombinedFeatures or None
        The learned kernel.
    head : object
        What has ``row_losses``.
    reader : RowReader or None
        What knows which columns the kernels' are of.
    parts : dict of str to ndarray or None
        The rows to leave out, and what the fit without them is made of.
    """

    known: tuple[FloatArray, FloatArray] | None = None
    kernel: CombinedKernel | CombinedFeatures | None = None
    head: Any = None
    reader: RowReader | None = None
    parts: dict[str, NDArray[Any]] | None = None

    @cached_property
    def found(self) -> tuple[FloatArray, FloatArray]:
        """Shares that sum to 1, and their standard errors."""
        if self.known is not None:
            return self.known
        from discernel.inspection.importances import leave_rows_out

        parts, kernel = self.parts, self.kernel
        assert parts is not None
        assert isinstance(kernel, CombinedKernel)
        gram = WeightedKernels(kernel.kernels, kernel.coefficients)(kernel.rows, kernel.rows)
        given = (parts[name] for name in ("rows", "truth", "ridge", "weights"))
        coef, left_out = leave_rows_out(gram, *given)
        X, labels = kernel.rows[left_out.rows], parts["labels"][left_out.rows]
        return self.computed(X, coef, left_out, labels)

    def computed(
        self, X: Any, coef: FloatArray, left_out: LeftOutRows, labels: NDArray[Any]
    ) -> tuple[FloatArray, FloatArray]:
        """Return shares and errors from rows that were left out.

        Parameters
        ----------
        X : array or Table of shape (n_rows, n_columns)
            The rows, as kernels take them.
        coef : ndarray of shape (n_kept, n_scores)
            What predicts their scores.
        left_out : LeftOutRows
            What the fit is without each of them.
        labels : ndarray of shape (n_rows, ...)
            What the losses of the head take.
        """
        from discernel.inspection.importances import column_importances

        reader = self.reader
        assert reader is not None
        assert self.kernel is not None
        n = reader.n_features or 0
        source = np.arange(n) if reader.encoder is None else reader.encoder.source
        loss = self.head.row_losses(labels)
        return column_importances(self.kernel, coef, left_out, X, source, n, loss)

    def now(self, *given: Any) -> Importances:
        """Return the importances, computed from what `computed` takes."""
        return Importances(known=self.computed(*given))


def importances_of(
    X: Any,
    learning: Learning,
    reader: RowReader,
    head: Any,
    fit: KernelLeastSquares,
    labels: NDArray[Any],
    rows: NDArray[np.intp] | None = None,
) -> Importances | None:
    """Return importances of columns, or what they are made of; None without columns.

    Parameters
    ----------
    X : array or Table of shape (n_samples, n_columns)
        The training rows.
    learning : Learning
        What was learned.
    reader : RowReader
        What knows the columns.
    head : object
        What has ``row_losses``.
    fit : KernelLeastSquares
        The fit that predictions are made with.
    labels : ndarray of shape (n_samples, ...)
        What the losses of the head take.
    rows : ndarray of int, optional
        The rows to leave out in turn, or more; by default all.
    """
    from discernel.inspection.importances import importance_rows

    if learning.importances is not None:
        return learning.importances
    if not has_importances(X, learning.kernels) or not fit.fitted.shape[1]:
        return None  # no columns, or one class, which depends on none
    every = np.arange(fit.n_samples) if rows is None else rows
    # Sorted by what they are, the same rows are drawn whatever order they were given in.
    every = every[np.lexsort(np.round(fit.fitted[every], _SAME_DIGITS).T)]
    assert reader.n_features is not None
    chosen = importance_rows(every, fit.n_samples, reader.n_features)
    found = Importances(kernel=learning.kernel, head=head, reader=reader)
    if isinstance(learning.kernel, CombinedKernel) and fit.n_samples <= _MOST_DEFERRED:
        weights = fit.sample_weights
        parts = {
            "rows": chosen,
            "truth": fit.truth,
            "ridge": fit.ridge,
            "weights": np.ones(fit.n_samples) if weights is None else weights.values,
            "labels": labels,
        }
        return replace(found, parts=parts)
    if fit.by_iteration:
        chosen = draw_rows(chosen, _MOST_SOLVED)
    left_out = fit.left_out(chosen)
    left_out = replace(left_out, influence=learning.coef(left_out.influence))
    return found.now(X[chosen], learning.coef(fit.coef), left_out, labels[chosen])


def has_importances(X: Any, kernels: list[Kernel]) -> bool:
    """Whether rows have columns, and are not sparse, so that columns can be exchanged.

    Parameters
    ----------
    X : array, CSR or Table
        Rows, as kernels take them.
    kernels : list of Kernel
        The kernels.
    """
    is_array = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype != object
    return (is_array or isinstance(X, Table)) and not kernels[0].precomputed


def squared_losses(truth: FloatArray) -> Any:
    """Return a function of scores: the squared error of each row.

    Parameters
    ----------
    truth : ndarray of shape (n_rows, n_targets)
        What the scores should be; errors of a target are in units of its standard deviation.
    """
    unit = truth.var(axis=0)
    unit[unit == 0] = 1.0
    return lambda scores: np.asarray(np.sum((scores - truth) ** 2 / unit, axis=1))
