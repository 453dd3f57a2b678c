"""The plug-ins that a study uses, and the options that would make it use others."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from penultimate import specs
from penultimate.measures.catalogue import measurement
from penultimate.measures.declaration import Made, Measurement
from penultimate.objectives.presets import COMPONENT_KINDS, resolve
from penultimate.plugins import Plugin
from penultimate.registry import Entry
from penultimate.study.spec import Study


def not_used(study: Study, plugin: Plugin) -> str:
    """Return a sentence on the parts of a file that the study does not use, and how to add them, or ""."""
    requests = {one.text: one for asked in study.measured().values() for one in asked}
    used = {
        *((part.kind, part.name) for text in study.objectives for part in resolve(text).components),
        *(("dataset", name) for name in study.sets),
        *(("backbone", specs.parse(text).name) for text in study.backbones),
        *(("measurement", name) for one in requests.values() for name in _with_stages(one.measurement)),
    }
    idle = [
        entry
        for entry in plugin.entries
        if (entry.kind, entry.name) not in used and not getattr(entry.resolve(), "declared", {}).get("stage")
    ]
    if not idle:
        return ""
    names = ", ".join(f"'{entry.name}'" for entry in idle)
    ways = "; ".join(way_to(entry, study) for entry in idle)
    return f"Loaded {plugin.path.name}, but this study does not use {names}. To use it: {ways}."


def way_to(entry: Entry, study: Study) -> str:
    """Return the option of `penultimate run` that makes a study use a plug-in."""
    name = entry.name
    if entry.kind in COMPONENT_KINDS:
        return f"--add {shlex.quote(name)}"
    if entry.kind == "backbone":
        return f"--set backbones={name}"
    if entry.kind == "dataset":
        return f"--set targets={','.join((*study.targets, name))}"
    return "--set " + shlex.quote("measure=" + ",".join((*study.measure, name)))


def _with_stages(what: Measurement) -> Iterator[str]:
    yield what.name
    for need in what.needs:
        if isinstance(need, Made):
            yield from _with_stages(measurement(need.stage))
