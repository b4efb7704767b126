"""What a default fit costs with this version of the package, divided by the cost with others.

``git worktree add /tmp/other 926add8`` and ``python version_cost.py /tmp/other/src`` compare with
another version. ``--rows 1000 4000`` measures some sizes of drawn rows, ``--tables splice:1000``
random rows of tables in the folder ``tables`` of ``DISCERNEL_DATA``.

Times are those of the processor, the least of some fits. Every fit is in a process of its own, and
versions take turns: on a busy machine, ratios are more reliable than seconds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

#: Drawn rows, 20 columns, of which five matter, and three classes, by default of these sizes.
ROWS = (300, 1000, 2000, 4000)
#: Fits before the one that counts: the first in a process takes memory that later ones find.
WARM = 1
#: Turns of every version.
TURNS = 3


def data(name: str) -> tuple[object, np.ndarray]:
    """Return drawn rows, by their number, or random rows of a table, as in ``splice:1000``."""
    from default_cost import draw

    if name.isdecimal():
        return draw(int(name))
    import pandas as pd

    name, _, n_rows = name.partition(":")
    table = pd.read_csv(Path(os.environ["DISCERNEL_DATA"]) / "tables" / f"{name}.csv.gz")
    table = table.sample(n=min(int(n_rows or len(table)), len(table)), random_state=0)
    return table.iloc[:, :-1], table.iloc[:, -1].to_numpy()


def fit(name: str) -> float:
    """Return the processor time of one fit in this process."""
    import time

    from discernel import MultipleKernelDiscriminant

    X, y = data(name)
    for _ in range(WARM + 1):
        start = time.process_time()
        MultipleKernelDiscriminant().fit(X, y)
        taken = time.process_time() - start
    return taken


def seconds(source: str, name: str) -> float:
    """Return the processor time of one fit with the package in a folder."""
    command = [sys.executable, "-W", "ignore", __file__, "--fit", name]
    known = os.environ | {"PYTHONPATH": source}
    found = subprocess.run(command, env=known, check=True, capture_output=True, text=True)
    return float(found.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("others", nargs="*", help="folders with other versions of the package")
    parser.add_argument("--rows", nargs="*", default=[str(n) for n in ROWS])
    parser.add_argument("--tables", nargs="*", default=[])
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        print(fit(given.fit))
        return
    sources = [str(Path(__file__).parents[1] / "src"), *given.others]
    for name in [*given.rows, *given.tables]:
        turns = [[seconds(source, name) for source in sources] for _ in range(TURNS)]
        own, *others = np.min(turns, axis=0)
        ratios = "".join(
            f"  {own / other:.2f} times {source}"
            for other, source in zip(others, given.others, strict=True)
        )
        print(f"{name}: {own:.2f} s{ratios}", flush=True)


if __name__ == "__main__":
    main()
