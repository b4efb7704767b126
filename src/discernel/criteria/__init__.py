"""The equations of each paper: value, gradient, Hessian, bound. No iterations here."""

from discernel.criteria.base import Criterion, Point, relative_gap
from discernel.criteria.fdr import FisherRatio
from discernel.criteria.least_squares import KernelLeastSquares
from discernel.criteria.loo import LeaveOneOut
from discernel.criteria.rkda import RKDA, JointRKDA, ShrunkRKDA
from discernel.criteria.screening import DualBall, dual_ball

__all__ = [
    "RKDA",
    "Criterion",
    "DualBall",
    "FisherRatio",
    "JointRKDA",
    "KernelLeastSquares",
    "LeaveOneOut",
    "Point",
    "ShrunkRKDA",
    "dual_ball",
    "relative_gap",
]
