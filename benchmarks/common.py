"""What the benchmarks share: the papers' data and kernels, machine facts, records."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from discernel.kernels import RBF

RECORDS = Path(__file__).parent / "records"

#: The ten widths of Kim 2006 and Ye 2008.
PAPER_WIDTHS = np.logspace(-1, 2, 10)


def paper_kernels() -> list[RBF]:
    """Return the ten Gaussian kernels exp(−d²/σ²) of both papers."""
    return [RBF(width=float(width)) for width in PAPER_WIDTHS]


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels of a data set, by name."""
    bundled = {"wine": load_wine, "wdbc": load_breast_cancer, "digits": load_digits}
    if name in bundled:
        return bundled[name](return_X_y=True)
    folder = os.environ.get("DISCERNEL_DATA")
    if not folder:
        sys.exit("Set DISCERNEL_DATA to the folder with the papers' data sets (CSV files).")
    table = np.genfromtxt(Path(folder) / f"{name}.csv", delimiter=",", dtype=str)[1:]
    return table[:, :-1].astype(float), table[:, -1]


def machine() -> dict[str, Any]:
    """Return what a reader needs to judge a time."""
    packages = ("discernel", "numpy", "scipy", "scikit-learn")
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def write_record(name: str, results: Any, *, path: Path | None = None, **settings: Any) -> None:
    """Write results, settings and machine facts to ``records/<name>.json``, or to a path."""
    path = RECORDS / f"{name}.json" if path is None else path
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "benchmark": name,
        "date": date.today().isoformat(),
        "settings": settings,
        "machine": machine(),
        "results": results,
    }
    # A list of numbers is one line: there is one number per partition.
    text = re.sub(
        r"\[[-+.\deE,\s]*\]",
        lambda numbers: " ".join(numbers[0].split()),
        json.dumps(record, indent=1),
    )
    path.write_text(text + "\n")
    print(f"\nwritten: {'benchmarks/records/' if path.parent == RECORDS else ''}{path.name}")
