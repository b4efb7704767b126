"""How much memory a whole fit takes above its data, with tiles that are never stored."""

import tracemalloc

import numpy as np
import pytest

from discernel import MultipleKernelDiscriminant
from discernel.kernels import RBF

N = 1500


@pytest.mark.parametrize(
    ("n_kernels", "n_matrices"),
    [
        (2, 4.0),
        (20, 4.0),
        # Learning starts from a quarter of the rows, whose matrices are a stack where that takes
        # at most 256 MiB: here 200 / 16 = 12.5 matrices of all rows.
        (200, 13.5),
    ],
)
def test_a_fit_takes_few_matrices_above_its_data(n_kernels, n_matrices):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 4))
    y = (X[:, 0] + X[:, 1] ** 2 - 1.0 + rng.standard_normal(N) > 0).astype(int)
    kernels = [RBF(width=float(width)) for width in np.geomspace(0.3, 30.0, n_kernels)]
    clf = MultipleKernelDiscriminant(
        kernels, criterion="rkda", regularization=1e-3, bank="tiled", tol=1e-6
    )
    tracemalloc.start()
    try:
        clf.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert clf.bank_ == "tiled"
    assert clf.gap_ <= 1e-6
    assert peak / (8 * N**2) <= n_matrices
