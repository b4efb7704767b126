"""Learning kernel weights: from a bank, from matrices, from rows in memory and from chunks."""

from discernel.learn.learn import learn, learn_part
from discernel.learn.matrices import RegularizationPath, learn_kernel, regularization_path
from discernel.learn.request import Request, make_request
from discernel.papers.alignment.parameters import AlignedKernels, align_kernels
from discernel.papers.separability.spectrum import ReweighedSpectrum, reweigh_spectrum
from discernel.programs.solution import Candidate, LearnedKernel, Progress
from discernel.solvers import (
    QCQP,
    SDP,
    SILP,
    SOLVERS,
    Columns,
    Galerkin,
    InteriorPoint,
    Newton,
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
