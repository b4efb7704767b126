"""Plots of what was learned, in scikit-learn's manner. Matplotlib is imported when one is drawn."""

from discernel.displays.candidates import CandidatesDisplay
from discernel.displays.contributions import ContributionsDisplay
from discernel.displays.embedding import DiscriminantEmbeddingDisplay
from discernel.displays.importances import ImportancesDisplay
from discernel.displays.learning import LearningPathDisplay
from discernel.displays.regularization import RegularizationPathDisplay
from discernel.displays.sources import SourcesDisplay
from discernel.displays.weights import KernelWeightsDisplay

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
