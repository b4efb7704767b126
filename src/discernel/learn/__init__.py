"""Learning kernel weights: from a bank, from matrices, from rows in memory and from chunks."""

from discernel.learn.learn import learn, learn_part
from discernel.learn.matrices import RegularizationPath, learn_kernel, regularization_path
from discernel.learn.request import Request, make_request
from discernel.papers.alignment.parameters import AlignedKernels, align_kernels
from discernel.papers.separability.spectrum import ReweighedSpectrum, reweigh_spectrum
from discernel.programs.solution import Candidate, LearnedKernel, Progress

__all__ = [
    "AlignedKernels",
    "Candidate",
    "LearnedKernel",
    "Progress",
    "RegularizationPath",
    "Request",
    "ReweighedSpectrum",
    "align_kernels",
    "learn",
    "learn_kernel",
    "learn_part",
    "make_request",
    "regularization_path",
    "reweigh_spectrum",
]
