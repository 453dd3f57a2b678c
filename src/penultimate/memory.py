"""How much memory this machine has, and how much of it is free; a container's limit counts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penultimate.errors import RequestError

GROUPS = {
    "sys/fs/cgroup": ("memory.max", "memory.current", "inactive_file"),
    "sys/fs/cgroup/memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""Where Linux's control groups are, in version 2 and 1: the limit, what is used, and what of that is files,
which can be read again."""


@dataclass(frozen=True)
class Memory:
    """Bytes that a process may have: all of them, and those that are free without swapping."""

    total: int
    free: int


def memory(root: Path = Path("/")) -> Memory:
    """Return the memory of this machine, or of the container that this process is in; `root` is for tests.

    Of a system that does not say what is free, all is taken to be.
    """
    known = _numbers(root / "proc/meminfo")
    if "MemTotal" not in known or "MemAvailable" not in known:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Memory(total, total)
    total, free = (1024 * known[name] for name in ("MemTotal", "MemAvailable"))
    for limit, left in _limits(root):
        total, free = min(total, limit), min(free, left)
    return Memory(total, free)


def expect_room(size: int, what: str) -> None:
    """Raise RequestError where what a file declares to be of `size` bytes does not fit into memory."""
    if size > (free := memory().free):
        raise RequestError(
            f"{what} unpacks to {size / 1e9:.3g} GB, more than the {free / 1e9:.3g} GB of memory that are"
            " free; save it in parts, or as safetensors"
        )


def _limits(root: Path) -> Iterator[tuple[int, int]]:
    """Of every group that this process is in the limit, and what is left below it."""
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
    """Lines such as "MemTotal:  24105 kB", by their first words."""
    words = (line.split() for line in _text(path).splitlines())
    return {each[0].rstrip(":"): int(each[1]) for each in words if len(each) > 1 and each[1].isdigit()}


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
