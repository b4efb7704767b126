"""Weights, sources, importances, candidates and contributions, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.displays.common import (
    Display,
    FitsDisplay,
    LearnedDisplay,
    check_count,
    check_names,
    class_colors,
    format_number,
    ink_color,
    place_legend,
    rank_columns,
    wrap,
)
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.inspection import Contributions, contributions
from discernel.inspection.explained import Explained, fitted_learner
from discernel.inspection.facts import given_names
from discernel.inspection.words import output_of, terms_of
from discernel.learn import Candidate, LearnedKernel
from discernel.programs.solution import compared_by_folds
from discernel.rows.views import kernel_sources, sum_by
from discernel.show.words import candidate_label, plural

#: Heights of the bars of sources and kernels, and the room between groups, in lines of text.
_SOURCE_HEIGHT, _KERNEL_HEIGHT, _GAP = 0.72, 0.5, 0.45


# ---- weights -----------------------------------------------------------------------------------


class KernelWeightsDisplay(FitsDisplay):
    """Bars of the kernel weights of one fit, or of their mean and spread over several.

    A weight says how much of a kernel is in the combination, not how important the kernel or its
    source is: with a criterion such as ``"rkda"``, a source of pure noise can get weight.

    Parameters
    ----------
    weights : array-like of shape (n_kernels,) or (n_fits, n_kernels)
        The weights.
    kernel_names : sequence of str, optional
        What the weights belong to, all different; by default "kernel 0", "kernel 1", ...
    sources : sequence of str, optional
        The source of each kernel, for weights summed by source.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure of the axes.
    bars_ : BarContainer
        The bars, from the top.
    spread_ : LineCollection, PathCollection or None
        The quartiles or points over several fits.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discernel import MultipleKernelDiscriminant
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = MultipleKernelDiscriminant(criterion="rkda").fit(scale(X), y)
    >>> display = KernelWeightsDisplay.from_estimator(clf)
    >>> bool(display.bars_[0].get_width() == clf.kernel_weights_.max())
    True
    """

    bars_: Any
    spread_: Any

    def __init__(
        self,
        weights: Any,
        *,
        kernel_names: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
    ) -> None:
        self.weights = self._check(weights, "weights", "kernel")
        n_kernels = self.weights.shape[1]
        self.kernel_names = check_names(kernel_names, n_kernels, "kernel")
        self.sources = None if sources is None else list(map(str, sources))
        if self.sources is not None and len(self.sources) != n_kernels:
            raise InvalidInputError(
                f"There must be one source per kernel, here {n_kernels}. Got {self.sources}."
            )

    @classmethod
    def _of(cls, estimators: Sequence[Any]) -> Self:
        learners, weights, names = _learned(estimators)
        kernels = getattr(learners[0], "kernels_", None)
        sources = None if kernels is None else kernel_sources(kernels)
        return cls(weights, kernel_names=names, sources=sources)

    def plot(
        self,
        ax: Any = None,
        *,
        by: Literal["kernel", "source"] = "kernel",
        sort: bool = True,
        max_bars: int = 12,
        spread: Literal["quartiles", "points"] | None = "quartiles",
        **bar_options: Any,
    ) -> Self:
        """Draw the bars.

        Drawn twice on the same axes, bars of the same name share a line.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default on a new figure.
        by : {"kernel", "source"}, default="kernel"
            One bar per kernel, or one per source, the sum of the weights of its kernels: those
            on the same columns, by ``kernel.on(columns, name)``.
        sort : bool, default=True
            Whether the largest weight comes first; else the kernels keep their order.
        max_bars : int, default=12
            Of more kernels than this, the largest weights have bars of their own and all others
            share one, which is their sum. Kernels without weight are always among the others.
        spread : {"quartiles", "points"} or None, default="quartiles"
            What is shown of several fits beside their mean: a line from the first to the third
            quartile, or every fit.
        **bar_options
            What ``Axes.barh`` takes.

        Returns
        -------
        KernelWeightsDisplay
            Itself.
        """
        if spread not in ("quartiles", "points", None):
            raise unknown_choice("spread", spread, ["quartiles", "points"])
        every_name, weights = self._weights_by(by)
        n_shown = weights.shape[1]
        if n_shown > check_count("max_bars", max_bars, 2):
            n_shown = min(max_bars - 1, int(np.count_nonzero(weights.mean(axis=0))))
        names, columns, shown = rank_columns(every_name, weights, n_shown, "other", sort=sort)
        means, self.spread_ = columns.mean(axis=0), None
        self.bars_ = self._draw_ranked(ax, names, means, len(names) > len(shown), bar_options)
        ends = self._draw_spread(names, columns, spread) if len(columns) > 1 else means
        what = "kernel weight" if by == "kernel" else "weight of all kernels of a source"
        what = what if len(columns) == 1 else f"mean {what}"
        self._finish(names, list(map(_weight_text, means)), ends, what)
        return self

    def _weights_by(self, by: str) -> tuple[list[str], FloatArray]:
        """Return the names and weights of all kernels, or of all sources."""
        if by == "kernel":
            return self.kernel_names, self.weights
        if by != "source":
            raise unknown_choice("by", by, ["kernel", "source"])
        if self.sources is None:
            raise InvalidInputError(
                "Weights by source need the source of each kernel. Got by='source' without any "
                "sources. Draw a fitted estimator, or give sources to the display."
            )
        return sum_by(self.sources, self.weights)

    def _draw_spread(self, names: list[str], columns: FloatArray, spread: str | None) -> FloatArray:
        """Draw the spread over the fits; return where each line ends."""
        means, color = np.asarray(columns.mean(axis=0)), ink_color()
        if spread == "quartiles":
            low, high = np.quantile(columns, [0.25, 0.75], axis=0)
            self.spread_ = self.ax_.hlines(names, low, high, color=color, linewidth=1.5, zorder=3)
            return np.asarray(np.maximum(means, high))
        if spread == "points":
            look = {"s": 14, "facecolors": "none", "edgecolors": color, "linewidths": 0.8}
            places = names * len(columns)
            self.spread_ = self.ax_.scatter(columns.ravel(), places, zorder=3, **look)
            return np.asarray(columns.max(axis=0))
        return means


def _learned(estimators: Sequence[Any]) -> tuple[list[Any], list[FloatArray], list[str]]:
    """Return learners, weights, and names of kernels: with numbers where all fits have the same."""
    learners = [fitted_learner(estimator) for estimator in estimators]
    weights = [learner.kernel_weights_ for learner in learners]
    names: list[str] = learners[0].kernel_names_
    if all(learner.kernel_names_ == names for learner in learners):
        return learners, weights, names
    # Widths such as "median" are other numbers in every fit: take the kernels as they were given.
    given = [given_names(learner) for learner in learners]
    if any(other != given[0] for other in given):
        raise InvalidInputError(
            "The estimators must have the same candidate kernels. Got "
            + " and ".join(sorted({str(other) for other in given})[:2])
            + "."
        )
    return learners, weights, given[0]


def _weight_text(weight: float) -> str:
    if weight == 0:
        return "0"
    return "<0.01" if weight < 0.005 else f"{weight:.2f}"


# ---- sources -----------------------------------------------------------------------------------


class _Line(NamedTuple):
    """One bar: of a source, or of a kernel below it."""

    label: str
    values: FloatArray
    source: int
    is_source: bool


class SourcesDisplay(FitsDisplay):
    """Bars of the weight of each source, and below it of each of its kernels.

    A weight says how much of a source is in the learned kernel, not what the source is worth: with
    some criteria a source of pure noise can get weight.

    Parameters
    ----------
    weights : array-like of shape (n_kernels,) or (n_fits, n_kernels)
        The weights of kernels.
    sources : sequence of str
        The source of each kernel.
    kernel_names : sequence of str, optional
        What the kernels are called; by default "kernel 0", "kernel 1", ...

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure of the axes.
    bars_ : BarContainer
        The bars, from the top.
    spread_ : LineCollection or None
        The lines of one standard deviation to each side, over several fits.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import MultipleKernelDiscriminant
    >>> from discernel.views import source_kernels
    >>> X, y = load_wine(return_X_y=True)
    >>> kernels = source_kernels({"acids": [1, 2, 3], "phenols": [5, 6, 7, 8]}, table=X)
    >>> clf = MultipleKernelDiscriminant(kernels).fit(X, y)
    >>> display = SourcesDisplay.from_estimator(clf)
    >>> display.ax_.get_xlabel()
    'weight of a source, and of its kernels'
    """

    bars_: Any
    spread_: Any

    def __init__(
        self, weights: Any, sources: Sequence[str], *, kernel_names: Sequence[str] | None = None
    ) -> None:
        self.weights = self._check(weights, "weights", "kernel")
        n_kernels = self.weights.shape[1]
        names = [f"kernel {i}" for i in range(n_kernels)] if kernel_names is None else kernel_names
        self.sources, self.kernel_names = list(map(str, sources)), list(map(str, names))
        if not len(self.sources) == len(self.kernel_names) == n_kernels:
            raise InvalidInputError(
                f"There must be one source and one name per kernel, here {n_kernels}. Got "
                f"{len(self.sources)} sources and {len(self.kernel_names)} names."
            )

    @classmethod
    def _of(cls, estimators: Sequence[Any]) -> Self:
        learners, weights, names = _learned(estimators)
        return cls(weights, kernel_sources(learners[0].kernels_), kernel_names=names)

    def plot(self, ax: Any = None, *, max_kernels: int = 4, **bar_options: Any) -> Self:
        """Draw the bars, the source with the largest weight at the top.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default on a new figure.
        max_kernels : int, default=4
            How many kernels of a source have bars of their own, those with the largest weights. All
            others of the source share one, their sum.
        **bar_options
            What ``Axes.barh`` takes.

        Returns
        -------
        SourcesDisplay
            Itself.
        """
        lines = self._lines(check_count("max_kernels", max_kernels, 1))
        places = np.cumsum([1.0 + _GAP * line.is_source for line in lines])
        self._start(ax, height=0.75 + 0.27 * (places[-1] - places[0] + 1.0))
        means = np.array([line.values.mean() for line in lines])
        self._draw_bars(lines, places, means, bar_options)
        ends = means + self._draw_spread(lines, places, means)
        for line, place, mean, end in zip(lines, places, means, ends, strict=True):
            size = "medium" if line.is_source else "small"
            self._write(_weight_text(mean), end, place, 5.0, fontsize=size)
        self._label(lines, places)
        return self

    def _lines(self, max_kernels: int) -> list[_Line]:
        """Return what is drawn, from the top."""
        names, totals = sum_by(self.sources, self.weights)
        lines = []
        for source in np.argsort(-totals.mean(axis=0), kind="stable").tolist():
            own = np.array([i for i, one in enumerate(self.sources) if one == names[source]])
            own = own[np.argsort(-self.weights[:, own].mean(axis=0), kind="stable")]
            lines.append(_Line(names[source], totals[:, source], source, True))
            # A single kernel left over takes no more room than a bar for others.
            shown = own if len(own) <= max_kernels + 1 else own[:max_kernels]
            for kernel in shown.tolist():
                name = self.kernel_names[kernel].removeprefix(f"{names[source]}: ")
                label = name.removesuffix(f" on {names[source]}")
                lines.append(_Line(label, self.weights[:, kernel], source, False))
            if others := own[len(shown) :].tolist():
                rest = self.weights[:, others].sum(axis=1)
                lines.append(_Line(f"{len(others)} others", rest, source, False))
        return lines

    def _draw_bars(
        self, lines: list[_Line], places: FloatArray, means: FloatArray, options: dict[str, Any]
    ) -> None:
        colors = class_colors(1 + max(line.source for line in lines))
        heights = [_SOURCE_HEIGHT if line.is_source else _KERNEL_HEIGHT for line in lines]
        look = {"height": heights, "color": [colors[line.source] for line in lines], **options}
        self.bars_ = self.ax_.barh(places, means, **look)
        for line, bar in zip(lines, self.bars_, strict=True):
            if not line.is_source:
                bar.set_alpha(0.45)

    def _draw_spread(self, lines: list[_Line], places: FloatArray, means: FloatArray) -> FloatArray:
        """Draw the spread of sources over the fits; return how far it reaches beyond the bars."""
        self.spread_ = None
        reach = np.zeros(len(lines))
        if len(self.weights) > 1:
            is_source = np.array([line.is_source for line in lines])
            reach[is_source] = [line.values.std() for line in lines if line.is_source]
            low, high = np.maximum(means - reach, 0.0)[is_source], (means + reach)[is_source]
            self.spread_ = self.ax_.hlines(
                places[is_source], low, high, color=ink_color(), linewidth=1.5, zorder=3
            )
        return reach

    def _label(self, lines: list[_Line], places: FloatArray) -> None:
        self.ax_.set_yticks(places, [wrap(line.label) for line in lines])
        for line, text in zip(lines, self.ax_.get_yticklabels(), strict=True):
            text.set_fontsize("medium" if line.is_source else "small")
            text.set_fontweight("bold" if line.is_source else "normal")
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_ylim(places[-1] + 0.6, places[0] - 0.6)
        self.ax_.margins(x=0.15)
        self.ax_.set_xlim(left=0.0)
        what = "weight of a source, and of its kernels"
        n_fits = len(self.weights)
        spread = f"\nmean of {n_fits} fits ± standard deviation"
        self.ax_.set_xlabel(what + (spread if n_fits > 1 else ""))


# ---- importances -------------------------------------------------------------------------------


class ImportancesDisplay(FitsDisplay):
    """Bars of how much the columns matter, with their spread, of one fit or of several.

    An importance is the share of a column in the squared gradient of a kernel fit, learned by
    ``kernels="auto"``. It says what the fit looks at, not what causes what: of columns that say
    the same, one may have the importance of all.

    Parameters
    ----------
    importances : array-like of shape (n_columns,) or (n_fits, n_columns)
        The importances; those of several fits are drawn as mean and standard deviation.
    std : array-like of shape (n_columns,), optional
        The standard error of each column; for one fit only.
    feature_names : sequence of str, optional
        The names of the columns, all different; by default "column 0", "column 1", ...

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure of the axes.
    bars_ : BarContainer
        The bars, from the top.
    spread_ : LineCollection or None
        The lines of one standard deviation to each side, where it is known.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discernel import MultipleKernelDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MultipleKernelDiscriminant().fit(X, y)
    >>> display = ImportancesDisplay.from_estimator(clf)
    >>> bool(display.bars_[0].get_width() == clf.feature_importances_.max())
    True
    """

    bars_: Any
    spread_: Any

    def __init__(
        self, importances: Any, *, std: Any = None, feature_names: Sequence[str] | None = None
    ) -> None:
        self.importances = self._check(importances, "importances", "column")
        n_fits, n_columns = self.importances.shape
        self.std = None if std is None else np.asarray(std, dtype=np.float64)
        if self.std is not None and (n_fits > 1 or self.std.shape != (n_columns,)):
            raise InvalidInputError(
                "std must have one number per column of one fit. Got shape "
                f"{np.shape(std)} for importances of shape {np.shape(importances)}."
            )
        self.feature_names = check_names(feature_names, n_columns, "column")

    @classmethod
    def _of(cls, estimators: Sequence[Any]) -> Self:
        found = [Explained.of(estimator, predicts=False) for estimator in estimators]
        names = [each.column_names for each in found]
        if any(other != names[0] for other in names):
            raise InvalidInputError(
                f"The estimators must have the same columns. Got {names[0]} and others."
            )
        learners = [_with_importances(estimator) for estimator in estimators]
        rows = [learner.feature_importances_ for learner in learners]
        std = learners[0].feature_importances_std_ if len(learners) == 1 else None
        return cls(rows, std=std, feature_names=names[0])

    def plot(self, ax: Any = None, *, n_columns: int = 15, **bar_options: Any) -> Self:
        """Draw the bars, the most important column at the top.

        Drawn twice on the same axes, bars of the same name share a line.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default on a new figure.
        n_columns : int, default=15
            How many columns have bars of their own. All others share one, their sum. Its spread is
            known over several fits only: those of its columns do not add up.
        **bar_options
            What ``Axes.barh`` takes.

        Returns
        -------
        ImportancesDisplay
            Itself.
        """
        n_shown = check_count("n_columns", n_columns, 1)
        ranked = rank_columns(self.feature_names, self.importances, n_shown, "other column")
        names, rows, shown = ranked
        means, std = rows.mean(axis=0), np.full(len(names), np.nan)
        if len(rows) > 1:
            std = rows.std(axis=0, ddof=1)
        elif self.std is not None:
            std[: len(shown)] = self.std[shown]
        self.bars_ = self._draw_ranked(ax, names, means, len(names) > len(shown), bar_options)
        known = np.flatnonzero(np.isfinite(std))
        low, high = np.maximum(means - std, 0.0), means + std  # but nothing below 0
        look = {"color": ink_color(), "linewidth": 1.5, "zorder": 3}
        places = [names[i] for i in known]
        self.spread_ = self.ax_.hlines(places, low[known], high[known], **look) if places else None
        about = "" if self.std is None else " ± standard error"
        if len(rows) > 1:
            about = " ± standard deviation over fits"
        texts = ["<0.1%" if 0 < mean < 0.0005 else f"{mean:.1%}" for mean in means]
        self._finish(names, texts, means + np.nan_to_num(std), "importance" + about)
        self.ax_.set_xlim(left=0.0)
        return self


def _with_importances(estimator: Any) -> Any:
    learner = fitted_learner(estimator)
    if not hasattr(learner, "feature_importances_"):
        raise InvalidInputError(
            "The estimator must have feature_importances_, which a fit to dense rows with columns "
            f"has. Got {learner!r}, whose rows are sparse or whose kernels are precomputed. Use "
            "dense rows, or scikit-learn's permutation_importance."
        )
    return learner


# ---- candidates --------------------------------------------------------------------------------


class CandidatesDisplay(LearnedDisplay):
    """Bars of what ``criterion="auto"`` considered: what held-out rows cost under each.

    With ``kernels="auto"``, that is the log-loss of held-out folds, for numbers the squared error;
    beside it stands the share of rows whose class was right. A more complex candidate (a metric,
    learned weights) must win by more than one standard error. With kernels given, it is the
    leave-one-out error and the pull to equal weights, and the least sum of both is chosen.

    Parameters
    ----------
    candidates : sequence of Candidate
        The candidates, the chosen one first.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure of the axes.
    error_bars_ : BarContainer
        What held-out rows cost, from the top.
    pull_bars_ : BarContainer or None
        What is added for being away from equal weights; None with ``kernels="auto"``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discernel import MultipleKernelDiscriminant
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = MultipleKernelDiscriminant().fit(scale(X), y)
    >>> display = CandidatesDisplay.from_estimator(clf)
    >>> len(display.error_bars_)
    3
    """

    error_bars_: Any
    pull_bars_: Any

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = tuple(candidates)
        if not self.candidates:
            raise InvalidInputError("There must be at least one candidate. Got none.")

    @classmethod
    def _of(cls, learned: LearnedKernel) -> Self:
        if not learned.considered:
            raise InvalidInputError(
                "Only criterion='auto' chooses among candidates. Got a kernel learned with "
                f"criterion='{learned.criterion}', which considered nothing else."
            )
        return cls(learned.considered)

    def plot(self, ax: Any = None, **bar_options: Any) -> Self:
        """Draw the bars, the chosen one at the top.

        Drawn twice on the same axes, the second set comes below the first.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default on a new figure.
        **bar_options
            What ``Axes.barh`` takes.

        Returns
        -------
        CandidatesDisplay
            Itself.
        """
        self._start(ax, height=1.6 + 0.5 * len(self.candidates))
        before = [tick.get_text() for tick in self.ax_.get_yticklabels()]
        labels = before if self.ax_.containers else []
        y = np.arange(len(self.candidates)) + len(labels)
        labels += [
            self._label(candidate, is_chosen=position == 0)
            for position, candidate in enumerate(self.candidates)
        ]
        self._draw_bars(y, {"height": 0.6, **bar_options})
        if "alpha" not in bar_options:
            for bar in (*self.error_bars_[1:], *(self.pull_bars_ or ())[1:]):
                bar.set_alpha(0.6)  # so that the chosen one stands out
        self.ax_.margins(x=0.25 if self.pull_bars_ else 0.35)
        self.ax_.set_xlabel(self._cost())
        self.ax_.set_yticks(range(len(labels)), labels)
        # One more line at the bottom, where the legend covers nothing.
        self.ax_.set_ylim(len(labels) + (0.6 if self.pull_bars_ else -0.4), -0.5)
        place_legend(self.ax_, "best", loc="lower right", frameon=False)
        return self

    def _label(self, candidate: Candidate, *, is_chosen: bool) -> str:
        by_folds = compared_by_folds(self.candidates)
        name = wrap(candidate_label(candidate.name, candidate.strength, by_folds))
        kernels = plural(int(np.count_nonzero(candidate.weights)), "kernel")
        mark = " (chosen)" if is_chosen else ""
        return f"{name}{mark}\nλ = {format_number(candidate.regularization)}, {kernels}"

    def _cost(self) -> str:
        if not compared_by_folds(self.candidates):
            return "leave-one-out error + pull"
        if self.candidates[0].accuracy is None:
            return "squared error of held-out rows"
        return "log-loss of held-out rows (accuracy)"

    def _draw_bars(self, y: NDArray[np.intp], bar_options: dict[str, Any]) -> None:
        """Draw errors, pulls to the right of them where there are any, and numbers."""
        errors = [candidate.error for candidate in self.candidates]
        error_color, pull_color = class_colors(2)
        if compared_by_folds(self.candidates):
            self.pull_bars_ = None
            self.error_bars_ = self.ax_.barh(y, errors, **{"color": error_color, **bar_options})
            texts = [
                f"{each.error:z.3f}" + ("" if each.accuracy is None else f" ({each.accuracy:.1%})")
                for each in self.candidates
            ]
            self.ax_.bar_label(self.error_bars_, texts, padding=4)
            return
        pulls = [candidate.pull for candidate in self.candidates]
        look = {"color": error_color, "label": "leave-one-out error", **bar_options}
        self.error_bars_ = self.ax_.barh(y, errors, **look)
        look = {"color": pull_color, "label": "pull to equal weights", **bar_options}
        self.pull_bars_ = self.ax_.barh(y, pulls, left=errors, **look)
        for bar in self.pull_bars_:
            bar.sticky_edges.x.clear()  # a pull of 0 would leave no room for its label
        scores = [f"{candidate.score:z.3f}" for candidate in self.candidates]
        self.ax_.bar_label(self.pull_bars_, scores, padding=4)


# ---- contributions -----------------------------------------------------------------------------


class ContributionsDisplay(Display):
    """Bars of what columns, or sources, add to the score of one row.

    From the top: the score of a typical row, then what each column adds, the largest first, and at
    the bottom the score of the row. Every bar begins where the one above ends.

    Parameters
    ----------
    contributions : Contributions
        What `discernel.inspection.contributions` returned.
    row : int, default=0
        Which of its rows.
    label : object, optional
        The class whose score is drawn; by default the predicted one. Of a regression with several
        targets, the position of one.
    by : {"columns", "sources"}, optional
        What has bars; by default columns where there are some.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure of the axes.
    bars_ : BarContainer
        The bars, from the top.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discernel import MultipleKernelDiscriminant
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> clf = MultipleKernelDiscriminant().fit(X, y)
    >>> display = ContributionsDisplay.from_estimator(clf, X[:1])
    >>> len(display.bars_)
    4
    """

    bars_: Any

    def __init__(
        self,
        contributions: Contributions,
        *,
        row: int = 0,
        label: Any = None,
        by: str | None = None,
    ) -> None:
        if by not in (None, "columns", "sources"):
            raise unknown_choice("by", by, ["columns", "sources"])
        if by == "columns" and contributions.columns is None:
            raise InvalidInputError(
                "by='columns' needs rows with columns. Got precomputed kernels, or rows that are "
                "no table; use by='sources'."
            )
        output, sign, (what, whose) = output_of(contributions, row, label)
        self.by = by or ("sources" if contributions.columns is None else "columns")
        self.names, values = terms_of(contributions, row, output, self.by)
        self.names = [name.replace("=", " = ", 1) for name in self.names]
        self.values: FloatArray = sign * values
        self.baseline = sign * float(contributions.baseline[output])
        self.score = sign * float(contributions.scores[row, output])
        self.what, self.is_log_odds = what + whose, what == "log-odds"
        self.compared_with = contributions.compared_with

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        background: Any = None,
        groups: Any = None,
        label: Any = None,
        by: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw why one row has its score.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted, as for `discernel.inspection.contributions`.
        X : array-like of shape (1, n_features) or (n_features,)
            One row.
        background : array-like of shape (n_background, n_features), optional
            What it is compared with; by default a typical row.
        groups : dict of str to columns, optional
            Sources as groups of columns; bars are then those of sources, unless ``by`` says
            otherwise.
        label : object, optional
            The class whose score is drawn; by default the predicted one.
        by : {"columns", "sources"}, optional
            What has bars; by default columns where there are some.
        ax : Axes, optional
            Where to draw; by default on a new figure.
        **options
            What `plot` takes.

        Returns
        -------
        ContributionsDisplay
            Drawn.
        """
        by = "sources" if by is None and groups is not None else by
        found = contributions(estimator, _one_row(X), background=background, groups=groups)
        return cls(found, label=label, by=by).plot(ax, **options)

    def plot(self, ax: Any = None, *, n_bars: int = 10, **bar_options: Any) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default on a new figure.
        n_bars : int, default=10
            How many columns or sources have bars of their own. All others share one, their sum.
        **bar_options
            What ``Axes.barh`` takes.

        Returns
        -------
        ContributionsDisplay
            Itself.
        """
        names, values = self._bars(check_count("n_bars", n_bars, 1))
        lines = [self.compared_with, *(wrap(name) for name in names), "this row"]
        text_lines = sum(0.14 + 0.16 * (line.count("\n") + 1) for line in lines)
        self._start(ax, height=0.8 + text_lines)
        ends = self.baseline + np.cumsum(values)
        starts, places = ends - values, np.arange(1, len(values) + 1)
        up, down = class_colors(2)
        colors = [up if value >= 0 else down for value in values]
        options = {"color": colors, "height": 0.65, **bar_options}
        self.bars_ = self.ax_.barh(places, values, left=starts, **options)
        for place, value, right in zip(places, values, np.maximum(starts, ends), strict=True):
            self._write(_number(value, "+"), right, place, 5.0)
        self.ax_.set_yticks(np.arange(len(lines)), lines)
        self.ax_.set_ylim(len(lines) - 0.4, -0.6)
        self._connect(np.array([self.baseline, *ends]))
        return self

    def _bars(self, n_bars: int) -> tuple[list[str], FloatArray]:
        """Return what is drawn, from the top."""
        order = np.argsort(-np.abs(self.values), kind="stable")
        order = order[: max(1, np.count_nonzero(self.values))]
        shown, others = order[:n_bars], order[n_bars:]
        names, values = [self.names[i] for i in shown], self.values[shown]
        if len(others):
            kind = self.by if len(others) > 1 else self.by.removesuffix("s")
            names.append(f"{len(others)} other {kind}")
            values = np.append(values, self.values[others].sum())
        return names, values

    def _connect(self, steps: FloatArray) -> None:
        """Draw where each bar ends and the next begins, both scores, and where decisions turn."""
        ink, tops = ink_color(), np.arange(len(steps))
        self.ax_.vlines(steps, tops, tops + 1, color=ink, linewidth=0.8, alpha=0.5, zorder=0)
        for score, place in ((steps[0], 0), (steps[-1], len(steps))):
            self.ax_.plot([score], [place], "o", color=ink, markersize=5)
            self._write(_number(score), score, place, 7.0)
        low, high = float(steps.min()), float(steps.max())
        room = (high - low) or 1.0  # for the numbers
        self.ax_.set_xlim(low - 0.06 * room, high + 0.16 * room)
        if self.is_log_odds and low < 0 < high:
            self.ax_.axvline(0.0, color=ink, linewidth=0.8, linestyle=":", zorder=0)
        self.ax_.set_xlabel(self.what)


def _one_row(X: Any) -> Any:
    """Return one row as a table, or raise a clear error."""
    if hasattr(X, "to_frame") and getattr(X, "ndim", 2) == 1:  # a row of a dataframe of pandas
        return X.to_frame().T.infer_objects()
    if np.ndim(X) == 1 and not hasattr(X, "columns") and not isinstance(X[0], str):
        return np.asarray(X)[None]
    n_rows = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    if n_rows != 1:
        raise InvalidInputError(
            f"One row is drawn. Got {n_rows}; give X[:1], or draw ContributionsDisplay("
            "contributions(estimator, X), row=i).plot()."
        )
    return X


def _number(value: float, sign: str = "") -> str:
    return f"{value:{sign}.2f}" if 0.1 <= abs(value) < 100 else f"{value:{sign}.2g}"
