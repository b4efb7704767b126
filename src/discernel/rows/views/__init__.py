"""Several data sources of the same rows: one table, kernels per source, weights per source."""

from discernel.rows.views.join import JoinedViews, join_views, refuse_views
from discernel.rows.views.sources import source_kernels
from discernel.rows.views.weights import (
    SourceWeights,
    kernel_sources,
    source_weights,
    sum_by,
    weights_spread,
)

__all__ = [
    "JoinedViews",
    "SourceWeights",
    "join_views",
    "kernel_sources",
    "refuse_views",
    "source_kernels",
    "source_weights",
    "sum_by",
    "weights_spread",
]
