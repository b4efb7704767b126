"""Random Fourier features of kernels of differences [Rahimi07]_."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, as_rows
from discernel.exceptions import InvalidInputError
from discernel.kernels.base import Kernel
from discernel.kernels.features.base import FeatureMap
from discernel.kernels.terms import single_atom

__all__ = ["FourierMap"]


class FourierMap(FeatureMap):
    """φ(x) = √(c/D)·(cos Wx, sin Wx) of D frequencies W, the rows of which have the kernel's law.

    φ(x)·φ(z) is the kernel on average over W, exactly c = k(x, x) where x = z, and off by about
    c/√D elsewhere. The frequencies of `RBF` are Gaussian, those of `Laplace` of Cauchy's law.

    Parameters
    ----------
    kernel : Kernel
        `RBF` or `Laplace`, resolved; on columns, standardized, named or scaled too.
    n_columns : int
        The columns of the rows.
    rank : int
        The number of features, 2D: even and at least 2.
    orthogonal : bool, default=True
        Whether the frequencies of `RBF` are at right angles, n_columns at a time, which makes the
        error smaller. Those of `Laplace` never are: its law is not that of a ball.
    random_state : int, default=0
        Draws the frequencies.

    Attributes
    ----------
    frequencies : ndarray of shape (n_columns_of_kernel, D)
        Wᵀ.
    """

    def __init__(
        self,
        kernel: Kernel,
        n_columns: int,
        rank: int,
        *,
        orthogonal: bool = True,
        random_state: int = 0,
    ) -> None:
        if rank < 2 or rank % 2:
            raise InvalidInputError(f"The rank of Fourier features must be even. Got {rank!r}.")
        found = single_atom(kernel.terms())
        factor, atom = (1.0, None) if found is None else found
        if atom is None or atom.pair.kind not in ("squared", "city") or atom.function.kind != "exp":
            raise InvalidInputError(
                "Fourier features are for RBF and Laplace kernels, on columns, standardized, named "
                f"or scaled too. Got {kernel!r}. Use NystromMap."
            )
        n_seen, (exponent,) = len(atom.view.seen(n_columns).columns), atom.function.numbers
        rng, shape = np.random.default_rng(random_state), (n_seen, rank // 2)
        if atom.pair.kind == "city":
            self.frequencies: FloatArray = exponent * rng.standard_cauchy(shape)
        else:
            drawn = _orthogonal(shape, rng) if orthogonal else rng.standard_normal(shape)
            self.frequencies = np.sqrt(2.0 * exponent) * drawn
        self.kernel, self._amplitude = kernel, float(np.sqrt(factor / shape[1]))

    @property
    def rank(self) -> int:
        return 2 * int(self.frequencies.shape[1])

    @property
    def halved(self) -> NDArray[np.intp]:
        n = self.frequencies.shape[1]
        few = np.arange((n + 1) // 2)
        return np.concatenate([few, n + few])

    def write(self, X: Any, out: FloatArray) -> None:
        rows = as_rows(self.kernel.terms()[0].atoms[0].view.of(X))
        angles, half = rows @ self.frequencies, self.rank // 2
        np.cos(angles, out=out[:, :half])
        np.sin(angles, out=out[:, half:])
        out *= self._amplitude


def _orthogonal(shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Return Gaussian columns that are orthogonal in blocks: right angles, Gaussian lengths."""
    n_columns, n = shape
    blocks = []
    for _ in range(-(-n // n_columns)):
        q, r = np.linalg.qr(rng.standard_normal((n_columns, n_columns)))
        q *= np.sign(np.diagonal(r))  # of the uniform law
        blocks.append(q * np.sqrt(rng.chisquare(n_columns, n_columns)))
    return np.ascontiguousarray(np.concatenate(blocks, axis=1)[:, :n])
