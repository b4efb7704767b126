"""Safe screening: which kernels can have positive weight at an optimum of `rkda`.

With P(w) = ⟨T, N(w)⁻¹T⟩, N(w) = λI + Σ w_iK_i and q_i(B) = ⟨B, K_iB⟩, the criterion is

    min_w P(w)  =  min_w max_B L(w, B)  =  max_B D(B),
    L(w, B) = 2⟨T, B⟩ − λ‖B‖² − Σ w_i q_i(B),    D(B) = 2⟨T, B⟩ − λ‖B‖² − max_i q_i(B).

D is strongly concave, so it has a unique maximizer B*. Every optimal w* minimizes L(·, B*) over the
simplex, so only kernels with the largest q_i(B*) of all have positive weight.

The ball. For any w on the simplex, B = N(w)⁻¹T and number t:

* D(tB) ≤ D(B*) − λ‖tB − B*‖², because D plus λ‖·‖² is concave and B* is the maximizer of D;
* D(B*) ≤ L(w, B*) = P(w) − ⟨B − B*, N(w)(B − B*)⟩ ≤ P(w) − λ‖B − B*‖².

Their sum is λ‖tB − B*‖² + λ‖B − B*‖² ≤ P(w) − D(tB) = g. The left side is, with the midpoint
C = ½(1 + t)B, equal to 2λ‖C − B*‖² + ½λ(1 − t)²‖B‖², hence

    ‖C − B*‖²  ≤  r² = g / (2λ) − ¼(1 − t)²‖B‖²,

half the squared radius that either inequality gives alone. The t with the largest D(tB) is the one
of `RKDAProgram.lower_bound`.

The bounds. q_i is convex and its curvature is at most 2‖K_i‖, so in the ball

    q_i(C) − 2r‖K_iC‖  ≤  q_i(B*)  ≤  q_i(C) + 2r‖K_iC‖ + r²‖K_i‖.

A kernel whose upper bound is below some kernel's lower bound has weight 0 at every optimum. This
is the gap-safe rule [Ndiaye17]_ for a sum of kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray


@dataclass(frozen=True)
class DualBall:
    """A ball around ``scale`` times B that contains B*.

    Attributes
    ----------
    scale : float
        ½(1 + t).
    radius : float
        r.
    """

    scale: float
    radius: float

    def can_enter(
        self,
        energies: FloatArray,
        lengths: FloatArray,
        norms: FloatArray,
        noise: float | FloatArray = 0.0,
    ) -> NDArray[np.bool_]:
        """Return which kernels may have positive weight; all others have weight 0 at every optimum.

        Parameters
        ----------
        energies : ndarray of shape (n_kernels,)
            ⟨B, K_iB⟩.
        lengths : ndarray of shape (n_kernels,)
            ‖K_iB‖.
        norms : ndarray of shape (n_kernels,)
            Upper bounds of ‖K_i‖.
        noise : float or ndarray of shape (n_kernels,), default=0.0
            Bounds of the rounding errors of the energies.
        """
        center = self.scale**2 * energies
        slack = 2.0 * self.radius * self.scale * lengths + self.scale**2 * noise
        largest = float((center - slack).max())
        return np.asarray(center + slack + self.radius**2 * norms >= largest)
