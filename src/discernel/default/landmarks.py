"""Landmarks for a sum of kernels of known weights, drawn where the fit still has errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Cholesky, FloatArray, draw_rows, n_rows
from discernel.bank.system import WoodburySystem
from discernel.kernels.features import draw_landmarks
from discernel.kernels.weighted import WeightedKernels
from discernel.targets import Target

#: Rows, in multiples of the landmarks, that landmarks are looked for among; drawn at random.
_POOL = 8
#: The share of the landmarks that there are before each round. The first are drawn uniformly.
_SHARES = (1 / 3, 1 / 2, 3 / 4)
#: What is added to k(z, z), as a share of the largest: landmarks may represent each other.
_JITTER = 1e-10


def residual_landmarks(
    X: Any,
    kernel: WeightedKernels,
    target: Target,
    rank: int,
    regularization: float,
) -> NDArray[np.intp]:
    """Return the positions of different rows that a fit of some rank needs most, rising.

    A third of them is drawn uniformly. Then a row comes in proportion to what it adds to the fit,
    as far as its neighbours do not know: ‖B_i‖²E_ii, with the dual B = (T − f(X))/λ of the fit so
    far and what its features leave of k(x, x), E. Narrow kernels have far more directions than
    landmarks; those that a boundary between classes does not need are spared. The same rows give
    the same landmarks.

    Parameters
    ----------
    X : array or CSR of shape (n_samples, n_features)
        The training rows.
    kernel : WeightedKernels
        The kernel, normalised to a centred trace of 1 over the rows.
    target : Target
        What is to be predicted.
    rank : int
        How many landmarks.
    regularization : float
        λ, about that of the fit to all rows.
    """
    rng = np.random.default_rng(0)
    drawn = draw_rows(np.arange(n_rows(X)), _POOL * rank)
    pool = drawn[draw_landmarks(X[drawn], len(drawn))]
    if len(pool) <= rank:
        return np.asarray(pool)
    rows, truth = X[pool], target.truth[pool]
    targets, own = truth - truth.mean(axis=0), kernel.diagonal(rows)
    columns = np.empty((len(pool), 0))
    # The kernel has trace 1 over all samples, of which the rows are a part.
    ridge = regularization * len(pool) / n_rows(X)
    chosen = rng.permutation(len(pool))[: max(1, int(_SHARES[0] * rank))]
    for share in (*_SHARES[1:], 1.0):
        new = chosen[columns.shape[1] :]
        if len(new):
            columns = np.concatenate([columns, kernel(rows, rows[new])], axis=1)
        weights = _needs(columns, chosen, own, targets, ridge)
        weights[chosen] = 0.0
        n = min(int(share * rank) - len(chosen), int(np.count_nonzero(weights)))
        if n > 0:
            new = rng.choice(len(pool), n, replace=False, p=weights / weights.sum())
            chosen = np.concatenate([chosen, new])
    return np.sort(pool[chosen])


def _needs(
    columns: FloatArray,
    chosen: NDArray[np.intp],
    own: FloatArray,
    targets: FloatArray,
    ridge: float,
) -> FloatArray:
    """Return ‖B_i‖²E_ii of every row, up to a factor.

    From the columns of the kernel at the landmarks that were chosen, and k(x, x), ``own``.
    """
    small = np.ascontiguousarray(columns[chosen])
    small[np.diag_indices_from(small)] += _JITTER * own.max()
    features = Cholesky(small).half_solve(np.asfortranarray(columns.T))
    left = np.maximum(own - np.einsum("ij,ij->j", features, features), 0.0)
    features -= features.mean(axis=1, keepdims=True)
    dual = ridge * WoodburySystem(features, ridge).solve_once(targets)
    return np.asarray(np.einsum("ij,ij->i", dual, dual) * left)
