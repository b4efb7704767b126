"""Column scales by marginal likelihood: formulas, what they find, and when they are tried."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from discernel import MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.default import choose as module
from discernel.default import sample as sampling
from discernel.default.choose import choose
from discernel.default.comparison import FoldComparison
from discernel.default.likelihood import MarginalLikelihood, learn_likelihood_metric
from discernel.default.metric import Metric, learn_metric
from discernel.default.propose import propose_kernels
from discernel.default.sample import draw_sample
from discernel.progress.deadline import Deadline, keep_deadline
from discernel.targets import ClassTarget, RegressionTarget

GROUPS = np.array([0, 1, 2, 2, 2, 3])


def acting_together(n, n_columns=20, seed=0, noise=0.1):
    """Return rows and numbers, the sign of a product of two columns times a third."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_columns))
    return X, np.sign(X[:, 0] * X[:, 1]) * X[:, 2] + noise * rng.standard_normal(n)


def xor(n, n_columns=20, seed=0):
    """Return rows and two classes: whether two columns have the same sign."""
    X = np.random.default_rng(seed).standard_normal((n, n_columns))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def table(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 6)), rng.standard_normal((n, 2)), rng.uniform(0.3, 2.0, n)


# ---- the formulas --------------------------------------------------------------------------------


def test_the_value_is_that_of_a_gaussian_process_with_the_best_variance():
    """J less log σ² of the best σ², against the density of a normal distribution."""
    X, Y, weights = table()
    weights /= weights.mean()
    point = np.log([0.3, 0.5, 0.2, 0.8, 0.1])
    value, _ = MarginalLikelihood(X, Y, weights, GROUPS)(point)
    scales = np.exp(point[:-1])[GROUPS]
    distances = (((X[:, None] - X[None]) * scales) ** 2).sum(axis=2)
    system = np.exp(-distances) + 0.1 * np.diag(1.0 / weights)
    centered = Y - np.average(Y, axis=0, weights=weights)
    variance = np.trace(centered.T @ np.linalg.solve(system, centered)) / Y.size
    densities = multivariate_normal(cov=variance * system).logpdf(centered.T)
    expected = -densities.sum() / Y.size - 0.5 - 0.5 * np.log(2.0 * np.pi)
    assert value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_by_log_scales_and_log_lambda_is_that_of_differences(seed):
    """∂J/∂log s = −4[Σ (M1)z² − (zᵀMz)_ll], summed by groups, and ∂J/∂log λ = λ Σ Γ_ii/ω_i."""
    X, Y, weights = table(seed=seed)
    function = MarginalLikelihood(X, Y, weights, GROUPS)
    point = 0.5 * np.random.default_rng(seed).standard_normal(5) - 1.0
    _, found = function(point)
    expected = [
        (function(point + step)[0] - function(point - step)[0]) / 2e-5 for step in 1e-5 * np.eye(5)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_single_precision_is_enough_for_the_gradient():
    X, Y, weights = table(200)
    point = np.log([0.3, 0.5, 0.2, 0.8, 1e-3])
    value, expected = MarginalLikelihood(X, Y, weights, GROUPS)(point)
    again, found = MarginalLikelihood(X, Y, weights, GROUPS, dtype=np.float32)(point)
    assert again == pytest.approx(value, abs=1e-3)
    np.testing.assert_allclose(found, expected, atol=2e-2 * np.abs(expected).max())


# ---- what it finds -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(3))
def test_columns_that_act_together_are_found(seed, dtype):
    X, y = acting_together(300, 10, seed)
    found = learn_likelihood_metric(X, y[:, None], dtype=dtype).scales
    assert found.max() == 1.0
    assert found[:3].min() > 0.2
    assert found[3:].max() < 0.1
    gradients = learn_metric(X, y[:, None]).scales
    assert gradients[:3].min() < gradients[3:].max()  # which see one of the three


def test_columns_of_a_group_have_one_scale():
    X, y = acting_together(200, 6)
    found = learn_likelihood_metric(X, y[:, None], groups=GROUPS).scales
    assert found[2] == found[3] == found[4]
    assert len(set(found)) == 4


def test_weights_are_relative_and_rows_of_little_weight_have_little_say():
    X, y = xor(250, 8)
    wrong, weights = y.copy(), np.ones(250)
    wrong[200:], weights[200:] = 1 - y[200:], 1e-4
    given = [learn_likelihood_metric(X, wrong[:, None], f * weights).scales for f in (1.0, 50.0)]
    np.testing.assert_allclose(*given, atol=2e-3)
    assert given[0][:2].min() > 0.5
    assert given[0][2:].max() < 0.15


def test_far_columns_and_constant_columns():
    X, y = xor(200, 8)
    expected = learn_likelihood_metric(X, y[:, None]).scales
    constant = np.insert(X, 3, 7.0, axis=1)
    found = learn_likelihood_metric(constant, y[:, None]).scales
    assert found[3] == 0.0
    np.testing.assert_allclose(np.delete(found, 3), expected, atol=1e-3)
    far = X.copy()
    far[5] += 1e8
    found = learn_likelihood_metric(far, y[:, None]).scales
    assert found[:2].min() > 5.0 * found[2:].max()


@pytest.mark.filterwarnings("error")
def test_where_there_is_nothing_to_learn_all_scales_are_1():
    X, Y, _ = table()
    for rows, scores in [(np.ones_like(X), Y), (X, np.ones_like(Y)), (X[:1], Y[:1])]:
        np.testing.assert_array_equal(learn_likelihood_metric(rows, scores).scales, np.ones(6))


def test_without_time_the_scales_are_those_of_the_start():
    X, y = xor(200, 8)
    with keep_deadline(Deadline(np.inf, learns=False)):
        np.testing.assert_array_equal(learn_likelihood_metric(X, y[:, None]).scales, np.ones(8))


# ---- when it is tried ----------------------------------------------------------------------------


def sample_of(X, target):
    sample = draw_sample(X, target, most=1000, n_folds=5, rng=np.random.RandomState(0))
    metrics = [
        learn_metric(sample.rows[outside], sample.scores[outside])
        for outside, _ in sample.divisions()
    ]
    return sample, metrics


def compared_of(X, target):
    sample, metrics = sample_of(X, target)
    return FoldComparison(sample), metrics


def test_it_is_chosen_where_columns_act_together_with_a_metric_for_each_fold():
    X, y = xor(300, 40)
    sample, metrics = sample_of(X, ClassTarget.from_labels(y))
    found = choose(FoldComparison(sample), metrics, pull=5.0)
    names = [candidate.name for candidate in found.candidates]
    assert "likelihood" in names[:2]
    assert found.candidates[0].strength == 1.0
    assert found.by_likelihood is not None
    for (outside, _), metric in zip(sample.divisions(), found.by_likelihood, strict=True):
        expected = learn_likelihood_metric(sample.rows[outside], sample.scores[outside])
        np.testing.assert_array_equal(metric.scales, expected.scales)
    assert {one.strength for one in found.without} == {1.0}
    likelihood = next(c for c in found.candidates if c.name == "likelihood")
    assert likelihood.error < 0.7 * min(c.error for c in found.candidates if c.name == "average")


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_in_noise_it_is_tried_on_one_fold_only(kind, monkeypatch):
    n_learned = []

    def spy(X, *given, **options):
        n_learned.append(len(X))
        return learn_likelihood_metric(X, *given, **options)

    monkeypatch.setattr(sampling, "learn_likelihood_metric", spy)
    opened = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((150, 10)), rng.standard_normal(150)
        target = (
            ClassTarget.from_labels((y > 0).astype(int))
            if kind == "classes"
            else RegressionTarget.from_values(y)
        )
        n_learned.clear()
        found = choose(*compared_of(X, target), pull=5.0)
        assert found.by_likelihood is None
        opened += len(n_learned) > 1
        assert n_learned[0] == 120
    assert opened <= 3


def test_few_rows_are_enough_to_try_it(monkeypatch):
    monkeypatch.setattr(module, "_MOST_TO_TRY", 100)
    n_learned = []

    def spy(X, *given, **options):
        n_learned.append((len(X), options["dtype"]))
        return learn_likelihood_metric(X, *given, **options)

    monkeypatch.setattr(sampling, "learn_likelihood_metric", spy)
    X, y = xor(300, 40)
    target = ClassTarget.from_labels(y)
    choose(*compared_of(X, target), pull=5.0)
    assert n_learned == [(100, np.float32), *[(240, np.float64)] * 5]
    n_learned.clear()  # they serve the choice alone
    choose(*compared_of(X, target), pull=5.0, is_whole=False)
    assert n_learned == [(100, np.float32)] * 5


def test_without_time_it_is_not_tried(monkeypatch):
    monkeypatch.setattr(sampling, "learn_likelihood_metric", None)
    X, y = xor(150, 6)
    sample, _ = sample_of(X, ClassTarget.from_labels(y))
    ones = [Metric(np.ones(6))] * 5
    with keep_deadline(Deadline(np.inf, learns=False)):
        assert choose(FoldComparison(sample), ones, pull=5.0).by_likelihood is None


def test_metrics_that_were_cut_short_are_not_used(monkeypatch):
    X, y = xor(300, 40)
    target = ClassTarget.from_labels(y)
    late = []
    monkeypatch.setattr("discernel.default.propose.must_stop_learning", lambda: bool(late))

    def learn(*given, **options):
        late.append(True)
        return learn_likelihood_metric(*given, **options)

    monkeypatch.setattr(sampling, "learn_likelihood_metric", learn)
    proposal = propose_kernels(X, (1.0,) * 40, target)
    assert proposal.metric is proposal.fold_metrics[0]
    np.testing.assert_array_equal(np.sort(proposal.dependent), np.arange(300))
    monkeypatch.setattr(module, "must_stop_learning", lambda: len(late) > 6 + 1)
    assert choose(*compared_of(X, target), pull=5.0).by_likelihood is None


def test_one_column_is_not_scaled(monkeypatch):
    monkeypatch.setattr(sampling, "learn_likelihood_metric", None)
    X, y = xor(100, 2)
    sample, metrics = sample_of(X[:, :1], ClassTarget.from_labels(y))
    assert choose(FoldComparison(sample), metrics, pull=5.0).by_likelihood is None


def test_the_metric_without_a_fold_is_learned_by_likelihood_too():
    """From the rows outside, of a sample with all rows and of one that is a part of them."""
    X, y = xor(900, 60)
    target = ClassTarget.from_labels(y)
    proposal = propose_kernels(X, (1.0,) * 60, target)
    assert not proposal.is_whole
    assert proposal.metric.scales[2:].max() < 0.15
    assert len(proposal.dependent) == 500
    outside = np.arange(400)
    found = proposal.metric_without(0, X, target, outside)
    turned = ClassTarget.from_labels(np.where(np.arange(900) < 400, y, 1 - y))
    again = proposal.metric_without(0, X, turned, outside)
    np.testing.assert_array_equal(found.scales, again.scales)
    assert found.scales[:2].min() > 0.5
    small = propose_kernels(X[:300], (1.0,) * 60, ClassTarget.from_labels(y[:300]))
    again = small.metric_without(3, X[:300], target, outside)
    np.testing.assert_array_equal(again.scales, small.fold_metrics[3].scales)


# ---- from end to end -----------------------------------------------------------------------------


def test_numbers_are_predicted_where_gradients_fail():
    X, y = acting_together(1400)
    ridge = MultipleKernelRidge().fit(X[:400], y[:400])
    assert ridge.score(X[400:], y[400:]) > 0.6
    considered = ridge.learned_kernel_.considered
    assert considered[0].error < 0.6 * min(c.error for c in considered if c.name == "average")


@pytest.mark.parametrize(("n", "n_columns"), [(300, 40), (1000, 60)])
def test_what_is_expected_is_found_on_new_rows(n, n_columns):
    """Of a sample with all rows, and of one that is a part of them."""
    claimed, found = [], []
    for seed in range(3):
        X, y = xor(n + 2000, n_columns, seed)
        # Of every ten labels one is wrong: a share by chance would differ on the training rows.
        y = np.where(np.arange(len(y)) % 10 == 0, 1 - y, y)
        clf = MultipleKernelDiscriminant().fit(X[:n], y[:n])
        assert clf.learned_kernel_.considered[0].strength == 1.0
        assert clf.metric_.scales[2:].max() < 0.5
        probabilities = clf.predict_proba(X[n:])
        found.append(-np.log(probabilities[np.arange(2000), y[n:]]).mean())
        claimed.append(clf.expected_.log_loss)
    assert np.mean(found) < 0.5
    # Folds of 300 rows are predicted from 240.
    assert -0.05 < np.mean(claimed) - np.mean(found) < 0.08


def test_codes_of_a_category_have_one_scale():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.standard_normal((300, 8)), columns=list("abcdefgh"))
    frame["kind"] = rng.choice(["x", "y", "z"], 300)
    sign = np.where(frame["kind"] == "x", 1.0, -1.0)
    y = (sign * frame["a"] * frame["b"] > 0).astype(int)
    clf = MultipleKernelDiscriminant().fit(frame, y)
    assert "likelihood" in [c.name for c in clf.learned_kernel_.considered]
    codes = clf.metric_.scales[clf.encoder_.is_code][:-1]  # the last, of other values, is constant
    assert len(set(codes)) == 1
    assert codes[0] > 0.1
