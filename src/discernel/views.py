"""Several data sources of the same rows: one table, kernels per source, weights per source."""

from discernel.rows.views import (
    JoinedViews,
    SourceWeights,
    join_views,
    source_kernels,
    source_weights,
    weights_spread,
)

__all__ = [
    "JoinedViews",
    "SourceWeights",
    "join_views",
    "source_kernels",
    "source_weights",
    "weights_spread",
]
