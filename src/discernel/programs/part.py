"""Learning on some of the samples, for use on all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.bank import Bank
from discernel.targets import Target

__all__ = ["Part", "draw_part"]


@dataclass(frozen=True)
class Part:
    """Some of the samples.

    Attributes
    ----------
    bank : Bank
        The kernels on them; those that are constant there are left out.
    target : Target
        What is to be separated.
    """

    bank: Bank
    target: Target

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """Which kernels of all samples are constant on these, so that nothing is known of them."""
        return ~np.isin(np.arange(self.bank.n_candidates), self.bank.kept)

    def on_all(self, weights: FloatArray) -> FloatArray:
        """Return weights of these kernels as weights of those of all samples, 0 where unseen."""
        return self.bank.expand(weights)


def draw_part(bank: Bank, target: Target, share: float, rng: np.random.RandomState) -> Part | None:
    """Return a share of the samples, at random; None if no kernel varies on them."""
    rows = target.draw(share, rng)
    part = bank.subset(rows)
    return Part(part, target.subset(rows)) if part.n_kernels else None
