"""The learned weights as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from discernel.arrays import FloatArray
from discernel.displays.common import (
    class_colors,
    fitted_learner,
    given_names,
    ink_color,
    kernel_sources,
    make_axes,
    sum_by,
    wrap,
)
from discernel.exceptions import InvalidInputError, unknown_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["KernelWeightsDisplay", "common_names"]


class KernelWeightsDisplay:
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

    ax_: Axes
    figure_: Any
    bars_: Any
    spread_: Any

    def __init__(
        self,
        weights: Any,
        *,
        kernel_names: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
    ) -> None:
        self.weights = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        if self.weights.ndim != 2 or not self.weights.size:
            raise InvalidInputError(
                "The weights must have the shape (n_kernels,) or (n_fits, n_kernels). "
                f"Got {np.shape(weights)}."
            )
        n_kernels = self.weights.shape[1]
        default = [f"kernel {i}" for i in range(n_kernels)]
        self.kernel_names = default if kernel_names is None else list(map(str, kernel_names))
        if len(set(self.kernel_names)) != n_kernels or len(self.kernel_names) != n_kernels:
            raise InvalidInputError(
                f"There must be one name per kernel, all different, here {n_kernels}. "
                f"Got {self.kernel_names}."
            )
        self.sources = None if sources is None else list(map(str, sources))
        if self.sources is not None and len(self.sources) != n_kernels:
            raise InvalidInputError(
                f"There must be one source per kernel, here {n_kernels}. Got {self.sources}."
            )

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **options: Any) -> Self:
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted, of discernel; of a pipeline, the last step that learned a kernel.
        ax : Axes, optional
            Where to draw; by default on a new figure.
        **options
            What `plot` takes.

        Returns
        -------
        KernelWeightsDisplay
            Drawn.
        """
        return cls.from_estimators([estimator], ax=ax, **options)

    @classmethod
    def from_estimators(cls, estimators: Sequence[Any], *, ax: Any = None, **options: Any) -> Self:
        """Draw the mean weights of several fits with the same candidates, and their spread.

        Parameters
        ----------
        estimators : sequence of estimators or Pipelines
            Fitted, for example those of ``cross_validate(..., return_estimator=True)``.
        ax : Axes, optional
            Where to draw; by default on a new figure.
        **options
            What `plot` takes.

        Returns
        -------
        KernelWeightsDisplay
            Drawn.
        """
        learners = [fitted_learner(estimator) for estimator in estimators]
        if not learners:
            raise InvalidInputError("There must be at least one estimator. Got none.")
        weights = [learner.kernel_weights_ for learner in learners]
        kernels = getattr(learners[0], "kernels_", None)
        display = cls(
            weights,
            kernel_names=common_names(learners),
            sources=None if kernels is None else kernel_sources(kernels),
        )
        return display.plot(ax, **options)

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
        names, columns = _lines(every_name, weights, sort, max_bars)
        text_lines = max(name.count("\n") + 1 for name in names)
        [self.ax_] = make_axes(ax, height=0.8 + (0.14 + 0.16 * text_lines) * len(names))
        self.figure_ = self.ax_.figure
        self.spread_ = None
        means = columns.mean(axis=0)
        options = {"color": class_colors(1)[0], "height": 0.65, **bar_options}
        self.bars_ = self.ax_.barh(names, means, **options)
        if len(names) < len(every_name):
            self.bars_[-1].set_alpha(0.5)  # a sum of what has no line of its own
        ends = self._draw_spread(names, columns, spread) if len(columns) > 1 else means
        for name, mean, end in zip(names, means, ends, strict=True):
            self.ax_.annotate(
                _format(mean), (end, name), (6, 0), textcoords="offset points", va="center"
            )
        self.ax_.margins(x=0.2)
        what = "kernel weight" if by == "kernel" else "weight of all kernels of a source"
        self.ax_.set_xlabel(what if len(columns) == 1 else f"mean {what}")
        self.ax_.set_ylim(max(self.ax_.get_yticks()) + 0.5, -0.5)
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
            self.spread_ = self.ax_.scatter(
                columns.ravel(),
                names * len(columns),
                s=14,
                facecolors="none",
                edgecolors=color,
                linewidths=0.8,
                zorder=3,
            )
            return np.asarray(columns.max(axis=0))
        return means


def _lines(
    every_name: Sequence[str], weights: FloatArray, sort: bool, max_bars: int
) -> tuple[list[str], FloatArray]:
    """Return the names and weights of all lines, from the top."""
    if not (isinstance(max_bars, (int, np.integer)) and max_bars >= 2):
        raise InvalidInputError(f"max_bars must be an integer of at least 2. Got {max_bars!r}.")
    means = weights.mean(axis=0)
    order = np.argsort(-means, kind="stable")
    n_shown = len(order)
    if n_shown > max_bars:
        n_shown = min(max_bars - 1, int(np.count_nonzero(means)))
    shown, others = order[:n_shown], order[n_shown:]
    shown = shown if sort else np.sort(shown)
    names, columns = [wrap(every_name[i]) for i in shown], weights[:, shown]
    if len(others):
        names.append(f"{len(others)} others")
        columns = np.column_stack([columns, weights[:, others].sum(axis=1)])
    return names, columns


def common_names(learners: list[Any]) -> list[str]:
    """Return the names of the kernels: those with numbers where all fits have the same."""
    names: list[str] = learners[0].kernel_names_
    if all(learner.kernel_names_ == names for learner in learners):
        return names
    # Widths such as "median" are other numbers in every fit: take the kernels as they were given.
    given = [given_names(learner) for learner in learners]
    if any(other != given[0] for other in given):
        raise InvalidInputError(
            "The estimators must have the same candidate kernels. Got "
            + " and ".join(sorted({str(other) for other in given})[:2])
            + "."
        )
    return given[0]


def _format(weight: float) -> str:
    if weight == 0:
        return "0"
    return "<0.01" if weight < 0.005 else f"{weight:.2f}"
