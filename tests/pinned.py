"""What the package's requirements require in turn, on a platform, as the installed packages declare it."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RUNTIME: list[str] = PROJECT["project"]["dependencies"]
NOT_PINNED = ("hf", "open_clip", "kornblith2021")
"""Extras that the tests do without: what needs them is skipped where they are not installed."""
EXTRAS = [
    one
    for name, extra in PROJECT["project"]["optional-dependencies"].items()
    for one in extra
    if name not in NOT_PINNED
]
TESTS: list[str] = [*EXTRAS, *PROJECT["dependency-groups"]["test"]]
DOCS: list[str] = PROJECT["dependency-groups"]["docs"]
PLATFORMS = {
    "Linux on x86-64": {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"},
    "Linux on arm64": {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "aarch64"},
    "macOS on arm64": {"sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"},
}


def closure(requirements: list[str], platform: str) -> set[str]:
    """Return the names of the packages that requirements name and bring along on a platform."""
    seen: set[tuple[str, str]] = set()
    waiting = list(requirements)
    while waiting:
        requirement = Requirement(waiting.pop())
        for extra in ("", *requirement.extras):
            if (key := (canonicalize_name(requirement.name), extra)) in seen:
                continue
            seen.add(key)
            environment = {**PLATFORMS[platform], "extra": extra}
            for further in metadata.requires(requirement.name) or []:
                marker = Requirement(further).marker
                if marker is None or marker.evaluate(environment):
                    waiting.append(further)
    return {name for name, _ in seen}


def pins(*files: str) -> dict[str, Requirement]:
    """Return the requirements that lock files pin, by name; a line that is no exact pin is refused."""
    found: dict[str, Requirement] = {}
    for file in files:
        for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                continue
            requirement = Requirement(line)
            (pin,) = requirement.specifier
            exact = pin.operator == "==" and "*" not in pin.version
            assert exact, f"{file}: '{line}' is no exact pin"
            assert requirement.url is None, f"{file}: '{line}' names a host"
            name = canonicalize_name(requirement.name)
            assert name not in found, f"{file}: '{name}' is pinned twice"
            found[name] = requirement
    return found


def pinned_on(platform: str, *files: str) -> set[str]:
    """Return the names that the lock files install on a platform."""
    return {
        name
        for name, pin in pins(*files).items()
        if pin.marker is None or pin.marker.evaluate({**PLATFORMS[platform], "extra": ""})
    }
