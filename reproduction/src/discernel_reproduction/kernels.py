"""Candidate kernels from plain data, as in plans and stores."""

from __future__ import annotations

from typing import Any

from discernel import kernels as kernel_families
from discernel.compare.fitting import view_kernels
from discernel.compare.tasks import TrainTestSplit
from discernel.exceptions import unknown_choice
from discernel.kernels import Kernel


def make_kernels(spec: Any, split: TrainTestSplit) -> list[Kernel]:
    """Return candidate kernels from plain data.

    Parameters
    ----------
    spec : "auto", list or dict
        ``"auto"`` for the default kernels, or three widths per view if there are several views;
        otherwise a list of ``[family, parameters]``. A dictionary has such a list as
        ``all_and_each``, for kernels on all variables and on each of them.
    split : TrainTestSplit
        The split, for its views and variables.
    """
    if isinstance(spec, dict):
        made = make_kernels(spec["all_and_each"], split)
        each = range(split.X_train.shape[1])
        return made + [kernel.on([place]) for place in each for kernel in made]
    if spec == "auto":
        return view_kernels(split.views)
    for family, _ in spec:
        if family not in kernel_families.__all__:
            raise unknown_choice("family of kernels", family, list(kernel_families.__all__))
    return [getattr(kernel_families, family)(**parameters) for family, parameters in spec]
