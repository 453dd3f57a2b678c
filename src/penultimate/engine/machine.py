"""The machine and the software versions of a process, recorded beside every result."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

CPUINFO = Path("/proc/cpuinfo")


@cache
def machine() -> dict[str, Any]:
    """Return the machine and versions of this process, which are recorded with results but never hashed."""

    packages = {}
    for name in ("torch", "numpy", "scipy", "scikit-learn", "matplotlib", "pillow", "penultimate"):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = "not installed"
    commit, dirty = code_version()
    return {
        "host": platform.node(),
        "processor": _processor(),
        "python": platform.python_version(),
        "packages": packages,
        "commit": commit,
        "dirty": dirty,
    }


def device_name(device: str) -> str:
    """Return the name of the device on which a step ran its network."""
    if not device.startswith("cuda"):
        return device
    import torch

    return torch.cuda.get_device_name()


def _processor() -> str:
    """Return the processor's name, with family and model if known, because names are ambiguous."""
    try:
        lines = CPUINFO.read_text("utf-8", "replace").partition("\n\n")[0].splitlines()
    except OSError:
        lines = []
    told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    name = told.get("model name") or platform.processor() or platform.machine()
    kind = [
        f"{what} {told[key]}" for what, key in (("family", "cpu family"), ("model", "model")) if key in told
    ]
    return f"{', '.join((name, *kind))} ({os.cpu_count()} cores)"


@cache
def code_version() -> tuple[str, bool]:
    """Return the checkout's commit and whether files differ from it; ("", False) outside a checkout."""
    here = Path(__file__).resolve().parent
    try:
        commit, changed = (
            subprocess.run(
                ["git", *told],
                cwd=here,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=10,
                check=True,
            ).stdout.strip()
            for told in (("rev-parse", "HEAD"), ("status", "--porcelain", "--", str(here)))
        )
    except (OSError, subprocess.SubprocessError):
        return "", False
    return commit, bool(changed)
