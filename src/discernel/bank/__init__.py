"""The candidate kernels on one training set."""

from discernel.bank.base import Bank, Centering, Normalization, System
from discernel.bank.combined import CombinedKernel, gram_stack
from discernel.bank.dense import DenseBank
from discernel.bank.identity import WithIdentity

__all__ = [
    "Bank",
    "Centering",
    "CombinedKernel",
    "DenseBank",
    "Normalization",
    "System",
    "WithIdentity",
    "gram_stack",
]
