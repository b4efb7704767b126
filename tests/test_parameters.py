"""What counts as a number and as a count, for all parameters."""

from fractions import Fraction

import numpy as np
import pytest

from discernel import MultipleKernelDiscriminant
from discernel.bank import LowRank
from discernel.exceptions import InvalidInputError, is_count, is_number, is_positive
from discernel.kernels import RBF, rbf_ladder


@pytest.mark.parametrize("value", [2, 2.5, np.float32(2), np.int8(2), np.uint64(2), Fraction(5, 2)])
def test_real_numbers_of_any_type_are_numbers(value):
    assert is_number(value)
    assert is_positive(value)
    assert is_count(value) == (value == 2 and not isinstance(value, (float, np.floating)))


@pytest.mark.parametrize(
    "value", [True, False, np.True_, "2", b"2", None, 2j, np.ones(1), np.array(2.0), [2]]
)
def test_nothing_else_is(value):
    assert not is_number(value)
    assert not is_positive(value)
    assert not is_count(value)


@pytest.mark.parametrize("value", [0, -1, np.int64(0)])
def test_counts_have_a_least(value):
    assert is_number(value)
    assert not is_positive(value)
    assert not is_count(value)
    assert is_count(value, least=-1)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_only_finite_numbers_are_positive(value):
    assert is_number(value)
    assert not is_positive(value)
    assert not is_count(value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RBF(width=True),
        lambda: rbf_ladder(center="mean"),
        lambda: rbf_ladder(center=[1.0]),
        lambda: MultipleKernelDiscriminant(regularization=True).fit(*rows()),
        lambda: MultipleKernelDiscriminant(threshold=True).fit(*rows()),
        lambda: MultipleKernelDiscriminant(bank=LowRank(True)).fit(*rows()),
        lambda: MultipleKernelDiscriminant(n_components=True).fit(*rows()),
    ],
)
def test_parameters_refuse_what_is_none(make):
    with pytest.raises(InvalidInputError, match=r"True|'mean'|\[1\.0\]"):
        make()


def rows():
    X = np.random.default_rng(0).normal(size=(20, 2))
    return X, np.arange(20) % 2
