"""Every claim of every solver on thousands of uncomfortable problems, checked with 400 bits.

    python benchmarks/certificates.py --problems 2000

Problems have 4 to 60 rows, 1 to 40 kernels and λ from 1e-12 to 1e6; kernels are nearly equal, of
rank one, the identity, the labels, very wide, very narrow or far from the origin. No gap may be
smaller than the true one, no objective off by more than its gap, no weights off the simplex, and
no error may be a bare LinAlgError. Writes ``records/certificates.json``.
"""

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import joblib
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from discernel import learn_kernel  # noqa: E402
from discernel.exceptions import DiscernelError  # noqa: E402
from tests.exact import Claim, check_claims, make_problem  # noqa: E402

SOLVERS = {"rkda": ["newton", "galerkin", "silp"], "fdr": ["newton"]}
#: Conic programs take seconds: they run on problems of at most so many rows times kernels.
CONIC = {"rkda": ["qcqp", "sdp"], "fdr": ["sdp"]}
CONIC_SIZE = 60


def claims_of(problem, *, conic):
    """Return what the solvers claim, and what ended in an error."""
    claims, errors = [], []
    small = problem.grams.shape[0] * problem.grams.shape[1] <= CONIC_SIZE
    names = SOLVERS[problem.criterion] + (CONIC[problem.criterion] if conic and small else [])
    # The last one shows how good weights can be.
    for solver, tol in [*((name, 1e-6) for name in names), ("newton", 1e-13)]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                learned = learn_kernel(
                    problem.grams,
                    problem.y,
                    criterion=problem.criterion,
                    solver=solver,
                    regularization=problem.regularization,
                    tol=tol,
                    max_iter=60 if solver == "silp" else None,
                )
            except Exception as error:  # whatever it is, it is counted
                errors.append((solver, type(error).__name__, isinstance(error, DiscernelError)))
                continue
        objective, gap = float(learned.objective), float(learned.gap)
        name = solver if tol == 1e-6 else f"{solver} at {tol:.0e}"
        claims.append(Claim(name, learned.weights, objective, gap, gap <= tol))
    return claims, errors


def run(seed, *, conic=True):
    """Return the faults of one problem, and how its solvers ended."""
    problem = make_problem(seed)
    claims, errors = claims_of(problem, conic=conic)
    faults = check_claims(problem, claims)
    faults += [
        f"{problem.name} {solver}: {name}" for solver, name, is_ours in errors if not is_ours
    ]
    ended = [
        (claim.solver, "certified" if claim.converged else "not certified") for claim in claims
    ]
    ended += [(solver, name) for solver, name, _ in errors]
    return faults, ended


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-conic", action="store_true")
    parser.add_argument("--no-record", action="store_true")
    options = parser.parse_args()
    start = time.perf_counter()
    seeds = range(options.first, options.first + options.problems)
    jobs = (joblib.delayed(run)(seed, conic=not options.no_conic) for seed in seeds)
    faults, ended = [], Counter()
    results = joblib.Parallel(n_jobs=options.jobs, return_as="generator")(jobs)
    for done, (found, how) in enumerate(results, 1):
        faults += found
        ended.update(how)
        for fault in found:
            print(fault, flush=True)
        if done % 100 == 0:
            print(f"{done} of {len(seeds)}, {len(faults)} faults", flush=True)
    table = {f"{solver}: {how}": count for (solver, how), count in sorted(ended.items())}
    for name, count in table.items():
        print(f"{count:6} {name}")
    print(f"{len(faults)} faults in {len(seeds)} problems, {time.perf_counter() - start:.0f} s")
    if not options.no_record:
        record = {"problems": len(seeds), "first": options.first, "faults": faults, "ended": table}
        path = ROOT / "benchmarks" / "records" / "certificates.json"
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
