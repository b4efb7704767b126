"""Prediction intervals: the share of new targets inside, their width, and what `expected_` claims.

`MultipleKernelRidge().predict_interval(X, coverage=0.9)` on ten data sets: diabetes, Boston
housing, puma32h, Friedman's three functions, and four made-up ones whose noise is large in one half
of the rows, grows with a column, is skewed, or has heavy tails. Beside it the same interval with
one width for all rows, from the same held-out errors, and on the first splits two peers: a Gaussian
process of scikit-learn (one width and noise by marginal likelihood, ±1.645 standard deviations) and
MAPIE's intervals of the same estimator (``--folds -1``: jackknife+, which fits n models; by
default CV+ of ten folds), if MAPIE is installed.

Targets: a coverage of 88 to 92 % on every set; a mean width of at most that of a peer, relative to
the standard deviation of the target; at most a tenth of MAPIE's time. Also recorded: how often the
95 % intervals of `expected_` contain what is found on the held-out rows, whose own standard error
is allowed for, and the mean square of errors divided by ``predict(X, return_std=True)``.

    python benchmarks/prediction_intervals.py --jobs 16
    python benchmarks/prediction_intervals.py --sets diabetes fan --splits 5
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import load, write_record
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from discernel import MultipleKernelRidge

COVERAGE = 0.9
#: Limits of the coverage on a set.
LEAST, MOST = 0.88, 0.92
#: Half widths of normal intervals, in standard deviations.
NORMAL_90, NORMAL_95 = 1.6449, 1.96
#: Rows of made-up sets, and held-out rows at most.
N_ROWS, MOST_TEST_ROWS = 2500, 2000

Data = tuple[np.ndarray, np.ndarray]


def housing() -> Data:
    X, y = load("boston_housing")
    return X, y.astype(float)


def puma() -> Data:
    folder = os.environ.get("DISCERNEL_DATA")
    if not folder:
        sys.exit("Set DISCERNEL_DATA to the folder with the data sets.")
    path = Path(folder) / "regression" / "puma32h.csv.gz"
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    return table[:, :-1], table[:, -1]


def halves() -> Data:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (N_ROWS, 4))
    noise = 0.05 + 0.6 * (X[:, 2] > 0)
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + noise * rng.standard_normal(N_ROWS)


def fan() -> Data:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N_ROWS, 5))
    noise = np.exp(0.8 * X[:, 0] - 1.0)
    return X, X[:, 0] * X[:, 1] + noise * rng.standard_normal(N_ROWS)


def skewed() -> Data:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((N_ROWS, 6))
    return X, X[:, 0] + 0.5 * X[:, 1] ** 2 + rng.exponential(1.0, N_ROWS)


def heavy() -> Data:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N_ROWS, 6))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.4 * rng.standard_t(3, N_ROWS)


#: Rows and targets, and the number of training rows.
SETS: dict[str, tuple[Callable[[], Data], int]] = {
    "diabetes": (lambda: load_diabetes(return_X_y=True), 300),
    "boston housing": (housing, 350),
    "puma32h": (puma, 1000),
    "friedman 1": (lambda: make_friedman1(N_ROWS, noise=1.0, random_state=0), 300),
    "friedman 2": (lambda: make_friedman2(N_ROWS, noise=50.0, random_state=0), 300),
    "friedman 3": (lambda: make_friedman3(N_ROWS, noise=0.1, random_state=0), 300),
    "halves": (halves, 400),
    "fan": (fan, 400),
    "skewed": (skewed, 300),
    "heavy": (heavy, 300),
}


def judge(ends: np.ndarray, y: np.ndarray, unit: float) -> dict[str, float]:
    """Return coverage, mean width and mean interval score, in units of the target's deviation.

    The interval score adds to the width 2/(1 − coverage) times the distance of targets outside.
    """
    low, high = ends.T
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    score = high - low + 2.0 / (1.0 - COVERAGE) * outside
    return {
        "coverage": float(np.mean((low <= y) & (y <= high))),
        "width": float(np.mean(high - low) / unit),
        "score": float(np.mean(score) / unit),
    }


def gaussian_process(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    scaler = StandardScaler().fit(X)
    width = float(np.sqrt(X.shape[1]))
    kernel = ConstantKernel() * RBF(width) + WhiteKernel(0.1)
    peer = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    mean, std = peer.fit(scaler.transform(X), y).predict(scaler.transform(new), return_std=True)
    return np.column_stack([mean - NORMAL_90 * std, mean + NORMAL_90 * std])


def mapie(X: np.ndarray, y: np.ndarray, new: np.ndarray, folds: int) -> np.ndarray | None:
    """Return MAPIE's intervals; None if it is not installed."""
    try:
        from mapie.regression import CrossConformalRegressor
    except ImportError:
        return None
    peer = CrossConformalRegressor(
        MultipleKernelRidge(), confidence_level=COVERAGE, method="plus", cv=folds
    )
    return np.asarray(peer.fit_conformalize(X, y).predict_interval(new)[1][:, :, 0])


def within(found: float, error: float, low: float, claimed: float, high: float) -> bool:
    """Whether what is found is in an interval, up to the standard error of what is found."""
    half = high - claimed if found > claimed else claimed - low
    return bool(abs(found - claimed) <= np.hypot(half, NORMAL_95 * error))


def claims(reg: MultipleKernelRidge, new: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Return what `expected_` and standard deviations claim, and what is found."""
    predicted, std = reg.predict(new, return_std=True)
    squares, deviations = (y - predicted) ** 2, (y - y.mean()) ** 2
    share, told = squares.mean() / deviations.mean(), reg.expected_
    root = float(np.sqrt(squares.mean()))
    of_root = root * np.std(squares / squares.mean()) / (2.0 * np.sqrt(len(y)))
    ratio = squares / squares.mean() - deviations / deviations.mean()
    of_share = share * np.std(ratio) / np.sqrt(len(y))
    return {
        "claimed": [told.r2, told.rmse],
        "found": [float(1.0 - share), root],
        "r2 within": within(1.0 - share, of_share, told.r2_low, told.r2, told.r2_high),
        "rmse within": within(root, of_root, told.rmse_low, told.rmse, told.rmse_high),
        "mean square of standardized errors": float(np.mean(squares / std**2)),
    }


def measure(name: str, seed: int, with_peers: bool, folds: int) -> dict[str, Any]:
    """Return what is found in one split of a set."""
    make, n_train = SETS[name]
    (X, y), found = make(), {}
    X, new, y, truth = train_test_split(X, y, train_size=n_train, random_state=seed)
    new, truth, unit = new[:MOST_TEST_ROWS], truth[:MOST_TEST_ROWS], float(np.std(y))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        reg = MultipleKernelRidge().fit(X, y)
        fitted = time.process_time()
        ends = reg.predict_interval(new, COVERAGE)
        seconds = {"fit": fitted - start, "intervals": time.process_time() - fitted}
        found["ours"] = judge(ends, truth, unit)
        head = reg.model_.head
        radius = float(np.median((ends[:, 1] - ends[:, 0]) / 2.0))
        if head.spread is not None:
            known = replace(head.held_out, spreads=np.ones_like(head.held_out.spreads))
            radius = float(known.radii(COVERAGE)[0])
        middle = ends.mean(axis=1)
        constant = np.column_stack([middle - radius, middle + radius])
        found["one width"] = judge(constant, truth, unit)
        found["claims"] = claims(reg, new, truth) | {"adapts": head.spread is not None}
        if with_peers:
            start = time.process_time()
            found["gaussian process"] = judge(gaussian_process(X, y, new), truth, unit)
            seconds["gaussian process"] = time.process_time() - start
            start = time.process_time()
            peer = mapie(X, y, new, folds)
            if peer is not None:
                found["mapie"] = judge(peer, truth, unit)
                seconds["mapie"] = time.process_time() - start
    return {"set": name, "n_train": n_train, "seconds": seconds} | found


def summarize(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means over the splits of a set."""
    found: dict[str, Any] = {"set": rows[0]["set"], "n_train": rows[0]["n_train"]}
    for kind in ("ours", "one width", "gaussian process", "mapie"):
        known = [row[kind] for row in rows if kind in row]
        if known:
            found[kind] = {key: float(np.mean([one[key] for one in known])) for key in known[0]}
    beside = [row for row in rows if "gaussian process" in row]
    if beside:
        found["ours beside peers"] = {
            key: float(np.mean([row["ours"][key] for row in beside])) for key in beside[0]["ours"]
        }
    coverage = [row["ours"]["coverage"] for row in rows]
    found["standard error"] = float(np.std(coverage, ddof=1) / np.sqrt(len(rows)))
    told = [row["claims"] for row in rows]
    for key in ("r2 within", "rmse within", "adapts", "mean square of standardized errors"):
        found[key] = float(np.mean([one[key] for one in told]))
    for key in ("claimed", "found"):
        found[f"R2 and error {key}"] = np.mean([one[key] for one in told], axis=0).tolist()
    for peer in ("gaussian process", "mapie"):
        ratios = [
            row["seconds"][peer] / (row["seconds"]["fit"] + row["seconds"]["intervals"])
            for row in rows
            if peer in row
        ]
        if ratios:
            found[f"{peer} / ours, time"] = float(np.median(ratios))
    return found


def verdicts(sets: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures that targets are set for, and whether these are met."""
    coverage = [one["ours"]["coverage"] for one in sets]
    found: dict[str, Any] = {
        "coverage, least and largest": [min(coverage), max(coverage)],
        "coverage: met": f"{sum(LEAST <= one <= MOST for one in coverage)} of {len(sets)}",
        "mean width, ours and one width": [
            float(np.mean([one[kind]["width"] for one in sets])) for kind in ("ours", "one width")
        ],
        "mean score, ours and one width": [
            float(np.mean([one[kind]["score"] for one in sets])) for kind in ("ours", "one width")
        ],
    }
    for key in ("r2 within", "rmse within"):
        found[key] = float(np.mean([one[key] for one in sets]))
    for peer in ("gaussian process", "mapie"):
        beside = [one for one in sets if peer in one]
        if beside:
            for key in ("width", "score"):
                pair = [
                    float(np.mean([one[kind][key] for one in beside]))
                    for kind in ("ours beside peers", peer)
                ]
                found[f"mean {key}, ours and {peer}"] = pair
            found[f"narrower than {peer}"] = sum(
                one["ours beside peers"]["width"] <= one[peer]["width"] for one in beside
            )
            covered = [one[peer]["coverage"] for one in beside]
            found[f"coverage of {peer}, least and largest"] = [min(covered), max(covered)]
            key = f"{peer} / ours, time"
            found[key] = float(np.median([one[key] for one in beside]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--peer-splits", type=int, default=2, help="splits that peers run on")
    parser.add_argument("--folds", type=int, default=10, help="folds of MAPIE; -1: one per row")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    cells = [
        (name, seed, seed < chosen.peer_splits, chosen.folds)
        for name, seed in product(chosen.sets, range(chosen.splits))
    ]
    results = []
    with ProcessPoolExecutor(chosen.jobs) as pool:
        found = pool.map(measure, *zip(*cells, strict=True))
        for name in chosen.sets:
            entry = summarize([next(found) for _ in range(chosen.splits)])
            results.append(entry)
            print(
                f"{name:14} "
                + "  ".join(
                    f"{kind} {100 * entry[kind]['coverage']:.1f} %, width "
                    f"{entry[kind]['width']:.3f}, score {entry[kind]['score']:.3f}"
                    for kind in ("ours", "one width", "gaussian process", "mapie")
                    if kind in entry
                ),
                flush=True,
            )
    told = verdicts(results)
    for key, value in told.items():
        print(f"{key}: {value}")
    settings = {"coverage": COVERAGE, "splits": chosen.splits, "peer_splits": chosen.peer_splits}
    results = {"verdicts": told, "sets": results}
    write_record("prediction_intervals", results, path=chosen.out, folds=chosen.folds, **settings)


if __name__ == "__main__":
    main()
