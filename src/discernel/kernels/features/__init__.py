"""Feature maps: from rows to φ(x) with k(x, z) ≈ φ(x)·φ(z), and the rows they are made of."""

from discernel.kernels.features.base import FeatureMap
from discernel.kernels.features.exact import ExactMap, exact_rank
from discernel.kernels.features.fourier import FourierMap
from discernel.kernels.features.landmarks import distinct_rows, draw_landmarks, n_landmarks
from discernel.kernels.features.nystrom import NystromMap

__all__ = [
    "ExactMap",
    "FeatureMap",
    "FourierMap",
    "NystromMap",
    "distinct_rows",
    "draw_landmarks",
    "exact_rank",
    "n_landmarks",
]
