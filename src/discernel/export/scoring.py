"""Scoring with NumPy alone: a model as a Python file and a file of numbers."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.exceptions import InvalidInputError
from discernel.export import _scorer
from discernel.export._scorer import Scorer
from discernel.export.formula import numpy_scorer
from discernel.show.writing import check_place, refuse_same_file, write_file


def write_scorer(
    clf: Any, path: str | Path, *, names: Sequence[str] | None = None
) -> tuple[Path, Path]:
    """Write a fitted model as a Python file that needs only NumPy.

    Parameters
    ----------
    clf : KernelDiscriminant, MultipleKernelDiscriminant or Pipeline
        Fitted, as `numpy_scorer` takes it.
    path : str or Path
        Where the Python file goes, such as ``scorer.py``. The numbers of the model go to
        ``scorer.npz`` beside it. Each file is written whole or not at all.
    names : sequence of str, optional
        What the columns are called, as of `numpy_scorer`.

    Returns
    -------
    tuple of Path
        The Python file and the file of numbers.

    Notes
    -----
    ``import scorer`` then has ``predict``, ``predict_proba`` and ``classes``. The file is the same
    for all models, and can be read: it is the module ``discernel.export._scorer``.
    """
    code, numbers = Path(path), Path(path).with_suffix(".npz")
    if code.suffix != ".py":
        raise InvalidInputError(
            f"A scorer must be a file that ends with .py, to be imported. Got {str(path)!r}."
        )
    check_place("scorer", code)
    refuse_same_file(scorer=code, file_of_numbers=numbers)
    stored = io.BytesIO()
    np.savez_compressed(stored, **pack(numpy_scorer(clf, names=names)))  # type: ignore[arg-type]
    # The numbers first: code that is there already reads the new ones as well.
    write_file(numbers, stored.getvalue())
    return write_file(code, Path(_scorer.__file__).read_bytes()), numbers


def pack(scorer: Scorer) -> dict[str, NDArray[Any]]:
    """Return the numbers of a scorer as arrays, as `Scorer.unpack` takes them."""
    arrays: dict[str, NDArray[Any]] = {}
    plan = {"format": _scorer.FORMAT, "model": _plan_of(scorer, arrays)}
    return {"plan": np.array(json.dumps(plan)), **arrays}


def _plan_of(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return a value as JSON has it, objects with the name of their class; arrays are stored."""
    if isinstance(value, np.ndarray):
        arrays[f"array{len(arrays)}"] = value
        return {"array": f"array{len(arrays) - 1}"}
    if isinstance(value, tuple):
        return [_plan_of(each, arrays) for each in value]
    if not is_dataclass(value):
        return value
    parts = {each.name: _plan_of(getattr(value, each.name), arrays) for each in fields(value)}
    return {"class": type(value).__name__, **parts}
