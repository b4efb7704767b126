"""What can be fitted to a division: one function per kind of method.

Each takes a division and the options of the method, which are plain data, and returns an
`Outcome`. Kernels are written as ``["RBF", {"width": 1.0}]``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discernel.experiments.methods import aligned, inductive, margin, transductive
from discernel.experiments.methods.base import (
    Outcome,
    fit_and_predict,
    learner_kernels,
    make_kernels,
)
from discernel.experiments.tasks import Division

__all__ = ["METHODS", "Outcome", "fit_and_predict", "learner_kernels", "make_kernels"]

#: From the kind of a method to what runs it.
METHODS: dict[str, Callable[[Division, dict[str, Any]], Outcome]] = {
    "akfd": inductive.akfd,
    "aligned": aligned.aligned,
    "alignment_seconds": aligned.alignment_seconds,
    "boosting": inductive.boosting,
    "conformal": transductive.conformal,
    "discriminant": inductive.discriminant,
    "forest": inductive.forest,
    "kfd_grid": inductive.kfd_grid,
    "lda": inductive.lda,
    "logistic": inductive.logistic,
    "majority": inductive.majority,
    "margin": margin.margin,
    "plain": transductive.plain,
    "separability": transductive.separability,
    "single": inductive.single,
    "svc_grid": inductive.svc_grid,
}
