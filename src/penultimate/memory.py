"""The memory of this machine and how much of it is free; a container's limit counts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GROUPS = {
    "sys/fs/cgroup": ("memory.max", "memory.current", "inactive_file"),
    "sys/fs/cgroup/memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""Paths of Linux control groups (versions 2 and 1): the limit, the usage, and the file cache within it.

The file cache counts as free, because it can be read again.
"""


@dataclass(frozen=True)
class Memory:
    """Bytes that a process may use: in total, and those that are free without swapping."""

    total: int
    free: int


def memory(root: Path = Path("/")) -> Memory:
    """Return the memory of this machine, or of the container of this process; `root` is for tests.

    All memory counts as free on a system that does not report what is free.
    """
    known = _numbers(root / "proc/meminfo")
    if "MemTotal" not in known or "MemAvailable" not in known:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Memory(total, total)
    total, free = (1024 * known[name] for name in ("MemTotal", "MemAvailable"))
    for limit, left in _limits(root):
        total, free = min(total, limit), min(free, left)
    return Memory(total, free)


def _limits(root: Path) -> Iterator[tuple[int, int]]:
    """Yield the limit of each control group of this process, and the memory that is left below it."""
    lines = _text(root / "proc/self/cgroup").splitlines()
    below = {
        path.lstrip("/")
        for _, which, path in (line.split(":", 2) for line in lines)
        if which in ("", "memory")
    }
    for mounted, (limit, used, idle) in GROUPS.items():
        for place in {folder for path in below for folder in (Path(path), *Path(path).parents)}:
            group = root / mounted / place
            allowed = _text(group / limit).strip()
            if allowed.isdigit():
                taken = int(_text(group / used).strip() or 0) - _numbers(group / "memory.stat").get(idle, 0)
                yield int(allowed), max(0, int(allowed) - taken)


def _numbers(path: Path) -> dict[str, int]:
    """Return the numbers in lines such as "MemTotal:  24105 kB", keyed by their first word."""
    words = (line.split() for line in _text(path).splitlines())
    return {each[0].rstrip(":"): int(each[1]) for each in words if len(each) > 1 and each[1].isdigit()}


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
