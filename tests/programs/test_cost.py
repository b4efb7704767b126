"""What learning may cost: memory, and factorisations."""

import tracemalloc

import numpy as np
import pytest

from discernel import MultipleKernelDiscriminant, learn_kernel
from discernel.bank import DenseBank
from discernel.kernels import RBF
from tests.conftest import make_problem


@pytest.mark.parametrize("regularization", [1e-3, "joint", "loo"])
@pytest.mark.parametrize("n_kernels", [4, 16])
def test_memory_is_a_few_matrices_however_many_kernels(n_kernels, regularization):
    """No copy of the stack, centred or not: at most six matrices beside it."""
    grams, y = make_problem(300, 2, n_kernels)
    tracemalloc.start()
    learn_kernel(grams, y, criterion="rkda", regularization=regularization)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 6 * grams[0].nbytes


def test_many_classes_need_vectors_only():
    """Products with the class scores are smaller than the stack."""
    grams, y = make_problem(300, 20, 8)
    tracemalloc.start()
    learn_kernel(grams, y, criterion="rkda", regularization=1e-3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 6 * grams[0].nbytes + 4 * 8 * 300 * 20 * 8


def test_estimator_holds_one_stack():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 4)), np.arange(300) % 2
    tracemalloc.start()
    kernels = [RBF(width=width) for width in np.geomspace(0.5, 50, 12)]
    MultipleKernelDiscriminant(kernels, criterion="rkda", regularization=0.01).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The kernels, those of four folds of five, and what one system takes.
    assert peak <= (12 + 12 * 0.8**2 + 6) * 8 * 300**2


def test_newton_factors_once_a_step(monkeypatch, three_classes):
    grams, y = three_classes
    factorisations = []
    plain = DenseBank.system

    def counted(*args, **options):
        factorisations.append(1)
        return plain(*args, **options)

    monkeypatch.setattr(DenseBank, "system", counted)
    learned = learn_kernel(grams, y, criterion="rkda", regularization=1e-2, tol=1e-8)
    assert len(factorisations) == learned.n_iter + 1


def test_auto_copies_no_stack_of_few_samples():
    """Up to 500 samples it searches on all of them, and needs a dozen matrices for its gradient."""
    grams, y = make_problem(300, 2, 24)
    tracemalloc.start()
    learn_kernel(grams, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 12 * grams[0].nbytes
