"""`rkda` with a pull towards equal weights: options, and what they build."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discernel.bank import Bank
from discernel.criteria import RKDA, Criterion, JointRKDA, ShrunkRKDA
from discernel.exceptions import InvalidInputError, check_number
from discernel.learners.request import Request
from discernel.targets import Target

__all__ = ["Shrinkage", "build_rkda"]


@dataclass(frozen=True)
class Shrinkage:
    """The criterion ``"rkda"`` with its weights shrunk towards equal ones; convex and certified.

    Where kernels are many and samples few, the optimum of [Ye08]_ can be far worse than the plain
    average, and this is what lies between. ``"auto"`` tries some amounts by itself.

    Parameters
    ----------
    amount : float, default=0.1
        What (1/2)‖w − 1/p‖² is multiplied by, relative to p times the value at equal weights. 0
        is [Ye08]_; the larger, the closer the weights are to equal.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import RBF
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [RBF(width=s)(scale(X)) for s in (1, 4, 16)]
    >>> for amount in (0.0, 0.1, 1.0):
    ...     learned = learn_kernel(grams, y, criterion=Shrinkage(amount), regularization=1e-3)
    ...     print(learned.weights.round(2), learned.gap <= 1e-6)
    [0.4  0.54 0.07] True
    [0.41 0.48 0.11] True
    [0.39 0.37 0.24] True
    """

    amount: float = 0.1
    name: ClassVar[str] = "rkda"
    #: The others solve the programs of the paper, without shrinkage. Cuts could stand for its
    #: square, but some thousand of them are needed: a minute for 13 samples.
    solvers: ClassVar[tuple[str, ...]] = ("galerkin", "newton")

    def __post_init__(self) -> None:
        check_number("amount of Shrinkage", self.amount)

    def check(self, solver: str, regularization: float | str) -> None:
        """Raise a clear error if shrinkage does not go with the rest of what is asked for."""
        if self.amount > 0 and (solver not in self.solvers or regularization == "joint"):
            raise InvalidInputError(
                f"Shrinkage must go with a solver of {list(self.solvers)} and a regularization "
                f"that is a number or 'loo'. Got solver='{solver}' and "
                f"regularization={regularization!r}."
            )


def build_rkda(
    bank: Bank, target: Target, regularization: float | None, request: Request
) -> Criterion:
    """Return the criterion: λ given or learnt with the weights, with shrinkage or without."""
    if regularization is None:
        return JointRKDA(bank, target)
    shrinkage: Shrinkage = request.options
    if shrinkage.amount > 0:
        return ShrunkRKDA(bank, target, regularization, shrinkage.amount)
    return RKDA(bank, target, regularization)
