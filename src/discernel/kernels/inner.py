"""Linear, polynomial and cosine kernels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from discernel.arrays import FloatArray, as_rows, is_sparse, typical_row
from discernel.exceptions import InvalidInputError, check_count, is_positive
from discernel.kernels.base import Kernel, Known
from discernel.kernels.pairs import COSINE, INNER
from discernel.kernels.terms import Atom, Monomial, Term, Terms, View


@dataclass(frozen=True, repr=False)
class Linear(Kernel):
    """Linear kernel ⟨x, z⟩, or ⟨x − o, z − o⟩ with an origin o set by `shifted`.

    Parameters
    ----------
    origin : tuple of float, optional
        o, one number for each feature. Set internally; centring removes its effect.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> Linear()(rows)
    array([[1., 1., 0.],
           [1., 2., 2.],
           [0., 2., 4.]])
    """

    origin: tuple[float, ...] | None = field(default=None, metadata={"private": True})

    @property
    def name(self) -> str:
        return f"{type(self).__name__}()"

    def _terms(self, view: View) -> Terms:
        return (Term(1.0, (Atom(INNER, view.then("origin", self.origin)),)),)

    def _shifted(self, X: Any, view: View) -> Kernel:
        # Subtracting an origin makes rows dense, and an opaque subclass may be any kernel.
        if is_sparse(X) or self.is_opaque:
            return self
        return replace(self, origin=tuple(typical_row(as_rows(view.of(X))).tolist()))

    def __repr__(self) -> str:
        if self.origin is None:
            return self.name
        origin = ", ".join(f"{value:.4g}" for value in self.origin)
        return f"{type(self).__name__}(origin=({origin}))"


@dataclass(frozen=True)
class Polynomial(Kernel):
    """Polynomial kernel (coef0 + gamma ⟨x, z⟩)^degree, as in [Pothin06]_ with coef0 = 1.

    Parameters
    ----------
    degree : int, default=2
        The degree, at least 1.
    gamma : float or None, default=1.0
        Factor of the inner product, positive. None means 1 / n_features, as in scikit-learn.
    coef0 : float, default=1.0
        The constant, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> Polynomial(degree=2, gamma=1.0, coef0=1.0)(rows)
    array([[ 4.,  4.,  1.],
           [ 4.,  9.,  9.],
           [ 1.,  9., 25.]])
    """

    differentiable = ("gamma", "coef0")

    degree: int = 2
    gamma: float | None = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        check_count("The degree of Polynomial", self.degree)
        if not (self.gamma is None or is_positive(self.gamma)):
            raise InvalidInputError(
                "The gamma of Polynomial must be positive, or None for 1 / n_features. "
                f"Got {self.gamma!r}."
            )
        if not (self.coef0 == 0 or is_positive(self.coef0)):
            raise InvalidInputError(
                "The coef0 of Polynomial must be at least 0; otherwise the kernel is not positive "
                f"semidefinite. Got {self.coef0!r}."
            )

    def _resolve(self, X: Any, frame: Any | None, known: Known) -> Kernel:
        return replace(self, gamma=1.0 / X.shape[1]) if self.gamma is None else self

    def _terms(self, view: View) -> Terms:
        if self.gamma is None:
            raise self._unresolved()
        function = Monomial(self.gamma, self.coef0, int(self.degree))
        return (Term(1.0, (Atom(INNER, view, function),)),)

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        base, (gamma, coef0, _) = INNER.entries(X, Z), self.terms()[0].atoms[0].function.numbers
        outer = self.degree * (coef0 + gamma * base) ** (int(self.degree) - 1)
        return np.asarray(outer * base if parameter == "gamma" else outer)


@dataclass(frozen=True)
class Cosine(Kernel):
    """Cosine of the angle between two rows; 0 for a row of zeros.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> Cosine()(rows).round(2)
    array([[1.  , 0.71, 0.  ],
           [0.71, 1.  , 0.71],
           [0.  , 0.71, 1.  ]])
    """

    def _terms(self, view: View) -> Terms:
        return (Term(1.0, (Atom(COSINE, view),)),)
