"""Regularized kernel discriminant analysis: the criterion of Ye, Ji and Chen (2008).

With the normalized kernels K_i of the bank, T with TTᵀ = HHᵀ (`Target.scores`) and
N(w) = ρI + Σ w_i K_i, both programs of the paper minimize ⟨T, N(w)⁻¹T⟩ over the simplex:

* λ given, Eq. (11), (26) and Lemma 3.1: ρ = λ, and the value is λ⟨T, N⁻¹T⟩;
* λ learned, Eq. (40)-(47): ρ = 0, and I/m is the first of the kernels.

Their common dual, Eq. (34) and (46), is the certificate: for any B of the shape of T,

    min_w ⟨T, N(w)⁻¹T⟩  ≥  ⟨T, B⟩² / (ρ‖B‖² + max_i ⟨B, K_iB⟩),

which is tight at the optimum with B = N⁻¹T.

⟨T, N⁻¹T⟩ is the maximum of 2⟨T, B⟩ − ⟨B, NB⟩ over all B, so it is at least the maximum over
B = SC, which is ⟨SᵀT, (SᵀNS)⁻¹SᵀT⟩: the same criterion on the matrices SᵀK_iS
(`RKDAProgram.restricted`).

Rounding. `bank.rounding` has ε_i such that the rounding error of ⟨B, K_iB⟩ is at most ε_i‖B‖².
Because of these errors, K_i can have eigenvalues down to −ε_i. Bounds, values and errors allow for
this. If some ε_i is not below ρ, N(w) may not be positive definite, and nothing is certified.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import (
    FloatArray,
    inner,
    matmul,
    quadratic_forms,
    weighted_sum,
)
from discernel.bank import Bank, Matrices, StoredMatrices, WithIdentity
from discernel.exceptions import InvalidInputError, check_number
from discernel.programs.base import ConicModel, ConvexProgram, Criterion, Point, Split
from discernel.programs.columns import DualBall
from discernel.programs.norms import LogPath, LowRankHessian, WeightBall, check_norms
from discernel.programs.simplex import beside_identity, uniform
from discernel.programs.solution import Subspace
from discernel.targets import Target

#: Rounding error of a factorization, relative to its matrix: about a hundred times machine
#: precision, for sums over all samples. The norms of the K_i are at most their trace, 1.
_FACTORISATION = 2e-14
#: Rounding error of an inner product, relative to the lengths of the two vectors.
_SUM = 4 * np.finfo(np.float64).eps
#: Relative rounding error of a value: no gap is certified to be smaller.
_NOISE = 1e-12


class RKDAPoint(Point):
    """The criterion at some weights: one factorization, then products and solves on access."""

    def __init__(self, criterion: RKDAProgram, weights: FloatArray, *, rough: bool = False) -> None:
        self.weights = weights
        self._criterion = criterion
        self._system = criterion.bank.system(weights, criterion.ridge, rough=rough)
        self.dual = self._system.solve(criterion.scores)  # B = N⁻¹T
        self._products = criterion.bank.products(self.dual)  # K_iB
        self._energies = quadratic_forms(self._products, self.dual)
        self._norm = inner(self.dual, self.dual)
        # ⟨T, N⁻¹T⟩ is the maximum of this form over B, so errors of B enter squared.
        quadratic = criterion.ridge * self._norm + float(weights @ self._energies)
        self.value = criterion.scale * (2.0 * inner(criterion.scores, self.dual) - quadratic)

    @cached_property
    def error(self) -> float:
        """An upper bound of the error of the value, from the residual T − NB."""
        criterion = self._criterion
        combined = weighted_sum(self.weights, self._products)
        residual = criterion.scores - criterion.ridge * self.dual - combined
        noise = float(self.weights @ criterion.bank.rounding)
        if criterion.ridge <= noise:
            return np.inf
        return criterion.scale * criterion.value_error(residual, self._norm, noise)

    @property
    def intercept(self) -> float:
        # For any B, the criterion is at least scale·(2⟨T, B⟩ − ρ‖B‖² − Σ w_i⟨B, K_iB⟩).
        criterion = self._criterion
        noise = criterion.largest(criterion.bank.rounding) * self._norm
        noise += 2.0 * criterion.product_error(self._norm)
        return self.value - float(self.gradient @ self.weights) - criterion.scale * noise

    @cached_property
    def gradient(self) -> FloatArray:
        # ∂⟨T, N⁻¹T⟩/∂w_i = −⟨B, K_iB⟩
        return -self._criterion.scale * self._energies

    @cached_property
    def directions(self) -> FloatArray:
        """The derivatives −∂B/∂w_i = N⁻¹K_iB, of shape (n_kernels, n_samples, n_columns)."""
        n_kernels, n_samples, _ = self._products.shape
        columns = self._products.transpose(1, 0, 2).reshape(n_samples, -1)
        # Low accuracy is enough: value and bound of a step do not depend on its direction.
        solved = self._system.solve_roughly(columns)
        return solved.reshape(n_samples, n_kernels, -1).transpose(1, 0, 2)

    @cached_property
    def hessian(self) -> FloatArray:
        # ∂²⟨T, N⁻¹T⟩/∂w_i∂w_l = 2⟨K_iB, N⁻¹K_lB⟩
        left, right = self._flat
        hessian = self._criterion.scale * matmul(left, right.T)
        return hessian + hessian.T

    @property
    def low_rank_hessian(self) -> LowRankHessian | None:
        """The Hessian as a product, if its rank is at most half of the number of kernels."""
        if 2 * self._products[0].size > len(self._products):
            return None
        left, right = self._flat
        return LowRankHessian(2.0 * self._criterion.scale * left, right)

    @property
    def _flat(self) -> tuple[FloatArray, FloatArray]:
        """Every K_iB and its direction, as rows of two matrices."""
        n_kernels = len(self._products)
        return self._products.reshape(n_kernels, -1), self.directions.reshape(n_kernels, -1)

    @cached_property
    def bound(self) -> float:
        return self._criterion.lower_bound(self.dual, energies=self._energies)


class RKDAProgram(ConvexProgram):
    """Minimize f(w) = Σ_j h_jᵀ (I + (1/λ) Σ_i w_i G̃_i/r_i)⁻¹ h_j, [Ye08]_ Eq. (11) and (26).

    Parameters
    ----------
    bank : Bank
        The kernels, normalized to centred trace 1.
    target : Target
        The target.
    regularization : float
        λ.
    """

    _point: ClassVar[type[RKDAPoint]] = RKDAPoint

    def __init__(self, bank: Matrices, target: Target, regularization: float) -> None:
        self.bank, self.target = bank, target
        self.scores = target.scores
        self.ridge = self.bound_ridge = regularization
        self.scale = self.bound_scale = regularization
        #: The unit of conic programs: λ or, if λ is learned, the weight 1/m of the identity.
        self.unit = regularization

    def at(self, weights: FloatArray) -> RKDAPoint:
        return self._point(self, weights)

    def rough_at(self, weights: FloatArray) -> RKDAPoint:
        """Return `at` with a factorization that may be in single precision.

        Products with the kernels are in double precision, so bound and error are still certified.
        """
        return self._point(self, weights, rough=True)

    def estimate(self, weights: FloatArray, *, rough: bool = False) -> tuple[float, float]:
        """Return the value without a pass over the kernels, and a bound of its error.

        The value is ⟨T, B⟩, so errors of B enter linearly, not squared as in `at`. Because of
        rounding, B solves a system with N + E, which changes the value by ⟨B, EB⟩. If the residual
        is known, the value is that of `at`. With ``rough``, the factorization may be in single
        precision, as in `rough_at`; the residual is then known from one pass over the kernels with
        positive weight.
        """
        system = self.bank.system(weights, self.ridge, rough=rough)
        dual, residual = system.solve_residual(self.scores)
        norm, noise = inner(dual, dual), float(weights @ self.bank.rounding)
        value = inner(self.scores, dual)
        if residual is not None:
            value += inner(dual, residual)  # 2⟨T, B⟩ − ⟨B, NB⟩
        if self.ridge <= noise or (residual is None and system.tol > 0):
            return self.scale * value, np.inf
        if residual is None:
            error = (_FACTORISATION * (1.0 + self.ridge) + noise) * norm + self.product_error(norm)
        else:
            error = self.value_error(residual, norm, noise)
        return self.scale * value, self.scale * error

    def value_error(self, residual: FloatArray, norm: float, noise: float) -> float:
        """Return a bound of the error of 2⟨T, B⟩ − ⟨B, NB⟩, which is too small.

        B is not exactly N⁻¹T, which contributes ⟨R, N⁻¹R⟩ ≤ ‖R‖²/ρ with the residual R = T − NB.
        Products and sums have rounding errors.

        Parameters
        ----------
        residual : ndarray of shape (n_samples, n_columns)
            T − NB, with the rounding errors of the kernels in its products.
        norm : float
            ‖B‖².
        noise : float
            How far below 0 eigenvalues of the combined kernel can be; less than ρ.
        """
        length = np.sqrt(inner(residual, residual)) + noise * np.sqrt(norm)
        inexact = float(length**2) / (self.ridge - noise)
        return inexact + noise * norm + 2.0 * self.product_error(norm)

    def product_error(self, norm: float) -> float:
        """Return a bound of the rounding error of ⟨T, B⟩, from ‖B‖²."""
        return _SUM * float(np.sqrt(inner(self.scores, self.scores) * norm))

    def subspace(self, basis: FloatArray) -> Subspace:
        """Return the subspace of an orthonormal basis, for `restricted`: a pass over the kernels.

        Parameters
        ----------
        basis : ndarray of shape (n_samples, n_columns)
            S.
        """
        matrices = self.bank.compressed(basis)
        return Subspace(basis, 0.5 * (matrices + matrices.transpose(0, 2, 1)))

    def restricted(self, subspace: Subspace) -> Self:
        """Return the criterion with B in a subspace, which is a lower bound of this criterion.

        Parameters
        ----------
        subspace : Subspace
            The subspace; it may come from the program of another λ.
        """
        model = copy.copy(self)
        model.bank = StoredMatrices(subspace.matrices, self.bank.rounding)
        model.scores = matmul(subspace.basis.T, self.scores)
        return model

    def lower_bound(
        self,
        dual: FloatArray,
        *,
        energies: FloatArray | None = None,
        columns: FloatArray | None = None,
    ) -> float:
        """Return a lower bound of the value for all weights, from any B; Eq. (34) and (46).

        Parameters
        ----------
        dual : ndarray of shape (n_samples, n_columns)
            B.
        energies : ndarray of shape (n_kernels,), optional
            ⟨B, K_iB⟩; by default they are computed.
        columns : ndarray of shape (n_samples, n_columns), optional
            A matrix in place of T with the same TTᵀ, such as H.
        """
        if energies is None:
            energies = quadratic_forms(self.bank.products(dual), dual)
        norm, noise = inner(dual, dual), self.bank.rounding
        strength = inner(self.scores if columns is None else columns, dual) - self.product_error(
            norm
        )
        if self.ridge <= self.largest(noise) or strength <= 0:
            return 0.0
        largest = self.largest(energies + noise * norm)
        return self.bound_scale * strength**2 / (self.bound_ridge * norm + largest)

    def largest(self, values: FloatArray) -> float:
        """Return the largest Σ w_i v_i over all allowed weights."""
        return float(values.max())

    # ---- some of the kernels -----------------------------------------------------------------

    def select(self, positions: NDArray[np.intp]) -> RKDAProgram:
        """Return the program of some of the kernels."""
        return RKDAProgram(cast(Bank, self.bank).select(positions), self.target, self.ridge)

    def dual_ball(self, value: float, dual: FloatArray, energies: FloatArray) -> DualBall:
        """Return a ball that contains the optimal B, from the program at some weights.

        Parameters
        ----------
        value : float
            The value of the program.
        dual : ndarray of shape (n_samples, n_columns)
            B = N(w)⁻¹T.
        energies : ndarray of shape (n_kernels,)
            ⟨B, K_iB⟩ of all kernels that may have positive weight.
        """
        primal, norm, strength = value / self.scale, inner(dual, dual), inner(self.scores, dual)
        t = strength / (self.ridge * norm + float(energies.max()))
        gap = max(primal - t * strength, _NOISE * primal)
        squared = gap / (2.0 * self.ridge) - 0.25 * (1.0 - t) ** 2 * norm
        return DualBall(0.5 * (1.0 + t), float(np.sqrt(max(squared, 0.0))))

    # ---- the paper's conic programs ----------------------------------------------------------

    def sdp(self, cp: Any, *, approximate: bool = False) -> ConicModel:
        """Return the semidefinite program: Eq. (8), (29) and (41), or (32) and (45).

        Parameters
        ----------
        cp : module
            CVXPY.
        approximate : bool, default=False
            Whether one matrix inequality for all classes replaces one for each class.
        """
        basis = _orthogonal_to_ones(self.bank)
        kernels = self.bank.compressed(basis)
        indicator = basis.T @ self.target.indicator / np.sqrt(self.bank.total)
        n, n_classes = indicator.shape
        weights, bounds = cp.Variable(len(kernels), nonneg=True), cp.Variable(n_classes)
        # Divided by λ (given) or 1/m (learned), as printed in the paper: entries of order 1.
        matrix = sum(w * (K / self.unit) for w, K in zip(weights, kernels, strict=True))
        if self.bound_ridge > 0:  # otherwise the identity is one of the kernels
            matrix = matrix + np.eye(n)
        if approximate:
            inequalities = [cp.bmat([[matrix, indicator], [indicator.T, cp.diag(bounds)]]) >> 0]
        else:
            columns = [indicator[:, [j]] for j in range(n_classes)]
            corners = [cp.reshape(bounds[j], (1, 1), order="C") for j in range(n_classes)]
            inequalities = [
                cp.bmat([[matrix, column], [column.T, corner]]) >> 0
                for column, corner in zip(columns, corners, strict=True)
            ]
        problem = cp.Problem(cp.Minimize(cp.sum(bounds)), [cp.sum(weights) == 1, *inequalities])

        def bound() -> float:
            if approximate or inequalities[0].dual_value is None:
                return -np.inf
            # Complementarity: the last column of each multiplier is −N⁻¹h_j.
            dual = [-lmi.dual_value[:n, n] / lmi.dual_value[n, n] for lmi in inequalities]
            return self.lower_bound(basis @ np.column_stack(dual), columns=self.target.indicator)

        return ConicModel(problem, lambda: weights.value, bound)

    def qcqp(self, cp: Any) -> ConicModel:
        """Return the quadratically constrained program: Eq. (13), (34), (43) and (46).

        Parameters
        ----------
        cp : module
            CVXPY.
        """
        basis = _orthogonal_to_ones(self.bank)
        scores = basis.T @ self.scores / np.sqrt(self.bank.total)
        # In units of half the β of the papers, and with entries of order 1.
        dual, t = cp.Variable(scores.shape), cp.Variable()
        limits = [
            cp.sum_squares(square_root(K / self.unit) @ dual) <= t
            for K in self.bank.compressed(basis)
        ]
        objective = 2.0 * cp.sum(cp.multiply(scores, dual)) - t
        if self.bound_ridge > 0:
            objective -= cp.sum_squares(dual)

        def weights() -> FloatArray | None:
            if dual.value is None:
                return None
            return np.array([np.ravel(limit.dual_value)[0] for limit in limits])

        def bound() -> float:
            return -np.inf if dual.value is None else self.lower_bound(basis @ dual.value)

        return ConicModel(cp.Problem(cp.Maximize(objective), limits), weights, bound)


def _orthogonal_to_ones(bank: Matrices) -> FloatArray:
    """Return an orthonormal basis of the vectors that sum to 0, weighted as the bank is."""
    if bank.row_weights.is_equal:
        return np.asarray(scipy.linalg.helmert(bank.n_samples)).T
    return np.asarray(scipy.linalg.null_space(bank.row_weights.roots[None]))


def square_root(kernel: FloatArray) -> FloatArray:
    """Return R with RᵀR = K, without rows that are rounding errors."""
    values, vectors = scipy.linalg.eigh(kernel)
    keep = values > 1e-14 * values[-1]
    return np.asarray(np.sqrt(values[keep])[:, None] * vectors[:, keep].T)


class JointRKDAProgram(RKDAProgram):
    """Minimize Σ_j h_jᵀ (Σ_{i≥0} θ_i G̃_i)⁻¹ h_j with G̃_0 = I and θᵀr = 1, [Ye08]_ Eq. (40)-(47).

    The optimum is often at θ_0 = 0, where N may be singular. A lower limit of λ, the floor, keeps
    it regular. Value and bound are those of the program without the floor, so the gap includes the
    effect of the floor.

    Parameters
    ----------
    bank : Bank
        The kernels without the identity, normalized to centred trace 1.
    target : Target
        The target.
    floor : float, default=1e-10
        The smallest λ.
    """

    def __init__(self, bank: Bank, target: Target, floor: float = 1e-10) -> None:
        super().__init__(WithIdentity(bank), target, floor)
        # θ = (w_0/m + floor, w_i/r_i) sums to θᵀr = 1 + m·floor; scaling it to 1 scales the value.
        self.scale = 1.0 + bank.total * floor
        self.bound_ridge, self.bound_scale, self.unit = 0.0, 1.0, 1.0 / bank.total

    select = None  # type: ignore[assignment]  # there is no ball without a ridge

    def split(self, weights: FloatArray) -> Split:
        """Return the kernel weights, which sum to 1, and λ relative to them."""
        kernels, share = beside_identity(weights[1:])
        regularization = float((weights[0] / self.bank.total + self.ridge) / share)
        return Split(kernels, regularization, regularization <= 2 * self.ridge)


class ShrunkPoint(RKDAPoint):
    """The criterion with a penalty on unequal weights, at some weights."""

    _criterion: ShrunkRKDAProgram

    def __init__(
        self, criterion: ShrunkRKDAProgram, weights: FloatArray, *, rough: bool = False
    ) -> None:
        super().__init__(criterion, weights, rough=rough)
        self.value += criterion.pull(weights)

    @cached_property
    def gradient(self) -> FloatArray:
        away = self.weights - 1.0 / len(self.weights)
        return super().gradient + self._criterion.strength * away

    @cached_property
    def hessian(self) -> FloatArray:
        return super().hessian + self._criterion.strength * np.eye(len(self.weights))

    @cached_property
    def bound(self) -> float:
        # By convexity, the minimum of the tangent over the simplex is a lower bound.
        return self.intercept + float(self.gradient.min()) if np.isfinite(self.error) else 0.0


class ShrunkRKDAProgram(RKDAProgram):
    """Minimize f(w) + (ρ/2)‖w − 1/p‖²: between the optimum of [Ye08]_ and the plain average.

    Parameters
    ----------
    bank, target, regularization
        As in `RKDAProgram`.
    shrinkage : float
        ρ relative to p times the value at equal weights, so that it is comparable between data
        sets. 0 is [Ye08]_; larger values give weights closer to equal.
    """

    _point = ShrunkPoint

    def __init__(self, bank: Bank, target: Target, regularization: float, shrinkage: float) -> None:
        super().__init__(bank, target, regularization)
        p = bank.n_kernels
        self.strength = shrinkage * p * RKDAPoint(self, uniform(p)).value

    # All kernels have positive weight, and the programs of the paper have no penalty.
    select = sdp = qcqp = None  # type: ignore[assignment]

    def pull(self, weights: FloatArray) -> float:
        """Return (ρ/2)‖w − 1/p‖²."""
        away = weights - 1.0 / len(weights)
        return 0.5 * self.strength * float(away @ away)

    def estimate(self, weights: FloatArray, *, rough: bool = False) -> tuple[float, float]:
        value, error = super().estimate(weights, rough=rough)
        return value + self.pull(weights), error


class NormedRKDAProgram(RKDAProgram):
    """Minimize f(w) over w ≥ 0, ‖w‖ ≤ ρ, with an ℓp-norm or a block norm [Yan12]_.

    The bound, Eq. (34), holds with the dual norm of the energies in place of their maximum.

    Parameters
    ----------
    bank, target, regularization
        As in `RKDAProgram`.
    ball : WeightBall
        The allowed weights.
    """

    allowed = "are at least 0, with a norm of at most that of equal weights"

    def __init__(self, bank: Bank, target: Target, regularization: float, ball: WeightBall) -> None:
        super().__init__(bank, target, regularization)
        self.ball = ball

    # All kernels have positive weight, and the programs of the paper have sums of weights.
    select = sdp = qcqp = None  # type: ignore[assignment]

    def contains(self, weights: FloatArray) -> bool:
        return self.ball.contains(weights)

    def normalize(self, weights: FloatArray) -> FloatArray:
        return self.ball.normalize(weights)

    def largest(self, values: FloatArray) -> float:
        return self.ball.largest(values)

    def paths(self, point: RKDAPoint) -> Iterator[LogPath]:
        """Yield the paths of a step on the boundary of the ball; see `discernel.programs.norms`."""
        hessian: FloatArray | LowRankHessian | None = None
        if self.ball.takes_low_rank:
            hessian = point.low_rank_hessian
        hessian = point.hessian if hessian is None else hessian
        return self.ball.paths(point.weights, point.gradient, hessian)


@dataclass(frozen=True)
class RKDA(Criterion):
    """Regularized kernel discriminant analysis [Ye08]_; for numbers, the squared error.

    It takes any number of classes. With ``regularization="joint"``, λ is learned in the same
    program.

    Parameters
    ----------
    shrinkage : float, default=0.0
        Factor of the penalty (1/2)‖w − 1/p‖² on unequal weights, relative to p times the value at
        equal weights. 0 is [Ye08]_; larger values give weights closer to equal. With many kernels
        and few samples, the optimum of [Ye08]_ can be far worse than the plain average, and
        shrinkage is a compromise between the two. It is still convex and certified.
    norm : float, default=1.0
        p ≥ 1, the exponent of the norm of the weights [Yan12]_. 1 is [Ye08]_: weights sum to 1, and
        many are 0. For p > 1, all P kernels have positive weight and ‖w‖_p = P^(1/p − 1), which
        is the norm of equal weights 1/P. The larger p, the closer weights are to equal; infinity
        gives the plain average. Convex and certified for all p.
    block_norm : float, optional
        r > 1, the exponent between blocks of kernels, for ``blocks``. The norm of the weights is
        then (Σ_g ‖w_g‖_p^r)^(1/r), where ``norm`` p > 1 is the exponent within blocks. For example,
        ``norm=inf`` gives the kernels of a block equal weights, and ``block_norm`` near 1 gives
        most blocks weights near 0.
    blocks : sequence, optional
        The block of each kernel, as a label.

    Notes
    -----
    Weights that do not sum to 1 still refer to kernels of trace 1, so λ means the same for all
    norms. Without blocks they sum to at most 1.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import RBF
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [RBF(width=s)(scale(X)) for s in (1, 4, 16)]
    >>> for shrinkage in (0.0, 0.1, 1.0):
    ...     learned = learn_kernel(grams, y, criterion=RKDA(shrinkage), regularization=1e-3)
    ...     print(learned.weights.round(2), learned.gap <= 1e-6)
    [0.4  0.54 0.07] True
    [0.41 0.48 0.11] True
    [0.39 0.37 0.24] True

    Weights that are not sparse, with ‖w‖_2 = 1/√3:

    >>> learned = learn_kernel(grams, y, criterion=RKDA(norm=2), regularization=1e-3)
    >>> learned.weights.round(2), learned.gap <= 1e-6
    (array([0.38, 0.37, 0.22]), True)
    """

    shrinkage: float = 0.0
    norm: float = 1.0
    block_norm: float | None = None
    blocks: Any = None
    name: ClassVar[str] = "rkda"
    solvers: ClassVar[tuple[str, ...]] = (
        "newton",
        "galerkin",
        "columns",
        "sdp",
        "sdp_approximate",
        "qcqp",
        "silp",
    )
    regularizations: ClassVar[tuple[str, ...]] = ("loo", "joint")
    weighs_samples: ClassVar[bool] = True
    only_products: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("shrinkage of RKDA", self.shrinkage)
        blocks = check_norms(self.norm, self.block_norm, self.blocks)
        object.__setattr__(self, "blocks", blocks)  # comparable and immutable
        if self.shrinkage > 0 and self.norm > 1:
            raise InvalidInputError(
                "RKDA takes a shrinkage or a norm, not both. Got "
                f"shrinkage={self.shrinkage!r} and norm={self.norm!r}."
            )

    def check(self, solver: str, regularization: float | str) -> None:
        # The other solvers solve the programs of the paper. Cuts could approximate the penalty,
        # but about a thousand are needed: a minute for 13 samples.
        known = ("galerkin", "newton")
        other = solver in self.solvers and solver not in known  # a user's solver may support it
        if (self.shrinkage > 0 or self.norm > 1) and (other or regularization == "joint"):
            raise InvalidInputError(
                f"The {'norm' if self.norm > 1 else 'shrinkage'} of RKDA must go with a solver of "
                f"{list(known)} and a regularization that is a number or 'loo'. Got "
                f"solver='{solver}' and regularization={regularization!r}."
            )

    def on_bank(self, bank: Bank) -> RKDA:
        """Return the criterion with the blocks of the kernels that vary on the training rows."""
        if self.blocks is None:
            return self
        if len(self.blocks) != bank.n_candidates:
            raise InvalidInputError(
                f"The blocks of RKDA must be one label per kernel, here {bank.n_candidates}. Got "
                f"{len(self.blocks)}."
            )
        return replace(self, blocks=[self.blocks[i] for i in bank.kept])

    def program(self, bank: Bank, target: Target, regularization: float | None) -> RKDAProgram:
        if self.norm > 1 and regularization is not None:
            labels = self.blocks
            if labels is not None and len(labels) != bank.n_kernels:  # the bank is a part
                labels = [labels[i] for i in bank.kept]
            ball = WeightBall.of(bank.n_kernels, self.norm, self.block_norm, labels)
            return NormedRKDAProgram(bank, target, regularization, ball)
        if regularization is None:
            return JointRKDAProgram(bank, target)
        if self.shrinkage > 0:
            return ShrunkRKDAProgram(bank, target, regularization, self.shrinkage)
        return RKDAProgram(bank, target, regularization)
