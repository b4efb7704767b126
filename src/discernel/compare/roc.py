"""ROC curves averaged over splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import auc, roc_curve

from discernel.arrays import FloatArray
from discernel.compare.store import Record

#: False positive rates at which true positive rates are averaged.
_RATES = np.linspace(0.0, 1.0, 251)


@dataclass(frozen=True)
class MeanCurve:
    """A ROC curve averaged over splits.

    Attributes
    ----------
    false, true : ndarray of shape (n_points,)
        False positive rates, and mean true positive rates at them.
    spread : ndarray of shape (n_points,)
        Standard deviation of the true positive rates.
    area : float
        The mean area under the curves.
    """

    false: FloatArray
    true: FloatArray
    spread: FloatArray
    area: float


def mean_roc(records: Sequence[Record]) -> MeanCurve | None:
    """Return the ROC curve averaged vertically over splits [Fawcett06]_.

    None unless there are scores for two classes.
    """
    rows, areas = [], []
    for predictions in (record.result.predictions for record in records):
        truth, scores = np.asarray(predictions.get("y_true", ())), predictions.get("scores")
        classes = np.unique(truth)
        if scores is None or np.ndim(scores) != 1 or len(classes) != 2:
            continue
        false, true, _ = roc_curve(truth, scores, pos_label=classes[1])
        areas.append(auc(false, true))
        # Slightly to the right, so that vertical segments count with their upper end.
        rows.append(np.interp(_RATES + 1e-9, false, true))
    if not rows:
        return None
    heights = np.vstack([np.zeros(len(rows)), np.transpose(rows)])
    spread = heights.std(axis=1, ddof=1) if len(rows) > 1 else np.zeros(len(heights))
    rates = np.concatenate([[0.0], _RATES])
    return MeanCurve(rates, heights.mean(axis=1), np.asarray(spread), float(np.mean(areas)))
