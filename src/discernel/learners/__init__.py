"""The algorithms: from a criterion to weights. They never see X."""

from discernel.learners.conic import QCQP, SDP
from discernel.learners.learn import learn, learn_kernel
from discernel.learners.newton import Newton
from discernel.learners.path import RegularizationPath, regularization_path
from discernel.learners.request import (
    CRITERIA,
    SOLVERS,
    Request,
    check_leave_one_out,
    sample_ridge,
)
from discernel.learners.silp import SILP
from discernel.learners.solution import LearnedKernel, Progress, Status

__all__ = [
    "CRITERIA",
    "QCQP",
    "SDP",
    "SILP",
    "SOLVERS",
    "LearnedKernel",
    "Newton",
    "Progress",
    "RegularizationPath",
    "Request",
    "Status",
    "check_leave_one_out",
    "learn",
    "learn_kernel",
    "regularization_path",
    "sample_ridge",
]
