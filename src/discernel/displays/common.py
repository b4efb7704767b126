"""Base classes of displays, bars, axes, colours and legends."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.exceptions import InvalidInputError, needs_extra
from discernel.inspection.explained import Explained
from discernel.learn import LearnedKernel
from discernel.show.words import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: The colour-blind safe palette of Okabe and Ito, without black and yellow, which are invisible on
#: dark or light backgrounds. Markers and line styles also differ, for print.
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "osD^vPX<>p"
LINE_STYLES = ("-", "--", "-.", ":")
#: Largest number of characters in a line: about a third of a page of 390 pixels.
_LONGEST_LINE = 28
#: Smallest number of characters in the last line of a name.
_SHORTEST_LINE = 4


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``, or raise an error that names the extra."""
    with needs_extra("Displays need matplotlib", "app"):
        import matplotlib.pyplot as plt
    return plt


def make_axes(ax: Any, n_panels: int = 1, height: float | None = None) -> list[Axes]:
    """Return the given axes, or axes of a new figure, one below the other.

    Parameters
    ----------
    ax : Axes, sequence of Axes or None
        One, or one per panel.
    n_panels : int, default=1
        Number of axes of a new figure.
    height : float, optional
        Height of a new figure in inches; by default that of the matplotlib style, and a quarter
        more with a second panel.
    """
    plt = pyplot()
    if ax is not None:
        given = np.ravel(np.asarray(ax, dtype=object)).tolist()
        if len(given) not in (1, n_panels):
            count = "one axes" if n_panels == 1 else f"one axes or {n_panels}"
            raise InvalidInputError(f"ax must be {count}. Got {len(given)}.")
        return given
    width, default = plt.rcParams["figure.figsize"]
    height = (0.75 + 0.25 * n_panels) * default if height is None else height
    _, axes = plt.subplots(
        n_panels, sharex=True, squeeze=False, figsize=(width, height), layout="constrained"
    )
    for panel in axes[:, 0]:
        panel.spines[["top", "right"]].set_visible(False)
    return list(axes[:, 0])


def class_colors(n_colors: int) -> list[Any]:
    """Return colours from the matplotlib style, or from our palette if the style is the default."""
    plt = pyplot()
    from matplotlib import rcParamsDefault

    cycle = plt.rcParams["axes.prop_cycle"]
    own = cycle.by_key().get("color", _PALETTE)
    palette = _PALETTE if cycle == rcParamsDefault["axes.prop_cycle"] else own
    return [palette[i % len(palette)] for i in range(n_colors)]


def ink_color() -> Any:
    """Return the text colour of the matplotlib style."""
    return pyplot().rcParams["text.color"]


def place_legend(ax: Axes, where: Literal["beside", "above", "best"], **options: Any) -> None:
    """Add a legend without duplicate labels; without labels, add none.

    "beside" and "above" are outside the axes, for figures made here; "best" is inside the axes.
    """
    unique: dict[str, Any] = {}
    for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
        unique.setdefault(label, handle)
    if not unique:
        return
    places: dict[str, dict[str, Any]] = {
        "beside": {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False},
        "above": {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "ncols": 2},
        "best": {"loc": "best"},
    }
    compact = {"fontsize": "small", "borderaxespad": 0.2, "borderpad": 0.2, "handlelength": 1.6}
    look = {**compact, **places[where], **options}
    ax.legend(list(unique.values()), list(unique), **look)


def wrap(name: str) -> str:
    """Return a name wrapped into lines of about 28 characters, not at no-break spaces."""
    lines = textwrap.wrap(name, _LONGEST_LINE)
    if len(lines) > 1 and len(lines[-1]) < _SHORTEST_LINE:  # such as a single bracket
        lines = textwrap.wrap(name, _LONGEST_LINE + _SHORTEST_LINE)
    return "\n".join(lines).replace("\u00a0", " ")


def check_names(
    given: Sequence[str] | None, n: int, noun: str, *, what: str = "name", unique: bool = True
) -> list[str]:
    """Return names of kernels or columns, numbered by default, or raise an error."""
    names = [f"{noun} {i}" for i in range(n)] if given is None else list(map(str, given))
    if len(names) != n or (unique and len(set(names)) != n):
        different = ", all different" if unique else ""
        raise InvalidInputError(
            f"There must be one {what} per {noun}{different}, here {n}. Got {names}."
        )
    return names


@dataclass(frozen=True, kw_only=True)
class DrawnBar:
    """A horizontal bar.

    Attributes
    ----------
    label : str
        Text to the left of the bar.
    value, start : float
        Length and start of the bar.
    text : str
        Text to the right of the bar.
    whisker : tuple of float, or None
        Ends of a line over the bar, such as an interval.
    reach : float
        Right end of other marks over the bar; the text is to the right of them.
    color : int
        Index of its colour.
    opacity, height : float
        Opacity, and height in lines.
    size : str
        Font size of both texts, as in matplotlib.
    """

    label: str = ""
    value: float
    start: float = 0.0
    text: str = ""
    whisker: tuple[float, float] | None = None
    reach: float = -np.inf
    color: int = 0
    opacity: float = 1.0
    height: float = 0.65
    size: str = "medium"

    @property
    def end(self) -> float:
        """Right end of everything drawn for the bar."""
        whisker = self.start if self.whisker is None else self.whisker[1]
        return max(self.start, self.start + self.value, whisker, self.reach)


class Display(ABC):
    """Base class of displays: data, and a `plot` method that draws them."""

    ax_: Axes
    axes_: list[Axes]
    figure_: Any

    @abstractmethod
    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw on given axes, or on a new figure."""

    def _start(
        self,
        ax: Any,
        lines: Sequence[str] = (),
        *,
        height: float | None = None,
        n_panels: int = 1,
        xlabel: str = "",
    ) -> None:
        """Set the axes; a new figure is high enough for all lines of text.

        Panels of a new figure share their x axis, which the last one names.
        """
        if lines:
            n_lines = [line.count("\n") + 1 for line in lines]
            widest = max(a + b for a, b in pairwise(n_lines)) if len(lines) > 1 else 2 * n_lines[0]
            height = 0.8 + (0.14 + 0.08 * widest) * len(lines)
        self.axes_ = make_axes(ax, n_panels, height)
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        for panel in self.axes_ if ax is not None else self.axes_[-1:]:
            panel.set_xlabel(xlabel or panel.get_xlabel())

    def _draw_bars(
        self,
        places: Sequence[Any] | NDArray[Any],
        bars: Sequence[DrawnBar],
        options: dict[str, Any],
    ) -> tuple[Any, Any]:
        """Draw bars with their texts at positions of the y axis; return bars and whiskers.

        ``options`` are options of ``Axes.barh``. Without whiskers, the second result is None.
        """
        colors = class_colors(1 + max(bar.color for bar in bars))
        look = {
            "left": [bar.start for bar in bars],
            "color": [colors[bar.color] for bar in bars],
            "height": [bar.height for bar in bars],
            **options,
        }
        drawn = self.ax_.barh(places, [bar.value for bar in bars], **look)
        self.ax_.locator_params(axis="x", nbins=6)  # so that tick labels do not touch
        for place, bar, patch in zip(places, bars, drawn, strict=True):
            if bar.opacity < 1.0 and "alpha" not in options:
                patch.set_alpha(bar.opacity)
            if bar.text:
                self._write(bar.text, bar.end, place, fontsize=bar.size)
        pairs = zip(places, bars, strict=True)
        lines = [(place, *bar.whisker) for place, bar in pairs if bar.whisker is not None]
        if not lines:
            return drawn, None
        at, low, high = map(list, zip(*lines, strict=True))
        look = {"color": ink_color(), "linewidth": 1.5, "zorder": 3}
        return drawn, self.ax_.hlines(at, low, high, **look)

    def _write(self, text: str, x: float, y: Any, **look: Any) -> None:
        """Write a text to the right of a point."""
        place: dict[str, Any] = {"textcoords": "offset points", "va": "center"}
        self.ax_.annotate(text, (x, y), (6.0, 0.0), **place, **look)


class FittedDisplay(Display):
    """A display of fitted estimators."""

    @classmethod
    @abstractmethod
    def _of(cls, estimators: Sequence[Any]) -> Self:
        """Return the display of fitted estimators, before it is drawn, or raise an error."""

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **options: Any) -> Self:
        """Draw a fitted estimator.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted estimator of discernel, or a pipeline with one; the last such step is drawn.
        ax : Axes or sequence of Axes, optional
            Axes to draw on, as in `plot`; by default a new figure.
        **options
            Options of `plot`.

        Returns
        -------
        display
            The display.
        """
        return cls._of([estimator]).plot(ax, **options)


class FitsDisplay(FittedDisplay):
    """A display of numbers per kernel or column, of one fit or several."""

    bars_: Any
    spread_: Any

    @staticmethod
    def _check(values: Any, what: str, noun: str) -> FloatArray:
        """Return numbers with one row per fit, or raise an error."""
        found = np.atleast_2d(np.asarray(values, dtype=np.float64))
        if found.ndim != 2 or not found.size:
            raise InvalidInputError(
                f"The {what} must have the shape (n_{noun}s,) or (n_fits, n_{noun}s). "
                f"Got {np.shape(values)}."
            )
        return found

    @classmethod
    def from_estimators(cls, estimators: Sequence[Any], *, ax: Any = None, **options: Any) -> Self:
        """Draw means and spread over several fits with the same kernels or columns.

        Parameters
        ----------
        estimators : sequence of estimators or Pipelines
            Fitted estimators, for example from ``cross_validate(..., return_estimator=True)``.
        ax : Axes, optional
            Axes to draw on; by default a new figure.
        **options
            Options of `plot`.

        Returns
        -------
        display
            The display.
        """
        if not len(estimators):
            raise InvalidInputError("There must be at least one estimator. Got none.")
        return cls._of(estimators).plot(ax, **options)

    def _draw_ranked(
        self, ax: Any, bars: Sequence[DrawnBar], xlabel: str, options: dict[str, Any]
    ) -> None:
        """Draw bars from top to bottom; bars with the same label share a line."""
        labels = [bar.label for bar in bars]
        self._start(ax, labels)
        self.bars_, self.spread_ = self._draw_bars(labels, bars, options)
        self.ax_.margins(x=0.2)
        self.ax_.set_xlabel(xlabel)
        self.ax_.set_ylim(max(self.ax_.get_yticks()) + 0.5, -0.5)


def rank_columns(
    names: Sequence[str], rows: FloatArray, n_shown: int, others: str, *, sort: bool = True
) -> tuple[list[str], FloatArray, NDArray[np.intp]]:
    """Return labels, values and positions of the ``n_shown`` columns with the largest |mean|.

    If there are more columns, one more label and column stand for their sum; its label has their
    number and the noun ``others``.
    """
    order = np.argsort(-np.abs(rows.mean(axis=0)), kind="stable")
    shown, rest = order[:n_shown], order[n_shown:]
    shown = shown if sort else np.sort(shown)
    labels, columns = [wrap(names[i]) for i in shown], rows[:, shown]
    if len(rest):
        labels.append(plural(len(rest), others))
        columns = np.column_stack([columns, rows[:, rest].sum(axis=1)])
    return labels, columns, shown


class LearnedDisplay(FittedDisplay):
    """A display of a `LearnedKernel`, from `learn_kernel` or from an estimator."""

    @classmethod
    @abstractmethod
    def _of_learned(cls, learned: LearnedKernel) -> Self:
        """Return the display of a learned kernel, before it is drawn, or raise an error."""

    @classmethod
    def _of(cls, estimators: Sequence[Any]) -> Self:
        return cls._of_learned(Explained.of(estimators[0], predicts=False).learned)

    @classmethod
    def from_learned(cls, learned: LearnedKernel, *, ax: Any = None, **options: Any) -> Self:
        """Draw a kernel that `learn_kernel` returned.

        Parameters
        ----------
        learned : LearnedKernel
            The learned kernel.
        ax : Axes or sequence of Axes, optional
            Axes to draw on, as in `plot`; by default a new figure.
        **options
            Options of `plot`.

        Returns
        -------
        display
            The display.
        """
        return cls._of_learned(learned).plot(ax, **options)
