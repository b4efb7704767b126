"""The equations of each paper: value, gradient, Hessian, bound. No iterations here."""

from discernel.criteria.base import Criterion, Point, relative_gap
from discernel.criteria.fdr import FisherRatio
from discernel.criteria.least_squares import KernelLeastSquares
from discernel.criteria.loo import LeaveOneOut
from discernel.criteria.rkda import RKDA, JointRKDA, ShrunkRKDA

__all__ = [
    "RKDA",
    "Criterion",
    "FisherRatio",
    "JointRKDA",
    "KernelLeastSquares",
    "LeaveOneOut",
    "Point",
    "ShrunkRKDA",
    "relative_gap",
]
