"""Leave-one-group-out in closed form is that of refits without each group."""

from dataclasses import replace

import numpy as np
import pytest

from discernel.arrays.groups import Groups
from discernel.arrays.sample_weights import SampleWeights, row_weights
from discernel.bank import DenseBank, FeatureBank, TiledBank
from discernel.bank.iterative import IterativeBank
from discernel.bank.system import CholeskySystem, System
from discernel.criteria import KernelLeastSquares
from discernel.default.ridge import Ridge
from discernel.discriminant.gaussian import calibrated, left_out_log_likelihood, with_statistics
from discernel.kernels import RBF
from discernel.model.importances import fit_of_gram
from discernel.programs.loo import LeaveOneOutProgram
from discernel.targets import ClassTarget
from tests.conftest import make_problem

CODES = np.random.default_rng(3).permutation(
    np.repeat(np.arange(12), [1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 6])
)


def weights_of(weighted):
    return SampleWeights.of(np.random.default_rng(1).uniform(0.3, 3.0, 36)) if weighted else None


def refit(K, ridge, truth, weights, rows):
    """Return a weighted ridge fit with an intercept to some rows: coefficients and intercept."""
    n = len(rows)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = K[np.ix_(rows, rows)] + np.diag(ridge[rows] / weights[rows])
    system[:n, n] = system[n, :n] = 1.0
    found = np.linalg.solve(system, np.vstack([truth[rows], np.zeros((1, truth.shape[1]))]))
    return found[:n], found[n]


def refits(K, ridge, truth, weights, codes):
    """Return the predictions of every group by a fit to all other groups."""
    out = np.empty_like(truth)
    for code in np.unique(codes):
        outside, inside = np.flatnonzero(codes != code), np.flatnonzero(codes == code)
        coef, intercept = refit(K, ridge, truth, weights, outside)
        out[inside] = K[np.ix_(inside, outside)] @ coef + intercept
    return out


def combined(bank, weights):
    """Return the centred sum of kernels without the roots of the weights."""
    roots = bank.row_weights.roots
    return bank.combined(weights) / roots / roots[:, None]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_closed_form_is_that_of_refits(n_classes, weighted):
    grams, y = make_problem(36, n_classes, 4, seed=2)
    weights, groups = weights_of(weighted), Groups(CODES)
    bank, target = (
        DenseBank(grams, sample_weights=weights),
        ClassTarget.from_labels(y, weights, groups),
    )
    w, ridge = np.full(4, 0.25), np.random.default_rng(0).uniform(0.005, 0.02, 36)
    fit = KernelLeastSquares(bank.system(w, ridge), ridge, target.scores, weights, groups)
    values = target.row_weights.values
    expected = refits(combined(bank, w), ridge, target.truth, values, CODES)
    np.testing.assert_allclose(fit.leave_one_out, expected, rtol=0, atol=1e-10)
    error = np.average((target.truth - expected) ** 2, axis=0, weights=values).mean()
    assert fit.leave_one_out_error() == pytest.approx(error, rel=1e-10)


def test_left_out_scores_have_the_mean_of_the_fit():
    """Shifted to the mean of all targets, from the mean of the other groups' targets."""
    grams, y = make_problem(36, 2, 4, seed=2)
    groups = Groups(CODES)
    target, ridge = ClassTarget.from_labels(y, groups=groups), np.full(36, 0.01)
    system = DenseBank(grams).system(np.full(4, 0.25), ridge)
    fit = KernelLeastSquares(system, ridge, target.scores, None, groups)
    for code in np.unique(CODES):
        inside = code == CODES
        shift = fit.left_out_scores(groups)[inside] - fit.leave_one_out[inside]
        expected = -target.scores[~inside].mean(axis=0)
        np.testing.assert_allclose(shift, np.tile(expected, (inside.sum(), 1)), atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_are_groups_of_their_own_are_left_out_alone(weighted):
    grams, y = make_problem(36, 3, 4, seed=2)
    weights, ridge = weights_of(weighted), np.full(36, 0.01)
    bank, target = DenseBank(grams, sample_weights=weights), ClassTarget.from_labels(y, weights)
    alone, grouped = (
        KernelLeastSquares(bank.system(np.full(4, 0.25), ridge), ridge, target.scores, weights, one)
        for one in (None, Groups(np.arange(36)[::-1]))
    )
    np.testing.assert_allclose(grouped.leave_one_out, alone.leave_one_out, atol=1e-11)
    own = [fit.left_out(np.arange(5)) for fit in (alone, grouped)]
    np.testing.assert_allclose(own[1].scores, own[0].scores, atol=1e-11)
    changes = own[0].influence[:, :, None] * own[0].errors
    np.testing.assert_allclose(own[1].influence.reshape(changes.shape), changes, atol=1e-11)
    program = LeaveOneOutProgram(bank, target)
    both = [program, replace(program, target=replace(target, groups=Groups(np.arange(36))))]
    first, second = (one.error(np.full(4, 0.25), 0.01) for one in both)
    assert second.value == pytest.approx(first.value, rel=1e-10)
    np.testing.assert_allclose(second.by_weights, first.by_weights, rtol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("make", [DenseBank, "features"])
def test_gradient_of_the_criterion_is_that_of_differences(n_classes, weighted, make):
    grams, y = make_problem(36, n_classes, 4, seed=2)
    weights = weights_of(weighted)
    target = ClassTarget.from_labels(y, weights, Groups(CODES))
    if make == "features":
        features = np.random.default_rng(5).standard_normal((16, 36))
        bank = FeatureBank(features, [4] * 4, list("abcd"), sample_weights=weights)
    else:
        bank = make(grams, sample_weights=weights)
    program, lam, step = LeaveOneOutProgram(bank, target), 1e-2, 1e-6
    w = np.random.default_rng(0).dirichlet(np.ones(4))
    point = program.error(w, lam)
    fit = KernelLeastSquares(
        bank.system(w, np.full(36, lam)), np.full(36, lam), target.scores, weights, target.groups
    )
    assert point.value == pytest.approx(fit.leave_one_out_error(), rel=1e-9)
    for i, unit in enumerate(np.eye(4)):
        above, below = (program.error(w + s * step * unit, lam).value for s in (1, -1))
        assert point.by_weights[i] == pytest.approx(
            (above - below) / (2 * step), rel=1e-5, abs=1e-8
        )
    above, below = (program.error(w, lam * (1 + s * 1e-6)).value for s in (1, -1))
    assert point.by_regularization == pytest.approx((above - below) / (2e-6 * lam), rel=1e-5)


def test_fits_without_groups_are_those_of_refits_at_new_rows():
    """The influence of groups is that of refits, with sample weights or with ridges over them."""
    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((36, 3)), rng.standard_normal((5, 3))
    kernel, groups = RBF(gamma=0.3), Groups(CODES)
    K, cross = kernel(X), kernel(new, X)
    truth, weights = rng.standard_normal((36, 2)), rng.uniform(0.5, 2.0, 36)
    ridge, rows = np.full(36, 0.3), np.array([0, 7, 8, 20])
    plain = fit_of_gram(K.copy(), truth, ridge / weights, groups)
    coef = plain.coef
    known = SampleWeights(weights)
    roots = known.roots
    system = CholeskySystem(lambda: K * roots * roots[:, None], ridge)
    fit = KernelLeastSquares(system, ridge, truth * roots[:, None], known, groups)
    np.testing.assert_allclose(fit.coef, coef, atol=1e-10)
    for found in (plain.left_out(rows), fit.left_out(rows)):
        for place, row in enumerate(rows):
            outside = np.flatnonzero(CODES[row] != CODES)
            expected, intercept = refit(K, ridge, truth, weights, outside)
            own = coef - found.influence.reshape(36, len(rows), 2)[:, place]
            # Without the intercept: differences between new rows.
            there = cross @ own - (cross @ own)[:1]
            np.testing.assert_allclose(
                there, cross[:, outside] @ expected - (cross[:, outside] @ expected)[:1], atol=1e-10
            )
            at_row = K[row, outside] @ expected + intercept
            np.testing.assert_allclose(found.scores[place], at_row, atol=1e-10)


def some_rows(n=150, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 4)), rng.integers(0, n // 5, n)


@pytest.mark.parametrize("kind", ["dense", "tiled", "features", "inverse", "slow"])
def test_blocks_of_every_system_are_those_of_the_inverse(kind):
    X, codes = some_rows()
    kernels, groups, w = [RBF(gamma=0.1), RBF(gamma=1.0)], Groups(codes), np.array([0.3, 0.7])
    bank = TiledBank(kernels, X)
    ridge = np.full(150, 0.01)
    if kind == "features":
        bank = FeatureBank.of_rank(kernels, X, 40)
    if kind == "dense":
        bank = DenseBank(np.array([kernel(X) for kernel in kernels]))
    system = bank.inverse(w, 0.01) if kind == "inverse" else bank.system(w, ridge)
    inverse = np.linalg.inv(bank.combined(w) + np.diag(ridge))
    blocks = (
        System.inverse_blocks(system, groups) if kind == "slow" else system.inverse_blocks(groups)
    )
    assert sum(len(rows) for rows in groups.batches) == len(np.unique(codes))
    for rows, found in zip(groups.batches, blocks, strict=True):
        for own, block in zip(rows, found, strict=True):
            assert len(set(codes[own])) == 1
            np.testing.assert_allclose(block, inverse[np.ix_(own, own)], rtol=1e-7, atol=1e-9)
    # The factor may be lost; the system still solves.
    np.testing.assert_allclose(system.solve(np.eye(150)[:, :2]), inverse[:, :2], atol=1e-7)


def test_blocks_of_an_iterative_system_are_close():
    X, codes = some_rows(1500, 1)
    kernels, groups, w = [RBF(gamma=0.1), RBF(gamma=0.5)], Groups(codes), np.array([0.3, 0.7])
    bank, ridge = IterativeBank(kernels, X), np.full(1500, 3e-3)
    y = (X[:, 0] + np.random.default_rng(0).standard_normal(300)[codes] > 0).astype(int)
    target = ClassTarget.from_labels(y)
    exact = TiledBank(kernels, X)
    found, expected = (
        KernelLeastSquares(one.system(w, ridge), ridge, target.scores, None, groups).leave_one_out
        for one in (bank, exact)
    )
    errors = found - expected
    assert np.sqrt(np.mean(errors**2)) < 0.02 * np.sqrt(np.mean(expected**2))


def test_the_ridge_of_the_default_leaves_groups_out():
    X, codes = some_rows(60)
    K, scores = RBF(gamma=0.2)(X), np.random.default_rng(1).standard_normal((60, 2))
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 60)
    ridge = Ridge(K[None], scores, weights)
    together = ridge.combined(np.ones(1))
    kernel = together[:60] / ridge._root[:, 0]
    found, _ = ridge.leave_one_out(together, 0.01, Groups(codes))
    expected = refits(kernel, np.full(60, 0.01), scores, weights, codes)
    errors = weights[:, None] * (scores - expected) ** 2
    assert found == pytest.approx(errors.mean(), rel=1e-9)
    alone, _ = ridge.leave_one_out(together, 0.01, Groups(np.arange(60)))
    assert alone == pytest.approx(ridge.leave_one_out(together, 0.01)[0], rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_statistics_of_the_classes_are_those_of_other_groups(n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(0, n_classes, 80)
    groups = Groups(rng.integers(0, 15, 80))
    weights = SampleWeights.of(rng.uniform(0.3, 3.0, 80)) if weighted else None
    target = ClassTarget(np.arange(n_classes), codes, weights, groups)
    centre = rng.standard_normal((n_classes, n_classes - 1))
    scores = centre[codes] + 0.5 * rng.standard_normal((80, n_classes - 1))
    whole = with_statistics(scores, target, centre)
    found = left_out_log_likelihood(whole, target)
    shares = row_weights(weights, 80).shares
    z = whole.coordinates(scores)
    for group in range(15):
        inside = groups.codes == group
        rest = target.part(np.flatnonzero(~inside))
        means, own = rest.means(z[~inside]), shares[~inside]
        residuals = z[~inside] - means[rest.codes]
        # The degrees of freedom are those of shares that sum to less than 1.
        size = np.bincount(rest.codes, own, minlength=n_classes)
        freedom = own.sum() - np.sum(np.bincount(rest.codes, own**2) / size)
        covariance = residuals.T @ (own[:, None] * residuals) / freedom
        away = z[inside][:, None, :] - means
        expected = -0.5 * np.einsum("ijk,kl,ijl->ij", away, np.linalg.inv(covariance), away)
        np.testing.assert_allclose(found[inside], expected, rtol=1e-8)


def test_statistics_without_rows_that_are_groups_of_their_own():
    rng = np.random.default_rng(0)
    codes = np.append(rng.integers(0, 3, 60), 3)  # and a class of one row
    scores = rng.standard_normal((61, 3)) + np.eye(4)[codes, :3]
    target = ClassTarget(np.arange(4), codes)
    grouped = replace(target, groups=Groups(np.arange(61)))
    first, second = (calibrated(scores, one, one.means(scores)) for one in (target, grouped))
    np.testing.assert_allclose(second[1], first[1], rtol=1e-6)
    assert first[0].sharpness == pytest.approx(second[0].sharpness, rel=1e-5)
