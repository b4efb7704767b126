"""Criteria with known weights, equal or given, and the solver that returns them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from discernel.arrays import FloatArray
from discernel.bank import Bank
from discernel.exceptions import InvalidInputError
from discernel.programs.base import Criterion, Program
from discernel.programs.simplex import normalize, uniform
from discernel.programs.solution import Solution, Status, Task
from discernel.targets import Target


@dataclass(frozen=True, eq=False)
class KnownWeights(Program):
    """A program with known weights, without anything to optimize."""

    weights: FloatArray

    @property
    def n_weights(self) -> int:
        return len(self.weights)


@dataclass(frozen=True)
class NoSolver:
    """Return the known weights of a program, without solving anything.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import NoSolver
    >>> learned = learn_kernel(
    ...     grams, y[::3], criterion="uniform", solver=NoSolver(), regularization=0.01
    ... )
    >>> learned.solver, learned.status.value
    ('none', 'nothing to optimise')
    """

    name: ClassVar[str] = "none"
    needs: ClassVar[tuple[str, ...]] = ("weights",)

    def solve(self, program: KnownWeights, task: Task) -> Solution:
        return Solution(program.weights, np.nan, -np.inf, Status.NO_PROGRAM, 0)


@dataclass(frozen=True)
class Uniform(Criterion):
    """Equal weights: the plain average of the normalized kernels.

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
    only_products: ClassVar[bool] = True

    def program(self, bank: Bank, target: Target, regularization: float | None) -> Program:
        return KnownWeights(uniform(bank.n_kernels))


@dataclass(frozen=True)
class GivenWeights(Uniform):
    """Fixed weights: only λ and the discriminant are learned.

    Parameters
    ----------
    weights : sequence of float, or mapping of str to float
        One number of at least 0 for each kernel; they are divided by their sum. Like learned
        weights, they refer to kernels normalized to the same trace. A mapping has names of kernels
        as keys; kernels that are not in it have weight 0.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import MultipleKernelDiscriminant
    >>> from discernel.kernels import RBF, Linear, Standardized
    >>> X, y = load_wine(return_X_y=True)
    >>> kernels = {"near": Standardized(RBF()), "line": Standardized(Linear())}
    >>> from discernel.criteria import GivenWeights
    >>> criterion = GivenWeights({"near": 3.0, "line": 1.0})
    >>> MultipleKernelDiscriminant(kernels, criterion=criterion).fit(X, y).kernel_weights_
    array([0.75, 0.25])
    """

    weights: Any

    name: ClassVar[str] = "given"

    def __post_init__(self) -> None:
        named = isinstance(self.weights, Mapping)
        given = list(self.weights.values()) if named else self.weights
        try:
            values = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.full(1, np.nan)
        if not (values.ndim == 1 and np.isfinite(values).all() and (values >= 0).all()):
            raise InvalidInputError(
                "The weights of GivenWeights must be a list of finite numbers of at least 0, one "
                f"per kernel, or a dictionary of such numbers by name. Got {self.weights!r}."
            )
        if not values.sum() > 0:
            raise InvalidInputError(
                "At least one of the weights of GivenWeights must be above 0. Got "
                f"{self.weights!r}."
            )
        numbers = values.tolist()
        kept = zip(map(str, self.weights), numbers, strict=True) if named else numbers
        object.__setattr__(self, "weights", tuple(kept))  # comparable and immutable

    def on_bank(self, bank: Bank) -> Criterion:
        """Return the criterion with the weights of the kernels that vary on the training rows."""
        given = np.array(self._by_position(bank.names))
        if len(given) != bank.n_candidates:
            raise InvalidInputError(
                f"GivenWeights needs one weight per kernel, here {bank.n_candidates}. Got "
                f"{len(given)}."
            )
        if not given[bank.kept].sum() > 0:
            raise InvalidInputError(
                "At least one kernel with a weight above 0 must vary on the training rows. Got "
                f"weights for {[bank.names[i] for i in np.flatnonzero(given)]} only, which are "
                "constant. Give other kernels weight."
            )
        return GivenWeights(given[bank.kept])

    def _by_position(self, names: list[str]) -> list[float]:
        """Return one weight per candidate, in the order of the candidates."""
        if not isinstance(self.weights[0], tuple):
            return list(self.weights)
        known = dict(self.weights)
        unknown = [name for name in known if name not in names]
        if unknown:
            raise InvalidInputError(
                f"The weights of GivenWeights must be those of the kernels {names}. Got {unknown}."
            )
        return [known.get(name, 0.0) for name in names]

    def program(self, bank: Bank, target: Target, regularization: float | None) -> Program:
        given = np.array(self._by_position(bank.names))
        if len(given) != bank.n_kernels:  # the bank is a part, without kernels constant on it
            given = given[bank.kept]
        return KnownWeights(normalize(given))  # equal if all remaining weights are 0
