"""The algorithms: from a criterion to weights. Only `align_kernels` sees X."""

from discernel.learners.alignment_parameters import AlignedKernels, align_kernels
from discernel.learners.columns import Columns
from discernel.learners.conic import QCQP, SDP
from discernel.learners.galerkin import Galerkin
from discernel.learners.learn import learn, learn_kernel, learn_part
from discernel.learners.margin import InteriorPoint
from discernel.learners.newton import Newton
from discernel.learners.path import RegularizationPath, regularization_path
from discernel.learners.request import SOLVERS, Request, make_request
from discernel.learners.silp import SILP
from discernel.learners.solution import (
    Candidate,
    LearnedKernel,
    Progress,
    Solution,
    Solver,
    Status,
    Task,
)
from discernel.learners.spectrum import ReweighedSpectrum, reweigh_spectrum

__all__ = [
    "QCQP",
    "SDP",
    "SILP",
    "SOLVERS",
    "AlignedKernels",
    "Candidate",
    "Columns",
    "Galerkin",
    "InteriorPoint",
    "LearnedKernel",
    "Newton",
    "Progress",
    "RegularizationPath",
    "Request",
    "ReweighedSpectrum",
    "Solution",
    "Solver",
    "Status",
    "Task",
    "align_kernels",
    "learn",
    "learn_kernel",
    "learn_part",
    "make_request",
    "regularization_path",
    "reweigh_spectrum",
]
