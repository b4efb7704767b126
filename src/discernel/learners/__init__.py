"""The algorithms: from a criterion to weights. Only `align_kernels` sees X."""

from discernel.learners.alignment import Alignment
from discernel.learners.alignment_parameters import AlignedKernels, align_kernels
from discernel.learners.alternating import AKFD
from discernel.learners.conic import QCQP, SDP
from discernel.learners.learn import learn, learn_kernel
from discernel.learners.loo import LOO
from discernel.learners.margin import InteriorPoint, Margin
from discernel.learners.newton import Newton
from discernel.learners.path import RegularizationPath, regularization_path
from discernel.learners.registry import CRITERIA, SOLVERS, make_request
from discernel.learners.request import Request, check_leave_one_out
from discernel.learners.separability import Separability
from discernel.learners.shrinkage import Shrinkage
from discernel.learners.silp import SILP
from discernel.learners.solution import Candidate, LearnedKernel, Progress, Status
from discernel.learners.spectrum import ReweighedSpectrum, reweigh_spectrum

__all__ = [
    "AKFD",
    "CRITERIA",
    "LOO",
    "QCQP",
    "SDP",
    "SILP",
    "SOLVERS",
    "AlignedKernels",
    "Alignment",
    "Candidate",
    "InteriorPoint",
    "LearnedKernel",
    "Margin",
    "Newton",
    "Progress",
    "RegularizationPath",
    "Request",
    "ReweighedSpectrum",
    "Separability",
    "Shrinkage",
    "Status",
    "align_kernels",
    "check_leave_one_out",
    "learn",
    "learn_kernel",
    "make_request",
    "regularization_path",
    "reweigh_spectrum",
]
