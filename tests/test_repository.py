"""The files around the code: each can be read, and says what the project says."""

import re
import tomllib
from pathlib import Path

import pytest

jinja2 = pytest.importorskip("jinja2")
yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow):
    return [step for job in read(workflow)["jobs"].values() for step in job["steps"]]


def test_the_citation_is_that_of_this_version_and_of_the_five_papers():
    citation = read(ROOT / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == PROJECT["authors"]
    assert citation["keywords"] == PROJECT["keywords"]
    listed = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    assert len(citation["references"]) == 5
    for paper in citation["references"]:
        names = ", ".join(f"{who['given-names']} {who['family-names']}" for who in paper["authors"])
        (line,) = [line for line in listed.splitlines() if f"*{paper['title']}.*" in line]
        assert names in line
        assert str(paper["year"]) in line


def test_workflows_are_there():
    assert [path.stem for path in WORKFLOWS] == ["ci", "docs", "release"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_of_the_makefile(workflow):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split()
    called = [step["run"].split()[1] for step in steps(workflow) if "make " in step.get("run", "")]
    assert called
    # The pages are built by a target that comes with them.
    assert set(called) - {"docs"} <= set(targets)
    if (ROOT / "docs" / "conf.py").is_file():
        assert set(called) <= set(targets)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_do_no_more_than_they_need(workflow):
    assert read(workflow)["permissions"] == {"contents": "read"}
    assert all(
        "@v" in step["uses"] or "@release/v" in step["uses"]
        for step in steps(workflow)
        if "uses" in step
    )


def test_pythons_of_the_workflow_are_those_of_the_project():
    matrix = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]
    said = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert matrix["python"] == said


@pytest.mark.parametrize("name", ["bug", "feature", "question"])
def test_issue_templates_ask_something(name):
    template = read(ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml")
    assert {"name", "description", "labels", "body"} <= set(template)
    ids = [part["id"] for part in template["body"]]
    assert len(set(ids)) == len(ids)
    assert all(part["type"] == "textarea" for part in template["body"])
    assert any(part.get("validations", {}).get("required") for part in template["body"])


def test_the_recipe_of_conda_is_that_of_the_project():
    source = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")

    def load_file_data(name, from_recipe_dir, recipe_dir):
        assert from_recipe_dir
        return tomllib.loads((Path(recipe_dir) / name).read_text(encoding="utf-8"))

    text = jinja2.Template(source).render(
        load_file_data=load_file_data, RECIPE_DIR=str(ROOT / "conda"), PYTHON="python"
    )
    recipe = yaml.safe_load(text)
    assert recipe["package"] == {"name": PROJECT["name"], "version": PROJECT["version"]}
    needs = [need.replace(" ", "") for need in recipe["requirements"]["run"]]
    assert needs == [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]]
    assert (ROOT / "conda" / recipe["source"]["path"] / recipe["about"]["license_file"]).is_file()
    assert recipe["about"]["license"] == PROJECT["license"]


def test_the_oldest_versions_are_the_bounds_of_the_project():
    """All of the library itself and of what its tests install; a bound has no patch version."""
    extras = PROJECT["optional-dependencies"]
    needs = [*PROJECT["dependencies"], *(need for extra in extras.values() for need in extra)]
    found = (re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", need) for need in needs)
    bounds = {one[1]: one[2] for one in found if one is not None}
    lines = (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    wanted = {*PROJECT["dependencies"], *extras["app"], *extras["conic"]}
    assert {need.partition(">=")[0] for need in wanted} <= set(pins)
    for name, version in pins.items():
        assert f"{version}.".startswith(f"{bounds[name]}."), name


def test_the_wheel_holds_the_library_alone():
    """No tests, no data, no benchmarks, and nothing that runs the papers' tables."""
    wheel = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    files = [file.distribution_path for file in wheel.recurse_included_files()]
    assert "discernel/compare/runner.py" in files
    parts = {part.removesuffix(".py") for file in files for part in Path(file).parts}
    elsewhere = {"bench", "benchmarks", "data", "published", "reproduce", "reproduction", "tests"}
    assert not parts & {*elsewhere, "discernel_reproduction"}
    assert not [file for file in files if file.startswith("discernel/compare/papers")]
    assert {Path(file).suffix for file in files} == {
        ".c",
        ".h",
        ".py",
        ".typed",
        ".css",
        ".j2",
        ".js",
        ".json",
        ".toml",
    }
