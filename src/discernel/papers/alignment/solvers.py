"""Solvers that maximize the alignment over the weights, greedily or exactly.

They are the algorithms of Pothin and Richard (2006), sections 2 and 3, and only need inner products
between kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from discernel.arrays import FloatArray
from discernel.papers.alignment.criterion import alignment, best_pair
from discernel.programs.simplex import normalize
from discernel.programs.solution import Solution, Status, Task

#: Eigenvalues of M below this share of the largest are rounding errors.
_NOISE = 1e-15


class GreedyPath(NamedTuple):
    """The result of `greedy`.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,)
        μ, at least 0, with any scale.
    alignments : tuple of float
        The alignment after each step, in increasing order.
    order : tuple of int
        The kernels in the order in which they were added.
    """

    weights: FloatArray
    alignments: tuple[float, ...]
    order: tuple[int, ...]


def greedy(M: FloatArray, f: FloatArray, epsilon: float, *, norm: float = 1.0) -> GreedyPath:
    """Maximize the alignment by adding one kernel at a time, Table 1 of [Pothin06]_.

    It starts with the best kernel. Then it adds the kernel with the best pair of weights for the
    sum so far and this kernel, Eq. (7) and (8), until no kernel increases the alignment by more
    than ε.

    Parameters
    ----------
    M : ndarray of shape (n_kernels, n_kernels)
        ⟨K_i, K_j⟩_F.
    f : ndarray of shape (n_kernels,)
        ⟨K_i, K*⟩_F.
    epsilon : float
        ε, the smallest increase of the alignment.
    norm : float, default=1.0
        ‖K*‖_F; 1 if f is for a target of length 1.

    Returns
    -------
    GreedyPath
        Weights, alignments, order.

    Notes
    -----
    A step takes n_kernels² operations, and there are at most n_kernels steps.
    """
    squares = np.diag(M)
    singles = alignment(squares[:, None, None], f[:, None], np.ones((len(f), 1)), norm)
    chosen, value, pair = int(np.argmax(singles)), float(np.max(singles)), np.array([0.0, 1.0])
    weights, left = np.zeros(len(f)), np.ones(len(f), dtype=bool)
    alignments, order = [], []
    while True:
        weights *= pair[0]
        weights[chosen] = pair[1]
        left[chosen] = False
        alignments.append(value)
        order.append(chosen)
        rest = np.flatnonzero(left)
        if len(rest) == 0:
            break
        squares_of_pairs, strengths = _pairs(M, f, weights, rest)
        pairs = best_pair(squares_of_pairs, strengths)
        values = np.asarray(alignment(squares_of_pairs, strengths, pairs, norm))
        best = int(values.argmax())
        if not values[best] - value > epsilon:
            break
        chosen, value, pair = int(rest[best]), float(values[best]), pairs[best]
    return GreedyPath(weights, tuple(alignments), tuple(order))


def _pairs(
    M: FloatArray, f: FloatArray, weights: FloatArray, rest: NDArray[np.intp]
) -> tuple[FloatArray, FloatArray]:
    """Return the inner products of the pairs (Σ μ_iK_i, K_j) for every remaining j, Eq. (8)."""
    crosses = M @ weights
    squares, strengths = np.empty((len(rest), 2, 2)), np.empty((len(rest), 2))
    squares[:, 0, 0], squares[:, 1, 1] = weights @ crosses, M[rest, rest]
    squares[:, 0, 1] = squares[:, 1, 0] = crosses[rest]
    strengths[:, 0], strengths[:, 1] = f @ weights, f[rest]
    return squares, strengths


def qp(M: FloatArray, f: FloatArray, lam: float = 0.0) -> FloatArray:
    """Return argmax of −μᵀ(M + λI)μ + fᵀμ over μ ≥ 0, Eq. (6) of [Pothin06]_.

    With λ = 0, μ has the largest alignment.

    Parameters
    ----------
    M : ndarray of shape (n_kernels, n_kernels)
        ⟨K_i, K_j⟩_F, positive semidefinite.
    f : ndarray of shape (n_kernels,)
        ⟨K_i, K*⟩_F.
    lam : float, default=0.0
        λ.

    Returns
    -------
    ndarray of shape (n_kernels,)
        μ, with exact zeros; all zeros only if no kernel has a positive alignment with the target.

    Notes
    -----
    With M + λI = RᵀR and Rᵀb = f/2 it is the non-negative least-squares problem min ‖Rμ − b‖².
    Kernels are first scaled to length 1, so that polynomials of high degree and duplicates do not
    reduce the accuracy: first-order conditions hold to about 1e-13 of the largest f. The paper
    reports that general solvers fail here.
    """
    lengths = np.sqrt(np.maximum(np.diag(M) + lam, 0.0))
    used = np.flatnonzero(lengths > 0)
    weights, lengths = np.zeros(len(f)), lengths[used]
    scaled = (M + lam * np.eye(len(M)))[np.ix_(used, used)] / np.outer(lengths, lengths)
    values, vectors = np.linalg.eigh(scaled)
    # Raising eigenvalues that are rounding errors changes M by rounding errors. Dropping them would
    # change f, whose component along them is as large as their square root.
    roots = np.sqrt(np.maximum(values, _NOISE * values[-1]))
    right = vectors.T @ (f[used] / (2.0 * lengths)) / roots
    weights[used] = nnls(roots[:, None] * vectors.T, right)[0] / lengths
    return weights


@dataclass(frozen=True)
class Greedy:
    """Maximize the alignment by adding one kernel at a time, Table 1 of [Pothin06]_.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import Greedy
    >>> learned = learn_kernel(
    ...     grams, y[::3], criterion="alignment", solver=Greedy(), regularization=0.01
    ... )
    >>> learned.solver, learned.status.value
    ('greedy', 'approximate by design')
    """

    name: ClassVar[str] = "greedy"
    needs: ClassVar[tuple[str, ...]] = ("M", "f", "norm", "epsilon")

    def solve(self, program: Any, task: Task) -> Solution:
        path = greedy(program.M, program.f, program.epsilon, norm=program.norm)
        weights = normalize(path.weights)
        for iteration, value in enumerate(path.alignments):
            task.monitor(iteration, value, None, weights)
        n_iter = len(path.order)
        return Solution(weights, path.alignments[-1], -np.inf, Status.APPROXIMATE, n_iter)


@dataclass(frozen=True)
class QuadraticProgram:
    """Maximize the alignment exactly, by the quadratic program (6) of [Pothin06]_.

    Weights are equal if no kernel has a positive alignment with the target.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import QuadraticProgram
    >>> learned = learn_kernel(
    ...     grams, y[::3], criterion="alignment", solver=QuadraticProgram(), regularization=0.01
    ... )
    >>> learned.solver, learned.status.value
    ('qp', 'converged')
    """

    name: ClassVar[str] = "qp"
    needs: ClassVar[tuple[str, ...]] = ("M", "f", "lam", "alignment")

    def solve(self, program: Any, task: Task) -> Solution:
        weights = normalize(qp(program.M, program.f, program.lam))
        value = program.alignment(weights)
        task.monitor(0, value, None, weights)
        return Solution(weights, value, -np.inf, Status.CONVERGED, 1)
