"""Line plots of the solver's progress, and of weights and leave-one-out errors against λ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from discernel.arrays import FloatArray
from discernel.displays.common import (
    LINE_STYLES,
    MARKERS,
    LearnedDisplay,
    check_names,
    class_colors,
    ink_color,
    place_legend,
    wrap,
)
from discernel.exceptions import InvalidInputError
from discernel.inspection.explained import fitted_learner
from discernel.learn import LearnedKernel, Progress, RegularizationPath
from discernel.show.words import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _marked() -> dict[str, Any]:
    """Return the style of a line that marks a value."""
    return {"color": ink_color(), "linestyle": ":", "linewidth": 1.2}


class LearningPathDisplay(LearnedDisplay):
    """Line plot of the objective and, if there is a certificate, the gap per iteration.

    If several λ were tried, there is one line per λ, and the chosen one is highlighted.

    Parameters
    ----------
    history : sequence of Progress
        One entry per iteration.
    tol : float, optional
        Requested gap.
    regularization : float, optional
        Chosen λ.

    Attributes
    ----------
    ax_ : Axes
        First of `axes_`.
    axes_ : list of Axes
        Axes of the objective and of the gap, if drawn.
    figure_ : Figure
        Figure of the axes.
    objective_lines_, gap_lines_ : list of Line2D
        One line per λ; empty if not drawn.

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
    def _of(cls, estimators: Sequence[Any]) -> Self:
        display = super()._of(estimators)
        tol = fitted_learner(estimators[0]).get_params().get("tol")
        return cls(display.history, tol=tol, regularization=display.regularization)

    @classmethod
    def _of_learned(cls, learned: LearnedKernel) -> Self:
        if not learned.history:
            raise InvalidInputError(
                f"There must be at least one iteration to draw. criterion='{learned.criterion}' "
                "does not iterate."
            )
        return cls(learned.history, regularization=learned.regularization)

    def plot(self, ax: Any = None, *, tol: float | None = None, **line_options: Any) -> Self:
        """Draw the objective and the gap.

        Parameters
        ----------
        ax : Axes or pair of Axes, optional
            Axes to draw on; by default a new figure. With one axes, only the gap is drawn, or the
            objective if there is no gap; with two, the objective is on the first.
        tol : float, optional
            Requested gap; by default that of the display.
        **line_options
            Options of ``Axes.plot``.

        Returns
        -------
        LearningPathDisplay
            The display itself.

        Notes
        -----
        A gap of 0 is drawn at 2e-16, the rounding error: a logarithmic axis has no 0.
        """
        has_gap = all(progress.gap is not None for progress in self.history)
        self._start(ax, n_panels=1 + has_gap, xlabel="iteration")
        from matplotlib.ticker import MaxNLocator

        self.objective_lines_, self.gap_lines_ = [], []
        if len(self.axes_) == 2 or not has_gap:
            objectives = np.array([progress.objective for progress in self.history])
            self.objective_lines_ = self._draw(self.ax_, objectives, line_options)
            self.ax_.set_ylabel("objective")
            if len(self._stages()) > 1 and (objectives > 0).all():
                self.ax_.set_yscale("log")  # λ spans six powers of ten
        if has_gap:
            gaps = np.array([progress.gap for progress in self.history], dtype=np.float64)
            gaps = np.where(gaps > 0, gaps, np.finfo(np.float64).eps)
            self.gap_lines_ = self._draw(self.axes_[-1], gaps, line_options)
            self.axes_[-1].set(yscale="log", ylabel="certified gap")
            tol = self.tol if tol is None else tol
            if tol is not None:
                label = f"requested: {format_number(tol)}"
                self.axes_[-1].axhline(tol, label=label, **_marked())
            if ax is not None:
                self.axes_[-1].margins(y=0.25)  # space for the legend
            place_legend(self.axes_[-1], "above" if ax is None else "best")
        for panel in self.axes_:
            panel.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        return self

    def _stages(self) -> list[slice]:
        """Return the range of iterations of each λ."""
        stages = [progress.stage for progress in self.history]
        bounds = [0, *(np.flatnonzero(np.diff(stages)) + 1).tolist(), len(stages)]
        return [slice(a, b) for a, b in pairwise(bounds)]

    def _draw(self, ax: Axes, values: FloatArray, line_options: dict[str, Any]) -> list[Any]:
        """Draw one line per λ; if there are several, all but the chosen one are transparent."""
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


class RegularizationPathDisplay(LearnedDisplay):
    """Line plot of kernel weights and leave-one-out errors against λ, with the chosen λ marked.

    Parameters
    ----------
    regularizations : array-like of shape (n_regularizations,)
        Values of λ.
    errors : array-like of shape (n_regularizations,)
        Leave-one-out error of each λ.
    weights : array-like of shape (n_regularizations, n_kernels), optional
        Kernel weights for each λ.
    chosen : float, optional
        Chosen λ, marked by a vertical line.
    kernel_names : sequence of str, optional
        Names of the kernels; by default "kernel 0", "kernel 1", ...

    Attributes
    ----------
    ax_ : Axes
        First of `axes_`.
    axes_ : list of Axes
        Axes of the weights and of the errors, if drawn.
    figure_ : Figure
        Figure of the axes.
    weight_lines_ : list of Line2D
        One line per kernel with weight, named lines first; empty if not drawn.
    error_line_ : Line2D or None
        Line of the errors.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discernel import regularization_path
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(scale(X)) for kernel in rbf_ladder(4, center=8.0)]
    >>> path = regularization_path(grams, y, [1.0, 0.1, 0.01])
    >>> display = RegularizationPathDisplay.from_path(path)
    >>> display.error_line_.get_xdata().tolist()
    [1.0, 0.1, 0.01]
    """

    weight_lines_: list[Any]
    error_line_: Any

    def __init__(
        self,
        regularizations: Any,
        errors: Any,
        *,
        weights: Any = None,
        chosen: float | None = None,
        kernel_names: Sequence[str] | None = None,
    ) -> None:
        self.regularizations = np.asarray(regularizations, dtype=np.float64)
        self.errors = np.asarray(errors, dtype=np.float64)
        self.weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        self.chosen = chosen
        n = self.regularizations.size
        if self.regularizations.shape != (n,) or self.errors.shape != (n,) or n == 0:
            raise InvalidInputError(
                "There must be one error per λ, at least one. Got regularizations of shape "
                f"{self.regularizations.shape} and errors of shape {self.errors.shape}."
            )
        n_kernels = 0
        if self.weights is not None:
            if self.weights.ndim != 2 or len(self.weights) != n:
                raise InvalidInputError(
                    f"The weights must have the shape ({n}, n_kernels), one row per λ. "
                    f"Got {self.weights.shape}."
                )
            n_kernels = self.weights.shape[1]
        self.kernel_names = check_names(kernel_names, n_kernels, "kernel", unique=False)

    @classmethod
    def from_path(
        cls,
        path: RegularizationPath,
        *,
        kernel_names: Sequence[str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw a path returned by `regularization_path`.

        Parameters
        ----------
        path : RegularizationPath
            The path; the λ with the smallest error is marked.
        kernel_names : sequence of str, optional
            Names of the kernels; by default "kernel 0", "kernel 1", ...
        ax : Axes or pair of Axes, optional
            Axes to draw on; by default a new figure.
        **options
            Options of `plot`.

        Returns
        -------
        RegularizationPathDisplay
            The display.
        """
        display = cls(
            path.regularizations,
            path.leave_one_out_errors,
            weights=path.weights,
            chosen=path.best.regularization,
            kernel_names=kernel_names,
        )
        return display.plot(ax, **options)

    @classmethod
    def _of_learned(cls, learned: LearnedKernel) -> Self:
        # Only the weights of the chosen λ are kept, so no weights are drawn.
        if not learned.leave_one_out:
            raise InvalidInputError(
                "λ must have been chosen on a path, with regularization='loo' and a criterion "
                f"such as 'rkda'. Got criterion='{learned.criterion}', whose λ was given or "
                "learned with the weights. Use regularization_path to compute a path."
            )
        errors = learned.leave_one_out
        return cls(list(errors), list(errors.values()), chosen=learned.regularization)

    def plot(self, ax: Any = None, *, max_lines: int = 6, **line_options: Any) -> Self:
        """Draw weights and errors.

        Parameters
        ----------
        ax : Axes or pair of Axes, optional
            Axes to draw on; by default a new figure. With one axes, only the weights are drawn, or
            the errors if there are no weights; with two, the weights are on the first.
        max_lines : int, default=6
            Number of kernels with colours and names, by mean weight; the others are thin grey
            lines.
        **line_options
            Options of ``Axes.plot``.

        Returns
        -------
        RegularizationPathDisplay
            The display itself.
        """
        has_weights = self.weights is not None
        self._start(ax, n_panels=1 + has_weights, xlabel="λ")
        self.weight_lines_, self.error_line_ = [], None
        if has_weights:
            self.weight_lines_ = self._draw_weights(self.ax_, max_lines, line_options)
            self.ax_.set_ylabel("kernel weight")
            place_legend(self.ax_, "beside" if ax is None else "best")
        if len(self.axes_) == 2 or not has_weights:
            options = {"color": class_colors(1)[0], "marker": "o", "markersize": 4.0}
            [self.error_line_] = self.axes_[-1].plot(
                self.regularizations, self.errors, **{**options, **line_options}
            )
            self.axes_[-1].set_ylabel("leave-one-out error")
        for panel in self.axes_:
            panel.set_xscale("log")
            if self.chosen is not None:
                is_named = panel is self.axes_[-1] and self.error_line_ is not None
                label = f"chosen: λ = {format_number(self.chosen)}" if is_named else None
                panel.axvline(self.chosen, label=label, **_marked())
        if self.error_line_ is not None and self.chosen is not None:
            where: Literal["above", "best"] = "above" if ax is None and has_weights else "best"
            place_legend(self.axes_[-1], where)
        return self

    def _draw_weights(self, ax: Axes, max_lines: int, line_options: dict[str, Any]) -> list[Any]:
        assert self.weights is not None
        means = self.weights.mean(axis=0)
        order = [i for i in np.argsort(-means, kind="stable") if means[i] > 0]
        order = sorted(order[:max_lines]) + order[max_lines:]
        n_others = len(order) - max_lines
        colors, lines = class_colors(max_lines), []
        for rank, i in enumerate(order):
            if rank < max_lines:
                options = {
                    "color": colors[rank],
                    "marker": MARKERS[rank % len(MARKERS)],
                    "linestyle": LINE_STYLES[rank % len(LINE_STYLES)],
                    "markersize": 4.0,
                    "label": wrap(self.kernel_names[i]),
                }
            else:
                label = f"{n_others} others" if rank == max_lines else None
                options = {"color": "#888888", "linewidth": 0.8, "zorder": 1.0, "label": label}
            lines += ax.plot(
                self.regularizations, self.weights[:, i], **{**options, **line_options}
            )
        return lines
