"""Systems that are solved by products and a rough inverse, to a residual that is known."""

from __future__ import annotations

import hashlib
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from discernel.arrays import FloatArray, matmul
from discernel.bank.conjugate import Solved, solve_refined
from discernel.bank.preconditioner import PartialFactor
from discernel.bank.system import System
from discernel.bank.woodbury import WoodburySystem
from discernel.exceptions import ConvergenceWarning, NumericalError

__all__ = ["IterativeSystem", "Operator", "RefinedSystem"]

Product = Callable[[FloatArray], FloatArray]

#: What may be left of the trace by the preconditioner, over the ridge: the condition is then below
#: 1.25, and every step is worth a digit.
_LEFT = 0.25
#: The relative residual of probes.
_PROBED = 1e-3
#: Random columns for the diagonal of the inverse.
_PROBES = 64
#: The share of the energy of a right-hand side that a guess must have to be worth a pass.
_WORTHWHILE = 0.1
#: Rounding of a residual over the condition of the system.
_ROUNDING = 1e-14
#: The relative residual above which nothing was solved.
_USELESS = 0.5
#: The relative residual of what only says where to go.
_ROUGH = 1e-4
#: Columns whose solutions are remembered.
_REMEMBERED = 64


class RefinedSystem(System):
    """A system whose solutions cost products.

    Columns that were solved are remembered: the discriminant asks for those that learning has
    ended with.

    Parameters
    ----------
    tol : float
        The length of a residual over that of its right-hand side, at which it is solved.
    least_ridge : float
        The least of the ridge.
    """

    def __init__(self, tol: float, least_ridge: float) -> None:
        self.tol, self._least_ridge = tol, least_ridge
        self._known: dict[bytes, tuple[float, FloatArray, FloatArray]] = {}

    @abstractmethod
    def _refined(self, right: FloatArray, enough: FloatArray) -> Solved:
        """Return solutions with residuals as short as asked for, or as far as arithmetic goes."""

    @abstractmethod
    def _advice(self, reached: float, tol: float) -> str:
        """Return what to say of a relative residual that is longer than asked for."""

    def solve(self, right: FloatArray) -> FloatArray:
        return self._solved(right, self.tol)[0]

    def solve_roughly(self, right: FloatArray) -> FloatArray:
        return self._solved(right, max(self.tol, _ROUGH))[0]

    def solve_residual(self, right: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        return self._solved(right, self.tol)

    def expect(self, right: FloatArray) -> None:
        self._solved(right, self.tol)

    def _solve_new(self, right: FloatArray, tol: float, *, quiet: bool = False) -> Solved:
        """Return solutions of columns that are not known; warn, or raise, of long residuals."""
        # Rounding of products leaves a residual that grows with the condition of the system.
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
        """Return solution and residual of every column, those that are known from memory."""
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
            if len(new) <= _REMEMBERED:
                self._remember([keys[column] for column in new], tol, found)
        return solution, residual

    def _remember(self, keys: list[bytes], tol: float, found: Solved) -> None:
        for position, key in enumerate(keys):
            self._known.pop(key, None)
            self._known[key] = tol, found.solution[:, position], found.residual[:, position]
        while len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]


@dataclass(frozen=True)
class Operator:
    """K = Σ w_i K_i as a system sees it.

    Attributes
    ----------
    double, single : callable
        From V to KV, in double and in single precision; None where that is not faster.
    diagonal : ndarray of shape (n_samples,)
        That of K.
    kernel : ndarray of shape (n_samples,)
        The unit vector that centring makes an eigenvector of eigenvalue 0.
    subspace : tuple of ndarray or None
        An orthonormal S and SᵀKS, where guesses are looked for.
    """

    double: Product
    single: Product | None
    diagonal: FloatArray
    kernel: FloatArray
    subspace: tuple[FloatArray, FloatArray] | None = None


class IterativeSystem(RefinedSystem):
    """N = diag(ridge) + K, solved by preconditioned conjugate gradients, column by column.

    Parameters
    ----------
    operator : Operator
        K.
    ridge : ndarray of shape (n_samples,)
        Above 0.
    factor : PartialFactor
        Of K, for the preconditioner; grown as far as this ridge asks for.
    tol : float
        The length of a residual over that of its right-hand side, at which it is solved.

    Attributes
    ----------
    n_passes : int
        Products so far.
    diagonal_error : float or None
        The standard error of `inverse_diagonal`, as a share of the entries and in the mean over
        them; None before it is asked for.
    """

    by_iteration: ClassVar[bool] = True

    def __init__(
        self, operator: Operator, ridge: FloatArray, factor: PartialFactor, tol: float
    ) -> None:
        super().__init__(tol, float(ridge.min()))
        self.n_passes = 0
        self._operator, self._ridge, self._factor = operator, ridge, factor
        self._is_constant = bool((ridge == ridge[0]).all())

    @cached_property
    def _preconditioner(self) -> WoodburySystem:
        self._factor.extend(_LEFT * self._least_ridge)
        return WoodburySystem(self._factor.factor, self._ridge)

    def _double(self, V: FloatArray) -> FloatArray:
        self.n_passes += 1
        return self._ridge[:, None] * V + self._operator.double(V)

    def _single(self, V: FloatArray) -> FloatArray:
        self.n_passes += 1
        single = self._operator.single or self._operator.double
        return self._ridge[:, None] * V + single(V)

    # ---- solving -----------------------------------------------------------------------------

    def _refined(self, right: FloatArray, enough: FloatArray) -> Solved:
        right = np.ascontiguousarray(right)
        along, rest = np.zeros_like(right), right
        if self._is_constant:  # what the kernel does not see is known
            unit = self._operator.kernel
            along = np.outer(unit, unit @ right)
            rest = right - along
        found = solve_refined(
            self._double,
            None if self._operator.single is None else self._single,
            self._preconditioner.solve_once,
            rest,
            enough,
            self._guess(rest),
        )
        return Solved(found.solution + along / self._least_ridge, found.residual, found.lengths)

    def _guess(self, right: FloatArray) -> FloatArray | None:
        """Return the best of a subspace, where that is worth the pass that its residual costs."""
        if self._operator.subspace is None:
            return None
        basis, seen = self._operator.subspace
        small = seen + basis.T @ (self._ridge[:, None] * basis)
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
        """Return about the diagonal of the inverse; `diagonal_error` says how good it is.

        With P the preconditioner that has the diagonal of N too, that of P⁻¹ is known, and what
        N⁻¹ has besides is estimated from random columns z of ±1, as the mean of
        z∘(N⁻¹ − P⁻¹)z ([Bekas07]_), in units of the former. The differences between rows are
        shrunk by what the spread over the columns says is noise.
        """
        return self._diagonal

    @cached_property
    def _diagonal(self) -> FloatArray:
        self._preconditioner  # noqa: B018  # grows the factor
        near = WoodburySystem(self._factor.factor, self._ridge + self._factor.left)
        known = near.inverse_diagonal()
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(known), _PROBES))
        solved = self._solve_new(signs, max(self.tol, _PROBED), quiet=True).solution
        more = signs * (solved - near.solve_once(signs)) / known[:, None]
        mean, noise = more.mean(axis=1), float(more.var(axis=1, ddof=1).mean()) / _PROBES
        typical, spread = float(mean.mean()), float(mean.var())
        trust = max(0.0, 1.0 - noise / spread) if spread > 0 else 0.0
        diagonal = known * (1.0 + typical + trust * (mean - typical))
        # Differences between rows that are smaller than this share of the noise are not seen.
        unseen = np.sqrt(8.0 / len(mean))
        self.diagonal_error = float(np.hypot(np.sqrt(max(trust, unseen) * noise), _PROBED))
        return np.asarray(np.clip(diagonal, self._least_diagonal(), 1.0 / self._ridge))

    def _least_diagonal(self) -> FloatArray:
        """Return what no entry of the diagonal of the inverse is below: eᵀN⁻¹e ≥ |e|⁴/eᵀNe."""
        square = self._operator.kernel**2
        if not self._is_constant:
            return np.asarray(1.0 / (self._ridge + self._operator.diagonal))
        rest = 1.0 - square
        return np.asarray(
            square / self._ridge + rest**2 / (self._ridge * rest + self._operator.diagonal)
        )
