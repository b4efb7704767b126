"""What predictions cost that were made for rows without their labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.discriminant import LEAST_LOG, log_posteriors
from discernel.targets import ClassTarget, Target

__all__ = ["row_losses"]


def row_losses(
    predicted: FloatArray, truth: FloatArray, target: Target
) -> tuple[FloatArray, NDArray[np.bool_] | None]:
    """Return what the predicted scores of each row cost, and of classes whether they are right.

    Of classes, minus the logarithm of the probability of the right one, as the discriminant of
    these scores would state it: the scores themselves may be far from the truth and yet tell the
    classes well apart. Else, the mean squared error.

    Parameters
    ----------
    predicted : ndarray of shape (n_rows, n_columns)
        The scores.
    truth : ndarray of shape (n_rows, n_columns)
        What they should be, in the same units.
    target : Target
        The target of these rows.
    """
    if isinstance(target, ClassTarget):
        posterior = log_posteriors(predicted, target, truth)
        own = posterior[np.arange(len(posterior)), target.codes]
        # No row costs more, whatever is said of it.
        return -np.maximum(own, LEAST_LOG), posterior.argmax(axis=1) == target.codes
    return np.asarray(np.mean((predicted - truth) ** 2, axis=1)), None
