"""The n_samples² work of a fit on another device, by any library of the array API standard."""

from discernel.devices.calls import called_there
from discernel.devices.device import Device, as_host, check_given, device_of, elsewhere, on_host
from discernel.devices.factor import DeviceFactor
from discernel.devices.failures import device_errors, device_failure
from discernel.devices.given import MatrixThere
from discernel.devices.pairs import DeviceKernels, DeviceSum
from discernel.kernels import Kernel

__all__ = [
    "Device",
    "DeviceFactor",
    "DeviceKernels",
    "DeviceSum",
    "MatrixThere",
    "as_host",
    "called_there",
    "check_given",
    "device_errors",
    "device_failure",
    "device_of",
    "elsewhere",
    "on_host",
]

# Kernels know NumPy only, and no room above theirs.
Kernel._elsewhere = staticmethod(called_there)
