"""Which kernels column generation may call proven to have no weight."""

import pytest

from discernel.bank import DenseBank
from discernel.programs.columns import Columns
from discernel.programs.rkda import RKDAProgram
from discernel.programs.solution import Status, Task
from discernel.solvers import Newton
from discernel.targets import ClassTarget
from tests.programs.test_columns import features, stack


class HalfUnknown(DenseBank):
    """A bank that knows next to nothing about the norms of its last kernels."""

    def norms(self):
        norms = super().norms()
        norms[len(norms) // 2 :] = 1e30
        return norms


@pytest.mark.parametrize(("n_kernels", "seed"), [(300, 1), (160, 0), (160, 1)])
def test_a_kernel_of_which_no_norm_is_known_is_never_screened(n_kernels, seed):
    """r²‖K_i‖ belongs to the same kernel in every round, whatever has left before."""
    X, y = features(40, n_kernels, seed=seed)
    target = ClassTarget.from_labels(y)
    plain = RKDAProgram(DenseBank(stack(X)), target, 0.02)
    half = RKDAProgram(HalfUnknown(stack(X)), target, 0.02)
    task = Task(1e-9, None, None, lambda *_: None)
    all_known, found = (Columns(Newton()).solve(c, task) for c in (plain, half))
    assert found.status is Status.CONVERGED
    assert found.value == pytest.approx(all_known.value, rel=1e-8)
    assert 0 < found.screened <= n_kernels // 2 < all_known.screened
