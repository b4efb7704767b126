"""Why one row has its score: bars from that of a typical row to its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from discernel.arrays import FloatArray
from discernel.displays.common import class_colors, ink_color, make_axes, wrap
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.inspection import Contributions, contributions
from discernel.inspection.words import output_of, terms_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ContributionsDisplay"]


class ContributionsDisplay:
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

    ax_: Axes
    figure_: Any
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
        if not (isinstance(n_bars, (int, np.integer)) and n_bars >= 1):
            raise InvalidInputError(f"n_bars must be an integer of at least 1. Got {n_bars!r}.")
        names, values = self._bars(int(n_bars))
        lines = [self.compared_with, *(wrap(name) for name in names), "this row"]
        text_lines = sum(0.14 + 0.16 * (line.count("\n") + 1) for line in lines)
        [self.ax_] = make_axes(ax, height=0.8 + text_lines)
        self.figure_ = self.ax_.figure
        ends = self.baseline + np.cumsum(values)
        starts, places = ends - values, np.arange(1, len(values) + 1)
        up, down = class_colors(2)
        colors = [up if value >= 0 else down for value in values]
        options = {"color": colors, "height": 0.65, **bar_options}
        self.bars_ = self.ax_.barh(places, values, left=starts, **options)
        self._connect(np.array([self.baseline, *ends]))
        self._annotate(values, starts, ends)
        self.ax_.set_yticks(np.arange(len(lines)), lines)
        self.ax_.set_ylim(len(lines) - 0.4, -0.6)
        self._frame(np.array([self.baseline, *ends]))
        return self

    def _frame(self, steps: FloatArray) -> None:
        """Make room for the numbers, and show where the decision turns."""
        low, high = float(steps.min()), float(steps.max())
        room = (high - low) or 1.0
        self.ax_.set_xlim(low - 0.06 * room, high + 0.16 * room)
        if self.is_log_odds and low < 0 < high:
            self.ax_.axvline(0.0, color=ink_color(), linewidth=0.8, linestyle=":", zorder=0)
        self.ax_.set_xlabel(self.what)

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
        """Draw where each bar ends and the next begins, and the two scores."""
        ink = ink_color()
        tops = np.arange(len(steps))
        self.ax_.vlines(steps, tops, tops + 1, color=ink, linewidth=0.8, alpha=0.5, zorder=0)
        ends = [(steps[0], 0), (steps[-1], len(steps))]
        for score, place in ends:
            self.ax_.plot([score], [place], "o", color=ink, markersize=5)
            self.ax_.annotate(
                _number(score), (score, place), (7, 0), textcoords="offset points", va="center"
            )

    def _annotate(self, values: FloatArray, starts: FloatArray, ends: FloatArray) -> None:
        """Write what each bar adds beside its end."""
        for place, (value, start, end) in enumerate(zip(values, starts, ends, strict=True), 1):
            right = max(start, end)
            self.ax_.annotate(
                _number(value, "+"), (right, place), (5, 0), textcoords="offset points", va="center"
            )


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
