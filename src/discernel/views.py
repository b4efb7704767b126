"""Several sources of the same rows: join them, make kernels for each, and read their weights."""

from discernel.inspection.source_weights import SourceWeights, source_weights, weights_spread
from discernel.rows.views import JoinedViews, join_views, source_kernels

__all__ = [
    "JoinedViews",
    "SourceWeights",
    "join_views",
    "source_kernels",
    "source_weights",
    "weights_spread",
]
