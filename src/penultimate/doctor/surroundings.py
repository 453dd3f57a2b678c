"""The machine, and the versions of the software on it; no package is imported to learn its version."""

from __future__ import annotations

import os
import platform
import shutil
from importlib import metadata
from pathlib import Path

from penultimate.cores import usable_cores
from penultimate.doctor.findings import Finding
from penultimate.engine.machine import code_version
from penultimate.files import size_text, standing
from penultimate.memory import memory

LEAST_MEMORY, LEAST_DISK = 1e9, 1e9
"""Bytes of free memory and of free disk below which a study may not get far."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def look_at_machine(root: Path) -> list[Finding]:
    """Return findings on the cores, the memory, the threads, and the disk on which a store lies."""
    cores = os.cpu_count() or 1
    usable = usable_cores()
    limited = f", of which this process may use {usable}" if usable < cores else ""
    variables = ", ".join(f"{name}={os.environ[name]}" for name in THREADS if name in os.environ)
    place = standing(root)
    free = shutil.disk_usage(place).free
    findings = [
        Finding(f"{cores} cores{limited}; {platform.machine()}, {platform.system()} {platform.release()}"),
        _memory(),
        Finding(
            f"threads: {variables or 'no variable is set'} (steps run with those that their study names)"
        ),
        Finding(
            f"{size_text(free)} free on the disk of '{root}'",
            "free some space, or give --out a folder on another disk" if free < LEAST_DISK else "",
        ),
    ]
    if not os.access(place, os.W_OK | os.X_OK):
        findings.append(Finding(f"'{place}' cannot be written to", "give --out a folder that you own"))
    return findings


def _memory() -> Finding:
    found = memory()
    return Finding(
        f"{size_text(found.total)} of memory, {size_text(found.free)} of it free",
        "end other programs, or run with fewer --processes" if found.free < LEAST_MEMORY else "",
    )


def look_at_versions() -> list[Finding]:
    """Return findings on Python, the required packages, and whether this package's code was changed."""
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

    try:
        about = metadata.metadata("penultimate")
    except metadata.PackageNotFoundError:
        return [Finding("penultimate is not installed", "pip install . (in its checkout)"), _code()]
    python, wanted = platform.python_version(), SpecifierSet(about["Requires-Python"] or "")
    findings = [] if python in wanted else [Finding(f"Python {python}", f"install Python {wanted}")]
    present = [f"Python {python}"]
    for text in metadata.requires("penultimate") or ():
        requirement = Requirement(text)
        is_optional = requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            if not is_optional:
                findings.append(
                    Finding(f"{requirement.name} is missing", f"pip install '{_plain(requirement)}'")
                )
            continue
        present.append(f"{requirement.name} {version}")
        if not requirement.specifier.contains(version, prereleases=True):
            findings.append(
                Finding(f"{requirement.name} is {version}", f"pip install '{_plain(requirement)}'")
            )
    return [Finding(", ".join(present)), _code(), *findings]


def _plain(requirement: object) -> str:
    """Return a requirement without the extra that it belongs to."""
    return str(requirement).partition(";")[0].strip()


def _code() -> Finding:
    commit, changed = code_version()
    try:
        version = metadata.version("penultimate")
    except metadata.PackageNotFoundError:
        version = "of no version"
    if not commit:
        return Finding(f"penultimate {version}, outside a checkout: results name no commit")
    state = "changed since, which results say of themselves" if changed else "unchanged since"
    return Finding(f"penultimate {version}, commit {commit[:12]}, {state}")
