"""Low rank against the exact fit: accuracy, time and what the model says it lost.

The default with ``bank="lowrank"`` (1,500 landmarks at most) and with ``bank="tiled"``, on the same
rows: four fifths of a data set, 5,000 at most. The time of either includes the choice of kernels,
which is the same for both; ``fit`` is what comes after it.

    python benchmarks/low_rank.py [data set ...]
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from common import load, write_record
from sklearn.model_selection import train_test_split

from discernel import MultipleKernelDiscriminant
from discernel.bank import LowRank
from discernel.exceptions import LowRankWarning

NAMES = ("digits", "waveform", "satimage", "usps")
N_DIVISIONS, MOST_ROWS, RANK = 3, 5000, 1500


def fitted(bank: str, X: Any, y: Any) -> tuple[MultipleKernelDiscriminant, float]:
    """Return the default with a bank, and the seconds that it took."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowRankWarning)
        chosen = LowRank(RANK) if bank == "lowrank" else bank
        clf = MultipleKernelDiscriminant(bank=chosen).fit(X, y)
    return clf, time.perf_counter() - started


def compare(name: str, seed: int) -> dict[str, Any]:
    """Return what both say of one division of a data set."""
    X, y = load(name)
    n = min(MOST_ROWS, int(0.8 * len(y)))
    X, X_new, y, y_new = train_test_split(X, y, train_size=n, stratify=y, random_state=seed)
    exact, exact_time = fitted("tiled", X, y)
    low, low_time = fitted("lowrank", X, y)
    started = time.perf_counter()
    exact_score = exact.score(X_new, y_new)
    middle = time.perf_counter()
    low_score = low.score(X_new, y_new)
    done = time.perf_counter()
    loss = low.low_rank_loss_
    return {
        "rows": n,
        "seed": seed,
        "exact": exact_score,
        "low_rank": low_score,
        "rank": loss.rank,
        "fit_time_ratio": low_time / exact_time,
        "predict_time_ratio": (done - middle) / (middle - started),
        "trace": float(loss.captured.min()),
        "leave_one_out": loss.leave_one_out,
        "leave_one_out_of_half": loss.leave_one_out_of_half,
        "advice": loss.advice,
    }


def main() -> None:
    """Compare, print a line per division and write the record."""
    names = sys.argv[1:] or list(NAMES)
    results: dict[str, Any] = {}
    for name in names:
        runs = [compare(name, seed) for seed in range(N_DIVISIONS)]
        lost = 100 * np.mean([run["exact"] - run["low_rank"] for run in runs])
        results[name] = {"divisions": runs, "points_lost": float(lost)}
        for run in runs:
            print(
                f"{name} {run['rows']} rows: exact {run['exact']:.2%}, low rank "
                f"{run['low_rank']:.2%}, fit {run['fit_time_ratio']:.2f}, predict "
                f"{run['predict_time_ratio']:.2f} of the time",
                flush=True,
            )
        print(f"{name}: {lost:.2f} points lost", flush=True)
    if not sys.argv[1:]:
        write_record("low_rank", results, rank=RANK, most_rows=MOST_ROWS, divisions=N_DIVISIONS)


if __name__ == "__main__":
    main()
