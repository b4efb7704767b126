"""Classification and regression with learned kernels, in one fit."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from discernel.estimators import (
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
)
from discernel.learn import (
    LearnedKernel,
    align_kernels,
    learn_kernel,
    regularization_path,
    reweigh_spectrum,
)
from discernel.solvers import Status

if TYPE_CHECKING:
    from discernel.papers.akfd.estimator import AKFDClassifier
    from discernel.papers.separability.estimator import SeparabilityClassifier
    from discernel.persistence import load, save, trusted_types
    from discernel.rows.open import open_rows

__all__ = [
    "AKFDClassifier",
    "KernelDiscriminant",
    "LearnedKernel",
    "LearnedKernelTransformer",
    "MultiLabelKernelDiscriminant",
    "MultipleKernelDiscriminant",
    "MultipleKernelRidge",
    "SeparabilityClassifier",
    "Status",
    "align_kernels",
    "learn_kernel",
    "load",
    "open_rows",
    "regularization_path",
    "reweigh_spectrum",
    "save",
    "trusted_types",
]

__version__ = version("discernel")

#: Modules of names that are imported on first use: most programs need none of them.
_LATER = {
    "AKFDClassifier": "discernel.papers.akfd.estimator",
    "SeparabilityClassifier": "discernel.papers.separability.estimator",
    "load": "discernel.persistence",
    "open_rows": "discernel.rows.open",
    "save": "discernel.persistence",
    "trusted_types": "discernel.persistence",
}

#: Modules of names that were in this module in earlier versions.
_MODULES = {
    "discernel.criteria": "AKFD Alignment Margin Separability",
    "discernel.learn": "AlignedKernels Candidate Progress RegularizationPath",
    "discernel.solvers": "Newton QCQP SDP SILP",
    "discernel_reproduction.baselines": "ConformalKernelTransformer KDDA "
    "KernelNeighborsClassifier LearnedKernelSVC SingleKernelClassifier",
}
_MOVED = {name: module for module, names in _MODULES.items() for name in names.split()}

if not TYPE_CHECKING:  # with __getattr__, type checkers would accept any name

    def __getattr__(name: str) -> Any:
        """Import a name on first use; refuse names that have moved."""
        if name in _LATER:
            return vars(import_module(_LATER[name]))[name]
        if name in _MOVED:
            # `from discernel import …` discards the message of an AttributeError.
            raise ImportError(
                f"{name} has moved. Write: from {_MOVED[name]} import {name}",
                name="discernel",
            )
        raise AttributeError(f"module 'discernel' has no attribute {name!r}")

    def __dir__() -> list[str]:
        """List all public names, including those imported on first use."""
        return sorted({*globals(), *__all__})
