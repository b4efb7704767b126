"""Kernels on devices, by any library of the array API standard."""

from discernel.kernels import Kernel
from discernel.kernels.device.calls import called_there
from discernel.kernels.device.given import MatrixThere
from discernel.kernels.device.pairs import DeviceKernels, DeviceSum

__all__ = ["DeviceKernels", "DeviceSum", "MatrixThere", "called_there"]

Kernel._elsewhere = staticmethod(called_there)
