"""Plots of fitted models, as scikit-learn displays. Matplotlib is imported when one is drawn."""

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
