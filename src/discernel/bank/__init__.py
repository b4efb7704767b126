"""The candidate kernels on one training set."""

from discernel.bank.base import Bank, Centering, Matrices, Normalization, Uncentered
from discernel.bank.combined import CombinedKernel, gram_stack
from discernel.bank.dense import DenseBank
from discernel.bank.factored import FactoredBank
from discernel.bank.identity import WithIdentity
from discernel.bank.iterative import IterativeBank
from discernel.bank.iterative_system import IterativeSystem
from discernel.bank.make import choose_bank, make_bank
from discernel.bank.subspace import Subspace
from discernel.bank.system import CholeskySystem, Inverse, System, Workspace
from discernel.bank.tiled import TiledBank

__all__ = [
    "Bank",
    "Centering",
    "CholeskySystem",
    "CombinedKernel",
    "DenseBank",
    "FactoredBank",
    "Inverse",
    "IterativeBank",
    "IterativeSystem",
    "Matrices",
    "Normalization",
    "Subspace",
    "System",
    "TiledBank",
    "Uncentered",
    "WithIdentity",
    "Workspace",
    "choose_bank",
    "gram_stack",
    "make_bank",
]
