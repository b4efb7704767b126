"""How fast a fit is, in units of what others take for the same, all in one run.

Runs every case of ``discernel bench`` and the curves of time against rows and kernels; writes the
record and ``docs/images/speed.png``. Peers: ``pip install MKLpy torch himalaya``; without them the
rest is measured and the record says so. ``python speed.py draw`` only draws what is recorded.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from common import RECORDS, write_record
from rich.console import Console

from discernel.bench import chosen_cases, environment, run_cases
from discernel.bench.curves import Point, draw_curves, measure_curves
from discernel.cli.show import show_benchmark

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "speed.png"


def measure() -> None:
    before = environment()
    results = list(run_cases(chosen_cases(["all"]), progress=True))
    show_benchmark(Console(highlight=False), results)
    found = {"cases": [asdict(result) for result in results], "curves": []}
    write_record("speed", found, before=before, after=environment())
    found["curves"] = [asdict(point) for point in measure_curves(progress=True)]
    write_record("speed", found, before=before, after=environment())
    failed = [result.case for result in results if result.failed]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def draw() -> None:
    record = json.loads((RECORDS / "speed.json").read_text())
    draw_curves([Point(**point) for point in record["results"]["curves"]], PICTURE)
    print(f"written: docs/images/{PICTURE.name}")


if __name__ == "__main__":
    if sys.argv[1:] != ["draw"]:
        measure()
    draw()
