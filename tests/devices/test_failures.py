"""A device that fails in the middle ends in an error that says what to do, and in no half fit."""

import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from discernel import (
    AKFDClassifier,
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
)
from discernel.arrays import Device, device_errors
from discernel.bank import device as device_banks
from discernel.exceptions import DeviceError, InvalidInputError, NumericalError
from discernel.kernels import RBF, Function

torch = pytest.importorskip("torch")
HERE = Device.named("cpu")
OPTIONS = {"criterion": "rkda", "regularization": 0.1}


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(60, 3))
    return X, (X[:, 0] > 0).astype(int)


def plain(A, B):
    return A @ B.T


def exhausting(A, B):
    """Ask PyTorch for more memory than there is anywhere."""
    if len(A) > 1 or len(B) > 1:
        torch.empty(2**60)
    return A @ B.T


def lost(*_, **options):
    raise RuntimeError(
        "CUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA` to enable."
    )


# ---- which errors --------------------------------------------------------------------------------


def test_memory_of_pytorch_that_is_not_enough():
    said = r"memory of cpu is not enough.*GB were free"
    with pytest.raises(DeviceError, match=said) as caught, device_errors(HERE):
        torch.empty(2**60)
    assert "can't allocate memory" in str(caught.value) or "not enough" in str(caught.value)
    assert "Take fewer rows, free other arrays on it, or give NumPy arrays" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert type(caught.value.__cause__) is RuntimeError


class CUDARuntimeError(RuntimeError):
    """As CuPy's is called."""


class OutOfMemoryError(MemoryError):
    """As CuPy's is called."""


MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB. Set an option.\nMore."),
    torch.AcceleratorError("CUDA error: out of memory"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("Triton Error [CUDA]: out of memory"),
    OutOfMemoryError("Out of memory allocating 8,000 bytes (allocated so far: 0 bytes)."),
    CUDARuntimeError("cudaErrorMemoryAllocation: out of memory"),
]
LOST = [
    torch.AcceleratorError("CUDA error: unspecified launch failure\nCUDA kernel errors might"),
    RuntimeError("CUDA error: an illegal memory access was encountered"),
    RuntimeError("cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `create`"),
    CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered"),
]
OTHERS = [
    RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
    ValueError("out of memory"),
    MemoryError("Unable to allocate 8 TiB for an array"),  # NumPy's
    NumericalError("a matrix that is not positive definite"),
    InvalidInputError("rows that need more memory than is free"),
    KeyboardInterrupt(),
    torch.linalg.LinAlgError("linalg.cholesky: the input is not positive-definite."),
]


def raised_for(error, device=HERE):
    try:
        with device_errors(device, smaller="Be modest", instead="do without"):
            raise error
    except BaseException as found:
        return found


@pytest.mark.parametrize("error", MEMORY, ids=repr)
def test_too_little_memory(error):
    found = raised_for(error)
    assert type(found) is DeviceError
    assert "is not enough" in str(found)
    assert "Set an option" not in str(found)
    assert "Be modest, free other arrays on it, or do without." in str(found)
    assert found.__cause__ is error


@pytest.mark.parametrize("error", LOST, ids=repr)
def test_a_lost_device(error):
    found = raised_for(error)
    assert type(found) is DeviceError
    assert isinstance(found, RuntimeError)
    assert str(found).startswith("cpu failed. torch says: " + str(error).splitlines()[0])
    assert str(found).endswith("start a new process, or do without.")


@pytest.mark.parametrize("error", OTHERS, ids=repr)
def test_other_errors_stay(error):
    assert raised_for(error) is error


def test_without_a_device_all_errors_stay():
    assert raised_for(LOST[0], None) is LOST[0]


def test_arrays_of_the_work_that_failed_are_let_go():
    kept = []

    def work():
        large = torch.zeros(1000)
        kept.append(weakref.ref(large))
        torch.empty(2**60)

    try:
        with device_errors(HERE):
            work()
    except DeviceError:
        assert kept[0]() is None  # so that there is room for less, right here


# ---- fits ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("torch_as_device")
class TestFits:
    @pytest.mark.parametrize(
        "estimator",
        [
            KernelDiscriminant(Function(exhausting), regularization=0.1),
            MultipleKernelDiscriminant([Function(exhausting)], **OPTIONS),
            MultipleKernelRidge([Function(exhausting)], **OPTIONS),
            MultiLabelKernelDiscriminant([Function(exhausting)], **OPTIONS),
            LearnedKernelTransformer([Function(exhausting)], **OPTIONS),
        ],
        ids=lambda each: type(each).__name__,
    )
    def test_nothing_is_left_of_a_fit_that_failed(self, rows, estimator):
        X, y = rows
        before = dict(vars(estimator))
        with pytest.raises(DeviceError, match="memory of cpu is not enough") as caught:
            estimator.fit(torch.as_tensor(X), y)
        assert vars(estimator) == before
        predict = getattr(estimator, "predict", getattr(estimator, "transform", None))
        with pytest.raises(NotFittedError):
            predict(X)
        has_bank = "bank" in estimator.get_params()
        assert ("bank='iterative'" in str(caught.value)) == has_bank
        assert ("leave `device` out" in str(caught.value)) == has_bank

    def test_a_model_outlives_a_fit_that_fails(self, rows):
        X, y = rows
        clf = MultipleKernelDiscriminant([Function(plain)], **OPTIONS).fit(torch.as_tensor(X), y)
        expected = clf.predict_proba(X)
        clf.set_params(kernels=[Function(lost)])
        with pytest.raises(DeviceError, match=r"cpu failed\. torch says: CUDA error: device-side"):
            clf.fit(torch.as_tensor(X[:, :2]), 1 - y)
        assert_array_equal(clf.predict_proba(X), expected)

    def test_what_is_no_failure_of_a_device_leaves_nothing_either(self, rows):
        X, y = rows
        clf = KernelDiscriminant(Function(lost), regularization=0.1)
        with pytest.raises(RuntimeError, match=r"^CUDA error"):  # of NumPy's arrays: not ours
            clf.fit(X, y)
        assert not hasattr(clf, "n_features_in_")

    def test_iterative_is_not_advised_where_it_is_taken(self, rows):
        X, y = rows
        clf = MultipleKernelDiscriminant([Function(exhausting)], bank="iterative", **OPTIONS)
        with pytest.raises(DeviceError, match="Take fewer rows, free other"):
            clf.fit(torch.as_tensor(X), y)

    def test_predictions(self, rows, monkeypatch):
        X, y = rows
        clf = MultipleKernelDiscriminant([RBF()], **OPTIONS).fit(torch.as_tensor(X), y)
        monkeypatch.setattr("discernel.kernels.device.DeviceSum.product", lost)
        for given in (X, torch.as_tensor(X)):
            with pytest.raises(DeviceError, match=r"give NumPy arrays to the model that `to_cpu"):
                clf.predict(given)
        assert len(clf.to_cpu().predict(X)) == len(X)

    def test_what_computes_here_says_nothing_of_a_device(self, rows):
        X, y = rows
        clf = AKFDClassifier([Function(plain)], nu=1.0).fit(torch.as_tensor(X), y)
        assert clf.model_.device is None


# ---- for real ------------------------------------------------------------------------------------

gpu = pytest.mark.gpu


def fill():
    """Return tensors that take all memory of the device."""
    filling, size = [], 2**37
    while size > 2**16:
        try:
            filling.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            size //= 2
    return filling


@gpu
def test_memory_that_others_take_after_it_was_estimated(rows, monkeypatch):
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    X = np.random.default_rng(0).normal(size=(3000, 5))
    y, filling = (X[:, 0] > 0).astype(int), []
    estimate = device_banks._room_for_strips

    def then_fill(*given):
        found = estimate(*given)
        filling.extend(fill())
        return found

    monkeypatch.setattr(device_banks, "_room_for_strips", then_fill)
    clf = MultipleKernelDiscriminant([RBF()], device="cuda", **OPTIONS)
    said, accuracy, fitted = "", 0.0, True
    try:
        clf.fit(X, y)
    except DeviceError as error:
        said, fitted = str(error), hasattr(clf, "discriminant_")
        filling.clear()
        torch.cuda.empty_cache()
        monkeypatch.undo()
        accuracy = clf.fit(X, y).score(X, y)  # right here, where the error is still alive
    assert "The memory of cuda is not enough. torch says: CUDA out of memory" in said
    assert "bank='iterative'" in said
    assert not fitted
    assert accuracy > 0.9


LOST_IN_THE_MIDDLE = """
    import numpy as np, torch
    from discernel import KernelDiscriminant, MultipleKernelDiscriminant
    from discernel.exceptions import DeviceError
    from discernel.kernels import RBF

    X = np.random.default_rng(0).normal(size=(2000, 5))
    y, there = (X[:, 0] > 0).astype(int), torch.as_tensor(X, device="cuda")
    options = dict(criterion="rkda", regularization=0.1)
    clf = MultipleKernelDiscriminant([RBF()], device="cuda", **options).fit(X, y)
    expected = clf.predict(X)
    torch.zeros(1, device="cuda")[torch.tensor([5], device="cuda")]

    def message(work):
        try:
            work()
        except DeviceError as error:
            return str(error)

    for work in (
        lambda: clf.predict(X),
        lambda: clf.predict(there),
        lambda: KernelDiscriminant(regularization=0.1).fit(there, y),
        lambda: MultipleKernelDiscriminant([RBF()], device="cuda", **options).fit(X, y),
        lambda: MultipleKernelDiscriminant([RBF()], device="cuda:0", **options).fit(there, y),
    ):
        said = message(work)
        print(said)
        assert " failed. torch says: CUDA error: device-side assert triggered. " in said
    assert (clf.to_cpu().predict(X) == expected).all()
    print("all said")
"""


@gpu
def test_a_device_that_is_lost():
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    code = textwrap.dedent(LOST_IN_THE_MIDDLE)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.endswith("all said\n")
