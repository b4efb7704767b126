"""Tables of anything: from numbers, categories and missing cells to a matrix of numbers."""

from discernel.rows.encoder import TableEncoder

__all__ = ["TableEncoder"]
