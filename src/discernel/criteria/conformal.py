"""Class separability of a data-dependent kernel: the criterion of Xiong et al. (2005).

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

import numpy as np

from discernel.backend import FloatArray, matmul
from discernel.targets import ClassTarget

__all__ = ["ConformalSeparability", "factor_design"]


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
