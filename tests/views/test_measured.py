"""What the guide says of rows that lack a source is what was measured."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
METHODS = ("WhereKnown", "mean of cells", "rows dropped, mean of cells", "nothing missing")


def test_the_guide_quotes_the_record() -> None:
    record = json.loads((ROOT / "benchmarks/records/missing_sources.json").read_text())
    measured = {row["what"]: f"{100 * row['accuracy']:.1f}" for row in record["results"]}
    guide = (ROOT / "docs/sources.md").read_text(encoding="utf-8")
    for pattern, words in (("one view", "one view,"), ("every view", "each view,")):
        numbers = [measured[f"{pattern} lacking: {method}"] for method in METHODS]
        assert f"| {words} in three of ten rows | {' | '.join(numbers)} |" in guide
