"""Export of a model as a Python file and a file of arrays, for scoring with NumPy only."""

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
from discernel.rows.writing import check_writable_path, refuse_same_file, write_file


def write_scorer(
    clf: Any, path: str | Path, *, names: Sequence[str] | None = None
) -> tuple[Path, Path]:
    """Write a fitted model as a Python file that needs only NumPy.

    Parameters
    ----------
    clf : KernelDiscriminant, MultipleKernelDiscriminant, MultipleKernelRidge or Pipeline
        Fitted, as in `numpy_scorer`.
    path : str or Path
        The Python file, such as ``scorer.py``. The arrays of the model are written to
        ``scorer.npz`` beside it. Each file is written atomically.
    names : sequence of str, optional
        Names of the columns, as in `numpy_scorer`.

    Returns
    -------
    tuple of Path
        The Python file and the ``.npz`` file.

    Notes
    -----
    ``import scorer`` then has ``predict`` and, for classes, ``predict_proba`` and ``classes``. The
    file is the same for all models: the module ``discernel.export._scorer``.
    """
    code, numbers = Path(path), Path(path).with_suffix(".npz")
    if code.suffix != ".py":
        raise InvalidInputError(
            f"A scorer must be a file that ends with .py, to be imported. Got {str(path)!r}."
        )
    check_writable_path("scorer", code)
    refuse_same_file(scorer=code, file_of_numbers=numbers)
    stored = io.BytesIO()
    np.savez_compressed(stored, **pack(numpy_scorer(clf, names=names)))  # type: ignore[arg-type]
    # Arrays first: an existing Python file can read the new ones.
    write_file(numbers, stored.getvalue())
    return write_file(code, Path(_scorer.__file__).read_bytes()), numbers


def pack(scorer: Scorer) -> dict[str, NDArray[Any]]:
    """Return a scorer as arrays, the input of `Scorer.unpack`."""
    arrays: dict[str, NDArray[Any]] = {}

    def encode(value: Any) -> dict[str, Any]:
        """Return an object as its class name and fields, an array as the name it is stored by."""
        if is_dataclass(value):
            parts = {each.name: getattr(value, each.name) for each in fields(value)}
            return {"class": type(value).__name__, **parts}
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"array": name}

    plan = json.dumps({"format": _scorer.FORMAT, "model": scorer}, default=encode)
    return {"plan": np.array(plan), **arrays}
