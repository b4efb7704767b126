"""Kernels on devices, by any library of the array API standard."""

from discernel.kernels.device.given import MatrixOnDevice
from discernel.kernels.device.pairs import DeviceKernels, DeviceSum

__all__ = ["DeviceKernels", "DeviceSum", "MatrixOnDevice"]
