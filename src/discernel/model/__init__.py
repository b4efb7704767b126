"""Fitted models: what predictions are made with, their scores as sums, and what matters in them."""

from discernel.model.model import (
    Facts,
    KeptRows,
    Model,
    RowReader,
    are_objects,
    check_kernels_take,
    check_mixed,
    check_range,
    check_rows,
    hint,
    is_mixed_table,
    stack_matrices,
)

__all__ = [
    "Facts",
    "KeptRows",
    "Model",
    "RowReader",
    "are_objects",
    "check_kernels_take",
    "check_mixed",
    "check_range",
    "check_rows",
    "hint",
    "is_mixed_table",
    "stack_matrices",
]
