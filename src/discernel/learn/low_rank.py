"""The loss of a low-rank approximation: in the trace, the objective and leave-one-out errors.

With E = K − K̃, which is positive semidefinite for Nyström features, N = λI + K and Ñ = λI + K̃, the
value of `RKDA` at the same weights is too large by

    0 ≤ λ⟨T, Ñ⁻¹T⟩ − λ⟨T, N⁻¹T⟩ = λ(⟨B, EB⟩ − ⟨EB, N⁻¹EB⟩) ≤ λ⟨B, EB⟩,  B = Ñ⁻¹T,

because Ñ⁻¹ − N⁻¹ = Ñ⁻¹EN⁻¹ and N⁻¹T = B − N⁻¹EB. The diagonal of E is known, and
|E_ij| ≤ √(E_iiE_jj), so ⟨B, EB⟩ ≤ Σ_c (Σ_i |B_ic| √E_ii)², and ⟨B, EB⟩ ≤ tr E · ‖B‖₂². B sums to 0,
so E need not be centred. With many rows these worst-case bounds are loose. ⟨B, EB⟩ itself requires
the kernel between all pairs of rows; it is estimated from the kernel of some rows with all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, draw_rows, inner, n_rows, self_product
from discernel.bank import FeatureBank
from discernel.bank.system import centered_system
from discernel.kernels.weighted import WeightedKernels
from discernel.programs.base import Criterion
from discernel.programs.least_squares import KernelLeastSquares
from discernel.targets import Target

#: Rows on which the exact kernel is compared with the approximated one.
_SAMPLE = 1500
#: A larger rank is advised if doubling the rank reduced the leave-one-out error by this share, or
#: if the exact kernel reduces it by this share on the sample.
_CLEARLY = 0.1


@dataclass(frozen=True, eq=False)
class LowRankLoss:
    """The loss of approximating kernels by features.

    Attributes
    ----------
    rank : int
        The number of features.
    captured : ndarray of shape (n_kernels,) or (1,)
        The share of the trace of each centred kernel, or of their sum, that the features capture.
    objective : float
        λ⟨T, Ñ⁻¹T⟩, the value of ``"rkda"`` for the approximated kernel.
    objective_bound : float
        An upper bound of the difference to the value for the exact kernel, which is smaller.
    objective_estimate : float
        An estimate of this difference, λ⟨B, EB⟩, from 1,500 rows; exact for no more rows.
    leave_one_out, leave_one_out_of_half : float and float or None
        The mean squared leave-one-out error of all rows, at this rank and at half of it; the latter
        is None if all rows are landmarks.
    sample_error, exact_sample_error : float
        The mean squared leave-one-out error of fits to at most 1,500 rows: with the features, and
        with the exact kernel.
    """

    rank: int
    captured: FloatArray
    objective: float
    objective_bound: float
    objective_estimate: float
    leave_one_out: float
    leave_one_out_of_half: float | None
    sample_error: float
    exact_sample_error: float

    @property
    def gain_of_doubling(self) -> float:
        """The relative decrease of the error from half of the rank to the rank."""
        if self.leave_one_out_of_half is None or self.leave_one_out_of_half <= 0:
            return 0.0
        return 1.0 - self.leave_one_out / self.leave_one_out_of_half

    @property
    def gain_of_exact(self) -> float:
        """The relative decrease of the error on the sample with the exact kernel."""
        return 1.0 - self.exact_sample_error / self.sample_error if self.sample_error > 0 else 0.0

    @property
    def advice(self) -> str:
        """Advice to use a larger rank; empty unless it would reduce the error clearly."""
        gains = max(self.gain_of_doubling, self.gain_of_exact)
        if self.leave_one_out_of_half is None or gains < _CLEARLY:
            return ""
        if self.gain_of_doubling >= self.gain_of_exact:
            why = (
                f"from half of the rank to rank {self.rank:,} the leave-one-out error fell from "
                f"{self.leave_one_out_of_half:.3g} to {self.leave_one_out:.3g}"
            )
        else:
            why = (
                f"on a sample of the rows the leave-one-out error is {self.sample_error:.3g} at "
                f"rank {self.rank:,} and {self.exact_sample_error:.3g} with the exact kernel"
            )
        return (
            f"A larger rank would reduce the error: {why}. Try LowRank({2 * self.rank}) or another "
            "bank if there is time for it."
        )

    def __repr__(self) -> str:
        half = ""
        if self.leave_one_out_of_half is not None:
            half = f" ({self.leave_one_out_of_half:.4g} at half of the rank)"
        return (
            f"rank {self.rank}: {self.captured.min():.2%} of the trace; objective "
            f"{self.objective:.4g}, above the exact one by about {self.objective_estimate:.2g}, "
            f"at most {self.objective_bound:.2g}; "
            f"leave-one-out error {self.leave_one_out:.4g}{half}; on a sample "
            f"{self.sample_error:.4g}, exact {self.exact_sample_error:.4g}"
        )


@dataclass(frozen=True, eq=False)
class LowRankFit:
    """A fit with features in place of kernels, whose `loss` is estimated.

    Attributes
    ----------
    bank : FeatureBank
        The features of the training rows.
    weights : ndarray of shape (n_kernels,)
        The kernel weights of the fit.
    regularization : float
        λ.
    criterion : Criterion
        The criterion, which determines the ridge of each row.
    target : Target
        The target.
    kernel : WeightedKernels
        The raw kernels with their coefficients, which the features approximate.
    X : array or CSR of shape (n_samples, n_features)
        The training rows.
    """

    bank: FeatureBank
    weights: FloatArray
    regularization: float
    criterion: Criterion
    target: Target
    kernel: WeightedKernels
    X: Any

    def loss(self) -> LowRankLoss:
        """Return the loss of approximating the kernels by the features."""
        bank, weights, lam, target = self.bank, self.weights, self.regularization, self.target
        T, ridge = target.scores, self.criterion.sample_ridge(target, lam)
        system = bank.system(weights, ridge)
        B = system.solve(T)
        half = None
        if bank.rank < bank.n_samples:
            few = bank.halved().system(weights, ridge)
            half = KernelLeastSquares.of(few, ridge, target).leave_one_out_error()
        fit = KernelLeastSquares.of(system, ridge, target)
        drawn = draw_rows(np.arange(n_rows(self.X)), _SAMPLE)
        value = lam * inner(T, B)
        estimate = lam * self._estimated_change(B, drawn)
        bound = lam * objective_change(B, bank.remainder(weights))
        if len(drawn) == n_rows(self.X):
            bound = min(bound, estimate)
        low, exact = self._sample_errors(drawn)
        return LowRankLoss(
            rank=bank.rank,
            captured=bank.captured(),
            objective=value,
            objective_bound=min(bound, value),  # the exact value is positive
            objective_estimate=min(estimate, value),
            leave_one_out=fit.leave_one_out_error(),
            leave_one_out_of_half=half,
            sample_error=low,
            exact_sample_error=exact,
        )

    def _estimated_change(self, B: FloatArray, drawn: NDArray[np.intp]) -> float:
        """Return an estimate of ⟨B, EB⟩, at least 0, from some rows of E."""
        bank, weights, rows = self.bank, self.weights, self.X[drawn]
        dual = B * bank.row_weights.roots[:, None]
        change = self.kernel.product(rows, self.X, dual)
        change -= bank.combined_features(weights).product(rows, bank.feature_coef(weights, dual))
        # Centring subtracts a constant from each column, which does not matter because B sums to 0.
        change -= change.mean(axis=0)
        return max(0.0, len(B) / len(drawn) * float(np.sum(dual[drawn] * change)))

    def _sample_errors(self, drawn: NDArray[np.intp]) -> tuple[float, float]:
        """Return leave-one-out errors of fits to some rows, with features and the exact kernel."""
        part, rows = self.target.subset(drawn), self.X[drawn]
        counts, factor = part.row_weights, 1.0
        if self.criterion.normalization == "centered_trace":  # trace 1 for any number of rows
            factor = self.bank.total / counts.total
        ridge = self.criterion.sample_ridge(part, self.regularization)

        def error(gram: FloatArray) -> float:
            system = centered_system(factor * gram, ridge, counts)
            return KernelLeastSquares.of(system, ridge, part).leave_one_out_error()

        features = self.bank.combined_features(self.weights)(rows)
        return error(self_product(np.asfortranarray(features))), error(self.kernel(rows, rows))


def objective_change(B: FloatArray, remainder: FloatArray) -> float:
    """Return an upper bound of ⟨B, EB⟩ for any E ≽ 0 with a given diagonal.

    Parameters
    ----------
    B : ndarray of shape (n_samples, n)
        Any matrix.
    remainder : ndarray of shape (n_samples,)
        The diagonal of E.
    """
    by_rows = float(np.sum((np.sqrt(remainder) @ np.abs(B)) ** 2))
    by_trace = float(remainder.sum()) * float(np.linalg.norm(B, 2)) ** 2
    return min(by_rows, by_trace)
