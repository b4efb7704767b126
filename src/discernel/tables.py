"""Encode tables of numbers, categories, dates and missing cells as matrices of numbers."""

from discernel.rows.encoder import TableEncoder

__all__ = ["TableEncoder"]
