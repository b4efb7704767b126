"""The algorithms: from a criterion to weights. Only `align_kernels` sees X."""

from discernel.learn.learn import learn, learn_kernel, learn_part
from discernel.learn.path import RegularizationPath, regularization_path
from discernel.learn.request import SOLVERS, Request, make_request
from discernel.papers.alignment.parameters import AlignedKernels, align_kernels
from discernel.papers.margin.solver import InteriorPoint
from discernel.papers.separability.spectrum import ReweighedSpectrum, reweigh_spectrum
from discernel.programs.columns import Columns
from discernel.programs.conic import QCQP, SDP
from discernel.programs.galerkin import Galerkin
from discernel.programs.newton import Newton
from discernel.programs.silp import SILP
from discernel.programs.solution import (
    Candidate,
    LearnedKernel,
    Progress,
    Solution,
    Solver,
    Status,
    Task,
)

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
