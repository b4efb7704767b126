"""What a new user meets: from a clone to the first report, and five tasks from the docs alone.

Clones this repository, runs ``make demo`` there with a stopwatch, and in a second environment,
made by the install command of the README, the scripts of ``docs/tasks.md``. Needs git, make and a
package index; takes some minutes.

    python benchmarks/new_user.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import write_record

from discernel.compare.toys import clinic

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "tasks.md"
MOST_LINES, MOST_SECONDS = 12, 180


def run(words: list[Any], folder: Path) -> tuple[float, str]:
    """Run a command as somebody would who has set nothing up; return seconds and what it said."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "PIP_INDEX_URL", "PIP_CONFIG_FILE")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    start = time.perf_counter()
    found = subprocess.run(
        [str(word) for word in words], cwd=folder, capture_output=True, text=True, env=environment
    )
    if found.returncode:
        sys.exit(f"{words} ended with {found.returncode}:\n{found.stdout}\n{found.stderr}")
    return time.perf_counter() - start, found.stdout


def make_files(folder: Path) -> None:
    """Write what the tasks read: made up, and not easy."""
    rng = np.random.default_rng(0)
    patients = clinic()
    patients.X.assign(outcome=patients.y).to_csv(folder / "patients.csv", index=False)
    n = 300
    kind = rng.integers(0, 2, n)
    lab = pd.DataFrame(rng.normal(size=(n, 4)) + 0.8 * kind[:, None], columns=list("1234"))
    samples = lab.add_prefix("lab ")
    motif = np.where(kind == 1, "ACGT", "TTGA")
    samples["gene"] = [
        "".join(rng.choice(list("ACGT"), 20)) + (m if rng.random() < 0.6 else "") for m in motif
    ]
    words = [["tired", "pale", "cough"], ["fever", "rash", "cough"]]
    samples["note"] = [" ".join(rng.choice(words[k], 4)) for k in kind]
    samples["class"] = np.where(kind == 1, "infected", "well")
    samples.to_csv(folder / "samples.csv", index=False)
    X = rng.normal(size=(1000, 6))
    alarm = X[:, 0] ** 2 + X[:, 1] + 0.3 * rng.normal(size=1000) > 4.2
    pd.DataFrame(X, columns=list("abcdef")).assign(alarm=alarm.astype(int)).to_csv(
        folder / "alarms.csv", index=False
    )
    (folder / "parts").mkdir()
    for part in range(5):
        many(40_000, part).to_parquet(folder / "parts" / f"{part}.parquet")
    many(10_000, 5).to_parquet(folder / "new.parquet")


def many(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(100 + seed)
    X = rng.normal(size=(n, 10))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(10)]).assign(y=(score > 0).astype(int))


def demo_accuracies(said: str) -> dict[str, dict[str, float]]:
    """Return what the demonstration printed: per data set and method, the accuracy in %."""
    table = re.search(r"^Accuracy in %.*?\n(.*?)\n\n", said, re.MULTILINE | re.DOTALL)
    assert table is not None
    head, *lines = (re.split(r" {2,}", line.strip()) for line in table[1].splitlines())
    return {name: dict(zip(head, map(float, cells), strict=True)) for name, *cells in lines}


def blocks() -> dict[str, str]:
    """Return the scripts of the page by their titles; examples with prompts are doctests."""
    found = re.findall(r"## ([^\n]+)\n\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return {title: code for title, code in found if ">>> " not in code}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cloning, _ = run(["git", "clone", "-q", ROOT, folder / "clone"], folder)
        demo, said = run(["make", "demo"], folder / "clone")
        (page,) = re.findall(r"^report: (.+)$", said, re.MULTILINE)
        assert Path(page).stat().st_size > 10_000
        accuracies = demo_accuracies(said)
        print(f"clone to first report: {cloning + demo:.0f} s; {accuracies}", flush=True)
        run([sys.executable, "-m", "venv", folder / "fresh"], folder)
        python = folder / "fresh" / "bin" / "python"
        installing, _ = run(
            [python, "-m", "pip", "install", "-q", f"{folder / 'clone'}[app]"], folder
        )
        work = folder / "work"
        work.mkdir()
        make_files(work)
        tasks = {}
        for title, code in blocks().items():
            n_lines = len([line for line in code.splitlines() if line.strip()])
            assert n_lines <= MOST_LINES, title
            seconds, said = run([python, "-c", code], work)
            tasks[title] = {"lines": n_lines, "seconds": seconds, "printed": said.splitlines()}
            print(f"\n{title}: {n_lines} lines, {seconds:.0f} s\n{said}", flush=True)
    results = {
        "clone_to_first_report_seconds": cloning + demo,
        "limit_seconds": MOST_SECONDS,
        "demo_accuracies": accuracies,
        "install_seconds": installing,
        "tasks": tasks,
    }
    write_record("new_user", results)


if __name__ == "__main__":
    main()
