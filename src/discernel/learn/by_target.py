"""Learn kernel weights and λ of each target, as a `LearnedKernel` with their means."""

from __future__ import annotations

from typing import cast

import numpy as np

from discernel.arrays import FloatArray
from discernel.bank import Bank
from discernel.exceptions import InvalidInputError
from discernel.learn.request import Request
from discernel.programs.base import draw_start
from discernel.programs.by_target import LeaveOneOutByTarget, TargetSearch
from discernel.programs.solution import LearnedKernel, Progress, Status, TargetWeights
from discernel.progress.deadline import must_stop_learning
from discernel.targets import RegressionTarget


def learn_by_target(bank: Bank, target: RegressionTarget, request: Request) -> LearnedKernel:
    """Learn weights and λ of each target from a bank.

    With more than `Request.few` samples and ``criterion="auto"``, they are learned on a part of the
    samples and refined on all, as by `Search`.

    Parameters
    ----------
    bank, target, request
        Kernels, target and options; the criterion is a `LeaveOneOutByTarget`.
    """
    criterion = cast(LeaveOneOutByTarget, request.criterion)
    if not bank.is_exact:
        raise InvalidInputError(
            "weights_per_target=True requires kernel matrices. Got a bank of features, or of "
            "systems that are solved by iteration. Use bank='dense' or bank='tiled', fewer rows, "
            "or weights_per_target=False."
        )
    lam = request.given_regularization
    how = {"tries_others": criterion.tries_others, "random_state": request.random_state}
    history: list[Progress] = []

    def monitor(value: float, weights: FloatArray) -> None:
        active = int(np.count_nonzero(weights > 1e-3))
        history.append(Progress(len(history), value, None, active, lam))
        if request.callback is not None:
            request.callback(history[-1])

    options, part = (criterion.pull, lam, criterion.device, monitor), None
    search = TargetSearch(bank, target, *options)
    if criterion.tries_others:
        part = draw_start(bank, target, request.few, request.random_state)
    if part is None:
        found = search.search(**how)
    else:
        small = TargetSearch(part.bank, cast(RegressionTarget, part.target), *options)
        found = search.refine(small.search(**how), part)
    return _learned(bank, found, request, history)


def _learned(
    bank: Bank, found: TargetWeights, request: Request, history: list[Progress]
) -> LearnedKernel:
    """Return the learned kernel with the weights of each target, and their means."""
    n_targets = len(found.regularization)
    weights, coefficients = np.zeros((2, n_targets, bank.n_candidates))
    weights[:, bank.kept] = found.weights
    coefficients[:, bank.kept] = found.weights * bank.scales
    return LearnedKernel(
        weights=weights.mean(axis=0),
        coefficients=coefficients.mean(axis=0),
        regularization=float(np.exp(np.log(found.regularization).mean())),
        objective=float(found.errors.mean()),
        gap=None,
        status=Status.OUT_OF_TIME if must_stop_learning() else Status.NO_CERTIFICATE,
        n_iter=len(history),
        criterion=request.criterion.name,
        solver=request.solver.name,
        history=history,
        names=tuple(bank.names),
        by_target=TargetWeights(weights, found.regularization, found.errors, coefficients),
    )
