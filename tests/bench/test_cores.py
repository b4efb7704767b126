"""The benchmark of cores measures what it says, in processes of their own, and ends in time."""

import json
import os
import subprocess
import sys

import cores

SCRIPT = cores.__file__


def run(*options):
    command = [sys.executable, SCRIPT, "--rows", "300", "--threads", "1", *options]
    environment = os.environ | {"DISCERNEL_COMPILED": "0"}  # one process, not two
    found = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True, env=environment
    )
    *shown, last = found.stdout.splitlines()
    return "\n".join(shown), json.loads(last)


def test_every_time_is_measured():
    shown, (found,) = run("--cases", "rkda given", "--profile")
    assert "Left out" not in shown
    assert (found["rows"], found["threads"], found["compiled"]) == (300, 1, False)
    for name in ("gram", "cholesky", "pass double", "pass single", "rkda given"):
        assert found[name]["wall"] > 0
    assert "default" not in found
    assert "phases" not in found["rkda given"]  # only with compiled loops


def test_what_does_not_fit_into_the_time_is_listed():
    shown, found = run("--minutes", "0")
    assert found == []
    assert "(300, 1, False)" in shown


def test_phases_and_functions_of_a_profile():
    X, y = cores.bench.rows(200, 3)
    cores.fit("rkda given", X, y)
    found = cores.profiled(lambda: cores.fit("rkda given", X, y))
    assert {"learning weights and λ", "scoring held-out rows"} <= set(found["phases"])
    assert min(phase["wall"] for phase in found["phases"].values()) >= 0
    assert any(name.startswith("discernel/learn/learn.py") for name in found["calling"])
    assert 0 < max(found["own"].values()) < max(found["calling"].values()) <= found["wall"]
