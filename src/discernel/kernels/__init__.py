"""Kernels: small value objects that turn rows into matrices."""

from discernel.kernels.adapters import Function, GaussianProcess, Pairwise, Precomputed
from discernel.kernels.base import Kernel, Standardized
from discernel.kernels.distance import RBF, Exponential, Laplace
from discernel.kernels.inner import Cosine, Linear, Polynomial
from discernel.kernels.make import (
    as_kernel,
    as_kernels,
    feature_kernels,
    kernel_names,
    rbf_ladder,
    resolve_kernels,
)

__all__ = [
    "RBF",
    "Cosine",
    "Exponential",
    "Function",
    "GaussianProcess",
    "Kernel",
    "Laplace",
    "Linear",
    "Pairwise",
    "Polynomial",
    "Precomputed",
    "Standardized",
    "as_kernel",
    "as_kernels",
    "feature_kernels",
    "kernel_names",
    "rbf_ladder",
    "resolve_kernels",
]
