"""The factor of a data-dependent kernel that separates the classes best, Xiong et al. (2005).

The kernel K(x, z) = q(x) q(z) k₀(x, z) stretches the feature space of k₀ where q is large. With
q(x) = α₀ + Σ_i α_i k₁(x, c_i), the vector of its values on the training rows is q = Dα, where the
rows of the design D are [1, k₁(x, c_1), ..., k₁(x, c_n)]. The criterion is

    J(α) = tr S_b / tr S_w

in the space that K spans. With A_ij = 1/n_c if samples i and j are both of class c and 0 else,

    tr S_b = (1/m) qᵀBq,   B = K₀ ∘ (A − 11ᵀ/m),
    tr S_w = (1/m) qᵀWq,   W = diag(K₀) − K₀ ∘ A,

so that J is the ratio of the quadratic forms of DᵀBD and DᵀWD. Both are positive semidefinite,
because a scatter is never negative. The paper writes two classes; nothing here depends on that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from discernel.arrays import FloatArray, matmul
from discernel.targets import ClassTarget

#: The least ridge of `maximize`, as a share of the mean diagonal: without it, the scatter within
#: the classes may be singular, and J without bound.
_LEAST_RIDGE = 1e-10


def factor_design(columns: FloatArray) -> FloatArray:
    """Return D, whose product with α is the factor q of every row.

    Parameters
    ----------
    columns : ndarray of shape (n_rows, n_centers)
        k₁ between rows and centres.
    """
    return np.column_stack([np.ones(len(columns)), columns])


class ConformalSeparability:
    """J as a function of α, [Xiong05]_.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        K₀.
    design : ndarray of shape (n_samples, n_coefficients)
        D.
    target : ClassTarget
        The classes.

    Attributes
    ----------
    between, within : ndarray of shape (n_coefficients, n_coefficients)
        (1/m) DᵀBD and (1/m) DᵀWD: tr S_b = αᵀ between α, tr S_w = αᵀ within α.
    """

    def __init__(self, gram: FloatArray, design: FloatArray, target: ClassTarget) -> None:
        # K₀ ∘ A and K₀ times D, one pass over K₀ each; neither B nor W is made.
        same = np.zeros_like(design)
        for code, count in enumerate(target.counts):
            rows = np.flatnonzero(target.codes == code)
            same[rows] = matmul(gram[np.ix_(rows, rows)], design[rows]) / count
        every = matmul(gram, design) / target.n_samples
        alone = np.diagonal(gram)[:, None] * design
        self.between = _symmetric(design.T @ (same - every)) / target.n_samples
        self.within = _symmetric(design.T @ (alone - same)) / target.n_samples

    def value(self, alpha: FloatArray) -> float:
        """Return J; infinite where no class has any width.

        Parameters
        ----------
        alpha : ndarray of shape (n_coefficients,)
            α, of any length but 0.
        """
        between, within = alpha @ self.between @ alpha, alpha @ self.within @ alpha
        return float(between / within) if within > 0 else np.inf

    def gradient(self, alpha: FloatArray) -> FloatArray:
        """Return ∂J/∂α = 2 (between − J within) α / (αᵀ within α).

        It is orthogonal to α, because J does not depend on the length of α.

        Parameters
        ----------
        alpha : ndarray of shape (n_coefficients,)
            α.
        """
        numerator, denominator = self.between @ alpha, self.within @ alpha
        scatter = alpha @ denominator
        ratio = (alpha @ numerator) / scatter
        return np.asarray(2.0 * (numerator - ratio * denominator) / scatter)


def _symmetric(matrix: FloatArray) -> FloatArray:
    return (matrix + matrix.T) / 2.0


# ---- the factor ----------------------------------------------------------------------------------


class ConformalFactor(NamedTuple):
    """What both ways of learning the factor return.

    Attributes
    ----------
    alpha : ndarray of shape (n_coefficients,)
        α, of length 1.
    value : float
        J at α.
    history : tuple of float
        J of the kernel as it was, and after each step.
    """

    alpha: FloatArray
    value: float
    history: tuple[float, ...]


def ascend(
    criterion: ConformalSeparability, *, rate: float = 0.01, n_steps: int = 200
) -> ConformalFactor:
    """Maximise J by gradient ascent that starts from the plain kernel, q = 1, [Xiong05]_.

    α ← α + η_t · ½ ∂J/∂α with η_t = η (1 − t/T), and back to length 1. Few short steps are what
    keeps the factor from fitting the training rows too closely: the maximum itself is that of
    `maximize`.

    Parameters
    ----------
    criterion : ConformalSeparability
        J.
    rate : float, default=0.01
        η.
    n_steps : int, default=200
        T.

    Returns
    -------
    ConformalFactor
        The best α of all steps: J is never below that of the plain kernel.
    """
    alpha = np.zeros(len(criterion.within))
    alpha[0] = 1.0
    best, history = alpha, [criterion.value(alpha)]
    for step in range(n_steps):
        if not np.isfinite(history[-1]):
            break  # the classes have no width left
        alpha = alpha + 0.5 * rate * (1.0 - step / n_steps) * criterion.gradient(alpha)
        alpha /= np.linalg.norm(alpha)
        value = criterion.value(alpha)
        if value > max(history):
            best = alpha
        history.append(value)
    return ConformalFactor(best, max(history), tuple(history))


def maximize(criterion: ConformalSeparability, *, ridge: float = 1e-3) -> ConformalFactor:
    """Maximise αᵀ between α / αᵀ(within + ρI)α exactly: an eigenvector of size n_coefficients.

    Parameters
    ----------
    criterion : ConformalSeparability
        J.
    ridge : float, default=1e-3
        ρ as a share of the mean diagonal of ``within``; at least 0. Larger means a smoother
        factor.

    Returns
    -------
    ConformalFactor
        Its value is J itself, without ρ.
    """
    size = len(criterion.within)
    scale = float(np.trace(criterion.within)) / size or 1.0
    shift = max(ridge, _LEAST_RIDGE) * scale * np.eye(size)
    last = (size - 1, size - 1)
    _, vectors = scipy.linalg.eigh(
        criterion.between, criterion.within + shift, subset_by_index=last
    )
    alpha = vectors[:, 0] / np.linalg.norm(vectors[:, 0])
    plain, value = criterion.value(np.eye(size)[0]), criterion.value(alpha)
    return ConformalFactor(alpha, value, (plain, value))
