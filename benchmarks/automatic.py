"""The automatic choice of a bank against the exact fit: accuracy and time, on the same rows.

Five data sets of 1,280 to 7,400 training rows, 80 % each, five divisions. Claims: within 0.5 points
of the exact fit (``bank="tiled"``), and cheaper from 4,000 rows on. Needs ``DISCERNEL_DATA``.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from common import write_record
from rich.progress import track
from sklearn.model_selection import train_test_split
from tasks import TABLES, load_task

from discernel import MultipleKernelDiscriminant

DATA = ("phoneme", "satimage 1000", "usps 500", "wine red", "adult")
DIVISIONS = 5


def fit(rows: Any, y: np.ndarray, seed: int, bank: str) -> tuple[float, float, str, int]:
    train, test = train_test_split(np.arange(len(y)), train_size=0.8, random_state=seed, stratify=y)
    take = rows.iloc if isinstance(rows, pd.DataFrame) else rows
    start = time.perf_counter()
    model = MultipleKernelDiscriminant(bank=bank).fit(take[train], y[train])
    seconds = time.perf_counter() - start
    return 100 * model.score(take[test], y[test]), seconds, model.bank_, len(train)


def measure(name: str) -> dict[str, Any]:
    rows, y = load_task(name)
    found: dict[str, list[Any]] = {"auto": [], "tiled": []}
    for seed in track(range(DIVISIONS), description=name):
        for bank in found:
            found[bank].append(fit(rows, y, seed, bank))
    accuracy = {bank: np.array([one[0] for one in runs]) for bank, runs in found.items()}
    seconds = {bank: np.median([one[1] for one in runs]) for bank, runs in found.items()}
    return {
        "data": name if name in TABLES else name.split()[0],
        "rows": found["auto"][0][3],
        "bank": found["auto"][0][2],
        "accuracy": accuracy["auto"].mean(),
        "exact": accuracy["tiled"].mean(),
        "difference": (accuracy["auto"] - accuracy["tiled"]).mean(),
        "time_over_exact": seconds["auto"] / seconds["tiled"],
    }


def main() -> None:
    results = [measure(name) for name in DATA]
    for result in results:
        print(result)
    write_record("automatic", results, divisions=DIVISIONS)


if __name__ == "__main__":
    main()
