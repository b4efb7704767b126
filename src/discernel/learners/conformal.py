"""The factor of a data-dependent kernel that separates the classes best, Xiong et al. (2005)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from discernel.backend import FloatArray
from discernel.criteria.conformal import ConformalSeparability

__all__ = ["ConformalFactor", "ascend", "maximize"]

#: The least ridge of `maximize`, as a share of the mean diagonal: without it, the scatter within
#: the classes may be singular, and J without bound.
_LEAST_RIDGE = 1e-10


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
