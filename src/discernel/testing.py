"""Checks for custom kernels, banks, criteria and solvers.

Like scikit-learn's ``check_estimator``, each function returns None if all checks pass, and raises
an AssertionError that names the failed check otherwise. The library's own parts pass these checks.

>>> from discernel.criteria import RKDA
>>> from discernel.kernels import RBF
>>> from discernel.solvers import Newton
>>> from discernel.testing import check_criterion, check_kernel, check_solver
>>> check_kernel(RBF(width=2.0))
>>> check_criterion(RKDA())
>>> check_solver(Newton())
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from discernel.arrays import Buffers, FloatArray
from discernel.arrays.groups import Groups
from discernel.bank import Bank, DenseBank, Normalization, System
from discernel.criteria import Criterion, FisherRatio, Program, as_criterion, offers
from discernel.exceptions import ConvergenceWarning
from discernel.export.record import Recorder
from discernel.kernels import RBF, Kernel
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.terms import formula_of
from discernel.learn import learn_kernel
from discernel.solvers import Newton, Solution, Solver, Status, Task
from discernel.targets import ClassTarget, Target

__all__ = ["check_bank", "check_criterion", "check_kernel", "check_solver"]


#: Relative error of estimated blocks of an inverse, beside that of its diagonal.
_BLOCKS_OFF = 0.02


def _require(holds: Any, what: str) -> None:
    """Raise an AssertionError unless a condition holds, also under ``python -O``."""
    if not holds:
        raise AssertionError(what)


def _require_close(found: Any, expected: Any, what: str, rtol: float = 1e-7) -> None:
    """Raise an AssertionError if arrays differ by more than ``rtol`` times the largest entry."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    _require(found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}.")
    size = float(np.abs(expected).max(initial=0.0))
    off = float(np.abs(found - expected).max(initial=0.0))
    _require(
        off <= rtol * max(size, 1e-300), f"{what}: off by {off:.2e}, entries up to {size:.2e}."
    )


def _rows(n: int = 30, n_features: int = 4, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.standard_normal((n, n_features)) + 0.7 * y[:, None], y.astype(float)


# ---- kernels ---------------------------------------------------------------------------------


def check_kernel(kernel: Kernel, X: Any = None, Z: Any = None) -> None:
    """Check that a kernel is positive semidefinite and that its methods agree.

    The matrix must be symmetric and positive semidefinite. Its diagonal, blocks, tiles and exports
    must agree with it, and derivatives with finite differences. Inputs must not be modified, and
    copies must be equal.

    Parameters
    ----------
    kernel : Kernel
        The kernel; it is resolved on X first.
    X, Z : array-like of shape (n_rows, n_features), optional
        Training rows and other rows; by default random rows with four features.

    Examples
    --------
    >>> from discernel.kernels import RBF
    >>> check_kernel(RBF(width=2.0))
    """
    X = _rows()[0] if X is None else X
    Z = _rows(11, np.shape(X)[1], seed=1)[0] if Z is None else Z
    kernel = kernel.resolve(X)
    name, before = kernel.name, np.array(X, copy=True)
    matrix = kernel(X)
    _require(matrix.dtype == np.float64, f"{name} must return float64. Got {matrix.dtype}.")
    _require(np.isfinite(matrix).all(), f"{name} must be finite.")
    _require_close(matrix, matrix.T, f"{name} must be symmetric", 1e-12)
    least = float(np.linalg.eigvalsh(matrix)[0])
    limit = -1e-9 * float(np.trace(matrix))
    _require(least >= limit, f"{name} must be positive semidefinite. Smallest eigenvalue: {least}.")
    _require_close(kernel(X, X), matrix, f"{name}: kernel(X, X) must equal kernel(X)", 1e-9)
    _require_close(kernel.diagonal(X), matrix.diagonal(), f"The diagonal of {name}", 1e-9)
    cross = kernel(Z, X)
    _require_close(kernel(X, Z), cross.T, f"{name}: kernel(X, Z) must equal kernel(Z, X).T", 1e-9)
    _require_close(kernel(X[3:9], Z[2:5]), cross[2:5, 3:9].T, f"{name} of some rows", 1e-9)
    _require((np.asarray(X) == before).all(), f"{name} must not modify X.")
    _require(copy.deepcopy(kernel) == kernel, f"A copy of {name} must equal it.")
    _check_tiles(kernel, X, matrix)
    _check_formula(kernel, X, Z, cross)
    _check_derivatives(kernel, X)


def _check_tiles(kernel: Kernel, X: Any, matrix: FloatArray) -> None:
    """Check the kernel on prepared rows in tiles, as banks compute it."""
    together = KernelSet([kernel, kernel])
    rows = together.prepare(X)
    for tile, other in ((rows[:7], rows[4:20]), (rows[2:9], None)):
        columns = slice(4, 20) if other is not None else slice(2, 9)
        expected = matrix[:7, columns] if other is not None else matrix[2:9, columns]
        for _, found in together.matrices(tile, other, Buffers()):
            _require_close(found, expected, f"{kernel.name} in tiles", 1e-7)


def _check_formula(kernel: Kernel, X: Any, Z: Any, cross: FloatArray) -> None:
    """Check the formula that exports compute, for dense rows of numbers."""
    stored, new = np.asarray(X), np.asarray(Z)
    if stored.dtype.kind != "f" or stored.ndim != 2 or kernel.precomputed:
        return
    recorder = Recorder(new.shape[1])
    found = formula_of(kernel.terms(), recorder.given[0], stored, recorder)
    if found is not None:
        values = recorder.computation(found)(new)
        _require_close(values, cross, f"{kernel.name} in exports", 1e-7)


def _check_derivatives(kernel: Kernel, X: Any) -> None:
    for name, value in kernel.parameters.items():
        step = 1e-6 * max(abs(value), 1e-3)
        above, below = (kernel.with_parameters(**{name: value + s})(X) for s in (step, -step))
        expected = (above - below) / (2.0 * step)
        what = f"The derivative of {kernel.name} with respect to {name}, and finite differences"
        size = max(float(np.abs(expected).max()), 1e-3 * float(np.abs(kernel(X)).max()))
        off = float(np.abs(kernel.derivative(name, X) - expected).max())
        _require(off <= 1e-4 * size, f"{what}: off by {off:.2e} of {size:.2e}.")


# ---- banks -----------------------------------------------------------------------------------


def check_bank(
    bank: Bank, grams: Any, normalization: Normalization = "centered_trace", rtol: float = 1e-8
) -> None:
    """Check the results of a bank against direct computations with its matrices.

    Parameters
    ----------
    bank : Bank
        The bank.
    grams : array-like of shape (n_candidates, n_samples, n_samples)
        The raw kernel matrices of the candidates.
    normalization : {"centered_trace", "trace"}, default="centered_trace"
        The normalization of the bank.
    rtol : float, default=1e-8
        The tolerance, relative to the largest entry. Estimated diagonals of inverses may be off
        by three of their standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from discernel.bank import DenseBank
    >>> from discernel.kernels import RBF
    >>> rows = np.random.default_rng(0).normal(size=(20, 2))
    >>> grams = [RBF(width=width)(rows) for width in (1.0, 4.0)]
    >>> check_bank(DenseBank(np.array(grams)), grams)
    """
    grams = np.asarray(grams, dtype=float)
    dense = DenseBank(grams, normalization=normalization, trusted=[True] * len(grams))
    n = bank.n_samples
    _require(n == grams.shape[1], f"n_samples must be {grams.shape[1]}. Got {n}.")
    _require((bank.kept == dense.kept).all(), f"kept must be {dense.kept}. Got {bank.kept}.")
    center = np.eye(n) - 1.0 / n
    raw = np.array([center @ gram @ center for gram in grams[bank.kept]])
    by = raw if normalization == "centered_trace" else grams[bank.kept] / n
    K = raw / np.trace(by, axis1=1, axis2=2)[:, None, None]
    _check_contractions(bank, K, rtol)
    _check_systems(bank, K, rtol)
    _check_parts(bank, dense, K, rtol)


def _check_contractions(bank: Bank, K: FloatArray, rtol: float) -> None:
    rng, n = np.random.default_rng(0), bank.n_samples
    V, w = rng.standard_normal((n, 3)), rng.dirichlet(np.ones(len(K)))
    S = rng.standard_normal((n, n))
    S = S + S.T
    combined = np.tensordot(w, K, 1)
    _require(len(bank.rounding) == len(K), "There must be one rounding error per kernel.")
    _require((bank.rounding >= 0).all(), "Rounding errors must be at least 0.")
    _require_close(bank.traces(), np.trace(K, axis1=1, axis2=2), "traces", rtol)
    _require((bank.norms() >= (1 - rtol) * np.linalg.norm(K, 2, axis=(1, 2))).all(), "norms")
    _require_close(bank.products(V), K @ V, "products", rtol)
    if bank.has_matrices:
        _require_close(bank.combined(w), combined, "combined", rtol)
    _require_close(bank.compressed(V), V.T @ K @ V, "compressed", rtol)
    _require_close(bank.inner(S), (K * S).sum(axis=(1, 2)), "inner", rtol)
    _require_close(bank.inner_products(), np.einsum("aij,bij->ab", K, K), "inner_products", rtol)


def _check_systems(bank: Bank, K: FloatArray, rtol: float) -> None:
    rng, n = np.random.default_rng(1), bank.n_samples
    V, w = rng.standard_normal((n, 2)), rng.dirichlet(np.ones(len(K)))
    ridge = 0.05 * (1.0 + rng.random(n))
    for given in (0.1, ridge):
        N = np.tensordot(w, K, 1) + np.diag(np.full(n, given))
        inverse = np.linalg.inv(N)
        for system in (bank.system(w, given), bank.systems(w)(given)):
            for _ in range(2):  # a repeated call must return the same result
                _require_close(system.solve(V), inverse @ V, "system.solve", rtol)
                _check_diagonal(system, inverse.diagonal(), rtol)
                _check_blocks(system, inverse, rtol)
        if bank.has_matrices:
            again = bank.inverse(w, given)
            _require_close(again.inverse_diagonal(), inverse.diagonal(), "inverse", rtol)
            _check_blocks(again, inverse, rtol)
    N = np.tensordot(w, K, 1) + 0.1 * np.eye(n)
    for system in (bank.system(w, 0.1, rough=True), bank.system(w, 0.1)):
        found, residual = system.solve_residual(V)
        _require_close(found, np.linalg.solve(N, V), "rough system, to three digits", 1e-3)
        if residual is not None:
            _require_close(N @ found + residual, V, "solve_residual", rtol)


def _check_diagonal(system: System, expected: Any, rtol: float) -> None:
    diagonal, error = system.inverse_diagonal(), system.diagonal_error
    if error is None:
        _require_close(diagonal, expected, "diagonal", rtol)
    else:
        off = float(np.sqrt(np.mean((diagonal / expected - 1.0) ** 2)))
        _require(
            off <= 3.0 * error,
            f"The diagonal is off by {off:.2e}, with a claimed standard error of {error:.2e}.",
        )


def _check_blocks(system: System, inverse: Any, rtol: float) -> None:
    """Check the blocks of the inverse for groups of one and of three rows."""
    n = len(inverse)
    groups = Groups(np.where(np.arange(n) < n // 3, np.arange(n), n + np.arange(n) // 3))
    for rows, found in zip(groups.batches, system.inverse_blocks(groups), strict=True):
        expected = inverse[rows[:, :, None], rows[:, None, :]]
        if system.diagonal_error is None:
            _require_close(found, expected, "blocks", rtol)
        else:
            off = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
            most = _BLOCKS_OFF + 3.0 * system.diagonal_error
            _require(
                off <= most,
                f"The blocks of the inverse are off by {off:.2e}; at most {most:.2e} is allowed.",
            )


def _check_parts(bank: Bank, dense: DenseBank, K: FloatArray, rtol: float) -> None:
    rng, p = np.random.default_rng(2), len(K)
    V, w = rng.standard_normal((bank.n_samples, 2)), rng.dirichlet(np.ones(p))
    centering, expected = bank.centering(w), dense.centering(w)
    _require_close(centering.row_means, expected.row_means, "centering", rtol)
    _require_close(bank.coefficients(w), dense.coefficients(w), "coefficients", rtol)
    positions = np.arange(p)[::-1][: max(1, p - 1)]
    _require_close(bank.select(positions).products(V), K[positions] @ V, "select", rtol)
    rows = np.sort(rng.permutation(bank.n_samples)[: max(4, 2 * bank.n_samples // 3)])
    part, whole = bank.subset(rows), dense.subset(rows)
    if len(part.kept) == len(whole.kept):
        _require_close(part.products(V[rows]), whole.products(V[rows]), "subset", rtol)


# ---- criteria --------------------------------------------------------------------------------


def _problems(criterion: Criterion) -> Iterator[tuple[Bank, Target, Any, Any]]:
    for seed in range(3):
        n_classes = 2 if criterion.takes == "two classes" else 2 + seed
        rng = np.random.default_rng(seed)
        y = np.arange(24) % n_classes
        X = rng.standard_normal((24, 3)) + 0.8 * (y[:, None] == np.arange(3))
        grams = np.array([RBF(width=s)(X) for s in (0.5, 1.5, 4.0, 12.0)][: 2 + seed])
        bank = DenseBank(grams, normalization=criterion.normalization)
        yield bank, ClassTarget.from_labels(y), grams, y


def check_criterion(criterion: Criterion | str, regularization: float = 0.1) -> None:
    """Check a criterion: its program, derivatives and bounds, and learning with it.

    For a convex program, the gradient and the Hessian (if any) must agree with finite differences,
    the value must lie below chords and above tangents, and no value may be below a bound. For any
    program, the default solver must return the same weights on the simplex in two runs.

    Parameters
    ----------
    criterion : Criterion or str
        The criterion.
    regularization : float, default=0.1
        λ.

    Examples
    --------
    >>> from discernel.criteria import Uniform
    >>> check_criterion(Uniform())
    """
    criterion = as_criterion(criterion)
    for bank, target, grams, y in _problems(criterion):
        program = criterion.program(bank, target, regularization)
        _require(isinstance(program, Program), f"program must return a Program. Got {program!r}.")
        if offers(program, "at") and getattr(program, "maximize", True) is not None:
            _check_convex(program)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            first, second = (
                learn_kernel(grams, y, criterion=criterion, regularization=regularization)
                for _ in range(2)
            )
        _require_allowed(first.weights, program, len(grams), criterion.name)
        _require_close(second.weights, first.weights, f"{criterion.name}, second run", 1e-12)


def _check_convex(program: Any) -> None:
    rng, p = np.random.default_rng(0), program.n_weights
    drawn = rng.dirichlet(np.full(p, 2.0), size=6)
    points = [program.at(w if program.contains(w) else program.normalize(w)) for w in drawn]
    for point in points:
        _check_derivative(program, point)
        for other in points:
            below = point.intercept + float(point.gradient @ other.weights)
            slack = 1e-9 * max(abs(other.value), 1.0) + other.error
            _require(below <= other.value + slack, "Tangents must not lie above the value.")
            _require(point.bound <= other.value + slack, "No value may be below a bound.")
            middle = program.at(0.5 * (point.weights + other.weights)).value
            _require(
                middle <= 0.5 * (point.value + other.value) + slack, "The value must be convex."
            )
        _require(point.error >= 0, "The error of a value must be at least 0.")
    _require_allowed(program.split(points[0].weights).weights, program, None, "split")


def _check_derivative(program: Any, point: Any) -> None:
    """Compare the gradient and the Hessian with central differences along the simplex."""
    w, step = point.weights, 1e-5
    for i, j in ((0, len(w) - 1), (len(w) // 2, 0)):
        if i == j:
            continue
        direction = np.zeros(len(w))
        direction[i], direction[j] = 1.0, -1.0
        length = min(step, 0.4 * w[i], 0.4 * w[j])
        above, below = (program.at(w + s * direction) for s in (length, -length))
        slope = (above.value - below.value) / (2.0 * length)
        size = max(abs(slope), float(np.abs(point.gradient).max()))
        off = abs(float(point.gradient @ direction) - slope)
        _require(off <= 1e-4 * size, f"The gradient differs from differences by {off:.2e}.")
        try:
            bend = point.hessian @ direction
        except NotImplementedError:
            continue
        expected = (above.gradient - below.gradient) / (2.0 * length)
        size = max(float(np.abs(expected).max()), 1e-3 * float(np.abs(point.gradient).max()))
        off = float(np.abs(bend - expected).max())
        _require(off <= 1e-3 * size, f"The Hessian differs from differences by {off:.2e}.")


def _require_allowed(weights: FloatArray, program: Any, n: int | None, what: str) -> None:
    """Raise an AssertionError unless there are n weights, and a program allows them."""
    _require(n is None or len(weights) == n, f"{what}: {len(weights)} weights, not {n}.")
    _require(
        program.contains(weights),
        f"{what}: weights must be such that they {program.allowed}. Got {weights}.",
    )


# ---- solvers ---------------------------------------------------------------------------------


def check_solver(
    solver: Solver, criterion: Criterion | str = "rkda", regularization: float = 0.1
) -> None:
    """Check a solver of convex programs: weights, value and gap, for several starts.

    Parameters
    ----------
    solver : Solver
        The solver.
    criterion : Criterion or str, default="rkda"
        The criterion whose programs are solved.
    regularization : float, default=0.1
        λ.

    Examples
    --------
    >>> from discernel.solvers import Newton
    >>> check_solver(Newton())
    """
    criterion, tol = as_criterion(criterion), 1e-5
    lam = 10.0 * regularization if isinstance(criterion, FisherRatio) else regularization
    seen: list[FloatArray] = []

    def monitor(iteration: int, value: float, gap: Any, weights: Any, /, **stage: int) -> None:
        seen.append(np.array(weights))

    for bank, target, _, _ in _problems(criterion):
        program: Any = criterion.program(bank, target, lam)
        best = Newton().solve(program, Task(1e-10)).value
        seen.clear()
        n = program.n_weights
        starts = [None, program.normalize(np.eye(n)[0])]
        for start in starts:
            found: Solution = solver.solve(program, Task(tol, None, start, monitor))
            _check_found(found, program, best, tol, solver.name)
        _require(seen, f"{solver.name} must call the monitor.")
        for weights in seen:
            _require_allowed(weights, program, n, f"{solver.name}, monitor")
        early, what = solver.solve(program, Task(1e-14, 1)), f"{solver.name} after one iteration"
        _require_allowed(early.weights, program, n, what)
        _require(early.n_iter <= 1, f"{solver.name}: {early.n_iter} iterations with max_iter=1.")


def _check_found(found: Solution, program: Any, best: float, tol: float, name: str) -> None:
    _require_allowed(found.weights, program, program.n_weights, name)
    _require(isinstance(found.status, Status), f"{name}: the status must be a Status.")
    value = program.at(found.weights).value
    _require_close(found.value, value, f"{name}: the value must belong to the weights", 1e-6)
    gap = (value - best) / abs(value)
    _require(
        gap <= found.gap + 1e-9, f"{name} claims a gap of {found.gap:.1e}; the gap is {gap:.1e}."
    )
    if found.status is Status.CONVERGED:
        _require(found.gap <= tol, f"{name} has converged, but its gap is {found.gap:.1e}.")
