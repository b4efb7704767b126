"""Criteria for learning kernel weights, as objects and by name.

A criterion makes a program with value, gradient, Hessian, bound and other methods that solvers
need. The algorithms are in `discernel.solvers`.
"""

from typing import Any

from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.papers.akfd.criterion import AKFD
from discernel.papers.alignment.criterion import Alignment
from discernel.papers.margin.criterion import Margin
from discernel.papers.separability.criterion import Separability
from discernel.programs.base import (
    ConicModel,
    ConvexProgram,
    Criterion,
    Point,
    Program,
    Split,
    offers,
    relative_gap,
)
from discernel.programs.fdr import FisherRatio
from discernel.programs.least_squares import KernelLeastSquares, LeastSquares, LeftOutRows
from discernel.programs.loo import Auto, LeaveOneOut
from discernel.programs.rkda import RKDA
from discernel.programs.uniform import GivenWeights, Uniform

__all__ = [
    "AKFD",
    "CRITERIA",
    "RKDA",
    "Alignment",
    "Auto",
    "ConicModel",
    "ConvexProgram",
    "Criterion",
    "FisherRatio",
    "GivenWeights",
    "KernelLeastSquares",
    "LeastSquares",
    "LeaveOneOut",
    "LeftOutRows",
    "Margin",
    "Point",
    "Program",
    "Separability",
    "Split",
    "Uniform",
    "as_criterion",
    "offers",
    "relative_gap",
    "takes_two_classes",
]

#: Criteria by name.
CRITERIA: dict[str, type[Criterion]] = {
    made.name: made
    for made in (
        Auto,
        RKDA,
        FisherRatio,
        AKFD,
        Alignment,
        Margin,
        Separability,
        LeaveOneOut,
        Uniform,
    )
}


def as_criterion(criterion: Any) -> Criterion:
    """Return a criterion given by name or as an object, or raise a clear error.

    Parameters
    ----------
    criterion : str or Criterion
        A name stands for the criterion with its default options.
    """
    if isinstance(criterion, Criterion):
        return criterion
    if isinstance(criterion, str):
        if criterion not in CRITERIA:
            raise unknown_choice("criterion", criterion, list(CRITERIA))
        return CRITERIA[criterion]()
    raise InvalidInputError(
        f"The criterion must be one of {', '.join(map(repr, CRITERIA))} or an object of "
        f"discernel.criteria. Got {criterion!r} of type {type(criterion).__name__}. A criterion of "
        "your own is a subclass of discernel.criteria.Criterion."
        + (" Call the class to make one." if isinstance(criterion, type) else "")
    )


def takes_two_classes(criterion: Any) -> bool:
    """Return whether a criterion is for two classes only; False for an invalid criterion.

    Parameters
    ----------
    criterion : str or Criterion
        The parameter ``criterion`` of an estimator.
    """
    try:
        return as_criterion(criterion).takes == "two classes"
    except InvalidInputError:
        return False
