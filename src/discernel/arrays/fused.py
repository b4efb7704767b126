"""Passes over pairs of rows that NVIDIA's devices do at once, written for Triton."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from discernel.arrays import FloatArray

#: Rows and columns of the tile of a program, and entries of one that goes through an array.
_ROWS, _COLUMNS, _ENTRIES = 64, 64, 512


@triton.jit
def _sums(
    X,
    Z,
    out,
    n_x,
    n_z,
    n_columns,
    step_x,
    step_z,
    squared: tl.constexpr,
    R: tl.constexpr,
    C: tl.constexpr,
):
    rows = tl.program_id(0) * R + tl.arange(0, R)
    columns = tl.program_id(1) * C + tl.arange(0, C)
    total = tl.zeros((R, C), dtype=out.dtype.element_ty)
    for column in range(n_columns):
        x = tl.load(X + column * step_x + rows, mask=rows < n_x, other=0.0)
        z = tl.load(Z + column * step_z + columns, mask=columns < n_z, other=0.0)
        difference = x[:, None] - z[None, :]
        total += difference * difference if squared else tl.abs(difference)
    where = out + rows.to(tl.int64)[:, None] * n_z + columns[None, :]
    tl.store(where, total, mask=(rows < n_x)[:, None] & (columns < n_z)[None, :])


def sums_of_differences(X: Any, Z: Any, squared: bool) -> Any:
    """Return ‖x − z‖₁ or ‖x − z‖² for all rows, by differences; features come first in X and Z."""
    out = torch.empty((X.shape[1], Z.shape[1]), dtype=X.dtype, device=X.device)
    grid = triton.cdiv(X.shape[1], _ROWS), triton.cdiv(Z.shape[1], _COLUMNS)
    shape = X.shape[1], Z.shape[1], X.shape[0], X.stride(0), Z.stride(0)
    _sums[grid](X, Z, out, *shape, squared, _ROWS, _COLUMNS)
    return out


@triton.jit
def _exponentials(D, out, n, factors, weights, add: tl.constexpr, P: tl.constexpr, B: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    d = tl.load(D + at, mask=at < n, other=0.0)
    total = tl.load(out + at, mask=at < n, other=0.0) if add else d * 0.0
    for i in tl.static_range(P):
        total += tl.load(weights + i) * tl.exp(d * tl.load(factors + i))
    tl.store(out + at, total, mask=at < n)


def add_exponentials(
    total: Any, distances: Any, exponents: FloatArray, factors: FloatArray
) -> None:
    """Add Σ f_i exp(−c_i d) to an array, in one pass over both, of one shape and contiguous."""
    dtype = np.float32 if distances.dtype == torch.float32 else np.float64
    there = torch.as_tensor(np.stack([-exponents, factors]).astype(dtype), device=total.device)
    _run_exponentials(distances, total, there[0], there[1], add=True)


def exponential(distances: Any, exponent: float) -> Any:
    """Return exp(−c d) of a contiguous d, in one pass where PyTorch takes two."""
    # Filled there: what is sent waits for all that was asked for before.
    factor = torch.full((1,), -exponent, dtype=distances.dtype, device=distances.device)
    out = torch.empty_like(distances)
    _run_exponentials(distances, out, factor, torch.ones_like(factor), add=False)
    return out


def _run_exponentials(D: Any, out: Any, factors: Any, weights: Any, *, add: bool) -> None:
    n = D.numel()
    grid = (triton.cdiv(n, _ENTRIES),)
    _exponentials[grid](D, out, n, factors, weights, add, len(factors), _ENTRIES)
