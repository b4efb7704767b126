"""Criteria, and the programs that they become: functions of the kernel weights.

A `Criterion` is a value of the parameter ``criterion``: ``RKDA()``, ``Alignment(epsilon=1e-2)``.
With kernels, a target and λ it becomes a `Program`, which a solver minimises over the simplex.
Solvers know no criterion: they call the methods that a program offers.

=================== ======================================= ====================================
offer               what it is                              who asks for it
=================== ======================================= ====================================
``at``              value, gradient, Hessian and bound      ``newton``, ``silp``, conic solvers
``restricted``      the program with its dual point in a    ``galerkin``
                    subspace, with ``near`` and ``estimate``
``few``             the program of some of its kernels,     ``columns``
                    with ``dual_ball``
``sdp``, ``qcqp``   the paper's conic programs              ``sdp``, ``sdp_approximate``,
                                                            ``qcqp``
``weights``         the weights, where they are known       ``none``
=================== ======================================= ====================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from discernel.arrays import FloatArray
from discernel.bank import Bank, Matrices, Normalization
from discernel.exceptions import InvalidInputError
from discernel.programs.least_squares import KernelLeastSquares
from discernel.targets import ClassTarget, Target


class Point(ABC):
    """A convex program at some weights. What is not asked for is not computed.

    Attributes
    ----------
    weights : ndarray of shape (n_weights,)
    value : float
        To be minimised.
    gradient : ndarray of shape (n_weights,)
    hessian : ndarray of shape (n_weights, n_weights)
    bound : float
        No weights on the simplex have a smaller value than this.
    """

    weights: FloatArray
    value: float

    @property
    @abstractmethod
    def gradient(self) -> FloatArray: ...

    @property
    def hessian(self) -> FloatArray:
        raise NotImplementedError(f"{type(self).__name__} is differentiable once, not twice.")

    @property
    def bound(self) -> float:
        # Convex, so nothing on the simplex is below the tangent's least value there.
        return self.intercept + float(self.gradient.min())

    @property
    def error(self) -> float:
        """An upper bound of the criterion at the weights less ``value``; infinite if unknown.

        Rounding, and whatever else keeps the value from being exact.
        """
        return 0.0

    @property
    def intercept(self) -> float:
        """The criterion is nowhere below ``intercept + gradient @ weights``."""
        return self.value - float(self.gradient @ self.weights)

    @property
    def gap(self) -> float:
        """An upper bound of the distance to the smallest value, relative to the value."""
        return relative_gap(self.value, self.bound, self.error)


def relative_gap(value: float, bound: float, error: float = 0.0) -> float:
    """Return how far ``value`` can be above the optimum, which is at least ``bound``.

    A value below the bound contradicts it: one of them is wrong, by as much at least.

    Parameters
    ----------
    value, bound : float
        They say that the optimum is between them.
    error : float, default=0.0
        How far the true value can be above ``value``.
    """
    if not np.isfinite(value):
        return np.inf
    return float((abs(value - bound) + error) / max(abs(value), 1e-300))


@dataclass(frozen=True)
class Split:
    """The weights of a program, split into kernel weights and other learned numbers.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,)
        Of the kernels, summing to 1.
    regularization : float or None
        λ, where the program has learned it too.
    at_floor : bool
        Whether that is the smallest λ allowed.
    parameters : dict of str to float
        What else was learned.
    """

    weights: FloatArray
    regularization: float | None = None
    at_floor: bool = False
    parameters: dict[str, float] = field(default_factory=dict)


class Program(ABC):
    """A criterion for given kernels and a target, to be solved for the weights.

    Attributes
    ----------
    bank : Matrices
        The kernels; a program that has none says `n_weights` itself.
    """

    bank: Matrices

    @property
    def n_weights(self) -> int:
        """The number of weights, which are at least 0 and sum to 1."""
        return self.bank.n_kernels

    def objective(self, value: float) -> float:
        """Return the value of the paper's own program from the value that is minimised."""
        return value

    def split(self, weights: FloatArray) -> Split:
        """Return the weights of the kernels, and λ where the program has learned it."""
        return Split(weights)


class ConvexProgram(Program):
    """A program whose value is a convex function of the weights, to be minimised."""

    @abstractmethod
    def at(self, weights: FloatArray) -> Point:
        """Return the program at some weights: its value, derivatives and bound."""


@dataclass(frozen=True)
class ConicModel:
    """A program written for CVXPY.

    Attributes
    ----------
    problem : cvxpy.Problem
        To be solved.
    weights : callable
        Returns the weights of the solved problem; None if there is no solution.
    bound : callable
        Returns what the solved problem proves that no weights fall below.
    """

    problem: Any
    weights: Callable[[], FloatArray | None]
    bound: Callable[[], float]


def offers(program: Program, *names: str) -> bool:
    """Whether a program has all of these methods."""
    return all(getattr(program, name, None) is not None for name in names)


class Criterion(ABC):
    """A rule to learn kernel weights by, which its `program` states.

    A string such as ``"rkda"`` stands for an object of a subclass with its defaults. One of your
    own goes wherever those do.

    Attributes
    ----------
    name : str
        For messages and results.
    solvers : tuple of str
        The names of solvers that it may be asked for with; the first is the default.
    normalization : {"centered_trace", "trace"}
        How the bank normalises the kernels for it.
    regularizations : tuple of str
        The words that may stand for λ: ``"loo"`` chooses it by leave-one-out, ``"joint"`` learns
        it with the weights, for which `program` is given None.
    regularization_is : {"given", "apart", "learned"}
        What λ is to the weights. ``"given"``: they depend on it. ``"apart"``: they do not, and
        are found once for all λ. ``"learned"``: its solver chooses λ itself, unless a number is
        given.
    takes : {"anything", "classes", "two classes"}
        What can be learned with it: classes, several labels or numbers to regress on.
    balanced : bool
        Whether the discriminant that goes with it weighs classes, not samples, equally.
    weighs_samples : bool
        Whether it takes weights of samples. They are in the matrices of the bank and the columns
        of the target, so that few programs need to know of them.
    only_products : bool
        Whether products, traces and systems are all that it asks of kernels: features of a low
        rank then serve as well.
    pull : float
        How strongly weights are pulled towards equal ones, where that can be said.
    """

    name: ClassVar[str] = ""
    solvers: ClassVar[tuple[str, ...]] = ("newton", "silp")
    normalization: ClassVar[Normalization] = "centered_trace"
    regularizations: ClassVar[tuple[str, ...]] = ("loo",)
    regularization_is: ClassVar[Literal["given", "apart", "learned"]] = "given"
    takes: ClassVar[Literal["anything", "classes", "two classes"]] = "anything"
    balanced: ClassVar[bool] = False
    weighs_samples: ClassVar[bool] = False
    only_products: ClassVar[bool] = False
    pull: float = 0.0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.name:
            cls.name = cls.__name__

    @abstractmethod
    def program(self, bank: Bank, target: Target, regularization: float | None) -> Program:
        """Return the program for some kernels, normalised as asked for, and a target.

        Parameters
        ----------
        bank : Bank
            The kernels.
        target : Target
            What is to be separated or predicted.
        regularization : float or None
            λ; None where it is to be learned.
        """

    def on_bank(self, bank: Bank) -> Criterion:
        """Return the criterion for the candidates of a bank, or raise a clear error.

        Parameters
        ----------
        bank : Bank
            All candidates on all training rows; `program` may be given parts of it.
        """
        return self

    def check(self, solver: str, regularization: float | str) -> None:  # noqa: B027  # most need none
        """Raise a clear error if a solver or a word for λ does not go with the options."""

    def check_target(self, target: Target, regularization: float | str) -> None:
        """Raise a clear error if the target cannot be learned as asked."""
        if target.sample_weights is not None and not self.weighs_samples:
            raise InvalidInputError(
                f"criterion='{self.name}' does not say that it takes weights of samples. Got some, "
                "by sample_weight or class_weight. Leave them out, use another criterion, or set "
                "weighs_samples = True in its class if its program needs nothing but the products "
                "of the bank and the columns of the target."
            )
        if not isinstance(target, ClassTarget):
            if self.takes != "anything":
                raise InvalidInputError(
                    f"criterion='{self.name}' is for {self.takes}. Got {target.kind}. Use "
                    "'auto', 'rkda', 'alignment', 'loo' or 'uniform'."
                )
            return
        if self.takes == "two classes" and target.n_classes != 2:
            raise InvalidInputError(
                "Only binary classification is supported: "
                f"criterion='{self.name}' is defined for two classes. Got "
                f"{target.n_classes}: {target.classes.tolist()}. Use criterion='rkda', which "
                "takes any number of classes."
            )

    def sample_ridge(self, target: Target, regularization: float) -> FloatArray:
        """Return λ times 1 for [Ye08]_, whose scatter counts samples.

        Times the class size for [Kim06]_, whose scatter is the sum of the class covariances.
        Weights of samples are not in it: they are in the bank and in the target.
        """
        if self.balanced and isinstance(target, ClassTarget):
            return regularization * target.sizes[target.codes].astype(np.float64)
        return np.full(target.n_samples, regularization)

    def least_squares(
        self,
        bank: Bank,
        weights: FloatArray,
        target: Target,
        regularization: float,
        scores: FloatArray | None = None,
    ) -> KernelLeastSquares:
        """Return the fit of the target, or of other scores of its rows, with a sum of kernels."""
        ridge = self.sample_ridge(target, regularization)
        scores = target.scores if scores is None else scores
        return KernelLeastSquares(bank.system(weights, ridge), ridge, scores, target.sample_weights)


# ---- parts of the samples ----------------------------------------------------------------------


class Part(NamedTuple):
    """Some of the samples.

    Attributes
    ----------
    bank : Bank
        The kernels on them; those that are constant there are left out. Its `Bank.expand` leads
        back to the kernels of all samples.
    target : Target
        What is to be separated.
    """

    bank: Bank
    target: Target

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """The kernels of all samples that are constant on these, with unknown weights."""
        return ~np.isin(np.arange(self.bank.n_candidates), self.bank.kept)


def draw_part(bank: Bank, target: Target, share: float, random_state: Any) -> Part | None:
    """Return a share of the samples, at random; None if no kernel varies on them.

    A ``random_state`` of None is 0: the same data give the same kernel.
    """
    rows = target.draw(share, check_random_state(0 if random_state is None else random_state))
    part = bank.subset(rows)
    return Part(part, target.subset(rows)) if part.n_kernels else None
