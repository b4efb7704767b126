"""Compiled loops say what NumPy says, and are done without where they are not there."""

import os
import shutil
import subprocess
import sys

import mpmath
import numpy as np
import pytest

from discernel.arrays import loops as module
from discernel.arrays.loops import ADD, EXP, SWITCH, Loops, Steps, compiled_loops
from discernel.kernels.evaluate import _SINGLE_TINY, _TINY, squaring
from discernel.kernels.terms import LEAST_EXPONENT, LEAST_SINGLE_EXPONENT

TYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@pytest.fixture
def loops():
    found = compiled_loops()
    if found is None:
        pytest.skip("the loops are not compiled: python hatch_build.py")
    return found


def exponential(loops, exponents):
    """Return exp of numbers of at most 0, by the compiled loop."""
    steps = Steps(np.array([[EXP, 0, 0], [ADD, 0, 0]]), np.array([[1.0, 0.0], [1.0, 0.0]]))
    out = np.empty_like(exponents[None, :])
    loops.evaluate(steps, [-exponents[None, :]], out)
    return out[0]


def test_loops_are_compiled_where_there_is_a_compiler():
    if shutil.which("cc") is None or sys.platform == "win32" or os.environ.get(SWITCH) == "0":
        pytest.skip("no compiler, or not wanted")
    assert compiled_loops() is not None, "python hatch_build.py compiles them"


@TYPES
def test_exponentials_are_right_to_two_units_in_the_last_place(loops, dtype):
    least = LEAST_EXPONENT if dtype == np.float64 else LEAST_SINGLE_EXPONENT
    rng = np.random.default_rng(0)
    exponents = np.concatenate([[0.0, least], rng.uniform(least, 0, 2000), -rng.uniform(0, 1, 999)])
    exponents = exponents.astype(dtype)
    with mpmath.workdps(40):
        right = [mpmath.exp(mpmath.mpf(float(x))) for x in exponents]
        found = exponential(loops, exponents)
        errors = [
            abs(mpmath.mpf(float(y)) - exact) / mpmath.mpf(float(np.spacing(y)))
            for y, exact in zip(found, right, strict=True)
        ]
    assert max(errors) < 2
    assert found[0] == 1


@TYPES
def test_exponentials_end_where_those_of_numpy_do(loops, dtype):
    """At the least exponent, and a square at its exponential: nothing is denormal."""
    double = dtype == np.float64
    least, tiny = (LEAST_EXPONENT, _TINY) if double else (LEAST_SINGLE_EXPONENT, _SINGLE_TINY)
    found = exponential(loops, np.array([-np.inf, -1e30, 1.5 * least, least, np.nan], dtype=dtype))
    np.testing.assert_allclose(found[:4], np.exp(least), rtol=1e-6)
    assert np.isnan(found[4])
    values = np.array([[0.0, tiny / 2, tiny, 0.5]], dtype=dtype)
    loops.evaluate(squaring(1), [values], values)
    np.testing.assert_allclose(values, [[tiny**2, tiny**2, tiny**2, 0.25]], rtol=1e-6)


def test_loops_of_other_sources_are_not_used(loops, monkeypatch, numpy_alone):
    monkeypatch.setenv(SWITCH, "1")
    monkeypatch.setattr(module, "digest", lambda folder: "another")
    assert compiled_loops() is None


def test_a_broken_library_is_not_used(tmp_path, monkeypatch, numpy_alone):
    monkeypatch.setenv(SWITCH, "1")
    (tmp_path / module.LIBRARY).write_bytes(b"for another machine")
    with pytest.raises(OSError, match=r"."):
        Loops(tmp_path / module.LIBRARY)
    monkeypatch.setattr(module, "__file__", str(tmp_path / "__init__.py"))
    assert compiled_loops() is None


def test_nothing_is_loaded_with_the_package(loops):
    code = "import discernel; from discernel.arrays.loops import compiled_loops as c;"
    code += "print(c.cache_info().currsize, c() is not None)"
    out = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True)
    assert out.stdout.split() == ["0", "True"], out.stderr
