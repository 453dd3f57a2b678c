"""The provenance of a study's numbers, as labels and records that a page can show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penultimate.report.base import StudyResults
from penultimate.report.text import plain

LABELS = {
    "command": "Command",
    "measured": "Measured",
    "commit": "Commit",
    "dirty": "Changed since the commit",
    "version": "Version",
    "packages": "Packages",
    "versions": "Versions",
    "python": "Python",
    "hosts": "Machines",
    "host": "Machine",
    "machine": "Machine",
    "processor": "Processor",
    "device": "Device",
    "threads": "Threads per process",
    "seeds": "Seeds",
    "draws": "Draws of the data",
    "data": "Data (sha256)",
    "seconds": "Seconds of work, by kind of step",
    "networks": "Networks, of how many",
    "lacking": "Not measured",
    "steps": "Steps done, of how many",
    "recipe": "Training recipe",
    "further": "Further networks",
    "diverged": "Diverged",
    "undefined": "Undefined",
    "studies": "Studies",
    "beside": "Beside the kept run",
    "apart": "Studies that are not joined with the others",
}

SHARES = ("networks", "steps")
"""The entries of provenance that are pairs: the number done, and the total."""
OF_PARTS = ("seconds", "steps")
"""The entries that the parts of a joined study add up: a step that several parts need counts in each."""


def provenance(results: StudyResults) -> list[tuple[str, Any]]:
    """Return provenance and the study's settings as (label, text or nested list), the known ones first."""
    told = {**_settings(results.description.get("networks", ())), **results.provenance}
    for name in ("diverged_networks", "undefined_of"):  # other entries name their steps with reasons
        told.pop(name, None)
    order = [key for key in LABELS if key in told] + sorted(key for key in told if key not in LABELS)
    joined = {key: f"{LABELS[key]} (in each part that needs it)" for key in OF_PARTS if results.is_joined}
    labels = {**LABELS, **joined}
    return [
        (labels.get(key, plain(key.replace("_", " ")).capitalize()), _record(told[key], key in SHARES))
        for key in order
        if told[key] not in ("", None, {}, [])
    ]


def _settings(networks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return seeds, draws and recipe of the main grid, and the differences of further networks."""
    grids = [block for block in networks if "objectives" in block]
    main = grids[0] if grids else {}
    settings = {key: main[key] for key in ("seeds", "draws", "recipe") if key in main}
    plain_grids = [{key: grid[key] for key in grid if key != "checkpoints"} for grid in grids]
    further = {f"Grid {number}": _differing(grid, main) for number, grid in enumerate(plain_grids[1:], 2)} | {
        str(name): source
        for block in networks
        for name, source in {**block.get("given", {}), **block.get("checkpoints", {})}.items()
    }
    return {**settings, "further": further}


def _differing(values: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries that differ from the usual ones, including those of nested settings."""
    return {
        key: _differing(value, usual[key])
        if isinstance(value, Mapping) and isinstance(usual.get(key), Mapping)
        else value
        for key, value in values.items()
        if value not in (usual.get(key), None)
    }


def _record(value: Any, shares: bool = False) -> Any:
    """Return JSON as text, or a mapping as a list of (name, record); if `shares`, [2, 3] becomes "2 of 3"."""
    if isinstance(value, Mapping):
        return [(plain(key), _record(entry, shares)) for key, entry in value.items()]
    if isinstance(value, list | tuple):
        if shares and len(value) == 2 and all(isinstance(count, int) for count in value):
            return f"{value[0]:,} of {value[1]:,}"
        return ", ".join(str(_record(entry)) for entry in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else plain(value)
