"""The scikit-learn face."""

from discernel.estimators.discriminant import KernelDiscriminant, MultipleKernelDiscriminant

__all__ = ["KernelDiscriminant", "MultipleKernelDiscriminant"]
