"""The libraries that can be here without a GPU; with one, that too."""

import numpy as np
import pytest

from discernel.arrays import Device, device_of

LIBRARIES = [
    "torch",
    "array_api_strict",
    pytest.param("cuda", marks=pytest.mark.gpu),
]


@pytest.fixture(params=LIBRARIES)
def device(request):
    return device_of_library(request.param)


def device_of_library(name):
    """Return the device of a library, or skip the test without it."""
    if name == "array_api_strict":
        strict = pytest.importorskip("array_api_strict")
        return device_of(strict.asarray(np.zeros(1)))
    torch = pytest.importorskip("torch")
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    return Device.named("cpu" if name == "torch" else "cuda")


@pytest.fixture
def torch_as_device(monkeypatch):
    """Take PyTorch's arrays in the memory of the processor for those of another device."""
    torch = pytest.importorskip("torch")

    def refuse(self, *args, **kwargs):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")

    monkeypatch.setattr(Device, "is_host", False)
    monkeypatch.setattr(torch.Tensor, "__array__", refuse)  # NumPy cannot read them by itself


def _sends(name):
    """Return what sends arrays to a library."""
    if name == "array_api_strict":
        return pytest.importorskip("array_api_strict").asarray
    torch = pytest.importorskip("torch")
    if name != "cuda":
        return torch.as_tensor
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    return lambda array: torch.as_tensor(array, device="cuda")


@pytest.fixture(params=["torch", "torch as device", *LIBRARIES[1:]])
def send(request):
    """Return a function that sends arrays to another library."""
    if request.param == "torch as device":
        request.getfixturevalue("torch_as_device")
    return _sends(request.param)
