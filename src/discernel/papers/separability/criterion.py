"""Class separability: the criterion of Yeung, Chang and Dai (2006).

The traces of the scatter between and within classes are linear in the kernel: for Σ μ_r² K_r they
are Σ μ_r² f_r and Σ μ_r² g_r, where f_r and g_r are those of one base kernel, Eq. (5) and (9). Base
kernels are

* v_r v_rᵀ, from the eigenvectors of one kernel matrix on labelled and unlabelled rows, Eq. (2);
* or given kernels on labelled rows.

The criterion is Q(μ) = Σ μ_r² (f_r − α g_r) on 1ᵀμ = c, Eq. (12). In all functions, the base
kernels are on the last axis; axes before it are independent problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, inner
from discernel.bank import Bank
from discernel.exceptions import InvalidInputError, check_number
from discernel.programs.base import Criterion, Program
from discernel.targets import ClassTarget, Target

#: The α of the paper.
ALPHA = 1e4
#: Base kernels with a scatter below this share of the largest are constant on the labelled rows.
_NULL = 1e-14


class Scatter(NamedTuple):
    """The traces of the scatter matrices of every base kernel.

    Attributes
    ----------
    between : ndarray of shape (..., n_kernels)
        f, the trace of the scatter between classes, Eq. (7).
    within : ndarray of shape (..., n_kernels)
        g, the trace of the scatter within classes, Eq. (10).
    """

    between: FloatArray
    within: FloatArray


def bank_scatter(bank: Bank, target: Target) -> Scatter:
    """Return the scatter of the normalized kernels of a bank, in one pass over it.

    With A − 11ᵀ/m = TTᵀ/m, where T are the class scores, f = ⟨T, GT⟩/m². The total scatter f + g is
    the centred trace divided by m.

    Parameters
    ----------
    bank : Bank
        The kernels, with any normalization.
    target : Target
        The classes.
    """
    columns, m = target.scores, bank.total
    products = bank.products(columns)
    between = np.array([inner(product, columns) for product in products]) / m**2
    return Scatter(between, np.maximum(bank.traces() / m - between, 0.0))


def vector_scatter(vectors: FloatArray, target: ClassTarget) -> Scatter:
    """Return the scatter of the base kernels v_r v_rᵀ, Eq. (7) and (10) of [Yeung06]_.

    Parameters
    ----------
    vectors : ndarray of shape (n_labelled, n_vectors)
        The labelled rows of the eigenvectors.
    target : ClassTarget
        The classes of these rows.
    """
    means, rows = target.means(vectors), target.row_weights.shares
    within = rows @ (vectors - means[target.codes]) ** 2
    return Scatter(target.shares @ (means - rows @ vectors) ** 2, within)


def left_out_scatter(vectors: FloatArray, target: ClassTarget) -> Scatter:
    """Return the scatter without each labelled row in turn, of shape (n_labelled, n_vectors).

    Without row i, the sum of squares around the mean m of l rows decreases by (v_i − m)² l/(l − 1),
    and the sum around the mean of its class likewise, so no pass over the rows is needed. For a row
    of weight ω, the decrease is (v_i − m)² ωl/(l − ω).

    Parameters
    ----------
    vectors : ndarray of shape (n_labelled, n_vectors)
        The labelled rows of the eigenvectors.
    target : ClassTarget
        The classes of these rows.
    """
    n, sizes = target.row_weights.total, target.sizes[target.codes][:, None]
    taken = target.row_weights.values[:, None]
    from_mean = (vectors - taken.T @ vectors / n) ** 2
    from_class = (vectors - target.means(vectors)[target.codes]) ** 2
    total = taken.T @ from_mean - taken * n / (n - taken) * from_mean
    rest = sizes - taken
    alone = rest <= 1e-9 * sizes  # the only row of its class, at its mean: no decrease
    within = taken.T @ from_class - taken * sizes / np.where(alone, 1.0, rest) * from_class
    within = np.maximum(within, 0.0)
    return Scatter(np.maximum(total - within, 0.0) / (n - taken), within / (n - taken))


def is_visible(scatter: Scatter) -> NDArray[np.bool_]:
    """Return which base kernels vary over the labelled rows.

    A constant base kernel adds the same number to the distances of a row to all labelled rows, so
    its weight does not change a classifier.

    Parameters
    ----------
    scatter : Scatter
        f and g.
    """
    total = scatter.between + scatter.within
    return np.asarray(total > _NULL * total.max(axis=-1, keepdims=True))


def critical_alpha(scatter: Scatter) -> FloatArray:
    """Return the largest f_r/g_r. For larger α all f − αg < 0, and Eq. (16) is a maximum.

    It is also the supremum of tr S_b / tr S_w over all μ. Kernels with g = 0 have no such α and
    are ignored; the result is 0 if there are no others.

    Parameters
    ----------
    scatter : Scatter
        f and g.
    """
    between, within = scatter
    there = is_visible(scatter) & (within > 0)
    ratios = np.divide(between, within, out=np.zeros_like(between), where=there)
    return np.asarray(ratios.max(axis=-1))


def closed_form(scatter: Scatter, alpha: float | FloatArray, total: float = 1.0) -> FloatArray:
    """Return μ = c D⁻¹1 / (1ᵀD⁻¹1) with D = diag(f − αg), Eq. (16) of [Yeung06]_.

    Parameters
    ----------
    scatter : Scatter
        f and g.
    alpha : float or ndarray that broadcasts to f
        α, the weight of the scatter within classes.
    total : float, default=1.0
        c, the sum of μ.

    Returns
    -------
    ndarray of shape (..., n_kernels)
        μ, of either sign, because the kernel depends on μ² only.

    Notes
    -----
    There are two kinds of entries with f − αg = 0.

    If f = g = 0, the base kernel is constant on the labelled rows. The limit of Eq. (16) would give
    it all weight, although nothing can be learned from it. Such entries get μ = 0, and the sum is
    over the others.

    If f = αg > 0, the limit of Eq. (16) gives this entry all weight, or equal shares of it to
    several such entries.

    If 1ᵀD⁻¹1 = 0, there is no stationary point, and μ = 0.
    """
    visible = is_visible(scatter)
    slopes = np.where(visible, scatter.between - alpha * scatter.within, 1.0)
    zero = slopes == 0
    inverse = visible / np.where(zero, 1.0, slopes)
    inverse = np.where(zero.any(axis=-1, keepdims=True), zero, inverse)
    divisor = inverse.sum(axis=-1, keepdims=True)
    scale = np.divide(total, divisor, out=np.zeros_like(divisor), where=divisor != 0)
    return np.asarray(inverse * scale)


def is_maximum(scatter: Scatter, alpha: float) -> bool:
    """Return whether Eq. (16) maximizes Q on 1ᵀμ = c, and is not only a stationary point.

    It does if D = diag(f − αg) is negative on 1⊥. This holds if all d_r ≤ 0. It does not hold,
    along e_r − e_s, for two entries d_r, d_s > 0 or d_r > 0 = d_s. With one positive entry and all
    others negative, the bordered matrix [[0, 1ᵀ], [1, D]] has one more positive and one more
    negative eigenvalue than D on 1⊥. Its signs are also those of D and −1ᵀD⁻¹1 together. So D is
    negative on 1⊥ if and only if Σ 1/d_r > 0.

    Parameters
    ----------
    scatter : Scatter
        f and g, of shape (n_kernels,).
    alpha : float
        α.
    """
    slopes = (scatter.between - alpha * scatter.within)[is_visible(scatter)]
    if (slopes <= 0).all():
        return True
    if np.count_nonzero(slopes >= 0) > 1:
        return False
    return bool(np.sum(1.0 / slopes) > 0)


def ratio(scatter: Scatter, weights: FloatArray) -> FloatArray:
    """Return tr S_b / tr S_w of Σ w_r K_r; infinite if tr S_w is 0, and 0 if both are 0.

    Parameters
    ----------
    scatter : Scatter
        f and g.
    weights : ndarray of shape (..., n_kernels)
        w = μ², at least 0.
    """
    between = np.sum(scatter.between * weights, axis=-1)
    within = np.sum(scatter.within * weights, axis=-1)
    infinite = np.where(between > 0, np.inf, 0.0)
    return np.asarray(np.divide(between, within, out=infinite, where=within > 0))


def spectral_alignment(vectors: FloatArray, columns: FloatArray) -> FloatArray:
    """Return the weights w of Σ w_r v_r v_rᵀ with the largest alignment with TTᵀ [Cristianini02]_.

    The alignment Σ w_r ‖Tᵀv_r‖² / (‖w‖ ‖TTᵀ‖) is largest for w_r ∝ ‖Tᵀv_r‖². Unlabelled rows are
    0 in T, so only the labelled rows are needed. If T are the class scores, w = l² f: alignment
    depends on the scatter between classes alone.

    Parameters
    ----------
    vectors : ndarray of shape (n_labelled, n_vectors)
        The labelled rows of the eigenvectors.
    columns : ndarray of shape (n_labelled, n_columns)
        T: labels ±1 of two classes, or the class scores of any number.
    """
    return np.asarray(np.sum((columns.T @ vectors) ** 2, axis=0))


def resolve_alpha(alpha: float | str, scatter: Scatter) -> FloatArray:
    """Return α as numbers, one per problem."""
    factor = critical_factor(alpha)
    critical = critical_alpha(scatter)
    if factor is None:
        return np.full_like(critical, float(alpha))
    # If no direction has any scatter within classes, α has no effect.
    return np.where(critical > 0, factor * critical, 1.0)


def critical_factor(alpha: Any) -> float | None:
    """Return the factor of an α such as ``"2*critical"``, None for a number; or raise an error."""
    if not isinstance(alpha, str):
        check_number("alpha of class separability", alpha, positive=True)
        return None
    factor, _, word = alpha.rpartition("*")
    try:
        value = float(factor)
    except ValueError:
        value = np.nan
    if word.strip() != "critical" or not 1 < value < np.inf:
        raise InvalidInputError(
            "The alpha of class separability must be a positive number or a multiple above 1 of "
            f"the critical one, such as '2*critical'. Got {alpha!r}."
        )
    return value


@dataclass(frozen=True, eq=False)
class SeparabilityProgram(Program):
    """The scatter of each kernel between and within classes.

    Attributes
    ----------
    scatter : Scatter
        f and g.
    alpha, cap
        As in `Separability`.
    """

    scatter: Scatter
    alpha: float | str
    cap: float

    @property
    def n_weights(self) -> int:
        return int(self.scatter.between.shape[-1])


@dataclass(frozen=True)
class Separability(Criterion):
    """Scatter between the classes relative to the scatter within them [Yeung06]_.

    The solver ``"closed_form"`` maximizes tr S_b − α tr S_w over weights μ² with given 1ᵀμ,
    Eq. (16). The solver ``"dinkelbach"`` maximizes tr S_b / tr S_w over weights with an upper
    limit.

    Parameters
    ----------
    alpha : float or str, default=1e4
        The α of ``"closed_form"``, positive. ``"2*critical"`` is twice the α above which the
        closed form is certainly a maximum. The closer α is to this value, the fewer kernels have
        an effect.
    cap : float, default=2.0
        The maximal factor of ``"dinkelbach"`` on the weight of a kernel in the plain average; at
        least 1, which gives the plain average. Without a limit, a single kernel is optimal.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.criteria import Separability
    >>> learned = learn_kernel(grams, y[::3], criterion=Separability(), regularization=0.01)
    >>> learned.criterion, learned.gap is None
    ('separability', True)
    """

    alpha: float | str = ALPHA
    cap: float = 2.0
    name: ClassVar[str] = "separability"
    solvers: ClassVar[tuple[str, ...]] = ("closed_form", "dinkelbach")
    regularization_is: ClassVar[Literal["apart"]] = "apart"
    takes: ClassVar[Literal["classes"]] = "classes"
    weighs_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        critical_factor(self.alpha)
        check_number("cap of class separability", self.cap, least=1.0)

    def program(
        self, bank: Bank, target: Target, regularization: float | None
    ) -> SeparabilityProgram:
        return SeparabilityProgram(bank_scatter(bank, target), self.alpha, self.cap)
