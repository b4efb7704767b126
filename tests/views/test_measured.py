"""What the guide says of sources is what was measured."""

import json
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
METHODS = ("WhereKnown", "mean of cells", "rows dropped, mean of cells", "nothing missing")


def test_the_guide_quotes_the_record() -> None:
    record = json.loads((ROOT / "benchmarks/records/missing_sources.json").read_text())
    measured = {row["what"]: f"{100 * row['accuracy']:.1f}" for row in record["results"]}
    guide = (ROOT / "docs/sources.md").read_text(encoding="utf-8")
    for pattern, words in (("one view", "one view,"), ("every view", "each view,")):
        numbers = [measured[f"{pattern} lacking: {method}"] for method in METHODS]
        assert f"| {words} in three of ten rows | {' | '.join(numbers)} |" in guide


def test_the_guide_quotes_the_record_of_sources() -> None:
    record = json.loads((ROOT / "benchmarks/records/sources.json").read_text())["results"]
    guide = (ROOT / "docs/sources.md").read_text(encoding="utf-8")
    for task, found in record.items():
        alone = [each for name, each in found.items() if name.startswith("only")]
        best = max(alone, key=lambda each: np.mean(each["accuracy"]))
        order = [*(found[name] for name in ("sources", "average", "rkda")), best]
        cells = [
            f"{np.mean(each['accuracy']):.1f} ({np.mean(each['log_loss']):.3f})"
            for each in [*order, found["one table"]]
        ]
        assert f"| {task} | {' | '.join(cells)} |" in guide
    tasks = [record[f"{name} and noise"] for name in ("breast cancer", "digits")]
    first, second = (f"{np.mean(each['sources']['noise']):.1f}" for each in tasks)
    assert f"have {first} and {second} % of the weight" in guide
