"""Kernels of sources that are missing in some rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.exceptions import InvalidInputError
from discernel.kernels.base import Kernel, Known
from discernel.kernels.columns import missing_cells, replace_rows
from discernel.kernels.composites import Wrapper
from discernel.kernels.evaluate import KernelSet, is_dense
from discernel.kernels.objects import SimilarityKernel
from discernel.kernels.terms import PreparedRows, View, formula_of
from discernel.kernels.weighted import WeightedKernels


@dataclass(frozen=True, eq=False)
class _Reference:
    """The training rows in which a source is not missing.

    Attributes
    ----------
    rows : ndarray or Table of shape (n_known, n_columns)
        The rows, with single missing cells replaced by medians.
    medians : ndarray of shape (n_columns,) or None
        Median of each column; None unless all columns are numeric.
    means : ndarray of shape (n_known,)
        Mean of the kernel between each row and all of these rows.
    """

    rows: Any
    medians: FloatArray | None
    means: FloatArray

    def has(self, rows: Any) -> bool:
        """Whether ``rows`` are exactly these rows, in the same order."""
        left, right = np.asarray(self.rows), np.asarray(rows)
        if left.dtype != object or left.shape != right.shape:
            return bool(np.array_equal(left, right))
        # By identity first, because cells may define any __eq__.
        pairs = zip(left.ravel(), right.ravel(), strict=True)
        return all(one is other for one, other in pairs) or left.tolist() == right.tolist()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Reference):
            return NotImplemented
        return np.array_equal(self.means, other.means) and self.has(other.rows)

    def __hash__(self) -> int:
        return hash((len(self.means), float(self.means.sum())))


@dataclass(frozen=True, eq=False)
class _KnownRows:
    """Prepared rows of a source that may be missing.

    Attributes
    ----------
    prepared : PreparedRows
        The rows, with rows that lack the source replaced by a row that has it.
    missing : ndarray of bool, of shape (n_rows,)
        Whether each row lacks the source.
    means : ndarray of shape (n_rows,)
        The kernel between each row and a row that lacks the source.
    """

    prepared: PreparedRows
    missing: NDArray[np.bool_]
    means: FloatArray

    def __getitem__(self, rows: Any) -> _KnownRows:
        return _KnownRows(self.prepared[rows], self.missing[rows], self.means[rows])


@dataclass(frozen=True, repr=False)
class WhereKnown(SimilarityKernel, Wrapper):
    """Kernel of a source that some rows lack.

    A row lacks a source if all cells of its columns are missing (NaN, None, ``pd.NA``), in training
    or in prediction. Its features are replaced by φ̄, the mean features of the training rows that
    have the source. The kernel is ⟨φ̃(x), φ̃(z)⟩, where φ̃(x) is φ(x), or φ̄ for a row that lacks the
    source. It is positive semidefinite, and after centring such a row is 0: the source does not
    influence it.

    If a row lacks only some cells of a source, these must be numbers, and become the column medians
    of the training rows.

    Parameters
    ----------
    kernel : Kernel
        The kernel of the source. Values that depend on the training rows, such as a median width,
        are computed on those that have the source.
    reference : optional
        The training rows that have the source. Set by `resolve`.

    Notes
    -----
    The kernel holds the training rows of its source. Its matrices take about twice as long, and
    several such kernels on one source do not share distances. The mean is not weighted: with
    ``sample_weight``, a row that lacks the source is close to 0 after centring, not exactly 0.

    Examples
    --------
    >>> import numpy as np
    >>> from discernel.kernels import RBF
    >>> rows = np.array([[0.0], [2.0], [np.nan]])
    >>> kernel = WhereKnown(RBF(width=2.0)).resolve(rows)
    >>> kernel(rows).round(3)
    array([[1.   , 0.368, 0.684],
           [0.368, 1.   , 0.684],
           [0.684, 0.684, 0.684]])

    In a table with other sources: ``{"scan": WhereKnown(RBF()).on(["scan_1", "scan_2"]), ...}``.
    """

    reference: _Reference | None = field(default=None, metadata={"private": True})
    takes_missing = True
    takes_sparse = False  # a missing cell is NaN or None

    @property
    def name(self) -> str:
        return self.kernel.name

    # ---- training rows -----------------------------------------------------------------------

    def check_rows(self, X: Any) -> None:
        if self.reference is not None:
            self.kernel.check_rows(self._filled(X)[0])

    def _resolve(self, X: Any, frame: Any | None, known: Known) -> Kernel:
        if "where known" not in known:
            known["where known"] = _known_rows(X, self.kernel.name)
        rows, medians = known["where known"]
        inner = self.kernel.resolve(rows, None, known.setdefault("within known", {}))
        return self._with_reference(inner, rows, medians)

    def _with_reference(self, inner: Kernel, rows: Any, medians: FloatArray | None) -> Kernel:
        inner.check_rows(rows)
        reference = _Reference(rows, medians, _means(inner, rows, rows))
        return replace(self, kernel=inner, reference=reference)

    def _shifted(self, X: Any, view: View) -> Kernel:
        found = self.training
        inner = self.kernel._shifted(found.rows, View())
        if inner is self.kernel:
            return self
        return self._with_reference(inner, found.rows, found.medians)

    @property
    def training(self) -> _Reference:
        """The training rows that have the source; raises an error before `resolve`."""
        if self.reference is None:
            raise self._unresolved()
        return self.reference

    def _filled(self, X: Any) -> tuple[Any, NDArray[np.bool_]]:
        """Return rows without missing cells, and a mask of the rows that lack the source."""
        found, cells = self.training, _missing_cells(X)
        missing = np.asarray(cells.all(axis=1))
        filled = _with_medians(X, cells & ~missing[:, None], found.medians, self.kernel.name)
        if missing.any():
            filled = replace_rows(filled, missing, found.rows)
        return filled, missing

    # ---- matrices ----------------------------------------------------------------------------

    def rows(self, X: Any, like: Any | None = None) -> Any:
        filled, missing = self._filled(np.asarray(X) if isinstance(X, list) else X)
        prepared = KernelSet([self.kernel]).prepare(filled, None if like is None else like.prepared)
        # If none of the other rows lacks the source, the means are not used.
        means = np.zeros(len(missing))
        if like is None or like.missing.any():
            means = self._means(filled, missing)
        return _KnownRows(prepared, missing, means)

    def _means(self, filled: Any, missing: NDArray[np.bool_]) -> FloatArray:
        """Return the kernel between each row and a row that lacks the source, a mean."""
        found, known = self.training, filled[~missing]
        means = np.full(len(missing), found.means.mean())
        if found.has(known):
            means[~missing] = found.means
        elif len(known):
            means[~missing] = _means(self.kernel, known, found.rows)
        return means

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        other = X if Z is None else Z
        [(_, found)] = KernelSet([self.kernel]).matrices(
            X.prepared, None if Z is None else Z.prepared
        )
        matrix = np.array(found)
        matrix[X.missing] = other.means
        matrix[:, other.missing] = X.means[:, None]
        return matrix

    def formula(self, X: Any, Z: FloatArray, xp: Any, steepness: float) -> Any | None:
        found = self.training
        if found.medians is None:
            return None
        cells = xp.isnan(X)
        new, (stored, missing) = xp.where(cells, found.medians, X), self._filled(Z)
        has_all, terms = found.has(stored[~missing]), self.kernel.terms()
        means = self._means(stored, missing)
        if (matrix := formula_of(terms, new, stored, xp)) is None:
            return None
        if missing.any():
            # For a stored row that lacks the source: the mean over the training rows that have it.
            known = matrix[:, np.flatnonzero(~missing)]
            known = known if has_all else formula_of(terms, new, np.asarray(found.rows), xp)
            share = np.full((len(found.rows), 1), 1.0 / len(found.rows))
            matrix = xp.where(missing, xp.matmul(known, share), matrix)
        return xp.where(xp.all(cells, axis=1, keepdims=True), means, matrix)

    def diagonal(self, X: Any) -> FloatArray:
        filled, missing = self._filled(X)
        return np.where(missing, self.training.means.mean(), self.kernel.diagonal(filled))

    @property
    def parameters(self) -> dict[str, float]:
        return {}  # derivatives of the mean are not implemented

    def __repr__(self) -> str:
        return f"WhereKnown({self.kernel!r})"


# ---- rows --------------------------------------------------------------------------------------


def _missing_cells(X: Any) -> NDArray[np.bool_]:
    """Return a mask of the missing cells, of shape (n_rows, n_columns)."""
    missing = missing_cells(np.asarray(X))
    return missing.reshape(missing.shape if missing.ndim == 2 else (-1, 1))


def _known_rows(X: Any, name: str) -> tuple[Any, FloatArray | None]:
    """Return the training rows that have a source, and the medians of its columns."""
    cells = _missing_cells(X)
    missing = np.asarray(cells.all(axis=1))
    if missing.all():
        raise InvalidInputError(
            f"At least one training row must have the source of {name}. All {len(missing)} lack "
            "it: leave the kernel out."
        )
    rows, medians = (X if is_dense(X) else np.asarray(X))[~missing], None
    if np.asarray(rows).dtype != object:
        columns = np.where(cells[~missing].all(axis=0), 0.0, rows)  # 0 in columns without any value
        medians = np.nanmedian(np.asarray(columns, dtype=np.float64), axis=0)
    return _with_medians(rows, cells[~missing], medians, name), medians


def _with_medians(X: Any, cells: NDArray[np.bool_], medians: FloatArray | None, name: str) -> Any:
    """Replace single missing cells by medians; raise an error if columns are not numeric."""
    if not cells.any():
        return X
    if medians is None:
        row = int(cells.any(axis=1).argmax())
        raise InvalidInputError(
            f"WhereKnown({name}) has columns that are not numeric, so a row must lack all of their "
            f"cells or none. Row {row} lacks some. Impute them."
        )
    return np.where(cells, medians, X)


def _means(kernel: Kernel, X: Any, training: Any) -> FloatArray:
    """Return the mean over the training rows of the kernel with each row of X, in tiles."""
    shares = np.full((len(training), 1), 1.0 / len(training))
    return WeightedKernels([kernel], np.ones(1)).product(X, training, shares)[:, 0]
