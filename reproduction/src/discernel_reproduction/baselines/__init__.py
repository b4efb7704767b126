"""What papers compare with, as estimators: not needed to learn a kernel, only to judge one."""

from discernel_reproduction.baselines.conformal import ConformalKernelTransformer
from discernel_reproduction.baselines.kdda import KDDA
from discernel_reproduction.baselines.neighbors import KernelNeighborsClassifier
from discernel_reproduction.baselines.single import SingleKernelClassifier
from discernel_reproduction.baselines.svm import LearnedKernelSVC

__all__ = [
    "KDDA",
    "ConformalKernelTransformer",
    "KernelNeighborsClassifier",
    "LearnedKernelSVC",
    "SingleKernelClassifier",
]
