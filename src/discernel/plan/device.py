"""What a fit on a device will take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from discernel.arrays import Device, draw_rows, n_rows
from discernel.bank.device import factor_bytes, has_room, is_refined
from discernel.kernels import Kernel
from discernel.kernels.device import DeviceKernels
from discernel.kernels.evaluate import KernelSet
from discernel.plan.forecast import Forecast, Problem
from discernel.plan.speed import Speed, mean_seconds

__all__ = ["FEW_ROWS_ON_DEVICE", "measure_device", "plan_on_device"]

#: Below this many rows nothing on a device is worth a forecast.
FEW_ROWS_ON_DEVICE = 30_000
#: Rows of the matrices that are multiplied, and of the tile that kernels are computed on: on a GPU,
#: and where a device is none.
_ROWS, _TILE, _FEW = 4096, 4096, 512
#: Seconds that a fit takes however fast the device is, and a choice of kernels on top of that.
_DELAY, _CHOICE = 0.3, 0.7
#: Seconds per entry of a matrix that is given, of which only its way from memory takes time.
_READ = 4e-12


def measure_device(
    kernels: Sequence[Kernel], X: Any, device: Device, *, refined: bool | None = None
) -> Speed:
    """Return the rates of a device, for the kernels and rows of a fit.

    Parameters
    ----------
    kernels : sequence of Kernel
        The candidates, resolved.
    X : ndarray of shape (n_samples, n_features)
        The training rows, or given matrices.
    device : Device
        The device.
    refined : bool, optional
        Whether products are of single precision; by default as `is_refined` says.
    """
    rate = _product_rate(device, is_refined(n_rows(X)) if refined is None else refined)
    if kernels[0].precomputed:
        return Speed(rate, _READ * len(kernels), 1)
    kernel_set = KernelSet(kernels)
    most = _TILE if device.is_cuda and not kernel_set.direct else _FEW
    rows = draw_rows(X, most)
    there = DeviceKernels(kernel_set, kernel_set.prepare(rows), device)
    every = slice(0, len(rows))

    def compute() -> None:
        for _, matrix in there.strips(every, every):
            device.xp.sum(matrix, axis=0)

    return Speed(rate, _seconds(compute, device) / len(rows) ** 2, 1)


@lru_cache(maxsize=16)
def _product_rate(device: Device, single: bool) -> float:
    """Return the operations per second of a product, in the precision that is factored in."""
    n = _ROWS if device.is_cuda else _FEW
    matrix = device.put(np.random.default_rng(0).standard_normal((n, n)), single=single)

    def compute() -> None:
        with device.coarse_products(single):
            device.xp.matmul(matrix, matrix)

    return 2.0 * n**3 / _seconds(compute, device)


def _seconds(work: Callable[[], Any], device: Device) -> float:
    def until_done() -> None:
        work()
        float(device.zeros((1,))[0])  # what is asked for later comes later

    return mean_seconds(until_done)


def plan_on_device(
    problem: Problem, speed: Speed, device: Device, *, factors: bool = True
) -> Forecast:
    """Return what a fit on a device will take.

    Parameters
    ----------
    problem : Problem
        The sizes.
    speed : Speed
        Its rates.
    device : Device
        The device.
    factors : bool, default=True
        Whether systems are factored where there is room.
    """
    n, refined = problem.n_rows, is_refined(problem.n_rows)
    # The λ of the default is mostly too small for a coarse diagonal of the inverse.
    precise = refined and problem.chooses
    needed = factor_bytes(n, single=refined and not precise)
    fits = factors and has_room(device, needed)
    cost = problem.cost("tiled" if fits else "iterative", speed)
    seconds = _DELAY + (_CHOICE if problem.chooses else 0.0) + cost.seconds
    if fits and precise:  # one more factorisation, and as much again for the inverse
        double = replace(speed, product=_product_rate(device, False))
        seconds += 2.0 * n**3 / 3.0 / double.factorisation(n)
    how = "factored" if fits else "by conjugate gradients"
    reason = f"exact, {how} on {device.where}"
    n_bytes = needed if fits else cost.n_bytes
    return Forecast("device", seconds, n_bytes, n, reason)
