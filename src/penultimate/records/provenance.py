"""Where the rows of a study come from, gathered from the metas of its finished steps."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from penultimate.networks.key import NetworkKey
from penultimate.records.reading import StudyFolder

if TYPE_CHECKING:
    from penultimate.store import Meta

OF_STEP = {"network": "objective", "target": "target"}
"""What is said of the step behind a reason, and the column that says it: step ids shorten names."""


def provenance(folder: StudyFolder) -> dict[str, Any]:
    """Return what a study's steps say of the machine, packages, commit, data digests and durations."""
    metas = folder.metas()
    contents = {step_id: meta.content for step_id, meta in metas.items()}
    first = next(iter(contents.values()), {})
    seconds: Counter[str] = Counter()
    for meta in metas.values():
        seconds[meta.step] += meta.content["seconds"]
    data = [meta.content for meta in metas.values() if meta.step == "data"]
    of_images = {
        what: {
            f"{of['config']['name']}, {split}": told
            for of in data
            for split, told in of.get(what, {}).items()
        }
        for what in ("left_out", "remarks")
    }
    of_sets = {
        what: {of["config"]["name"]: of[what] for of in data if of.get(what)} for what in ("copies", "images")
    }
    prepared = {
        content["columns"]["objective"]: content["preparation"]
        for content in contents.values()
        if "preparation" in content
    }
    noted = {
        content["columns"]["objective"]: content["noted"]
        for content in contents.values()
        if "noted" in content
    }
    speed = {
        content["columns"]["objective"]: content["speed"]
        for content in contents.values()
        if "speed" in content
    }
    failed = {
        step_id: facts
        for step_id, facts in folder.description.get("failed", {}).items()
        if step_id not in contents
    }
    diverged = folder.diverged()
    undefined = {step_id: facts["undefined"] for step_id, facts in contents.items() if "undefined" in facts}
    not_validated = {
        content["columns"]["target"]: content["classes_not_validated"]
        for content in contents.values()
        if "classes_not_validated" in content
    }
    return {
        "command": folder.description["command"],
        "commit": sorted({content["commit"] for content in contents.values() if content["commit"]}),
        "dirty": any(content["dirty"] for content in contents.values()),
        "hosts": sorted({content["host"] for content in contents.values()}),
        "device": ", ".join(sorted({of["device"] for of in contents.values() if "device" in of})),
        **{name: first.get(name, "") for name in ("processor", "threads", "python")},
        "packages": first.get("packages", {}),
        "data": {"{name} (draw {draw})".format_map(of["config"]): of["content_digest"] for of in data},
        **{what: told for what, told in of_images.items() if told},
        **{what: told for what, told in of_sets.items() if told},
        **({"prepared": prepared} if prepared else {}),
        **({"noted": noted} if noted else {}),
        **({"speed": speed} if speed else {}),
        **({"failed": failed} if failed else {}),
        **({"classes_not_validated": not_validated} if not_validated else {}),
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "steps": {name: list(pair) for name, pair in folder.counts().items()},
        "diverged": diverged,
        "diverged_networks": {
            step_id: [vars(key) for key in _networks(folder, step_id, metas[step_id])] for step_id in diverged
        },
        "undefined": undefined,
        "undefined_of": {
            step_id: {what: contents[step_id]["columns"].get(column) for what, column in OF_STEP.items()}
            for step_id in undefined
        },
    }


def networks_made(folder: StudyFolder) -> dict[NetworkKey, str]:
    """Return the step that made each finished network of a study."""
    return {
        key: step_id
        for step_id, meta in folder.metas().items()
        if meta.step in ("train", "given")
        for key in _networks(folder, step_id, meta)
    }


def _networks(folder: StudyFolder, step_id: str, meta: Meta) -> list[NetworkKey]:
    """Return the network that a finished step belongs to, in each of its arms."""
    columns = meta.content["columns"]
    names = (columns.get("objective") or "", columns.get("backbone") or "")
    return [NetworkKey(*names, arm, columns.get("seed"), columns.get("draw")) for arm in folder.arms(step_id)]
