"""Weights in a ball of an ℓp-norm or a block norm, instead of on the simplex.

The set. For P kernels of trace 1 in blocks g, with exponents p within and r between blocks,

    W = {w ≥ 0, ‖w‖ ≤ ρ},    ‖w‖ = (Σ_g ‖w_g‖_p^r)^(1/r),    ρ = ‖(1/P, …, 1/P)‖.

Without blocks, all kernels are one block: ‖w‖ = ‖w‖_p and ρ = P^(1/p − 1). Equal weights 1/P are in
W for all exponents, so λ has the same meaning for all. p = 1 is the simplex, and for p = ∞ equal
weights are the largest elements of W, hence optimal for a criterion that decreases in all weights.

Its support function is the dual norm, with 1/p + 1/p* = 1 and 1/r + 1/r* = 1:

    max {wᵀq : w ∈ W}  =  ρ (Σ_g ‖q_g‖_{p*}^{r*})^(1/r*)    for q ≥ 0.

Optimality. Let q = −∇f(w) ≥ 0, and let a_i = ∂ log‖w‖ / ∂ log w_i, which are at least 0 and sum to
1. Without blocks, a_i = (w_i/ρ)^p. On the boundary of W, w is optimal if wᵀq is the support
function, which is

    w_i q_i = κ a_i,    κ = wᵀq.                                                                (1)

Newton's method solves the logarithm of (1) for u = log w:

    F_i(u) = log(w_i q_i) − log a_i = log κ.

With c_i = w_iq_i, the Hessian H of f, W = diag(w) and the sums c_g over blocks, a step is

    [WHW + (p − 1) diag(c) + (r − p) ⊕_g c_g c_gᵀ/Σc_g] δ  =  c ∘ (F − log κ),    aᵀδ = 0.      (2)

The matrix is −∂F/∂u with its rows multiplied by c, where a is replaced by c/κ; both are equal at
the optimum, so convergence is quadratic. It is positive definite for p, r > 1. Where f is
almost linear, H = 0, the step solves (1) exactly. Large changes δ_i are clipped. If there are more
kernels than rows, H = LRᵀ has a low rank m, and with one block the system is solved by
(a + LRᵀ)⁻¹ = (1 − L(a + RᵀL)⁻¹Rᵀ)/a, with an m × m matrix in place of H.

Global convergence. ⟨T, N(w')⁻¹T⟩ is the minimum of ‖T − Σ f_i‖²/λ + Σ ⟨f_i, K_i⁻¹f_i⟩/w'_i over all
f_i. At w it is attained by f_i = w_iK_iB, so the criterion is at most a constant plus
Σ_i w_i²q_i/w'_i for all w' ∈ W, with equality at w' = w. The minimum of this sum over W is, with
s = w²q, d_i = s_i^(1/(p+1)) scaled to ‖d_g‖_p = 1, and t_g ∝ (Σ_g s_i/d_i)^(1/(r+1)),

    w'_i = t_g d_i,                                                                             (3)

for one block w'_i ∝ (w_i²q_i)^(1/(p+1)) [Kloft11]_. It decreases the criterion unless w is optimal.
It is the next point whenever (2) does not decrease the criterion enough.

All norms are computed from logarithms, because powers underflow for p near 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.arrays.dense import matmul
from discernel.exceptions import InvalidInputError, is_number

#: Exponents in the matrix of a step are at most this. The step is exact enough: its error decreases
#: by this factor from step to step.
_LARGEST = 1e6
#: The smallest logarithm of a weight, and the smallest energy relative to the largest.
_LEAST_LOG, _LEAST_ENERGY = -600.0, 1e-30
#: Relative rounding error of a norm, for powers with large exponents and sums over kernels.
_ROUNDING = 1e-14
#: The largest decrease and increase of log w in a Newton step. Beyond, the linear model of F is
#: wrong. With 793 kernels and p = 4/3, this saves half of the steps and the search along them.
_TRUSTED = (-3.0, 2.0)
#: The smallest norm for a Hessian of low rank, whose rounding errors grow with 1/(p − 1).
_LEAST_LOW_RANK = 1.1
#: The smallest step along a path.
_LEAST_STEP = 1e-3


class LowRankHessian(NamedTuple):
    """The Hessian LRᵀ, with fewer columns than kernels.

    Attributes
    ----------
    left, right : ndarray of shape (n_kernels, rank)
        L and R.
    """

    left: FloatArray
    right: FloatArray

    def solve(self, ratios: FloatArray, shift: float, columns: FloatArray) -> FloatArray:
        """Return (shift + diag(ratios) H diag(ratios))⁻¹ times columns."""
        left, right = ratios[:, None] * self.left, ratios[:, None] * self.right
        small = matmul(right.T, left)
        small[np.diag_indices_from(small)] += shift
        try:
            inner = scipy.linalg.solve(small, matmul(right.T, columns), check_finite=False)
        except scipy.linalg.LinAlgError:
            return np.full(columns.shape, np.nan)
        return np.asarray((columns - matmul(left, inner)) / shift)


@dataclass(frozen=True, eq=False)
class LogPath:
    """Weights along a line of log w, scaled to the boundary of the ball.

    Attributes
    ----------
    ball : WeightBall
        The set of the weights.
    start, direction : ndarray of shape (n_kernels,)
        log w, and its change at step 1.
    slope : float
        Derivative of the criterion by the step.
    """

    #: The smallest step that is tried.
    least: ClassVar[float] = _LEAST_STEP
    ball: WeightBall
    start: FloatArray
    direction: FloatArray
    slope: float

    def at(self, step: float) -> FloatArray:
        """Return the weights after a step."""
        return self.ball.scaled(self.start + step * self.direction)


@dataclass(frozen=True, eq=False)
class WeightBall:
    """Weights of at least 0 whose block norm is at most that of equal weights.

    Attributes
    ----------
    norm : float
        p, the exponent within blocks.
    block_norm : float
        r, the exponent between blocks.
    blocks : ndarray of shape (n_kernels,)
        The block of each kernel, from 0.
    """

    norm: float
    block_norm: float
    blocks: NDArray[np.intp]

    @classmethod
    def of(
        cls, n_kernels: int, norm: float, block_norm: float | None, labels: Sequence[Any] | None
    ) -> WeightBall:
        """Return the ball of some kernels, from the parameters of `RKDA`."""
        if labels is None or block_norm is None:
            return cls(norm, norm, np.zeros(n_kernels, dtype=np.intp))
        places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
        return cls(norm, block_norm, np.array([places[label] for label in labels]))

    @property
    def n_kernels(self) -> int:
        """The number of kernels."""
        return len(self.blocks)

    @cached_property
    def _n_blocks(self) -> int:
        return int(self.blocks.max()) + 1

    @cached_property
    def _log_radius(self) -> float:
        return self._log_norm(np.full(self.n_kernels, -np.log(self.n_kernels)))

    @property
    def radius(self) -> float:
        """ρ, the norm of equal weights."""
        return float(np.exp(self._log_radius))

    def _log_norms(self, logs: FloatArray, exponent: float) -> FloatArray:
        """Return the logarithm of the norm of each block, from logarithms of the entries."""
        return _log_norms(logs, exponent, self.blocks, self._n_blocks)

    def _log_norm(self, logs: FloatArray) -> float:
        return _log_norm(self._log_norms(logs, self.norm), self.block_norm)

    def largest(self, values: FloatArray) -> float:
        """Return an upper bound of max wᵀq over the ball, the dual norm of q, from q."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(values, 0.0))
        within = self._log_norms(logs, _dual(self.norm))
        found = self._log_radius + _log_norm(within, _dual(self.block_norm))
        return float(np.exp(found)) * (1.0 + _ROUNDING * max(1.0, abs(found)))

    def contains(self, weights: FloatArray) -> bool:
        """Return whether weights are at least 0, with a norm of at most ρ up to rounding."""
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            return False
        return self._log_norm(_logarithms(weights)) <= self._log_radius + 1e-9

    def normalize(self, weights: FloatArray) -> FloatArray:
        """Return weights on the boundary of the ball; those of 0 or below get a share too.

        A weight of 0 would stay 0 in multiplicative steps. It becomes the equal share 1/P.
        """
        positive = np.where(weights > 0, weights, 1.0 / self.n_kernels)
        return self.scaled(_logarithms(positive))

    def scaled(self, logs: FloatArray) -> FloatArray:
        """Return the weights on the boundary of the ball, from logarithms up to a constant.

        For an infinite exponent these are the largest weights of the ball beside the given ones.
        """
        logs = np.maximum(logs - logs.max(), _LEAST_LOG)
        within = self._log_norms(logs, self.norm)
        if np.isinf(self.norm):
            logs = within[self.blocks]
        if np.isinf(self.block_norm):
            logs, within = logs - within[self.blocks], np.zeros_like(within)
        excess = _log_norm(within, self.block_norm) - self._log_radius
        return np.asarray(np.exp(logs - excess - _ROUNDING))

    def shares(self, weights: FloatArray, parts: FloatArray) -> FloatArray:
        """Return log a: the derivatives of log‖w‖ by log w, as logarithms.

        At an infinite exponent, equal entries have any shares. Theirs are in proportion to
        ``parts``.

        Parameters
        ----------
        weights : ndarray of shape (n_kernels,)
            w.
        parts : ndarray of shape (n_kernels,)
            c = w∘q.
        """
        logs, kept = _logarithms(weights), np.log(parts)
        sums = self._log_norms(kept, 1.0)
        within = self._log_norms(logs, self.norm)
        inside = kept - sums[self.blocks]
        if np.isfinite(self.norm):
            inside = self.norm * (logs - within[self.blocks])
        between = sums - _log_norm(sums, 1.0)
        if np.isfinite(self.block_norm):
            between = self.block_norm * (within - _log_norm(within, self.block_norm))
        return np.asarray(inside + between[self.blocks])

    # ---- steps -------------------------------------------------------------------------------

    @property
    def takes_low_rank(self) -> bool:
        """Whether steps may be computed from a `LowRankHessian`."""
        return self.block_norm == self.norm >= _LEAST_LOW_RANK

    def paths(
        self, weights: FloatArray, gradient: FloatArray, hessian: FloatArray | LowRankHessian
    ) -> Iterator[LogPath]:
        """Yield a Newton step (2), then the step to the fixed point (3); nothing without a slope.

        Parameters
        ----------
        weights : ndarray of shape (n_kernels,)
            w, on the boundary of the ball.
        gradient : ndarray of shape (n_kernels,)
            The gradient of the criterion at w.
        hessian : ndarray of shape (n_kernels, n_kernels) or LowRankHessian
            Its Hessian; of low rank if `takes_low_rank`.
        """
        energies = -gradient
        if not (np.isfinite(energies).all() and energies.max() > 0):  # rounding errors only
            return
        energies = np.maximum(energies, _LEAST_ENERGY * energies.max())
        parts = weights * energies
        logs, shares = _logarithms(weights), self.shares(weights, parts)
        fixed = _logarithms(self.fixed_point(weights, energies)) - logs
        for direction in (self._newton(weights, energies, parts, shares, hessian), fixed):
            if np.isfinite(direction).all():
                slope = float(parts.sum() * (np.exp(shares) @ direction) - parts @ direction)
                yield LogPath(self, logs, direction, slope)

    def _newton(
        self,
        weights: FloatArray,
        energies: FloatArray,
        parts: FloatArray,
        shares: FloatArray,
        hessian: FloatArray | LowRankHessian,
    ) -> FloatArray:
        """Return δ of (2), by a system that is scaled to have the diagonal of an identity."""
        ratios, roots = np.sqrt(weights / energies), np.sqrt(parts)
        residual = np.log(parts) - shares
        residual -= residual @ parts / parts.sum()
        right = np.column_stack([roots * residual, roots])
        if isinstance(hessian, LowRankHessian):
            solved = hessian.solve(ratios, min(self.norm, _LARGEST) - 1.0, right)
        else:
            solved = self._solve(ratios, parts, hessian, right)
        step, level = (solved / roots[:, None]).T
        pull = np.exp(shares)
        return np.asarray(np.clip(step - level * (pull @ step) / (pull @ level), *_TRUSTED))

    def _solve(
        self, ratios: FloatArray, parts: FloatArray, hessian: FloatArray, right: FloatArray
    ) -> FloatArray:
        """Return the solution of the scaled system (2); not a number without a factorization."""
        p, r = min(self.norm, _LARGEST), min(self.block_norm, _LARGEST)
        roots = np.sqrt(parts)
        system = ratios[:, None] * hessian * ratios
        same = self.blocks[:, None] == self.blocks
        sums = np.bincount(self.blocks, parts)[self.blocks]
        system += (r - p) * np.where(same, np.outer(roots, roots) / sums, 0.0)
        system[np.diag_indices_from(system)] += p - 1.0
        try:
            factor = scipy.linalg.cho_factor(system)
        except (scipy.linalg.LinAlgError, ValueError):  # not finite or not definite, by rounding
            return np.full(right.shape, np.nan)
        return np.asarray(scipy.linalg.cho_solve(factor, right))

    def fixed_point(self, weights: FloatArray, energies: FloatArray) -> FloatArray:
        """Return the weights (3), at which the criterion is smaller unless it is smallest.

        Parameters
        ----------
        weights : ndarray of shape (n_kernels,)
            w.
        energies : ndarray of shape (n_kernels,)
            q, above 0.
        """
        logs = 2.0 * _logarithms(weights) + np.log(energies)
        inside = logs / (self.norm + 1.0)
        inside -= self._log_norms(inside, self.norm)[self.blocks]
        between = self._log_norms(logs - inside, 1.0) / (self.block_norm + 1.0)
        return self.scaled(inside + between[self.blocks])


def check_norms(norm: Any, block_norm: Any, blocks: Any) -> tuple[Any, ...] | None:
    """Raise a clear error if parameters of `RKDA` are invalid; return the blocks as a tuple."""
    _check_exponent("norm of RKDA", norm)
    if (block_norm is None) != (blocks is None):
        raise InvalidInputError(
            "RKDA must have both a block_norm and blocks, or neither. Got "
            f"block_norm={block_norm!r} and blocks={blocks!r}."
        )
    if blocks is None:
        return None
    _check_exponent("block_norm of RKDA", block_norm)
    if not (norm > 1 and block_norm > 1):
        raise InvalidInputError(
            "With blocks, the norm and the block_norm of RKDA must be above 1. Got "
            f"norm={norm!r} and block_norm={block_norm!r}. A number such as 1.05 gives almost "
            "sparse weights."
        )
    try:
        labels = tuple(blocks) if not isinstance(blocks, str) else ()
        hash(labels)
    except TypeError:
        labels = ()
    if not labels:
        raise InvalidInputError(
            "The blocks of RKDA must be a sequence with one label per kernel, such as "
            f"['scan', 'scan', 'blood']. Got {blocks!r}."
        )
    return labels


def _check_exponent(what: str, value: Any) -> None:
    if not (is_number(value) and value >= 1):
        raise InvalidInputError(f"The {what} must be a number of at least 1. Got {value!r}.")


def _dual(exponent: float) -> float:
    """Return p* with 1/p + 1/p* = 1."""
    if np.isinf(exponent):
        return 1.0
    return exponent / (exponent - 1.0) if exponent > 1.0 else np.inf


def _logarithms(weights: FloatArray) -> FloatArray:
    """Return log w; at least a finite number for weights that are 0 in floating point."""
    return np.asarray(np.log(np.maximum(weights, np.exp(_LEAST_LOG))))


def _log_norms(
    logs: FloatArray, exponent: float, blocks: NDArray[np.intp], n_blocks: int
) -> FloatArray:
    """Return log‖v_g‖ of each block from log v."""
    largest = np.full(n_blocks, -np.inf)
    np.maximum.at(largest, blocks, logs)
    if np.isinf(exponent):
        return largest
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        powers = np.exp(exponent * (logs - shift[blocks]))
        return np.asarray(shift + np.log(np.bincount(blocks, powers, n_blocks)) / exponent)


def _log_norm(logs: FloatArray, exponent: float) -> float:
    """Return log‖v‖ from log v."""
    return float(_log_norms(logs, exponent, np.zeros(len(logs), dtype=np.intp), 1)[0])
