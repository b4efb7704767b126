"""What the documentation says is true: examples run, parameters are the real ones."""

import doctest
import importlib
import inspect
import json
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
from numpydoc.validate import validate

import discernel
from discernel import (
    criteria,
    datasets,
    displays,
    export,
    inspection,
    kernels,
    solvers,
    tables,
)

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(discernel.__path__, prefix="discernel.")
    if info.name != "discernel.arrays.fused"  # needs Triton, which only GPUs have
)
#: What is returned to users, not made by them: documented by attributes, not parameters.
RESULTS = {"LearnedKernel", "Solution", "Solver", "Status", "Task"} | {
    *("Contributions", "SimilarRows", "SourceImportances")
}
#: What is given for ``criterion``.
CRITERIA = [made.__name__ for made in criteria.CRITERIA.values()]
PUBLIC = [f"discernel.criteria.{name}" for name in CRITERIA] + [
    f"{room.__name__}.{name}"
    for room in (
        discernel,
        kernels,
        tables,
        solvers,
        inspection,
        export,
        displays,
        datasets,
    )
    for name in room.__all__
    if name not in ("Dataset", "DataUnavailableError", *RESULTS)
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


#: Pages with examples; all of them are run.
EXECUTED = sorted(
    page.stem for page in (ROOT / "docs").glob("*.md") if ">>> " in page.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("page", EXECUTED)
def test_examples_of_pages_run(page):
    result = doctest.testfile(
        str(ROOT / "docs" / f"{page}.md"),
        module_relative=False,
        optionflags=doctest.ELLIPSIS,
        encoding="utf-8",
    )
    assert result.attempted > 0
    assert result.failed == 0


def test_the_pages_of_the_guide_have_examples():
    guide = "quickstart tables sources expectations explaining many_rows serving criteria"
    assert set(guide.split()) | {"tasks", "kernels", "extending"} <= set(EXECUTED)


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
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "reproduction").rglob("*.py")]:
        keys |= set(re.findall(r"\[([A-Z][A-Za-z]+\d\d)\]_", path.read_text(encoding="utf-8")))
    assert keys
    assert [key for key in keys if f"[{key}]" not in bibliography] == []


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
PAGES_OF_REPRODUCTION = [*(ROOT / "reproduction").glob("**/*.md")]


def anchors(page):
    """Return what can stand behind # in a link to a page, as GitHub makes it from headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *PAGES_OF_REPRODUCTION], ids=lambda page: page.name)
def test_links_of_pages_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", page.read_text(encoding="utf-8"))
    for target, anchor in links:
        there = page.parent / target if target else page
        assert there.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(there), f"{page.name} links to {target}#{anchor}"


def test_pages_have_one_spelling():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        assert "learnt" not in page.read_text(encoding="utf-8"), page.name


def test_files_and_names_of_the_architecture_exist():
    """The page is a map: every file is at its path, and every name is in the code."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "discernel"
    code = "".join(path.read_text(encoding="utf-8") for path in source.rglob("*.py"))
    spans, words = set(re.findall(r"`([^`\n]+)`", page)), set(re.findall(r"\w+", code))
    files = {span for span in spans if re.fullmatch(r"[\w/]+/\w+\.py", span)}
    assert len(files) > 30
    assert [file for file in files if not any((at / file).exists() for at in (source, ROOT))] == []
    names = {span for span in spans if re.fullmatch(r"[A-Z]\w+(\.\w+)*|[a-z]+_\w+", span)}
    assert len(names) > 60
    assert [name for name in names if not set(name.split(".")) <= words] == []


#: Pages that have only what the site needs: its first page, and the pages it takes from elsewhere.
SITE_ONLY = {"index.md", "changelog.md", "contributing.md", "code_of_conduct.md", "development.md"}


def test_every_page_is_linked_from_the_readme_or_the_guide():
    hubs = [ROOT / "README.md", *(ROOT / "docs" / f"{hub}.md" for hub in ("guide", "theory"))]
    text = "".join(hub.read_text(encoding="utf-8") for hub in hubs)
    names = {page.name for page in PAGES} - {"README.md"} - SITE_ONLY
    assert [name for name in sorted(names) if name not in text] == []


SPEED = {
    "ladder": "{:.1f} with a ladder of widths",
    "papers": "{:.1f} with ten free widths",
    "classes": "10 classes take {:.2f} times as long",
    "large": "{:.2f} times as many units",
    "easymkl": "EasyMKL takes {:.1f} times as long",
    "svc": "SVC grid {:.0f},",
    "ridge": "kernel ridge grid {:.0f},",
    "himalaya": "himalaya's random search {:.0f}.",
    "sdp": "Clarabel takes {:,.0f} times as long",
    "many": "as long as {:.1f} passes",
    "predict": "ours takes {:.2f} times as long",
}
YEUNG = {
    "ionosphere": "ionosphere",
    "monks3": "monks-3",
    "wine": "wine",
    "wdbc": "wdbc",
    "boston_housing": "Boston housing",
    "bupa": "bupa",
    "breast_cancer_wisconsin": "wisconsin",
    "sonar": "sonar",
    "heart_statlog": "heart",
}


#: What the measured page quotes of the published tables, run again.
PUBLISHED = [
    ("sonar", "kim2006-table1", "Sonar (208, 60)", "K*"),
    ("ionosphere", "kim2006-table1", "Ionosphere (351, 34)", "K*"),
    ("heart", "kim2006-table1", "Heart (297, 13)", "K*"),
    ("pima", "kim2006-table1", "Pima (768, 8)", "K*"),
    ("sonar", "ye2008-table2", "SILP_θ", "TSA"),
    ("heart", "ye2008-table3", "SILP_θ", "TSA"),
    ("ionosphere", "ye2008-table4", "SILP_θ", "TSA"),
    ("cancer", "ye2008-table5", "SILP_θ", "TSA"),
]
REPRODUCTION = (ROOT / "reproduction" / "docs" / "tables.md").read_text(encoding="utf-8")


def reproduced(table, row, column):
    """Return what a cell of a table has in print, and what it has when run again."""
    section = REPRODUCTION.partition(f"### {table}: ")[2].partition("\n### ")[0]
    (cell,) = re.findall(rf"^\| {re.escape(row)} \| {re.escape(column)} \| (.+)$", section, re.M)
    printed, ours, *_ = cell.split(" | ")
    return float(printed.split(" ±")[0]), float(ours.split(" ±")[0])


def results(name):
    record = ROOT / "benchmarks" / "records" / f"{name}.json"
    return json.loads(record.read_text(encoding="utf-8"))["results"]


def figures_of_many_rows():
    """Yield what the measured page and the page on many rows say about many rows."""
    iterative = results("iterative")
    agreement = iterative["agreement"]
    apart, objectives, gap = (
        max(entry[name] for entry in agreement)
        for name in ("weights_apart", "objectives_apart", "gap")
    )
    assert apart <= 1e-6
    assert objectives <= 1e-6
    assert gap <= 1e-5
    yield f"weights at most {apart:.0e} apart, objectives {objectives:.0e}, gaps at most {gap:.0e}"
    exponent, memory = iterative["exponents"]["seconds"], iterative["cost"][-1]
    assert exponent <= 2.2
    assert memory["gigabytes_above_data"] < 2
    assert memory["n_samples"] == 50_000
    yield (
        f"time grows with the power {exponent:.2f} from 12,500 to 50,000 rows; "
        f"{memory['gigabytes_above_data']:.1f} GB above the data"
    )
    forecasts = results("forecasts")
    within, n_runs = forecasts["within_a_factor_of_two"], len(forecasts["runs"])
    assert within >= 18
    yield f"{within} of {n_runs} within a factor of two"
    lost = {name: entry["points_lost"] for name, entry in results("low_rank").items()}
    assert max(lost.values()) <= 0.5
    yield "points lost: " + ", ".join(f"{name} {points:.2f}" for name, points in lost.items())
    automatic = results("automatic")
    assert max(abs(entry["difference"]) for entry in automatic) <= 0.5
    yield ", ".join(
        f"{entry['data']} {entry['accuracy']:.1f} ({entry['exact']:.1f})" for entry in automatic
    )
    small, large = results("cluster")["sizes"]
    growth = large["cluster"]["seconds"] / small["cluster"]["seconds"]
    assert growth <= 4.4
    yield f"four times as many rows take {growth:.1f} times as long"
    ours, boosting, few = (
        100 * large[name]["accuracy"] for name in ("cluster", "boosting", "few_rows")
    )
    assert ours >= boosting
    yield f"{ours:.1f} against {boosting:.1f} and {few:.1f}"
    most = results("streams")[-1]["stream"]
    assert most["memory_mib"] < 6 * 1024
    yield (
        f"{most['seconds'] / 60:.0f} minutes, {most['memory_mib'] / 1024:.1f} GiB, rank "
        f"{most['rank']:,}, accuracy {100 * most['accuracy']:.1f}"
    )


def test_held_out_scores_of_iterative_systems_are_as_accurate_as_stated():
    page = (ROOT / "docs" / "many_rows.md").read_text(encoding="utf-8")
    assert "off by at most 2 % at λ = 1e-3 and 4 % at 1e-4" in page
    for entry in results("iterative")["agreement"]:
        most = {1e-3: 0.02, 1e-4: 0.04}.get(entry["regularization"], 0.01)
        assert entry["left_out_scores_apart"] <= most


def test_figures_on_many_rows_are_those_of_the_records():
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    for figures in figures_of_many_rows():
        assert figures in page


def test_figures_on_deadlines_are_those_of_the_record():
    page, found = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8"), results("deadlines")
    summary, late = found["summary"], max(fit["late_by"] for fit in found["fits"])
    assert summary["refused"] == summary["worse_than_first_stage"] == 0
    assert (
        f"of {summary['fits']} none refused, late by at most {100 * late:.0f} %, none worse than "
        f"the first stage; with twice the time {summary['twice_the_time_and_the_same']} of "
        f"{summary['twice_the_time']} are the fit without a limit"
    ) in page


def test_figures_on_the_cost_of_held_out_scores_are_those_of_the_record():
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    found = results("held_out_cost")["summary"]
    few, many = found["further_fits_of_few_rows"], found["further_fits_of_many_rows"]
    assert few < 5
    assert many < 0.5
    words = f"up to 2,000 rows at most {few:.1f} fits more, at 5,000 rows at most {many:.2f}"
    assert words in page


def test_figures_on_columns_as_quantiles_are_those_of_the_record():
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    found = results("quantiles")["summary"]
    ratios = found["log_loss_ratio"]
    assert max(ratios["page blocks"], ratios["spambase"]) < 0.85
    assert found["same_where_not_chosen"]
    assert found["time_ratio_where_not_chosen"] < 1.1
    listed = ", ".join(f"{task} {ratio:.2f}" for task, ratio in ratios.items())
    assert f"mean of {len(ratios)} tables {found['mean_log_loss_ratio']:.3f}: {listed}" in page
    assert f"fits take {found['time_ratio_where_not_chosen']:.2f} times as long" in page


def test_figures_on_an_earlier_default_are_those_of_the_record():
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    found = results("default_against_version")
    few = f"with at most 200 training rows {found['log_loss_ratio_few_rows']:.3f}"
    worse = f"more than 1 % worse on {len(found['worse_by_one_percent'])} tasks"
    for words in (
        f"ratio: {found['log_loss_ratio']:.3f}, {few}; {worse}",
        f"gain in accuracy {found['accuracy_gain']:+.2f} points",
        f"A fit takes {found['cost_ratio']:.1f} times as long",
    ):
        assert words in page
    excess = {
        entry["task"]: entry["claimed"]["accuracy"] - entry["accuracy"][1]
        for entry in found["tasks"]
    }
    wrong = {task: points for task, points in excess.items() if abs(points) > 1.5}
    listed = ", ".join(f"{task} {points:+.1f}" for task, points in wrong.items())
    assert f"on {len(excess) - len(wrong)} of {len(excess)} tasks ({listed})" in page
    covered = 100 * np.mean([entry["claimed"]["coverage"] for entry in found["tasks"]])
    assert f"In {covered:.1f} % of the splits the 95 % interval contains it" in page
    assert found["log_loss_ratio"] < 0.93
    assert {entry["splits"] for entry in found["tasks"]} == {20}
    assert len(found["tasks"]) == 34


def test_figures_of_sources_are_those_of_the_record():
    page = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    for task, methods in results("sources").items():
        alone = [name for name in methods if name.startswith("only ")]
        best = max(alone, key=lambda name: np.mean(methods[name]["accuracy"]))
        cells = [
            f"{np.mean(methods[name]['accuracy']):.1f} ({np.mean(methods[name]['log_loss']):.3f})"
            for name in ("sources", "average", "rkda", best, "one table")
        ]
        assert f"| {task} | {' | '.join(cells)} |" in page
    noise = {
        name: [np.mean(found[name]["noise"]) for found in results("sources").values()][-2:]
        for name in ("sources", "average", "rkda")
    }
    ours, average, rkda = noise.values()
    assert f"have {ours[0]:.1f} and {ours[1]:.1f} % of the weight" in page
    assert f"average {average[0]:.0f} and {average[1]:.0f} %" in page
    assert f"`rkda` {rkda[0]:.0f} and {rkda[1]:.0f} %" in page


def test_figures_of_cores_are_those_of_the_record():
    page = (ROOT / "docs" / "many_rows.md").read_text(encoding="utf-8")
    found = {(e["rows"], e["threads"]): e for e in results("cores") if e["compiled"]}
    for rows in (4000, 10_000):
        cells = [
            f"{found[rows, threads][case]['wall']:.1f}"
            for case in ("rkda given", "default")
            for threads in (2, 8, 16)
        ]
        assert f"| {rows:,} | {' | '.join(cells)} |" in page
    two, sixteen = (found[10_000, threads]["cholesky"]["wall"] for threads in (2, 16))
    assert f"took {two:.1f} s with 2 threads and {sixteen:.1f} s with 16" in page


def test_figures_of_weights_per_target_on_a_device_are_those_of_the_record():
    page = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
    size = results("weights_per_target_on_device")["sizes"][-1]
    ours, gradient, search = size["methods"].values()
    assert (size["rows"], size["targets"]) == (300, 10_000)
    for words in (
        f"took {ours['seconds']:.1f} s: {ours['learning']:.1f} s until weights",
        f"(R² on new rows {ours['r2']:.3f})",
        f"{gradient['seconds']:.1f} s by hyper-gradients ({gradient['r2']:.3f})",
        f"{search['seconds']:.1f} s by random search ({search['r2']:.3f})",
    ):
        assert words in page


def test_figures_of_importances_are_those_of_the_record():
    found = results("importances")
    many, few = found["means"]["tables"], found["means"]["few_held_out"]
    page = (ROOT / "docs" / "explaining.md").read_text(encoding="utf-8")
    assert many["rank_correlation"] > 0.8
    assert many["noise_share"] < 0.05
    for words in (
        f"on {len(found['tables'])} tables with at most 500 training rows",
        f"is {many['rank_correlation']:.2f} on average, where two halves of the permutations agree "
        f"to {many['halves_of_permutations']:.2f} and two halves of the held-out rows to "
        f"{many['halves_of_rows']:.2f}",
        f"reach {many['metric_rank_correlation']:.2f}",
        f"{100 * many['noise_share']:.1f} % together, at most "
        f"{100 * many['largest_noise_share']:.1f} %",
        f"agree to {few['halves_of_rows']:.2f}, the rank correlation is "
        f"{few['rank_correlation']:.2f} and noise gets {100 * few['noise_share']:.1f} %, at most "
        f"{100 * few['largest_noise_share']:.1f} %",
        f"in {100 * many['share_of_fit_time']:.0f} % of the time of a fit",
    ):
        assert words in page


def test_figures_on_promises_are_those_of_the_record():
    page, found = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8"), {}
    for entry in results("promises")["targets"]:
        found.setdefault((entry["part"], entry["what"]), []).append(entry)
    accuracy, loss = (
        found["noise", f"claimed minus found {what}"] for what in ("accuracy", "log-loss")
    )

    def met(entries):
        return f"in {sum(entry['is_met'] for entry in entries)} of {len(entries)}"

    def furthest(entries):
        return max((entry["value"] for entry in entries), key=abs)

    assert f"at most {100 * furthest(accuracy):.1f} points above the actual accuracy" in page
    assert f"within 2 points {met(accuracy)}" in page
    assert f"within {abs(furthest(loss)):.3f} {met(loss)}" in page
    tables = found["tables", "claimed minus found accuracy"]
    assert f"within 1.5 points {met(tables)}" in page
    assert f"the largest error, {-100 * furthest(tables):.1f} points too low" in page
    many, few = (entry["value"] for entry in found["tables", "log_loss_ratio"])
    assert f"{many:.2f} times the actual log-loss; up to 200 rows {few:.2f} times" in page
    for what, words in (("coverage", "covers {:.0%}"), ("width", "{:.1f} times as wide")):
        for entry in found["tables", what]:
            assert words.format(entry["value"]).replace("%", " %") in page
    ratios = [entry["value"] for entry in found["few", "log-loss relative to logistic regression"]]
    assert f"{min(ratios):.2f} to {max(ratios):.2f} times that of logistic regression" in page
    claimed = found["few", "claimed minus found log-loss"]
    assert f"within 0.05 of the actual log-loss {met(claimed)}" in page
    more, same = (
        furthest(found["weights", f"20 against {what}"])
        for what in ("20.5, same choice", "20 (1 + 1e-9)")
    )
    assert f"changes probabilities by up to {more:.2f} where" in page
    assert same < 1e-9
    assert "relative change of 10⁻⁹ changes them by less than 10⁻⁹" in page


def test_figures_of_groups_are_those_of_the_record():
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    off = {"noise": [], "signal": []}
    for entry in results("groups"):
        assert entry["met"]
        off[entry["kind"]].append(100 * (entry["claimed"] - entry["found"]))
    high, low = off["noise"], [-one for one in off["signal"]]
    assert f"is {min(high):.1f} to {max(high):.1f} points too high for new patients" in page
    assert f"and {min(low):.1f} to {max(low):.1f} too low if one column" in page
    covered, alone = (
        [100 * end([entry[name] for entry in results("groups")]) for end in (min, max)]
        for name in ("covers", "without_groups")
    )
    assert "covers {:.0f} to {:.0f} % of the draws".format(*covered) in page
    assert "`expected_` claims {:.0f} to {:.0f} %".format(*alone) in page


def test_figures_of_the_measured_page_are_those_of_the_records():
    """Claims are computed, not typed: the page quotes what the benchmarks wrote."""
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    convergence = results("convergence")
    assert f"at most {max(entry['steps'] for entry in convergence)} steps" in page
    assert f"{sum(entry['holds'] for entry in convergence)} of {len(convergence)}" in page
    sdp = results("newton_against_sdp")
    ratio = min(entry["ratio"] for entry in sdp if entry["samples"] == 80)
    assert f"takes at least {ratio // 1000 * 1000:,.0f} times as long" in page
    default = results("default_against_baselines")
    accuracy, log_loss = (default[name]["auto"] for name in ("mean_rank", "mean_rank_log_loss"))
    assert f"rank of nine is {accuracy:.2f} in accuracy and {log_loss:.2f} in log-loss" in page
    n_worse = default["tasks_where_auto_is_clearly_worse"]
    assert f"clearly worse in accuracy on {n_worse} tasks" in page
    forest = {entry["rows"]: entry for entry in results("default_cost")}
    small, middle, large = (forest[rows]["units"] for rows in (1000, 4000, 10_000))
    assert f"{small:.1f} at 1,000 rows, {middle:.1f} at 4,000, {large:.1f} at 10,000" in page
    for rows, entry in forest.items():
        misses = entry["limit"] is not None and entry["units"] > entry["limit"]
        assert (f"the aim at {rows:,} rows is {entry['limit']}" in page) == misses
    for kind in ("over_forest", "over_forest_of_one_job"):
        assert f"{forest[1000][kind]:.2f}" in page
        assert f"{forest[2000][kind]:.2f}" in page
    speed = {case["case"]: case for case in results("speed")["cases"]}
    assert all(case["holds"] in (True, None) for case in speed.values()), "the page names no miss"
    for case, words in SPEED.items():
        assert words.format(speed[case]["median"]) in page, case
    memory = [max(case["memory_mib"].values()) for case in results("prediction")]
    assert f"a million rows takes {max(memory):.0f} MiB above their result" in page
    cost = {
        (entry["criterion"], entry["rows"]): entry for entry in results("cost_in_factorisations")
    }
    small, large = (cost["auto", rows]["median"] for rows in (1000, 4000))
    assert f"{small:.0f} at 1,000 rows, {large:.0f} at 4,000" in page
    assert f"the grid takes {cost['SVC grid over auto', 1000]['median']:.1f} times as long" in page
    for entry in results("ridge_and_labels"):
        assert f"{entry['ours']:.3f} against {entry['grid']:.3f}" in page
    gains = {
        entry["data"]: entry["ways"]["separability"]["gain"]
        for entry in results("separability_default")
    }
    assert set(gains) == set(YEUNG), "also the sets on which it loses"
    for data, gain in gains.items():
        assert f"{YEUNG[data]} {gain:+.1f}".replace("+0.0", "0.0") in page
    overhead = results("runner_overhead")["run"]["overhead_percent"]
    assert f"{overhead:.1f} % of the run" in page
    for data, table, row, column in PUBLISHED:
        printed, ours = reproduced(table, row, column)
        assert f"{data} {ours:.1f} ({printed:.1f})" in page, (table, row)


def test_figures_of_prediction_sets_are_those_of_the_record():
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    told = results("prediction_sets")["verdicts"]
    low, high = told["tasks below"], told["tasks above"]
    assert told["mean coverage below: met"]
    assert told["least coverage above: met"]
    assert told["mean size: met"]
    mean, least = (100 * told[name] for name in ("mean coverage below", "least coverage above"))
    assert f"on {low} tasks with an accuracy below 90 %, {mean:.1f} % of the rows" in page
    assert f"at least {least:.1f} % on each of the {high} others" in page
    assert f"{told['mean size, ours']:.2f} classes per set" in page
    ours, theirs = told["mean size beside mapie, ours and mapie"]
    assert f"{ours:.2f} against {theirs:.2f} for MAPIE's" in page
    assert f"the whole {told['mapie / ours, whole time']:.1f} times as long" in page


def test_figures_of_prediction_intervals_are_those_of_the_record():
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    told = results("prediction_intervals")["verdicts"]
    assert told["coverage: met"] == "10 of 10"
    low, high = (100 * one for one in told["coverage, least and largest"])
    assert f"covers {low:.1f} to {high:.1f} % on each set" in page
    ours, one_width = told["mean width, ours and one width"]
    assert f"Mean width {ours:.2f} standard" in page
    assert f"with one width for all rows {one_width:.2f}" in page
    ours, mapie = told["mean width, ours and mapie"]
    longer = told["mapie / ours, time"]
    assert f"{ours:.2f} against {mapie:.2f} for MAPIE's CV+" in page
    assert f"(ten folds, {longer:.0f} times as long)" in page
    assert f"and {told['mean width, ours and gaussian process'][1]:.2f} for a Gaussian" in page
    low, high = (100 * one for one in told["coverage of gaussian process, least and largest"])
    share = told["gaussian process / ours, time"]
    assert f"covers {low:.1f} to {high:.1f} % and takes {share:.2f} times as long" in page
    by_mapie, by_process = (told[f"narrower than {peer}"] for peer in ("mapie", "gaussian process"))
    assert f"narrower than MAPIE's on {by_mapie} sets" in page
    assert f"than those of the Gaussian process on {by_process}" in page
    r2, rmse = (100 * told[f"{name} within"] for name in ("r2", "rmse"))
    assert f"contain R² in {r2:.0f} % and the error in {rmse:.0f} % of the splits" in page


def test_the_guide_quotes_how_many_kernels_have_weight():
    guide = (ROOT / "docs" / "explaining.md").read_text(encoding="utf-8")
    found = {
        entry["what"]: entry["kernels_with_weight"]
        for entry in results("many_kernels")
        if "kernels_with_weight" in entry
    }
    few, some, many = (found[f"1000 kernels, λ = {x}: fit ÷ pass"] for x in (0.1, 0.01, 0.001))
    assert f"{few} kernels have weight at λ = 0.1, {some} at λ = 0.01 and {many} at" in guide
