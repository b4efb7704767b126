"""The fitted model that predictions are made with: made once by a fit, never changed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, FloatArray, n_rows
from discernel.bank import CombinedFeatures, CombinedKernel
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.prepared import PreparedRows
from discernel.rows.reader import RowReader

#: Entries of all kernels between new and kept rows up to which neither tiles nor threads pay.
_FEW_ENTRIES = 2**17


@dataclass(frozen=True, eq=False)
class KeptRows:
    """The training rows that predictions are made from.

    Attributes
    ----------
    labels : ndarray of shape (n_kept,) or None
        Their labels; None where they differ by kernel.
    places : ndarray of int or None
        Where they stood in training; None where that is not known.
    """

    labels: NDArray[Any] | None = None
    places: NDArray[np.intp] | None = None


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts about a learned kernel beside predictions.

    Attributes
    ----------
    learned : LearnedKernel
        Everything the solver said.
    names : list of str
        The names of all candidates.
    bank : str
        How rows were learned from: the bank, or ``"stream"``.
    forecast : Stage or None
        What the fit was expected to take; None for few rows.
    plan : FitPlan
        The stages that were run.
    metric : Metric or None
        The scales of columns that the default considered; None where there is none.
    low_rank_loss : LowRankLoss or None
        What a low rank lost; None for other banks.
    importances : object
        How much each column matters; None where rows have no columns.
    streamed : object
        What a fit that reads its rows in chunks is based on; None for rows in memory.
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
class Model:
    """All that predictions, explanations and reports need of a fit.

    Scores of a row x are Σ_j k(x, z_j) coef_j + intercept, with k the learned kernel and z_j the
    rows that are kept; what they mean is for the head to say.

    Attributes
    ----------
    reader : RowReader
        From rows as users have them to rows as kernels take them.
    kernel : CombinedKernel, CombinedFeatures or None
        The learned kernel between new rows and those that are kept, or the features of new rows;
        None where there are no two classes to tell apart yet.
    coef : ndarray of shape (n_kept, n_scores)
        What it is multiplied by.
    intercept : ndarray of shape (n_scores,)
        What is added.
    head : Head
        What scores are turned into: `ClassHead` for classes.
    classes : ndarray of shape (n_classes,) or None
        The labels; None where numbers are predicted.
    facts : object
        What else there is to say of the fit.
    kept : KeptRows
        What is known of the rows that are kept.
    device : Device or None
        Where scores are computed; None: here.
    stream : object
        What more rows are added to; None where that is not known.
    """

    reader: RowReader
    kernel: CombinedKernel | CombinedFeatures | None
    coef: FloatArray
    intercept: FloatArray
    head: Any = None
    classes: NDArray[Any] | None = None
    facts: Any = None
    kept: KeptRows = field(default_factory=KeptRows)
    device: Device | None = None
    stream: Any = None

    @classmethod
    def of_rows(cls, reader: RowReader, names: list[str] | None = None) -> Model:
        """Return a model without scores of its own: it reads rows, and others predict.

        Parameters
        ----------
        reader : RowReader
            What reads rows.
        names : list of str, optional
            The names of the kernels.
        """
        facts = None if names is None else Facts(None, names, "dense")
        return cls(reader, None, np.empty((0, 0)), np.empty(0), facts=facts)

    def scores(self, X: Any) -> FloatArray:
        """Return the fitted scores of new rows, of shape (n_rows, n_scores).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows, as users have them.
        """
        if self.kernel is None or not len(self.intercept):  # no two classes to tell apart
            self.reader.check_columns(X)
            return np.empty((n_rows(X), 0))
        rows, few = self.reader.read(X), self._few
        if few is not None and isinstance(rows, np.ndarray) and len(rows) <= few.most_rows:
            product = few.product(rows)
        else:
            product = self.kernel.product(rows, self.coef)
        return np.asarray(product + self.intercept)

    @cached_property
    def _few(self) -> _FewRows | None:
        """The scores of few rows at a time; None if rows are no arrays of numbers."""
        kernel = self.kernel
        if self.device is not None or not isinstance(kernel, CombinedKernel):
            return None
        return _FewRows.of(kernel, self.coef)

    def prepared(self) -> Model:
        """Return this model after what the prediction of any row needs is computed."""
        _ = self._few, self.reader.takes_plain
        return self

    def to_cpu(self) -> Model:
        """Return the model that computes with NumPy."""
        if self.device is None or not isinstance(self.kernel, CombinedKernel):
            return replace(self, device=None)
        return replace(self, device=None, kernel=replace(self.kernel, device=None))

    def for_prediction(self) -> Model:
        """Return the model without what only further fitting needs."""
        return replace(self, stream=None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_few"}


@dataclass(frozen=True, eq=False)
class _FewRows:
    """Products of the learned kernel for few rows: what kept rows need is computed once.

    Tiles, buffers and threads, which `CombinedKernel.product` has for many rows, take longer than
    the kernels of a row.
    """

    kernel: CombinedKernel
    kernels: KernelSet
    kept: PreparedRows
    vectors: FloatArray
    offset: FloatArray
    most_rows: int

    @classmethod
    def of(cls, kernel: CombinedKernel, coef: FloatArray) -> _FewRows | None:
        """Return the products; None where kernels share no pairwise matrices of numbers."""
        kernels = KernelSet(kernel.kernels)
        is_array = isinstance(kernel.rows, np.ndarray) and kernel.rows.dtype != object
        if not len(coef) or kernels.direct or not kernels.kernels or not is_array:
            return None
        most_rows = _FEW_ENTRIES // (len(coef) * len(kernel.kernels))
        kept, product = kernels.prepare(kernel.rows), kernel.centering.of_product(coef)
        return cls(kernel, kernels, kept, *product, most_rows) if most_rows else None

    def product(self, X: FloatArray) -> FloatArray:
        """Return the same as `CombinedKernel.product`."""
        new, coefficients = self.kernels.prepare(X, self.kept), self.kernel.coefficients
        with np.errstate(invalid="ignore", over="ignore"):  # found below
            total = self.kernels.weighted_sum(coefficients, new, self.kept)
            if self.kernel.centering.ignores_constants:
                # Without what all entries of a row share, products do not lose its digits.
                total -= total[:, :1].copy()
            found = total @ self.vectors - self.offset
            if not np.isfinite(found.sum()):
                return self.kernel.product(X, self.vectors)  # says which kernel is not finite
        return np.asarray(found)
