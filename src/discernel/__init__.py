"""discernel: learn the kernel that best separates your classes, in one fit."""

from importlib.metadata import version

from discernel.estimators import (
    AKFDClassifier,
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
)
from discernel.learners import (
    AKFD,
    LOO,
    QCQP,
    SDP,
    SILP,
    AlignedKernels,
    Alignment,
    Candidate,
    LearnedKernel,
    Newton,
    Progress,
    RegularizationPath,
    Status,
    align_kernels,
    learn_kernel,
    regularization_path,
)

__all__ = [
    "AKFD",
    "LOO",
    "QCQP",
    "SDP",
    "SILP",
    "AKFDClassifier",
    "AlignedKernels",
    "Alignment",
    "Candidate",
    "KernelDiscriminant",
    "LearnedKernel",
    "LearnedKernelTransformer",
    "MultipleKernelDiscriminant",
    "MultipleKernelRidge",
    "Newton",
    "Progress",
    "RegularizationPath",
    "Status",
    "align_kernels",
    "learn_kernel",
    "regularization_path",
]

__version__ = version("discernel")
