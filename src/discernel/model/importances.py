"""Column importances: the increase of held-out losses when cells of a column are exchanged.

A flexible kernel on a noise column can fit the training rows and get a large weight. So the
importance of a column is measured by leave-one-out losses: how much the loss of a row increases
when its cell of this column comes from another row. For noise this is 0 up to chance.

They are computed on first access: exchanges take a third of the time of a fit to 4,000 rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from discernel.arrays import (
    Buffers,
    FloatArray,
    draw_rows,
    in_threads,
    is_sparse,
    larger_tiles,
    n_cores,
    round_keys,
)
from discernel.arrays.groups import Groups
from discernel.arrays.sample_weights import row_weights
from discernel.bank import CombinedFeatures, CombinedKernel, TargetKernels
from discernel.bank.system import centered_system
from discernel.exceptions import NumericalError
from discernel.kernels import Kernel
from discernel.kernels.columns import Table
from discernel.kernels.weighted import WeightedKernels, slices
from discernel.model.parts import ScorePart, score_parts, seen_columns
from discernel.programs.least_squares import KernelLeastSquares, LeftOutRows
from discernel.rows.reader import RowReader

#: Up to this many rows, leave-one-out fits are computed again for importances: the kernel matrix,
#: of at most 200 MB, is fast to compute. Of more rows they are kept from the fit.
_MOST_REFITTED = 5000
#: Number of left-out rows if systems are solved by iteration, which is slow for each row.
_MOST_SOLVED = 64
#: An increase of this many standard errors counts half; an increase of one standard error counts
#: 1.2 %, because it may be due to chance.
_DOUBT = 3.0
#: The probability of a significant increase if no column has any effect.
_LEVEL = 0.05
#: Number of exchanged cells of all columns together; lower and upper limit for one column.
_EXCHANGES, _FEWEST, _MOST_EXCHANGED = 12_000, 100, 1000
#: Upper limits of the number of left-out rows, and of the exchanges of each row.
_MOST_LEFT_OUT, _ROUNDS = 500, 4
#: Upper limit of the number of coefficients of all leave-one-out fits.
_MOST_INFLUENCE = 2**22
#: Number of targets, drawn at random, if each has kernel weights of its own.
_MOST_TARGETS = 30
#: Number of kernel entries between exchanged and kept rows that are computed at a time.
_BLOCK_ENTRIES = 2**17


class Importances:
    """Importances of the columns of a model, computed on first access or when they are pickled.

    Parameters
    ----------
    compute : callable
        Returns shares that sum to 1, and their standard errors.
    """

    def __init__(self, compute: Callable[[], tuple[FloatArray, FloatArray]]) -> None:
        self._known: Any = compute

    @property
    def found(self) -> tuple[FloatArray, FloatArray]:
        """Shares that sum to 1, and their standard errors, each of shape (n_features,).

        A `NumericalError` if they cannot be computed: a function fails as a kernel of exchanged
        rows, or λ is too small for the factors of fits that leave rows out.
        """
        known = self._known
        if callable(known):
            try:
                known = known()
            except Exception as error:  # functions may raise any
                raise NumericalError(
                    "The importances of the columns cannot be computed; predictions do not need "
                    f"them. {type(error).__name__}: {error}"
                ) from error
            # In its place, because the left-out fits of 7,000 rows take 28 MB.
            self._known = known
        if isinstance(known, str):
            raise NumericalError(known)
        return cast(tuple[FloatArray, FloatArray], known)

    def __getstate__(self) -> dict[str, Any]:
        try:
            return {"found": self.found}
        except NumericalError as error:
            return {"found": str(error)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._known = state["found"]


def importances_of(
    X: Any,
    kernel: CombinedKernel | CombinedFeatures | TargetKernels,
    expand: Callable[[FloatArray], FloatArray],
    reader: RowReader,
    head: Any,
    fit: KernelLeastSquares,
    labels: NDArray[Any],
    rows: NDArray[np.intp] | None = None,
) -> Importances | None:
    """Return column importances, which are computed later; None without columns.

    Parameters
    ----------
    X : array or Table of shape (n_samples, n_columns)
        The training rows.
    kernel : CombinedKernel or CombinedFeatures
        The learned kernel.
    expand : callable
        Returns coefficients of the kernel from coefficients of the fit.
    reader : RowReader
        The reader, with the columns of the table.
    head : Head
        The head, with ``row_losses``.
    fit : KernelLeastSquares
        The fit of the model.
    labels : ndarray of shape (n_samples, ...)
        The labels for the losses of the head.
    rows : ndarray of int, optional
        The rows from which the left-out rows are drawn; by default all.
    """
    if not has_importances(X, reader.kernels) or not fit.fitted.shape[1]:
        return None  # no columns, or one class, whose prediction depends on no column
    every = np.arange(fit.n_samples) if rows is None else rows
    # Sorted by their errors, so that the drawn rows depend on neither their order nor class names.
    errors = ((fit.fitted - fit.truth) ** 2).sum(axis=1, keepdims=True)
    every = every[np.lexsort(round_keys(np.hstack([fit.fitted, errors]))[every].T)]
    kernel, n_targets = kernel.to_cpu(), fit.fitted.shape[1]
    n_columns = 1 if fit.groups is None else n_targets
    if kernel.by_target:
        n_columns = min(n_targets, _MOST_TARGETS)
    chosen = importance_rows(every, fit.n_samples * n_columns, reader)
    if kernel.rows is not None and (fit.n_samples <= _MOST_REFITTED or kernel.by_target):
        told = fit.truth, fit.ridge, fit.row_weights.values, labels, fit.groups
        return Importances(partial(_refitted_importances, kernel, reader, head, chosen, *told))
    if fit.by_iteration:
        chosen = draw_rows(chosen, _MOST_SOLVED)
    left_out = fit.left_out(chosen)
    left_out = replace(left_out, influence=expand(left_out.influence))
    known = X[chosen], expand(fit.coef), left_out, labels[chosen]
    return Importances(partial(column_importances, kernel, reader, head, *known))


def has_columns(X: Any, kernels: list[Kernel]) -> bool:
    """Return whether encoded rows have columns."""
    is_table = isinstance(X, Table) or (np.ndim(X) == 2 and X.dtype != object)
    return is_table and not kernels[0].precomputed


def has_importances(X: Any, kernels: list[Kernel]) -> bool:
    """Return whether rows have columns that can be exchanged; False for sparse rows.

    Parameters
    ----------
    X : array, CSR or Table
        Encoded rows.
    kernels : list of Kernel
        The kernels.
    """
    return has_columns(X, kernels) and not is_sparse(X)


def importance_rows(rows: NDArray[np.intp], n_terms: int, reader: RowReader) -> NDArray[np.intp]:
    """Return a random part of some rows, to be left out for importances.

    Parameters
    ----------
    rows : ndarray of int
        Positions of training rows.
    n_terms : int
        The number of coefficients of a leave-one-out fit.
    reader : RowReader
        The reader, with the columns of the table.
    """
    exchanged = _n_exchanged(reader.n_features or 0)
    most = min(_MOST_LEFT_OUT, exchanged, _MOST_INFLUENCE // max(1, n_terms))
    return np.asarray(draw_rows(rows, max(2, most)))


def _n_exchanged(n_columns: int) -> int:
    """Return the number of rows in which each column is exchanged."""
    return int(np.clip(_EXCHANGES // max(1, n_columns), _FEWEST, _MOST_EXCHANGED))


def squared_losses(truth: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return a function that computes the squared error of each row from its scores.

    Parameters
    ----------
    truth : ndarray of shape (n_rows, n_targets)
        The targets. Errors are relative to the standard deviation of each target.
    """
    unit = truth.var(axis=0)
    unit[unit == 0] = 1.0
    return lambda scores: np.asarray(np.sum((scores - truth) ** 2 / unit, axis=1))


# ---- left-out rows -----------------------------------------------------------------------------


def _refitted_importances(
    kernel: Any,
    reader: RowReader,
    head: Any,
    rows: NDArray[np.intp],
    truth: FloatArray,
    ridge: FloatArray,
    weights: FloatArray,
    labels: NDArray[Any],
    groups: Groups | None,
) -> tuple[FloatArray, FloatArray]:
    """Return `column_importances` of a model whose fit is not kept, by fitting it again.

    Parameters
    ----------
    kernel : CombinedKernel or TargetKernels
        The learned kernel, which keeps all training rows.
    reader, head
        As in `column_importances`.
    rows : ndarray of int
        Positions of the rows to leave out.
    truth, ridge, weights : ndarray of shape (n_samples, ...)
        Targets, ridges and sample weights of the fit, as in `fit_of_gram`.
    labels : ndarray of shape (n_samples, ...)
        The labels for the losses of the head.
    groups : Groups or None
        The groups of the rows, which are left out together.
    """
    labels = labels[rows]
    if kernel.by_target:
        targets = draw_rows(np.arange(truth.shape[1]), _MOST_TARGETS)
        kernel = replace(kernel, coefficients=kernel.coefficients[targets])
        labels, known = labels[:, targets], (truth[:, targets], ridge[:, targets])
        coef, left_out = _leave_rows_out_by_target(kernel, rows, *known, groups)
    else:
        fit = fit_of_gram(kernel.sum(kernel.rows, kernel.rows), truth, ridge, groups)
        coef, left_out = fit.coef, fit.left_out(rows)
    left_out = replace(left_out, weights=weights[rows])
    return column_importances(kernel, reader, head, kernel.rows[rows], coef, left_out, labels)


def fit_of_gram(
    gram: FloatArray, truth: FloatArray, ridge: FloatArray, groups: Groups | None = None
) -> KernelLeastSquares:
    """Return the fit of ``truth`` with a kernel matrix of all rows, which is overwritten.

    ``ridge`` is that of each row, over its sample weight. The coefficients of the fit, and of those
    without a row, sum to 0, so they are the coefficients of the kernel that is not centred, too.
    """
    rows = row_weights(None, len(gram))
    return KernelLeastSquares(centered_system(gram, ridge, rows), ridge, truth, groups=groups)


def _leave_rows_out_by_target(
    kernel: TargetKernels,
    rows: NDArray[np.intp],
    truth: FloatArray,
    ridge: FloatArray,
    groups: Groups | None,
) -> tuple[FloatArray, LeftOutRows]:
    """Return coefficients and left-out rows of targets with kernels and ridges of their own."""
    n_targets = truth.shape[1]
    coef, scores = np.empty_like(truth), np.empty((len(rows), n_targets))
    influence = np.empty((len(truth), len(rows), n_targets))
    for i in range(n_targets):
        own = WeightedKernels(kernel.kernels, kernel.coefficients[i])
        gram = own(kernel.rows, kernel.rows)
        fit = fit_of_gram(gram, truth[:, [i]], ridge[:, i], groups)
        left_out = fit.left_out(rows)
        coef[:, i], scores[:, i] = fit.coef[:, 0], left_out.scores[:, 0]
        influence[:, :, i] = left_out.influence * left_out.errors[:, 0]
    flat = influence.reshape(len(truth), -1)
    found = replace(left_out, scores=scores, errors=np.ones_like(scores), influence=flat)
    return coef, found


def scores_without(
    values: FloatArray, coef: FloatArray, left_out: LeftOutRows, rows: slice
) -> FloatArray:
    """Return Σ_j (coef_j − influence_ji e_i) values_ij for a slice of the left-out rows i."""
    if left_out.influence.shape[1] > len(left_out.rows):
        # All targets of a row have columns of their own.
        shape = len(left_out.rows), coef.shape[1], len(coef)
        own = np.einsum("ij,ikj->ik", values, left_out.influence.T.reshape(shape)[rows])
        return np.asarray(values @ coef - own)
    own = np.einsum("ij,ij->i", values, left_out.influence.T[rows])
    return np.asarray(values @ coef - own[:, None] * left_out.errors[rows])


def worth(
    rows: FloatArray, weights: FloatArray, groups: Groups | None = None
) -> tuple[FloatArray, FloatArray, bool]:
    """Return shrunk means of rowwise increases, their standard errors, and their significance.

    ``rows`` has shape (n, n_rows), for n columns or sources. Means are cut at 0 and multiplied by
    z⁴/(z⁴ + 3⁴) if they are z standard errors. The increases are significant if the largest z is
    larger than expected by chance for the largest of n. Groups of rows vary together.
    """
    shares = weights / weights.sum()
    means = rows @ shares
    parts = (rows - means[:, None]) * shares
    errors = np.linalg.norm(parts if groups is None else groups.sums(parts.T).T, axis=1)
    gains = np.maximum(means, 0.0)
    z = np.divide(gains, errors, out=np.where(gains > 0, np.inf, 0.0), where=errors > 0)
    trust = 1.0 / (1.0 + np.divide(_DOUBT, z, out=np.full_like(z, np.inf), where=z > 0) ** 4)
    is_clear = bool((z > -ndtri(_LEVEL / max(1, len(rows)))).any())
    return gains * trust, errors, is_clear


# ---- exchanged columns -------------------------------------------------------------------------


def column_importances(
    kernel: CombinedKernel | CombinedFeatures | TargetKernels,
    reader: RowReader,
    head: Any,
    X: Any,
    coef: FloatArray,
    left_out: LeftOutRows,
    labels: NDArray[Any],
) -> tuple[FloatArray, FloatArray]:
    """Return the increase of leave-one-out losses when cells of a column come from other rows.

    Parameters
    ----------
    kernel : CombinedKernel or CombinedFeatures
        The learned kernel between new rows and kept rows.
    reader : RowReader
        The reader, which maps encoded columns to columns of the table.
    head : Head
        The head, with ``row_losses``.
    X : array or Table of shape (n_rows, n_encoded)
        The left-out rows, encoded.
    coef : ndarray of shape (n_terms, n_outputs)
        The coefficients of the kernel.
    left_out : LeftOutRows
        The leave-one-out fits of these rows.
    labels : ndarray of shape (n_rows, ...)
        The labels for the losses of the head.

    Returns
    -------
    shares : ndarray of shape (n_columns,)
        At least 0 and summing to 1; all 0 if predictions depend on no column. If no increase is
        significant, shares of the mean squared change of the scores: the columns that predictions
        depend on, although they do not improve them.
    spread : ndarray of shape (n_columns,)
        The standard error of each share, over rows.
    """
    source, n_columns = reader.given_columns, reader.n_features or 0
    rounds = int(np.clip(_n_exchanged(n_columns) // len(left_out.rows), 1, _ROUNDS))
    changes = _score_changes(kernel, coef, left_out, X, source, n_columns, rounds)
    loss, weights = head.row_losses(labels), left_out.weights
    before = loss(left_out.scores)
    growth, moved = np.zeros((2, n_columns, len(before)))
    for column, each in enumerate(changes):
        if each.any():
            growth[column] = np.mean([loss(left_out.scores + one) for one in each], axis=0) - before
            moved[column] = np.sum(each**2, axis=(0, 2))
    values, errors, is_clear = worth(growth, weights, left_out.groups)
    if not is_clear:
        values, errors, _ = worth(moved, weights, left_out.groups)
    total = float(values.sum()) or 1.0
    return values / total, errors / total


def _score_changes(
    kernel: CombinedKernel | CombinedFeatures | TargetKernels,
    coef: FloatArray,
    left_out: LeftOutRows,
    X: Any,
    source: NDArray[np.intp],
    n_columns: int,
    rounds: int,
) -> FloatArray:
    """Return the changes of scores, of shape (n_columns, n_rounds, n_rows, n_outputs).

    f_{−i}(x′) − f_{−i}(x) = Σ_j (coef_j − influence_ji e_i)(k(x′, x_j) − k(x, x_j)), where x′ is
    row i with one column of another row.
    """
    n, k = len(left_out.rows), coef.shape[1]
    out = np.zeros((n_columns, rounds, n, k))
    order = np.random.default_rng(0).permutation(n)
    partners = np.empty((rounds, n), dtype=np.intp)
    for shift, partner in enumerate(partners, start=1):
        partner[order] = np.roll(order, shift)
    for part in score_parts(kernel, np.hstack([coef, left_out.influence]))[0]:
        seen = seen_columns(part.kernels, len(source))
        columns = [np.flatnonzero((source == one) & seen) for one in range(n_columns)]
        own = replace(left_out, influence=np.asfortranarray(part.coef[:, k:]))
        _add_changes(out, part, own, X, partners, columns)
    return out


def _add_changes(
    out: FloatArray,
    part: ScorePart,
    left_out: LeftOutRows,
    X: Any,
    partners: NDArray[np.intp],
    columns: list[NDArray[np.intp]],
) -> None:
    """Add the changes of one part of the scores to ``out``, in threads."""
    swaps = part.swaps(X.shape[1])
    coef = np.ascontiguousarray(part.coef[:, : out.shape[-1]])

    def work(rows: slice, buffers: Buffers) -> None:
        changes, others = swaps(X[rows], buffers), [X[partner[rows]] for partner in partners]
        for place, seen in enumerate(columns):
            for turn, change in enumerate(changes(seen, others) if len(seen) else ()):
                out[place, turn, rows] += scores_without(change, coef, left_out, rows)

    n_threads = n_cores() if part.thread_safe else 1
    blocks = _even_blocks(len(left_out.rows), len(coef), n_threads)
    in_threads(work, blocks, [Buffers() for _ in range(min(n_threads, len(blocks)))])


def _even_blocks(n: int, width: int, n_threads: int) -> list[slice]:
    """Return blocks of rows, as many for every thread.

    19 blocks of 240 rows and 10,000 columns left 13 of 16 threads without work half of the time.
    """
    most = max(1, larger_tiles(n_threads) * _BLOCK_ENTRIES // width)
    turns = -(-n // (most * n_threads))
    return slices(slice(0, n), max(1, -(-n // (turns * n_threads))))
