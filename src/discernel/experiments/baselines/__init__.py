"""What papers compare with, as estimators: not needed to learn a kernel, only to judge one."""

from discernel.experiments.baselines.conformal import ConformalKernelTransformer
from discernel.experiments.baselines.kdda import KDDA
from discernel.experiments.baselines.neighbors import KernelNeighborsClassifier
from discernel.experiments.baselines.single import SingleKernelClassifier
from discernel.experiments.baselines.svm import LearnedKernelSVC

__all__ = [
    "KDDA",
    "ConformalKernelTransformer",
    "KernelNeighborsClassifier",
    "LearnedKernelSVC",
    "SingleKernelClassifier",
]
