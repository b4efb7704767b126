"""How fast a fit is, in units of what others take for the same, all in one run.

Runs every case of ``ratios.py`` and the curves of time against rows and kernels; writes the
record and ``docs/images/speed.png``. Peers: ``pip install MKLpy torch himalaya``; without them the
rest is measured and the record says so. ``python speed.py svc curves`` measures some anew, the
others stay in the record; ``python speed.py draw`` only draws what is recorded.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import chosen_cases, environment, run_cases
from common import RECORDS, write_record
from curves import Timing, draw_curves, measure_curves

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "speed.png"


def recorded() -> dict[str, Any]:
    """Return what has been measured so far."""
    path = RECORDS / "speed.json"
    if not path.exists():
        return {"cases": [], "curves": []}
    found: dict[str, Any] = json.loads(path.read_text())["results"]
    return found


def measure(names: list[str]) -> None:
    """Measure some cases, the others stay as they are in the record."""
    before, found = environment(), recorded()
    known = {case["case"]: case for case in found["cases"]}
    chosen = chosen_cases(["all"])
    failed = []
    for result in run_cases([c for c in chosen if c.name in names], progress=True):
        known[result.case] = {**asdict(result), "load": before["load_average"]}
        failed += [result.case] if result.failed else []
    found["cases"] = [known[case.name] for case in chosen if case.name in known]
    write_record("speed", found, before=before, after=environment())
    if "curves" in names:
        found["curves"] = [asdict(point) for point in measure_curves(progress=True)]
        write_record("speed", found, before=before, after=environment())
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def draw() -> None:
    draw_curves([Timing(**point) for point in recorded()["curves"]], PICTURE)
    print(f"written: docs/images/{PICTURE.name}")


if __name__ == "__main__":
    names = sys.argv[1:] or [*(case.name for case in chosen_cases(["all"])), "curves"]
    if names != ["draw"]:
        measure(names)
    if recorded()["curves"]:
        draw()
