"""The candidate kernels on one training set."""

from discernel.bank.base import (
    Bank,
    Centering,
    Matrices,
    StoredMatrices,
    Uncentered,
    WithIdentity,
)
from discernel.bank.choice import (
    AutoBank,
    BankChoice,
    Distributed,
    Iterative,
    LowRank,
    Tiled,
    read_choice,
)
from discernel.bank.combined import CombinedFeatures, CombinedKernel, TargetKernels
from discernel.bank.device import DeviceBank
from discernel.bank.exact import DenseBank
from discernel.bank.features import BlendBank, FeatureBank
from discernel.bank.grams import Normalization, gram_stack
from discernel.bank.iterative import IterativeBank
from discernel.bank.make import KINDS, Kind, bank_of_matrices, device_of_matrices, make_bank
from discernel.bank.system import CholeskySystem, System
from discernel.bank.tiled import TiledBank

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
    "FeatureBank",
    "Iterative",
    "IterativeBank",
    "Kind",
    "LowRank",
    "Matrices",
    "Normalization",
    "StoredMatrices",
    "System",
    "TargetKernels",
    "Tiled",
    "TiledBank",
    "Uncentered",
    "WithIdentity",
    "bank_of_matrices",
    "device_of_matrices",
    "gram_stack",
    "make_bank",
    "read_choice",
]
