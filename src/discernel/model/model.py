"""The fitted model: made once by `fit`, and immutable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, FieldState, FloatArray, is_dense, n_rows
from discernel.bank import CombinedFeatures, CombinedKernel, TargetKernels
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.terms import PreparedRows
from discernel.rows.reader import RowReader

#: Up to this many entries of all kernels between new and kept rows, tiles and threads are slower.
_FEW_ENTRIES = 2**17


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Labels, positions and groups of the training rows that a model keeps for predictions.

    Attributes
    ----------
    labels : ndarray of shape (n_kept,) or None
        The labels; None if the kept rows differ between kernels.
    places : ndarray of int or None
        The positions among the training rows; None if unknown.
    groups : ndarray of int or None
        The groups; None if each row was held out alone, or if unknown.
    """

    labels: NDArray[Any] | None = None
    places: NDArray[np.intp] | None = None
    groups: NDArray[np.intp] | None = None


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts about a fit that predictions do not need.

    Attributes
    ----------
    learned : LearnedKernel
        The complete result of the solver.
    names : list of str
        The names of all candidate kernels.
    bank : str
        The name of the bank, or ``"stream"``.
    forecast : Stage or None
        The expected time and memory; None for few rows.
    plan : FitPlan
        The stages that were run.
    metric : Metric or None
        The learned column scales; None if none were learned.
    low_rank_loss : LowRankLoss or None
        The loss of a low-rank approximation; None for other banks.
    importances : Importances or None
        The column importances; None for rows without columns.
    streamed : Streamed or None
        Sizes of a fit to rows in chunks; None for rows in memory.
    """

    learned: Any
    names: list[str]
    bank: str
    forecast: Any = None
    plan: Any = None
    metric: Any = None
    low_rank_loss: Any = None
    importances: Any = None
    streamed: Any = None


@dataclass(frozen=True, eq=False)
class Model(FieldState):
    """The result of a fit, with everything that predictions, explanations and reports need.

    Scores of a row x are Σ_j k(x, z_j) coef_j + intercept, with the learned kernel k and the kept
    rows z_j. The head converts scores to predictions.

    Attributes
    ----------
    reader : RowReader
        Checks and encodes new rows.
    kernel : CombinedKernel, CombinedFeatures, TargetKernels or None
        The learned kernel between new rows and kept rows, or the features of new rows; None until
        two classes can be learned.
    coef : ndarray of shape (n_kept, n_scores)
        The coefficients of the kernel.
    intercept : ndarray of shape (n_scores,)
        The intercepts of the scores.
    head : Head
        Converts scores to predictions: `ClassHead` for classes.
    classes : ndarray of shape (n_classes,) or None
        The class labels; None if numbers are predicted.
    facts : Facts
        Facts about the fit that predictions do not need.
    kept : KeptRows
        Labels and positions of the kept rows.
    device : Device or None
        The device that computes scores; None for the CPU.
    stream : Stream or None
        The state to which `partial_fit` adds rows; None after a fit in memory.
    """

    reader: RowReader
    kernel: CombinedKernel | CombinedFeatures | TargetKernels | None
    coef: FloatArray
    intercept: FloatArray
    head: Any = None
    classes: NDArray[Any] | None = None
    facts: Any = None
    kept: KeptRows = field(default_factory=KeptRows)
    device: Device | None = None
    stream: Any = None

    def scores(self, X: Any) -> FloatArray:
        """Return the scores of new rows, of shape (n_rows, n_scores).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows.
        """
        if self.kernel is None or not len(self.intercept):  # fewer than two classes
            self.reader.check_columns(X)
            return np.empty((n_rows(X), 0))
        rows, few = self.reader.read(X), self._few
        if few is not None and is_dense(rows) and len(rows) <= few.most_rows:
            product = few.product(rows)
        else:
            product = self.kernel.product(rows, self.coef)
        return np.asarray(product + self.intercept)

    @cached_property
    def _few(self) -> _FewRows | None:
        """Products of the kernel for few rows; None if no numbers are kept, or on a device.

        None too if there is no common sum of kernels, or they are not made of pairwise matrices.
        """
        kernel: Any = self.kernel
        is_here = self.device is None and kernel is not None
        if not is_here or not is_dense(kernel.rows) or kernel.by_target:
            return None
        kernels, n_kept = KernelSet(kernel.kernels), len(self.coef)
        if not n_kept or kernels.direct or not kernels.kernels:
            return None
        most_rows = _FEW_ENTRIES // (n_kept * len(kernel.kernels))
        if not most_rows:
            return None
        vectors, offset = kernel.centering.of_product(self.coef)
        return _FewRows(kernel, kernels, kernels.prepare(kernel.rows), vectors, offset, most_rows)

    def prepared(self) -> Model:
        """Return this model after computing its cached values, so that predictions are fast."""
        _ = self._few, self.reader.takes_plain
        return self

    def to_cpu(self) -> Model:
        """Return the model that computes with NumPy."""
        kernel = None if self.kernel is None else self.kernel.to_cpu()
        return replace(self, device=None, kernel=kernel)

    def for_prediction(self) -> Model:
        """Return the model without the state that only `partial_fit` needs."""
        return replace(self, stream=None)


@dataclass(frozen=True, eq=False)
class _FewRows:
    """Products of the learned kernel for few rows, with kept rows prepared once.

    For few rows, the tiles, buffers and threads of `CombinedKernel.product` take longer than the
    kernels themselves.
    """

    kernel: CombinedKernel
    kernels: KernelSet
    kept: PreparedRows
    vectors: FloatArray
    offset: FloatArray
    most_rows: int

    def product(self, X: FloatArray) -> FloatArray:
        """Return the product of the kernel and the coefficients, as `CombinedKernel.product`."""
        new, coefficients = self.kernels.prepare(X, self.kept), self.kernel.coefficients
        with np.errstate(invalid="ignore", over="ignore"):  # checked below
            total = self.kernels.weighted_sum(coefficients, new, self.kept)
            if self.kernel.centering.ignores_constants:
                # Subtracting the common part of each row avoids cancellation in the product.
                total -= total[:, :1].copy()
            found = total @ self.vectors - self.offset
            if not np.isfinite(found.sum()):
                return self.kernel.product(X, self.vectors)  # raises an error with the kernel
        return np.asarray(found)
