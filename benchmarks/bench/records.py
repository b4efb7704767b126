"""Results as a file, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from bench.results import Measured
from discernel.compare.machine import machine, package_version
from discernel.exceptions import InvalidInputError

__all__ = ["environment", "make_record", "read_record"]

_PEERS = ("MKLpy", "torch", "himalaya", "cvxpy", "clarabel")


def environment() -> dict[str, Any]:
    """Return what a reader needs to judge a time: machine, threads, load, versions."""
    threads = [
        {key: pool.get(key) for key in ("user_api", "internal_api", "version", "num_threads")}
        for pool in threadpool_info()
    ]
    load = list(os.getloadavg()) if hasattr(os, "getloadavg") else None  # not on Windows
    peers = {name: package_version(name) for name in _PEERS}
    return {**machine(), "threads": threads, "load_average": load, "peers": peers}


def make_record(
    results: Sequence[Measured], before: dict[str, Any], after: dict[str, Any]
) -> dict[str, Any]:
    """Return results, with the `environment` before and after them, ready for JSON."""
    return {
        "benchmark": "speed",
        "date": date.today().isoformat(),
        "machine": after | {"load_average": [before["load_average"], after["load_average"]]},
        "results": {"cases": [asdict(result) for result in results]},
    }


def read_record(path: str | Path) -> dict[str, Measured]:
    """Return the results that a file holds, by the names of their cases.

    Parameters
    ----------
    path : str or Path
        What ``benchmarks/ratios.py --output`` or ``benchmarks/speed.py`` wrote.

    Raises
    ------
    InvalidInputError
        If it is no such file.
    """
    try:
        cases = json.loads(Path(path).read_text(encoding="utf-8"))["results"]["cases"]
        found = [_result(case) for case in cases]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(
            "A record must be a file that `benchmarks/ratios.py --output` wrote. Got "
            f"{str(path)!r}, which cannot be read as one ({type(error).__name__}: {error}). "
            "Make a new one."
        ) from error
    return {result.case: result for result in found}


def _result(case: dict[str, Any]) -> Measured:
    values = {field.name: case[field.name] for field in fields(Measured)}
    numbers = ("over", "under", "median", "lower", "upper")
    values |= {name: float(values[name]) for name in numbers}
    return Measured(**values | {"ratios": tuple(float(ratio) for ratio in values["ratios"])})
