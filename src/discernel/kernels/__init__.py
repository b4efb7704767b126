"""Kernels: functions of two rows that return kernel matrices."""

from discernel.kernels.adapters import Function, GaussianProcess, Pairwise, Precomputed
from discernel.kernels.base import Kernel
from discernel.kernels.composites import Standardized
from discernel.kernels.distance import RBF, ChiSquared, Exponential, Laplace
from discernel.kernels.inner import Cosine, Linear, Polynomial
from discernel.kernels.make import (
    as_kernel,
    as_kernels,
    feature_kernels,
    kernel_names,
    rbf_ladder,
    resolve_kernels,
)
from discernel.kernels.missing import WhereKnown
from discernel.kernels.objects import (
    Intersection,
    Jaccard,
    Lookup,
    Matching,
    NGram,
    Spectrum,
    Tanimoto,
)

__all__ = [
    "RBF",
    "ChiSquared",
    "Cosine",
    "Exponential",
    "Function",
    "GaussianProcess",
    "Intersection",
    "Jaccard",
    "Kernel",
    "Laplace",
    "Linear",
    "Lookup",
    "Matching",
    "NGram",
    "Pairwise",
    "Polynomial",
    "Precomputed",
    "Spectrum",
    "Standardized",
    "Tanimoto",
    "WhereKnown",
    "as_kernel",
    "as_kernels",
    "feature_kernels",
    "kernel_names",
    "rbf_ladder",
    "resolve_kernels",
]
