"""How the solver went: objective and certified gap."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from discernel.arrays import FloatArray
from discernel.displays.common import (
    LearnedDisplay,
    class_colors,
    format_number,
    ink_color,
    make_axes,
    place_legend,
)
from discernel.exceptions import InvalidInputError
from discernel.learn import LearnedKernel, Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LearningPathDisplay"]


class LearningPathDisplay(LearnedDisplay):
    """The objective of every iteration and, where there is a certificate, the gap.

    Where λ was chosen on a path, every λ is a line of its own, and the chosen one stands out.

    Parameters
    ----------
    history : sequence of Progress
        One entry an iteration.
    tol : float, optional
        The gap that was asked for.
    regularization : float, optional
        The λ that was chosen.

    Attributes
    ----------
    ax_ : Axes
        The first of `axes_`.
    axes_ : list of Axes
        Those of the objective and of the gap, as far as they were drawn.
    figure_ : Figure
        The figure of the axes.
    objective_lines_, gap_lines_ : list of Line2D
        One a stage; empty where they were not drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discernel import MultipleKernelDiscriminant
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = MultipleKernelDiscriminant(criterion="rkda", regularization=0.01).fit(scale(X), y)
    >>> display = LearningPathDisplay.from_estimator(clf)
    >>> bool(display.gap_lines_[0].get_ydata()[-1] == clf.gap_)
    True
    """

    ax_: Axes
    axes_: list[Axes]
    figure_: Any
    objective_lines_: list[Any]
    gap_lines_: list[Any]

    def __init__(
        self,
        history: Sequence[Progress],
        *,
        tol: float | None = None,
        regularization: float | None = None,
    ) -> None:
        self.history = list(history)
        self.tol = tol
        self.regularization = regularization
        if not self.history:
            raise InvalidInputError(
                "There must be at least one iteration to draw. Got an empty history."
            )

    @classmethod
    def from_learned(
        cls, learned: LearnedKernel, *, tol: float | None = None, ax: Any = None, **options: Any
    ) -> Self:
        """Draw how `learn_kernel` went.

        Parameters
        ----------
        learned : LearnedKernel
            Learned with a criterion that iterates.
        tol : float, optional
            The gap that was asked for.
        ax : Axes or pair of Axes, optional
            Where to draw; by default on a new figure.
        **options
            What `plot` takes.

        Returns
        -------
        LearningPathDisplay
            Drawn.
        """
        if not learned.history:
            raise InvalidInputError(
                f"There must be at least one iteration to draw. criterion='{learned.criterion}' "
                "has none: its weights are not iterated for."
            )
        display = cls(learned.history, tol=tol, regularization=learned.regularization)
        return display.plot(ax, **options)

    @classmethod
    def _asked(cls, learner: Any) -> dict[str, Any]:
        return {"tol": getattr(learner, "tol", None)}

    def plot(self, ax: Any = None, **line_options: Any) -> Self:
        """Draw the objective and the gap.

        Parameters
        ----------
        ax : Axes or pair of Axes, optional
            Where to draw; by default on a new figure. On one axes, only the gap is drawn, or the
            objective where there is no gap; on two, the objective on the first.
        **line_options
            What ``Axes.plot`` takes.

        Returns
        -------
        LearningPathDisplay
            Itself.

        Notes
        -----
        A gap of 0 is drawn at 2e-16, the rounding error: a logarithmic axis has no 0.
        """
        has_gap = all(progress.gap is not None for progress in self.history)
        self.axes_ = make_axes(ax, 2 if has_gap else 1)
        from matplotlib.ticker import MaxNLocator

        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        self.objective_lines_, self.gap_lines_ = [], []
        if len(self.axes_) == 2 or not has_gap:
            objectives = np.array([progress.objective for progress in self.history])
            self.objective_lines_ = self._draw(self.ax_, objectives, line_options)
            self.ax_.set_ylabel("objective")
            if len(self._stages()) > 1 and (objectives > 0).all():
                self.ax_.set_yscale("log")  # λ over six powers of ten
        if has_gap:
            gaps = np.array([progress.gap for progress in self.history], dtype=np.float64)
            gaps = np.where(gaps > 0, gaps, np.finfo(np.float64).eps)
            self.gap_lines_ = self._draw(self.axes_[-1], gaps, line_options)
            self.axes_[-1].set(yscale="log", ylabel="certified gap")
            self._draw_tolerance(self.axes_[-1], is_own=ax is None)
        for panel in self.axes_ if ax is not None else self.axes_[-1:]:
            panel.set_xlabel("iteration")
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        return self

    def _stages(self) -> list[slice]:
        """Return where on the axis of iterations each λ lies."""
        stages = [progress.stage for progress in self.history]
        bounds = [0, *(np.flatnonzero(np.diff(stages)) + 1).tolist(), len(stages)]
        return [slice(a, b) for a, b in pairwise(bounds)]

    def _draw(self, ax: Axes, values: FloatArray, line_options: dict[str, Any]) -> list[Any]:
        """Draw one line a λ; where there are several, the chosen one in full colour."""
        lines, stages, color = [], self._stages(), class_colors(1)[0]
        x = np.arange(len(values))
        for stage in stages:
            lam = self.history[stage.start].regularization
            options = {"color": color, "marker": "o", "markersize": 4.0}
            if len(stages) > 1 and lam is not None and lam == self.regularization:
                options["label"] = f"chosen: λ = {format_number(lam)}"
            elif len(stages) > 1:
                options["alpha"] = 0.4
            lines += ax.plot(x[stage], values[stage], **{**options, **line_options})
        return lines

    def _draw_tolerance(self, ax: Axes, *, is_own: bool) -> None:
        if self.tol is not None:
            label = f"asked for: {format_number(self.tol)}"
            ax.axhline(self.tol, color=ink_color(), linestyle=":", linewidth=1.2, label=label)
        place_legend(ax, "above" if is_own else "best")
