"""Scores of a model as sums: of kernels at the rows that are kept, or of features.

Scores of discriminants are linear in kernels, and log-posteriors of Gaussian classes with one
covariance are linear in scores. So all of ``decision_function`` is Σ_i c_i Σ_j a_j k_i(x, x_j) + b,
and what a kernel adds to scores it adds to log-odds, exactly. Importances, explanations and exports
read these sums.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Buffers, FloatArray
from discernel.bank import CombinedFeatures, CombinedKernel, Uncentered
from discernel.bank.base import Centering
from discernel.kernels import Kernel
from discernel.kernels.features import ExactMap, NystromMap
from discernel.kernels.weighted import WeightedKernels
from discernel.model.rows import mixed_rows
from discernel.model.swaps import Swap, SwappedKernels


class ScorePart(ABC):
    """Functions of a row that are linear in some terms of it, and a part of its scores."""

    #: What the terms are multiplied by, of shape (n_terms, n_outputs).
    coef: FloatArray
    #: The rows that the terms are kernels of; None where they are of none.
    rows: Any
    #: The exact features that the terms are; None where they are kernels.
    features: ExactMap | None
    #: Whether several threads may compute the terms.
    thread_safe: bool

    @property
    @abstractmethod
    def kernels(self) -> list[Kernel]:
        """The kernels that the terms are of."""

    @abstractmethod
    def values(self, X: Any) -> FloatArray:
        """Return the terms of rows, of shape (n_rows, n_terms)."""

    @abstractmethod
    def __call__(self, X: Any) -> FloatArray:
        """Return the terms of rows times ``coef``, of shape (n_rows, n_outputs)."""

    @abstractmethod
    def by_kernel(self) -> list[ScorePart]:
        """Return one part per kernel."""

    @abstractmethod
    def swaps(self, n_columns: int) -> Callable[[Any, Buffers], Swap]:
        """Return a function of rows and buffers: how the terms change with columns of the rows."""


@dataclass(frozen=True, eq=False)
class KernelPart(ScorePart):
    """Sums of one kernel at the same rows: Σ_j coef_j k(x, z_j).

    Precomputed kernels have no rows z_j. Of coefficients that are ``centered``, so that they sum to
    0, a constant of the kernel does not matter.
    """

    kernel: WeightedKernels
    rows: Any
    coef: FloatArray
    centered: bool
    features: None = None

    @property
    def kernels(self) -> list[Kernel]:
        return self.kernel.kernels

    @property
    def thread_safe(self) -> bool:  # type: ignore[override]
        return all(kernel.thread_safe for kernel in self.kernels)

    def values(self, X: Any) -> FloatArray:
        if self.rows is not None:
            return self.kernel(X, self.rows)
        pairs = zip(self.kernel.coefficients, self.kernels, strict=True)
        return np.asarray(sum(factor * kernel(X) for factor, kernel in pairs))

    def __call__(self, X: Any) -> FloatArray:
        # Without centring of rows: its coefficients are centred, so that digits are kept.
        nothing = Centering(np.zeros(len(self.coef)), 0.0) if self.centered else Uncentered()
        whole = CombinedKernel(self.kernels, self.kernel.coefficients, self.rows, nothing)
        return whole.product(X, self.coef)

    def by_kernel(self) -> list[ScorePart]:
        one = np.ones(1)
        return [
            KernelPart(WeightedKernels([kernel], one), self.rows, factor * self.coef, self.centered)
            for kernel, factor in zip(self.kernels, self.kernel.coefficients, strict=True)
        ]

    def swaps(self, n_columns: int) -> Callable[[Any, Buffers], Swap]:
        return SwappedKernels(self.kernel, self.rows, n_columns).swap


@dataclass(frozen=True, eq=False)
class FeaturePart(ScorePart):
    """A linear function of the exact features of a kernel."""

    features: ExactMap
    coef: FloatArray
    rows: None = None
    thread_safe: bool = False

    @property
    def kernels(self) -> list[Kernel]:
        return [self.features.kernel]

    def values(self, X: Any) -> FloatArray:
        return np.asarray(self.features(X))

    def __call__(self, X: Any) -> FloatArray:
        return self.features.product(X, self.coef)

    def by_kernel(self) -> list[ScorePart]:
        return [self]

    def swaps(self, n_columns: int) -> Callable[[Any, Buffers], Swap]:
        return lambda X, _: self._changes(X)

    def _changes(self, X: Any) -> Swap:
        before = self.values(X)

        def changes(columns: NDArray[np.intp], others: Sequence[Any]) -> Iterator[FloatArray]:
            taken = np.isin(np.arange(X.shape[1]), columns)[None]
            for each in others:
                yield self.values(mixed_rows(each, X, taken)) - before

        return changes


def score_parts(
    combined: CombinedKernel | CombinedFeatures, coef: FloatArray
) -> tuple[list[ScorePart], FloatArray]:
    """Return the parts that ``combined.product(X, coef)`` is a sum of, and what is taken off it."""
    if isinstance(combined, CombinedKernel):
        # Centring is a subtraction: from the coefficients, and a constant that no row changes.
        coef, offset = combined.centering.of_product(coef)
        centered = bool(combined.centering.ignores_constants)
        return [KernelPart(combined.sum, combined.rows, coef, centered)], offset
    parts: list[ScorePart] = []
    first = 0
    for factor, one in zip(combined.factors, combined.maps, strict=True):
        own = factor * coef[first : first + one.rank]
        first += one.rank
        if isinstance(one, NystromMap):  # features of landmarks are sums of kernels at these
            parts.append(KernelPart(one.kernel, one.landmarks, one.expansion(own), False))
        else:
            assert isinstance(one, ExactMap)
            parts.append(FeaturePart(one, own))
    return parts, combined.center @ coef


def seen_columns(kernels: Iterable[Kernel], n_columns: int) -> NDArray[np.bool_]:
    """Return which columns some kernels see, of shape (n_columns,)."""
    seen = np.zeros(n_columns, dtype=np.bool_)
    for atom in (atom for kernel in kernels for term in kernel.terms() for atom in term.atoms):
        found = atom.view.seen(n_columns)
        seen[found.columns[found.factors != 0]] = True
    return seen
