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
from penultimate.study.spec import SOURCE_SPLITS, Study


def not_used(study: Study, plugin: Plugin) -> str:
    """Return a sentence on the parts of a file that the study does not use, and how to add them, or ""."""
    used = {
        *((part.kind, part.name) for text in study.objectives for part in resolve(text).components),
        *(("dataset", name) for name in (study.source, *study.targets)),
        *(("backbone", specs.parse(text).name) for text in study.backbones),
        *(("measurement", what.name) for what in _measured(study)),
    }
    idle = [
        entry for entry in plugin.entries if (entry.kind, entry.name) not in used and not _is_stage(entry)
    ]
    if not idle:
        return ""
    names = [f"'{entry.name}'" for entry in idle]
    listed = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    if len(idle) == 1:
        ways = f"Add it with {way_to(idle[0], study)}."
    else:
        ways = f"Add them with {'; '.join(f'{way_to(entry, study)}' for entry in idle)}."
    return f"Loaded {plugin.path.name}, but this study does not use {listed}. {ways}"


def way_to(entry: Entry, study: Study) -> str:
    """Return the option of `penultimate run` that makes a study use a plug-in."""
    name = entry.name
    if entry.kind in COMPONENT_KINDS:
        return f"--add {shlex.quote(name)}"
    if entry.kind == "backbone":
        return f"--set backbones={name}"
    if entry.kind == "dataset":
        sizes = getattr(getattr(entry.resolve(), "card", None), "sizes", {})
        as_source = f" or --set source={name}" if all(split in sizes for split in SOURCE_SPLITS) else ""
        return f"--set targets={','.join((*study.targets, name))}{as_source}"
    return "--set " + shlex.quote("measure=" + ",".join((*study.measure, name)))


def _measured(study: Study) -> Iterator[Measurement]:
    requests = {request.text: request for asked in study.measured().values() for request in asked}
    for request in requests.values():
        yield from _with_stages(request.measurement)


def _with_stages(what: Measurement) -> Iterator[Measurement]:
    yield what
    for need in what.needs:
        if isinstance(need, Made):
            yield from _with_stages(measurement(need.stage))


def _is_stage(entry: Entry) -> bool:
    return bool(getattr(entry.resolve(), "declared", {}).get("stage"))
