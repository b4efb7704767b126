"""The comparison of two versions: what counts as the same, and that its fits can be made."""

import sys

import numpy as np
import pytest
import result_cells
import same_results

from discernel import MultipleKernelDiscriminant
from discernel.default import cross_fit, metric
from discernel.default.ridge import Ridge


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv("DISCERNEL_DATA", raising=False)


def test_there_are_many_fits_without_any_folder():
    assert len(result_cells.cells(list(result_cells.FAMILIES))) >= 400


@pytest.mark.parametrize("family", result_cells.FAMILIES)
def test_a_fit_of_every_family_can_be_made(family):
    name = next(iter(result_cells.cells([family])))
    found = same_results.run_cells([family], [name])[name]
    if found is None:
        pytest.skip("needs a package that is not installed")
    assert found
    assert "error" not in found
    assert all(np.isfinite(numbers).all() for numbers in found.values())


def test_a_fit_that_raises_is_a_result(monkeypatch):
    def fail():
        raise ValueError("no")

    monkeypatch.setitem(result_cells.FAMILIES, "criteria", lambda: iter([("one", fail)]))
    found = same_results.run_cells(["criteria"], ["criteria: one"])
    assert found == {"criteria: one": {"error": "ValueError: no"}}


def test_long_arrays_keep_some_numbers_and_their_means():
    assert same_results.digest([[1, 2], [3, 4]]) == [1.0, 2.0, 3.0, 4.0]
    values = np.arange(1000.0)
    found = same_results.digest(values)
    assert len(found) == same_results.KEPT + 2
    assert (found[0], found[-3]) == (0.0, 999.0)
    assert found[-2:] == [values.mean(), np.mean(values**2)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"weights": [0.5, 0.5]}, {"weights": [0.5, 0.5 + 1e-9]}, 1e-9),
        ({"objective": [100.0]}, {"objective": [101.0]}, 0.01),  # of its size
        ({"regularization": [1e-4]}, {"regularization": [2e-4]}, 1.0),  # also below 1
        ({"weights": [0.5, np.nan]}, {"weights": [0.5, np.nan]}, 0.0),
        ({"weights": [0.5, np.nan]}, {"weights": [0.5, 0.5]}, np.inf),
        ({"weights": [0.5]}, {"weights": [0.5, 0.5]}, np.inf),
        ({"weights": [0.5]}, {}, np.inf),
        ({"error": "ValueError: no"}, {"error": "ValueError: no"}, 0.0),
        ({"error": "ValueError: no"}, {"weights": [0.5]}, np.inf),
    ],
)
def test_differences_are_relative_to_the_size(before, after, expected):
    found = max(same_results.difference(before, after).values())
    assert found == pytest.approx(expected, rel=1e-6)


def test_what_was_not_run_is_not_the_same(capsys):
    result = {"weights": [0.5]}
    assert same_results.compare({"a: 1": result}, {"a: 1": result, "a: 2": result}, 1e-8)
    assert not same_results.compare({"a: 1": result, "a: 2": result}, {"a: 1": result}, 1e-8)
    assert "a: 2: not run now" in capsys.readouterr().out


@pytest.mark.parametrize("double", [False, True])
def test_metrics_and_folds_are_of_double_precision_where_that_is_asked_for(double, monkeypatch):
    for name, module in list(sys.modules.items()):
        if name.startswith(same_results.SINGLE) and getattr(module, "np", None) is np:
            monkeypatch.setattr(module, "np", np)  # to be restored
    seen = {"metric": set(), "folds": set()}

    def see(kind):
        class SeenRidge(Ridge):
            def __init__(self, stack, *given):
                super().__init__(stack, *given)
                seen[kind] |= {stack.dtype, self.combined(np.ones(len(stack))).dtype}

        return SeenRidge

    monkeypatch.setattr(metric, "Ridge", see("metric"))
    monkeypatch.setattr(cross_fit, "Ridge", see("folds"))
    if double:
        same_results.use_double_precision()
    X, y = result_cells.drawn("rings")
    MultipleKernelDiscriminant().fit(X, y)
    single = set() if double else {np.dtype(np.float32)}
    assert seen["metric"] == (single or {np.dtype(np.float64)})
    assert seen["folds"] == single | {np.dtype(np.float64)}  # the chosen one is always of double
