"""How time grows with the number of rows and of kernels, ours beside that of others."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from bench import work
from sklearn.metrics.pairwise import rbf_kernel

from discernel.arrays import FloatArray
from discernel.compare.progress import progress_bar
from discernel.displays.common import pyplot
from discernel.kernels import RBF, Kernel, rbf_ladder
from discernel.rows.writing import write_file

__all__ = ["Timing", "draw_curves", "measure_curves"]

Axis = Literal["rows", "kernels"]


@dataclass(frozen=True)
class Timing:
    """The times of one method at one place.

    Attributes
    ----------
    axis : {"rows", "kernels"}
        What varies.
    method : str
        Who.
    at : int
        How many rows, or how many kernels.
    seconds : tuple of float
        One a repeat.
    """

    axis: Axis
    method: str
    at: int
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class _Line:
    """A method: what prepares it for one place, its looks, and the modules it needs."""

    method: str
    prepare: Callable[[int], Callable[[], Any]]
    color: str
    style: str
    needs: tuple[str, ...] = ()


#: At most so many repeats, and no further one after so many seconds.
_REPEATS, _ENOUGH = 5, 60.0
_INK, _OURS, _SVC, _EASY = "#333344", "#b5382a", "#2f6f9f", "#c68a17"
#: Rows where the kernels vary, and kernels where the rows do.
_ROWS, _KERNELS = 1000, 10


def spread_kernels(n_kernels: int) -> list[Kernel]:
    """Return Gaussian kernels of widths from 1/16 to 16 times the median distance."""
    return [RBF(width=f"{factor:.6g}*median") for factor in np.geomspace(1 / 16, 16, n_kernels)]


def _on_rows(method: Callable[[FloatArray, Any], Any]) -> Callable[[int], Callable[[], Any]]:
    def prepare(n: int) -> Callable[[], Any]:
        X, y = work.rows(n)
        return lambda: method(X, y)

    return prepare


def _on_kernels(
    method: Callable[[FloatArray, Any, int], Any],
) -> Callable[[int], Callable[[], Any]]:
    def prepare(n_kernels: int) -> Callable[[], Any]:
        X, y = work.rows(_ROWS)
        return lambda: method(X, y, n_kernels)

    return prepare


def _one_cholesky(n: int) -> Callable[[], Any]:
    K = rbf_kernel(work.rows(n)[0])
    return lambda: work.cholesky(K.copy())


_MKLPY = ("MKLpy", "torch")
_LINES: dict[Axis, tuple[_Line, ...]] = {
    "rows": (
        _Line("SVC grid, 10 × 4 × 5", _on_rows(work.svc_grid), _SVC, "s-"),
        _Line(
            "EasyMKL",
            _on_rows(lambda X, y: work.easymkl(X, y, work.ladder_widths())),
            _EASY,
            "D-",
            _MKLPY,
        ),
        _Line(
            "discernel", _on_rows(lambda X, y: work.fit(X, y, rbf_ladder(_KERNELS))), _OURS, "o-"
        ),
        _Line("one Cholesky", _one_cholesky, _INK, ":"),
    ),
    "kernels": (
        _Line(
            "EasyMKL",
            _on_kernels(lambda X, y, p: work.easymkl(X, y, work.spread_widths(p))),
            _EASY,
            "D-",
            _MKLPY,
        ),
        _Line(
            "discernel",
            _on_kernels(lambda X, y, p: work.fit(X, y, spread_kernels(p))),
            _OURS,
            "o-",
        ),
    ),
}
_PLACES: dict[Axis, tuple[int, ...]] = {
    "rows": (500, 1000, 2000, 4000),
    "kernels": (2, 5, 10, 20, 50, 100),
}


# ---- measuring ---------------------------------------------------------------------------------


def measure_curves(
    places: dict[Axis, tuple[int, ...]] | None = None, *, progress: bool = False
) -> list[Timing]:
    """Measure all methods that are installed, at all places.

    Parameters
    ----------
    places : dict, optional
        Numbers of rows and of kernels; by default up to 4,000 and 100.
    progress : bool, default=False
        Whether to show a bar.

    Notes
    -----
    At a place, the methods take turns, five times or until one has taken a minute in all.
    """
    places = _PLACES if places is None else places
    total = sum(len(some) for some in places.values())
    points: list[Timing] = []
    with progress_bar("curves", total, 0, progress) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for axis, some in places.items():
            for at in some:
                points += _measure(axis, at)
                bar.advance(f"{at:,} {axis}")
    return points


def _measure(axis: Axis, at: int) -> Iterator[Timing]:
    lines = [line for line in _LINES[axis] if all(find_spec(name) for name in line.needs)]
    works = {line.method: line.prepare(at) for line in lines}
    times: dict[str, list[float]] = {method: [] for method in works}
    if at == min(_PLACES[axis]):
        for each in works.values():
            each()  # loads libraries and starts threads
    for _ in range(_REPEATS):
        for method, each in works.items():
            if not times[method] or sum(times[method]) < _ENOUGH:
                times[method].append(work.seconds(each))
    for method, found in times.items():
        yield Timing(axis, method, at, tuple(found))


# ---- drawing -----------------------------------------------------------------------------------


def draw_curves(points: Sequence[Timing], path: str | Path) -> None:
    """Draw time against rows and against kernels: medians, with bars from least to most.

    Parameters
    ----------
    points : sequence of Timing
        From `measure_curves`.
    path : str or Path
        The image.
    """
    plt = pyplot()
    look = {"font.size": 10, "text.color": _INK, "axes.labelcolor": _INK}
    with plt.rc_context({**look, "figure.facecolor": "white", "axes.facecolor": "white"}):
        figure, panels = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
        for axes, axis in zip(panels, _LINES, strict=True):
            _draw_panel(axes, axis, [point for point in points if point.axis == axis])
        panels[0].set(
            title=f"{_KERNELS} kernels, more and more rows",
            xlabel="training rows",
            ylabel="seconds",
        )
        panels[1].set(
            title=f"{_ROWS:,} rows, more and more kernels", xlabel="kernels", ylabel="seconds"
        )
        for axes in panels:
            axes.title.set_fontweight("bold")
        drawn = io.BytesIO()
        figure.savefig(drawn, format=Path(path).suffix[1:] or "png", dpi=150)
        write_file(path, drawn.getvalue())
        plt.close(figure)


def _draw_panel(axes: Any, axis: Axis, points: Sequence[Timing]) -> None:
    axes.set(xscale="log", yscale="log")
    ends: list[tuple[float, int, _Line]] = []
    for line in _LINES[axis]:
        mine = [point for point in points if point.method == line.method]
        if not mine:
            continue
        x = [point.at for point in mine]
        times = [point.seconds for point in mine]
        middle = np.array([np.median(some) for some in times])
        bars = [middle - [min(some) for some in times], [max(some) for some in times] - middle]
        axes.errorbar(
            x, middle, bars, fmt=line.style, color=line.color, capsize=3, markersize=6, lw=1.8
        )
        ends.append((float(middle[-1]), x[-1], line))
    _name_ends(axes, ends)
    places = sorted({point.at for point in points})
    axes.set_xticks(places, [f"{place:,}" for place in places])
    low, high = axes.get_ylim()
    subs = (
        (1.0,) if high / low > 200.0 else (1.0, 2.0, 5.0)
    )  # few decades need more than their ends
    axes.yaxis.get_major_locator().set_params(subs=subs)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(axis="y", color="#e6e6ec", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _name_ends(axes: Any, ends: Iterable[tuple[float, int, _Line]]) -> None:
    """Write the names to the right of where the lines end, not above one another."""
    low, high = np.log10(axes.get_ylim())
    least = 0.06 * (high - low)
    below = -np.inf
    for value, x, line in sorted(ends, key=lambda end: end[0]):
        below = max(np.log10(value), below + least)
        axes.annotate(
            line.method,
            (x, 10.0**below),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            color=line.color,
            fontweight="bold" if line.color == _OURS else "normal",
            annotation_clip=False,
        )
