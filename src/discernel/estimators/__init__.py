"""The scikit-learn face."""

from discernel.estimators.akfd import AKFDClassifier
from discernel.estimators.discriminant import KernelDiscriminant, MultipleKernelDiscriminant
from discernel.estimators.multilabel import MultiLabelKernelDiscriminant
from discernel.estimators.ridge import MultipleKernelRidge
from discernel.estimators.separability import SeparabilityClassifier
from discernel.estimators.transformer import LearnedKernelTransformer

__all__ = [
    "AKFDClassifier",
    "KernelDiscriminant",
    "LearnedKernelTransformer",
    "MultiLabelKernelDiscriminant",
    "MultipleKernelDiscriminant",
    "MultipleKernelRidge",
    "SeparabilityClassifier",
]
