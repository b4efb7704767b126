"""The papers' methods: one function per kind, as in `discernel.compare.fitting`.

The methods of `discernel.compare.methods` that predict classes are included. Kernels are written as
``["RBF", {"width": 1.0}]``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discernel.compare.methods import METHODS as COMPARED
from discernel.compare.runner import Protocol
from discernel.compare.store import Result
from discernel.compare.tasks import TrainTestSplit
from discernel_reproduction.methods import aligned, inductive, margin, transductive
from discernel_reproduction.tasks import load_split

__all__ = ["METHODS", "PAPERS"]

#: Functions that run methods, by kind.
METHODS: dict[str, Callable[[TrainTestSplit, dict[str, Any]], Result]] = {
    **{method.kind: method.run for method in COMPARED},
    "akfd": inductive.akfd,
    "aligned": aligned.aligned,
    "alignment_seconds": aligned.alignment_seconds,
    "conformal": transductive.conformal,
    "discriminant": inductive.discriminant,
    "kfd_grid": inductive.kfd_grid,
    "margin": margin.margin,
    "plain": transductive.plain,
    "separability": transductive.separability,
    "single": inductive.single,
    "timed": inductive.timed,
}
#: How cells of the papers are run.
PAPERS = Protocol(METHODS, load_split)
