"""The equations of each paper: value, gradient, Hessian, bound. No iterations here."""

from discernel.criteria.base import Criterion, Point, relative_gap
from discernel.criteria.fdr import FisherRatio
from discernel.criteria.least_squares import KernelLeastSquares
from discernel.criteria.rkda import RKDA, JointRKDA

__all__ = [
    "RKDA",
    "Criterion",
    "FisherRatio",
    "JointRKDA",
    "KernelLeastSquares",
    "Point",
    "relative_gap",
]
