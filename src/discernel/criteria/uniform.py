"""The plain average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from discernel.bank import Bank
from discernel.criteria.base import Criterion, Program
from discernel.targets import Target

__all__ = ["Uniform"]


class _EqualWeights(Program):
    """Nothing is to be found."""

    def __init__(self, n_weights: int) -> None:
        self._n_weights = n_weights

    @property
    def n_weights(self) -> int:
        return self._n_weights


@dataclass(frozen=True)
class Uniform(Criterion):
    """Equal weights: the plain average of the normalised kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.criteria import Uniform
    >>> learned = learn_kernel(grams, y[::3], criterion=Uniform(), regularization=0.01)
    >>> learned.criterion, learned.gap is None
    ('uniform', True)
    """

    name: ClassVar[str] = "uniform"
    solvers: ClassVar[tuple[str, ...]] = ("none",)
    regularization_is: ClassVar[Literal["apart"]] = "apart"
    weighs_samples: ClassVar[bool] = True

    def program(self, bank: Bank, target: Target, regularization: float | None) -> Program:
        return _EqualWeights(bank.n_kernels)
