"""How fits use the cores: 1 to 16 threads, with compiled loops over tiles and without.

50 columns, ten classes, ten kernels. For every number of rows and threads: one `rbf_kernel` of the
rows by scikit-learn, one Cholesky factorisation by SciPy, `rkda` with λ given, the default and
`rkda` with its own λ, by compiled loops (`discernel.arrays.loops`) and by NumPy alone; and one pass
over all tiles, a product of a weighted sum of four kernels with 64 vectors, of double and of single
precision. Wall time and processor time; their ratio is the number of threads that were busy. No
limit is claimed yet.

Every combination is a process of its own, because BLAS reads the number of threads when it is
loaded. Cheap combinations come first, and what does not fit into ``--minutes`` is left out and
listed. ``python cores.py --rows 4000 --threads 1 2`` runs some of it, and ``--record`` writes it to
the record. Standard output ends with a table and one line of JSON with all results.

With ``--stages``, for the largest number of threads with compiled loops: wall time and busy threads
in every phase of a fit and in every stage (`STAGES`: a pass over tiles, a factorisation, a
solve...), by the size of what it is of. With ``--profile`` also the functions in which the main
thread spends its time, which makes fits slower; what waits in ``acquire`` waits for tiles of other
threads. The cases ``"rkda tiled"`` and ``"rkda iterative"``, which only ``--cases`` asks for, name
the bank, for the choice between both.
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import importlib
import json
import os
import pstats
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from bench import work as bench
from common import RECORDS, write_record
from sklearn.metrics.pairwise import rbf_kernel

from discernel import MultipleKernelDiscriminant
from discernel.arrays.loops import SWITCH, compiled_loops
from discernel.bank.iterative import IterativeBank
from discernel.kernels import rbf_ladder
from discernel.progress import reporter

ROWS, THREADS, MINUTES = (4000, 10_000, 20_000), (1, 2, 4, 8, 16), 8.0
#: What is fitted, in this order, and the columns of the table.
FITS = "rkda given", "default", "rkda path"
#: Fits that are made only if they are asked for.
BANKS = "rkda tiled", "rkda iterative"
LOOPS = "compiled", "numpy"
COLUMNS = "gram", "cholesky", "pass double", "pass single", *FITS
#: What is drawn, the colours of its lines, and the ticks of its axis.
DRAWN = {"rkda given": "rkda, λ given", "default": "default", "cholesky": "one Cholesky"}
COLORS = "#2f6f9f", "#b5382a", "#7a7a8c"
SECONDS = 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0
#: Growth of the cost with rows and threads, and its factor without compiled loops, by which
#: combinations are ordered.
ROW_POWER, THREAD_POWER, INTERPRETED = 2.6, 0.7, 1.5
#: Functions of a profile that are shown, by the time in themselves and by that of all they call.
SHOWN = 15, 30
#: Seconds of the shortest stages that are shown.
LEAST_SHOWN = 0.02
#: Stages of a fit: the modules and names of functions that are timed one by one.
STAGES = {
    "arrays.dense": (
        "Cholesky.__init__ Cholesky.solve Cholesky.inverse Cholesky.inverse_diagonal "
        "orthonormal symmetric_eigen"
    ),
    "bank.tiles": "Engine.product Engine.compress Engine.inner Engine.combine Stored.combine",
    "bank.tiled": "Threads.columns TiledBank.subset",
    "bank.conjugate": "PartialFactor.extend conjugate_gradients",
    "bank.grams": "gram_stack",
    "programs.galerkin": "Galerkin.solve _extended _minimum",
    "learn.learn": "learn learn_part",
    "plan.plan": "plan_fit",
    "learn.held_out": "cross_fitted_scores",
    "default.metric": "learn_metric",
    "default.choose": "_try_likelihood _learn_weights",
    "default.comparison": "FoldComparison.try_strengths choose_sample",
    "default.cross_fit": "CrossFit.__init__ CrossFit.predictor CrossFit.best",
    "default.sample": "learn_likelihood_metric",
    "default.propose": "propose_kernels Proposal.regularization_of",
    "discriminant.fit": "fit_discriminant mix_links",
    "discriminant.links": "mix_links",
    "model.importances": "column_importances _add_changes importances_of",
    "programs.least_squares": "KernelLeastSquares.left_out",
}


class Phases:
    """Wall and processor time of the phases of a fit; the reporter of its progress."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, float]] = {}
        self._phase, self._since = "starting", (time.perf_counter(), time.process_time())

    def enter(self, phase: str) -> None:
        """End the current phase, and begin another one."""
        now = time.perf_counter(), time.process_time()
        spent = self.found.setdefault(self._phase, {"wall": 0.0, "processor": 0.0})
        spent["wall"] += now[0] - self._since[0]
        spent["processor"] += now[1] - self._since[1]
        self._phase, self._since = phase, now


class Stages:
    """Wall and processor time of functions of the main thread, without what they call of others."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, float]] = {}
        self._inside: list[list[float]] = []

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, which then notes its times."""

        @functools.wraps(function)
        def called(*given: Any, **named: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return function(*given, **named)
            began, inner = (time.perf_counter(), time.process_time()), [0.0, 0.0]
            self._inside.append(inner)
            try:
                return function(*given, **named)
            finally:
                spent = time.perf_counter() - began[0], time.process_time() - began[1]
                self._inside.pop()
                if self._inside:
                    self._inside[-1][:] = [
                        a + b for a, b in zip(self._inside[-1], spent, strict=True)
                    ]
                self._note(f"{name}{size_of(given)}", spent, inner)

        return called

    def _note(self, name: str, spent: tuple[float, float], inner: list[float]) -> None:
        parts = "calls", "wall", "processor", "with all"
        one = self.found.setdefault(name, dict.fromkeys(parts, 0.0))
        own = spent[0] - inner[0], spent[1] - inner[1]
        for part, value in zip(parts, (1.0, *own, spent[0]), strict=True):
            one[part] += value


def size_of(given: tuple[Any, ...]) -> str:
    """Return the shape and type of the first array among parameters, or of the bank's samples."""
    for one in given:
        if isinstance(one, np.ndarray) and one.ndim > 1:
            return f" {'×'.join(map(str, one.shape))} {one.dtype}"
        lower = getattr(one, "_lower", None)
        if lower is not None:
            return f" {len(lower)} {lower.dtype}"
    return ""


@contextmanager
def noted_stages() -> Iterator[Stages]:
    """Return a context in which the functions of `STAGES` note their times."""
    stages, before = Stages(), []
    for module, names in STAGES.items():
        loaded = importlib.import_module(f"discernel.{module}")
        for name in names.split():
            owner, _, last = name.rpartition(".")
            place = getattr(loaded, owner, None) if owner else loaded
            if place is None or last not in vars(place):
                continue
            function = vars(place)[last]
            users = [place]
            if not owner:  # also where it was imported by name
                users = [
                    one
                    for key, one in list(sys.modules.items())
                    if key.startswith("discernel") and vars(one).get(last) is function
                ]
            for user in users:
                before.append((user, last, function))
                setattr(user, last, stages.wrap(name, function))
    try:
        yield stages
    finally:
        for user, last, function in before:
            setattr(user, last, function)


def timed(work: Callable[[], Any]) -> dict[str, float]:
    """Return the wall time and the processor time of some work."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}


def fit(case: str, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Fit one of `FITS` or `BANKS`, and return what another fit must find too."""
    if case == "default":
        model = MultipleKernelDiscriminant()
    else:
        lam = "loo" if case == "rkda path" else bench.REGULARIZATION
        bank = case.split()[1] if case in BANKS else "auto"
        model = MultipleKernelDiscriminant(
            rbf_ladder(10), criterion="rkda", regularization=lam, bank=bank
        )
    learned = model.fit(X, y).learned_kernel_
    return {
        "bank": model.bank_,
        "forecast": None if model.forecast_ is None else model.forecast_.seconds,
        "weights": learned.weights.tolist(),
        "objective": learned.objective,
        "gap": learned.gap,
        "probabilities": model.predict_proba(X[:3]).ravel().tolist(),
    }


def staged(work: Callable[[], Any]) -> dict[str, Any]:
    """Return the times of some work, and those of its phases and stages."""
    phases = Phases()
    token = reporter._ACTIVE.set(phases)  # type: ignore[arg-type]
    try:
        with noted_stages() as stages:
            found: dict[str, Any] = timed(work)
    finally:
        phases.enter("end")
        reporter._ACTIVE.reset(token)
    return found | {"phases": phases.found, "stages": stages.found}


def profiled(work: Callable[[], Any]) -> dict[str, Any]:
    """Return what `staged` does, and a profile of the main thread."""
    profile = cProfile.Profile()
    found = staged(lambda: profile.runcall(work))
    functions = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    named = [(name_of(*where), *spent[:4]) for where, spent in functions.items()]
    own = sorted(named, key=lambda one: -one[3])[: SHOWN[0]]
    ours = [one for one in named if one[0].startswith("discernel")]
    calling = sorted(ours, key=lambda one: -one[4])[: SHOWN[1]]
    return found | {
        "own": {f"{name} ({calls})": spent for name, calls, _, spent, _ in own},
        "calling": {f"{name} ({calls})": spent for name, calls, _, _, spent in calling},
    }


#: Options, and how fits are then timed.
HOW = {"profile": profiled, "stages": staged}


def name_of(file: str, line: int, function: str) -> str:
    """Return the name of a function with its file, as short as is clear."""
    parts = Path(file).parts
    if "discernel" in parts:
        place = len(parts) - 1 - parts[::-1].index("discernel")
        return f"{'/'.join(parts[place:])}:{line} {function}"
    return f"{Path(file).name} {function}" if line else function


def measure(n_rows: int, cases: list[str], work: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """Yield what this process, with its threads and loops, takes for some rows: one by one."""
    X, y = bench.rows(n_rows, n_classes=10, n_features=50)
    bench.unit(X[:1000])  # the first call of a library is slower
    fit("rkda given", X[:600], y[:600])
    grams = [rbf_kernel(X)]
    yield {"gram": timed(lambda: rbf_kernel(X))}
    yield {"cholesky": timed(lambda: bench.cholesky(grams.pop()))}
    yield from measure_passes(X)
    for case in cases:
        known: dict[str, Any] = {}
        spent = work(lambda case=case, known=known: known.update(fit(case, X, y)))
        yield {case: spent | {"found": known}}


def measure_passes(X: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield the times of a pass over all tiles, the least of three."""
    bank = IterativeBank([kernel.resolve(X) for kernel in rbf_ladder(10)], X)
    weights = np.zeros(bank.n_kernels)
    weights[[2, 4, 5, 7]] = 0.25
    V = np.random.default_rng(0).standard_normal((len(X), 64))
    for name, engine in (("double", None), ("single", bank.single_engine(weights))):
        passes = [
            timed(lambda e=engine: bank.combined_product(weights, V, e))  # type: ignore[misc]
            for _ in range(3)
        ]
        yield {f"pass {name}": min(passes, key=lambda one: one["wall"])}


# ---- processes ---------------------------------------------------------------------------------


def run(
    n_rows: int, n_threads: int, compiled: bool, options: argparse.Namespace, seconds: float
) -> dict[str, Any]:
    """Measure in a process of its own, with so many threads, and return what is done in time."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
    environment = os.environ | dict.fromkeys(names, str(n_threads)) | {SWITCH: str(int(compiled))}
    command = [sys.executable, __file__, "--child", "--rows", str(n_rows)]
    command += ["--cases", *options.cases]
    if compiled and n_threads == max(options.threads):
        command += [f"--{name}" for name in HOW if getattr(options, name)]
    done = {"rows": n_rows, "threads": n_threads, "compiled": compiled}
    try:
        out = subprocess.run(
            command, env=environment, check=True, stdout=subprocess.PIPE, timeout=seconds
        ).stdout
    except subprocess.TimeoutExpired as late:
        out = late.stdout or b""
    for line in out.decode().splitlines():
        if line.startswith("{") and line.endswith("}"):
            done |= json.loads(line)
    return done


def combinations(options: argparse.Namespace) -> list[tuple[int, int, bool]]:
    """Return rows, threads and loops, the cheapest first."""
    loops = [name == "compiled" for name in options.loops]
    loops = loops if compiled_loops() is not None else [False]

    def cost(one: tuple[int, int, bool]) -> float:
        n_rows, n_threads, compiled = one
        return float(
            n_rows**ROW_POWER / n_threads**THREAD_POWER * (1.0 if compiled else INTERPRETED)
        )

    return sorted(product(options.rows, options.threads, loops), key=cost)


# ---- what is shown -----------------------------------------------------------------------------


def show_profile(found: dict[str, Any]) -> None:
    """Print phases and profile of the fits of one process."""
    for case in (*FITS, *BANKS):
        part = found.get(case, {})
        if "phases" not in part:
            continue
        print(f"\n{case}, {found['rows']} rows, {found['threads']} threads: {part['wall']:.2f} s")
        print(" ", {key: part["found"][key] for key in ("bank", "forecast", "gap")})
        for phase, spent in part["phases"].items():
            busy = spent["processor"] / max(spent["wall"], 1e-9)
            print(f"  {spent['wall']:8.2f} s {busy:5.1f} threads busy  {phase}")
        for stage, spent in sorted(part["stages"].items(), key=lambda one: -one[1]["wall"]):
            busy = spent["processor"] / max(spent["wall"], 1e-9)
            times = f"{spent['wall']:8.2f} s {busy:5.1f} threads busy {spent['with all']:8.2f} s"
            if spent["with all"] >= LEAST_SHOWN:
                print(f"  {times} with others {spent['calls']:5.0f} × {stage}")
        for title in ("own", "calling") if "own" in part else ():
            print(f"  {'in the function itself' if title == 'own' else 'with all that it calls'}")
            for name, seconds in part[title].items():
                print(f"  {seconds:8.2f} s  {name}")
    sys.stdout.flush()


def table(results: list[dict[str, Any]]) -> str:
    """Return seconds, and busy threads, of all measurements, by rows, loops and threads."""
    lines = ["  ".join(["   rows loops    threads", *(f"{name:>15}" for name in COLUMNS)])]
    for one in sorted(results, key=lambda one: (one["rows"], not one["compiled"], one["threads"])):
        how = "compiled" if one["compiled"] else "NumPy"
        cells = [f"{one['rows']:7} {how:8} {one['threads']:7}"]
        for name in COLUMNS:
            spent = one.get(name)
            cell = "-"
            if spent is not None:
                cell = f"{spent['wall']:.3f} ({spent['processor'] / spent['wall']:.1f})"
            cells.append(f"{cell:>15}")
        lines.append("  ".join(cells))
    return "\n".join([*lines, "Seconds, and in parentheses the threads that were busy."])


def draw(results: list[dict[str, Any]], target: Path) -> None:
    """Draw time against threads, a panel for each number of rows; dashed by NumPy alone."""
    import matplotlib.pyplot as plt

    sizes = sorted({one["rows"] for one in results})
    figure, panels = plt.subplots(
        1, len(sizes), figsize=(3.6 * len(sizes) + 1.2, 3.9), layout="constrained", squeeze=False
    )
    for axes, rows in zip(panels[0], sizes, strict=True):
        for (case, name), color in zip(DRAWN.items(), COLORS, strict=True):
            for compiled, style in ((True, "o-"), (False, "s--")):
                found = {
                    one["threads"]: one[case]["wall"]
                    for one in results
                    if (one["rows"], one["compiled"]) == (rows, compiled) and case in one
                }
                if not found or (case == "cholesky" and not compiled):
                    continue
                places = sorted(found)
                label = f"{name}{'' if compiled or case == 'cholesky' else ', NumPy alone'}"
                seconds = [found[place] for place in places]
                axes.loglog(places, seconds, style, color=color, label=label)
        ticks = sorted({one["threads"] for one in results})
        axes.set(xlabel="threads", title=f"{rows:,} rows", xticks=ticks, yticks=SECONDS)
        axes.set(xlim=(0.85 * ticks[0], 1.2 * ticks[-1]), ylim=(0.1, 25.0))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0, 0].set_ylabel("seconds")
    figure.legend(*panels[0, -1].get_legend_handles_labels(), loc="outside right", frameon=False)
    figure.savefig(target, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--threads", type=int, nargs="+", default=list(THREADS))
    parser.add_argument("--cases", nargs="+", choices=FITS + BANKS, default=list(FITS))
    parser.add_argument("--loops", nargs="+", choices=LOOPS, default=list(LOOPS))
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of the whole run")
    for name in HOW:
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--record", action="store_true", help="write the record")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--draw", action="store_true", help="only the figure of the record")
    options = parser.parse_args()
    if options.draw:
        known = json.loads((RECORDS / "cores.json").read_text())
        draw(known["results"], RECORDS.parent.parent / "docs" / "images" / "cores.png")
        return
    if options.child:
        work = next((HOW[name] for name in HOW if getattr(options, name)), timed)
        for found in measure(options.rows[0], options.cases, work):
            print(json.dumps(found), flush=True)
        return
    if compiled_loops() is None:
        print("Only NumPy: compile the loops by python hatch_build.py, in the root of the clone.")
    end, results, left_out = time.perf_counter() + 60.0 * options.minutes, [], []
    for one in combinations(options):
        left = end - time.perf_counter()
        found = run(*one, options, left) if left > 0 else {}
        if not all(case in found for case in options.cases):
            left_out.append(one)
        if "gram" in found:
            results.append(found)
            print(table(results[-1:]).splitlines()[1], flush=True)
            show_profile(found)
    print("\n" + table(results))
    if left_out:
        print("Left out, wholly or in part (rows, threads, compiled):", *left_out)
    print(json.dumps(results), flush=True)
    if options.record:
        settings = {"kernels": 10, "columns": 50, "classes": 10, "minutes": options.minutes}
        write_record("cores", results, left_out=[list(one) for one in left_out], **settings)


if __name__ == "__main__":
    main()
