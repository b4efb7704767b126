"""Scores of a model as sums over kernels at kept rows, or over features.

Scores of discriminants are linear in kernels, and log-posteriors of Gaussian classes with a common
covariance are linear in scores. So ``decision_function`` is Σ_i c_i Σ_j a_j k_i(x, x_j) + b, and
log-odds are exact sums of contributions of the kernels. Importances, explanations and exports use
these sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Buffers, FloatArray
from discernel.bank import CombinedFeatures, CombinedKernel, TargetKernels, Uncentered
from discernel.bank.base import Centering
from discernel.kernels import Kernel
from discernel.kernels.features import ExactMap, NystromMap
from discernel.kernels.weighted import WeightedKernels
from discernel.model.swaps import Swap, SwappedKernels, mixed_rows


@dataclass(frozen=True, eq=False)
class KernelPart:
    """A sum over kernels at kept rows: Σ_j coef_j k(x, z_j).

    Its terms are the kernels k(x, z_j) of a row x, and ``coef`` has the shape (n_terms, n_outputs).

    Precomputed kernels have no rows z_j. If coefficients are ``centered``, they sum to 0, and
    constants added to the kernel do not matter.
    """

    kernel: WeightedKernels
    rows: Any
    coef: FloatArray
    centered: bool
    features: None = None

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels of the terms."""
        return self.kernel.kernels

    @property
    def thread_safe(self) -> bool:
        """Whether several threads may compute the terms."""
        return all(kernel.thread_safe for kernel in self.kernels)

    def values(self, X: Any) -> FloatArray:
        """Return the terms of rows, of shape (n_rows, n_terms)."""
        if self.rows is not None:
            return self.kernel(X, self.rows)
        pairs = zip(self.kernel.coefficients, self.kernels, strict=True)
        return np.asarray(sum(factor * kernel(X) for factor, kernel in pairs))

    def __call__(self, X: Any) -> FloatArray:
        """Return the terms of rows times ``coef``, of shape (n_rows, n_outputs)."""
        # The kernel is not centred: centred coefficients give the same product more accurately.
        nothing = Centering(np.zeros(len(self.coef)), 0.0) if self.centered else Uncentered()
        whole = CombinedKernel(self.kernels, self.kernel.coefficients, self.rows, nothing)
        return whole.product(X, self.coef)

    def by_kernel(self) -> Sequence[ScorePart]:
        """Return one part per kernel."""
        one = np.ones(1)
        return [
            KernelPart(WeightedKernels([kernel], one), self.rows, factor * self.coef, self.centered)
            for kernel, factor in zip(self.kernels, self.kernel.coefficients, strict=True)
        ]

    def swaps(self, n_columns: int) -> Callable[[Any, Buffers], Swap]:
        """Return a function of rows and buffers that makes a `Swap` of their columns."""
        return SwappedKernels(self.kernel, self.rows, n_columns).swap


@dataclass(frozen=True, eq=False)
class FeaturePart:
    """A linear function of the exact features of a kernel, which are its terms."""

    features: ExactMap
    coef: FloatArray
    rows: Any = None  # none are kept
    thread_safe: bool = False

    @property
    def kernels(self) -> list[Kernel]:
        """The kernel of the terms."""
        return [self.features.kernel]

    def values(self, X: Any) -> FloatArray:
        """Return the features of rows, of shape (n_rows, n_terms)."""
        return np.asarray(self.features(X))

    def __call__(self, X: Any) -> FloatArray:
        """Return the features of rows times ``coef``, of shape (n_rows, n_outputs)."""
        return self.features.product(X, self.coef)

    def by_kernel(self) -> Sequence[ScorePart]:
        """Return this part, which has one kernel."""
        return [self]

    def swaps(self, n_columns: int) -> Callable[[Any, Buffers], Swap]:
        """Return a function of rows and buffers that makes a `Swap` of their columns."""
        return lambda X, _: self._swap(X)

    def _swap(self, X: Any) -> Swap:
        before = self.values(X)

        def changes(columns: NDArray[np.intp], others: Sequence[Any]) -> Iterator[FloatArray]:
            taken = np.isin(np.arange(X.shape[1]), columns)[None]
            for each in others:
                yield self.values(mixed_rows(each, X, taken)) - before

        return changes


#: A part of the scores: a linear function of terms, which are kernels or features of a row.
ScorePart: TypeAlias = KernelPart | FeaturePart


def score_parts(
    combined: CombinedKernel | CombinedFeatures | TargetKernels, coef: FloatArray
) -> tuple[list[ScorePart], FloatArray]:
    """Return parts whose sum minus an offset is ``combined.product(X, coef)``, and the offset."""
    if isinstance(combined, TargetKernels):
        found = [score_parts(kernel, own) for kernel, own in combined.parts(coef)]
        offsets = np.sum([offset for _, offset in found], axis=0)
        return [part for parts, _ in found for part in parts], offsets
    if isinstance(combined, CombinedKernel):
        # Centring subtracts the mean from the coefficients, and a constant from the product.
        coef, offset = combined.centering.of_product(coef)
        centered = bool(combined.centering.ignores_constants)
        return [KernelPart(combined.sum, combined.rows, coef, centered)], offset
    parts: list[ScorePart] = []
    first = 0
    for factor, one in zip(combined.factors, combined.maps, strict=True):
        own = factor * coef[first : first + one.rank]
        first += one.rank
        if isinstance(one, NystromMap):  # these features are sums of kernels at landmarks
            parts.append(KernelPart(one.kernel, one.landmarks, one.expansion(own), False))
        else:
            parts.append(FeaturePart(cast(ExactMap, one), own))
    return parts, combined.center @ coef


def seen_columns(kernels: Iterable[Kernel], n_columns: int) -> NDArray[np.bool_]:
    """Return which columns some kernels depend on, of shape (n_columns,)."""
    seen = np.zeros(n_columns, dtype=np.bool_)
    for atom in (atom for kernel in kernels for term in kernel.terms() for atom in term.atoms):
        found = atom.view.seen(n_columns)
        seen[found.columns[found.factors != 0]] = True
    return seen
