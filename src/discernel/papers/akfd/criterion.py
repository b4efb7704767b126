"""Fisher discriminant with automatic kernel selection: the program of Fung et al. (2004).

With raw kernels K_j, one column of D for each class to be separated from the rest, and weights a
that all columns share, the paper minimizes over a ≥ 0, V and γ

    (ν/2) ‖D − (Σ_j a_j K_j V − eγᵀ)‖² + ½ (‖V‖² + ‖γ‖² + ‖a‖²).                  Eq. (20)

With one column, for two classes, this is the program of the paper. It is convex in (V, γ) and in a,
but not jointly, so there is no lower bound. Both subproblems have exact solutions.

**The discriminant, Eq. (23).** With H = [K, −e] and s = 1/√ν, [v; γ] = H'z and (HH' + s²I)z = d,
where HH' = K² + ee'. In the paper, ν is up to 1e12. Then s² is smaller than the rounding errors of
K², which are 1e-8 for data in [−1, 1], and the Cholesky factorization of K² + s²I fails. But K is
positive semidefinite, so that it need not be squared:

    K² + s²I = ½ [(K + sI)² + (K − sI)²] = ½ M (I + T²) M,   M = K + sI,   T = I − 2sM⁻¹.

Only M is factored. Its condition number is the square root of that of K² + s²I. The eigenvalues of
T are (κ − s)/(κ + s), between −1 and 1, where (1 + t²)⁻¹ has a Chebyshev series that gains 0.77
digits per term for all K and ν. At most 21 terms reach machine precision.

**The weights, Eq. (24).** Non-negative least squares in n_kernels variables. The residual is
D − (Σ_j a_j K_j V − eγᵀ), as in Eq. (20); Eq. (24) is printed with a wrong sign.

With sample weights ω, the rows of D, V and e are multiplied by √ω, and K_j by √ω from both sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from discernel.arrays import FloatArray, inner
from discernel.bank import Bank, System
from discernel.exceptions import check_number
from discernel.programs.base import Criterion, Program
from discernel.targets import ClassTarget, Target

#: (1 + t²)⁻¹ = (1/√2) [1 + 2 Σ_j c^j T_2j(t)], with T_2j the Chebyshev polynomials.
_RATIO = 2.0 * math.sqrt(2.0) - 3.0  # c = −0.17
_MOST_TERMS = 21  # |c|^21 is below the rounding error of 1
#: The error of the series as a share of s‖M⁻¹d‖/‖d‖. If that share is τ, the objective of Eq. (23)
#: is at most 4τ² of itself above its minimum; this τ keeps ten digits of v, too.
SERIES_ERROR = 1e-10


def one_against_rest(target: ClassTarget) -> FloatArray:
    """Return the targets d of [Fung04]_, Eq. (6): m/l₊ inside a class, −m/l₋ outside.

    Parameters
    ----------
    target : ClassTarget
        The classes.

    Returns
    -------
    ndarray of shape (n_samples, n_columns)
        For two classes, one column: the second class against the first. For more, one column per
        class. Columns sum to 0. With sample weights, m, l₊ and l₋ still count rows; otherwise they
        would cancel the effect of the weights. Rows are multiplied by the roots of the weights.
    """
    inside, counts = target.membership > 0, target.counts
    n_samples = target.n_samples
    if target.n_classes == 2:
        inside, counts = inside[:, 1:], counts[1:]
    columns = np.where(inside, n_samples / counts, -n_samples / (n_samples - counts))
    return np.asarray(columns * target.row_weights.roots[:, None])


def objective(
    products: FloatArray,
    d: FloatArray,
    nu: float,
    weights: FloatArray,
    v: FloatArray,
    gamma: FloatArray,
    ones: FloatArray | float = 1.0,
) -> float:
    """Return the value of [Fung04]_, Eq. (20).

    Parameters
    ----------
    products : ndarray of shape (n_kernels, n_samples, n_columns)
        Every K_j V.
    d : ndarray of shape (n_samples, n_columns)
        D.
    nu : float
        ν.
    weights : ndarray of shape (n_kernels,)
        The weights a.
    v : ndarray of shape (n_samples, n_columns)
        V.
    gamma : ndarray of shape (n_columns,)
        γ, one number for each column.
    ones : float or ndarray of shape (n_samples,), default=1.0
        e, or the square roots of the sample weights.
    """
    residual = d - (np.tensordot(weights, products, 1) - np.outer(ones, gamma))
    norms = inner(v, v) + inner(gamma, gamma) + inner(weights, weights)
    return 0.5 * (nu * inner(residual, residual) + norms)


def ridge(nu: float) -> float:
    """Return s = 1/√ν, the ridge on the diagonal of the combined kernel."""
    return 1.0 / math.sqrt(nu)


def minimize_discriminant(
    system: System,
    d: FloatArray,
    nu: float,
    error: float = SERIES_ERROR,
    ones: FloatArray | float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """Return argmin over V and γ of (ν/2)‖D − (KV − eγᵀ)‖² + ½(‖V‖² + ‖γ‖²).

    Eq. (23) of [Fung04]_, whose solution is (14): (H'H + I/ν)[v; γ] = H'd with H = [K, −e].

    Parameters
    ----------
    system : System
        K + I/√ν, factored, where K is the combined kernel.
    d : ndarray of shape (n_samples, n_columns)
        D.
    nu : float
        ν.
    error : float, default=1e-10
        τ: the objective is above its minimum by at most 4τ², relatively.
    ones : float or ndarray of shape (n_samples,), default=1.0
        e, or the square roots of the sample weights.

    Returns
    -------
    v : ndarray of shape (n_samples, n_columns)
        V.
    gamma : ndarray of shape (n_columns,)
        γ, one number for each column.

    Notes
    -----
    It takes 30 to 44 solves with n_columns + 1 right-hand sides. For two classes, factorization and
    solves take the time of 4 factorizations with 500 samples, 3 with 1000, and less with more.
    """
    right = np.column_stack([d, np.full(len(d), ones)])
    solved, images = _solve_squared(system, right, ridge(nu), error)
    # (K² + s²I)z = d + eγ and γ = −e'z. The last column of ``solved`` is that of e.
    sums = right[:, -1] @ solved
    gamma = -sums[:-1] / (1.0 + sums[-1])
    return images[:, :-1] + images[:, -1:] * gamma, gamma


def _solve_squared(
    system: System, right: FloatArray, shift: float, error: float = SERIES_ERROR
) -> tuple[FloatArray, FloatArray]:
    """Return Z = (K² + s²I)⁻¹B and KZ from the factors of M = K + sI."""

    def double(x: FloatArray) -> FloatArray:  # T_2(T) = 2T² − I = I − 8sM⁻¹(I − sM⁻¹)
        once = system.solve(x)
        return np.asarray(x - 8.0 * shift * (once - shift * system.solve(once)))

    before = system.solve(right)
    shares = shift * np.linalg.norm(before, axis=0) / np.linalg.norm(right, axis=0)
    here = double(before)
    total = before + 2.0 * _RATIO * here
    digits = math.log(error * max(float(shares.min()), 1e-16)) / math.log(-_RATIO)
    for term in range(2, min(math.ceil(digits), _MOST_TERMS) + 1):
        before, here = here, 2.0 * double(here) - before
        total += 2.0 * _RATIO**term * here
    half = total / np.sqrt(2.0)  # (I + T²)⁻¹M⁻¹B
    solved = 2.0 * system.solve(half)
    # KZ = MZ − sZ, and MZ is known, so no product with K is needed.
    return solved, 2.0 * half - shift * solved


def minimize_weights(
    products: FloatArray,
    d: FloatArray,
    gamma: FloatArray,
    nu: float,
    ones: FloatArray | float = 1.0,
) -> FloatArray:
    """Return argmin over a ≥ 0 of (ν/2)‖D − (Σ_j a_j Λ_j − eγᵀ)‖² + ½‖a‖².

    Eq. (24) of [Fung04]_, with the sign corrected.

    Parameters
    ----------
    products : ndarray of shape (n_kernels, n_samples, n_columns)
        Every Λ_j = K_j V.
    d : ndarray of shape (n_samples, n_columns)
        D.
    gamma : ndarray of shape (n_columns,)
        γ, one number for each column.
    nu : float
        ν.
    ones : float or ndarray of shape (n_samples,), default=1.0
        e, or the square roots of the sample weights.

    Returns
    -------
    ndarray of shape (n_kernels,)
        The weights, with exact zeros where the constraint is active.
    """
    n_kernels, right = len(products), (d + np.outer(ones, gamma)).ravel()
    columns = np.column_stack([products.reshape(n_kernels, -1).T, right])
    # The triangular factor of a QR decomposition has the same inner products as the columns. Unlike
    # their Gram matrix, it keeps the digits in which nearly equal kernels differ.
    triangle: FloatArray = np.asarray(np.linalg.qr(columns, mode="r"))
    stacked = np.vstack([triangle[:, :-1], ridge(nu) * np.eye(n_kernels)])
    lengths = np.linalg.norm(stacked, axis=0)
    right = np.append(triangle[:, -1], np.zeros(n_kernels))
    solution, _ = nnls(stacked / lengths, right, maxiter=30 * n_kernels)
    return np.asarray(solution / lengths)


def critical_nu(products: FloatArray) -> float:
    """Return a ν up to which weights of 0 are optimal, on centred kernels.

    For centred kernels γ = 0. For all K = Σ_j a_j K_j and V, a and V can be rescaled without
    changing KV, and ½(‖V‖² + ‖a‖²) is at least ‖a‖‖V‖. With ‖a‖ = 1, Eq. (20) becomes
    (ν/2)‖D − KV‖² + ‖V‖, whose minimum is at V = 0 if ν‖KD‖ ≤ 1.

    Parameters
    ----------
    products : ndarray of shape (n_kernels, n_samples, n_columns)
        Every K_j D.

    Returns
    -------
    float
        1 divided by the maximum of ‖KD‖ over weights with ‖a‖ = 1, of any sign; the inverse of the
        rounding error if no kernel has anything in common with D.
    """
    longest = float(np.linalg.norm(products.reshape(len(products), -1), 2))
    return 1.0 / max(longest, float(np.finfo(np.float64).eps))


def decide(scores: FloatArray) -> NDArray[np.intp]:
    """Return the classes of [Fung04]_, Eq. (21), as positions.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_columns)
        Σ_j a_j K_j(x)V − γ. One column: the second class is predicted above 0. More columns: the
        class with the largest score is predicted.
    """
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.intp)
    return np.asarray(scores.argmax(axis=1))


@dataclass(frozen=True, eq=False)
class AKFDProgram(Program):
    """Eq. (20) on the centred, normalized kernels of a bank.

    Attributes
    ----------
    bank : Bank
        The kernels.
    target : ClassTarget
        The classes.
    nu, tol
        As in `AKFD`.
    """

    bank: Bank
    target: ClassTarget
    nu: float | None
    tol: float


@dataclass(frozen=True)
class AKFD(Criterion):
    """A-KFD [Fung04]_: weights that are fitted alternately with the discriminant.

    Parameters
    ----------
    nu : float, optional
        ν > 0 of [Fung04]_, Eq. (20): the weight of the fit relative to the penalty on coefficients.
        The default is 5 times `critical_nu` of the normalized kernels. It does not depend on the
        number of samples or the scale of the kernels; the values of ν in the paper are for raw
        kernels.
    tol : float, default=1e-2
        Relative change of the objective at which to stop; nothing is certified, so the ``tol`` of
        `learn_kernel` does not apply. The default takes 3 to 5 iterations, as in the paper; 1e-6
        takes at least twice as many and changed weights by less than 0.01 on the data sets tried.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.criteria import AKFD
    >>> learned = learn_kernel(grams, y[::3], criterion=AKFD(nu=10.0), regularization=0.01)
    >>> learned.criterion, learned.gap is None
    ('akfd', True)
    """

    nu: float | None = None
    tol: float = 1e-2
    name: ClassVar[str] = "akfd"
    solvers: ClassVar[tuple[str, ...]] = ("alternating",)
    regularization_is: ClassVar[Literal["apart"]] = "apart"
    takes: ClassVar[Literal["classes"]] = "classes"
    weighs_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.nu is not None:
            check_number("nu of A-KFD", self.nu, positive=True)
        check_number("tol of AKFD", self.tol, positive=True)

    def program(self, bank: Bank, target: Target, regularization: float | None) -> AKFDProgram:
        return AKFDProgram(bank, cast(ClassTarget, target), self.nu, self.tol)
