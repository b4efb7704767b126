"""A part of the samples, to start learning on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from discernel.bank import Bank
from discernel.targets import Target


class Part(NamedTuple):
    """Some of the samples.

    Attributes
    ----------
    bank : Bank
        The kernels on them; those that are constant there are left out. Its `Bank.expand` leads
        back to the kernels of all samples.
    target : Target
        What is to be separated.
    """

    bank: Bank
    target: Target

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """The kernels of all samples that are constant on these, with unknown weights."""
        return ~np.isin(np.arange(self.bank.n_candidates), self.bank.kept)


def draw_part(bank: Bank, target: Target, share: float, random_state: Any) -> Part | None:
    """Return a share of the samples, at random; None if no kernel varies on them.

    A ``random_state`` of None is 0: the same data give the same kernel.
    """
    rows = target.draw(share, check_random_state(0 if random_state is None else random_state))
    part = bank.subset(rows)
    return Part(part, target.subset(rows)) if part.n_kernels else None
