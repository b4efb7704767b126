"""Rows in chunks, for data larger than memory: from files, arrays, dataframes or functions."""

from discernel.rows.chunks import Chunk, Place, Reduction, RowProgress
from discernel.rows.open import open_rows
from discernel.rows.sources import ArraySource, ChunkSource, Source

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
