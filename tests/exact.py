"""Objectives and optima in arithmetic of 400 bits, and seeded problems to check claims on.

Everything here is written plainly from the papers' formulas and shares no code with the package.
The given double-precision matrices are taken at their word: what is computed is their program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx

BITS = 400
ctx.prec = BITS  # of the whole process, whichever test comes first

#: A kernel whose centred trace is below this share of its trace counts as constant.
CONSTANT = 1e-12


def exact(matrix: np.ndarray) -> arb_mat:
    """Return a matrix of doubles, each of them exactly."""
    rows = [[arb(float(value)) for value in row] for row in np.atleast_2d(matrix)]
    return arb_mat(rows)


def _trace(matrix: arb_mat) -> arb:
    return sum((matrix[i, i] for i in range(matrix.nrows())), arb(0))


def _dot(left: arb_mat, right: arb_mat) -> arb:
    """Return Σ left·right."""
    return _trace(left.transpose() * right)


def _identity(n: int) -> arb_mat:
    return arb_mat([[int(i == j) for j in range(n)] for i in range(n)])


def _projector(n: int) -> arb_mat:
    share = arb(1) / n
    return arb_mat([[int(i == j) - share for j in range(n)] for i in range(n)])


class ExactProgram:
    """A convex program, of which values, gradients and bounds are known exactly.

    Minimise ``value``; ``objective`` turns it into what the paper prints.
    """

    kernels: list[arb_mat]
    kept: np.ndarray

    def value_and_energies(self, weights: list[arb]) -> tuple[arb, list[arb], Any]:
        """Return the value, minus the gradient, and the dual point at some weights."""
        raise NotImplementedError

    def bound(self, dual: Any) -> arb:
        """Return a value that no weights fall below."""
        raise NotImplementedError

    def objective(self, value: arb) -> arb:
        return value

    def combined(self, weights: list[arb]) -> arb_mat:
        n = self.kernels[0].nrows()
        total = arb_mat(n, n)
        for weight, kernel in zip(weights, self.kernels, strict=True):
            if weight != 0:
                total = total + kernel * weight
        return total

    def allows(self, weights: np.ndarray) -> bool:
        """Whether weights of at least 0 are on the simplex."""
        return abs(weights.sum() - 1.0) <= 1e-9

    def scaled(self, weights: list[arb]) -> list[arb]:
        """Return weights exactly on the simplex."""
        total = sum(weights, arb(0))
        return [w / total for w in weights]

    def at(self, weights: np.ndarray) -> tuple[arb, arb] | None:
        """Return value and bound at double-precision weights; None where N is not definite."""
        known = self.__dict__.setdefault("known", {})
        if weights.tobytes() not in known:
            known[weights.tobytes()] = self._at([arb(float(w)) for w in weights])
        return known[weights.tobytes()]

    def _at(self, weights: list[arb]) -> tuple[arb, arb] | None:
        try:
            value, _, dual = self.value_and_energies(self.scaled(weights))
        except (ZeroDivisionError, ValueError):
            return None
        return value, self.bound(dual)


def _is_definite(matrix: arb_mat) -> bool:
    """Whether a Cholesky factorisation goes through."""
    n = matrix.nrows()
    rows = [[matrix[i, j] for j in range(n)] for i in range(n)]
    for k in range(n):
        if not rows[k][k] > 0:
            return False
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            if factor != 0:
                for j in range(i, n):
                    rows[i][j] -= factor * rows[k][j]
    return True


@lru_cache(maxsize=1)
def _normalized(
    grams: bytes, shape: tuple[int, ...], bits: int
) -> tuple[list[arb_mat], np.ndarray]:
    """Return centred kernels of trace 1, and the positions of those that vary."""
    center, kernels, kept = _projector(shape[1]), [], []
    for index, gram in enumerate(np.frombuffer(grams).reshape(shape)):
        centered = center * exact(gram) * center
        trace = _trace(centered)
        if trace > CONSTANT * float(np.trace(gram)):
            kernels.append(centered * (1 / trace))
            kept.append(index)
    return kernels, np.array(kept)


class ExactRKDA(ExactProgram):
    """[Ye08]_ Eq. (11) and (26): Σ_j h_jᵀ(I + (1/λ)Σ w_iG̃_i/r_i)⁻¹h_j."""

    def __init__(self, grams: np.ndarray, y: np.ndarray, regularization: float) -> None:
        n, self.ridge = len(y), arb(regularization)
        whole = np.ascontiguousarray(grams, dtype=float)
        self.kernels, self.kept = _normalized(whole.tobytes(), whole.shape, ctx.prec)
        _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        indicator = [
            [
                ((arb(n) / int(count)).sqrt() if code == j else arb(0))
                - (arb(int(count)) / n).sqrt()
                for j, count in enumerate(counts)
            ]
            for code in codes
        ]
        self.columns = arb_mat(indicator)  # H, Eq. (24)

    def system(self, weights: list[arb]) -> arb_mat:
        n = self.columns.nrows()
        return _identity(n) * self.ridge + self.combined(weights)

    def value_and_energies(self, weights: list[arb]) -> tuple[arb, list[arb], Any]:
        dual = self.system(weights).solve(self.columns)
        energies = [self.ridge * _dot(dual, kernel * dual) for kernel in self.kernels]
        return self.ridge * _dot(self.columns, dual), energies, (dual, energies)

    def bound(self, dual: Any) -> arb:
        dual, energies = dual
        largest = energies[0] / self.ridge
        for energy in energies[1:]:
            largest = largest.max(energy / self.ridge)
        strength = _dot(self.columns, dual)
        return self.ridge * strength**2 / (self.ridge * _dot(dual, dual) + largest)

    def is_well_posed(self) -> bool:
        """Whether λI + K_i is positive definite for every kernel, so that the program is convex."""
        n = self.columns.nrows()
        return all(_is_definite(_identity(n) * self.ridge + kernel) for kernel in self.kernels)


class ExactNormedRKDA(ExactRKDA):
    """The same over w ≥ 0, ‖w‖_p ≤ P^(1/p − 1), with p > 1 and P kernels that vary."""

    def __init__(
        self, grams: np.ndarray, y: np.ndarray, regularization: float, norm: float
    ) -> None:
        super().__init__(grams, y, regularization)
        self.norm = arb(norm)
        self.radius = arb(len(self.kernels)) ** (1 / self.norm - 1)

    def allows(self, weights: np.ndarray) -> bool:
        norm = _norm([arb(float(w)) for w in weights[self.kept]], self.norm)
        return norm <= self.radius * (1 + 1e-9)

    def scaled(self, weights: list[arb]) -> list[arb]:
        """Return weights that are exactly in the ball, up to rounding of 400 bits."""
        excess = (_norm(weights, self.norm) / self.radius).max(arb(1))
        return [w / excess for w in weights]

    def bound(self, dual: Any) -> arb:
        """By Hölder's inequality, no Σ w_iq_i is above ρ‖q‖ in the dual norm."""
        dual, energies = dual
        conjugate = self.norm / (self.norm - 1)
        largest = self.radius * _norm([energy / self.ridge for energy in energies], conjugate)
        strength = _dot(self.columns, dual)
        return self.ridge * strength**2 / (self.ridge * _dot(dual, dual) + largest)


def _norm(values: list[arb], exponent: arb) -> arb:
    return sum((value**exponent for value in values if value != 0), arb(0)) ** (1 / exponent)


class ExactFisherRatio(ExactProgram):
    """Minus [Kim06]_ Eq. (7), with kernels scaled to trace n_samples."""

    def __init__(self, grams: np.ndarray, y: np.ndarray, regularization: float) -> None:
        n = len(y)
        self.regularization = arb(regularization)
        center = _projector(n)
        self.kernels, kept = [], []
        for index, gram in enumerate(grams):
            matrix = exact(gram)
            if _trace(center * matrix * center) > CONSTANT * float(np.trace(gram)):
                self.kernels.append(matrix * (arb(n) / _trace(matrix)))
                kept.append(index)
        self.kept = np.array(kept)
        _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        self.difference = arb_mat(
            [[arb(1 if code else -1) / int(counts[code])] for code in codes]
        )  # a
        within = [
            [
                (int(i == j) - arb(1) / int(counts[ci])) / arb(int(counts[ci])).sqrt()
                if ci == cj
                else arb(0)
                for j, cj in enumerate(codes)
            ]
            for i, ci in enumerate(codes)
        ]
        self.scatter = arb_mat(within)  # J

    def value_and_energies(self, weights: list[arb]) -> tuple[arb, list[arb], Any]:
        J, a, lam = self.scatter, self.difference, self.regularization
        G = self.combined(weights)
        system = _identity(len(self.kernels[0].tolist())) * lam + J * G * J
        u = system.solve(J * (G * a))  # minimises (1/λ)(a − Ju)ᵀG(a − Ju) + ‖u‖²
        beta = a - J * u
        energies = [_dot(beta, kernel * beta) / lam for kernel in self.kernels]
        value = -(_dot(beta, G * beta) / lam + _dot(u, u))
        return value, energies, (beta, u, energies)

    def bound(self, dual: Any) -> arb:
        _, u, energies = dual
        largest = energies[0]
        for energy in energies[1:]:
            largest = largest.max(energy)
        return -_dot(u, u) - largest

    def objective(self, value: arb) -> arb:
        return -value

    def is_well_posed(self) -> bool:
        """Whether λI + JG_iJ is positive definite for every kernel."""
        J, n = self.scatter, self.kernels[0].nrows()
        lam = _identity(n) * self.regularization
        return all(_is_definite(lam + J * kernel * J) for kernel in self.kernels)


PROGRAMS: dict[str, type[Any]] = {"rkda": ExactRKDA, "fdr": ExactFisherRatio}


# ---- problems --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Matrices, labels and λ, made from one seed."""

    seed: int
    criterion: str
    grams: np.ndarray
    y: np.ndarray
    regularization: float
    norm: float = 1.0

    @property
    def name(self) -> str:
        p, m, _ = self.grams.shape
        norm = "" if self.norm == 1.0 else f" norm={self.norm:g}"
        return f"#{self.seed} {self.criterion}{norm} m={m} p={p} λ={self.regularization:.1e}"

    def exact(self) -> Any:
        """Return the program in exact arithmetic."""
        if self.norm > 1.0:
            return ExactNormedRKDA(self.grams, self.y, self.regularization, self.norm)
        return PROGRAMS[self.criterion](self.grams, self.y, self.regularization)


def make_problem(seed: int) -> Problem:
    """Return an uncomfortable problem."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(4, 61))
    p = int(min(40, 1 + rng.geometric(0.12)))
    criterion = "rkda" if rng.random() < 0.6 else "fdr"
    n_classes = 2 if criterion == "fdr" else int(rng.integers(2, min(6, m // 2) + 1))
    y = rng.permutation(np.arange(m) % n_classes)
    if rng.random() < 0.2:  # a class of one sample
        y = np.where(y == 1, 0, y)
        y[int(rng.integers(m))] = 1
    if len(np.unique(y)) < 2:
        y = np.arange(m) % 2
    X = rng.standard_normal((m, int(rng.integers(1, 6)))) + rng.choice([0.0, 1.0]) * y[:, None]
    grams = [_make_gram(rng, X, y) for _ in range(p)]
    if p > 1 and rng.random() < 0.3:  # nearly equal kernels
        grams[1] = grams[0] * (1.0 + 1e-9 * rng.random())
    return Problem(seed, criterion, np.array(grams), y, float(10.0 ** rng.uniform(-12.0, 6.0)))


def _make_gram(rng: np.random.Generator, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    m, kind = len(X), int(rng.integers(8))
    distances = np.square(X[:, None] - X[None]).sum(axis=-1)
    if kind == 0:
        return np.exp(-distances / float(10.0 ** rng.uniform(-2.0, 6.0)))  # narrow to wide
    if kind == 1:
        return np.exp(-distances / float(10.0 ** rng.uniform(-0.5, 1.5)))
    if kind == 2:  # an offset
        Z = X + float(10.0 ** rng.uniform(0.0, 5.0))
        gram = Z @ Z.T
        return (gram + gram.T) / 2.0
    if kind == 3:  # rank one
        v = rng.standard_normal(m)
        return np.outer(v, v)
    if kind == 4:
        return np.eye(m) * float(10.0 ** rng.uniform(-3.0, 3.0))
    if kind == 5:  # the labels themselves
        return np.equal.outer(y, y).astype(float) + rng.choice([0.0, 1.0, 1e-6]) * np.eye(m)
    if kind == 6:
        return X @ X.T
    return (1.0 + X @ X.T / X.shape[1]) ** 2


# ---- claims ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """What a solver said of its weights."""

    solver: str
    weights: np.ndarray
    objective: float
    gap: float
    converged: bool


def check_claims(problem: Problem, claims: list[Claim], program: Any = None) -> list[str]:
    """Return what is wrong with the claims; nothing where all of them hold.

    The optimum is enclosed by the best value and the best bound of all weights seen. A claim fails
    if its weights are not allowed, if its objective is not that of its weights, or if its gap
    is smaller than the distance of its weights to the best of all.
    """
    program = problem.exact() if program is None else program
    wrong, found = [], []
    for claim in claims:
        w = claim.weights
        if not (np.isfinite(w).all() and (w >= 0).all() and program.allows(w)):
            wrong.append(f"{problem.name} {claim.solver}: weights off the simplex, {w}")
            continue
        at = program.at(w[program.kept]) if w[program.kept].sum() > 0 else None
        found.append((claim, at))
    values = [value for _, at in found if at is not None for value in [at[0]]]
    if not values:
        return wrong
    best = values[0]
    for value in values[1:]:
        best = best.min(value)
    for claim, at in found:
        if at is None:
            if claim.converged:
                wrong.append(f"{problem.name} {claim.solver}: certified where N is singular")
            continue
        value = at[0]
        size = abs(value)
        objective = program.objective(value)
        off = float(abs(objective - arb(claim.objective)) / abs(objective))
        # The gap says how far the value can be from the optimum; the objective is as good.
        if claim.converged and off > claim.gap + 1e-9:
            wrong.append(
                f"{problem.name} {claim.solver}: objective {claim.objective!r} off by {off:.1e}, "
                f"gap {claim.gap:.1e}"
            )
        true_gap = float((value - best) / size)
        if np.isfinite(claim.gap) and true_gap > claim.gap * (1.0 + 1e-6) + 1e-15:
            wrong.append(
                f"{problem.name} {claim.solver}: claims a gap of {claim.gap:.3e}, "
                f"other weights are better by {true_gap:.3e}"
            )
    return wrong


def largest_gap(problem: Problem, claims: list[Claim], program: Any = None) -> float | None:
    """Return the largest relative gap of certified weights, to the best bound of all weights.

    None where no claim has converged.
    """
    program = problem.exact() if program is None else program
    found = [(claim, program.at(claim.weights[program.kept])) for claim in claims]
    best = arb(0)
    for _, at in found:
        best = best if at is None else best.max(at[1])
    gaps = [(at[0] - best) / at[0] for claim, at in found if claim.converged and at is not None]
    return max(map(float, gaps), default=None)
