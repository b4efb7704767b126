"""Fisher discriminant with automatic kernel selection: the program of Fung et al. (2004).

With raw kernels K_j, one column of D for each of the classes to be told from the rest, and
weights a that all of them share, the paper minimises over a ≥ 0, V and γ

    (ν/2) ‖D − (Σ_j a_j K_j V − eγᵀ)‖² + ½ (‖V‖² + ‖γ‖² + ‖a‖²).                  Eq. (20)

For one column, which is two classes, it is the paper's own. It is convex in (V, γ) and in a, not
in both, so there is no bound. Both halves have exact solutions.

**The discriminant, Eq. (23).** With H = [K, −e] and s = 1/√ν, [v; γ] = H'z and (HH' + s²I)z = d,
where HH' = K² + ee'. The paper takes ν to 1e12. There K² has lost what s² should add to it: its
rounding errors alone are 1e-8 for data in [−1, 1], and its Cholesky factorisation breaks down.
But K is positive semidefinite, so that nothing has to be squared:

    K² + s²I = ½ [(K + sI)² + (K − sI)²] = ½ M (I + T²) M,   M = K + sI,   T = I − 2sM⁻¹.

M is all that is factored, and its condition is the root of that of K² + s²I. The eigenvalues of T
are (κ − s)/(κ + s), between −1 and 1, where (1 + t²)⁻¹ has a Chebyshev series that gains 0.77
digits per term whatever K and ν are: 21 terms at most leave nothing but rounding.

**The weights, Eq. (24).** Non-negative least squares in n_kernels variables. As printed the
residual has lost a sign; it is D − (Σ_j a_j K_j V − eγᵀ), as in Eq. (20).

Rows that count ω times are rows of D, V and e times √ω, and K_j times √ω from both sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from discernel.arrays import FloatArray, inner
from discernel.bank import Bank, System
from discernel.exceptions import InvalidInputError, check_number
from discernel.programs.base import Criterion, Program
from discernel.targets import ClassTarget, Target

#: (1 + t²)⁻¹ = (1/√2) [1 + 2 Σ_j c^j T_2j(t)], with T_2j the Chebyshev polynomials.
_RATIO = 2.0 * math.sqrt(2.0) - 3.0  # c = −0.17
_MOST_TERMS = 21  # |c|^21 is below the rounding error of 1
#: The error of the series as a share of s‖M⁻¹d‖/‖d‖. If that share is τ, the objective of Eq. (23)
#: is at most 4τ² of itself above its minimum; this τ keeps ten digits of v, too.
SERIES_ERROR = 1e-10


def one_against_rest(target: ClassTarget) -> FloatArray:
    """Return the targets d of [Fung04]_, Eq. (6): m/l₊ in the class, −m/l₋ outside.

    Parameters
    ----------
    target : ClassTarget
        The classes.

    Returns
    -------
    ndarray of shape (n_samples, n_columns)
        Two classes: one column, the second class against the first. More: one column per class.
        Columns sum to 0. With weights, m, l₊ and l₋ still count rows: a class of more weight would
        else be moved back by as much. Rows are multiplied by the roots of the weights.
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
        One γ a column.
    ones : float or ndarray of shape (n_samples,), default=1.0
        e; the roots of weights of the rows, where they have any.
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
        τ: the objective is at most 4τ² of itself above its minimum.
    ones : float or ndarray of shape (n_samples,), default=1.0
        e; the roots of weights of the rows, where they have any.

    Returns
    -------
    v : ndarray of shape (n_samples, n_columns)
        V.
    gamma : ndarray of shape (n_columns,)
        One γ a column.

    Notes
    -----
    Some 30 to 44 solves with n_columns + 1 right-hand sides. With the factorisation, and for two
    classes, this takes the time of 4 factorisations at 500 samples, 3 at 1000 and less beyond.
    """
    right = np.column_stack([d, np.full(len(d), ones)])
    solved, images = _solve_squared(system, right, ridge(nu), error)
    # (K² + s²I)z = d + eγ and γ = −e'z, where the last column of ``solved`` is the one of e.
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
    for term in range(2, _n_terms(float(shares.min()), error) + 1):
        before, here = here, 2.0 * double(here) - before
        total += 2.0 * _RATIO**term * here
    half = total / np.sqrt(2.0)  # (I + T²)⁻¹M⁻¹B
    solved = 2.0 * system.solve(half)
    # KZ = MZ − sZ, and MZ is known: a product with K, or even K itself, is not needed.
    return solved, 2.0 * half - shift * solved


def _n_terms(share: float, error: float) -> int:
    """Return how many terms the series needs where s‖M⁻¹d‖/‖d‖ is this."""
    digits = math.log(error * max(share, 1e-16)) / math.log(-_RATIO)
    return min(math.ceil(digits), _MOST_TERMS)


def minimize_weights(
    products: FloatArray,
    d: FloatArray,
    gamma: FloatArray,
    nu: float,
    ones: FloatArray | float = 1.0,
) -> FloatArray:
    """Return argmin over a ≥ 0 of (ν/2)‖D − (Σ_j a_j Λ_j − eγᵀ)‖² + ½‖a‖².

    Eq. (24) of [Fung04]_, with the sign that it lost in print.

    Parameters
    ----------
    products : ndarray of shape (n_kernels, n_samples, n_columns)
        Every Λ_j = K_j V.
    d : ndarray of shape (n_samples, n_columns)
        D.
    gamma : ndarray of shape (n_columns,)
        One γ a column.
    nu : float
        ν.
    ones : float or ndarray of shape (n_samples,), default=1.0
        e; the roots of weights of the rows, where they have any.

    Returns
    -------
    ndarray of shape (n_kernels,)
        Exact zeros where the constraint is active.
    """
    n_kernels, right = len(products), (d + np.outer(ones, gamma)).ravel()
    columns = np.column_stack([products.reshape(n_kernels, -1).T, right])
    # The triangle of a QR factorisation has the same inner products as the columns, and unlike
    # their Gram matrix keeps the digits in which nearly equal kernels differ.
    triangle: FloatArray = np.asarray(np.linalg.qr(columns, mode="r"))
    stacked = np.vstack([triangle[:, :-1], ridge(nu) * np.eye(n_kernels)])
    lengths = np.linalg.norm(stacked, axis=0)
    right = np.append(triangle[:, -1], np.zeros(n_kernels))
    solution, _ = nnls(stacked / lengths, right, maxiter=30 * n_kernels)
    return np.asarray(solution / lengths)


def critical_nu(products: FloatArray) -> float:
    """Return a ν up to which nothing is better than weights of 0, on centred kernels.

    There γ = 0. Whatever K = Σ_j a_j K_j and V are, (a, V) may be scaled against each other
    without changing KV, and ½(‖V‖² + ‖a‖²) is never less than ‖a‖‖V‖. With ‖a‖ = 1 this leaves
    (ν/2)‖D − KV‖² + ‖V‖ of Eq. (20), which is least at V = 0 as long as ν‖KD‖ ≤ 1.

    Parameters
    ----------
    products : ndarray of shape (n_kernels, n_samples, n_columns)
        Every K_j D.

    Returns
    -------
    float
        1 over the largest ‖KD‖ of weights of length 1, of any sign.
    """
    return 1.0 / float(np.linalg.norm(products.reshape(len(products), -1), 2))


def decide(scores: FloatArray) -> NDArray[np.intp]:
    """Return the classes of [Fung04]_, Eq. (21), as positions.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_columns)
        Σ_j a_j K_j(x)V − γ. One column: above 0 is the second class. More: the largest.
    """
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.intp)
    return np.asarray(scores.argmax(axis=1))


def check_nu(nu: Any) -> float:
    """Return ν as a number, or raise a clear error."""
    if isinstance(nu, bool) or not (isinstance(nu, (int, float, np.number)) and 0 < nu < np.inf):
        raise InvalidInputError(f"ν must be a positive, finite number. Got nu={nu!r}.")
    return float(nu)


@dataclass(frozen=True)
class AKFDProgram(Program):
    """Eq. (20) on the centred, normalised kernels of a bank.

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
        ν > 0 of [Fung04]_, Eq. (20): the weight of the fit against that of small coefficients.
        None is chosen by cross-validation where raw kernels are given. On the normalised kernels
        of a bank it is 5 times `critical_nu`, which does not depend on the number of samples or
        the scale of the kernels; the ν of the paper belong to raw kernels.
    tol : float, default=1e-2
        The relative change of the objective to stop at; nothing is certified, so the ``tol`` of
        `learn_kernel` does not apply. The default takes 3 to 5 iterations, as in the paper; 1e-6
        takes twice as many or more and moves weights by less than 0.01 on the sets tried.

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
            check_nu(self.nu)
        check_number("tol of AKFD", self.tol, positive=True)

    def program(self, bank: Bank, target: Target, regularization: float | None) -> AKFDProgram:
        return AKFDProgram(bank, cast(ClassTarget, target), self.nu, self.tol)
