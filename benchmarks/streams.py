"""Rows that do not fit into memory: time of both passes, peak memory and accuracy.

Rows of 20 columns are written to Parquet files, a part at a time; the class follows from a smooth
function of seven of them by chance, so that the least error of any rule is known. A process of its
own fits the default to the folder, and another histogram gradient boosting to the same rows in
memory, up to a million. The default in memory on 5,000 of the rows is what there was without
streams. Test rows are drawn anew.

``python streams.py 250000`` measures one size; only the whole is recorded.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import write_record

SIZES = (250_000, 1_000_000, 10_000_000)
N_COLUMNS, PART, N_TEST = 20, 100_000, 50_000
#: Rows of the fit in memory, and the most that boosting is given.
FEW, MOST = 5_000, 1_000_000
#: The time that more rows are given.
MAX_TIME = "15m"


def draw(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, classes and the probability of the second class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_COLUMNS))
    score = 2.0 * np.sin(2.0 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 - 1.0 + X[:, 3]
    score += 1.5 * np.sin(X[:, 4] + X[:, 5]) * np.cos(X[:, 6])
    probability = 1.0 / (1.0 + np.exp(-2.0 * score))
    return X, (rng.random(n_rows) < probability).astype(int), probability


def write_rows(folder: Path, n_rows: int) -> None:
    """Write rows to files of no more than some each."""
    import pandas as pd

    for number, first in enumerate(range(0, n_rows, PART)):
        X, y, _ = draw(min(PART, n_rows - first), number)
        frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(N_COLUMNS)]).assign(y=y)
        frame.to_parquet(folder / f"part-{number:04d}.parquet")


def fit_stream(folder: str) -> dict[str, Any]:
    """Fit the default to a folder, and predict the test rows."""
    from discernel import MultipleKernelDiscriminant, open_rows

    begun, ends = time.perf_counter(), {0: 0.0, 1: 0.0}
    starts: dict[int, float] = {}

    def heard(progress: Any) -> None:
        if hasattr(progress, "rows"):
            now = time.perf_counter() - begun
            starts.setdefault(progress.stage, now)
            ends[progress.stage] = now

    source = open_rows(folder, "y")
    before = peak_memory()
    limit = MAX_TIME if (source.estimated_n_rows or 0) > MOST else None
    clf = MultipleKernelDiscriminant(callback=heard, max_time=limit).fit(source)
    found = {
        "seconds": time.perf_counter() - begun,
        "seconds_survey": ends[0],
        "seconds_learning": starts[1] - ends[0],
        "seconds_sums": ends[1] - starts[1],
        "memory_before_mib": before,
        "memory_mib": peak_memory(),
        "seconds_forecast": clf.forecast_.seconds,
        "max_time": limit,
        "rank": clf.streamed_.rank,
        "captured": clf.streamed_.captured,
        "regularization": clf.regularization_,
        "expected": repr(clf.expected_),
    }
    begun = time.perf_counter()
    found["accuracy"], found["log_loss"] = scores(clf, source.columns)
    found["seconds_predict"] = time.perf_counter() - begun
    return found


def fit_boosting(folder: str) -> dict[str, Any]:
    """Fit histogram gradient boosting to all rows, in memory."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier

    frame = pd.read_parquet(folder)
    begun = time.perf_counter()
    columns = [f"x{i}" for i in range(N_COLUMNS)]
    model = HistGradientBoostingClassifier().fit(frame[columns].to_numpy(), frame["y"])
    seconds = time.perf_counter() - begun
    accuracy, loss = scores(model)
    return {"seconds": seconds, "accuracy": accuracy, "log_loss": loss}


def fit_few(folder: str) -> dict[str, Any]:
    """Fit the default to some of the rows, in memory."""
    from discernel import MultipleKernelDiscriminant

    X, y, _ = draw(FEW, 0)
    begun = time.perf_counter()
    model = MultipleKernelDiscriminant().fit(X, y)
    seconds = time.perf_counter() - begun
    accuracy, loss = scores(model)
    return {"seconds": seconds, "accuracy": accuracy, "log_loss": loss}


def scores(model: Any, names: list[str] | None = None) -> tuple[float, float]:
    import pandas as pd

    X, y, _ = draw(N_TEST, 10**9)
    predicted = model.predict_proba(X if names is None else pd.DataFrame(X, columns=names))
    own = predicted[np.arange(N_TEST), y]
    return float(np.mean(predicted.argmax(axis=1) == y)), -float(np.log(own).mean())


def peak_memory() -> float:
    """Return the most memory that this process has had, in MiB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def alone(what: str, folder: Path) -> dict[str, Any]:
    """Return what a process of its own finds."""
    out = subprocess.run(
        [sys.executable, __file__, what, str(folder)], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(out.stdout.splitlines()[-1])


def measure(n_rows: int) -> dict[str, Any]:
    _, _, probability = draw(10**6, 10**9 + 1)
    found: dict[str, Any] = {
        "rows": n_rows,
        "best_possible": float(np.maximum(probability, 1.0 - probability).mean()),
    }
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder), n_rows)
        found["stream"] = alone("fit_stream", Path(folder))
        if n_rows <= MOST:
            found["boosting"] = alone("fit_boosting", Path(folder))
        found["few_rows"] = alone("fit_few", Path(folder))
    return found


WORK = {work.__name__: work for work in (fit_stream, fit_boosting, fit_few)}


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] in WORK:
        print(json.dumps(WORK[sys.argv[1]](sys.argv[2])))
        return
    sizes = tuple(int(size) for size in sys.argv[1:]) or SIZES
    results = []
    for n_rows in sizes:
        results.append(measure(n_rows))
        print(json.dumps(results[-1], indent=1))
    if sizes == SIZES:
        write_record("streams", results, columns=N_COLUMNS, test_rows=N_TEST)


if __name__ == "__main__":
    main()
