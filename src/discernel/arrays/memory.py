"""The memory limit of the process."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]


def memory_limit() -> int | None:
    """Return the bytes of memory that this process may use, or None if unknown.

    This is the smallest of the memory of the machine, the limit of the container, and the rest of
    the address space of the process (``ulimit -v``).
    """
    try:
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):
        found = []
    return min([*found, *_container_limits(), *_address_space_left()], default=None)


def _address_space_left(root: Path = Path("/")) -> list[int]:
    """Return the bytes of address space that are left, or an empty list without a limit."""
    if resource is None:
        return []
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return []
    try:
        pages = int((root / "proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):  # used memory is unknown
        pages = 0
    return [max(0, limit - pages * resource.getpagesize())]


def _container_limits(root: Path = Path("/")) -> list[int]:
    """Return the memory limits of the control groups (version 1 and 2) of this process."""
    groups = root / "proc/self/cgroup"
    limits = []
    for line in groups.read_text().splitlines() if groups.exists() else []:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        mount = root / "sys/fs/cgroup" / controllers
        name = "memory.max" if controllers == "" else "memory.limit_in_bytes"
        # Inside a container the mount may start at the group itself, whatever its path.
        inside = [
            mount / part.lstrip("/") for part in (path, *map(str, PurePosixPath(path).parents))
        ]
        for folder in {mount, *inside}:
            limits += _number_in(folder / name)
    return limits


def _number_in(path: Path) -> list[int]:
    try:
        return [int(path.read_text())]
    except (OSError, ValueError):  # no such file, or "max"
        return []
