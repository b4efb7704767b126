"""Weights and leave-one-out error against λ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from discernel.displays.common import (
    LINE_STYLES,
    MARKERS,
    LearnedDisplay,
    class_colors,
    format_number,
    ink_color,
    make_axes,
    place_legend,
    wrap,
)
from discernel.exceptions import InvalidInputError
from discernel.learn import LearnedKernel, RegularizationPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RegularizationPathDisplay"]


class RegularizationPathDisplay(LearnedDisplay):
    """Kernel weights and leave-one-out error against λ, with the chosen λ marked.

    Parameters
    ----------
    regularizations : array-like of shape (n_regularizations,)
        The values of λ.
    errors : array-like of shape (n_regularizations,)
        The leave-one-out error of each.
    weights : array-like of shape (n_regularizations, n_kernels), optional
        The weights for each.
    chosen : float, optional
        The λ to mark.
    kernel_names : sequence of str, optional
        What the weights belong to; by default "kernel 0", "kernel 1", ...

    Attributes
    ----------
    ax_ : Axes
        The first of `axes_`.
    axes_ : list of Axes
        Those of the weights and of the errors, as far as they were drawn.
    figure_ : Figure
        The figure of the axes.
    weight_lines_ : list of Line2D
        One a kernel that ever has weight, those with a name first; empty where none was drawn.
    error_line_ : Line2D or None
        The errors.

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

    ax_: Axes
    axes_: list[Axes]
    figure_: Any
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
                "There must be one error a λ, at least one. Got regularizations of shape "
                f"{self.regularizations.shape} and errors of shape {self.errors.shape}."
            )
        n_kernels = 0
        if self.weights is not None:
            if self.weights.ndim != 2 or len(self.weights) != n:
                raise InvalidInputError(
                    f"The weights must have the shape ({n}, n_kernels), one row a λ. "
                    f"Got {self.weights.shape}."
                )
            n_kernels = self.weights.shape[1]
        default = [f"kernel {i}" for i in range(n_kernels)]
        self.kernel_names = default if kernel_names is None else list(map(str, kernel_names))
        if len(self.kernel_names) != n_kernels:
            raise InvalidInputError(
                f"There must be one name per kernel, here {n_kernels}. Got {self.kernel_names}."
            )

    @classmethod
    def from_path(
        cls,
        path: RegularizationPath,
        *,
        kernel_names: Sequence[str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw what `regularization_path` found.

        Parameters
        ----------
        path : RegularizationPath
            The path; the λ with the least error is marked.
        kernel_names : sequence of str, optional
            What the weights belong to; by default "kernel 0", "kernel 1", ...
        ax : Axes or pair of Axes, optional
            Where to draw; by default on a new figure.
        **options
            What `plot` takes.

        Returns
        -------
        RegularizationPathDisplay
            Drawn.
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
    def from_learned(cls, learned: LearnedKernel, *, ax: Any = None, **options: Any) -> Self:
        """Draw the leave-one-out errors by which `learn_kernel` chose λ.

        The weights of the chosen λ only are kept, so that none are drawn.

        Parameters
        ----------
        learned : LearnedKernel
            Learned with ``regularization="loo"`` and a criterion such as ``"rkda"``.
        ax : Axes, optional
            Where to draw; by default on a new figure.
        **options
            What `plot` takes.

        Returns
        -------
        RegularizationPathDisplay
            Drawn.
        """
        if not learned.leave_one_out:
            raise InvalidInputError(
                "λ must have been chosen on a path, with regularization='loo' and a criterion "
                f"such as 'rkda'. Got criterion='{learned.criterion}', whose λ was given or "
                "learned with the weights. Use regularization_path to compute a path."
            )
        errors = learned.leave_one_out
        display = cls(list(errors), list(errors.values()), chosen=learned.regularization)
        return display.plot(ax, **options)

    def plot(self, ax: Any = None, *, max_lines: int = 6, **line_options: Any) -> Self:
        """Draw weights and errors.

        Parameters
        ----------
        ax : Axes or pair of Axes, optional
            Where to draw; by default on a new figure. On one axes, only the weights are drawn, or
            the errors where there are no weights; on two, the weights on the first.
        max_lines : int, default=6
            Of more kernels with weight, those with the largest mean weight have colours and names,
            the others are thin lines.
        **line_options
            What ``Axes.plot`` takes.

        Returns
        -------
        RegularizationPathDisplay
            Itself.
        """
        has_weights = self.weights is not None
        self.axes_ = make_axes(ax, 2 if has_weights else 1)
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
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
                self._mark_chosen(panel)
        if self.error_line_ is not None and self.chosen is not None:
            where: Literal["above", "best"] = "above" if ax is None and has_weights else "best"
            place_legend(self.axes_[-1], where)
        for panel in self.axes_ if ax is not None else self.axes_[-1:]:
            panel.set_xlabel("λ")
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

    def _mark_chosen(self, ax: Axes) -> None:
        assert self.chosen is not None
        is_named = ax is self.axes_[-1] and self.error_line_ is not None
        label = f"chosen: λ = {format_number(self.chosen)}" if is_named else None
        ax.axvline(self.chosen, color=ink_color(), linestyle=":", linewidth=1.2, label=label)
