"""Bar charts of weights, sources, importances, candidates and contributions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, n_rows
from discernel.displays.common import (
    Display,
    DrawnBar,
    FitsDisplay,
    LearnedDisplay,
    check_names,
    ink_color,
    place_legend,
    rank_columns,
    wrap,
)
from discernel.exceptions import InvalidInputError, check_count, unknown_choice
from discernel.inspection import Contributions, contributions
from discernel.inspection.explained import Explained, fitted_learner
from discernel.inspection.facts import given_names
from discernel.inspection.source_weights import kernel_sources, sum_by
from discernel.inspection.words import RowScore, score_text
from discernel.learn import Candidate, LearnedKernel
from discernel.programs.solution import compared_by_folds
from discernel.show.words import format_number, plural

#: The gap between the bars of two sources, in lines of text.
_GAP = 0.45


# ---- weights -----------------------------------------------------------------------------------


class _WeightsDisplay(FitsDisplay):
    """Base class: kernel weights of one fit or several, with names and sources."""

    #: Whether kernel names must be unique.
    _unique: ClassVar[bool] = False

    def __init__(
        self,
        weights: Any,
        sources: Sequence[str] | None = None,
        *,
        kernel_names: Sequence[str] | None = None,
    ) -> None:
        self.weights = self._check(weights, "weights", "kernel")
        n = self.weights.shape[1]
        self.kernel_names = check_names(kernel_names, n, "kernel", unique=self._unique)
        self.sources = sources
        if sources is not None:
            self.sources = check_names(sources, n, "kernel", what="source", unique=False)

    @classmethod
    def _of(cls, estimators: Sequence[Any]) -> Self:
        learners = [fitted_learner(estimator) for estimator in estimators]
        names = [learner.kernel_names_ for learner in learners]
        if any(other != names[0] for other in names):
            # Widths such as "median" resolve to other numbers in every fit: use given kernels.
            names = [given_names(learner) for learner in learners]
        if any(other != names[0] for other in names):
            raise InvalidInputError(
                "The estimators must have the same candidate kernels. Got "
                + " and ".join(sorted({str(other) for other in names})[:2])
                + "."
            )
        # Means over targets with weights of their own.
        weights = [np.atleast_2d(each.kernel_weights_).mean(axis=0) for each in learners]
        sources = learners[0].kernels_
        return cls(weights, kernel_names=names[0], sources=kernel_sources(sources))


class KernelWeightsDisplay(_WeightsDisplay):
    """Bar chart of the kernel weights of one fit, or of their mean and spread over several fits.

    A weight says how much of a kernel is used, not how important the kernel or its source is: with
    a criterion such as ``"rkda"``, a source of pure noise can have a positive weight.

    Parameters
    ----------
    weights : array-like of shape (n_kernels,) or (n_fits, n_kernels)
        The weights.
    sources : sequence of str, optional
        Source of each kernel, needed for ``by="source"``.
    kernel_names : sequence of str, optional
        Unique names of the kernels; by default "kernel 0", "kernel 1", ...

    Attributes
    ----------
    ax_ : Axes
        Axes with the plot.
    figure_ : Figure
        Figure of the axes.
    bars_ : BarContainer
        The bars, from top to bottom.
    spread_ : LineCollection, PathCollection or None
        Quartiles or points of several fits.

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

    _unique = True

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

        If drawn twice on the same axes, bars with the same name share a line.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; by default a new figure.
        by : {"kernel", "source"}, default="kernel"
            One bar per kernel, or one bar per source with the sum of the weights of its kernels.
            Kernels on the same columns, by ``kernel.on(columns, name)``, are one source.
        sort : bool, default=True
            Whether to sort by weight, largest first.
        max_bars : int, default=12
            Largest number of bars. With more kernels, the last bar is the sum of the smallest
            weights; kernels without weight are always part of it.
        spread : {"quartiles", "points"} or None, default="quartiles"
            What to show for several fits besides the mean: a line between the quartiles, or a
            point per fit.
        **bar_options
            Options of ``Axes.barh``.

        Returns
        -------
        KernelWeightsDisplay
            The display itself.
        """
        if spread not in ("quartiles", "points", None):
            raise unknown_choice("spread", spread, ["quartiles", "points"])
        check_count("max_bars", max_bars, 2)
        every_name, weights = self._weights_by(by)
        n_shown = weights.shape[1]
        if n_shown > max_bars:
            n_shown = min(max_bars - 1, int(np.count_nonzero(weights.mean(axis=0))))
        names, columns, shown = rank_columns(every_name, weights, n_shown, "other", sort=sort)
        is_several, means = len(columns) > 1, columns.mean(axis=0).tolist()
        quartiles = np.quantile(columns, [0.25, 0.75], axis=0).T.tolist()
        tops = columns.max(axis=0).tolist()
        bars = [
            DrawnBar(
                label=name,
                value=means[i],
                text=_weight_text(means[i]),
                whisker=quartiles[i] if is_several and spread == "quartiles" else None,
                reach=tops[i] if is_several and spread == "points" else -np.inf,
                opacity=1.0 if i < len(shown) else 0.5,
            )
            for i, name in enumerate(names)
        ]
        what = "kernel weight" if by == "kernel" else "weight of all kernels of a source"
        if is_several:
            shows = {"quartiles": ", with quartiles", "points": ", and every fit", None: ""}
            what += f"\nmean of {len(columns)} fits{shows[spread]}"
        self._draw_ranked(ax, bars, what, bar_options)
        if is_several and spread == "points":
            look = {"s": 14, "facecolors": "none", "edgecolors": ink_color(), "linewidths": 0.8}
            places = names * len(columns)
            self.spread_ = self.ax_.scatter(columns.ravel(), places, zorder=3, **look)
        return self

    def _weights_by(self, by: str) -> tuple[list[str], FloatArray]:
        """Return the names and weights of all kernels, or of all sources."""
        if by == "kernel":
            return self.kernel_names, self.weights
        if by != "source":
            raise unknown_choice("by", by, ["kernel", "source"])
        if self.sources is None:
            raise InvalidInputError(
                "by='source' needs the source of each kernel. Got no sources. Draw a fitted "
                "estimator, or give sources to the display."
            )
        return sum_by(self.sources, self.weights)


def _weight_text(weight: float) -> str:
    if weight == 0:
        return "0"
    return "<0.01" if weight < 0.005 else f"{weight:.2f}"


# ---- sources -----------------------------------------------------------------------------------


class SourcesDisplay(_WeightsDisplay):
    """Bar chart of the weight of each source, with the weights of its kernels below.

    A weight says how much of a source is used in the learned kernel, not how important the source
    is: with some criteria a source of pure noise can have a positive weight.

    Parameters
    ----------
    weights : array-like of shape (n_kernels,) or (n_fits, n_kernels)
        Kernel weights.
    sources : sequence of str
        Source of each kernel.
    kernel_names : sequence of str, optional
        Names of the kernels; by default "kernel 0", "kernel 1", ...

    Attributes
    ----------
    ax_ : Axes
        Axes with the plot.
    figure_ : Figure
        Figure of the axes.
    bars_ : BarContainer
        The bars, from top to bottom.
    spread_ : LineCollection or None
        Lines of ± one standard deviation over several fits.

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

    sources: list[str]

    def __init__(
        self, weights: Any, sources: Sequence[str], *, kernel_names: Sequence[str] | None = None
    ) -> None:
        super().__init__(weights, sources, kernel_names=kernel_names)

    def plot(self, ax: Any = None, *, max_kernels: int = 4, **bar_options: Any) -> Self:
        """Draw the bars, the source with the largest weight at the top.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; by default a new figure.
        max_kernels : int, default=4
            Number of bars for the kernels of a source, the largest weights first. The other
            kernels of the source share one bar, their sum.
        **bar_options
            Options of ``Axes.barh``.

        Returns
        -------
        SourcesDisplay
            The display itself.
        """
        check_count("max_kernels", max_kernels)
        bars = self._bars(max_kernels)
        n_lines = [1 + bar.label.count("\n") for bar in bars]
        steps = [0.5 * (a + b) for a, b in pairwise([n_lines[0], *n_lines])]
        gaps = [_GAP * (bar.size == "medium") for bar in bars]
        places = np.cumsum(np.add(steps, gaps))
        self._start(ax, height=0.75 + 0.27 * (places[-1] - places[0] + 1.0))
        self.bars_, self.spread_ = self._draw_bars(places, bars, bar_options)
        self.ax_.set_yticks(places, [bar.label for bar in bars])
        for bar, text in zip(bars, self.ax_.get_yticklabels(), strict=True):
            text.set_fontsize(bar.size)
            text.set_fontweight("bold" if bar.size == "medium" else "normal")
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_ylim(places[-1] + 0.6, places[0] - 0.6)
        self.ax_.margins(x=0.15)
        self.ax_.set_xlim(left=0.0)
        n_fits, what = len(self.weights), "weight of a source, and of its kernels"
        spread = f"\nmean of {n_fits} fits ± standard deviation" if n_fits > 1 else ""
        self.ax_.set_xlabel(what + spread)
        return self

    def _bars(self, max_kernels: int) -> list[DrawnBar]:
        """Return the bars from top to bottom: each source, then smaller bars for its kernels."""
        names, totals = sum_by(self.sources, self.weights)
        bars = []
        for source in np.argsort(-totals.mean(axis=0), kind="stable").tolist():
            mean, std, name = totals[:, source].mean(), totals[:, source].std(), names[source]
            whisker = (max(mean - std, 0.0), mean + std) if len(totals) > 1 else None
            text = _weight_text(mean)
            look: dict[str, Any] = {"whisker": whisker, "color": source, "height": 0.72}
            bars.append(DrawnBar(label=wrap(name), value=mean, text=text, **look))
            own = [i for i, one in enumerate(self.sources) if one == name]
            kernels = [self.kernel_names[i].removeprefix(f"{name}: ") for i in own]
            kernels = [kernel.removesuffix(f" on {name}") for kernel in kernels]
            # A single remaining kernel needs no more space than a bar for others.
            n_shown = len(own) if len(own) <= max_kernels + 1 else max_kernels
            labels, columns, _ = rank_columns(kernels, self.weights[:, own], n_shown, "other")
            look = {"color": source, "opacity": 0.45, "height": 0.5, "size": "small"}
            bars += [
                DrawnBar(label=label, value=value, text=_weight_text(value), **look)
                for label, value in zip(labels, columns.mean(axis=0).tolist(), strict=True)
            ]
        return bars


# ---- importances -------------------------------------------------------------------------------


class ImportancesDisplay(FitsDisplay):
    """Bar chart of the column importances of one fit or several.

    The importance of a column is its share of the increase of the held-out loss when columns are
    shuffled. It describes the model, not causes. If several columns carry the same information, one
    may have the importance of all.

    Parameters
    ----------
    importances : array-like of shape (n_columns,) or (n_fits, n_columns)
        Importances; several fits are drawn as mean and standard deviation.
    std : array-like of shape (n_columns,), optional
        Standard error of each importance; only for one fit.
    feature_names : sequence of str, optional
        Unique names of the columns; by default "column 0", "column 1", ...

    Attributes
    ----------
    ax_ : Axes
        Axes with the plot.
    figure_ : Figure
        Figure of the axes.
    bars_ : BarContainer
        The bars, from top to bottom.
    spread_ : LineCollection or None
        Lines of ± one standard deviation, if known.

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
        rows = []
        for each in found:
            if each.model.facts.importances is None:
                raise InvalidInputError(
                    "The estimator must have feature_importances_, which a fit to dense rows with "
                    f"columns has. Got {each.learner!r}, whose rows are sparse or whose kernels "
                    "are precomputed. Use dense rows, or scikit-learn's permutation_importance."
                )
            importances, std = each.model.facts.importances.found
            rows.append(importances)
        return cls(rows, std=std if len(rows) == 1 else None, feature_names=names[0])

    def plot(self, ax: Any = None, *, n_columns: int = 15, **bar_options: Any) -> Self:
        """Draw the bars, the most important column at the top.

        If drawn twice on the same axes, bars with the same name share a line.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; by default a new figure.
        n_columns : int, default=15
            Number of columns with their own bars; the others share one bar, their sum. The spread
            of this sum is known only for several fits.
        **bar_options
            Options of ``Axes.barh``.

        Returns
        -------
        ImportancesDisplay
            The display itself.
        """
        check_count("n_columns", n_columns)
        ranked = rank_columns(self.feature_names, self.importances, n_columns, "other column")
        names, rows, shown = ranked
        means, std = rows.mean(axis=0).tolist(), np.full(len(names), np.nan)
        about = ""
        if len(rows) > 1:
            std, about = rows.std(axis=0, ddof=1), " ± standard deviation over fits"
        elif self.std is not None:
            std[: len(shown)], about = self.std[shown], " ± standard error"
        bars = [
            DrawnBar(
                label=name,
                value=mean,
                text="<0.1%" if 0 < mean < 0.0005 else f"{mean:.1%}",
                whisker=None if np.isnan(error) else (max(mean - error, 0.0), mean + error),
                opacity=1.0 if i < len(shown) else 0.5,
            )
            for i, (name, mean, error) in enumerate(zip(names, means, std.tolist(), strict=True))
        ]
        self._draw_ranked(ax, bars, "importance" + about, bar_options)
        self.ax_.set_xlim(left=0.0)
        self.ax_.xaxis.set_major_formatter("{x:.0%}")
        return self


# ---- candidates --------------------------------------------------------------------------------


class CandidatesDisplay(LearnedDisplay):
    """Bar chart of the candidates of ``criterion="auto"``: the held-out loss of each.

    With ``kernels="auto"``, the loss is the log-loss of held-out folds (with the accuracy beside
    it), or the squared error of a regression. A more complex candidate (column scales, learned
    weights) must win by more than one standard error. With given kernels, bars show the
    leave-one-out error and a penalty for unequal weights, the pull; the smallest sum is chosen.

    Parameters
    ----------
    candidates : sequence of Candidate
        Candidates, the chosen one first.

    Attributes
    ----------
    ax_ : Axes
        Axes with the plot.
    figure_ : Figure
        Figure of the axes.
    error_bars_ : BarContainer
        Bars of the held-out loss, from top to bottom.
    pull_bars_ : BarContainer or None
        Bars of the penalty for unequal weights; None with ``kernels="auto"``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discernel import MultipleKernelDiscriminant
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = MultipleKernelDiscriminant().fit(scale(X), y)
    >>> display = CandidatesDisplay.from_estimator(clf)
    >>> len(display.error_bars_)
    4
    """

    error_bars_: Any
    pull_bars_: Any

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = tuple(candidates)
        if not self.candidates:
            raise InvalidInputError("There must be at least one candidate. Got none.")

    @classmethod
    def _of_learned(cls, learned: LearnedKernel) -> Self:
        if not learned.considered:
            raise InvalidInputError(
                "Only criterion='auto' has candidates. Got a kernel learned with "
                f"criterion='{learned.criterion}'."
            )
        return cls(learned.considered)

    def plot(self, ax: Any = None, **bar_options: Any) -> Self:
        """Draw the bars, the chosen one at the top.

        If drawn twice on the same axes, the second set is below the first.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; by default a new figure.
        **bar_options
            Options of ``Axes.barh``.

        Returns
        -------
        CandidatesDisplay
            The display itself.
        """
        by_folds = compared_by_folds(self.candidates)
        facts = [candidate.describe(by_folds) for candidate in self.candidates]
        self._start(ax, height=1.6 + 0.5 * len(facts))
        before = [tick.get_text() for tick in self.ax_.get_yticklabels()]
        labels = before if self.ax_.containers else []
        places = np.arange(len(facts)) + len(labels)
        for position, each in enumerate(facts):
            mark = " (chosen)" if position == 0 else ""
            size = f"λ = {format_number(each.regularization)}, {plural(each.n_kernels, 'kernel')}"
            labels.append(f"{wrap(each.name)}{mark}\n{size}")
        self._draw_losses(places, by_folds, {"height": 0.6, **bar_options})
        what = "squared error of held-out rows"
        if not by_folds:
            what = "leave-one-out error + pull"
        elif facts[0].accuracy is not None:
            what = "log-loss of held-out rows (accuracy)"
        self.ax_.margins(x=0.45 if by_folds else 0.25)
        self.ax_.set_xlabel(what)
        self.ax_.set_yticks(range(len(labels)), labels)
        # One more line at the bottom for the legend.
        self.ax_.set_ylim(len(labels) + (-0.4 if by_folds else 0.6), -0.5)
        place_legend(self.ax_, "best", loc="lower right", frameon=False)
        return self

    def _draw_losses(
        self, places: NDArray[np.intp], by_folds: bool, options: dict[str, Any]
    ) -> None:
        """Draw the bars of losses and, if candidates were not compared by folds, of pulls."""
        errors, pulls = [], []
        for position, each in enumerate(self.candidates):
            opacity = 1.0 if position == 0 else 0.6  # to highlight the chosen one
            right = "" if each.accuracy is None else f" ({each.accuracy:.1%})"
            text = f"{each.error:z.3f}{right}" if by_folds else ""
            errors.append(DrawnBar(value=each.error, text=text, opacity=opacity))
            look: dict[str, Any] = {"start": each.error, "color": 1, "opacity": opacity}
            pulls.append(DrawnBar(value=each.pull, text=f"{each.score:z.3f}", **look))
        label = {} if by_folds else {"label": "leave-one-out error"}
        self.error_bars_, _ = self._draw_bars(places, errors, {**label, **options})
        self.pull_bars_ = None
        if not by_folds:
            label = {"label": "pull to equal weights"}
            self.pull_bars_, _ = self._draw_bars(places, pulls, {**label, **options})
            for bar in self.pull_bars_:
                bar.sticky_edges.x.clear()  # else a pull of 0 leaves no space for its label


# ---- contributions -----------------------------------------------------------------------------


class ContributionsDisplay(Display):
    """Waterfall chart of the contributions of columns or sources to the score of one row.

    From top to bottom: the score of a typical row, the contribution of each column (largest first),
    and the score of the row. Every bar begins where the bar above ends.

    Parameters
    ----------
    contributions : Contributions
        Result of `discernel.inspection.contributions`.
    row : int, default=0
        Position of the row among the explained rows.
    label : object, optional
        Class whose score is drawn; by default the predicted class. For a regression with several
        targets, the position of a target.
    by : {"columns", "sources"}, optional
        What the bars stand for; by default columns, or sources if rows have no columns.

    Attributes
    ----------
    ax_ : Axes
        Axes with the plot.
    figure_ : Figure
        Figure of the axes.
    bars_ : BarContainer
        The bars, from top to bottom.

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
        score = RowScore.of(contributions, row, label)
        self.by = by or ("sources" if contributions.columns is None else "columns")
        names, self.values = score.terms(self.by)
        # A no-break space, so that no line breaks between the name and the cell.
        self.names = [name.replace("=", " =\u00a0", 1) for name in names]
        self.baseline, self.score = score.baseline, score.value
        self.what, self.is_log_odds = score.kind + score.suffix, score.kind == "log-odds"
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
        """Draw the contributions to the score of one row.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted, as for `discernel.inspection.contributions`.
        X : array-like of shape (1, n_features) or (n_features,)
            One row.
        background : array-like of shape (n_background, n_features), optional
            Rows to compare with; by default a typical row.
        groups : dict of str to columns, optional
            Sources as groups of columns; the bars then stand for sources, unless ``by`` is given.
        label : object, optional
            Class whose score is drawn; by default the predicted class.
        by : {"columns", "sources"}, optional
            What the bars stand for; by default columns, or sources if rows have no columns.
        ax : Axes, optional
            Axes to draw on; by default a new figure.
        **options
            Options of `plot`.

        Returns
        -------
        ContributionsDisplay
            The display.
        """
        by = "sources" if by is None and groups is not None else by
        found = contributions(estimator, _one_row(X), background=background, groups=groups)
        return cls(found, label=label, by=by).plot(ax, **options)

    def plot(self, ax: Any = None, *, n_bars: int = 10, **bar_options: Any) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; by default a new figure.
        n_bars : int, default=10
            Number of columns or sources with their own bars; the others share one, their sum.
        **bar_options
            Options of ``Axes.barh``.

        Returns
        -------
        ContributionsDisplay
            The display itself.
        """
        check_count("n_bars", n_bars)
        moving = np.flatnonzero(self.values) if self.values.any() else np.arange(1)
        noun = f"other {self.by.removesuffix('s')}"
        named, terms = [self.names[i] for i in moving], self.values[None, moving]
        names, (values,), _ = rank_columns(named, terms, n_bars, noun)
        ends = self.baseline + np.cumsum(values)
        bars = [
            DrawnBar(value=value, start=start, text=_score_text(value, "+"), color=int(value < 0))
            for value, start in zip(values.tolist(), (ends - values).tolist(), strict=True)
        ]
        lines = [self.compared_with, *names, "this row"]
        self._start(ax, lines)
        self.bars_, _ = self._draw_bars(np.arange(1, len(bars) + 1), bars, bar_options)
        self.ax_.set_yticks(np.arange(len(lines)), lines)
        self.ax_.set_ylim(len(lines) - 0.4, -0.6)
        self._connect(np.array([self.baseline, *ends]))
        return self

    def _connect(self, steps: FloatArray) -> None:
        """Draw connections between bars, the first and last score, and the decision threshold."""
        ink, tops = ink_color(), np.arange(len(steps))
        self.ax_.vlines(steps, tops, tops + 1, color=ink, linewidth=0.8, alpha=0.5, zorder=0)
        for score, place in ((steps[0], 0), (steps[-1], len(steps))):
            self.ax_.plot([score], [place], "o", color=ink, markersize=5)
            self._write(_score_text(score), score, place)
        low, high = float(steps.min()), float(steps.max())
        room = (high - low) or 1.0  # for the numbers
        self.ax_.set_xlim(low - 0.06 * room, high + 0.2 * room)
        if self.is_log_odds and low < 0 < high:
            self.ax_.axvline(0.0, color=ink, linewidth=0.8, linestyle=":", zorder=0)
            for text in self.ax_.texts:  # else the line crosses them
                text.set_bbox(
                    {"facecolor": self.ax_.get_facecolor(), "edgecolor": "none", "pad": 0.5}
                )
        self.ax_.set_xlabel(self.what)


def _one_row(X: Any) -> Any:
    """Return a table with one row, or raise an error."""
    is_flat = np.ndim(X) == 1
    if is_flat and hasattr(X, "to_frame"):  # a row of a pandas DataFrame
        return X.to_frame().T.infer_objects()
    if is_flat and not isinstance(X[0], str):
        return np.asarray(X)[None]
    if n_rows(X) != 1:
        raise InvalidInputError(
            f"X must have one row. Got {n_rows(X)}. Pass X[:1], or use ContributionsDisplay("
            "contributions(estimator, X), row=i).plot()."
        )
    return X


def _score_text(value: float, sign: str = "") -> str:
    return score_text(value, sign).replace("-", "−")  # the minus sign of axes
