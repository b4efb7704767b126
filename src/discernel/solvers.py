"""How weights are found, for ``solver=``: each takes its own options."""

from discernel.learners import QCQP, SDP, SILP, InteriorPoint, Newton
from discernel.learners.galerkin import Galerkin

__all__ = ["QCQP", "SDP", "SILP", "Galerkin", "InteriorPoint", "Newton"]
