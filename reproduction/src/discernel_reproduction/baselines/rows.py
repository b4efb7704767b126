"""Models of estimators that predict in another way than by scores."""

from __future__ import annotations

import numpy as np

from discernel.model import Facts, Model
from discernel.rows.reader import RowReader


def model_of_rows(reader: RowReader, names: list[str] | None = None) -> Model:
    """Return a model that checks and encodes new rows, without scores.

    Parameters
    ----------
    reader : RowReader
        Checks and encodes new rows.
    names : list of str, optional
        The names of the kernels.
    """
    facts = None if names is None else Facts(None, names, "dense")
    return Model(reader, None, np.empty((0, 0)), np.empty(0), facts=facts)
