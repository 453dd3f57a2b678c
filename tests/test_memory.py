"""The memory that a process may have, from what Linux says of the machine and of control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from penultimate.memory import Memory, memory

MEMINFO = "MemTotal:       8000 kB\nMemFree:        1000 kB\nMemAvailable:   6000 kB\n"


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


V2, V1 = "sys/fs/cgroup/", "sys/fs/cgroup/memory/"


@pytest.mark.parametrize(
    ("files", "total", "free"),
    [
        ({}, 8000, 6000),
        ({"proc/self/cgroup": "0::/\n", f"{V2}memory.max": "max\n"}, 8000, 6000),
        (
            {
                "proc/self/cgroup": "0::/job/step\n",
                f"{V2}job/memory.max": str(3000 * 1024),
                f"{V2}job/memory.current": str(2000 * 1024),
                f"{V2}job/memory.stat": f"anon 5\ninactive_file {500 * 1024}\n",
                f"{V2}job/step/memory.max": "max",
            },
            3000,
            1500,
        ),
        (
            {
                "proc/self/cgroup": "4:memory:/docker/x\n3:cpu:/\n0::/\n",  # seen from inside
                f"{V1}memory.limit_in_bytes": str(2000 * 1024),
                f"{V1}memory.usage_in_bytes": str(100 * 1024),
            },
            2000,
            1900,
        ),
        ({"proc/self/cgroup": "4:memory:/\n", f"{V1}memory.limit_in_bytes": str(2**63 - 4096)}, 8000, 6000),
    ],
)
def test_the_narrowest_limit_counts(files: dict[str, str], total: int, free: int, tmp_path: Path) -> None:
    assert memory(written(tmp_path, files)) == Memory(total * 1024, free * 1024)


def test_where_nothing_is_said_all_memory_is_taken_to_be_free(tmp_path: Path) -> None:
    found = memory(tmp_path)
    assert found.total == found.free > 2**20
