"""How fits use the cores: 1 to 16 threads, with compiled loops over tiles and without.

50 columns, ten classes, ten kernels. A unit is one `rbf_kernel` of the rows and one Cholesky
factorisation, in the same process with the same threads. For every number of rows and threads:
`rkda` with λ given, and the default, by compiled loops (`discernel.arrays.loops`) and by NumPy
alone; and one pass over all tiles, a product of a weighted sum of four kernels with 64 vectors, of
double and of single precision. Wall time and processor time; their ratio is the number of threads
that were busy. No limit is claimed yet.

Every case is a process of its own, because BLAS reads the number of threads when it is loaded.
``python cores.py --rows 4000 --threads 1 2`` runs some of it; only the whole is recorded. With
``--breakdown``, where the main thread is, by samples of its stack every 5 ms, the ten functions it
is in most, without what these call.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from bench import work as bench
from common import write_record

from discernel import MultipleKernelDiscriminant
from discernel.arrays.loops import SWITCH, compiled_loops
from discernel.bank.iterative import IterativeBank
from discernel.kernels import rbf_ladder

ROWS, THREADS = (4000, 10_000, 20_000), (1, 2, 4, 8, 16)
CASES = "rkda", "default"
#: Seconds between samples of the stack, and functions that are shown.
SAMPLED, SHOWN = 0.005, 10


class Sampler:
    """What functions of the package the main thread is in, by samples."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._done = threading.Event()
        self._main = threading.main_thread().ident
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(SAMPLED):
            frame = sys._current_frames().get(self._main or 0)
            while frame is not None and "discernel" not in frame.f_code.co_filename:
                frame = frame.f_back
            if frame is not None:
                file = frame.f_code.co_filename.rpartition("discernel/")[2]
                self.counts[f"{file}:{frame.f_code.co_name}"] += 1

    def shares(self) -> dict[str, float]:
        """Return the share of the samples in the most frequent functions."""
        total = max(1, self.counts.total())
        return {name: round(n / total, 3) for name, n in self.counts.most_common(SHOWN)}


def timed(work: Callable[[], Any]) -> dict[str, float]:
    """Return the wall time and the processor time of some work."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}


def measure_pass(X: np.ndarray) -> dict[str, float]:
    """Return the seconds of a pass over all tiles, the least of three."""
    bank = IterativeBank([kernel.resolve(X) for kernel in rbf_ladder(10)], X)
    weights = np.zeros(bank.n_kernels)
    weights[[2, 4, 5, 7]] = 0.25
    V = np.random.default_rng(0).standard_normal((len(X), 64))
    single = bank.single_engine(weights)
    engines = {"double": None, "single": single}
    return {
        name: min(
            timed(lambda e=engine: bank.combined_product(weights, V, e))["wall"] for _ in range(3)
        )
        for name, engine in engines.items()
    }


def measure(n_rows: int, cases: list[str], breakdown: bool) -> dict[str, Any]:
    """Return what this process, with its threads and loops, takes for some rows."""
    X, y = bench.rows(n_rows, n_classes=10, n_features=50)
    bench.unit(X[:1000])  # the first call of a library is slower
    units = [timed(lambda: bench.unit(X))]
    found: dict[str, Any] = {"pass": measure_pass(X)}
    for case in cases:
        with Sampler() as sampler:
            found[case] = timed(
                lambda case=case: (
                    bench.fit(X, y, rbf_ladder(10))
                    if case == "rkda"
                    else MultipleKernelDiscriminant().fit(X, y)
                )
            )
        if breakdown:
            found[case]["shares"] = sampler.shares()
        units.append(timed(lambda: bench.unit(X)))
    unit = float(np.mean([each["wall"] for each in units]))
    for case in cases:
        found[case]["units"] = found[case]["wall"] / unit
        found[case]["busy"] = found[case]["processor"] / found[case]["wall"]
    return {"unit": unit, "compiled": compiled_loops() is not None, **found}


def run(n_rows: int, n_threads: int, compiled: bool, options: argparse.Namespace) -> dict[str, Any]:
    """Measure in a process of its own, with so many threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
    environment = os.environ | dict.fromkeys(names, str(n_threads)) | {SWITCH: str(int(compiled))}
    command = [
        sys.executable,
        __file__,
        "--child",
        "--rows",
        str(n_rows),
        "--cases",
        *options.cases,
    ]
    command += ["--breakdown"] if options.breakdown else []
    out = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return {"rows": n_rows, "threads": n_threads, **json.loads(out.stdout.splitlines()[-1])}


def show(found: dict[str, Any], cases: list[str]) -> None:
    """Print one line of a measurement, and where its time went."""
    how = "compiled" if found["compiled"] else "NumPy"
    passes = "  ".join(f"{name} {seconds:.3f} s" for name, seconds in found["pass"].items())
    words = [f"{found['rows']:6} rows {found['threads']:2} threads {how:8}  pass {passes}"]
    for case in cases:
        part = found[case]
        words.append(
            f"{case} {part['wall']:.2f} s = {part['units']:.1f} units, {part['busy']:.1f} busy"
        )
    print("  ".join(words), flush=True)
    for case in cases:
        for name, share in found[case].get("shares", {}).items():
            print(f"       {case} {share:6.1%} {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--threads", type=int, nargs="+", default=list(THREADS))
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--breakdown", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.rows[0], options.cases, options.breakdown)))
        return
    if compiled_loops() is None:
        sys.exit("The loops are not compiled: python hatch_build.py, in the root of the clone.")
    results = []
    for n_rows in options.rows:
        for n_threads in options.threads:
            for compiled in (True, False):
                results.append(run(n_rows, n_threads, compiled, options))
                show(results[-1], options.cases)
    if (options.rows, options.threads, options.cases) == (list(ROWS), list(THREADS), list(CASES)):
        write_record("cores", results, kernels=10, columns=50, classes=10)


if __name__ == "__main__":
    main()
