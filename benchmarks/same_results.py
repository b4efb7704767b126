"""Whether two versions of the package learn the same, to the last digits that mean something.

    python benchmarks/same_results.py --write before.json     # with the one version
    python benchmarks/same_results.py --against before.json   # with the other
    python benchmarks/same_results.py --double --families criteria weights --write before.json

The fits of `result_cells.py`: weights, λ, objectives, probabilities, predictions, importances and
what is expected of new rows, for every criterion, table, way of computing and export. With
``--double``, metrics and folds of the default are computed in double precision. In single precision
the order of two additions may decide which candidate is chosen, which says nothing about a change.

Of long arrays some numbers are kept, with the mean of all and of their squares. Numbers are
compared relative to the largest of their array, if that is above 1. A fit that raises is a result
too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from result_cells import FAMILIES, cells
from threadpoolctl import threadpool_limits

import discernel

#: Numbers of an array that are kept.
KEPT = 30
#: Fits that one process takes at a time.
CHUNK = 8
#: Where the default computes in single precision.
SINGLE = "discernel.default"

Result = dict[str, Any]


class DoubleNumPy:
    """NumPy, whose single precision is double."""

    float32 = np.float64

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def use_double_precision() -> None:
    """Compute metrics and folds of the default in double precision, from now on."""
    for name, module in list(sys.modules.items()):
        if name.startswith(SINGLE) and getattr(module, "np", None) is np:
            module.np = DoubleNumPy()  # type: ignore[attr-defined]


def prepare(double: bool) -> None:
    """Set up a process: one thread, so that sums have one order, and the precision."""
    os.environ["LOKY_MAX_CPU_COUNT"] = "1"
    threadpool_limits(limits=1)
    if double:
        use_double_precision()


# ---- results -------------------------------------------------------------------------------------


def digest(values: Any) -> list[float]:
    """Return an array as it is where it is short; else some of its numbers and two means."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    if len(flat) <= KEPT + 2:
        return [float(number) for number in flat]
    some = flat[np.linspace(0, len(flat) - 1, KEPT).astype(int)]
    return [float(number) for number in (*some, flat.mean(), np.mean(flat**2))]


def run_cells(families: list[str], names: list[str]) -> dict[str, Result | None]:
    """Return results by name; None where a package is missing."""
    known, found = cells(families), dict[str, Result | None]()
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                numbers = known[name]()
                found[name] = {
                    what: digest(values) for what, values in numbers.items() if values is not None
                }
            except ImportError:
                found[name] = None
            except Exception as error:
                found[name] = {"error": f"{type(error).__name__}: {error}"[:200]}
    return found


def run_all(families: list[str], workers: int, double: bool) -> dict[str, Result]:
    """Return all results, computed in processes."""
    found: dict[str, Result | None] = {}
    with ProcessPoolExecutor(workers, initializer=prepare, initargs=(double,)) as pool:
        running = []
        for family in families:
            names = list(cells([family]))
            running += [
                pool.submit(run_cells, [family], names[start : start + CHUNK])
                for start in range(0, len(names), CHUNK)
            ]
        for done, future in enumerate(as_completed(running), start=1):
            found |= future.result()
            print(f"\r{done} of {len(running)} parts", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    missing = sorted(name for name, result in found.items() if result is None)
    if missing:
        print(f"{len(missing)} fits need packages that are not installed")
    return {name: result for name, result in sorted(found.items()) if result is not None}


# ---- comparison ----------------------------------------------------------------------------------


def difference(before: Result, after: Result) -> dict[str, float]:
    """Return the largest difference of every array of two results, relative to its size."""
    worst = dict.fromkeys(before.keys() ^ after.keys(), np.inf)
    for what in before.keys() & after.keys():
        if what == "error":
            worst[what] = 0.0 if before[what] == after[what] else np.inf
            continue
        a, b = (np.asarray(result[what], dtype=float) for result in (before, after))
        if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
            worst[what] = np.inf
            continue
        finite = np.isfinite(a)
        size = float(np.abs(a[finite]).max(initial=0.0))
        size = size if what == "regularization" and size > 0 else max(1.0, size)
        worst[what] = float(np.abs(a - b)[finite].max(initial=0.0) / size)
    return worst


def compare(before: dict[str, Result], after: dict[str, Result], limit: float) -> bool:
    """Show what differs; return whether all of it is the same."""
    both, same = sorted(before.keys() & after.keys()), 0
    others: Counter[str] = Counter()
    for name in both:
        worst = difference(before[name], after[name])
        if max(worst.values(), default=0.0) <= limit:
            same += 1
            continue
        others[name.partition(":")[0]] += 1
        shown = {what: f"{value:.1e}" for what, value in worst.items() if value > limit}
        print(
            name, shown, *(f"({r['error']})" for r in (before[name], after[name]) if "error" in r)
        )
    for name in sorted(before.keys() - after.keys()):
        print(f"{name}: not run now")
    print(f"{same} of {len(both)} results are the same to {limit:.0e}")
    if others:
        print("different:", ", ".join(f"{family} {n}" for family, n in others.items()))
    return same == len(both) and not before.keys() - after.keys()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", type=Path, help="where to write the results")
    parser.add_argument("--against", type=Path, help="results of before")
    parser.add_argument("--limit", type=float, default=1e-8)
    parser.add_argument("--double", action="store_true", help="metrics and folds in double")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    print(f"discernel {discernel.__version__} of {Path(discernel.__file__).parents[2].name}")
    before: dict[str, Any] = {}
    if options.against:
        before = json.loads(options.against.read_text(encoding="utf-8"))
        if before["double"] != options.double:
            sys.exit("Both must be run with --double, or both without.")
    found = run_all(options.families, options.workers, options.double)
    errors = {name: result["error"] for name, result in found.items() if "error" in result}
    print(f"{len(found)} results, {len(errors)} of them errors")
    for name, error in errors.items():
        print(f"{name}: {error}")
    if options.write:
        record = {"double": options.double, "results": found}
        options.write.write_text(json.dumps(record) + "\n", encoding="utf-8")
    if not options.against:
        return 0
    wanted = {
        name: result
        for name, result in before["results"].items()
        if name.partition(":")[0] in options.families
    }
    return 0 if compare(wanted, found, options.limit) else 1


if __name__ == "__main__":
    sys.exit(main())
