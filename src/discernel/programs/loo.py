"""The leave-one-out error as a function of the weights and of λ, with its gradient.

With N = λI + G̃(w), Q = N⁻¹ − N⁻¹11ᵀN⁻¹/(1ᵀN⁻¹1) and the class scores T, the error that row i is
predicted with by the fit to all other rows is e_i = (QT)_i/Q_ii. The mean of ‖e_i‖² is smooth in
(w, λ), not convex, and its gradient for all kernels costs one product of size n_samples more:

    ∂/∂w_i = ⟨K_i, S⟩,  ∂/∂λ = tr S,  S = Q diag(2‖e_i‖²/Q_ii) Q − sym(Q(2e_i/Q_ii) (QT)ᵀ),

up to the factor of the mean.

Weights of rows: T is √ω times the scores, and the ones are √ω too. e_i is then √ω_i times the
error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from discernel.arrays import FloatArray
from discernel.bank import Bank
from discernel.exceptions import check_number
from discernel.programs.base import Criterion, Program
from discernel.targets import Target


@dataclass(frozen=True)
class ErrorPoint:
    """An error of predictions and its derivatives at some weights and λ.

    Attributes
    ----------
    value : float
        The error.
    by_weights : ndarray of shape (n_kernels,)
        Its derivatives by the weights of the kernels.
    by_regularization : float
        Its derivative by λ; 0 where λ is given.
    """

    value: float
    by_weights: FloatArray
    by_regularization: float = 0.0


@dataclass(frozen=True)
class LeaveOneOutProgram(Program):
    """Weights and λ of the least leave-one-out error, or of a search by it.

    Attributes
    ----------
    bank, target
        The kernels, normalised to centred trace 1, and what is to be separated.
    pull : float
        As in `LeaveOneOut`.
    regularization : float or None
        λ; None where it is to be chosen.
    """

    bank: Bank
    target: Target
    pull: float = 0.0
    regularization: float | None = None

    def error(self, weights: FloatArray, regularization: float) -> ErrorPoint:
        """Return the mean squared leave-one-out error of the class scores, and its gradient.

        About eight factorisations of size n_samples.
        """
        T, roots = self.target.scores, self.bank.row_weights.roots
        inverse = self.bank.inverse(weights, regularization)
        # N⁻¹1 is 1/λ, but that G̃1 = 0 holds up to rounding only, and λ may not be far above it.
        s = inverse.solve(roots[:, None])
        total = float(roots @ s[:, 0])

        def project(right: FloatArray) -> FloatArray:  # Q times
            return np.asarray(inverse.solve(right) - s * ((s.T @ right) / total))

        diagonal = inverse.inverse_diagonal() - s[:, 0] ** 2 / total
        QT = project(T)
        errors = QT / diagonal[:, None]
        influence = project(2.0 * errors / diagonal[:, None])
        leverage = 2.0 * np.einsum("ij,ij->i", errors, errors) / diagonal
        size = self.bank.total * errors.shape[1]
        # Q diag(v) Q = N⁻¹ diag(v) N⁻¹ − (usᵀ + suᵀ)/σ + (sᵀ diag(v) s/σ²) ssᵀ, u = N⁻¹(v∘s).
        u = inverse.solve(leverage[:, None] * s)
        twice = 2.0 * u / total - (float(leverage @ s[:, 0] ** 2) / total**2) * s
        by_weights, by_regularization = inverse.inner(
            leverage, np.hstack([influence, twice]), np.hstack([QT, s]), 1.0 / size
        )
        return ErrorPoint(float(np.sum(errors**2)) / size, by_weights, by_regularization)


@dataclass(frozen=True)
class LeaveOneOut(Criterion):
    """The mean squared leave-one-out error itself, pulled towards equal weights.

    Parameters
    ----------
    pull : float, default=5.0
        The error is minimised with (pull / n_samples) · KL(weights ‖ equal weights) added. Many
        weights on few samples can overfit the leave-one-out error itself; the pull prevents it
        and fades with the number of samples; with weights, the effective number.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.criteria import LeaveOneOut
    >>> learned = learn_kernel(grams, y[::3], criterion=LeaveOneOut())
    >>> learned.criterion, learned.gap is None
    ('loo', True)
    """

    pull: float = 5.0
    name: ClassVar[str] = "loo"
    solvers: ClassVar[tuple[str, ...]] = ("lbfgs",)
    regularization_is: ClassVar[Literal["learned"]] = "learned"
    weighs_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(f"pull of {type(self).__name__}", self.pull)

    def program(
        self, bank: Bank, target: Target, regularization: float | None
    ) -> LeaveOneOutProgram:
        return LeaveOneOutProgram(bank, target, self.pull, regularization)


@dataclass(frozen=True)
class Auto(LeaveOneOut):
    """The criterion whose weights predict left-out samples best.

    Plain average, best single kernel, `RKDA` with some amounts of shrinkage and `LeaveOneOut` are
    scored by their leave-one-out error plus the pull; the least score is taken.

    Parameters
    ----------
    pull : float, default=5.0
        As in `LeaveOneOut`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.criteria import Auto
    >>> learned = learn_kernel(grams, y[::3], criterion=Auto())
    >>> learned.criterion, learned.gap is None
    ('auto', True)
    """

    name: ClassVar[str] = "auto"
    solvers: ClassVar[tuple[str, ...]] = ("search",)
