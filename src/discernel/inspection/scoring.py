"""A fitted estimator as what it is: a sum of kernels at rows, and a constant.

Scores of discriminants are linear in kernels, and log-posteriors of Gaussian classes with one
covariance are linear in scores. So all of ``decision_function`` is Σ_i c_i Σ_j a_j k_i(x, x_j) + b,
and what a kernel adds to scores it adds to log-odds, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, n_rows
from discernel.bank import CombinedFeatures, CombinedKernel, Uncentered
from discernel.bank.base import Centering
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel
from discernel.kernels.features import FeatureMap, NystromMap
from discernel.kernels.weighted import WeightedKernels

__all__ = ["FeaturePart", "KernelExpansion", "KernelPart", "Part", "Scoring", "expand"]


@dataclass(frozen=True)
class KernelPart:
    """One kernel of a score: Σ_j coef_j k(x, x_j).

    Attributes
    ----------
    kernel : Kernel
        The kernel, resolved.
    rows : array of shape (n_rows, n_features) or None
        The rows x_j; None for precomputed kernels.
    coef : ndarray of shape (n_rows, n_outputs)
        The coefficients, the weight of the kernel included.
    centered : bool
        Whether they sum to 0, so that a constant of the kernel does not matter.
    """

    kernel: Kernel
    rows: Any
    coef: FloatArray
    centered: bool

    def __call__(self, X: Any) -> FloatArray:
        """Return the part of the scores of rows, of shape (n_rows_X, n_outputs)."""
        # Without centring of rows: its coefficients are centred, so that digits are kept.
        nothing = Centering(np.zeros(len(self.coef)), 0.0) if self.centered else Uncentered()
        whole = CombinedKernel([self.kernel], np.ones(1), self.rows, nothing)
        return whole.product(X, self.coef)


@dataclass(frozen=True)
class FeaturePart:
    """One kernel of a score, as a linear function of its features.

    Attributes
    ----------
    kernel : Kernel
        What the features are of.
    features : FeatureMap
        From rows to features.
    coef : ndarray of shape (rank, n_outputs)
        What these are multiplied by.
    """

    kernel: Kernel
    features: FeatureMap
    coef: FloatArray

    def __call__(self, X: Any) -> FloatArray:
        """Return the part of the scores of rows, of shape (n_rows_X, n_outputs)."""
        return self.features.product(X, self.coef)


Part = KernelPart | FeaturePart


@dataclass(frozen=True)
class KernelExpansion:
    """Functions of a row that are sums of one kernel at the same rows: Σ_j coef_j k(x, z_j).

    Attributes
    ----------
    kernel : WeightedKernels
        The kernel, a weighted sum.
    rows : array of shape (n_rows, n_features) or None
        The rows z_j; None for precomputed kernels.
    coef : ndarray of shape (n_rows, n_outputs)
        The coefficients.
    centered : bool
        Whether they sum to 0, so that a constant of the kernel does not matter.
    """

    kernel: WeightedKernels
    rows: Any
    coef: FloatArray
    centered: bool

    def values(self, X: Any) -> FloatArray:
        """Return the kernel between rows and those of the sum."""
        if self.rows is not None:
            return self.kernel(X, self.rows)
        pairs = zip(self.kernel.coefficients, self.kernel.kernels, strict=True)
        return np.asarray(sum(factor * kernel(X) for factor, kernel in pairs))

    @property
    def parts(self) -> Iterator[Part]:
        """One part per kernel of the sum."""
        for kernel, factor in zip(self.kernel.kernels, self.kernel.coefficients, strict=True):
            yield KernelPart(kernel, self.rows, factor * self.coef, self.centered)


def expand(
    combined: CombinedKernel | CombinedFeatures, coef: FloatArray
) -> Iterator[KernelExpansion | FeaturePart]:
    """Yield what ``combined.product(X, coef)`` is a sum of, but for a constant.

    Parameters
    ----------
    combined : CombinedKernel or CombinedFeatures
        The learned kernel between new rows and those of training.
    coef : ndarray of shape (n_terms, n_outputs)
        What it is multiplied by.
    """
    if isinstance(combined, CombinedKernel):
        # Centring is a subtraction: from the coefficients, and a constant that no row changes.
        coef, _ = combined.centering.of_product(coef)
        kernel = WeightedKernels(combined.kernels, combined.coefficients)
        yield KernelExpansion(kernel, combined.rows, coef, combined.centering.ignores_constants)
        return
    first = 0
    for factor, one in zip(combined.factors, combined.maps, strict=True):
        own = factor * coef[first : first + one.rank]
        first += one.rank
        if isinstance(one, NystromMap):  # features of landmarks are sums of kernels at these
            yield KernelExpansion(one.kernel, one.landmarks, one.expansion(own), False)
        else:
            yield FeaturePart(one.kernel, one, own)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Scoring:
    """Scores of a fitted estimator: what its kernels are multiplied by, and a constant.

    Attributes
    ----------
    combined : CombinedKernel or CombinedFeatures
        The learned kernel between new rows and those of training.
    coef : ndarray of shape (n_terms, n_outputs)
        What it is multiplied by.
    constant : ndarray of shape (n_outputs,)
    classes : ndarray of shape (n_classes,) or None
        The labels that can be predicted, so none of which all rows have the weight 0; None for
        numbers that are predicted. Two classes have one output, the log-odds of the second. More
        have one each, less the mean over the classes.
    """

    combined: CombinedKernel | CombinedFeatures
    coef: FloatArray
    constant: FloatArray
    classes: NDArray[Any] | None

    @classmethod
    def of(cls, learner: Any) -> Scoring:
        """Return the scoring of a fitted estimator, or raise a clear error.

        Parameters
        ----------
        learner : estimator
            Fitted, of discernel.
        """
        if hasattr(learner, "discriminant_"):
            coef, constant = _log_posterior(learner)
        elif hasattr(learner, "dual_coef_") and hasattr(learner, "combined_kernel_"):
            coef = learner.dual_coef_.reshape(len(learner.dual_coef_), -1)
            constant = np.ravel(learner.intercept_).astype(np.float64)
        else:
            raise InvalidInputError(
                "Predictions are explained of KernelDiscriminant, MultipleKernelDiscriminant, "
                "MultipleKernelRidge and AKFDClassifier, or a pipeline that ends in one. Got "
                f"{type(learner).__name__}. Of several labels, fit one of these per label."
            )
        classes: Any = getattr(learner, "classes_", None)
        if hasattr(learner, "priors_"):
            seen = learner.priors_ > 0
            coef, constant, classes = coef[:, seen], constant[seen], classes[seen]
        elif classes is not None:
            classes = classes[learner.model_.head.seen]  # of which the coefficients are
        if classes is not None and len(classes) > 2:
            seen = getattr(learner, "priors_", np.ones(len(classes))) > 0
            coef = coef - coef[:, seen].mean(axis=1, keepdims=True)
            constant = constant - constant[seen].mean()
        elif classes is not None and coef.shape[1] == 2:
            coef, constant = coef[:, 1:] - coef[:, :1], constant[1:] - constant[:1]
        return cls(learner.combined_kernel_, np.ascontiguousarray(coef), constant, classes)

    def __call__(self, X: Any) -> FloatArray:
        """Return the scores of rows as the kernels take them, of shape (n_rows, n_outputs)."""
        return np.asarray(self.combined.product(X, self.coef) + self.constant)

    @property
    def n_outputs(self) -> int:
        """How many scores a row has."""
        return len(self.constant)

    @property
    def rows(self) -> Any:
        """The training rows that are kept: all, or landmarks; None if there are none.

        Landmarks of several maps are those of the largest.
        """
        if isinstance(self.combined, CombinedKernel):
            return self.combined.rows
        kept = [one.landmarks for one in self.combined.maps if isinstance(one, NystromMap)]
        return max(kept, key=n_rows) if kept else None

    def parts(self) -> list[Part]:
        """Return what the scores are a sum of, one part per kernel, but for the constant."""
        found: list[Part] = []
        for one in expand(self.combined, self.coef):
            found += one.parts if isinstance(one, KernelExpansion) else [one]
        return found


def _log_posterior(learner: Any) -> tuple[FloatArray, FloatArray]:
    """Return coefficients and constants of what ``decision_function`` is made of, per class."""
    found, decision = learner.discriminant_, learner.decision_
    to_classes = found.sharpness * found.scalings @ found.means.T
    priors = np.maximum(decision.priors, np.finfo(np.float64).tiny)  # 0 has no finite score
    constant = found.log_posterior(found.intercept[None], priors)[0] + decision.offsets
    return found.dual_coef @ to_classes, constant
