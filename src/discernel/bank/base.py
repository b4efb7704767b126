"""The interface of banks: the candidate kernels on one training set.

A bank knows no labels. It centres and normalises without ever making a centred copy of a
candidate, and its callers never learn how the candidates are stored.
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

from discernel.arrays import Cholesky, FloatArray, matmul
from discernel.arrays.sample_weights import SampleWeights, row_weights
from discernel.bank.grams import Normalization
from discernel.bank.system import CholeskySystem, Inverse, System, Workspace
from discernel.exceptions import InvalidInputError

if TYPE_CHECKING:
    from discernel.bank.features import FeatureBank


@dataclass(frozen=True)
class Centering:
    """Centring in feature space with the statistics of the training set."""

    row_means: FloatArray
    grand_mean: float
    #: π, the share of each training row in the means; None where all count the same.
    shares: FloatArray | None = None
    #: Whether a number may be taken from a whole row: centring takes it anyway.
    ignores_constants: ClassVar[bool] = True

    def apply(self, cross: FloatArray) -> FloatArray:
        """Centre a matrix between new and training rows, in place, and return it."""
        means = cross.mean(axis=1) if self.shares is None else cross @ self.shares
        cross -= means[:, None]
        cross -= self.row_means - self.grand_mean
        return cross

    def of_product(self, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V' and b with which the centred matrix times V is the raw one times V', less b.

        (k − mean(k)·1 − r)ᵀV = kᵀV' − rᵀV' for V' = V less the means of its columns: the matrix
        need not be centred at all. As V' sums to 0, any number may be taken from a row of it.
        With weights, mean(k) is πᵀk, and V' = V − π1ᵀV.
        """
        if self.shares is None:
            vectors = vectors - vectors.mean(axis=0)
        else:
            vectors = vectors - np.outer(self.shares, vectors.sum(axis=0))
        return vectors, (self.row_means - self.grand_mean) @ vectors


@dataclass(frozen=True)
class Uncentered(Centering):
    """No centring: kernels as they are."""

    row_means: FloatArray = field(default_factory=lambda: np.zeros(1))
    grand_mean: float = 0.0

    ignores_constants = False

    def apply(self, cross: FloatArray) -> FloatArray:
        return cross

    def of_product(self, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        return vectors, np.zeros(vectors.shape[1])


class Matrices(ABC):
    """Symmetric matrices K_i that are given weights: the kernels of a bank, or their compressions.

    Attributes
    ----------
    n_samples : int
        Their rows.
    rounding : ndarray of shape (n_kernels,)
        How much ⟨B, K_iB⟩ can be wrong because of rounding, over ‖B‖².
    sample_weights : SampleWeights or None
        How much rows count; None where all count the same. Matrices then are D C G_i Cᵀ D, with
        which vectors DV go (see `discernel.arrays.sample_weights`).
    """

    n_samples: int
    rounding: FloatArray
    sample_weights: SampleWeights | None = None
    #: The relative residuals of a system, and of one of which three digits are enough; 0: rounding.
    tols: ClassVar[tuple[float, float]] = (0.0, 0.0)
    #: Whether systems cannot be solved without a ridge: those that are not factored.
    needs_ridge: bool = False

    @property
    @abstractmethod
    def n_kernels(self) -> int:
        """The number of matrices that weights are given to."""

    @cached_property
    def row_weights(self) -> SampleWeights:
        """The weights of rows; all 1 where none are given."""
        return row_weights(self.sample_weights, self.n_samples)

    @property
    def total(self) -> float:
        """The number of samples: of rows, or the sum of their weights."""
        return self.row_weights.total

    @property
    def effective(self) -> float:
        """The effective number of samples, (Σω)²/Σω² of their weights."""
        return self.row_weights.effective

    @abstractmethod
    def products(self, vectors: FloatArray) -> FloatArray:
        """Return every K_iV, of shape (n_kernels, n_samples, n_vectors)."""

    @abstractmethod
    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return Σ w_i K_i as a new matrix, or in the memory of ``out``."""

    @abstractmethod
    def compressed(self, basis: FloatArray) -> FloatArray:
        """Return every SᵀK_iS for a basis S, of shape (n_kernels, n_columns, n_columns)."""

    # ---- systems -----------------------------------------------------------------------------

    @cached_property
    def workspace(self) -> Workspace:
        """The memory that systems of these matrices share."""
        return Workspace()

    def system(self, weights: FloatArray, ridge: float | FloatArray) -> System:
        """Return diag(ridge) + Σ w_i K_i, factored; ``ridge`` is one number or one per sample.

        The last one is kept: the discriminant asks for the one that learning has ended with.
        """
        diagonal = np.full(self.n_samples, ridge)
        return self.workspace.system(weights, diagonal, self.tols[0], self._new_system)

    def check_factored(self) -> None:
        """Raise a clear error if systems cannot be solved without a ridge."""
        if self.needs_ridge:
            raise InvalidInputError(
                "regularization=0 needs kernel matrices that are factored, by bank='dense' or "
                f"'tiled' without a device. Got a {type(self).__name__}. Choose such a bank, or "
                "give a positive regularization."
            )

    def rough_system(self, weights: FloatArray, ridge: float) -> System:
        """Return `system`, in single precision where that is faster and good for three digits."""
        diagonal = np.full(self.n_samples, ridge)
        return self.workspace.system(weights, diagonal, self.tols[1], self._new_system)

    def _new_system(self, weights: FloatArray, diagonal: FloatArray, tol: float) -> System:
        """Return a system, solved to residuals of some relative length at most."""
        # Not `self`, whose workspace holds the system: the two would outlive everybody else.
        plain = self._without_workspace()
        return self._factored(lambda memory: plain.combined(weights, memory), diagonal)

    def systems(self, weights: FloatArray) -> Callable[[float | FloatArray], System]:
        """Return the function from a ridge to its system; the matrices are combined once."""
        self.workspace.forget()  # its memory is for the first of them
        matrix = self.combined(weights)

        def copied(memory: FloatArray) -> FloatArray:
            np.copyto(memory, matrix)
            return memory

        return lambda ridge: self._factored(copied, ridge)

    def _factored(
        self, fill: Callable[[FloatArray], FloatArray], ridge: float | FloatArray, tol: float = 0.0
    ) -> System:
        """Return the system of a matrix in some memory; of full rank where the ridge is 0."""
        null = None if np.any(ridge) else self.row_weights.roots
        return self.workspace.lend(
            self.n_samples,
            lambda memory: CholeskySystem(lambda: fill(memory), ridge, null, tol),
        )

    def _without_workspace(self) -> Self:
        """Return a copy that shares everything but memory."""
        plain = copy(self)
        plain.__dict__.pop("workspace", None)
        return plain


class StoredMatrices(Matrices):
    """Symmetric matrices that are stored, and used as they are: neither centred nor normalised.

    Parameters
    ----------
    matrices : ndarray of shape (n_kernels, n_samples, n_samples)
        K_i; with weights of rows, they are multiplied by the roots of these on both sides.
    rounding : ndarray of shape (n_kernels,), optional
        As of `Matrices`; by default 0.
    sample_weights : SampleWeights, optional
        The weights of rows.
    """

    def __init__(
        self,
        matrices: FloatArray,
        rounding: FloatArray | None = None,
        sample_weights: SampleWeights | None = None,
    ) -> None:
        self.n_samples, self.sample_weights = matrices.shape[1], sample_weights
        self.rounding = np.zeros(len(matrices)) if rounding is None else rounding
        if sample_weights is not None:
            matrices = matrices * sample_weights.roots[:, None] * sample_weights.roots
        self._matrices = matrices

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
    """K_0 = I / `total`, followed by other matrices, so that λ is learned as a weight.

    [Ye08]_ section 4: θ_0 multiplies the identity, whose trace is r_0 = n_samples; with weights of
    rows, their sum.

    Parameters
    ----------
    others : Matrices
        The kernels of a bank.
    """

    def __init__(self, others: Matrices) -> None:
        self._others = others
        self.n_samples, self.sample_weights = others.n_samples, others.sample_weights
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

    def system(self, weights: FloatArray, ridge: float | FloatArray) -> System:
        return self._others.system(weights[1:], ridge + weights[0] / self.total)

    def rough_system(self, weights: FloatArray, ridge: float) -> System:
        return self._others.rough_system(weights[1:], float(ridge + weights[0] / self.total))


class Bank(Matrices):
    """The candidates G̃_i, centred and normalised, that can carry weight.

    Attributes
    ----------
    n_samples : int
    n_candidates : int
        All candidates, also those left out because they are constant on the training set.
    names : list of str
        Their names.
    kept : ndarray of shape (n_kernels,)
        The positions of the kernels among the candidates. Weights are over these.
    scales : ndarray of shape (n_kernels,)
        What the raw matrices are multiplied by to normalise them.
    """

    #: Whether many λ, leave-one-out errors included, cost about as much as one.
    cheap_path: bool = False
    #: Whether there are `combined` and `inverse`, of n_samples² numbers.
    has_matrices: ClassVar[bool] = True

    n_candidates: int
    names: list[str]
    normalization: Normalization = "centered_trace"
    kept: NDArray[np.intp]
    scales: FloatArray
    #: Which training rows are landmarks of the features of all kernels, where that is known.
    landmark_rows: NDArray[np.intp] | None = None

    @property
    def n_kernels(self) -> int:
        """The number of kernels that weights are given to."""
        return len(self.kept)

    @abstractmethod
    def traces(self) -> FloatArray:
        """Return the traces of the centred, normalised kernels."""

    def norms(self) -> FloatArray:
        """Return numbers that no eigenvalue of the centred, normalised kernels is above."""
        return self.traces()

    @abstractmethod
    def inner(self, matrix: FloatArray) -> FloatArray:
        """Return ⟨G̃_i, S⟩_F for every kernel and one symmetric matrix S."""

    def inverse(self, weights: FloatArray, ridge: float | FloatArray) -> System:
        """Return `system` with its inverse, for about the price of three factorisations."""

        def make(memory: FloatArray) -> Inverse:
            matrix = self.combined(weights, memory)
            matrix[np.diag_indices_from(matrix)] += ridge
            return Inverse(Cholesky(matrix).inverse(), self.inner)

        self.workspace.forget()
        return self.workspace.lend(self.n_samples, make)

    @abstractmethod
    def inner_products(self) -> FloatArray:
        """Return ⟨G̃_i, G̃_j⟩_F, of shape (n_kernels, n_kernels)."""

    @abstractmethod
    def subset(self, rows: NDArray[np.intp]) -> Bank:
        """Return the same kernels on some of the samples, centred and normalised anew.

        Its candidates are the kernels of this bank, so its `expand` leads back to them. Those that
        are constant on these samples are left out, without a warning.
        """

    @abstractmethod
    def select(self, positions: NDArray[np.intp]) -> Bank:
        """Return some of the kernels as they are: nothing is centred or normalised anew.

        Weights are then over these; candidates and names are still those of this bank.
        """

    def _select(self, positions: NDArray[np.intp], *per_kernel: str) -> Self:
        """Return a copy that shares all but some attributes of one entry per kernel."""
        part = self._without_workspace()
        for name in ("kept", "scales", "rounding", *per_kernel):
            part.__dict__[name] = self.__dict__[name][positions]
        return part

    @abstractmethod
    def centering(self, weights: FloatArray) -> Centering:
        """Return the centring of the combined kernel between new rows and the training rows."""

    @abstractmethod
    def check_definite(self) -> None:
        """Raise a clear error if a candidate is not positive semidefinite.

        Called when a factorisation broke down, to find out why.
        """

    def predicting(self) -> FeatureBank | None:
        """Return the bank whose features predict new rows; None where kernels do."""
        return None

    def expand(self, values: FloatArray) -> FloatArray:
        """Return values of the kernels as values of the candidates, 0 for those left out."""
        full = np.zeros(self.n_candidates)
        full[self.kept] = values
        return full

    def coefficients(self, weights: FloatArray) -> FloatArray:
        """Return the factors of the raw candidates in the combined kernel."""
        return self.expand(weights * self.scales)

    @property
    def _kept_names(self) -> list[str]:
        return [self.names[index] for index in self.kept]

    def _weights_of(self, rows: NDArray[np.intp]) -> SampleWeights | None:
        return None if self.sample_weights is None else self.sample_weights.subset(rows)

    def _part_options(self, rows: NDArray[np.intp]) -> dict[str, Any]:
        """Return the options of the bank of some of the samples."""
        weights = self._weights_of(rows)
        return {"normalization": self.normalization, "part": True, "sample_weights": weights}

    def _centering(self, row_means: FloatArray, grand_mean: float) -> Centering:
        """Return the centring of a kernel whose rows have some means."""
        shares = None if self.sample_weights is None else self.sample_weights.shares
        return Centering(row_means, grand_mean, shares)
