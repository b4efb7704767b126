"""Rows without limit: a chunk at a time, from files, memory or whatever makes them."""

from discernel.rows.streams.chunks import Chunk, Place, Reduction, RowProgress
from discernel.rows.streams.opening import open_rows
from discernel.rows.streams.sources import ArraySource, ChunkSource, Source

__all__ = [
    "ArraySource",
    "Chunk",
    "ChunkSource",
    "Place",
    "Reduction",
    "RowProgress",
    "Source",
    "open_rows",
]
