"""Fits with a time limit, on an idle machine and on a busy one: in time, and how good.

Every data set is fitted without a limit first, and then with limits from a fifth to twice of the
time that this took, of at least a second. Claims: no fit is refused, none is late by more than a
fifth of its limit, none predicts worse than the first stage (by more than two standard errors of
the difference), and with twice the time the predictions are those of the fit without a limit.

The load average of every fit is recorded: what else runs on the machine counts too.

``python deadlines.py`` is the whole, for a machine with 16 cores; ``python deadlines.py --rows 2000
8000 --load idle`` is a part of it. ``--record`` writes what was run, beside the recorded fits of
other numbers of rows and other loads.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from common import RECORDS, write_record
from forecasts import draw

from discernel import MultipleKernelDiscriminant

ROWS = (2000, 8000, 40_000, 280_000, 1_000_000)
#: Limits, as shares of the time of the fit without one.
SHARES = (0.2, 0.5, 1.0, 2.0)
LOADS = ("idle", "busy")
N_COLUMNS, N_CLASSES, N_NEW = 20, 3, 5000
LEAST_LIMIT = 1.0
#: Predictions that are the same up to rounding: banks differ in the last digits.
SAME = 1e-3


@contextmanager
def busy(n_processes: int) -> Iterator[None]:
    """Keep so many processes spinning."""
    processes = [
        multiprocessing.Process(target=spin, args=(os.getpid(),), daemon=True)
        for _ in range(n_processes)
    ]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()


def spin(parent: int) -> None:
    """Work until the parent process ends."""
    while os.getppid() == parent:
        sum(range(10_000))


def timed_fit(X: np.ndarray, y: np.ndarray, **options: Any) -> tuple[Any, float]:
    """Return a fitted classifier, None where the fit was refused, and the seconds it took."""
    clf, start = MultipleKernelDiscriminant(**options), time.perf_counter()
    try:
        clf.fit(X, y)
    except ValueError as error:
        print("refused:", error)
        return None, time.perf_counter() - start
    return clf, time.perf_counter() - start


def losses(clf: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the log-loss of every row."""
    proba = clf.predict_proba(X)
    return -np.log(np.maximum(proba[np.arange(len(y)), np.searchsorted(clf.classes_, y)], 1e-15))


def measure(n_rows: int, load: str, shares: list[float]) -> Iterator[dict[str, Any]]:
    """Yield one row per fit of a number of rows under a load."""
    X, y = draw(n_rows + N_NEW, N_COLUMNS, N_CLASSES)
    new, truth = X[n_rows:], y[n_rows:]
    X, y = X[:n_rows], y[:n_rows]
    with busy(2 * (os.cpu_count() or 1) if load == "busy" else 0):
        without, seconds = timed_fit(X, y)
        first, _ = timed_fit(X, y, max_time=1e-3)
        base, forecast = losses(first, new, truth), without.forecast_.seconds
        print(f"{n_rows:,} rows, {load}: {seconds:.1f} s, expected {forecast:.1f} s", flush=True)
        for share in shares:
            limit = max(LEAST_LIMIT, share * seconds)
            clf, taken = timed_fit(X, y, max_time=limit)
            found: dict[str, Any] = {
                "rows": n_rows,
                "load": load,
                "load_average": os.getloadavg()[0],
                "seconds_without": seconds,
                "forecast_ratio": seconds / forecast,
                "limit": limit,
                "seconds": taken,
                "refused": clf is None,
                "late_by": max(0.0, taken / limit - 1.0),
            }
            if clf is not None:
                found |= judged(clf, without, new, truth, base)
            yield found


def judged(
    clf: Any, without: Any, X: np.ndarray, y: np.ndarray, base: np.ndarray
) -> dict[str, Any]:
    """Return how good a fit is, against the first stage and the fit without a limit."""
    gains = base - losses(clf, X, y)
    error = float(gains.std(ddof=1) / np.sqrt(len(gains)))
    apart = float(np.abs(clf.predict_proba(X) - without.predict_proba(X)).max())
    return {
        "stages": [str(stage) for stage in clf.plan_.stages],
        "whole": clf.plan_.is_whole,
        "accuracy": clf.score(X, y),
        "accuracy_without": without.score(X, y),
        "log_loss_below_first_stage": float(gains.mean()),
        "worse_than_first_stage": bool(gains.mean() < -2.0 * error),
        "same_as_without": apart <= SAME,
    }


def summary(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the claims."""
    twice = [each for each in results if each["limit"] >= 2.0 * each["seconds_without"]]
    return {
        "fits": len(results),
        "refused": sum(each["refused"] for each in results),
        "late_by_more_than_a_fifth": sum(each["late_by"] > 0.2 for each in results),
        "worse_than_first_stage": sum(each.get("worse_than_first_stage", 0) for each in results),
        "twice_the_time": len(twice),
        "twice_the_time_and_the_same": sum(each.get("same_as_without", 0) for each in twice),
        "forecasts_within_a_factor_of_two": sum(
            0.5 <= each["forecast_ratio"] <= 2.0 for each in results
        ),
    }


def recorded() -> list[dict[str, Any]]:
    """Return the fits of the record; none where there is no record yet."""
    path = RECORDS / "deadlines.json"
    return json.loads(path.read_text(encoding="utf-8"))["results"]["fits"] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--load", nargs="+", choices=LOADS, default=LOADS)
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    timed_fit(*draw(500, N_COLUMNS, N_CLASSES))  # what is set up once
    results = recorded() if asked.record else []
    for load in asked.load:
        for n_rows in asked.rows:
            results = [each for each in results if (each["rows"], each["load"]) != (n_rows, load)]
            for found in measure(n_rows, load, list(asked.shares)):
                results.append(found)
                shown = {name: value for name, value in found.items() if name != "stages"}
                print(shown, *found.get("stages", []), sep="\n    ", flush=True)
            if asked.record:
                write_record("deadlines", {"summary": summary(results), "fits": results})
    print(summary(results))


if __name__ == "__main__":
    main()
