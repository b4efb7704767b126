"""Labels of groups of rows, as numbers."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.exceptions import InvalidInputError
from discernel.kernels.columns import missing_cells


def group_labels(groups: Any, n_samples: int) -> NDArray[Any]:
    """Return the label of the group of each row as an array, or raise an error.

    Parameters
    ----------
    groups : array-like of shape (n_samples,)
        Labels of any hashable type: an array, a list, or a column of a DataFrame.
    n_samples : int
        The number of rows.
    """
    try:
        # NumPy would convert numbers beside text to text.
        is_array = hasattr(groups, "dtype")
        labels = np.asarray(groups) if is_array else np.fromiter(groups, dtype=object)
    except TypeError as error:
        raise InvalidInputError(
            f"groups must be a list or an array with one label per row, or None. Got {groups!r}."
        ) from error
    if labels.shape != (n_samples,):
        raise InvalidInputError(
            f"groups must have one label per row, here shape ({n_samples},). Got shape "
            f"{labels.shape}."
        )
    missing = missing_cells(labels)
    if missing.any():
        raise InvalidInputError(
            "groups must have a label for every row. Got a missing value for row "
            f"{int(missing.argmax())}. Give such rows labels of their own, or leave them out."
        )
    return labels


def group_codes(labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return an integer for each label of a group.

    Integers are positions among the sorted labels, so they do not depend on the order of rows.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        Labels as `group_labels` returns them.
    """
    if labels.dtype.kind != "O":
        return np.unique(labels, return_inverse=True)[1]
    listed = labels.tolist()
    try:
        ordered = sorted(set(listed), key=lambda label: (type(label).__name__, repr(label)))
        numbers = {label: number for number, label in enumerate(ordered)}
    except TypeError as error:
        raise InvalidInputError(
            f"Labels of groups must be hashable, such as numbers or text. Python says: {error}"
        ) from error
    return np.array([numbers[label] for label in listed], dtype=np.intp)


def group_hashes(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return a number for each label of a group, the same in all chunks and on all machines.

    Integers stay as they are, also if they are floats in another chunk; other labels are hashed.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        Labels as `group_labels` returns them.
    """
    if labels.dtype.kind in "iub":
        return labels.astype(np.int64)
    if labels.dtype.kind == "f" and (labels == np.round(labels)).all():
        return labels.astype(np.int64)
    codes = group_codes(labels)
    _, first = np.unique(codes, return_index=True)
    return np.array([_hash(label) for label in labels[first].tolist()], dtype=np.int64)[codes]


def _hash(label: Any) -> int:
    """Return a whole number as it is, and a hash of any other label."""
    if isinstance(label, (int, float)) and abs(label) < 2**63 and label == int(label):
        return int(label)
    text = label if isinstance(label, str) else repr(label)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)
