"""From sources to kernels to weights, in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from discernel.arrays import FloatArray
from discernel.displays.common import class_colors, fitted_learner, ink_color, make_axes, wrap
from discernel.displays.weights import common_names
from discernel.exceptions import InvalidInputError
from discernel.views import kernel_sources, sum_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SourcesDisplay"]

#: Heights of bars and the room between groups, in lines of text.
_SOURCE_HEIGHT, _KERNEL_HEIGHT, _GAP = 0.72, 0.5, 0.45


class _Line(NamedTuple):
    """One bar: of a source, or of a kernel below it."""

    label: str
    values: FloatArray
    source: int
    is_source: bool


class SourcesDisplay:
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

    ax_: Axes
    figure_: Any
    bars_: Any
    spread_: Any

    def __init__(
        self, weights: Any, sources: Sequence[str], *, kernel_names: Sequence[str] | None = None
    ) -> None:
        self.weights = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        if self.weights.ndim != 2 or not self.weights.size:
            raise InvalidInputError(
                "The weights must have the shape (n_kernels,) or (n_fits, n_kernels). "
                f"Got {np.shape(weights)}."
            )
        n_kernels = self.weights.shape[1]
        names = [f"kernel {i}" for i in range(n_kernels)] if kernel_names is None else kernel_names
        self.sources, self.kernel_names = list(map(str, sources)), list(map(str, names))
        if not len(self.sources) == len(self.kernel_names) == n_kernels:
            raise InvalidInputError(
                f"There must be one source and one name per kernel, here {n_kernels}. Got "
                f"{len(self.sources)} sources and {len(self.kernel_names)} names."
            )

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **options: Any) -> Self:
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted, of discernel, with kernels on columns; of a pipeline, the last step that learned
            a kernel.
        ax : Axes, optional
            Where to draw; by default on a new figure.
        **options
            What `plot` takes.

        Returns
        -------
        SourcesDisplay
            Drawn.
        """
        return cls.from_estimators([estimator], ax=ax, **options)

    @classmethod
    def from_estimators(cls, estimators: Sequence[Any], *, ax: Any = None, **options: Any) -> Self:
        """Draw the mean weights of several fits with the same kernels, and their spread.

        Parameters
        ----------
        estimators : sequence of estimators or Pipelines
            Fitted, for example ``weights_spread(clf, X, y).estimators``.
        ax : Axes, optional
            Where to draw; by default on a new figure.
        **options
            What `plot` takes.

        Returns
        -------
        SourcesDisplay
            Drawn.
        """
        learners = [fitted_learner(estimator) for estimator in estimators]
        if not learners:
            raise InvalidInputError("There must be at least one estimator. Got none.")
        weights = [learner.kernel_weights_ for learner in learners]
        sources = kernel_sources(learners[0].kernels_)
        return cls(weights, sources, kernel_names=common_names(learners)).plot(ax, **options)

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
        if not (isinstance(max_kernels, (int, np.integer)) and max_kernels >= 1):
            raise InvalidInputError(
                f"max_kernels must be an integer of at least 1. Got {max_kernels!r}."
            )
        lines = self._lines(int(max_kernels))
        places = np.cumsum([1.0 + _GAP * line.is_source for line in lines])
        [self.ax_] = make_axes(ax, height=0.75 + 0.27 * (places[-1] - places[0] + 1.0))
        self.figure_ = self.ax_.figure
        means = np.array([line.values.mean() for line in lines])
        self._draw_bars(lines, places, means, bar_options)
        ends = means + self._draw_spread(lines, places, means)
        for line, place, mean, end in zip(lines, places, means, ends, strict=True):
            text = "<0.01" if 0 < mean < 0.005 else f"{mean:.2f}"
            self.ax_.annotate(
                text if mean else "0",
                (end, place),
                (5, 0),
                textcoords="offset points",
                va="center",
                fontsize="medium" if line.is_source else "small",
            )
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
                label = _short(self.kernel_names[kernel], names[source])
                lines.append(_Line(label, self.weights[:, kernel], source, False))
            if others := own[len(shown) :].tolist():
                rest = self.weights[:, others].sum(axis=1)
                lines.append(_Line(f"{len(others)} others", rest, source, False))
        return lines

    def _draw_bars(
        self, lines: list[_Line], places: FloatArray, means: FloatArray, options: dict[str, Any]
    ) -> None:
        n_sources = 1 + max(line.source for line in lines)
        colors = class_colors(n_sources)
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


def _short(name: str, source: str) -> str:
    """Return the name of a kernel without that of its source."""
    return name.removeprefix(f"{source}: ").removesuffix(f" on {source}")
