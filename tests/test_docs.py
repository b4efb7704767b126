"""What the documentation says is true: examples run, parameters are the real ones."""

import doctest
import importlib
import inspect
import json
import pkgutil
import re
from pathlib import Path

import pytest
from numpydoc.validate import validate

import discernel
import discernel.datasets
import discernel.displays
import discernel.kernels

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    info.name for info in pkgutil.walk_packages(discernel.__path__, prefix="discernel.")
)
#: What is returned to users, not made by them: documented by attributes, not parameters.
RESULTS = {
    "AlignedKernels",
    "Candidate",
    "LearnedKernel",
    "Progress",
    "RegularizationPath",
    "Status",
}
PUBLIC = [f"discernel.{name}" for name in discernel.__all__ if name not in RESULTS] + [
    f"{room.__name__}.{name}"
    for room in (discernel.kernels, discernel.displays, discernel.datasets)
    for name in room.__all__
    if name not in ("Dataset", "DataUnavailableError")
]
#: Nothing undocumented, parameters as in the signature and in its order, sentences that end.
CHECKED = {"GL08", "PR01", "PR02", "PR03", "PR07", "SS03", "SS05"}


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_some_examples_exist():
    counts = [doctest.testmod(importlib.import_module(name)).attempted for name in MODULES]
    assert sum(counts) > 15


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_examples_in_pages_run(page):
    result = doctest.testfile(
        str(ROOT / page), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8"
    )
    assert result.attempted > 5
    assert result.failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_name_the_real_parameters(name):
    errors = [(code, text) for code, text in validate(name)["errors"] if code in CHECKED]
    assert errors == []


def test_public_methods_of_estimators_are_documented():
    for estimator in (discernel.KernelDiscriminant, discernel.MultipleKernelDiscriminant):
        for name, method in inspect.getmembers(estimator, inspect.isfunction):
            if not name.startswith("_"):
                assert method.__doc__, f"{estimator.__name__}.{name}"


def test_every_key_is_in_the_bibliography():
    bibliography = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    keys = set()
    for path in (ROOT / "src").rglob("*.py"):
        keys |= set(re.findall(r"\[([A-Z][A-Za-z]+\d\d)\]_", path.read_text(encoding="utf-8")))
    assert keys
    assert [key for key in keys if f"[{key}]" not in bibliography] == []


def test_links_of_pages_lead_somewhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


SPEED = {
    "ladder": "{:.1f} with a ladder of widths",
    "papers": "{:.1f} with ten free widths",
    "classes": "{:.2f} times as long for 10 classes",
    "large": "at 10,000 rows {:.2f} times",
    "easymkl": "EasyMKL (4,000 rows) {:.1f};",
    "svc": "an SVC grid (10 × 4 × 5) {:.0f},",
    "ridge": "a kernel ridge grid {:.0f},",
    "himalaya": "himalaya's random search {:.0f};",
    "sdp": "the semidefinite program by Clarabel {:,.0f} |",
    "many": "in passes over all kernels | {:.1f} |",
    "predict": "as many support vectors | {:.2f};",
}


def test_figures_of_the_readme_are_those_of_the_records():
    """Claims are computed, not typed: the table quotes what the benchmarks wrote."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    def results(name):
        return json.loads((ROOT / "benchmarks" / "records" / f"{name}.json").read_text())["results"]

    convergence = results("convergence")
    assert f"at most {max(entry['steps'] for entry in convergence)} steps" in readme
    assert f"{sum(entry['holds'] for entry in convergence)} of {len(convergence)}" in readme
    sdp = results("newton_against_sdp")
    ratio = min(entry["ratio"] for entry in sdp if entry["samples"] == 80)
    quoted = re.search(r"([\d,]+) times faster", readme)
    assert quoted is not None
    assert float(quoted[1].replace(",", "")) <= ratio
    default = results("default_against_baselines")
    ranks = default["mean_rank"]
    others = ", ".join(f"{ranks[m]:.2f}" for m in ("average", "single", "svc grid", "easymkl"))
    assert f"mean rank {ranks['auto']:.2f} ({others})" in readme
    assert f"on {default['tasks_where_auto_is_clearly_worse']} tasks" in readme
    speed = {case["case"]: case for case in results("speed")["cases"]}
    assert all(case["holds"] in (True, None) for case in speed.values()), "README names no miss"
    for case, words in SPEED.items():
        assert words.format(speed[case]["median"]) in readme, case
    memory = [max(case["memory_mib"].values()) for case in results("prediction")]
    assert f"a million rows take {max(memory):.0f} MiB above their result" in readme
    cost = {
        (entry["criterion"], entry["rows"]): entry for entry in results("cost_in_factorisations")
    }
    small, large = (cost["auto", rows]["median"] for rows in (1000, 4000))
    assert f"{small:.0f} at 1,000 rows, {large:.0f} at 4,000" in readme
    assert f"{cost['SVC grid over auto', 1000]['median']:.1f} times as long" in readme
    for entry in results("ridge_and_labels"):
        assert f"{entry['ours']:.3f} against {entry['grid']:.3f}" in readme
    names = {"ionosphere": "ionosphere", "monks3": "monks-3", "wine": "wine", "wdbc": "wdbc"}
    for entry in results("yeung2006"):
        if entry["data"] in names and (entry["labelled"], entry["neighbors"]) == (0.2, 1):
            gain = entry["ways"]["separability"]["gain"]
            assert f"{names[entry['data']]} {gain:+.1f}".replace("+0.0", "0.0") in readme
    overhead = results("runner_overhead")["run"]["overhead_percent"]
    assert f"{overhead:.1f} % of the run" in readme
    for entry in results("kim2006_table1"):
        assert f"{entry['mean']:.1f} ({entry['published']})" in readme
    for entry in results("ye2008_binary"):
        if entry["regularization"] != "joint":
            assert f"{entry['mean']:.1f} ({entry['published']})" in readme
