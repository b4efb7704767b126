"""A small plan, and processes of their own that run it, to be killed: see `main`."""

import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

from discernel.compare.plan import Data, Method, Plan, Splits
from discernel.compare.runner import run
from discernel.compare.store import Store

FIXED = {"criterion": "uniform", "regularization": 0.01}


def small_plan(n):
    """Four cells a split, each of some milliseconds."""
    methods = (Method("LDA", "lda"), Method("average", "discriminant", FIXED))
    return Plan("small", (Data("wine"), Data("wine", "minmax")), methods, Splits(n=n))


def rows(path, table="cells"):
    """Return all that is stored, by key, with the place in which it was written."""
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        found = connection.execute(f"SELECT key, rowid, * FROM {table}").fetchall()
        connection.close()
    except sqlite3.OperationalError:  # not yet made
        return {}
    return {key: [repr(value) for value in row] for key, *row in found}


def start(path, n_jobs, n, lease):
    with Store(path, lease=lease) as store:
        summary = run(small_plan(n), store, n_jobs=n_jobs)
        print(summary, f"there={len(store.finished())}", flush=True)


def kill_often(path, n, lease, seed, times):
    """Run in children that have imported all, and kill each at a random moment.

    Every other one may finish a cell first, so that there is progress however slow the machine
    is. What is stored is printed after each.
    """
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "results") as store:
        run(small_plan(1), store)  # loads what is loaded late
        begin = time.perf_counter()
        run(small_plan(2), store)
        span = time.perf_counter() - begin  # of four cells
    moments = random.Random(seed)
    for turn in range(times):
        n_before = len(rows(path))
        child = os.fork()
        if child == 0:
            start(path, 1, n, lease)
            os._exit(0)
        ended = 0
        while turn % 2 and not ended and len(rows(path)) == n_before:
            ended, _ = os.waitpid(child, os.WNOHANG)
        time.sleep(moments.uniform(0.0, span))
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        print(json.dumps(rows(path)), flush=True)


def main(path, n_jobs, n, lease, seed=None, times=None):
    if times is None:
        start(path, int(n_jobs), int(n), float(lease))
    else:
        kill_often(path, int(n), float(lease), int(seed), int(times))


if __name__ == "__main__":
    main(*sys.argv[1:])
