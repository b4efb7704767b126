"""What estimators that learn share: from rows to a bank, from a bank to a learned kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from discernel.backend import FloatArray
from discernel.bank import Bank, CombinedKernel, choose_bank, make_bank
from discernel.criteria import Auto
from discernel.crossfit import CrossFitted, propose_kernels
from discernel.estimators.weighted import BaseWeightedEstimator
from discernel.exceptions import check_number
from discernel.kernels import Kernel
from discernel.learners import Request, learn, make_request
from discernel.targets import Target

__all__ = ["BaseKernelLearner"]


class BaseKernelLearner(BaseWeightedEstimator):
    """Build the bank, learn, store.

    Subclasses have the parameters of this class, described in `MultipleKernelDiscriminant`, or
    say otherwise which candidates there are and what is to be learned.
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        criterion: Any = "auto",
        solver: Any = "auto",
        regularization: float | str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        random_state: Any = None,
        bank: str = "auto",
        cache_size: float = 256,
        callback: Any = None,
    ) -> None:
        self.kernels = kernels
        self.criterion = criterion
        self.solver = solver
        self.regularization = regularization
        self.tol = tol
        self.max_iter: Any = max_iter  # a number, always, where a subclass says so
        self.random_state = random_state
        self.bank = bank
        self.cache_size = cache_size
        self.callback = callback

    def _request(self) -> Request:
        """Return what is to be learned, checked."""
        return make_request(
            criterion=self.criterion,
            solver=self.solver,
            regularization=self.regularization,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
            callback=self.callback,
        )

    def _propose(
        self, X: Any, kernels: list[Kernel], target: Target, request: Request
    ) -> tuple[list[Kernel], Request]:
        """Return the kernels of the default for these rows, and how their weights are found."""
        given = request.regularization if isinstance(request.regularization, float) else None
        self.proposal_ = proposal = propose_kernels(
            X,
            kernels[0].spreads,  # type: ignore[attr-defined]
            target,
            regularization=given,
            random_state=request.random_state,
        )
        if isinstance(request.criterion, Auto) and request.automatic:
            request = replace(request, solver=CrossFitted(proposal))
        return proposal.kernels, request

    def _learn(
        self, X: Any, kernels: list[Kernel], target: Target, request: Request
    ) -> tuple[Bank, FloatArray]:
        """Learn and store; return the bank and the weights of its kernels."""
        if self._takes_tables() and isinstance(X, np.ndarray):
            kernels, request = self._propose(X, kernels, target, request)
        cache_size = getattr(self, "cache_size", 256)
        check_number("cache_size", cache_size, positive=True)
        n_bytes = cache_size * 2**20
        # One program takes some ten passes, in which a large stack does not earn its page faults.
        given = request.criterion.regularization_is == "given"
        one_program = given and request.regularization != "loo"
        room = n_bytes / 4 if one_program else n_bytes
        kind = choose_bank(getattr(self, "bank", "auto"), kernels, X, room)
        near = kernels
        if request.criterion.normalization == "centered_trace":
            # The same once centred; raw traces would not be the same.
            near = [kernel.shifted(X) for kernel in kernels]
        normalization = request.criterion.normalization
        bank = make_bank(kind, near, X, normalization, n_bytes, target.sample_weights)
        self.bank_ = kind
        learned = learn(bank, target, request)
        weights = learned.weights[bank.kept]
        active = np.flatnonzero(learned.coefficients)
        self.combined_kernel_ = CombinedKernel(
            [near[i] for i in active],
            learned.coefficients[active],
            None if kernels[0].precomputed else X,
            bank.centering(weights),
        )
        self.learned_kernel_ = learned
        self.kernels_ = kernels
        self.kernel_names_ = bank.names
        self.kernel_weights_ = learned.weights
        self.regularization_ = learned.regularization
        self.gap_ = learned.gap
        self.n_iter_ = max(1, learned.n_iter)
        return bank, weights
