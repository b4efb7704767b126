"""Certified gaps on the papers' data sets; the full list is in benchmarks/convergence.py."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import scale

from discernel import learn_kernel
from discernel.kernels import RBF

WIDTHS = np.logspace(-1, 2, 10)
BUNDLED = {"wine": load_wine, "wdbc": load_breast_cancer, "digits": load_digits}


def grams_of(X):
    return np.array([RBF(width=width)(scale(X)) for width in WIDTHS])


@pytest.mark.parametrize("name", BUNDLED)
def test_rkda_gap_on_bundled_data(name):
    X, y = BUNDLED[name](return_X_y=True)
    learned = learn_kernel(
        grams_of(X[:600]), y[:600], criterion="rkda", regularization=5e-4, tol=1e-8
    )
    assert learned.gap <= 1e-8
    assert learned.n_iter <= 15


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    ["sonar", "ionosphere", "heart_cleveland", "heart_statlog", "pima", "breast_cancer_wisconsin"],
)
def test_rkda_and_fdr_gaps(paper_data, name):
    X, y = paper_data(name)
    grams = grams_of(X)
    learned = learn_kernel(grams, y, criterion="rkda", regularization=5e-4, tol=1e-8)
    assert learned.gap <= 1e-8
    assert learned.n_iter <= 15
    for lam in (1e-2, 1e-4, 1e-8):
        learned = learn_kernel(grams, y, criterion="fdr", regularization=lam, tol=1e-6)
        assert learned.gap <= 1e-6
        assert learned.n_iter <= 15
