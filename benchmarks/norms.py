"""Certificates and cost of `RKDA` with ℓp-norms, beside the simplex (p = 1).

    python benchmarks/norms.py --problems 300

Certificates: the uncomfortable problems of ``certificates.py``, for every p. Claims are checked
with 400 bits, and so is the gap of all certified weights: their exact value minus the best exact
bound. Cost: CPU time on larger problems as multiples of that of p = 1, least of several
alternating runs. Writes ``records/norms.json``.
"""

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.preprocessing import scale

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.common import write_record  # noqa: E402
from discernel import learn_kernel  # noqa: E402
from discernel.criteria import RKDA  # noqa: E402
from discernel.exceptions import DiscernelError  # noqa: E402
from discernel.kernels import RBF  # noqa: E402
from tests.exact import Claim, check_claims, largest_gap, make_problem  # noqa: E402

NORMS = (1.0, 4 / 3, 2.0, 4.0, 16.0)


def check(seed, norm):
    """Return faults, how the solvers ended, and the largest exact gap of certified weights."""
    problem = replace(make_problem(seed), criterion="rkda", norm=norm)
    claims, ended, faults = [], Counter(), []
    # The last one shows how good weights can be.
    for solver, tol in (("newton", 1e-6), ("galerkin", 1e-6), ("newton", 1e-13)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                learned = learn_kernel(
                    problem.grams,
                    problem.y,
                    criterion=RKDA(norm=norm),
                    solver=solver,
                    regularization=problem.regularization,
                    tol=tol,
                )
            except DiscernelError as error:
                ended[f"{solver}: {type(error).__name__}"] += 1
                continue
            except Exception as error:  # whatever else it is, it is a fault
                faults.append(f"{problem.name} {solver}: {error!r}")
                continue
        claim = Claim(solver, learned.weights, learned.objective, learned.gap, learned.gap <= tol)
        claims.append(claim)
        if tol == 1e-6:
            ended[f"{solver}: {'certified' if claim.converged else 'not certified'}"] += 1
    program = problem.exact()
    faults += check_claims(problem, claims, program)
    return faults, ended, largest_gap(problem, claims, program)


def certificates(seeds):
    """Return what was certified for every norm."""
    found = {
        f"{norm:.3g}": {"faults": [], "ended": Counter(), "largest gap": 0.0} for norm in NORMS
    }
    for seed in seeds:
        for norm, sums in zip(NORMS, found.values(), strict=True):
            faults, ended, gap = check(seed, norm)
            sums["faults"] += faults
            sums["ended"] += ended
            sums["largest gap"] = max(sums["largest gap"], gap or 0.0)
        if seed % 50 == 49:
            print(seed + 1, json.dumps(found, ensure_ascii=False), flush=True)
    return found


def make_task(name, n_rows, n_kernels):
    """Return Gram matrices of ten widths on all columns and others on three columns, and labels."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X, y = X[:n_rows] / 4.0, y[:n_rows]
    else:
        X, y = make_classification(n_rows, 20, n_informative=6, flip_y=0.1, random_state=0)
        X = scale(X)
    rng, d = np.random.default_rng(0), X.shape[1]
    widths = np.sqrt(d) * 2.0 ** np.linspace(-3.0, 4.0, min(n_kernels, 10))
    grams = [RBF(width=width)(X) for width in widths]
    while len(grams) < n_kernels:
        columns = rng.choice(d, 3, replace=False)
        grams.append(RBF(width=float(rng.uniform(0.5, 4.0)))(X[:, columns]))
    return np.array(grams), y


def cost(n_runs=2):
    """Return CPU times of every norm relative to those of p = 1, and the iterations."""
    tasks = [("made", 300, 10), ("made", 300, 60), ("made", 1200, 10), ("digits", 900, 8)]
    rows = []
    for task in [*tasks, ("made", 1200, 40), ("made", 400, 250)]:
        grams, y = make_task(*task)
        for lam in (1e-3, "loo"):
            seconds, learned = {norm: [] for norm in NORMS}, {}
            for _ in range(n_runs):
                for norm in NORMS:
                    start = time.process_time()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        learned[norm] = learn_kernel(
                            grams, y, criterion=RKDA(norm=norm), regularization=lam
                        )
                    seconds[norm].append(time.process_time() - start)
            base = min(seconds[1.0])
            rows.append(
                {
                    "task": f"{task[0]}, {task[1]} rows, {task[2]} kernels",
                    "regularization": lam,
                    "seconds of p = 1": round(base, 3),
                    "ratio": {f"{p:.3g}": round(min(s) / base, 2) for p, s in seconds.items()},
                    "iterations": {f"{p:.3g}": found.n_iter for p, found in learned.items()},
                    "largest gap": max(found.gap for found in learned.values()),
                }
            )
            print(json.dumps(rows[-1], ensure_ascii=False), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--no-record", action="store_true")
    options = parser.parse_args()
    results = {"cost": cost(), "certificates": certificates(range(options.problems))}
    if not options.no_record:
        write_record("norms", results, problems=options.problems)
    return int(any(found["faults"] for found in results["certificates"].values()))


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
