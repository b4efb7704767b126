"""What a user meets first: few names, each there, and a word on those that went elsewhere."""

import subprocess
import sys

import pytest

import discernel
from discernel import solvers
from discernel.solvers import SOLVERS

#: A name more is a decision, not an accident: it is written here too. At most 18.
NAMES = [
    "AKFDClassifier",
    "KernelDiscriminant",
    "LearnedKernel",
    "LearnedKernelTransformer",
    "MultiLabelKernelDiscriminant",
    "MultipleKernelDiscriminant",
    "MultipleKernelRidge",
    "SeparabilityClassifier",
    "Status",
    "align_kernels",
    "learn_kernel",
    "load",
    "open_rows",
    "regularization_path",
    "reweigh_spectrum",
    "save",
    "trusted_types",
]


def test_the_names_of_the_package_are_few_and_these():
    assert sorted(discernel.__all__) == sorted(NAMES)
    assert len(NAMES) <= 18
    there = {
        name
        for name in dir(discernel)
        if not name.startswith("_")
        and getattr(getattr(discernel, name), "__module__", "").startswith("discernel.")
    }
    assert there == set(NAMES)


def test_an_import_of_the_package_leaves_out_what_only_saves_and_shows():
    code = "import sys, discernel; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = found.stdout.split()
    assert "discernel.estimators" in loaded
    for room in ("persistence", "inspection", "show", "export", "displays", "report", "cli"):
        assert f"discernel.{room}" not in loaded


@pytest.mark.parametrize("name", discernel._MOVED)
def test_a_name_that_moved_says_where_to(name):
    with pytest.raises(ImportError, match=f"Write: from discernel.*import {name}$") as raised:
        exec(f"from discernel import {name}")
    with pytest.raises(ImportError, match=f"Write: from discernel.*import {name}$"):
        getattr(discernel, name)
    words = {}
    exec(str(raised.value).partition("Write: ")[2], words)
    assert words[name].__name__ == name


def test_a_name_that_never_was_is_absent_as_ever():
    assert not hasattr(discernel, "nothing")
    with pytest.raises(AttributeError, match="module 'discernel' has no attribute 'nothing'"):
        _ = discernel.nothing
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from discernel import nothing")


def test_every_solver_that_has_a_word_has_an_object():
    known = [getattr(solvers, name) for name in solvers.__all__]
    assert all(type(make()) in known for make in SOLVERS.values())


def test_the_package_does_not_load_what_only_papers_compare_with():
    code = "import sys, discernel; print([m for m in sys.modules if 'baselines' in m])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
