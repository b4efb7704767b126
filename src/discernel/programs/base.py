"""Base classes of criteria and of their programs, which are functions of the kernel weights.

A `Criterion` is a value of the parameter ``criterion``: ``RKDA()``, ``Alignment(epsilon=1e-2)``.
From kernels, a target and λ it makes a `Program`, which a solver minimizes over the simplex, or
over the weights that `Program.contains` and `Program.normalize` allow. Solvers do not know
criteria. They only call methods of the program:

=================== ======================================= ====================================
method              result                                  solvers that need it
=================== ======================================= ====================================
``at``              value, gradient, Hessian and bound      ``newton``, ``silp``, conic solvers
``restricted``      the program with its dual point in a    ``galerkin``, with ``subspace``,
                    subspace                                ``rough_at`` and ``estimate``
``paths``           steps to weights off the simplex        ``newton`` and ``galerkin``, for
                                                            ``RKDA(norm=2)``
``select``          the program of some of its kernels      ``columns``, with ``dual_ball``
``sdp``, ``qcqp``   the paper's conic programs              ``sdp``, ``sdp_approximate``,
                                                            ``qcqp``
``weights``         known weights (an attribute)            ``none``
=================== ======================================= ====================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from discernel.arrays import FloatArray
from discernel.bank import Bank, Matrices, Normalization
from discernel.exceptions import InvalidInputError
from discernel.programs.least_squares import KernelLeastSquares
from discernel.programs.simplex import normalize
from discernel.targets import ClassTarget, Target


class Point(ABC):
    """A convex program at some weights; derivatives and bound are computed on access.

    Attributes
    ----------
    weights : ndarray of shape (n_weights,)
    value : float
        The value, to be minimized.
    gradient : ndarray of shape (n_weights,)
    hessian : ndarray of shape (n_weights, n_weights)
    bound : float
        A lower bound of the value over all allowed weights.
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
        # By convexity, the minimum of the tangent over the simplex is a lower bound.
        return self.intercept + float(self.gradient.min())

    @property
    def error(self) -> float:
        """An upper bound of the exact value minus ``value``; infinite if unknown.

        It covers rounding errors and inexact solutions of linear systems.
        """
        return 0.0

    @property
    def intercept(self) -> float:
        """The intercept of the tangent: ``intercept + gradient @ w`` is below the value at w."""
        return self.value - float(self.gradient @ self.weights)

    @property
    def gap(self) -> float:
        """An upper bound of the distance to the minimum, relative to the value."""
        return relative_gap(self.value, self.bound, self.error)


def relative_gap(value: float, bound: float, error: float = 0.0) -> float:
    """Return the largest possible distance of ``value`` from the optimum, relative to ``value``.

    A value below the bound means that one of the two is wrong, by at least their difference,
    which therefore counts as a gap too.

    Parameters
    ----------
    value, bound : float
        Upper and lower bound of the optimum.
    error : float, default=0.0
        How far the exact value can be above ``value``.
    """
    if not np.isfinite(value):
        return np.inf
    return float((abs(value - bound) + error) / max(abs(value), 1e-300))


@dataclass(frozen=True, eq=False)
class Split:
    """The weights of a program, split into kernel weights and other learned numbers.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,)
        Kernel weights.
    regularization : float or None
        The learned λ; None if the program does not learn it.
    at_floor : bool
        Whether this λ is the smallest one allowed.
    parameters : dict of str to float
        Other learned numbers, by name.
    """

    weights: FloatArray
    regularization: float | None = None
    at_floor: bool = False
    parameters: dict[str, float] = field(default_factory=dict)


class Program(ABC):
    """A criterion for given kernels and a target, as a function of the weights.

    Attributes
    ----------
    bank : Matrices
        The kernels. A program without a bank overrides `n_weights`.
    allowed : str
        The rule of `contains`, for messages.
    """

    bank: Matrices
    allowed: ClassVar[str] = "are at least 0 and sum to 1"

    @property
    def n_weights(self) -> int:
        """The number of weights."""
        return self.bank.n_kernels

    def contains(self, weights: FloatArray) -> bool:
        """Return whether weights are allowed: by default at least 0, with the sum 1."""
        return bool((weights >= 0).all()) and abs(float(weights.sum()) - 1.0) <= 1e-6

    def normalize(self, weights: FloatArray) -> FloatArray:
        """Return allowed weights in proportion to others: by default with the sum 1."""
        return normalize(weights)

    def objective(self, value: float) -> float:
        """Return the objective as defined in the paper, from the value that is minimized."""
        return value

    def split(self, weights: FloatArray) -> Split:
        """Return the kernel weights, and λ if the program learns it."""
        return Split(weights)


class ConvexProgram(Program):
    """A program whose value is a convex function of the weights, to be minimized."""

    @abstractmethod
    def at(self, weights: FloatArray) -> Point:
        """Return value, derivatives and bound of the program at some weights."""


@dataclass(frozen=True, eq=False)
class ConicModel:
    """A program written for CVXPY.

    Attributes
    ----------
    problem : cvxpy.Problem
        The problem to solve.
    weights : callable
        Returns the weights of the solved problem; None if there is no solution.
    bound : callable
        Returns a lower bound of the program, from the dual solution of the problem.
    """

    problem: Any
    weights: Callable[[], FloatArray | None]
    bound: Callable[[], float]


def offers(program: Program, *names: str) -> bool:
    """Return whether a program has all of these methods."""
    return all(getattr(program, name, None) is not None for name in names)


class Criterion(ABC):
    """Base class of the criteria for kernel weights.

    A string such as ``"rkda"`` stands for an object of a subclass with default options. Objects of
    your own subclasses are accepted wherever these strings are.

    Attributes
    ----------
    name : str
        The name in messages and results.
    solvers : tuple of str
        The names of the solvers for this criterion; the first is the default.
    normalization : {"centered_trace", "trace"}
        The normalization of the kernels in the bank.
    regularizations : tuple of str
        Accepted strings for λ: ``"loo"`` chooses λ by leave-one-out; ``"joint"`` learns λ with the
        weights, and `program` then gets None as λ.
    regularization_is : {"given", "apart", "learned"}
        The role of λ. ``"given"``: the weights depend on it. ``"apart"``: the weights do not
        depend on it, and are computed once for all λ. ``"learned"``: the solver chooses λ itself,
        unless a number is given.
    takes : {"anything", "classes", "two classes"}
        The targets that it is defined for; ``"anything"`` includes label sets and numbers.
    balanced : bool
        Whether the discriminant gives equal weight to classes instead of samples.
    weighs_samples : bool
        Whether it supports sample weights. The matrices of the bank and the columns of the target
        already contain them, so that few programs need to handle them.
    only_products : bool
        Whether it uses only products, traces and linear systems of the kernels, so that low-rank
        features can replace them.
    by_target : bool
        Whether every target has weights and λ of its own.
    pull : float
        The strength of a penalty on unequal weights, if the criterion has one.
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
    by_target: ClassVar[bool] = False
    pull: float = 0.0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.name:
            cls.name = cls.__name__

    @abstractmethod
    def program(self, bank: Bank, target: Target, regularization: float | None) -> Program:
        """Return the program for some kernels and a target.

        Parameters
        ----------
        bank : Bank
            The kernels, normalized as `normalization` says.
        target : Target
            The classes, label sets or numbers to predict.
        regularization : float or None
            λ; None if it is to be learned.
        """

    def on_bank(self, bank: Bank) -> Criterion:
        """Return the criterion adapted to the candidate kernels of a bank, or raise an error.

        Parameters
        ----------
        bank : Bank
            All candidates on all training rows; `program` may get a part of it.
        """
        return self

    def check(self, solver: str, regularization: float | str) -> None:  # noqa: B027  # most need none
        """Raise a clear error if a solver or λ is incompatible with the options."""

    def check_target(self, target: Target, regularization: float | str) -> None:
        """Raise a clear error if the criterion is not defined for a target."""
        if not target.row_weights.is_equal and not self.weighs_samples:
            raise InvalidInputError(
                f"criterion='{self.name}' does not declare that it takes sample weights. Got some, "
                "by sample_weight or class_weight. Leave them out, use another criterion, or set "
                "weighs_samples = True in its class if its program uses only products of the bank "
                "and columns of the target."
            )
        if not target.n_classes:
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
                f"{target.n_classes}: {cast(ClassTarget, target).classes.tolist()}. Use "
                "criterion='rkda', which takes any number of classes."
            )

    def sample_ridge(self, target: Target, regularization: float) -> FloatArray:
        """Return the ridge of each sample.

        This is λ for [Ye08]_, whose scatter counts samples, and λ times the class size for
        [Kim06]_, whose scatter is the sum of the class covariances. Sample weights are not part of
        it: the bank and the target contain them.
        """
        if self.balanced:
            return regularization * target.own_sizes
        return np.full(target.n_samples, regularization)

    def least_squares(
        self,
        bank: Bank,
        weights: FloatArray,
        target: Target,
        regularization: float,
        scores: FloatArray | None = None,
    ) -> KernelLeastSquares:
        """Return the least-squares fit of the target, or of other scores, with a sum of kernels."""
        ridge = self.sample_ridge(target, regularization)
        return KernelLeastSquares.of(bank.system(weights, ridge), ridge, target, scores)


# ---- parts of the samples ----------------------------------------------------------------------

#: The smallest part of the samples on which a search starts.
_LEAST_START = 300


class Part(NamedTuple):
    """Kernels and target of some of the samples.

    Attributes
    ----------
    bank : Bank
        The kernels that vary on these samples. `Bank.expand` maps their weights to weights of all
        kernels.
    target : Target
        The target of these samples.
    """

    bank: Bank
    target: Target

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """Mask of the kernels that are constant on these samples, so their weight is unknown."""
        return ~np.isin(np.arange(self.bank.n_candidates), self.bank.kept)


def draw_part(bank: Bank, target: Target, share: float, random_state: Any) -> Part | None:
    """Return a random share of the samples; None if no kernel varies on them.

    A ``random_state`` of None means 0, so that the same data give the same kernel.
    """
    rows = target.draw(share, check_random_state(0 if random_state is None else random_state))
    part = bank.subset(rows)
    return Part(part, target.subset(rows)) if part.n_kernels else None


def draw_start(
    bank: Bank, target: Target, few: int, random_state: Any, *, one_in: int = 3, most: int = 600
) -> Part | None:
    """Return a part of more than ``few`` samples, on which a search starts; None for fewer.

    The part has one in so many of the samples, within limits.
    """
    n = target.n_samples
    if n <= few:
        return None
    return draw_part(bank, target, min(max(n // one_in, _LEAST_START), most) / n, random_state)
