"""What ``criterion="auto"`` chose from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from discernel.displays.common import (
    LearnedDisplay,
    are_by_folds,
    candidate_name,
    class_colors,
    format_number,
    make_axes,
    place_legend,
)
from discernel.exceptions import InvalidInputError
from discernel.learn import Candidate, LearnedKernel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CandidatesDisplay"]

_ERROR, _PULL = "leave-one-out error", "pull to equal weights"


class CandidatesDisplay(LearnedDisplay):
    """Bars of what ``criterion="auto"`` considered: what left-out rows cost under each.

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
        What left-out rows cost, from the top.
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

    ax_: Axes
    figure_: Any
    error_bars_: Any
    pull_bars_: Any

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = tuple(candidates)
        if not self.candidates:
            raise InvalidInputError("There must be at least one candidate. Got none.")

    @classmethod
    def from_learned(cls, learned: LearnedKernel, *, ax: Any = None, **options: Any) -> Self:
        """Draw what `learn_kernel` considered.

        Parameters
        ----------
        learned : LearnedKernel
            Learned with ``criterion="auto"``.
        ax : Axes, optional
            Where to draw; by default on a new figure.
        **options
            What `plot` takes.

        Returns
        -------
        CandidatesDisplay
            Drawn.
        """
        if not learned.considered:
            raise InvalidInputError(
                "Only criterion='auto' chooses among candidates. Got a kernel learned with "
                f"criterion='{learned.criterion}', which considered nothing else."
            )
        return cls(learned.considered).plot(ax, **options)

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
        [self.ax_] = make_axes(ax, height=1.6 + 0.5 * len(self.candidates))
        self.figure_ = self.ax_.figure
        before = [tick.get_text() for tick in self.ax_.get_yticklabels()]
        labels = before if self.ax_.containers else []
        y = np.arange(len(self.candidates)) + len(labels)
        labels += [
            _label(candidate, is_chosen=position == 0)
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

    def _cost(self) -> str:
        if not are_by_folds(self.candidates):
            return "leave-one-out error + pull"
        if self.candidates[0].accuracy is None:
            return "squared error of left-out rows"
        return "log-loss of left-out rows (accuracy)"

    def _draw_bars(self, y: NDArray[np.intp], bar_options: dict[str, Any]) -> None:
        """Draw errors, pulls to the right of them where there are any, and numbers."""
        errors = [candidate.error for candidate in self.candidates]
        error_color, pull_color = class_colors(2)
        if are_by_folds(self.candidates):
            self.pull_bars_ = None
            self.error_bars_ = self.ax_.barh(y, errors, **{"color": error_color, **bar_options})
            self.ax_.bar_label(self.error_bars_, list(map(_number, self.candidates)), padding=4)
            return
        pulls = [candidate.pull for candidate in self.candidates]
        look = {"color": error_color, "label": _ERROR, **bar_options}
        self.error_bars_ = self.ax_.barh(y, errors, **look)
        look = {"color": pull_color, "label": _PULL, **bar_options}
        self.pull_bars_ = self.ax_.barh(y, pulls, left=errors, **look)
        for bar in self.pull_bars_:
            bar.sticky_edges.x.clear()  # a pull of 0 would leave no room for its label
        scores = [f"{candidate.score:z.3f}" for candidate in self.candidates]
        self.ax_.bar_label(self.pull_bars_, scores, padding=4)


def _number(candidate: Candidate) -> str:
    right = "" if candidate.accuracy is None else f" ({candidate.accuracy:.1%})"
    return f"{candidate.error:z.3f}{right}"


def _label(candidate: Candidate, *, is_chosen: bool) -> str:
    n_kernels = int(np.count_nonzero(candidate.weights))
    kernels = "1 kernel" if n_kernels == 1 else f"{n_kernels} kernels"
    name = candidate_name(candidate) + (" (chosen)" if is_chosen else "")
    return f"{name}\nλ = {format_number(candidate.regularization)}, {kernels}"
