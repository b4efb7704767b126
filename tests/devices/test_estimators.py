"""Estimators take arrays of other libraries, and give them back."""

import gc
import pickle
import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from discernel import (
    MultipleKernelDiscriminant,
    learn_kernel,
)
from discernel.arrays import Device, as_host, check_given
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Laplace, rbf_ladder

torch = pytest.importorskip("torch")
strict = pytest.importorskip("array_api_strict")
pytestmark = pytest.mark.usefixtures("torch_as_device")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int) + (X[:, 2] > 1)


OPTIONS = {
    "default": {},
    "rkda": {"kernels": rbf_ladder(4), "criterion": "rkda", "regularization": 1e-2, "tol": 1e-10},
    "auto": {"kernels": [RBF(), Laplace()]},
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("library", [torch.as_tensor, strict.asarray])
def test_a_fit_is_that_of_numpy(rows, name, library):
    X, y = rows
    here = MultipleKernelDiscriminant(**OPTIONS[name]).fit(X, y)
    there = MultipleKernelDiscriminant(**OPTIONS[name]).fit(library(X), library(y))
    assert (there.bank_, here.bank_ != "device") == ("device", True)
    assert_allclose(there.kernel_weights_, here.kernel_weights_, atol=1e-8)
    found = there.predict_proba(library(X[:40]))
    assert type(found).__module__.startswith(type(library(X)).__module__.partition(".")[0])
    # The default's metric is of single precision here, and may differ in its fourth digit: rows
    # with nearly the same scores then change places, and the folds of the links.
    close = 0.02 if name == "default" else 1e-5
    assert_allclose(as_host(found), here.predict_proba(X[:40]), atol=close)
    rows_there = library(X[:40])
    scores = here.model_.scores(X[:40])[:, :2], as_host(there.model_.scores(rows_there))[:, :2]
    assert_allclose(*scores, atol=1e-3 if name == "default" else 1e-5)
    first, second = (
        [(one.name, *one.kernel_options) for one in clf.learned_kernel_.considered]
        for clf in (here, there)
    )
    assert first == second
    assert there.score(library(X), library(y)) == here.score(X, y)


@pytest.mark.parametrize("most_refitted", [0, 2000])
def test_importances_are_those_of_numpy(rows, most_refitted, monkeypatch):
    monkeypatch.setattr("discernel.model.importances._MOST_REFITTED", most_refitted)
    X, y = rows
    here = MultipleKernelDiscriminant(**OPTIONS["rkda"]).fit(X, y)
    there = MultipleKernelDiscriminant(**OPTIONS["rkda"]).fit(
        torch.as_tensor(X), torch.as_tensor(y)
    )
    assert_allclose(there.feature_importances_, here.feature_importances_, atol=0.02)


def test_a_model_on_the_processor_keeps_no_rows_on_a_device(rows):
    X, y = map(torch.as_tensor, rows)
    there = MultipleKernelDiscriminant(**OPTIONS["rkda"]).fit(X, y)
    there.predict(X)
    on_device = weakref.ref(there.model_.kernel._on_device)
    here = there.to_cpu()
    del there
    gc.collect()
    assert on_device() is None
    assert here.feature_importances_.sum() == pytest.approx(1.0)


def test_weights_of_rows_and_awkward_tensors(rows):
    X, y = rows
    weights = np.random.default_rng(1).integers(0, 3, len(X))
    here = MultipleKernelDiscriminant([RBF()], criterion="rkda", regularization=0.1)
    here.fit(X, y, weights)
    tensor = torch.as_tensor(np.asfortranarray(X)).requires_grad_()  # neither is minded
    there = MultipleKernelDiscriminant([RBF()], criterion="rkda", regularization=0.1)
    there.fit(tensor, torch.as_tensor(y), torch.as_tensor(weights))
    assert there.bank_ == "device"
    assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-6)


def test_taken_home_it_predicts_the_same_and_can_be_saved(rows):
    X, y = rows
    there = MultipleKernelDiscriminant().fit(torch.as_tensor(X), torch.as_tensor(y))
    home = there.to_cpu()
    assert_allclose(home.predict_proba(X), there.predict_proba(X), atol=1e-10)
    assert home.combined_kernel_.device is None
    for model in (home, there):
        again = pickle.loads(pickle.dumps(model))
        assert_allclose(again.predict_proba(X), home.predict_proba(X), atol=1e-10)


def test_a_fit_to_numpy_forgets_the_device(rows):
    X, y = rows
    clf = MultipleKernelDiscriminant([RBF()], criterion="rkda").fit(torch.as_tensor(X), y)
    assert clf.bank_ == "device"
    assert clf.fit(X, y).bank_ != "device"


def test_searches_and_pipelines(rows):
    X, y = rows
    clf = MultipleKernelDiscriminant([RBF()], criterion="rkda", regularization=0.1)
    chain = make_pipeline(FunctionTransformer(torch.as_tensor), clf)
    assert_allclose(cross_val_score(chain, X, y, cv=3), cross_val_score(clf, X, y, cv=3))


def test_matrices_of_other_libraries_are_learned_from(rows):
    X, y = rows
    grams = [kernel.resolve(X)(X) for kernel in rbf_ladder(3)]
    here = learn_kernel(grams, y, criterion="rkda", regularization=0.01)
    for given in ([torch.as_tensor(g) for g in grams], torch.as_tensor(np.stack(grams))):
        there = learn_kernel(given, torch.as_tensor(y), criterion="rkda", regularization=0.01)
        assert_allclose(there.weights, here.weights)


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.complex64])
def test_numbers_of_too_few_digits_are_refused(rows, dtype):
    X, y = rows
    with pytest.raises(InvalidInputError, match="at least 32 bits"):
        MultipleKernelDiscriminant().fit(torch.as_tensor(X).to(dtype), y)


def test_two_devices_are_refused_with_what_to_do():
    here, there = (
        strict.asarray(np.zeros(2), device=strict.Device(name))
        for name in ("CPU_DEVICE", "device1")
    )
    with pytest.raises(InvalidInputError, match="one library and on one device"):
        check_given(here, there)
    with pytest.raises(InvalidInputError, match=r"by array\.to\('cpu'\)|Move the second array"):
        check_given(torch.zeros(1), here)


def test_a_device_that_is_not_there(rows):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(
        InvalidInputError, match="device must be one that PyTorch can use here: cpu"
    ):
        MultipleKernelDiscriminant(device="cuda").fit(*rows)
    with pytest.raises(InvalidInputError, match="Got 'nonsense'"):
        Device.named("nonsense")


def test_sparse_tensors_are_refused(rows):
    X, y = rows
    with pytest.raises(InvalidInputError, match=r"must be dense.*sparse_coo.*array\.to_dense"):
        MultipleKernelDiscriminant().fit(torch.as_tensor(X).to_sparse(), y)


GRAMS = np.exp(-np.abs(np.subtract.outer(np.arange(300), np.arange(300))))[:, :, None]


@pytest.mark.parametrize("bank", ["tiled", "dense", "distributed", "nonsense"])
@pytest.mark.parametrize("default", [True, False])
def test_banks_of_the_processor_are_refused_with_a_device(rows, bank, default, monkeypatch):
    monkeypatch.setattr("discernel.learn.stages.propose_kernels", None)  # heavy work
    X, y = rows
    clf = MultipleKernelDiscriminant("auto" if default else [RBF()], bank=bank)
    with pytest.raises(
        InvalidInputError, match=f"bank must be one of 'auto', 'iterative', 'lowrank'. Got '{bank}'"
    ):
        clf.fit(torch.as_tensor(X), y)
    if bank not in ("distributed", "nonsense") and not default:
        assert clf.fit(X, y).bank_ == bank


@pytest.mark.parametrize("bank", ["auto", "iterative"])
def test_banks_of_a_device(rows, bank):
    X, y = rows
    options = {"criterion": "rkda", "regularization": 0.1, "bank": bank}
    clf = MultipleKernelDiscriminant([RBF()], **options).fit(torch.as_tensor(X), y)
    assert clf.bank_ == "device"


@pytest.mark.parametrize("bank", ["auto", "dense"])
def test_matrices_may_be_dense_with_a_device(rows, bank):
    _, y = rows
    options = {"criterion": "rkda", "regularization": 0.1}
    clf = MultipleKernelDiscriminant("precomputed", bank=bank, **options)
    found = clf.fit(torch.as_tensor(GRAMS), y).predict(torch.as_tensor(GRAMS))
    expected = MultipleKernelDiscriminant("precomputed", **options).fit(GRAMS, y).predict(GRAMS)
    assert found.tolist() == expected.tolist()
    with pytest.raises(InvalidInputError, match="bank must be one of 'auto', 'dense'"):
        clf.set_params(bank="tiled").fit(torch.as_tensor(GRAMS), y)


def test_cpu_by_name_is_numpy(rows):
    X, y = rows
    clf = MultipleKernelDiscriminant([RBF()], criterion="rkda", device="cpu")
    assert clf.fit(torch.as_tensor(X), y).bank_ != "device"
