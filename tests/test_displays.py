"""What is drawn is what was learned."""

import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC

from discernel import (
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
    learn_kernel,
    regularization_path,
)
from discernel.displays import (
    CandidatesDisplay,
    DiscriminantEmbeddingDisplay,
    ImportancesDisplay,
    KernelWeightsDisplay,
    LearningPathDisplay,
    RegularizationPathDisplay,
)
from discernel.displays.common import make_axes
from discernel.exceptions import InvalidInputError, MissingExtraError
from discernel.inspection.source_weights import kernel_sources
from discernel.kernels import RBF, Linear
from discernel.learn import Candidate, Progress
from discernel.show.words import format_number

KERNELS = {"narrow": RBF(width=2.0), "wide": RBF(width=6.0), "linear": Linear()}
BY_LEARNER = [
    KernelWeightsDisplay,
    ImportancesDisplay,
    CandidatesDisplay,
    LearningPathDisplay,
    RegularizationPathDisplay,
]


@pytest.fixture(autouse=True)
def _figures():
    """Draw without a screen; leave neither figures nor settings behind."""
    plt.switch_backend("agg")
    settings = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == settings
    plt.close("all")


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), np.array(["red", "rose", "white"])[y]


@pytest.fixture(scope="module")
def auto(wine):
    return MultipleKernelDiscriminant(KERNELS).fit(*wine)


@pytest.fixture(scope="module")
def default(wine):
    """The default, with names of columns, behind a step of a pipeline."""
    frame = load_wine(as_frame=True).data
    return make_pipeline(StandardScaler(), MultipleKernelDiscriminant()).fit(frame, wine[1])


@pytest.fixture(scope="module")
def rkda(wine):
    """A classifier whose λ is chosen on a path, behind a step of a pipeline."""
    clf = MultipleKernelDiscriminant(KERNELS, criterion="rkda", tol=1e-5)
    return make_pipeline(StandardScaler(), clf).fit(*wine)


@pytest.fixture(scope="module")
def path(wine):
    X, y = wine
    return regularization_path([k(X) for k in KERNELS.values()], y, [1.0, 1e-2, 1e-4])


def names_of(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# ---- all displays --------------------------------------------------------------------------------


def test_matplotlib_is_imported_when_something_is_drawn_not_before():
    code = "import sys, discernel.displays; print('matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'discernel\[app\]'"):
        KernelWeightsDisplay([0.5, 0.5]).plot()


@pytest.mark.parametrize("display", BY_LEARNER)
def test_an_unfitted_estimator_is_refused(display):
    for estimator in (
        MultipleKernelDiscriminant(),
        make_pipeline(StandardScaler(), MultipleKernelDiscriminant()),
    ):
        with pytest.raises(NotFittedError):
            display.from_estimator(estimator)
    with pytest.raises(NotFittedError):
        DiscriminantEmbeddingDisplay.from_estimator(KernelDiscriminant(), [[0.0]], [0])


@pytest.mark.parametrize("display", BY_LEARNER)
def test_an_estimator_without_a_learned_kernel_is_refused(display, wine):
    with pytest.raises(InvalidInputError, match=r"one of discernel.*LogisticRegression"):
        display.from_estimator(LogisticRegression().fit(*wine))


def test_every_display_draws_on_the_axes_it_is_given_and_again(auto, default, rkda, wine, path):
    draw = [
        lambda ax: ImportancesDisplay.from_estimator(default, ax=ax),
        lambda ax: CandidatesDisplay.from_estimator(default, ax=ax),
        lambda ax: KernelWeightsDisplay.from_estimator(auto, ax=ax),
        lambda ax: CandidatesDisplay.from_estimator(auto, ax=ax),
        lambda ax: LearningPathDisplay.from_estimator(rkda, ax=ax),
        lambda ax: RegularizationPathDisplay.from_path(path, ax=ax),
        lambda ax: RegularizationPathDisplay.from_estimator(rkda, ax=ax),
        lambda ax: DiscriminantEmbeddingDisplay.from_estimator(auto, *wine, ax=ax),
    ]
    figure, axes = plt.subplots(1, len(draw))
    for make, ax in zip(draw, axes, strict=True):
        first = make(ax)
        legend = [] if ax.get_legend() is None else legend_of(ax)
        second = make(ax)
        assert first.ax_ is second.ax_ is ax
        assert first.figure_ is figure
        assert ([] if ax.get_legend() is None else legend_of(ax)) == legend
    figure.canvas.draw()
    assert plt.get_fignums() == [figure.number]


def test_the_learner_is_found_inside_a_pipeline_and_a_search(wine):
    """The last step may be another machine that takes the learned kernel."""
    X, y = wine
    svm = make_pipeline(
        LearnedKernelTransformer(KERNELS, criterion="rkda", regularization=0.1),
        SVC(kernel="precomputed"),
    )
    search = GridSearchCV(svm, {"svc__C": [1.0]}, cv=2).fit(X, y)
    weights = search.best_estimator_[0].kernel_weights_
    for estimator in (search, search.best_estimator_):
        display = KernelWeightsDisplay.from_estimator(estimator, sort=False)
        np.testing.assert_array_equal([bar.get_width() for bar in display.bars_], weights)


def test_too_many_axes_are_refused():
    axes = plt.subplots(1, 3)[1]
    with pytest.raises(InvalidInputError, match=r"one axes\. Got 3"):
        make_axes(axes)
    with pytest.raises(InvalidInputError, match=r"one axes or 2\. Got 3"):
        make_axes(axes, 2)


def test_a_style_with_colours_of_its_own_is_honoured():
    ours = KernelWeightsDisplay([1.0]).plot().bars_[0].get_facecolor()
    with mpl.rc_context({"axes.prop_cycle": mpl.cycler(color=["red", "lime"])}):
        theirs = KernelWeightsDisplay([1.0]).plot().bars_[0].get_facecolor()
    assert theirs == mpl.colors.to_rgba("red")
    assert ours != theirs
    assert ours != mpl.colors.to_rgba("C0")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1.0, "1"), (0.0316, "0.032"), (3.16e-4, "3.2e-4"), (1e-6, "1e-6")],
)
def test_numbers_are_short(value, text):
    assert format_number(value) == text


# ---- weights -------------------------------------------------------------------------------------


def test_bars_are_the_weights_sorted_or_in_order(auto):
    weights = auto.kernel_weights_
    display = KernelWeightsDisplay.from_estimator(auto)
    order = np.argsort(-weights)
    np.testing.assert_array_equal([bar.get_width() for bar in display.bars_], weights[order])
    assert names_of(display.ax_.yaxis) == [auto.kernel_names_[i] for i in order]
    assert display.spread_ is None
    display = KernelWeightsDisplay.from_estimator(auto, sort=False, color="red", ax=None)
    np.testing.assert_array_equal([bar.get_width() for bar in display.bars_], weights)
    assert names_of(display.ax_.yaxis) == auto.kernel_names_
    assert display.bars_[0].get_facecolor() == mpl.colors.to_rgba("red")


def test_of_many_kernels_the_rest_share_a_bar_and_nothing_is_lost():
    weights = np.array([0.0, 0.1, 0.0, 0.4, 0.2, 0.05, 0.25, 0.0])
    for sort, shown in ((True, [3, 6]), (False, [3, 6])):
        display = KernelWeightsDisplay(weights).plot(max_bars=3, sort=sort)
        widths = [bar.get_width() for bar in display.bars_]
        np.testing.assert_allclose(widths, [*weights[shown], 0.35])
        assert names_of(display.ax_.yaxis) == ["kernel 3", "kernel 6", "6 others"]
        assert sum(widths) == pytest.approx(1.0)


def test_kernels_without_weight_are_folded_though_there_is_room():
    weights = np.zeros(30)
    weights[[20, 4]] = 0.7, 0.3
    display = KernelWeightsDisplay(weights).plot(sort=False)
    assert names_of(display.ax_.yaxis) == ["kernel 4", "kernel 20", "28 others"]
    assert [bar.get_width() for bar in display.bars_] == [0.3, 0.7, 0.0]
    assert len(KernelWeightsDisplay(weights[:12]).plot().bars_) == 12


def test_values_are_written_beside_the_bars():
    display = KernelWeightsDisplay([0.0, 0.001, 0.999]).plot(sort=False)
    assert [text.get_text() for text in display.ax_.texts] == ["0", "<0.01", "1.00"]


def test_long_names_do_not_run_into_each_other():
    names = [f"{i} Gaussian of the median width on a long list of columns" for i in range(12)]
    display = KernelWeightsDisplay(np.full(12, 1 / 12), kernel_names=names).plot()
    display.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    left, right = display.ax_.get_window_extent().intervalx
    assert right - left > 0.4 * display.figure_.bbox.width


def test_bars_of_several_fits_are_means_and_whiskers_quartiles():
    weights = np.random.default_rng(0).dirichlet(np.ones(3), size=9)
    display = KernelWeightsDisplay(weights, kernel_names="abc").plot(sort=False)
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], weights.mean(axis=0))
    segments = np.array(display.spread_.get_segments())
    np.testing.assert_allclose(segments[:, :, 0].T, np.quantile(weights, [0.25, 0.75], axis=0))
    np.testing.assert_array_equal(segments[:, 0, 1], [0, 1, 2])
    points = KernelWeightsDisplay(weights).plot(sort=False, spread="points").spread_.get_offsets()
    np.testing.assert_allclose(points[:, 0].reshape(9, 3), weights)
    np.testing.assert_array_equal(points[:, 1].reshape(9, 3), np.tile([0, 1, 2], (9, 1)))
    assert KernelWeightsDisplay(weights).plot(spread=None).spread_ is None


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (MultipleKernelDiscriminant([RBF(), Linear()], regularization=0.1), "RBF(width='median')"),
        (KernelDiscriminant("rbf", regularization=0.1), "RBF(width='median')"),
    ],
)
def test_fits_whose_widths_differ_are_named_as_the_kernels_were_given(wine, estimator, name):
    fits = cross_validate(estimator, *wine, cv=3, return_estimator=True)["estimator"]
    assert len({fit.kernel_names_[0] for fit in fits}) > 1
    display = KernelWeightsDisplay.from_estimators(fits, sort=False)
    np.testing.assert_allclose(
        [bar.get_width() for bar in display.bars_],
        np.mean([fit.kernel_weights_ for fit in fits], axis=0),
    )
    assert names_of(display.ax_.yaxis)[0] == name


def test_fits_of_the_default_have_the_names_of_medians(wine):
    fits = [MultipleKernelDiscriminant().fit(X, y) for X, y in (wine, (wine[0][::2], wine[1][::2]))]
    names = names_of(KernelWeightsDisplay.from_estimators(fits, sort=False).ax_.yaxis)
    assert names[:2] == ["RBF(width='4*median')", "RBF(width='2*median')"]
    assert names[-2:] == ["Laplace(width='0.25*median')", "Linear()"]
    for fit in fits:
        # The second name stands for half the width of the first, in the fits as in the names.
        assert fit.kernels_[0].kernel.width == pytest.approx(2.0 * fit.kernels_[1].kernel.width)
        ratio = fit.kernels_[-6].kernel.width / fit.kernels_[-2].kernel.width
        assert ratio == pytest.approx(4.0 / 0.25)
        assert len(fit.kernels_) == len(names)


def test_weights_by_source_are_the_sums_of_its_kernels(wine):
    kernels = [
        RBF(width=width).on(columns, name)
        for name, columns in (("left", [0, 1]), ("right", [2, 3, 4]))
        for width in (1.0, 2.0)
    ]
    clf = MultipleKernelDiscriminant([*kernels, Linear()], criterion="rkda", regularization=0.01)
    fits = [clf.set_params(regularization=lam).fit(*wine).kernel_weights_ for lam in (0.1, 0.001)]
    sums = [[w[0] + w[1], w[2] + w[3], w[4]] for w in fits]
    display = KernelWeightsDisplay.from_estimator(clf, by="source", sort=False)
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], sums[-1])
    assert names_of(display.ax_.yaxis) == ["left", "right", "all columns"]
    assert display.ax_.get_xlabel() == "weight of all kernels of a source"
    several = KernelWeightsDisplay(fits, sources=["left", "left", "right", "right", "none"])
    several.plot(by="source", sort=False)
    np.testing.assert_allclose(
        [bar.get_width() for bar in several.bars_], np.mean(sums, axis=0), rtol=1e-12
    )
    ends = np.array(several.spread_.get_segments())[:, :, 0]  # of sums, not sums of quartiles
    np.testing.assert_allclose(ends, np.quantile(sums, [0.25, 0.75], axis=0).T)


def test_the_source_of_a_kernel_is_found_under_names_and_factors():
    on = RBF().on([1, 2], "phenols")
    found = kernel_sources([on, on.named("wide"), 2.0 * on, RBF().on([1, 2]), RBF(), on + on])
    assert found[:3] == ["phenols"] * 3
    assert found[3] == str(RBF().on([1, 2]).name).removeprefix("RBF(width='median') on ")
    assert found[4:] == ["all columns"] * 2


def test_weights_drawn_twice_share_the_lines_of_their_names():
    ax = plt.subplots()[1]
    KernelWeightsDisplay([0.1, 0.9], kernel_names=["a", "b"]).plot(ax)
    second = KernelWeightsDisplay([0.8, 0.2], kernel_names=["a", "b"]).plot(ax)
    names = names_of(ax.yaxis)
    lines = [round(bar.get_y() + bar.get_height() / 2) for bar in second.bars_]
    assert {
        names[line]: bar.get_width() for line, bar in zip(lines, second.bars_, strict=True)
    } == {
        "a": 0.8,
        "b": 0.2,
    }
    assert ax.yaxis_inverted()


def test_bad_weights_are_refused(auto, rkda, wine):
    other = KernelDiscriminant(Linear(), regularization=0.1).fit(*wine)
    for call, message in [
        (lambda: KernelWeightsDisplay(np.zeros((2, 2, 2))), r"shape \(n_kernels,\).*Got \(2, 2, 2"),
        (lambda: KernelWeightsDisplay([]), "shape"),
        (lambda: KernelWeightsDisplay([0.5, 0.5], kernel_names=["a", "a"]), "all different"),
        (lambda: KernelWeightsDisplay([0.5, 0.5], kernel_names=["a"]), "one name per kernel"),
        (lambda: KernelWeightsDisplay([1.0]).plot(max_bars=1), "at least 2. Got 1"),
        (lambda: KernelWeightsDisplay([1.0]).plot(spread="range"), "'quartiles', 'points'"),
        (lambda: KernelWeightsDisplay([1.0]).plot(by="view"), "'kernel', 'source'"),
        (lambda: KernelWeightsDisplay([1.0]).plot(by="source"), "Got no sources"),
        (lambda: KernelWeightsDisplay([1.0], sources="ab"), "one source per kernel, here 1"),
        (lambda: KernelWeightsDisplay.from_estimators([]), "at least one estimator"),
        (lambda: KernelWeightsDisplay.from_estimators([auto, other]), "same candidate kernels"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            call()


# ---- candidates ----------------------------------------------------------------------------------


def test_candidates_are_stacked_error_and_pull(auto):
    considered = auto.learned_kernel_.considered
    display = CandidatesDisplay.from_estimator(auto)
    errors, pulls = display.error_bars_, display.pull_bars_
    assert [bar.get_width() for bar in errors] == [c.error for c in considered]
    np.testing.assert_allclose([bar.get_width() for bar in pulls], [c.pull for c in considered])
    assert [bar.get_x() for bar in pulls] == [c.error for c in considered]
    assert [text.get_text() for text in display.ax_.texts] == [f"{c.score:.3f}" for c in considered]


def test_candidates_are_named_with_lambda_and_number_of_kernels(auto):
    considered = auto.learned_kernel_.considered
    labels = names_of(CandidatesDisplay.from_estimator(auto).ax_.yaxis)
    assert labels[0].startswith(f"{considered[0].label(False)} (chosen)\n")
    assert sum("(chosen)" in label for label in labels) == 1
    single = next(i for i, c in enumerate(considered) if c.name == "single")
    lam = format_number(considered[single].regularization)
    assert labels[single] == f"best single kernel\nλ = {lam}, 1 kernel"


def test_candidates_drawn_twice_come_below_each_other(auto):
    ax = plt.subplots()[1]
    first = CandidatesDisplay.from_estimator(auto, ax=ax)
    labels = names_of(ax.yaxis)
    second = CandidatesDisplay.from_estimator(auto, ax=ax)
    assert names_of(ax.yaxis) == labels + labels
    assert min(b.get_y() for b in second.error_bars_) > max(b.get_y() for b in first.error_bars_)


def test_candidates_of_the_default_are_log_losses_with_accuracies(default):
    considered = default[-1].learned_kernel_.considered
    display = CandidatesDisplay.from_estimator(default)
    assert [bar.get_width() for bar in display.error_bars_] == [c.error for c in considered]
    assert display.pull_bars_ is None
    assert display.ax_.get_legend() is None
    assert display.ax_.get_xlabel() == "log-loss of held-out rows (accuracy)"
    assert [text.get_text() for text in display.ax_.texts] == [
        f"{c.error:.3f} ({100 * c.accuracy:.1f}%)" for c in considered
    ]
    names = [label.partition("λ")[0].replace("\n", " ") for label in names_of(display.ax_.yaxis)]
    assert names[0].endswith(" (chosen) ")
    assert [name.removesuffix("(chosen) ").strip() for name in names] == [
        each.name for each in default[-1].learned_kernel_.describe().candidates
    ]


def test_candidates_of_numbers_are_squared_errors(wine):
    X, _ = wine
    ridge = MultipleKernelRidge().fit(X[:, 1:], X[:, 0])
    display = CandidatesDisplay.from_estimator(ridge)
    assert display.ax_.get_xlabel() == "squared error of held-out rows"
    considered = ridge.learned_kernel_.considered
    assert [t.get_text() for t in display.ax_.texts] == [f"{c.error:.3f}" for c in considered]


@pytest.mark.parametrize(
    ("strength", "name"),
    [
        (0.0, "learned weights, unscaled"),
        (0.5, "learned weights, half scaled"),
        (1.0, "learned weights, scaled"),
        (2, "learned weights, scaled to the power 2"),
    ],
)
def test_candidates_are_named_with_the_power_of_the_metric(strength, name):
    made = Candidate("weights", np.ones(1), 0.1, 0.5, 0.0, strength)
    assert made.label(by_folds=True) == name


def test_a_metric_by_likelihood_is_named():
    made = Candidate("likelihood", np.ones(1), 0.1, 0.5, 0.0, 1.0, quantiles=True)
    assert made.label(by_folds=True) == "equal weights, scaled by likelihood, columns as quantiles"


def test_only_auto_has_candidates(rkda):
    with pytest.raises(InvalidInputError, match=r"Only criterion='auto'.*criterion='rkda'"):
        CandidatesDisplay.from_estimator(rkda)
    with pytest.raises(InvalidInputError, match="at least one candidate"):
        CandidatesDisplay([])


# ---- importances ---------------------------------------------------------------------------------


def test_importances_are_sorted_with_the_spread_over_folds(default):
    learner = default[-1]
    display = ImportancesDisplay.from_estimator(default)
    order = np.argsort(-learner.feature_importances_)
    means, std = learner.feature_importances_[order], learner.feature_importances_std_[order]
    np.testing.assert_array_equal([bar.get_width() for bar in display.bars_], means)
    ends = np.array(display.spread_.get_segments())[:, :, 0]
    np.testing.assert_allclose(ends, np.column_stack([np.maximum(means - std, 0), means + std]))
    names = load_wine().feature_names
    assert names_of(display.ax_.yaxis) == [names[i] for i in order]
    assert display.ax_.get_xlabel() == "importance ± standard error"
    assert display.ax_.texts[0].get_text() == f"{100 * means[0]:.1f}%"


def test_of_many_columns_the_rest_share_a_bar_and_nothing_is_lost():
    importances, std = np.array([0.1, 0.4, 0.0, 0.3, 0.2]), np.array([0.2, 0.1, 0.0, 0.1, 0.1])
    display = ImportancesDisplay(importances, std=std).plot(n_columns=2)
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], [0.4, 0.3, 0.3])
    assert names_of(display.ax_.yaxis) == ["column 1", "column 3", "3 other columns"]
    assert display.bars_[-1].get_alpha() == 0.5
    # What is known of the columns does not say how their sum spreads.
    assert len(display.spread_.get_segments()) == 2
    assert len(ImportancesDisplay(importances).plot(n_columns=5).bars_) == 5
    names = names_of(ImportancesDisplay(importances).plot(n_columns=4).ax_.yaxis)
    assert names[-1] == "1 other column"
    assert ImportancesDisplay(importances).plot().spread_ is None


def test_importances_of_several_fits_are_means_with_the_deviation_of_the_sum():
    rows = np.random.default_rng(0).dirichlet([5.0, 3.0, 1.0, 1.0], size=6)
    display = ImportancesDisplay(rows, feature_names="abcd").plot(n_columns=2)
    sums = np.column_stack([rows[:, :2], rows[:, 2] + rows[:, 3]])
    means, std = sums.mean(axis=0), sums.std(axis=0, ddof=1)
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], means)
    ends = np.array(display.spread_.get_segments())[:, :, 0]
    np.testing.assert_allclose(ends, np.column_stack([means - std, means + std]))
    assert display.ax_.get_xlabel() == "importance ± standard deviation over fits"


def test_columns_without_names_are_numbered_and_fits_are_drawn_together(wine, default):
    fits = cross_validate(MultipleKernelDiscriminant(), *wine, cv=2, return_estimator=True)
    display = ImportancesDisplay.from_estimators(fits["estimator"], n_columns=20)
    rows = [fit.feature_importances_ for fit in fits["estimator"]]
    order = np.argsort(-np.mean(rows, axis=0))
    assert names_of(display.ax_.yaxis) == [f"column {i}" for i in order]
    with pytest.raises(InvalidInputError, match=r"same columns\. Got \['column 0'"):
        ImportancesDisplay.from_estimators([fits["estimator"][0], default])


def test_importances_drawn_twice_share_the_lines_of_their_names():
    ax = plt.subplots()[1]
    ImportancesDisplay([0.1, 0.9], feature_names="ab").plot(ax)
    second = ImportancesDisplay([0.8, 0.2], feature_names="ab").plot(ax)
    names = names_of(ax.yaxis)
    lines = [round(bar.get_y() + bar.get_height() / 2) for bar in second.bars_]
    found = {names[i]: bar.get_width() for i, bar in zip(lines, second.bars_, strict=True)}
    assert found == {"a": 0.8, "b": 0.2}


def test_bad_importances_are_refused():
    rows = np.arange(20.0)[:, None]
    given = MultipleKernelDiscriminant("precomputed").fit(RBF(gamma=0.1)(rows), np.arange(20) > 9)
    for call, message in [
        (lambda: ImportancesDisplay.from_estimator(given), "sparse or whose kernels are precomp"),
        (lambda: ImportancesDisplay.from_estimators([]), "at least one estimator"),
        (lambda: ImportancesDisplay([]), r"shape \(n_columns,\)"),
        (lambda: ImportancesDisplay([1.0], std=[0.1, 0.2]), "one number per column"),
        (lambda: ImportancesDisplay([[1.0], [1.0]], std=[0.1]), "of one fit"),
        (lambda: ImportancesDisplay([0.5, 0.5], feature_names="aa"), "all different, here 2"),
        (lambda: ImportancesDisplay([0.5, 0.5], feature_names="a"), "one name per column"),
        (lambda: ImportancesDisplay([1.0]).plot(n_columns=0), "at least 1. Got 0"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            call()


# ---- learning path -------------------------------------------------------------------------------


def test_lines_are_the_history_stage_by_stage(rkda):
    learned = rkda[-1].learned_kernel_
    display = LearningPathDisplay.from_estimator(rkda)
    n_stages = len(learned.leave_one_out)
    assert len(display.objective_lines_) == len(display.gap_lines_) == n_stages > 1
    assert display.ax_ is display.axes_[0]
    objectives = np.concatenate([line.get_ydata() for line in display.objective_lines_])
    np.testing.assert_array_equal(objectives, [p.objective for p in learned.history])
    iterations = np.concatenate([line.get_xdata() for line in display.gap_lines_])
    np.testing.assert_array_equal(iterations, np.arange(len(learned.history)))
    gaps = np.concatenate([line.get_ydata() for line in display.gap_lines_])
    expected = [p.gap if p.gap > 0 else np.finfo(float).eps for p in learned.history]
    np.testing.assert_array_equal(gaps, expected)
    assert display.axes_[1].get_yscale() == "log"


def test_the_chosen_stage_and_the_tolerance_are_named(rkda):
    display = LearningPathDisplay.from_estimator(rkda)
    lam = rkda[-1].regularization_
    chosen = [i for i, line in enumerate(display.gap_lines_) if line.get_alpha() is None]
    stages = {p.stage for p in rkda[-1].learned_kernel_.history if p.regularization == lam}
    assert set(chosen) == stages
    assert legend_of(display.axes_[1]) == [f"chosen: λ = {format_number(lam)}", "requested: 1e-5"]
    assert [1e-5, 1e-5] in [list(line.get_ydata()) for line in display.axes_[1].lines]


def test_without_a_certificate_only_the_objective_is_drawn(auto):
    display = LearningPathDisplay.from_estimator(auto)
    history = auto.learned_kernel_.history
    assert len(display.axes_) == 1
    assert display.gap_lines_ == []
    [line] = display.objective_lines_
    np.testing.assert_array_equal(line.get_ydata(), [p.objective for p in history])


def test_one_axes_has_the_gap_and_two_have_both(wine):
    X, y = wine
    grams = [kernel(X) for kernel in KERNELS.values()]
    learned = learn_kernel(grams, y, criterion="rkda", regularization=0.01)
    _, (left, right) = plt.subplots(1, 2)
    display = LearningPathDisplay.from_learned(learned, ax=left)
    assert display.objective_lines_ == []
    assert display.gap_lines_[0].get_ydata()[-1] == learned.gap
    assert left.get_legend() is None
    display = LearningPathDisplay.from_learned(learned, ax=[left, right], color="red")
    assert display.objective_lines_[0].axes is left
    assert display.gap_lines_[0].axes is right
    assert display.gap_lines_[0].get_color() == "red"


def test_a_gap_of_zero_is_drawn_at_rounding_error():
    history = [Progress(0, 2.0, 0.5, 3, 0.1), Progress(1, 1.0, 0.0, 2, 0.1)]
    [line] = LearningPathDisplay(history).plot().gap_lines_
    np.testing.assert_array_equal(line.get_ydata(), [0.5, np.finfo(float).eps])


def test_no_iterations_is_an_error(wine):
    uniform = MultipleKernelDiscriminant(KERNELS, criterion="uniform").fit(*wine)
    with pytest.raises(InvalidInputError, match=r"at least one iteration.*criterion='uniform'"):
        LearningPathDisplay.from_estimator(uniform)
    with pytest.raises(InvalidInputError, match="Got an empty history"):
        LearningPathDisplay([])


def test_an_estimator_that_keeps_no_history_is_refused(wine):
    from discernel import AKFDClassifier

    akfd = AKFDClassifier([Linear()], nu=1.0).fit(*wine)
    assert KernelWeightsDisplay.from_estimator(akfd).bars_[0].get_width() == 1.0
    with pytest.raises(InvalidInputError, match="must have a learned_kernel_"):
        LearningPathDisplay.from_estimator(akfd)


# ---- regularization path -------------------------------------------------------------------------


def test_path_has_weights_and_errors_against_lambda(path):
    display = RegularizationPathDisplay.from_path(path, kernel_names=list(KERNELS))
    upper, lower = display.axes_
    kept = np.flatnonzero(path.weights.any(axis=0))
    assert [line.get_label() for line in display.weight_lines_] == [list(KERNELS)[i] for i in kept]
    for line, i in zip(display.weight_lines_, kept, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), path.regularizations)
        np.testing.assert_array_equal(line.get_ydata(), path.weights[:, i])
    np.testing.assert_array_equal(display.error_line_.get_ydata(), path.leave_one_out_errors)
    assert upper.get_xscale() == lower.get_xscale() == "log"
    best = path.best.regularization
    for ax in display.axes_:
        assert [best, best] in [list(line.get_xdata()) for line in ax.lines]
    assert legend_of(lower) == [f"chosen: λ = {format_number(best)}"]


def test_of_an_estimator_the_errors_by_lambda_are_drawn(rkda):
    display = RegularizationPathDisplay.from_estimator(rkda)
    errors = rkda[-1].learned_kernel_.leave_one_out
    assert len(display.axes_) == 1
    assert display.weight_lines_ == []
    drawn = zip(display.error_line_.get_xdata(), display.error_line_.get_ydata(), strict=True)
    assert dict(drawn) == errors
    chosen = rkda[-1].regularization_
    assert [chosen, chosen] in [list(line.get_xdata()) for line in display.ax_.lines]


def test_of_many_kernels_the_heaviest_are_named_in_order():
    weights = np.random.default_rng(0).dirichlet(np.ones(12), size=4)
    weights[:, 5] = 0.0
    display = RegularizationPathDisplay([1, 0.1, 0.01, 0.001], np.ones(4), weights=weights).plot()
    heaviest = np.sort(np.argsort(-weights.mean(axis=0))[:6])
    assert legend_of(display.ax_) == [*(f"kernel {i}" for i in heaviest), "5 others"]
    assert len(display.weight_lines_) == 11
    for line, i in zip(display.weight_lines_, heaviest, strict=False):
        np.testing.assert_array_equal(line.get_ydata(), weights[:, i])
    looks = {(line.get_color(), line.get_linestyle()) for line in display.weight_lines_[:6]}
    assert len(looks) == 6


def test_one_axes_has_the_weights_of_a_path(path):
    ax = plt.subplots()[1]
    display = RegularizationPathDisplay.from_path(path, ax=ax)
    assert display.error_line_ is None
    assert all(line.axes is ax for line in display.weight_lines_)


def test_bad_paths_are_refused(auto):
    for call, message in [
        (lambda: RegularizationPathDisplay.from_estimator(auto), "regularization='loo'.*'auto'"),
        (lambda: RegularizationPathDisplay([1.0, 0.1], [0.5]), "one error per λ"),
        (lambda: RegularizationPathDisplay([], []), "at least one"),
        (lambda: RegularizationPathDisplay([1.0], [0.5], weights=[0.5]), "one row per λ"),
        (
            lambda: RegularizationPathDisplay([1.0], [0.5], weights=[[1.0]], kernel_names="ab"),
            "one name per kernel, here 1",
        ),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            call()


# ---- embedding -----------------------------------------------------------------------------------


def test_points_are_the_first_two_coordinates_by_class(rkda, wine):
    X, y = wine
    Z = rkda.transform(X)
    display = DiscriminantEmbeddingDisplay.from_estimator(rkda, X, y)
    for label in rkda.classes_:
        [points] = display.scatters_[label]
        np.testing.assert_array_equal(points.get_offsets(), Z[y == label])
        np.testing.assert_allclose(display.means_[label].get_offsets()[0], Z[y == label].mean(0))
    assert legend_of(display.ax_) == ["red", "rose", "white"]
    share = rkda[-1].explained_variance_ratio_[1]
    assert display.ax_.get_ylabel() == f"second discriminant ({share:.0%})"
    swapped = DiscriminantEmbeddingDisplay.from_estimator(rkda, X, y, components=(1, 0), s=5)
    np.testing.assert_array_equal(swapped.scatters_["red"][0].get_offsets(), Z[y == "red"][:, ::-1])
    assert swapped.scatters_["red"][0].get_sizes() == [5]


def test_held_out_rows_are_filled_and_means_are_of_training_rows(rkda, wine):
    X, y = wine
    display = DiscriminantEmbeddingDisplay.from_estimator(
        rkda, X[::2], y[::2], X_held_out=X[1::2], y_held_out=y[1::2]
    )
    Z = rkda.transform(X)
    training, held_out = display.scatters_["rose"]
    np.testing.assert_array_equal(training.get_offsets(), Z[::2][y[::2] == "rose"])
    np.testing.assert_array_equal(held_out.get_offsets(), Z[1::2][y[1::2] == "rose"])
    assert len(training.get_facecolor()) == 0
    assert len(held_out.get_facecolor()) == 1
    mean = display.means_["rose"].get_offsets()[0]
    np.testing.assert_allclose(mean, Z[::2][y[::2] == "rose"].mean(axis=0))
    assert legend_of(display.ax_) == ["red", "rose", "white", "training", "held out"]


def test_one_coordinate_gives_every_class_a_line():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)[::3]
    y = np.array(["ill", "well"])[y[::3]]
    clf = KernelDiscriminant(regularization=0.1).fit(X, y)
    Z = clf.transform(X)[:, 0]
    display = DiscriminantEmbeddingDisplay.from_estimator(clf, X, y)
    for line, label in enumerate(["ill", "well"]):
        points = display.scatters_[label][0].get_offsets()
        np.testing.assert_array_equal(points[:, 0], Z[y == label])
        assert np.abs(points[:, 1] - line).max() <= 0.4
        assert len(np.unique(points, axis=0)) == len(points)
        assert display.means_[label].get_offsets()[0, 0] == pytest.approx(Z[y == label].mean())
    assert names_of(display.ax_.yaxis) == ["ill", "well"]
    assert display.ax_.get_legend() is None


def test_lines_are_wide_where_a_class_has_many_rows():
    x = np.concatenate([np.zeros(50), np.full(5, 1.0), [2.0]])
    display = DiscriminantEmbeddingDisplay(x[:, None], np.zeros(56, dtype=int)).plot()
    y = display.scatters_[0][0].get_offsets()[:, 1]
    assert np.ptp(y[x == 0]) == pytest.approx(0.8)
    assert np.ptp(y[x == 1]) == pytest.approx(0.08)
    assert y[x == 2] == [0.0]


def test_ten_classes_differ_in_colour_or_marker():
    rng = np.random.default_rng(0)
    labels = np.arange(100) % 10
    display = DiscriminantEmbeddingDisplay(rng.standard_normal((100, 2)), labels).plot()
    looks = {
        (tuple(points.get_facecolor()[0]), points.get_paths()[0].vertices.tobytes())
        for [points] in display.scatters_.values()
    }
    assert len(looks) == 10
    assert legend_of(display.ax_) == [str(i) for i in range(10)]


def test_other_discriminants_can_be_drawn(wine):
    X, y = wine
    lda = LinearDiscriminantAnalysis().fit(X, y)
    display = DiscriminantEmbeddingDisplay.from_estimator(lda, X, y)
    np.testing.assert_array_equal(
        display.scatters_["red"][0].get_offsets(), lda.transform(X)[y == "red"]
    )


def test_a_class_without_rows_has_a_name_and_no_mean(rkda, wine):
    X, y = wine
    display = DiscriminantEmbeddingDisplay.from_estimator(rkda, X[y != "rose"], y[y != "rose"])
    assert list(display.means_) == ["red", "white"]
    assert len(display.scatters_["rose"][0].get_offsets()) == 0


def test_bad_embeddings_are_refused(rkda, wine):
    X, y = wine
    transformer = LearnedKernelTransformer(KERNELS, regularization=0.1).fit(X, y)
    display = DiscriminantEmbeddingDisplay
    for call, message in [
        (lambda: display.from_estimator(transformer, X, y), "must be a discriminant"),
        (lambda: display.from_estimator(SVC().fit(X, y), X, y), "must be a discriminant"),
        (lambda: display.from_estimator(rkda, X, y, X_held_out=X), "given together"),
        (lambda: display(np.zeros(3), [0, 1, 2]), r"\(n_rows, n_components\)"),
        (lambda: display(np.zeros((3, 2)), [0, 1]), "labels must have one entry per row, here 3"),
        (lambda: display(np.zeros((2, 2)), [0, 1], held_out=[True]), "held_out must have"),
        (lambda: display(np.zeros((2, 2)), [0, 7], classes=[0, 1]), r"Got \[7\]"),
        (lambda: display(np.zeros((2, 2)), [0, 1]).plot(components=(0, 2)), "of the 2 coord"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            call()
