"""The page of one model: its numbers are those of the model."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discernel import AKFDClassifier, MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Linear
from discernel.report import RowExplanation, write_model_report
from tests.test_report import HOSTILE, ORIGIN, Page

X, Y = load_wine(return_X_y=True)
STORY = RowExplanation(
    "row 7",
    "white",
    0.5,
    {"size": 1.25, "colour": -0.25},
    probability=0.9,
    similar=[("row 3", "white", 0.875, 0.5), ("row 4", "red", 0.8, -0.25)],
    words="Mostly because of its size.",
)


@pytest.fixture(scope="module")
def clf():
    return MultipleKernelDiscriminant().fit(X, Y)


def page_of(folder, estimator, **options):
    path = write_model_report(estimator, folder / "m.html", **options)
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(clf, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    return page_of(folder, clf, title="Wine & co", origin=ORIGIN, explanations=[STORY])


def rows(page, section):
    """Return the texts of the rows of the tables of a section, cell by cell."""
    inside, found = False, []
    for element in page.elements:
        if element["tag"] == "section":
            inside = element["id"] == section
        if inside and element["tag"] == "tr" and "tbody" in element["within"]:
            found.append([])
        if inside and element["tag"] in ("th", "td") and "tbody" in element["within"]:
            found[-1].append(element["text"].strip())
    return found


def test_the_page_is_whole_and_loads_nothing(page):
    assert page.all("html")[0]["lang"] == "en"
    assert [e["text"] for e in page.all("h1")] == ["Wine & co"]
    sections = [section["id"] for section in page.all("section")]
    assert sections == [
        "summary", "rows", "importances", "confusion", "links", "candidates", "kernels", "learning",
        "origin", "columns",
    ]  # fmt: skip
    assert [a["href"] for a in page.all("a") if "nav" in a["within"]] == [f"#{s}" for s in sections]
    assert len(page.all("script")) == 1
    cards = [e["id"] for e in page.all("div") if e.get("class") == "card"]
    assert cards == ["expect", "next", "matter-importances"]
    headings = [each["text"].strip() for each in page.all("h2")]
    assert headings.count("Columns that matter") == headings.count("All columns") == 1
    for element in page.elements:
        assert not {"style", "src", "onclick"} & set(element)
    assert all(svg["aria-hidden"] == "true" for svg in page.all("svg"))


def test_importances_are_those_of_the_model(page, clf):
    shares, std = clf.feature_importances_, clf.feature_importances_std_
    order = np.argsort(-shares)
    expected = [[f"column {i}", f"{100 * shares[i]:.1f} ± {100 * std[i]:.1f} %", ""] for i in order]
    assert rows(page, "importances") == expected
    bars = [float(e["width"]) for e in page.all("rect") if "details" in e["within"]]
    bars = bars[len(STORY.contributions) :]
    expected = 100 * shares[order] / shares.max()
    np.testing.assert_allclose(bars[: len(order)], expected, atol=0.06)


def test_features_of_one_column_are_summed(clf, tmp_path):
    page = page_of(tmp_path, clf, columns=["a"] * 6 + ["b"] * 7)
    found = {row[0]: row[1] for row in rows(page, "summary")}
    share, bound = clf.feature_importances_[:6].sum(), clf.feature_importances_std_[:6].sum()
    assert found["a"] == f"{100 * share:.1f} ± ≤ {100 * bound:.1f} %"


def test_the_table_of_classes_has_the_expected_accuracy(page, clf):
    counts = np.array([[float(cell) for cell in row[1:4]] for row in rows(page, "confusion")])
    np.testing.assert_array_equal(counts.sum(axis=1), np.bincount(Y))
    assert np.trace(counts) / counts.sum() == pytest.approx(clf.expected_.accuracy)
    assert f"{100 * clf.expected_.accuracy:.1f} %" in page.all("dl")[0]["text"]


def test_what_was_considered_and_the_certificate_are_told(page, clf):
    assert clf.learned_kernel_.certificate in page.all("section", id="learning")[0]["text"]
    text = page.all("section", id="candidates")[0]["text"]
    assert text.count("← chosen") == 1
    why = clf.learned_kernel_.describe().why_chosen
    assert f"{why[:1].upper()}{why[1:]}." in text
    for each in clf.learned_kernel_.considered:
        assert f"{each.error:.3f}" in text
    assert "and kernel logistic regression (" in page.all("section", id="links")[0]["text"]


def test_contributions_add_up_on_the_page(page):
    found = rows(page, "rows")
    numbers = [float(row[1].replace("−", "-")) for row in found[:4]]
    assert [row[0] for row in found[:4]] == ["typical row", "size", "colour", "score of the row"]
    assert sum(numbers[:3]) == pytest.approx(numbers[3])
    assert found[4:6] == [
        ["row 3", "0.875", "+0.500", "white"],
        ["row 4", "0.800", "−0.250", "red"],
    ]
    text = page.all("section", id="rows")[0]["text"]
    assert "Similar training rows that support white" in text
    assert "Similar training rows that oppose white" in text
    assert "row 7: predicted white, probability 90.0 %" in text


def test_many_contributions_keep_their_sum(tmp_path, clf):
    values = {f"c{i}": 1.0 / (i + 1) for i in range(30)}
    page = page_of(tmp_path, clf, explanations=[RowExplanation("r", "a", 0.0, values)])
    found = rows(page, "rows")
    assert found[-2][0] == "10 other contributions"
    shown = [float(row[1]) for row in found[1:-1]]
    assert sum(shown) == pytest.approx(sum(values.values()), abs=0.02)


def test_small_numbers_are_shown_with_their_digits():
    """A target in a large unit: contributions of 1e-6."""
    row = RowExplanation(
        "r", "3e-06", 1e-6, {"a": 2.5e-6, "b": -5e-7}, similar=[("s", "", 1, 2e-7)]
    )
    _, terms, similar = row.blocks()
    assert similar.heading == "Similar training rows that support the prediction"
    assert [line.cells[1] for line in terms.rows] == [
        "+0.000001000", "+0.000002500", "−0.000000500", "+0.000003000",
    ]  # fmt: skip
    assert similar.rows[0].cells[2] == "+0.0000002000"
    assert [line.cells[1] for line in row.blocks(1)[1].rows][2] == "−0.000000500"


def test_a_baseline_that_is_no_row_is_named():
    row = RowExplanation("r", "a", 0.5, {"left": 1.0}, baseline_is="baseline")
    assert row.blocks()[1].rows[0].cells == ("baseline", "+0.500")


def test_sources_pipelines_and_regression(tmp_path):
    kernels = [k.on(part, name) for part, name in (([0, 1], "left"), ([2, 3], "right"))
               for k in (RBF(), Linear())]  # fmt: skip
    rows_, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), MultipleKernelDiscriminant(kernels, criterion="rkda"))
    page = page_of(tmp_path, model.fit(rows_, y))
    found = {row[0]: row[2] for row in rows(page, "sources")}
    weights = model[-1].kernel_weights_
    assert found["left"] == f"{weights[:2].sum():.3f}"
    assert "No other weights of these kernels" in page.all("section", id="learning")[0]["text"]
    ridge = MultipleKernelRidge([RBF(), Linear()]).fit(rows_, y)
    page = page_of(tmp_path, ridge)
    sections = [section["id"] for section in page.all("section")]
    assert sections == ["summary", "candidates", "kernels", "learning"]
    text = page.all("main")[0]["text"]
    assert "R²" in text
    assert "accuracy" not in text


def test_sources_are_on_the_first_screen_and_in_the_advice(tmp_path):
    """A column may have no importance because others of its source, of great worth, replace it."""
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 2
    copies = labels[:, None] + 0.3 * rng.normal(size=(80, 1)) + 0.01 * rng.normal(size=(80, 6))
    table = np.column_stack([copies, rng.normal(size=80)])
    sources = {"signal": RBF().on([0, 1, 2, 3, 4, 5]), "noise": RBF().on([6])}
    clf = MultipleKernelDiscriminant(sources, criterion="rkda").fit(table, labels)
    page = page_of(tmp_path, clf)
    cards = [e["id"] for e in page.all("div") if e.get("class") == "card"]
    assert cards == ["expect", "next", "matter-sources", "matter-importances"]
    worth = {row[0]: row[1] for row in rows(page, "sources")}
    assert [row[:2] for row in rows(page, "summary")][:2] == [list(pair) for pair in worth.items()]
    advice = [e["text"] for e in page.all("li") if "main" in e["within"]]
    assert "1 source has no importance beyond the standard error: try a fit without it." in advice
    assert not [each for each in advice if "column" in each]


def test_names_are_text_whatever_they_hold(tmp_path):
    labels = np.where(Y > 0, HOSTILE, "plain")
    clf = MultipleKernelDiscriminant([RBF(), Linear()], criterion="uniform").fit(X, labels)
    story = RowExplanation(
        HOSTILE, HOSTILE, 0.0, {HOSTILE: 1.0}, similar=[(HOSTILE, HOSTILE, 1.0, 1.0)]
    )
    page = page_of(tmp_path, clf, title=HOSTILE, explanations=[story])
    assert len(page.all("script")) == 1
    assert page.all("h1")[0]["text"] == HOSTILE


def test_what_is_no_model_or_no_place_is_refused(clf, tmp_path):
    with pytest.raises(InvalidInputError, match="a file in an existing folder"):
        write_model_report(clf, tmp_path)
    with pytest.raises(InvalidInputError, match="one of discernel"):
        write_model_report(StandardScaler().fit(X), tmp_path / "m.html")


def test_a_model_without_a_learned_kernel_is_refused(tmp_path, blobs):
    rows, labels = blobs
    akfd = AKFDClassifier([RBF()], nu=1.0).fit(rows, labels == 1)
    with pytest.raises(InvalidInputError, match=r"must have a learned_kernel_.*Got AKFDClassifier"):
        write_model_report(akfd, tmp_path / "m.html")
    assert not (tmp_path / "m.html").exists()
