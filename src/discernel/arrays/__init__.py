"""Arrays of NumPy and other libraries: rows, pairs, threads, linear algebra, devices."""

from discernel.arrays.dense import (
    Cholesky,
    DeviceFactor,
    inner,
    matmul,
    orthonormal,
    pivoted_cholesky,
    quadratic_forms,
    self_product,
    self_product_less,
    symmetric_eigen,
    weighted_sum,
)
from discernel.arrays.device import (
    HOST,
    Device,
    as_host,
    check_given,
    device_errors,
    device_failure,
    device_of,
    elsewhere,
    on_host,
)
from discernel.arrays.machine import (
    Buffers,
    blas_threads,
    free_threads,
    in_threads,
    larger_tiles,
    memory_limit,
    n_cores,
    one_blas_thread,
    rows_for_threads,
)
from discernel.arrays.pairs import (
    ROUNDING,
    SQUARED_ROUNDING,
    ShiftedRows,
    city_distances,
    inner_products,
    squared_distances,
    squared_norms,
)
from discernel.arrays.rows import (
    ALMOST_ZERO,
    FieldState,
    FloatArray,
    Positions,
    as_dense,
    as_rows,
    convert_rows,
    draw_rows,
    is_dask,
    is_dense,
    is_frame,
    is_sparse,
    library_of,
    n_rows,
    round_keys,
    typical_row,
)
