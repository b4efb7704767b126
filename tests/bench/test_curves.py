"""The curves of time against rows and kernels, once with few of both."""

import sys
from dataclasses import asdict

from curves import Timing, draw_curves, measure_curves


def test_curves_are_measured_and_drawn(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "MKLpy", None)
    monkeypatch.setattr("curves._REPEATS", 2)
    monkeypatch.setattr("curves._ROWS", 100)
    points = measure_curves({"rows": (60, 80), "kernels": (2, 3)})
    assert {(point.axis, point.method, point.at) for point in points} == {
        *(("rows", method, n) for method in ("discernel", "one Cholesky") for n in (60, 80)),
        *(("rows", "SVC grid, 10 × 4 × 5", n) for n in (60, 80)),
        *(("kernels", "discernel", p) for p in (2, 3)),
    }
    assert all(len(point.seconds) == 2 and min(point.seconds) > 0 for point in points)
    draw_curves(points, tmp_path / "speed.png")
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")


def test_a_point_that_takes_long_is_measured_once(monkeypatch):
    monkeypatch.setattr("curves._ENOUGH", 0.0)
    monkeypatch.setattr("curves._ROWS", 100)
    monkeypatch.setitem(sys.modules, "MKLpy", None)
    (point,) = measure_curves({"kernels": (2,)})
    assert len(point.seconds) == 1
    assert Timing(**asdict(point)) == point
