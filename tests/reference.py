"""Slow, obvious truths that the fast code is tested against.

Nothing here imports the package. Formulas are those of the papers, written as they are printed:
explicit centring matrices, explicit inverses, CVXPY programs, loops over left-out samples.
"""

import cvxpy as cp
import numpy as np
from scipy.optimize import minimize


def centered(grams):
    """PGP, one by one."""
    m = grams.shape[1]
    P = np.eye(m) - np.ones((m, m)) / m
    return np.array([P @ G @ P for G in grams])


def trace_normalized(grams):
    """Centred kernels over their traces: G̃_i / r_i."""
    return np.array([G / np.trace(G) for G in centered(grams)])


def indicator(y):
    """Ye 2008, Eq. (24)."""
    classes = np.unique(y)
    m = len(y)
    H = np.empty((m, len(classes)))
    for j, label in enumerate(classes):
        n_j = np.sum(y == label)
        for i in range(m):
            H[i, j] = (np.sqrt(m / n_j) if y[i] == label else 0.0) - np.sqrt(n_j / m)
    return H


def rkda(grams, y, weights, lam):
    """Ye 2008, Eq. (11) and (26): Σ_j h_jᵀ (I + G̃(w)/λ)⁻¹ h_j."""
    G = np.tensordot(weights, trace_normalized(grams), 1)
    inverse = np.linalg.inv(np.eye(len(G)) + G / lam)
    return sum(h @ inverse @ h for h in indicator(y).T)


def rkda_joint(grams, y, weights, lam):
    """Ye 2008, Eq. (45)'s objective at θ_0 ∝ λ, θ_i ∝ w_i/r_i, scaled to θᵀr = 1."""
    G = np.tensordot(weights, trace_normalized(grams), 1)
    m = len(G)
    N = (lam * np.eye(m) + G) / (1.0 + m * lam)
    return sum(h @ np.linalg.solve(N, h) for h in indicator(y).T)


def fisher_ratio(grams, y, weights, lam):
    """Kim 2006, Eq. (7), on kernels scaled to trace m."""
    m = len(y)
    G = sum(w * K * m / np.trace(K) for w, K in zip(weights, grams, strict=True))
    a, J = kim_a_and_J(y)
    inner = np.linalg.inv(lam * np.eye(m) + J @ G @ J)
    return (a @ G @ a - a @ G @ J @ inner @ J @ G @ a) / lam


def kim_a_and_J(y):
    """The vector a and the matrix J of Kim 2006, section 2.3."""
    first, second = np.unique(y)
    m = len(y)
    a, J = np.zeros(m), np.zeros((m, m))
    for label, sign in ((first, -1.0), (second, 1.0)):
        rows = np.flatnonzero(y == label)
        n = len(rows)
        a[rows] = sign / n
        J[np.ix_(rows, rows)] = (np.eye(n) - np.ones((n, n)) / n) / np.sqrt(n)
    return a, J


def fisher_ratio_in_feature_space(features, y, lam):
    """Kim 2006, section 2.2: (μ₊ − μ₋)ᵀ (Σ₊ + Σ₋ + λI)⁻¹ (μ₊ − μ₋), with explicit features."""
    first, second = (features[y == label] for label in np.unique(y))
    difference = second.mean(axis=0) - first.mean(axis=0)
    scatter = np.cov(first.T, bias=True) + np.cov(second.T, bias=True)
    return difference @ np.linalg.solve(scatter + lam * np.eye(len(scatter)), difference)


def _on_the_simplex(function, p):
    """Minimise by a general-purpose solver from the middle and from every corner."""
    starts = [np.full(p, 1.0 / p), *(0.9 * np.eye(p) + 0.1 / p)]
    results = [
        minimize(
            function,
            start,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * p,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0},
            options={"maxiter": 500, "ftol": 1e-14},
        )
        for start in starts
    ]
    return min(result.fun for result in results)


def rkda_optimum(grams, y, lam):
    """The least value of Eq. (26) over the simplex."""
    return _on_the_simplex(lambda w: rkda(grams, y, np.maximum(w, 0), lam), len(grams))


def fisher_ratio_optimum(grams, y, lam):
    """The largest Fisher ratio over the simplex."""
    return (
        -_on_the_simplex(lambda w: -lam * fisher_ratio(grams, y, np.maximum(w, 0), lam), len(grams))
        / lam
    )


def rkda_qcqp(grams, y, lam):
    """Ye 2008, Eq. (34): max Σ β_jᵀh_j − ¼Σ β_jᵀβ_j − t/(4λ), t ≥ (1/r_i) Σ β_jᵀG̃_iβ_j.

    In the units β → √m β and t → mλt, which leave Clarabel enough digits.
    """
    m = len(y)
    H, kernels = indicator(y) / np.sqrt(m), trace_normalized(grams)
    beta, t = cp.Variable(H.shape), cp.Variable()
    limits = [
        t >= sum(cp.quad_form(beta[:, j], cp.psd_wrap(K / lam)) for j in range(H.shape[1]))
        for K in kernels
    ]
    value = cp.sum(cp.multiply(beta, H)) - cp.sum_squares(beta) / 4 - t / 4
    problem = cp.Problem(cp.Maximize(value), limits)
    problem.solve(solver="CLARABEL")
    weights = np.array([float(np.ravel(limit.dual_value)[0]) for limit in limits])
    return m * problem.value, weights / weights.sum()


def rkda_joint_qcqp(grams, y):
    """Ye 2008, Eq. (46): max Σ β_jᵀh_j − t/4, with G̃_0 = I and r_0 = m.

    In the units β → m√m β and t → m²t.
    """
    m = len(y)
    H = indicator(y) / np.sqrt(m)
    kernels = [np.eye(m) / m, *trace_normalized(grams)]
    beta, t = cp.Variable(H.shape), cp.Variable()
    limits = [
        t >= sum(cp.quad_form(beta[:, j], cp.psd_wrap(m * K)) for j in range(H.shape[1]))
        for K in kernels
    ]
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(beta, H)) - t / 4), limits)
    problem.solve(solver="CLARABEL")
    return m**2 * problem.value


def rkda_sdp(grams, y, lam, approximate=False):
    """Ye 2008, Eq. (29) (one inequality a class) or (32) (one for all)."""
    H, kernels = indicator(y), trace_normalized(grams)
    m, k = H.shape
    w, t = cp.Variable(len(kernels), nonneg=True), cp.Variable(k)
    M = np.eye(m) + sum(w[i] * K / lam for i, K in enumerate(kernels))
    if approximate:
        limits = [cp.bmat([[M, H], [H.T, cp.diag(t)]]) >> 0]
    else:
        limits = [
            cp.bmat([[M, H[:, [j]]], [H[:, [j]].T, cp.reshape(t[j], (1, 1), order="C")]]) >> 0
            for j in range(k)
        ]
    problem = cp.Problem(cp.Minimize(cp.sum(t)), [cp.sum(w) == 1, *limits])
    problem.solve(solver="CLARABEL")
    return problem.value, w.value


def fisher_ratio_sdp(grams, y, lam):
    """Kim 2006, Eq. (9); the Fisher ratio and the weights."""
    m = len(y)
    a, J = kim_a_and_J(y)
    kernels = [K * m / np.trace(K) for K in grams]
    w, t = cp.Variable(len(kernels), nonneg=True), cp.Variable()
    top = lam * np.eye(m) + sum(w[i] * (J @ K @ J) for i, K in enumerate(kernels))
    side = cp.reshape(sum(w[i] * (J @ K @ a) for i, K in enumerate(kernels)), (m, 1), order="C")
    corner = cp.reshape(t, (1, 1), order="C")
    value = t - sum(w[i] * (a @ K @ a) for i, K in enumerate(kernels))
    problem = cp.Problem(
        cp.Minimize(value), [cp.sum(w) == 1, cp.bmat([[top, side], [side.T, corner]]) >> 0]
    )
    problem.solve(solver="CLARABEL")
    return -problem.value / lam, w.value


def least_squares(K, ridge, targets):
    """Coefficients and intercept of kernel least squares with sample ridges, by its KKT system."""
    m = len(K)
    system = np.zeros((m + 1, m + 1))
    system[:m, :m] = K + np.diag(ridge)
    system[:m, m] = system[m, :m] = 1.0
    solution = np.linalg.solve(system, np.vstack([targets, np.zeros((1, targets.shape[1]))]))
    return solution[:m], solution[m]


def leave_one_out(K, ridge, targets, groups=None):
    """Fit to all samples but one, or but one group, predict those; for every sample."""
    predictions = np.empty_like(targets)
    groups = np.arange(len(K)) if groups is None else groups
    for group in np.unique(groups):
        own, rest = np.flatnonzero(groups == group), np.flatnonzero(groups != group)
        coef, intercept = least_squares(K[np.ix_(rest, rest)], ridge[rest], targets[rest])
        predictions[own] = K[np.ix_(own, rest)] @ coef + intercept
    return predictions


def about_other_rows(predictions, targets, groups):
    """Subtract the mean of the targets of the other groups."""
    means = [targets[groups != group].mean(axis=0) for group in groups]
    return predictions - np.array(means)
