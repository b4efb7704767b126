"""Fitted models: what predictions are made with, their scores as sums, and what matters in them."""

from discernel.model.model import Facts, KeptRows, Model

__all__ = ["Facts", "KeptRows", "Model"]
