"""Why a row has the score it has: contributions that add up, and the training rows behind it."""

from discernel.inspection.contributions import Contributions, contributions
from discernel.inspection.similar import SimilarRows, similar_rows

__all__ = ["Contributions", "SimilarRows", "contributions", "similar_rows"]
