"""Scatter plots of discriminant coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import FloatArray
from discernel.displays.common import (
    MARKERS,
    Display,
    class_colors,
    ink_color,
    place_legend,
    wrap,
)
from discernel.exceptions import InvalidInputError
from discernel.inspection.explained import pipeline_steps

_ORDINALS = ("first", "second", "third")
#: Bins of the one-dimensional plot; rows of a bin are spread vertically.
_BINS = 40


class DiscriminantEmbeddingDisplay(Display):
    """Scatter plot of rows in two discriminant coordinates, by class.

    With a single coordinate, every class is a horizontal line, which is wider where rows are
    denser.

    Parameters
    ----------
    coordinates : array-like of shape (n_rows, n_components)
        Discriminant coordinates.
    labels : array-like of shape (n_rows,)
        Class of each row.
    classes : sequence, optional
        Classes in the order of the legend; by default sorted.
    held_out : array-like of bool of shape (n_rows,), optional
        Which rows are held out. Their markers are filled; those of training rows are then hollow.
    explained : sequence of float, optional
        Share of the between-class variance along each coordinate, for the axis labels.

    Attributes
    ----------
    ax_ : Axes
        Axes with the plot.
    figure_ : Figure
        Figure of the axes.
    scatters_ : dict of label to list of PathCollection
        Rows of each class: training rows and held-out rows, or all rows.
    means_ : dict of label to PathCollection
        Class means (of training rows, if known), drawn as large markers.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from discernel import KernelDiscriminant
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = make_pipeline(StandardScaler(), KernelDiscriminant()).fit(X, y)
    >>> display = DiscriminantEmbeddingDisplay.from_estimator(clf, X, y)
    >>> len(display.means_)
    3
    """

    scatters_: dict[Any, list[Any]]
    means_: dict[Any, Any]

    def __init__(
        self,
        coordinates: Any,
        labels: Any,
        *,
        classes: Sequence[Any] | None = None,
        held_out: Any = None,
        explained: Sequence[float] | None = None,
    ) -> None:
        self.coordinates = np.asarray(coordinates, dtype=np.float64)
        self.labels = np.asarray(labels)
        n_rows = len(self.coordinates)
        self.held_out = None if held_out is None else np.asarray(held_out, dtype=bool)
        self.explained = explained
        if self.coordinates.ndim != 2 or self.coordinates.size == 0:
            raise InvalidInputError(
                "The coordinates must have the shape (n_rows, n_components). "
                f"Got {self.coordinates.shape}."
            )
        for name, value in (("labels", self.labels), ("held_out", self.held_out)):
            if value is not None and value.shape != (n_rows,):
                raise InvalidInputError(
                    f"{name} must have one entry per row, here {n_rows}. Got shape {value.shape}."
                )
        found = np.unique(self.labels)
        self.classes = found if classes is None else np.asarray(classes)
        unknown = sorted(set(found.tolist()) - set(self.classes.tolist()), key=str)
        if unknown:
            raise InvalidInputError(
                f"Every label must be one of the classes {self.classes.tolist()}. Got {unknown}."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        X_held_out: Any = None,
        y_held_out: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw rows in the discriminant coordinates of a fitted estimator.

        Parameters
        ----------
        estimator : estimator or Pipeline
            A fitted discriminant with ``transform`` and ``classes_``, or a pipeline that ends with
            one.
        X : array-like of shape (n_rows, n_features)
            Rows to draw.
        y : array-like of shape (n_rows,)
            Classes of X.
        X_held_out : array-like of shape (n_held_out, n_features), optional
            Held-out rows, if X are training rows.
        y_held_out : array-like of shape (n_held_out,), optional
            Classes of the held-out rows.
        ax : Axes, optional
            Axes to draw on; by default a new figure.
        **options
            Options of `plot`.

        Returns
        -------
        DiscriminantEmbeddingDisplay
            The display.
        """
        check_is_fitted(estimator)
        if not (hasattr(estimator, "transform") and hasattr(estimator, "classes_")):
            raise InvalidInputError(
                "The estimator must be a discriminant, with transform and classes_, or a pipeline "
                f"that ends in one. Got {estimator!r}."
            )
        if (X_held_out is None) != (y_held_out is None):
            raise InvalidInputError("X_held_out and y_held_out must be given together. Got one.")
        coordinates, labels = np.asarray(estimator.transform(X)), np.asarray(y)
        held_out = None
        if X_held_out is not None:
            others = np.asarray(estimator.transform(X_held_out))
            held_out = np.repeat([False, True], [len(coordinates), len(others)])
            coordinates = np.concatenate([coordinates, others])
            labels = np.concatenate([labels, np.asarray(y_held_out)])
        *_, last = pipeline_steps(getattr(estimator, "best_estimator_", estimator))
        display = cls(
            coordinates,
            labels,
            classes=estimator.classes_,
            held_out=held_out,
            explained=getattr(last, "explained_variance_ratio_", None),
        )
        return display.plot(ax, **options)

    def plot(
        self, ax: Any = None, *, components: tuple[int, int] = (0, 1), **scatter_options: Any
    ) -> Self:
        """Draw the rows and the class means.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; by default a new figure.
        components : pair of int, default=(0, 1)
            Coordinates to draw, if there are several.
        **scatter_options
            Options of ``Axes.scatter``.

        Returns
        -------
        DiscriminantEmbeddingDisplay
            The display itself.
        """
        n_components = self.coordinates.shape[1]
        if n_components > 1 and not all(0 <= i < n_components for i in components):
            raise InvalidInputError(
                f"components must be two of the {n_components} coordinates, counted from 0. "
                f"Got {components!r}."
            )
        self._start(ax)
        if n_components == 1:
            self._draw_in_lines(scatter_options)
        else:
            self._draw_in_plane(components, scatter_options)
        if self.held_out is not None:
            self._explain_markers()
        where: Literal["beside", "best"] = "beside" if ax is None and n_components > 1 else "best"
        place_legend(self.ax_, where, markerscale=1.4, handlelength=1.0)
        return self

    def _draw_in_plane(self, components: tuple[int, int], scatter_options: dict[str, Any]) -> None:
        """Draw two coordinates; classes are named in the legend."""
        points = self.coordinates[:, list(components)]
        self._draw_rows(points, scatter_options)
        for code, (label, color) in enumerate(self._colored_classes()):
            self.scatters_[label][-1].set_label(wrap(str(label)))
            marker = MARKERS[code % len(MARKERS)]
            look = {"marker": marker, "facecolors": color, "edgecolors": ink_color()}
            self._draw_mean(label, points, s=80.0, linewidths=1.4, **look)
        self.ax_.set_xlabel(self._axis_label(components[0]))
        self.ax_.set_ylabel(self._axis_label(components[1]))

    def _draw_in_lines(self, scatter_options: dict[str, Any]) -> None:
        """Draw one coordinate, with one line per class."""
        x, names = self.coordinates[:, 0], [wrap(str(label)) for label in self.classes]
        codes = np.argmax(self.labels[:, None] == self.classes, axis=1)
        self._draw_rows(np.column_stack([x, codes + self._heights(codes)]), scatter_options)
        for label in self.classes:
            look = {"marker": "|", "color": ink_color()}
            self._draw_mean(label, np.column_stack([x, codes]), s=300.0, linewidths=2.0, **look)
        self.ax_.set_yticks(range(len(names)), names)
        self.ax_.set_ylim(len(names) - 0.5, -0.5)
        self.ax_.set_xlabel("discriminant")

    def _draw_rows(self, points: FloatArray, scatter_options: dict[str, Any]) -> None:
        """Draw the rows of every class with its colour and marker."""
        self.scatters_, self.means_ = {}, {}
        for code, (label, color) in enumerate(self._colored_classes()):
            common = {"marker": MARKERS[code % len(MARKERS)], "s": 18.0, "linewidths": 0.8}
            filled = {"facecolors": color, "edgecolors": "none", "alpha": 0.9}
            hollow = {"facecolors": "none", "edgecolors": color, "alpha": 0.6}
            rows = self.labels == label
            parts = [(rows, filled)]
            if self.held_out is not None:
                parts = [(rows & ~self.held_out, hollow), (rows & self.held_out, filled)]
            self.scatters_[label] = [
                self.ax_.scatter(*points[part].T, **{**common, **look, **scatter_options})
                for part, look in parts
            ]

    def _draw_mean(self, label: Any, points: FloatArray, **look: Any) -> None:
        """Draw the mean of a class, with a rim for contrast."""
        from matplotlib.patheffects import withStroke

        rows = self.labels == label
        if self.held_out is not None:
            rows = rows & ~self.held_out
        if rows.any():
            rim = withStroke(linewidth=4.0, foreground=self.ax_.get_facecolor())
            x, y = points[rows].mean(axis=0)
            self.means_[label] = self.ax_.scatter(x, y, zorder=3, path_effects=[rim], **look)

    def _colored_classes(self) -> list[tuple[Any, Any]]:
        return list(zip(self.classes, class_colors(len(self.classes)), strict=True))

    def _heights(self, codes: NDArray[np.intp]) -> FloatArray:
        """Return vertical offsets of rows from the line of their class, larger in dense bins.

        Training and held-out rows are counted separately, so that both are visible.
        """
        x, heights = self.coordinates[:, 0], np.zeros(len(codes))
        bins = np.searchsorted(np.linspace(x.min(), x.max(), _BINS + 1)[1:-1], x)
        held_out = np.zeros(len(codes), dtype=bool) if self.held_out is None else self.held_out
        for part in (held_out, ~held_out):
            counts = np.zeros((len(self.classes), _BINS), dtype=np.intp)
            np.add.at(counts, (codes[part], bins[part]), 1)
            for code, position in np.argwhere(counts > 1):
                rows = np.flatnonzero(part & (codes == code) & (bins == position))
                reach = 0.4 * len(rows) / counts.max()
                heights[rows[np.argsort(x[rows])]] = _spread(len(rows), reach)
        return heights

    def _explain_markers(self) -> None:
        """Add hollow and filled markers to the legend."""
        ink = ink_color()
        for name, face in (("training", "none"), ("held out", ink)):
            self.ax_.scatter([], [], 18.0, facecolors=face, edgecolors=ink, label=name)

    def _axis_label(self, component: int) -> str:
        ordinal = _ORDINALS[component] if component < len(_ORDINALS) else f"{component + 1}th"
        share = "" if self.explained is None else f" ({self.explained[component]:.0%})"
        return f"{ordinal} discriminant{share}"


def _spread(count: int, reach: float) -> FloatArray:
    """Return evenly spaced numbers from −reach to reach, with neighbours far apart."""
    steps = np.linspace(-reach, reach, count)
    golden = (np.sqrt(5.0) - 1.0) / 2.0
    return steps[np.argsort(np.arange(count) * golden % 1.0)]
