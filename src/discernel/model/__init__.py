"""Fitted models, their scores as sums over kernels and rows, and column importances."""

from discernel.model.model import Facts, KeptRows, Model

__all__ = ["Facts", "KeptRows", "Model"]
