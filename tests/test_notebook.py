"""What notebooks show: bars whose lengths are the numbers, and text where it is asked for."""

import re

import numpy as np
import pytest
from sklearn import set_config
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discernel import MultipleKernelDiscriminant, MultipleKernelRidge, learn_kernel
from discernel.kernels import RBF, Linear, Precomputed
from discernel.show.facts import Block, Row
from discernel.show.notebook import notebook_html
from tests.test_report import Page

X, Y = load_iris(return_X_y=True)
GRAMS = [RBF(width=s)(X) for s in (0.5, 2.0)]


@pytest.fixture(scope="module")
def fitted():
    return MultipleKernelDiscriminant().fit(X, Y)


def rows_of(html, title):
    """Return names, texts and widths of the bars below a title."""
    start = html.index(f"<caption><strong>{title}")
    table = html[start : html.index("</table>", start)]
    pattern = r'<th scope="row">(.*?)</th><td class="n">(.*?)</td>.*?width:([\d.]+)%'
    return re.findall(pattern, table)


def test_bars_are_as_long_as_their_values():
    rows = (Row(("x & y", "0.4"), 0.4), Row(("z", "<i>"), 0.1))
    html = notebook_html([Block("b", "a <b>", "see <this>", rows, n_numbers=1)])
    assert rows_of(html, "A &lt;b&gt;") == [
        ("x &amp; y", "0.4", "100.0"),
        ("z", "&lt;i&gt;", "25.0"),
    ]
    assert "see &lt;this&gt;" in html
    nothing = Block("n", "none", rows=(Row(("x", "0"), 0.0),), n_numbers=1)
    assert rows_of(notebook_html([nothing]), "None") == [("x", "0", "0.0")]


def test_the_largest_come_first_and_the_others_together():
    values = {"b": 0.5, "d": 0.25, "c": 0.15, "a": 0.1}
    rows = tuple(Row((name, f"{value}"), value) for name, value in values.items())
    found = Block("k", "kernels", rows=rows, noun="kernel").shortened(2)
    assert [row.cells for row in found.rows] == [
        ("b", "0.5"),
        ("d", "0.25"),
        ("2 other kernels", "0.250"),
    ]
    assert Block("k", "kernels", rows=rows).shortened(2).rows == rows


# ---- LearnedKernel -----------------------------------------------------------------------------


def test_a_learned_kernel_shows_weights_solver_and_certificate():
    learned = learn_kernel({"near": GRAMS[0], "far <": GRAMS[1]}, Y, criterion="rkda")
    assert learned.names == ("near", "far <")
    html = learned._repr_html_()
    Page(html)  # tags are balanced
    names = dict(zip(["near", "far &lt;"], learned.weights, strict=True))
    shown = rows_of(html, "Kernels")
    assert {name: text for name, text, _ in shown} == {n: f"{w:.3f}" for n, w in names.items()}
    assert "certified relative gap" in html
    assert f"by more than {learned.gap:.0e} of its value." in learned.certificate
    assert learned.certificate in html


def test_what_auto_chose_from_is_shown_and_no_certificate_claimed():
    learned = learn_kernel(GRAMS, Y)
    html = learned._repr_html_()
    assert html.count("← chosen") == 1
    for each in learned.describe().candidates:
        assert f'<th scope="row">{each.name}</th>' in html
    assert "cannot be ruled out" in learned.certificate
    plain = learn_kernel(GRAMS, Y, criterion="uniform")
    assert plain.certificate.startswith("No certificate needed")
    assert "1 for a constant prediction" in html
    assert {name for name, _, _ in rows_of(html, "Kernels")} == {"kernel 0", "kernel 1"}


def test_matrices_have_names_of_their_own_or_given_ones():
    stack = np.moveaxis(np.array(GRAMS), 0, -1)
    clf = MultipleKernelDiscriminant("precomputed", criterion="uniform").fit(stack, Y)
    assert clf.kernel_names_ == ["matrix 0", "matrix 1"]
    named = {"spectra": Precomputed(0), "texts": Precomputed(1)}
    clf = MultipleKernelDiscriminant(named, criterion="uniform").fit(stack, Y)
    assert clf.learned_kernel_.names == ("spectra", "texts")


# ---- estimators --------------------------------------------------------------------------------


def test_a_fitted_estimator_shows_its_numbers_below_the_diagram(fitted):
    html = fitted._repr_html_()
    for each in (html, fitted._repr_mimebundle_()["text/html"]):
        assert each.count("<summary>How it was learned") == 1
    assert "sk-container" in html
    shares, spreads = fitted.feature_importances_, fitted.feature_importances_std_
    expected = [
        (f"column {i}", f"{100 * shares[i]:.1f} ± {100 * spreads[i]:.1f} %")
        for i in np.argsort(-shares)
    ]
    shown = rows_of(html, "Columns that matter")
    assert [(name, text) for name, text, _ in shown] == expected
    assert float(shown[1][2]) == pytest.approx(100 * sorted(shares)[-2] / shares.max(), abs=0.06)
    assert "Expected on new rows" in html
    shown = rows_of(html, "Kernels")
    weights = sorted(fitted.kernel_weights_, reverse=True)[:10]
    if np.ptp(weights) > 1e-12:
        assert [text for _, text, _ in shown][:10] == [f"{weight:.3f}" for weight in weights]
    else:
        assert shown == []
        assert f'each of 12: 6 RBF, 5 Laplace, 1 Linear</th><td class="n">{1 / 12:.3f}' in html


def test_columns_have_the_names_of_a_dataframe():
    frame = load_iris(as_frame=True).data
    html = MultipleKernelDiscriminant().fit(frame, Y)._repr_html_()
    assert rows_of(html, "Columns that matter")[0][0] in set(frame.columns)


def test_nothing_is_added_before_a_fit_and_text_stays_text(fitted):
    assert "<summary>How it was learned" not in clone(fitted)._repr_html_()
    assert "<summary>How it was learned" not in clone(fitted)._repr_mimebundle_()["text/html"]
    before = repr(fitted)
    try:
        set_config(display="text")
        assert not hasattr(fitted, "_repr_html_")
        assert fitted._repr_mimebundle_() == {"text/plain": before}
    finally:
        set_config(display="diagram")


def test_other_estimators_show_what_they_have():
    ridge = MultipleKernelRidge([RBF(), Linear()]).fit(X, Y)
    html = ridge._repr_html_()
    assert len(rows_of(html, "Kernels")) == 2
    assert len(rows_of(html, "Columns that matter")) == X.shape[1]
    whole = make_pipeline(StandardScaler(), MultipleKernelDiscriminant()).fit(X, Y)
    assert "sk-container" in whole._repr_html_()
