"""Estimators with the interface of scikit-learn."""

from discernel.estimators.discriminant import KernelDiscriminant, MultipleKernelDiscriminant
from discernel.estimators.multilabel import MultiLabelKernelDiscriminant
from discernel.estimators.ridge import MultipleKernelRidge
from discernel.estimators.transformer import LearnedKernelTransformer

__all__ = [
    "KernelDiscriminant",
    "LearnedKernelTransformer",
    "MultiLabelKernelDiscriminant",
    "MultipleKernelDiscriminant",
    "MultipleKernelRidge",
]
