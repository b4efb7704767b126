"""Why a row has the score it has: contributions that add up, and the training rows behind it."""

from discernel.inspection.contributions import Contributions, contributions

__all__ = ["Contributions", "contributions"]
