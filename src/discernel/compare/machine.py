"""Facts about the machine of a run: processor, versions, threads, peak memory."""

from __future__ import annotations

import os
import platform
import threading
from collections import Counter
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

from discernel.show.facts import versions_here

#: BLAS threads of one cell; cells run in parallel.
THREADS = 1


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """Return processor, system, versions and threads, which measured times depend on."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": THREADS,
        **versions_here(),
        "joblib": version("joblib"),
    }


def package_version(name: str) -> str | None:
    """Return the version of a package, or None if it is not installed."""
    with suppress(PackageNotFoundError):
        return version(name)
    return None


def _processor() -> str:
    """Return the name of the processor."""
    with suppress(OSError, IndexError):  # on Linux, `platform` does not name the processor
        return Path("/proc/cpuinfo").read_text().split("model name")[1].split("\n")[0].strip("\t: ")
    return platform.processor()


class PeakMemory:
    """Peak memory of the process within a ``with`` block, in bytes.

    Linux can reset its record of the peak. Other systems cannot: there, only a peak higher than
    before belongs to this block, else the peak is None. It is also None if other cells ran in the
    same process meanwhile.
    """

    peak: int | None = None
    _lock = threading.Lock()
    _counts: ClassVar[Counter[str]] = Counter()

    def __enter__(self) -> PeakMemory:
        with self._lock:
            self._counts.update(("inside", "entered"))
            self._turn = self._counts["entered"] if self._counts["inside"] == 1 else None
        self._before: int | None = None
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            self._before = _peak_so_far()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._counts.subtract(("inside",))
            was_alone = self._turn == self._counts["entered"]
        peak = _peak_so_far()
        if was_alone and peak != self._before:
            self.peak = peak


def _peak_so_far() -> int | None:
    """Return the peak memory of the process in bytes, since its start or the last reset."""
    with suppress(OSError, IndexError):
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if platform.system() == "Darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
