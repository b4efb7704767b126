"""The n_samples² work of a fit on another device, by any library of the array API standard."""

from discernel.devices.device import Device, as_host, check_given, device_of, on_host
from discernel.devices.factor import DeviceFactor
from discernel.devices.failures import device_errors, device_failure
from discernel.devices.given import MatrixThere
from discernel.devices.pairs import DeviceKernels, DeviceSum

__all__ = [
    "Device",
    "DeviceFactor",
    "DeviceKernels",
    "DeviceSum",
    "MatrixThere",
    "as_host",
    "check_given",
    "device_errors",
    "device_failure",
    "device_of",
    "on_host",
]
