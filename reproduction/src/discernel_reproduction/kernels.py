"""Candidate kernels as plain data, as plans and stores keep them."""

from __future__ import annotations

from typing import Any

from discernel import kernels as kernel_families
from discernel.compare.fitting import view_kernels
from discernel.compare.tasks import TrainTestSplit
from discernel.exceptions import unknown_choice
from discernel.kernels import Kernel


def make_kernels(spec: Any, split: TrainTestSplit) -> list[Kernel]:
    """Return the candidate kernels that plain data stand for.

    Parameters
    ----------
    spec : "auto" or list
        ``"auto"`` as in the estimators, or three widths for each of several views; a list of
        ``[family, parameters]``.
    split : TrainTestSplit
        Whose views are meant.
    """
    if spec == "auto":
        return view_kernels(split.views)
    for family, _ in spec:
        if family not in kernel_families.__all__:
            raise unknown_choice("family of kernels", family, list(kernel_families.__all__))
    return [getattr(kernel_families, family)(**parameters) for family, parameters in spec]
