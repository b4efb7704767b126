"""The default: kernels chosen by their predictions for held-out rows."""

from discernel.default.landmarks import residual_landmarks
from discernel.default.logits import LogitSearch
from discernel.default.propose import (
    FIRST_ROWS,
    Proposal,
    comparable_rows,
    menu_kernels,
    propose_kernels,
    rows_to_choose_on,
    scaled_kernels,
)
from discernel.default.spread import SpreadFit, learn_spread

__all__ = [
    "FIRST_ROWS",
    "LogitSearch",
    "Proposal",
    "SpreadFit",
    "comparable_rows",
    "learn_spread",
    "menu_kernels",
    "propose_kernels",
    "residual_landmarks",
    "rows_to_choose_on",
    "scaled_kernels",
]
