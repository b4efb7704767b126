"""The interface of banks: the candidate kernels on one training set.

A bank has no labels. It centres and normalizes kernels without a centred copy of each, and hides
how they are stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, matmul
from discernel.arrays.sample_weights import SampleWeights, row_weights
from discernel.bank.grams import Normalization
from discernel.bank.system import CholeskySystem, System, Workspace
from discernel.exceptions import InvalidInputError

if TYPE_CHECKING:
    from discernel.bank.features import FeatureBank


@dataclass(frozen=True, eq=False)
class Centering:
    """Centring in feature space with the means of the training set."""

    row_means: FloatArray
    grand_mean: float
    #: π, the share of each training row in the means; None for equal weights.
    shares: FloatArray | None = None
    #: Whether a constant may be subtracted from a row of the matrix, because centring removes it.
    ignores_constants: ClassVar[bool] = True

    def apply(self, cross: FloatArray) -> FloatArray:
        """Centre a matrix between new and training rows, in place, and return it."""
        means = cross.mean(axis=1) if self.shares is None else cross @ self.shares
        cross -= means[:, None]
        cross -= self.row_means - self.grand_mean
        return cross

    def of_product(self, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V' and b such that the centred matrix times V is the raw matrix times V' minus b.

        (k − mean(k)·1 − r)ᵀV = kᵀV' − rᵀV' for V' = V minus its column means, so the matrix need
        not be centred. As V' sums to 0, a constant may be subtracted from each row of the matrix.
        With weights, mean(k) is πᵀk, and V' = V − π1ᵀV.
        """
        if self.shares is None:
            vectors = vectors - vectors.mean(axis=0)
        else:
            vectors = vectors - np.outer(self.shares, vectors.sum(axis=0))
        return vectors, (self.row_means - self.grand_mean) @ vectors


@dataclass(frozen=True)
class Uncentered(Centering):
    """No centring."""

    row_means: FloatArray = field(default_factory=lambda: np.zeros(1))
    grand_mean: float = 0.0

    ignores_constants = False

    def apply(self, cross: FloatArray) -> FloatArray:
        return cross

    def of_product(self, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        return vectors, np.zeros(vectors.shape[1])


class Matrices(ABC):
    """Symmetric matrices K_i with weights: the kernels of a bank, or their compressions.

    Attributes
    ----------
    n_samples : int
        Number of rows.
    rounding : ndarray of shape (n_kernels,)
        Bound of the rounding error of ⟨B, K_iB⟩, relative to ‖B‖².
    row_weights : SampleWeights
        Weights of rows. Matrices are D C G_i Cᵀ D and vectors are DV (see
        `discernel.arrays.sample_weights`).
    """

    n_samples: int
    rounding: FloatArray
    #: Relative residuals of a `system` and of a rough one; 0 means rounding errors only.
    tols: ClassVar[tuple[float, float]] = (0.0, 0.0)
    #: Whether systems need a ridge, because they are not factored.
    needs_ridge: bool = False

    @property
    @abstractmethod
    def n_kernels(self) -> int:
        """The number of matrices with a weight."""

    @cached_property
    def row_weights(self) -> SampleWeights:
        """The weights of rows, by default 1."""
        return row_weights(None, self.n_samples)

    @property
    def total(self) -> float:
        """The number of rows, or the sum of their weights."""
        return self.row_weights.total

    @abstractmethod
    def products(self, vectors: FloatArray) -> FloatArray:
        """Return every K_iV, of shape (n_kernels, n_samples, n_vectors)."""

    @abstractmethod
    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return Σ w_i K_i as a new matrix, or in ``out``."""

    @abstractmethod
    def compressed(self, basis: FloatArray) -> FloatArray:
        """Return every SᵀK_iS for a basis S, of shape (n_kernels, n_columns, n_columns)."""

    # ---- systems -----------------------------------------------------------------------------

    @cached_property
    def workspace(self) -> Workspace:
        """Memory shared by the systems of these matrices."""
        return Workspace()

    def system(
        self, weights: FloatArray, ridge: float | FloatArray, *, rough: bool = False
    ) -> System:
        """Return the system diag(ridge) + Σ w_i K_i; ``ridge`` is a number, or one per sample.

        A rough system has at least three digits, in single precision if that is faster. The last
        system is cached, because the discriminant needs the last system of the learning.
        """
        diagonal = np.full(self.n_samples, ridge)
        return self.workspace.system(weights, diagonal, self.tols[rough], self._new_system)

    def check_factored(self) -> None:
        """Raise an error if systems cannot be solved without a ridge."""
        if self.needs_ridge:
            raise InvalidInputError(
                "regularization=0 needs kernel matrices that are factored, by bank='dense' or "
                f"'tiled' without a device. Got a {type(self).__name__}. Choose such a bank, or "
                "give a positive regularization."
            )

    def _new_system(self, weights: FloatArray, diagonal: FloatArray, tol: float) -> System:
        """Return a new system, solved to relative residuals of at most ``tol``."""
        # Not `self`: its workspace holds the system, which would be a reference cycle.
        plain = self._without_workspace()
        return self._factored(lambda memory: plain.combined(weights, memory), diagonal)

    def systems(self, weights: FloatArray) -> Callable[[float | FloatArray], System]:
        """Return a function from a ridge to its system. The matrices are combined only once."""
        self.workspace.forget()  # the first system takes its memory
        matrix = self.combined(weights)

        def copied(memory: FloatArray) -> FloatArray:
            np.copyto(memory, matrix)
            return memory

        return lambda ridge: self._factored(copied, ridge)

    def _factored(
        self,
        fill: Callable[[FloatArray], FloatArray],
        ridge: float | FloatArray,
        tol: float = 0.0,
        product: Callable[[FloatArray], FloatArray] | None = None,
    ) -> System:
        """Return the system of a matrix that ``fill`` writes to shared memory."""
        null = None if np.any(ridge) else self.row_weights.roots
        return self.workspace.lend(
            self.n_samples,
            lambda memory: CholeskySystem(lambda: fill(memory), ridge, null, tol, product),
        )

    def _without_workspace(self) -> Self:
        """Return a copy that shares everything except the workspace."""
        plain = copy(self)
        plain.__dict__.pop("workspace", None)
        return plain


class StoredMatrices(Matrices):
    """Stored symmetric matrices, neither centred nor normalized.

    Parameters
    ----------
    matrices : ndarray of shape (n_kernels, n_samples, n_samples)
        K_i. With weights of rows, they are multiplied by the square roots on both sides.
    rounding : ndarray of shape (n_kernels,), optional
        As in `Matrices`; 0 by default.
    sample_weights : SampleWeights, optional
        The weights of rows.
    """

    def __init__(
        self,
        matrices: FloatArray,
        rounding: FloatArray | None = None,
        sample_weights: SampleWeights | None = None,
    ) -> None:
        self.n_samples = matrices.shape[1]
        rows = self.row_weights = row_weights(sample_weights, self.n_samples)
        self.rounding = np.zeros(len(matrices)) if rounding is None else rounding
        self._matrices = matrices if rows.is_equal else matrices * rows.roots[:, None] * rows.roots

    @property
    def n_kernels(self) -> int:
        return len(self._matrices)

    def products(self, vectors: FloatArray) -> FloatArray:
        return np.asarray(self._matrices @ vectors)

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
        n = self.n_samples
        flat = None if out is None else out.ravel()
        return np.dot(weights, self._matrices.reshape(-1, n * n), out=flat).reshape(n, n)

    def compressed(self, basis: FloatArray) -> FloatArray:
        return np.asarray(basis.T @ self._matrices @ basis)


class WithIdentity(Matrices):
    """The matrix K_0 = I / `total` followed by other matrices, to learn λ as a weight.

    In section 4 of [Ye08]_, θ_0 multiplies the identity, whose trace is r_0 = n_samples, or the sum
    of the weights of rows.

    Parameters
    ----------
    others : Matrices
        The kernels of a bank.
    """

    def __init__(self, others: Matrices) -> None:
        self._others = others
        self.n_samples, self.row_weights = others.n_samples, others.row_weights
        self.rounding = np.concatenate([[0.0], others.rounding])  # a multiple of ‖B‖² itself

    @property
    def n_kernels(self) -> int:
        return 1 + self._others.n_kernels

    def products(self, vectors: FloatArray) -> FloatArray:
        identity = (vectors / self.total)[None]
        return np.concatenate([identity, self._others.products(vectors)])

    def compressed(self, basis: FloatArray) -> FloatArray:
        identity = matmul(basis.T, basis)[None] / self.total
        return np.concatenate([identity, self._others.compressed(basis)])

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
        matrix = self._others.combined(weights[1:], out)
        matrix[np.diag_indices_from(matrix)] += weights[0] / self.total
        return matrix

    def system(
        self, weights: FloatArray, ridge: float | FloatArray, *, rough: bool = False
    ) -> System:
        return self._others.system(weights[1:], ridge + weights[0] / self.total, rough=rough)


class Bank(Matrices):
    """The candidate kernels G̃_i, centred and normalized.

    Attributes
    ----------
    n_samples : int
        Number of training rows.
    n_candidates : int
        Number of all candidates, including dropped ones that are constant on the training set.
    names : list of str
        Names of the candidates.
    kept : ndarray of shape (n_kernels,)
        The positions of the kernels among the candidates. Weights are over these.
    scales : ndarray of shape (n_kernels,)
        Factors that normalize the raw matrices.
    """

    #: Whether many values of λ, with leave-one-out errors, cost about as much as one.
    cheap_path: bool = False
    #: Whether the bank has `combined` and `inverse`, of n_samples² numbers.
    has_matrices: ClassVar[bool] = True

    n_candidates: int
    names: list[str]
    normalization: Normalization = "centered_trace"
    kept: NDArray[np.intp]
    scales: FloatArray
    #: Positions of the training rows that are landmarks of all kernels, if known.
    landmark_rows: NDArray[np.intp] | None = None

    @property
    def n_kernels(self) -> int:
        """The number of kernels with a weight."""
        return len(self.kept)

    @abstractmethod
    def traces(self) -> FloatArray:
        """Return the traces of the centred, normalized kernels."""

    def norms(self) -> FloatArray:
        """Return upper bounds of the eigenvalues of the centred, normalized kernels."""
        return self.traces()

    @abstractmethod
    def inner(self, matrix: FloatArray) -> FloatArray:
        """Return ⟨G̃_i, S⟩_F for every kernel and one symmetric matrix S."""

    def inverse(self, weights: FloatArray, ridge: float | FloatArray) -> System:
        """Return the system with its inverse, for about the cost of three factorizations."""
        self.workspace.forget()
        return self.workspace.lend(
            self.n_samples,
            lambda memory: CholeskySystem(
                lambda: self.combined(weights, memory), ridge, inner_products=self.inner
            ),
        )

    @abstractmethod
    def inner_products(self) -> FloatArray:
        """Return ⟨G̃_i, G̃_j⟩_F, of shape (n_kernels, n_kernels)."""

    @abstractmethod
    def subset(self, rows: NDArray[np.intp]) -> Bank:
        """Return the bank of a subset of the samples, centred and normalized again.

        The candidates of the new bank are the kernels of this bank. Kernels that are constant on
        the subset are dropped without a warning.
        """

    @abstractmethod
    def select(self, positions: NDArray[np.intp]) -> Bank:
        """Return the bank of a subset of the kernels, without centring or normalizing again.

        Candidates and names are those of this bank.
        """

    def _select(self, positions: NDArray[np.intp], *per_kernel: str) -> Self:
        """Return a copy with some entries of the attributes that have one entry per kernel."""
        part = self._without_workspace()
        for name in ("kept", "scales", "rounding", *per_kernel):
            part.__dict__[name] = self.__dict__[name][positions]
        return part

    @abstractmethod
    def centering(self, weights: FloatArray) -> Centering:
        """Return the centring of the combined kernel between new rows and the training rows."""

    @abstractmethod
    def check_definite(self) -> None:
        """Raise an error if a candidate is not positive semidefinite.

        Called after a factorization failed, to find the reason.
        """

    def predicting(self) -> FeatureBank | None:
        """Return the bank whose features predict new rows, or None if kernels predict."""
        return None

    @property
    def is_exact(self) -> bool:
        """Whether all weights have kernel matrices, which predict new rows too."""
        return self.has_matrices and self.predicting() is None

    def expand(self, values: FloatArray) -> FloatArray:
        """Convert values of the kernels to values of the candidates, 0 for dropped ones."""
        full = np.zeros(self.n_candidates)
        full[self.kept] = values
        return full

    def coefficients(self, weights: FloatArray) -> FloatArray:
        """Return the factors of the raw candidates in the combined kernel."""
        return self.expand(weights * self.scales)

    @property
    def _kept_names(self) -> list[str]:
        return [self.names[index] for index in self.kept]

    def _part_options(self, rows: NDArray[np.intp]) -> dict[str, Any]:
        """Return the options of the bank of a subset of the samples."""
        weights = self.row_weights.subset(rows)
        return {"normalization": self.normalization, "part": True, "sample_weights": weights}

    def _centering(self, row_means: FloatArray, grand_mean: float) -> Centering:
        """Return the centring of a kernel with these row means."""
        shares = None if self.row_weights.is_equal else self.row_weights.shares
        return Centering(row_means, grand_mean, shares)
