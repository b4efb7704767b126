"""What this machine lets the process take."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]


def memory_limit() -> int | None:
    """Return the bytes of memory that this process may take; None where the system does not say.

    Those of the machine, or of the container if that has fewer, or what is left of the address
    space that the process may have (``ulimit -v``).
    """
    try:
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):
        found = []
    return min([*found, *_container_limits(), *_address_space_left()], default=None)


def _address_space_left(root: Path = Path("/")) -> list[int]:
    """Return the bytes of address space that the process may still take, if they are limited."""
    if resource is None:
        return []
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return []
    try:
        pages = int((root / "proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):  # a system that does not say what is used
        pages = 0
    return [max(0, limit - pages * resource.getpagesize())]


def _container_limits(root: Path = Path("/")) -> list[int]:
    """Return the limits of the control groups of this process, of both versions of Linux."""
    groups = root / "proc/self/cgroup"
    limits = []
    for line in groups.read_text().splitlines() if groups.exists() else []:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        mount = root / "sys/fs/cgroup" / controllers
        name = "memory.max" if controllers == "" else "memory.limit_in_bytes"
        # Inside a container the mount may begin at the group itself, whatever its path says.
        inside = [
            mount / part.lstrip("/") for part in (path, *map(str, PurePosixPath(path).parents))
        ]
        for folder in {mount, *inside}:
            limits += _number_in(folder / name)
    return limits


def _number_in(path: Path) -> list[int]:
    try:
        return [int(path.read_text())]
    except (OSError, ValueError):  # not there, or "max"
        return []
