"""Which columns matter, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from discernel.arrays import FloatArray
from discernel.displays.common import class_colors, fitted_learner, ink_color, make_axes, wrap
from discernel.exceptions import InvalidInputError
from discernel.inspection.explained import column_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ImportancesDisplay", "column_names"]


class ImportancesDisplay:
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

    ax_: Axes
    figure_: Any
    bars_: Any
    spread_: Any

    def __init__(
        self, importances: Any, *, std: Any = None, feature_names: Sequence[str] | None = None
    ) -> None:
        self.importances = np.atleast_2d(np.asarray(importances, dtype=np.float64))
        if self.importances.ndim != 2 or not self.importances.size:
            raise InvalidInputError(
                "The importances must have the shape (n_columns,) or (n_fits, n_columns). "
                f"Got {np.shape(importances)}."
            )
        n_fits, n_columns = self.importances.shape
        self.std = None if std is None else np.asarray(std, dtype=np.float64)
        if self.std is not None and (n_fits > 1 or self.std.shape != (n_columns,)):
            raise InvalidInputError(
                "std must have one number per column of one fit. Got shape "
                f"{np.shape(std)} for importances of shape {np.shape(importances)}."
            )
        names = (
            [f"column {i}" for i in range(n_columns)] if feature_names is None else feature_names
        )
        self.feature_names = list(map(str, names))
        if not len(set(self.feature_names)) == len(self.feature_names) == n_columns:
            raise InvalidInputError(
                f"There must be one name per column, all different, here {n_columns}. "
                f"Got {self.feature_names}."
            )

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **options: Any) -> Self:
        """Draw the importances of a fitted estimator, and their standard errors.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted, of discernel, to dense rows with columns; of a pipeline, the last step that
            learned a kernel.
        ax : Axes, optional
            Where to draw; by default on a new figure.
        **options
            What `plot` takes.

        Returns
        -------
        ImportancesDisplay
            Drawn.
        """
        learner = _with_importances(estimator)
        display = cls(
            learner.feature_importances_,
            std=learner.feature_importances_std_,
            feature_names=column_names(estimator),
        )
        return display.plot(ax, **options)

    @classmethod
    def from_estimators(cls, estimators: Sequence[Any], *, ax: Any = None, **options: Any) -> Self:
        """Draw the mean importances of several fits to the same columns, and their spread.

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
        ImportancesDisplay
            Drawn.
        """
        if not len(estimators):
            raise InvalidInputError("There must be at least one estimator. Got none.")
        names = [column_names(estimator) for estimator in estimators]
        if any(other != names[0] for other in names):
            raise InvalidInputError(
                f"The estimators must have the same columns. Got {names[0]} and others."
            )
        rows = [_with_importances(estimator).feature_importances_ for estimator in estimators]
        return cls(rows, feature_names=names[0]).plot(ax, **options)

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
        if not (isinstance(n_columns, (int, np.integer)) and n_columns >= 1):
            raise InvalidInputError(
                f"n_columns must be an integer of at least 1. Got {n_columns!r}."
            )
        lines = self._lines(int(n_columns))
        text_lines = max(name.count("\n") + 1 for name in lines.names)
        [self.ax_] = make_axes(ax, height=0.8 + (0.14 + 0.16 * text_lines) * len(lines.names))
        self.figure_ = self.ax_.figure
        options = {"color": class_colors(1)[0], "height": 0.65, **bar_options}
        self.bars_ = self.ax_.barh(lines.names, lines.means, **options)
        if len(lines.names) > n_columns:
            self.bars_[-1].set_alpha(0.5)  # a sum, not one column
        self.spread_ = self._draw_spread(lines)
        ends = lines.means + np.nan_to_num(lines.std)
        for name, mean, end in zip(lines.names, lines.means, ends, strict=True):
            self.ax_.annotate(
                _format(mean), (end, name), (6, 0), textcoords="offset points", va="center"
            )
        self.ax_.margins(x=0.2)
        self.ax_.set_xlim(left=0.0)
        self.ax_.set_xlabel("importance" + self._spread_words())
        self.ax_.set_ylim(max(self.ax_.get_yticks()) + 0.5, -0.5)
        return self

    def _lines(self, n_columns: int) -> _Lines:
        """Return what is drawn, from the top."""
        means = self.importances.mean(axis=0)
        order = np.argsort(-means, kind="stable")
        shown, others = order[:n_columns], order[n_columns:]
        names, rows = [wrap(self.feature_names[i]) for i in shown], self.importances[:, shown]
        if len(others):
            names.append("1 other column" if len(others) == 1 else f"{len(others)} other columns")
            rows = np.column_stack([rows, self.importances[:, others].sum(axis=1)])
        std = np.full(len(names), np.nan)
        if len(rows) > 1:
            std = rows.std(axis=0, ddof=1)
        elif self.std is not None:
            std[: len(shown)] = self.std[shown]
        return _Lines(names, rows.mean(axis=0), std)

    def _draw_spread(self, lines: _Lines) -> Any:
        """Draw one standard deviation to each side, but nothing below 0."""
        known = np.flatnonzero(np.isfinite(lines.std))
        if not len(known):
            return None
        means, std = lines.means[known], lines.std[known]
        low, high = np.maximum(means - std, 0.0), means + std
        names = [lines.names[i] for i in known]
        return self.ax_.hlines(names, low, high, color=ink_color(), linewidth=1.5, zorder=3)

    def _spread_words(self) -> str:
        if len(self.importances) > 1:
            return " ± standard deviation over fits"
        return "" if self.std is None else " ± standard error"


class _Lines(NamedTuple):
    """The names of all lines, their means, and their spread; NaN where it is not known."""

    names: list[str]
    means: FloatArray
    std: FloatArray


def _with_importances(estimator: Any) -> Any:
    learner = fitted_learner(estimator)
    if not hasattr(learner, "feature_importances_"):
        raise InvalidInputError(
            "The estimator must have feature_importances_, which a fit to dense rows with columns "
            f"has. Got {learner!r}, whose rows are sparse or whose kernels are precomputed. Use "
            "dense rows, or scikit-learn's permutation_importance."
        )
    return learner


def _format(importance: float) -> str:
    return "<0.1%" if 0 < importance < 0.0005 else f"{importance:.1%}"
