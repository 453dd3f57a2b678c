"""The rows of every step of the study `smoke`, frozen: `python -m tests.golden.smoke` writes them again.

They were made with the variables of `tests.golden.portable`, and were the same to the byte on an AMD EPYC
(Zen 3) and on an Intel Haswell that QEMU emulated; without `MKL_CBWR` they differ.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.golden.portable import PORTABLE

from penultimate.study import load_study
from penultimate.study.unfold import unfold

ROWS = Path(__file__).with_name("smoke.jsonl")
KIND = Path(__file__).with_name("smoke.machine.json")
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pillow", "threadpoolctl")


def rows(store: Path) -> str:
    """Return the rows of all steps of the study in a store, in the graph's order."""
    steps = unfold(load_study("smoke")).steps
    return "".join((store / "steps" / step / "rows.jsonl").read_text("utf-8") for step in steps)


def kind() -> dict[str, Any]:
    """Return what the rows' last digits depend on: the processor's instructions and the packages."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return {
        "machine": f"{platform.system()} {platform.machine()}",
        "instructions": [name for name in ("avx2", "fma", "avx512f") if name in flags],
        "packages": {name: version(name) for name in PACKAGES},
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "penultimate.cli", "run", "smoke", "--out", folder]
        subprocess.run(command, env={**os.environ, **PORTABLE}, check=True)
        ROWS.write_text(rows(Path(folder)), "utf-8")
    KIND.write_text(json.dumps(kind(), indent=1) + "\n", "utf-8")
