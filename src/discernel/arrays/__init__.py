"""Arrays of any library: rows, pairs, threads, dense linear algebra, devices."""

from discernel.arrays.dense import (
    Cholesky,
    inner,
    matmul,
    orthonormal,
    pairwise_inner,
    quadratic_forms,
    self_product,
    self_product_less,
    symmetric_eigen,
    weighted_sum,
)
from discernel.arrays.device import Device, as_host, check_given, device_of, elsewhere, on_host
from discernel.arrays.factor import DeviceFactor
from discernel.arrays.failures import device_errors, device_failure
from discernel.arrays.pairs import (
    ROUNDING,
    SQUARED_ROUNDING,
    ShiftedRows,
    city_distances,
    inner_products,
    squared_distances,
    squared_norms,
)
from discernel.arrays.rows import FloatArray, as_rows, draw_rows, fill_masked, n_rows, typical_row
from discernel.arrays.threads import (
    Buffers,
    blas_threads,
    free_threads,
    in_threads,
    larger_tiles,
    one_blas_thread,
    rows_for_threads,
)

__all__ = [
    "ROUNDING",
    "SQUARED_ROUNDING",
    "Buffers",
    "Cholesky",
    "Device",
    "DeviceFactor",
    "FloatArray",
    "ShiftedRows",
    "as_host",
    "as_rows",
    "blas_threads",
    "check_given",
    "city_distances",
    "device_errors",
    "device_failure",
    "device_of",
    "draw_rows",
    "elsewhere",
    "fill_masked",
    "free_threads",
    "in_threads",
    "inner",
    "inner_products",
    "larger_tiles",
    "matmul",
    "n_rows",
    "on_host",
    "one_blas_thread",
    "orthonormal",
    "pairwise_inner",
    "quadratic_forms",
    "rows_for_threads",
    "self_product",
    "self_product_less",
    "squared_distances",
    "squared_norms",
    "symmetric_eigen",
    "typical_row",
    "weighted_sum",
]
