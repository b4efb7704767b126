"""Conformal quantiles: limits that a given share of new rows does not exceed."""

from __future__ import annotations

from typing import Any

import numpy as np

from discernel.arrays import FloatArray
from discernel.arrays.groups import Groups
from discernel.arrays.sample_weights import effective_number
from discernel.exceptions import InvalidInputError, is_number

#: Shares that differ by less are equal, so that rounding does not cost a row.
_ROUNDING = 1e-9


def conformal_quantile(
    scores: FloatArray, coverage: float, weights: FloatArray, groups: Groups | None = None
) -> float:
    """Return the limit that the score of a new row does not exceed with a given probability.

    It is the smallest score q with Σ_{s_i ≤ q} ω_i ≥ coverage · (1 + 1/n) Σω, where n is the
    effective number of rows, (Σω)²/Σω², or of groups of rows. With equal weights and no groups, it
    is the ⌈coverage · (n + 1)⌉-th smallest of n scores. Infinity if that is beyond the largest:
    fewer rows than coverage/(1 − coverage) say nothing about so rare events.

    Proof for equal weights. If the n scores and that of the new row are exchangeable, all ranks of
    the new score among the n + 1 are equally likely, ties counted as the higher rank. It is at most
    q if its rank is at most k = ⌈coverage · (n + 1)⌉, which has the probability k/(n + 1), at least
    ``coverage``, and without ties at most coverage + 1/(n + 1).

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Scores of held-out rows; larger ones fit less well.
    coverage : float
        The probability, above 0 and below 1.
    weights : ndarray of shape (n_rows,)
        Sample weights ω.
    groups : Groups, optional
        The groups of the rows, if rows of a group resemble each other.
    """
    if not len(scores):
        return np.inf
    order = np.argsort(scores, kind="stable")
    reached = np.cumsum(weights[order])
    n = effective_number(weights if groups is None else groups.sums(weights))
    wanted = coverage * (1.0 + 1.0 / n) * reached[-1]
    position = int(np.searchsorted(reached, wanted * (1.0 - _ROUNDING)))
    return float(scores[order[position]]) if position < len(order) else np.inf


def check_coverage(coverage: Any) -> float:
    """Return a coverage as a float, or raise a clear error."""
    if not (is_number(coverage) and 0.0 < coverage < 1.0):
        raise InvalidInputError(
            "The coverage must be a probability above 0 and below 1, such as 0.9 for nine of ten "
            f"new rows. Got {coverage!r}."
        )
    return float(coverage)
