"""The machine and the software versions of a process, recorded beside every result."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

CPUINFO = Path("/proc/cpuinfo")
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "matplotlib", "pillow", "penultimate")


@cache
def machine() -> dict[str, Any]:
    """Return the machine and versions of this process, which are recorded with results but never hashed."""
    packages = {}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            packages[name] = metadata.version(name)
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
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = CPUINFO.read_text("utf-8", "replace").partition("\n\n")[0].splitlines()
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    name = facts.get("model name") or platform.processor() or platform.machine()
    keys = {"family": "cpu family", "model": "model"}
    kind = [f"{word} {facts[key]}" for word, key in keys.items() if key in facts]
    return f"{', '.join((name, *kind))} ({os.cpu_count()} cores)"


@cache
def code_version() -> tuple[str, bool]:
    """Return the checkout's commit and whether files differ from it; ("", False) outside a checkout."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        found = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=10, check=True)
        return found.stdout.strip()

    try:
        return git("rev-parse", "HEAD"), bool(git("status", "--porcelain", "--", str(here)))
    except (OSError, subprocess.SubprocessError):
        return "", False
