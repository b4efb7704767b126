"""How much memory a whole fit takes above its data, with tiles that are never stored."""

import tracemalloc

import numpy as np
import pytest

from discernel import MultipleKernelDiscriminant
from discernel.kernels import RBF

N = 1500


@pytest.mark.parametrize("n_kernels", [2, 20, 200])
def test_a_fit_takes_five_matrices_above_its_data_at_most(n_kernels):
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
    assert peak / (8 * N**2) <= 5.0
