"""Landmarks for a sum of kernels whose weights are known: where the fit still errs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Cholesky, FloatArray, draw_rows, matmul, n_rows
from discernel.bank.woodbury import feature_gram
from discernel.kernels.features import draw_landmarks
from discernel.kernels.weighted import WeightedKernels
from discernel.targets import Target

__all__ = ["residual_landmarks"]

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
    random_state: int = 0,
) -> NDArray[np.intp]:
    """Return the positions of different rows that a fit of some rank needs most, rising.

    A third of them is drawn uniformly. Then a row comes in proportion to what it adds to the fit,
    as far as its neighbours do not know: ‖B_i‖²E_ii, with the dual B = (T − f(X))/λ of the fit so
    far and what its features leave of k(x, x), E. Narrow kernels have far more directions than
    landmarks; those that a boundary between classes does not need are spared.

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
    random_state : int, default=0
        The same seed and rows give the same landmarks.
    """
    rng = np.random.default_rng(random_state)
    drawn = draw_rows(np.arange(n_rows(X)), _POOL * rank)
    pool = drawn[draw_landmarks(X[drawn], len(drawn))]
    if len(pool) <= rank:
        return np.asarray(pool)
    rows, own = X[pool], kernel.diagonal(X[pool])
    search = _Search(rows, kernel, own, _targets(target, pool), regularization, n_rows(X))
    chosen = rng.permutation(len(pool))[: max(1, int(_SHARES[0] * rank))]
    for share in (*_SHARES[1:], 1.0):
        if len(chosen) > search.n_landmarks:
            search.add(chosen[search.n_landmarks :])
        weights = search.needs()
        weights[chosen] = 0.0
        n = min(int(share * rank) - len(chosen), int(np.count_nonzero(weights)))
        if n > 0:
            new = rng.choice(len(pool), n, replace=False, p=weights / weights.sum())
            chosen = np.concatenate([chosen, new])
    return np.sort(pool[chosen])


def _targets(target: Target, rows: NDArray[np.intp]) -> FloatArray:
    """Return what is to be predicted for some rows, without the weights of rows, centred."""
    scores = target.scores[rows]
    if target.sample_weights is not None:
        scores = scores / target.sample_weights.roots[rows, None]
    return np.asarray(scores - scores.mean(axis=0))


class _Search:
    """Least-squares fits on more and more landmarks; every column of the kernel is made once."""

    def __init__(
        self,
        rows: Any,
        kernel: WeightedKernels,
        own: FloatArray,
        targets: FloatArray,
        regularization: float,
        n_samples: int,
    ) -> None:
        self._rows, self._kernel, self._own, self._targets = rows, kernel, own, targets
        # The kernel has trace 1 over all samples, of which the rows are a part.
        self._ridge = regularization * len(targets) / n_samples
        self._columns = np.empty((len(targets), 0))
        self._chosen = np.empty(0, dtype=np.intp)

    @property
    def n_landmarks(self) -> int:
        return len(self._chosen)

    def add(self, chosen: NDArray[np.intp]) -> None:
        """Make some rows landmarks."""
        new = self._kernel(self._rows, self._rows[chosen])
        self._columns = np.concatenate([self._columns, new], axis=1)
        self._chosen = np.concatenate([self._chosen, chosen])

    def needs(self) -> FloatArray:
        """Return ‖B_i‖²E_ii of every row, up to a factor."""
        small = np.ascontiguousarray(self._columns[self._chosen])
        small[np.diag_indices_from(small)] += _JITTER * self._own.max()
        features = Cholesky(small).half_solve(np.asfortranarray(self._columns.T))
        left = np.maximum(self._own - np.einsum("ij,ij->j", features, features), 0.0)
        features -= features.mean(axis=1, keepdims=True)
        gram = feature_gram(features)
        gram[np.diag_indices_from(gram)] += self._ridge
        beta = Cholesky(gram).solve(matmul(features, self._targets))
        dual = self._targets - matmul(features.T, np.ascontiguousarray(beta))
        return np.asarray(np.einsum("ij,ij->i", dual, dual) * left)
