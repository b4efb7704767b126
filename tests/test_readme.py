"""The first screen is true: commands install, the example prints that, figures are measured."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest

import discernel

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: What the core install does not bring; the names to import are those to install.
EXTRAS = sorted(
    {
        re.split(r"[<>=]", requirement)[0]
        for extra in ("app", "conic")
        for requirement in PROJECT["optional-dependencies"][extra]
    }
)
INSTALL = re.findall(r"^\s*(pip install [^#\n]*[^#\s])", README, flags=re.MULTILINE)
#: What pip says when the index, not the package, is at fault.
UNREACHABLE = re.compile(
    r"Connection(?:Error| broken| refused| reset| aborted)|[Tt]imed out|ReadTimeout|ProxyError"
    r"|SSLError|name resolution|Max retries exceeded"
)


def run(command, **options):
    """Run a command as a user would who has not set PYTHONPATH."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environment |= options.pop("env", {})
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=environment, **options
    )


def the_example():
    """Return the code of the README and what it prints, as shown there."""
    pattern = r"```python\n(.*?)```\s*```text\n(.*?)```"
    (found,) = re.findall(pattern, README, flags=re.DOTALL)
    return found


@pytest.fixture(scope="module")
def core_only(tmp_path_factory):
    """Return variables under which Python finds this discernel, and none of the extras."""
    folder = tmp_path_factory.mktemp("core_only")
    hook = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
    (folder / "sitecustomize.py").write_text(hook, encoding="utf-8")
    package = Path(discernel.__file__).parent.parent
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(package)]), "PYTHONUTF8": "1"}


# ---- the example -------------------------------------------------------------------------------


def test_the_readme_opens_with_two_commands_then_a_short_example():
    assert "pandas" in EXTRAS
    assert INSTALL == ["pip install .", "pip install '.[app]'"]
    code, _ = the_example()
    assert README.count("```python") == 1
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    places = [README.index(each) for each in ("make demo", "make test", "```python", "![", "| ")]
    assert places == sorted(places)


def test_the_extras_are_absent_in_a_core_install(core_only):
    """The hook itself: without it, the tests below would pass for nothing."""
    for name in EXTRAS:
        found = run([sys.executable, "-c", f"import {name}"], env=core_only)
        assert f"No module named '{name}'" in found.stderr, name


def test_the_example_prints_what_is_shown_without_any_extra(core_only):
    code, shown = the_example()
    found = run([sys.executable, "-W", "error", "-c", code], env=core_only)
    assert found.returncode == 0, found.stderr
    assert found.stdout == shown


@pytest.fixture(scope="module")
def fresh_python(tmp_path_factory):
    """Return the Python of a new virtual environment, or skip where no package can be had."""
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    backend = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    probe = ["download", "--no-deps", "--retries", "0", "--timeout", "10", "--dest", folder]
    found = run([python, "-m", "pip", *probe, *backend])
    if found.returncode:
        pytest.skip(f"no package index can be reached: {found.stderr.strip().splitlines()[-1]}")
    return python


def install(python, command):
    """Run a command of the README with the pip of an environment."""
    pip, *options = shlex.split(command)
    assert pip == "pip"
    # The same command in less time: what is imported once need not be compiled ahead.
    quick = {"PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    found = run([python, "-m", pip, *options, "--quiet"], cwd=ROOT, env=quick)
    # The index answered a moment ago: only a connection that broke since is no fault of ours.
    if found.returncode and UNREACHABLE.search(found.stderr):
        pytest.skip(f"the package index went away: {found.stderr.strip().splitlines()[-1]}")
    assert found.returncode == 0, found.stderr


@pytest.mark.install
def test_the_commands_of_the_readme_install_what_it_says(fresh_python, tmp_path):
    library, command_line = INSTALL
    console = fresh_python.with_name("discernel")
    install(fresh_python, library)
    where = run([fresh_python, "-c", "import discernel; print(discernel.__file__)"], cwd=tmp_path)
    assert Path(where.stdout).is_relative_to(fresh_python.parent.parent)
    code, shown = the_example()
    found = run([fresh_python, "-c", code], cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout == shown
    without = run([console, "--help"], cwd=tmp_path)
    assert without.returncode == 1
    assert command_line in without.stderr
    install(fresh_python, command_line)
    having = run([console, "--help"], cwd=tmp_path, env={"PYTHONUTF8": "1"})
    assert having.returncode == 0, having.stderr
    assert "compare" in having.stdout


# ---- what is missing is said ---------------------------------------------------------------------


@pytest.mark.parametrize("words", [["--help"], [], ["compare", "wine"]])
def test_the_command_line_without_its_extra_says_what_to_install(core_only, words):
    found = run([sys.executable, "-m", "discernel", *words], env=core_only)
    assert found.returncode == 1
    assert found.stdout == ""
    assert found.stderr.splitlines() == [
        "error: The command line needs typer and rich. Install the extra: "
        "pip install 'discernel[app]', or in a clone: pip install '.[app]'."
    ]


def test_one_function_writes_what_to_install():
    """An error that names an extra in words of its own would soon name only one form."""
    for path in (ROOT / "src").rglob("*.py"):
        if path.name != "exceptions.py":
            source = path.read_text(encoding="utf-8")
            assert "discernel[" not in source, path
            assert "raise MissingExtraError(" not in source, path


# ---- the figures ---------------------------------------------------------------------------------


def record(name, folder="benchmarks"):
    return json.loads((ROOT / folder / "records" / f"{name}.json").read_text("utf-8"))


NAMES = {
    "average": "plain average",
    "single": "best single kernel",
    "easymkl": "EasyMKL",
    "lightgbm tuned": "tuned LightGBM",
    "realmlp": "RealMLP",
    "tabm": "TabM",
}


def ranks_of(ranks, others):
    """Return the rank of the default, which is the best, and those of others with their names."""
    assert min(ranks, key=ranks.get) == "auto"
    assert len(ranks) == 9
    return f"{ranks['auto']:.2f}", ", ".join(f"{NAMES[name]} {ranks[name]:.2f}" for name in others)


def default_against_baselines(measure="accuracy"):
    found = record("default_against_baselines")
    results, n_tasks = found["results"], len(found["results"]["tasks"])
    worse = f"on {results['tasks_where_auto_is_clearly_worse']} of {n_tasks} tasks"
    assert f"clearly more accurate, by two standard errors, {worse}" in README
    ranks = results["mean_rank" if measure == "accuracy" else "mean_rank_log_loss"]
    ours, others = ranks_of(ranks, sorted(ranks, key=ranks.get)[1:3])
    return (
        f"{found['settings']['partitions']} splits of {n_tasks} tasks",
        f"discernel {ours}; next: {others}",
    )


def default_against_peers(measure="accuracy"):
    """Return the claim of the README, which the page of measured results has too."""
    found, peers = record("default_against_peers")["results"], ("lightgbm tuned", "realmlp", "tabm")
    key = "mean_rank" if measure == "accuracy" else "mean_rank_log_loss"
    ours, others = ranks_of(found[key], peers)
    measured = (ROOT / "docs" / "measured.md").read_text("utf-8")
    assert f"{ours} ({others})" in measured
    worse = found["clearly_worse"]
    counts = f"{len(worse['log_loss'])} tasks in log-loss and {len(worse['accuracy'])} in accuracy"
    assert f"One of the three is clearly better on {counts}" in README
    assert f"clearly worse than one of the three on {counts}" in measured
    return f"{len(found['tasks'])} tasks", f"discernel {ours}; {others}"


def sources():
    found, parts = record("sources"), []
    names = {"sources": "discernel", "average": "plain average", "one table": "one table"}
    for method, name in names.items():
        loss, accuracy = (
            sum(sum(one[method][key]) / len(one[method][key]) for one in found["results"].values())
            / len(found["results"])
            for key in ("log_loss", "accuracy")
        )
        parts.append(f"{name} {loss:.3f} ({accuracy:.1f} %)")
    assert len(found["results"]) == 7
    return f"{found['settings']['splits']} splits of seven data sets", "; ".join(parts)


def cost_in_factorisations():
    (entry,) = (
        entry
        for entry in record("cost_in_factorisations")["results"]
        if entry["criterion"] == "SVC grid over auto"
    )
    return (
        f"{entry['rows']:,} rows, 6 classes",
        f"the grid takes {entry['median']:.1f} times as long",
    )


def speed():
    cases = {case["case"]: case for case in record("speed")["results"]["cases"]}
    case = cases["easymkl"]
    assert case["holds"]
    return f"{case['rows']:,} rows", f"EasyMKL takes {case['median']:.1f} times as long"


def newton_against_sdp():
    ratios = {
        entry["criterion"]: entry["ratio"]
        for entry in record("newton_against_sdp")["results"]
        if entry["samples"] == 80
    }
    assert set(ratios) == {"rkda", "fdr"}
    return (
        "80 rows",
        f"Clarabel takes {ratios['rkda']:,.0f} (`rkda`) and {ratios['fdr']:,.0f} (`fdr`) "
        "times as long",
    )


def reproduction():
    counts = record("reproduction", "reproduction")["results"]["all"]["accuracy and error"]
    return (
        f"{sum(counts[verdict] for verdict in ('agrees', 'better', 'differs'))} cells",
        f"{counts['agrees']} agree, {counts['better']} are better, {counts['differs']} differ",
    )


#: Of each row of the table: its record, its first word, and the claim: setting and figures.
MEASURED = (
    ("default_against_baselines", "Accuracy", default_against_baselines),
    ("default_against_baselines", "Log-loss", partial(default_against_baselines, "log-loss")),
    ("default_against_peers", "Accuracy", default_against_peers),
    ("default_against_peers", "Log-loss", partial(default_against_peers, "log-loss")),
    ("sources", "Log-loss", sources),
    ("cost_in_factorisations", "Time", cost_in_factorisations),
    ("speed", "Time", speed),
    ("newton_against_sdp", "Time", newton_against_sdp),
    ("reproduction", "Published", reproduction),
)


def rows_of_the_table():
    """Return what is compared, what was measured, script and record of every row."""
    table = README[README.index("| what is compared") :].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        compared, measured, shown_by = (cell.strip() for cell in line.strip("|").split("|"))
        script, found = re.findall(r"\(([\w/.]+)\)", shown_by)
        yield compared, measured, script, found


def test_every_row_of_the_table_links_to_its_script_and_record():
    links = [(script, found) for _, _, script, found in rows_of_the_table()]
    assert [Path(found).stem for _, found in links] == [name for name, *_ in MEASURED]
    assert all((ROOT / each).exists() for pair in links for each in pair)
    *benchmarks, _ = links  # the last row is that of the reproduction
    assert all(Path(script).stem == Path(found).stem for script, found in benchmarks)


def test_every_figure_of_the_table_is_that_of_its_record():
    for row, (_, subject, claim) in zip(rows_of_the_table(), MEASURED, strict=True):
        compared, measured, *_ = row
        setting, figures = claim()
        assert compared.startswith(subject)
        assert setting in compared
        assert measured == figures


def test_the_loss_in_the_demonstration_is_that_of_its_record():
    results = record("new_user")["results"]
    steps = results["demo_accuracies"]["steps"]
    words = f"boosting classifies {steps['boosting']:.0f} % of the rows correctly and"
    assert f"{words} discernel {steps['discernel']:.0f} %" in README
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    assert f"{words} the default {steps['discernel']:.0f} %" in guide
    assert steps["boosting"] == max(steps.values())
    assert results["clone_to_first_report_seconds"] <= results["limit_seconds"]
