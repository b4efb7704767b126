"""A bank whose systems are solved by conjugate gradients, without n_samples² numbers in memory.

A product of the combined kernel with vectors is one pass over the tiles, for any number of kernels.
With a preconditioner of low rank, a system takes about ten to thirty passes. Memory is that of the
factor of the preconditioner.
"""

from __future__ import annotations

import hashlib
import warnings
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from typing import ClassVar, NoReturn

import numpy as np

from discernel.arrays import FloatArray, matmul, memory_limit
from discernel.arrays.groups import Groups
from discernel.bank.conjugate import PartialFactor, Solved, solve_refined
from discernel.bank.system import System, WoodburySystem
from discernel.bank.tiled import Threads, TiledBank
from discernel.exceptions import ConvergenceWarning, InvalidInputError, NumericalError

#: The rank of the preconditioner is n_rows / 16, between 512 and 2000; it then costs about a pass.
_ROWS_A_RANK, _LEAST_RANK, _MOST_RANK = 16, 512, 2000
#: Maximum bytes of the factor of the preconditioner, and maximum share of the memory limit.
_FACTOR_BYTES, _MEMORY_SHARE = 640 * 2**20, 1 / 16
#: Number of rows of a subset up to which its systems are factored, which is as fast.
_FACTORED_ROWS = 4000
#: Trace of the remainder of the preconditioner, relative to the ridge: the condition number is then
#: below 1.25, and each step gains a digit.
_LEFT = 0.25
#: Relative residual and number of the random vectors for the diagonal of the inverse.
_PROBED, _PROBES = 1e-3, 64
#: Share of the energy of a right-hand side that makes a starting point worth a pass.
_WORTHWHILE = 0.1
#: Rounding error of a residual, relative to the condition number of the system.
_ROUNDING = 1e-14
#: Relative residual above which a solution is useless, and that of `solve_roughly`.
_USELESS, _ROUGH = 0.5, 1e-4
#: Number of cached solutions.
_CACHED = 64


class RefinedSystem(System):
    """A system whose solutions are refined by products until the residual is small.

    Solutions are cached, because the discriminant needs the last solutions of the learning.

    Parameters
    ----------
    bank : IterativeBank
        The bank of the kernels K_i.
    weights : ndarray of shape (n_kernels,)
        The weights w_i.
    ridge : ndarray of shape (n_samples,)
        The ridge, above 0.
    tol : float
        Relative residual of solutions.
    """

    def __init__(
        self, bank: IterativeBank, weights: FloatArray, ridge: FloatArray, tol: float
    ) -> None:
        self._bank, self._weights, self._ridge, self.tol = bank, weights, ridge, tol
        self._least_ridge = float(ridge.min())
        self._known: dict[bytes, tuple[float, FloatArray, FloatArray]] = {}

    def _product(self, V: FloatArray, engine: Threads | None = None) -> FloatArray:
        """Return NV, in double precision or by an engine of single precision."""
        return self._ridge[:, None] * V + self._bank.combined_product(self._weights, V, engine)

    @abstractmethod
    def _refined(self, right: FloatArray, enough: FloatArray) -> Solved:
        """Solve to residuals of the norms ``enough``, or as accurately as arithmetic allows."""

    @abstractmethod
    def _advice(self, reached: float, tol: float) -> str:
        """Return the message for a relative residual above ``tol``."""

    def solve(self, right: FloatArray) -> FloatArray:
        return self._solved(right, self.tol)[0]

    def solve_roughly(self, right: FloatArray) -> FloatArray:
        return self._solved(right, max(self.tol, _ROUGH))[0]

    def solve_residual(self, right: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        return self._solved(right, self.tol)

    def _solve_new(self, right: FloatArray, tol: float, *, quiet: bool = False) -> Solved:
        """Solve without the cache; warn of large residuals, or raise an error."""
        # Rounding errors of the residual grow with the condition number.
        tol = max(tol, _ROUNDING * (1.0 + 1.0 / self._least_ridge))
        lengths = np.linalg.norm(right, axis=0)
        found = self._refined(right, tol * lengths)
        shares = np.divide(found.lengths, lengths, out=0.0 * lengths, where=lengths > 0)
        reached = float(shares.max(initial=0.0))
        if reached > tol and not quiet:
            if not reached < _USELESS:
                raise NumericalError(self._advice(reached, tol))
            warnings.warn(self._advice(reached, tol), ConvergenceWarning, stacklevel=3)
        return found

    def _solved(self, right: FloatArray, tol: float) -> tuple[FloatArray, FloatArray]:
        """Return solution and residual of every column, from the cache if possible."""
        if right.ndim == 1:
            one, left = self._solved(right[:, None], tol)
            return one[:, 0], left[:, 0]
        solution, residual = np.empty(right.shape), np.empty(right.shape)
        keys = [hashlib.blake2b(column.tobytes()).digest() for column in right.T]
        new = []
        for column, key in enumerate(keys):
            if key in self._known and self._known[key][0] <= tol:
                _, solution[:, column], residual[:, column] = self._known[key]
            else:
                new.append(column)
        if new:
            found = self._solve_new(right[:, new], tol)
            solution[:, new], residual[:, new] = found.solution, found.residual
            for i, column in enumerate(new if len(new) <= _CACHED else []):
                self._known.pop(keys[column], None)
                self._known[keys[column]] = tol, found.solution[:, i], found.residual[:, i]
            while len(self._known) > _CACHED:
                del self._known[next(iter(self._known))]
        return solution, residual


class IterativeSystem(RefinedSystem):
    """A system solved by preconditioned conjugate gradients.

    Parameters
    ----------
    factor : PartialFactor
        Partial factor of Σ w_i K_i for the preconditioner; extended as this ridge requires.
    subspace : tuple of ndarray or None
        An orthonormal basis S and all SᵀK_iS, for starting points.
    bank, weights, ridge, tol
        As in `RefinedSystem`.
    """

    by_iteration: ClassVar[bool] = True

    def __init__(
        self,
        factor: PartialFactor,
        subspace: tuple[FloatArray, FloatArray] | None,
        bank: IterativeBank,
        weights: FloatArray,
        ridge: FloatArray,
        tol: float,
    ) -> None:
        super().__init__(bank, weights, ridge, tol)
        self._factor, self._subspace = factor, subspace
        self._engine = bank.single_engine(weights)
        # An eigenvector of the kernel with eigenvalue 0, by centring.
        self._unit = bank.row_weights.roots / np.sqrt(bank.total)
        self._is_constant = bool((ridge == ridge[0]).all())

    @cached_property
    def _preconditioner(self) -> WoodburySystem:
        self._factor.extend(_LEFT * self._least_ridge)
        return WoodburySystem(self._factor.factor, self._ridge)

    # ---- solving -----------------------------------------------------------------------------

    def _refined(self, right: FloatArray, enough: FloatArray) -> Solved:
        right = np.ascontiguousarray(right)
        along, rest = np.zeros_like(right), right
        if self._is_constant:  # this eigenvector is solved exactly
            along = np.outer(self._unit, self._unit @ right)
            rest = right - along
        found = solve_refined(
            self._product,
            None if self._engine is None else partial(self._product, engine=self._engine),
            self._preconditioner.solve_once,
            rest,
            enough,
            self._guess(rest),
        )
        return Solved(found.solution + along / self._least_ridge, found.residual, found.lengths)

    def _guess(self, right: FloatArray) -> FloatArray | None:
        """Return the Galerkin solution in the subspace, if it is worth a pass for its residual."""
        if self._subspace is None:
            return None
        basis, seen = self._subspace
        small = np.tensordot(self._weights, seen, axes=1) + basis.T @ (self._ridge[:, None] * basis)
        guess = matmul(basis, np.asarray(np.linalg.solve(small, matmul(basis.T, right))))
        energy = np.einsum("ij,ij->", right, guess)
        whole = np.einsum("ij,ij->", right, self._preconditioner.solve_once(right))
        return guess if energy > _WORTHWHILE * whole else None

    def _advice(self, reached: float, tol: float) -> str:
        n = len(self._ridge)
        return (
            f"Conjugate gradients stalled: a system of {n:,} rows and ridge "
            f"{self._least_ridge:.1e} was solved to a relative residual of {reached:.1e}, asked "
            f"for {tol:.1e}, with a preconditioner of rank {self._factor.rank}. Raise the "
            f"regularization, or use bank='tiled', which factors the system in {16e-9 * n**2:.3g} "
            "GB, or bank='lowrank'."
        )

    # ---- the diagonal of the inverse ---------------------------------------------------------

    def inverse_diagonal(self) -> FloatArray:
        """Estimate the diagonal of the inverse; `diagonal_error` is its standard error.

        Let P be a preconditioner with the diagonal of N. The diagonal of P⁻¹ is known, and that of
        N⁻¹ − P⁻¹ is estimated as the mean of z∘(N⁻¹ − P⁻¹)z over random vectors z of ±1
        ([Bekas07]_), relative to the diagonal of P⁻¹. Differences between rows are shrunk
        according to their noise, estimated from the variance over z.
        """
        return self._diagonal

    def inverse_blocks(self, groups: Groups) -> list[FloatArray]:
        """Estimate the blocks of the inverse: those of P⁻¹, scaled to the estimated diagonal."""
        scales = np.sqrt(self._diagonal / self._near.inverse_diagonal())
        return [
            blocks * scales[rows][:, :, None] * scales[rows][:, None, :]
            for rows, blocks in zip(groups.batches, self._near.inverse_blocks(groups), strict=True)
        ]

    @cached_property
    def _near(self) -> WoodburySystem:
        """P, which has the diagonal of N."""
        self._preconditioner  # noqa: B018  # grows the factor
        return WoodburySystem(self._factor.factor, self._ridge + self._factor.left)

    @cached_property
    def _diagonal(self) -> FloatArray:
        near = self._near
        known = near.inverse_diagonal()
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(known), _PROBES))
        solved = self._solve_new(signs, max(self.tol, _PROBED), quiet=True).solution
        more = signs * (solved - near.solve_once(signs)) / known[:, None]
        mean, noise = more.mean(axis=1), float(more.var(axis=1, ddof=1).mean()) / _PROBES
        typical, spread = float(mean.mean()), float(mean.var())
        trust = max(0.0, 1.0 - noise / spread) if spread > 0 else 0.0
        diagonal = known * (1.0 + typical + trust * (mean - typical))
        # Smaller differences between rows, relative to the noise, cannot be detected.
        unseen = np.sqrt(8.0 / len(mean))
        self.diagonal_error = float(np.hypot(np.sqrt(max(trust, unseen) * noise), _PROBED))
        return np.asarray(np.clip(diagonal, self._least_diagonal(), 1.0 / self._ridge))

    def _least_diagonal(self) -> FloatArray:
        """Return lower bounds of the diagonal of the inverse: eᵀN⁻¹e ≥ |e|⁴/eᵀNe."""
        ridge, diagonal = self._ridge, self._bank.combined_diagonal(self._weights)
        if not self._is_constant:
            return np.asarray(1.0 / (ridge + diagonal))
        rest = 1.0 - self._unit**2
        return np.asarray(self._unit**2 / ridge + rest**2 / (ridge * rest + diagonal))


class IterativeBank(TiledBank):
    """Kernels computed in tiles, and systems solved by conjugate gradients.

    Parameters are those of `TiledBank`.

    Notes
    -----
    Kernels have trace 1, so at most 1/ρ eigenvalues of their combination are above the ridge ρ.
    With a preconditioner of that rank, a system is solved in a few steps for any number of samples.
    With a smaller rank, the number of steps grows with the square root of the remaining trace / ρ.

    Most products have single precision if all kernels with nonzero weight are functions of squared
    distances. Residuals always have double precision (see `conjugate.solve_refined`).
    """

    tols: ClassVar[tuple[float, float]] = 1e-8, 1e-4
    needs_ridge = True
    has_matrices: ClassVar[bool] = False

    # ---- the combined kernel -----------------------------------------------------------------

    def single_engine(self, weights: FloatArray) -> Threads | None:
        """Return the engine of single precision, or None if it is slower or not accurate."""
        return self._engine.single(np.flatnonzero(weights).tolist())

    def combined_diagonal(self, weights: FloatArray) -> FloatArray:
        """Return the diagonal of Σ w_i K_i."""
        factors, diagonal = weights * self.scales, np.zeros(self.n_samples)
        for i in np.flatnonzero(weights):
            values = self._engine.kernels.kernels[i].diagonal(self._X)
            taken = self._engine.removed_means.get(int(i))
            for means in [self._means[i]] if taken is None else [taken.means, self._means[i]]:
                values = values - 2.0 * means + self.row_weights.means(means)
            diagonal += factors[i] * values
        return diagonal * self.row_weights.values

    # ---- systems -----------------------------------------------------------------------------

    def systems(self, weights: FloatArray) -> Callable[[float | FloatArray], System]:
        weights = weights.copy()
        return lambda ridge: self._new_system(weights, np.full(self.n_samples, ridge), self.tols[0])

    def _new_system(self, weights: FloatArray, diagonal: FloatArray, tol: float) -> System:
        factor = self.workspace.factor(weights, partial(self._factor, weights))
        subspace = self.workspace.subspace
        plain = self._without_workspace()
        return IterativeSystem(factor, subspace, plain, weights, diagonal, tol)

    def _factor(self, weights: FloatArray) -> PartialFactor:
        """Return the factor of the preconditioner."""
        engine, factors = self._engine, weights * self.scales
        centered = self._centered(factors)
        return PartialFactor(
            self.combined_diagonal(weights),
            lambda at: engine.columns(at, factors, centered),
            _largest_rank(self.n_samples),
        )

    def compressed(self, basis: FloatArray) -> FloatArray:
        # Solutions are close to the subspace in which a criterion searches: a good starting point.
        found = super().compressed(basis)
        self.workspace.keep_subspace(basis, found)
        return found

    # ---- operations that need n_samples² numbers ----------------------------------------------

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> NoReturn:
        self._refuse("matrix of the combined kernel", "criterion='margin'")

    def inverse(self, weights: FloatArray, ridge: float | FloatArray) -> NoReturn:
        self._refuse("inverse", "learning weights by criterion='loo'")

    def _refuse(self, what: str, who: str) -> NoReturn:
        n = self.n_samples
        raise InvalidInputError(
            f"bank='iterative' stores no matrix of n_samples², here {n:,} × {n:,} numbers, but "
            f"{who} needs the {what}. Use bank='tiled', which needs {16e-9 * n**2:.3g} GB, or "
            "criterion='rkda'."
        )

    def _kind_of_part(self, n_rows: int) -> Callable[..., TiledBank] | None:
        kind = super()._kind_of_part(n_rows)
        return IterativeBank if kind is not None and n_rows > _FACTORED_ROWS else kind


def _largest_rank(n: int) -> int:
    """Return the maximum rank of the preconditioner for n rows."""
    room = min(_FACTOR_BYTES, _MEMORY_SHARE * (memory_limit() or np.inf))
    wanted = min(max(n // _ROWS_A_RANK, _LEAST_RANK), _MOST_RANK)
    return max(1, min(n, wanted, int(room / (8 * n))))
