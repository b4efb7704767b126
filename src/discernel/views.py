"""Several data sources of the same rows: one table, kernels per source, weights per source."""

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
