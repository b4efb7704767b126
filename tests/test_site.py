"""The site is whole: every name has a page, every page a place, every story a title and an end."""

import ast
import importlib
import importlib.util
import re
import shutil
import statistics
import subprocess
import sys

import pytest

from tests.test_docs import CRITERIA, ROOT, results

DOCS = ROOT / "docs"
API = (DOCS / "api" / "index.rst").read_text(encoding="utf-8")
STORIES = sorted((ROOT / "examples" / "gallery").glob("*.py"))
#: Modules of which every public name has a page.
ROOMS = (
    "discernel",
    "discernel.kernels",
    "discernel.tables",
    "discernel.views",
    "discernel.solvers",
    "discernel.displays",
    "discernel.inspection",
    "discernel.export",
    "discernel.report",
    "discernel.datasets",
    "discernel.testing",
)
#: Helpers of our own code; a name that several modules have stands under one of them.
NOT_SHOWN = {"DataUnavailableError", "Status", "kernel_sources", "refuse_views", "sum_by"}
SECTION = re.compile(r"^\.\. (?:module|automodule):: ([\w.]+)$", flags=re.MULTILINE)


def listed():
    """Return the full name of everything that has a page in the API reference."""
    parts = SECTION.split(API)
    return {
        f"{module}.{name}"
        for module, text in zip(parts[1::2], parts[2::2], strict=True)
        for name in re.findall(r"^   ([A-Za-z][\w.]*)$", text, flags=re.MULTILINE)
    }


# ---- the API -----------------------------------------------------------------------------------


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_has_a_page(room):
    names = set(importlib.import_module(room).__all__) - NOT_SHOWN
    assert {f"{room}.{name}" for name in names} <= listed()


def test_every_criterion_and_every_error_has_a_page():
    exceptions = importlib.import_module("discernel.exceptions")
    errors = {
        name
        for name in exceptions.__all__
        if isinstance(getattr(exceptions, name), type)  # not the functions that write them
    }
    assert {f"discernel.criteria.{name}" for name in CRITERIA} <= listed()
    assert {f"discernel.exceptions.{name}" for name in errors} <= listed()
    assert "discernel.Status" in listed()


def test_every_name_of_the_reference_exists():
    for full in listed():
        parent, _, name = full.rpartition(".")
        assert hasattr(importlib.import_module(parent), name), full


def test_summaries_of_the_reference_are_whole():
    """Sphinx ends a summary at the first period that a space follows."""
    for full in listed():
        parent, _, name = full.rpartition(".")
        summary = getattr(importlib.import_module(parent), name).__doc__.partition("\n")[0]
        assert re.search(r"\. ", summary) is None, full


#: What is returned or subclassed, and shown by the examples of what returns it.
WITHOUT_EXAMPLE = {
    "AlignedKernels",
    "Candidate",
    "Contributions",
    "Dataset",
    "JoinedViews",
    "Kernel",
    "LeastSquares",
    "Progress",
    "RegularizationPath",
    "ReweighedSpectrum",
    "RowExplanation",
    "RowProgress",
    "SimilarRows",
    "Solution",
    "Solver",
    "SourceImportances",
    "SourceWeights",
    "Task",
    "private_names",
    "register_onnx",
    "write_report",
    "write_scorer",
}


def test_everything_a_user_calls_has_an_example():
    for full in listed():
        parent, _, name = full.rpartition(".")
        if parent != "discernel.exceptions" and name.rpartition(".")[2] not in WITHOUT_EXAMPLE:
            assert ">>> " in getattr(importlib.import_module(parent), name).__doc__, full


def test_every_error_and_warning_is_in_the_troubleshooting():
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    exceptions = importlib.import_module("discernel.exceptions")
    for name in exceptions.__all__:
        if name.endswith("Warning") and name != "DiscernelWarning":
            assert f"`{name}`" in page
    for name in (
        "InvalidGramError",
        "NumericalError",
        "MissingExtraError",
        "ClusterError",
        "DeviceError",
    ):
        assert f"`{name}`" in page


# ---- the pages ---------------------------------------------------------------------------------


def test_every_page_has_a_place_in_the_table_of_contents():
    text = "".join(
        path.read_text(encoding="utf-8") for path in [*DOCS.glob("*.md"), *DOCS.glob("*.rst")]
    )
    trees = re.findall(r"```\{toctree\}\n(?::hidden:\n)?\n?(.*?)```", text, flags=re.DOTALL)
    entries = [line for tree in trees for line in tree.splitlines() if line]
    placed = {re.sub(r".*<(.+)>", r"\1", entry) for entry in entries}
    pages = {path.stem for path in [*DOCS.glob("*.md"), *DOCS.glob("*.rst")]} - {"index"}
    assert pages == placed - {"gallery/index", "api/index"}


CODE_LINK = re.compile(r"\[`([\w.]+)`\]\(\.\./src/(discernel/[\w/]+)\.py\)")


def test_every_equation_leads_to_code_that_exists():
    page = (DOCS / "equations.md").read_text(encoding="utf-8")
    links = CODE_LINK.findall(page)
    assert len(links) > 40
    for name, path in links:
        found = importlib.import_module(path.replace("/", "."))
        for part in name.split("."):
            found = getattr(found, part)
        assert f"automodule:: {path.replace('/', '.')}\n" in (DOCS / "internals.rst").read_text()


def test_every_numbered_equation_of_the_criteria_is_on_the_page():
    """An equation that a docstring of a criterion names is found from the page of equations."""
    page = (DOCS / "equations.md").read_text(encoding="utf-8")
    for name, heading in (
        ("programs/rkda", "Ye,"),
        ("programs/fdr", "Kim,"),
        ("papers/akfd/criterion", "Fung,"),
        ("papers/alignment/criterion", "Pothin"),
        ("papers/separability/criterion", "Yeung"),
    ):
        section = page.partition(f"## {heading}")[2].partition("\n## ")[0]
        spans = re.findall(r"\((\d+)\)(?:[–-]\((\d+)\))?", section)
        there = {i for first, last in spans for i in range(int(first), int(last or first) + 1)}
        source = (ROOT / "src" / "discernel" / f"{name}.py").read_text("utf-8")
        named = {int(number) for number in re.findall(r"Eq\. \((\d+)\)", source)}
        assert named <= there, f"{name}: {sorted(named - there)}"


OTHERS = {
    "average": "plain average of ten kernels",
    "single": "best single kernel",
    "easymkl": "EasyMKL, λ and C given",
    "svc grid": "SVC grid (10 widths × 4 C)",
    "forest": "random forest, 500 trees",
    "boosting": "gradient boosting",
    "logistic": "logistic regression",
    "xrfm": "xRFM",
}


def counted(tasks, measure, method, sign):
    """Return the mean gain of the default, and on how many tasks it is clearly better or worse."""
    pairs = [task["auto_minus"][measure][method] for task in tasks]
    gains = [(sign * pair["difference"], 2 * pair["corrected_error"]) for pair in pairs]
    better, worse = sum(g > e for g, e in gains), sum(g < -e for g, e in gains)
    return statistics.mean(g for g, _ in gains), better, worse


@pytest.mark.parametrize("method", OTHERS)
def test_the_comparison_with_each_method_quotes_the_record(method):
    page = (DOCS / "measured.md").read_text(encoding="utf-8")
    found = results("default_against_baselines")
    gain, better, worse = counted(found["tasks"], "accuracy", method, 1)
    loss, surer, vaguer = counted(found["tasks"], "log_loss", method, -1)
    accuracy_rank, loss_rank = (
        f"{found[name][method]:.2f}" for name in ("mean_rank", "mean_rank_log_loss")
    )
    row = f"| {OTHERS[method]} | {gain:+.1f} | {better}, {worse} | {accuracy_rank} |"
    assert f"{row} {loss:.3f} | {surer}, {vaguer} | {loss_rank} |" in page


def test_when_not_to_use_it_quotes_the_records():
    page = (DOCS / "guide.md").read_text(encoding="utf-8")
    million = results("streams")[1]
    ours, boosting = million["stream"], million["boosting"]
    assert million["rows"] == 10**6
    assert f"boosting takes {boosting['seconds']:.0f} seconds" in page
    assert f"the default {ours['seconds'] / 60:.0f} minutes" in page
    assert f"for {100 * (ours['accuracy'] - boosting['accuracy']):.1f} points more" in page


def test_the_page_on_gpus_quotes_the_record():
    page = (DOCS / "many_rows.md").read_text(encoding="utf-8")
    found = results("gpu")
    cores = {fit["rows"]: fit["seconds"] for fit in found["16 cores"]["exact"]}
    shown = {1000, 5000, 10_000, 25_000, 50_000, 100_000, 250_000}
    for fit in [*found["figure"], *found["exact"]]:
        beside = f"{cores[fit['rows']]:.1f}" if fit["rows"] in cores else "–"
        row = f"| {fit['rows']:,} | {fit['seconds']:.1f} | {beside} | {fit['peak_gigabytes']:.1f} |"
        assert (row in page) == (fit["rows"] in shown)
    for name, unit in (("default", ".1f"), ("many", ".0f"), ("matrices", ".1f")):
        there, here = found[name]["seconds"], found["16 cores"][name]["seconds"]
        shown_there = f"{there:.2f}" if name == "matrices" else f"{there:.1f}"
        assert f"| {shown_there} s | {here:{unit}} s | {here / there:.0f} |" in page
    again = found["exact"][0]
    assert f"takes {again['seconds_again']:.1f} s, {again['over_factorisations']:.2f} times" in page
    assert f"takes {found['himalaya']['ratio']:.0f} times as long" in page
    free, city = (found["kernels"][name] for name in ("free widths", "1-norm"))
    assert f"free widths take {free:.2f} times as long as the ladder" in page
    assert f"in the 1-norm {city:.1f} times" in page
    assert f"Weights differ by {found['agreement']['weights']:.0e} from" in page
    for accuracy in (found["many"]["accuracy"], found["16 cores"]["many"]["accuracy"]):
        assert f"accuracy {100 * accuracy:.1f} % on both" in page


# ---- the gallery -------------------------------------------------------------------------------


def test_there_are_at_least_twelve_stories():
    assert len(STORIES) >= 12


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_is_short_has_a_title_a_picture_and_an_end(path):
    source = path.read_text(encoding="utf-8")
    compile(source, str(path), "exec")
    title, line, blank, *rest = ast.get_docstring(ast.parse(source)).splitlines()
    assert title
    assert line == "=" * len(title)
    assert blank == ""
    assert rest
    assert re.match(r"plot_\d\d_", path.name), "stories are read in the order of their numbers"
    assert len(source.splitlines()) <= 60
    assert source.count("plt.show()") >= 1
    assert source.rpartition("# %%\n")[2].startswith("# **Takeaway:** ")


def test_the_numbers_of_stories_have_no_gaps():
    numbers = [int(path.name[5:7]) for path in STORIES]
    assert numbers == list(range(1, len(STORIES) + 1))


def test_a_story_runs_by_itself(tmp_path):
    """One of them; the others run in ``make docs``."""
    code = f"import runpy; runpy.run_path({str(STORIES[8])!r})"
    command = [sys.executable, "-W", "error", "-c", code]
    found = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"MPLBACKEND": "agg", "PYTHONPATH": str(ROOT / "src"), "PATH": ""},
    )
    assert found.returncode == 0, found.stderr
    assert "least leave-one-out error" in found.stdout


# ---- the site ----------------------------------------------------------------------------------


@pytest.mark.install
def test_the_site_builds_without_a_warning(tmp_path):
    """Without running the stories, which takes minutes."""
    for name in ("sphinx_gallery", "myst_parser", "pydata_sphinx_theme", "sphinx_copybutton"):
        pytest.importorskip(name)
    shutil.rmtree(DOCS / "api" / "generated", ignore_errors=True)  # pages of names that went
    options = ["-W", "--keep-going", "-q", "-b", "html", "-D", "plot_gallery=0"]
    folders = ["-d", str(tmp_path / "doctrees"), str(DOCS), str(tmp_path / "html")]
    command = [sys.executable, "-m", "sphinx", *options, *folders]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert found.returncode == 0, found.stderr
    check = load_check()
    assert list(check.broken_links(tmp_path / "html")) == []
    assert (tmp_path / "html" / "searchindex.js").exists()


def test_a_broken_link_is_found(tmp_path):
    check = load_check()
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html#there">x</a><a href="#here">y</a><a href="c.html">z</a>'
        '<script src="https://example.org/x.js"></script><img src="data:image/png;base64,AA">'
    )
    (tmp_path / "b.html").write_text("<p id='elsewhere'>")
    (tmp_path / "s.css").write_text("@font-face {src: url(https://example.org/font.woff)}")
    assert list(check.broken_links(tmp_path)) == [
        "a.html links to b.html#there: no such anchor",
        "a.html links to c.html: no such file",
        "a.html loads https://example.org/x.js",
        "s.css loads https://example.org/font.woff",
    ]


def load_check():
    """Return the module ``docs/check_pages.py``, which is in no package."""
    spec = importlib.util.spec_from_file_location("check_pages", DOCS / "check_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
