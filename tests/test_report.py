"""The report: what it says is what was recorded, and it opens anywhere, alone."""

import base64
import hashlib
import inspect
import os
import re
import shutil
import sys
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from discernel import MultipleKernelDiscriminant
from discernel.compare import tables
from discernel.compare.compare import file_data
from discernel.compare.methods import KINDS
from discernel.compare.plan import Cell, Data, Method, Splits
from discernel.compare.report import figures, words, write_report
from discernel.compare.report import tables as report_tables
from discernel.compare.report.page import LEARNED, comparison_section, results_section
from discernel.compare.report.screen import dataset_figure, first_screen, rank_figure
from discernel.compare.roc import mean_roc
from discernel.compare.store import Record, Result
from discernel.compare.tables import rank_methods, summarize
from discernel.compare.tasks import load_split
from discernel.exceptions import InvalidInputError, MissingExtraError
from discernel.show import words as numbers
from discernel.show.facts import Origin
from discernel.show.svg import PALETTE, drawing, new_figure, to_svg

N_SPLITS = 3
HOSTILE = "<script>alert('x')</script>\"&$\\frac{"
ERROR = "Traceback (most recent call last):\nValueError: two classes only, <b>got</b> 3"
PATH = [[1.0, 0.6], [0.1, 0.2], [0.01, 0.3]]
MACHINE = {"system": "Linux x86_64", "cores": 2, "discernel": "0.1", "python": "3.11"}


ORIGIN = Origin(
    source="file plants.csv",
    digest="0123456789abcdef",
    target="species",
    command="discernel compare plants.csv --target species",
    created="2026-01-02T03:04:06+00:00",
    versions={"discernel": "0.1", "python": "3.11"},
    class_counts={"red": 30, "white": 10},
    columns={"height": "number, 2 missing", "id": "left out: numbers the rows"},
    notes=("CSV, delimiter ';'",),
)


# ---- records without a fit -----------------------------------------------------------------------


def two_class_predictions(rng):
    y_true = np.repeat([0, 1], 20)
    return {"y_true": y_true, "scores": y_true + rng.normal(size=40), "y_pred": y_true}


def details(method, rng):
    """What `compare.methods` stores."""
    if method == "discernel":
        return {
            "history": [[i, 1.0 / (i + 1), None, 0, 0.1] for i in range(4)],
            "considered": [
                ["average", 0.1, 0.0, 1e-3, 0.5, 0.97],
                ["weights", 0.09, 0.0, 1e-3, 0.5, 0.98],
                ["average", 0.12, 0.0, 1e-2, 0.0, 0.96],
            ],
            "feature_importances": {"height": 0.7 + 0.1 * rng.random(), "width": 0.2},
            "sources": {"RBF": "shape", "Linear": "shape", "Function": "notes"},
            "embedding": {
                "coordinates": rng.normal(size=(30, 2)).tolist(),
                "labels": ["red", "white"] * 15,
                "held_out": [False, False, True] * 10,
                "explained": [0.7, 0.3],
            },
        }
    if method == "rkda":
        return {
            "history": [
                [i, 2.0 - i, 10.0 ** (-3 * i), s, 10.0**-s] for s in range(3) for i in range(2)
            ],
            "leave_one_out": PATH,
            "considered": [
                ["loo", 0.1, 0.01, 1e-3, 0.0, None],
                ["average", 0.12, 0.0, 1e-2, 0.0, None],
            ],
        }
    return {}


def record(data, method, repetition, accuracy, **result):
    cell = Cell(Data(data), Method(method, method), Splits(n=N_SPLITS), repetition)
    if accuracy is None:
        return Record(cell, Result(error=ERROR), MACHINE, "2026-01-02T03:04:05+00:00")
    given = {"metrics": {"accuracy": accuracy}, "seconds_fit": 0.02 * len(method)} | result
    found = Result(**given)
    return Record(cell, found, MACHINE, "2026-01-02T03:04:05+00:00")


def full_records(names=("wine", "wdbc"), methods=("discernel", "rkda", "lda", "fdr")):
    rng = np.random.default_rng(0)
    found = []
    for data in names:
        for method in methods:
            for i in range(N_SPLITS):
                fails = method == "fdr" and data == names[0]
                learns = method in ("discernel", "rkda")
                accuracy = 0.95 - 0.2 * (method == "lda") + 0.01 * rng.random()
                found.append(
                    record(
                        data,
                        method,
                        i,
                        None if fails else accuracy,
                        weights={"RBF": 0.5 + 0.1 * i, "Linear": 0.5 - 0.1 * i} if learns else {},
                        gap=1e-7 if method == "rkda" else None,
                        regularization=0.1 if method == "rkda" else None,
                        details=details(method, rng),
                        predictions=two_class_predictions(rng) if data == names[-1] else {},
                    )
                )
    return found


def plain_records(data="wine", methods=("lda", "svc")):
    values = (0.9, 0.92, 0.91)
    return [record(data, method, i, value) for method in methods for i, value in enumerate(values)]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write_report(
        full_records(),
        tmp_path_factory.mktemp("report") / "report.html",
        title="Wine & more",
        words=["Why it was run."],
        origin=ORIGIN,
    )


# ---- reading HTML --------------------------------------------------------------------------------

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """The elements of a page, and the text of each; unbalanced tags are an error."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), f"{tag} has an attribute twice"
        element = {"tag": tag, "text": "", "within": [e["tag"] for e in self.open], **dict(attrs)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1]["tag"] == tag
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag, **attributes):
        return [
            e
            for e in self.elements
            if e["tag"] == tag and all(e.get(k) == v for k, v in attributes.items())
        ]


@pytest.fixture(scope="module")
def page(report):
    return Page(report.read_text(encoding="utf-8"))


# ---- the page ------------------------------------------------------------------------------------


def test_the_page_has_landmarks_and_headings_in_order(page):
    for tag in ("header", "nav", "main", "footer", "h1", "title"):
        assert len(page.all(tag)) == 1
    assert page.all("html")[0]["lang"] == "en"
    assert page.all("title")[0]["text"] == page.all("h1")[0]["text"] == "Wine & more"
    levels = [int(e["tag"][1]) for e in page.elements if re.fullmatch(r"h[1-6]", e["tag"])]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    skip = page.all("a")[0]
    assert (skip["class"], skip["href"]) == ("skip", "#main")


def test_ids_are_unique_and_what_points_to_them_finds_them(page):
    ids = [element["id"] for element in page.elements if "id" in element]
    assert len(set(ids)) == len(ids)
    for element in page.elements:
        for name in ("href", "aria-labelledby", "clip-path"):
            pointed = re.fullmatch(r"(?:url\()?#?([\w-]+)\)?", element.get(name, "#main"))
            assert pointed[1] in ids


def test_all_sections_are_there_and_in_the_contents(page):
    expected = [
        "summary", "results", "comparison", "importances", "sources",
        "weights", "candidates", "time", "roc", "regularization", "convergence", "embedding",
        "data", "failures", "environment",
    ]  # fmt: skip
    assert [section["id"] for section in page.all("section")] == expected
    links = [a["href"] for a in page.all("a") if "nav" in a["within"]]
    assert links == [f"#{name}" for name in expected]


def test_figures_read_what_methods_write():
    source = "".join(map(inspect.getsource, (figures, report_tables, tables)))
    read = set(re.findall(r'details(?:\.get\(|\[)"(\w+)"', source))
    cell = Cell(Data("iris"), Method("discernel", "discriminant"), Splits(n=1), 0)
    written = KINDS["discriminant"](load_split(cell), {}).details
    of_sources = {"sources"}  # only where there are several
    assert read - of_sources <= set(written)
    assert read == of_sources | {
        "considered",
        "embedding",
        "feature_importances",
        "history",
        "leave_one_out",
    }


def test_methods_write_columns_of_the_file_and_sources_of_kernels(tmp_path):
    rng = np.random.default_rng(0)
    y, colour = np.arange(60) % 2, rng.choice(["red", "blue", "green"], size=60)
    lines = [f"{a + 2 * b},{c},{b}" for a, b, c in zip(rng.normal(size=60), y, colour, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["size,colour=dark,class", *lines]))
    np.savez(tmp_path / "v.npz", left=rng.normal(size=(60, 2)) + y[:, None], right=y[:, None], y=y)
    one = load_split(cell_of(file_data(tmp_path / "a.csv", categorical=["colour=dark"])))
    assert one.columns == ("size", *["colour=dark"] * 4)  # three values, and all others
    written = KINDS["discriminant"](one, {}).details
    clf = MultipleKernelDiscriminant().fit(one.as_read.X_train, one.y_train)
    expected = dict(zip(["size", "colour=dark"], clf.feature_importances_, strict=True))
    assert written["feature_importances"] == pytest.approx(expected)
    assert [entry[4:] for entry in written["considered"]] == [
        [each.strength, each.accuracy, each.quantiles] for each in clf.learned_kernel_.considered
    ]
    assert "sources" not in written
    two = KINDS["discriminant"](load_split(cell_of(file_data(tmp_path / "v.npz"))), {})
    assert "feature_importances" not in two.details
    assert two.details["sources"] == {name: name.partition(":")[0] for name in two.weights}
    assert set(two.details["sources"].values()) == {"left", "right"}


def cell_of(data):
    return Cell(data, Method("discernel", "discriminant"), Splits(n=1), 0)


def test_nothing_is_learned_for_the_plain_average():
    split = load_split(cell_of(Data("iris")))
    found = KINDS["discriminant"](split, {"criterion": "uniform"})
    assert "feature_importances" not in found.details
    assert len(set(found.weights.values())) == 1


def blocks(id_, records):
    """Return the tables of one kind on wine."""
    [make] = [each[-1] for each in LEARNED if each[0] == id_]
    return list(make(summarize(records), "wine"))


def values(block):
    return [row.value for row in block.rows]


def test_importances_are_means_over_splits_and_shared_by_methods_that_agree():
    rows = ({"a": 0.7, "b": 0.3}, {"a": 0.5, "b": 0.4, "c": 0.1})
    other = ({"a": 0.1, "b": 0.9}, {"a": 0.1, "b": 0.8, "c": 0.1})
    methods = (("discernel", rows), ("rkda", rows), ("loo", other), ("lda", ({}, {})))
    records = [
        record("wine", method, i, 0.9, details={"feature_importances": row} if row else {})
        for method, all_rows in methods
        for i, row in enumerate(all_rows)
    ]
    first, second = blocks("importances", records)
    np.testing.assert_allclose(values(first), [60, 35, 5])
    assert first.rows[0].cells == ("a", f"60.0 ± {100 * np.std([0.7, 0.5], ddof=1):.1f} %")
    assert first.title == "discernel and rkda on wine"
    assert second.title == "loo on wine"
    assert blocks("importances", records[-2:]) == []


def test_weights_of_sources_are_sums_with_the_spread_over_splits():
    sources = {"sources": {"a: x": "a", "a: y": "a", "b: x": "b"}}
    weights = [[0.5, 0.3, 0.2], [0.1, 0.3, 0.6], [0.2, 0.0, 0.8]]
    records = [
        record("wine", "rkda", i, 0.9, weights=dict(zip(sources["sources"], row, strict=True)),
               details=sources if i else {})
        for i, row in enumerate(weights)
    ]  # fmt: skip
    [found] = blocks("sources", records)
    sums = np.array([[0.8, 0.2], [0.4, 0.6], [0.2, 0.8]])[:, ::-1]
    np.testing.assert_allclose(values(found), sums.mean(axis=0))
    quartiles = np.quantile(sums, [0.25, 0.75], axis=0).T
    for row, name, ends in zip(found.rows, "ba", quartiles, strict=True):
        assert row.cells[0] == name
        assert row.cells[2] == f"{ends[0]:.3f} to {ends[1]:.3f}"
    assert blocks("sources", records[:1]) == []
    np.testing.assert_allclose(values(blocks("weights", records)[0]), [1.6 / 3, 0.8 / 3, 0.2])


def test_candidates_are_shown_by_what_they_were_judged_by():
    given = [["loo", 0.1, 0.01, 1e-3, 0.0, None], ["average", 0.12, 0.0, 1e-2, 0.0, None]]
    first = [["weights", 0.2, 0.0, 1e-3, 0.5, 0.9], ["average", 0.3, 0.0, 1e-3, 0.0, 0.8]]
    second = [["average", 0.1, 0.0, 1e-3, 0.0, 1.0], ["weights", 0.4, 0.0, 1e-3, 0.0, 0.7]]
    records = [
        record("wine", method, i, 0.9, details={"considered": each})
        for method, i, each in (("discernel", 0, first), ("discernel", 1, second), ("x", 0, given))
    ]
    by_folds, by_leaving_out = blocks("candidates", records)
    assert [row.cells for row in by_folds.rows] == [
        ("equal weights, unscaled", "0.200", "90.0", "chosen in 1 of 2"),
        ("learned weights, best scaling", "0.300", "80.0", "chosen in 1 of 2"),
    ]
    assert by_folds.header[:3] == ("candidate", "log-loss", "accuracy %")
    assert by_leaving_out.rows[0].cells == (
        "weights by leave-one-out", "0.110", "0.010", "chosen in 1 of 1",
    )  # fmt: skip


def test_the_page_says_that_weights_are_no_importances(page):
    for id_ in ("weights", "sources"):
        [section] = page.all("section", id=id_)
        assert "not how important its columns are" in section["text"]


def test_errors_are_means_at_the_lambdas_that_every_split_tried():
    paths = (
        [[1.0, 0.6], [0.1, 0.2], [0.01, 0.3]],
        [[1.0, 0.8], [0.01, 0.5], [0.001, 0.7]],
    )
    records = [
        record("wine", "rkda", i, 0.9, details={"leave_one_out": path})
        for i, path in enumerate(paths)
    ]
    [found] = figures.draw_errors_by_regularization(summarize(records), "wine")
    line = found.figure.axes[0].lines[0]
    np.testing.assert_array_equal(line.get_xdata(), [1.0, 0.01])
    np.testing.assert_allclose(line.get_ydata(), [0.7, 0.4])


def test_sections_without_data_are_left_out(tmp_path):
    one = [record("wine", "lda", 0, 0.9)]
    page = Page(write_report(one, tmp_path / "r.html").read_text(encoding="utf-8"))
    assert [s["id"] for s in page.all("section")] == ["summary", "results", "environment"]
    assert page.all("figure") == []


def test_every_figure_says_what_is_seen(page):
    figures = [e for e in page.elements if e.get("role") == "img"]
    assert len(figures) == len(page.all("figure"))
    within = [svg for svg in page.all("svg") if "figure" in svg["within"]]
    assert len(figures) == len(within)
    assert all(len(figure["aria-label"]) > 40 for figure in figures)
    roc = next(f["aria-label"] for f in figures if f["aria-label"].startswith("ROC curves on wdbc"))
    assert re.search(r"discernel 0\.\d{3}, rkda 0\.\d{3}", roc)


def rows_below(page, caption):
    """Return the texts of the rows of a table, cell by cell."""
    inside, found = False, []
    for element in page.elements:
        if element["tag"] == "caption":
            inside = element["text"] == caption
        if inside and "tbody" in element["within"]:
            if element["tag"] == "tr":
                found.append([])
            elif element["tag"] in ("th", "td"):
                found[-1].append(element["text"].strip())
    return found


def test_numbers_are_those_of_the_tables(page):
    table = summarize(full_records())
    ranking = rank_methods(table)
    overview = rows_below(page, "Accuracy % by method and data set")
    assert [row[0] for row in overview] == list(table.methods)
    for method, *cells, rank in overview:
        assert rank == f"{ranking.ranks[method]:.2f}"
        for dataset, cell in zip(table.datasets, cells, strict=True):
            entry = table.entries[dataset, method]
            if entry.interval is None:
                assert cell == "failed (3)"
                continue
            ends = [entry.mean, entry.interval.low, entry.interval.high]
            assert re.findall(r"\d+\.\d", cell) == [f"{100 * value:.1f}" for value in ends]
            assert (f" {entry.verdict}" in cell) == (
                entry.verdict in ("clearly best", "best", "tied")
            )
    entries = rows_below(page, "All numbers")
    assert len(entries) == len(table.entries)
    for method, mean, *_, dataset in entries:
        assert mean == table.metric.show(table.entries[dataset, method].mean)


def test_the_first_screen_has_every_method_with_its_interval(page):
    table = summarize(full_records())
    for dataset in table.datasets:
        figure = dataset_figure(table, dataset)
        shown = rows_below(page, figure.caption)
        for point, (method, _, text, verdict) in zip(figure.points, shown, strict=True):
            entry = table.entries[dataset, method]
            assert text.startswith(table.metric.show(entry.mean))
            assert verdict.startswith(entry.verdict)
            assert (
                entry.interval is None
                or point.interval.low <= point.interval.mean <= point.interval.high
            )
        assert len(figure.ticks) >= 2
        assert all(0 <= at <= 100 for _, at in figure.ticks)
    tiles = [e["text"] for e in page.all("dt")][:3]
    assert tiles == ["best mean rank", "best or tied", "failed"]
    assert [e["id"] for e in page.all("div") if e.get("class") == "card"] == [
        "win", "next", "expect", "matter", "datasets",
    ]  # fmt: skip
    assert "title" in page.all("tr", **{"class": "best"})[0]


def test_intervals_of_ranks_overlap_unless_a_test_finds_a_difference():
    rng = np.random.default_rng(0)
    found = [
        record(f"d{i}", method, 0, value + 0.1 * rng.random())
        for i in range(12)
        for method, value in {"x": 0.6, "y": 0.55, "z": 0.1}.items()
    ]
    ranking = rank_methods(summarize(found))
    figure = rank_figure(ranking)
    assert [point.method for point in figure.points] == list(ranking.ranks)
    assert [point.verdict for point in figure.points] == ["best", "tied", "worse"]
    for point in figure.points:
        assert (point.interval.low < figure.points[0].interval.high) == (point.verdict != "worse")


def test_sorting_buttons_are_in_every_header_of_a_sortable_table(page):
    buttons = page.all("button")
    assert len(buttons) > 20
    assert all(button["type"] == "button" for button in buttons)
    sorts = {(each["text"], each["data-sort"]) for each in buttons}
    assert {("method", "text"), ("verdict", "text"), ("memory", "number")} <= sorts
    assert ("verdict", "number") not in sorts
    assert all({"table", "thead", "th"} <= set(button["within"]) for button in buttons)
    assert all(th["scope"] in ("col", "row") for th in page.all("th"))


def test_failures_are_told_with_their_messages(page):
    text = page.all("main")[0]["text"]
    assert "3 of 24 runs failed: fdr on wine (3)." in text
    assert "ValueError: two classes only, <b>got</b> 3" in text
    assert page.all("b") == []


def test_environment_is_told(page):
    text = page.all("section", id="environment")[0]["text"]
    for fact in ("Linux x86_64", "0.1", "stratified, seeds from 0", "80% of the rows", "standard"):
        assert fact in text


def test_the_page_says_where_it_comes_from(page):
    text = page.all("section", id="data")[0]["text"]
    facts = (
        "file plants.csv", "0123456789abcdef", "species", ORIGIN.command, ORIGIN.created,
        "discernel 0.1, python 3.11", "delimiter ';'", "number, 2 missing", "numbers the rows",
    )  # fmt: skip
    for fact in facts:
        assert fact in text
    assert re.search(r"red\s*30\s*75\.0\s*white\s*10\s*25\.0", text)


def test_another_metric_is_what_the_page_judges_by(tmp_path):
    found = [
        record("wine", method, i, 0.9, metrics={"accuracy": 0.9, "log_loss": loss * (1 + i / 50)})
        for method, loss in (("x", 0.5), ("y", 0.1))
        for i in range(N_SPLITS)
    ]
    text = write_report(found, tmp_path / "r.html", metric="log_loss").read_text(encoding="utf-8")
    page = Page(text)
    results = page.all("section", id="results")[0]["text"]
    assert "for log-loss, the metric of the verdicts; lower is better" in results
    assert "y is clearly better than all others: log-loss 0.102" in page.all("main")[0]["text"]
    rows = [th["text"] for th in page.all("th", scope="row") if "table" in th["within"]]
    assert rows[:2] == ["y", "x"]
    pairs = page.all("section", id="comparison")[0]["text"]
    assert "Negative differences mean that the method is better than x" in pairs
    assert "−0.408" in pairs


def test_metrics_and_errors_are_explained(page):
    text = page.all("main")[0]["text"]
    assert "The share of held-out rows whose class is predicted correctly." in text
    error = page.all("section", id="regularization")[0]["text"]
    assert "the class scores of every training row are predicted from the other rows" in error
    assert "an error of 0.1 is possible with an accuracy of 100 %" in error


def test_names_are_text_whatever_they_hold(tmp_path):
    found = full_records([HOSTILE], ["discernel"]) + plain_records(HOSTILE, [HOSTILE])
    origin = Origin(
        HOSTILE, columns={HOSTILE: HOSTILE}, class_counts={HOSTILE: 1}, notes=(HOSTILE,)
    )
    path = tmp_path / "r.html"
    write_report(found, path, title=HOSTILE, words=[HOSTILE], origin=origin)
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert len(page.all("script")) == 1
    assert page.all("h1")[0]["text"] == HOSTILE
    assert any(th["text"] == HOSTILE for th in page.all("th"))
    assert any("alert" in drawn["text"] for drawn in page.all("text"))
    assert "<script>alert" not in text


def test_nothing_is_loaded_and_nothing_inline_escapes_the_policy(report, page):
    text = report.read_text(encoding="utf-8")
    assert not re.search(r"https?://|url\((?!#)|@import|data:", text)
    for element in page.elements:
        assert "style" not in element
        assert "src" not in element
        assert not any(name.startswith("on") for name in element)
    policy = page.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        [element] = page.all(tag)
        digest = base64.b64encode(hashlib.sha256(element["text"].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_the_same_records_give_the_same_page_whatever_the_settings_of_matplotlib(tmp_path):
    plain = write_report(plain_records(), tmp_path / "a.html").read_bytes()
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        before = dict(mpl.rcParams)
        assert write_report(plain_records(), tmp_path / "b.html").read_bytes() == plain
        assert dict(mpl.rcParams) == before


def test_what_cannot_be_written_is_refused_first(tmp_path):
    for path in (tmp_path / "none" / "r.html", tmp_path):
        with pytest.raises(InvalidInputError, match="a file in an existing folder"):
            write_report(plain_records(), path)
    with pytest.raises(InvalidInputError, match="at least one record"):
        write_report([], tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named_with_its_extra(package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"(?i){package}.*discernel\[app\]"):
        write_report(plain_records(), tmp_path / "r.html")


# ---- words ---------------------------------------------------------------------------------------


def sentence(**accuracies):
    found = [record("wine", m, i, a) for m, v in accuracies.items() for i, a in enumerate(v)]
    return words.describe_dataset(summarize(found), "wine")


def test_words_say_who_is_ahead_and_whether_it_means_anything():
    good, bad = (0.95, 0.96, 0.95), (0.75, 0.77, 0.74)
    assert "x is clearly better than all others: accuracy 95.3 % (9" in sentence(x=good, y=bad)
    level = sentence(x=good, y=(0.94, 0.97, 0.94))
    assert "x has the best accuracy" in level
    assert "the differences may be due to chance" in level
    mixed = sentence(x=good, y=(0.94, 0.97, 0.94), z=bad)
    assert mixed.endswith("Statistically tied: y. Clearly worse: z.")
    assert sentence(x=good, y=good) == (
        "On wine both methods have the same mean accuracy: 95.3 % (93.4 to 97.2)."
    )
    for few in ([0.9], [0.9, 0.9]):  # nothing to judge by: one split, or no spread
        untold = sentence(x=few, y=[value - 0.25 for value in few])
        assert "the splits cannot tell whether the differences are due to chance" in untold
    fixed = sentence(x=good, y=(0.94, 0.97, 0.94), z=[value - 0.5 for value in good])
    assert fixed.endswith("Statistically tied: y. Not tested: z.")
    four = sentence(**dict.fromkeys("abcd", good), e=(0.94, 0.97, 0.94))
    assert four.startswith("On wine, 4 of 5 methods share the best accuracy, 95.3 %")
    assert sentence(x=[None]) == "On wine no method has a result for accuracy."
    assert sentence(x=[0.9], y=[None]) == "On wine only x has results: accuracy 90.0 %."


def test_words_say_how_the_default_stands():
    good, bad = (0.95, 0.96, 0.95), (0.75, 0.77, 0.74)

    def default(**accuracies):
        found = [record("wine", m, i, a) for m, v in accuracies.items() for i, a in enumerate(v)]
        return words.describe_default(summarize(found), "wine")

    assert default(discernel=good, y=bad) == "Use the default, discernel: no method is better."
    near = default(discernel=(0.94, 0.97, 0.94), y=good)
    assert near == "Use the default, discernel: no method is clearly better."
    worse = default(discernel=bad, forest=good)
    assert worse.startswith("Prefer forest: the default, discernel, is clearly worse (accuracy ")
    assert (
        default(x=good, y=bad)
        is default(discernel=good)
        is default(discernel=[0.9], y=[0.8])
        is None
    )


def test_summary_table_and_report_give_one_verdict_for_every_pair():
    """Differences whose probability alone is small, and is not once all pairs are counted."""
    rng = np.random.default_rng(0)
    names = ["discernel", "boosting", "forest", "lda", "svc"]
    seen = set()
    for gap in np.linspace(0.0, 0.06, 13):
        values = 0.8 + 0.05 * rng.random((2, 5, 6))
        values[:, 1] += gap
        found = [
            record(f"d{d}", name, i, values[d, m, i])
            for d in range(2)
            for m, name in enumerate(names)
            for i in range(6)
        ]
        table = summarize(found)
        results, comparison = results_section(table), comparison_section(table)
        rows = {(row.cells[-1], row.cells[0]): row.cells for row in results.parts[1].rows}
        for row in comparison.parts[0].rows:
            method, *_, p, verdict, dataset = row.cells
            if table.ranked(dataset)[0].method != method:
                continue  # the other tables only show pairs with the best
            summed = rows[dataset, words.DEFAULT]
            seen.add(verdict)
            assert p == summed[3]
            assert (verdict == "better") == (summed[-2] == "worse")
            said = words.describe_default(table, dataset)
            assert (verdict == "better") == ("clearly worse" in said)
            # Said of this data set, perhaps with others of which the same is true.
            found = [each.removesuffix(f": {said}") for each in first_screen(table)["next"]]
            assert any(dataset in each.split(" and ") for each in found)
    assert seen == {"better", "tied"}


def test_words_say_what_to_expect():
    def metrics(accuracy, loss):
        return {"accuracy": accuracy, "log_loss": loss}

    found = [
        record("wine", method, i, 0.9, metrics=metrics(accuracy + 0.01 * i, loss))
        for method, accuracy, loss in (("discernel", 0.9, 0.1), ("majority", 0.4, 1.0))
        for i in range(3)
    ]
    rows = [row.cells for row in first_screen(summarize(found))["expected"]]
    assert rows == [
        ("accuracy", "91.0 %", f"{words.DEFAULT}, 95 % interval 87.7 to 94.3"),
        ("baseline", "41.0 %", "accuracy of always predicting the most frequent class"),
        ("log-loss", "0.100", "smaller is better; class shares: 1.000"),
    ]
    by_loss = [row.cells[:2] for row in first_screen(summarize(found, "log_loss"))["expected"]]
    assert by_loss[:2] == [("log-loss", "0.100"), ("baseline", "1.000")]
    assert first_screen(summarize([record("wine", "x", 0, None)]))["expected"] == []


def test_words_say_what_ranks_mean():
    rng = np.random.default_rng(0)

    def ranked(n_datasets, gap):
        found = [
            record(f"d{i}", method, 0, 0.5 + gap * (method == "x") + 0.1 * rng.random())
            for i in range(n_datasets)
            for method in "xyz"
        ]
        table = summarize(found)
        return words.describe_ranking(rank_methods(table))

    assert "x has the best mean rank, 1.00, clearly better than all others" in ranked(15, 0.3)
    assert "the differences may be due to chance" in ranked(3, 0.0)
    assert "y and z are not significantly worse than x (Nemenyi" in ranked(4, 0.3)
    assert ranked(1, 0.3) is None


def test_words_warn_of_few_splits():
    def warning(n):
        found = [record("wine", method, i, 0.9) for method in "xy" for i in range(n)]
        return words.describe_power(summarize(found))

    assert warning(3).startswith("Run 10 or more splits: with 3 splits only large")
    assert warning(1) is warning(10) is None


def test_words_for_numbers():
    assert [numbers.seconds(s) for s in (0.0042, 3.0, 600.0, 36000.0)] == [
        "4.2 ms",
        "3 s",
        "10 min",
        "10 h",
    ]
    assert numbers.memory(1_500_000_000) == "1.50 GB"
    assert numbers.probability(0.0001) == "< 0.001"
    assert numbers.plural(1, "method") == "1 method"
    assert numbers.join(["a", "b", "c"]) == "a, b and c"
    assert numbers.join([str(i) for i in range(12)]).endswith("8 and 3 others")
    assert [numbers.seconds(s, digits=2) for s in (0.0154, 2.02, 119.0)] == [
        "15 ms",
        "2 s",
        "119 s",
    ]
    assert words.describe_splits(Splits(folds=5), 10).startswith("5-fold cross-validation, 2 times")
    assert words.describe_splits(Splits(train_size=50, stratify=False), 1) == (
        "1 split, 50 rows train, not stratified, seeds from 0"
    )


# ---- figures -------------------------------------------------------------------------------------


def test_roc_curves_are_averaged_vertically():
    rng = np.random.default_rng(1)
    found = []
    for i in range(N_SPLITS):
        predictions = two_class_predictions(rng)
        predictions["scores"] = predictions["scores"].round(i)  # with many ties, and few
        found.append(record("a", "x", i, 0.9, predictions=predictions))
    curve = mean_roc(found)
    points = list(zip(curve.false, curve.true, curve.spread, strict=True))
    for rate, height, deviation in points[1::5]:
        heights = [curve_height(r.result.predictions, rate) for r in found]
        assert height == pytest.approx(np.mean(heights), abs=1e-6)
        assert deviation == pytest.approx(np.std(heights, ddof=1), abs=1e-6)
    assert points[0] == (0.0, 0.0, 0.0)
    assert points[-1] == (1.0, 1.0, 0.0)
    areas = [roc_auc_score(p["y_true"], p["scores"]) for p in (r.result.predictions for r in found)]
    assert curve.area == pytest.approx(np.mean(areas))


def curve_height(predictions, rate):
    """The height at a false positive rate, on straight lines from threshold to threshold."""
    y, scores = predictions["y_true"], predictions["scores"]
    points = sorted(
        (np.mean(scores[y == 0] >= t), np.mean(scores[y == 1] >= t)) for t in [np.inf, *scores]
    )
    before = max(point for point in points if point[0] <= rate + 1e-9)
    after = min((point for point in points if point[0] > rate + 1e-9), default=(2.0, before[1]))
    share = (rate - before[0]) / (after[0] - before[0])
    return before[1] + share * (after[1] - before[1])


def test_there_is_no_roc_curve_without_scores_of_two_classes():
    three = {"y_true": np.arange(3), "scores": np.zeros((3, 3))}
    assert mean_roc([record("a", "x", 0, 0.9, predictions=three), record("a", "x", 1, 0.9)]) is None


def test_drawings_take_the_colours_of_the_page_and_share_no_ids():
    drawn = []
    with drawing():
        for prefix in ("a", "b"):
            [ax] = new_figure(2.0)
            ax.plot([1, 10], [1e-4, 1.0], label="$x_1$")
            ax.set(xscale="log", yscale="log", title="$\\frac{")
            ax.legend()
            drawn.append(to_svg(ax.figure, prefix))
    for svg in drawn:
        page = Page(svg)
        assert {"$x_1$", "$\\frac{", "10⁻⁴"} <= {e["text"] for e in page.all("text")}
        assert "var(--series-1)" in svg
        assert not any(color in svg for color in PALETTE)
        assert "style=" not in svg
        assert page.all("metadata") == page.all("style") == []
    ids = [set(re.findall(r' id="(.+?)"', svg)) for svg in drawn]
    assert ids[0]
    assert not ids[0] & ids[1]


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(first, second):
    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


def test_colours_are_legible_in_light_and_dark():
    style = files("discernel.show").joinpath("templates", "report.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        color = dict(re.findall(r"--([\w-]+): (#\w{6});", block))
        for paper in ("paper", "raised"):
            for name in ("ink", "muted", "link", "alarm"):
                assert contrast(color[name], color[paper]) >= 4.5
        for i in range(1, len(PALETTE) + 1):
            assert contrast(color[f"series-{i}"], color["paper"]) >= 3.0


# ---- in a browser --------------------------------------------------------------------------------

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_the_page_works_in_a_browser(report):
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as manager:
        browser = manager.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            for width, scheme in ((390, "dark"), (820, "light"), (1400, "light")):
                check_in_browser(browser, report.as_uri(), width, scheme)
        finally:
            browser.close()


AXE = os.environ.get("AXE_CORE", "")


@pytest.mark.skipif(
    CHROMIUM is None or not AXE, reason="AXE_CORE names no axe.min.js, or no Chromium"
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_complain_about(report, scheme):
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as manager:
        browser = manager.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            # The page allows no script but its own.
            tab = browser.new_context(color_scheme=scheme, bypass_csp=True).new_page()
            tab.goto(report.as_uri())
            tab.evaluate(Path(AXE).read_text(encoding="utf-8"))
            found = tab.evaluate("axe.run()")["violations"]
        finally:
            browser.close()
    assert [(each["id"], each["impact"]) for each in found] == []


def check_in_browser(browser, address, width, scheme):
    tab = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    complaints, requests = [], []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(address)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    boxes = tab.eval_on_selector_all(
        "svg", "all => all.map(e => [e.getBoundingClientRect().width, e.getBBox().height])"
    )
    assert len(boxes) > 10
    drawn = [box for box in boxes if box[0]]
    assert min(width for width, _ in drawn) > 50
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    # A colour of a figure is that of the style sheet: variables work in its attributes.
    filled = tab.eval_on_selector(".drawing svg text", "e => getComputedStyle(e).fill")
    assert filled == tab.evaluate("getComputedStyle(document.body).color")
    check_sorting(tab)
    tab.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    boxes = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
    assert max(tab.evaluate(boxes)) <= 1  # no column is cut off
    assert complaints == []
    assert requests == [address]


def check_sorting(tab):
    """Sort by keyboard alone: upwards, then downwards, what failed always last."""
    tab.locator("#results summary").click()
    button = tab.locator("#results table:first-of-type thead button").nth(1)
    column = "#results .scroll:first-of-type tbody tr td:nth-child(2)"
    values = "all => all.map(e => e.textContent)"
    seen = []
    for direction in ("ascending", "descending"):
        button.focus()
        tab.keyboard.press("Enter")
        assert tab.locator("#results th").nth(1).get_attribute("aria-sort") == direction
        assert tab.locator("#results [aria-sort]").count() == 1
        seen.append(tab.eval_on_selector_all(column, values))
    assert [each[-1] for each in seen] == ["failed (3)", "failed (3)"]
    numbers = [[float(value.split(" ")[0]) for value in each[:-1]] for each in seen]
    assert numbers[0] == sorted(numbers[0])
    assert numbers[1] == numbers[0][::-1]
    assert "sorted by wine, descending" in tab.locator("#status").inner_text()


def test_sentences_about_several_data_sets_say_which():
    level = {("wine", words.DEFAULT): 0.9, ("wine", "boosting"): 0.8}
    level |= {("iris", words.DEFAULT): 0.8, ("iris", "boosting"): 0.95}
    noise = 0.02 * np.random.default_rng(0).random((4, 6))
    found = [
        record(data, method, i, value + noise[k, i])
        for k, ((data, method), value) in enumerate(level.items())
        for i in range(6)
    ]
    screen = first_screen(summarize(found))
    assert screen["expected_title"] == "Over all data sets"
    about = [each for each in screen["next"] if f"default, {words.DEFAULT}" in each]
    assert {each.partition(":")[0] for each in about} == {"wine", "iris"}
    alone = first_screen(summarize([each for each in found if each.cell.data.name == "wine"]))
    assert alone["expected_title"] == "Expected on new rows"
    assert not [each for each in alone["next"] if each.startswith("wine")]
