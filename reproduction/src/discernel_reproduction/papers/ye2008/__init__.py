"""Ye, Ji and Chen (2008), Multi-class Discriminant Kernel Learning via Convex Programming."""

from discernel_reproduction.papers.ye2008.figures import FIGURES
from discernel_reproduction.papers.ye2008.tables import TABLES

__all__ = ["REPRODUCTIONS"]

REPRODUCTIONS = (*TABLES, *FIGURES)
