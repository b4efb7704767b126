"""Data that follow from a definition: Breiman's waveforms, the MONK's problems."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from discernel.arrays import FloatArray
from discernel.exceptions import check_count

#: Which two base waves a class mixes, numbered as in the file of the UCI repository.
WAVES_OF_CLASS = ((1, 2), (0, 2), (0, 1))

#: How many values each attribute of the MONK's problems takes: 1, 2, ...
MONKS_VALUES = (3, 3, 2, 3, 4, 2)


def base_waves() -> FloatArray:
    """Return the three triangles of height 6 with peaks at points 11, 15 and 7 of 1, ..., 21."""
    points = np.arange(1, 22)
    peaks = np.array([[11], [15], [7]])
    return np.asarray(np.maximum(6.0 - np.abs(points - peaks), 0.0))


def make_waveform(
    n_samples: int = 5000, *, n_noise_features: int = 0, random_state: Any = None
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Draw from the three waveform classes of [Breiman84]_.

    A sample of a class is u h_a + (1 − u) h_b + ε at 21 points, with u uniform on [0, 1], h_a and
    h_b the two base waves of the class and ε standard normal. The classes are equally likely.

    Parameters
    ----------
    n_samples : int, default=5000
        How many samples.
    n_noise_features : int, default=0
        How many standard normal features to append; 19 in the second version of the data set.
    random_state : int, RandomState instance or None, default=None
        The seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 21 + n_noise_features)
        The samples.
    y : ndarray of shape (n_samples,)
        The classes: 0, 1 or 2, numbered as in the file of the UCI repository.

    Examples
    --------
    >>> from discernel.datasets import make_waveform
    >>> X, y = make_waveform(300, random_state=0)
    >>> X.shape
    (300, 21)
    """
    check_count("n_samples", n_samples, 1)
    check_count("n_noise_features", n_noise_features, 0)
    random = check_random_state(random_state)
    y = random.randint(3, size=n_samples).astype(np.int64)
    share = random.uniform(size=(n_samples, 1))
    first, second = base_waves()[np.array(WAVES_OF_CLASS)[y].T]
    X = random.standard_normal((n_samples, 21 + n_noise_features))
    X[:, :21] += share * first + (1.0 - share) * second
    return X, y


def make_monks(problem: int) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return all 432 points of MONK's problem 1, 2 or 3, labelled by its rule [Thrun91]_.

    Parameters
    ----------
    problem : {1, 2, 3}
        1: a1 = a2 or a5 = 1. 2: exactly two attributes are 1. 3: a5 = 3 and a4 = 1, or a5 ≠ 4
        and a2 ≠ 3.
    """
    X = np.indices(MONKS_VALUES).reshape(len(MONKS_VALUES), -1).T + 1
    a1, a2, _, a4, a5, _ = X.T
    rules = {
        1: (a1 == a2) | (a5 == 1),
        2: (X == 1).sum(axis=1) == 2,
        3: ((a5 == 3) & (a4 == 1)) | ((a5 != 4) & (a2 != 3)),
    }
    return X.astype(np.float64), rules[problem].astype(np.int64)
