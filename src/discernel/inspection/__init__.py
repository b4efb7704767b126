"""Explanations of predictions: contributions that add up, and similar training rows."""

from discernel.inspection.contributions import Contributions, contributions
from discernel.inspection.similar import SimilarRows, similar_rows
from discernel.inspection.sources import SourceImportances, source_importances
from discernel.inspection.words import explain_in_words

__all__ = [
    "Contributions",
    "SimilarRows",
    "SourceImportances",
    "contributions",
    "explain_in_words",
    "similar_rows",
    "source_importances",
]
