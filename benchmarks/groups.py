"""Whether `expected_` holds for new groups when rows are repeated, such as several per patient.

Every patient has 5 rows. Features vary between patients, and less within them; the label is that of
the patient. Two kinds of tables: ``noise``, where labels have nothing to do with the features, and
``signal``, where the first of them shifts with the label. With ``groups``, `expected_` is
compared with the accuracy on 400 new patients; without, it is recorded as a warning.

Targets: with groups, the mean claimed accuracy is within 3 points of the mean found accuracy for
every kind and criterion, and the interval covers at least 93 % of the fits. An interval covers if
|found − claimed| ≤ √(h² + (1.96 s)²), with h the distance from the claimed accuracy to the end of
the interval on the side of the found one, and s the standard error of the found accuracy over
patients. Intervals count groups, as if all rows of a patient were right or wrong together, so they
may cover more than 95 %.

    python benchmarks/groups.py
    python benchmarks/groups.py --seeds 5 --criteria auto --out groups.json
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import write_record

from discernel import KernelDiscriminant, MultipleKernelDiscriminant
from discernel.kernels import rbf_ladder

PATIENTS, ROWS, COLUMNS, NEW_PATIENTS = 60, 5, 10, 400
SHIFTS = {"noise": 0.0, "signal": 1.0}
CRITERIA = ("default", "single", "auto", "rkda", "loo", "uniform")


def make_table(kind: str, seed: int, n_patients: int) -> tuple[Any, Any, Any]:
    """Return rows, labels and patients."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n_patients) % 2)
    centers = rng.normal(size=(n_patients, COLUMNS))
    centers[:, 0] += SHIFTS[kind] * (2 * labels - 1)
    X = np.repeat(centers, ROWS, axis=0)
    X += 0.5 * rng.normal(size=X.shape)
    return X, np.repeat(labels, ROWS), np.repeat(np.arange(n_patients), ROWS)


def make_estimator(criterion: str) -> Any:
    """Return the default, one kernel, or a ladder of five kernels with a criterion."""
    if criterion == "default":
        return MultipleKernelDiscriminant()
    if criterion == "single":
        return KernelDiscriminant()
    return MultipleKernelDiscriminant(rbf_ladder(5, center=3.0), criterion=criterion)


def run_one(kind: str, criterion: str, seed: int) -> dict[str, float]:
    """Return claimed and found accuracies of one fit, and whether the interval covers."""
    X, y, patients = make_table(kind, seed, PATIENTS)
    new_X, new_y, _ = make_table(kind, 10_000 + seed, NEW_PATIENTS)
    clf = make_estimator(criterion).fit(X, y, groups=patients)
    expected, alone = clf.expected_, make_estimator(criterion).fit(X, y).expected_
    by_patient = (clf.predict(new_X) == new_y).reshape(-1, ROWS).mean(axis=1)
    found = float(by_patient.mean())
    error = 1.96 * float(by_patient.std(ddof=1)) / np.sqrt(NEW_PATIENTS)
    end = expected.high if found > expected.accuracy else expected.low
    return {
        "claimed": expected.accuracy,
        "found": found,
        "without_groups": alone.accuracy,
        "covers": float(abs(found - expected.accuracy) <= np.hypot(end - expected.accuracy, error)),
        "width": expected.high - expected.low,
    }


def main() -> None:
    """Run all kinds and criteria, print a table and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--criteria", nargs="+", default=CRITERIA, choices=CRITERIA)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    results = []
    print("kind    criterion  claimed  found  difference  covered  without groups")
    for kind in SHIFTS:
        for criterion in asked.criteria:
            start = time.process_time()
            runs = [run_one(kind, criterion, seed) for seed in range(asked.seeds)]
            means = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
            off = means["claimed"] - means["found"]
            print(
                f"{kind:7} {criterion:10} {means['claimed']:7.1%} {means['found']:6.1%} "
                f"{100 * off:+8.1f} pt {means['covers']:8.0%} {means['without_groups']:10.1%}"
                f"   ({time.process_time() - start:.0f} s)",
                flush=True,
            )
            met = abs(off) <= 0.03 and means["covers"] >= 0.93
            results.append({"kind": kind, "criterion": criterion, **means, "met": met})
    settings = {"patients": PATIENTS, "rows": ROWS, "columns": COLUMNS, "seeds": asked.seeds}
    write_record("groups", results, path=asked.out, **settings)


if __name__ == "__main__":
    main()
