"""Whatever estimator: results are arrays of the send and device of the rows."""

import inspect
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator

import discernel
from discernel import (
    AKFDClassifier,
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    SeparabilityClassifier,
)
from discernel.arrays import as_host, device_of
from discernel.bank import LowRank
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF

torch = pytest.importorskip("torch")
strict = pytest.importorskip("array_api_strict")

#: All there are, whoever adds one.
ESTIMATORS = [
    value
    for value in (getattr(discernel, name) for name in discernel.__all__)
    if inspect.isclass(value) and issubclass(value, BaseEstimator)
]
CLASSIFIERS = [each for each in ESTIMATORS if hasattr(each, "predict") and "Ridge" not in str(each)]
#: Not what is meant, only what takes less time.
QUICK = {
    AKFDClassifier: {"kernels": [RBF()], "nu": 1.0, "tol": 0.1},
    KernelDiscriminant: {"regularization": 0.1},
    SeparabilityClassifier: {"kernels": [RBF()], "share": 0.9, "require_unlabelled": False},
}
LESS = {"kernels": [RBF()], "criterion": "rkda", "regularization": 0.1}
NOT_RESULTS = {"fit", "partial_fit", "score"}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int) + (X[:, 2] > 1)
    return X, y, rng.integers(1, 3, len(X)).astype(float)


def made(estimator):
    takes = inspect.signature(estimator).parameters
    options = QUICK.get(estimator, LESS)
    return estimator(**{name: value for name, value in options.items() if name in takes})


def methods_of(fitted):
    """Yield the methods that take rows and nothing else that is needed."""
    for name in dir(fitted):
        if name.startswith("_") or name in NOT_RESULTS or not hasattr(fitted, name):
            continue
        method = getattr(fitted, name)
        if not inspect.ismethod(method) and not inspect.isfunction(method):
            continue
        parameters = list(inspect.signature(method).parameters)
        if parameters and parameters[0] == "X":
            yield name, method


def is_like(found, given):
    same = type(found) is type(given)
    return same and str(device_of(found).where) == str(device_of(given).where)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_results_come_back_where_rows_are(estimator, rows, send):
    X, y, weights = rows
    fitted = made(estimator).fit(send(X), send(y), send(weights))
    names = set()
    for name, method in methods_of(fitted):
        extra = (send(y),) if name.startswith("fit_") else ()
        given = send(X)
        found = method(given, *extra)
        assert is_like(found, given), name
        here = method(X, *map(as_host, extra))
        assert isinstance(here, np.ndarray), name
        np.testing.assert_allclose(as_host(found), here, rtol=1e-6, atol=1e-9)
        names.add(name)
    assert names & {"predict", "transform"}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_scores_take_arrays_of_any_library(estimator, rows, send):
    X, y, weights = rows
    if not hasattr(estimator, "score"):
        pytest.skip("has none")
    fitted = made(estimator).fit(X, y)
    found = fitted.score(send(X), send(y), send(weights))
    assert type(found) is float
    assert found == pytest.approx(fitted.score(X, y, weights), abs=1e-12)
    assert found == fitted.score(send(X), y, sample_weight=send(weights))


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_text_stays_text(estimator, rows, send):
    X, y, _ = rows
    names = np.array(["no", "yes", "perhaps"])[y]
    found = made(estimator).fit(send(X), names).predict(send(X))
    assert isinstance(found, np.ndarray)
    assert set(found) <= set(names)


def test_several_labels_per_row(rows, send):
    X, y, _ = rows
    labels = np.column_stack([y > 0, X[:, 3] > 0]).astype(int)
    fitted = made(MultiLabelKernelDiscriminant).fit(send(X), send(labels))
    for method in (fitted.predict, fitted.predict_proba, fitted.decision_function):
        assert is_like(method(send(X)), send(X))
        assert tuple(method(send(X)).shape) == labels.shape
    assert fitted.score(send(X), send(labels)) == fitted.score(X, labels)


@pytest.mark.parametrize("estimator", [KernelDiscriminant, LearnedKernelTransformer])
def test_dataframes_where_they_are_asked_for(estimator, rows, send):
    pandas = pytest.importorskip("pandas")
    X, y, _ = rows
    fitted = made(estimator).set_output(transform="pandas").fit(send(X), send(y))
    for found in (fitted.transform(send(X)), fitted.fit_transform(send(X), send(y))):
        assert isinstance(found, pandas.DataFrame)
        assert list(found.columns) == list(fitted.get_feature_names_out())
    fitted.set_output(transform="default")
    with config_context(transform_output="pandas"):
        assert isinstance(made(estimator).fit(X, y).transform(send(X)), pandas.DataFrame)
    assert is_like(fitted.transform(send(X)), send(X))


def test_rows_without_weight_or_label(rows, send):
    X, y, weights = rows
    partly, weights = np.where(np.arange(len(y)) % 3, y, -1), weights * (np.arange(len(y)) % 7 > 0)
    here = SeparabilityClassifier([RBF()], share=0.9).fit(X, partly, weights)
    there = SeparabilityClassifier([RBF()], share=0.9)
    there.fit(send(X), send(partly), send(weights))
    assert_array_equal(there.transduction_, here.transduction_)
    kernel = made(LearnedKernelTransformer).fit(send(X), send(y), send(weights))
    assert tuple(kernel.transform(send(X)).shape) == (len(X), len(X))


def test_rows_that_are_added(rows, send):
    X, y, weights = rows
    here = KernelDiscriminant().partial_fit(X, y, [0, 1, 2], weights).partial_fit(X + 1, y)
    there = KernelDiscriminant()
    there.partial_fit(send(X), send(y), send(np.arange(3)), send(weights))
    there.partial_fit(send(X + 1), send(y))
    assert is_like(there.predict(send(X)), send(X))
    assert_array_equal(there.predict_proba(X), here.predict_proba(X))


# ---- in the memory of the processor --------------------------------------------------------------

OPTIONS = {
    "default": {},
    "auto": {"kernels": [RBF(), RBF(width=3.0)]},
    "tiled": {**LESS, "bank": "tiled"},
    "lowrank": {**LESS, "bank": LowRank(20)},
    "summed up": {**LESS, "bank": LowRank(80, memory="50kB")},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_numpy_computes_with_tensors_of_the_processor(name, rows):
    X, y, weights = rows
    here = MultipleKernelDiscriminant(**OPTIONS[name]).fit(X, y, weights)
    there = MultipleKernelDiscriminant(**OPTIONS[name], verbose=False)
    there.fit(*map(torch.as_tensor, (X, y, weights)))
    assert there.bank_ == here.bank_ != "device"
    assert_array_equal(there.kernel_weights_, here.kernel_weights_)
    found = there.predict_proba(torch.as_tensor(X))
    assert isinstance(found, torch.Tensor)
    assert_array_equal(found.numpy(), here.predict_proba(X))


def test_awkward_tensors_of_the_processor(rows):
    X, y, _ = rows
    tensor = torch.as_tensor(np.asfortranarray(X)).requires_grad_()
    fitted = made(MultipleKernelDiscriminant).fit(tensor, torch.as_tensor(y))
    before = fitted.predict_proba(X)
    with torch.no_grad():
        tensor.zero_()  # rows are the model's own
    assert_array_equal(fitted.predict_proba(X), before)
    assert_array_equal(fitted.predict_proba(torch.as_tensor(X)[::2]).numpy(), before[::2])


def test_forecasts_are_as_for_numpy(rows):
    X, y, _ = rows
    clf = MultipleKernelDiscriminant(**LESS, max_time="1h").fit(torch.as_tensor(X), y)
    assert clf.forecast_ is not None


def test_few_digits_are_refused_in_prediction_too(rows):
    X, y, _ = rows
    fitted = made(KernelDiscriminant).fit(X, y)
    for refused in (torch.bfloat16, torch.float16):
        with pytest.raises(InvalidInputError, match="at least 32 bits"):
            fitted.predict(torch.as_tensor(X).to(refused))
        with pytest.raises(InvalidInputError, match="at least 32 bits"):
            fitted.partial_fit(torch.as_tensor(X).to(refused), y)


def test_results_of_memory_that_is_not_ours_come_without_warnings():
    device = device_of(torch.zeros(1))
    fixed = np.broadcast_to(np.arange(3.0), (2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert device.returned(fixed).tolist() == fixed.tolist()
        assert device.returned(np.arange(3)[::-1]).tolist() == [2, 1, 0]
