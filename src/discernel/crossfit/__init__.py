"""The default: kernels chosen by what they predict for rows that had no part in the choice."""

from discernel.crossfit.landmarks import residual_landmarks
from discernel.crossfit.propose import CrossFitted, Proposal, propose_kernels, scaled_kernels

__all__ = ["CrossFitted", "Proposal", "propose_kernels", "residual_landmarks", "scaled_kernels"]
