"""Where the rows of a study come from, gathered from the metas of its finished steps."""

from __future__ import annotations

from collections import Counter
from typing import Any

from penultimate.networks.key import NetworkKey
from penultimate.records.reading import StudyFolder
from penultimate.store import Meta


def provenance(folder: StudyFolder) -> dict[str, Any]:
    """Return what a study's steps record: machine, packages, commit, data digests, durations, gaps."""
    metas = folder.metas()
    contents = {step_id: meta.content for step_id, meta in metas.items()}
    first = next(iter(contents.values()), {})
    seconds: Counter[str] = Counter()
    for meta in metas.values():
        seconds[meta.step] += meta.content["seconds"]
    data = [meta.content for meta in metas.values() if meta.step == "data"]
    diverged = folder.diverged()
    undefined = {step_id: facts["undefined"] for step_id, facts in contents.items() if "undefined" in facts}
    network = ("objective", list(contents.values()))
    optional = {
        **{
            what: {
                f"{facts['config']['name']}, {split}": listed
                for facts in data
                for split, listed in facts.get(what, {}).items()
            }
            for what in ("left_out", "remarks")
        },
        **{
            what: {of["config"]["name"]: of[what] for of in data if of.get(what)}
            for what in ("copies", "images")
        },
        "prepared": _by(*network, "preparation"),
        "noted": _by(*network, "noted"),
        "speed": _by(*network, "speed"),
        "failed": {
            step_id: facts
            for step_id, facts in folder.description.get("failed", {}).items()
            if step_id not in contents
        },
        "classes_not_validated": _by("target", network[1], "classes_not_validated"),
    }
    return {
        "command": folder.description["command"],
        "commit": sorted({facts["commit"] for facts in contents.values() if facts["commit"]}),
        "dirty": any(facts["dirty"] for facts in contents.values()),
        "hosts": sorted({facts["host"] for facts in contents.values()}),
        "device": ", ".join(sorted({facts["device"] for facts in contents.values() if "device" in facts})),
        **{name: first.get(name, "") for name in ("processor", "threads", "python")},
        "packages": first.get("packages", {}),
        "data": {
            f"{of['config']['name']} (draw {of['config']['draw']})": of["content_digest"] for of in data
        },
        **{what: found for what, found in optional.items() if found},
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "steps": {name: list(pair) for name, pair in folder.counts().items()},
        "diverged": diverged,
        "diverged_networks": {
            step_id: [vars(key) for key in _networks(folder, step_id, metas[step_id])] for step_id in diverged
        },
        "undefined": undefined,
        # Step ids shorten names, so the network and the target are said beside the reason.
        "undefined_of": {
            step_id: {
                "network": contents[step_id]["columns"].get("objective"),
                "target": contents[step_id]["columns"].get("target"),
            }
            for step_id in undefined
        },
    }


def _by(column: str, contents: list[dict[str, Any]], fact: str) -> dict[str, Any]:
    """Return a fact of all steps that state it, by a column of theirs."""
    return {facts["columns"][column]: facts[fact] for facts in contents if fact in facts}


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
