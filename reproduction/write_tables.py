"""Reproduce every published table and figure with public data, and write ``docs/tables.md``.

``python reproduction/write_tables.py 30`` runs 30 splits per table, or the number in the paper if
that is smaller. Results are stored in ``discernel-results/reproduction.sqlite``, and a second run
continues from there. The page compares every printed number with ours, and counts how many agree
within two standard errors or are better. With ``render``, the page is written from stored results.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

from discernel.compare.machine import machine
from discernel.compare.store import Store
from discernel_reproduction.reproduce import (
    Reproduced,
    compare,
    markdown,
    names,
    reproduce,
    reproduction,
    stored,
)

STORE = Path("discernel-results") / "reproduction.sqlite"
PAGE = Path(__file__).parent / "docs" / "tables.md"
RECORD = Path(__file__).parent / "records" / "reproduction.json"
KINDS = ("accuracy and error", "weights", "other")
VERDICTS = ("agrees", "better", "differs", "not judged", "not run")


def run_all(n_splits: int, store: Store, chosen: list[str]) -> None:
    for name in chosen or names():
        found = reproduction(name).with_splits(n_splits)
        print(name, flush=True)
        reproduce(found, store, n_jobs=2, progress=True)


def render(n_splits: int, store: Store) -> None:
    pages, results = [], []
    totals: Counter[tuple[str, str]] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    for name in names():
        found = reproduction(name).with_splits(n_splits)
        comparisons = compare(found, stored(found, store))
        counts = Counter((kind(each), each.verdict) for each in comparisons)
        totals += counts
        reasons += Counter(
            (each.short_reason, kind(each)) for each in comparisons if each.verdict == "differs"
        )
        results.append({"id": name} | summary(counts))
        pages.append(markdown(found, comparisons))
    lines = [
        "# The published tables, run again",
        "",
        f"At most {n_splits} splits per table; the column says how many were run, and where "
        "these are fewer than the paper's, margins are wider. Written by "
        "[a script](../write_tables.py); `discernel reproduce NAME` runs one of "
        "them. A cell agrees if both numbers are within two standard errors of each other, half a "
        "printed digit included; it is better if ours is beyond that on the good side. Times of "
        "other machines, counts and numbers the paper does not pin down are shown, not judged.",
        "",
        "| cells | agree | better | differ | agree or better | not judged | not run |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *(row(what, totals) for what in KINDS),
        "",
        "Why cells differ, by the number of cells; the words are below each table. At two standard "
        "errors about one cell in twenty would differ by chance.",
        "",
        f"| reason | {' | '.join(KINDS)} |",
        f"|---|{'--:|' * len(KINDS)}",
        *reason_rows(reasons),
        "",
        *pages,
    ]
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    overall = {
        what: summary(Counter({k: v for k, v in totals.items() if k[0] == what})) for what in KINDS
    }
    write_record(n_splits, {"all": overall, "tables": results})
    print("\n".join(lines[4 : len(lines) - len(pages)]))


def write_record(n_splits: int, results: dict[str, Any]) -> None:
    """Write the counts that README and docs quote."""
    record = {
        "benchmark": "reproduction",
        "date": date.today().isoformat(),
        "settings": {"splits": n_splits},
        "machine": machine(),
        "results": results,
    }
    RECORD.write_text(f"{json.dumps(record, indent=1)}\n", encoding="utf-8")


def kind(each: Reproduced) -> str:
    if each.cell.unit in ("accuracy_percent", "error_percent", "auc", "alignment"):
        return "accuracy and error"
    return "weights" if each.cell.unit == "weight" else "other"


def summary(counts: Counter[tuple[str, str]]) -> dict[str, int]:
    return {
        verdict: sum(n for (_, found), n in counts.items() if found == verdict)
        for verdict in VERDICTS
    }


def row(what: str, totals: Counter[tuple[str, str]]) -> str:
    agrees, better, differs, unjudged, missing = (totals[what, verdict] for verdict in VERDICTS)
    judged = agrees + better + differs
    share = f"{100 * (agrees + better) / judged:.0f} %" if judged else "–"
    return f"| {what} | {agrees} | {better} | {differs} | {share} | {unjudged} | {missing} |"


def reason_rows(reasons: Counter[tuple[str, str]]) -> list[str]:
    """Return a row for each reason, the most frequent first."""
    totals: Counter[str] = Counter()
    for (reason, _), n in reasons.items():
        totals[reason] += n
    return [
        f"| {reason} | {' | '.join(str(reasons[reason, what]) for what in KINDS)} |"
        for reason, _ in totals.most_common()
    ]


def main() -> None:
    words = sys.argv[1:]
    only_render = "render" in words
    numbers = [int(word) for word in words if word.isdigit()]
    n_splits = numbers[0] if numbers else 30
    STORE.parent.mkdir(exist_ok=True)
    with Store(STORE) as store:
        if not only_render:
            run_all(n_splits, store, [word for word in words if "-" in word])
        render(n_splits, store)


if __name__ == "__main__":
    main()
