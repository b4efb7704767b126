"""Kernel alignment: the criterion of Pothin and Richard (2006).

With M_ij = ⟨K_i, K_j⟩_F and f_i = ⟨K_i, K*⟩_F, the alignment of Σ μ_i K_i with the target K* is

    A(μ) = fᵀμ / (‖K*‖_F √(μᵀMμ)),                                            Eq. (4)

so it takes only one pass over the matrices of size n_samples. The target is K* = TTᵀ:

* T = ±1 for two classes is that of the paper, Eq. (3), and is used with raw kernels;
* T = `Target.scores`, for any number of classes or for regression, is the extension that the paper
  asks for. It is used with centred kernels K = PGP and with raw kernels.

Neither the alignment nor the best combination depends on the scale of the kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from discernel.arrays import FloatArray, inner, matmul
from discernel.bank import Bank
from discernel.bank.grams import inner_products, is_constant
from discernel.exceptions import InvalidInputError, check_number
from discernel.programs.base import Criterion, Program
from discernel.targets import Target

#: Two kernels count as multiples of each other if the squared sine of their angle is smaller.
_PARALLEL = 1e-14


class Products(NamedTuple):
    """The inner products that determine the alignment.

    Attributes
    ----------
    M : ndarray of shape (n_kernels, n_kernels)
        ⟨K_i, K_j⟩_F.
    f : ndarray of shape (n_kernels,)
        ⟨K_i, K*⟩_F.
    norm : float
        ‖K*‖_F.
    """

    M: FloatArray
    f: FloatArray
    norm: float


def _target_norm(columns: FloatArray) -> float:
    """Return ‖TTᵀ‖_F, computed as ‖TᵀT‖_F, which has a small matrix."""
    return float(np.linalg.norm(columns.T @ columns))


def bank_products(bank: Bank, target: Target) -> Products:
    """Return the inner products of the centred, normalized kernels of a bank, with K* = TTᵀ.

    Parameters
    ----------
    bank : Bank
        The kernels, with any normalization.
    target : Target
        The target, whose `scores` are T.
    """
    columns = target.scores
    f = np.einsum("ijk,jk->i", bank.products(columns), columns)  # ⟨T, K_iT⟩
    return Products(bank.inner_products(), f, _target_norm(columns))


def stack_products(grams: FloatArray, columns: FloatArray, *, centered: bool = True) -> Products:
    """Return the inner products of a stack of raw matrices, with K* = TTᵀ.

    Parameters
    ----------
    grams : ndarray of shape (n_kernels, n_samples, n_samples)
        The raw matrices, which are not copied or changed.
    columns : ndarray of shape (n_samples, n_columns)
        T.
    centered : bool, default=True
        Whether kernels and target are centred first.
    """
    if centered:
        columns = columns - columns.mean(axis=0)
    # ⟨PGP, TTᵀ⟩ = ⟨T, GT⟩ because PT = T.
    f = np.array([inner(columns, matmul(gram, columns)) for gram in grams])
    if centered:
        f[is_constant(grams)] = 0.0
    return Products(inner_products(grams, centered=centered), f, _target_norm(columns))


def alignment(
    M: FloatArray, f: FloatArray, weights: FloatArray, norm: float = 1.0
) -> np.float64 | FloatArray:
    """Return A(μ) = fᵀμ / (‖K*‖_F √(μᵀMμ)), Eq. (4) of [Pothin06]_; 0 if Σ μ_i K_i is 0.

    Parameters
    ----------
    M : ndarray of shape (..., n_kernels, n_kernels)
        ⟨K_i, K_j⟩_F.
    f : ndarray of shape (..., n_kernels)
        ⟨K_i, K*⟩_F.
    weights : ndarray of shape (..., n_kernels)
        μ.
    norm : float, default=1.0
        ‖K*‖_F; 1 if f is for a target of length 1.
    """
    strength = np.einsum("...i,...i->...", f, weights)
    square = np.einsum("...i,...ij,...j->...", weights, M, weights)
    exists = square > 0
    return np.where(exists, strength / np.sqrt(np.where(exists, square, 1.0)), 0.0)[()] / norm


def best_pair(M: FloatArray, f: FloatArray, lam: float = 0.0) -> FloatArray:
    """Return argmax of −μᵀ(M + λI)μ + fᵀμ over two weights μ ≥ 0, Eq. (7) of [Pothin06]_.

    With λ = 0 it maximizes the alignment of μ_1K_1 + μ_2K_2, which does not depend on the scale
    of μ. If one kernel alone is best, its weight is 1.

    Parameters
    ----------
    M : ndarray of shape (..., 2, 2)
        ⟨K_i, K_j⟩_F.
    f : ndarray of shape (..., 2)
        ⟨K_i, K*⟩_F.
    lam : float, default=0.0
        λ.

    Returns
    -------
    ndarray of shape (..., 2)
        The weights. If two kernels are multiples of each other, the first one gets all weight.

    Notes
    -----
    The second optimality condition of the paper has ‖K_2‖_F + λ; its solution shows that
    ‖K_2‖²_F + λ is meant.
    """
    first, second, cross = M[..., 0, 0] + lam, M[..., 1, 1] + lam, M[..., 0, 1]
    determinant = first * second - cross**2
    independent = determinant > _PARALLEL * first * second
    divisor = np.where(independent, 2.0 * determinant, 1.0)
    mu_1 = (second * f[..., 0] - cross * f[..., 1]) / divisor
    mu_2 = (first * f[..., 1] - cross * f[..., 0]) / divisor
    only_first = np.where(independent, mu_2 <= 0, first > 0)
    only_second = ~only_first & (~independent | (mu_1 <= 0))
    pair = np.stack([mu_1, mu_2], axis=-1)
    pair[only_first] = 1.0, 0.0
    pair[only_second] = 0.0, 1.0
    return pair


def alignment_derivative(
    strength_slope: float, kernel_slope: float, strength: float, square: float, norm: float
) -> float:
    """Return the derivative ∂A/∂θ by a parameter of the kernel, Eq. (12) of [Pothin06]_.

    Parameters
    ----------
    strength_slope, kernel_slope : float
        ⟨∂K, K*⟩_F and ⟨∂K, K⟩_F.
    strength, square : float
        ⟨K, K*⟩_F and ‖K‖²_F.
    norm : float
        ‖K*‖_F.
    """
    return (strength_slope - strength * kernel_slope / square) / (norm * math.sqrt(square))


class MatrixAlignment:
    """The alignment of one matrix with K* = TTᵀ, and its derivatives.

    Parameters
    ----------
    matrix : ndarray of shape (n_samples, n_samples)
        The raw matrix, which is **overwritten** by the centred one.
    columns : ndarray of shape (n_samples, n_columns)
        T; its columns must sum to 0 if kernels are centred.
    centered : bool, default=True
        Whether the kernel is centred first.

    Attributes
    ----------
    value : float
        A, Eq. (4) of [Pothin06]_; 0 for a constant kernel after centring.
    """

    def __init__(self, matrix: FloatArray, columns: FloatArray, *, centered: bool = True) -> None:
        self._columns, self._norm = columns, _target_norm(columns)
        self._strength = inner(columns, matmul(matrix, columns))
        vanishes = centered and bool(is_constant(matrix))
        if centered:
            row_means = matrix.mean(axis=1)
            matrix -= row_means[:, None]
            matrix -= row_means - row_means.mean()
        self._matrix = matrix
        self._square = 0.0 if vanishes else inner(matrix, matrix)
        length = self._norm * math.sqrt(self._square)
        self.value = self._strength / length if length > 0 else 0.0

    def derivative(self, slope: FloatArray) -> float:
        """Return ∂A/∂θ, Eq. (12) of [Pothin06]_; 0 for a constant kernel.

        Parameters
        ----------
        slope : ndarray of shape (n_samples, n_samples)
            ∂K/∂θ, raw: ⟨P∂KP, PKP⟩ = ⟨∂K, PKP⟩.
        """
        if not self._square > 0:
            return 0.0
        return alignment_derivative(
            inner(self._columns, matmul(slope, self._columns)),
            inner(slope, self._matrix),
            self._strength,
            self._square,
            self._norm,
        )


class AlignmentProgram(Program):
    """The centred alignment of kernels with a target, from n_kernels² inner products.

    Attributes
    ----------
    M, f, norm
        As in `Products`.
    epsilon, lam
        As in `Alignment`.
    """

    def __init__(self, products: Products, epsilon: float, lam: float) -> None:
        self.M, self.f, self.norm = products
        self.epsilon, self.lam = epsilon, lam

    @property
    def n_weights(self) -> int:
        return len(self.f)

    def alignment(self, weights: FloatArray) -> float:
        """Return A(μ), Eq. (4)."""
        return float(alignment(self.M, self.f, weights, self.norm))


@dataclass(frozen=True)
class Alignment(Criterion):
    """Centred alignment of the combined kernel with the target [Pothin06]_.

    The solver ``"greedy"`` adds one kernel at a time, Table 1. The solver ``"qp"`` solves the
    program of Eq. (6), which has the largest alignment if its λ is 0.

    Parameters
    ----------
    epsilon : float, default=1e-3
        ``"greedy"`` stops when the next kernel increases the alignment by no more than this; at
        least 0. Larger values select fewer kernels.
    lam : float, default=0.0
        The λ of ``"qp"``, at least 0, which penalizes ‖μ‖² over the normalized kernels. Larger
        values spread the weights, in the limit in proportion to f.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.criteria import Alignment
    >>> learned = learn_kernel(grams, y[::3], criterion=Alignment(), regularization=0.01)
    >>> learned.criterion, learned.gap is None
    ('alignment', True)
    """

    epsilon: float = 1e-3
    lam: float = 0.0
    name: ClassVar[str] = "alignment"
    solvers: ClassVar[tuple[str, ...]] = ("greedy", "qp")
    regularization_is: ClassVar[Literal["apart"]] = "apart"
    weighs_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("epsilon of Alignment", self.epsilon)
        check_number("lam of Alignment", self.lam)

    def check(self, solver: str, regularization: float | str) -> None:
        if self.lam > 0 and solver == "greedy":
            raise InvalidInputError(
                f"The lam of Alignment must be 0 with solver='greedy'. Got {self.lam!r}. Use "
                "solver='qp', or epsilon for fewer kernels."
            )

    def program(self, bank: Bank, target: Target, regularization: float | None) -> AlignmentProgram:
        return AlignmentProgram(bank_products(bank, target), self.epsilon, self.lam)
