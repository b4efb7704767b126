"""Plots of fitted models, in scikit-learn's manner. Matplotlib is imported when one is drawn."""

from discernel.displays.bars import (
    CandidatesDisplay,
    ContributionsDisplay,
    ImportancesDisplay,
    KernelWeightsDisplay,
    SourcesDisplay,
)
from discernel.displays.embedding import DiscriminantEmbeddingDisplay
from discernel.displays.paths import LearningPathDisplay, RegularizationPathDisplay

__all__ = [
    "CandidatesDisplay",
    "ContributionsDisplay",
    "DiscriminantEmbeddingDisplay",
    "ImportancesDisplay",
    "KernelWeightsDisplay",
    "LearningPathDisplay",
    "RegularizationPathDisplay",
    "SourcesDisplay",
]
