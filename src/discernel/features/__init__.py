"""Feature maps: from rows to φ(x) with k(x, z) ≈ φ(x)·φ(z), and the rows they are made of."""

from discernel.features.base import FeatureMap
from discernel.features.exact import ExactMap, exact_rank
from discernel.features.fourier import FourierMap
from discernel.features.landmarks import distinct_rows, draw_landmarks, n_landmarks
from discernel.features.nystrom import NystromMap

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
