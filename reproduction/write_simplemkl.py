"""Run the protocol of SimpleMKL, and write ``docs/simplemkl.md`` and ``records/simplemkl.json``.

``python reproduction/write_simplemkl.py 20`` runs 20 splits. Results are stored in
``discernel-results/simplemkl.sqlite``, and a second run continues from there.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

from discernel.compare.machine import machine
from discernel.compare.runner import run
from discernel.compare.store import Store
from discernel_reproduction.methods import PAPERS
from discernel_reproduction.simplemkl import PLAN, markdown, summarize

STORE = Path("discernel-results") / "simplemkl.sqlite"
FOLDER = Path(__file__).parent


def main() -> None:
    """Run the cells that the store does not have, then write page and record."""
    n_splits = int(sys.argv[1]) if len(sys.argv) > 1 else PLAN.splits.n
    plan = replace(PLAN, splits=replace(PLAN.splits, n=n_splits))
    STORE.parent.mkdir(exist_ok=True)
    with Store(STORE) as store:
        run(plan, store, progress=True, protocol=PAPERS)
        results = summarize(store.records(plan.cells()))
    record = {
        "benchmark": "simplemkl",
        "date": date.today().isoformat(),
        "settings": {"splits": n_splits},
        "machine": machine(),
        "results": results,
    }
    text = json.dumps(record, indent=1)
    (FOLDER / "records" / "simplemkl.json").write_text(f"{text}\n", encoding="utf-8")
    (FOLDER / "docs" / "simplemkl.md").write_text(markdown(results), encoding="utf-8")


if __name__ == "__main__":
    main()
