"""`MultipleKernelRidge(weights_per_target=True)`: kernel weights and λ of each target."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score

import discernel
from discernel import MultipleKernelRidge, open_rows
from discernel.exceptions import InvalidInputError
from discernel.inspection import contributions, source_importances
from discernel.inspection.facts import model_facts
from discernel.kernels import RBF, Linear
from tests.inspection.test_contributions import check_adds_up

N = 90
KERNELS = {
    f"{name} {width:g}": RBF(width=width).on(columns)
    for name, columns in {"first": [0, 1], "second": [2, 3], "third": [4, 5]}.items()
    for width in (1.0, 3.0)
}


def made(seed=0, n=3 * N, noise=0.3):
    """Return rows, and a target of each source."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    first, second = np.sin(2.0 * X[:, 0]) + X[:, 1], np.cos(2.0 * X[:, 2]) + 0.5 * X[:, 3]
    Y = np.column_stack([first, 100.0 * second, X[:, 4] * X[:, 5]])
    return X, Y + noise * Y.std(axis=0) * rng.standard_normal(Y.shape)


@pytest.fixture(scope="module")
def data():
    return made()


@pytest.fixture(scope="module")
def fitted(data):
    X, Y = data
    return MultipleKernelRidge(KERNELS, weights_per_target=True).fit(X[:N], Y[:N])


def test_targets_with_weights_of_their_own_are_predicted_better(fitted, data):
    X, Y = data
    weights = fitted.kernel_weights_
    assert weights.shape == (3, 6)
    assert fitted.regularization_.shape == (3,)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert np.abs(weights[0] - weights[1]).max() > 0.2
    shared = MultipleKernelRidge(KERNELS).fit(X[:N], Y[:N])
    own, together = (r2_score(Y[N:], one.predict(X[N:])) for one in (fitted, shared))
    assert own > together + 0.01
    assert fitted.score(X[N:], Y[N:]) == pytest.approx(own)


@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(N // 3), 3)])
def test_targets_are_those_of_separate_fits(data, weights, groups):
    """As good as fits to each target by leave-one-out, which end in the same minimum here."""
    X, Y = data[0][:N], data[1][:N]
    weights = None if weights is None else np.random.default_rng(1).uniform(0.2, 2.0, N)
    options = {"criterion": "loo", "regularization": 0.05}
    reg = MultipleKernelRidge(KERNELS, weights_per_target=True, **options)
    reg.fit(X, Y, sample_weight=weights, groups=groups)
    for i in range(3):
        one = MultipleKernelRidge(KERNELS, **options).fit(X, Y[:, i], weights, groups)
        np.testing.assert_allclose(reg.kernel_weights_[i], one.kernel_weights_, atol=0.01)
        scale = Y[:, i].std()
        np.testing.assert_allclose(
            reg.predict(data[0])[:, i] / scale, one.predict(data[0]) / scale, atol=0.02
        )
        np.testing.assert_allclose(
            reg.leave_one_out_[:, i] / scale, one.leave_one_out_ / scale, atol=0.02
        )


def test_targets_do_not_depend_on_each_other(fitted, data):
    X, Y = data[0][:N], data[1][:N]
    turned = MultipleKernelRidge(KERNELS, weights_per_target=True).fit(X, Y[:, [2, 0]])
    np.testing.assert_allclose(turned.kernel_weights_, fitted.kernel_weights_[[2, 0]], atol=1e-6)
    expected = fitted.predict(data[0])[:, [2, 0]]
    np.testing.assert_allclose(turned.predict(data[0]), expected, rtol=1e-6, atol=1e-6)


def test_one_target_is_fitted_as_without(data):
    X, y = data[0][:N], data[1][:N, 0]
    own = MultipleKernelRidge(KERNELS, weights_per_target=True)
    shared = MultipleKernelRidge(KERNELS)
    for target in (y, y[:, None]):
        one, other = own.fit(X, target), shared.fit(X, target)
        np.testing.assert_array_equal(one.kernel_weights_, other.kernel_weights_)
        np.testing.assert_array_equal(one.predict(data[0]), other.predict(data[0]))
        assert one.regularization_ == other.regularization_


def test_dual_coefficients_give_the_predictions(fitted, data):
    """Σ_i c_ti k_i(x, x_j) coef_jt plus the intercept, with centred kernels."""
    X, new = data[0][:N], data[0][N:]
    coefficients = fitted.learned_kernel_.by_target.coefficients
    assert fitted.dual_coef_.shape == (N, 3)
    for i in range(3):
        cross = sum(c * k(new, X) for c, k in zip(coefficients[i], KERNELS.values(), strict=True))
        gram = sum(c * k(X, X) for c, k in zip(coefficients[i], KERNELS.values(), strict=True))
        cross = cross - cross.mean(axis=1, keepdims=True) - gram.mean(axis=0) + gram.mean()
        expected = cross @ fitted.dual_coef_[:, i] + fitted.intercept_[i]
        np.testing.assert_allclose(fitted.predict(new)[:, i], expected, rtol=1e-8, atol=1e-8)


def test_expected_errors_are_those_of_new_rows(fitted, data):
    X, Y = data
    found = r2_score(Y[N:], fitted.predict(X[N:]))
    expected = fitted.expected_
    assert expected.r2_low - 0.05 < found < expected.r2_high + 0.05
    assert expected.where == "held out, 5 folds"


def test_rows_of_noise_have_no_expected_success():
    """Held-out rows have no part in the weights and λ that predict them."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(3):
        X, Y = rng.standard_normal((60, 6)), rng.standard_normal((60, 8))
        found.append(MultipleKernelRidge(KERNELS, weights_per_target=True).fit(X, Y).expected_.r2)
    assert np.mean(found) < 0.02


def test_many_targets_have_three_folds():
    X, Y = made(n=60)
    reg = MultipleKernelRidge(KERNELS, weights_per_target=True)
    reg.fit(X, np.hstack([Y[:, :2] + 0.01 * i * Y[:, 2:] for i in range(60)]))
    assert reg.kernel_weights_.shape == (120, 6)
    assert reg.expected_.where == "held out, 3 folds"


def test_intervals_of_each_target_have_one_width(fitted, data):
    X, Y = data
    low, high = np.moveaxis(fitted.predict_interval(X[N:], coverage=0.9), -1, 0)
    np.testing.assert_allclose((high - low).std(axis=0) / (high - low).mean(axis=0), 0, atol=1e-9)
    covered = ((low <= Y[N:]) & (Y[N:] <= high)).mean(axis=0)
    assert (np.abs(covered - 0.9) < 0.1).all()
    _, std = fitted.predict(X[N:], return_std=True)
    assert std.shape == (len(X) - N, 3)
    assert std[0, 1] > 20 * std[0, 0]


def test_importances_find_the_columns(fitted):
    shares = fitted.feature_importances_
    assert shares.sum() == pytest.approx(1.0)
    assert (shares > 0.02).all()  # every column matters to a target
    X, Y = made(3, noise=0.1)
    noise = np.random.default_rng(5).standard_normal((len(X), 2))
    both = MultipleKernelRidge([RBF(), Linear()], weights_per_target=True)
    both.fit(np.hstack([X, noise])[:N], Y[:N, :2])
    assert both.feature_importances_[6:].max() < both.feature_importances_[:4].min()


def test_importances_are_those_of_one_target(data):
    """A second copy of the target changes nothing: errors are relative to each target."""
    X, y = data[0][:N], data[1][:N, 0]
    one = MultipleKernelRidge(KERNELS, criterion="loo", regularization=0.05).fit(X, y)
    twice = MultipleKernelRidge(
        KERNELS, criterion="loo", regularization=0.05, weights_per_target=True
    ).fit(X, np.column_stack([y, y]))
    np.testing.assert_allclose(twice.feature_importances_, one.feature_importances_, atol=0.01)


def test_groups_have_importances(data):
    groups = np.repeat(np.arange(N // 3), 3)
    reg = MultipleKernelRidge(KERNELS, weights_per_target=True)
    reg.fit(data[0][:N], data[1][:N], groups=groups)
    assert reg.feature_importances_.sum() == pytest.approx(1.0)
    assert "groups" in reg.expected_.where


def test_explanations_add_up(fitted, data):
    X = data[0]
    check_adds_up(contributions(fitted, X[N : N + 4]), fitted.predict(X[N : N + 4]))


def test_source_importances_are_refused(fitted):
    with pytest.raises(InvalidInputError, match="weights_per_target=False"):
        source_importances(fitted)


def test_saved_models_predict_the_same(fitted, data, tmp_path):
    pytest.importorskip("skops")
    again = discernel.load(discernel.save(fitted, tmp_path / "model.skops"))
    np.testing.assert_array_equal(again.predict(data[0]), fitted.predict(data[0]))
    np.testing.assert_array_equal(again.kernel_weights_, fitted.kernel_weights_)
    assert again.get_params()["weights_per_target"] is True


def test_exported_models_predict_the_same(fitted, data):
    from discernel.export import numpy_scorer, to_onnx

    expected, scale = fitted.predict(data[0]), data[1].std(axis=0)
    found = numpy_scorer(fitted).predict(data[0])
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-10)
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    session = onnxruntime.InferenceSession(to_onnx(fitted).SerializeToString())
    given = {session.get_inputs()[0].name: data[0]}
    (found,) = session.run(None, given)
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-6)


def test_facts_have_the_mean_weights(fitted):
    facts = model_facts(fitted)
    assert list(facts.kernels) == list(KERNELS)
    np.testing.assert_allclose(
        list(facts.kernels.values()), fitted.kernel_weights_.mean(axis=0), atol=1e-12
    )
    assert "first 1" in fitted._repr_html_inner()
    np.testing.assert_allclose(
        fitted.learned_kernel_.weights, fitted.kernel_weights_.mean(axis=0), atol=1e-12
    )


def test_default_kernels_have_weights_of_each_target(data):
    X, Y = data
    reg = MultipleKernelRidge(weights_per_target=True).fit(X[:N], Y[:N])
    assert reg.kernel_weights_.shape == (3, len(reg.kernel_names_))
    assert r2_score(Y[N:], reg.predict(X[N:])) > 0.4
    assert reg.expected_.r2 > 0.3


def test_precomputed_kernels(data):
    X, Y = data
    stack = np.stack([kernel(X, X[:N]) for kernel in KERNELS.values()], axis=-1)
    reg = MultipleKernelRidge("precomputed", weights_per_target=True).fit(stack[:N], Y[:N])
    rows = MultipleKernelRidge(KERNELS, weights_per_target=True).fit(X[:N], Y[:N])
    scale = Y.std(axis=0)
    np.testing.assert_allclose(reg.predict(stack) / scale, rows.predict(X) / scale, atol=1e-5)


def test_constant_kernels_and_far_columns(data):
    """A kernel that is constant on the rows has weight 0; an offset of the columns is harmless."""
    X, Y = data
    kernels = [*KERNELS.values(), RBF(width=1.0).on([6]), Linear()]
    with_constant = np.column_stack([X, np.ones(len(X))])
    near = MultipleKernelRidge(kernels, weights_per_target=True)
    with pytest.warns(UserWarning, match="constant"):
        near.fit(with_constant[:N], Y[:N])
    assert (near.kernel_weights_[:, 6] == 0).all()
    far = MultipleKernelRidge([*KERNELS.values(), Linear()], weights_per_target=True)
    close = clone(far).fit(X[:N], Y[:N])
    far.fit(X[:N] + 1e5, Y[:N])
    scale = Y.std(axis=0)
    np.testing.assert_allclose(far.predict(X + 1e5) / scale, close.predict(X) / scale, atol=1e-3)


def test_many_rows_are_searched_on_a_part():
    X, Y = made(n=800)
    reg = MultipleKernelRidge(KERNELS, weights_per_target=True, regularization=1e-3)
    reg.fit(X[:600], Y[:600])
    assert np.abs(reg.kernel_weights_[0] - reg.kernel_weights_[1]).max() > 0.2
    assert r2_score(Y[600:], reg.predict(X[600:])) > 0.85


@pytest.mark.filterwarnings("ignore::discernel.exceptions.ConvergenceWarning")
def test_time_limit_ends_the_search(data):
    reg = MultipleKernelRidge(KERNELS, weights_per_target=True, max_time=0.5)
    assert reg.fit(data[0][:N], data[1][:N]).predict(data[0]).shape == data[1].shape


def test_what_is_not_offered_names_the_remedy(data, tmp_path):
    X, Y = data[0][:N], data[1][:N]
    reg = MultipleKernelRidge(KERNELS, weights_per_target=True)
    for criterion in ("rkda", "uniform"):
        with pytest.raises(InvalidInputError, match="MultiOutputRegressor"):
            clone(reg).set_params(criterion=criterion).fit(X, Y)
    with pytest.raises(InvalidInputError, match="must be positive"):
        clone(reg).set_params(criterion="loo", regularization=0).fit(X, Y)
    with pytest.raises(InvalidInputError, match="True or False"):
        clone(reg).set_params(weights_per_target="yes").fit(X, Y)
    with pytest.raises(InvalidInputError, match="rows in memory"):
        clone(reg).partial_fit(X, Y)
    with pytest.raises(InvalidInputError, match="rows in memory"):
        clone(reg).fit(open_rows(X, Y))
    for bank in ("lowrank", "iterative"):
        with pytest.raises(InvalidInputError, match="bank='dense'"):
            clone(reg).set_params(bank=bank).fit(X, Y)
