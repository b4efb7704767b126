"""The candidate kernels on one training set."""

from discernel.bank.base import Bank, Centering, Matrices, Normalization, Uncentered
from discernel.bank.blend import BlendBank, FeatureBank
from discernel.bank.choice import (
    AutoBank,
    BankChoice,
    Distributed,
    Iterative,
    LowRank,
    Tiled,
    read_choice,
)
from discernel.bank.combined import CombinedFeatures, CombinedKernel, gram_stack
from discernel.bank.dense import DenseBank
from discernel.bank.device import DeviceBank
from discernel.bank.factored import FactoredBank
from discernel.bank.identity import WithIdentity
from discernel.bank.iterative import IterativeBank
from discernel.bank.iterative_system import IterativeSystem
from discernel.bank.lowrank import LowRankBank, default_rank
from discernel.bank.make import KINDS, Kind, bank_of_matrices, device_of_matrices, make_bank
from discernel.bank.subspace import Subspace
from discernel.bank.system import CholeskySystem, Inverse, System, Workspace
from discernel.bank.tiled import TiledBank
from discernel.bank.woodbury import SpectralSystem, WoodburySystem

__all__ = [
    "KINDS",
    "AutoBank",
    "Bank",
    "BankChoice",
    "BlendBank",
    "Centering",
    "CholeskySystem",
    "CombinedFeatures",
    "CombinedKernel",
    "DenseBank",
    "DeviceBank",
    "Distributed",
    "FactoredBank",
    "FeatureBank",
    "Inverse",
    "Iterative",
    "IterativeBank",
    "IterativeSystem",
    "Kind",
    "LowRank",
    "LowRankBank",
    "Matrices",
    "Normalization",
    "SpectralSystem",
    "Subspace",
    "System",
    "Tiled",
    "TiledBank",
    "Uncentered",
    "WithIdentity",
    "WoodburySystem",
    "Workspace",
    "bank_of_matrices",
    "default_rank",
    "device_of_matrices",
    "gram_stack",
    "make_bank",
    "read_choice",
]
