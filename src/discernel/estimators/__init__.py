"""The scikit-learn face."""

from discernel.estimators.akfd import AKFDClassifier
from discernel.estimators.conformal import ConformalKernelTransformer
from discernel.estimators.discriminant import KernelDiscriminant, MultipleKernelDiscriminant
from discernel.estimators.kdda import KDDA
from discernel.estimators.multilabel import MultiLabelKernelDiscriminant
from discernel.estimators.neighbors import KernelNeighborsClassifier
from discernel.estimators.ridge import MultipleKernelRidge
from discernel.estimators.separability import SeparabilityClassifier
from discernel.estimators.single import SingleKernelClassifier
from discernel.estimators.svm import LearnedKernelSVC
from discernel.estimators.transformer import LearnedKernelTransformer

__all__ = [
    "KDDA",
    "AKFDClassifier",
    "ConformalKernelTransformer",
    "KernelDiscriminant",
    "KernelNeighborsClassifier",
    "LearnedKernelSVC",
    "LearnedKernelTransformer",
    "MultiLabelKernelDiscriminant",
    "MultipleKernelDiscriminant",
    "MultipleKernelRidge",
    "SeparabilityClassifier",
    "SingleKernelClassifier",
]
