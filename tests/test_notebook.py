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
from discernel.notebook import HtmlBar, bars, facts, top_bars
from tests.test_report import Page

X, Y = load_iris(return_X_y=True)
GRAMS = [RBF(width=s)(X) for s in (0.5, 2.0)]


@pytest.fixture(scope="module")
def fitted():
    return MultipleKernelDiscriminant().fit(X, Y)


def rows_of(html, title):
    """Return names, texts and widths of the bars below a title."""
    start = html.index(f"<caption>{title}")
    table = html[start : html.index("</table>", start)]
    pattern = r'<th scope="row">(.*?)</th><td class="n">(.*?)</td>.*?width:([\d.]+)%'
    return re.findall(pattern, table)


def test_bars_are_as_long_as_their_values():
    html = bars("a <b>", [HtmlBar("x & y", 0.4, "0.4"), HtmlBar("z", 0.1, "<i>")], "see <this>")
    assert rows_of(html, "a &lt;b&gt;") == [
        ("x &amp; y", "0.4", "100.0"),
        ("z", "&lt;i&gt;", "25.0"),
    ]
    assert "see &lt;this&gt;" in html
    assert rows_of(bars("none", [HtmlBar("x", 0.0, "0")]), "none") == [("x", "0", "0.0")]
    assert "&lt;1" in facts("t", [("a", "<1")])


def test_the_largest_come_first_and_the_others_together():
    found = top_bars(["a", "b", "c", "d"], [0.1, 0.5, 0.15, 0.25], list("abcd"), most=2)
    assert [(bar.name, bar.value) for bar in found[:2]] == [("b", 0.5), ("d", 0.25)]
    assert found[2].name == "2 other kernels"
    assert found[2].value == pytest.approx(0.25)


# ---- LearnedKernel -----------------------------------------------------------------------------


def test_a_learned_kernel_shows_weights_solver_and_certificate():
    learned = learn_kernel({"near": GRAMS[0], "far <": GRAMS[1]}, Y, criterion="rkda")
    assert learned.names == ("near", "far <")
    html = learned._repr_html_()
    Page(html)  # tags are balanced
    names = dict(zip(["near", "far &lt;"], learned.weights, strict=True))
    shown = rows_of(html, "Kernel weights")
    assert {name: text for name, text, _ in shown} == {n: f"{w:.3f}" for n, w in names.items()}
    assert "certified relative gap" in html
    assert f"by more than {learned.gap:.0e} of its value." in learned.certificate
    assert learned.certificate in html


def test_what_auto_chose_from_is_shown_and_no_certificate_claimed():
    learned = learn_kernel(GRAMS, Y)
    html = learned._repr_html_()
    assert f"{learned.considered[0].name} (chosen)" in html
    assert html.count(" at λ = ") == len(learned.considered)
    assert "no proof of being best" in learned.certificate
    plain = learn_kernel(GRAMS, Y, criterion="uniform")
    assert plain.certificate.startswith("None needed")
    assert "it is no share of wrong rows" in html
    assert {name for name, _, _ in rows_of(html, "Kernel weights")} == {"kernel 0", "kernel 1"}


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
        assert each.count("Learned kernel") == 1
    assert "sk-container" in html
    shares, spreads = fitted.feature_importances_, fitted.feature_importances_std_
    expected = [(f"column {i}", f"{shares[i]:.3f} ± {spreads[i]:.3f}") for i in np.argsort(-shares)]
    shown = rows_of(html, "Which columns matter")
    assert [(name, text) for name, text, _ in shown] == expected
    assert float(shown[1][2]) == pytest.approx(100 * sorted(shares)[-2] / shares.max(), abs=0.06)
    assert "Expected of new rows" in html
    shown = rows_of(html, "Kernel weights")
    weights = sorted(fitted.kernel_weights_, reverse=True)
    if np.ptp(weights) > 1e-12:
        assert [text for _, text, _ in shown] == [f"{weight:.3f}" for weight in weights]
    else:
        assert shown == []
        assert f"each of 12 kernels</th><td>{1 / 12:.3f}" in html


def test_columns_have_the_names_of_a_dataframe():
    frame = load_iris(as_frame=True).data
    html = MultipleKernelDiscriminant().fit(frame, Y)._repr_html_()
    assert rows_of(html, "Which columns matter")[0][0] in set(frame.columns)


def test_nothing_is_added_before_a_fit_and_text_stays_text(fitted):
    assert "Learned kernel" not in clone(fitted)._repr_html_()
    assert "Learned kernel" not in clone(fitted)._repr_mimebundle_()["text/html"]
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
    assert len(rows_of(html, "Kernel weights")) == 2
    assert len(rows_of(html, "Which columns matter")) == X.shape[1]
    whole = make_pipeline(StandardScaler(), MultipleKernelDiscriminant()).fit(X, Y)
    assert "sk-container" in whole._repr_html_()
